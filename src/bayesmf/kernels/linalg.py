"""Small symmetric matrices, in vectors: Gram matrices, and Cholesky factors of several at once.

A Gram matrix is summed in tiles of a few rows and one or two vectors of columns, which stay in
registers while the terms go by. Factors and solutions are computed for `LANES` systems at a time:
an array has the lanes as its last axis, a vector holds one entry of all systems, and no operation
ever mixes lanes. Matrices are padded to whole tiles, with ones on the diagonal. Where systems come
one after the other (``factor_one``, ``solve_one``), vectors run along the rows of one matrix.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.prefetch import NEAR, prefetch_row
from bayesmf.kernels.vectors import (
    LANES,
    at,
    clamped_below,
    inverse_root,
    load,
    load_four,
    minus_product,
    plus_product,
    product,
    splat,
    store,
    store_four,
    total,
)

TILE = 4


@kernel
def padded(n, unit):
    """Round n up to a multiple of unit."""
    return -(-n // unit) * unit


@kernel(inner=True)
def _wide_tile(V, indices, first, last, a, b, A):
    """Rows a..a+3 and two vectors of columns from b on, of the sum over the terms."""
    w = V.shape[1]
    p = a * w + b
    s00 = s01 = s10 = s11 = s20 = s21 = s30 = s31 = splat(0.0)
    for t in range(first, last):
        q = at(indices, t) * w
        f0, f1 = load(V, q + b), load(V, q + b + LANES)
        x0, x1 = splat(at(V, q + a)), splat(at(V, q + a + 1))
        x2, x3 = splat(at(V, q + a + 2)), splat(at(V, q + a + 3))
        s00, s01 = plus_product(s00, x0, f0), plus_product(s01, x0, f1)
        s10, s11 = plus_product(s10, x1, f0), plus_product(s11, x1, f1)
        s20, s21 = plus_product(s20, x2, f0), plus_product(s21, x2, f1)
        s30, s31 = plus_product(s30, x3, f0), plus_product(s31, x3, f1)
    store(A, p, s00)
    store(A, p + LANES, s01)
    store(A, p + w, s10)
    store(A, p + w + LANES, s11)
    store(A, p + 2 * w, s20)
    store(A, p + 2 * w + LANES, s21)
    store(A, p + 3 * w, s30)
    store(A, p + 3 * w + LANES, s31)


@kernel(inner=True)
def _tile(V, indices, first, last, a, b, A):
    """Rows a..a+3 and one vector of columns from b on, of the sum over the terms."""
    w = V.shape[1]
    p = a * w + b
    s0 = s1 = s2 = s3 = splat(0.0)
    for t in range(first, last):
        q = at(indices, t) * w
        f = load(V, q + b)
        s0 = plus_product(s0, splat(at(V, q + a)), f)
        s1 = plus_product(s1, splat(at(V, q + a + 1)), f)
        s2 = plus_product(s2, splat(at(V, q + a + 2)), f)
        s3 = plus_product(s3, splat(at(V, q + a + 3)), f)
    store(A, p, s0)
    store(A, p + w, s1)
    store(A, p + 2 * w, s2)
    store(A, p + 3 * w, s3)


@kernel
def sum_gram(V, indices, first, last, A):
    """Set the lower triangle of A to the sum of f f^T over the rows f = V[indices[first:last]].

    V and A have rows of whole vectors; A has whole tiles of rows, and may have a row more.
    """
    for a in range(0, A.shape[0] - TILE + 1, TILE):
        vectors = (a + TILE + LANES - 1) // LANES
        for v in range(0, vectors - 1, 2):
            _wide_tile(V, indices, first, last, a, v * LANES, A)
        if vectors % 2 == 1:
            _tile(V, indices, first, last, a, (vectors - 1) * LANES, A)


@kernel(inner=True)
def _project_vector(V, indices, values, first, last, b, g):
    """Set the vector of g from b on to the sum of r f there, four entries at a time."""
    w, one = V.shape[1], splat(1.0)
    quads = last - (last - first) % 4
    s0 = s1 = s2 = s3 = splat(0.0)
    for t in range(first, quads, 4):
        s0 = plus_product(s0, splat(at(values, t)), load(V, at(indices, t) * w + b))
        s1 = plus_product(s1, splat(at(values, t + 1)), load(V, at(indices, t + 1) * w + b))
        s2 = plus_product(s2, splat(at(values, t + 2)), load(V, at(indices, t + 2) * w + b))
        s3 = plus_product(s3, splat(at(values, t + 3)), load(V, at(indices, t + 3) * w + b))
    for t in range(quads, last):
        s0 = plus_product(s0, splat(at(values, t)), load(V, at(indices, t) * w + b))
    store(g, b, plus_product(plus_product(s0, one, s1), one, plus_product(s2, one, s3)))


@kernel
def project(V, indices, values, first, last, g):
    """Set g to the sum of r f over the rows f = V[indices[first:last]] and the values r.

    It is the first to see these rows, so it asks for those to come.
    """
    if V.size > NEAR:
        for t in range(first, last):
            prefetch_row(V, indices, t)
    for b in range(0, V.shape[1], LANES):
        _project_vector(V, indices, values, first, last, b, g)


@kernel(inner=True)
def clear_padding(A, K):
    """Set the rows from K on to those of the identity."""
    for a in range(K, A.shape[0]):
        A[a] = 0.0
        A[a, a] = 1.0


def workspace(K):
    """Matrices (size, size, LANES), padding cleared, and three arrays of vectors (size, LANES)."""
    size = padded.py_func(K, TILE)
    A = np.zeros((size, size, LANES))
    clear_padding.py_func(A, K)
    return A, *np.zeros((3, size, LANES))


@kernel(inner=True)
def _eliminate(A, a, b):
    """Subtract from the tile at (a, b) what the columns before b account for."""
    w = A.shape[1] * LANES
    p, q = a * w, b * w
    e = p + b * LANES
    s00, s01, s02, s03 = load_four(A, e)
    e += w
    s10, s11, s12, s13 = load_four(A, e)
    e += w
    s20, s21, s22, s23 = load_four(A, e)
    e += w
    s30, s31, s32, s33 = load_four(A, e)
    for _ in range(b):
        y0, y1, y2, y3 = load(A, q), load(A, q + w), load(A, q + 2 * w), load(A, q + 3 * w)
        x = load(A, p)
        s00, s01 = minus_product(s00, x, y0), minus_product(s01, x, y1)
        s02, s03 = minus_product(s02, x, y2), minus_product(s03, x, y3)
        x = load(A, p + w)
        s10, s11 = minus_product(s10, x, y0), minus_product(s11, x, y1)
        s12, s13 = minus_product(s12, x, y2), minus_product(s13, x, y3)
        x = load(A, p + 2 * w)
        s20, s21 = minus_product(s20, x, y0), minus_product(s21, x, y1)
        s22, s23 = minus_product(s22, x, y2), minus_product(s23, x, y3)
        x = load(A, p + 3 * w)
        s30, s31 = minus_product(s30, x, y0), minus_product(s31, x, y1)
        s32, s33 = minus_product(s32, x, y2), minus_product(s33, x, y3)
        p += LANES
        q += LANES
    store_four(A, p, s00, s01, s02, s03)
    store_four(A, p + w, s10, s11, s12, s13)
    store_four(A, p + 2 * w, s20, s21, s22, s23)
    store_four(A, p + 3 * w, s30, s31, s32, s33)


@kernel(inner=True)
def _solve_tile(A, a, b):
    """Rows a..a+3 of the factor in the columns of the tile at b, after elimination."""
    w = A.shape[1] * LANES
    q = b * w + b * LANES
    for i in range(a, a + TILE):
        p = i * w + b * LANES
        for j in range(TILE):
            s = load(A, p + j * LANES)
            for c in range(j):
                s = minus_product(s, load(A, p + c * LANES), load(A, q + j * w + c * LANES))
            store(A, p + j * LANES, product(s, load(A, q + j * w + j * LANES)))


@kernel(inner=True)
def _factor_tile(A, a, floor):
    """Factor the tile at (a, a), after elimination.

    A pivot that rounding has pushed to zero or below is clamped to the rounding error of its
    diagonal entry: such a direction is known to all its digits already.
    """
    w = A.shape[1] * LANES
    d = a * (w + LANES)
    for j in range(TILE):
        r = d + j * w
        p = load(A, r + j * LANES)
        for c in range(j):
            x = load(A, r + c * LANES)
            p = minus_product(p, x, x)
        inverse = inverse_root(clamped_below(p, load(floor, (a + j) * LANES)))
        store(A, r + j * LANES, inverse)
        for i in range(j + 1, TILE):
            e = d + i * w
            s = load(A, e + j * LANES)
            for c in range(j):
                s = minus_product(s, load(A, e + c * LANES), load(A, r + c * LANES))
            store(A, e + j * LANES, product(s, inverse))


@kernel
def cholesky(A, floor):
    """Replace A (size, size, LANES) by its lower Cholesky factors, the diagonal inverted.

    ``floor`` (size, LANES) is there to work in.
    """
    size = A.shape[0]
    for k in range(size):
        diagonal = load(A, k * (size + 1) * LANES)
        store(floor, k * LANES, clamped_below(product(splat(1e-15), diagonal), splat(1e-300)))
    for a in range(0, size, TILE):
        for b in range(0, a, TILE):
            _eliminate(A, a, b)
            _solve_tile(A, a, b)
        _eliminate(A, a, a)
        _factor_tile(A, a, floor)


@kernel(inner=True)
def _forward(L, rhs):
    """Replace rhs by L^-1 rhs."""
    w = L.shape[1] * LANES
    for j in range(0, L.shape[0], TILE):
        r, e = j * w, j * LANES
        s0, s1, s2, s3 = load_four(rhs, e)
        for c in range(0, e, LANES):
            x = load(rhs, c)
            s0 = minus_product(s0, load(L, r + c), x)
            s1 = minus_product(s1, load(L, r + w + c), x)
            s2 = minus_product(s2, load(L, r + 2 * w + c), x)
            s3 = minus_product(s3, load(L, r + 3 * w + c), x)
        d = r + e
        s0 = product(s0, load(L, d))
        d += w
        s1 = product(minus_product(s1, load(L, d), s0), load(L, d + LANES))
        d += w
        s2 = minus_product(minus_product(s2, load(L, d), s0), load(L, d + LANES), s1)
        s2 = product(s2, load(L, d + 2 * LANES))
        d += w
        s3 = minus_product(minus_product(s3, load(L, d), s0), load(L, d + LANES), s1)
        s3 = product(minus_product(s3, load(L, d + 2 * LANES), s2), load(L, d + 3 * LANES))
        store_four(rhs, e, s0, s1, s2, s3)


@kernel(inner=True)
def _backward(L, rhs):
    """Replace rhs by L^-T rhs."""
    size, w = L.shape[0], L.shape[1] * LANES
    for j in range(size - TILE, -1, -TILE):
        e = j * LANES
        s0, s1, s2, s3 = load_four(rhs, e)
        for c in range(j + TILE, size):
            x, p = load(rhs, c * LANES), c * w + e
            s0 = minus_product(s0, load(L, p), x)
            s1 = minus_product(s1, load(L, p + LANES), x)
            s2 = minus_product(s2, load(L, p + 2 * LANES), x)
            s3 = minus_product(s3, load(L, p + 3 * LANES), x)
        d = (j + 3) * w + e
        s3 = product(s3, load(L, d + 3 * LANES))
        s2 = minus_product(s2, load(L, d + 2 * LANES), s3)
        s1 = minus_product(s1, load(L, d + LANES), s3)
        s0 = minus_product(s0, load(L, d), s3)
        d -= w
        s2 = product(s2, load(L, d + 2 * LANES))
        s1 = minus_product(s1, load(L, d + LANES), s2)
        s0 = minus_product(s0, load(L, d), s2)
        d -= w
        s1 = product(s1, load(L, d + LANES))
        s0 = minus_product(s0, load(L, d), s1)
        s0 = product(s0, load(L, d - w))
        store_four(rhs, e, s0, s1, s2, s3)


@kernel
def solve_and_draw(L, rhs, z, spread):
    """Replace rhs by A^-1 rhs + spread * L^-T z, given the factors of ``cholesky``."""
    _forward(L, rhs)
    for j in range(0, rhs.size, LANES):
        store(rhs, j, plus_product(load(rhs, j), splat(spread), load(z, j)))
    _backward(L, rhs)


@kernel
def factor_one(A, inverse):
    """Factor A = R^T R (K, whole vectors, zeros at the end): A becomes R but for its diagonal.

    ``inverse`` (K,) takes one over the diagonal, and A has zeros there and before it in the same
    vector. The upper triangle is read; pivots are clamped as in ``cholesky``.
    """
    K, w = A.shape
    for k in range(K):
        inverse[k] = max(1e-15 * A[k, k], 1e-300)
    for j in range(K):
        first, p = j // LANES * LANES, j * w
        inverse[j] = 1.0 / math.sqrt(inverse[j] if inverse[j] > A[j, j] else A[j, j])
        A[j, first : j + 1] = 0.0
        for b in range(first, w, LANES):
            store(A, p + b, product(splat(inverse[j]), load(A, p + b)))
        for i in range(j + 1, K):
            c, q = splat(A[j, i]), i * w
            for b in range(i // LANES * LANES, w, LANES):
                store(A, q + b, minus_product(load(A, q + b), c, load(A, p + b)))


@kernel
def solve_one(R, inverse, rhs, z, spread):
    """Replace rhs by A^-1 rhs + spread * R^-1 z, given what ``factor_one`` left; whole vectors."""
    K, w = R.shape
    for j in range(K):
        rhs[j] *= inverse[j]
        c = splat(rhs[j])
        for b in range(j // LANES * LANES, w, LANES):
            store(rhs, b, minus_product(load(rhs, b), c, load(R, j * w + b)))
    for j in range(K - 1, -1, -1):
        s = splat(0.0)
        for b in range(j // LANES * LANES, w, LANES):
            s = plus_product(s, load(R, j * w + b), load(rhs, b))
        rhs[j] = (rhs[j] + spread * z[j] - total(s)) * inverse[j]
