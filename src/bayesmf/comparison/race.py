"""The race: everyone on a short course, the best of them on fold after fold.

All models run a short chain on the first fold, at the rank that the first of them found there. The
best priors and the best options are then tried together. Those in front go on to whole chains on
all folds, with ranks of their own, until a paired test says that they cannot win any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from bayesmf.comparison import trials
from bayesmf.comparison.entrants import Entrant, Models, crossed
from bayesmf.comparison.trials import LEVELS, Trial
from bayesmf.data.observed import ObservedMatrix
from bayesmf.metrics import standard_error
from bayesmf.streams import Array
from bayesmf.tasks.runner import run_all
from bayesmf.tasks.store import Store

MEASURES = ("error", "density", "coverage")
LEVEL = 0.05  # of the paired tests
SAME = {"error": 0.005, "density": 0.005}  # relative, and in nats: less than that matters to nobody
FINAL, AT_LEAST = 6, 2  # models on all folds, and those of them that are never stopped
ABSURD = 0.1  # nats by which log densities may differ in a tie of errors
USABLE = 1.05  # times the best error: models among which coverage may decide

Show = Callable[[Sequence["Lane"], str], object]


class Standing(NamedTuple):
    """A model over the folds that it ran: means and their standard errors."""

    model: str
    folds: int
    mse: float
    mse_error: float
    behind: float  # by how much its error is larger than that of the best on the same folds: 0.01
    log_density: float
    log_density_error: float
    coverage: float  # of the 90 % interval
    loo: float  # mean log density of training entries of the first fold, by PSIS-LOO
    loo_unreliable: float  # share of these entries whose k-hat is too large
    rank: int  # 0 where there are no factors, as in averages
    seconds: float
    status: str  # "recommended", "tie", "worse", "stopped early" or "failed"


@dataclass
class Lane:
    """What one model has shown so far, fold by fold."""

    trial: Trial  # of the first fold
    results: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False
    tried: Lane | None = None  # its short chain, which the whole ones replace

    @property
    def entrant(self) -> Entrant:
        return self.trial.entrant

    @property
    def errors(self) -> Array:
        """Held-out errors of its folds; infinite where it failed."""
        found = [r["mse"] for r in self.results]
        return np.array([np.inf if e is None else e for e in found])

    @property
    def densities(self) -> Array:
        """Mean log densities of its folds; not a number where it has none."""
        return np.array([r.get("log_density", np.nan) for r in self.results], dtype=float)

    def gaps(self) -> Array:
        """Mean distance of actual from nominal coverage, fold by fold."""
        covered = [r.get("covered", np.full(len(LEVELS), np.nan)) for r in self.results]
        return np.abs(np.array(covered) - LEVELS).mean(axis=1)

    def score(self, by: str) -> float:
        """One figure, the smaller the better; infinite where the model failed or has none."""
        of = {"error": self.errors, "density": -self.densities, "coverage": self.gaps()}[by]
        mean = float(of.mean())
        return mean if np.isfinite(mean) else float("inf")

    def pairs(self, by: str) -> Array:
        """The same for every group of entries of every fold, to be compared in pairs."""
        if by == "coverage":
            return self.gaps()
        name, sign = {"error": ("squares", 1.0), "density": ("densities", -1.0)}[by]
        found = [sign * np.array(r[name]) for r in self.results if name in r]
        return np.concatenate(found) if found else np.array([np.inf])

    def rank_errors(self) -> dict[int, list[float]]:
        """Errors inside the training parts, by rank."""
        found: dict[int, list[float]] = {}
        for result in self.results:
            for rank, error in result["inner"].items():
                found.setdefault(int(rank), []).append(error)
        return found

    def rank(self) -> int:
        """The rank with the least error over all folds, among those that most of them tried."""
        found = {k: e for k, e in self.rank_errors().items() if 2 * len(e) > len(self.results)}
        if not found:
            return 0 if self.trial.is_average else int(np.median([r["rank"] for r in self.results]))
        return min(found, key=lambda k: float(np.mean(found[k])))


class Race:
    """A race in progress."""

    def __init__(
        self, X: ObservedMatrix, own: Models, store: Store, jobs: int, dask: str | None,
        by: str, show: Show,
    ) -> None:  # fmt: skip
        self.work, self.store, self.by = partial(trials.run, X, own), store, by
        self.jobs, self.dask, self.show = jobs, dask, show
        self.lanes: list[Lane] = []
        self.interrupted = False
        self._left, self._took = 0, [0.0, 0]

    def run(
        self, entrants: Sequence[Trial], crossing: Callable[[list[Entrant]], list[Trial]]
    ) -> None:
        """Run all of it; an interrupt ends it early, with what is known by then.

        ``crossing`` says who else is to be tried, given those of the first fold in their order.
        """
        try:
            self._run(list(entrants), crossing)
        except KeyboardInterrupt:
            self.lanes = _compared(self.lanes)
            if all(lane.trial.is_baseline for lane in self.lanes):
                raise
            self.interrupted = True

    def _run(self, entrants: list[Trial], crossing: Callable[[list[Entrant]], list[Trial]]) -> None:
        folds = entrants[0].folds
        first = next(k for k, one in enumerate(entrants) if not one.is_baseline)
        entrants.insert(0, entrants.pop(first))
        ahead = [one for one in entrants if one.is_baseline]
        self.lanes = [Lane(one) for one in (entrants[0], *ahead)]
        models = len(entrants) - len(ahead)
        whole = len(ahead) + min(models, FINAL)
        self._left = whole * folds + (models if models > FINAL else 0)
        self._fold(0, self.lanes)
        start = self.lanes[0].results[0]["rank"]
        others = [one for one in entrants[1:] if not one.is_baseline]
        if len(others) >= FINAL:
            final = [self.lanes[0], *self._short(others, start, crossing)]
        else:
            final = [Lane(replace(one, start=start)) for one in others]
            self.lanes += final
        self._fold(0, [lane for lane in final if lane is not self.lanes[0]])
        for fold in range(1, folds):
            self._stop()
            running = [lane for lane in self.lanes if not lane.stopped]
            self._left = len(running) * (folds - fold)
            self._fold(fold, running)
            self.show(self.lanes, f"fold {fold + 1} of {folds} is done")

    def _short(
        self, others: list[Trial], start: int, crossing: Callable[[list[Entrant]], list[Trial]]
    ) -> list[Lane]:
        """A short chain of everyone; the best are to run on, the others are out."""
        base = self.lanes[0]
        short: list[Lane] = []
        for more in (others, None):
            if more is None:
                order = sorted([base, *short], key=lambda lane: lane.score(self.by))
                known = {lane.entrant for lane in [base, *short]}
                more = [one for one in crossing([lane.entrant for lane in order])
                        if one.entrant not in known]  # fmt: skip
                self._left += len(more)
            new = [Lane(replace(one, start=start, short=True), stopped=True) for one in more]
            self.lanes += new
            self._fold(0, new)
            short += new
        short.sort(key=lambda lane: lane.score(self.by))
        final = [Lane(replace(lane.trial, short=False), seconds=lane.seconds, tried=lane)
                 for lane in short[: FINAL - 1]]  # fmt: skip
        self.lanes = [lane for lane in self.lanes if lane not in short[: FINAL - 1]] + final
        return final

    def _fold(self, fold: int, lanes: Iterable[Lane]) -> None:
        """One fold of some lanes."""
        running = {replace(lane.trial, fold=fold): lane for lane in lanes}
        begin = time.monotonic()
        done = 0

        def report(trial: Trial, seconds: float) -> None:
            nonlocal done
            done += 1
            rate = (time.monotonic() - begin) / done
            left = rate * max(0, self._left - done)
            self.show(self.lanes, f"{trial} took {seconds:.1f} s; about {left:.0f} s to go")

        try:
            run_all(self.work, running, self.store, self.jobs, self.dask, report)
        finally:
            for trial, record in self.store.records(running):
                lane = running[trial]
                lane.results.append(record["result"])
                lane.seconds += record["seconds"]
        self._left -= len(running)

    def _stop(self) -> None:
        """Take out those that cannot win any more; a few always stay for comparison."""
        running = [lane for lane in self.lanes if not (lane.stopped or lane.trial.is_baseline)]
        running.sort(key=lambda lane: lane.score(self.by))
        by = "error" if self.by == "coverage" else self.by
        for lane in running[AT_LEAST:]:
            lane.stopped = is_worse(lane, running[0], by)


def _compared(lanes: Sequence[Lane]) -> list[Lane]:
    """What is known of everyone when a race is broken off, on folds that all in it have run.

    Who had to run a fold when it ended is judged by those before, or by the short chain.
    """
    known = [lane if lane.results or lane.tried is None else lane.tried for lane in lanes]
    known = [lane for lane in known if lane.results]
    running = [lane for lane in known if not (lane.stopped or lane.trial.short)]
    whole = [len(lane.results) for lane in running if not lane.trial.is_baseline]
    for lane in known:
        lane.results = lane.results[: min(whole, default=1)]
    return known


def entered(entrants: Iterable[Entrant], template: Trial, own: Models) -> list[Trial]:
    """Trials of the first fold."""
    return [
        replace(template, entrant=one, parts=repr(own[one.model]) if one.model in own else "")
        for one in entrants
    ]


def crossings(template: Trial, own: Models, allowed: Callable[[Entrant], bool]) -> Any:
    """Who is tried after the first fold, as `Race.run` asks."""
    return lambda order: entered(filter(allowed, crossed(order, template.entrant)), template, own)


def is_worse(lane: Lane, best: Lane, by: str) -> bool:
    """Whether a paired test over groups of entries calls a model worse, by enough to matter."""
    a, b = lane.pairs(by), best.pairs(by)
    n = min(a.size, b.size)
    gap = a[:n] - b[:n]
    if not np.isfinite(gap).all():
        return True
    least = SAME.get(by, 0.0) * (float(b[:n].mean()) if by == "error" else 1.0)
    if gap.mean() <= least or n < 2:
        return False
    limit = stats.t.isf(LEVEL, n - 1)
    return bool(gap.mean() > limit * standard_error(gap))


def standings(
    lanes: Sequence[Lane], by: str, best: Lane | None = None
) -> list[tuple[Standing, Lane]]:
    """All models, the best first; those that ran all folds before those that were stopped.

    ``best`` is the one to compare them with, if it is not one of them.
    """
    folds = max(len(lane.results) for lane in lanes)
    whole = [lane for lane in lanes if len(lane.results) == folds and not lane.trial.short]
    best = best or _best(whole, by)
    order = sorted(
        lanes,
        key=lambda lane: (lane is not best, lane not in whole, lane.trial.short, lane.score(by)),
    )
    return [(_standing(lane, best, _status(lane, best, lane in whole, by)), lane) for lane in order]


def _best(lanes: Sequence[Lane], by: str) -> Lane:
    """Who is recommended.

    By error, of those that no test tells from the smallest error the one with the largest density;
    by coverage, the best covered of those whose error is not far from the smallest.
    """
    first = min(lanes, key=lambda lane: lane.score("error" if by == "coverage" else by))
    if by == "error":
        level = [lane for lane in lanes if not is_worse(lane, first, "error")]
        return min(level, key=lambda lane: lane.score("density"))
    if by == "coverage":
        most = USABLE * first.score("error")
        usable = [lane for lane in lanes if lane.score("error") <= most]
        return min(usable, key=lambda lane: lane.score("coverage"))
    return first


def _status(lane: Lane, best: Lane, whole: bool, by: str) -> str:
    if not np.isfinite(lane.errors).all():
        return "failed"
    if lane is best:
        return "recommended"
    if not whole:
        return "stopped early"
    absurd = by == "error" and best.score("density") < lane.score("density") - ABSURD
    return "worse" if absurd or is_worse(lane, best, by) else "tie"


def _standing(lane: Lane, best: Lane, status: str) -> Standing:
    errors, densities, first = lane.errors, lane.densities, lane.results[0]
    same = float(best.errors[: len(errors)].mean())
    covered = [r["covered"][LEVELS.index(0.9)] for r in lane.results if "covered" in r]
    return Standing(
        lane.trial.name, len(errors), float(errors.mean()), standard_error(errors),
        float(errors.mean()) / same - 1 if same > 0 else float("nan"),
        float(densities.mean()), standard_error(densities),
        float(np.mean(covered)) if covered else float("nan"),
        first.get("loo", float("nan")), first.get("unreliable", float("nan")),
        lane.rank(), lane.seconds, status,
    )  # fmt: skip
