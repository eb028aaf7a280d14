"""A matrix whose rows and columns are spread over several processes, its shards.

Every shard runs the same sweep with the same variables, but has only the entries of its own rows
and its own columns. It draws its own rows and gets those of the others, so that all shards have
what one process would have, bit for bit. Of a whole matrix all rows are its own, and the functions
below have nothing to do.

A matrix that is laid out as a whole is small enough for all shards to hold it; they share the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from bayesmf.data.bounds import Bounds
from bayesmf.data.observed import Array, FloatArray, IntArray, ObservedMatrix, View


class Peers(Protocol):
    """All shards of a matrix, as one of them sees them."""

    number: int
    size: int

    def exchange(self, parts: Sequence[Any]) -> list[Any]:
        """Give every shard its part, and return what all shards gave to this one, in order."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ShardView(View):
    """The entries of a shard's own rows; the numbers of entries are those of all rows."""

    peers: Peers
    cuts: tuple[int, ...]  # shard s owns the rows cuts[s]:cuts[s + 1]
    other_cuts: tuple[int, ...]  # the same of the other side
    all_counts: IntArray

    @property
    def counts(self) -> IntArray:
        """Number of observed entries in each row of the whole matrix."""
        return self.all_counts

    @property
    def own(self) -> tuple[int, int]:
        """First row of this shard, and the one after its last."""
        return self.cuts[self.peers.number], self.cuts[self.peers.number + 1]

    @property
    def entries(self) -> slice:
        """The entries of its own rows, among all that it holds."""
        first, last = self.own
        return slice(int(self.indptr[first]), int(self.indptr[last]))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ShardMatrix(ObservedMatrix):
    """One shard of a matrix: own rows in the view of the rows, own columns in the other."""

    rows: ShardView
    cols: ShardView
    n_entries: int  # of the whole matrix, and their mean
    average: float
    own_weights: tuple[FloatArray, FloatArray] | None = None

    @property
    def n_observed(self) -> int:
        """Number of observed entries of the whole matrix."""
        return self.n_entries

    @property
    def mean(self) -> float:
        """Mean of all observed values."""
        return self.average

    @property
    def weights(self) -> tuple[FloatArray, FloatArray] | None:
        """Inverse squares of the known errors of the entries that are here, in both orders."""
        return self.own_weights


def cuts(view: View, shards: int, rank: int) -> tuple[int, ...]:
    """Cut the rows of a view into parts of equal work, one for each shard."""
    work = np.append(0, np.cumsum(view.counts + rank))
    goals = work[-1] * np.arange(1, shards) / shards
    return 0, *(int(i) for i in np.searchsorted(work, goals)), view.n


def shard_of(X: ObservedMatrix, both: Sequence[tuple[int, ...]], number: int) -> ObservedMatrix:
    """What one shard has to hold of a matrix: plain views, in which rows of others are empty."""
    if X.is_dense:
        return replace(X, row_labels=None, col_labels=None, origin=None)
    rows, cols = (
        _part(view, cut[number], cut[number + 1])
        for view, cut in zip((X.rows, X.cols), both, strict=True)
    )
    here = slice(int(X.rows.indptr[both[0][number]]), int(X.rows.indptr[both[0][number + 1]]))
    bounds = None if X.bounds is None else Bounds(X.bounds.low[here], X.bounds.high[here])
    return ObservedMatrix(X.shape, rows, cols, bounds=bounds)


def _part(view: View, first: int, last: int) -> View:
    begin, end = view.indptr[first], view.indptr[last]
    indptr = np.clip(view.indptr, begin, end) - begin
    return replace(
        view, indptr=indptr, indices=view.indices[begin:end], stored=view.stored[begin:end],
        cache={},
    )  # fmt: skip


def own_weights(
    X: ObservedMatrix, both: Sequence[tuple[int, ...]], number: int
) -> tuple[FloatArray, FloatArray] | None:
    """Weights of the entries that a shard holds, in both orders."""
    if X.weights is None or X.is_dense:
        return X.weights
    first, second = (
        weights[view.indptr[cut[number]] : view.indptr[cut[number + 1]]]
        for weights, view, cut in zip(X.weights, (X.rows, X.cols), both, strict=True)
    )
    return first, second


def assembled(
    held: ObservedMatrix, both: Sequence[tuple[int, ...]], counts: Sequence[IntArray],
    peers: Peers, average: float, weights: tuple[FloatArray, FloatArray] | None,
) -> ShardMatrix:  # fmt: skip
    """The shard as sweeps see it, from what it holds and what is known of the whole matrix."""
    rows, cols = (
        ShardView(
            *(getattr(view, name) for name in ("indptr", "indices", "stored", "filled", "mask")),
            peers=peers, cuts=tuple(both[axis]), other_cuts=tuple(both[1 - axis]),
            all_counts=counts[axis],
        )
        for axis, view in enumerate((held.rows, held.cols))
    )  # fmt: skip
    return ShardMatrix(
        shape=held.shape, rows=rows, cols=cols, bounds=held.bounds,
        n_entries=int(counts[0].sum()), average=average, own_weights=weights,
    )  # fmt: skip


