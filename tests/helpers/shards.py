"""Models and data for chains that are spread over workers, and shards on threads of one process."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from bayesmf import (
    BernoulliPoisson,
    Biases,
    Censored,
    Gamma,
    Model,
    NegativeBinomial,
    Normal,
    ObservedMatrix,
    Ordinal,
    StudentT,
)
from bayesmf.data import shards
from bayesmf.model.presets import as_model
from bayesmf.sampler.start import initial_state
from bayesmf.sampler.state import Problem
from bayesmf.sampler.sweep import sweep

FEATURES = np.random.default_rng(5).normal(size=(60, 2))
NORMAL = (Normal(0.1), Normal(0.1))
GAMMAS = (Gamma(1.0, 1.0), Gamma(1.0, 1.0))


def _unequal(name, **more):
    return as_model(name, None, more.pop("biases", True), more.pop("noise", "both"), **more)


# By name: the kind of data, a model, and after how many sweeps all of its steps have been taken.
CASES = {
    "GGGW": ("real", lambda: _unequal("GGGW"), 4),
    "GEE": ("positive", lambda: _unequal("GEE", biases=False, noise="rows"), 9),
    "PGG": ("counts", lambda: as_model("PGG", None, False, None, (None, None)), 4),
    "ordinal": ("categories", lambda: Model(Ordinal(), *NORMAL, biases=Biases()), 4),
    "GLL": ("real", lambda: as_model("GLL", None, False, None, (None, None)), 3),
    "GGGU": ("real", lambda: _unequal("GGGU", biases=False, noise="cols"), 3),
    "large counts": ("large counts", lambda: as_model("PGGG", None, False, None, (None, None)), 34),
    "features": ("features", lambda: _unequal("GGGW", noise="cols"), 4),
    "errors": ("errors", lambda: _unequal("GGGA"), 4),
    "Student-t": ("real", lambda: Model(StudentT(cols=True), *NORMAL, biases=Biases()), 4),
    "negative binomial": ("counts", lambda: Model(NegativeBinomial(), *GAMMAS), 4),
    "Bernoulli-Poisson": ("presence", lambda: Model(BernoulliPoisson(), *GAMMAS), 4),
    "censored": ("real", lambda: _unequal("GGGW", limits=(None, 1.5)), 4),
    "censored Student-t": (
        "errors", lambda: Model(Censored(upper=1.5, noise=StudentT()), *NORMAL), 4,
    ),
}  # fmt: skip


def data(kind, observed, shape=(60, 40)):
    """A matrix of this kind, of which a part of the cells is observed."""
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(shape[0], 3)), rng.normal(size=(shape[1], 3))
    X = U @ V.T + 0.3 * rng.normal(size=shape) + rng.normal(size=shape[0])[:, None]
    mean = np.abs(U) @ np.abs(V).T
    if kind == "positive":
        X = np.abs(X)
    elif kind == "categories":
        X = np.digitize(X, [-1.5, 0.0, 1.5]).astype(float)
    elif kind == "presence":
        X = (rng.poisson(0.5 * mean) > 0).astype(float)
    elif kind.endswith("counts"):
        X = rng.poisson(20 * mean + 5 if "large" in kind else 2 * mean).astype(float)
    X[rng.random(shape) > observed] = np.nan
    matrix = ObservedMatrix.of(X)
    if kind == "errors":
        matrix = replace(matrix, errors=rng.uniform(0.1, 1.0, matrix.n_observed))
    return matrix.with_features(FEATURES[: shape[0]]) if kind == "features" else matrix


def problem(name, observed, rank=4):
    """Problem of a case, its first state, and the number of sweeps."""
    kind, model, sweeps = CASES[name]
    found = Problem.of(data(kind, observed), model(), rank)
    return found, initial_state(found, "data", 3), sweeps


def after(step, problem, state, sweeps):
    """All variables after so many sweeps."""
    for _ in range(sweeps):
        state = step(problem, state)
    return state.to_arrays()


class Threads:
    """Shards on threads: everybody reads what everybody wrote."""

    def __init__(self, number, board, barrier):
        self.number, self.size = number, len(board)
        self._board, self._barrier = board, barrier

    def exchange(self, parts):
        self._board[self.number] = parts
        self._barrier.wait(60)
        given = copy.deepcopy([theirs[self.number] for theirs in self._board])
        self._barrier.wait(60)
        return given


def on_threads(problem, state, sweeps, size):
    """All variables after so many sweeps, as every one of the shards has them."""
    X, board, barrier = problem.X, [None] * size, threading.Barrier(size)
    cuts = [shards.cuts(view, size, problem.n_components) for view in (X.rows, X.cols)]

    def one(number):
        shard = shards.assembled(
            shards.shard_of(X, cuts, number), cuts, (X.rows.counts, X.cols.counts),
            Threads(number, board, barrier), X.mean, shards.own_weights(X, cuts, number),
        )  # fmt: skip
        try:
            with np.errstate(all="ignore"):
                return after(sweep, replace(problem, X=shard), state, sweeps)
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(size)))
