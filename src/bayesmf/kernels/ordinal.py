"""Ordered categories: cut points on a latent normal scale, and the latent values between them.

Cell t of category r lies between the cuts r - 1 and r (from minus to plus infinity) of a standard
normal about its mean.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.cells import longest_row
from bayesmf.kernels.compile import kernel
from bayesmf.kernels.normal import END, below_and_density, far
from bayesmf.kernels.random import seed_stream
from bayesmf.kernels.truncation import fill_between
from bayesmf.kernels.vectors import at

_CHUNK = 256  # entries that are worked on together


@kernel
def _probabilities(start, n, codes, means, cuts, edges, p, ratios):
    """Probabilities of n entries from start on, and densities at both edges over them.

    ``edges`` (2, n) takes the edges less the means, zero where they are infinite.
    """
    for t in range(n):  # in vectors
        r = np.int64(codes[start + t])
        a, b = at(cuts, r) - means[start + t], at(cuts, r + 1) - means[start + t]
        sign = -1.0 if a > 0.0 else 1.0  # the tail that keeps digits
        low, f_a = below_and_density(sign * min(max(a, -END), END))
        high, f_b = below_and_density(sign * min(max(b, -END), END))
        first, last = a == -np.inf, b == np.inf
        low = (0.0 if sign > 0.0 else 1.0) if first else low
        high = (1.0 if sign > 0.0 else 0.0) if last else high
        p[t] = sign * (high - low)
        ratios[0, t], ratios[1, t] = 0.0 if first else f_a, 0.0 if last else f_b
        edges[0, t], edges[1, t] = 0.0 if first else a, 0.0 if last else b
    for t in range(n):
        a, b = edges[0, t], edges[1, t]
        if not (-END < a < END and -END < b < END):
            r = np.int64(codes[start + t])
            a, b = cuts[r] - means[start + t], cuts[r + 1] - means[start + t]
            sign = -1.0 if a > 0.0 else 1.0
            high, ratios[1, t] = far(sign * b)
            low, ratios[0, t] = far(sign * a)
            p[t] = max(sign * (high - low), 1e-300)
    for t in range(n):
        inverse = 1.0 / p[t]
        ratios[0, t] *= inverse
        ratios[1, t] *= inverse


@kernel(reassociate=True)
def _add_category(r, n, codes, start, edges, ratios, out):
    """Add what the entries of category r say about the cuts below and above it."""
    g_a = g_b = h_a = h_b = both = 0.0
    for t in range(n):
        mine = 1.0 if codes[start + t] == r else 0.0
        x, y = mine * ratios[0, t], mine * ratios[1, t]
        g_a += x
        g_b += y
        h_a += x * (ratios[0, t] - edges[0, t])
        h_b += y * (ratios[1, t] + edges[1, t])
        both += x * ratios[1, t]
    out[1, r] -= g_a
    out[1, r + 1] += g_b
    out[2, r] += h_a
    out[2, r + 1] += h_b
    out[3, r] -= both


@kernel
def cut_terms(start, stop, codes, means, cuts, out):
    """Add to out the log likelihood of the cuts, its gradient and its negative Hessian.

    ``cuts`` (C + 1,) begin and end with infinities; out (4, C + 1) takes the log likelihood in its
    first number, then gradient, diagonal and upper diagonal, at the cuts' places.
    """
    edges, ratios, p = np.empty((2, _CHUNK)), np.empty((2, _CHUNK)), np.empty(_CHUNK)
    total = 0.0
    for first in range(start, stop, _CHUNK):
        n = min(_CHUNK, stop - first)
        _probabilities(first, n, codes, means, cuts, edges, p, ratios)
        for r in range(cuts.size - 1):
            _add_category(r, n, codes, first, edges, ratios, out)
        product = 1.0
        for t in range(n):
            if p[t] < 1e-30:
                total += math.log(p[t])
            else:
                product *= p[t]
            if t % 8 == 7:
                total += math.log(product)
                product = 1.0
        total += math.log(product)
    out[0, 0] += total


@kernel
def draw_latent(start, stop, key, indptr, codes, means, cuts, out):
    """Set out to latent values of the entries of rows start..stop, each between its cuts."""
    s, longest = np.empty(4, np.uint64), longest_row(start, stop, indptr)
    a, b, x = np.empty(longest), np.empty(longest), np.empty(longest)
    for i in range(start, stop):
        seed_stream(key, i, s)
        first, n = indptr[i], indptr[i + 1] - indptr[i]
        for t in range(n):
            r = np.int64(codes[first + t])
            a[t], b[t] = cuts[r] - means[first + t], cuts[r + 1] - means[first + t]
        fill_between(s, n, a, b, x)
        for t in range(n):
            out[first + t] = means[first + t] + x[t]
