"""Noise: test errors of data to which noise was added, by its variance over that of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from bayesmf.data.observed import ObservedMatrix
from bayesmf.model.presets import PRESETS
from bayesmf.splits import holdout, split_at
from bayesmf.streams import Array
from bayesmf.study import masks
from bayesmf.study.cells import Cell
from bayesmf.study.experiments.base import Experiment
from bayesmf.study.figures import curves
from bayesmf.study.fitting import generator, score, split_generator
from bayesmf.study.tasks import Result, Task, by_setting

RATIOS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # noise variance over variance of the data
OWN = ("perModelK",)
VARIANTS = {"GDSC": ("sameK", *OWN), "Methylation_GM": OWN, "MovieLens_100K": OWN}  # the study's
REPEATS = {"quick": 1, "full": 10}


def _expand(protocol: str, dataset: str, budget: str) -> Iterator[Task]:
    where, variants = ("noise", protocol, dataset), VARIANTS.get(dataset, ("sameK",))
    for task in by_setting(where, variants, RATIOS, REPEATS[budget]):
        if (protocol, dataset) != ("paper", "MovieLens_100K") or task.model not in ("GLL", "GLLI"):
            yield task


def _run(task: Task, X: ObservedMatrix) -> Result:
    """The score is the variance of the noisy data over the test error."""
    noisy, variance = _add_noise(task, X)
    rng = split_generator(task, "noise", task.repeat)
    if task.paper:  # a tenth of the entries, as its other splits were made
        cells = X.shape[0] * X.shape[1]
        split = split_at(noisy, masks.random_split(noisy, 1 - (0.9 * X.n_observed) / cells, rng))
    else:
        split = holdout(noisy, 0.1, rng)
    clean = X.to_array()[split[1][0], split[1][1]]
    result = score(task, split, task.rank, clean=clean)
    if result["mse"] is not None:
        result["score"] = variance / result["mse"]
    return result


def _add_noise(task: Task, X: ObservedMatrix) -> tuple[ObservedMatrix, float]:
    """The data with noise, and the variance of both; whole numbers for models of counts."""
    assert task.setting is not None
    rng = generator("noise", task.dataset, task.setting)
    rows, cols, values = X.triples()
    noisy: Array
    if task.paper:  # on the whole matrix, zeros where nothing is observed
        whole = np.zeros(X.shape)
        whole[rows, cols] = values
        spread = (task.setting * whole.var()) ** 0.5
        whole = np.maximum(np.trunc(whole + rng.normal(0, 1, X.shape) * spread), 0.0)
        noisy, variance = whole[rows, cols], whole.var()
    else:
        noisy = values + rng.normal(0, 1, values.size) * (task.setting * values.var()) ** 0.5
        variance = noisy.var()
        preset = PRESETS.get(task.preset)  # None of a baseline, of which NMF is one of counts
        if preset.likelihood.counts if preset else task.model == "NMF":
            noisy = np.maximum(np.round(noisy), 0.0)
    return ObservedMatrix.from_triples(rows, cols, noisy, X.shape), float(variance)


def _published(cells: Sequence[Cell]) -> dict[float, float]:
    """The study's errors of a model as ratios to our own variance of the noisy data."""
    found = {}
    for c in cells:
        variances = [r["score"] * r["mse"] for r in c.results if r.get("score") is not None]
        if variances and c.published is not None and c.setting is not None:
            found[c.setting] = float(np.mean(variances)) / c.published.mean
    return found


PLOT = curves.Plot(
    "noise variance / data variance", "even", "score", "data variance / test MSE (± 1 s.e.)",
    -np.inf, _published,
)  # fmt: skip
EXPERIMENT = Experiment(
    "noise", "noise", tuple(VARIANTS), _expand, _run,
    partial(curves.draw, PLOT), compared=("paper",),  # under ``sound`` the noise is another one
)  # fmt: skip
