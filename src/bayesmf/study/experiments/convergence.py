"""Convergence: training error after every sweep, and the seconds until then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bayesmf.data.observed import ObservedMatrix
from bayesmf.streams import Array
from bayesmf.study.cells import Cell, grouped
from bayesmf.study.experiments.base import Experiment
from bayesmf.study.figures import style
from bayesmf.study.fitting import seed_of, trace
from bayesmf.study.published import training
from bayesmf.study.tasks import AVERAGES, Result, Task, models

RANK, SWEEPS = 20, 200
REACH = 4.5  # of the range of training errors, as `style.FENCE`
_CHANGES = {"GTTN": {"mu_mu": 0.1}}
REPEATS = {"quick": 1, "full": 10}


def _expand(protocol: str, dataset: str, budget: str) -> Iterator[Task]:
    for model in models(protocol):
        repeats, rank = (1, None) if model in AVERAGES else (REPEATS[budget], RANK)
        for repeat in range(repeats):
            yield Task("convergence", protocol, dataset, model, repeat, rank=rank)


def _run(task: Task, X: ObservedMatrix) -> Result:
    start = {"init": "prior", "scale_move": False} if task.paper else {}
    fitted = trace(task, X, SWEEPS, seed_of("chain", task.key), _CHANGES, **start)
    errors = np.broadcast_to(np.ravel(fitted.train_mse), (SWEEPS,))  # averages have one alone
    elapsed = np.cumsum(fitted.seconds)
    return {"train_mse": _rounded(errors, 7), "elapsed": _rounded(elapsed, 5)}


def _rounded(values: Array, digits: int) -> list[float]:
    """So many digits of each: the records of all curves are as large as those of all else."""
    return [float(f"{value:.{digits}g}") for value in values]


def _draw(words: str, cells: Sequence[Cell]) -> style.Drawn:
    """Training error by sweep and by elapsed seconds, one figure for each dataset."""
    for dataset, some in grouped(cells, "dataset").items():
        runs = {c.model: [r for r in c.results if r.get("train_mse")] for c in some}
        ours = {model: _curves(model, dataset, own) for model, own in runs.items() if own}
        figure, axes = style.panels(2, 2, style.WIDE, 9.0, sharey=True)
        style.set_title(figure, words, some[0], failed=[m for m in runs if m not in ours])
        errors = [e for curve, _ in ours.values() for e in (curve.mean, curve.study)]
        low, high = style.limits([y for e in errors for y in e[len(e) // 2 :]], True, REACH)
        if style.wide(low, high):
            axes[0].set_yscale("log")
            style.plain_ticks(axes[0].yaxis, between=True)
        axes[0].set(xlabel="sweep", ylabel="training MSE (± 1 s.e.)", ylim=(low, high))
        axes[1].set(xlabel="elapsed seconds", xscale="log")
        style.plain_ticks(axes[1].xaxis)
        notes: set[str] = set()
        for k, ax in enumerate(axes):
            taken: style.Taken = {}
            for place, model in enumerate(style.LOOKS):  # markers do not lie on each other
                if model in ours:
                    notes |= _draw_run(ax, model, ours[model][k], taken, 0.01 * place)
        style.add_legend(figure, ours, notes, 8)
        yield f"convergence_{dataset}", figure


def _curves(model: str, dataset: str, runs: list[Result]) -> tuple[style.Curve, style.Curve]:
    """Mean training errors over the runs, by sweep and by mean seconds."""
    n = min(len(run["train_mse"]) for run in runs)
    mse = np.array([run["train_mse"][:n] for run in runs], dtype=float)
    error = mse.std(axis=0, ddof=1) / len(runs) ** 0.5 if len(runs) > 1 else np.zeros(n)
    average = model in AVERAGES  # which take no sweeps
    seconds = np.nan if average else np.mean([run["elapsed"][:n] for run in runs], axis=0)
    sweeps, study, elapsed = training().get((dataset, model), np.empty((3, 0)))
    about = mse.mean(axis=0), error, np.zeros(n, dtype=bool)
    by_sweep = style.Curve(np.arange(1, n + 1), *about, sweeps, study)
    return by_sweep, by_sweep._replace(x=np.broadcast_to(seconds, n), study_x=elapsed)


def _draw_run(
    ax: style.Axes, model: str, curve: style.Curve, taken: style.Taken, offset: float
) -> set[str]:
    """Draw a model, an average as a straight line; return what has to be explained."""
    if model not in AVERAGES:
        return style.draw_curve(ax, model, curve, taken, offset)
    ax.axhline(curve.mean[-1], color=style.LOOKS[model][0], gid=style.name_of(ax, "ours", model))
    beyond = style.mark_beyond(ax, model, curve.x[-1:], curve.mean[-1:], taken)
    return {"beyond the axis"} if beyond else set()


EXPERIMENT = Experiment(
    "convergence", "convergence", ("GDSC", "MovieLens_100K"), _expand, _run, _draw,
    value=lambda result: result["train_mse"][-1] if "train_mse" in result else None,
    fits=lambda task: [(task.rank or 1, SWEEPS)],
)  # fmt: skip
