"""`compare` and what it returns."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmf import _threads
from bayesmf._errors import ModelError, nearest, needs
from bayesmf.baselines import spelt
from bayesmf.comparison import race
from bayesmf.comparison.race import Lane, Standing
from bayesmf.comparison.trials import BASELINES, LEVELS, Trial
from bayesmf.data.inspection import inspect
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.units import fit_units
from bayesmf.estimators import BayesianMF
from bayesmf.metrics import standard_error
from bayesmf.model.presets import PRESETS, preset
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
DIFFERENT = 10.0  # times the size of other columns: their unit is another one


def compare(
    X: Any,
    models: Sequence[str] | None = None,
    ranks: Sequence[int] | None = None,
    *,
    folds: int | None = None,
    budget: str = "default",
    biases: bool = False,
    scale: str = "auto",
    transformation: str | None = None,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
    dask: str | None = None,
    store: str | Path | None = None,
    progress: bool | Callable[[Sequence[Lane], str], object] = False,
) -> Comparison:
    """Find the model and the rank that predict held-out entries of a matrix best.

    Every model is judged on shared folds of the observed entries, with its rank chosen inside the
    training part of each fold (nested cross-validation). Models that fall behind are stopped after
    a fold or two; models that the data forbid are left out.

    Parameters
    ----------
    X
        The matrix, in any form that `sample` takes.
    models
        Names of presets and baselines ("NMF", "row-average", "column-average"); all by default.
    ranks
        Candidate ranks; a ladder from 1 to 30 by default.
    folds
        Number of folds; that of the budget by default.
    budget
        Length of the chains, and number of folds: "quick", "default" or "thorough".
    biases
        Whether every model that takes biases is also tried with them.
    scale
        What models see the data divided by, as in `BayesianMF`. "auto" is "cols" where the sizes of
        columns differ tenfold or more, and predictions are then judged relative to them; else
        "global".
    transformation
        A function of the values that is modelled in their place, as in `BayesianMF`.
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
    if budget not in BUDGETS:
        raise ModelError(f"budget must be one of {', '.join(BUDGETS)}, got {budget!r}.")
    names = _checked(models)
    excluded = _forbidden(matrix, names, transformation)
    names = [name for name in names if name not in excluded]
    if not any(name in PRESETS for name in names):
        raise ModelError("No model is left to compare: " + "; ".join(
            f"{name}: {why}" for name, why in excluded.items()) + ".")  # fmt: skip
    usual, burn_in, draws = BUDGETS[budget]
    n, data = folds or usual, matrix.fingerprint()[:16]
    seed = int(seed_words(random_state)[0] >> np.uint64(1))
    tried = tuple(ranks_to_try("cv" if ranks is None else ranks, matrix.shape))
    relative = _units_differ(matrix, scale, transformation)
    if scale == "auto":  # models have equal noise, which belongs to columns of one unit
        scale = "cols" if relative else "global"
    settings = n, tried, draws, burn_in
    units = scale, transformation, relative
    entrants = [
        Trial(data, name, 0, *settings, with_biases, seed, *units)
        for name in names
        for with_biases in ((False, True) if biases and _takes_biases(name) else (False,))
    ]
    jobs = _threads.count(n_jobs)
    with tempfile.TemporaryDirectory() as spare:
        kept = Store(store if store is not None else spare)
        lanes = race.run(matrix, entrants, kept, jobs, dask, _shower(progress, n))
    return Comparison(matrix, lanes, excluded, jobs)


def _takes_biases(name: str) -> bool:
    return name in PRESETS and PRESETS[name].likelihood.takes_biases


def _units_differ(X: ObservedMatrix, scale: str, transformation: str | None) -> bool:
    """Whether columns have sizes of their own; an unknown scale or transformation is refused."""
    units = fit_units(X, "cols", scale, transformation)
    if units.scale != "cols":
        return False
    low, high = np.quantile(fit_units(X, "cols", "cols").cols, [0.1, 0.9])
    return bool(high > DIFFERENT * low)


def _forbidden(
    X: ObservedMatrix, names: Sequence[str], transformation: str | None = None
) -> dict[str, str]:
    """Models that the data forbid, each with the reason."""
    values, found = X.rows.values, {}
    seen = fit_units(X, "none", "none", transformation).off(X).rows.values
    negative = {True: bool((seen < 0).any()), False: bool((values < 0).any())}
    for name in names:
        model = preset(name) if name in PRESETS else None
        if model and not model.likelihood.allowed(values).all():
            found[name] = f"the {model.likelihood.name} likelihood needs {model.likelihood.needs}"
        elif model and X.bounds is not None and not model.likelihood.takes_limits:
            found[name] = f"the {model.likelihood.name} likelihood has no use for limits"
        elif model and transformation is not None and not model.likelihood.takes_transforms:
            found[name] = f"the {model.likelihood.name} likelihood has no use for a transformation"
        elif negative[bool(model)] and (all(model.nonnegative) if model else name == "NMF"):
            found[name] = "nonnegative factors cannot fit negative values"
    return found


def _spelt(name: str) -> str:
    """A model's name; that of a baseline may have a space or an underscore for its hyphen."""
    return spelt(name) if spelt(name) in BASELINES else name


def _checked(models: Sequence[str] | None) -> list[str]:
    known = (*PRESETS, *BASELINES)
    names = list(known) if models is None else [_spelt(name) for name in models]
    for name in names:
        if name not in known:
            raise ModelError(
                f"Unknown model {name!r}; there are {', '.join(known)}.{nearest(name, known)}"
            )
    return names


