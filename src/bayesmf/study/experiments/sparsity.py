"""Sparsity: test errors by the fraction of the whole matrix that is not observed in training."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bayesmf.data.observed import ObservedMatrix
from bayesmf.splits import holdout, split_at
from bayesmf.study import masks
from bayesmf.study.experiments.base import Experiment
from bayesmf.study.figures import curves
from bayesmf.study.fitting import score, split_generator
from bayesmf.study.tasks import Result, Task, by_setting

FRACTIONS = {
    "GDSC": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    "Methylation_GM": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
    "MovieLens_100K": (0.93, 0.94, 0.95, 0.96, 0.97, 0.98),
}
REPEATS = {"quick": 1, "full": 10}


def _expand(protocol: str, dataset: str, budget: str) -> Iterator[Task]:
    variants = ("sameK", "perModelK") if dataset in FRACTIONS else ("sameK",)
    grid = FRACTIONS.get(dataset, (0.5, 0.7, 0.9))
    return by_setting(("sparsity", protocol, dataset), variants, grid, REPEATS[budget])


def _run(task: Task, X: ObservedMatrix) -> Result:
    assert task.setting is not None
    rng = split_generator(task, "sparsity", task.setting, task.repeat)
    if task.paper:
        return score(task, split_at(X, masks.random_split(X, task.setting, rng)), task.rank)
    kept = X.shape[0] * X.shape[1] * (1 - task.setting) / X.n_observed
    return score(task, holdout(X, min(0.99, max(0.01, 1 - kept)), rng), task.rank)


EXPERIMENT = Experiment(
    "sparsity", "sparse predictions", tuple(FRACTIONS), _expand, _run,
    partial(curves.draw, curves.Plot("fraction unobserved")),
)  # fmt: skip
