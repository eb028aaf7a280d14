"""Exact samplers of the conditional distributions that Gibbs sweeps meet.

Each is written so that no step cancels: truncated normals return the excess over the bound,
generalised inverse Gaussians add positive terms only.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.random import exponential, normal, uniform

_LEAST_RATE = 1e-200  # of `half_cauchy_precision`, for which a draw is far from infinite


@kernel
def truncated_excess(s, bound):
    """Draw y >= 0 with density proportional to exp(-(y + bound)^2 / 2)."""
    if bound <= 0.0:
        if bound == -np.inf:
            return np.nan
        while True:
            y = normal(s) - bound
            if y >= 0.0:
                return y
    if bound <= 0.45:
        while True:
            y = abs(normal(s)) - bound
            if y >= 0.0:
                return y
    if not bound < np.inf:
        return np.nan  # nothing would ever be accepted
    twice = bound * (1.0 + math.sqrt(1.0 + (2.0 / bound) * (2.0 / bound)))  # the best rate
    shift = 2.0 / twice
    while True:
        y = shift * exponential(s)
        if exponential(s) >= 0.5 * (y - shift) * (y - shift):
            return y


@kernel
def truncated_normal(s, p, b):
    """Draw x >= 0 with density proportional to exp(-p x^2 / 2 + b x); p = 0 needs b < 0."""
    if p == 0.0:
        return exponential(s) / -b
    if not (math.isfinite(p) and math.isfinite(b)):
        return np.nan
    scale = 1.0 / math.sqrt(p)
    return scale * truncated_excess(s, -b * scale)


@kernel
def gig_half(s, a, b):
    """Draw from GIG(1/2, a, b), a > 0 and b >= 0: the reciprocal of an inverse Gaussian."""
    z = normal(s)
    q = math.sqrt(b) / math.sqrt(a)
    h = 0.5 * z * z / a
    x = q + h + math.sqrt(h) * math.sqrt(h + 2.0 * q)
    return x if uniform(s) * (x + q) <= x else q * (q / x)


@kernel
def inverse_gaussian(s, mean, shape):
    """Draw from the inverse Gaussian with this mean and shape."""
    z = normal(s)
    w = 0.5 * z * z * (mean / shape)
    r = 1.0 + w + math.sqrt(w) * math.sqrt(w + 2.0)
    return mean / r if uniform(s) * (1.0 + r) <= r else mean * r


@kernel
def gig_three_halves(s, a, b):
    """Draw from GIG(3/2, a, b), a, b > 0, without rejection."""
    omega = math.sqrt(a) * math.sqrt(b)
    c = math.sqrt(b) / math.sqrt(a)
    z = normal(s)
    v = z * z
    if uniform(s) * (1.0 + omega) <= 1.0:
        v += 2.0 * exponential(s)  # chi-square with two more degrees of freedom
    w = 0.5 * v / omega
    r = 1.0 + w + math.sqrt(w) * math.sqrt(w + 2.0)
    # The roots c / r and c r of one v carry the odds r^-3 to 1.
    inverse = 1.0 / r
    cube = inverse * inverse * inverse
    return c * inverse if uniform(s) * (1.0 + cube) <= cube else c * r


@kernel
def half_cauchy_precision(s, rate):
    """Draw x > 0 with density proportional to exp(-rate x) / (1 + x), for a rate > 0.

    Under a small rate it is, with q = 1 + x, below e^-rate / q up to q = 1 / rate, and below
    rate e^(-rate q) beyond; else an exponential lies above it.
    """
    rate = max(rate, _LEAST_RATE)
    if rate >= 1.0:
        while True:
            x = exponential(s) / rate
            if uniform(s) * (1.0 + x) <= 1.0:
                return x
    far = -math.log(rate)
    body, tail = math.exp(-rate) * far, math.exp(-1.0)
    while True:
        if uniform(s) * (body + tail) < body:
            x = math.expm1(far * uniform(s))
            if exponential(s) >= rate * x:
                return x
        else:
            excess = exponential(s)
            if uniform(s) * (1.0 + excess) <= 1.0:
                return (1.0 + excess) / rate - 1.0


@kernel(inner=True)
def _slope(x, e, low2, low1, up1, up2):
    """Derivative of the log density in ``log_scale`` at x."""
    return (
        e
        + math.exp(low2 - 2.0 * x)
        + 0.5 * math.exp(low1 - x)
        - 0.5 * math.exp(up1 + x)
        - math.exp(up2 + 2.0 * x)
    )


@kernel
def _mode(e, low2, low1, up1, up2):
    """Root of the strictly falling ``_slope`` by safeguarded Newton steps; NaN if there is none."""
    low = max(low2, low1)
    up = max(up2, up1)
    start = 0.25 * (low - up) if low > -np.inf and up > -np.inf else 0.0
    step, left, right = 1.0, start, start
    while _slope(left, e, low2, low1, up1, up2) <= 0.0:
        left -= step
        step *= 2.0
        if step > 1e6:
            return np.nan
    step = 1.0
    while _slope(right, e, low2, low1, up1, up2) >= 0.0:
        right += step
        step *= 2.0
        if step > 1e6:
            return np.nan
    x = 0.5 * (left + right)
    step = right - left
    while True:
        value = _slope(x, e, low2, low1, up1, up2)
        if value > 0.0:
            left = x
        else:
            right = x
        curvature = (
            2.0 * math.exp(low2 - 2.0 * x)
            + 0.5 * math.exp(low1 - x)
            + 0.5 * math.exp(up1 + x)
            + 2.0 * math.exp(up2 + 2.0 * x)
        )
        new = x + value / curvature
        # Far out Newton creeps by half a unit: bisect unless it halves its last step.
        if not (left < new < right) or abs(new - x) > 0.5 * step:
            new = 0.5 * (left + right)
        step = abs(new - x)
        if step <= 1e-14 * max(1.0, abs(x)):
            return new
        x = new


@kernel
def _part(weight, x):
    """Log density that one exponential term loses at a distance; a missing term loses nothing."""
    return 0.5 * weight * (x - math.expm1(x)) if weight > 0.0 else 0.0


@kernel(inner=True)
def _drop(d, rest, low2, low1, up1, up2):
    """Log density at mode + d relative to the mode; the weights are those at the mode."""
    return rest * d + _part(low2, -2.0 * d) + _part(low1, -d) + _part(up1, d) + _part(up2, 2.0 * d)


@kernel
def _pull(weight, x):
    """Slope of ``_part`` in x."""
    return -0.5 * weight * math.expm1(x) if weight > 0.0 else 0.0


@kernel(inner=True)
def _fall_rate(d, rest, low2, low1, up1, up2):
    """Derivative of ``_drop``."""
    down = 2.0 * _pull(low2, -2.0 * d) + _pull(low1, -d)
    return rest - down + _pull(up1, d) + 2.0 * _pull(up2, 2.0 * d)


@kernel(inner=True)
def _shoulder(sign, width, rest, low2, low1, up1, up2):
    """Distance from the mode, on one side, at which the log density has fallen by 0.5 to 2."""
    near, far = 0.0, width
    while -_drop(sign * far, rest, low2, low1, up1, up2) < 0.5:
        near, far = far, 2.0 * far
    d = far
    while True:
        fall = -_drop(sign * d, rest, low2, low1, up1, up2)
        if fall < 0.5:
            near = d
        elif fall > 2.0:
            far = d
        else:
            return d
        d = 0.5 * (near + far)
        if d in (near, far):
            return far


@kernel
def log_scale(s, e, low2, low1, up1, up2):
    """Draw x with log density e x - (w_-2 e^-2x + w_-1 e^-x + w_1 e^x + w_2 e^2x) / 2.

    The arguments are the logarithms of the four weights (-inf for none). The density is
    log-concave: a flat envelope in the middle and tangent exponentials outside (Devroye, 2014).
    Where it has no mode (a weight is missing on the side that the exponent points to), or the
    weights leave the range of doubles at the mode, x = 0, which leaves every factor as it is.
    """
    mode = _mode(e, low2, low1, up1, up2)
    if not math.isfinite(mode):
        return 0.0
    low2, low1 = math.exp(low2 - 2.0 * mode), math.exp(low1 - mode)
    up1, up2 = math.exp(up1 + mode), math.exp(up2 + 2.0 * mode)
    rest = e + low2 + 0.5 * low1 - 0.5 * up1 - up2  # rounding left over at the mode
    width = 1.0 / math.sqrt(2.0 * low2 + 0.5 * low1 + 0.5 * up1 + 2.0 * up2)
    if not (width > 0.0 and math.isfinite(width)):
        return 0.0
    right = _shoulder(1.0, width, rest, low2, low1, up1, up2)
    left = _shoulder(-1.0, width, rest, low2, low1, up1, up2)
    fall_r = _drop(right, rest, low2, low1, up1, up2)
    fall_l = _drop(-left, rest, low2, low1, up1, up2)
    slope_r = -_fall_rate(right, rest, low2, low1, up1, up2)
    slope_l = _fall_rate(-left, rest, low2, low1, up1, up2)
    edge_r = right + fall_r / slope_r  # where the tangents reach the height of the mode
    edge_l = left + fall_l / slope_l
    area = edge_r + edge_l + 1.0 / slope_r + 1.0 / slope_l
    while True:
        u = uniform(s) * area
        if u < edge_r + edge_l:
            d, envelope = u - edge_l, 0.0
        elif u < edge_r + edge_l + 1.0 / slope_r:
            excess = exponential(s)
            d, envelope = edge_r + excess / slope_r, -excess
        else:
            excess = exponential(s)
            d, envelope = -edge_l - excess / slope_l, -excess
        if -exponential(s) <= _drop(d, rest, low2, low1, up1, up2) - envelope:
            return mode + d


@kernel
def gig(s, p, a, b):
    """Draw from GIG(p, a, b) with a, b > 0, or a gamma limit with one of them zero."""
    return math.exp(log_scale(s, p, -np.inf, math.log(b), math.log(a), -np.inf))


@kernel(inner=True)
def _stirling(k):
    """Error of Stirling's formula for log k! (Hoermann's series; exact enough from k = 10)."""
    if k < 10.0:
        return math.lgamma(k + 1.0) - (k + 0.5) * math.log(k + 1.0) + (k + 1.0) - 0.9189385332046727
    inverse = 1.0 / (k + 1.0)
    square = inverse * inverse
    return (
        1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - square / 1680.0) * square) * square
    ) * inverse


@kernel(inner=True)
def _binomial_rejection(s, n, p):
    """Binomial(n, p) for p <= 1/2 and n p >= 10: transformed rejection (Hoermann, 1993)."""
    q = 1.0 - p
    spread = math.sqrt(n * p * q)
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    m = math.floor((n + 1.0) * p)
    odds = math.log(p / q)
    while True:
        v = uniform(s)
        u = uniform(s) - 0.5
        us = 0.5 - abs(u)
        k = math.floor((2.0 * a / us + b) * u + c)
        if k < 0.0 or k > n:
            continue
        if us >= 0.07 and v <= v_r:
            return k
        v = math.log(v * alpha / (a / (us * us) + b))
        bound = (
            (m + 0.5) * math.log((m + 1.0) / (n - m + 1.0))
            + (n + 1.0) * math.log((n - m + 1.0) / (n - k + 1.0))
            + (k + 0.5) * math.log((n - k + 1.0) / (k + 1.0))
            + (k - m) * odds
            + _stirling(m)
            + _stirling(n - m)
            - _stirling(k)
            - _stirling(n - k)
        )
        if v <= bound:
            return k


@kernel
def binomial(s, n, p):
    """Binomial(n, p) as a float; n is a whole number held in a float."""
    if n <= 0.0 or p <= 0.0:
        return 0.0
    if p >= 1.0:
        return n
    flipped = p > 0.5
    small = 1.0 - p if flipped else p
    if n * small >= 10.0:
        k = _binomial_rejection(s, n, small)
    else:  # inversion: walk up the distribution function
        odds = small / (1.0 - small)
        probability = math.exp(n * math.log1p(-small))
        u = uniform(s)
        k = 0.0
        while u > probability and k < n:
            u -= probability
            k += 1.0
            probability *= odds * (n - k + 1.0) / k
    return n - k if flipped else k
