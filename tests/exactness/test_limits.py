"""Limits: models that turn into others as a hyperparameter grows, or at rank one.

Two chains of our own, of different models and with different seeds, must agree in the mean and the
second moment of every cell of U V^T and of the noise precision. All limits follow from
`FAMILY_ERROR`, shared out over the cases and their comparisons.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from bayesmf import Gaussian, Model, Normal, TruncatedNormal, preset
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
}
ERROR = FAMILY_ERROR / len(LIMITS)


def counts():
    """Small random counts with four missing cells: weak data for every model."""
    X = np.random.default_rng(1).poisson(0.8, (6, 5)).astype(float)
    X[[0, 2, 3, 5], [1, 4, 0, 2]] = np.nan
    return X


@cache
def near(name, seed):
    """Draws of the model near its limit, which both tests of a name compare with."""
    case = LIMITS[name]
    return draws_of(counts(), case.model, case.rank, seed, **SIZE)


@pytest.mark.seeds
@pytest.mark.parametrize("name", LIMITS)
def test_a_model_equals_its_limit(name, verdict):
    case = LIMITS[name]
    other = draws_of(counts(), case.same, case.rank, seeded(1), **SIZE)
    result = compare(near(name, seeded(0)), other, ERROR)
    verdict("limits", name, np.abs(result.scores).max(), result.limit)


@pytest.mark.parametrize("name", LIMITS)
def test_a_wrong_limit_is_rejected(name, verdict):
    case = LIMITS[name]
    other = draws_of(counts(), case.wrong, case.rank, seeded(2), **SIZE)
    result = compare(near(name, seeded(0)), other, ERROR)
    verdict.rejects("limits", name, result.rejected, str(result))
