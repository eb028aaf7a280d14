"""Scale identities: exact equations between the two sides, in the posterior of any data.

Scaling a rows' factor by c and the columns' by 1 / c leaves the likelihood alone, so the expected
pull of either prior along that direction is the same. Chains without the scale move must find it.
All limits follow from `FAMILY_ERROR`, shared out over the cases and their factors.
"""

import math

import numpy as np
import pytest

from bayesmf.kernels import volume
from bayesmf.priors import L21, Exponential, Laplace, Normal, Volume
from bayesmf.priors import distributions as dist
from bayesmf.priors.hyperpriors import InverseGaussian
from tests.exactness.simulation import NAMES, identity, judge, patched, rebuilt, standard_error

FAMILY_ERROR = 1e-4
QUICK = {"chains": 6, "burn_in": 200, "length": 800}
LONG = {"chains": 8, "burn_in": 1000, "length": 3000}


def counts(shape=(5, 8)):
    """Small random counts with two missing cells: data for every preset."""
    U = np.random.default_rng(3).poisson(0.8, shape).astype(float)
    U[1, 2] = U[4, 0] = np.nan
    return U


TEST = "scale identities"


@pytest.mark.seeds
@pytest.mark.parametrize("name", NAMES)
def test_both_sides_pull_equally(name, verdict):
    result = identity(name, counts(), **QUICK, family_error=FAMILY_ERROR / len(NAMES))
    judge(verdict, TEST, name, result)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(5, 8), (8, 5)], ids=["wide", "tall"])
@pytest.mark.parametrize("name", NAMES)
def test_both_sides_pull_equally_in_long_runs(name, shape, verdict):
    error = FAMILY_ERROR / (2 * len(NAMES))
    result = identity(name, counts(shape), **LONG, family_error=error, seed=1)
    judge(verdict, TEST, name, result)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_standard_error_allows_for_autocorrelation(memory):
    """Of an autoregression, whose mean has a known error; 15 % is four times the estimate's own."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(8, 8000))
    x = np.empty_like(noise)
    x[:, 0] = noise[:, 0] / math.sqrt(1 - memory**2)
    for t in range(1, x.shape[1]):
        x[:, t] = memory * x[:, t - 1] + noise[:, t]
    exact = 1 / (1 - memory) / math.sqrt(x.size)
    assert abs(standard_error(x) / exact - 1) < 0.15


def half_gamma(right, self, values, K):
    terms = right(self, values, K)
    return terms._replace(log_gamma=terms.log_gamma - math.log(2))


def square_for_inverse_square(right, self, U, values):
    yield "variance", dist.GIG(p=0.5, a=self.scale, b=U**2)


def scale_for_rate(right, self, values):
    return values["eta"] ** -2.0 if self.reading == "rate" else values["eta"]


def doubled_rate(right, self, values, K):
    return right(self, {"rate": 2 * values["rate"]}, K)


def no_coupling(right, self, values, K):
    return right(self, values, K)._replace(coupling=0.0)


def half_precision(right, self, values, K):
    return right(self, values | {"precision": 0.5 * values["precision"]}, K)


MUTATIONS = {
    "GVG gamma without the factor 2": ("GVG", patched(Volume, "terms", half_gamma)),
    "GVnG gamma without the factor 2": ("GVnG", patched(Volume, "terms", half_gamma)),
    "GLL scale for its inverse square": (
        "GLL",
        patched(Laplace, "updates", square_for_inverse_square),
    ),
    "GLLI read as a rate": (
        "GLLI",
        patched(InverseGaussian, "inverse_square_scale", scale_for_rate),
    ),
    "GEE rate doubled": ("GEE", patched(Exponential, "terms", doubled_rate)),
    "GEG rate doubled": ("GEG", patched(Exponential, "terms", doubled_rate)),
    "GL21 rest of the row ignored": ("GL21", patched(L21, "terms", no_coupling)),
    "volume: prior precision without the 2": (
        "GVG",
        rebuilt(volume, "prior = 2.0 * math.exp(c - scale)", "prior = math.exp(c - scale)"),
    ),
    "volume: determinant not downdated": (
        "GVG",
        rebuilt(volume, "log_det += math.log(ratio)", "log_det += 0.0"),
    ),
    "volume: sign of the other entries": (
        "GVnG",
        rebuilt(volume, "= prior * B[a, b]", "= (2.0 * (a == b) - 1.0) * prior * B[a, b]"),
    ),
    "GGG precision halved": ("GGG", patched(Normal, "terms", half_precision)),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_wrong_sampler_is_rejected(mutation, monkeypatch, verdict):
    name, apply = MUTATIONS[mutation]
    apply(monkeypatch)
    result = identity(name, counts(), **QUICK, family_error=FAMILY_ERROR / len(NAMES))
    verdict.rejects(TEST, mutation, result.rejected, str(result))
