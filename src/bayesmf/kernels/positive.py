"""Poisson counts that are known not to be zero."""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.random import exponential, gamma, seed_stream, uniform
from bayesmf.kernels.special import binomial

_FEW = 12.0  # events that are counted one by one


@kernel
def poisson(s, mean):
    """Poisson as a float: gaps between events; many at a time by the time of one far ahead.

    The time of the n-th event is a gamma, and those before it are spread evenly over it (Ahrens
    and Dieter, 1974).
    """
    count = 0.0
    while mean > _FEW:
        n = math.floor(0.875 * mean)
        time = gamma(s, n)
        if time > mean:
            return count + binomial(s, n - 1.0, mean / time)
        count += n
        mean -= time
    time = exponential(s)
    while time < mean:
        count += 1.0
        time += exponential(s)
    return count


@kernel
def positive_poisson(s, mean):
    """Poisson restricted to 1, 2, ...: the first event falls within the unit of time."""
    first = -math.log1p(uniform(s) * math.expm1(-mean))
    return 1.0 + poisson(s, max(mean - first, 0.0))


@kernel
def draw_positive_counts(start, stop, key, indptr, values, means, out):
    """Set out to a positive Poisson count where a value is not zero, and to zero elsewhere."""
    s = np.empty(4, np.uint64)
    for i in range(start, stop):
        seed_stream(key, i, s)
        for t in range(indptr[i], indptr[i + 1]):
            if values[t] == 0.0:
                out[t] = 0.0
            else:
                out[t] = positive_poisson(s, means[t]) if math.isfinite(means[t]) else np.nan
