"""Whole rows at once: x_i ~ N(A^-1 h, A^-1), A = prior precision + tau * Gram matrix.

Two steps. A Gram step reduces the data of a row to G = sum f f^T and g = sum r f over its observed
entries, f being the other side's factors. A draw step adds the prior and draws. G is stored as the
packed lower triangle, row by row: K (K + 1) / 2 numbers. F always has rows of whole vectors, filled
up with zeros.
"""

from __future__ import annotations

import numpy as np

from bayesmf._jit import LANES, kernel, load, plus_product, splat, total
from bayesmf.kernels.linalg import (
    TILE,
    add_gram,
    add_projection,
    cholesky,
    padded,
    solve_and_draw,
    workspace,
)
from bayesmf.kernels.random import normal, seed_stream


@kernel
def _sum_outer(F, indices, first, last, K, packed):
    """Set packed to the sum of f f^T over the rows f = F[indices[first:last]]."""
    A = np.zeros((padded(K, TILE), F.shape[1]))
    add_gram(F, indices, first, last, A)
    position = 0
    for a in range(K):
        for b in range(a + 1):
            packed[position] = A[a, b]
            position += 1


@kernel
def gram_whole(F, K, packed):
    """Set packed to the Gram matrix of all rows of F."""
    _sum_outer(F, np.arange(F.shape[0]).astype(np.int32), 0, F.shape[0], K, packed)


@kernel
def _subtract(whole, packed, K):
    """Set packed to whole - packed; return whether enough is left of every diagonal entry.

    If less than a tenth is left, the rounding error of the whole would show.
    """
    for p in range(packed.size):
        packed[p] = whole[p] - packed[p]
    for k in range(K):
        p = k * (k + 3) // 2
        if not packed[p] >= 0.1 * whole[p]:
            return False
    return True


@kernel
def gram_rows(start, stop, F, indptr, indices, values, gaps_indptr, gaps, whole, packed, rhs):
    """Gram step for the rows start..stop into packed[i - start] and rhs[i - start].

    ``whole``, if not empty, is the packed Gram matrix of all of F: a row that has more entries than
    gaps is that matrix less its gaps, and if there are no gaps at all ``packed`` is left alone.
    """
    K = rhs.shape[1]
    g = np.empty(F.shape[1])
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        g[:] = 0.0
        add_projection(F, indices, values, first, last, g)
        rhs[i - start] = g[:K]
        if whole.size > 0:
            if gaps.size == 0:
                continue
            begin, end = gaps_indptr[i], gaps_indptr[i + 1]
            if end - begin < last - first:
                _sum_outer(F, gaps, begin, end, K, packed[i - start])
                if _subtract(whole, packed[i - start], K):
                    continue
        _sum_outer(F, indices, first, last, K, packed[i - start])


@kernel
def _assemble(start, stop, packed, tau, precision, diagonal, A):
    """Set the lanes of A to the posterior precisions of rows start.., the last one repeated."""
    K = precision.shape[0]
    for lane in range(LANES):
        i = min(start + lane, stop - 1)
        own = diagonal[i if diagonal.shape[0] > 1 else 0]
        source = packed[i - start if packed.shape[0] > 1 else 0]
        position = 0
        for a in range(K):
            for b in range(a + 1):
                A[a, b, lane] = precision[a, b] + tau * source[position]
                position += 1
            A[a, a, lane] += own[a]


@kernel
def draw_rows(
    start, stop, key, X, F, indptr, indices, values, gaps_indptr, gaps, whole,
    tau, precision, diagonal, linear,
):  # fmt: skip
    """Gram step and draw step for rows start..stop of X (n, K), in place, `LANES` rows at a time.

    The prior adds ``precision`` (K, K), ``diagonal`` (1 or n, K) and ``linear`` (1 or n, K).
    """
    K = X.shape[1]
    A, h, z = workspace(K)
    packed, rhs = np.empty((LANES, K * (K + 1) // 2)), np.empty((LANES, K))
    s = np.empty(4, np.uint64)
    complete = whole.size > 0 and gaps.size == 0
    for i in range(start, stop, LANES):
        j = min(i + LANES, stop)
        gram_rows(i, j, F, indptr, indices, values, gaps_indptr, gaps, whole, packed, rhs)
        if i == start or not complete or diagonal.shape[0] > 1:
            gram = whole.reshape((1, whole.size)) if complete else packed
            _assemble(i, j, gram, tau, precision, diagonal, A)
            cholesky(A)
        for lane in range(j - i):
            shift = linear[i + lane if linear.shape[0] > 1 else 0]
            seed_stream(key, i + lane, s)
            for k in range(K):
                h[k, lane] = shift[k] + tau * rhs[lane, k]
                z[k, lane] = normal(s)
        solve_and_draw(A, h, z, 1.0)
        for lane in range(j - i):
            for k in range(K):
                X[i + lane, k] = h[k, lane]


@kernel
def squared_errors(start, stop, indptr, indices, values, X, F, out):
    """Set out[i] to the sum of squared residuals of row i; X and F have rows of whole vectors."""
    w = X.shape[1]
    for i in range(start, stop):
        square = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            j = np.int64(indices[t])
            fit = splat(0.0)
            for b in range(0, w, LANES):
                fit = plus_product(fit, load(X, i * w + b), load(F, j * w + b))
            residual = values[t] - total(fit)
            square += residual * residual
        out[i] = square
