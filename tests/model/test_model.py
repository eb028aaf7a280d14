"""Models are data: the table of presets, combinations, sharing, densities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayesmf import (
    ARD,
    L21,
    PRESETS,
    Exponential,
    Gamma,
    GammaRate,
    Gaussian,
    InverseGaussian,
    Laplace,
    Model,
    MultivariateNormal,
    Normal,
    ObservedMatrix,
    Poisson,
    Problem,
    TruncatedNormal,
    TruncatedNormalHyper,
    Volume,
    hyperparameters,
    preset,
    sample,
)
from bayesmf.model.presets import PAPER
from bayesmf.sampler.start import initial_state
from tests.exactness.added import ADDED
from tests.helpers.matrices import models, small_matrix

REAL = [Normal(0.1), Normal(0.1, "entries"), Normal(ARD()), MultivariateNormal(), Laplace(1.0),
        Laplace(InverseGaussian()), Laplace(InverseGaussian(reading="rate")), Volume(),
        *(own.prior() for own in ADDED.values())]  # fmt: skip
NONNEGATIVE = [Exponential(0.1), Exponential(ARD()), TruncatedNormal(), TruncatedNormal(1.0, 0.5),
               TruncatedNormal(0.0, TruncatedNormalHyper()), L21(0.1),
               Volume(signs="nonnegative")]  # fmt: skip
COUNTS = [Gamma(), Gamma(2.0, GammaRate()), Gamma(1.0, ARD()), Exponential(1.0), Exponential(ARD())]


def pairs():
    for likelihood, priors in ((Gaussian(), REAL + NONNEGATIVE), (Poisson(), COUNTS)):
        for rows in priors:
            for cols in priors:
                if not (isinstance(rows, Volume) and isinstance(cols, Volume)):
                    yield likelihood, rows, cols


@pytest.mark.parametrize(("likelihood", "rows", "cols"), list(pairs()))
def test_every_combination_that_fits_is_a_model(likelihood, rows, cols):
    """It runs, keeps signs, and follows the data."""
    X = small_matrix(0.8)
    posterior = sample(X, Model(likelihood, rows, cols), 2, draws=60, burn_in=60, random_state=0)
    observed = ~np.isnan(X)
    assert np.corrcoef(posterior.mean[observed], X[observed])[0, 1] > 0.7
    state = posterior.states[0]
    for F, prior in ((state.U, rows), (state.V, cols)):
        assert not prior.nonnegative or (F >= 0).all()


def test_the_table_has_the_papers_defaults():
    assert list(PAPER) == [
        "GGG", "GGGU", "GGGA", "GGGW", "GLL", "GLLI", "GVG", "GEE", "GEEA", "GTT", "GTTN", "GL21",
        "GEG", "GVnG", "PGG", "PGGG",
    ]  # fmt: skip
    for name in ("GGG", "GGGU", "GEE", "GL21", "GEG", "GVG", "GVnG"):
        assert hyperparameters(name)["lambda"] == 0.1
    assert hyperparameters("GLL")["eta"] == math.sqrt(10)
    assert preset("GLLI").rows.scale.reading == "scale"
    wishart = preset("GGGW").resolve(ObservedMatrix.of(small_matrix()), 4).rows.hyper
    assert (wishart.dof, wishart.beta) == (4, 1)
    np.testing.assert_array_equal(wishart.scale, np.eye(4))
    gaussian = preset("GLLI").resolve(ObservedMatrix.of(small_matrix()), 4).cols.scale
    assert (gaussian.mean, gaussian.shape) == (4, 4)


@pytest.mark.parametrize("name", PRESETS)
def test_every_hyperparameter_can_be_set(name):
    other = {
        "reading": "rate", "mu0": 0.5, "mu_U": 0.3, "mu_V": 0.3, "mu_mu": 0.2, "nu0": 7.0,
        "log10_gamma": -3.0, "gamma": 1e-3,
    }  # fmt: skip
    for key in hyperparameters(name):
        changed = preset(name, **{key: other.get(key, 0.7)})
        assert repr(changed) != repr(preset(name)), key


def test_ard_is_shared_unless_told_otherwise():
    X = small_matrix()
    both = Model(Gaussian(), Normal(ARD()), Exponential(ARD()))
    assert "relevance" in sample(X, both, 2, draws=1, keep="all").draws
    apart = Model(Gaussian(), Normal(ARD(shared=False)), Normal(ARD(shared=False)))
    names = sample(X, apart, 2, draws=1, keep="all").draws
    assert {"rows.relevance", "cols.relevance"} <= set(names)
    assert "relevance" not in names
    one = Model(Gaussian(), Normal(ARD()), Normal(0.1))
    assert "rows.relevance" in sample(X, one, 2, draws=1, keep="all").draws


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("K", [1, 3, 6])
def test_default_volume_strength_does_not_depend_on_units_or_rank(unit, K):
    """Same seed, data in other units: the same fit in other units."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 40)) + 0.1 * rng.normal(size=(60, 40))
    # the noise prior is not free of units: make it so
    noise = {"alpha_tau": 1.0, "beta_tau": unit**2}
    fit = sample(X * unit, "GVG", K, draws=100, burn_in=200, random_state=0, hyperparameters=noise)
    residual = np.mean((X - fit.mean / unit) ** 2)
    singular = np.linalg.svd(X, compute_uv=False)
    assert residual < 1.2 * np.sum(singular[K:] ** 2) / X.size + 1e-2


@pytest.mark.parametrize("model", models())
def test_log_joint_is_finite(model):
    X = ObservedMatrix.of(small_matrix())
    posterior = sample(X, model, 2, draws=2, burn_in=10, random_state=0)
    s = posterior.states[0]
    value = posterior.model.log_joint(X, s.U, s.V, s.rows, s.cols, s.shared, s.noise)
    assert math.isfinite(value)


@pytest.mark.parametrize("model", models())
def test_models_know_their_variables(model):
    """Names in order, shapes and dimensions are those of a real state."""
    problem = Problem.of(small_matrix(), model, 3)
    known = problem.model.variables(problem.X.shape, 3)
    state = initial_state(problem, "prior", 0).variables()
    assert list(known) == list(state)
    sizes = {"row": 17, "column": 12, "component": 3, "other_component": 3, "all_components": 1}
    for name, variable in known.items():
        assert variable.shape == state[name].shape == tuple(sizes[dim] for dim in variable.dims)


@pytest.mark.parametrize(
    ("name", "known"), [("ggga", "GGGA"), ("gvng", "GVnG"), ("GVNG", "GVnG"), ("oggw", "OGGW")]
)
def test_names_in_any_case(name, known):
    assert preset(name).name == known and hyperparameters(name) == hyperparameters(known)
    posterior = sample(np.clip(small_matrix(), 0, 4), name, 2, draws=2, burn_in=0, random_state=0)
    assert posterior.model.name == known


def test_models_are_printed_in_lines():
    lines = str(preset("GGGA")).splitlines()
    assert lines[0] == "GGGA" and [line.split()[0] for line in lines[1:]] == [
        "likelihood", "rows", "cols",
    ]  # fmt: skip
    assert lines[2].split(maxsplit=1)[1] == repr(preset("GGGA").rows)
    assert "biases" in str(sample(small_matrix(), "GGG", 1, biases=True, draws=1, burn_in=0).model)
