"""Products of a design (n, r) with a narrow matrix, and of its transpose.

Both go by the rows of the design, whose numbers lie side by side: a vector holds some columns of
one row. A tile of sums stays in registers while terms go by. The narrow matrix, and the result of
the second product, are `padded`, so that a vector which begins in one row of the design may end in
the next: what it brings from there meets zeros, or goes into sums that nobody reads. The last rows
have none after them, and go number by number. A sparse design has its own kernel, and as its
transpose it is laid out by rows, too.
"""

from __future__ import annotations

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.vectors import (
    LANES,
    aligned_zeros,
    at,
    load,
    load_four,
    plus_product,
    splat,
    store,
    store_four,
    total,
)

TILE = 4
WIDE = TILE * LANES  # columns of the design in a tile of `sum_columns`
_ROWS = 64  # of the design that `sum_columns` takes at a time: with them its tiles stay close by


def padded(A, rows, columns):
    """A with zeros after its last row and column, up to multiples of these numbers."""
    n, m = A.shape
    out = aligned_zeros(-(-n // rows) * rows, -(-m // columns) * columns)
    out[:n, :m] = A
    return out


@kernel(inner=True)
def _four(s0, s1, s2, s3, x, y0, y1, y2, y3):
    """Add x times each of four vectors to four sums."""
    return (
        plus_product(s0, x, y0),
        plus_product(s1, x, y1),
        plus_product(s2, x, y2),
        plus_product(s3, x, y3),
    )


@kernel(inner=True)
def _totals(out, p, s0, s1, s2, s3):
    """Write the totals of four vectors."""
    out[p], out[p + 1], out[p + 2], out[p + 3] = total(s0), total(s1), total(s2), total(s3)


@kernel(inner=True)
def _row_tile(A, B, p, k, tile):
    """Products of four rows of A from the number p on with four rows of B from k on."""
    r, w = A.shape[1], B.shape[1]
    q = k * w
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = splat(0.0)
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = splat(0.0)
    for _ in range(0, w, LANES):
        y0, y1, y2, y3 = load(B, q), load(B, q + w), load(B, q + 2 * w), load(B, q + 3 * w)
        s00, s01, s02, s03 = _four(s00, s01, s02, s03, load(A, p), y0, y1, y2, y3)
        s10, s11, s12, s13 = _four(s10, s11, s12, s13, load(A, p + r), y0, y1, y2, y3)
        s20, s21, s22, s23 = _four(s20, s21, s22, s23, load(A, p + 2 * r), y0, y1, y2, y3)
        s30, s31, s32, s33 = _four(s30, s31, s32, s33, load(A, p + 3 * r), y0, y1, y2, y3)
        p += LANES
        q += LANES
    _totals(tile, 0, s00, s01, s02, s03)
    _totals(tile, 4, s10, s11, s12, s13)
    _totals(tile, 8, s20, s21, s22, s23)
    _totals(tile, 12, s30, s31, s32, s33)


@kernel
def sum_rows(start, stop, A, B, out):
    """Set rows start..stop of out (n, K) to A B^T; B (K, r) is padded to tiles and vectors."""
    r, K = A.shape[1], out.shape[1]
    tile = np.empty(TILE * TILE)
    inside = (A.size - B.shape[1]) // r + 1  # rows that have enough numbers after them
    tiles = start + max(0, min(stop, inside) - start) // TILE * TILE
    for i in range(start, tiles, TILE):
        for k in range(0, K, TILE):
            _row_tile(A, B, i * r, k, tile)
            for a in range(TILE):
                for b in range(min(TILE, K - k)):
                    out[i + a, k + b] = tile[TILE * a + b]
    for i in range(tiles, stop):
        for k in range(K):
            s = 0.0
            for j in range(r):
                s += A[i, j] * B[k, j]
            out[i, k] = s


@kernel(inner=True)
def _column_tile(A, B, first, last, j, k, out):
    """Add A^T B over rows first..last to four vectors of columns and four rows of out."""
    r, w = A.shape[1], B.shape[1]
    q, m = k * out.shape[1] + j, out.shape[1]
    s00, s01, s02, s03 = load_four(out, q)
    s10, s11, s12, s13 = load_four(out, q + m)
    s20, s21, s22, s23 = load_four(out, q + 2 * m)
    s30, s31, s32, s33 = load_four(out, q + 3 * m)
    p, e = first * r + j, first * w + k
    for _ in range(first, last):
        x0, x1, x2, x3 = load_four(A, p)
        s00, s01, s02, s03 = _four(s00, s01, s02, s03, splat(at(B, e)), x0, x1, x2, x3)
        s10, s11, s12, s13 = _four(s10, s11, s12, s13, splat(at(B, e + 1)), x0, x1, x2, x3)
        s20, s21, s22, s23 = _four(s20, s21, s22, s23, splat(at(B, e + 2)), x0, x1, x2, x3)
        s30, s31, s32, s33 = _four(s30, s31, s32, s33, splat(at(B, e + 3)), x0, x1, x2, x3)
        p += r
        e += w
    store_four(out, q, s00, s01, s02, s03)
    store_four(out, q + m, s10, s11, s12, s13)
    store_four(out, q + 2 * m, s20, s21, s22, s23)
    store_four(out, q + 3 * m, s30, s31, s32, s33)


@kernel
def sum_columns(start, stop, A, B, out):
    """Add B^T A to columns start..stop, whole tiles, of out (K, r).

    B (n, K) is padded to tiles of columns, and out to tiles of either.
    """
    n, r = A.shape
    inside = max(0, (A.size - out.shape[1]) // r + 1)
    for first in range(0, inside, _ROWS):
        last = min(first + _ROWS, inside)
        for j in range(start, stop, WIDE):
            for k in range(0, B.shape[1], TILE):
                _column_tile(A, B, first, last, j, k, out)
    for i in range(inside, n):
        for k in range(B.shape[1]):
            for j in range(start, min(stop, r)):
                out[k, j] += B[i, k] * A[i, j]


@kernel(inner=True)
def _three_vectors(indices, values, first, last, B, b, q, out):
    """Set three vectors of out, from its q-th number on, to sums of rows of B from column b on."""
    w = B.shape[1]
    s0 = s1 = s2 = splat(0.0)
    for t in range(first, last):
        x, p = splat(at(values, t)), at(indices, t) * w + b
        s0 = plus_product(s0, x, load(B, p))
        s1 = plus_product(s1, x, load(B, p + LANES))
        s2 = plus_product(s2, x, load(B, p + 2 * LANES))
    store(out, q, s0)
    store(out, q + LANES, s1)
    store(out, q + 2 * LANES, s2)


@kernel(inner=True)
def _one_vector(indices, values, first, last, B, b, q, out):
    """The same of one vector."""
    s, w = splat(0.0), B.shape[1]
    for t in range(first, last):
        s = plus_product(s, splat(at(values, t)), load(B, at(indices, t) * w + b))
    store(out, q, s)


@kernel
def sum_sparse(start, stop, indptr, indices, values, B, out):
    """Set rows start..stop of out to those of a sparse matrix times B; both have whole vectors."""
    w = B.shape[1]
    threes = w // (3 * LANES) * 3 * LANES
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        for b in range(0, threes, 3 * LANES):
            _three_vectors(indices, values, first, last, B, b, i * w + b, out)
        for b in range(threes, w, LANES):
            _one_vector(indices, values, first, last, B, b, i * w + b, out)
