"""How long tasks take: here, by what was measured, and by the study's own seconds per iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bayesmf.datasets import CATALOGUE
from bayesmf.experiments import published, settings
from bayesmf.experiments.tasks import INNER_RANKS, Task

# Seconds of a sweep on one core: per entry, and per entry and factor, measured on GDSC.
_KINDS = {
    "rows": (8e-9, 1.2e-9),
    "entries": (6e-9, 2.2e-9),
    "volume": (2e-8, 4e-9),
    "counts": (3e-8, 1e-8),
    "NMF": (6e-9, 2.5e-9),
}
_ENTRIES = ("GGGU", "GEE", "GEEA", "GTT", "GTTN", "GL21", "GEG")
_START = 0.02  # of every fit


def _kind(model: str) -> str:
    if model in ("GVG", "GVnG"):
        return "volume"
    if model in ("PGG", "PGGG"):
        return "counts"
    return model if model == "NMF" else "entries" if model in _ENTRIES else "rows"


def fits(task: Task) -> list[tuple[int, int]]:
    """Rank and number of sweeps of every fit of a task, on average."""
    model = task.model.partition(" ")[0]
    if task.model in settings.AVERAGES:
        return []
    paper = task.protocol == "paper" or model == "NMF"
    n = settings.length(task.experiment, task.dataset, task.variant, model).sweeps
    if task.experiment in ("convergence", "runtime"):
        return [(task.rank or 1, max(10, n))]
    whole, inner = (n, n) if paper else (1000, 300)
    if task.experiment != "cross_validation":
        return [(task.rank or 1, whole)]
    ranks = settings.CANDIDATES.get((model, task.dataset), INNER_RANKS) if paper else INNER_RANKS
    return [(rank, inner) for rank in ranks for _ in range(task.inner)] + [(ranks[-1], whole)]


def guess(task: Task) -> float:
    """Seconds that a task will take on one core, roughly."""
    entry = CATALOGUE[task.dataset]
    constant, slope = _KINDS[_kind(task.model.partition(" ")[0])]
    return 0.01 + sum(
        _START + sweeps * (2e-4 + entry.n_observed * (constant + slope * rank))
        for rank, sweeps in fits(task)
    )


def learnt(done: Iterable[tuple[Task, dict[str, Any]]]) -> Callable[[Task], float]:
    """`guess`, corrected by what tasks of the same protocol and model took: these records."""
    taken: dict[tuple[str, str], float] = {}
    guessed: dict[tuple[str, str], float] = {}
    for task, record in done:
        key = task.protocol, task.model
        taken[key] = taken.get(key, 0.0) + record["seconds"]
        guessed[key] = guessed.get(key, 0.0) + guess(task)
    ratio = {key: taken[key] / guessed[key] for key in taken}
    return lambda task: guess(task) * ratio.get((task.protocol, task.model), 1.0)


def study_seconds(task: Task) -> float:
    """Seconds that the study's own code would have taken for the same sweeps.

    Its seconds per iteration are known at four ranks on two matrices; between and beyond them they
    are taken as straight in the rank, and in proportion to the cells of the matrix.
    """
    model = task.model.partition(" ")[0]
    table = published.runtimes()
    base = task.dataset if task.dataset == "MovieLens_100K" else "GDSC"
    here, there = CATALOGUE[task.dataset], CATALOGUE[base]
    size = (here.shape[0] * here.shape[1]) / (there.shape[0] * there.shape[1])
    known = [
        (k, table[base, model, k]) for k in settings.RUNTIME_RANKS if (base, model, k) in table
    ]
    if not known:
        return 0.0
    ranks, seconds = zip(*known, strict=True)
    return sum(
        sweeps * size * float(np.interp(rank, ranks, seconds)) for rank, sweeps in fits(task)
    )
