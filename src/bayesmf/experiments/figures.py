"""Figures of the stored results, with the published numbers beside them; nothing is sampled here.

Ours are solid and filled, the study's dashed and open. Points that a readable range leaves out, and
settings at which every repeat failed, are triangles at the edge of the panel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmf.experiments import figure_style as style
from bayesmf.experiments.figure_style import LOOKS, WIDE, draw_priors, draw_values
from bayesmf.experiments.published import errors, runtimes, training
from bayesmf.experiments.settings import AVERAGES, BASELINES
from bayesmf.experiments.store import Store
from bayesmf.experiments.tasks import NARROW, Task
from bayesmf.presets import PRESETS
from bayesmf.streams import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_all", "draw_priors", "draw_values"]

Result = dict[str, Any]
Records = list[tuple[Task, Result]]  # tasks with their results
Drawn = Iterator[tuple[str, "Figure"]]  # figures by name

PANELS: dict[str, tuple[str, ...]] = {  # of a row, as in the paper
    "a  one of each kind": ("GGG", "GEE", "GEG", "PGG", "NMF", *AVERAGES),
    "b  real-valued": ("GGG", "GGGU", "GGGA", "GGGW", "GLL", NARROW, "GVG"),
    "c  nonnegative": ("GGG", "GEE", "GEEA", "GTT", "GL21"),
    "d  hierarchical": ("GLL", "GLLI", "GTT", "GTTN", "PGG", "PGGG"),
    "e  semi-nonnegative": ("GGG", "GEG", "GVG", "GVnG"),
}
WORDS = {
    "convergence": "convergence", "runtime": "time per sweep", "noise": "noise",
    "cross_validation": "cross-validation", "sparsity": "sparse predictions",
    "model_selection": "model selection", "sameK": "the same K for all",
    "perModelK": "each model's own K",
}  # fmt: skip
SETTINGS = {  # what the settings of a row are
    "noise": "noise variance / data variance",
    "sparsity": "fraction unobserved",
    "model_selection": "K",
}
SCORES = {"noise": ("score", "data variance / test MSE (± 1 s.e.)", -np.inf)}
ERROR = ("mse", "test MSE (± 1 s.e.)", np.inf)  # and where a setting goes at which all failed
REACH = 4.5  # of the range of training errors, as `figure_style.FENCE`
RANK_TICKS = (1, 2, 4, 8, 15, 30)


def draw_all(folder: str | Path, store: Store, tasks: Iterable[Task]) -> list[Path]:
    """Draw whatever the records of these tasks allow, below a folder for each protocol."""
    written: list[Path] = []
    with style.drawing():
        found = [(task, record["result"]) for task, record in store.records(tasks)]
        for (protocol, experiment), some in _by(found, "protocol", "experiment").items():
            for name, figure in _DRAWERS[experiment](some):
                written += style.save(figure, Path(folder) / protocol, name)
    return written


def _by(records: Records, *names: str) -> dict[tuple[Any, ...], Records]:
    """Records by some of the fields of their tasks."""
    groups: dict[tuple[Any, ...], Records] = {}
    for task, result in records:
        key = tuple(getattr(task, name) for name in names)
        groups.setdefault(key, []).append((task, result))
    return groups


def _models(records: Records) -> dict[str, Records]:
    """Records by model, in the order of the groups."""
    found = {key[0]: some for key, some in _by(records, "model").items()}
    return {model: found[model] for model in LOOKS if model in found}


def _title(task: Task, dataset: bool = True) -> str:
    words = ", ".join(WORDS[word] for word in (task.experiment, task.variant) if word)
    return f"{task.dataset + ': ' if dataset else ''}{words} (protocol: {task.protocol})"


def _failed(models: Iterable[str]) -> str:
    """Words for a title about models of which nothing can be drawn."""
    names = ", ".join(dict.fromkeys(map(style.label, models)))
    return f"; failed: {names}" if names else ""


def _mean(values: Sequence[float], otherwise: float = np.inf) -> tuple[float, float]:
    """Mean and its standard error, 0 of a single value; something else if there is none."""
    n = len(values)
    error = float(np.std(values, ddof=1) / n**0.5) if n > 1 else 0.0
    return float(np.mean(values)) if n else otherwise, error


def _ends(mean: Any, error: Any) -> Array:
    """Means, and one standard error below and above."""
    return np.concatenate([mean, np.subtract(mean, error), np.add(mean, error)])


def _sorted(values: dict[Any, float]) -> tuple[Array, Array]:
    """Keys in order, and their values."""
    keys = sorted(values)
    return np.array(keys), np.array([values[key] for key in keys], dtype=float)


# --- Rows of panels: noise, sparsity, model selection -------------------------------------------


class Curve(NamedTuple):
    """A model's results by setting, and the study's."""

    x: Array
    mean: Array
    error: Array
    failed: Array  # whether some repeats did, though not all
    study_x: Array
    study: Array


def _rows(records: Records) -> Drawn:
    for some in _by(records, "dataset", "variant").values():
        task = some[0][0]
        curves = {model: _curve(own) for model, own in _models(some).items()}
        name = "_".join(filter(None, [task.experiment, task.dataset, task.variant]))
        yield name, _row(task, curves)


def _curve(records: Records) -> Curve:
    task = records[0][0]
    name, _, worst = SCORES.get(task.experiment, ERROR)
    by_setting = {key[0]: some for key, some in sorted(_by(records, "setting").items())}
    lines = []
    for setting, some in by_setting.items():
        values = [result[name] for _, result in some if result.get(name) is not None]
        lines.append((setting, *_mean(values, worst), 0 < len(values) < len(some)))
    x, mean, error, failed = np.array(lines, dtype=float).T
    return Curve(x, mean, error, failed > 0, *_study(task, by_setting))


def _study(task: Task, ours: dict[float, Records]) -> tuple[Array, Array]:
    """The published means of a model by setting; for noise, as ratios to our own variance.

    The noise of the sound protocol is another one, so that there is nothing to compare it with.
    """
    key = (task.experiment, task.dataset, task.variant, task.model)
    found = {k[4]: p.mean for k, p in errors().items() if k[:4] == key and k[4] is not None}
    if task.experiment == "noise":
        ratios = {}
        for setting, some in ours.items():
            known = [r["score"] * r["mse"] for _, r in some if r.get("score") is not None]
            if known and setting in found and task.protocol == "paper":
                ratios[setting] = float(np.mean(known)) / found[setting]
        found = ratios
    return _sorted(found)


def _row(task: Task, curves: dict[str, Curve]) -> Figure:
    """Five panels with one range, each with the models that it compares."""
    shown: dict[str, list[str]] = {}
    for title, models in PANELS.items():
        here = [model for model in models if model in curves]
        if here and not any(set(here) <= set(other) for other in shown.values()):
            shown[title] = here  # else there is nothing new in it
    width = max(style.COLUMN, WIDE * len(shown) / 5)
    figure, axes = style.panels(1, len(shown), width, 6.2, sharex=True, sharey=True)
    points = [y for c in curves.values() for y in (*_ends(c.mean, c.error), *c.study)]
    low, high = style.limits(points)
    log = style.wide(low, high)
    if log:
        low, high = style.limits(points, log)
    places = _settings_axis(axes[0], task.experiment, curves)
    axes[0].set(ylim=(low, high), ylabel=SCORES.get(task.experiment, ERROR)[1])
    if log:
        axes[0].set_yscale("log")
        style.plain_ticks(axes[0].yaxis, between=True)
    notes: set[str] = set()
    for ax, (title, some) in zip(axes, shown.items(), strict=True):
        ax.set_title(title, loc="left")
        taken: style.Taken = {}
        for model in some:
            notes |= _draw_curve(ax, model, curves[model], places, taken)
    axes[len(axes) // 2].set_xlabel(SETTINGS[task.experiment])
    style.set_title(figure, _title(task))
    used = [model for some in shown.values() for model in some]
    style.add_legend(figure, used, notes, max(3, 2 * len(shown) - 2))
    return figure


def _settings_axis(ax: Axes, experiment: str, curves: dict[str, Curve]) -> Callable[[Array], Array]:
    """Prepare the axis of the settings, and say where a setting goes on it."""
    settings = np.unique(np.concatenate([c.x for c in curves.values()]))
    if experiment == "noise":  # evenly spaced, from none to ten
        ax.set_xticks(np.arange(settings.size), [f"{s:g}" for s in settings])
        return lambda x: np.searchsorted(settings, x)
    if experiment == "model_selection":
        ax.set_xscale("log")
        style.plain_ticks(ax.xaxis, [k for k in RANK_TICKS if k <= settings.max()])
    return lambda x: x


def _draw_curve(
    ax: Axes, model: str, curve: Curve, places: Callable[[Array], Array], taken: style.Taken
) -> set[str]:
    """Draw a model in a panel; return what the legend has to explain."""
    x, study_x = places(curve.x), places(curve.study_x)
    notes = set()
    if style.draw_published(ax, model, study_x, curve.study):
        notes.add("published")
    style.draw_line(ax, model, x, curve.mean, curve.error)
    beyond = style.mark_beyond(ax, model, study_x, curve.study, taken, published=True)
    if style.mark_beyond(ax, model, x, curve.mean, taken) or beyond:
        notes.add("beyond the axis")
    if curve.failed.any():
        style.ring_failed(ax, model, x[curve.failed], curve.mean[curve.failed])
        notes.add("some repeats failed")
    return notes


# --- Cross-validation ---------------------------------------------------------------------------


def _cross_validation(records: Records) -> Drawn:
    """A panel for each dataset, a line for each model."""
    groups = {key[0]: some for key, some in _by(records, "dataset").items()}
    models = list(_models(records))
    n = len(groups)
    cols = n if n <= 4 else -(-n // 2)
    rows = -(-n // cols)
    height = rows * (1.3 + 0.3 * len(models)) + 1.6
    width = max(style.COLUMN, WIDE * min(cols, 4) / 4)
    figure, axes = style.panels(rows, cols, width, height, sharey=True)
    places = {model: _place(model, models) for model in models}
    notes: set[str] = set()
    for ax, (dataset, some) in zip(axes, groups.items(), strict=False):
        ax.set_title(dataset, loc="left")
        notes |= _dots(ax, _models(some), places)
    axes[0].set(ylim=(max(places.values(), default=0) + 0.8, -0.8))
    axes[0].set_yticks(list(places.values()), [style.label(model) for model in places])
    for ax in axes[n:]:
        ax.set_visible(False)
    style.set_title(figure, f"{ERROR[1]}, {_title(records[0][0], dataset=False)}")
    style.add_legend(figure, [], notes, 3)
    yield "cross_validation", figure


def _group(model: str) -> str:
    name = model.partition(" ")[0]
    return "baselines" if name in BASELINES else PRESETS[name].group


def _place(model: str, models: Sequence[str]) -> float:
    """Height of a model's line, with gaps between the groups."""
    before = models[: models.index(model) + 1]
    return len(before) - 1 + 0.6 * (len({_group(other) for other in before}) - 1)


