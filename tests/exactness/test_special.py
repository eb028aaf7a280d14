"""Goodness of fit: every sampler against an accurate distribution function, over wide ranges.

A test fails by chance, over all seeds, with probability LEVEL; seeds are fixed. The power checks
show that the same tests notice a parameter that is a few per cent off.
"""

import numpy as np
import pytest
from scipy import integrate, special, stats

from bayesmf import distributions as dist
from bayesmf.hyperpriors import TruncatedNormalHyper
from bayesmf.kernels import fill as kinds
from bayesmf.kernels import random
from bayesmf.kernels import special as samplers
from bayesmf.priors import L21
from bayesmf.streams import Stream, seed_words

LEVEL = 1e-4 / 400  # there are fewer than 400 comparisons
SHAPE = (1000, 100)  # draws of one test: streams, and draws from each
TAIL = 3.6541528853610088  # where the ziggurat's tail begins


def fill(kind, *parameters, shape=SHAPE, seed=0):
    return Stream(seed_words(seed)).fill(kind, shape, *parameters).ravel()


def one_by_one(primitive, *parameters, n=20_000, seed=0):
    """Draws of one stream, by the primitive itself."""
    state = np.empty(4, np.uint64)
    random.seed_stream(Stream(seed_words(seed)).key(), 0, state)
    return np.array([primitive(state, *parameters) for _ in range(n)])


def ks(x, cdf):
    """Probability of a fit as bad as this or worse."""
    return stats.kstest(x, cdf).pvalue


def chi_square(x, distribution, bins=50):
    """The same for a discrete distribution of scipy, in bins of about equal probability."""
    edges = np.unique(distribution.ppf(np.arange(1, bins) / bins))
    edges = edges[distribution.sf(edges) > 0]
    expected = np.diff(distribution.cdf(edges), prepend=0.0, append=1.0) * len(x)
    counts = np.bincount(np.searchsorted(edges, x), minlength=len(expected))
    rare = expected < 10
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 10:  # too rare to be a bin of its own
        counts[-2] += counts[-1]
        expected[-2] += expected[-1]
        counts, expected = counts[:-1], expected[:-1]
    if len(counts) == 1:
        return 1.0
    return stats.chisquare(counts, expected * (counts.sum() / expected.sum())).pvalue


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


@pytest.mark.parametrize(("p", "a", "b"), [(0.5, 2.0, 3.0), (-1.5, 0.1, 7.0), (30.0, 5.0, 0.2)])
def test_quadrature_agrees_with_scipy(p, a, b):
    x = np.sqrt(b / a) * np.exp(np.linspace(-1, 5, 7))
    exact = stats.geninvgauss(p, np.sqrt(a * b), scale=np.sqrt(b / a)).cdf(x)
    np.testing.assert_allclose(gig_cdf(p, a, b)(x), exact, atol=1e-6)


# Elementary distributions


@pytest.mark.parametrize(
    ("linear", "precision"), [(0.0, 1.0), (3.0, 0.1), (-1e3, 1e-6), (1e8, 1e4), (2.0, 1e200)]
)
def test_normal(linear, precision):
    x = fill(kinds.NORMAL, linear, precision)
    assert ks(x, normal_cdf(linear, precision)) > LEVEL


def test_normal_in_every_layer():
    """Four million draws: a fault in one layer of the ziggurat would show."""
    x = fill(kinds.NORMAL, 0.0, 1.0, shape=(2000, 2000), seed=1)
    counts = np.histogram(special.ndtr(x), np.linspace(0, 1, 1001))[0]
    assert stats.chisquare(counts).pvalue > LEVEL

    tail = np.abs(x[np.abs(x) > TAIL])
    share = 2 * special.ndtr(-TAIL)
    assert stats.binomtest(tail.size, x.size, share).pvalue > LEVEL
    assert ks(tail, lambda y: 1 - special.ndtr(-y) / special.ndtr(-TAIL)) > LEVEL
    assert stats.binomtest(int(np.sum(x > 0)), x.size).pvalue > LEVEL


@pytest.mark.parametrize("rate", [1e-100, 0.3, 1.0, 1e100])
def test_exponential(rate):
    assert ks(fill(kinds.EXPONENTIAL, rate), lambda x: -np.expm1(-rate * x)) > LEVEL


@pytest.mark.parametrize(
    "shape", [0.05, 0.3, 0.5, 0.999, 1.0, 1.001, 1.5, 3.0, 10.0, 100.0, 1e4, 1e6]
)
def test_gamma(shape):
    assert ks(fill(kinds.GAMMA, shape, 2.5), gamma_cdf(shape, 2.5)) > LEVEL


