"""Counts: split every observed count over the factors, keep only the two sums.

Z_ij. ~ Multinomial(R_ij, U_ik V_jk / sum) is drawn, added to the sums over j and over i, and
forgotten. A count of zero has nothing to split.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf._jit import kernel
from bayesmf.kernels.random import seed_stream, uniform
from bayesmf.kernels.special import binomial


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
def _split_small(s, count, w, K, cumulative, row_sum, col_sum):
    """Throw a small count's units one by one: the category is the number of bounds passed."""
    total = 0.0
    for k in range(K):
        total += w[k]
        cumulative[k] = total
    for _ in range(count):
        u = uniform(s) * total
        category = 0
        for k in range(K - 1):
            category += 1 if cumulative[k] < u else 0
        row_sum[category] += 1.0
        col_sum[category] += 1.0


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
    work = np.empty(K)
    s = np.empty(4, np.uint64)
    for i in range(start, stop):
        seed_stream(key, i, s)
        u = U[i]
        row_sum = row_sums[i]
        for t in range(indptr[i], indptr[i + 1]):
            count = np.int64(values[t])
            if count == 0:
                continue
            j = indices[t]
            if K == 1:
                row_sum[0] += count
                col_sums[j, 0] += count
                continue
            _weights(u, V[j], K, w)
            if count <= 6 * K:  # where K binomials cost as much as count throws
                _split_small(s, count, w, K, work, row_sum, col_sums[j])
            else:
                _split_large(s, count, w, K, work, row_sum, col_sums[j])


@kernel
def sum_factors(start, stop, indptr, indices, F, out):
    """Set out[i] to the sum of F over the observed entries of row i."""
    K = F.shape[1]
    for i in range(start, stop):
        total = out[i]
        total[:] = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            f = F[indices[t]]
            for k in range(K):
                total[k] += f[k]


@kernel(reassociate=True)
def multiplicative_update(start, stop, indptr, indices, values, X, F, smallest):
    """Lee and Seung's update of rows start..stop of X for the KL objective over observed entries.

    x_k is multiplied by sum_j (r_j / fit_j) f_jk / sum_j f_jk. Fits and sums below ``smallest`` are
    taken as ``smallest``, so that 0 / 0 is never formed; a row without entries stays as it is.
    """
    K = X.shape[1]
    up = np.empty(K)
    down = np.empty(K)
    for i in range(start, stop):
        if indptr[i] == indptr[i + 1]:
            continue
        up[:] = 0.0
        down[:] = 0.0
        x = X[i]
        for t in range(indptr[i], indptr[i + 1]):
            f = F[indices[t]]
            fit = 0.0
            for k in range(K):
                fit += x[k] * f[k]
            ratio = values[t] / max(fit, smallest)
            for k in range(K):
                up[k] += ratio * f[k]
                down[k] += f[k]
        for k in range(K):
            x[k] *= up[k] / max(down[k], smallest)
