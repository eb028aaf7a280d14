"""What experiments share: data, seeds and hyperparameters, fits, and scores of held-out entries."""

from __future__ import annotations

import hashlib
from functools import lru_cache, partial
from typing import Any

import numpy as np

from bayesmf import datasets
from bayesmf.baselines import PointEstimate, baseline
from bayesmf.data.observed import ObservedMatrix
from bayesmf.metrics import mse, pearson, r2
from bayesmf.posterior.diagnostics import diagnose
from bayesmf.posterior.posterior import Posterior
from bayesmf.posterior.sample import sample_whole
from bayesmf.splits import Triples, fold_numbers
from bayesmf.streams import Array
from bayesmf.study import published
from bayesmf.study.tasks import BASELINES, NARROW, Result, Task

RHAT = 1.05  # of the held-out error, beyond which a sound run is made longer
_ROUNDS = ((200, 200), (0, 600))  # burn-in and draws of each of two chains, which go on
_INNER = (150, 150)  # the same of the one chain that scores a rank
_MAPPED = {"GLL": {"eta": 10**-0.25}, "GTTN": {"a": 1.5}}  # what the study's samplers really did

Split = tuple[ObservedMatrix, Triples]  # training data, and the entries that judge
Changes = dict[str, dict[str, float]]  # hyperparameters that the study changed, by model


@lru_cache(maxsize=4)
def data(name: str) -> ObservedMatrix:
    """The matrix of a dataset as the study used it."""
    return datasets.load(name).X


def seed_of(*parts: object) -> int:
    """A seed that belongs to these words and numbers."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


def generator(*parts: object) -> np.random.Generator:
    """Random numbers that belong to these words and numbers."""
    return np.random.default_rng(seed_of(*parts))


def split_generator(task: Task, *shared: object) -> np.random.Generator:
    """Random numbers of a split: every model has its own (``paper``) or all share them."""
    return generator("split", *((task.key,) if task.paper else (task.dataset, *shared)))


def shared_folds(task: Task, X: ObservedMatrix, n: int, *shared: object) -> Array:
    """Fold of every entry, the same for all models."""
    rng = split_generator(task, task.experiment, n, *shared)
    return fold_numbers(X, n, rng, keep_singles=True)


def hyperparameters(task: Task) -> dict[str, Any]:
    """Of a model: under ``paper`` those whose exact sampler is the study's, else as stated."""
    if task.model == NARROW:
        return _MAPPED["GLL"]
    if task.model in ("GVG", "GVnG"):
        experiment = task.experiment if task.paper else "cross_validation"
        stated = published.gamma(experiment, task.dataset, task.variant)
        return {"gamma": stated / 2 if task.paper else stated}
    return _MAPPED.get(task.model, {}) if task.paper else {}


def trace(
    task: Task, X: ObservedMatrix, sweeps: int, seed: int, changed: Changes, **options: Any
) -> Posterior | PointEstimate:
    """Fit the whole matrix by so many sweeps; its error and seconds are known after each."""
    rank = task.rank or 1
    if task.preset in BASELINES:
        return baseline(X, task.preset, rank, iterations=sweeps, random_state=seed)
    values = hyperparameters(task) | (changed.get(task.model, {}) if task.paper else {})
    return sample_whole(
        X, task.preset, rank, draws=1, burn_in=sweeps - 1, cells=([0], [0]), random_state=seed,
        hyperparameters=values, **options,
    )  # fmt: skip


def mean_sweeps(task: Task, inner: bool = False) -> int:
    """Sweeps of a fit, on average over tasks; of an ``inner`` one if it scores a rank."""
    if task.paper or task.preset == "NMF":
        return task.length.sweeps
    return 300 if inner else 1000


def predict(
    task: Task, train: ObservedMatrix, test: Triples, rank: int | None, seed: int, inner: bool
) -> tuple[Array, dict[str, float]]:
    """Predictions of the test entries, and what is to be known about the run."""
    cells, n = (test[0], test[1]), task.length
    if task.preset in BASELINES:
        fitted = baseline(train, task.preset, rank or 1, iterations=n.sweeps, random_state=seed)
        return fitted.predict(*cells), {}
    fit = partial(
        sample_whole, train, task.preset, n_components=rank, hyperparameters=hyperparameters(task),
        cells=cells, random_state=seed,
    )  # fmt: skip
    if task.paper:
        posterior = fit(**_chain(n), init="prior", scale_move=False)
        return posterior.predict(method="product_of_means"), {}
    if inner:
        burn_in, draws = _INNER
        return fit(burn_in=burn_in, draws=draws).predict(), {}
    begin: Any = "data"
    for burn_in, draws in _ROUNDS:
        begin = fit(burn_in=burn_in, draws=draws, chains=2, keep=("U", "V"), init=begin)
        rhat = _rhat(begin, test)
        if rhat < RHAT:
            break
    return begin.predict(), {"rhat": round(rhat, 6), "draws": draws}


def _chain(n: published.Length) -> dict[str, int]:
    draws = max(1, (n.sweeps - n.burn_in) // n.thin)
    return {"draws": draws, "burn_in": n.sweeps - draws * n.thin, "thin": n.thin}


def _rhat(posterior: Posterior, test: Triples) -> float:
    """Split R-hat of the held-out error of single draws."""
    i, j, values = test
    U, V = posterior.draws["U"], posterior.draws["V"]
    errors = [
        [np.mean((values - np.einsum("tk,tk->t", u[i], v[j])) ** 2) for u, v in zip(*chain)]  # noqa: B905
        for chain in zip(U, V, strict=True)
    ]
    return diagnose("held-out error", np.array(errors)).rhat


def score(
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
    result = {"mse": error, "r2": round(r2(truth, found), 6) if varied else None, **about}
    result["rp"] = round(pearson(truth, found), 6) if varied and np.ptp(found) > 0 else None
    if clean is not None:
        result["mse_clean"] = mse(clean, found)
    return result
