"""Random streams and the elementary distributions.

A stream belongs to one (seed, chain, site, sweep, row): a site is one variable's update within a
sweep. Its state is four 64-bit words of xoshiro256++ (Blackman and Vigna, 2019), set from the key
by bijective mixing, so that two different keys of one seed can never start in the same state.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.compile import kernel

SMALLEST = 2.2250738585072014e-308  # smallest normal number: where a gamma draw is floored


@kernel
def mix(x):
    """Bijective 64-bit finaliser (Stafford's variant 13, as in SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def seed_stream(key, row, s):
    """Start the stream of one row: ``key`` is (seed, seed, chain << 32 | site, sweep).

    With the seed fixed, s[0] determines (sweep, row), and given s[0], s[1] determines
    (chain, site): no two keys share a state. None is zero: s[2] is not where s[0] and s[1] are.
    """
    s[0] = mix(key[0] ^ ((key[3] << np.uint64(32)) | np.uint64(row)))
    s[1] = mix(key[1] ^ key[2] ^ (s[0] * np.uint64(0x9E3779B97F4A7C15)))
    s[2] = mix(s[0] + s[1] + np.uint64(0x9E3779B97F4A7C15))
    s[3] = mix(s[1] ^ (s[2] + np.uint64(0xD1B54A32D192ED03)))


@kernel
def next_bits(s):
    """Advance the stream and return 64 random bits."""
    total = s[0] + s[3]
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s[0]
    shifted = s[1] << np.uint64(17)
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= shifted
    s[3] = (s[3] << np.uint64(45)) | (s[3] >> np.uint64(19))
    return result


@kernel
def uniform(s):
    """Uniform on the open interval (0, 1)."""
    return (np.float64(next_bits(s) >> np.uint64(12)) + 0.5) * 2.220446049250313e-16


@kernel
def exponential(s):
    """Unit exponential."""
    return -math.log(uniform(s))


def _ziggurat_tables(layers=256, r=3.6541528853610088):
    """Right edges x[0..layers] and heights exp(-x^2/2) of equal-area layers (Marsaglia, Tsang)."""
    tail = math.sqrt(math.pi / 2) * math.erfc(r / math.sqrt(2))
    area = r * math.exp(-r * r / 2) + tail
    x = np.zeros(layers + 1)
    x[0], x[1] = area / math.exp(-r * r / 2), r
    for i in range(2, layers):
        x[i] = math.sqrt(-2 * math.log(area / x[i - 1] + math.exp(-(x[i - 1] ** 2) / 2)))
    return x, np.exp(-(x**2) / 2)


_EDGE, _HEIGHT = _ziggurat_tables()
_TAIL = 3.6541528853610088


@kernel
def normal(s):
    """Return a standard normal by the ziggurat; disjoint bits choose layer, sign and abscissa."""
    while True:
        bits = next_bits(s)
        layer = np.int64(bits & np.uint64(255))
        x = np.float64(bits >> np.uint64(12)) * 2.220446049250313e-16 * _EDGE[layer]
        sign = 1.0 if bits & np.uint64(256) else -1.0
        if x < _EDGE[layer + 1]:
            return sign * x
        if layer == 0:
            while True:
                excess = exponential(s) / _TAIL
                if 2.0 * exponential(s) > excess * excess:
                    return sign * (_TAIL + excess)
        low = _HEIGHT[layer]
        if low + uniform(s) * (_HEIGHT[layer + 1] - low) < math.exp(-0.5 * x * x):
            return sign * x


@kernel(inner=True)
def gamma_constants(a):
    """What `gamma_by` needs to know of a shape a >= 1."""
    d = a - 1.0 / 3.0
    return d, 1.0 / math.sqrt(9.0 * d)


@kernel(inner=True)
def gamma_by(s, d, c):
    """Gamma(a, 1) by the constants of a shape a >= 1 (Marsaglia and Tsang, 2000)."""
    while True:
        z = normal(s)
        root = 1.0 + c * z
        if root <= 0.0:
            continue
        v = root * root * root
        u = uniform(s)
        if u < 1.0 - 0.0331 * z * z * z * z:
            return d * v
        if math.log(u) < 0.5 * z * z + d * (1.0 - v + math.log(v)):
            return d * v


@kernel(inner=True)
def _gamma_from_one(s, a):
    """Gamma(a, 1) for a >= 1."""
    d, c = gamma_constants(a)
    return gamma_by(s, d, c)


@kernel
def log_gamma_draw(s, a):
    """Logarithm of a Gamma(a, 1) draw: shapes below one underflow on the plain scale."""
    if a >= 1.0:
        return math.log(_gamma_from_one(s, a))
    return math.log(_gamma_from_one(s, a + 1.0)) + math.log(uniform(s)) / a


@kernel
def gamma(s, a):
    """Gamma(a, 1), never below the smallest normal number."""
    if a >= 1.0:
        return max(_gamma_from_one(s, a), SMALLEST)
    return max(math.exp(log_gamma_draw(s, a)), SMALLEST)
