"""Nonnegative rows whose entries are drawn in turn, several times over.

That is for the rows that are not fit to be moved as a whole (``walls``). The data of a row enter
through its precision matrix alone, so that a pass over its K entries costs some K^2 operations,
however many observations it has.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.linalg import padded
from bayesmf.kernels.random import exponential, normal, seed_stream
from bayesmf.kernels.special import truncated_excess
from bayesmf.kernels.vectors import LANES, load, minus_product, splat, store
from bayesmf.kernels.walls import move_row

_MANY = 24  # factors; a row of more, drawn without others beside it, takes too long as a whole
PASSES = 4  # over the entries; even, for those that go forwards and backwards by turns


@kernel
def draw_entry(s, root, b, spread):
    """Draw x >= 0 with density proportional to exp((b x - (root x)^2 / 2) / spread^2)."""
    if root == 0.0:
        return spread * spread * exponential(s) / -b
    return spread / root * truncated_excess(s, -b / (root * spread))


@kernel
def subtract_row(x, A, k, linear):
    """Subtract x times row k of A."""
    w = A.shape[1]
    for a in range(0, w, LANES):
        store(linear, a, minus_product(load(linear, a), splat(x), load(A, k * w + a)))


@kernel
def draw_entries(s, x, A, linear, spread):
    """Draw the entries of x >= 0 (K,) in turn, several times over.

    The density is proportional to exp((linear^T x - x^T A x / 2) / spread^2). A (K, whole vectors)
    is symmetric, with zeros at the end of its rows; it is overwritten, like the linear term.
    """
    K, roots = x.shape[0], np.empty(x.shape[0])
    for k in range(K):
        roots[k], A[k, k] = math.sqrt(max(A[k, k], 0.0)), 0.0
    for k in range(K):
        subtract_row(x[k], A, k, linear)
    for _ in range(PASSES):
        for k in range(K):
            new = draw_entry(s, roots[k], linear[k], spread)
            subtract_row(new - x[k], A, k, linear)
            x[k] = new


@kernel
def draw_unfit(
    i, rows, key, U, fit, linear, precision, diagonal, weight, G, full_weight, full, s
):  # fmt: skip
    """Draw those of the rows i, i + 1... that are not ``fit`` to be moved by their entries.

    linear (K, LANES) are their linear terms; the other arguments are those of ``rows.draw_rows``.
    """
    K = U.shape[1]
    for lane in range(rows):
        if fit[lane] != 0.0:
            continue
        A, h = np.zeros((K, padded(K, LANES))), np.zeros(padded(K, LANES))
        p = min(i + lane, diagonal.shape[0] - 1)
        for a in range(K):
            h[a] = linear[a, lane]
            for c in range(a + 1):
                A[a, c] = precision[a, c] + weight[lane] * G[lane, a, c]
                if full.size > 0:
                    A[a, c] += full_weight[lane] * full[a, c]
                A[c, a] = A[a, c]
            A[a, a] += diagonal[p, a]
        seed_stream(key, i + lane, s)
        for _ in range(K):
            normal(s)  # the velocity that a fit row would have
        draw_entries(s, U[i + lane], A, h, 1.0)


@kernel
def draw_row(s, i, U, A, linear, spread, time, work):
    """Move row i of U as ``move_row`` does, or draw its entries; overwrites A and linear."""
    if U.shape[1] > _MANY or not move_row(s, i, U, A, linear, spread, time, work):
        draw_entries(s, U[i], A, linear, spread)
