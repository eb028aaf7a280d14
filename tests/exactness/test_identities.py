"""Scale identities: exact equations between the two sides, in the posterior of any data.

Scaling a rows' factor by c and the columns' by 1 / c leaves the likelihood alone, so the expected
pull of either prior along that direction is the same. Chains without the scale move must find it.
All limits follow from `FAMILY_ERROR`, shared out over the cases and their factors.
"""

import math

import numpy as np
import pytest

from bayesmf import distributions as dist
from bayesmf.hyperpriors import InverseGaussian
from bayesmf.kernels import volume
from bayesmf.priors import L21, Exponential, Laplace, Normal, Volume
from simulation import NAMES, identity, judge, patched, rebuilt, standard_error

FAMILY_ERROR = 1e-4
QUICK = {"chains": 6, "burn_in": 200, "length": 800}
LONG = {"chains": 8, "burn_in": 1000, "length": 3000}


def counts(shape=(5, 8)):
    """Small random counts with two missing cells: data for every preset."""
    X = np.random.default_rng(3).poisson(0.8, shape).astype(float)
    X[1, 2] = X[4, 0] = np.nan
    return X


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


def half_gamma(right, self, h, K):
    terms = right(self, h, K)
    return terms._replace(log_gamma=terms.log_gamma - math.log(2))


def square_for_inverse_square(right, self, X, h):
    yield "variance", dist.GIG(0.5, self.scale, X**2)


def scale_for_rate(right, self, h):
    return h["eta"] ** -2.0 if self.reading == "rate" else h["eta"]


def doubled_rate(right, self, h, K):
    return right(self, {"rate": 2 * h["rate"]}, K)


def no_coupling(right, self, h, K):
    return right(self, h, K)._replace(coupling=0.0)


def half_precision(right, self, h, K):
    return right(self, h | {"precision": 0.5 * h["precision"]}, K)


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
        rebuilt(volume, "b -= A[k, c]", "b += A[k, c]"),
    ),
    "GGG precision halved": ("GGG", patched(Normal, "terms", half_precision)),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_wrong_sampler_is_rejected(mutation, monkeypatch, verdict):
    name, apply = MUTATIONS[mutation]
    apply(monkeypatch)
    result = identity(name, counts(), **QUICK, family_error=FAMILY_ERROR / len(NAMES))
    verdict.rejects(TEST, mutation, result.rejected, str(result))
