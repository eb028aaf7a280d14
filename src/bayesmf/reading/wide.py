"""A wide table as a matrix: a column for each of its columns, and perhaps one of row labels."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bayesmf._errors import DataError, nearest
from bayesmf.data.observed import Array, ObservedMatrix
from bayesmf.data.origin import Aside, Origin
from bayesmf.reading.cells import Cell, Reading, text_of
from bayesmf.reading.layout import Layout, option
from bayesmf.reading.table import Table

_CORNERS = {"", "index", "row", "rows", "name", "label", "labels", "unnamed: 0", "rownames", "#"}
_ID = re.compile(r"(.*[\W_])?(id|ids|nr|no|key|code|barcode|accession|uuid)\.?", re.IGNORECASE)
_CAMEL = re.compile(r".*[a-z](ID|Id|Nr|No|Code|Key)")


class Part(NamedTuple):
    """Layers (1 or 3, I, J) of a matrix: values, and ends of intervals if there are any."""

    layers: Array
    rows: list[str]
    cols: list[str]


def is_id(name: str) -> bool:
    """Whether a column of this name holds labels, even if they are numbers.

    Examples
    --------
    >>> [is_id(name) for name in ("id", "sample_id", "PatientID", "Patient No.", "acid", "dose")]
    [True, True, True, True, False, False]
    """
    found = name.casefold() in _CORNERS or _ID.fullmatch(name) or _CAMEL.fullmatch(name)
    return bool(found)


def wide(table: Table, layout: Layout) -> ObservedMatrix:
    """The matrix; its origin says what stands above its row labels, and what was left aside."""
    labels = "yes" if table.labelled else layout.labels
    start = 0 if labels == "no" else 1  # the first column is kept as text until all is read
    names = _column_names(table.header, start)
    kept = [j for j, name in enumerate(names) if name not in layout.drop]
    texts: dict[int, list[Cell]] = {j: [] for j in range(len(names)) if names[j] in layout.drop}
    header, columns = ([side[j] for j in kept] for side in (table.header, names))
    if not header:
        raise DataError("drop leaves no column; name fewer.")
    dropped, notes = set(names) & set(layout.drop), table.notes
    firsts: list[Cell] = []
    lines: list[int] = []
    values = array("d")
    for whole in table:
        cells = [whole[j] for j in kept] if texts else whole
        label = text_of(cells[0]) if start else None
        if label and label in layout.drop:
            dropped.add(label)
            continue
        values.extend(table.numbers(cells[start:], columns[start:], label, len(values)))
        firsts.append(cells[0])
        lines.append(table.line)
        for j, column in texts.items():
            column.append(whole[j])
    _refuse_unknown(set(layout.drop) - dropped, [*header, *map(text_of, firsts)])
    if not firsts:
        raise DataError("there is no row below the column labels; add the values.")
    width = len(header) - start
    layers = _layers(np.asarray(values).reshape(len(firsts), width), table.intervals)
    counts = (~np.isnan(layers[0])).sum(axis=0).tolist()
    table.refuse_bad_cells(dict(zip(columns[start:], counts, strict=True)))
    if start and labels == "auto" and header[0].casefold() not in _CORNERS:
        first = _as_values(table, firsts, columns[0])
        if first is not None and is_id(header[0]):
            notes.append(
                f"The first column, {header[0]!r}, holds numbers and is named like an id, so it "
                f"was read as labels; {option('labels', 'no')} makes it values."
            )
        elif first is not None:
            layers, start = _joined(first, layers), 0
            notes.append(
                f"The first column, {header[0]!r}, holds numbers only and was read as values; "
                f"{option('labels', 'yes')} makes it labels."
            )
    table.refuse_mixed_percents(columns[start:], layers[0])
    rows = [text_of(cell) for cell in firsts] if start else []
    part = _tidied(Part(layers, rows, columns[start:]), header[start:], lines, notes)
    part = _unique(part, layout.duplicates, notes)
    if not part.cols:
        mark = option("sep", "space") if " " in header[0] else "sep=... (--sep)"
        raise DataError(
            f"there is no column of values; if other marks separate the cells, say {mark}."
        )
    notes += _headless(header[start:], table)
    notes += table.cells.notes()
    aside = _aside(table, names, texts, part, rows and _named(rows, lines))
    return replace(_matrix(part), origin=Origin(header[0] if start else "", aside=aside))


def _column_names(header: Sequence[str], start: int) -> list[str]:
    """Names of all columns; those that have none are called by their number, from 1."""
    return [
        name if name or (j == 0 and start) else f"column {j + 1}" for j, name in enumerate(header)
    ]


def _headless(header: list[str], table: Table) -> list[str]:
    """A word on column labels that look like a row of data."""
    reader = table.cells.fresh()
    try:
        found = [reader.number(name) for name in header]
    except ValueError:
        return []
    years = all(a < b for a, b in pairwise(found)) and all(x % 1 == 0 for x in found)
    return [] if years else [
        "All column labels are numbers: if the first row holds data, write a row of labels above."
    ]  # fmt: skip


def _refuse_unknown(names: set[str], known: list[str]) -> None:
    for name in sorted(names):
        hint = nearest(name, known)
        raise DataError(f"drop: there is neither a column nor a row {name!r}.{hint}")


def _layers(values: Array, intervals: dict[int, Reading]) -> Array:
    """Values, and ends of the intervals if there are any; numbers of cells count row by row."""
    if not intervals:
        return values[None]
    layers = np.stack([values, values, values])
    places = np.fromiter(intervals, dtype=np.int64)
    for layer, end in zip(layers[1:], ("low", "high"), strict=True):
        layer.ravel()[places] = [getattr(reading, end) for reading in intervals.values()]
    return layers


def _as_values(table: Table, cells: list[Cell], column: str) -> Array | None:
    """Layers (3, I) of a first column if it holds numbers, limits and gaps only."""
    reader = table.cells.fresh()
    try:
        found = [reader.read(cell) for cell in cells]
    except ValueError:  # a text, so they are labels
        return None
    table.cells.add(reader)
    table.percents[column] = reader.percents
    layers = np.array(found).T
    layers[1:] = np.where(np.isnan(layers[1:]), layers[0], layers[1:])
    return layers


def _joined(first: Array, layers: Array) -> Array:
    """Layers with one more column before the others."""
    if len(layers) == 1 and (first[1] < first[2]).any():
        layers = np.repeat(layers, 3, axis=0)
    return np.concatenate([first[: len(layers), :, None], layers], axis=2)


def _tidied(part: Part, header: list[str], lines: list[int], notes: list[str]) -> Part:
    """Without columns that have neither name nor value, and rows that have neither label nor one.

    Those without a name alone are called by their place.
    """
    layers, rows, cols = part
    seen = ~np.isnan(layers[0])
    nameless = np.array([not name for name in header], dtype=bool)
    if (empty := nameless & ~seen.any(axis=0)).any():
        notes.append(f"Columns with neither a name nor a value were left out: {empty.sum()}.")
        layers, cols = layers[:, :, ~empty], [c for c, e in zip(cols, empty, strict=True) if not e]
    if (kept := nameless & ~empty).any():
        first = next(name for name, k in zip(part.cols, kept, strict=True) if k)
        notes.append(f"Columns without a name: {kept.sum()}; the first was called {first!r}.")
    if not rows or all(rows):
        return Part(layers, rows, cols)
    bare = np.array([not name for name in rows])
    if (empty := bare & ~seen.any(axis=1)).any():
        notes.append(f"Rows with neither a label nor a value were left out: {empty.sum()}.")
    named = _named(rows, lines)
    if (kept := bare & ~empty).any():
        first = next(name for name, k in zip(named, kept, strict=True) if k)
        notes.append(f"Rows without a label: {kept.sum()}; the first was called {first!r}.")
    return Part(layers[:, ~empty], [r for r, e in zip(named, empty, strict=True) if not e], cols)


def _named(rows: list[str], lines: list[int]) -> list[str]:
    """Labels of rows; those that have none are called by their place."""
    return [name or f"line {line}" for name, line in zip(rows, lines, strict=True)]


def _aside(
    table: Table, names: list[str], texts: dict[int, list[Cell]], part: Part, rows: list[str]
) -> tuple[Aside, ...]:
    """Columns that were left out and hold text, with the places where they stood."""
    found = []
    for j, column in texts.items():
        reader = table.cells.fresh()
        try:
            [reader.read(cell) for cell in column]
            continue  # numbers, which would no longer fit what is filled in, such as a total
        except ValueError:
            pass
        labels = rows or map(str, range(len(column)))
        cells = dict(zip(reversed([*labels]), map(text_of, reversed(column)), strict=True))
        after = set(names[j + 1 :]) - set(names[:j])
        before = next((name for name in part.cols if name in after), None)
        found.append(Aside(names[j], before, cells))
    return tuple(found)


def _unique(part: Part, how: str, notes: list[str]) -> Part:
    """Rows and columns of one label made one, as ``how`` says."""
    layers, rows, cols = part
    if rows:
        layers, rows = _combined(layers, rows, how, "row", notes)
    layers, cols = _combined(layers.swapaxes(1, 2), cols, how, "column", notes)
    return Part(layers.swapaxes(1, 2), rows, cols)


def _combined(
    layers: Array, labels: list[str], how: str, side: str, notes: list[str]
) -> tuple[Array, list[str]]:
    places: dict[str, list[int]] = {}
    for k, label in enumerate(labels):
        places.setdefault(label, []).append(k)
    if len(places) == len(labels):
        return layers, labels
    again = next(label for label, found in places.items() if len(found) > 1)
    if how == "error":
        raise DataError(
            f"{side} label {again!r} occurs more than once; make labels unique, or say "
            f"{option('duplicates', 'mean')} or first."
        )
    notes.append(
        f"Of {len(labels)} {side}s, {len(labels) - len(places)} repeat a label such as {again!r}: "
        + ("means were taken." if how == "mean" else "the first of each was kept.")
    )
    if how == "first":
        return layers[:, [found[0] for found in places.values()]], list(places)
    if len(layers) > 1:
        several = [k for found in places.values() if len(found) > 1 for k in found]
        if (layers[1, several] < layers[2, several]).any():
            raise DataError(
                f"{side} label {again!r} occurs more than once, and limits have no mean; say "
                f"{option('duplicates', 'first')}."
            )
    out = np.empty((len(layers), len(places), layers.shape[2]))
    for k, found in enumerate(places.values()):
        seen = ~np.isnan(layers[0, found])
        total = np.where(seen, layers[:, found], 0.0).sum(axis=1)
        with np.errstate(invalid="ignore"):
            out[:, k] = layers[:, found[0]] if len(found) == 1 else total / seen.sum(axis=0)
    return out, list(places)


def _matrix(part: Part) -> ObservedMatrix:
    X = ObservedMatrix.of(part.layers[0], row_labels=part.rows or None, col_labels=part.cols)
    return X.between(part.layers[1], part.layers[2]) if len(part.layers) > 1 else X
