"""Whole rows at once: u_i ~ N(A^-1 b, A^-1), A = prior precision + tau * Gram matrix.

Two steps. A Gram step reduces the data of a row to G = sum f f^T and g = sum r f over its observed
entries, f being the other side's factors. A draw step adds the prior and draws. G is stored as the
packed lower triangle, row by row: K (K + 1) / 2 numbers. V always has rows of whole vectors,
padded with zeros.

The noise precision of row i is tau, times ``own`` (n,) of it. Weights of columns are in V already,
as square roots; ``scale`` (m,) holds these roots, by which values are to be multiplied. ``weights``
(N,) are those of single entries. Each of the three may be None, and no code is compiled for it.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.cells import longest_row, row_precision
from bayesmf.kernels.compile import kernel
from bayesmf.kernels.linalg import (
    TILE,
    cholesky,
    clear_padding,
    padded,
    project,
    solve_and_draw,
    sum_gram,
    workspace,
)
from bayesmf.kernels.nonnegative import draw_unfit
from bayesmf.kernels.prefetch import NEAR, prefetch_row
from bayesmf.kernels.random import normal, seed_stream
from bayesmf.kernels.vectors import (
    LANES,
    at,
    gather,
    load,
    plus_product,
    product,
    splat,
    store,
    total,
)
from bayesmf.kernels.walls import measure, motion_workspace, move_rows, prepare_motion

NO_LOSS = 1e-4  # of the sum of squares: a squared error above this keeps eleven digits


@kernel(inner=True)
def _enough_left(full, A, K):
    """Whether full - A keeps so much of every diagonal entry that rounding errors do not grow."""
    enough = True
    for k in range(K):
        enough = enough and full[k, k] - A[k, k] >= 0.1 * full[k, k]
    return enough


@kernel
def _gram_row(i, K, V, indptr, indices, missing_indptr, missing, full, A):
    """Set A to the sum of f f^T over the entries of row i, or over its missing ones (True).

    The full Gram matrix, over all rows of V, less the sum over missing entries is the row's own,
    with less work if they are few. ``full`` is empty where that is never worth while.
    """
    first, last = indptr[i], indptr[i + 1]
    if full.size > 0:
        begin, end = missing_indptr[i], missing_indptr[i + 1]
        if end - begin < last - first:
            sum_gram(V, missing, begin, end, A)
            if _enough_left(full, A, K):
                return True
    sum_gram(V, indices, first, last, A)
    return False


@kernel
def weigh_row(V, indices, values, scale, weights, first, last, F, y):
    """Set y to the values of the entries first..last times the roots of their weights.

    And F to the rows of V that they meet, times the roots of what V has not got in it already, if
    entries have weights.
    """
    w = V.shape[1]
    if V.size > NEAR:
        for t in range(first, last):
            prefetch_row(V, indices, t)
    for u in range(last - first):
        root = 1.0
        if scale is not None:
            root = at(scale, at(indices, first + u))
        if weights is not None:
            root *= math.sqrt(at(weights, first + u))
        y[u] = root * at(values, first + u)
    if weights is not None:
        for t in range(first, last):
            root, p, q = math.sqrt(at(weights, t)), (t - first) * w, at(indices, t) * w
            for b in range(0, w, LANES):
                store(F, p + b, product(splat(root), load(V, q + b)))


@kernel
def weighted_sums(
    i, K, V, indptr, indices, values, scale, weights, missing_indptr, missing, full, order, F, y,
    A, g,
):  # fmt: skip
    """Gram step of one row with weights into A and g; returns as `_gram_row` does."""
    first, last = indptr[i], indptr[i + 1]
    weigh_row(V, indices, values, scale, weights, first, last, F, y)
    if weights is not None:
        project(F, order, y, 0, last - first, g)
        sum_gram(F, order, 0, last - first, A)
        return False
    project(V, indices[first:last], y, 0, last - first, g)
    if full.size > 0 and missing.size == 0:
        return True  # the matrix is complete: A stays zero
    return _gram_row(i, K, V, indptr, indices, missing_indptr, missing, full, A)


@kernel
def row_buffers(start, stop, indptr, V, weights):
    """Arrays for the weighted entries of any of the rows start..stop: positions, factors, values.

    The first two are empty where entries have no weights of their own.
    """
    longest = longest_row(start, stop, indptr)
    rows = 0 if weights is None else longest
    return np.arange(rows).astype(np.int32), np.empty((rows, V.shape[1])), np.empty(longest)


@kernel
def gram_rows(
    start, stop, V, indptr, indices, values, scale, weights, missing_indptr, missing, full,
    packed, rhs, A, g,
):  # fmt: skip
    """Gram step for the rows start..stop into packed[i - start] and rhs[i - start].

    The last two arguments are a Gram matrix and a vector of the ``row_workspace``.
    """
    K = rhs.shape[1]
    if scale is not None or weights is not None:
        order, F, y = row_buffers(start, stop, indptr, V, weights)
    complete = full.size > 0 and missing.size == 0
    if complete:
        A[:] = 0.0
    for i in range(start, stop):
        if scale is None and weights is None:
            project(V, indices, values, indptr[i], indptr[i + 1], g)
            flipped = complete or _gram_row(
                i, K, V, indptr, indices, missing_indptr, missing, full, A
            )
        else:
            flipped = weighted_sums(
                i, K, V, indptr, indices, values, scale, weights, missing_indptr, missing, full,
                order, F, y, A, g,
            )  # fmt: skip
        position = 0
        for a in range(K):
            rhs[i - start, a] = g[a]
            for b in range(a + 1):
                packed[i - start, position] = full[a, b] - A[a, b] if flipped else A[a, b]
                position += 1


@kernel
def _assemble(G, weight, full, full_weight, precision, A):
    """Set A, lane by lane, to precision + weight * G + full_weight * full."""
    K, w = precision.shape[0], G.shape[2]
    c, d = load(weight, 0), load(full_weight, 0)
    for a in range(K):
        for b in range(a + 1):
            x = plus_product(splat(precision[a, b]), c, gather(G, a * w + b, G.shape[1] * w))
            if full.shape[0] > 0:
                x = plus_product(x, d, splat(full[a, b]))
            store(A, (a * A.shape[1] + b) * LANES, x)
    clear_padding(A, K)


def row_workspace(K):
    """Return what ``draw_rows`` works in: too large to ask the system for it again and again."""
    w = padded.py_func(K, LANES)
    # One Gram matrix for each lane, and a row more: they begin at different places of the cache.
    G, g = np.zeros((LANES, padded.py_func(K, TILE) + 1, w)), np.zeros((LANES, w))
    return *workspace(K), G, g, np.zeros((2, LANES)), np.zeros(4, np.uint64)


@kernel
def squared_errors(start, stop, indptr, indices, values, scale, weights, U, V, out):
    """Set out[i] to the sum of squared residuals of row i, times their weights if there are any.

    V has rows of whole vectors.
    """
    K, w, far = U.shape[1], V.shape[1], V.size > NEAR
    x = np.zeros(w)
    for i in range(start, stop):
        for k in range(K):
            x[k] = U[i, k]
        square = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            if far:
                prefetch_row(V, indices, t)
            q = at(indices, t) * w
            fit = splat(0.0)
            for b in range(0, w, LANES):
                fit = plus_product(fit, load(x, b), load(V, q + b))
            residual = at(values, t) - total(fit)
            if scale is not None:
                residual = at(values, t) * scale[indices[t]] - total(fit)
            if weights is None:
                square += residual * residual
            else:
                square += weights[t] * residual * residual
        out[i] = square


@kernel
def fit_entries(start, stop, indptr, indices, U, V, out):
    """Set out[t] to u_i . v_j for the entries of rows start..stop; V has rows of whole vectors."""
    K, w, far = U.shape[1], V.shape[1], V.size > NEAR
    x = np.zeros(w)
    for i in range(start, stop):
        for k in range(K):
            x[k] = U[i, k]
        for t in range(indptr[i], indptr[i + 1]):
            if far:
                prefetch_row(V, indices, t)
            q = at(indices, t) * w
            fit = splat(0.0)
            for b in range(0, w, LANES):
                fit = plus_product(fit, load(x, b), load(V, q + b))
            out[t] = total(fit)


@kernel(reassociate=True)
def _dot(x, y, first, last):
    total = 0.0
    for t in range(first, last):
        total += x[t] * y[t]
    return total


@kernel
def _quadratic(S, x):
    """Return x^T S x from the lower triangle of S."""
    value = 0.0
    for a in range(x.shape[0]):
        value += x[a] * (2.0 * _dot(S[a], x, 0, a) + S[a, a] * x[a])
    return value


# How often an entry of the lower triangle counts, by its row and column within a vector.
_TIMES = 2.0 * np.tril(np.ones((LANES, LANES)), -1) + np.eye(LANES)


@kernel
def _weighted_quadratic(full, full_weight, G, weight, x, K):
    """Return x^T (full_weight full + weight G) x from lower triangles; x has whole vectors."""
    w, both, s = G.shape[1], full.size > 0, splat(0.0)
    for a in range(K):
        p, last = a * w, a - a % LANES
        c, d = splat(weight * x[a]), splat(full_weight * x[a])
        for b in range(0, last + 1, LANES):
            y = product(load(x, b), splat(2.0))
            if b == last:
                y = product(load(x, b), load(_TIMES, (a - last) * LANES))
            s = plus_product(s, c, product(load(G, p + b), y))
            if both:
                s = plus_product(s, d, product(load(full, p + b), y))
    return total(s)


@kernel
def draw_rows(
    start, stop, key, U, V, indptr, indices, values, scale, weights, missing_indptr, missing, full,
    tau, own, precision, diagonal, linear, stay, spread, walls, errors, A, solution, z, floor, G, g,
    sums, s,
):  # fmt: skip
    """Gram step and draw step for rows start..stop of U (n, K), in place, `LANES` rows at a time.

    The prior adds ``precision`` (K, K), ``diagonal`` (1 or n, K) and ``linear`` (1 or n, K). A row
    becomes ``stay`` times itself plus (1 - stay) times its mean plus ``spread`` times its noise.
    If ``walls`` is not None, entries are nonnegative, and a row goes there as in ``walls``.
    ``errors`` (n,), if not empty, takes the ``squared_errors`` of the new rows: from the Gram step,
    unless they are so small that digits would be lost. The last eight arguments are the
    ``row_workspace``. All are flat: Numba takes twice as long to unpack named tuples.
    """
    K = U.shape[1]
    weight, full_weight = sums[0], sums[1]
    complete = full.size > 0 and missing.size == 0
    if scale is not None or weights is not None:
        order, F, y = row_buffers(start, stop, indptr, V, weights)
        squares = np.zeros(LANES)
    if own is not None:
        padded_x = np.zeros(V.shape[1])
    if walls is not None:
        S, x, v, mean, state = motion_workspace(K)
    new = 1.0 - stay if walls is None else 1.0
    if complete:
        G[:] = 0.0
    for i in range(start, stop, LANES):
        rows = min(LANES, stop - i)
        solution[K:] = (
            0.0  # padding, which a row that left the range of doubles would spoil for others
        )
        for lane in range(rows):
            row = i + lane
            noise = row_precision(tau, own, row)
            if scale is None and weights is None:
                project(V, indices, values, indptr[row], indptr[row + 1], g[lane])
                flipped = complete or _gram_row(
                    row, K, V, indptr, indices, missing_indptr, missing, full, G[lane]
                )
            else:
                flipped = weighted_sums(
                    row, K, V, indptr, indices, values, scale, weights, missing_indptr, missing,
                    full, order, F, y, G[lane], g[lane],
                )  # fmt: skip
                squares[lane] = _dot(y, y, 0, indptr[row + 1] - indptr[row])
            weight[lane], full_weight[lane] = (-noise, noise) if flipped else (noise, 0.0)
            p = row if linear.shape[0] > 1 else 0
            seed_stream(key, row, s)
            for k in range(K):
                solution[k, lane] = new * (linear[p, k] + noise * g[lane, k])
                z[k, lane] = normal(s)
        shared = complete and diagonal.shape[0] == 1 and own is None
        if i == start or not shared:
            _assemble(G, weight, full, full_weight, precision, A)
            for lane in range(LANES):
                p = min(i + lane, diagonal.shape[0] - 1)
                for k in range(K):
                    A[k, k, lane] += diagonal[p, k]
            if walls is not None:
                measure(A, K, state)
            cholesky(A, floor)
            if walls is not None:
                prepare_motion(A, floor, S, state)
        if walls is None:
            solve_and_draw(A, solution, z, spread)
            for lane in range(rows):
                for k in range(K):
                    U[i + lane, k] = stay * U[i + lane, k] + solution[k, lane]
        else:
            time = spread / (1.0 + stay)
            move_rows(i, rows, U, A, solution, z, 1.0, time, S, x, v, mean, state)
            draw_unfit(
                i, rows, key, U, state[0], solution, precision, diagonal, weight, G, full_weight,
                full, s,
            )  # fmt: skip
        for lane in range(rows):
            row = i + lane
            if errors.size > 0:
                if scale is None and weights is None:
                    square = _dot(values, values, indptr[row], indptr[row + 1])
                else:
                    square = squares[lane]
                if own is None:
                    fitted = full_weight[lane] * _quadratic(full, U[row]) if full.size > 0 else 0.0
                    fitted += weight[lane] * _quadratic(G[lane], U[row])
                else:
                    padded_x[:K] = U[row]
                    fitted = _weighted_quadratic(
                        full, full_weight[lane], G[lane], weight[lane], padded_x, K
                    )
                noise = row_precision(tau, own, row)
                errors[row] = square - 2.0 * _dot(g[lane], U[row], 0, K) + fitted / noise
                if not errors[row] > NO_LOSS * square:
                    squared_errors(
                        row, row + 1, indptr, indices, values, scale, weights, U, V, errors
                    )
