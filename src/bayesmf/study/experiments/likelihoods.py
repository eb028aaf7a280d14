"""Likelihoods: every prior with every likelihood that fits it and the data.

The study beyond its own table: nested cross-validation of all pairs on shared folds, judged by
error, log density and coverage; all of them once more at one large rank, and once with most entries
hidden, so that its observations can be judged again with another likelihood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from bayesmf._errors import ModelError
from bayesmf.comparison import trials
from bayesmf.comparison.entrants import Ends, Entrant, limits_of
from bayesmf.comparison.recorded import resolution
from bayesmf.comparison.trials import LEVELS, Trial
from bayesmf.data.inspection import RATINGS
from bayesmf.data.observed import ObservedMatrix
from bayesmf.likelihoods import (
    Censored,
    Gaussian,
    Likelihood,
    NegativeBinomial,
    Ordinal,
    Poisson,
    StudentT,
)
from bayesmf.model.model import Model
from bayesmf.model.presets import PRESETS, preset
from bayesmf.splits import Triples, holdout
from bayesmf.study import crossing
from bayesmf.study.crossing import AGAIN, EQUAL, HIDDEN, NESTED, POISSON, RANK
from bayesmf.study.experiments.base import Experiment, Fits
from bayesmf.study.figures import heat
from bayesmf.study.fitting import generator, hyperparameters
from bayesmf.study.tasks import SAME_RANK, Result, Task

DATASETS = ("CCLE_IC50", "Methylation_GM", "GDSC", "CCLE_EC50_clean", "MovieLens_100K")
RANKS = (1, 2, 3, 5, 8, 12)  # candidates, tried upwards and downwards from the fourth
SETTINGS: dict[float | None, int | None] = {NESTED: None, RANK: int(RANK), HIDDEN: SAME_RANK}
BURN_IN, DRAWS = 120, 80  # of the one chain that is judged; those that choose ranks have a third
FOLDS = {"quick": 2, "full": 5}  # of five
JUDGED = 5000  # held-out entries of a fold, at most

LIKELIHOODS: dict[str, Callable[[Ends], Likelihood]] = {  # given ends of the range
    EQUAL: lambda ends: Gaussian(),
    "rows": lambda ends: Gaussian(rows=True),
    "cols": lambda ends: Gaussian(cols=True),
    "both": lambda ends: Gaussian(rows=True, cols=True),
    "Student-t": lambda ends: StudentT(),
    "censored": lambda ends: Censored(*ends),
    "ordinal": lambda ends: Ordinal(),
    POISSON: lambda ends: Poisson(),
    "negative binomial": lambda ends: NegativeBinomial(),
}


@dataclass(frozen=True)
class CrossedTrial(Trial):
    """A trial that is judged by no more than `JUDGED` of the held-out entries, the same for all."""

    hidden: float | None = None  # share of the entries, where most are held out

    def split(self, X: ObservedMatrix) -> tuple[ObservedMatrix, Triples]:
        rng = generator("judged", self.data, self.fold, self.hidden)
        train, test = super().split(X) if self.hidden is None else holdout(X, self.hidden, rng)
        chosen = np.sort(rng.permutation(test[2].size)[:JUDGED])
        return train, (test[0][chosen], test[1][chosen], test[2][chosen])


def _expand(protocol: str, dataset: str, budget: str) -> Iterator[Task]:
    for setting, rank in SETTINGS.items():
        for likelihood, model in product(LIKELIHOODS if setting == NESTED else AGAIN, PRESETS):
            if setting == NESTED or model in crossing.CHECKED[setting]:
                for fold in range(FOLDS[budget]):
                    yield Task(
                        "likelihoods", protocol, dataset, model, fold, setting, rank, likelihood
                    )


def build(task: Task, ends: Ends = (None, None)) -> Model:
    """The priors of a preset under a likelihood; a ModelError if they do not fit."""
    model = preset(task.model, **hyperparameters(task))
    return replace(model, likelihood=LIKELIHOODS[task.variant](ends), name=f"{task.model} here")


def why_not(task: Task, X: ObservedMatrix, ends: Ends) -> str:
    """Why a prior and a likelihood do not go together, or not with the data; empty if they do."""
    try:
        likelihood = build(task, ends).likelihood
    except ModelError:
        return f"the {task.variant} likelihood does not fit the priors of {task.model}"
    values = X.rows.values
    if likelihood.has_limits and ends == (None, None):
        return "no values heap at an end of the range"
    if likelihood.has_categories and (n := np.unique(values).size) > RATINGS:
        return f"{n} different values are no categories"
    if not likelihood.allowed(values).all():
        return f"the {likelihood.name} likelihood needs {likelihood.needs}"
    return ""


def _run(task: Task, X: ObservedMatrix) -> Result:
    ends = limits_of(X)
    if why := why_not(task, X, ends):
        return {"mse": None, "failed": why, "absent": True}
    model = build(task, ends)
    trial = CrossedTrial(
        X.fingerprint()[:16], Entrant(model.name), task.repeat, FOLDS["full"],
        (task.rank,) if task.rank else RANKS, DRAWS, BURN_IN, scale="none", ends=ends,
        step=resolution(X), hidden=HIDDEN if task.setting == HIDDEN else None,
    )  # fmt: skip
    found = trials.run(X, {model.name: model}, trial)
    if found["mse"] is None or not np.isfinite(found["mse"]):
        return {"mse": None, "failed": found.get("failed", "The predictions are not finite.")}
    return {
        "mse": found["mse"], "log_density": found["log_density"],
        "coverage": found["covered"][LEVELS.index(0.9)], "rank": found["rank"],
        "edge": task.rank is None and found["rank"] == RANKS[-1], "inner": found["inner"],
    }  # fmt: skip


def _fits(task: Task) -> Fits:
    try:
        build(task, (None, None))
    except ModelError:
        return []
    last = (task.rank or RANKS[3], BURN_IN + DRAWS)
    inner = [(rank, 2 * max(40, DRAWS // 3)) for rank in RANKS[2:5]]
    return [last] if task.rank else [*inner, last]


EXPERIMENT = Experiment(
    "likelihoods", "priors by likelihoods", DATASETS, _expand, _run, heat.draw,
    table=crossing.cell_table, fits=_fits, compared=(), protocols=("sound",),
    more_tables={
        "likelihood_folds": crossing.fold_table,
        "likelihood_components": crossing.component_table,
        "likelihood_choices": crossing.choice_table,
        "likelihood_observations": crossing.observation_table,
    },
)  # fmt: skip
