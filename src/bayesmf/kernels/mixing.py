"""Gamma mixing variables of mean one, and the shape that governs them.

A variable g ~ Gamma(s, s) that multiplies a precision or a rate sees the data as a gamma with
h more shape and d more rate: half the number and half the weighted sum of squares of the residuals
that it governs, or a count and its mean. With g integrated out the shape s has the log density

    log prior(s) + sum of [log Gamma(s + h) - log Gamma(s) + s log s - (s + h) log(s + d)],

and given s, g ~ Gamma(s + h, s + d). Rows with a noise of their own, Student's t and the negative
binomial are all of this kind.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.random import (
    exponential,
    gamma,
    gamma_by,
    gamma_constants,
    seed_stream,
    uniform,
)

_FLOOR = -25.0
_SAFE = 1e30  # numbers up to this one, and from its inverse on, are multiplied by eight


@kernel
def sum_logs(s, d):
    """Return the sum of log(s + d): a logarithm for every eight numbers, if none is extreme."""
    total, n = 0.0, d.size
    eights = n - n % 8
    for t in range(0, eights, 8):
        product, largest, least = 1.0, 0.0, _SAFE
        for u in range(t, t + 8):
            x = s + d[u]
            product *= x
            largest, least = max(largest, x), min(least, x)
        if largest < _SAFE and least > 1.0 / _SAFE:
            total += math.log(product)
        else:
            for u in range(t, t + 8):
                total += math.log(s + d[u])
    for t in range(eights, n):
        total += math.log(s + d[t])
    return total


@kernel
def shape_log_density(s, alpha, beta, values, times, h, d):
    """Log density of the shape under a Gamma(alpha, beta) prior, mixing variables integrated out.

    ``h`` has one number for all d, or one for each; ``values`` and ``times`` are its distinct
    numbers, and how often each occurs among the d.
    """
    total = (alpha - 1.0) * math.log(s) - beta * s
    total += d.size * (s * math.log(s) - math.lgamma(s))
    for u in range(values.size):
        total += times[u] * math.lgamma(s + values[u])
    if h.size == 1:
        return total - (s + h[0]) * sum_logs(s, d)
    for t in range(d.size):
        total -= (s + h[t]) * math.log(s + d[t])
    return total


@kernel
def draw_shape(key, s, least, alpha, beta, values, times, h, d):
    """Draw the shape s > ``least`` by a slice step on x = log(s - least), whose Jacobian is e^x.

    x stays above `_FLOOR`, so that s is told from its least value.
    """
    stream = np.empty(4, np.uint64)
    seed_stream(key, 0, stream)
    x = max(math.log(s - least), _FLOOR)
    level = shape_log_density(s, alpha, beta, values, times, h, d) + x - exponential(stream)
    left = x - uniform(stream)
    right = left + 1.0
    while (
        left > _FLOOR
        and shape_log_density(least + math.exp(left), alpha, beta, values, times, h, d) + left
        > level
    ):
        left -= 1.0
    left = max(left, _FLOOR)
    while (
        shape_log_density(least + math.exp(right), alpha, beta, values, times, h, d) + right > level
    ):
        right += 1.0
    while True:
        y = left + uniform(stream) * (right - left)
        new = least + math.exp(y)
        if shape_log_density(new, alpha, beta, values, times, h, d) + y >= level:
            return new
        if y < x:
            left = y
        else:
            right = y
        if right - left < 1e-12:  # where rounding hides the slice, stay
            return s


@kernel
def draw_mixing(start, stop, key, indptr, s, h, d, out):
    """Set out to draws of Gamma(s + h, s + d), entry by entry; every row has a stream."""
    stream = np.empty(4, np.uint64)
    if h.size == 1 and s + h[0] >= 1.0:
        c, r = gamma_constants(s + h[0])
        for i in range(start, stop):
            seed_stream(key, i, stream)
            for t in range(indptr[i], indptr[i + 1]):
                out[t] = gamma_by(stream, c, r) / (s + d[t])
        return
    for i in range(start, stop):
        seed_stream(key, i, stream)
        for t in range(indptr[i], indptr[i + 1]):
            out[t] = gamma(stream, s + h[t if h.size > 1 else 0]) / (s + d[t])
