"""Model selection: test errors by rank, to see which models overfit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bayesmf.data.observed import ObservedMatrix
from bayesmf.splits import split_at
from bayesmf.study import masks
from bayesmf.study.experiments.base import Experiment
from bayesmf.study.figures import curves
from bayesmf.study.fitting import generator, score, shared_folds
from bayesmf.study.tasks import Result, Task, models

RANKS = (1, 2, 3, 4, 6, 8, 10, 15, 20, 30)
LARGEST = {"MovieLens_100K": 15}  # rank on a dataset
FOLDS = {"quick": 1, "full": 10}  # of ten


def _expand(protocol: str, dataset: str, budget: str) -> Iterator[Task]:
    ranks = [rank for rank in RANKS if rank <= LARGEST.get(dataset, RANKS[-1])]
    for model in models(protocol, averages=False):
        for rank in ranks:
            for fold in range(FOLDS[budget]):
                yield Task("model_selection", protocol, dataset, model, fold, rank, rank)


def _run(task: Task, X: ObservedMatrix) -> Result:
    if task.paper:  # one partition for each rank and model
        rng = generator("folds", task.dataset, task.model, task.rank)
        fold = masks.plain(X, 10, rng)
    else:
        fold = shared_folds(task, X, 10)
    return score(task, split_at(X, fold == task.repeat), task.rank)


EXPERIMENT = Experiment(
    "model_selection", "model selection", ("GDSC", "CCLE_IC50", "Methylation_GM", "MovieLens_100K"),
    _expand, _run, partial(curves.draw, curves.Plot("K", "log")),
)  # fmt: skip
