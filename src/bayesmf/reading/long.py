"""A table with one entry per line as a matrix; labels are numbered in order of appearance."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayesmf._errors import DataError, nearest
from bayesmf.data.bounds import Bounds
from bayesmf.data.observed import Array, ObservedMatrix
from bayesmf.reading.cells import text_of
from bayesmf.reading.layout import Layout, option
from bayesmf.reading.table import Table


def long(table: Table, layout: Layout) -> ObservedMatrix:
    """The matrix of a table whose layout names three columns."""
    assert layout.long is not None
    names, dropped = layout.long, set()
    i, j, k = table.places(names)
    known: tuple[dict[str, int], dict[str, int]] = ({}, {})  # places of the labels
    known_rows, known_cols = known
    places = array("q"), array("q")
    values = array("d")
    for cells in table:
        row, column = text_of(cells[i]), text_of(cells[j])
        if not row or not column:
            raise DataError(f"line {table.line} has no {names[1 if row else 0]!r}; fill it in.")
        if layout.drop and (found := {row, column} & set(layout.drop)):
            dropped |= found
            continue
        places[0].append(known_rows.setdefault(row, len(known_rows)))
        places[1].append(known_cols.setdefault(column, len(known_cols)))
        values.extend(table.numbers((cells[k],), names[2:], row, len(values)))
    for name in sorted(set(layout.drop) - dropped):
        hint = nearest(name, [*known[0], *known[1]])
        raise DataError(f"drop: there is neither a column nor a row {name!r}.{hint}")
    if not values:
        raise DataError("there is no row below the column labels; add the values.")
    table.refuse_bad_cells()
    table.refuse_mixed_percents([names[2]], np.asarray(values)[:, None])
    rows, cols, layers = _unique(table, layout, places, values, known)
    table.notes += table.cells.notes()
    shape = len(known[0]), len(known[1])
    X = ObservedMatrix.from_triples(rows, cols, layers[0], shape, list(known[0]), list(known[1]))
    if len(layers) == 1:
        return X
    order = np.argsort(rows * shape[1] + cols, kind="stable")
    order = order[~np.isnan(layers[0, order])]
    return replace(X, bounds=Bounds(layers[1, order], layers[2, order]))


def _unique(
    table: Table, layout: Layout, places: Sequence[array[int]], values: array[float],
    known: tuple[dict[str, int], dict[str, int]],
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Rows, columns and layers (1 or 3, N) of the triples, each cell once."""
    rows, cols = (np.asarray(side) for side in places)
    layers = np.asarray(values)[None]
    if table.intervals:
        layers = np.repeat(layers, 3, axis=0)
        where = np.fromiter(table.intervals, dtype=np.int64)
        for layer, end in zip(layers[1:], ("low", "high"), strict=True):
            layer[where] = [getattr(reading, end) for reading in table.intervals.values()]
    width = len(known[1])
    keys, first, back, times = np.unique(
        rows * width + cols, return_index=True, return_inverse=True, return_counts=True
    )
    if keys.size == rows.size:
        return rows, cols, layers
    again = int(keys[times > 1][0])
    labels = [list(side)[place] for side, place in zip(known, divmod(again, width), strict=True)]
    cell = f"row {labels[0]!r}, column {labels[1]!r}"
    if layout.duplicates == "error":
        raise DataError(
            f"{cell} occurs more than once; keep one entry, or say "
            f"{option('duplicates', 'mean')} or first."
        )
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
