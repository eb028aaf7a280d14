"""A trial: one model on one fold, its rank chosen inside the training part, then judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesmf._errors import DataError
from bayesmf._estimator import AUTO, units_for
from bayesmf.baselines import BASELINES as ALL_BASELINES
from bayesmf.baselines import baseline
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.units import Units, fit_units
from bayesmf.metrics import mse
from bayesmf.model.model import Model
from bayesmf.model.presets import as_model
from bayesmf.posterior.new_rows import needed
from bayesmf.posterior.posterior import Posterior
from bayesmf.posterior.predictive import Predictive, expected, kept_for
from bayesmf.posterior.sample import sample_whole
from bayesmf.ranks import search
from bayesmf.splits import Triples, fold_numbers, holdout, split_at
from bayesmf.streams import Array
from bayesmf.tasks.store import Work

BASELINES = ALL_BASELINES[:3]  # those that a model should beat
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of central intervals
PATIENCE = 2  # ranks in a row that are a step too far end the search


@dataclass(frozen=True)
class Trial(Work):
    """One model on one fold of a matrix, known by the hash of its entries."""

    data: str
    model: str
    fold: int
    folds: int
    ranks: tuple[int, ...]
    draws: int
    burn_in: int
    biases: bool = False
    seed: int = 0
    scale: str = AUTO
    transformation: str | None = None
    relative: bool = False  # whether errors are in sizes of their columns

    @property
    def place(self) -> tuple[str, ...]:
        return (self.model,)

    @property
    def name(self) -> str:
        """The model as it is called in tables."""
        return f"{self.model} + biases" if self.biases else self.model

    def split(self, X: ObservedMatrix) -> tuple[ObservedMatrix, Triples]:
        """The training part, and the entries of the fold."""
        fold = fold_numbers(X, self.folds, self.seed, keep_singles=True)
        return split_at(X, fold == self.fold)

    def __str__(self) -> str:
        return f"{self.name}, fold {self.fold + 1} of {self.folds}"


def run(X: ObservedMatrix, trial: Trial) -> dict[str, Any]:
    """Choose the rank on a part of the training data, fit, and judge on the fold left out."""
    train, test = trial.split(X)
    inner = _search(trial, train)
    rank = min(inner, key=inner.__getitem__) if inner else 1
    try:
        result = _judge(trial, train, test, rank, sizes(X, trial.relative))
    except FloatingPointError as error:
        result = {"mse": None, "failed": str(error)}
    return {**result, "rank": rank, "inner": {str(k): v for k, v in inner.items()}}


def sizes(X: ObservedMatrix, relative: bool) -> Array:
    """What the errors of every column (J,) are divided by."""
    return fit_units(X, "cols", "cols").cols if relative else np.ones(X.shape[1])


def _search(trial: Trial, train: ObservedMatrix) -> dict[int, float]:
    """Errors of the ranks, from small to large, as long as they do not get worse."""
    if trial.model in BASELINES and trial.model != "NMF":
        return {}
    if len(trial.ranks) == 1:
        return {trial.ranks[0]: 0.0}
    try:
        part, test = holdout(train, 0.15, np.random.SeedSequence([trial.seed, trial.fold]))
    except DataError:  # too few entries to spare any
        return {trial.ranks[0]: 0.0}
    size = sizes(train, trial.relative)[test[1]]
    return search(trial.ranks, lambda rank: _quick_error(trial, part, test, rank, size), PATIENCE)


def _sample(
    trial: Trial, train: ObservedMatrix, rank: int, cells: Any, keep: Any, **options: Any
) -> tuple[Posterior, Units]:
    """A posterior of the training part, and its units."""
    model = as_model(trial.model, None, trial.biases)
    scale = trial.scale if model.likelihood.takes_units else AUTO
    units = units_for(train, model, scale=scale, transformation=trial.transformation)
    data = units.off(train)
    kept = keep(model, data)
    posterior = sample_whole(data, model, rank, cells=cells, keep=kept, **options)
    return posterior, units


def _moments_kept(model: Model, data: ObservedMatrix) -> Any:
    return kept_for(model.likelihood.resolve(data))


def _quick_error(
    trial: Trial, train: ObservedMatrix, test: Triples, rank: int, size: Array
) -> float:
    seed = np.random.SeedSequence([trial.seed, trial.fold, rank])
    try:
        if trial.model in BASELINES:
            found = baseline(train, "NMF", rank, iterations=300, random_state=seed)
            return mse(test[2] / size, found.predict(test[0], test[1]) / size)
        keep = _draws_kept if trial.transformation else _moments_kept
        posterior, units = _sample(
            trial, train, rank, test[:2], keep, random_state=seed,
            draws=max(50, trial.draws // 2), burn_in=max(50, trial.burn_in // 2),
        )  # fmt: skip
        return mse(test[2] / size, expected(posterior, test[:2], units) / size)
    except FloatingPointError:
        return float(np.finfo(float).max)


def _draws_kept(model: Model, data: ObservedMatrix) -> Any:
    return needed(model)


def _judge(
    trial: Trial, train: ObservedMatrix, test: Triples, rank: int, by_column: Array
) -> dict[str, Any]:
    seed, size = np.random.SeedSequence([trial.seed, trial.fold, rank, 1]), by_column[test[1]]
    cells, values = (test[0], test[1]), test[2]
    if trial.model in BASELINES:
        fitted = baseline(train, trial.model, rank, iterations=500, random_state=seed)
        return {"mse": mse(values / size, fitted.predict(*cells) / size)}
    posterior, units = _sample(
        trial, train, rank, cells, _draws_kept, draws=trial.draws, burn_in=trial.burn_in,
        random_state=seed,
    )  # fmt: skip
    predictive = Predictive.of(posterior, units=units, seed=(trial.seed,))
    bounds = predictive.quantiles(
        [0.5 * (1 + s * level) for s in (-1, 1) for level in LEVELS], cells
    )
    low, high = bounds[: len(LEVELS)], bounds[len(LEVELS) :]
    return {
        "mse": mse(values / size, expected(posterior, cells, units) / size),
        "log_density": float(predictive.log_density(cells, values).mean()),
        "covered": np.mean((low <= values) & (values <= high), axis=1).tolist(),
    }
