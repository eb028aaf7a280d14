"""Arrays of independent draws: one stream per row, parameters broadcast against the output."""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.random import exponential, gamma, normal, seed_stream
from bayesmf.kernels.special import (
    gig,
    gig_half,
    gig_three_halves,
    half_cauchy_precision,
    inverse_gaussian,
    log_scale,
    truncated_normal,
)

# Codes of the distributions; the numbers are part of no stream. The common ones have a kernel of
# their own, so that most models need not wait for the others to be compiled.
NORMAL, GAMMA, EXPONENTIAL, TRUNCATED, INVERSE_GAUSSIAN, GIG, HALF_CAUCHY = range(7)
COMMON = (NORMAL, GAMMA, EXPONENTIAL)


@kernel(inner=True)
def _draw(kind, s, a, b):
    """One draw of a common distribution: the meaning of (a, b) is that of the distribution."""
    if kind == NORMAL:  # linear term, precision
        return a / b + normal(s) / math.sqrt(b)
    if kind == GAMMA:  # shape, rate
        return gamma(s, a) / b
    return exponential(s) / a  # rate


@kernel(inner=True)
def _draw_special(kind, s, a, b, c):
    """One draw of any other distribution."""
    if kind == TRUNCATED:  # linear term, precision
        return truncated_normal(s, b, a)
    if kind == INVERSE_GAUSSIAN:  # mean, shape
        return inverse_gaussian(s, a, b)
    if kind == HALF_CAUCHY:  # rate
        return half_cauchy_precision(s, a)
    if a == 0.5:
        return gig_half(s, b, c)
    if a == -0.5:
        return 1.0 / gig_half(s, c, b)
    if a == 1.5:
        return gig_three_halves(s, b, c)
    if a == -1.5:
        return 1.0 / gig_three_halves(s, c, b)
    return gig(s, a, b, c)


@kernel
def fill_common(start, stop, key, kind, a, b, out):
    """Fill rows start..stop of ``out`` (n, K); a and b have shape (n or 1, K or 1)."""
    s = np.empty(4, np.uint64)
    alike = kind == NORMAL and a.size == 1 and b.size == 1
    mean, root = (a[0, 0] / b[0, 0], math.sqrt(b[0, 0])) if alike else (0.0, 1.0)
    for i in range(start, stop):
        seed_stream(key, i, s)
        if alike:
            for k in range(out.shape[1]):
                out[i, k] = mean + normal(s) / root
            continue
        ia = i if a.shape[0] > 1 else 0
        ib = i if b.shape[0] > 1 else 0
        for k in range(out.shape[1]):
            ka = k if a.shape[1] > 1 else 0
            kb = k if b.shape[1] > 1 else 0
            out[i, k] = _draw(kind, s, a[ia, ka], b[ib, kb])


@kernel
def fill_special(start, stop, key, kind, a, b, c, out):
    """Fill rows start..stop of ``out`` (n, K); a, b, c have shape (n or 1, K or 1)."""
    s = np.empty(4, np.uint64)
    for i in range(start, stop):
        seed_stream(key, i, s)
        ia = i if a.shape[0] > 1 else 0
        ib = i if b.shape[0] > 1 else 0
        ic = i if c.shape[0] > 1 else 0
        for k in range(out.shape[1]):
            ka = k if a.shape[1] > 1 else 0
            kb = k if b.shape[1] > 1 else 0
            kc = k if c.shape[1] > 1 else 0
            out[i, k] = _draw_special(kind, s, a[ia, ka], b[ib, kb], c[ic, kc])


@kernel
def _log_sum(x, y):
    """Logarithm of e^x + e^y; -inf stands for nothing."""
    top = max(x, y)
    return top if top == -np.inf else top + math.log1p(math.exp(min(x, y) - top))


@kernel
def fill_log_scales(key, exponent, weights, up, low, out):
    """Draw the logarithms of the scales of all factors, in turn.

    ``exponent`` (K,) and ``weights`` (4, K), log weights of the powers -2, -1, 1, 2, describe each
    factor's density (see ``log_scale``). Under a volume prior there is a determinant too, a term of
    power 2 with log weight ``up`` (or -2 with ``low``; -inf for none) that the scale of any factor
    multiplies. There are then three passes over the factors, so that a determinant that is far off
    is not set right by the first of them alone.
    """
    s = np.empty(4, np.uint64)
    K = out.shape[0]
    out[:] = 0.0
    total = 0.0
    for again in range(3 if up > -np.inf or low > -np.inf else 1):
        for k in range(K):
            seed_stream(key, again * K + k, s)
            x = log_scale(
                s,
                exponent[k],
                _log_sum(weights[0, k] - 2.0 * out[k], low - 2.0 * total),
                weights[1, k] - out[k],
                weights[2, k] + out[k],
                _log_sum(weights[3, k] + 2.0 * out[k], up + 2.0 * total),
            )
            out[k] += x
            total += x
