"""Nested cross-validation: the rank by inner folds, the test error by outer ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bayesmf._errors import DataError
from bayesmf.data.observed import ObservedMatrix
from bayesmf.splits import split_at
from bayesmf.study import masks
from bayesmf.study.cells import Cell, Table, grouped
from bayesmf.study.experiments.base import Experiment, Fits
from bayesmf.study.figures import style
from bayesmf.study.fitting import generator, mean_sweeps, score, shared_folds
from bayesmf.study.published import candidates
from bayesmf.study.tasks import AVERAGES, Result, Task, models

DATASETS = tuple(dict.fromkeys(dataset for _, dataset in candidates()))
INNER_RANKS = (1, 2, 3, 4, 6, 8, 10, 15)  # of the sound protocol
OUTER, INNER = {"quick": 2, "full": 5}, {"quick": 1, "full": 5}  # folds of five


def _expand(protocol: str, dataset: str, budget: str) -> Iterator[Task]:
    for model in models(protocol):
        inner = 0 if model in AVERAGES else INNER[budget]
        for fold in range(OUTER[budget]):
            yield Task("cross_validation", protocol, dataset, model, fold, inner=inner)


def _run(task: Task, X: ObservedMatrix) -> Result:
    """One outer fold: the rank by its inner folds, then a fit with that rank."""
    if task.paper:  # all outer folds of a model come from one partition
        fold = masks.stratified(X, 5, generator("outer", task.dataset, task.model))
    else:
        fold = shared_folds(task, X, 5)
    split = split_at(X, fold == task.repeat)
    if task.model in AVERAGES:
        return score(task, split, None)
    errors: dict[int, float] = {}
    known = candidates() if task.paper else {}
    ranks = known.get((task.model, task.dataset), INNER_RANKS)
    try:
        for rank in ranks:
            errors[rank] = _inner_error(task, split[0], rank)
        rank = min(errors, key=errors.__getitem__)
    except DataError:  # no inner folds: the study took the first rank
        rank = ranks[0]
    inner = {str(k): v for k, v in errors.items()}
    return {**score(task, split, rank), "rank": rank, "edge": rank == ranks[-1], "inner": inner}


def _inner_error(task: Task, train: ObservedMatrix, rank: int) -> float:
    if task.paper:  # folds are drawn anew for every rank
        fold = masks.stratified(train, 5, generator("inner", task.key, rank))
    else:
        fold = shared_folds(task, train, 5, "inner", task.repeat)
    parts = (split_at(train, fold == k) for k in range(task.inner))
    errors = [score(task, split, rank, inner=True)["mse"] for split in parts]
    return float(np.mean([np.inf if error is None else error for error in errors]))


def _fits(task: Task) -> Fits:
    known = candidates() if task.paper or task.model == "NMF" else {}
    ranks = known.get((task.model, task.dataset), INNER_RANKS)
    inner = [(rank, mean_sweeps(task, inner=True)) for rank in ranks for _ in range(task.inner)]
    return [*inner, (ranks[-1], mean_sweeps(task))]


def _chosen_ranks(cells: Sequence[Cell]) -> Table:
    """Ranks by model and dataset: means over the outer folds."""
    known = {(c.model, c.dataset): float(np.mean(c.ranks)) for c in cells if c.ranks}
    names = list(dict.fromkeys(dataset for _, dataset in known))
    found = dict.fromkeys(model for model, _ in known)
    return ("model", *names), [(m, *(known.get((m, name)) for name in names)) for m in found]


def _draw(words: str, cells: Sequence[Cell]) -> style.Drawn:
    """A panel for each dataset, a line for each model."""
    groups = grouped(cells, "dataset")
    places: dict[str, float] = {}  # heights of the lines, with gaps between the groups
    kinds: dict[str, None] = {}
    for model in style.by_model(cells):
        kinds[style.group(model)] = None
        places[model] = len(places) + 0.6 * (len(kinds) - 1)
    n = len(groups)
    rows, cols = (1, n) if n <= 4 else (2, -(-n // 2))
    width = max(style.COLUMN, style.WIDE * min(cols, 4) / 4)
    height = rows * (1.3 + 0.3 * len(places)) + 1.6
    figure, axes = style.panels(n, cols, width, height, sharey=True)
    notes: set[str] = set()
    for ax, (dataset, some) in zip(axes, groups.items(), strict=True):
        ax.set_title(dataset, loc="left")
        notes |= _draw_errors(ax, style.by_model(some), places)
    axes[0].set(ylim=(max(places.values()) + 0.8, -0.8))
    axes[0].set_yticks(list(places.values()), [style.label(model) for model in places])
    style.set_title(figure, f"{style.ERROR}, {words}", cells[0], dataset=False)
    style.add_legend(figure, [], notes, 3)
    yield "cross_validation", figure


def _draw_errors(
    ax: style.Axes, cells: dict[str, list[Cell]], places: dict[str, float]
) -> set[str]:
    """Means and standard errors of all models on a dataset; return what has to be explained."""
    points, notes = [], set()  # model, height, whether published, mean and standard error
    for model, (c,) in cells.items():
        points.append((model, places[model], False, c.mean if c.values else np.inf, c.error))
        if c.published is not None:
            notes.add("published")
            points.append((model, places[model] + 0.38, True, c.published.mean, c.published.error))
        if c.values and c.failed:
            notes.add("some repeats failed")
            ax.plot([c.mean], [places[model]], **style.ring(ax, model))
    points.sort(key=lambda point: point[2])
    mean, error = np.nan_to_num([point[3:] for point in points], posinf=np.inf).T
    ax.set_xlim(style.limits([*mean, *(mean - error), *(mean + error)]))
    for k, (model, y, published, x, _) in enumerate(points):
        colour = style.LOOKS[model][0]
        ax.errorbar([x], [y], xerr=[error[k]], fmt="o", color=colour,
                    ms=2.6 if published else 3.2, mfc="white" if published else colour,
                    mew=0.6 if published else 0, elinewidth=0.5 if published else 0.9)  # fmt: skip
        at = np.array([y]), np.array([x])
        if style.mark_beyond(ax, model, *at, {}, published=published, across=True):
            notes.add("beyond the axis")
    ax.grid(axis="y", visible=False)
    return notes


EXPERIMENT = Experiment(
    "cross_validation", "cross-validation", DATASETS, _expand, _run, _draw, fits=_fits,
    more_tables={"chosen_ranks": _chosen_ranks},
)  # fmt: skip
