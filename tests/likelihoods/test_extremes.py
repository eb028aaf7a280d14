"""Extreme data under every likelihood: nothing is NaN, infinite or endless."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesmf import (
    Censored,
    Gaussian,
    NegativeBinomial,
    ObservedMatrix,
    Ordinal,
    Poisson,
    StudentT,
    preset,
    sample,
)
from bayesmf.data.bounds import Bounds
from bayesmf.data.errors import known_errors
from bayesmf.posterior.predictive import Predictive
from tests.helpers.likelihoods import CASES
from tests.helpers.matrices import small_matrix

MODELS = [
    pytest.param(case, model, id=f"{name}-{prior}")
    for name, case in CASES.items()
    for prior, model in case.models()
]
BIASED = [
    pytest.param(case, model, id=f"{name}-{prior}")
    for name, case in CASES.items()
    for prior, model in case.models(biases=True)[:2]
]
NORMAL = {"equal": Gaussian(), "both": Gaussian(rows=True, cols=True), "student": StudentT()}
PRIORS = ("GGGW", "GEE", "GVG")


def gentle(X, model, K, sweeps=8, **options):
    """Sample briefly, and check that all of it is finite, predictions included."""
    options = {"random_state": 0, "keep": "all", **options}
    posterior = sample(X, model, K, draws=sweeps, burn_in=sweeps, **options)
    for name, draws in posterior.draws.items():
        assert np.isfinite(draws).all(), name
    for found in (posterior.mean, posterior.variance, posterior.train_mse):
        assert np.isfinite(found).all()
    predictive = Predictive.of(posterior)
    for found in predictive.quantities(None, True, [0.05, 0.95], True):
        assert np.isfinite(found).all()
    i, j, values = ObservedMatrix.of(X).triples()
    density = predictive.log_density((i, j), values)
    assert not np.isnan(density).any() and not (density == np.inf).any()
    return posterior


MATRICES = {
    "1 x 1": (np.array([[3.0]]), 2),
    "one row": (np.arange(1.0, 9.0)[None, :], 2),
    "one column": (np.arange(1.0, 9.0)[:, None], 2),
    "K above both sides": (small_matrix(0.8, (4, 5)), 7),
    "constant": (np.full((6, 5), 3.0), 2),
}


@pytest.mark.parametrize(("case", "model"), MODELS)
@pytest.mark.parametrize("shape", MATRICES)
def test_small_and_degenerate_matrices(case, model, shape):
    X, K = MATRICES[shape]
    gentle(case.data(X), model, K)
    if shape.startswith("K"):
        gentle(case.data(X), model, K, init="prior")


@pytest.mark.parametrize(("case", "model"), BIASED)
@pytest.mark.parametrize("shape", ["1 x 1", "one row", "K above both sides"])
def test_the_same_with_biases(case, model, shape):
    X, K = MATRICES[shape]
    gentle(case.data(X), model, K)


@pytest.mark.parametrize(("case", "model"), MODELS)
def test_rows_and_columns_without_entries(case, model):
    X = small_matrix(0.9, (8, 7))
    X[3], X[:, 5] = np.nan, np.nan
    posterior = gentle(case.data(X), model, 2)
    assert any("Rows without any observed entry: 1" in note for note in posterior.notes)


@pytest.mark.parametrize("noise", NORMAL)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("where", ["a row", "a column", "all above", "all below", "all between"])
def test_everything_beyond_a_limit(noise, prior, where):
    """The posterior is proper, because the priors are."""
    X = small_matrix(0.8, (8, 6))
    lower, upper = np.full(X.shape, -np.inf), np.full(X.shape, np.inf)
    part = {"a row": np.s_[2], "a column": np.s_[:, 3]}.get(where, np.s_[:])
    (lower if where == "all below" else upper)[part] = X[part]
    data = ObservedMatrix.of(X)
    if where == "all between":
        middle = data.rows.values
        data = replace(data, bounds=Bounds(middle - 0.5, middle + 0.5))
        lower, upper = None, None
    model = replace(preset(prior), likelihood=Censored(lower, upper, NORMAL[noise]))
    gentle(data, model, 2)
    gentle(data, model, 2, init="prior")


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("limit", [-1e6, 1e6])
def test_a_limit_far_from_all_values(prior, limit):
    X = small_matrix(0.8, (8, 6))
    X[2, 3] = limit
    side = {"upper": limit} if limit > 0 else {"lower": limit}
    for noise in NORMAL.values():
        gentle(X, replace(preset(prior), likelihood=Censored(**side, noise=noise)), 2)


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial()])
@pytest.mark.parametrize("prior", ["PGG", "PGGG"])
@pytest.mark.parametrize("factor", [0.0, 1e6])
def test_counts_of_nothing_and_of_millions(likelihood, prior, factor):
    X = small_matrix()
    posterior = gentle(X * factor, replace(preset(prior), likelihood=likelihood), 3, sweeps=30)
    if factor:
        seen = ~np.isnan(X)
        assert np.corrcoef(posterior.mean[seen], X[seen])[0, 1] > 0.6


@pytest.mark.parametrize("noise", NORMAL)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("limited", [False, True])
def test_errors_from_tiny_to_huge(noise, prior, limited):
    X = small_matrix()
    errors = np.where(np.arange(X.size).reshape(X.shape) % 2, 1e-8, 1e8)
    data = known_errors(ObservedMatrix.of(X), errors)
    likelihood = Censored(upper=8.0, noise=NORMAL[noise]) if limited else NORMAL[noise]
    gentle(data, replace(preset(prior), likelihood=likelihood), 2)


@pytest.mark.parametrize("noise", NORMAL)
@pytest.mark.parametrize("factor", [1e-8, 1e8])
@pytest.mark.parametrize("limited", [False, True])
def test_tiny_and_huge_values(noise, factor, limited):
    X = small_matrix() * factor
    likelihood = Censored(upper=8.0 * factor, noise=NORMAL[noise]) if limited else NORMAL[noise]
    for prior in PRIORS:
        gentle(X, replace(preset(prior), likelihood=likelihood), 2)


@pytest.mark.parametrize("prior", PRIORS)
def test_categories_that_are_rare_or_never_occur(prior):
    X = np.where(np.isnan(small_matrix()), np.nan, 0.0)
    X[0, 0] = 1.0
    model = replace(preset(prior), likelihood=Ordinal())
    gentle(X, model, 2)
    gentle(X, replace(model, likelihood=Ordinal((-3, 0, 1, 1e6))), 2)
    gentle(small_matrix(0.9, (20, 20)), replace(model, likelihood=Ordinal(50)), 2)


def test_cuts_far_from_where_a_chain_begins():
    X = CASES["probit"].data(small_matrix(0.8, (4, 5)))
    model = dict(CASES["probit"].models())["GEE"]
    for seed in range(1, 9):
        gentle(X, model, 7, sweeps=40, init="prior", random_state=seed)
