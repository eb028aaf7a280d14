"""`read_matrix`: from a file, by the ending of its name, to a matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bayesmf._arguments import checked
from bayesmf._errors import DataError, nearest
from bayesmf.data.annotated import from_anndata
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.origin import Origin
from bayesmf.reading import arrays, sheets, text
from bayesmf.reading.layout import ALL, Layout
from bayesmf.reading.long import long as read_long
from bayesmf.reading.progress import showing
from bayesmf.reading.table import Table
from bayesmf.reading.wide import wide as read_wide

_PACKABLE = {*text.SEPARATOR_OF, ".mtx"}  # may be followed by .gz
_ARRAYS: dict[str, Callable[[Path, bool], ObservedMatrix]] = {
    ".mtx": arrays.read_mtx, ".npy": arrays.read_npy, ".npz": arrays.read_npz,
}  # fmt: skip
_ANNDATA = ".h5ad"
_TABLES: dict[str, Callable[[Path, Layout], AbstractContextManager[Table]]] = {
    **dict.fromkeys(text.SEPARATOR_OF, text.open_text),
    **dict.fromkeys(sheets.EXCEL, sheets.open_excel),
    ".parquet": sheets.open_parquet,
}
TABLES = (*_TABLES,)
_OPTIONS: dict[str, frozenset[str]] = {  # that mean something for a kind of file; others take none
    **dict.fromkeys(text.SEPARATOR_OF, ALL - {"sheet", "layer"}),
    **dict.fromkeys(sheets.EXCEL, ALL - {"sep", "encoding", "layer"}),
    ".parquet": ALL - {"sep", "encoding", "sheet", "skip", "comment", "layer"},
    _ANNDATA: frozenset({"layer"}),
}
_ALWAYS = frozenset({"single"})  # options that mean something everywhere
_SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")


@checked
def read_matrix(
    source: str | Path,
    *,
    long: str | Sequence[str] | None = None,
    labels: str = "auto",
    sep: str | None = None,
    decimal: str | None = None,
    skip: int = 0,
    comment: str | None = None,
    encoding: str | None = None,
    sheet: str | int | None = None,
    layer: str | None = None,
    missing: str | float | Iterable[Any] = (),
    drop: str | Iterable[str] = (),
    duplicates: str = "error",
    single: bool = False,
    progress: bool | None = None,
) -> ObservedMatrix:
    r"""Read a matrix from a file, or load a known dataset.

    What had to be guessed, or was left out, is told by the matrix itself: ``X.origin.notes``.

    Parameters
    ----------
    source
        Name of a dataset (`bayesmf.datasets.CATALOGUE`), or path of a file. Its ending tells what
        it is: .csv, .tsv and .txt (tables of text) and .mtx (MatrixMarket), each also with .gz;
        .xlsx and .xlsm (Excel; needs openpyxl); .parquet (needs pyarrow); .npy (a dense array);
        .npz (one array; what `scipy.sparse.save_npz` wrote; or triples, arrays named ``rows``,
        ``cols`` and ``values``, with ``shape`` if need be); .h5ad (AnnData; needs anndata). The
        stored entries of other sparse files are the observed ones. The first row of a table names
        its columns. Empty cells, NA, NaN, N/A, #N/A, null, None, ND, n.a., -
        and the like are missing, in capitals or not; 1,234 and 5% are numbers; >8, >=8 and 8+ are
        values that lie at 8 or above, <0.05 and <=0.05 the other way round, and [2, 4] is one
        between the two; a model of normal noise reads them as such.
    long
        Names of the three columns of a table that hold row, column and value of one entry per line,
        as in "user,item,rating"; otherwise the table is wide.
    labels
        Whether the first column of a wide table holds labels of the rows: "yes", "no" or "auto". It
        does by "auto" unless all its cells are numbers (or missing) and its header is neither
        empty nor like that of an id, an index or a name.
    sep
        What separates cells of text: a character, or "tab". By default commas, semicolons or tabs,
        whichever gives the rows the same number of cells.
    decimal
        What decimals are written with, "." or ","; by default what the cells speak for.
    skip
        Number of lines above the column labels that are left out.
    comment
        Lines that begin with this text are left out.
    encoding
        Of text, as in "cp1252" or "utf-16"; by default UTF-8.
    sheet
        Name or number, from 1, of a sheet of a workbook; by default the first.
    layer
        Name of a layer of an .h5ad file; its ``X`` by default.
    missing
        More codes for missing: several, one, or a text with commas between them, as in "low,-999".
        "limits" stands for all limits and intervals, such as >8, which are then missing too.
    drop
        Names of columns, and labels of rows, to leave out, given in the same way. Columns of text
        among them are kept aside, ``X.origin.aside``; `bayesmf fit` writes them back.
    duplicates
        What to do with rows, columns or entries of the same label: "error", "mean" or "first".
    single
        Whether to keep values in single precision, which halves them; see `ObservedMatrix.of`.
    progress
        Whether to show a bar on standard error; by default for files of 200 MB and more.

    Returns
    -------
    ObservedMatrix
        Labels are texts, without the blanks around them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bayesmf import read_matrix
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "export.csv")
    ...     _ = path.write_text("id;dose;sex\n17;1,5;f\n18;ND;m\n")
    ...     X = read_matrix(path, labels="yes", drop="sex")
    >>> X.row_labels.tolist(), X.to_array().tolist()
    (['17', '18'], [[1.5], [nan]])
    >>> print(*X.origin.notes, sep="\n")
    Cells are separated by semicolons: sep=';' (--sep ';').
    Decimals are written with commas: decimal=',' (--decimal ,).
    Taken for missing: 'ND' (1).
    """
    from bayesmf.datasets import CATALOGUE, load

    layout = Layout.of(
        long=long, labels=labels, sep=sep, decimal=decimal, skip=skip, comment=comment,
        encoding=encoding, sheet=sheet, layer=layer, missing=missing, drop=drop,
        duplicates=duplicates, single=single,
    )  # fmt: skip
    if source in CATALOGUE:  # no file that can be read has such a name
        layout.refuse(_ALWAYS, source)
        return ObservedMatrix.of(load(str(source)).X, single=single)
    path = Path(source)
    try:
        suffix = _checked_suffix(path, CATALOGUE)
        layout.refuse(options_for(path), path)
        with showing(path, progress):
            X = _read(path, suffix, layout)
        X = ObservedMatrix.of(X, single=single)
        X.check_entries()
        X.check_range()
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except MemoryError:
        raise DataError(f"{path} does not fit into memory; read a part of it.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror or error}).") from None
    return X


def options_for(path: str | Path) -> frozenset[str]:
    """The options of reading that mean something for such a file."""
    return _ALWAYS | _OPTIONS.get(suffix_of(path), frozenset())


def _read(path: Path, suffix: str, layout: Layout) -> ObservedMatrix:
    if suffix == _ANNDATA:
        return from_anndata(path, layout.layer)
    if suffix in _ARRAYS:
        return _ARRAYS[suffix](path, layout.single)
    if suffix == ".parquet" and (found := sheets.plain_triples(path, layout)) is not None:
        return replace(found, origin=Origin())
    with _TABLES[suffix](path, layout) as table:
        X = read_long(table, layout) if layout.long else read_wide(table, layout)
        told = X.origin or Origin()
        decimal = table.cells.decimal or "."
        return replace(
            X, origin=told._replace(sep=table.sep, decimal=decimal, notes=tuple(table.notes))
        )


def suffix_of(path: str | Path) -> str:
    """The ending of a file's name in small letters, with .gz left out where it may follow."""
    name = Path(path).name.lower()
    suffix = Path(name.removesuffix(".gz")).suffix
    return suffix if suffix in _PACKABLE or not name.endswith(".gz") else ".gz"


def _checked_suffix(path: Path, datasets: Iterable[str]) -> str:
    """What kind of file it is; raise a DataError if there is no such file or kind."""
    if path.is_dir():
        raise DataError("this is a folder; name a file in it.")
    if not path.exists():
        hint = nearest(path.name, datasets)
        raise DataError(f"there is no such file, and no dataset of that name.{hint}")
    if not path.is_file():
        raise DataError("this is not a regular file; copy what it gives into one.")
    suffix, known = suffix_of(path), [*_TABLES, *_ARRAYS, _ANNDATA]
    if suffix in _SPREADSHEETS:
        raise DataError(f"{suffix} is not read; save the sheet as .xlsx, or export it as CSV.")
    if suffix not in known:
        names = ", ".join(f"{s}(.gz)" if s in _PACKABLE else s for s in known)
        raise DataError(f"the ending {suffix!r} is not known; it must be one of {names}.")
    if path.stat().st_size == 0:
        raise DataError("the file is empty.")
    return suffix
