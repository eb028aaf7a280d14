"""A trial: one model on one fold, its rank chosen inside the training part, then judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesmf._automatic import AUTO, units_for
from bayesmf._errors import DataError
from bayesmf.baselines import baseline
from bayesmf.comparison.entrants import BASELINES, Ends, Entrant, Models
from bayesmf.comparison.recorded import given_draws, log_recorded
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.units import Units, fit_units
from bayesmf.metrics import mse
from bayesmf.model.model import Model
from bayesmf.posterior.loo import judged
from bayesmf.posterior.new_rows import needed
from bayesmf.posterior.posterior import Posterior
from bayesmf.posterior.predictive import Predictive, expected, kept_for
from bayesmf.posterior.residuals import exact_entries
from bayesmf.posterior.sample import sample_whole
from bayesmf.splits import Triples, fold_numbers, holdout, split_at
from bayesmf.streams import Array
from bayesmf.tasks.store import Work

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of central intervals
GROUPS = 32  # of held-out entries, whose means are compared in pairs
BETTER = 0.995  # times an error: a smaller one is worth going on
SEEN = 400  # training entries that are predicted by the others
WIDEST = 5000  # columns up to which each is judged by itself


@dataclass(frozen=True)
class Trial(Work):
    """One model on one fold of a matrix, known by the hash of its entries."""

    data: str
    entrant: Entrant
    fold: int
    folds: int
    ranks: tuple[int, ...]
    draws: int
    burn_in: int
    seed: int = 0
    scale: str = AUTO
    transformation: str | None = None  # of all entrants
    relative: bool = False  # whether errors are in sizes of their columns
    ends: Ends = (None, None)  # limits of the values, or where these heap
    step: float | None = None  # to which values were rounded
    parts: str = ""  # of a model of one's own
    start: int | None = None  # the rank at which the search begins
    short: bool = False  # whether one rank is tried, in a short chain

    @property
    def place(self) -> tuple[str, ...]:
        return (self.entrant.model,)

    @property
    def name(self) -> str:
        """The model as it is called in tables."""
        return str(self.entrant)

    @property
    def is_baseline(self) -> bool:
        return self.entrant.model in BASELINES

    @property
    def is_average(self) -> bool:
        """Whether it is a baseline without factors."""
        return self.is_baseline and self.entrant.model != "NMF"

    def held(self, X: ObservedMatrix) -> Array:
        """Which entries are those of the fold."""
        return fold_numbers(X, self.folds, self.seed, keep_singles=True) == self.fold

    def split(self, X: ObservedMatrix) -> tuple[ObservedMatrix, Triples]:
        """The training part, and the entries of the fold."""
        return split_at(X, self.held(X))

    def __str__(self) -> str:
        length = ", short" if self.short else ""
        return f"{self.name}, fold {self.fold + 1} of {self.folds}{length}"


def run(X: ObservedMatrix, own: Models, trial: Trial) -> dict[str, Any]:
    """Choose the rank on a part of the training data, fit, and judge on the fold left out."""
    train, test = trial.split(X)
    inner = _search(trial, own, train)
    rank = min(inner, key=inner.__getitem__) if inner else 1
    try:
        weights = None if X.errors is None else X.errors[trial.held(X)] ** -2.0
        result = _judge(trial, own, train, test, rank, sizes(X, trial.relative), weights)
    except FloatingPointError as error:
        result = {"mse": None, "failed": str(error)}
    return {**result, "rank": rank, "inner": {str(k): v for k, v in inner.items()}}


def sizes(X: ObservedMatrix, relative: bool) -> Array:
    """What the errors of every column (J,) are divided by."""
    return fit_units(X, "cols", "cols").cols if relative else np.ones(X.shape[1])


def _search(trial: Trial, own: Models, train: ObservedMatrix) -> dict[int, float]:
    """Errors of the ranks that were tried on a part of the training data."""
    if trial.is_average:
        return {}
    start = trial.ranks[len(trial.ranks) // 2] if trial.start is None else trial.start
    if len(trial.ranks) == 1 or trial.short:
        return {start: 0.0}
    try:
        part, test = holdout(train, 0.15, np.random.SeedSequence([trial.seed, trial.fold]))
    except DataError:  # too few entries to spare any
        return {trial.ranks[0]: 0.0}
    size = sizes(train, trial.relative)[test[1]]
    return walk(trial.ranks, start, lambda rank: _quick_error(trial, own, part, test, rank, size))


def walk(ranks: tuple[int, ...], start: int, error: Callable[[int], float]) -> dict[int, float]:
    """Errors of ranks from one of them upwards, as long as they get better, and downwards.

    Downwards, where models are smaller, also as long as they do not get worse.
    """
    steps = sorted(ranks)
    at = min(range(len(steps)), key=lambda k: abs(steps[k] - start))
    found = {steps[at]: error(steps[at])}
    for rank in steps[at + 1 :]:
        best = min(found.values())
        found[rank] = error(rank)
        if found[rank] >= BETTER * best:
            break
    for rank in steps[:at][::-1]:
        best = min(found.values())
        if found[min(found)] > best / BETTER:
            break  # the last step down was one too far, or there is nothing to gain below
        found[rank] = error(rank)
    return found


def _sample(
    trial: Trial, own: Models, train: ObservedMatrix, rank: int, cells: Any, keep: Any,
    **options: Any,
) -> tuple[Posterior, Units]:  # fmt: skip
    """A posterior of the training part, and its units."""
    train = train if trial.entrant.features else train.without_features()
    model = trial.entrant.built(own, trial.ends)
    scale = trial.scale if model.likelihood.takes_units else AUTO
    asked = trial.entrant.transformation or trial.transformation
    units = units_for(train, model, scale=scale, transformation=asked)
    data = units.off(train)
    model = replace(model, likelihood=model.likelihood.in_units(units, train.shape))
    posterior = sample_whole(data, model, rank, cells=cells, keep=keep(model, data), **options)
    return posterior, units


def _moments_kept(model: Model, data: ObservedMatrix) -> Any:
    return kept_for(model.likelihood.resolve(data))


def _draws_kept(model: Model, data: ObservedMatrix) -> Any:
    return needed(model)


def _quick_error(
    trial: Trial, own: Models, train: ObservedMatrix, test: Triples, rank: int, size: Array
) -> float:
    seed = np.random.SeedSequence([trial.seed, trial.fold, rank])
    try:
        if trial.is_baseline:
            found = baseline(train, "NMF", rank, iterations=300, random_state=seed)
            return mse(test[2] / size, found.predict(test[0], test[1]) / size)
        changed = trial.entrant.transformation or trial.transformation or trial.entrant.limits
        posterior, units = _sample(
            trial, own, train, rank, test[:2], _draws_kept if changed else _moments_kept,
            random_state=seed, draws=max(40, trial.draws // 3), burn_in=max(40, trial.burn_in // 3),
        )  # fmt: skip
        return mse(test[2] / size, expected(posterior, test[:2], units) / size)
    except FloatingPointError:
        return float(np.finfo(float).max)


def _judge(
    trial: Trial, own: Models, train: ObservedMatrix, test: Triples, rank: int, by_column: Array,
    weights: Array | None,
) -> dict[str, Any]:  # fmt: skip
    """Errors, and what else a posterior tells, of the entries left out.

    Intervals are those of a new measurement, whose error is not known; so where the errors of
    entries are, nothing is said about coverage. Where single values have a probability, as heaps
    and counts do, an interval that ends at one holds it by chance, with what is left of the level.
    """
    seed, size = np.random.SeedSequence([trial.seed, trial.fold, rank, 1]), by_column[test[1]]
    cells, values = (test[0], test[1]), test[2]
    if trial.is_baseline:
        fitted = baseline(train, trial.entrant.model, rank, iterations=500, random_state=seed)
        squares = ((values - fitted.predict(*cells)) / size) ** 2
        return {"mse": float(squares.mean()), "squares": _by_group(squares)}
    short = 2 if trial.short else 1
    posterior, units = _sample(
        trial, own, train, rank, cells, _draws_kept, draws=max(40, trial.draws // short),
        burn_in=max(40, trial.burn_in // short), random_state=seed,
    )  # fmt: skip
    predictive = Predictive.of(posterior, units=units, seed=(trial.seed,))
    means = expected(posterior, cells, units)
    squares = ((values - means) / size) ** 2
    densities = log_recorded(predictive, cells, values, trial.step, trial.ends, weights)
    found = {
        "mse": float(squares.mean()), "squares": _by_group(squares),
        "log_density": float(densities.mean()), "densities": _by_group(densities),
    }  # fmt: skip
    if trial.fold == 0:
        found |= _left_out(trial, predictive, train)
    if trial.short or weights is not None:
        return found
    below, to = predictive.shares(cells, values)
    at = np.random.default_rng([trial.seed, trial.fold]).uniform(below, to)
    inside = np.abs(2 * at - 1) <= np.array(LEVELS)[:, None]
    if train.shape[1] <= WIDEST:
        held = inside[LEVELS.index(0.9)]
        found["columns"] = _by_column(test[1], train.shape[1], values, means, held)
    return {**found, "covered": inside.mean(axis=1).tolist()}


def _left_out(trial: Trial, predictive: Predictive, train: ObservedMatrix) -> dict[str, float]:
    """PSIS-LOO of training entries, the same for every model: at the cost of no further fit."""
    cells, values, weights = exact_entries(train, SEEN)
    if values.size < 2:
        return {}
    of_draws = given_draws(predictive, cells, values, trial.step, trial.ends, weights)
    found = judged(of_draws, cells)
    return {"loo": found.log_density, "unreliable": found.unreliable}


def _by_group(numbers: Array) -> list[float]:
    """Means over groups of entries, the same groups for every model."""
    group = np.random.default_rng(0).permutation(numbers.size) % min(GROUPS, numbers.size)
    return (np.bincount(group, numbers) / np.bincount(group)).tolist()


def _by_column(cols: Array, J: int, x: Array, y: Array, held: Array) -> dict[str, list[float]]:
    """Sums over the entries of every column, from which its measures can be had."""
    sums = {"n": np.ones(x.size), "x": x, "xx": x**2, "y": y, "yy": y**2, "xy": x * y,
            "squares": (x - y) ** 2, "held": held.astype(float)}  # fmt: skip
    return {name: np.bincount(cols, of, J).tolist() for name, of in sums.items()}
