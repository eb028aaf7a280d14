"""What a task does: make its split, fit, and score. A record's result comes from here alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from bayesmf import datasets
from bayesmf._errors import DataError
from bayesmf.baselines import baseline
from bayesmf.diagnostics import diagnose
from bayesmf.experiments import masks, settings
from bayesmf.experiments.settings import BASELINES, Length
from bayesmf.experiments.tasks import INNER_RANKS, NARROW, Task
from bayesmf.metrics import mse, pearson, r2
from bayesmf.observed import ObservedMatrix
from bayesmf.sampling import sample_whole
from bayesmf.splits import Triples, fold_numbers, holdout, split_at
from bayesmf.streams import Array

RHAT = 1.05  # of the held-out error, beyond which a sound run is made longer
_ROUNDS = ((200, 200), (0, 600))  # burn-in and draws of each of two chains, which go on
_INNER = (150, 150)  # the same of the one chain that scores a rank
_MAPPED = {"GLL": {"eta": 10**-0.25}, "GTTN": {"a": 1.5}}  # what the study's samplers really did

Result = dict[str, Any]
Split = tuple[ObservedMatrix, Triples]  # training data, and the entries that judge


@lru_cache(maxsize=4)
def data(name: str) -> ObservedMatrix:
    """The matrix of a dataset as the study used it."""
    return datasets.load(name).X


def seed_of(*parts: object) -> int:
    """A seed that belongs to these words and numbers."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


def run(task: Task) -> Result:
    """Do the work of a task. What fails in a way that the study knew too is a result as well."""
    X = data(task.dataset)
    try:
        return _WORK[task.experiment](task, X)
    except (FloatingPointError, DataError) as error:
        return {"mse": None, "failed": str(error)}


def hyperparameters(task: Task) -> dict[str, Any]:
    """Of a model: under ``paper`` those whose exact sampler is the study's, else as stated."""
    paper, model = task.protocol == "paper", task.model
    if model == NARROW:
        return _MAPPED["GLL"]
    if model in ("GVG", "GVnG"):
        stated = settings.gamma(
            task.experiment if paper else "cross_validation", task.dataset, task.variant
        )
        return {"gamma": stated / 2 if paper else stated}
    found = dict(_MAPPED.get(model, {})) if paper else {}
    if paper and task.experiment in ("convergence", "runtime"):
        if model == "GTTN":
            found["mu_mu"] = 0.1
        if model == "GGGW" and task.experiment == "runtime":
            found["nu0"] = 50.0
    return found


# --- Fits ---------------------------------------------------------------------------------------


def predict(
    task: Task, train: ObservedMatrix, test: Triples, rank: int | None, seed: int, inner: bool
) -> tuple[Array, dict[str, float]]:
    """Predictions of the test entries, and what is to be known about the run."""
    model = task.model.partition(" ")[0]
    cells = (test[0], test[1])
    if model in BASELINES:
        steps = settings.length(task.experiment, task.dataset, task.variant, model).sweeps
        fitted = baseline(train, model, rank or 1, iterations=steps, random_state=seed)
        return fitted.predict(*cells), {}
    assert rank is not None
    options: dict[str, Any] = {
        "hyperparameters": hyperparameters(task),
        "cells": cells,
        "random_state": seed,
    }
    if task.protocol == "paper":
        n = settings.length(task.experiment, task.dataset, task.variant, model)
        posterior = sample_whole(
            train, model, rank, **_chain(n), init="prior", scale_move=False, **options
        )
        return posterior.predict(method="product_of_means"), {}
    if inner:
        burn_in, draws = _INNER
        posterior = sample_whole(train, model, rank, burn_in=burn_in, draws=draws, **options)
        return posterior.predict(), {}
    begin: Any = "data"
    for burn_in, draws in _ROUNDS:
        posterior = begin = sample_whole(
            train, model, rank, burn_in=burn_in, draws=draws, chains=2, keep=("U", "V"), init=begin,
            **options,
        )  # fmt: skip
        rhat = _rhat(posterior, test)
        if rhat < RHAT:
            break
    return posterior.predict(), {"rhat": rhat, "draws": draws}


