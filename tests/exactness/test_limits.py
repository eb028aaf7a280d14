"""Limits: models that turn into others as a hyperparameter grows, or at rank one.

Two chains of our own, of different models and with different seeds, must agree in the mean and the
second moment of every cell of U V^T and of the noise precision. All limits follow from
`FAMILY_ERROR`, shared out over the cases and their comparisons.
"""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from bayesmf import (
    Censored,
    Gaussian,
    Model,
    NegativeBinomial,
    Normal,
    ObservedMatrix,
    Ordinal,
    StudentT,
    TruncatedNormal,
    preset,
    sample,
)
from tests.exactness.cells import compare, draws_of
from tests.helpers.verdicts import seeded

FAMILY_ERROR = 1e-4
SIZE = {"chains": 4, "burn_in": 100, "length": 600}
SHARP = 1e6  # a hyperprior so narrow that its variable is a constant, to the chains' precision
NOISE = {"alpha_tau": 4.0, "beta_tau": 4.0}
GAMMA, SCALE, RATE = 2.0, 0.5, 1.5


class Limit(NamedTuple):
    """A model near (or at) its limit, the model it then is, and one that it is not."""

    rank: int
    model: Model
    same: Model
    wrong: Model


def gaussian(name, **values):
    return preset(name, **NOISE, **values)


def normal_columns(rows):
    return Model(Gaussian(4.0, 4.0), rows, Normal(1.0))


def under(name, likelihood, **values):
    """A preset with another likelihood."""
    return replace(preset(name, **values), likelihood=likelihood)


UNEQUAL = Gaussian(4.0, 4.0, rows=True, cols=True, shape_alpha=6.0, shape_beta=1.0)
STUDENT = StudentT(4.0, 4.0, dof_alpha=6.0, dof_beta=0.6)
ONE = Gaussian(precision=1.0)
SMALL = 1e-9  # both limits of the probit as good as meet
# So narrow about one that levels and weights are constants; chains begin there.
EVEN = {"shape_least": 1e7, "shape_alpha": 2.0, "shape_beta": 1e-7}
LIMITS = {
    "GVG at rank 1 is normal": Limit(
        1,
        gaussian("GVG", gamma=GAMMA, lambda_=1.0, ridge=0.0),
        normal_columns(Normal(2 * GAMMA)),
        normal_columns(Normal(GAMMA)),
    ),
    "GVnG at rank 1 is truncated normal": Limit(
        1,
        gaussian("GVnG", gamma=GAMMA, lambda_=1.0, ridge=0.0),
        normal_columns(TruncatedNormal(0.0, 2 * GAMMA)),
        normal_columns(TruncatedNormal(0.0, GAMMA)),
    ),
    "GL21 at rank 1 is GTT": Limit(
        1,
        gaussian("GL21", lambda_=2.0),
        gaussian("GTT", tau_U=2.0, tau_V=2.0),
        gaussian("GTT", tau_U=1.0, tau_V=2.0),
    ),
    "GGGU is GGG": Limit(
        2,
        gaussian("GGGU", lambda_=RATE),
        gaussian("GGG", lambda_=RATE),
        gaussian("GGG", lambda_=1.5 * RATE),
    ),
    "GGGA tends to GGG": Limit(
        2,
        gaussian("GGGA", alpha0=SHARP, beta0=SHARP / RATE),
        gaussian("GGG", lambda_=RATE),
        gaussian("GGG", lambda_=1.5 * RATE),
    ),
    "GGGW tends to GGG": Limit(
        2,
        gaussian("GGGW", nu0=SHARP, W0=SHARP / RATE, beta0=SHARP),
        gaussian("GGG", lambda_=RATE),
        gaussian("GGG", lambda_=1.5 * RATE),
    ),
    "GLLI tends to GLL": Limit(
        2,
        gaussian("GLLI", mu=SCALE, lambda_=SHARP),
        gaussian("GLL", eta=SCALE),
        gaussian("GLL", eta=1.5 * SCALE),
    ),
    "GLLI-rate tends to GLL": Limit(
        2,
        gaussian("GLLI", mu=SCALE**-2, lambda_=SHARP, reading="rate"),
        gaussian("GLL", eta=SCALE),
        gaussian("GLL", eta=SCALE**2),
    ),
    "GEEA tends to GEE": Limit(
        2,
        gaussian("GEEA", alpha0=SHARP, beta0=SHARP / RATE),
        gaussian("GEE", lambda_=RATE),
        gaussian("GEE", lambda_=1.5 * RATE),
    ),
    "GTTN tends to GTT": Limit(
        2,
        gaussian("GTTN", tau_mu=SHARP, a=SHARP, b=SHARP / RATE),
        gaussian("GTT", tau_U=RATE, tau_V=RATE),
        gaussian("GTT", tau_U=1.5 * RATE, tau_V=1.5 * RATE),
    ),
    "GTT far below zero tends to GEE": Limit(
        2,
        gaussian("GTT", mu_U=-SHARP, tau_U=RATE / SHARP, mu_V=-SHARP, tau_V=RATE / SHARP),
        gaussian("GEE", lambda_=RATE),
        gaussian("GEE", lambda_=1.5 * RATE),
    ),
    "PGGG tends to PGG": Limit(
        2,
        preset("PGGG", a=1.5, a_prime=SHARP, b_prime=RATE),
        preset("PGG", a=1.5, b=RATE),
        preset("PGG", a=1.5, b=1.5 * RATE),
    ),
    "GVG-both at rank 1 is normal": Limit(
        1,
        under("GVG", UNEQUAL, gamma=GAMMA, lambda_=1.0, ridge=0.0),
        Model(UNEQUAL, Normal(2 * GAMMA), Normal(1.0)),
        Model(UNEQUAL, Normal(GAMMA), Normal(1.0)),
    ),
    "GGGU-student is GGG-student": Limit(
        2,
        under("GGGU", STUDENT, lambda_=RATE),
        under("GGG", STUDENT, lambda_=RATE),
        under("GGG", STUDENT, lambda_=1.5 * RATE),
    ),
    "GGG-both tends to GGG": Limit(
        2,
        under("GGG", Gaussian(4.0, 4.0, rows=True, cols=True, **EVEN), lambda_=RATE),
        gaussian("GGG", lambda_=RATE),
        gaussian("GGG", lambda_=1.5 * RATE),
    ),
    "GEE-student tends to GEE": Limit(
        2,
        under("GEE", StudentT(4.0, 4.0, dof_least=1e7, dof_beta=1e-7), lambda_=RATE),
        gaussian("GEE", lambda_=RATE),
        gaussian("GEE", lambda_=1.5 * RATE),
    ),
    "GGG-ordinal of two categories is probit": Limit(
        2,
        under("GGG", Ordinal(2, spread=1e-6), lambda_=RATE),
        under("GGG", Censored(lower=0.0, upper=SMALL, noise=ONE), lambda_=RATE),
        under("GGG", Censored(lower=0.0, upper=SMALL, noise=ONE), lambda_=1.5 * RATE),
    ),
    "PGG-negbin tends to PGG": Limit(
        2,
        under("PGG", NegativeBinomial(SHARP**2, SHARP), a=1.5, b=RATE),
        preset("PGG", a=1.5, b=RATE),
        preset("PGG", a=1.5, b=1.5 * RATE),
    ),
}
ERROR = FAMILY_ERROR / len(LIMITS)


