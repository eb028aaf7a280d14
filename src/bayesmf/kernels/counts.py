"""Counts: split every observed count over the factors, keep only the two sums.

Z_ij. ~ Multinomial(R_ij, U_ik V_jk / sum) is drawn, added to the sums over j and over i, and
forgotten. A count of zero has nothing to split.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.prefetch import NEAR, prefetch_row
from bayesmf.kernels.random import seed_stream, uniform
from bayesmf.kernels.special import binomial
from bayesmf.kernels.vectors import LANES


@kernel
def _weights(u, v, K, w):
    """Set w to the products u v, rescaled where all of them underflow."""
    total = 0.0
    for k in range(K):
        w[k] = u[k] * v[k]
        total += w[k]
    if 1e-290 < total < 1e300:
        return
    top = -np.inf
    for k in range(K):
        w[k] = math.log(u[k]) + math.log(v[k])
        top = max(top, w[k])
    for k in range(K):
        w[k] = math.exp(w[k] - top)


@kernel
def _split_few(s, count, w, K, cumulative, row_sum, col_sum):
    """Split a very small count trial by trial: the factor is the number of bounds passed."""
    total = 0.0
    for k in range(K):
        total += w[k]
        cumulative[k] = total
    for _ in range(count):
        u = uniform(s) * total
        factor = 0
        for k in range(K - 1):
            factor += 1 if cumulative[k] < u else 0
        row_sum[factor] += 1.0
        col_sum[factor] += 1.0


@kernel
def _split_some(s, count, w, K, trials, row_sum, col_sum):
    """Split a small count bound by bound: the number of trials that pass it."""
    total = 0.0
    for k in range(K):
        total += w[k]
    for t in range(count):
        trials[t] = uniform(s) * total
    bound, above = 0.0, np.int64(count)
    for k in range(K - 1):
        bound += w[k]
        passed = np.int64(0)
        for t in range(count):
            passed += np.int64(trials[t] > bound)
        row_sum[k] += above - passed
        col_sum[k] += above - passed
        above = passed
    row_sum[K - 1] += above
    col_sum[K - 1] += above


@kernel
def _split_large(s, count, w, K, tail, row_sum, col_sum):
    """Split a large count by conditional binomials; tails are summed from the end."""
    total = 0.0
    for k in range(K - 1, -1, -1):
        total += w[k]
        tail[k] = total
    left = np.float64(count)
    for k in range(K):
        if left == 0.0:
            return
        part = left if k == K - 1 else binomial(s, left, w[k] / tail[k])
        row_sum[k] += part
        col_sum[k] += part
        left -= part


@kernel
def split_counts(start, stop, key, indptr, indices, values, U, V, row_sums, col_sums):
    """Split the counts of rows start..stop; row_sums (n, K), col_sums (m, K) of this block.

    Both arrays are added to: the caller clears them, gives every block its own col_sums, and adds
    those up. Whole numbers add exactly, so the blocks' number and order do not matter.
    """
    K = U.shape[1]
    w = np.empty(K)
    # Up to here trials are faster than K binomial draws, as measured for K from 3 to 50.
    work, trials = np.empty(K), np.empty(min(20 * K, 200 + 8 * K))
    s = np.empty(4, np.uint64)
    far = V.size > NEAR
    for i in range(start, stop):
        seed_stream(key, i, s)
        u = U[i]
        row_sum = row_sums[i]
        for t in range(indptr[i], indptr[i + 1]):
            if far:
                prefetch_row(V, indices, t)
                prefetch_row(col_sums, indices, t)
            count = np.int64(values[t])
            if count == 0:
                continue
            j = indices[t]
            if K == 1:
                row_sum[0] += count
                col_sums[j, 0] += count
                continue
            _weights(u, V[j], K, w)
            if count <= LANES:
                _split_few(s, count, w, K, work, row_sum, col_sums[j])
            elif count <= trials.shape[0]:
                _split_some(s, count, w, K, trials, row_sum, col_sums[j])
            else:
                _split_large(s, count, w, K, work, row_sum, col_sums[j])


@kernel
def sum_factors(start, stop, indptr, indices, weights, V, out):
    """Set out[i] to the sum of V over the observed entries of row i, weighted unless by None."""
    K, far = V.shape[1], V.size > NEAR
    for i in range(start, stop):
        total = out[i]
        total[:] = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            if far:
                prefetch_row(V, indices, t)
            f = V[indices[t]]
            if weights is None:
                for k in range(K):
                    total[k] += f[k]
            else:
                for k in range(K):
                    total[k] += weights[t] * f[k]
