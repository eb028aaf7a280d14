"""Runs under every likelihood: the same for any threads, after a kill, on disk and in a file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from bayesmf import (
    BayesianImputer,
    BayesianMF,
    Biases,
    Censored,
    ObservedMatrix,
    Posterior,
    preset,
    sample,
)
from bayesmf.data.errors import known_errors
from bayesmf.sampler import checkpoints
from tests.helpers.likelihoods import CASES, Case, columns_censored, small

CASES = {**CASES, "censored by column": Case(columns_censored())}
RUNS = [
    pytest.param(name, biases, id=f"{name}{'-biases' * biases}")
    for name, case in CASES.items()
    for biases in ((False, True) if case.likelihood.takes_biases else (False,))
]
SAVED = [*((name, False) for name in CASES), ("cols", True), ("ordinal", True)]
OPTIONS = {"draws": 6, "burn_in": 5, "chains": 2, "keep": "all", "random_state": 5}


def model_of(name, biases=False):
    """The first model of a case."""
    prior = CASES[name].priors()[0]
    model = replace(preset(prior), likelihood=CASES[name].likelihood)
    return replace(model, biases=Biases()) if biases else model


def data_of(name, density=0.7):
    """A small matrix of the case; with known errors, where noise differs by rows and columns."""
    X = ObservedMatrix.of(CASES[name].data(small("rows", density)))
    if name != "both":
        return X
    return known_errors(X, np.random.default_rng(1).uniform(0.5, 2.0, X.shape))


def assert_same(found, expected, start=0):
    for key, draws in expected.draws.items():
        np.testing.assert_array_equal(found.draws[key], draws[:, start:], err_msg=key)
    if not start:
        np.testing.assert_array_equal(found.mean, expected.mean)
        np.testing.assert_array_equal(found.train_mse, expected.train_mse)


@pytest.mark.parametrize("name", CASES)
def test_threads_do_not_change_draws(name):
    X = CASES[name].data(small("rows", 0.9, (240, 12)))
    if name == "ordinal":  # whose sums over entries are cut into pieces
        X = np.tile(X, (5, 3))[:, :30]
    few = {**OPTIONS, "draws": 2, "burn_in": 2}
    expected = sample(X, model_of(name), 3, **few)
    for n_jobs in (2, 3):
        found = sample(X, model_of(name), 3, n_jobs=n_jobs, **few)
        assert_same(found, expected)


@pytest.mark.parametrize(("name", "biases"), RUNS)
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not(name, biases, tmp_path, monkeypatch):
    """The stop comes between a kept draw and its checkpoint."""
    monkeypatch.setattr(checkpoints, "_SECONDS", 0.0)
    X, model = data_of(name), model_of(name, biases)

    class Killed(Exception):
        pass

    def stop_at(sweep):
        def progress(event):
            if event.sweep == sweep:
                raise Killed

        return progress

    for sweep in (3, 8, 10):
        with pytest.raises(Killed):
            sample(X, model, 3, store=tmp_path / "run", progress=stop_at(sweep), **OPTIONS)
    found = sample(X, model, 3, store=tmp_path / "run", **OPTIONS)
    assert_same(found, sample(X, model, 3, **OPTIONS))


@pytest.mark.parametrize(("name", "biases"), SAVED)
def test_a_posterior_goes_on_also_from_a_file(name, biases, tmp_path):
    X, model = data_of(name), model_of(name, biases)
    whole = sample(X, model, 3, **{**OPTIONS, "draws": 15})
    first = sample(X, model, 3, **OPTIONS)
    first.save(tmp_path / "first.nc")
    loaded = Posterior.load(tmp_path / "first.nc")
    assert repr(loaded.model) == repr(first.model)
    assert_same(loaded, first)
    more = {**OPTIONS, "draws": 9, "burn_in": 0, "random_state": None}
    for posterior in (first, loaded):
        assert_same(sample(X, model, 3, init=posterior, **more), whole, start=6)
    one, two = (BayesianMF.from_posterior(p, X) for p in (first, loaded))
    for a, b in zip(
        one.predict(return_std=True, quantiles=[0.1, 0.9]),
        two.predict(return_std=True, quantiles=[0.1, 0.9]),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.predict(latent=True), two.predict(latent=True))
    np.testing.assert_array_equal(one.transform(X), two.transform(X))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("density", [0.2, 0.8])
def test_containers_do_not_change_draws(name, density):
    X = CASES[name].data(small("rows", density))
    i, j = np.nonzero(~np.isnan(X))
    stored = sparse.coo_array((X[i, j], (i, j)), shape=X.shape)
    expected = sample(X, model_of(name), 3, **OPTIONS)
    for container in (stored, (i, j, X[i, j])):
        found = sample(container, model_of(name), 3, **OPTIONS)
        assert found.shape == expected.shape
        assert_same(found, expected)


@pytest.mark.parametrize(("name", "biases"), RUNS)
def test_a_posterior_tells_what_it_found(name, biases):
    X, case = data_of(name), CASES[name]
    mf = BayesianMF(model_of(name, biases), 3, draws=8, burn_in=5, random_state=0).fit(X)
    summary = mf.posterior_.summary()
    assert summary.verdict
    for quantity in summary.quantities:
        assert np.isfinite([quantity.mean, quantity.sd]).all(), quantity.quantity
    U, V = mf.posterior_.align()
    assert np.isfinite(U).all() and np.isfinite(V).all()
    new = case.data(small("rows", 0.5, (4, 12)))
    new[2] = np.nan  # a row of which nothing is known
    mean, std, (low, high) = mf.predict(new, return_std=True, quantiles=[0.05, 0.95])
    assert mean.shape == (4, 12) and np.isfinite(mean).all() and (std >= 0).all()
    assert (low <= high).all()
    lowest, highest = np.nanmin(X.to_array()), np.nanmax(X.to_array())
    if case.kind in ("ratings", "presence"):
        assert (mean >= lowest).all() and (mean <= highest).all()
        probabilities = mf.predict_proba()
        np.testing.assert_allclose(probabilities.sum(axis=-1), 1.0)
        values = mf.posterior_.model.likelihood.values
        np.testing.assert_allclose(probabilities @ values, mf.predict(), atol=1e-12)
    if isinstance(case.likelihood, Censored):
        limit = np.broadcast_to(case.likelihood.upper, mean.shape)
        assert (mean <= limit).all() and (high <= limit).all()
    assert np.isfinite(mf.score(new[:2]))


@pytest.mark.parametrize(("name", "biases"), RUNS)
def test_gaps_are_filled(name, biases):
    X, case = data_of(name), CASES[name]
    imputer = BayesianImputer(model_of(name, biases), 3, draws=8, burn_in=5, random_state=0)
    filled = imputer.fit_transform(X)
    seen = ~np.isnan(X.to_array())
    np.testing.assert_array_equal(filled[seen], X.to_array()[seen])
    assert np.isfinite(filled).all()
    several = imputer.impute(3)
    assert several.shape == (3, *X.shape) and np.isfinite(several).all()
    np.testing.assert_array_equal(several[:, seen], np.tile(X.rows.values, (3, 1)))
    assert np.isfinite(imputer.transform(case.data(small("rows", 0.5, (4, 12))))).all()


@pytest.mark.parametrize("known", [{}, {"upper": 50.0}])
def test_new_rows_without_errors_have_typical_ones(known):
    """Errors that are all the same say nothing but their unit, for new rows neither."""
    rng = np.random.default_rng(0)
    V = rng.normal(size=(2, 20))
    X, new = (rng.normal(size=(n, 2)) @ V + 0.3 * rng.normal(size=(n, 20)) for n in (40, 15))
    new[:, 8:] = np.nan
    found = []
    for errors in (None, np.full(X.shape, 0.01)):
        mf = BayesianMF("GGG", 2, draws=60, burn_in=60, random_state=0, center="none", scale="none")
        found.append(mf.fit(X, errors=errors, **known).predict(new, return_std=True))
    for plain, with_errors in zip(*found, strict=True):
        np.testing.assert_allclose(with_errors, plain, atol=0.25)
