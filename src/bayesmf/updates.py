"""Half-sweeps: terms and data in, the factors of one side drawn in place.

Each function cuts the rows into blocks and hands them to a kernel. A half-sweep of the columns is
the same call with the column view and the two factor matrices exchanged.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from bayesmf import _threads
from bayesmf.kernels.counts import split_counts, sum_factors
from bayesmf.kernels.entries import draw_entries_dense, draw_entries_sparse, width
from bayesmf.kernels.linalg import LANES, TILE, sum_gram
from bayesmf.kernels.rows import draw_rows, gram_rows, row_workspace, squared_errors
from bayesmf.kernels.volume import draw_singular, draw_volume, volume_workspace
from bayesmf.moments import adjugate, directions, inverse_moments, whitened
from bayesmf.observed import View
from bayesmf.streams import Array, Stream
from bayesmf.terms import EntryTerms, RowTerms, VolumeTerms

_ROWS = 256  # whose Gram matrices one thread keeps at a time
_SMALL = 1_000_000  # operations below which a second thread costs more than it saves

_local = threading.local()


def _workspace(K: int) -> tuple[Array, ...]:
    """Arrays of the calling thread for draws of rows with K factors, kept from call to call."""
    if getattr(_local, "rank", None) != K:
        _local.rank, _local.arrays = K, row_workspace(K)
    return _local.arrays


def in_vectors(F: Array) -> Array:
    """F with zeros at the end of every row, so that a row is whole vectors."""
    n, K = F.shape
    if K % LANES == 0 and F.flags.c_contiguous:
        return F
    width = -(-K // LANES) * LANES
    memory = np.zeros(n * width + LANES)
    first = -memory.ctypes.data // memory.itemsize % LANES  # vectors lie in one cache line each
    out = memory[first : first + n * width].reshape(n, width)
    out[:, :K] = F
    return out


def gaps(view: View) -> tuple[Array, Array]:
    """Pointers and positions of the missing entries of every row of a dense view."""
    if "gaps" not in view.cache:
        assert view.mask is not None
        m = view.mask.shape[1]
        indptr = np.append(0, (m - view.counts).cumsum())
        view.cache["gaps"] = indptr, (np.flatnonzero(view.mask == 0.0) % m).astype(np.int32)
    return view.cache["gaps"]


def blocks(
    view: View, per_entry: int, per_row: int, per_term: int = 0, least: int = 8, most: int = 32
) -> list[int]:
    """Row blocks of equal work, counted in vector operations; one block if there is little of it.

    There are the more of them the longer it takes, because the last one is worked on alone.
    ``per_term`` is the work on each term of a Gram matrix: on each entry, or on each gap.
    """
    work = (per_entry, per_row, per_term, least, most)
    if work not in view.cache:
        counts = terms = view.counts
        if per_term and view.mask is not None:
            terms = np.minimum(counts, np.diff(gaps(view)[0]))
        cost = counts * per_entry + terms * per_term + per_row
        pieces = int(np.clip(cost.sum() / _SMALL, least, most))
        bounds = _threads.balanced_bounds(cost, pieces if cost.sum() > _SMALL else 1)
        view.cache[work] = _in_lanes(bounds) if per_term else bounds
    return view.cache[work]


def _in_lanes(bounds: list[int]) -> list[int]:
    """Move inner bounds to multiples of `LANES`, the number of rows that are drawn at once."""
    return sorted({0, *(b // LANES * LANES for b in bounds[:-1]), bounds[-1]})


class Gram:
    """The Gram step of one half-sweep: sums of f f^T and r f over each row's observed entries.

    Rows of mostly observed matrices subtract their gaps from the sum over all rows of F, so a
    complete matrix has that one Gram matrix for all rows.
    """

    def __init__(self, view: View, F: Array) -> None:
        self.view, self.rank = view, F.shape[1]
        F = in_vectors(F)
        missing, whole = (view.indptr[:0], view.indices[:0]), F[:0]
        if view.mask is not None:
            missing, whole = gaps(view), np.empty((-(-self.rank // TILE) * TILE, F.shape[1]))
            sum_gram(F, np.arange(len(F), dtype=np.int32), 0, len(F), whole)
        self.data = (F, view.indptr, view.indices, view.values, *missing, whole)

    def bounds(self, least: int = 8) -> list[int]:
        """Blocks of rows, the same for any number of threads."""
        K = self.rank
        vectors = -(-K // LANES)
        return blocks(self.view, 2 * vectors, 200 + 20 * K + K**3 // 30, 2 + K * vectors, least)

    def block(self, start: int, stop: int, packed: Array, rhs: Array) -> None:
        """Fill packed (stop - start, K (K + 1) / 2) and rhs (stop - start, K)."""
        *_, G, g, _, _ = _workspace(self.rank)
        gram_rows(start, stop, *self.data, packed, rhs, G[0], g[0])


def draw_side(
    view: View,
    X: Array,
    F: Array,
    terms: RowTerms | EntryTerms | VolumeTerms,
    tau: float,
    stream: Stream,
    last: bool = False,
) -> Array | None:
    """Draw X (n, K) in place given the other side's F, under a Gaussian likelihood.

    Returns the sums of squared residuals of the new rows (n,), where they come for nothing, or for
    little and the side is the ``last`` of a sweep.
    """
    if isinstance(terms, EntryTerms):
        return _draw_entries(view, X, F, terms, tau, stream)
    if isinstance(terms, RowTerms):
        return _draw_rows(view, X, F, terms, tau, stream, last)
    _draw_volume(view, X, F, terms, tau, stream)
    return None


def _draw_rows(
    view: View, X: Array, F: Array, terms: RowTerms, tau: float, stream: Stream, last: bool
) -> Array | None:
    key, gram, errors = stream.key(), Gram(view, F), np.empty(view.n if last else 0)

    def block(start: int, stop: int) -> None:
        draw_rows(start, stop, key, X, *gram.data, tau, *terms, errors, *_workspace(X.shape[1]))

    _threads.run(block, gram.bounds(), stream.threads, joined=True)
    return errors if last else None


def _draw_entries(
    view: View, X: Array, F: Array, terms: EntryTerms, tau: float, stream: Stream
) -> Array:
    key, errors = stream.key(), np.empty(view.n)
    block: Callable[[int, int], None]
    if view.mask is not None:
        filled, mask, Ft = view.filled, view.mask, np.zeros((X.shape[1], width(len(F))))
        Ft[:, : len(F)] = F.T

        def block(start: int, stop: int) -> None:
            draw_entries_dense(start, stop, key, X, filled, mask, Ft, errors, tau, *terms)
    else:

        def block(start: int, stop: int) -> None:
            draw_entries_sparse(
                start, stop, key, X, view.indptr, view.indices, view.values, F, errors, tau, *terms
            )

    bounds = blocks(view, 4 * X.shape[1], 32 * X.shape[1])
    _threads.run(block, bounds, stream.threads, joined=True)
    return errors


class VolumeRows:
    """Rows X that a volume prior ties together, to be drawn one after the other.

    Where X^T X is nearly singular they are drawn in coordinates y = W x in which it begins as the
    identity. To real-valued rows that is a volume prior with other data; where entries have a sign
    the precision of the prior is carried over to x.
    """

    def __init__(self, X: Array, terms: VolumeTerms, tau: float, key: Array) -> None:
        self.X, self.terms, self.tau, self.key = X, terms, tau, key
        self._workspace = volume_workspace(X.shape[1], terms.nonnegative)
        self._refresh()

    def _refresh(self) -> None:
        self._P, self._log_det = inverse_moments(self.X)
        self._white = None
        if not np.isfinite(self._log_det) and (white := whitened(self.X)):
            *self._white, self._log_det = white
            self._P = np.eye(self.X.shape[1])

    def draw(self, row: int, stop: int, packed: Array, rhs: Array) -> None:
        """Draw these rows, whose Gram step is given; all rows before them have been drawn."""
        first = row
        while True:
            if np.isfinite(self._log_det) or self.X.shape[1] == 1:
                row = self._draw(row, stop, packed[row - first :], rhs[row - first :])
            if row == stop:
                return
            T, weights = directions(self.X, row)
            own = packed[row - first], rhs[row - first], self.tau, *self.terms
            draw_singular(row, self.key, self.X, T, weights, *adjugate(T, weights), *own)
            self._refresh()
            row += 1

    def _draw(self, row: int, stop: int, packed: Array, rhs: Array) -> int:
        """Draw rows up to one that leaves singular moments, and return its number, or stop."""
        X, Y, W = self.X, self.X, None
        data = packed, rhs, self.tau, self.terms.log_gamma, self.terms.ridge
        if self._white is not None:
            Y, T, W = self._white
            if not self.terms.nonnegative:
                X, W = Y, None
                data = *self._in_coordinates(T, packed, rhs), 1.0, self.terms.log_gamma, 0.0
        end, self._log_det = draw_volume(
            row, stop, self.key, X, Y, W, self._P, self._log_det, *data, *self._workspace
        )
        if X is not self.X:
            self.X[row:end] = _row_by_row(Y[row:end], T.T)
        return end

    def _in_coordinates(self, T: Array, packed: Array, rhs: Array) -> tuple[Array, Array]:
        """Precisions and linear terms of y, where x = T y, from all but the volume."""
        low = np.tril_indices(len(T))
        G = np.zeros((len(packed), *T.shape))
        G[:, low[0], low[1]] = G[:, low[1], low[0]] = self.tau * packed
        G += self.terms.ridge * np.eye(len(T))
        packed = (T.T @ G @ T)[:, low[0], low[1]]
        return np.ascontiguousarray(packed), self.tau * _row_by_row(rhs, T)


def _row_by_row(X: Array, T: Array) -> Array:
    """Return X T, rounded alike whichever rows are asked for together."""
    return (X[:, None] @ T)[:, 0]


def _draw_volume(
    view: View, X: Array, F: Array, terms: VolumeTerms, tau: float, stream: Stream
) -> None:
    """Rows in sequence: the thread that finds the next block's Gram step done draws the block."""
    gram, rows = Gram(view, F), VolumeRows(X, terms, tau, stream.key())
    K = X.shape[1]
    # Many blocks, because the last of them is drawn by one thread alone.
    bounds = gram.bounds(32) if stream.threads > 1 else [*range(0, view.n, _ROWS), view.n]
    waiting = deque([*pairwise(bounds), (view.n, view.n)])  # the last is never done
    done: dict[tuple[int, int], tuple[Array, Array]] = {}
    turn = threading.Lock()

    def block(start: int, stop: int) -> None:
        sums = np.empty((stop - start, K * (K + 1) // 2)), np.empty((stop - start, K))
        gram.block(start, stop, *sums)
        done[start, stop] = sums
        while waiting[0] in done and turn.acquire(blocking=False):
            try:
                while waiting[0] in done:
                    rows.draw(*waiting[0], *done.pop(waiting[0]))
                    waiting.popleft()
            finally:
                turn.release()

    _threads.run(block, bounds, stream.threads)


def draw_beside(
    view: View, X: Array, F: Array, others: Array, terms: VolumeTerms, tau: float, stream: Stream
) -> None:
    """Draw rows X that a volume prior ties to ``others`` but not to each other."""
    key, gram, K = stream.key(), Gram(view, F), X.shape[1]
    T, weights = directions(others)
    B, c = adjugate(T, weights)

    def block(start: int, stop: int) -> None:
        packed, rhs = np.empty((stop - start, K * (K + 1) // 2)), np.empty((stop - start, K))
        gram.block(start, stop, packed, rhs)
        for i in range(start, stop):
            own = packed[i - start], rhs[i - start], tau, *terms
            draw_singular(i, key, X, T, weights, B, c, *own)

    _threads.run(block, gram.bounds(), stream.threads)


def row_errors(view: View, X: Array, F: Array, threads: int) -> Array:
    """Sum of squared residuals of every row (n,) over its observed entries."""
    out, rank, F = np.empty(view.n), X.shape[1], in_vectors(F)
    _threads.run(
        lambda start, stop: squared_errors(
            start, stop, view.indptr, view.indices, view.values, X, F, out
        ),
        blocks(view, rank, 1),
        threads,
        joined=True,
    )
    return out


def split(view: View, U: Array, V: Array, stream: Stream) -> tuple[Array, Array]:
    """Split every observed count over the factors: sums over columns (n, K), over rows (m, K)."""
    key = stream.key()
    bounds = blocks(view, 20 * U.shape[1], 1, most=8)  # each has column sums of its own
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
    out, mask = np.empty((view.n, F.shape[1])), view.mask

    def block(start: int, stop: int) -> None:
        if mask is not None:
            np.matmul(mask[start:stop], F, out=out[start:stop])
        else:
            sum_factors(start, stop, view.indptr, view.indices, F, out)

    _threads.run(block, blocks(view, F.shape[1], F.shape[1]), threads)
    return out
