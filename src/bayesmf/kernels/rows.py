"""Whole rows at once: x_i ~ N(A^-1 h, A^-1), A = prior precision + tau * Gram matrix.

Two steps. A Gram step reduces the data of a row to G = sum f f^T and g = sum r f over its observed
entries, f being the other side's factors. A draw step adds the prior and draws. G is stored as the
packed lower triangle, row by row: K (K + 1) / 2 numbers.
"""

from __future__ import annotations

import numpy as np

from bayesmf._jit import kernel
from bayesmf.kernels.linalg import (
    LANES,
    TILE,
    cholesky,
    gram,
    padded,
    solve_and_draw,
    stride,
    workspace,
)
from bayesmf.kernels.random import normal, seed_stream


@kernel(reassociate=True)
def _project(Ft, r, n, K, out):
    """Set out to Ft r over the first n columns."""
    for k in range(K):
        f = Ft[k]
        total = 0.0
        for t in range(n):
            total += f[t] * r[t]
        out[k] = total


@kernel
def gram_sparse(start, stop, indptr, indices, values, F, packed, rhs):
    """Gram step from lists of observed entries, F (m, K).

    Fills packed[i - start] and rhs[i - start] for the rows start..stop.
    """
    K = F.shape[1]
    longest = 0
    for i in range(start, stop):
        longest = max(longest, indptr[i + 1] - indptr[i])
    buffer = np.zeros(padded(K, TILE) * stride(longest))
    r = np.zeros(stride(longest))
    A, _ = workspace(K)
    for i in range(start, stop):
        first = indptr[i]
        n = indptr[i + 1] - first
        whole = padded(n, LANES)
        width = stride(n)
        Ft = buffer[: padded(K, TILE) * width].reshape((padded(K, TILE), width))
        for t in range(n):
            f = F[indices[first + t]]
            r[t] = values[first + t]
            for k in range(K):
                Ft[k, t] = f[k]
        for t in range(n, whole):
            r[t] = 0.0
            for k in range(K):
                Ft[k, t] = 0.0
        Ft[K:] = 0.0
        gram(Ft, whole, A)
        _project(Ft, r, whole, K, rhs[i - start])
        position = 0
        for a in range(K):
            for b in range(a + 1):
                packed[i - start, position] = A[a, b]
                position += 1


@kernel
def pack_outer(F, out):
    """Packed outer products f f^T of the rows of F: out (m, K (K + 1) / 2)."""
    K = F.shape[1]
    for j in range(F.shape[0]):
        position = 0
        for a in range(K):
            for b in range(a + 1):
                out[j, position] = F[j, a] * F[j, b]
                position += 1


@kernel
def draw_rows(start, stop, key, X, packed, rhs, tau, precision, diagonal, linear):
    """Draw step for rows start..stop of X (n, K), in place.

    packed (1 or stop - start, K (K + 1) / 2) and rhs (stop - start, K) come from the Gram step. The
    prior adds ``precision`` (K, K), ``diagonal`` (1 or n, K) and ``linear`` (1 or n, K).
    """
    K = X.shape[1]
    A, L = workspace(K)
    h = np.empty(K)
    z = np.empty(K)
    s = np.empty(4, np.uint64)
    shared = packed.shape[0] == 1 and diagonal.shape[0] == 1
    for i in range(start, stop):
        if i == start or not shared:
            own = diagonal[i if diagonal.shape[0] > 1 else 0]
            source = packed[0 if packed.shape[0] == 1 else i - start]
            position = 0
            for a in range(K):
                for b in range(a + 1):
                    A[a, b] = precision[a, b] + tau * source[position]
                    position += 1
                A[a, a] += own[a]
            cholesky(A, L, K)
        shift = linear[i if linear.shape[0] > 1 else 0]
        seed_stream(key, i, s)
        for k in range(K):
            h[k] = shift[k] + tau * rhs[i - start, k]
            z[k] = normal(s)
        solve_and_draw(L, h, z, K, 1.0, X[i])


@kernel
def draw_rows_sparse(
    start, stop, key, X, indptr, indices, values, F, tau, precision, diagonal, linear
):
    """Gram step and draw step for rows start..stop, a few rows at a time to stay in the cache."""
    K = X.shape[1]
    few = 16  # more than one: a single packed Gram matrix would stand for all rows
    packed = np.empty((few, K * (K + 1) // 2))
    rhs = np.empty((few, K))
    for i in range(start, stop, few):
        j = min(i + few, stop)
        gram_sparse(i, j, indptr, indices, values, F, packed, rhs)
        draw_rows(i, j, key, X, packed, rhs, tau, precision, diagonal, linear)


@kernel(reassociate=True)
def squared_errors(start, stop, indptr, indices, values, X, F, out):
    """Set out[i] to the sum of squared residuals of row i over its observed entries."""
    K = X.shape[1]
    for i in range(start, stop):
        x = X[i]
        total = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            f = F[indices[t]]
            fit = 0.0
            for k in range(K):
                fit += x[k] * f[k]
            total += (values[t] - fit) * (values[t] - fit)
        out[i] = total
