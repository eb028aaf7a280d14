"""Goodness of fit: every sampler against an accurate distribution function, over wide ranges.

A comparison fails by chance, over all seeds, with probability LEVEL; seeds are fixed. The power
checks show that the same tests notice a parameter that is a few per cent off.
"""

import numpy as np
import pytest
from scipy import special, stats

from bayesmf.kernels import fill as kinds
from bayesmf.kernels import random
from bayesmf.kernels import special as samplers
from bayesmf.priors import L21
from bayesmf.priors import distributions as dist
from bayesmf.priors.hyperpriors import TruncatedNormalHyper
from bayesmf.streams import Stream, seed_words
from tests.exactness.cdfs import (
    chi_square,
    gamma_cdf,
    gig_cdf,
    gig_half_cdf,
    half_cauchy_precision_cdf,
    inverse_gaussian_cdf,
    ks,
    log_gamma_cdf,
    log_scale_cdf,
    normal_cdf,
    quadrature_cdf,
    truncated_cdf,
    truncated_hyper_cdfs,
)
from tests.exactness.draws import SHAPE, fill, log_scales, one_by_one, stream, wisharts

LEVEL = 1e-4 / 800  # there are fewer than 800 comparisons, those of latent variables included
TAIL = 3.6541528853610088  # where the ziggurat's tail begins

# What chains with Laplace priors meet: (a, b) of GIG(1/2) and of GIG(-3/2), at several scales
LAPLACE_VARIANCES = [(0.1, 1e-15), (0.1, 100.0), (2e-4, 200.0), (3e-5, 3e5), (30.0, 1e-13),
                     (500.0, 5e4)]  # fmt: skip
LAPLACE_SCALES = [(0.02, 50.0), (0.17, 6.0), (0.17, 1e3), (0.1, 1e6), (1.0, 1e10)]


@pytest.fixture
def fits(verdict):
    """Note how well draws fit a distribution, by p-values."""

    def judge(distribution, *found):
        for p in found:
            verdict("distributions", distribution, p, LEVEL, at_least=True)

    return judge


@pytest.mark.parametrize(("p", "a", "b"), [(0.5, 2.0, 3.0), (-1.5, 0.1, 7.0), (30.0, 5.0, 0.2)])
def test_quadrature_agrees_with_scipy(p, a, b):
    x = np.sqrt(b / a) * np.exp(np.linspace(-1, 5, 7))
    exact = stats.geninvgauss(p, np.sqrt(a * b), scale=np.sqrt(b / a)).cdf(x)
    np.testing.assert_allclose(gig_cdf(p, a, b)(x), exact, atol=1e-6)


# Elementary distributions


@pytest.mark.seeds
@pytest.mark.parametrize(
    ("linear", "precision"), [(0.0, 1.0), (3.0, 0.1), (-1e3, 1e-6), (1e8, 1e4), (2.0, 1e200)]
)
def test_normal(linear, precision, fits):
    x = fill(kinds.NORMAL, linear, precision)
    fits("normal", ks(x, normal_cdf(linear, precision)))


@pytest.mark.seeds
def test_normal_in_every_layer(fits):
    """Four million draws: a fault in one layer of the ziggurat would show."""
    x = fill(kinds.NORMAL, 0.0, 1.0, shape=(2000, 2000), seed=1)
    counts = np.histogram(special.ndtr(x), np.linspace(0, 1, 1001))[0]
    fits("normal", stats.chisquare(counts).pvalue)

    tail = np.abs(x[np.abs(x) > TAIL])
    share = 2 * special.ndtr(-TAIL)
    fits("normal", stats.binomtest(tail.size, x.size, share).pvalue)
    fits("normal", ks(tail, lambda y: 1 - special.ndtr(-y) / special.ndtr(-TAIL)))
    fits("normal", stats.binomtest(int(np.sum(x > 0)), x.size).pvalue)


@pytest.mark.seeds
@pytest.mark.parametrize("rate", [1e-100, 0.3, 1.0, 1e100])
def test_exponential(rate, fits):
    fits("exponential", ks(fill(kinds.EXPONENTIAL, rate), lambda x: -np.expm1(-rate * x)))


