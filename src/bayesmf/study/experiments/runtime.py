"""Runtime: seconds per sweep by rank. Nothing runs beside tasks that measure time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from bayesmf._files import Row
from bayesmf.data.observed import ObservedMatrix
from bayesmf.study.cells import Cell, Table, grouped
from bayesmf.study.experiments.base import Experiment
from bayesmf.study.figures import style
from bayesmf.study.fitting import trace
from bayesmf.study.published import runtimes
from bayesmf.study.tasks import Result, Task, models

RANKS = (5, 10, 20, 50)
_CHANGES = {"GTTN": {"mu_mu": 0.1}, "GGGW": {"nu0": 50.0}}


class TimedTask(Task):
    """A task that measures time."""

    alone: ClassVar[bool] = True


def _expand(protocol: str, dataset: str, budget: str) -> Iterator[Task]:
    for model in models("paper", averages=False):
        for rank in RANKS:
            yield TimedTask("runtime", protocol, dataset, model, setting=rank, rank=rank)


def _run(task: Task, X: ObservedMatrix) -> Result:
    """Seconds per sweep, the first ones left out: they read kernels from the disk."""
    n = max(10, task.length.sweeps)
    fitted = trace(task, X, n + 2, 0, _CHANGES)
    return {"seconds": float(np.mean(np.ravel(fitted.seconds)[2:])), "sweeps": n}


def _table(cells: Sequence[Cell]) -> Table:
    rows: list[Row] = []
    for c in cells:
        rank = int(c.setting or 0)
        study = runtimes().get((c.dataset, c.model, rank))
        rows.append((c.dataset, c.model, rank, c.mean, study, study / c.mean if study else None))
    return ("dataset", "model", "K", "seconds per sweep", "published", "times faster"), rows


def _draw(words: str, cells: Sequence[Cell]) -> style.Drawn:
    """Seconds per sweep by rank, a panel for each dataset."""
    groups, drawn, notes = grouped(cells, "dataset"), set(), set()
    n = len(groups)
    figure, axes = style.panels(n, n, style.COLUMN if n == 1 else style.WIDE, 9.0, sharey=True)
    for ax, (dataset, some) in zip(axes, groups.items(), strict=True):
        ax.set(title=dataset, xscale="log", yscale="log", xlabel="K")
        style.plain_ticks(ax.xaxis, sorted({c.setting for c in some if c.setting}))
        for model, own in style.by_model(some).items():
            ours = style.in_order({c.setting: c.mean for c in own if c.values})
            study = {k: s for (d, m, k), s in runtimes().items() if (d, m) == (dataset, model)}
            if ours[0].size:
                none = np.zeros(ours[0].size, dtype=bool)
                curve = style.Curve(*ours, none, none, *style.in_order(study))
                drawn.add(model)
                notes |= style.draw_curve(ax, model, curve, {})
    axes[0].set_ylabel("seconds per sweep")
    style.plain_ticks(axes[0].yaxis, between=True)
    failed = [model for model in style.by_model(cells) if model not in drawn]
    style.set_title(figure, words, cells[0], dataset=False, failed=failed)
    style.add_legend(figure, drawn, notes, 4 if n == 1 else 8)
    yield "runtime", figure


EXPERIMENT = Experiment(
    "runtime", "time per sweep", ("GDSC", "MovieLens_100K"), _expand, _run, _draw, table=_table,
    value=lambda result: result.get("seconds"),
    fits=lambda task: [(task.rank or 1, max(10, task.length.sweeps))],
)  # fmt: skip
