"""Rows cut into blocks of equal work, the Gram step of a block, and how a sweep draws its rows."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bayesmf import _threads
from bayesmf.data.observed import View
from bayesmf.data.shards import own_bounds
from bayesmf.kernels.linalg import TILE, sum_gram
from bayesmf.kernels.rows import gram_rows, row_workspace
from bayesmf.kernels.vectors import LANES, in_vectors
from bayesmf.streams import Array, Stream

ROWS = 256  # whose Gram matrices one thread keeps at a time
_WINDOW = 250_000  # entries that are made doubles at once
_SMALL = 1_000_000  # operations below which a second thread costs more than it saves

_local = threading.local()


def workspace(K: int) -> tuple[Array, ...]:
    """Arrays of the calling thread for draws of rows with K factors, kept from call to call."""
    if getattr(_local, "rank", None) != K:
        _local.rank, _local.arrays = K, row_workspace(K)
    return _local.arrays


def missing_entries(view: View) -> tuple[Array, Array]:
    """Pointers and positions of the missing entries of every row of a dense view."""
    if "missing" not in view.cache:
        assert view.mask is not None
        m = view.mask.shape[1]
        indptr = np.append(0, (m - view.counts).cumsum())
        view.cache["missing"] = indptr, (np.flatnonzero(view.mask == 0.0) % m).astype(np.int32)
    return view.cache["missing"]


class Relaxation(NamedTuple):
    """How a row x is drawn: it becomes stay * x + (1 - stay) * mean + spread * noise.

    That leaves its conditional as it is where stay^2 + spread^2 = 1. A negative ``stay`` takes the
    row to the other side of its mean (overrelaxation; Adler, 1981): two sides that are drawn in
    turns, and would follow each other in small steps at random, then go on in one direction.
    """

    stay: float = 0.0
    spread: float = 1.0

    @property
    def time(self) -> float:
        """The tangent of half the angle whose cosine is ``stay`` and whose sine is ``spread``."""
        return self.spread / (1.0 + self.stay)

    def of(self, fresh: Array, mean: Array | float, old: Array) -> Array:
        """What entries become, given independent draws of them, their means, and what they were."""
        return self.stay * old + (1 - self.stay) * mean + self.spread * (fresh - mean)


FRESH = Relaxation()
_OVER = Relaxation(-0.5, math.sqrt(0.75))


def relaxation(stream: Stream) -> Relaxation:
    """How a half-sweep draws rows: afresh, where there is no sweep to go on from."""
    return _OVER if stream.goes_on and stream.sweep > 1 else FRESH


def blocks(
    view: View, per_entry: int, per_row: int, per_term: int = 0, least: int = 8, most: int = 32,
    whole: bool = False,
) -> list[int]:  # fmt: skip
    """Row blocks of equal work, counted in vector operations; one block if there is little of it.

    There are the more of them the longer it takes, because the last one is worked on alone.
    ``per_term`` is the work on each term of a Gram matrix: on each entry, or on each missing one.
    A shard gets those of its own rows, cut where these end, unless only ``whole`` blocks round
    alike.
    """
    work = (per_entry, per_row, per_term, least, most, whole, view.mask is None)
    if work not in view.cache:
        counts = terms = view.counts
        if per_term and view.mask is not None:
            terms = np.minimum(counts, np.diff(missing_entries(view)[0]))
        cost = counts * per_entry + terms * per_term + per_row
        pieces = int(np.clip(cost.sum() / _SMALL, least, most))
        bounds = _threads.balanced_bounds(cost, pieces if cost.sum() > _SMALL else 1)
        bounds = _in_lanes(bounds) if per_term else bounds
        view.cache[work] = own_bounds(view, bounds, whole)
    return view.cache[work]


def _in_lanes(bounds: list[int]) -> list[int]:
    """Move inner bounds to multiples of `LANES`, the number of rows that are drawn at once."""
    return sorted({0, *(b // LANES * LANES for b in bounds[:-1]), bounds[-1]})


class Roots(NamedTuple):
    """Weights of the cells of a view, whose rows' weights are in the precision.

    ``scale`` (m,) are square roots of the columns' weights, by which V has been multiplied and
    values are to be; ``weights`` (N,) are those of the entries. None where all are one.
    """

    scale: Array | None = None
    weights: Array | None = None


EVEN = Roots()


def windows(
    view: View, start: int, stop: int, weights: Array | None = None
) -> Iterator[tuple[int, int, View, Array | None]]:
    """The rows start..stop, some at a time: their bounds, a view of doubles, and its weights.

    Values in single precision become doubles here, so that no kernel knows them; positions of
    entries count from the first of a window. A view of doubles is one window.
    """
    if view.stored.dtype == np.float64:
        yield start, stop, view, weights
        return
    first = start
    while first < stop:
        last = int(np.searchsorted(view.indptr, view.indptr[first] + _WINDOW, side="right")) - 1
        count = max(last - first, 1)
        last = min(stop, first + (count - count % LANES if count > LANES else count))
        own = slice(int(view.indptr[first]), int(view.indptr[last]))
        indptr = np.empty_like(view.indptr)  # of which only the window's part is ever touched
        indptr[first : last + 1] = view.indptr[first : last + 1] - own.start
        values = view.stored[own].astype(np.float64)
        part = replace(view, indptr=indptr, indices=view.indices[own], stored=values)
        yield first, last, part, None if weights is None else weights[own]
        first = last


class Noise(NamedTuple):
    """Precision of the noise: one number, times those of the rows (n,) unless these are all one."""

    tau: float
    own: Array | None = None


class Gram:
    """The Gram step of one half-sweep: sums of f f^T and r f over each row's observed entries.

    Rows of mostly observed matrices subtract their missing entries from the full Gram matrix, which
    is over all rows of V; a complete matrix has no other. Where entries have weights, nothing can
    be subtracted.
    """

    def __init__(self, view: View, V: Array, roots: Roots = EVEN) -> None:
        self.view, self.rank, self.roots = view, V.shape[1], roots
        V = in_vectors(V)
        missing, full = (view.indptr[:0], view.indices[:0]), V[:0]
        if view.mask is not None and roots.weights is None:
            missing, full = (
                missing_entries(view),
                np.empty((-(-self.rank // TILE) * TILE, V.shape[1])),
            )
            sum_gram(V, np.arange(len(V), dtype=np.int32), 0, len(V), full)
        self._V, self._whole = V, (*missing, full)

    def data(self, start: int, stop: int) -> Iterator[tuple[int, int, tuple[Any, ...]]]:
        """The rows start..stop as kernels take them, in as many `windows` as it needs."""
        scale, weights = self.roots
        for first, last, view, own in windows(self.view, start, stop, weights):
            entries = view.indptr, view.indices, view.stored, scale, own
            yield first, last, (self._V, *entries, *self._whole)

    def bounds(self, least: int = 8) -> list[int]:
        """Blocks of rows, the same for any number of threads."""
        K = self.rank
        vectors = -(-K // LANES)
        return blocks(self.view, 2 * vectors, 200 + 20 * K + K**3 // 30, 2 + K * vectors, least)

    def block(self, start: int, stop: int, packed: Array, rhs: Array) -> None:
        """Fill packed (stop - start, K (K + 1) / 2) and rhs (stop - start, K)."""
        *_, G, g, _, _ = workspace(self.rank)
        for first, last, data in self.data(start, stop):
            own = slice(first - start, last - start)
            gram_rows(first, last, *data, packed[own], rhs[own], G[0], g[0])
