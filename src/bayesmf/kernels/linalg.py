"""Small symmetric matrices: products and Cholesky factors in 4 x 4 tiles.

A tile is sixteen dot products over the same eight vectors: sums only, nothing stored on the way,
so that they stay in vector registers. Arrays are padded with zeros to whole tiles, and rows to
whole vectors.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf._jit import kernel

TILE = 4
LANES = 8  # doubles in the widest vector register


@kernel
def padded(n, unit):
    """Round n up to a multiple of unit."""
    return -(-n // unit) * unit


@kernel
def stride(n):
    """Row length for n numbers: whole vectors, and no large power of two.

    Otherwise the entries of a column would compete for one place in the cache.
    """
    whole = padded(n, LANES)
    return whole + LANES if whole % 64 == 0 else whole


@kernel(reassociate=True)
def _tile(A, a, B, b, n):
    """Products of rows a..a+3 of A with rows b..b+3 of B over their first n columns."""
    a0, a1, a2, a3 = A[a], A[a + 1], A[a + 2], A[a + 3]
    b0, b1, b2, b3 = B[b], B[b + 1], B[b + 2], B[b + 3]
    s00 = s01 = s02 = s03 = 0.0
    s10 = s11 = s12 = s13 = 0.0
    s20 = s21 = s22 = s23 = 0.0
    s30 = s31 = s32 = s33 = 0.0
    for t in range(n):
        x0, x1, x2, x3 = a0[t], a1[t], a2[t], a3[t]
        y0, y1, y2, y3 = b0[t], b1[t], b2[t], b3[t]
        s00 += x0 * y0
        s01 += x0 * y1
        s02 += x0 * y2
        s03 += x0 * y3
        s10 += x1 * y0
        s11 += x1 * y1
        s12 += x1 * y2
        s13 += x1 * y3
        s20 += x2 * y0
        s21 += x2 * y1
        s22 += x2 * y2
        s23 += x2 * y3
        s30 += x3 * y0
        s31 += x3 * y1
        s32 += x3 * y2
        s33 += x3 * y3
    return (
        (s00, s01, s02, s03),
        (s10, s11, s12, s13),
        (s20, s21, s22, s23),
        (s30, s31, s32, s33),
    )


@kernel
def gram(Ft, n, out):
    """Lower triangle (whole tiles) of Ft Ft^T over the first n columns of Ft (tiles, padded n)."""
    size = Ft.shape[0]
    for a in range(0, size, TILE):
        for b in range(0, a + 1, TILE):
            r0, r1, r2, r3 = _tile(Ft, a, Ft, b, n)
            for c in range(TILE):
                out[a, b + c] = r0[c]
                out[a + 1, b + c] = r1[c]
                out[a + 2, b + c] = r2[c]
                out[a + 3, b + c] = r3[c]


@kernel
def cholesky(A, L, K):
    """Set L to the lower Cholesky factor of A (both padded: whole tiles, rows of whole vectors).

    A is destroyed. A pivot that rounding has pushed to zero or below is lifted to the rounding
    error of its diagonal entry: such a direction is known to all its digits already.
    """
    size = padded(K, TILE)
    L[:] = 0.0
    for a in range(K, size):
        for b in range(size):
            A[a, b] = 1.0 if a == b else 0.0
    for b in range(0, size, TILE):
        n = padded(b, LANES)  # columns from b on are still zero
        for a in range(b, size, TILE):
            if b > 0:
                r0, r1, r2, r3 = _tile(L, a, L, b, n)
                for c in range(TILE):
                    A[a, b + c] -= r0[c]
                    A[a + 1, b + c] -= r1[c]
                    A[a + 2, b + c] -= r2[c]
                    A[a + 3, b + c] -= r3[c]
            if a == b:
                _factor_tile(A, L, b)
            else:
                _solve_tile(A, L, a, b)


@kernel
def _factor_tile(A, L, b):
    """Cholesky factor of the diagonal tile at b, what is left of it after elimination."""
    for j in range(b, b + TILE):
        gone = 0.0  # what elimination took from the diagonal entry
        for c in range(j):
            gone += L[j, c] * L[j, c]
        pivot = A[j, j]
        for c in range(b, j):
            pivot -= L[j, c] * L[j, c]
        pivot = max(pivot, 1e-15 * (pivot + gone), 1e-300)
        root = math.sqrt(pivot)
        L[j, j] = root
        for i in range(j + 1, b + TILE):
            total = A[i, j]
            for c in range(b, j):
                total -= L[i, c] * L[j, c]
            L[i, j] = total / root


@kernel
def _solve_tile(A, L, a, b):
    """Rows a..a+3 of the factor in the columns of the tile at b."""
    for i in range(a, a + TILE):
        for j in range(b, b + TILE):
            total = A[i, j]
            for c in range(b, j):
                total -= L[i, c] * L[j, c]
            L[i, j] = total / L[j, j]


@kernel(reassociate=True)
def solve_and_draw(L, h, z, K, spread, x):
    """Set x to A^-1 h + spread * L^-T z, where L L^T = A; h is destroyed."""
    for j in range(K):
        row = L[j]
        total = h[j]
        for c in range(j):
            total -= row[c] * h[c]
        h[j] = total / row[j]
    for j in range(K):
        h[j] += spread * z[j]
    for j in range(K - 1, -1, -1):
        row = L[j]
        value = h[j] / row[j]
        x[j] = value
        for c in range(j):
            h[c] -= value * row[c]


@kernel
def workspace(K):
    """Two padded K x K arrays for ``cholesky``."""
    size = padded(K, TILE)
    return np.zeros((size, padded(size, LANES))), np.zeros((size, padded(size, LANES)))
