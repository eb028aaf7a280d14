"""Matrices from files: wide tables, long triples, NumPy and SciPy arrays, MatrixMarket, Parquet.

Nothing is ever unpickled. Every complaint is one sentence that begins with the file's name.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import sys
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesmf import _sizes
from bayesmf._arguments import checked
from bayesmf._errors import DataError, ModelError, nearest
from bayesmf.data.bounds import Bounds
from bayesmf.data.observed import Array, ObservedMatrix

LARGE = 2_000_000_000  # bytes from which on a file is announced before it is read
LONGEST = 200_000_000  # rows and columns together, beyond which a header must be wrong
LABELS = ("auto", "yes", "no")
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
TABLES = (*_DELIMITERS, ".parquet")
_PACKABLE = {*_DELIMITERS, ".mtx"}  # may be followed by .gz
_MISSING = {"", "na", "nan", "n/a", "null", "none"}  # in small letters
_USUAL = {"", "NA", "NaN", "nan", "N/A", "null", "NULL", "None"}  # as they mostly come
_CORNERS = {"", "id", "index", "row", "name", "label", "unnamed: 0"}  # above labels, not data
_NUL = "holds a NUL character, so this is not UTF-8 text; save it as such."
_OBJECTS = "Python objects, which may run code and are never loaded; save numbers instead."
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.IGNORECASE)
_FLOAT = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_LIMIT = re.compile(
    rf"(?P<sign>[<>])=?\s*(?P<end>{_FLOAT})|(?P<least>{_FLOAT})\s*\+"
    rf"|\[\s*(?P<low>{_FLOAT})\s*,\s*(?P<high>{_FLOAT})\s*\]"
)
_DAMAGED = (
    ValueError, TypeError, KeyError, IndexError, OverflowError, NotImplementedError, EOFError,
    zlib.error, zipfile.BadZipFile, gzip.BadGzipFile,
)  # fmt: skip  # what readers of damaged files raise


class Layout(NamedTuple):
    """How a table is laid out."""

    long: tuple[str, ...] | None  # columns of triples; otherwise the table is wide
    labels: str  # whether its first column holds labels


class Reading(NamedTuple):
    """What a cell says: a number, NaN if it is missing, or an interval and what stands for it."""

    value: float
    low: float
    high: float


@checked
def read_matrix(
    source: str | Path, *, long: str | Sequence[str] | None = None, labels: str = "auto"
) -> ObservedMatrix:
    """Read a matrix from a file, or load a known dataset.

    Parameters
    ----------
    source
        Name of a dataset (`bayesmf.datasets.CATALOGUE`), or path of a file. Its ending tells what
        it is: .csv (commas), .tsv and .txt (tabs), .mtx (MatrixMarket), each also with .gz;
        .parquet; .npy (a dense array); .npz (one array, or what `scipy.sparse.save_npz` wrote). In
        sparse files the stored entries are the observed ones. The first row of a table names its
        columns. Empty cells, NA, NaN, N/A, null and None are missing, in capitals or not. In a
        table of text >8, >=8 and 8+ are values that lie at 8 or above, <0.05 and <=0.05 the other
        way round, and [2, 4] is one between the two; a model of normal noise reads them as such.
    long
        Names of the three columns of a table that hold row, column and value of one entry per line,
        as in "user,item,rating"; otherwise the table is wide.
    labels
        Whether the first column of a wide table holds labels of the rows: "yes", "no" or "auto". It
        does by "auto" unless all its cells are numbers (or missing) and its header is neither
        empty nor one of id, index, row, name and label.

    Returns
    -------
    ObservedMatrix
        Labels are texts, without the blanks around them.
    """
    from bayesmf.datasets import CATALOGUE, load

    layout = _layout(long, labels)
    if source in CATALOGUE:  # no file that can be read has such a name
        _refuse_layout(layout, source)
        return load(str(source)).X
    path = Path(source)
    try:
        suffix = _checked_suffix(path, CATALOGUE)
        if suffix not in TABLES:
            _refuse_layout(layout, path)
        _announce(path)
        X = _READERS[suffix](path, layout)
        X.check_entries()
        X.check_range()
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except MemoryError:
        raise DataError(f"{path} does not fit into memory; read a part of it.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror or error}).") from None
    return X


def suffix_of(path: str | Path) -> str:
    """The ending of a file's name in small letters, with .gz left out where it may follow."""
    name = Path(path).name.lower()
    suffix = Path(name.removesuffix(".gz")).suffix
    return suffix if suffix in _PACKABLE or not name.endswith(".gz") else ".gz"


