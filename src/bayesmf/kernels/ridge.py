"""The prior precision of regression weights, drawn with the weights integrated out.

With orthogonal features of squared lengths s_j the data of direction j are K numbers whose
precision is multiplied by x / (x + s_j), x being the precision of the weights relative to that of
the rows; q_j is their weighted sum of squares. So x has the log density

    log prior(x) + sum over j of [K/2 log(x / (x + s_j)) - q_j/2 x / (x + s_j)].
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.random import exponential, seed_stream, uniform

_LEAST, _MOST = -50.0, 50.0  # of log x


@kernel
def ridge_log_density(x, alpha, beta, K, squares, sums):
    """Log density of x under a Gamma(alpha, beta) prior, up to a constant."""
    total = (alpha - 1.0) * math.log(x) - beta * x
    for j in range(squares.size):
        share = x / (x + squares[j])
        total += 0.5 * (K * math.log(share) - sums[j] * share)
    return total


@kernel
def draw_ridge(key, x, alpha, beta, K, squares, sums):
    """Draw x by a slice step on y = log x, whose Jacobian is e^y."""
    stream = np.empty(4, np.uint64)
    seed_stream(key, 0, stream)
    y = min(max(math.log(x), _LEAST), _MOST)
    level = ridge_log_density(math.exp(y), alpha, beta, K, squares, sums) + y - exponential(stream)
    left = y - uniform(stream)
    right = left + 1.0
    while (
        left > _LEAST
        and ridge_log_density(math.exp(left), alpha, beta, K, squares, sums) + left > level
    ):
        left -= 1.0
    while (
        right < _MOST
        and ridge_log_density(math.exp(right), alpha, beta, K, squares, sums) + right > level
    ):
        right += 1.0
    left, right = max(left, _LEAST), min(right, _MOST)
    while True:
        new = left + uniform(stream) * (right - left)
        if ridge_log_density(math.exp(new), alpha, beta, K, squares, sums) + new >= level:
            return math.exp(new)
        if new < y:
            left = new
        else:
            right = new
        if right - left < 1e-12:  # where rounding hides the slice, stay
            return x
