"""Fuzzed calls of the library: whatever is given, an answer or one of our own sentences."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayesmf import (
    BayesianImputer,
    BayesianMF,
    Gaussian,
    Model,
    Normal,
    ObservedMatrix,
    Posterior,
    Problem,
    State,
    baseline,
    chain,
    compare,
    hyperparameters,
    preset,
    read_matrix,
    sample,
)
from bayesmf._arguments import RULES, check
from bayesmf._errors import BayesmfError, ModelError
from bayesmf.splits import holdout, kfold

X = np.random.default_rng(0).normal(size=(6, 5))
X[1, 2] = np.nan
ODD = [
    None, True, 5, -1, 0, 2.5, np.nan, np.inf, 1e300, 1e-300, 10**30, 1j, "", "x", "all", "rows",
    "\0", b"x", [], [None], ["x"], [1.5, "a"], [[1, 2], [3]], (1, 2), (1, 2, 3), ("a", "b"), {},
    {"a": 1}, {1: 2}, {"x"}, range(3), len, object(), np.array([]), np.zeros((2, 2, 2)),
    np.float64(1), np.full((6, 5), np.nan), np.full((6, 5), 1e300), np.array(["a", "b"]),
    X[:0], X[:, :1],
]  # fmt: skip
SAMPLE = {
    "X": X, "model": "GGG", "n_components": 2, "draws": 2, "burn_in": 0, "thin": 1, "chains": 1,
    "hyperparameters": None, "biases": False, "noise": None, "lower": None, "upper": None,
    "init": "data", "scale_move": True, "cells": None, "keep": (), "random_state": 0,
    "n_jobs": None, "progress": False, "store": None, "dask": None,
}  # fmt: skip
FIT = {
    **{k: v for k, v in SAMPLE.items() if k not in ("init", "scale_move", "cells", "keep")},
    "center": "auto", "scale": "auto", "transformation": None, "errors": None, "weights": None,
    "until": None, "single": False,
}  # fmt: skip
LATER = ("X", "errors", "weights", "lower", "upper", "until")  # arguments of fit


def fit(kind, **options):
    known = {name: options.pop(name) for name in LATER}
    return kind(**options).fit(known.pop("X"), **known)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Public calls and arguments with which they succeed."""
    folder = tmp_path_factory.mktemp("files")
    short = {"draws": 6, "burn_in": 1, "random_state": 0}
    posterior = sample(X, "GGG", 2, chains=2, keep=("U", "V"), **short)
    mf = BayesianMF("GGG", 2, **short).fit(X)
    matrix, problem = ObservedMatrix.of(X), Problem.of(X, preset("GGG"), 2)
    posterior.save(folder / "run.npz")
    posterior.states[0].save(folder / "state.npz")
    comparison = {
        "X": X, "models": ["row-average", "GGG"], "ranks": [1], "folds": 2, "budget": "quick",
        "by": "error", "biases": False, "scale": "none", "transformation": None, "lower": None,
        "upper": None, "random_state": 0, "n_jobs": 1, "dask": None,
    }  # fmt: skip
    triples = {"rows": [0, 1], "cols": [0, 1], "values": [1.0, 2.0], "shape": None}
    labels = {"row_labels": None, "col_labels": None}
    where = {"rows": None, "cols": None, "return_std": True}
    return [
        (sample, SAMPLE),
        (lambda **options: fit(BayesianMF, **options), FIT),
        (lambda **options: fit(BayesianImputer, **options), FIT),
        (compare, comparison),
        (ObservedMatrix.of, {"X": X, "mask": None, "single": False, **labels}),
        (ObservedMatrix.from_triples, {**triples, **labels, "single": True}),
        (matrix.between, {"low": 0.0, "high": 1.0}),
        (matrix.rounded, {"unit": 1.0}),
        (matrix.take, {"selected": [0, 1]}),
        (baseline, {"X": X**2, "name": "NMF", "n_components": 2, "iterations": 2,
                    "random_state": 0, "n_jobs": None}),
        (holdout, {"X": X, "fraction": 0.1, "random_state": 0}),
        (lambda **options: list(kfold(**options)),
         {"X": X, "n_folds": 3, "random_state": 0, "keep_singles": False}),
        (preset, {"name": "GGG"}),
        (hyperparameters, {"name": "GGG"}),
        (Model, {"likelihood": Gaussian(), "rows": Normal(0.1), "cols": Normal(0.1), "biases": None,
                 "name": "x"}),
        (read_matrix, {"source": "drug_sensitivity", "long": None, "labels": "auto"}),
        (Problem.of, {"X": X, "model": preset("GGG"), "n_components": 2}),
        (lambda **options: next(chain(**options)),
         {"problem": problem, "init": "data", "random_state": 0, "number": 0, "state": None}),
        (mf.predict, {**where, "quantiles": [0.1], "include_noise": True, "latent": False}),
        (mf.log_density, {"rows": [0], "cols": [0], "values": [1.0], "errors": None}),
        (mf.sample_predictive, {"m": 2}),
        (mf.transform, {"X": X}),
        (mf.score, {"X": X}),
        (mf.noise_sd, {"level": 0.9}),
        (BayesianMF.from_posterior, {"posterior": posterior, "X": X, "center": "none",
                                     "scale": "none", "transformation": None}),
        (posterior.predict, {**where, "method": "mean"}),
        (posterior.summary, {"X": None, "n_cells": 3, "screen": None}),
        (posterior.noise, {"level": 0.9}),
        (posterior.save, {"path": folder / "again.npz"}),
        (Posterior.load, {"path": folder / "run.npz", "parts": ()}),
        (State.load, {"path": folder / "state.npz"}),
    ]  # fmt: skip


