"""Extreme input: nothing is NaN, infinite or endless."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmf import baseline, sample
from tests.helpers.matrices import ALL_PRESETS, models, small_matrix

POISSON = ("PGG", "PGGG")


def gentle(X, model, K, **options):
    """Sample briefly, and check that everything is finite."""
    posterior = sample(X, model, K, draws=20, burn_in=20, keep="all", random_state=0, **options)
    for name, draws in posterior.draws.items():
        assert np.isfinite(draws).all(), name
    assert np.isfinite(posterior.mean).all()
    assert np.isfinite(posterior.variance).all()
    assert np.isfinite(posterior.train_mse).all()
    for name, nonnegative in zip("UV", posterior.model.nonnegative, strict=True):
        assert not nonnegative or (posterior.draws[name] >= 0).all()
    return posterior


def one_per_row(shape):
    X = np.full(shape, np.nan)
    rows = np.arange(shape[0])
    X[rows, rows % shape[1]] = 1.0 + rows % 5
    return X


MATRICES = {
    "1 x 1": (np.array([[3.0]]), 2),
    "one row": (np.arange(1.0, 9.0)[None, :], 2),
    "one column": (np.arange(1.0, 9.0)[:, None], 2),
    "K above both sides": (small_matrix(0.8, (4, 5)), 7),
    "constant": (np.full((9, 7), 5.0), 3),
    "zeros": (np.zeros((9, 7)), 3),
    "one entry per row": (one_per_row((12, 5)), 3),
    "rank one": (small_matrix(), 1),
}


@pytest.mark.parametrize("model", models())
@pytest.mark.parametrize("case", MATRICES)
@pytest.mark.parametrize("init", ["data", "prior"])
def test_small_and_degenerate_matrices(model, case, init):
    X, K = MATRICES[case]
    gentle(X, model, K, init=init)


@pytest.mark.parametrize("name", [n for n in ALL_PRESETS if n not in POISSON])
@pytest.mark.parametrize("factor", [1e-8, 1e8])
@pytest.mark.parametrize("init", ["data", "prior"])
def test_tiny_and_huge_values(name, factor, init):
    gentle(small_matrix() * factor, name, 3, init=init)


@pytest.mark.parametrize("name", POISSON)
@pytest.mark.parametrize("factor", [0.0, 1e6])
def test_counts_of_nothing_and_of_millions(name, factor):
    X = small_matrix()
    posterior = gentle(np.floor(X * factor), name, 3)
    if factor:
        observed = ~np.isnan(X)
        fit = posterior.mean[observed] / factor
        assert np.corrcoef(fit, X[observed])[0, 1] > 0.9


@pytest.mark.parametrize("model", models())
def test_rows_and_columns_without_entries_are_prior_draws(model):
    X = small_matrix()
    X[3], X[:, 5] = np.nan, np.nan
    posterior = gentle(X, model, 3)
    assert np.flatnonzero(posterior.empty_rows).tolist() == [3]
    assert np.flatnonzero(posterior.empty_cols).tolist() == [5]
    assert any("Rows without any observed entry: 1" in note for note in posterior.notes)


@pytest.mark.parametrize("name", ["GVG", "GVnG"])
@pytest.mark.parametrize("exponent", [-300, -100, -30, -10, 0, 3])
@pytest.mark.parametrize("K", [1, 4, 9])
def test_any_strength_of_the_volume_prior(name, exponent, K):
    X = small_matrix(0.8, (30, 20))
    gentle(X, name, K, hyperparameters={"gamma": 10.0**exponent})
    X[4] = np.nan
    gentle(X, name, K, hyperparameters={"gamma": 10.0**exponent})


@pytest.mark.parametrize("name", ["GVG", "GVnG"])
def test_volume_strength_beyond_doubles(name):
    gentle(small_matrix(), name, 3, hyperparameters={"log10_gamma": -600.0})
    gentle(small_matrix(), name, 3, hyperparameters={"log10_gamma": 50.0})


@pytest.mark.parametrize("exponent", [-330.0, -460.0])
def test_weak_volume_prior_from_a_prior_start(exponent):
    X = small_matrix(0.8, (13, 9))
    for move in (True, False):
        options = {"init": "prior", "scale_move": move}
        gentle(X, "GVG", 3, hyperparameters={"log10_gamma": exponent}, **options)
        gentle(X, "GVnG", 3, hyperparameters={"log10_gamma": exponent}, **options)


def test_wishart_with_the_fewest_degrees_of_freedom():
    for seed in range(10):
        sample(
            small_matrix(), "GGGW", 3, draws=5, burn_in=5, init="prior", random_state=seed,
            hyperparameters={"nu0": 2.01},
        )  # fmt: skip


def test_an_improper_volume_posterior_is_said():
    posterior = gentle(small_matrix(0.9, (20, 6)), "GVG", 4)  # 6 columns <= 2 K - 2
    assert any("no proper posterior" in note for note in posterior.notes)
    assert posterior.model.rows.ridge > 0


@pytest.mark.parametrize("case", MATRICES)
def test_baselines_survive(case):
    X, K = MATRICES[case]
    for name in ("NMF", "row-average", "column-average", "grand-average"):
        assert np.isfinite(baseline(X, name, K, iterations=50, random_state=0).mean).all()