def _layout(long: str | Sequence[str] | None, labels: str) -> Layout:
    if labels not in LABELS:
        raise ModelError(f"labels must be one of {', '.join(LABELS)}, got {labels!r}.")
    if long is None:
        return Layout(None, labels)
    names = tuple(name.strip() for name in (long.split(",") if isinstance(long, str) else long))
    if len(set(names)) != 3 or len(names) != 3 or not all(names):
        raise ModelError(
            f"long must name three columns, as in 'row,col,value', got {','.join(names)!r}."
        )
    return Layout(names, labels)


def _refuse_layout(layout: Layout, what: object) -> None:
    if layout != Layout(None, "auto"):
        raise ModelError(f"long and row labels are for tables; leave them out for {what}.")


def _checked_suffix(path: Path, datasets: Iterable[str]) -> str:
    """What kind of file it is; raise a DataError if there is no such file or kind."""
    if path.is_dir():
        raise DataError("this is a folder; name a file in it.")
    if not path.exists():
        hint = nearest(path.name, datasets)
        raise DataError(f"there is no such file, and no dataset of that name.{hint}")
    if not path.is_file():
        raise DataError("this is not a regular file; copy what it gives into one.")
    suffix = suffix_of(path)
    if suffix not in _READERS:
        known = ", ".join(f"{s}(.gz)" if s in _PACKABLE else s for s in _READERS)
        raise DataError(f"the ending {suffix!r} is not known; it must be one of {known}.")
    if path.stat().st_size == 0:
        raise DataError("the file is empty.")
    return suffix


def _announce(path: Path) -> None:
    if (size := path.stat().st_size) >= LARGE:
        what = f"{path} has {size / 1e9:.1f} GB, all of which will be read into memory."
        print(f"bayesmf: {what}", file=sys.stderr)


# --- Tables of text -----------------------------------------------------------------------------


class _Table:
    """The rows of a text table, checked for their length, and where the reader is."""

    def __init__(self, lines: Iterator[str], delimiter: str) -> None:
        self._reader = csv.reader(lines, delimiter=delimiter, strict=True)
        self._rows = (row for row in self._reader if row)  # blank lines are left out
        self.header = [name.strip() for name in next(self._rows, [])]
        self.intervals: dict[int, Reading] = {}  # by the number of the cell, as callers count
        if not self.header:
            raise DataError("the file is empty.")

    @property
    def line(self) -> int:
        """Number of the line that was read last, from 1."""
        return self._reader.line_num

    def __iter__(self) -> Iterator[list[str]]:
        n = len(self.header)
        for row in self._rows:
            if len(row) != n:
                raise DataError(
                    f"line {self.line} has {len(row)} cells, but the first row has {n}; "
                    "give every row as many."
                )
            yield row

    def numbers(
        self, cells: list[str], columns: list[str], row: str | None, first: int
    ) -> list[float]:
        """Cells of one row as floats, NaN where missing; complain of the first that is neither.

        Limits and intervals are noted, by their numbers from ``first`` on.
        """
        try:
            found = [math.nan if cell in _USUAL else float(cell) for cell in cells]
            if "_" not in "".join(cells):  # Python takes 1_000 for a number, others do not
                return found
        except ValueError:
            pass
        found = []
        for number, (cell, column) in enumerate(zip(cells, columns, strict=True), first):
            try:
                reading = _reading(cell)
            except ValueError:
                where = f"line {self.line}, {'' if row is None else f'row {row.strip()!r}, '}"
                raise DataError(f"{where}column {column!r} {_complaint(cell.strip())}") from None
            if reading.low < reading.high:
                self.intervals[number] = reading
            found.append(reading.value)
        return found


def _number(cell: str) -> float:
    """A cell as a float, NaN if it is missing; a ValueError if it is neither."""
    text = cell.strip()
    if text.casefold() in _MISSING:
        return math.nan
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _reading(cell: str) -> Reading:
    """A cell as a number or an interval; a ValueError if it is neither."""
    try:
        value = _number(cell)
        return Reading(value, value, value)
    except ValueError:
        match = _LIMIT.fullmatch(cell.strip())
        if match is None:
            raise
    found = match.groupdict()
    if found["low"] is not None:
        low, high = float(found["low"]), float(found["high"])
        if low > high:
            raise ValueError(cell)
        return Reading((low + high) / 2, low, high)
    end = float(found["end"] or found["least"])
    return Reading(end, -math.inf, end) if found["sign"] == "<" else Reading(end, end, math.inf)


