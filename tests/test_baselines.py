"""Baselines answer as a posterior does."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmf import BASELINES, baseline
from tests.helpers.matrices import small_matrix

X = small_matrix()


def kl(X, fit):
    seen = ~np.isnan(X)
    x, m = X[seen], fit[seen]
    return np.sum(np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / m), 0) - x + m)


def test_averages():
    np.testing.assert_allclose(baseline(X, "row-average").mean[:, 0], np.nanmean(X, axis=1))
    np.testing.assert_allclose(baseline(X, "column-average").mean[0], np.nanmean(X, axis=0))
    np.testing.assert_allclose(baseline(X, "grand-average").mean, np.nanmean(X))


def test_an_empty_row_gets_the_grand_average():
    Y = X.copy()
    Y[4] = np.nan
    np.testing.assert_allclose(baseline(Y, "row-average").mean[4], np.nanmean(Y))


def test_nmf_lowers_its_objective_in_every_update():
    values = [kl(X, baseline(X, "NMF", 3, iterations=n, random_state=0).mean) for n in range(1, 30)]
    assert np.all(np.diff(values) <= 1e-9)


def test_nmf_recovers_a_nonnegative_product():
    rng = np.random.default_rng(0)
    truth = rng.gamma(1.0, 1.0, (60, 3)) @ rng.gamma(1.0, 1.0, (3, 50))
    hidden = rng.random(truth.shape) < 0.2
    fit = baseline(np.where(hidden, np.nan, truth), "NMF", 3, iterations=2000, random_state=1)
    assert np.corrcoef(fit.mean[hidden], truth[hidden])[0, 1] > 0.99


@pytest.mark.parametrize("name", ["row average", "row_average"])
def test_names_may_be_spelt_as_in_comparisons_and_in_the_study(name):
    np.testing.assert_array_equal(baseline(X, name).mean, baseline(X, "row-average").mean)


@pytest.mark.parametrize("name", BASELINES)
def test_interface(name):
    fit = baseline(X, name, 2, iterations=20, random_state=0, n_jobs=2)
    again = baseline(X, name, 2, iterations=20, random_state=0, n_jobs=1)
    np.testing.assert_array_equal(fit.mean, again.mean)
    rows, cols = np.array([3, 16]), np.array([2, 11])
    np.testing.assert_allclose(fit.predict(rows, cols), fit.mean[rows, cols])
    error = np.nanmean((X - fit.mean) ** 2)
    np.testing.assert_allclose(fit.train_mse[0, -1], error)
