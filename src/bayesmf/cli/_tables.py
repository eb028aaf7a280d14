"""Tables that a fit writes: as CSV in the manner of the data, and as an Excel file."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from bayesmf._errors import DataError, needs

if TYPE_CHECKING:
    from bayesmf.data.observed import Array, ObservedMatrix
    from bayesmf.data.origin import Aside
    from bayesmf.posterior.filled import Filled

Cells: TypeAlias = list[list["str | float | None"]]
# Cells of a spreadsheet that begin like this are taken for formulas; negative numbers are not.
_FORMULA = re.compile(r"[=+@\t]|-(?!\d+\.?\d*$)")
_LARGEST = 1_048_576, 16_384  # rows and columns of a sheet
_COLOUR = "FFF2CC"  # of cells that were filled
LONGEST = 2_000_000  # lines that a table of gaps may have


def harmless(label: str) -> str:
    """A label that no spreadsheet takes for a formula: a quote is put before those it would."""
    return f"'{label}" if _FORMULA.match(label) else label


class Manner(NamedTuple):
    """How tables are written: what separates cells, and what decimals are written with."""

    sep: str
    decimal: str

    @classmethod
    def of(cls, X: ObservedMatrix) -> Manner:
        """That of the data. Files are called .csv, so tabs become what that means there."""
        if X.origin is None:
            return cls(",", ".")
        usual = ";" if X.origin.decimal == "," else ","
        return cls(usual if X.origin.sep == "\t" else X.origin.sep, X.origin.decimal)

    def number(self, value: float) -> str:
        """A number to the eighth digit."""
        return f"{value:.8g}".replace(".", self.decimal)

    def exact(self, value: float) -> str:
        """A number to the last digit."""
        return repr(value).removesuffix(".0").replace(".", self.decimal)

    @contextmanager
    def writer(self, path: Path) -> Iterator[Any]:
        """A writer of rows."""
        with path.open("w", encoding="utf-8", newline="") as file:
            yield csv.writer(file, delimiter=self.sep, lineterminator="\n")


def shown(X: ObservedMatrix) -> Cells:
    """What was observed: numbers, limits in words, and None at the gaps."""
    cells: Cells = [[None] * X.shape[1] for _ in range(X.shape[0])]
    for i, j, value in zip(*(part.tolist() for part in X.triples()), strict=True):
        cells[i][j] = value
    if X.bounds is not None:
        i, j, _ = (part[X.bounds.places].tolist() for part in X.triples())
        ends = (end[X.bounds.places].tolist() for end in (X.bounds.low, X.bounds.high))
        for row, column, low, high in zip(i, j, *ends, strict=True):
            cells[row][column] = _limit(low, high, Manner.of(X))
    return cells


def _limit(low: float, high: float, manner: Manner) -> str:
    if math.isinf(low):
        return f"<{manner.exact(high)}"
    if math.isinf(high):
        return f">{manner.exact(low)}"
    between = "; " if manner.decimal == "," else ", "
    return f"[{manner.exact(low)}{between}{manner.exact(high)}]"


def write_wide(
    path: Path, X: ObservedMatrix, table: Array, observed: Cells | None = None, mark: str = ""
) -> None:
    """A table with labels: what was observed to the last digit, the rest with a mark behind."""
    manner = Manner.of(X)

    def cell(value: float, seen: str | float | None) -> str:
        if seen is None:
            return manner.number(value) + mark
        return seen if isinstance(seen, str) else manner.exact(seen)

    rows, cols = X.names()
    beside = _beside(X) if observed is not None else []
    with manner.writer(path) as writer:
        head = [harmless(label) for label in cols]
        writer.writerow([_corner(X), *_joined(head, ((k, harmless(a.name)) for k, a in beside))])
        for i, label in enumerate(rows):
            seen = [None] * X.shape[1] if observed is None else observed[i]
            cells = [*map(cell, table[i].tolist(), seen)]
            texts = ((k, harmless(aside.cells.get(label, ""))) for k, aside in beside)
            writer.writerow([harmless(label), *_joined(cells, texts)])


def _beside(X: ObservedMatrix) -> list[tuple[int, Aside]]:
    """Columns of text that stood beside the values, the last first, and the places of them."""
    if X.origin is None:
        return []
    places: dict[str | None, int] = {label: j for j, label in enumerate(X.names()[1])}
    found = [(places.get(aside.before, X.shape[1]), aside) for aside in X.origin.aside]
    return found[::-1]


def _joined(cells: list[Any], texts: Iterable[tuple[int, Any]]) -> list[Any]:
    """A row with some cells more, from the last to the first."""
    for place, text in texts:
        cells.insert(place, text)
    return cells


def write_long(
    path: Path, X: ObservedMatrix, head: Sequence[str], columns: Iterable[Iterable[Any]]
) -> None:
    """A table by its columns: labels, numbers and words."""
    manner = Manner.of(X)

    def cell(value: Any) -> str:
        return manner.number(value) if isinstance(value, float) else harmless(str(value))

    with manner.writer(path) as writer:
        writer.writerow(head)
        for row in zip(*columns, strict=True):
            writer.writerow([cell(value) for value in row])


def write_parquet(
    path: Path, X: ObservedMatrix, blocks: Iterable[Any], ends: tuple[Array, Array] | None
) -> Array:
    """A row for each cell out of blocks of predictions; returns means of the observed cells."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    names = [
        pa.array(np.arange(n) if labels is None else [str(label) for label in labels])
        for n, labels in zip(X.shape, (X.row_labels, X.col_labels), strict=True)
    ]
    kinds = {"row": names[0].type, "column": names[1].type}
    numbers = dict.fromkeys(("observed", "mean", "sd", "lower", "upper"), pa.float64())
    schema = pa.schema({**kinds, **numbers})
    rows, cols, values = X.triples()
    places, means = rows * X.shape[1] + cols, np.empty(X.n_observed)
    with parquet.ParquetWriter(path, schema) as file:
        for (i, j), mean, sd, (low, high) in blocks:
            cells = i * X.shape[1] + j
            at = slice(*np.searchsorted(places, (cells[0], cells[-1] + 1)))
            own = np.searchsorted(cells, places[at])
            seen, means[at] = np.full(cells.size, np.nan), mean[own]
            seen[own] = values[at]
            if ends is not None:
                mean, low, high = (np.clip(x, ends[0][j], ends[1][j]) for x in (mean, low, high))
            columns = [names[0].take(pa.array(i)), names[1].take(pa.array(j))]
            columns.append(pa.array(seen, from_pandas=True))
            columns += [pa.array(x) for x in (mean, sd, low, high)]
            file.write_table(pa.table(columns, schema=schema))
    return means


