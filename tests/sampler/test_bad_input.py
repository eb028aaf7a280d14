"""Bad input is refused in one sentence before any work."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmf import (
    ARD,
    DataError,
    Exponential,
    Gamma,
    Gaussian,
    InverseGaussian,
    Laplace,
    Model,
    ModelError,
    Normal,
    NormalInverseWishart,
    ObservedMatrix,
    Poisson,
    TruncatedNormal,
    TruncatedNormalHyper,
    Volume,
    baseline,
    preset,
    sample,
)
from bayesmf.sampler import run as run_module
from tests.helpers.matrices import small_matrix

X = small_matrix()


@pytest.fixture(autouse=True)
def no_work(monkeypatch):
    """Fail if a sweep is ever started."""

    def started(*_):
        raise AssertionError("work was started before the input was refused")

    monkeypatch.setattr(run_module, "sweep", started)


@pytest.mark.parametrize(
    ("data", "model", "message"),
    [
        (np.full((3, 3), np.nan), "GGG", "no observed entry"),
        (np.where(np.arange(12).reshape(3, 4) == 6, np.inf, 1.0), "GGG", "row 1, column 2"),
        (np.array([[1, 2], [3, "abc"]], dtype=object), "GGG", "'abc'"),
        (X - 5, "PGG", "row"),
        (X + 0.5, "PGG", "row"),
        (X - 5, "PGGG", "row"),
    ],
)
def test_bad_data(data, model, message):
    with pytest.raises(DataError) as error:
        sample(data, model, 2)
    assert message in str(error.value)
    assert_one_sentence(error)


def test_negative_values_under_the_nmf_objective():
    with pytest.raises(DataError, match=r"NMF"):
        baseline(X - 5, "NMF", 2)


def test_mask_of_another_shape():
    with pytest.raises(DataError, match=r"\(3, 3\)"):
        ObservedMatrix.of(X, mask=np.ones((3, 3), bool))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number of at least 1, got 0"),
        ({"n_components": 2.5}, "n_components must be a whole number of at least 1, got 2.5"),
        ({"draws": 0}, "draws must be a whole number of at least 1, got 0"),
        ({"burn_in": -1}, "burn_in must be a whole number of at least 0, got -1"),
        ({"thin": 0}, "thin must be"),
        ({"chains": 0}, "chains must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"random_state": "seed"}, "random_state must be"),
        ({"random_state": -3}, "random_state must not be negative"),
        ({"model": "GGH"}, "Unknown model 'GGH'"),
        ({"model": "gggaa"}, "Did you mean 'GGGA'?"),
        ({"hyperparameters": {"lamda": 1.0}}, "Did you mean 'lambda'?"),
        ({"hyperparameters": {"lambda": -1.0}}, "precision must be a positive number, got -1.0"),
        ({"keep": ["W"]}, "has no variable 'W'"),
        ({"cells": ([0, 99], [0, 0])}, "row 99 is outside the matrix of 17 rows"),
        ({"cells": [0]}, "cells must be two arrays"),
        ({"cells": 5}, "cells must be two arrays"),
        ({"cells": [0, 1, 2]}, "a number for each of the 1 cells"),
        ({"cells": ([0.5], [0])}, "row positions must be integers"),
        ({"init": "svd"}, "init must be 'data' or 'prior'"),
    ],
)
def test_bad_options(options, message):
    options = {"model": "GGG", "n_components": 2, **options}
    with pytest.raises((ModelError, DataError)) as error:
        sample(X, **options)
    assert message in str(error.value)
    assert_one_sentence(error)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Model(Poisson(), Normal(0.1), Gamma()), "use Exponential or Gamma"),
        (lambda: Model(Poisson(), Gamma(), Laplace(1.0)), "Laplace on the cols does not fit"),
        (lambda: Model(Gaussian(), Gamma(), Normal(0.1)), "MultivariateNormal, Normal or Volume"),
        (lambda: Model(Gaussian(), Volume(), Volume()), "use Normal(0.1) on one of them"),
        (lambda: Model(Gaussian(), Normal(0.1), 0.1), "cols must be a prior"),
        (lambda: Model("Gaussian", Normal(0.1), Normal(0.1)), "likelihood must be"),
        (lambda: Normal("a"), "precision must be a positive number"),
        (lambda: Normal(update="columns"), "update must be"),
        (lambda: Laplace(0.0), "scale must be a positive number"),
        (lambda: Exponential(float("nan")), "rate must be a positive number"),
        (lambda: TruncatedNormal(float("inf"), 1.0), "mean must be finite"),
        (lambda: TruncatedNormal(1.0, TruncatedNormalHyper()), "hyperprior's own mean"),
        (lambda: TruncatedNormalHyper(shape=0.4), "shape must exceed 1/2"),
        (lambda: Volume(gamma=1.0, log10_gamma=0.0), "not both"),
        (lambda: Volume(signs="any"), "signs must be"),
        (lambda: Volume(ridge=-1.0), "ridge must not be negative"),
        (lambda: Volume(log10_gamma=float("inf")), "log10_gamma must be finite"),
        (lambda: InverseGaussian(reading="mean"), "reading must be 'scale' or 'rate'"),
        (lambda: ARD(0.0), "alpha must be a positive number"),
        (lambda: Gaussian(alpha=-1.0), "alpha must be a positive number"),
        (lambda: NormalInverseWishart(dof=2).resolve(4), "dof must exceed K - 1 = 3"),
        (lambda: NormalInverseWishart(scale=np.eye(2)).resolve(3), "positive definite 3 x 3"),
        (lambda: preset("GLLI", reading="both"), "reading must be"),
        (lambda: sample(X, preset("GGG"), 2, hyperparameters={"lambda": 1}), "preset's name"),
        (lambda: baseline(X, "median"), "Unknown baseline 'median'"),
        (lambda: baseline(X, "NMF", 0), "n_components must be"),
    ],
)
def test_parts_that_do_not_fit(build, message):
    with pytest.raises(ModelError) as error:
        build()
    assert message in str(error.value)
    assert_one_sentence(error)


def assert_one_sentence(error) -> None:
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 300
    assert text.rstrip().endswith((".", "?"))