def _dots(ax: Axes, groups: dict[str, Records], places: dict[str, float]) -> set[str]:
    """Means and standard errors of all models on a dataset; return what has to be explained."""
    ours, study, notes = {}, {}, set()
    for model, some in groups.items():
        values = [result["mse"] for _, result in some if result.get("mse") is not None]
        ours[model] = _mean(values)
        published = errors().get(("cross_validation", some[0][0].dataset, "", model, None))
        if published is not None:
            study[model] = (published.mean, np.nan_to_num(published.sd / published.n**0.5))
        if 0 < len(values) < len(some):
            notes.add("some repeats failed")
            style.ring_failed(ax, model, np.array([ours[model][0]]), np.array([places[model]]))
    ax.set_xlim(style.limits(_ends(*zip(*ours.values(), *study.values(), strict=True))))
    for side, shift, open_ in ((ours, 0.0, False), (study, 0.38, True)):
        for model, (mean, error) in side.items():
            colour, y = LOOKS[model][0], places[model] + shift
            ax.errorbar([mean], [y], xerr=[error], fmt="o", color=colour,
                        ms=2.6 if open_ else 3.2, mfc="white" if open_ else colour,
                        mew=0.6 if open_ else 0, elinewidth=0.5 if open_ else 0.9)  # fmt: skip
            if style.mark_beyond(ax, model, np.array([y]), np.array([mean]), {}, published=open_,
                                 across=True):  # fmt: skip
                notes.add("beyond the axis")
    ax.grid(axis="y", visible=False)
    return notes | ({"published"} if study else set())


