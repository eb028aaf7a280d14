"""Running moments of the predictions of a chain."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bayesmf import _threads
from bayesmf.kernels.cells import accumulate, dots
from bayesmf.streams import Array

_BLOCK = 64  # rows of the matrix whose predictions are formed at once


class Moments:
    """Running mean and variance of U V^T, over the whole matrix or over listed cells."""

    def __init__(self, shape: tuple[int, int], cells: tuple[Array, Array] | None) -> None:
        self.shape, self.cells, self.count = shape, cells, 0
        size = shape[0] * shape[1] if cells is None else cells[0].size
        self.mean, self.square = np.zeros(size), np.zeros(size)

    def add(self, U: Array, V: Array, threads: int) -> None:
        """Take in one draw."""
        self.count += 1
        if self.cells is not None:
            accumulate(self.of(U, V), self.count, self.mean, self.square)
            return
        J = self.shape[1]

        def block(start: int, stop: int) -> None:
            values = (U[start:stop] @ V.T).ravel()
            part = slice(start * J, stop * J)
            accumulate(values, self.count, self.mean[part], self.square[part])

        _threads.run(block, _threads.bounds(self.shape[0], -(-self.shape[0] // _BLOCK)), threads)

    def of(self, U: Array, V: Array) -> Array:
        """Predictions of the listed cells (n,) by one draw."""
        assert self.cells is not None
        return products(U, V, self.cells)

    def means(self, cells: tuple[Array, Array]) -> Array:
        """Means (n,) of some cells of the whole matrix, or of the listed ones."""
        if self.cells is not None:
            return self.mean
        return self.mean[cells[0] * self.shape[1] + cells[1]]

    def merge(self, other: Moments) -> None:
        """Take in another chain's draws."""
        total = self.count + other.count
        gap = other.mean - self.mean
        self.mean += gap * (other.count / total)
        self.square += other.square + gap**2 * (self.count * other.count / total)
        self.count = total


def products(U: Array, V: Array, cells: tuple[Array, Array]) -> Array:
    """U V^T in cells (n,)."""
    rows, cols = cells
    values = np.empty(rows.size)
    dots(0, rows.size, rows, cols, U, V, values)
    return values


def moments_of(
    draws: Iterable[tuple[Array, Array]], shape: tuple[int, int],
    cells: tuple[Array, Array] | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Mean and variance of U V^T over draws of both sides: of the whole matrix, or of cells."""
    found = Moments(shape, cells)
    for U, V in draws:
        found.add(U, V, threads=1)
    size = shape if cells is None else (-1,)
    variance = found.square / max(1, found.count - 1)
    return found.mean.reshape(size), variance.reshape(size)