def check_excel(X: ObservedMatrix) -> None:
    """Refuse to promise an Excel file that cannot be written."""
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        raise needs("--excel", "openpyxl", "excel") from None
    if any(n >= most for n, most in zip(X.shape, _LARGEST, strict=True)):
        raise DataError(
            f"an Excel sheet has at most {_LARGEST[0]} rows and {_LARGEST[1]} columns, too few for "
            f"{X.shape[0]} x {X.shape[1]} cells; leave out --excel, or say --no-excel."
        )


def write_excel(path: Path, X: ObservedMatrix, tables: dict[str, Array], gaps: Filled) -> None:
    """A sheet for each table, cells that were filled coloured, and one for the gaps alone."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import PatternFill

    book, colour = Workbook(write_only=True), PatternFill("solid", start_color=_COLOUR)
    rows, cols = X.names()
    observed = shown(X)
    for name, table in tables.items():
        page = book.create_sheet(name)
        page.freeze_panes = "B2"
        beside = _beside(X) if name == "completed" else []
        head = [harmless(label) for label in cols]
        page.append([_corner(X), *_joined(head, ((k, harmless(a.name)) for k, a in beside))])
        for label, values, seen in zip(rows, table.tolist(), observed, strict=True):
            cells: list[Any] = []
            for value, known in zip(values, seen, strict=True):
                kept = known is not None and name == "completed"
                cells.append(WriteOnlyCell(page, known if kept else value))
                if known is None:
                    cells[-1].fill = colour
            texts = ((k, harmless(aside.cells.get(label, ""))) for k, aside in beside)
            page.append([harmless(label), *_joined(cells, texts)])
    page = book.create_sheet("gaps")
    page.freeze_panes = "A2"
    page.append(list(gaps._fields))
    for row in zip(*(column.tolist() for column in gaps), strict=True):
        page.append([harmless(cell) if isinstance(cell, str) else cell for cell in row])
    book.save(path)


def _corner(X: ObservedMatrix) -> str:
    return "" if X.origin is None else harmless(X.origin.corner)
