"""Values behind limits: draws from normal and Student distributions restricted to an interval.

Tails are drawn as the excess over the nearer bound, which keeps its digits however far out it is.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.cells import longest_row
from bayesmf.kernels.compile import kernel
from bayesmf.kernels.normal import EDGE, END, TAIL, below, middle_quantile
from bayesmf.kernels.random import exponential, gamma, normal, seed_stream, uniform

_RATE = 0.5 * (EDGE + math.sqrt(EDGE * EDGE + 4.0))  # of the best exponential beyond the edge
_LEFT, _RIGHT, _ELSE = -1e300, 1e300, 2e300  # marks of draws that are still to come


@kernel
def _accept(s, t):
    """Return True with probability exp(-t); mostly without the exponential."""
    u = uniform(s)
    return u <= 1.0 - t or u <= math.exp(-t)


@kernel
def normal_excess(s, a, width):
    """Draw x - a for a standard normal x in [a, a + width], a >= 0; the width may be infinite."""
    if width * (a + 0.5 * width) < 1.5:  # nearly flat
        while True:
            y = uniform(s) * width
            if _accept(s, y * (a + 0.5 * y)):
                return y
    if a <= 1.2:  # cheap normals, of which enough lie beyond
        while True:
            y = abs(normal(s)) - a
            if 0.0 <= y <= width:
                return y
    rate = 0.5 * (a + math.sqrt(a * a + 4.0))
    shift = 1.0 / rate
    while True:
        y = shift * exponential(s)
        if y <= width and _accept(s, 0.5 * (y - shift) * (y - shift)):
            return y


@kernel
def edge_excess(s, width):
    """Draw x - `EDGE` for a standard normal x in [EDGE, EDGE + width]."""
    if width < 0.8:
        return normal_excess(s, EDGE, width)
    while True:
        y = exponential(s) * (1.0 / _RATE)
        if y <= width and _accept(s, 0.5 * (y - 1.0 / _RATE) * (y - 1.0 / _RATE)):
            return y


@kernel
def standard_between(s, a, b):
    """Draw a standard normal in [a, b] by the way that suits the interval."""
    if not a < b:  # too narrow for doubles; or NaN, for which nothing would ever be accepted
        return a
    if a >= 0.0:
        return a + normal_excess(s, a, b - a)
    if b <= 0.0:
        return b - normal_excess(s, -b, b - a)
    if b - a > 2.5:  # room enough around the mode
        while True:
            x = normal(s)
            if a <= x <= b:
                return x
    while True:
        x = a + uniform(s) * (b - a)
        if _accept(s, 0.5 * x * x):
            return x


@kernel
def fill_between(s, n, a, b, x):
    """Set x to n draws of standard normals in [a[t], b[t]], either of which may be infinite.

    A uniform number says whether a draw falls into the middle, whose quantiles are quick and keep
    all digits, or into a tail. What is not in the middle, and intervals that are nearly flat or far
    out, are drawn one by one.
    """
    for t in range(n):
        x[t] = uniform(s)
    for t in range(n):  # in vectors
        low = below(min(max(a[t], -END), END)) if a[t] > -np.inf else 0.0
        high = below(min(max(b[t], -END), END)) if b[t] < np.inf else 1.0
        p = low + x[t] * (high - low)
        near = (a[t] > -END or a[t] == -np.inf) and (b[t] < END or b[t] == np.inf)
        near = near and b[t] - a[t] > 1e-3 and a[t] < EDGE and b[t] > -EDGE
        x[t] = p if near else 2.0
    for t in range(n):
        p = x[t]
        y = min(max(middle_quantile(min(max(p, TAIL), 1.0 - TAIL)), a[t]), b[t])
        tail = _LEFT if p < TAIL else (_RIGHT if p < 2.0 else _ELSE)
        x[t] = y if TAIL <= p <= 1.0 - TAIL else tail
    for t in range(n):
        if x[t] == _LEFT:
            x[t] = -EDGE - edge_excess(s, -EDGE - a[t])
        elif x[t] == _RIGHT:
            x[t] = EDGE + edge_excess(s, b[t] - EDGE)
        elif not x[t] < _RIGHT:
            x[t] = standard_between(s, a[t], b[t])


@kernel
def student_excess(s, nu, a, width):
    """Draw x - a for a Student x with nu > 1 degrees of freedom in [a, a + width], a >= 0."""
    power, base = 0.5 * (nu + 1.0), 1.0 + a * a / nu
    if power * math.log1p(width * (2.0 * a + width) / nu / base) < 1.5:  # nearly flat
        while True:
            y = uniform(s) * width
            if exponential(s) >= power * math.log1p(y * (2.0 * a + y) / nu / base):
                return y
    if a <= 0.7:
        while True:
            y = abs(normal(s)) / math.sqrt(gamma(s, 0.5 * nu) / (0.5 * nu)) - a
            if 0.0 <= y <= width:
                return y
    while True:  # x f(x) has a closed tail; accepted with probability a / x
        d = (nu + a * a) * math.expm1(2.0 * exponential(s) / (nu - 1.0))
        x = math.sqrt(a * a + d)
        y = d / (x + a)
        if y <= width and uniform(s) * x <= a:
            return y


@kernel
def student_between(s, nu, a, b):
    """Draw from Student's t with nu degrees of freedom, within [a, b]."""
    if not a < b:
        return a
    if a >= 0.0:
        return a + student_excess(s, nu, a, b - a)
    if b <= 0.0:
        return b - student_excess(s, nu, -b, b - a)
    if b - a > 2.5:  # room enough around the mode
        while True:
            x = normal(s) / math.sqrt(gamma(s, 0.5 * nu) / (0.5 * nu))
            if a <= x <= b:
                return x
    while True:
        x = a + uniform(s) * (b - a)
        if exponential(s) >= 0.5 * (nu + 1.0) * math.log1p(x * x / nu):
            return x


@kernel
def draw_between(start, stop, key, indptr, means, precision, nu, low, high, out):
    """Set out[t], t of the rows start..stop, to draws restricted to [low[t], high[t]].

    ``precision`` (n,) is that of each entry; nu is infinite for the normal distribution. Bounds
    that are hit through rounding are met exactly.
    """
    s, longest = np.empty(4, np.uint64), longest_row(start, stop, indptr)
    a, b, x = np.empty(longest), np.empty(longest), np.empty(longest)
    for i in range(start, stop):
        seed_stream(key, i, s)
        first, n = indptr[i], indptr[i + 1] - indptr[i]
        for t in range(n):
            root = math.sqrt(precision[first + t])
            a[t] = (low[first + t] - means[first + t]) * root
            b[t] = (high[first + t] - means[first + t]) * root
        if math.isinf(nu):
            fill_between(s, n, a, b, x)
        else:
            for t in range(n):
                x[t] = student_between(s, nu, a[t], b[t])
        for t in range(n):
            y = means[first + t] + x[t] / math.sqrt(precision[first + t])
            out[first + t] = min(max(y, low[first + t]), high[first + t])
