"""Distribution functions that stay accurate over wide ranges, and p-values of draws under them."""

import numpy as np
from scipy import integrate, special, stats

from tests.exactness.battery import Cells


def ks(x, cdf):
    """Probability of a fit as bad as this or worse."""
    return stats.kstest(x, cdf).pvalue


def chi_square(x, distribution, bins=50):
    """The same for a discrete distribution of scipy, in bins of about equal probability."""
    quantiles = distribution.ppf(np.arange(1, bins) / bins)
    edges = np.unique(np.append(quantiles[0] - 1, quantiles))
    edges = edges[(distribution.cdf(edges) > 0) & (distribution.sf(edges) > 0)]
    expected = np.diff(distribution.cdf(edges), prepend=0.0, append=1.0) * len(x)
    return Cells(np.bincount(np.searchsorted(edges, x), minlength=len(expected)), expected).p()


# Distribution functions


def normal_cdf(linear, precision):
    return lambda x: special.ndtr((x - linear / precision) * np.sqrt(precision))


def gamma_cdf(shape, rate=1.0):
    return lambda x: special.gammainc(shape, rate * x)


def log_gamma_cdf(shape):
    """Of the logarithm of a gamma variable, also where that itself underflows."""

    def cdf(y):
        small = np.exp(np.minimum(shape * y - special.gammaln(shape + 1), 0.0))
        return np.where(y < -600, small, special.gammainc(shape, np.exp(np.maximum(y, -600))))

    return cdf


def truncated_cdf(p, b):
    """Of exp(-p x^2 / 2 + b x) on x >= 0: the excess over the bound, in standard deviations."""
    if p == 0:
        return lambda x: -np.expm1(b * x)
    bound = -b / np.sqrt(p)

    def cdf(x):
        y = x * np.sqrt(p)
        if bound <= 0:
            return (special.ndtr(y + bound) - special.ndtr(bound)) / special.ndtr(-bound)
        ratio = special.erfcx((bound + y) / np.sqrt(2)) / special.erfcx(bound / np.sqrt(2))
        return 1 - np.exp(-bound * y - y * y / 2) * ratio

    return cdf


def inverse_gaussian_cdf(mean, shape):
    def cdf(x):
        root = np.sqrt(shape / x)
        mirror = 2 * shape / mean + special.log_ndtr(-root * (x / mean + 1))
        return special.ndtr(root * (x / mean - 1)) + np.exp(mirror)

    return cdf


def gig_half_cdf(a, b):
    """1 / x is inverse Gaussian; at b = 0, a x is chi-square with one degree of freedom."""
    if b == 0:
        return lambda x: special.gammainc(0.5, 0.5 * a * x)
    reciprocal = inverse_gaussian_cdf(np.sqrt(a) / np.sqrt(b), a)
    return lambda x: 1 - reciprocal(1 / x)


def half_cauchy_precision_cdf(rate):
    """Density proportional to exp(-rate x) / (1 + x), by exponential integrals times e^argument."""

    def scaled(z):
        return special.hyperu(1.0, 1.0, z)

    return lambda x: 1 - np.exp(-rate * x) * scaled(rate * (1 + x)) / scaled(rate)


def log_scale_cdf(exponent, log_weights):
    """By quadrature: log density exponent x - sum over powers p of e^(log_weights[p] + p x) / 2."""
    powers = np.array(list(log_weights))[:, None]
    logs = np.array(list(log_weights.values()))[:, None]

    def log_density(x):
        return exponent * x - 0.5 * np.exp(np.minimum(logs + powers * x, 690)).sum(axis=0)

    def slope(x):
        return exponent - 0.5 * (powers * np.exp(np.minimum(logs + powers * x, 690))).sum()

    left, right = -5000.0, 5000.0
    for _ in range(100):
        middle = 0.5 * (left + right)
        left, right = (middle, right) if slope(middle) > 0 else (left, middle)
    ends = []
    for sign in (-1, 1):
        step = 1e-6
        while log_density(np.array([middle + sign * step])) > log_density(middle) - 45:
            step *= 1.2
        ends.append(middle + sign * step)
    x = np.linspace(*ends, 20_001)
    density = np.exp(log_density(x) - log_density(np.array([middle])))
    total = integrate.cumulative_trapezoid(density, x, initial=0.0)
    return lambda y: np.interp(y, x, total / total[-1])


def gig_cdf(p, a, b):
    weights = {power: np.log(w) for power, w in ((1, a), (-1, b)) if w > 0}
    cdf = log_scale_cdf(p, weights)
    return lambda x: cdf(np.log(x))


def quadrature_cdf(density, high, points=20_001):
    """Of a density on (0, high), up to its constant."""
    x = np.linspace(0, high, points)
    total = integrate.cumulative_trapezoid(density(x), x, initial=0.0)
    return lambda y: np.interp(y, x, total / total[-1])


def truncated_hyper_cdfs(prior):
    """Of mean, precision and (below 30) factor under a `TruncatedNormalHyper`."""
    a, root = prior.shape - 0.5, np.sqrt(prior.precision)

    def precisions(t):
        spread = np.sqrt(1 / np.maximum(t, 1e-300) + 1 / prior.precision)
        return t ** (a - 1) * np.exp(-prior.rate * t) * special.ndtr(prior.mean / spread)

    def means(m):
        accepted = special.stdtr(2 * a, m * np.sqrt(a / prior.rate))
        return np.exp(-0.5 * ((m - prior.mean) * root) ** 2) * accepted

    t = np.linspace(1e-4, 40, 4000)

    def factors(x):
        variance = 1 / t + 1 / prior.precision
        weight = t ** (a - 1) * np.exp(-prior.rate * t) / np.sqrt(variance)
        return np.array(
            [np.sum(weight * np.exp(-0.5 * (u - prior.mean) ** 2 / variance)) for u in x]
        )

    low = prior.mean - 12 / root
    shifted = quadrature_cdf(lambda y: means(y + low), 24 / root)
    return {
        "precision": quadrature_cdf(precisions, 40.0),
        "mean": lambda m: shifted(m - low),
        "factor": quadrature_cdf(factors, 30.0, 1501),
    }