def counts():
    """Small random counts with four missing cells: weak data for every model."""
    X = np.random.default_rng(1).poisson(0.8, (6, 5)).astype(float)
    X[[0, 2, 3, 5], [1, 4, 0, 2]] = np.nan
    return X


def data(name):
    return np.minimum(counts(), 1.0) if "probit" in name else counts()


def common(name, draws):
    """Cells and, where both models have it, the noise precision."""
    return draws[:, :, : counts().size] if "probit" in name else draws


@cache
def near(name, seed):
    """Draws of the model near its limit, which both tests of a name compare with."""
    case = LIMITS[name]
    return common(name, draws_of(data(name), case.model, case.rank, seed, **SIZE))


@pytest.mark.seeds
@pytest.mark.parametrize("name", LIMITS)
def test_a_model_equals_its_limit(name, verdict):
    case = LIMITS[name]
    other = common(name, draws_of(data(name), case.same, case.rank, seeded(1), **SIZE))
    result = compare(near(name, seeded(0)), other, ERROR)
    verdict("limits", name, np.abs(result.scores).max(), result.limit)


@pytest.mark.parametrize("name", LIMITS)
def test_a_wrong_limit_is_rejected(name, verdict):
    case = LIMITS[name]
    other = common(name, draws_of(data(name), case.wrong, case.rank, seeded(2), **SIZE))
    result = compare(near(name, seeded(0)), other, ERROR)
    verdict.rejects("limits", name, result.rejected, str(result))


# --- Limits that hold draw for draw


def bit_for_bit(X, one, other, **more):
    """Whether two models draw the same numbers from the same seed."""
    runs = [
        sample(X, model, 2, draws=20, burn_in=5, keep=("U", "V"), random_state=3, **more).draws
        for model in (one, other)
    ]
    return all(np.array_equal(runs[0][name], runs[1][name]) for name in runs[0])


@pytest.mark.parametrize("base", ["GGG", "GGGW", "GEE", "GVG"])
def test_censored_without_a_censored_cell_is_gaussian_bit_for_bit(base, verdict):
    for noise in (Gaussian(), UNEQUAL, STUDENT):
        limited = Censored(lower=-1e9, upper=1e9, noise=noise)
        same = bit_for_bit(counts(), under(base, noise), under(base, limited))
        verdict("limits", f"{base}-censored without a censored cell", 1.0 - same, 0.5)


@pytest.mark.parametrize("error", [1.0, 2.0])
@pytest.mark.parametrize("base", ["GGG", "GEE"])
def test_known_errors_that_are_alike_are_gaussian(base, error, verdict):
    """Of size e, they are a noise precision that is e^2 times as large."""
    X = ObservedMatrix.of(counts())
    known = replace(X, errors=np.full(X.n_observed, error))
    plain = under(base, Gaussian(4.0, 4.0), lambda_=RATE)
    scaled = under(base, Gaussian(4.0, 4.0 / error**2), lambda_=RATE)
    name = f"{base}-errors that are alike"
    one = draws_of(X, plain, 2, seeded(1), **SIZE)
    other = draws_of(known, scaled, 2, seeded(2), **SIZE)
    cells = X.shape[0] * X.shape[1]
    other[:, :, cells:] /= error**2
    result = compare(one, other, ERROR / 4)
    verdict("limits", name, np.abs(result.scores).max(), result.limit)