@pytest.mark.parametrize("shape", [1e-3, 0.01, 0.1, 0.7, 1.0, 40.0])
def test_log_gamma(shape):
    assert ks(one_by_one(random.log_gamma_draw, shape), log_gamma_cdf(shape)) > LEVEL


def test_gamma_of_a_tiny_shape_is_floored():
    x, cdf = fill(kinds.GAMMA, 1e-3, 1.0), log_gamma_cdf(1e-3)
    floor = np.log(random.SMALLEST)
    above = np.log(x[x > random.SMALLEST])
    assert x.min() == random.SMALLEST
    share = float(cdf(np.array(floor)))
    assert stats.binomtest(x.size - above.size, x.size, share).pvalue > LEVEL
    assert ks(above, lambda y: (cdf(y) - share) / (1 - share)) > LEVEL


# Conditional distributions


@pytest.mark.parametrize("p", [1e-290, 1.0, 1e10])
@pytest.mark.parametrize(
    "ratio",
    [-1e6, -1e3, -20.0, -5.0, -1.0, -0.451, -0.449, -0.1, 0.0, 0.1, 1.0, 3.0, 10.0, 1e3, 1e6],
)
def test_truncated_normal(ratio, p):
    """The ratio b / sqrt(p) is the mean before truncation, in standard deviations."""
    b = ratio * np.sqrt(p)
    x = fill(kinds.TRUNCATED, b, p)
    assert x.min() >= 0
    assert ks(x, truncated_cdf(p, b)) > LEVEL


@pytest.mark.parametrize("b", [-1e-9, -1.0, -1e9])
def test_truncated_normal_without_precision(b):
    assert ks(fill(kinds.TRUNCATED, b, 0.0), truncated_cdf(0.0, b)) > LEVEL


@pytest.mark.parametrize(
    ("mean", "shape"),
    [(1e-6, 1.0), (1.0, 1.0), (1.0, 1e4), (3.0, 0.1), (1e5, 1.0), (1e8, 1.0), (1e10, 3.0),
     (1e12, 1.0), (1e12, 1e-6), (1e12, 1e12)],
)  # fmt: skip
def test_inverse_gaussian(mean, shape):
    x = fill(kinds.INVERSE_GAUSSIAN, mean, shape)
    assert x.min() > 0
    assert ks(x, inverse_gaussian_cdf(mean, shape)) > LEVEL


@pytest.mark.parametrize(
    ("a", "b"),
    [(1.0, 0.0), (2.0, 1e-200), (1.0, 1e-12), (1.0, 1.0), (1e-6, 1e6), (1e8, 1e-8), (1e4, 1e4)],
)
def test_gig_half(a, b):
    x = fill(kinds.GIG, 0.5, a, b)
    assert ks(x, gig_half_cdf(a, b)) > LEVEL
    if b > 0:
        assert ks(1 / fill(kinds.GIG, -0.5, b, a, seed=1), gig_half_cdf(a, b)) > LEVEL


@pytest.mark.parametrize(
    ("a", "b"),
    [(1.0, 1e-12), (3.0, 1e-4), (1.0, 1.0), (0.2, 5.0), (1e-8, 1e8), (1e8, 1e-12), (1e4, 1e4)],
)
def test_gig_three_halves(a, b):
    assert ks(fill(kinds.GIG, 1.5, a, b), gig_cdf(1.5, a, b)) > LEVEL
    assert ks(fill(kinds.GIG, -1.5, a, b, seed=1), gig_cdf(-1.5, a, b)) > LEVEL


@pytest.mark.parametrize("p", [-5000.0, -300.5, -7.0, -0.2, 0.0, 0.01, 2.0, 60.0, 5000.0])
@pytest.mark.parametrize(
    ("a", "b"), [(1.0, 1.0), (1e-6, 1e6), (1e4, 1e4), (1e-100, 1e-100), (7.0, 1e-30)]
)
def test_gig(p, a, b):
    assert ks(fill(kinds.GIG, p, a, b), gig_cdf(p, a, b)) > LEVEL


@pytest.mark.parametrize("shape", [0.02, 1.0, 500.0])
def test_gig_at_its_gamma_limits(shape):
    gamma = gamma_cdf(shape, 2.0)
    assert ks(fill(kinds.GIG, shape, 4.0, 0.0), gamma) > LEVEL
    assert ks(1 / fill(kinds.GIG, -shape, 0.0, 4.0, seed=1), gamma) > LEVEL


