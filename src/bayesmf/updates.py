"""Half-sweeps: terms and data in, the factors of one side drawn in place.

Each function cuts the rows into blocks and hands them to a kernel. A half-sweep of the columns is
the same call with the column view and the two factor matrices exchanged.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np

from bayesmf import _threads
from bayesmf.kernels.counts import split_counts, sum_factors
from bayesmf.kernels.entries import draw_entries_dense, draw_entries_sparse
from bayesmf.kernels.rows import (
    draw_rows,
    draw_rows_sparse,
    gram_sparse,
    pack_outer,
    squared_errors,
)
from bayesmf.kernels.volume import draw_volume
from bayesmf.observed import View
from bayesmf.streams import Array, Stream
from bayesmf.terms import EntryTerms, RowTerms, VolumeTerms

_BLOCK = 64  # rows of one matrix product: fixed, because its rounding may depend on it
_SMALL = 300_000  # multiplications below which a second thread costs more than it saves
_PACKED_BYTES = 2**27  # the largest table of packed outer products

_local = threading.local()
_bounds: WeakKeyDictionary[View, dict[tuple[int, int], list[int]]] = WeakKeyDictionary()


def _scratch(name: str, shape: tuple[int, int]) -> Array:
    """An uninitialised array of this thread, kept from call to call."""
    buffers = _local.__dict__
    if name not in buffers or buffers[name].size < shape[0] * shape[1]:
        buffers[name] = np.empty(shape[0] * shape[1])
    return buffers[name][: shape[0] * shape[1]].reshape(shape)


def blocks(view: View, work_per_entry: int, work_per_row: int) -> list[int]:
    """Row blocks of equal work; one block if there is little of it."""
    known = _bounds.setdefault(view, {})
    work = (work_per_entry, work_per_row)
    if work not in known:
        cost = view.counts * work_per_entry + work_per_row
        parts = 8 if cost.sum() > _SMALL else 1
        known[work] = _threads.balanced_bounds(cost, parts)
    return known[work]


class Gram:
    """The Gram step of one half-sweep: sums of f f^T and r f over each row's observed entries.

    Mostly observed matrices go through matrix products (mask times packed outer products), a
    complete one has one Gram matrix for all rows, and sparse ones are summed entry by entry.
    """

    def __init__(self, view: View, F: Array) -> None:
        self.view, self.F = view, F
        self.size = F.shape[1] * (F.shape[1] + 1) // 2
        self.dense = view.mask is not None and F.shape[0] * self.size * 8 <= _PACKED_BYTES
        self.complete = self.dense and view.values.size == view.n * F.shape[0]
        if self.dense:
            self.packed = np.empty((F.shape[0], self.size))
            pack_outer(F, self.packed)
        if self.complete:
            self.packed = self.packed.sum(axis=0, keepdims=True)

    def bounds(self) -> list[int]:
        """Blocks of rows, the same for any number of threads."""
        K = self.F.shape[1]
        if self.dense:
            return _threads.bounds(self.view.n, 4 * -(-self.view.n // (4 * _BLOCK)))
        return blocks(self.view, K * K // 2 + K, K**3 // 6 + 4 * K * K)

    def block(self, start: int, stop: int, packed: Array, rhs: Array) -> Array:
        """Fill packed and rhs for the rows start..stop; return the Gram matrices to use."""
        view = self.view
        if not self.dense:
            gram_sparse(start, stop, view.indptr, view.indices, view.values, self.F, packed, rhs)
            return packed
        assert view.filled is not None and view.mask is not None
        np.matmul(view.filled[start:stop], self.F, out=rhs)
        if self.complete:
            return self.packed
        return np.matmul(view.mask[start:stop], self.packed, out=packed)


def draw_side(
    view: View,
    X: Array,
    F: Array,
    terms: RowTerms | EntryTerms | VolumeTerms,
    tau: float,
    stream: Stream,
) -> None:
    """Draw X (n, K) in place given the other side's F, under a Gaussian likelihood."""
    if isinstance(terms, RowTerms):
        _draw_rows(view, X, F, terms, tau, stream)
    elif isinstance(terms, EntryTerms):
        _draw_entries(view, X, F, terms, tau, stream)
    else:
        _draw_volume(view, X, F, terms, tau, stream)


