"""Offsets that are taken off the data before a model sees them, and put back onto predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bayesmf._errors import ModelError, nearest
from bayesmf.data.observed import Array, ObservedMatrix, View
from bayesmf.kernels.cells import subtract_offsets

CENTRES = ("none", "global", "rows", "cols", "both")


@dataclass(frozen=True, eq=False)
class Offsets:
    """A number for every row and every column, whose sum is a cell's offset."""

    center: str
    rows: Array
    cols: Array
    otherwise: float = 0.0  # the offset of a row without entries

    def of_new_rows(self, X: ObservedMatrix) -> Offsets:
        """The same for other rows: theirs are found from their own entries."""
        rows = np.full(X.shape[0], self.otherwise)
        if self.center in ("rows", "both"):
            rows = averages(X.rows, self.cols, self.otherwise)
        return Offsets(self.center, rows, self.cols, self.otherwise)

    def of_new_cols(self, X: ObservedMatrix) -> Offsets:
        """The same for other columns: theirs are found from their own entries."""
        cols = np.zeros(X.shape[1])
        if self.center in ("cols", "both"):
            cols = averages(X.cols, self.rows, float(self.cols.mean()))
        return Offsets(self.center, self.rows, cols, self.otherwise)


def fit_offsets(X: ObservedMatrix, center: str) -> Offsets:
    """Averages over the observed entries: none, the grand mean, those of rows, columns or both.

    "both" is the least-squares fit of a row effect plus a column effect. A row or column without
    entries gets the average of the others.
    """
    if center not in CENTRES:
        raise ModelError(
            f"center must be one of {', '.join(CENTRES)}, got {center!r}.{nearest(center, CENTRES)}"
        )
    X.check_entries()
    rows, cols = np.zeros(X.shape[0]), np.zeros(X.shape[1])
    mean = float(X.mean)
    if center == "global":
        return Offsets(center, rows + mean, cols, mean)
    if center == "rows":
        return Offsets(center, averages(X.rows, cols, mean), cols, mean)
    if center == "cols":
        return Offsets(center, rows, averages(X.cols, rows, mean))
    if center == "both":
        for _ in range(200):
            previous = rows
            rows = averages(X.rows, cols, mean)
            cols = averages(X.cols, rows, 0.0)
            if np.abs(rows - previous).max() <= 1e-10 * max(1.0, np.abs(rows).max()):
                break
        return Offsets(center, rows, cols, float(np.average(rows, weights=X.rows.counts)))
    return Offsets(center, rows, cols)


def totals(view: View, other: Array | None = None) -> Array:
    """Sum of every row's entries, less the other side's offsets (n,)."""
    values = view.values if other is None else view.values - other[view.indices]
    return np.add.reduceat(np.append(values, 0.0), view.indptr[:-1]) * (view.counts > 0)


def averages(view: View, other: Array, otherwise: float) -> Array:
    """Mean of the entries of every row less the other side's offsets; ``otherwise`` without any."""
    means = totals(view, other) / np.maximum(view.counts, 1)
    return np.where(view.counts > 0, means, otherwise)


def less(X: ObservedMatrix, rows: Array, cols: Array) -> ObservedMatrix:
    """The data less a number of each row and one of each column; same cells, same labels."""
    return replace(X, rows=_less(X.rows, rows, cols), cols=_less(X.cols, cols, rows))


def _less(view: View, own: Array, other: Array) -> View:
    values, filled = np.empty(view.stored.size), None
    subtract_offsets(view.indptr, view.indices, view.stored, own, other, values)
    if view.filled is not None:
        filled = own[:, None] + other
        np.subtract(view.filled, filled, out=filled)
        filled *= view.mask
    return replace(view, stored=values, filled=filled)
