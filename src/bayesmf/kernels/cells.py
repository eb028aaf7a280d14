"""Cells: products of factors, running moments over draws, offsets and scales of the entries."""

from __future__ import annotations

import numpy as np

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


@kernel
def scale_entries(start, stop, indptr, indices, values, scale, out):
    """Set out to the values of rows start..stop, each times the scale of its column."""
    for t in range(indptr[start], indptr[stop]):
        out[t] = values[t] * scale[indices[t]]


@kernel
def take_entries(start, stop, values, order, out):
    """Set out[t] to values[order[t]], t in start..stop."""
    for t in range(start, stop):
        out[t] = values[order[t]]


@kernel
def put_entries(start, stop, values, places, out):
    """Set out[places[t]] to values[t], t in start..stop."""
    for t in range(start, stop):
        out[places[t]] = values[t]


@kernel
def half_squares(start, stop, indptr, indices, values, means, tau, rows, cols, entries, out):
    """Set out to tau w (value - mean)^2 / 2 for the entries of rows start..stop.

    The weight w is the product of those of its row, its column and itself; each of the three arrays
    has one number for all, or one for each.
    """
    for i in range(start, stop):
        own = 0.5 * tau * rows[min(i, rows.size - 1)]
        for t in range(indptr[i], indptr[i + 1]):
            weight = own * cols[min(np.int64(indices[t]), cols.size - 1)]
            weight *= entries[min(t, entries.size - 1)]
            out[t] = weight * (values[t] - means[t]) * (values[t] - means[t])


@kernel
def longest_row(start, stop, indptr):
    """Return the largest number of entries of the rows start..stop."""
    longest = 0
    for i in range(start, stop):
        longest = max(longest, indptr[i + 1] - indptr[i])
    return longest


@kernel
def row_precision(tau, own, i):
    """Return the noise precision of row i: tau, times its own number unless all are one (None)."""
    if own is None:
        return tau
    return tau * own[i]