def _draw_rows(view: View, X: Array, F: Array, terms: RowTerms, tau: float, stream: Stream) -> None:
    key, gram = stream.key(), Gram(view, F)

    def block(start: int, stop: int) -> None:
        if not gram.dense:
            data = (view.indptr, view.indices, view.values)
            return draw_rows_sparse(start, stop, key, X, *data, F, tau, *terms)
        packed = _scratch("packed", (stop - start, gram.size))
        rhs = _scratch("rhs", (stop - start, X.shape[1]))
        packed = gram.block(start, stop, packed, rhs)
        draw_rows(start, stop, key, X, packed, rhs, tau, *terms)

    _threads.run(block, gram.bounds(), stream.threads)


def _draw_entries(
    view: View, X: Array, F: Array, terms: EntryTerms, tau: float, stream: Stream
) -> None:
    key = stream.key()
    block: Callable[[int, int], None]
    if view.mask is not None:
        filled, mask, Ft = view.filled, view.mask, np.ascontiguousarray(F.T)

        def block(start: int, stop: int) -> None:
            draw_entries_dense(start, stop, key, X, filled, mask, Ft, tau, *terms)
    else:

        def block(start: int, stop: int) -> None:
            draw_entries_sparse(
                start, stop, key, X, view.indptr, view.indices, view.values, F, tau, *terms
            )

    _threads.run(block, blocks(view, 4 * X.shape[1], 32 * X.shape[1]), stream.threads)


def _draw_volume(
    view: View, X: Array, F: Array, terms: VolumeTerms, tau: float, stream: Stream
) -> None:
    """Rows in sequence, after a parallel Gram step for all of them."""
    key, gram = stream.key(), Gram(view, F)
    packed = np.empty((1 if gram.complete else view.n, gram.size))
    rhs = np.empty((view.n, X.shape[1]))

    def block(start: int, stop: int) -> None:
        own = packed if gram.complete else packed[start:stop]
        own[:] = gram.block(start, stop, own, rhs[start:stop])

    _threads.run(block, gram.bounds(), stream.threads)
    draw_volume(key, X, packed, rhs, tau, *terms)


def row_errors(view: View, X: Array, F: Array, threads: int) -> Array:
    """Sum of squared residuals of every row (n,) over its observed entries."""
    out = np.empty(view.n)
    _threads.run(
        lambda start, stop: squared_errors(
            start, stop, view.indptr, view.indices, view.values, X, F, out
        ),
        blocks(view, X.shape[1], 1),
        threads,
    )
    return out


def split(view: View, U: Array, V: Array, stream: Stream) -> tuple[Array, Array]:
    """Split every observed count over the factors: sums over columns (n, K), over rows (m, K)."""
    key = stream.key()
    bounds = blocks(view, 20 * U.shape[1], 1)
    row_sums = np.zeros(U.shape)
    col_sums = np.zeros((len(bounds) - 1, *V.shape))
    position = {start: b for b, start in enumerate(bounds[:-1])}

    def block(start: int, stop: int) -> None:
        split_counts(
            start, stop, key, view.indptr, view.indices, view.values, U, V,
            row_sums, col_sums[position[start]],
        )  # fmt: skip

    _threads.run(block, bounds, stream.threads)
    return row_sums, col_sums.sum(axis=0)


def factor_sums(view: View, F: Array, threads: int) -> Array:
    """Sum of the other side's factors over each row's observed entries (n, K)."""
    out = np.empty((view.n, F.shape[1]))
    _threads.run(
        lambda start, stop: sum_factors(start, stop, view.indptr, view.indices, F, out),
        blocks(view, F.shape[1], F.shape[1]),
        threads,
    )
    return out