def _complaint(cell: str) -> str:
    """What to say of a cell that cannot be read."""
    what = f"holds {cell[:40]!r}, which is"
    if _LIMIT.fullmatch(cell):
        return f"holds {cell[:40]!r}, whose ends cross; write the smaller one first."
    if cell.startswith(("<", ">", "[")) or cell.endswith("+"):
        return f"{what} neither a number nor a limit such as >8, <0.05, 8+ or [2, 4]; correct it."
    if _DECIMAL_COMMA.fullmatch(cell):
        return f"{what} not a number; write decimals with a point."
    return f"{what} not a number; correct it, or leave the cell empty if it is missing."


def _bounded(X: ObservedMatrix, numbers: Array, intervals: dict[int, Reading]) -> ObservedMatrix:
    """The matrix with intervals, by the numbers that its entries, in row order, had as cells."""
    low, high = X.rows.values.copy(), X.rows.values.copy()
    known = np.fromiter(intervals, dtype=np.int64)
    order = np.argsort(numbers, kind="stable")
    places = order[np.searchsorted(numbers, known, sorter=order)]
    low[places] = [reading.low for reading in intervals.values()]
    high[places] = [reading.high for reading in intervals.values()]
    return replace(X, bounds=Bounds(low, high))


def _read_text(path: Path, layout: Layout) -> ObservedMatrix:
    """A table of text; rows are read and turned into numbers in one pass."""
    table = None
    try:
        with _open(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as text:
            # A look at the beginning: a file of zeros would be one line, as long as itself.
            if b"\0" in raw.peek(4096):
                raise DataError(f"it {_NUL}")
            table = _Table(_lines(text), _DELIMITERS[suffix_of(path)])
            return _triples(table, layout.long) if layout.long else _wide(table, layout.labels)
    except UnicodeDecodeError:
        raise DataError(f"{_not_utf8(path)}; save it as UTF-8.") from None
    except csv.Error as error:
        line = table.line if table else 1
        raise DataError(
            f"line {line} cannot be read ({error}); look for a quote that is not closed."
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError("it is not a gzip file, or is damaged; get it again.") from None


def _open(path: Path) -> Any:
    packed = path.name.lower().endswith(".gz")
    return gzip.open(path, "rb") if packed else open(path, "rb")


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    for number, line in enumerate(_sizes.lines(text), 1):
        if "\0" in line:
            raise DataError(f"line {number} {_NUL}")
        yield line


def _not_utf8(path: Path) -> str:
    """What to say of a file that is not UTF-8: where its first such byte is."""
    with _open(path) as raw:
        for number, line in enumerate(raw, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return f"line {number} is not UTF-8 text (byte 0x{line[error.start]:02x})"
    return "it is not UTF-8 text"


def _wide(table: _Table, mode: str) -> ObservedMatrix:
    """A table with a column for each column of the matrix, and perhaps one of row labels."""
    header = table.header
    start = 0 if mode == "no" else 1  # the first column is kept as text until all is read
    columns, firsts, values, n = header[start:], [], array("d"), 0
    for cells in table:
        label = cells[0] if start else None
        values.extend(table.numbers(cells[start:], columns, label, len(values)))
        firsts.append(cells[0].strip())
        n += 1
    if not n:
        raise DataError("there is no row below the column labels; add the values.")
    matrix, width = np.asarray(values).reshape(n, len(columns)), len(columns)
    intervals = table.intervals
    if mode == "auto" and header[0].casefold() not in _CORNERS:
        try:
            first = [_reading(cell) for cell in firsts]
        except ValueError:  # a text, so they are labels
            pass
        else:
            matrix = np.column_stack([[reading.value for reading in first], matrix])
            intervals = {k + k // width + 1: reading for k, reading in intervals.items()}
            places = enumerate(first)
            intervals |= {i * (width + 1): r for i, r in places if r.low < r.high}
            columns, start = header, 0
    if not columns:
        raise DataError(
            "there is no column of values; commas separate the cells of a .csv, tabs those of a "
            ".tsv or .txt."
        )
    X = ObservedMatrix.of(matrix, row_labels=firsts if start else None, col_labels=columns)
    return _bounded(X, np.flatnonzero(~np.isnan(matrix)), intervals) if intervals else X


def _triples(table: _Table, names: Sequence[str]) -> ObservedMatrix:
    """A table with a line for each entry; labels are numbered in order of appearance."""
    i, j, k = _places(names, table.header)
    rows: list[str] = []
    cols: list[str] = []
    values = array("d")
    for cells in table:
        row, column = cells[i].strip(), cells[j].strip()
        if not row or not column:
            raise DataError(f"line {table.line} has no {names[1 if row else 0]!r}; fill it in.")
        rows.append(row)
        cols.append(column)
        values.extend(table.numbers([cells[k]], [names[2]], row, len(values)))
    if not rows:
        raise DataError("there is no row below the column labels; add the values.")
    X = ObservedMatrix.from_triples(rows, cols, np.asarray(values))
    return _bounded(X, _order(X, rows, cols, values), table.intervals) if table.intervals else X


def _order(X: ObservedMatrix, rows: list[str], cols: list[str], values: array[float]) -> Array:
    """Numbers of the triples that became entries, in row order."""
    places = []
    for side in (rows, cols):
        known = {label: k for k, label in enumerate(dict.fromkeys(side))}
        places.append(np.array([known[label] for label in side]))
    found = np.argsort(places[0] * X.shape[1] + places[1], kind="stable")
    return found[~np.isnan(np.asarray(values))[found]]


def _places(names: Sequence[str], header: list[str]) -> list[int]:
    """Where the columns of triples are."""
    for name in names:
        if header.count(name) == 1:
            continue
        if name in header:
            raise DataError(f"column label {name!r} occurs more than once; make labels unique.")
        some = ", ".join(map(repr, header[:8])) + (", ..." if len(header) > 8 else "")
        hint = nearest(name, header)
        raise DataError(f"there is no column {name!r}; the columns are {some}.{hint}")
    return [header.index(name) for name in names]


# --- Other kinds of files -----------------------------------------------------------------------


def _loaded(kind: str, read: Callable[[], Any]) -> Any:
    """What a library reads; what it raises for a damaged file becomes one sentence."""
    try:
        found = read()
    except DataError:
        raise
    except _DAMAGED as error:
        if "allow_pickle" in str(error):
            raise DataError(f"it holds {_OBJECTS}") from None
        what = str(error).partition("\n")[0].rstrip(".")
        raise DataError(f"it is not {kind}, or is damaged ({what}).") from None
    if hasattr(found, "nnz"):
        _sizes.check_shape(found.shape, found.nnz)
    if sum(found.shape) > LONGEST:
        raise DataError(f"its shape {found.shape} is too large for memory; read a part of it.")
    return found


def _read_npy(path: Path, layout: Layout) -> ObservedMatrix:
    def read() -> Any:
        with open(path, "rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    return ObservedMatrix.of(_loaded("a .npy file", read))


def _read_npz(path: Path, layout: Layout) -> ObservedMatrix:
    from scipy import sparse

    def read() -> Any:
        if not zipfile.is_zipfile(path):
            raise ValueError("no zip archive")
        with np.load(path, allow_pickle=False) as file:
            names = file.files
            if len(names) == 1:
                return np.asarray(file[names[0]])
            if not {"format", "shape"} <= set(names):
                raise DataError(f"it has {len(names)} arrays {names[:8]}; save one alone.")
        matrix = sparse.load_npz(path)
        if hasattr(matrix, "check_format"):  # indices that lead elsewhere could crash SciPy
            matrix.check_format(full_check=True)
        return matrix

    return ObservedMatrix.of(_loaded("a .npz file", read))


def _read_mtx(path: Path, layout: Layout) -> ObservedMatrix:
    from scipy.io import mmread

    def read() -> Any:
        _sizes.check_market(path)
        return mmread(path)

    return ObservedMatrix.of(_loaded("a MatrixMarket file", read))


def _read_parquet(path: Path, layout: Layout) -> ObservedMatrix:
    try:
        import pandas as pd

        frame = _loaded("a Parquet file", lambda: pd.read_parquet(path))
    except ImportError:
        raise DataError(".parquet needs pyarrow; run pip install pandas pyarrow.") from None
    frame.columns = _texts(frame.columns)
    if layout.long:
        i, j, k = (frame.iloc[:, place] for place in _places(layout.long, list(frame.columns)))
        if (absent := i.isna() | j.isna()).any():
            raise DataError(f"entry {int(absent.argmax())} of the table has no row or no column.")
        return ObservedMatrix.from_triples(_texts(i), _texts(j), k.array)
    named = not isinstance(frame.index, pd.RangeIndex)
    if not named and layout.labels != "no" and frame.shape[1]:
        named = layout.labels == "yes" or frame.columns[0].casefold() in _CORNERS
        if named := named or frame.dtypes.iloc[0].kind not in "biuf":
            frame = frame.set_index(frame.columns[0])
    rows = _texts(frame.index) if named and layout.labels != "no" else None
    X = ObservedMatrix.of(frame, row_labels=rows, col_labels=list(frame.columns))
    return replace(X, row_labels=None) if rows is None else X


def _texts(labels: Iterable[Any]) -> list[str]:
    return [str(label).strip() for label in labels]


_READERS: dict[str, Callable[[Path, Layout], ObservedMatrix]] = {
    **dict.fromkeys(_DELIMITERS, _read_text),
    ".mtx": _read_mtx,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_parquet,
}