@pytest.mark.seeds
@pytest.mark.parametrize(
    "shape", [0.02, 0.05, 0.3, 0.5, 0.999, 1.0, 1.001, 1.5, 3.0, 10.0, 100.0, 1e4, 1e5, 1e6]
)
@pytest.mark.parametrize("rate", [2.5, 1e-50])
def test_gamma(shape, rate, fits):
    fits("gamma", ks(fill(kinds.GAMMA, shape, rate), gamma_cdf(shape, rate)))


@pytest.mark.seeds
@pytest.mark.parametrize("shape", [1e-3, 0.01, 0.1, 0.7, 1.0, 40.0])
def test_log_gamma(shape, fits):
    fits("gamma", ks(one_by_one(random.log_gamma_draw, shape), log_gamma_cdf(shape)))


@pytest.mark.seeds
def test_gamma_of_a_tiny_shape_is_floored(fits):
    x, cdf = fill(kinds.GAMMA, 1e-3, 1.0), log_gamma_cdf(1e-3)
    floor = np.log(random.SMALLEST)
    above = np.log(x[x > random.SMALLEST])
    assert x.min() == random.SMALLEST
    share = float(cdf(np.array(floor)))
    fits("gamma", stats.binomtest(x.size - above.size, x.size, share).pvalue)
    fits("gamma", ks(above, lambda y: (cdf(y) - share) / (1 - share)))


# Conditional distributions


@pytest.mark.seeds
@pytest.mark.parametrize("p", [1e-290, 1.0, 1e10])
@pytest.mark.parametrize(
    "ratio",
    [-1e6, -1e4, -1e3, -38.0, -20.0, -5.0, -1.0, -0.451, -0.45, -0.449, -0.1, -1e-9, 0.0, 0.1, 1.0,
     3.0, 10.0, 38.0, 1e3, 1e6],
)  # fmt: skip
def test_truncated_normal(ratio, p, fits):
    """The ratio b / sqrt(p) is the mean before truncation, in standard deviations."""
    b = ratio * np.sqrt(p)
    x = fill(kinds.TRUNCATED, b, p)
    assert x.min() >= 0
    fits("truncated normal", ks(x, truncated_cdf(p, b)))


@pytest.mark.seeds
@pytest.mark.parametrize("b", [-1e-9, -1.0, -1e9])
def test_truncated_normal_without_precision(b, fits):
    fits("truncated normal", ks(fill(kinds.TRUNCATED, b, 0.0), truncated_cdf(0.0, b)))


@pytest.mark.seeds
@pytest.mark.parametrize(
    ("mean", "shape"),
    [(1e-12, 1.0), (1e-6, 1.0), (1.0, 1.0), (1.0, 1e4), (3.0, 0.1), (10.0, 10.0), (1e5, 1.0),
     (1e8, 1.0), (1e10, 3.0), (1e12, 1.0), (1e12, 1e-6), (1e12, 1e12)],
)  # fmt: skip
def test_inverse_gaussian(mean, shape, fits):
    x = fill(kinds.INVERSE_GAUSSIAN, mean, shape)
    assert x.min() > 0
    fits("inverse Gaussian", ks(x, inverse_gaussian_cdf(mean, shape)))


@pytest.mark.seeds
@pytest.mark.parametrize(
    ("a", "b"),
    [(1.0, 0.0), (2.0, 1e-200), (1.0, 1e-12), (1.0, 1.0), (1e-6, 1e6), (1e8, 1e-8), (1e4, 1e4),
     *LAPLACE_VARIANCES],
)  # fmt: skip
def test_gig_half(a, b, fits):
    x = fill(kinds.GIG, 0.5, a, b)
    fits("GIG 1/2", ks(x, gig_half_cdf(a, b)))
    if b > 0:
        fits("GIG 1/2", ks(1 / fill(kinds.GIG, -0.5, b, a, seed=1), gig_half_cdf(a, b)))


@pytest.mark.seeds
@pytest.mark.parametrize(
    ("a", "b"),
    [(1.0, 1e-12), (3.0, 1e-4), (1.0, 1.0), (0.2, 5.0), (1e-8, 1e8), (1e8, 1e-12), (1e4, 1e4),
     *LAPLACE_SCALES],
)  # fmt: skip
def test_gig_three_halves(a, b, fits):
    fits("GIG 3/2", ks(fill(kinds.GIG, 1.5, a, b), gig_cdf(1.5, a, b)))
    fits("GIG 3/2", ks(fill(kinds.GIG, -1.5, a, b, seed=1), gig_cdf(-1.5, a, b)))


