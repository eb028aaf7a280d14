"""Rows of panels: results by setting, each panel with the models that it compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bayesmf.metrics import standard_error
from bayesmf.study.cells import Cell, grouped
from bayesmf.study.figures import style
from bayesmf.study.published import errors
from bayesmf.study.tasks import AVERAGES, NARROW

PANELS: dict[str, tuple[str, ...]] = {  # of a row, as in the paper
    "a  one of each kind": ("GGG", "GEE", "GEG", "PGG", "NMF", *AVERAGES),
    "b  real-valued": ("GGG", "GGGU", "GGGA", "GGGW", "GLL", NARROW, "GVG"),
    "c  nonnegative": ("GGG", "GEE", "GEEA", "GTT", "GL21"),
    "d  hierarchical": ("GLL", "GLLI", "GTT", "GTTN", "PGG", "PGGG"),
    "e  semi-nonnegative": ("GGG", "GEG", "GVG", "GVnG"),
}
RANK_TICKS = (1, 2, 4, 8, 15, 30)


def published_errors(cells: Sequence[Cell]) -> dict[float, float]:
    """The study's mean errors of a model by setting."""
    key = cells[0][1:5]  # experiment, dataset, variant and model
    return {k[4]: p.mean for k, p in errors().items() if k[:4] == key and k[4] is not None}


class Plot(NamedTuple):
    """What a row of panels plots."""

    settings: str  # what they are
    scale: str = "linear"  # their axis, "linear", "log", or "even" if all are as far apart
    result: str = "mse"  # which part of the results
    label: str = style.ERROR
    worst: float = np.inf  # where a setting goes at which all repeats failed
    published: Callable[[Sequence[Cell]], dict[float, float]] = published_errors  # of a model


def draw(plot: Plot, words: str, cells: Sequence[Cell]) -> style.Drawn:
    """A row of panels for each dataset and variant."""
    for some in grouped(cells, "dataset", "variant").values():
        curves = {model: curve(plot, own) for model, own in style.by_model(some).items()}
        figure = _draw_row(plot, curves)
        style.set_title(figure, words, some[0])
        yield "_".join(filter(None, some[0][1:4])), figure  # experiment, dataset and variant


def curve(plot: Plot, cells: Sequence[Cell]) -> style.Curve:
    """The curve of one model."""
    lines = []
    for c in sorted(cells, key=lambda c: c.setting or 0.0):
        values = [r[plot.result] for r in c.results if r.get(plot.result) is not None]
        mean = np.mean(values) if values else plot.worst
        lines.append((c.setting, mean, standard_error(values), 0 < len(values) < len(c.results)))
    x, mean, error, failed = np.array(lines, dtype=float).T
    study = plot.published(cells)
    return style.Curve(x, mean, np.nan_to_num(error), failed > 0, *style.in_order(study))


def _draw_row(plot: Plot, curves: dict[str, style.Curve]) -> style.Figure:
    """Up to five panels with one range."""
    shown: dict[str, list[str]] = {}
    for title, models in PANELS.items():
        here = [model for model in models if model in curves]
        if here and not any(set(here) <= set(other) for other in shown.values()):
            shown[title] = here  # else there is nothing new in it
    width = max(style.COLUMN, style.WIDE * len(shown) / 5)
    figure, axes = style.panels(len(shown), len(shown), width, 6.2, sharex=True, sharey=True)
    points = np.concatenate(
        [y for c in curves.values() for y in (c.mean, c.mean - c.error, c.mean + c.error, c.study)]
    )
    log = style.wide(*style.limits(points))
    settings = np.unique(np.concatenate([c.x for c in curves.values()]))
    places: Callable[..., Any] = np.asarray  # where a setting goes on the axis
    if plot.scale == "even":
        axes[0].set_xticks(np.arange(settings.size), [f"{s:g}" for s in settings])
        places = partial(np.searchsorted, settings)
    elif plot.scale == "log":
        axes[0].set_xscale("log")
        style.plain_ticks(axes[0].xaxis, [k for k in RANK_TICKS if k <= settings.max()])
    axes[0].set(ylim=style.limits(points, log), ylabel=plot.label)
    if log:
        axes[0].set_yscale("log")
        style.plain_ticks(axes[0].yaxis, between=True)
    notes: set[str] = set()
    for ax, (title, here) in zip(axes, shown.items(), strict=True):
        ax.set_title(title, loc="left")
        taken: style.Taken = {}
        for model in here:
            c = curves[model]
            placed = c._replace(x=places(c.x), study_x=places(c.study_x))
            notes |= style.draw_curve(ax, model, placed, taken)
    axes[len(axes) // 2].set_xlabel(plot.settings)
    used = [model for here in shown.values() for model in here]
    style.add_legend(figure, used, notes, max(3, 2 * len(shown) - 2))
    return figure