def log_scales(exponent, log_weights, n=100_000, seed=0):
    weights = np.array([[log_weights.get(p, -np.inf)] for p in (-2, -1, 1, 2)])
    out = np.empty(n)
    key = Stream(seed_words(seed)).key()
    exponents = np.full(n, float(exponent))
    kinds.fill_log_scales(key, exponents, np.tile(weights, (1, n)), -np.inf, -np.inf, out)
    return out


LOG_WEIGHTS = {
    "all powers": {-2: 0.0, -1: 1.0, 1: 2.0, 2: -1.0},
    "exponential, normal": {-2: 3.0, 1: 1.0},
    "normal, exponential": {-1: -2.0, 2: 5.0},
    "far apart": {-2: -300.0, -1: 20.0, 1: -400.0, 2: -350.0},
    "strong": {-2: 9.0, -1: 9.0, 1: 9.0, 2: 9.0},
}


@pytest.mark.parametrize("exponent", [-5000, -40, -0.5, 0, 3, 700])
@pytest.mark.parametrize("name", LOG_WEIGHTS)
def test_log_scale(name, exponent):
    weights = LOG_WEIGHTS[name]
    assert ks(log_scales(exponent, weights), log_scale_cdf(exponent, weights)) > LEVEL


@pytest.mark.parametrize("size", [0.0, 40.0, 400.0, 1000.0])
@pytest.mark.parametrize("exponent", [1e-3, 3.0, 1e4])
def test_mode(size, exponent):
    """The root of the slope, where log weights are large, small or missing."""
    none = -np.inf
    for up1, up2 in ((none, -size), (none, size), (-size, none), (size, none), (size, -size)):
        for low in (none, -size):
            mode = samplers._mode(exponent, low, none, up1, up2)
            terms = [exponent, np.exp(low - 2 * mode)]
            terms += [-0.5 * np.exp(up1 + mode), -np.exp(up2 + 2 * mode)]
            assert abs(sum(terms)) < 1e-9 * max(np.abs(terms))


@pytest.mark.parametrize(("exponent", "weights"), [(1, {-2: 0.0}), (-1, {1: 0.0}), (0, {2: 1.0})])
def test_log_scale_without_a_mode_stays(exponent, weights):
    assert not log_scales(exponent, weights, n=5).any()


@pytest.mark.parametrize("direction", [1, -1])
def test_log_scales_that_share_a_determinant(direction):
    """Three turns; a factor sees its own moves, and in the shared weight those of all."""
    K, key, state = 3, Stream(seed_words(4)).key(), np.empty(4, np.uint64)
    exponents = np.array([2.0, 1.0, 3.0]) * direction
    weights = np.array(
        [[0.5, 0.1, 2.0], [1.0, -np.inf, 0.0], [0.3, 0.2, -1.0], [1.5, 0.5, -np.inf]]
    )
    weights = weights[::direction].copy()
    place = 3 if direction == 1 else 0
    determinants = (1.2, -np.inf)[::direction]
    out, total = np.empty(K), np.zeros(K)
    kinds.fill_log_scales(key, exponents, weights, *determinants, out)
    for turn in range(3):
        for k in range(K):
            random.seed_stream(key, turn * K + k, state)
            moved = weights[:, k] + total[k] * np.array([-2, -1, 1, 2])
            moved[place] = np.logaddexp(moved[place], 1.2 + 2 * direction * total.sum())
            total[k] += samplers.log_scale(state, exponents[k], *moved)
    np.testing.assert_allclose(out, total, rtol=1e-12)


@pytest.mark.parametrize(
    ("n", "p"),
    [(1, 0.3), (1, 0.999), (7, 0.5), (19, 0.5), (20, 0.5), (21, 0.48), (30, 0.9), (100, 0.01),
     (100, 0.1), (500, 0.7), (10_000, 1e-3), (10_000, 0.0012), (1_000_000, 1e-6), (1_000_000, 3e-5),
     (1_000_000, 0.25), (1_000_000, 0.5), (1_000_000, 0.9999)],
)  # fmt: skip
def test_binomial(n, p):
    x = one_by_one(samplers.binomial, float(n), p)
    assert np.all((x >= 0) & (x <= n) & (x % 1 == 0))
    assert chi_square(x, stats.binom(n, p)) > LEVEL


def test_binomial_at_the_edges():
    for n, p, value in ((0, 0.5, 0), (9, 0.0, 0), (9, 1.0, 9), (9, 1.1, 9)):
        assert not (one_by_one(samplers.binomial, float(n), p, n=5) - value).any()


