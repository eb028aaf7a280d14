"""Rows of large counts drawn whole: a normal surrogate proposes, the Poisson law decides.

About the fit that least squares find for a row, its log density sum r log(v^T x) - theta v^T x is
nearly quadratic where counts are large: there a row moves under a surrogate
exp(h^T x - x^T A x / 2) between the walls at zero, which leaves the surrogate unchanged and can be
reversed. The new row is accepted with the ratio of density to surrogate (the surrogate
transition method; Liu, 2001). The surrogate follows from the data and the other side alone, never
from the present row.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.cells import longest_row
from bayesmf.kernels.compile import kernel
from bayesmf.kernels.linalg import TILE, factor_one, padded, project, solve_one, sum_gram
from bayesmf.kernels.nonnegative import PASSES, draw_entry, subtract_row
from bayesmf.kernels.random import exponential, seed_stream
from bayesmf.kernels.vectors import LANES, at, load, plus_product, product, splat, store, total
from bayesmf.kernels.walls import move_row, single_workspace

_PASSES = 10  # of a search for the mode


@kernel
def gather_factors(V, indices, first, last, F):
    """Set the rows of F to those of V that the entries first..last meet; whole vectors."""
    w = V.shape[1]
    for t in range(first, last):
        p, q = (t - first) * w, at(indices, t) * w
        for b in range(0, w, LANES):
            store(F, p + b, load(V, q + b))


@kernel
def set_fit(F, n, x, m):
    """Set m[t] to the product of row t of F and x; whole vectors."""
    w = F.shape[1]
    for t in range(n):
        s = splat(0.0)
        for b in range(0, w, LANES):
            s = plus_product(s, load(F, t * w + b), load(x, b))
        m[t] = total(s)


@kernel
def set_quadratic(F, n, weights, slopes, rate, order, scaled, G, A, diagonal, h):
    """Set A and its diagonal, apart, to the sum of weight f f^T, and h to that of slope f - rate.

    ``scaled`` and G are there to work in.
    """
    K, w = diagonal.shape[0], F.shape[1]
    for t in range(n):
        root = splat(math.sqrt(weights[t]))
        for b in range(0, w, LANES):
            store(scaled, t * w + b, product(root, load(F, t * w + b)))
    sum_gram(scaled, order, 0, n, G)
    project(F, order, slopes, 0, n, h)
    for a in range(K):
        h[a] -= rate[a]
        diagonal[a] = G[a, a]
        for c in range(a):
            A[a, c] = A[c, a] = G[a, c]


@kernel
def _solve_above_zero(x, A, diagonal, h, R, inverse):
    """Set x to the positive part of A^-1 h; ``R`` and ``inverse`` are there to work in."""
    K = diagonal.shape[0]
    R[:] = A
    for k in range(K):
        R[k, k] = diagonal[k]
    factor_one(R, inverse)
    x[:] = h
    solve_one(R, inverse, x, x, 0.0)
    for k in range(K):
        x[k] = max(x[k], 0.0)


@kernel
def _descend(x, A, diagonal, linear, passes):
    """Move x >= 0 towards the mode, entry by entry; the linear term becomes linear - A x."""
    K = diagonal.shape[0]
    for k in range(K):
        subtract_row(x[k], A, k, linear)
    for _ in range(passes):
        for k in range(K):
            new = max(linear[k], 0.0) / diagonal[k] if diagonal[k] > 0.0 else 0.0
            subtract_row(new - x[k], A, k, linear)
            x[k] = new


@kernel
def set_surrogate(F, n, counts, exposures, rate, steps, work, order, scaled, G, A, diagonal, h):
    """Set the surrogate's A (its diagonal apart) and h from the counts of a row.

    A least-squares fit comes first, then ``steps`` of Newton's method, the last of which makes the
    surrogate. ``work`` (3, n) is there to work in.
    """
    m, weights, slopes = work[0], work[1], work[2]
    sum_r, sum_e = 1.0, 1.0
    for t in range(n):
        sum_r += counts[t]
        sum_e += exposures[t]
    mean = sum_r / sum_e
    for t in range(n):
        weights[t], slopes[t] = exposures[t] / mean, counts[t] / mean
    set_quadratic(F, n, weights, slopes, rate, order, scaled, G, A, diagonal, h)
    x, inverse = np.zeros(h.shape[0]), np.zeros(diagonal.shape[0])
    for _ in range(steps):
        _solve_above_zero(x, A, diagonal, h, G[: inverse.size], inverse)
        _descend(x, A, diagonal, h, _PASSES)
        set_fit(F, n, x, m)
        for t in range(n):
            fit = max(m[t], 0.2 * mean, 0.02 * counts[t])  # no weight beyond all bounds
            weights[t], slopes[t] = counts[t] / (fit * fit), 2.0 * counts[t] / fit - exposures[t]
        set_quadratic(F, n, weights, slopes, rate, order, scaled, G, A, diagonal, h)


@kernel
def log_density_gain(F, n, counts, exposures, shape, rate, x, y, work):
    """Return by how much the log density of a row grows from x to y; NaN if y has a zero."""
    K = shape.shape[0]
    set_fit(F, n, x, work[0])
    set_fit(F, n, y, work[1])
    gain = 0.0
    for k in range(K):
        if y[k] <= 0.0:
            return np.nan
        gain -= rate[k] * (y[k] - x[k])
        if shape[k] != 1.0:
            gain += (shape[k] - 1.0) * (math.log(y[k]) - math.log(x[k]))
    for t in range(n):
        gain -= exposures[t] * (work[1, t] - work[0, t])
        if counts[t] > 0.0:
            gain += counts[t] * math.log(work[1, t] / work[0, t])
    return gain


@kernel
def _half_form(x, diagonal, h, linear):
    """Return h^T x - x^T A x / 2, given linear = h - A x without the diagonal of A."""
    value = 0.0
    for k in range(diagonal.shape[0]):
        value += 0.5 * x[k] * (h[k] + linear[k] - diagonal[k] * x[k])
    return value


@kernel
def propose(s, Y, A, diagonal, h, linear, time, work):
    """Move the row of Y (1, whole vectors) so that the surrogate stays; return its log gain.

    The move is reversible: between the walls at zero, or, where that is no good, by passes over the
    entries, forwards and backwards by turns. ``linear`` is there to work in.
    """
    K, x = diagonal.shape[0], Y[0]
    linear[:] = h
    for k in range(K):
        subtract_row(x[k], A, k, linear)
    before = _half_form(x, diagonal, h, linear)
    for k in range(K):
        A[k, k] = diagonal[k]
    moved = move_row(s, 0, Y, A, h, 1.0, time, work)
    for k in range(K):
        A[k, k] = 0.0
    if moved:
        linear[:] = h
        for k in range(K):
            subtract_row(x[k], A, k, linear)
        return _half_form(x, diagonal, h, linear) - before
    for turn in range(PASSES):
        for step in range(K):
            k = K - 1 - step if turn % 2 == 1 else step
            new = draw_entry(s, math.sqrt(diagonal[k]), linear[k], 1.0)
            subtract_row(new - x[k], A, k, linear)
            x[k] = new
    return _half_form(x, diagonal, h, linear) - before


@kernel
def draw_count_rows(
    start, stop, key, U, V, indptr, indices, values, exposures, shape, rate, steps, time
):
    """Draw rows start..stop of U (n, K) in place, each accepted or left as it was.

    shape and rate (1 or n, K) are those of the gamma prior; ``exposures`` (N,) of the entries may
    be None. V has rows of whole vectors. Proposals move for a ``time`` between walls.
    """
    K, w = U.shape[1], V.shape[1]
    longest = longest_row(start, stop, indptr)
    F, scaled = np.empty((longest, w)), np.empty((longest, w))
    order, ones = np.arange(longest).astype(np.int32), np.ones(longest)
    work = np.empty((3, longest))
    G, A = np.zeros((padded(K, TILE), w)), np.zeros((K, w))
    diagonal, h, linear, x, Y = np.zeros(K), np.zeros(w), np.zeros(w), np.zeros(w), np.zeros((1, w))
    y, motion = Y[0], single_workspace(K)
    s = np.empty(4, np.uint64)
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        n, counts = last - first, values[first:last]
        theta = ones[:n] if exposures is None else exposures[first:last]
        a = shape[i if shape.shape[0] > 1 else 0]
        b = rate[i if rate.shape[0] > 1 else 0]
        gather_factors(V, indices, first, last, F)
        set_surrogate(F, n, counts, theta, b, steps, work, order, scaled, G, A, diagonal, h)
        for k in range(K):
            x[k] = y[k] = U[i, k]
        seed_stream(key, i, s)
        surrogate = propose(s, Y, A, diagonal, h, linear, time, motion)
        gain = log_density_gain(F, n, counts, theta, a, b, x, y, work)
        if gain - surrogate >= -exponential(s):  # never if it is not a number
            for k in range(K):
                U[i, k] = y[k]
