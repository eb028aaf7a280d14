"""`compare` and what it returns."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmf import _threads
from bayesmf._arguments import checked
from bayesmf._errors import ModelError, nearest
from bayesmf.comparison import entrants, words
from bayesmf.comparison.entrants import Entrant
from bayesmf.comparison.race import MEASURES, Lane, Race, crossings, entered, standings
from bayesmf.comparison.recorded import resolution
from bayesmf.comparison.trials import LEVELS, Trial
from bayesmf.data.inspection import inspect
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.units import fit_units
from bayesmf.estimators import BayesianMF
from bayesmf.metrics import standard_error
from bayesmf.model.model import Model
from bayesmf.ranks import ranks_to_try
from bayesmf.splits import Triples
from bayesmf.streams import RandomState, seed_words
from bayesmf.tasks.store import Store

if TYPE_CHECKING:
    import pandas as pd

BUDGETS = {  # folds, burn-in, draws
    "quick": (3, 100, 100),
    "default": (5, 200, 200),
    "thorough": (10, 500, 1000),
}
_SHOWN = 15  # lines of the table that grows
DIFFERENT = 10.0  # times the size of other columns: their unit is another one


@checked
def compare(
    X: Any,
    models: Sequence[str | Model] | None = None,
    ranks: Sequence[int] | None = None,
    *,
    folds: int | None = None,
    budget: str = "default",
    by: str = "error",
    biases: bool | None = None,
    scale: str = "auto",
    transformation: str | None = None,
    lower: Any = None,
    upper: Any = None,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
    dask: str | None = None,
    store: str | Path | None = None,
    progress: bool | Callable[[Sequence[Lane], str], object] = False,
) -> Comparison:
    """Find the model, its noise and the rank that predict held-out entries of a matrix best.

    Models are judged on shared folds of the observed entries, their ranks chosen inside the
    training part of each fold (nested cross-validation). All run a short chain on the first fold:
    every prior, and every likelihood, transformation and noise that suits the data; then the best
    of both together. The best six go on to whole chains on all folds, until a paired test says that
    they cannot win. Models that the data forbid are left out.

    An interrupt ends the comparison with what is known by then (``interrupted`` of the result).

    Parameters
    ----------
    X
        The matrix, in any form that `sample` takes. Where it has features of rows or columns
        (`ObservedMatrix.with_features`), models are tried with and without them.
    models
        Names of presets and of `BASELINES`, in capitals or not, and models of one's own. A name may
        have options, as in "GGGW + noise cols + log + biases": noise "rows", "cols" or "both", a
        transformation, "limits" (at the ends of the range where values heap), "biases" and
        "features". All that suits the data by default.
    ranks
        Candidate ranks; a ladder from 1 to 30 by default.
    folds
        Number of folds; that of the budget by default.
    budget
        Length of the chains, and number of folds: "quick", "default" or "thorough".
    by
        What decides: "error", the mean squared error in the units of the data, and the log density
        between models that a test does not tell apart; "density"; or "coverage" of intervals,
        between models with an error near the smallest.
    biases
        Whether every model that takes biases is also tried with them; by default, if no models are
        named, those with which likelihoods are tried.
    scale
        What models see the data divided by, as in `BayesianMF`. "auto" is "cols" where the sizes of
        columns differ tenfold or more, and predictions are then judged relative to them; else
        "global".
    transformation
        A function of the values that is modelled in their place, as in `BayesianMF`.
    lower, upper
        Limits of the values, as in `BayesianMF.fit`: numbers, or one for each column. By default
        models are tried with and without limits at the ends of the range at which values heap.
    random_state
        Seed of folds and chains: the same seed gives the same comparison.
    n_jobs, dask
        Processes side by side (-1: as many as cores), or the address of a Dask cluster.
    store
        A folder for finished trials; the same call made again goes on from there.
    progress
        True shows a table that grows; a callable is called with the lanes and a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import compare
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)) + rng.normal(0, 0.1, (30, 20))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> found = compare(X, ["GGG", "row-average"], [1, 2], budget="quick")
    >>> found.best_model_, found.best_rank_
    ('GGG', 2)
    """
    matrix = ObservedMatrix.of(X)
    matrix.check_entries()
    matrix.check_range()
    for name, value, known in (("budget", budget, BUDGETS), ("by", by, MEASURES)):
        if value not in known:
            hint = nearest(str(value), known)
            raise ModelError(f"{name} must be one of {', '.join(known)}, got {value!r}.{hint}")
    if not (transformation is None or isinstance(transformation, str)):
        raise ModelError(f"transformation must be None or a name, got {transformation!r}.")
    relative = _units_differ(matrix, scale, transformation)
    given = _end("lower", lower, matrix), _end("upper", upper, matrix)
    limited = given != (None, None)
    ends = given if limited else entrants.limits_of(matrix)
    named, own = _named(matrix, models, biases, transformation)
    if limited:
        named = [one._replace(limits=one.model not in entrants.BASELINES) for one in named]
        named = list(dict.fromkeys(named))
    excluded = entrants.forbidden(matrix, named, own, transformation, ends)
    named = [one for one in named if str(one) not in excluded]
    if all(one.model in entrants.BASELINES for one in named):
        raise ModelError("No model is left to compare: " + "; ".join(
            f"{name}: {why}" for name, why in excluded.items()) + ".")  # fmt: skip
    if scale == "auto":  # where noise is equal, it belongs to columns of one unit
        scale = "cols" if relative else "global"
    usual, burn_in, draws = BUDGETS[budget]
    template = Trial(
        matrix.fingerprint()[:16], named[0], 0, folds or usual,
        tuple(ranks_to_try("cv" if ranks is None else ranks, matrix.shape)), draws, burn_in,
        int(seed_words(random_state)[0] >> np.uint64(1)), scale, transformation, relative,
        ends, resolution(matrix),
    )  # fmt: skip
    jobs = _threads.count(n_jobs)

    def may(one: Entrant) -> bool:
        return models is None and not entrants.forbidden(matrix, [one], own, transformation, ends)

    crossing = crossings(template, own, may)
    with tempfile.TemporaryDirectory() as spare:
        kept = Store(store if store is not None else spare)
        race = Race(matrix, own, kept, jobs, dask, by, _shower(progress, template.folds))
        race.run(entered(named, template, own), crossing)
    return Comparison(matrix, race, own, excluded, jobs)


def _end(name: str, limit: Any, X: ObservedMatrix) -> entrants.End:
    """A limit as trials keep it."""
    array = None if limit is None else np.asarray(limit, dtype=float)
    if array is None:
        return None
    if array.shape == (X.shape[1],):
        return tuple(array.tolist())
    if array.shape != ():
        raise ModelError(
            f"{name} must be a number or have one for each of the {X.shape[1]} columns; limits of "
            "single cells go into the data, as text such as >8."
        )
    return float(array)


def _named(
    X: ObservedMatrix, models: Sequence[str | Model] | None, biases: bool | None,
    transformation: str | None,
) -> tuple[list[Entrant], dict[str, Model]]:  # fmt: skip
    """Who takes part, the first one first, and models of one's own by name."""
    if models is None:
        named = entrants.field(X, biases, transformation)
        first = Entrant(entrants.BASE)
        return [first, *(one for one in named if one != first)], {}
    if isinstance(models, (str, Model)):
        models = [models]
    named, own = entrants.read(models)
    if biases:
        named += [
            one._replace(biases=True) for one in named
            if one.model not in entrants.BASELINES and one.built(own).likelihood.takes_biases
        ]  # fmt: skip
    return list(dict.fromkeys(named)), own


