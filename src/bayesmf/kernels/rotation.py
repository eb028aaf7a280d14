"""Rotations of two factors at a time, which leave U V^T alone: angles drawn by slice sampling."""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.random import exponential, seed_stream, uniform

# Laws of an entry: one that sees no rotation; Laplace with rate a; Laplace whose scale is inverse
# Gaussian, GIG(-1/2, a, b), integrated out.
FLAT, LAPLACE, LAPLACE_INVERSE_GAUSSIAN = range(3)

# A quarter of a turn exchanges two factors, up to a sign.
QUARTER = 0.5 * math.pi
NARROW = 1e-12  # an interval that ends here holds the old angle alone


@kernel(reassociate=True, inner=True)
def _log_density(law, a, b, x, y, cosine, sine):
    """Log density of two columns after a rotation, up to a constant."""
    total = 0.0
    if law == LAPLACE:
        for i in range(x.shape[0]):
            total += abs(cosine * x[i] + sine * y[i]) + abs(cosine * y[i] - sine * x[i])
        return -a * total
    if law == LAPLACE_INVERSE_GAUSSIAN:
        # With w = sqrt(a (b + 2 |x|)) the density is proportional to e^-w (1 + w) / w^3.
        for i in range(x.shape[0]):
            w = math.sqrt(a * (b + 2.0 * abs(cosine * x[i] + sine * y[i])))
            z = math.sqrt(a * (b + 2.0 * abs(cosine * y[i] - sine * x[i])))
            total += math.log((1.0 + w) / (w * w * w) * ((1.0 + z) / (z * z * z))) - (w + z)
    return total


@kernel(inner=True)
def _draw_angle(s, rows, cols, x, y, v, w):
    """An angle by slice sampling (Neal, 2003) from the quarter turn about the old one, 0."""
    high = QUARTER * uniform(s)
    low = high - QUARTER
    level = -exponential(s)
    level += _log_density(rows[0], rows[1], rows[2], x, y, 1.0, 0.0)
    level += _log_density(cols[0], cols[1], cols[2], v, w, 1.0, 0.0)
    while high - low > NARROW:
        angle = low + (high - low) * uniform(s)
        c, d = math.cos(angle), math.sin(angle)
        density = _log_density(rows[0], rows[1], rows[2], x, y, c, d)
        if density + _log_density(cols[0], cols[1], cols[2], v, w, c, d) > level:
            return angle
        if angle < 0.0:
            low = angle
        else:
            high = angle
    return 0.0


@kernel(inner=True)
def _rotate(U, k, m, x, y, cosine, sine):
    """Write columns k and m of U, which are x and y, after a rotation."""
    for i in range(U.shape[0]):
        U[i, k] = cosine * x[i] + sine * y[i]
        U[i, m] = cosine * y[i] - sine * x[i]


@kernel
def rotate_pairs(key, rows, cols, U, V):
    """Rotate factors of U (n, K) and V (m, K) in place, two by two, each in one random pair.

    ``rows`` and ``cols`` are the law of an entry of either side and its numbers a and b.
    """
    s = np.empty(4, np.uint64)
    seed_stream(key, 0, s)
    order = np.arange(U.shape[1])
    for k in range(order.shape[0] - 1, 0, -1):
        j = int(uniform(s) * (k + 1))
        order[k], order[j] = order[j], order[k]
    for pair in range(order.shape[0] // 2):
        k, m = order[2 * pair], order[2 * pair + 1]
        x, y, v, w = U[:, k].copy(), U[:, m].copy(), V[:, k].copy(), V[:, m].copy()
        seed_stream(key, pair + 1, s)
        angle = _draw_angle(s, rows, cols, x, y, v, w)
        _rotate(U, k, m, x, y, math.cos(angle), math.sin(angle))
        _rotate(V, k, m, v, w, math.cos(angle), math.sin(angle))
