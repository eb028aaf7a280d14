"""The standard normal distribution: its function by a table, and its quantiles near the middle.

The table has a Taylor series about its nearest point, whose error is below 1e-13 of the density;
beyond the table the function is computed. Quantiles are a ratio of polynomials (Wichura, 1988).
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.vectors import at

END, _STEPS = 6.0, 64.0  # the table ends there; points per unit
_POINTS = np.arange(int(-END * _STEPS), int(END * _STEPS) + 1) / _STEPS
_BELOW = np.array([0.5 * math.erfc(-x / math.sqrt(2.0)) for x in _POINTS])
_DENSITY = np.exp(-0.5 * _POINTS**2) / math.sqrt(2.0 * math.pi)
_STEP = 1 / _STEPS
_HALF, _THIRD, _FOURTH, _FIFTH, _SIXTH = 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6

#: Quantiles are those of probabilities in the middle, this far from the ends.
TAIL = 0.075
EDGE = 1.4395314709384563  # the quantile there


@kernel
def far(x):
    """Distribution function and density of the standard normal at any x, without the table."""
    if math.isinf(x):
        return (1.0 if x > 0.0 else 0.0), 0.0
    density = 0.3989422804014327 * math.exp(-0.5 * x * x)
    return 0.5 * math.erfc(-x * 0.7071067811865476), density


@kernel
def below_and_density(x):
    """Distribution function and density of the standard normal, |x| <= `END`."""
    k = np.int64((x + END) * _STEPS + 0.5)
    c = k * _STEP - END
    d, q = x - c, c * c
    # Hermite polynomials: derivatives of the density
    h2, h3, h4 = q - 1.0, -c * (q - 3.0), q * (q - 6.0) + 3.0
    h5 = -c * (q * (q - 10.0) + 15.0)
    density = 1.0 + d * (
        -c + _HALF * d * (h2 + _THIRD * d * (h3 + _FOURTH * d * (h4 + _FIFTH * d * h5)))
    )
    series = 1.0 + _HALF * d * (
        -c + _THIRD * d * (h2 + _FOURTH * d * (h3 + _FIFTH * d * (h4 + _SIXTH * d * h5)))
    )
    return at(_BELOW, k) + at(_DENSITY, k) * d * series, at(_DENSITY, k) * density


@kernel
def below(x):
    """Distribution function of the standard normal, |x| <= `END`."""
    return below_and_density(x)[0]


@kernel
def middle_quantile(p):
    """Quantile of the standard normal for p from `TAIL` to 1 - `TAIL`, to sixteen digits."""
    q = p - 0.5
    r = 0.180625 - q * q
    above = 2.5090809287301226727e3 * r + 3.3430575583588128105e4
    above = (above * r + 6.7265770927008700853e4) * r + 4.5921953931549871457e4
    above = (above * r + 1.3731693765509461125e4) * r + 1.9715909503065514427e3
    above = (above * r + 1.3314166789178437745e2) * r + 3.3871328727963666080e0
    under = 5.2264952788528545610e3 * r + 2.8729085735721942674e4
    under = (under * r + 3.9307895800092710610e4) * r + 2.1213794301586595867e4
    under = (under * r + 5.3941960214247511077e3) * r + 6.8718700749205790830e2
    under = (under * r + 4.2313330701600911252e1) * r + 1.0
    return q * above / under