@pytest.mark.seeds
@pytest.mark.parametrize("rate", [1e-12, 1e-6, 1e-3, 0.1, 0.9, 1.1, 5.0, 100.0, 1e4])
def test_half_cauchy_precision(rate, fits):
    x = fill(kinds.HALF_CAUCHY, rate)
    assert x.min() > 0
    fits("half-Cauchy precision", ks(x, half_cauchy_precision_cdf(rate)))


@pytest.mark.seeds
@pytest.mark.parametrize("p", [-5000.0, -300.5, -7.0, -0.2, 0.0, 0.01, 2.0, 60.0, 5000.0])
@pytest.mark.parametrize(
    ("a", "b"), [(1.0, 1.0), (1e-6, 1e6), (1e4, 1e4), (1e-100, 1e-100), (7.0, 1e-30)]
)
def test_gig(p, a, b, fits):
    fits("GIG", ks(fill(kinds.GIG, p, a, b), gig_cdf(p, a, b)))


@pytest.mark.seeds
@pytest.mark.parametrize("shape", [0.02, 1.0, 500.0])
def test_gig_at_its_gamma_limits(shape, fits):
    gamma = gamma_cdf(shape, 2.0)
    fits("GIG", ks(fill(kinds.GIG, shape, 4.0, 0.0), gamma))
    fits("GIG", ks(1 / fill(kinds.GIG, -shape, 0.0, 4.0, seed=1), gamma))


LOG_WEIGHTS = {
    "all powers": {-2: 0.0, -1: 1.0, 1: 2.0, 2: -1.0},
    "exponential, normal": {-2: 3.0, 1: 1.0},
    "normal, exponential": {-1: -2.0, 2: 5.0},
    "far apart": {-2: -300.0, -1: 20.0, 1: -400.0, 2: -350.0},
    "strong": {-2: 9.0, -1: 9.0, 1: 9.0, 2: 9.0},
}


@pytest.mark.seeds
@pytest.mark.parametrize("exponent", [-5000, -40, -0.5, 0, 3, 700])
@pytest.mark.parametrize("name", LOG_WEIGHTS)
def test_log_scale(name, exponent, fits):
    weights = LOG_WEIGHTS[name]
    fits("log scale", ks(log_scales(exponent, weights), log_scale_cdf(exponent, weights)))


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


@pytest.mark.seeds
@pytest.mark.parametrize(
    ("n", "p"),
    [(1, 0.3), (1, 0.999), (7, 0.5), (19, 0.5), (20, 0.5), (21, 0.48), (30, 0.9), (100, 0.01),
     (100, 0.1), (500, 0.7), (10_000, 1e-3), (10_000, 0.0012), (1_000_000, 1e-6), (1_000_000, 3e-5),
     (1_000_000, 0.25), (1_000_000, 0.5), (1_000_000, 0.9999)],
)  # fmt: skip
def test_binomial(n, p, fits):
    x = one_by_one(samplers.binomial, float(n), p)
    assert np.all((x >= 0) & (x <= n) & (x % 1 == 0))
    fits("binomial", chi_square(x, stats.binom(n, p)))


def test_binomial_at_the_edges():
    for n, p, value in ((0, 0.5, 0), (9, 0.0, 0), (9, 1.0, 9), (9, 1.1, 9)):
        assert not (one_by_one(samplers.binomial, float(n), p, n=5) - value).any()


# Matrices and priors


def z_scores(draws, mean, variance):
    return (draws.mean(axis=0) - mean) / np.sqrt(variance / len(draws))


@pytest.mark.seeds
def test_wishart_of_one_dimension_is_a_gamma(fits):
    x = wisharts(2.7, np.array([[3.0]])).ravel()
    fits("Wishart", ks(x, gamma_cdf(1.35, 1.5)))


