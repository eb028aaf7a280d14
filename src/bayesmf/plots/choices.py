"""Pictures of choices: models of a comparison, and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmf._errors import ModelError
from bayesmf.plots import _drawing as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "osD^vPX"
Curve = Sequence[tuple[int, float, float]]  # rank, error, standard error


def models(comparison: Any, *, most: int = 30, ax: Any = None) -> Axes:
    """Held-out errors of the models of a comparison with standard errors, the best on top.

    Filled dots are the recommended model and those that a test does not tell from it; hollow grey
    ones are baselines.

    Parameters
    ----------
    comparison
        A `Comparison`.
    most
        Models that are drawn at most.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import compare, plots
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)) + rng.normal(0, 0.1, (30, 20))
    >>> found = compare(X, ["GGG", "row-average"], [1, 2], budget="quick")
    >>> [label.get_text() for label in plots.models(found).get_yticklabels()]
    ['GGG, rank 2', 'row-average']
    """
    if not hasattr(comparison, "standings"):
        raise ModelError("models draws what compare returns; give it a Comparison.")
    known = [s for s in comparison.standings if np.isfinite(s.mse)]
    shown = known[:most]
    names = [
        s.model if "baseline" in s.status and s.model != "NMF" else f"{s.model}, rank {s.rank}"
        for s in shown
    ]
    one = draw.lines(ax, names)
    errors = np.array([s.mse for s in shown])
    spread = np.nan_to_num([s.mse_error for s in shown])
    at = np.arange(len(shown))
    one.hlines(at, errors - spread, errors + spread, color=draw.BLUE, linewidth=1.6, alpha=0.55)
    for y, s in zip(at, shown, strict=True):
        best, other = s.status in ("recommended", "tie"), "baseline" in s.status
        one.plot(s.mse, y, "o", color=draw.GREY if other else draw.BLUE, markersize=5,
                 fillstyle="full" if best else "none")  # fmt: skip
    one.set_ylim(len(shown) - 0.4, -0.6)
    draw.name_ticks(one, "y", names)
    draw.plain(one, "x")
    if errors.min() > 0 and errors.max() > 20 * errors.min():
        one.set_xscale("log")
    one.set_xlabel("held-out mean squared error; filled: best or tied")
    if len(shown) < len(known):
        one.set_title(draw.counted(len(shown), len(known), "models"), fontsize="medium")
    return one


def rank_curves(found: Any, *, most: int = 6, ax: Any = None) -> Axes:
    """Errors of held-out entries by rank, of the models of a comparison or of an estimator.

    Parameters
    ----------
    found
        A `Comparison`, or an estimator that has chosen its rank (``n_components="auto"``, "cv", or
        several numbers).
    most
        Models that are drawn at most, those with the smallest errors.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import BayesianMF, plots
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)) + rng.normal(0, 0.1, (30, 20))
    >>> mf = BayesianMF("GGG", [1, 2, 3], draws=50, burn_in=50, random_state=0).fit(X)
    >>> plots.rank_curves(mf).get_xlabel()
    'rank'
    """
    curves = _curves(found)
    best = sorted(curves, key=lambda name: min(error for _, error, _ in curves[name]))[:most]
    one = draw.plain(draw.panel(ax, 5.0, 3.6), "y")
    ranks = sorted({rank for name in best for rank, _, _ in curves[name]})
    for k, name in enumerate(best):
        rank, error, spread = np.array(curves[name], dtype=float).T
        colour = draw.COLOURS[k % len(draw.COLOURS)]
        one.plot(rank, error, color=colour, marker=_MARKERS[k % len(_MARKERS)], markersize=4,
                 label=draw.plain_text(draw.short(name)))  # fmt: skip
        spread = np.nan_to_num(spread)
        one.fill_between(rank, error - spread, error + spread, color=colour, alpha=0.15, lw=0)
    if len(ranks) > 1 and ranks[-1] > 8 * ranks[0]:
        one.set_xscale("log")
    named = _apart(ranks, one.get_xscale() == "log")
    one.set_xticks(named, [str(rank) for rank in named])
    one.set_xticks([rank for rank in ranks if rank not in named], [], minor=True)
    one.set_xlabel("rank")
    one.set_ylabel("held-out mean squared error")
    if len(best) > 1:
        one.legend(frameon=False, fontsize=draw.SMALL)
    if len(best) < len(curves):
        one.set_title(draw.counted(len(best), len(curves), "models"), fontsize="medium")
    return one


def _apart(ranks: list[int], log: bool) -> list[int]:
    """The first rank, and those that are far enough from the one before to be named."""
    at = np.log(ranks) if log else np.array(ranks, dtype=float)
    kept = [0]
    for k in range(1, len(ranks)):
        if at[k] - at[kept[-1]] > 0.06 * (at[-1] - at[0]):
            kept.append(k)
    return [ranks[k] for k in kept]


def _curves(found: Any) -> dict[str, Curve]:
    """Rank, error and standard error, by model."""
    if callable(getattr(found, "rank_curves", None)):
        curves = found.rank_curves()
    else:
        errors = getattr(found, "cv_errors_", None) or getattr(found, "rank_errors_", None) or {}
        curves = {"": [(rank, e, 0.0) for rank, e in sorted(errors.items())]} if errors else {}
    if not curves:
        raise ModelError(
            "No ranks were compared here; give compare several ranks, or an estimator "
            "n_components='auto' or 'cv'."
        )
    return curves
