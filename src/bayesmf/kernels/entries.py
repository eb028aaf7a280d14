"""One entry at a time: x_ik ~ normal or truncated normal on a residual kept for the row.

All factors of a row are drawn while its residual e = r - x F^T stays in the nearest cache. The
residual is rebuilt when the row's turn comes, so nothing drifts and nothing is shared: the cost is
O(observed * K) per half-sweep.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf._jit import kernel
from bayesmf.kernels.linalg import stride
from bayesmf.kernels.random import normal, seed_stream
from bayesmf.kernels.special import truncated_normal


@kernel(reassociate=True)
def _residual(n, x, Ft, weight, e):
    """Subtract the row's fit from e, which holds its observed values; weight is the mask."""
    for k in range(x.shape[0]):
        f = Ft[k]
        c = x[k]
        for t in range(n):
            e[t] -= c * f[t]
    for t in range(n):
        e[t] *= weight[t]


@kernel(reassociate=True)
def _moments(n, f, weight, e):
    """Return sum of w f^2 and sum of e f."""
    d = 0.0
    g = 0.0
    for t in range(n):
        d += weight[t] * f[t] * f[t]
        g += e[t] * f[t]
    return d, g


@kernel
def _row(n, s, x, Ft, weight, e, tau, precision, linear, coupling, nonnegative):
    """Draw all entries of one row x in turn; Ft (K, n) and e are its observed cells."""
    _residual(n, x, Ft, weight, e)
    total = 0.0
    if coupling != 0.0:
        for k in range(x.shape[0]):
            total += x[k]
    for k in range(x.shape[0]):
        f = Ft[k]
        d, g = _moments(n, f, weight, e)
        p = precision[k] + tau * d
        b = linear[k] - coupling * (total - x[k]) + tau * (g + x[k] * d)
        new = truncated_normal(s, p, b) if nonnegative else b / p + normal(s) / math.sqrt(p)
        change = new - x[k]
        for t in range(n):
            e[t] -= change * f[t] * weight[t]
        x[k] = new
        total += change


@kernel
def draw_entries_sparse(
    start, stop, key, X, indptr, indices, values, F, tau, precision, linear, coupling, nonnegative
):
    """Draw rows start..stop of X (n, K) in place, from lists of observed entries.

    precision and linear (1 or n, K) are the prior's terms per entry; ``coupling`` adds
    -coupling * (sum of the row's other entries) to the linear term.
    """
    K = X.shape[1]
    longest = 0
    for i in range(start, stop):
        longest = max(longest, indptr[i + 1] - indptr[i])
    buffer = np.empty(K * stride(longest))
    e = np.empty(longest)
    weight = np.ones(longest)
    s = np.empty(4, np.uint64)
    for i in range(start, stop):
        first = indptr[i]
        n = indptr[i + 1] - first
        Ft = buffer[: K * stride(n)].reshape((K, stride(n)))
        for t in range(n):
            f = F[indices[first + t]]
            e[t] = values[first + t]
            for k in range(K):
                Ft[k, t] = f[k]
        seed_stream(key, i, s)
        p = precision[i if precision.shape[0] > 1 else 0]
        b = linear[i if linear.shape[0] > 1 else 0]
        _row(n, s, X[i], Ft, weight, e, tau, p, b, coupling, nonnegative)


@kernel
def draw_entries_dense(
    start, stop, key, X, filled, mask, Ft, tau, precision, linear, coupling, nonnegative
):
    """Draw rows start..stop of X in place, from a filled matrix (n, m) with its 0/1 mask.

    Ft (K, m) is the other side's factors, transposed once for all rows: nothing is gathered.
    """
    m = filled.shape[1]
    e = np.empty(m)
    s = np.empty(4, np.uint64)
    for i in range(start, stop):
        for t in range(m):
            e[t] = filled[i, t]
        seed_stream(key, i, s)
        p = precision[i if precision.shape[0] > 1 else 0]
        b = linear[i if linear.shape[0] > 1 else 0]
        _row(m, s, X[i], Ft, mask[i], e, tau, p, b, coupling, nonnegative)
