"""Goodness of fit of what likelihoods draw: values behind limits, counts, and shapes of mixing.

The same limits as for the other samplers; the power checks are at the end.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, special, stats

from bayesmf.kernels import compile as compiling
from bayesmf.kernels import mixing, normal, positive
from bayesmf.kernels.ordinal import cut_terms, draw_latent
from bayesmf.kernels.truncation import draw_between
from tests.exactness.cdfs import chi_square, gamma_cdf, ks, truncated_cdf
from tests.exactness.draws import one_by_one, stream
from tests.exactness.test_special import LEVEL

ROWS, EACH = 400, 50  # rows of entries, and entries of each
FLAT = 1e-7  # below this change of the log density an interval is flat


@pytest.fixture
def fits(verdict):
    """Note how well draws fit a distribution, by p-values."""

    def judge(distribution, *found):
        for p in found:
            verdict("distributions", distribution, p, LEVEL, at_least=True)

    return judge


# --- Values in intervals


def between(nu, a, width, mirrored=False):
    """Draws of x - a for a standard x in [a, a + width], or of a - x in the mirror image."""
    n = ROWS * EACH
    sign = -1.0 if mirrored else 1.0
    ends = sorted((0.0, sign * width))
    out, indptr = np.empty(n), np.arange(0, n + 1, EACH)
    draw_between(
        0, ROWS, stream(0, nu, a, width, mirrored).key(), indptr, np.full(n, -sign * a),
        np.ones(n), nu, np.full(n, ends[0]), np.full(n, ends[1]), out,
    )  # fmt: skip
    assert ((out >= ends[0]) & (out <= ends[1])).all()
    return sign * out


def normal_between_cdf(a, width):
    """Of the excess over a."""
    if a >= 0:
        if width * (a + width) < FLAT:
            return lambda y: y / width
        tail = truncated_cdf(1.0, -a)
        return lambda y: tail(y) / (1.0 if np.isinf(width) else tail(width))
    if a + width <= 0:
        other = normal_between_cdf(-a - width, width)
        return lambda y: 1 - other(width - y)
    low, high = special.ndtr(a), special.ndtr(a + width)
    if width < FLAT:
        return lambda y: y / width
    return lambda y: (special.ndtr(a + y) - low) / (high - low)


def student_between_cdf(nu, a, width):
    law = stats.t(nu)
    if width < 1e-6 * (1 + abs(a)):
        return lambda y: y / width
    if a + width <= 0:
        other = student_between_cdf(nu, -a - width, width)
        return lambda y: 1 - other(width - y)
    end = law.sf(a + width)
    return lambda y: (law.sf(a) - law.sf(a + y)) / (law.sf(a) - end)


INTERVALS = [
    (0.0, np.inf), (0.3, np.inf), (0.46, np.inf), (2.0, np.inf), (8.0, np.inf), (30.0, np.inf),
    (1e4, np.inf), (-0.5, np.inf), (-1.5, np.inf), (-6.0, np.inf), (0.0, 0.5), (1.0, 1.0),
    (2.0, 1e-3), (2.0, 1e-9), (5.0, 0.5), (8.0, 0.1), (30.0, 0.01), (30.0, 1.0), (1e4, 1e-5),
    (1e4, 1e-3), (-1.0, 2.0), (-1.0, 0.5), (-1e-3, 2e-3), (-3.0, 6.0), (-9.0, 9.5), (-2.0, 2.2),
    (-0.1, 3.0), (-6.0, 0.1), (-6.0, 5.5),
]  # fmt: skip


@pytest.mark.seeds
@pytest.mark.parametrize(("a", "width"), INTERVALS)
def test_normal_in_an_interval(a, width, fits):
    cdf = normal_between_cdf(a, width)
    fits("normal in an interval", ks(between(np.inf, a, width), cdf))
    fits("normal in an interval", ks(between(np.inf, a, width, True), cdf))


@pytest.mark.seeds
@pytest.mark.parametrize("nu", [2.05, 5.0, 200.0])
@pytest.mark.parametrize(("a", "width"), INTERVALS)
def test_student_in_an_interval(a, width, nu, fits):
    if stats.t.sf(a, nu) < 1e-290:
        pytest.skip("so far out that SciPy has no probabilities to compare with")
    cdf = student_between_cdf(nu, a, width)
    fits("Student in an interval", ks(between(nu, a, width), cdf))


@pytest.mark.seeds
def test_values_have_their_own_means_and_precisions(fits):
    """Standardised, entries with other means, precisions and intervals are uniform."""
    n, rng = ROWS * EACH, np.random.default_rng(0)
    means, precision = rng.normal(0, 3, n), rng.gamma(1.0, 1.0, n) + 0.01
    low = rng.normal(0, 3, n)
    high = low + rng.exponential(1.0, n)
    low[::3], high[1::3] = -np.inf, np.inf
    out, indptr = np.empty(n), np.arange(0, n + 1, EACH)
    for nu, law in ((np.inf, stats.norm()), (4.0, stats.t(4.0))):
        key = stream(1, nu).key()
        draw_between(0, ROWS, key, indptr, means, precision, nu, low, high, out)
        assert ((out >= low) & (out <= high)).all()
        a, x, b = ((v - means) * np.sqrt(precision) for v in (low, out, high))
        flip = a > 0
        a, x, b = np.where(flip, -b, a), np.where(flip, -x, x), np.where(flip, -a, b)
        u = (law.cdf(x) - law.cdf(a)) / (law.cdf(b) - law.cdf(a))
        fits("values in intervals", ks(u[np.isfinite(u)], stats.uniform.cdf))


@pytest.mark.seeds
def test_latent_values_between_cuts(fits):
    n, rng = ROWS * EACH, np.random.default_rng(1)
    ends = np.array([-np.inf, -1.0, 0.2, 1.9, np.inf])
    codes, means = rng.integers(0, 4, n).astype(float), rng.normal(0, 2, n)
    out, indptr = np.empty(n), np.arange(0, n + 1, EACH)
    draw_latent(0, ROWS, stream(2).key(), indptr, codes, means, ends, out)
    a, b = ends[codes.astype(int)], ends[codes.astype(int) + 1]
    assert ((out >= a) & (out <= b)).all()
    a, x, b = a - means, out - means, b - means
    flip = a > 0
    a, x, b = np.where(flip, -b, a), np.where(flip, -x, x), np.where(flip, -a, b)
    u = (special.ndtr(x) - special.ndtr(a)) / (special.ndtr(b) - special.ndtr(a))
    for code in range(4):
        fits("latent values", ks(u[codes == code], stats.uniform.cdf))
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 5 / np.sqrt(n)


# --- The normal distribution function, and the likelihood of cuts


def test_distribution_function_of_the_normal():
    x = np.random.default_rng(0).uniform(-5.999, 5.999, 20_000)
    found = np.array([normal.below(v) for v in x])
    np.testing.assert_allclose(found, special.ndtr(x), rtol=1e-12)
    both = np.array([normal.below_and_density(v) for v in x])
    np.testing.assert_allclose(both[:, 0], special.ndtr(x), rtol=1e-12)
    np.testing.assert_allclose(both[:, 1], stats.norm.pdf(x), rtol=1e-10)


@pytest.mark.parametrize("far", [0.0, 3.0, 6.5, 12.0, 25.0])
def test_log_likelihood_of_cuts_in_the_tails(far):
    """Cells whose means are this far from their category, on either side."""
    ends = np.array([-np.inf, -0.5, 0.1, 0.4, np.inf])
    codes = np.tile(np.arange(4.0), 2)
    means = np.repeat([-far, far], 4)
    out = np.zeros((4, ends.size))
    cut_terms(0, codes.size, codes, means, ends, out)
    a, b = ends[codes.astype(int)] - means, ends[codes.astype(int) + 1] - means
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    low, high = special.log_ndtr(a), special.log_ndtr(b)
    exact = np.sum(high + np.log1p(-np.exp(low - high)))
    np.testing.assert_allclose(out[0, 0], exact, rtol=1e-10)


# --- Counts


class PositivePoisson:
    """Poisson restricted to 1, 2, ..."""

    def __init__(self, mean):
        self.law, self.some = stats.poisson(mean), -np.expm1(-mean)

    def sf(self, k):
        return np.where(k < 1, 1.0, self.law.sf(k) / self.some)

    def cdf(self, k):
        return 1 - self.sf(k)

    def ppf(self, q):
        return self.law.isf((1 - np.asarray(q)) * self.some)


def positive_counts(mean):
    n = ROWS * EACH
    out, values = np.empty(n), np.ones(n)
    values[::5] = 0.0
    key = stream(3, mean).key()
    positive.draw_positive_counts(
        0, ROWS, key, np.arange(0, n + 1, EACH), values, np.full(n, mean), out
    )
    assert not out[::5].any()
    return out[values > 0]


@pytest.mark.seeds
@pytest.mark.parametrize(
    "mean", [1e-8, 1e-4, 0.01, 0.3, 1.0, 3.0, 9.0, 11.9, 12.1, 30.0, 200.0, 5e3, 1e5]
)
def test_positive_poisson(mean, fits):
    x = positive_counts(mean)
    assert np.all((x >= 1) & (x % 1 == 0))
    if mean < 1e-3:
        assert (x > 1).mean() < 1e-3
    else:
        fits("positive Poisson", chi_square(x, PositivePoisson(mean)))


@pytest.mark.seeds
@pytest.mark.parametrize("mean", [1e-3, 0.3, 3.0, 11.9, 12.1, 30.0, 200.0, 5e3, 1e5])
def test_poisson(mean, fits):
    fits("Poisson", chi_square(one_by_one(positive.poisson, mean), stats.poisson(mean)))


# --- Mixing variables and their shape


@pytest.mark.seeds
@pytest.mark.parametrize("s", [0.3, 2.0, 50.0])
def test_mixing_variables(s, fits):
    n = ROWS * EACH
    h, d, out = np.tile([0.0, 0.5, 3.0, 40.0], n // 4), np.tile([0.1, 2.0], n // 2), np.empty(n)
    indptr = np.arange(0, n + 1, EACH)
    mixing.draw_mixing(0, ROWS, stream(4, s).key(), indptr, s, h, d, out)
    for k in range(4):
        fits("mixing", ks(out[k::4], gamma_cdf(s + h[k], s + d[k])))
    mixing.draw_mixing(0, ROWS, stream(5, s).key(), indptr, s, np.array([0.5]), d, out)
    fits("mixing", ks(out[::2], gamma_cdf(s + 0.5, s + d[0])))


def terms(case, size=30):
    """What data add to mixing variables: of rows, of entries (Student), of counts."""
    rng = np.random.default_rng(size)
    if case == "rows":
        h = 0.5 * rng.integers(0, 12, size)
        d = rng.gamma(h + 1e-9) * rng.gamma(3.0, 1 / 3, size)
    elif case == "entries":
        h, d = np.array([0.5]), 0.5 * rng.standard_t(3.0, size) ** 2
    else:
        d = rng.gamma(2.0, 1.0, size)
        h = rng.poisson(d * rng.gamma(1.5, 1 / 1.5, size)).astype(float)
    values, times = np.unique(np.broadcast_to(h, d.shape), return_counts=True)
    return values, times.astype(float), h, d


SHAPES = {
    "rows": ("rows", 2.0, 2.0, 0.5),
    "rows, next to nothing known": ("rows", 0.5, 1.0, 0.1),
    "entries": ("entries", 1.0, 2.0, 0.2),
    "counts": ("counts", 0.0, 2.0, 0.1),
}


def shape_cdf(case):
    """Grid of log(s - least), distribution function on it, and the arguments of the kernel."""
    kind, least, alpha, beta = SHAPES[case]
    data = terms(kind)
    x = np.linspace(-16, 6.5, 6001)
    log_density = np.array([
        stats.gamma.logpdf(s, alpha, scale=1 / beta) + np.sum(
            special.gammaln(s + data[2]) - special.gammaln(s) + s * np.log(s)
            - (s + data[2]) * np.log(s + data[3]))
        for s in least + np.exp(x)
    ]) + x  # fmt: skip
    density = np.exp(log_density - log_density.max())
    total = integrate.cumulative_trapezoid(density, x, initial=0.0)
    return x, total / total[-1], (least, alpha, beta, *data)


def stepped(case, kernel, n=6000):
    """Draws of the exact density, and each of them after one step."""
    x, total, arguments = shape_cdf(case)
    least = arguments[0]
    keys = stream(6, case)
    start = least + np.exp(np.interp(np.random.default_rng(0).random(n), total, x))
    after = np.array([kernel(keys.key(), s, *arguments) for s in start])
    return start, after, lambda s: np.interp(np.log(s - least), x, total)


@pytest.mark.seeds
@pytest.mark.parametrize("case", SHAPES)
def test_a_step_keeps_the_density_of_the_shape(case, fits):
    start, after, cdf = stepped(case, mixing.draw_shape)
    assert (start != after).mean() > 0.99
    fits("shape of mixing", ks(after, cdf))


@pytest.mark.parametrize("case", SHAPES)
def test_steps_find_the_density_of_the_shape_from_anywhere(case, fits):
    x, total, arguments = shape_cdf(case)
    keys, found = stream(7, case), []
    for number in range(2000):
        s = arguments[0] + (1e-6, 0.1, 300.0)[number % 3]
        for _ in range(12):
            s = mixing.draw_shape(keys.key(), s, *arguments)
        found.append(s)
    fits("shape of mixing", ks(found, lambda s: np.interp(np.log(s - arguments[0]), x, total)))


def test_the_density_of_the_shape_is_the_plain_one():
    for case, (kind, _, alpha, beta) in SHAPES.items():
        values, times, h, d = terms(kind)

        def plain(s, h=h, d=d, alpha=alpha, beta=beta):
            g = special.gammaln(s + h) - special.gammaln(s) + s * np.log(s)
            return stats.gamma.logpdf(s, alpha, scale=1 / beta) + np.sum(
                g - (s + h) * np.log(s + d)
            )

        for s in (0.7, 3.0, 60.0):
            found = mixing.shape_log_density(s, alpha, beta, values, times, h, d)
            found -= mixing.shape_log_density(2.0, alpha, beta, values, times, h, d)
            np.testing.assert_allclose(found, plain(s) - plain(2.0), rtol=1e-9, err_msg=case)


# --- Power


def without_jacobian(monkeypatch):
    """The slice step on the logarithm, its Jacobian forgotten."""
    source = Path(mixing.__file__).read_text()
    wrong = re.sub(r"\) \+ (x|y|left|right)\b", ")", source)
    assert wrong.count("h, d)") == source.count("h, d)")
    assert wrong != source
    monkeypatch.setattr(compiling, "CACHE", None)
    broken = {"__name__": "broken"}
    exec(compile(wrong, "broken", "exec"), broken)
    return broken["draw_shape"]


def test_a_slice_step_without_its_jacobian_is_rejected(monkeypatch, verdict):
    _, after, cdf = stepped("rows", without_jacobian(monkeypatch))
    verdict.rejects(
        "distributions", "shape: Jacobian of the slice forgotten", ks(after, cdf) < LEVEL
    )


WRONG = {
    "normal in an interval: wrong end": lambda: ks(
        between(np.inf, 2.0, np.inf), normal_between_cdf(2.4, np.inf)
    ),
    "normal about its mode: wrong end": lambda: ks(
        between(np.inf, -1.0, 2.0), normal_between_cdf(-1.1, 2.0)
    ),
    "Student in an interval: wrong degrees": lambda: ks(
        between(5.0, 2.0, np.inf), student_between_cdf(6.0, 2.0, np.inf)
    ),
    "Student for normal": lambda: ks(between(20.0, 2.0, np.inf), normal_between_cdf(2.0, np.inf)),
    "positive Poisson: wrong mean": lambda: chi_square(positive_counts(3.0), PositivePoisson(3.15)),
    "positive Poisson: zeros not left out": lambda: chi_square(
        positive_counts(3.0), stats.poisson(3.0)
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_power(name, verdict):
    verdict.rejects("distributions", name, WRONG[name]() < LEVEL)
