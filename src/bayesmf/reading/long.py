"""A table with one entry per line as a matrix; labels are numbered in order of appearance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayesmf._errors import DataError, nearest
from bayesmf.data.bounds import Bounds
from bayesmf.data.observed import Array, ObservedMatrix
from bayesmf.data.views import Entries, RepeatedError
from bayesmf.reading.blocks import Triples
from bayesmf.reading.cells import text_of, texts_of
from bayesmf.reading.layout import Layout, option
from bayesmf.reading.table import Row, Table


def long(table: Table, layout: Layout) -> ObservedMatrix:
    """The matrix of a table whose layout names three columns."""
    assert layout.long is not None
    triples, dropped = Triples(layout.single), set[str]()
    table.places(layout.long)  # refuses names that are not there
    for rows in table.blocks():
        if layout.drop or not _add_plain(table, layout.long, rows, triples):
            dropped |= _add_careful(table, layout, rows, triples)
    for name in sorted(set(layout.drop) - dropped):
        hint = nearest(name, [*triples.sides[0].known, *triples.sides[1].known])
        raise DataError(f"drop: there is neither a column nor a row {name!r}.{hint}")
    if not triples.count:
        raise DataError("there is no row below the column labels; add the values.")
    table.refuse_bad_cells()
    if table.percents:
        table.refuse_mixed_percents([layout.long[2]], triples.entries.values[:, None])
    table.notes += table.cells.notes()
    return _matrix(table, layout, triples)


def _add_plain(table: Table, names: Sequence[str], rows: list[Row], triples: Triples) -> bool:
    """Take in rows that are as wide as the header and have labels and plain numbers.

    Says whether they are; if not, nothing has been taken in.
    """
    try:
        columns = [*zip(*(cells for _, cells in rows), strict=True)]
    except ValueError:  # rows differ in length
        return False
    if len(columns) != len(table.header):
        return False
    i, j, k = table.places(names)
    row_labels, col_labels = texts_of(columns[i]), texts_of(columns[j])
    if "" in row_labels or "" in col_labels:
        return False
    try:
        values = table.cells.plain(columns[k])
    except ValueError:
        return False
    triples.add(row_labels, col_labels, values)
    return True


def _add_careful(table: Table, layout: Layout, rows: list[Row], triples: Triples) -> set[str]:
    """Take in rows one by one; returns what was dropped of what is to be."""
    assert layout.long is not None
    names, dropped = layout.long, set[str]()
    i, j, k = table.places(names)
    labels: tuple[list[str], list[str]] = ([], [])
    values: list[float] = []
    for cells in table.again(rows):
        row, column = text_of(cells[i]), text_of(cells[j])
        if not row or not column:
            raise DataError(f"line {table.line} has no {names[1 if row else 0]!r}; fill it in.")
        if layout.drop and (found := {row, column} & set(layout.drop)):
            dropped |= found
            continue
        labels[0].append(row)
        labels[1].append(column)
        place = triples.count + len(values)
        values.extend(table.numbers((cells[k],), names[2:], row, place))
    triples.add(*labels, values)
    return dropped


def _matrix(table: Table, layout: Layout, triples: Triples) -> ObservedMatrix:
    """The matrix of the triples, with intervals if there are any; each cell once."""
    if not table.intervals and layout.duplicates == "error":
        return matrix_of(triples)
    names = tuple([*side.known] for side in triples.sides)
    rows, cols, layers = _unique(table, layout, triples.entries.pop(), names)
    shape = triples.shape
    X = ObservedMatrix.from_triples(rows, cols, layers[0], shape, *names, single=layout.single)
    if len(layers) == 1:
        return X
    order = np.argsort(rows.astype(np.int64) * shape[1] + cols, kind="stable")
    order = order[~np.isnan(layers[0, order])]
    return replace(X, bounds=Bounds(layers[1, order], layers[2, order]))


def matrix_of(triples: Triples) -> ObservedMatrix:
    """The matrix of triples of which no two are of the same cell."""
    try:
        return triples.matrix()
    except RepeatedError as error:
        raise DataError(_repeated(str(error).partition(" occurs")[0])) from None


def _repeated(cell: str) -> str:
    return (
        f"{cell} occurs more than once; keep one entry, or say {option('duplicates', 'mean')} or "
        "first."
    )


def _unique(
    table: Table, layout: Layout, entries: Entries, names: tuple[list[str], ...]
) -> tuple[Array, Array, Array]:
    """Rows, columns and layers (1 or 3, N) of the triples, each cell once."""
    rows, cols = entries.rows, entries.cols
    layers = entries.values.astype(np.float64)[None]
    if table.intervals:
        layers = np.repeat(layers, 3, axis=0)
        where = np.fromiter(table.intervals, dtype=np.int64)
        for layer, end in zip(layers[1:], ("low", "high"), strict=True):
            layer[where] = [getattr(reading, end) for reading in table.intervals.values()]
    width = len(names[1])
    keys, first, back, times = np.unique(
        rows.astype(np.int64) * width + cols,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    if keys.size == rows.size:
        return rows, cols, layers
    again = int(keys[times > 1][0])
    labels = [side[place] for side, place in zip(names, divmod(again, width), strict=True)]
    cell = f"row {labels[0]!r}, column {labels[1]!r}"
    if layout.duplicates == "error":
        raise DataError(_repeated(cell))
    table.notes.append(
        f"Entries that repeat a cell: {rows.size - keys.size}, as in {cell}: "
        + ("means were taken." if layout.duplicates == "mean" else "the first was kept.")
    )
    if layout.duplicates == "first":
        return rows[first], cols[first], layers[:, first]
    if len(layers) > 1 and (layers[1] < layers[2])[times[back] > 1].any():
        raise DataError(
            f"{cell} occurs more than once, and limits have no mean; say "
            f"{option('duplicates', 'first')}."
        )
    seen = ~np.isnan(layers[0])
    counts = np.bincount(back, seen, keys.size)
    sums = [np.bincount(back[seen], layer[seen], keys.size) for layer in layers]
    with np.errstate(invalid="ignore"):
        means = np.array(sums) / counts
    single = times == 1
    means[:, single] = layers[:, first[single]]
    return rows[first], cols[first], means
