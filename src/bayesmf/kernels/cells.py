"""Predictions: products of factors at chosen cells, running moments over draws, offsets."""

from __future__ import annotations

from bayesmf.kernels.compile import kernel


@kernel(reassociate=True)
def dots(start, stop, rows, cols, U, V, out):
    """Set out[t] to u_i . v_j for the cells (rows[t], cols[t]), t in start..stop."""
    K = U.shape[1]
    for t in range(start, stop):
        u, v = U[rows[t]], V[cols[t]]
        total = 0.0
        for k in range(K):
            total += u[k] * v[k]
        out[t] = total


@kernel
def accumulate(values, count, mean, square):
    """Take one more draw into the running mean and sum of squared deviations (Welford).

    ``count`` includes the new draw; all arrays are flat.
    """
    for t in range(values.size):
        gap = values[t] - mean[t]
        mean[t] += gap / count
        square[t] += gap * (values[t] - mean[t])


@kernel
def subtract_offsets(indptr, indices, values, own, other, out):
    """Set out to the values less the offsets of their row and their column."""
    for i in range(own.size):
        for t in range(indptr[i], indptr[i + 1]):
            out[t] = values[t] - (own[i] + other[indices[t]])