def try_one(calls, data):
    """One or two arguments of a call are odd."""
    call, usual = data.draw(st.sampled_from(calls))
    names = data.draw(st.lists(st.sampled_from(sorted(usual)), min_size=1, max_size=2, unique=True))
    odd = {name: ODD[data.draw(st.integers(0, len(ODD) - 1))] for name in names}
    if isinstance(odd.get("n_jobs"), int) and odd["n_jobs"] > 5:
        odd["n_jobs"] = 2  # so many threads would be had
    if odd.get("models", "") is None:
        odd["models"] = "x"  # all that there are take too long
    try:
        call(**{**usual, **odd})
    except BayesmfError as error:
        told = str(error)
    except Exception as error:
        error.add_note(f"{call} with {odd}")
        raise
    else:
        return
    assert told.rstrip().endswith((".", "?", "'", ")")), (told, odd)


def fuzz(calls, examples):
    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.data())
    def one(data):
        try_one(calls, data)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of runs that are far too short
        one()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # odd names of files are made here


def test_odd_arguments(calls, here):
    fuzz(calls, 60)


@pytest.mark.slow
def test_many_odd_arguments(calls, here):
    fuzz(calls, 1000)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("hyperparameters", 5, "hyperparameters must be a dictionary of values by name, got 5"),
        ("keep", None, "keep must be a name or several names of variables, got None"),
        ("row_labels", 5, "row_labels must be a sequence of labels, got 5"),
        ("models", [None], "models must be names of models, or Models, got [None]"),
        ("name", 2, "name must be a text, got 2"),
        ("n_folds", "x", "n_folds must be a whole number, got 'x'"),
        ("draws", 10**30, "draws must be at most 2147483647"),
    ],
)
def test_rules_say_what_they_want(name, value, told):
    with pytest.raises(ModelError) as caught:
        check({name: value, "anything": object()})
    assert told in str(caught.value)


def test_rules_have_an_argument_each(calls):
    assert set(RULES) <= {name for _, usual in calls for name in usual} | {"progress", "store"}