@pytest.mark.seeds
@pytest.mark.parametrize("dof", [2.4, 3.0, 11.5])
def test_wishart(dof, fits):
    """Moments and marginals of the precision, and of its inverse Wishart covariance."""
    root = np.array([[2.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [0.5, 3.0, 0.3]])
    scale = root @ root.T
    inverse = np.linalg.inv(scale)
    x = wisharts(dof, scale)
    np.testing.assert_allclose(x, x.transpose(0, 2, 1), rtol=1e-9, atol=1e-12)
    variance = dof * (inverse**2 + np.outer(np.diag(inverse), np.diag(inverse)))
    z = z_scores(x, dof * inverse, variance)[np.triu_indices(3)]
    fits("Wishart", min(1.0, 2 * z.size * stats.norm.sf(np.abs(z).max())))
    for direction in np.vstack([np.eye(3), [1.0, -2.0, 0.5]]):
        precise = np.einsum("tab,a,b->t", x, direction, direction)
        size = direction @ inverse @ direction
        fits("Wishart", ks(precise, gamma_cdf(0.5 * dof, 0.5 / size)))
        if dof < 3:  # singular in doubles now and then
            continue
        covariance = direction @ np.linalg.solve(x, direction[:, None])[..., 0].T
        size = direction @ scale @ direction
        fits("Wishart", ks(1 / covariance, gamma_cdf(0.5 * (dof - 2), 0.5 * size)))


@pytest.mark.seeds
def test_multivariate_normal(fits):
    precision = np.array([[4.0, -1.0, 0.5], [-1.0, 1.0, 0.2], [0.5, 0.2, 2.0]])
    mean = np.array([1.0, -3.0, 10.0])
    rows = dist.MultivariateNormal(mean=mean, precision=precision).draw(stream(), (50_000, 3))
    covariance = np.linalg.inv(precision)
    for direction in np.vstack([np.eye(3), [1.0, 1.0, 1.0], [1.0, -2.0, 0.3]]):
        variance = direction @ covariance @ direction
        cdf = normal_cdf(direction @ mean / variance, 1 / variance)
        fits("multivariate normal", ks(rows @ direction, cdf))


@pytest.mark.seeds
@pytest.mark.parametrize("mean", [0.0, 0.8, -1.5])
def test_truncated_normal_hyperprior(mean, fits):
    """Prior draws of factor, mean and precision; their joint is in closed form but for U."""
    prior = TruncatedNormalHyper(mean=mean, precision=0.4, shape=2.2, rate=1.3)
    X, h = prior.draw(stream(3), SHAPE)
    name, cdfs = "truncated normal hyperprior", truncated_hyper_cdfs(prior)
    assert X.min() >= 0
    fits(name, ks(h["precision"].ravel(), cdfs["precision"]), ks(h["mean"].ravel(), cdfs["mean"]))
    fits(name, ks(X[X < 30], cdfs["factor"]))


@pytest.mark.seeds
def test_l21_prior(fits):
    """Two factors: marginal by quadrature, sum and share in closed form."""
    strength = 0.7
    X, _ = L21(strength).draw(stream(2), 100_000, 2, {})
    total = X.sum(axis=1)
    marginal = quadrature_cdf(lambda x: special.erfc(x * np.sqrt(strength / 2)), 12.0)
    for k in range(2):
        fits("L21 prior", ks(X[:, k], marginal))
    fits("L21 prior", ks(total, lambda s: -np.expm1(-0.5 * strength * s**2)))
    fits("L21 prior", ks(X[:, 0] / total, stats.uniform.cdf))
    fits("L21 prior", stats.spearmanr(total, X[:, 0] / total).pvalue)


@pytest.mark.seeds
def test_l21_prior_with_more_factors(fits):
    X, _ = L21(0.3).draw(stream(2), 50_000, 5, {})
    fits("L21 prior", ks(0.3 * X.sum(axis=1) ** 2, stats.chi2(5).cdf))
    fits("L21 prior", ks(X[:, 3] / X.sum(axis=1), stats.beta(1, 4).cdf))


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
    "truncated far below": lambda: ks(
        fill(kinds.TRUNCATED, -1e6, 1.0), truncated_cdf(1.0, -1.05e6)
    ),
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
        L21(1.0).draw(stream(), 100_000, 2, {})[0].sum(axis=1),
        lambda s: -np.expm1(-0.5 * 1.05 * s**2),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_power(name, verdict):
    verdict.rejects("distributions", name, WRONG[name]() < LEVEL)
