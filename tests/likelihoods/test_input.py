"""Errors of measurement, limits, categories and counts that cannot be used: one sentence each."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmf import (
    BayesianMF,
    BernoulliPoisson,
    Censored,
    DataError,
    Gaussian,
    Model,
    ModelError,
    NegativeBinomial,
    Normal,
    ObservedMatrix,
    Ordinal,
    Poisson,
    StudentT,
    preset,
    sample,
)
from bayesmf.sampler import run as run_module
from tests.helpers.matrices import small_matrix
from tests.sampler.test_bad_input import assert_one_sentence

X = small_matrix()
GOOD = np.full(X.shape, 0.5)
NAMED = ObservedMatrix.of(
    X, row_labels=[f"cell {i}" for i in range(17)], col_labels=[f"drug {j}" for j in range(12)]
)


@pytest.fixture(autouse=True)
def no_work(monkeypatch):
    """Fail if a sweep is ever started."""

    def started(*_):
        raise AssertionError("work was started before the input was refused")

    monkeypatch.setattr(run_module, "sweep", started)


def with_one(value, cell=(0, 0)):
    """Good errors but for one cell, which is observed."""
    errors = GOOD.copy()
    errors[cell] = value
    return errors


def refused(build, message, kind=(DataError, ModelError)):
    with pytest.raises(kind) as error:
        build()
    assert message in str(error.value)
    assert_one_sentence(error)


@pytest.mark.parametrize("name", ["errors", "weights"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0.0, "row 'cell 0', column 'drug 0' is 0; every observed entry needs"),
        (-2.0, "row 'cell 0', column 'drug 0' is -2; every observed entry needs"),
        (np.nan, "row 'cell 0', column 'drug 0' is missing; every observed entry needs"),
    ],
)
def test_errors_and_weights_must_be_positive_wherever_there_is_an_entry(name, value, message):
    mf = BayesianMF("GGG", 2)
    refused(lambda: mf.fit(NAMED, **{name: with_one(value)}), f"{name}: {message}", DataError)


def test_infinite_errors_are_refused():
    refused(lambda: BayesianMF("GGG", 2).fit(X, errors=with_one(np.inf)), "errors: row 0, column 0")


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"errors": GOOD[:3]}, "errors have shape (3, 12), but the matrix has (17, 12)"),
        ({"weights": GOOD.T}, "weights have shape (12, 17)"),
        ({"errors": GOOD, "weights": GOOD}, "not both"),
        (
            {"errors": ObservedMatrix.of(GOOD, row_labels=range(17), col_labels=range(12))},
            "row 0 is 0, but 'cell 0' in the matrix",
        ),
        ({"lower": 5.0, "upper": 5.0}, "the lower limit 5 is not below the upper one, 5"),
        (
            {"lower": 2.0, "upper": [8.0] * 3 + [1.0] + [8.0] * 8},
            "the lower limit 2 is not below the upper one, 1 at column 3",
        ),
        ({"upper": [8.0] * 5}, "upper: there are (5,) limits for a matrix of shape (17, 12)"),
        ({"upper": np.zeros((2, 2, 2))}, "upper must have at most two dimensions"),
        ({"upper": "high"}, "upper must be a number"),
        ({"lower": np.inf}, "lower is inf"),
        ({"upper": np.where(np.isnan(X), 9.0, X - 1)}, "beyond its own upper limit"),
        ({"lower": np.where(np.isnan(X), 0.0, X + 1)}, "beyond its own lower limit"),
    ],
)
def test_errors_and_limits_that_do_not_fit(known, message):
    refused(lambda: BayesianMF("GGG", 2).fit(NAMED, **known), message)


def test_a_value_beyond_the_limit_of_its_cell_is_named():
    limits = np.full(X.shape, 100.0)
    limits[0, 0] = 2.0  # the value is 3
    refused(
        lambda: BayesianMF("GGG", 2).fit(NAMED, upper=limits),
        "row 'cell 0', column 'drug 0' is 3, beyond its own upper limit 2",
        DataError,
    )


@pytest.mark.parametrize("model", ["PGG", "NGG", "BGG", "OGGW"])
@pytest.mark.parametrize(
    ("option", "word"),
    [({"noise": "cols"}, "noise"), ({"upper": 8.0}, "limits")],
)
def test_noise_and_limits_go_with_the_normal_family(model, option, word):
    refused(lambda: sample(X, model, 2, **option), "with Gaussian and Student-t", ModelError)
    refused(lambda: sample(X, model, 2, **option), word, ModelError)


def test_counts_have_no_use_for_errors():
    mf = BayesianMF("PGG", 2)
    refused(lambda: mf.fit(X, errors=GOOD), "no use for errors or weights", DataError)


@pytest.mark.parametrize(
    ("data", "likelihood", "message"),
    [
        (X + 0.5, Ordinal(), "whole numbers, or categories= with all values that occur"),
        (np.where(X == 3, 7.5, X), Ordinal(), "is 7.5"),
        (np.where(X == 3, 4.0, X), Ordinal(), "the category 3 does not occur in the data"),
        (np.where(np.isnan(X), X, 4.0), Ordinal(), "all entries are 4, and one category says"),
        (X, Ordinal(3), "needs one of the categories 0, 1, 2"),
        (np.arange(60.0).reshape(6, 10), Ordinal(), "60 different values, too many for categories"),
        (np.where(X > 3, 2, X > 1), BernoulliPoisson(), "needs zeros and ones"),
        (X - 3, NegativeBinomial(), "needs counts"),
        (X + 0.25, NegativeBinomial(), "needs counts"),
        (X - 3, Poisson(), "needs counts"),
    ],
)
def test_data_that_a_likelihood_cannot_make(data, likelihood, message):
    name = "PGG" if likelihood.counts else "GGGW"
    model = Model(likelihood, preset(name).rows, preset(name).cols)
    refused(lambda: sample(data, model, 2), message, DataError)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Ordinal((1, 1, 2)), "two or more numbers that increase"),
        (lambda: Ordinal((5,)), "two or more numbers that increase"),
        (lambda: Ordinal(1), "two or more numbers that increase"),
        (lambda: Ordinal((1, np.nan, 2)), "two or more numbers that increase"),
        (lambda: Ordinal(("low", "high")), "two or more numbers that increase"),
        (lambda: Ordinal(spread=0.0), "spread must be a positive number"),
        (lambda: StudentT(dof_alpha=-1.0), "dof_alpha must be a positive number"),
        (lambda: NegativeBinomial(alpha=0.0), "alpha must be a positive number"),
        (lambda: Gaussian(rows="yes"), "rows must be True or False"),
        (lambda: Gaussian(precision=-1.0), "precision must be a positive number"),
        (lambda: Gaussian(shape_least=-1.0), "shape_least must"),
        (lambda: Censored(noise=Poisson()), "noise must be Gaussian() or StudentT()"),
        (lambda: Censored(lower=3, upper=2), "lower limit 3 is not below the upper one, 2"),
        (
            lambda: Censored(lower=np.zeros((3, 4)), upper=np.ones((2, 4))),
            "lower has (3, 4) limits and upper (2, 4)",
        ),
        (lambda: Model(Ordinal(), preset("PGG").rows, Normal(0.1)), "does not fit the ordinal"),
        (lambda: Model(NegativeBinomial(), Normal(0.1), Normal(0.1)), "use Exponential or Gamma"),
        (lambda: sample(X, "NGG", 2, biases=True), "Leave biases out"),
        (lambda: sample(X, "GGG", 2, noise="columns"), "Did you mean 'cols'?"),
    ],
)
def test_parts_that_do_not_fit(build, message):
    refused(build, message, ModelError)


@pytest.mark.parametrize("model", ["OGGW", "NGG", "BGG"])
def test_only_the_normal_family_can_be_centred(model):
    mf = BayesianMF(model, 2, center="global")
    refused(lambda: mf.fit(np.where(np.isnan(X), X, X > 2)), "center='global'", ModelError)


@pytest.mark.parametrize("units", [{"center": "rows"}, {"center": "both"}, {"scale": "rows"}])
def test_limits_are_refused_where_rows_have_units_of_their_own(units):
    mf = BayesianMF("GGG", 2, **units)
    message = "Limits are not known for rows that are centred or scaled by themselves"
    refused(lambda: mf.fit(X, upper=8.0), message, ModelError)


@pytest.mark.parametrize("model", ["XGGW", "OPGG", "NGGW"])
def test_letters_that_stand_for_nothing_here(model):
    refused(lambda: sample(X, model, 2), model, ModelError)
