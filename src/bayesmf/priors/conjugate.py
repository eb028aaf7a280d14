"""Weights of features that are too many to decompose, drawn by conjugate gradients.

Given the rows R (n, K) less all else, the weights B (P, K) of features F (n, P) have the precision
matrix A = F^T F + w I, times that of the rows. Solving A B = F^T (R + E1) + sqrt(w) E2, with E1 and
E2 as uncertain as rows are, draws them exactly (Macau; Simm and others, 2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesmf import _threads
from bayesmf._errors import ModelError
from bayesmf.data.designs import times
from bayesmf.data.groups import Group
from bayesmf.kernels import fill as kinds
from bayesmf.kernels.gradients import advance, turn
from bayesmf.kernels.vectors import in_vectors
from bayesmf.priors import distributions as dist
from bayesmf.streams import Array, Stream

TOLERANCE = 1e-4  # of a standard deviation of any combination of weights
_ROUNDING = 1e-14  # of the right-hand side: smaller residuals are rounding
_MOST = 10_000  # steps
_BLOCK = 4096  # features that one thread takes at a time


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgeWeights(dist.Distribution):
    """Weights (P, K) of the features of a group, given rows (n, K) that they explain.

    ``ridge`` is the precision of the weights relative to ``precision`` (K, K), that of the rows.
    The density has no constant.
    """

    group: Group
    rows: Array
    ridge: float
    precision: Array

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        L = dist.cholesky(self.precision)  # columns of B L are independent, of precision A
        noise = stream.fill(kinds.NORMAL, self.rows.shape, 0.0, 1.0)
        right = self.group.moments(self.rows @ L + noise)
        right += np.sqrt(self.ridge) * stream.fill(kinds.NORMAL, shape, 0.0, 1.0)
        found = solve(self.group, self.ridge, right)
        return np.ascontiguousarray(dist.solve_transposed(L, found.T).T)

    def log_density(self, x: Array) -> Array:
        scatter = _scatter(self.group.fitted(x)) + self.ridge * _scatter(x)
        linear = x.T @ self.group.moments(self.rows)
        return np.asarray(np.sum((linear - 0.5 * scatter) * self.precision))


def _scatter(x: Array) -> Array:
    return x.T @ x


def solve(group: Group, ridge: float, right: Array) -> Array:
    """X of (F^T F + ridge) X = right (P, K), each column by its own conjugate gradients.

    If a residual is r, then the error has the length sqrt(r^T A^-1 r) <= |r| / sqrt(ridge) in
    standard deviations of the weights, since A is the precision matrix of a column.
    """
    assert group.squares is not None
    P, K = right.shape
    scale = 1 / (group.squares + ridge)  # a preconditioner: the diagonal of A
    left = in_vectors(right.copy())
    x, step = np.zeros_like(left), scale[:, None] * left
    lengths, size, squares = _dots(left, left), _dots(left, step), _dots(step, step)
    enough = np.maximum(TOLERANCE**2 * ridge, _ROUNDING**2 * lengths)
    for _ in range(_MOST):
        if (lengths <= enough).all():
            return x[:, :K]
        fitted = times(group.design, step)
        along = _ratio(size, _dots(fitted, fitted) + ridge * squares)
        before, image = size, in_vectors(group.moments(fitted))
        lengths, size = _sums(advance, 2, P, along, ridge, scale, step, image, x, left)
        (squares,) = _sums(turn, 1, P, _ratio(size, before), scale, left, step)
    raise ModelError(
        f"the weights of features {group.name!r} were not found in {_MOST} steps of conjugate "
        "gradients; leave out features that are almost the same, or use fewer."
    )


def _sums(kernel: Any, n_sums: int, P: int, *arguments: Any) -> Array:
    """What a kernel sums over all P features, in blocks, whose order never changes."""
    found = np.zeros((-(-P // _BLOCK), n_sums, arguments[-1].shape[1]))
    _threads.run(
        lambda start, stop: kernel(start, stop, *arguments, found[start // _BLOCK]),
        [*range(0, P, _BLOCK), P],
        _threads.here(),
    )
    return found.sum(axis=0)


def _ratio(x: Array, y: Array) -> Array:
    """X / y, and zero where x is."""
    return np.divide(x, y, out=np.zeros_like(x), where=x > 0)


def _dots(x: Array, y: Array) -> Array:
    return np.einsum("pk,pk->k", x, y)
