"""The race: all models on the first fold, those that can still win on the next ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import stats

from bayesmf.comparison import trials
from bayesmf.comparison.trials import Trial
from bayesmf.data.observed import ObservedMatrix
from bayesmf.metrics import standard_error
from bayesmf.tasks.runner import run_all
from bayesmf.tasks.store import Store

FAR = 1.3  # after one fold, errors so many times the best one's are out
LEVEL = 0.05  # of the paired tests
AT_LEAST = 4  # models that are never stopped


class Standing(NamedTuple):
    """A model over the folds that it ran: means and their standard errors."""

    model: str
    folds: int
    mse: float
    mse_error: float
    log_density: float
    log_density_error: float
    coverage: float  # of the 90 % interval
    rank: int
    seconds: float
    status: str  # "recommended", "tie", "worse", "stopped early" or "failed"


@dataclass
class Lane:
    """What one model has shown so far, fold by fold."""

    trial: Trial  # of the first fold
    results: list[dict] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False

    @property
    def errors(self) -> np.ndarray:
        """Held-out errors of its folds; infinite where it failed."""
        found = [r["mse"] for r in self.results]
        return np.array([np.inf if e is None else e for e in found])

    def rank_errors(self) -> dict[int, list[float]]:
        """Errors inside the training parts, by rank."""
        found: dict[int, list[float]] = {}
        for result in self.results:
            for rank, error in result["inner"].items():
                found.setdefault(int(rank), []).append(error)
        return found

    def rank(self) -> int:
        """The rank with the least error over all folds, among those that all of them tried."""
        found = {k: e for k, e in self.rank_errors().items() if len(e) == len(self.results)}
        if not found:
            return int(np.median([r["rank"] for r in self.results]))
        return min(found, key=lambda k: float(np.mean(found[k])))


def run(
    X: ObservedMatrix,
    entrants: Sequence[Trial],
    store: Store,
    jobs: int,
    dask: str | None,
    show: Callable[[Sequence[Lane], str], object],
) -> list[Lane]:
    """Run the race; every round is one more fold for those that are still in it."""
    lanes = [Lane(trial) for trial in entrants]
    work = partial(trials.run, X)

    def report(trial: Trial, seconds: float) -> None:
        show(lanes, f"{trial} took {seconds:.1f} s")

    for fold in range(entrants[0].folds):
        running = {replace(lane.trial, fold=fold): lane for lane in lanes if not lane.stopped}

        run_all(work, running, store, jobs, dask, report)
        for trial, record in store.records(running):
            lane = running[trial]
            lane.results.append(record["result"])
            lane.seconds += record["seconds"]
        _stop(lanes, fold + 1)
        show(lanes, f"fold {fold + 1} of {entrants[0].folds} is done")
    return lanes


def _stop(lanes: list[Lane], folds: int) -> None:
    """Take out those that cannot win any more; a few always stay for comparison."""
    running = sorted((lane for lane in lanes if not lane.stopped), key=lambda x: x.errors.mean())
    best = running[0].errors
    running = [lane for lane in running if lane.trial.model not in trials.BASELINES]  # are quick
    for lane in running[AT_LEAST:]:
        if folds == 1:
            lane.stopped = bool(lane.errors[0] > FAR * best[0])
        else:
            lane.stopped = worse(lane.errors, best) and lane.errors.mean() > 1.02 * best.mean()


def worse(errors: np.ndarray, best: np.ndarray) -> bool:
    """Whether a paired test over shared folds calls the errors larger."""
    n = min(errors.size, best.size)
    gap = errors[:n] - best[:n]
    if not np.isfinite(gap).all():
        return True
    if n < 2 or np.ptp(gap) == 0:
        return bool(gap.mean() > 0) and n >= 2
    return float(stats.ttest_1samp(gap, 0.0, alternative="greater").pvalue) < LEVEL


def standings(lanes: Sequence[Lane], folds: int) -> list[Standing]:
    """All models, the best first; those that ran all folds before those that were stopped."""
    order = sorted(lanes, key=lambda lane: (len(lane.results) < folds, lane.errors.mean()))
    best = order[0].errors
    return [_standing(lane, best, folds, k == 0) for k, lane in enumerate(order)]


def _standing(lane: Lane, best: np.ndarray, folds: int, first: bool) -> Standing:
    errors = lane.errors
    if not np.isfinite(errors).all():
        status = "failed"
    elif first:
        status = "recommended"
    elif len(errors) < folds:
        status = "stopped early"
    else:
        status = "worse" if worse(errors, best) else "tie"
    densities = np.array([r.get("log_density", np.nan) for r in lane.results], dtype=float)
    covered = [r["covered"][trials.LEVELS.index(0.9)] for r in lane.results if "covered" in r]
    return Standing(
        lane.trial.name, len(errors), float(errors.mean()), standard_error(errors),
        float(densities.mean()), standard_error(densities),
        float(np.mean(covered)) if covered else float("nan"), lane.rank(), lane.seconds, status,
    )  # fmt: skip