class Comparison:
    """What `compare` found.

    Attributes
    ----------
    standings
        All models, the best first.
    best_model_, best_rank_, best_biases_
        What is recommended.
    excluded
        Models that were left out, with the reasons.
    notes
        What should be known about the data.
    """

    def __init__(
        self, X: ObservedMatrix, lanes: list[Lane], excluded: dict[str, str], jobs: int
    ) -> None:
        self.X, self.lanes, self.excluded, self._jobs = X, lanes, excluded, jobs
        self.folds = lanes[0].trial.folds
        bayesian = [lane for lane in lanes if lane.trial.model in PRESETS]
        others = [lane for lane in lanes if lane.trial.model not in PRESETS]
        self.standings = race.standings(bayesian, self.folds)
        best = next(lane for lane in bayesian if lane.trial.name == self.standings[0].model)
        if others:
            self.standings += [_against(s, best) for s in race.standings(others, self.folds)]
        self.best_model_, self.best_biases_ = best.trial.model, best.trial.biases
        self.best_rank_ = best.rank()
        self._best = best
        self._fitted: BayesianMF | None = None
        self.notes = inspect(X)

    def splits(self) -> Iterator[tuple[ObservedMatrix, Triples]]:
        """Training part and held-out triples of every fold, to judge something else on them."""
        for fold in range(self.folds):
            yield replace(self._best.trial, fold=fold).split(self.X)

    @property
    def ties(self) -> list[str]:
        """Models that a paired test over the folds does not tell from the recommended one."""
        return [s.model for s in self.standings if s.status == "tie"]

    @property
    def recommendation(self) -> str:
        """What to use and why, in words."""
        best = self.standings[0]
        unit = ", in sizes of their columns," if self._best.trial.relative else ""
        text = (
            f"Use {best.model} with rank {best.rank}: its mean squared error on held-out entries"
            f"{unit} is {best.mse:.4g} (standard error {best.mse_error:.2g}, {best.folds} folds)"
        )
        text += f", and its 90 % intervals hold {best.coverage:.0%} of them. "
        if self.ties:
            text += f"A paired test does not tell it from {_list(self.ties)}. "
        else:
            text += "A paired test tells it from all others. "
        average = next((s for s in self.standings if s.model in BASELINES), None)
        if average is not None and np.isfinite(average.mse):
            gain = 1 - best.mse / average.mse
            text += (
                f"That is {gain:.0%} less than the best baseline ({average.model})."
                if gain > 0
                else f"But the baseline {average.model} is no worse ({average.mse:.4g})."
            )
        return text.strip()

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

    def fit_best(self) -> BayesianMF:
        """The recommended model, fitted to all entries with two chains; sampled once."""
        if self._fitted is None:
            trial = self._best.trial
            takes = PRESETS[trial.model].likelihood.takes_units
            scale = trial.scale if takes else "none"
            self._fitted = BayesianMF(
                trial.model, self.best_rank_, draws=max(250, trial.draws),
                burn_in=max(250, trial.burn_in), chains=2, biases=trial.biases, scale=scale,
                transformation=trial.transformation, random_state=trial.seed, n_jobs=self._jobs,
            ).fit(self.X)  # fmt: skip
        return self._fitted

    def plot(self) -> Any:
        """A matplotlib figure: held-out errors with standard errors, the best on top."""
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise needs("plot", "matplotlib", "report") from None
        shown = [s for s in self.standings if np.isfinite(s.mse)]
        figure = Figure(figsize=(5, 0.28 * len(shown) + 1), layout="constrained")
        axes = figure.add_subplot()
        at = np.arange(len(shown))[::-1]
        solid = [s.status in ("recommended", "tie") for s in shown]
        axes.errorbar([s.mse for s in shown], at, xerr=[np.nan_to_num(s.mse_error) for s in shown],
                      fmt="none", ecolor="0.6")  # fmt: skip
        for y, s, full in zip(at, shown, solid, strict=True):
            axes.plot(s.mse, y, "o", color="C3", fillstyle="full" if full else "none")
        axes.set_yticks(at, [f"{s.model} (K = {s.rank})" for s in shown])
        axes.set_xlabel("held-out mean squared error; filled: best or tied")
        return figure

    def report(
        self, path: str | Path, title: str = "Comparison of models", **settings: object
    ) -> None:
        """Write a self-contained HTML page; further settings are told on it."""
        from bayesmf.comparison.page import write_page

        write_page(self, path, title, **settings)

    def __repr__(self) -> str:
        return f"Comparison({self.best_model_}, rank {self.best_rank_}; {self.recommendation})"


def _against(standing: Standing, best: Lane) -> Standing:
    """The standing of a baseline beside the recommended model."""
    status = standing.status
    if status in ("recommended", "tie", "worse"):
        status = "baseline" if standing.mse > best.errors.mean() else "better baseline"
    return standing._replace(status=status)


def _list(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


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
        lines = [f"{'model':16} folds {'error':>12}  rank"]
        for lane in sorted(ran, key=lambda x: (-len(x.results), x.errors.mean())):
            mark = " (stopped)" if lane.stopped else ""
            lines.append(f"{lane.trial.name:16} {len(lane.results):2}/{folds:<2} "
                         f"{lane.errors.mean():12.5g}  {lane.rank():4}{mark}")  # fmt: skip
        lines.append(text)
        sys.stderr.write(f"\x1b[{drawn}F\x1b[J" if drawn else "")
        print("\n".join(lines), file=sys.stderr, flush=True)
        drawn = len(lines)

    return show