def _chain(n: Length) -> dict[str, Any]:
    draws = max(1, (n.sweeps - n.burn_in) // n.thin)
    return {"draws": draws, "burn_in": n.sweeps - draws * n.thin, "thin": n.thin}


def _rhat(posterior: Any, test: Triples) -> float:
    """Split R-hat of the held-out error of single draws."""
    i, j, values = test
    U, V = posterior.draws["U"], posterior.draws["V"]
    errors = [
        [np.mean((values - np.einsum("tk,tk->t", u[i], v[j])) ** 2) for u, v in zip(*chain)]  # noqa: B905
        for chain in zip(U, V, strict=True)
    ]
    return diagnose("held-out error", np.array(errors)).rhat


def _score(
    task: Task, split: Split, rank: int | None, inner: bool = False, clean: Array | None = None
) -> Result:
    """Fit on the training data, and judge on the test entries, also by their ``clean`` values."""
    seed = seed_of("chain", task.key, rank, inner)
    found, about = predict(task, *split, rank, seed, inner)
    truth = split[1][2]
    error = mse(truth, found) if np.isfinite(found).all() else float("inf")
    if not np.isfinite(error):
        return {"mse": None, "failed": "The predictions are not finite.", **about}
    varied = np.ptp(truth) > 0
    result = {"mse": error, "r2": r2(truth, found) if varied else None, **about}
    result["rp"] = pearson(truth, found) if varied and np.ptp(found) > 0 else None
    if clean is not None:
        result["mse_clean"] = mse(clean, found)
    return result


def _rng(task: Task, *shared: object) -> np.random.Generator:
    """Random numbers of a split: every model has its own (``paper``) or all share them."""
    own = (task.key,) if task.protocol == "paper" else (task.dataset, *shared)
    return np.random.default_rng(seed_of("split", *own))


# --- Experiments --------------------------------------------------------------------------------


def _convergence(task: Task, X: ObservedMatrix) -> Result:
    """Training error and elapsed seconds after every sweep."""
    n, model = settings.CONVERGENCE_SWEEPS, task.model.partition(" ")[0]
    seed = seed_of("chain", task.key)
    fitted: Any
    if model in BASELINES:
        fitted = baseline(X, model, task.rank or 1, iterations=n, random_state=seed)
    else:
        assert task.rank is not None
        paper = task.protocol == "paper"
        fitted = sample_whole(
            X,
            model,
            task.rank,
            draws=1,
            burn_in=n - 1,
            cells=([0], [0]),
            random_state=seed,
            hyperparameters=hyperparameters(task),
            init="prior" if paper else "data",
            scale_move=not paper,
        )
    errors, seconds = np.ravel(fitted.train_mse), np.ravel(fitted.seconds)
    errors = np.broadcast_to(errors, (n,)) if errors.size == 1 else errors
    return {"train_mse": errors.tolist(), "elapsed": np.cumsum(seconds).tolist()}


def _runtime(task: Task, X: ObservedMatrix) -> Result:
    """Seconds per sweep, the first ones left out: they read kernels from the disk."""
    n = max(10, settings.length("runtime", task.dataset, "", task.model).sweeps)
    assert task.rank is not None
    fitted: Any
    if task.model in BASELINES:
        fitted = baseline(X, "NMF", task.rank, iterations=n + 2, random_state=0)
    else:
        fitted = sample_whole(
            X,
            task.model,
            task.rank,
            draws=1,
            burn_in=n + 1,
            cells=([0], [0]),
            random_state=0,
            hyperparameters=hyperparameters(task),
        )
    return {"seconds": float(np.mean(np.ravel(fitted.seconds)[2:])), "sweeps": n}


def _shared_folds(task: Task, X: ObservedMatrix, n: int, *shared: object) -> Array:
    """Fold of every entry, the same for all models."""
    return fold_numbers(X, n, _rng(task, task.experiment, n, *shared), keep_singles=True)


def _cross_validation(task: Task, X: ObservedMatrix) -> Result:
    """One outer fold: the rank by its inner folds, then a fit with that rank."""
    if task.protocol == "paper":  # all outer folds of a model come from one partition
        fold = masks.stratified(
            X, 5, np.random.default_rng(seed_of("outer", task.dataset, task.model))
        )
    else:
        fold = _shared_folds(task, X, 5)
    split = split_at(X, fold == task.repeat)
    if task.model in settings.AVERAGES:
        return _score(task, split, None)
    errors: dict[int, float] = {}
    ranks = _candidates(task)
    try:
        for rank in ranks:
            errors[rank] = _inner_error(task, split[0], rank)
        rank = min(errors, key=errors.__getitem__)
    except DataError:  # no inner folds: the study took the first rank
        rank = ranks[0]
    return {
        **_score(task, split, rank),
        "rank": rank,
        "edge": rank == ranks[-1],
        "inner": {str(k): v for k, v in errors.items()},
    }


def _candidates(task: Task) -> tuple[int, ...]:
    if task.protocol == "sound":
        return INNER_RANKS
    return settings.CANDIDATES.get((task.model, task.dataset), INNER_RANKS)


def _inner_error(task: Task, train: ObservedMatrix, rank: int) -> float:
    if task.protocol == "paper":  # folds are drawn anew for every rank
        own = np.random.default_rng(seed_of("inner", task.key, rank))
        fold = masks.stratified(train, 5, own)
    else:
        fold = _shared_folds(task, train, 5, "inner", task.repeat)
    found = []
    for k in range(task.inner):
        error = _score(task, split_at(train, fold == k), rank, inner=True)["mse"]
        found.append(np.inf if error is None else error)
    return float(np.mean(found))


def _model_selection(task: Task, X: ObservedMatrix) -> Result:
    if task.protocol == "paper":  # one partition for each rank and model
        words = ("folds", task.dataset, task.model, task.rank)
        fold = masks.plain(X, 10, np.random.default_rng(seed_of(*words)))
    else:
        fold = _shared_folds(task, X, 10)
    return _score(task, split_at(X, fold == task.repeat), task.rank)


def _sparsity(task: Task, X: ObservedMatrix) -> Result:
    assert task.setting is not None
    rng = _rng(task, "sparsity", task.setting, task.repeat)
    if task.protocol == "paper":
        return _score(task, split_at(X, masks.random_split(X, task.setting, rng)), task.rank)
    kept = X.shape[0] * X.shape[1] * (1 - task.setting) / X.n_observed
    return _score(task, holdout(X, min(0.99, max(0.01, 1 - kept)), rng), task.rank)


def _noise(task: Task, X: ObservedMatrix) -> Result:
    """The score is the variance of the noisy data over the test error."""
    assert task.setting is not None
    noise = np.random.default_rng(seed_of("noise", task.dataset, task.setting))
    counts = task.protocol == "paper" or task.model in ("PGG", "PGGG", "NMF")
    rows, cols, values = X.triples()
    if task.protocol == "paper":  # on the whole matrix, zeros where nothing is observed
        whole = np.zeros(X.shape)
        whole[rows, cols] = values
        spread = (task.setting * whole.var()) ** 0.5
        whole = np.maximum(np.trunc(whole + noise.normal(0, 1, X.shape) * spread), 0.0)
        noisy, variance = whole[rows, cols], whole.var()
    else:
        noisy = values + noise.normal(0, 1, values.size) * (task.setting * values.var()) ** 0.5
        variance = noisy.var()
        if counts:
            noisy = np.maximum(np.round(noisy), 0.0)
    matrix = ObservedMatrix.from_triples(rows, cols, noisy, X.shape)
    rng = _rng(task, "noise", task.repeat)
    if task.protocol == "paper":
        split = split_at(matrix, _tenth(matrix, rng))
    else:
        split = holdout(matrix, 0.1, rng)
    clean = X.to_array()[split[1][0], split[1][1]]
    result = _score(task, split, task.rank, clean=clean)
    if result["mse"] is not None:
        result["score"] = float(variance) / result["mse"]
    return result


def _tenth(X: ObservedMatrix, rng: np.random.Generator) -> Array:
    """Flags of a tenth of the observed entries, as the study's splits were made."""
    cells = X.shape[0] * X.shape[1]
    return masks.random_split(X, 1 - (0.9 * X.n_observed) / cells, rng)


_WORK: dict[str, Callable[[Task, ObservedMatrix], Result]] = {
    "convergence": _convergence,
    "runtime": _runtime,
    "cross_validation": _cross_validation,
    "model_selection": _model_selection,
    "sparsity": _sparsity,
    "noise": _noise,
}
