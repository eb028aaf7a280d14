"""Half-sweeps of rows that a volume prior couples: drawn one after the other."""

from __future__ import annotations

import threading
from collections import deque
from itertools import pairwise

import numpy as np

from bayesmf import _threads
from bayesmf.data.observed import View
from bayesmf.kernels.volume import draw_singular, draw_volume, volume_workspace
from bayesmf.streams import Array, Stream
from bayesmf.updates.blocks import (
    FRESH,
    ROWS,
    Gram,
    Noise,
    Relaxation,
    Roots,
    relaxation,
)
from bayesmf.updates.moments import adjugate, directions, inverse_moments, whitened
from bayesmf.updates.terms import VolumeTerms


class VolumeRows:
    """Rows U that a volume prior ties together, to be drawn one after the other.

    Where U^T U is nearly singular they are drawn in coordinates y = W x in which it begins as the
    identity. To real-valued rows that is a volume prior with other data; where entries have a sign
    the precision of the prior is carried over to x.
    """

    def __init__(
        self, U: Array, terms: VolumeTerms, tau: float, key: Array, relaxed: Relaxation = FRESH
    ) -> None:
        self.U, self.terms, self.tau, self.key = U, terms, tau, key
        self._how = relaxed
        self._workspace = volume_workspace(U.shape[1], terms.nonnegative)
        self._refresh()

    def _refresh(self) -> None:
        self._P, self._log_det = inverse_moments(self.U)
        self._white = None
        if not np.isfinite(self._log_det) and (white := whitened(self.U)):
            *self._white, self._log_det = white
            self._P = np.eye(self.U.shape[1])

    def draw(self, row: int, stop: int, packed: Array, rhs: Array) -> None:
        """Draw these rows, whose Gram step is given; all rows before them have been drawn."""
        first = row
        while True:
            if np.isfinite(self._log_det) or self.U.shape[1] == 1:
                row = self._draw(row, stop, packed[row - first :], rhs[row - first :])
            if row == stop:
                return
            T, weights = directions(self.U, row)
            own = packed[row - first], rhs[row - first], self.tau, *self.terms, *self._how
            draw_singular(row, self.key, self.U, T, weights, *adjugate(T, weights), *own)
            self._refresh()
            row += 1

    def _draw(self, row: int, stop: int, packed: Array, rhs: Array) -> int:
        """Draw rows up to one that leaves singular moments, and return its number, or stop."""
        U, Y, W = self.U, self.U, None
        data = packed, rhs, self.tau, self.terms.log_gamma, self.terms.ridge
        if self._white is not None:
            Y, T, W = self._white
            if not self.terms.nonnegative:
                U, W = Y, None
                data = *self._in_coordinates(T, packed, rhs), 1.0, self.terms.log_gamma, 0.0
        end, self._log_det = draw_volume(
            row, stop, self.key, U, Y, W, self._P, self._log_det, *data, *self._how,
            *self._workspace,
        )  # fmt: skip
        if U is not self.U:
            self.U[row:end] = _row_by_row(Y[row:end], T.T)
        return end

    def _in_coordinates(self, T: Array, packed: Array, rhs: Array) -> tuple[Array, Array]:
        """Precisions and linear terms of y, where x = T y, from all but the volume."""
        low = np.tril_indices(len(T))
        G = np.zeros((len(packed), *T.shape))
        G[:, low[0], low[1]] = G[:, low[1], low[0]] = self.tau * packed
        G += self.terms.ridge * np.eye(len(T))
        packed = (T.T @ G @ T)[:, low[0], low[1]]
        return np.ascontiguousarray(packed), self.tau * _row_by_row(rhs, T)


def _row_by_row(U: Array, T: Array) -> Array:
    """Return U T, rounded alike whichever rows are asked for together."""
    return (U[:, None] @ T)[:, 0]


class _Sums:
    """Gram steps of blocks of rows, times the rows' precisions if these differ (tau is then 1)."""

    def __init__(self, gram: Gram, noise: Noise) -> None:
        self.gram, self.rows = gram, None if noise.own is None else noise.tau * noise.own
        self.tau = noise.tau if noise.own is None else 1.0

    def block(self, start: int, stop: int) -> tuple[Array, Array]:
        K = self.gram.rank
        packed, rhs = np.empty((stop - start, K * (K + 1) // 2)), np.empty((stop - start, K))
        self.gram.block(start, stop, packed, rhs)
        if self.rows is not None:
            packed *= self.rows[start:stop, None]
            rhs *= self.rows[start:stop, None]
        return packed, rhs


def draw_volume_rows(
    view: View, U: Array, V: Array, roots: Roots, terms: VolumeTerms, noise: Noise,
    stream: Stream,
) -> None:  # fmt: skip
    """Rows in sequence: the thread that finds the next block's Gram step done draws the block."""
    gram = Gram(view, V, roots)
    sums = _Sums(gram, noise)
    how = relaxation(stream)
    rows = VolumeRows(U, terms, sums.tau, stream.key(), how)
    # Many blocks, because the last of them is drawn by one thread alone.
    bounds = gram.bounds(32) if stream.threads > 1 else [*range(0, view.n, ROWS), view.n]
    waiting = deque([*pairwise(bounds), (view.n, view.n)])  # the last is never done
    done: dict[tuple[int, int], tuple[Array, Array]] = {}
    drawing = threading.Lock()

    def block(start: int, stop: int) -> None:
        done[start, stop] = sums.block(start, stop)
        while waiting[0] in done and drawing.acquire(blocking=False):
            try:
                while waiting[0] in done:
                    rows.draw(*waiting[0], *done.pop(waiting[0]))
                    waiting.popleft()
            finally:
                drawing.release()

    _threads.run(block, bounds, stream.threads)


def draw_beside(
    view: View, U: Array, V: Array, roots: Roots, others: Array, terms: VolumeTerms,
    noise: Noise, stream: Stream,
) -> None:  # fmt: skip
    """Draw rows U that a volume prior ties to ``others`` but not to each other."""
    key, gram = stream.key(), Gram(view, V, roots)
    sums = _Sums(gram, noise)
    T, weights = directions(others)
    B, c = adjugate(T, weights)
    how = relaxation(stream)

    def block(start: int, stop: int) -> None:
        packed, rhs = sums.block(start, stop)
        for i in range(start, stop):
            own = packed[i - start], rhs[i - start], sums.tau, *terms, *how
            draw_singular(i, key, U, T, weights, B, c, *own)

    _threads.run(block, gram.bounds(), stream.threads)