# --- Convergence and time -----------------------------------------------------------------------


def _convergence(records: Records) -> Drawn:
    """Training error by sweep and by elapsed seconds, one figure for each dataset."""
    for some in _by(records, "dataset").values():
        task = some[0][0]
        runs = {m: [r for _, r in own if r.get("train_mse")] for m, own in _models(some).items()}
        figure, axes = style.panels(1, 2, WIDE, 9.0, sharey=True)
        style.set_title(figure, _title(task) + _failed(m for m, own in runs.items() if not own))
        ours = {model: _mean_run(model, own) for model, own in runs.items() if own}
        study = {m: training()[task.dataset, m] for m in ours if (task.dataset, m) in training()}
        curves = [run[1] for run in (*ours.values(), *study.values())]
        low, high = style.limits((y for c in curves for y in c[len(c) // 2 :]), True, REACH)
        if style.wide(low, high):
            axes[0].set_yscale("log")
            style.plain_ticks(axes[0].yaxis, between=True)
        axes[0].set(xlabel="sweep", ylabel="training MSE (± 1 s.e.)", ylim=(low, high))
        axes[1].set(xlabel="elapsed seconds", xscale="log")
        style.plain_ticks(axes[1].xaxis)
        notes = {"published"} if study else set()
        for ax, column in zip(axes, (0, 2), strict=True):
            taken: style.Taken = {}
            for model, run in ours.items():
                notes |= _trace(ax, model, run, study.get(model), column, taken)
        style.add_legend(figure, ours, notes, 8)
        yield f"convergence_{task.dataset}", figure


def _mean_run(model: str, runs: list[Result]) -> tuple[Array, ...]:
    """Sweeps, means over the runs of training errors and seconds, standard errors of the former."""
    n = min(len(run["train_mse"]) for run in runs)
    mse = np.array([run["train_mse"][:n] for run in runs], dtype=float)
    error = mse.std(axis=0, ddof=1) / len(runs) ** 0.5 if len(runs) > 1 else np.zeros(n)
    seconds = np.full(n, np.nan)
    if model not in AVERAGES:  # which take no sweeps
        seconds = np.mean([run["elapsed"][:n] for run in runs], axis=0)
    return np.arange(1, n + 1), mse.mean(axis=0), seconds, error


def _trace(
    ax: Axes, model: str, run: tuple[Array, ...], study: Any, column: int, taken: style.Taken
) -> set[str]:
    """One model's training error by a column of its runs; a triangle if it ends out of range."""
    place = 0.01 * list(LOOKS).index(model)  # so that markers do not lie on each other
    ends = False
    if study is not None and model not in AVERAGES:
        style.draw_published(ax, model, study[column], study[1], (place, 0.25))
        last = study[column][-1:], study[1][-1:]
        ends = style.mark_beyond(ax, model, *last, taken, published=True)
    if model in AVERAGES:
        ax.axhline(run[1][-1], color=LOOKS[model][0], gid=style.name_of(ax, "ours", model))
    else:
        style.draw_line(ax, model, run[column], run[1], run[3], (place, 0.2))
    ends |= style.mark_beyond(ax, model, run[column][-1:], run[1][-1:], taken)
    return {"beyond the axis"} if ends else set()


def _runtime(records: Records) -> Drawn:
    """Seconds per sweep by rank, a panel for each dataset."""
    groups = {key[0]: some for key, some in _by(records, "dataset").items()}
    width = style.COLUMN if len(groups) == 1 else WIDE
    figure, axes = style.panels(1, len(groups), width, 9.0, sharey=True)
    notes, drawn = set(), set()
    for ax, (dataset, some) in zip(axes, groups.items(), strict=True):
        ax.set(title=dataset, xscale="log", yscale="log", xlabel="K")
        style.plain_ticks(ax.xaxis, sorted({task.rank or 1 for task, _ in some}))
        for model, own in _models(some).items():
            ours = {t.rank or 1: r["seconds"] for t, r in own if r.get("seconds") is not None}
            study = {k: s for (d, m, k), s in runtimes().items() if (d, m) == (dataset, model)}
            if not ours:
                continue
            drawn.add(model)
            if style.draw_published(ax, model, *_sorted(study)):
                notes.add("published")
            style.draw_line(ax, model, *_sorted(ours))
    axes[0].set_ylabel("seconds per sweep")
    style.plain_ticks(axes[0].yaxis, between=True)
    failed = _failed(model for model in _models(records) if model not in drawn)
    style.set_title(figure, _title(records[0][0], dataset=False) + failed)
    style.add_legend(figure, drawn, notes, 4 if len(groups) == 1 else 8)
    yield "runtime", figure


_DRAWERS: dict[str, Callable[[Records], Drawn]] = {
    "convergence": _convergence,
    "runtime": _runtime,
    "cross_validation": _cross_validation,
    **dict.fromkeys(SETTINGS, _rows),
}
