"""Laws in the units of the data, against the distributions that they must be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from bayesmf import ObservedMatrix
from bayesmf.data.units import fit_units
from bayesmf.likelihoods.laws import NormalLaw, PoissonLaw, ReportedLaw, StudentLaw
from bayesmf.likelihoods.mapped import MappedLaw

CELLS = np.array([0, 1, 2, 5]), np.array([0, 1, 2, 2])
RNG = np.random.default_rng(0)
MEANS, PRECISION = RNG.normal(size=(300, 4)), RNG.gamma(4.0, 0.5, (300, 1))


def data():
    """Positive values, in columns of quite different sizes."""
    return np.exp(np.random.default_rng(1).normal(size=(12, 3)) * [0.3, 0.5, 0.8]) * [1, 1e-6, 1e5]


def units(transform=None, **options):
    return fit_units(ObservedMatrix.of(data()), transform=transform, **options)


def in_data(z, of):
    """What the model's numbers are in those of the data, before a transform is undone."""
    return of.shift(CELLS) + of.size(CELLS) * z


def normal(of, means=MEANS, precision=PRECISION):
    return MappedLaw(means, NormalLaw(means, precision), of, CELLS)


@pytest.mark.parametrize("options", [{}, {"scale": "global"}, {"center": "both", "scale": "rows"}])
def test_a_normal_law_is_normal_in_other_units(options):
    of = units(**options)
    law, mean, sd = normal(of), in_data(MEANS, of), of.size(CELLS) / PRECISION**0.5
    np.testing.assert_allclose(law.mean(), mean)
    np.testing.assert_allclose(np.sqrt(law.variance()), sd)
    values = mean[0] + of.size(CELLS)
    np.testing.assert_allclose(law.log_prob(values), stats.norm.logpdf(values, mean, sd))
    assert not law.is_atom(values).any()
    levels = [0.05, 0.5, 0.9]
    for level, found in zip(levels, law.quantiles(levels, 20, (0, 0)), strict=True):
        mixture = stats.norm.cdf(found, mean, sd).mean(axis=0)
        np.testing.assert_allclose(mixture, level, atol=0.01)


def test_draws_are_those_of_the_inner_law_in_other_units():
    of = units()
    law, inner = normal(of), NormalLaw(MEANS, PRECISION)
    for found, drawn in (
        (law.sample(np.random.default_rng(3)), inner.sample(np.random.default_rng(3))),
        (law.replicates(2, (1, 0)), inner.replicates(2, (1, 0))),
    ):
        np.testing.assert_allclose(found, in_data(drawn, of))


@pytest.mark.parametrize("sd", [0.1, 0.5, 1.0])
def test_means_and_variances_under_a_logarithm_are_log_normal(sd):
    of = units("log")
    precision = np.full((300, 4), sd**-2.0) * of.size(CELLS) ** 2
    law, centre = normal(of, precision=precision), in_data(MEANS, of)
    np.testing.assert_allclose(law.mean(), np.exp(centre + sd**2 / 2), rtol=1e-6)
    expected = np.expm1(sd**2) * np.exp(2 * centre + sd**2)
    np.testing.assert_allclose(law.variance(), expected, rtol=1e-6)
    x = data()[CELLS]
    np.testing.assert_allclose(
        law.log_prob(x), stats.lognorm.logpdf(x, sd, scale=np.exp(centre)), rtol=1e-9
    )
    levels = [0.1, 0.5]
    for level, found in zip(levels, law.quantiles(levels, 20, (0, 0)), strict=True):
        mixture = stats.lognorm.cdf(found, sd, scale=np.exp(centre)).mean(axis=0)
        np.testing.assert_allclose(mixture, level, atol=0.01)


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("log", (1e-9, 200.0)),
        ("log1p", (-0.999999, 200.0)),
        ("logit", (1e-9, 1 - 1e-9)),
        ("rank", (-3.0, 4.0)),
    ],
)
def test_densities_integrate_to_one(name, ends):
    X = np.random.default_rng(2).uniform(0.05, 0.95, (20, 3))
    of = fit_units(ObservedMatrix.of(X), transform=name)
    cell = np.array([0]), np.array([1])
    means = np.array([[0.3]])
    law = MappedLaw(means, NormalLaw(means, np.array([[2.0]])), of, cell)
    corners = sorted(X[:, 1]) if name == "rank" else None

    def density(x, power):
        return x**power * float(np.exp(law.log_prob(np.array([x])))[0, 0])

    total, mean = (
        integrate.quad(density, *ends, args=(power,), points=corners, limit=500)[0]
        for power in (0, 1)
    )
    assert total == pytest.approx(1, abs=1e-6)
    if name != "rank":
        assert law.mean()[0, 0] == pytest.approx(mean, abs=1e-5)