# --- What sweeps ask for; a whole matrix has it all


def is_whole(X: ObservedMatrix) -> bool:
    """Whether all entries are here."""
    return not isinstance(X, ShardMatrix)


def own_bounds(view: View, bounds: list[int], whole: bool = False) -> list[int]:
    """Bounds of the blocks of a shard's own rows; ``whole`` blocks may reach into others' rows."""
    if not isinstance(view, ShardView):
        return bounds
    first, last = view.own
    if whole:
        begin = max(b for b in bounds if b <= first)
        end = min(b for b in bounds if b >= last)
        return [b for b in bounds if begin <= b <= end]
    return [first, *(b for b in bounds if first < b < last), last]


def share(view: View, *arrays: Array) -> None:
    """Complete arrays over the rows (n, ...), of which every shard has filled its own rows."""
    if isinstance(view, ShardView):
        _share(view.peers, view.cuts, arrays)


def _share(peers: Peers, cuts: Sequence[int], arrays: Sequence[Array]) -> None:
    mine = slice(cuts[peers.number], cuts[peers.number + 1])
    given = peers.exchange([[array[mine] for array in arrays]] * peers.size)
    for shard, (first, last) in enumerate(pairwise(cuts)):
        if shard != peers.number:
            for array, part in zip(arrays, given[shard], strict=True):
                array[first:last] = part


def total_counts(view: View, sums: Array) -> Array:
    """Add up whole numbers (m, ...) of the other side, which shards have of their own entries.

    Each shard gets those of its own part of the other side; sums of whole numbers are exact.
    """
    if not isinstance(view, ShardView):
        return sums
    parts = [sums[first:last] for first, last in pairwise(view.other_cuts)]
    given = view.peers.exchange(parts)
    number = view.peers.number
    out = np.zeros_like(sums)
    out[view.other_cuts[number] : view.other_cuts[number + 1]] = np.sum(given, axis=0)
    return out


def at_one(view: View, function: Callable[..., Array], *arrays: Array) -> Array:
    """Call a function of numbers of all entries, in row order, where they are all: at one shard."""
    if not isinstance(view, ShardView):
        return function(*arrays)
    peers = view.peers
    mine = [array[view.entries] for array in arrays]
    given = peers.exchange([mine if shard == 0 else None for shard in range(peers.size)])
    found = None
    if peers.number == 0:
        found = function(*(np.concatenate(parts) for parts in zip(*given, strict=True)))
    return np.asarray(peers.exchange([found] * peers.size)[0])


def in_columns(X: ShardMatrix, values: Array) -> Array:
    """Numbers of the entries, given in the order of the rows, in that of the columns."""
    peers, here = X.rows.peers, X.rows.entries
    if "places" not in X.cols.cache:
        there = X.cols.entries
        theirs = [_within(X.rows.indices[here], pair) for pair in pairwise(X.cols.cuts)]
        # Entries of one shard's rows come in the order of its rows, here they are by columns.
        mine = [_within(X.cols.indices[there], pair) for pair in pairwise(X.rows.cuts)]
        mine = [at[np.argsort(X.cols.indices[there][at], kind="stable")] for at in mine]
        X.cols.cache["places"] = theirs, [there.start + at for at in mine]
    theirs, mine = X.cols.cache["places"]
    own, out = values[here], np.zeros(X.cols.stored.size)
    for at, given in zip(mine, peers.exchange([own[at] for at in theirs]), strict=True):
        out[at] = given
    return out


def _within(indices: Array, pair: tuple[int, int]) -> Array:
    return np.flatnonzero((indices >= pair[0]) & (indices < pair[1]))


class Pieces:
    """Numbers of the entries, in row order, in pieces of equal size that depend on no shard."""

    def __init__(self, view: View, size: int, *arrays: Array) -> None:
        self.size, self.arrays, self.first = size, arrays, 0
        self._peers: Peers | None = None
        self.count = -(-arrays[0].size // size)
        if isinstance(view, ShardView):
            self._gather(view)

    def _gather(self, view: ShardView) -> None:
        """Give the beginning of a shard's entries to whoever has the beginning of their piece."""
        self._peers = view.peers
        number, before = view.peers.number, np.append(0, np.cumsum(view.counts))
        begins = before[list(view.cuts)]
        self.count = -(-int(before[-1]) // self.size)
        self._cuts = [-(-int(b) // self.size) for b in begins]
        self.first = self._cuts[number]
        ends = np.clip(np.array(self._cuts) * self.size, begins[number], begins[number + 1])
        own = [array[view.entries] for array in self.arrays]
        parts = [
            [array[a:b] for array in own] for a, b in pairwise((ends - begins[number]).tolist())
        ]
        given = view.peers.exchange(parts)
        self.arrays = tuple(np.concatenate(part) for part in zip(*given, strict=True))

    @property
    def bounds(self) -> list[int]:
        """Bounds of the pieces that are here, in the arrays."""
        n = self.arrays[0].size
        return [*range(0, n, self.size), n]

    def share(self, found: Array) -> None:
        """Complete what was found for each piece (count, ...)."""
        if self._peers is not None:
            _share(self._peers, self._cuts, [found])
