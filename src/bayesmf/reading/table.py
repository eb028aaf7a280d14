"""A table: a header, rows under it that fit it, and all cells that cannot be read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from bayesmf._errors import DataError, nearest
from bayesmf.data.observed import Array
from bayesmf.reading.cells import Cell, Cells, Reading, decimal_mark, is_blank, is_word, text_of
from bayesmf.reading.layout import Layout, option, quoted

SAMPLE = 1000  # rows that are looked at before any is read
BLOCK = 1000  # rows that `Table.blocks` gives at once: few lists at a time cost Python little
NAMED = 5  # bad cells that are named
Row = tuple[int, list[Cell]]  # its number in the file, from 1, and its cells


class BadCell(NamedTuple):
    """A cell that cannot be read."""

    line: int
    row: str | None
    column: str
    cell: Cell

    def __str__(self) -> str:
        row = "" if self.row is None else f"row {self.row!r}, "
        return (
            f"line {self.line}, {row}column {self.column!r} holds {str(self.cell).strip()[:40]!r}"
        )


class Table:
    """Header and rows of a table; blank rows at its end are left out."""

    def __init__(
        self, rows: Iterator[Row], layout: Layout, *, sep: str = ",", typed: bool = False,
        labelled: bool = False, notes: Sequence[str] = (),
    ) -> None:  # fmt: skip
        sample = list(islice(rows, SAMPLE))
        while sample and all(map(is_blank, sample[0][1])):
            del sample[0]
        if not sample:
            raise DataError("the file is empty.")
        _refuse_title(sample)
        self.sep, self.labelled, self.notes = sep, labelled, list(notes)
        self.line = sample[0][0]  # that was read last
        self.header = [text_of(cell) for cell in sample[0][1]]
        self._rows = chain(sample[1:], rows)
        if len(sample) > 1 and self.header[0]:
            self._complete_header(sample[1][1])
        some = islice((cell for _, row in sample[1:] for cell in row), 10 * SAMPLE)
        mark = layout.decimal or decimal_mark(some, sep)
        if mark == "," and layout.decimal is None:
            self.notes.append(f"Decimals are written with commas: {option('decimal', ',')}.")
        self.cells = Cells(mark, layout.missing, typed)
        self.intervals: dict[int, Reading] = {}  # by the number of the cell, as callers count
        self.percents: Counter[str] = Counter()  # cells with a percent sign, by column
        self._bad: list[BadCell] = []  # the first of every column and row, and NAMED more
        self._bad_cols: Counter[str] = Counter()
        self._bad_rows: Counter[str | None] = Counter()
        self._words: Counter[str] = Counter()  # of the bad cells those that are no kind of number

    def _complete_header(self, first: list[Cell]) -> None:
        """A header with one cell less than the rows, as R writes it, has none above the labels."""
        if len(first) == len(self.header) + 1 and not is_blank(first[-1]):
            self.header.insert(0, "")
            self.notes.append(
                "The header has one cell less than the rows: the first column was read as labels."
            )

    def __iter__(self) -> Iterator[list[Cell]]:
        return self._checked(self._rows)

    def _checked(self, rows: Iterable[Row]) -> Iterator[list[Cell]]:
        n, blank = len(self.header), 0  # rows without content since the last that has some
        for line, row in rows:
            self.line = line
            while len(row) > n and is_blank(row[-1]):
                row.pop()
            if all(map(is_blank, row)):
                blank += 1
                continue
            if self.cells.typed and len(row) < n:
                row += [""] * (n - len(row))
            if len(row) != n:
                raise DataError(self._ragged(row))
            for _ in range(blank):
                yield [""] * n
            blank = 0
            yield row
        if blank:
            self.notes.append(f"Blank rows at the end were left out: {blank}.")

    def blocks(self) -> Iterator[list[Row]]:
        """Rows below the header as they are, many at a time; `again` takes a careful look."""
        while rows := list(islice(self._rows, BLOCK)):
            self.line = rows[-1][0]
            yield rows

    def again(self, rows: list[Row]) -> Iterator[list[Cell]]:
        """Cells of rows out of a block, checked one by one as by iteration over the table.

        It goes beyond them only for blank rows: they are left out at the end of a table alone.
        """
        last = rows[-1][0]
        for cells in self._checked(chain(rows, self._rows)):
            yield cells
            if self.line >= last:
                return

    def _ragged(self, row: list[Cell]) -> str:
        n, first = len(self.header), text_of(row[0])
        if len(row) == 1 and n > 1 and first:
            return (
                f"line {self.line} has one cell, {first[:40]!r}: is it a note? "
                f"{option('comment', first[:12].rstrip())} leaves out lines that begin so."
            )
        return (
            f"line {self.line} has {len(row)} cells, but the first row has {n}; give every row as "
            "many."
        )

    def numbers(
        self, cells: Sequence[Cell], columns: Sequence[str], row: str | None, first: int
    ) -> list[float]:
        """Cells of one row as floats, NaN where missing; those that are neither are remembered.

        Limits and intervals are noted, by their numbers from ``first`` on.
        """
        try:
            return self.cells.plain(cells)
        except ValueError:
            pass
        found = []
        for number, (cell, column) in enumerate(zip(cells, columns, strict=True), first):
            percents = self.cells.percents
            try:
                reading = self.cells.read(cell)
            except ValueError:
                self._remember(BadCell(self.line, row, column, cell))
                reading = Reading(math.nan, math.nan, math.nan)
            self.percents[column] += self.cells.percents > percents
            if reading.low < reading.high:
                self.intervals[number] = reading
            found.append(reading.value)
        return found

    def _remember(self, bad: BadCell) -> None:
        self._bad_cols[bad.column] += 1
        self._bad_rows[bad.row] += 1
        self._words[bad.column] += is_word(bad.cell)
        if self._bad_cols.total() <= NAMED or self._bad_cols[bad.column] == 1:
            self._bad.append(bad)

    def refuse_bad_cells(self, numbers: dict[str, int] | None = None) -> None:
        """Refuse the table if there are any; ``numbers`` are those that each column holds."""
        if not self._bad:
            return
        numbers = numbers or {}
        texts = [c for c, n in self._words.items() if n > max(1, numbers.get(c, n))]
        others = [bad for bad in self._bad if bad.column not in texts]
        if self._bad_cols.total() > 1 and len(self._bad_rows) == 1 and self._bad[0].row:
            raise DataError(
                f"line {self._bad[0].line}, row {self._bad[0].row!r}, holds no numbers but "
                f"{_cells(self._bad)}; {option('drop', quoted([self._bad[0].row]))} leaves it out."
            )
        parts = []
        if texts:
            names = ", ".join(map(repr, texts[:8])) + (", ..." if len(texts) > 8 else "")
            several = "columns" if len(texts) > 1 else "column"
            example = next(bad for bad in self._bad if bad.column == texts[0])
            parts.append(
                f"{several} {names} hold{'' if len(texts) > 1 else 's'} text such as "
                f"{str(example.cell).strip()[:40]!r}; {option('drop', quoted(texts))} leaves "
                f"{'them' if len(texts) > 1 else 'it'} out"
            )
        if others:
            parts.append(self._sentence(others, texts))
        raise DataError(f"{'; besides, '.join(parts)}.")

    def _sentence(self, bad: list[BadCell], texts: list[str]) -> str:
        """The bad cells that are no column of text: how many, the first of them, what to do."""
        count = sum(n for column, n in self._bad_cols.items() if column not in texts)
        advice = self.cells.advice(bad[0].cell)
        if count == 1:
            return f"{bad[0]}, which is not a number; {advice}"
        codes = list(dict.fromkeys(str(b.cell).strip() for b in bad[:NAMED]))
        if len(codes) > 1 and "stands for missing" in advice:
            missing = option("missing", quoted(codes))
            advice = f"correct them, or say {missing} if they stand for missing"
        named = "; ".join(map(str, bad[:NAMED]))
        more = f" and {count - NAMED} more" if count > NAMED else ""
        return f"{count} cells are not numbers: {named}{more}; {advice}"

    def refuse_mixed_percents(self, columns: Sequence[str], values: Array) -> None:
        """Refuse columns in which some numbers (I, J) have a percent sign, and others none."""
        for name, column in zip(columns, values.T, strict=True):
            signs, numbers = self.percents[name], int((~np.isnan(column) & (column != 0)).sum())
            if 0 < signs < numbers:
                raise DataError(
                    f"column {name!r} has percent signs in {signs} of its {numbers} numbers; write "
                    f"all of them in one way, or leave it out: {option('drop', quoted([name]))}."
                )

    def places(self, names: Sequence[str]) -> list[int]:
        """Where columns are."""
        for name in names:
            if self.header.count(name) == 1:
                continue
            if name in self.header:
                raise DataError(f"column label {name!r} occurs more than once; make labels unique.")
            some = ", ".join(map(repr, self.header[:8])) + (", ..." if len(self.header) > 8 else "")
            hint = nearest(name, self.header)
            raise DataError(f"there is no column {name!r}; the columns are {some}.{hint}")
        return [self.header.index(name) for name in names]


def _cells(bad: list[BadCell]) -> str:
    texts = list(dict.fromkeys(str(b.cell).strip()[:20] for b in bad))
    return ", ".join(map(repr, texts[:3])) + (", ..." if len(texts) > 3 else "")


def _refuse_title(sample: list[Row]) -> None:
    """Refuse a first row that is no header: one cell, or far fewer than the rows below have."""
    (_, first), *others = sample
    filled = [text_of(cell) for cell in first if not is_blank(cell)]
    widths = Counter(len(row) for _, row in others if not all(map(is_blank, row)))
    width = widths.most_common(1)[0][0] if widths else 0
    alone = len(filled) == 1 and (not is_blank(first[0]) or len(first) > 2)
    if not alone and len(first) >= width - 1:  # R leaves out the cell above the labels
        return
    for number, row in others:
        if len(row) >= width and sum(not is_blank(cell) for cell in row) > 1:
            cells = "one cell" if len(filled) == 1 else f"{len(first)} cells"
            what = f"the first row has {cells}, {filled[0][:40]!r}: is it a"
            if filled[0].startswith(("#", "%", "//")):
                mark = "//" if filled[0].startswith("//") else filled[0][0]
                raise DataError(f"{what} comment? {option('comment', mark)} leaves such lines out.")
            raise DataError(f"{what} title? {option('skip', number - 1)} leaves out what is above.")
