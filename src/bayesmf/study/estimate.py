"""How long tasks take: here, by what was measured, and by the study's own seconds per iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from bayesmf.datasets import CATALOGUE
from bayesmf.study import published
from bayesmf.study.experiments import EXPERIMENTS
from bayesmf.study.tasks import AVERAGES, Task
from bayesmf.tasks.store import Record

_SWEEP = {  # its seconds on one core: per entry, and per entry and factor, measured on GDSC
    **dict.fromkeys(("GGGU", "GEE", "GEEA", "GTT", "GTTN", "GL21", "GEG"), (6e-9, 2.2e-9)),
    **dict.fromkeys(("GVG", "GVnG"), (2e-8, 4e-9)),
    **dict.fromkeys(("PGG", "PGGG"), (3e-8, 1e-8)),
    "NMF": (6e-9, 2.5e-9),
}
_START = 0.02  # seconds of every fit


def fits(task: Task) -> list[tuple[int, int]]:
    """Rank and number of sweeps of every fit of a task, on average."""
    return [] if task.model in AVERAGES else EXPERIMENTS[task.experiment].fits(task)


def guess(task: Task) -> float:
    """Seconds that a task will take on one core, roughly."""
    entries = CATALOGUE[task.dataset].n_observed
    constant, slope = _SWEEP.get(task.preset, (8e-9, 1.2e-9))
    return 0.01 + sum(
        _START + sweeps * (2e-4 + entries * (constant + slope * rank))
        for rank, sweeps in fits(task)
    )


def learnt(done: Iterable[tuple[Task, Record]]) -> Callable[[Task], float]:
    """`guess`, corrected by what tasks of the same protocol and model took: these records."""
    sums: dict[tuple[str, str], tuple[float, float]] = {}  # seconds that they took, and our guess
    for task, record in done:
        taken, guessed = sums.get((task.protocol, task.model), (0.0, 0.0))
        sums[task.protocol, task.model] = taken + record["seconds"], guessed + guess(task)
    ratio = {key: taken / guessed for key, (taken, guessed) in sums.items()}
    return lambda task: guess(task) * ratio.get((task.protocol, task.model), 1.0)


def study_seconds(task: Task) -> float:
    """Seconds that the study's own code would have taken for the same sweeps.

    Its seconds per iteration are known at four ranks on two matrices; between and beyond them they
    are taken as straight in the rank, and in proportion to the cells of the matrix. It had no code
    for what is in the sound protocol alone.
    """
    if "paper" not in EXPERIMENTS[task.experiment].protocols:
        return 0.0
    base = task.dataset if task.dataset == "MovieLens_100K" else "GDSC"
    here, there = CATALOGUE[task.dataset], CATALOGUE[base]
    size = (here.shape[0] * here.shape[1]) / (there.shape[0] * there.shape[1])
    known = {k: s for (d, m, k), s in published.runtimes().items() if (d, m) == (base, task.preset)}
    if not known:
        return 0.0
    ranks, seconds = zip(*sorted(known.items()), strict=True)
    return sum(n * size * float(np.interp(rank, ranks, seconds)) for rank, n in fits(task))