def test_means_under_ranks_are_right_over_many_draws():
    """Each is a sum over few nodes of a line with corners; their errors average out."""
    X = np.random.default_rng(2).uniform(0.05, 0.95, (20, 3))
    of = fit_units(ObservedMatrix.of(X), transform="rank")
    law = MappedLaw(MEANS[:, :3], NormalLaw(MEANS[:, :3], PRECISION), of, (np.arange(3),) * 2)
    drawn = law.replicates(200, (0, 0))
    np.testing.assert_allclose(law.mean().mean(axis=0), drawn.mean(axis=0), atol=0.005)
    spread = np.sqrt(law.variance().mean(axis=0) + law.mean().var(axis=0))
    np.testing.assert_allclose(spread, drawn.std(axis=0), rtol=0.03)


def test_what_has_a_probability_keeps_it():
    of, limit = units(), np.array([1.2, 1.5e-6, 1.1e5, 1.1e5])
    edge = of.forward(limit, CELLS)
    inner = ReportedLaw(MEANS, NormalLaw(MEANS, PRECISION), np.full(4, -np.inf), edge)
    law, mean, sd = MappedLaw(MEANS, inner, of, CELLS), in_data(MEANS, of), of.size(CELLS)
    sd = sd / PRECISION**0.5
    below = limit - 0.1 * of.size(CELLS)
    assert law.is_atom(limit).all() and not law.is_atom(below).any()
    np.testing.assert_allclose(law.log_prob(limit), stats.norm.logsf(limit, mean, sd), rtol=1e-9)
    np.testing.assert_allclose(law.log_prob(below), stats.norm.logpdf(below, mean, sd), rtol=1e-9)
    assert (law.mean() < limit).all() and (law.replicates(3, (0, 0)) <= limit * (1 + 1e-12)).all()
    a = (limit - mean) / sd  # E min(x, limit) of a normal x
    expected = mean + sd * (a * stats.norm.sf(a) - stats.norm.pdf(a))
    np.testing.assert_allclose(law.mean(), expected, rtol=1e-9)


def test_limits_under_a_logarithm():
    of, limit = units("log"), np.array([1.2, 1.5e-6, 1.1e5, 1.1e5])
    edge = of.forward(limit, CELLS)
    inner = ReportedLaw(MEANS, NormalLaw(MEANS, PRECISION), np.full(4, -np.inf), edge)
    law = MappedLaw(MEANS, inner, of, CELLS)
    s, scale = of.size(CELLS) / PRECISION**0.5, np.exp(in_data(MEANS, of))
    np.testing.assert_allclose(law.log_prob(limit), stats.lognorm.logsf(limit, s, scale=scale))
    a = np.log(limit / scale) / s  # E min(x, limit) of a log-normal x
    expected = scale * np.exp(s**2 / 2) * special.ndtr(a - s) + limit * special.ndtr(-a)
    np.testing.assert_allclose(law.mean(), expected, rtol=0.01)  # the limit is a kink
    latent = law.latent()
    np.testing.assert_allclose(latent.mean(), scale * np.exp(s**2 / 2), rtol=1e-6)
    np.testing.assert_allclose(
        latent.log_prob(limit), stats.lognorm.logpdf(limit, s, scale=scale), rtol=1e-9
    )


def test_what_lies_behind_is_in_the_units_of_the_data():
    of = units()
    inner = ReportedLaw(MEANS, NormalLaw(MEANS, PRECISION), np.zeros(4), np.ones(4))
    latent = MappedLaw(MEANS, inner, of, CELLS).latent()
    np.testing.assert_allclose(latent.mean(), in_data(MEANS, of))
    assert normal(of).latent().inner is not None
    np.testing.assert_array_equal(normal(of).latent().mean(), normal(of).mean())


def test_student_noise_is_scaled_too():
    of, dof = units(), np.full((300, 1), 5.0)
    law = MappedLaw(MEANS, StudentLaw(MEANS, PRECISION, dof), of, CELLS)
    mean, scale = in_data(MEANS, of), of.size(CELLS) / PRECISION**0.5
    x = data()[CELLS]
    np.testing.assert_allclose(law.log_prob(x), stats.t.logpdf(x, 5.0, mean, scale))
    np.testing.assert_allclose(law.variance(), scale**2 * 5 / 3)


def test_a_single_draw_needs_no_leading_axis():
    of = units("log")
    i, j = np.ogrid[:12, :3]
    means = RNG.normal(size=(12, 3))
    law = MappedLaw(means, NormalLaw(means, np.array(2.0)), of, (i, j))
    found = law.sample(np.random.default_rng(0))
    inner = NormalLaw(means, np.array(2.0)).sample(np.random.default_rng(0))
    expected = np.exp(of.offsets.cols + of.cols * inner)
    np.testing.assert_allclose(found, expected)


def test_counts_are_atoms():
    law = PoissonLaw(np.full((2, 3), 1.5))
    assert law.is_atom(np.arange(3.0)).all()
