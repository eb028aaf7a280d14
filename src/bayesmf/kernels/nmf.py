"""Nonnegative matrix factorisation by multiplicative updates."""

from __future__ import annotations

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.prefetch import NEAR, prefetch_row
from bayesmf.kernels.vectors import LANES, at, load, plus_product, splat, store, total


@kernel
def multiplicative_update(start, stop, indptr, indices, values, U, V, smallest):
    """Lee and Seung's update of rows start..stop of U for the KL objective over observed entries.

    x_k is multiplied by sum_j (r_j / fit_j) f_jk / sum_j f_jk. Fits and sums below ``smallest`` are
    taken as ``smallest``, so that 0 / 0 is never formed; a row without entries stays as it is. V
    has rows of whole vectors.
    """
    K, w, far = U.shape[1], V.shape[1], V.size > NEAR
    x, up, down = np.zeros(w), np.empty(w), np.empty(w)
    for i in range(start, stop):
        if indptr[i] == indptr[i + 1]:
            continue
        for k in range(K):
            x[k] = U[i, k]
        up[:] = 0.0
        down[:] = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            if far:
                prefetch_row(V, indices, t)
            q = at(indices, t) * w
            fit = splat(0.0)
            for b in range(0, w, LANES):
                fit = plus_product(fit, load(x, b), load(V, q + b))
            ratio = splat(at(values, t) / max(total(fit), smallest))
            for b in range(0, w, LANES):
                f = load(V, q + b)
                store(up, b, plus_product(load(up, b), ratio, f))
                store(down, b, plus_product(load(down, b), splat(1.0), f))
        for k in range(K):
            U[i, k] *= up[k] / max(down[k], smallest)
