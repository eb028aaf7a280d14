"""Entries that are known up to an interval only."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bayesmf._cached import cached_property
from bayesmf._threads import balanced_bounds

if TYPE_CHECKING:
    from bayesmf.data.observed import ObservedMatrix

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Bounds:
    """Intervals [low, high] of all entries (N,), in row order; exact where both are equal."""

    low: Array
    high: Array

    def take(self, kept: Array) -> Bounds:
        """Those of some of the entries."""
        return Bounds(self.low[kept], self.high[kept])

    @cached_property
    def places(self) -> Array:
        """Positions of the entries that are not exact, in row order."""
        return np.flatnonzero(self.low < self.high)


@dataclass(frozen=True, eq=False)
class Intervals:
    """The entries of a matrix that are not exact: where they are, in both orders, and how wide."""

    places: Array  # in row order
    places_by_column: Array
    indptr: Array  # row i owns the places indptr[i]:indptr[i + 1]
    rows: Array
    cols: Array
    low: Array
    high: Array
    _buffers: dict[int, tuple[Array, Array]] = field(default_factory=dict, repr=False)

    @cached_property
    def blocks(self) -> list[int]:
        """Bounds of blocks of rows of equal work."""
        return balanced_bounds(np.diff(self.indptr), 8 if self.places.size > 2000 else 1)

    def buffers(self, X: ObservedMatrix) -> tuple[Array, Array]:
        """Copies of the values in both orders, to be filled in at the places; one for each thread.

        They hold exact values already, so that a sweep need not copy these again.
        """
        thread = threading.get_ident()
        if thread not in self._buffers:
            self._buffers[thread] = X.rows.values.copy(), X.cols.values.copy()
        return self._buffers[thread]

    @classmethod
    def of(cls, X: ObservedMatrix, by_column: bool = True) -> Intervals:
        """Those of a matrix with bounds; places ``by_column`` are known where all entries are."""
        assert X.bounds is not None
        places, back = X.bounds.places, np.empty(0, dtype=np.int64)
        if by_column:
            back = np.empty(X.n_observed, dtype=np.int64)
            back[X.column_order] = np.arange(back.size)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.rows.indptr))[places]
        indptr = np.append(0, np.bincount(rows, minlength=X.shape[0]).cumsum())
        cols = X.rows.indices[places].astype(np.int64)
        low, high = X.bounds.low[places], X.bounds.high[places]
        return cls(places, back[places] if by_column else back, indptr, rows, cols, low, high)