def _units_differ(X: ObservedMatrix, scale: str, transformation: str | None) -> bool:
    """Whether columns have sizes of their own; an unknown scale or transformation is refused."""
    units = fit_units(X, "cols", scale, transformation)
    if units.scale != "cols":
        return False
    low, middle, high, most = np.quantile(fit_units(X, "cols", "cols").cols, [0.1, 0.5, 0.9, 1.0])
    return bool(high > DIFFERENT * low or most > DIFFERENT * middle)


class Column(NamedTuple):
    """How well held-out entries of one column are predicted."""

    column: str
    entries: int
    mse: float
    skill: float  # 1 - mse / variance: 0 is no better than the column's own average
    correlation: float
    coverage: float  # of the 90 % interval


class Comparison:
    """What `compare` found.

    Attributes
    ----------
    standings
        All models, the best first.
    best_model_, best_rank_, best_biases_
        What is recommended; `best_` has the name with all options.
    excluded
        Models that were left out, with the reasons.
    notes
        What should be known about the data.
    by
        The measure that decided.
    interrupted
        Whether it was stopped before its end.
    """

    def __init__(
        self, X: ObservedMatrix, race: Race, own: dict[str, Model], excluded: dict[str, str],
        jobs: int,
    ) -> None:  # fmt: skip
        self.X, self.lanes, self.excluded, self._jobs = X, race.lanes, excluded, jobs
        self.by, self.interrupted, self._own = race.by, race.interrupted, own
        self.folds = self.lanes[0].trial.folds
        others = [lane for lane in self.lanes if lane.trial.is_baseline and lane.results]
        order = standings([lane for lane in self.lanes if not lane.trial.is_baseline], self.by)
        self._best = order[0][1]
        self._baselines = sorted(others, key=lambda lane: lane.score("error"))
        self.standings = [standing for standing, _ in order]
        for standing, _ in standings(others, "error", self._best) if others else ():
            worse = standing.mse > order[0][0].mse
            status = "baseline" if worse else "better baseline"
            self.standings.append(standing._replace(status=status))
        self.best_ = self._best.trial.name
        self.best_model_, self.best_biases_ = self._best.entrant.model, self._best.entrant.biases
        self.best_rank_ = self._best.rank()
        self._fitted: BayesianMF | None = None
        self.notes = inspect(X)

    def splits(self) -> Iterator[tuple[ObservedMatrix, Triples]]:
        """Training part and held-out triples of every fold, to judge something else on them."""
        for fold in range(self.folds):
            yield replace(self._best.trial, fold=fold).split(self.X)

    @property
    def ties(self) -> list[str]:
        """Models that a paired test does not tell from the recommended one."""
        return [s.model for s in self.standings if s.status == "tie"]

    @property
    def recommendation(self) -> str:
        """What to use and why, in words."""
        return " ".join(words.sentences(self))

    @property
    def table(self) -> pd.DataFrame:
        """A pandas DataFrame with a row for every model, the best first."""
        import pandas as pd

        return pd.DataFrame(self.standings)

    @property
    def calibration(self) -> list[tuple[float, float]]:
        """Nominal and actual shares of held-out entries in the recommended model's intervals."""
        covered = [r["covered"] for r in self._best.results if "covered" in r]
        return list(zip(LEVELS, np.mean(covered, axis=0).tolist(), strict=True))

    def columns(self) -> list[Column]:
        """The columns as the recommended model predicts them, the one with least skill first."""
        found = [r["columns"] for r in self._best.results if "columns" in r]
        if not found:
            return []
        s = {name: np.sum([part[name] for part in found], axis=0) for name in found[0]}
        n = np.maximum(s["n"], 1)
        var_x, var_y = (np.maximum(s[a + a] / n - (s[a] / n) ** 2, 0.0) for a in "xy")
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = (s["xy"] / n - s["x"] * s["y"] / n**2) / np.sqrt(var_x * var_y)
            skill = 1 - s["squares"] / n / var_x
        names = self.X.names()[1]
        columns = [
            Column(
                str(names[j]), int(s["n"][j]), float(s["squares"][j] / n[j]), float(skill[j]),
                float(correlation[j]), float(s["held"][j] / n[j]),
            )
            for j in range(len(n))
            if s["n"][j] > 1 and var_x[j] > 0
        ]  # fmt: skip
        return sorted(columns, key=lambda column: column.skill)

    def rank_curves(self) -> dict[str, list[tuple[int, float, float]]]:
        """Rank, mean inner error and its standard error, by model."""
        return {
            lane.trial.name: [
                (rank, float(np.mean(e)), standard_error(e))
                for rank, e in sorted(lane.rank_errors().items())
            ]
            for lane in self.lanes
            if len(lane.rank_errors()) > 1
        }

    def fit(self, model: str, n_components: int | None = None) -> BayesianMF:
        """A model of the comparison, by its name there, fitted to all entries with two chains.

        The rank is the one that it had in the comparison, unless one is given.
        """
        named = {lane.trial.name: lane for lane in self.lanes if not lane.trial.is_baseline}
        if model not in named:
            raise ModelError(f"{model!r} took no part in the comparison.{nearest(model, named)}")
        lane = named[model]
        trial, entrant = lane.trial, lane.entrant
        ends = trial.ends if entrant.limits else (None, None)
        lower, upper = (entrants.as_limit(end) for end in ends)
        X = self.X if entrant.features else self.X.without_features()
        takes = entrant.built(self._own).likelihood.takes_units
        return BayesianMF(
            self._own.get(entrant.model, entrant.model),
            lane.rank() if n_components is None else n_components,
            draws=max(250, trial.draws), burn_in=max(250, trial.burn_in), chains=2,
            biases=entrant.biases, noise=entrant.noise, scale=trial.scale if takes else "none",
            transformation=entrant.transformation or trial.transformation,
            random_state=trial.seed, n_jobs=self._jobs,
        ).fit(X, lower=lower, upper=upper)  # fmt: skip

    def fit_best(self) -> BayesianMF:
        """The recommended model, fitted to all entries with two chains; sampled once."""
        if self._fitted is None:
            self._fitted = self.fit(self.best_)
        return self._fitted

    def plot(self, **options: Any) -> Any:
        """Draw the held-out errors of all models, and return the Axes: `bayesmf.plots.models`."""
        from bayesmf.plots import models

        return models(self, **options)

    def report(
        self, path: str | Path, title: str = "Comparison of models", *, advice: str = "",
        **settings: object,
    ) -> None:  # fmt: skip
        """Write a self-contained HTML page.

        ``advice`` is a command to run next, told on its first screen; further settings at its end.
        """
        from bayesmf.comparison.page import write_page

        write_page(self, path, title, advice, **settings)

    def __repr__(self) -> str:
        return f"Comparison({self.best_}, rank {self.best_rank_}; {self.recommendation})"


def _shower(progress: Any, folds: int) -> Callable[[Sequence[Lane], str], object]:
    if callable(progress):
        return progress
    if not progress:
        return lambda lanes, text: None
    drawn = 0

    def show(lanes: Sequence[Lane], text: str) -> None:
        """A table that is drawn over itself on a terminal; else a line for each trial."""
        nonlocal drawn
        if not sys.stderr.isatty():
            print(text, file=sys.stderr)
            return
        ran = [lane for lane in lanes if lane.results]
        lines = [f"{'model':30} folds {'error':>12}  rank"]
        for lane in sorted(ran, key=lambda x: (-len(x.results), x.errors.mean()))[:_SHOWN]:
            mark = " (stopped)" if lane.stopped else ""
            lines.append(f"{lane.trial.name:30} {len(lane.results):2}/{folds:<2} "
                         f"{lane.errors.mean():12.5g}  {lane.rank():4}{mark}")  # fmt: skip
        lines.append(text)
        sys.stderr.write(f"\x1b[{drawn}F\x1b[J" if drawn else "")
        print("\n".join(lines), file=sys.stderr, flush=True)
        drawn = len(lines)

    return show
