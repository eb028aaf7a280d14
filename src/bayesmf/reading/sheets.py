"""Rows of cells out of files that know numbers from texts: Excel workbooks and Parquet tables."""

from __future__ import annotations

import datetime
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

from bayesmf._errors import DataError, ModelError, nearest
from bayesmf.data.observed import Array, ObservedMatrix
from bayesmf.reading.arrays import loaded
from bayesmf.reading.blocks import Numbering, Triples
from bayesmf.reading.cells import Cell
from bayesmf.reading.layout import Layout, option
from bayesmf.reading.long import matrix_of
from bayesmf.reading.progress import opened
from bayesmf.reading.table import Row, Table

EXCEL = (".xlsx", ".xlsm")
_BATCH = 500_000  # rows of a Parquet file that are read at once


@contextmanager
def open_excel(path: Path, layout: Layout) -> Iterator[Table]:
    """The table in a sheet of a workbook."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise DataError(
            "an Excel file needs openpyxl; install it with: pip install 'bayesmf[excel]', or "
            "export the sheet as CSV."
        ) from None

    with ExitStack() as opened:
        # Twice: a formula and the value that was stored for it are two ways to look at a cell.
        books = []
        for values in (True, False):
            read = partial(load_workbook, path, read_only=True, data_only=values)
            books.append(loaded("an Excel file", read))
            opened.callback(books[-1].close)
        names = books[0].sheetnames
        name = _sheet(names, layout.sheet)
        others = names[1:] if layout.sheet is None else []
        first = f"Sheet {name!r} was read, the first of {len(names)}; {_another(others)}"
        rows = opened.enter_context(closing(_excel_rows(books[0][name], books[1][name], layout)))
        try:
            yield Table(rows, layout, typed=True, notes=[f"{first}."] if others else [])
        except DataError as error:
            raise DataError(f"{first}; in it, {error}") if others else error from None


def _another(names: list[str]) -> str:
    """How to read another sheet."""
    some = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    return f"{option('sheet', names[0])} reads another of {some}" if names else ""


def _sheet(names: list[str], wanted: str | int | None) -> str:
    if wanted is None:
        return names[0]
    if wanted in names:
        return str(wanted)
    number = int(wanted) if str(wanted).isdigit() else 0
    if 1 <= number <= len(names):
        return names[number - 1]
    known = ", ".join(map(repr, names))
    hint = nearest(str(wanted), names)
    raise ModelError(f"There is no sheet {wanted!r}; the sheets are {known}.{hint}")


def _excel_rows(values: Any, formulas: Any, layout: Layout) -> Generator[Row, None, None]:
    """Rows without the empty cells at their ends, of which sheets may have any number."""
    with ExitStack() as opened:
        pages = [
            opened.enter_context(closing(page.iter_rows(values_only=True)))
            for page in (values, formulas)
        ]
        for number, (row, sources) in enumerate(zip(*pages, strict=True), 1):
            cells = [_cell(value) for value in row]
            for cell, source in zip(cells, sources, strict=True):
                if cell == "" and isinstance(source, str) and source.startswith("="):
                    raise DataError(
                        f"row {number} has the formula {source[:40]!r} without a value; open the "
                        "file in a spreadsheet program and save it there."
                    )
            while len(cells) > 1 and cells[-1] == "":
                cells.pop()
            comment = bool(layout.comment and str(cells[0]).startswith(layout.comment))
            if number > layout.skip and not comment:
                yield number, cells


@contextmanager
def open_parquet(path: Path, layout: Layout) -> Iterator[Table]:
    """The table in a Parquet file; an index with labels comes first."""
    try:
        import pandas as pd

        frame = loaded("a Parquet file", lambda: pd.read_parquet(path))
    except ImportError:
        raise DataError(".parquet needs pyarrow; run pip install pandas pyarrow.") from None
    named = layout.long is None and not isinstance(frame.index, pd.RangeIndex)
    header: list[Cell] = [str(name) for name in frame.columns]
    if named := named and layout.labels != "no":
        header.insert(0, str(frame.index.name or ""))

    def rows() -> Iterator[Row]:
        yield 1, header
        for number, row in enumerate(frame.itertuples(index=named), 2):
            yield number, [_cell(value) for value in row]

    yield Table(rows(), layout, typed=True, labelled=named)


def plain_triples(path: Path, layout: Layout) -> ObservedMatrix | None:
    """The matrix of three columns of a Parquet file, block by block.

    None where a careful look is needed: labels that are neither texts nor whole numbers, or are
    missing, values that are no numbers, options that say more.
    """
    if layout.long is None or layout != Layout(long=layout.long, single=layout.single):
        return None
    try:
        from pyarrow import parquet
    except ImportError:
        return None
    triples = Triples(layout.single)
    with opened(path) as file:
        table = loaded("a Parquet file", lambda: parquet.ParquetFile(file))
        if not _is_plain(table.schema_arrow, layout.long):
            return None
        for batch in table.iter_batches(_BATCH, columns=list(layout.long)):
            columns = [batch.column(name) for name in layout.long]
            rows, cols = map(_places, columns[:2], triples.sides)
            if rows is None or cols is None:
                return None
            values = columns[2].cast("float64").to_numpy(zero_copy_only=False)
            triples.add_places(rows, cols, values)
    return matrix_of(triples) if triples.count else None


def _is_plain(schema: Any, names: Sequence[str]) -> bool:
    """Whether three columns are there once, two of texts or whole numbers, one of numbers."""
    from pyarrow import types

    if any(schema.names.count(name) != 1 for name in names):
        return False
    labels = types.is_integer, types.is_string, types.is_large_string
    numbers = types.is_integer, types.is_floating
    return all(
        any(is_kind(schema.field(name).type) for is_kind in kinds)
        for name, kinds in zip(names, (labels, labels, numbers), strict=True)
    )


def _places(column: Any, side: Numbering) -> Array | None:
    """Places of a block of labels; None if one is missing or blank."""
    coded = column.dictionary_encode()
    labels = [str(label).strip() for label in coded.dictionary.to_pylist()]
    if column.null_count or "" in labels:
        return None
    return side.places(labels)[coded.indices.to_numpy()]


def _cell(value: Any) -> Cell:
    """A value as a text or a float; nothing is an empty text."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, (Real, bool)) or type(value).__name__ in ("Decimal", "bool_"):
        return float(value) if value == value else ""
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat(" ") if isinstance(value, datetime.datetime) else value.isoformat()
    return str(value)