# Matrices and priors


def wisharts(dof, scale, n=4000, seed=0):
    stream, shape = Stream(seed_words(seed)), scale.shape
    return np.array([dist.Wishart(dof, scale).draw(stream, shape) for _ in range(n)])


def z_scores(draws, mean, variance):
    return (draws.mean(axis=0) - mean) / np.sqrt(variance / len(draws))


def test_wishart_of_one_dimension_is_a_gamma():
    x = wisharts(2.7, np.array([[3.0]])).ravel()
    assert ks(x, gamma_cdf(1.35, 1.5)) > LEVEL


@pytest.mark.parametrize("dof", [2.4, 3.0, 11.5])
def test_wishart(dof):
    """Moments and marginals of the precision, and of its inverse Wishart covariance."""
    root = np.array([[2.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [0.5, 3.0, 0.3]])
    scale = root @ root.T
    inverse = np.linalg.inv(scale)
    x = wisharts(dof, scale)
    np.testing.assert_allclose(x, x.transpose(0, 2, 1), rtol=1e-9, atol=1e-12)
    variance = dof * (inverse**2 + np.outer(np.diag(inverse), np.diag(inverse)))
    assert np.abs(z_scores(x, dof * inverse, variance)).max() < stats.norm.isf(LEVEL / 18)
    for direction in np.vstack([np.eye(3), [1.0, -2.0, 0.5]]):
        precise = np.einsum("tab,a,b->t", x, direction, direction)
        size = direction @ inverse @ direction
        assert ks(precise, gamma_cdf(0.5 * dof, 0.5 / size)) > LEVEL
        if dof < 3:  # singular in doubles now and then
            continue
        covariance = direction @ np.linalg.solve(x, direction[:, None])[..., 0].T
        size = direction @ scale @ direction
        assert ks(1 / covariance, gamma_cdf(0.5 * (dof - 2), 0.5 * size)) > LEVEL


def test_multivariate_normal():
    precision = np.array([[4.0, -1.0, 0.5], [-1.0, 1.0, 0.2], [0.5, 0.2, 2.0]])
    mean = np.array([1.0, -3.0, 10.0])
    rows = dist.MultivariateNormal(mean, precision).draw(Stream(seed_words(0)), (50_000, 3))
    covariance = np.linalg.inv(precision)
    for direction in np.vstack([np.eye(3), [1.0, 1.0, 1.0], [1.0, -2.0, 0.3]]):
        variance = direction @ covariance @ direction
        cdf = normal_cdf(direction @ mean / variance, 1 / variance)
        assert ks(rows @ direction, cdf) > LEVEL


@pytest.mark.parametrize("mean", [0.0, 0.8, -1.5])
def test_truncated_normal_hyperprior(mean):
    """Prior draws of factor, mean and precision; their joint is in closed form but for U."""
    prior = TruncatedNormalHyper(mean=mean, precision=0.4, shape=2.2, rate=1.3)
    X, h = prior.draw(Stream(seed_words(3)), SHAPE)
    a, root = prior.shape - 0.5, np.sqrt(prior.precision)

    def precisions(t):
        spread = np.sqrt(1 / np.maximum(t, 1e-300) + 1 / prior.precision)
        return t ** (a - 1) * np.exp(-prior.rate * t) * special.ndtr(mean / spread)

    def means(m):
        accepted = special.stdtr(2 * a, m * np.sqrt(a / prior.rate))
        return np.exp(-0.5 * ((m - mean) * root) ** 2) * accepted

    t = np.linspace(1e-4, 40, 4000)

    def factors(x):
        variance = 1 / t + 1 / prior.precision
        weight = t ** (a - 1) * np.exp(-prior.rate * t) / np.sqrt(variance)
        return np.array([np.sum(weight * np.exp(-0.5 * (u - mean) ** 2 / variance)) for u in x])

    low = mean - 12 / root
    assert X.min() >= 0
    assert ks(h["precision"].ravel(), quadrature_cdf(precisions, 40.0)) > LEVEL
    shifted = quadrature_cdf(lambda y: means(y + low), 24 / root)
    assert ks(h["mean"].ravel() - low, shifted) > LEVEL
    inside = X[X < 30]
    assert ks(inside, quadrature_cdf(factors, 30.0, 1501)) > LEVEL


def test_l21_prior():
    """Two factors: marginal by quadrature, sum and share in closed form."""
    strength = 0.7
    X, _ = L21(strength).draw(Stream(seed_words(2)), 100_000, 2, {})
    total = X.sum(axis=1)
    marginal = quadrature_cdf(lambda x: special.erfc(x * np.sqrt(strength / 2)), 12.0)
    for k in range(2):
        assert ks(X[:, k], marginal) > LEVEL
    assert ks(total, lambda s: -np.expm1(-0.5 * strength * s**2)) > LEVEL
    assert ks(X[:, 0] / total, stats.uniform.cdf) > LEVEL
    assert abs(stats.spearmanr(total, X[:, 0] / total).statistic) * 100_000**0.5 < 5


def test_l21_prior_with_more_factors():
    X, _ = L21(0.3).draw(Stream(seed_words(2)), 50_000, 5, {})
    assert ks(0.3 * X.sum(axis=1) ** 2, stats.chi2(5).cdf) > LEVEL
    assert ks(X[:, 3] / X.sum(axis=1), stats.beta(1, 4).cdf) > LEVEL


# Power: the same tests reject a parameter that is 5 % off


WRONG = {
    "normal mean": lambda: ks(fill(kinds.NORMAL, 0.0, 1.0), normal_cdf(0.05, 1.0)),
    "normal sd": lambda: ks(fill(kinds.NORMAL, 0.0, 1.0), normal_cdf(0.0, 1.05**2)),
    "exponential": lambda: ks(fill(kinds.EXPONENTIAL, 1.0), lambda x: -np.expm1(-1.05 * x)),
    "gamma shape": lambda: ks(fill(kinds.GAMMA, 2.0, 1.0), gamma_cdf(2.1)),
    "gamma small shape": lambda: ks(fill(kinds.GAMMA, 0.3, 1.0), gamma_cdf(0.315)),
    "gamma rate": lambda: ks(fill(kinds.GAMMA, 2.0, 1.0), gamma_cdf(2.0, 1.05)),
    "truncated below": lambda: ks(fill(kinds.TRUNCATED, -3.0, 1.0), truncated_cdf(1.0, -3.15)),
    "truncated above": lambda: ks(fill(kinds.TRUNCATED, 3.0, 1.0), truncated_cdf(1.0, 3.15)),
    "truncated precision": lambda: ks(fill(kinds.TRUNCATED, 0.5, 1.0), truncated_cdf(1.05, 0.5)),
    "inverse Gaussian mean": lambda: ks(
        fill(kinds.INVERSE_GAUSSIAN, 1.0, 2.0), inverse_gaussian_cdf(1.05, 2.0)
    ),
    "inverse Gaussian shape": lambda: ks(
        fill(kinds.INVERSE_GAUSSIAN, 1e8, 1.0), inverse_gaussian_cdf(1e8, 1.05)
    ),
    "GIG 1/2": lambda: ks(fill(kinds.GIG, 0.5, 2.0, 1.0), gig_half_cdf(2.1, 1.0)),
    "GIG 3/2": lambda: ks(fill(kinds.GIG, 1.5, 2.0, 1.0), gig_cdf(1.5, 2.1, 1.0)),
    "GIG -3/2": lambda: ks(fill(kinds.GIG, -1.5, 2.0, 1.0), gig_cdf(-1.5, 2.0, 1.05)),
    "GIG order": lambda: ks(fill(kinds.GIG, 60.0, 1.0, 1.0), gig_cdf(63.0, 1.0, 1.0)),
    "log scale exponent": lambda: ks(
        log_scales(40, LOG_WEIGHTS["all powers"]), log_scale_cdf(42, LOG_WEIGHTS["all powers"])
    ),
    "log scale weight": lambda: ks(
        log_scales(40, {-2: 0.0, 1: 2.0}), log_scale_cdf(40, {-2: 0.0, 1: 2.0 + np.log(1.05)})
    ),
    "binomial by inversion": lambda: chi_square(
        one_by_one(samplers.binomial, 19.0, 0.5), stats.binom(19, 0.525)
    ),
    "binomial by rejection": lambda: chi_square(
        one_by_one(samplers.binomial, 500.0, 0.3), stats.binom(500, 0.315)
    ),
    "Wishart": lambda: ks(wisharts(11.5, np.eye(3))[:, 1, 1], gamma_cdf(5.75, 0.525)),
    "L21": lambda: ks(
        L21(1.0).draw(Stream(seed_words(0)), 100_000, 2, {})[0].sum(axis=1),
        lambda s: -np.expm1(-0.5 * 1.05 * s**2),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_power(name):
    assert WRONG[name]() < LEVEL
