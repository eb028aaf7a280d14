"""Pictures that say whether a fit is right: calibration, residuals, replicated data, noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from bayesmf._errors import DataError, ModelError
from bayesmf.data.cells import cell_arrays
from bayesmf.plots import _drawing as draw
from bayesmf.posterior.residuals import (
    LEVEL,
    Entries,
    QuantileResiduals,
    quantile_residuals,
    replicates,
    statistics,
)
from bayesmf.streams import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = tuple(np.linspace(0.05, 0.95, 19))
_STEPS, _POINTS = 12, 201
_WIDEST, _NARROWEST = 24, 6  # rows or columns whose residuals, or noise, are drawn
_SIDES = {"rows": "rows", "cols": "columns"}


def calibration(fitted: Any, X: Any = None, *, held_out: Any = None, ax: Any = None) -> Axes:
    """The share of cells inside their intervals against the share that should be there.

    Parameters
    ----------
    fitted
        A fitted estimator, a `Posterior` whose data are ``X``, or a `Comparison`, which has judged
        its best model by held-out entries.
    X
        The data, where ``fitted`` does not have them.
    held_out
        Entries (rows, cols, values), by position, that the fit has not seen. By default its own,
        each predicted by the others: draws are weighted by the inverse of its density.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import BayesianMF, plots
    >>> X = np.random.default_rng(0).normal(size=(30, 8))
    >>> mf = BayesianMF("GGG", 1, draws=50, burn_in=50, random_state=0).fit(X)
    >>> plots.calibration(mf).get_xlabel()
    'share that should be inside'
    """
    if hasattr(fitted, "calibration"):  # of a comparison
        levels, shares = np.array(fitted.calibration).T
        seen = False
    else:
        levels, seen = np.array(LEVELS), held_out is None
        shares = _residuals(fitted, X, held_out).coverage(LEVELS)
    one = draw.plain(draw.panel(ax, 4.0, 4.0))
    one.plot([0, 1], [0, 1], color=draw.GREY, linewidth=0.9, linestyle="--")
    one.plot(levels, shares, "o-", color=draw.BLUE, markersize=4)
    one.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    one.text(0.04, 0.94, "intervals too wide", color=draw.GREY, va="top", fontsize=draw.SMALL)
    one.text(0.96, 0.06, "intervals too narrow", color=draw.GREY, ha="right", fontsize=draw.SMALL)
    one.set_xlabel("share that should be inside")
    one.set_ylabel("share that is inside")
    one.set_title(_judged_by(seen), fontsize="medium")
    return one


def pit(
    fitted: Any, X: Any = None, *, held_out: Any = None, bins: int = 20, ax: Any = None
) -> Axes:
    """Shares of the predictive distribution below the entries: flat, if predictions are right.

    High at both ends: intervals are too narrow; high in the middle: too wide. The band is where
    nine of ten bars of a right model lie.

    Parameters
    ----------
    fitted
        A fitted estimator, or a `Posterior` whose data are ``X``.
    X
        The data, where ``fitted`` does not have them.
    held_out
        Entries (rows, cols, values), by position, that the fit has not seen; by default its own,
        each predicted by the others.
    bins
        Number of bars.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import BayesianMF, plots
    >>> X = np.random.default_rng(0).normal(size=(30, 8))
    >>> mf = BayesianMF("GGG", 1, draws=50, burn_in=50, random_state=0).fit(X)
    >>> plots.pit(mf).get_title()
    'of entries given the others'
    """
    shares = _residuals(fitted, X, held_out).pit
    counts, edges = np.histogram(shares, bins, (0, 1))
    one = draw.plain(draw.panel(ax, 5.0, 3.2), "y")
    low, high = stats.binom.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], shares.size, 1 / bins)
    one.axhspan(low * bins / shares.size, high * bins / shares.size, color=draw.FAINT, zorder=0)
    one.stairs(counts * bins / shares.size, edges, fill=True, color=draw.BLUE, alpha=0.55)
    one.axhline(1.0, color=draw.GREY, linewidth=0.9, linestyle="--")
    one.set(xlim=(0, 1), ylim=(0, None))
    one.set_xlabel("share of its prediction below an entry")
    one.set_ylabel("density")
    one.set_title(_judged_by(held_out is None), fontsize="medium")
    return one


def residuals(
    fitted: Any, by: str = "cols", X: Any = None, *, held_out: Any = None, ax: Any = None
) -> Axes:
    """How far entries lie from their predictions, in standard deviations that the model states.

    Parameters
    ----------
    fitted
        A fitted estimator, or a `Posterior` whose data are ``X``.
    by
        "rows" or "cols": spread of the residuals of each, the widest first; it should be 1.
        "fitted": their spread by fitted value. "normal": their quantiles against normal ones.
    X
        The data, where ``fitted`` does not have them.
    held_out
        Entries (rows, cols, values), by position, that the fit has not seen; by default its own,
        each predicted by the others.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import BayesianMF, plots
    >>> X = np.random.default_rng(0).normal(size=(30, 8))
    >>> mf = BayesianMF("GGG", 1, draws=50, burn_in=50, random_state=0).fit(X)
    >>> plots.residuals(mf, "normal").get_ylabel()
    'quantiles of the residuals'
    """
    if by not in (*_SIDES, "fitted", "normal"):
        raise ModelError(f"by must be 'rows', 'cols', 'fitted' or 'normal', got {by!r}.")
    found = _residuals(fitted, X, held_out)
    if by in _SIDES:
        return _by_line(found, draw.fitted_of(fitted, X).X.names(), by, ax)
    one = draw.plain(draw.panel(ax, 4.6, 3.6))
    if by == "fitted":
        at, size, low, high = found.by_size(_STEPS)
        one.vlines(at, low, high, color=draw.BLUE, linewidth=1.6, alpha=0.55)
        one.plot(at, size, "o", color=draw.BLUE, markersize=4)
        one.axhline(1.0, color=draw.GREY, linewidth=0.9, linestyle="--")
        one.set_ylim(0, None)
        one.set_xlabel("fitted value")
        one.set_ylabel(f"spread, {100 * LEVEL:g} % intervals")
        return one
    normal, own = found.quantiles(_POINTS)
    one.plot(normal, normal, color=draw.GREY, linewidth=0.9, linestyle="--")
    one.plot(normal, own, "o", color=draw.BLUE, markersize=3)
    one.set_xlabel("normal quantiles")
    one.set_ylabel("quantiles of the residuals")
    return one


def _by_line(
    found: QuantileResiduals, names: tuple[list[str], list[str]], by: str, ax: Any
) -> Axes:
    k = draw.side_of(by)
    at, *spread = found.by_line(k, len(names[k]))
    if not at.size:
        raise DataError(f"None of the {_SIDES[by]} has enough entries to judge its residuals.")
    order = np.argsort(-spread[0], kind="stable")
    order = order[draw.ends(order.size, _WIDEST, _NARROWEST)]
    named = [names[k][at[i]] for i in order]
    one = draw.lines(ax, named)
    draw.dots(one, named, *(part[order] for part in spread))
    one.axvline(1.0, color=draw.GREY, linewidth=0.9, linestyle="--")
    one.set_xlabel(f"spread of the residuals, {100 * LEVEL:g} % intervals")
    _title_ends(one, at.size, _SIDES[by], "widest", "narrowest")
    return one


def _title_ends(one: Axes, total: int, what: str, first: str, last: str) -> None:
    """Say which ones are drawn, if not all."""
    if total > _WIDEST + _NARROWEST:
        said = f"{_WIDEST} {first}, {_NARROWEST} {last} of {total:,} {what}"
        one.set_title(said, fontsize="small")


def _residuals(fitted: Any, X: Any, held_out: Any) -> QuantileResiduals:
    found = draw.fitted_of(fitted, X)
    entries = None
    if held_out is not None:
        try:
            rows, cols, values = held_out
        except (TypeError, ValueError):
            raise DataError("held_out must be three arrays, (rows, cols, values).") from None
        cells, values = cell_arrays((rows, cols), found.X.shape), np.asarray(values, dtype=float)
        if values.shape != cells[0].shape:
            raise DataError(f"held_out: {cells[0].size} cells have {values.size} values.")
        entries = Entries(cells, values, None)
    residuals = quantile_residuals(found, entries)
    if residuals is None:
        raise DataError("All entries are intervals, so that there are no residuals.")
    return residuals


def _judged_by(seen: bool) -> str:
    return "of entries given the others" if seen else "of held-out entries"


def predictive_checks(fitted: Any, X: Any = None, *, ax: Any = None) -> draw.Panels:
    """Would the model make such data? The data beside data that it makes in the same cells.

    Parameters
    ----------
    fitted
        A fitted estimator, or a `Posterior` whose data are ``X``.
    X
        The data, where ``fitted`` does not have them.
    ax
        As many Axes as panels; a new figure by default.

    Returns
    -------
    array of Axes
        The distribution of the values; then, for each statistic, its distribution over replicated
        data and, as a line, its value in the data. The line is red where it lies outside 98 % of
        them.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import BayesianMF, plots
    >>> X = np.random.default_rng(0).normal(size=(30, 8))
    >>> mf = BayesianMF("GGG", 1, draws=50, burn_in=50, random_state=0).fit(X)
    >>> [ax.get_title() for ax in plots.predictive_checks(mf)][-2:]
    ['standard deviation', 'skewness']
    """
    values, replicated = replicates(draw.fitted_of(fitted, X))
    found = statistics(values, replicated)
    if not found:
        raise DataError("There are too few exact entries to check anything.")
    rows = -(-(len(found) + 1) // 3)
    axes = draw.panels(ax, len(found) + 1, 8.0, 2.0 * rows + 0.4, across=3)
    _distributions(axes[0], values, replicated)
    for one, (name, value, drawn) in zip(axes[1:], found, strict=True):
        low, high = np.quantile(drawn, [0.01, 0.99])
        if np.ptp(drawn) > 0:
            one.hist(drawn, 20, color=draw.BLUE, alpha=0.45)
        else:
            one.axvline(drawn[0], color=draw.BLUE, alpha=0.45, linewidth=4)
        holds = low <= value <= high
        one.axvline(value, color="black" if holds else "#c00000", linewidth=1.6)
        one.set_title(name, fontsize="small")
        one.locator_params(axis="x", nbins=4)
        one.set_yticks([])
        draw.plain(one, None)
    return axes


def _distributions(one: Axes, values: Array, replicated: Array) -> None:
    """The distribution of the data, and a band that nine of ten replicated ones fill."""
    low, high = np.quantile(values, [0.002, 0.998])
    pad = 0.15 * (high - low) or 0.5
    whole = bool((values % 1 == 0).all()) and high - low <= 40
    edges: Any = np.linspace(low - pad, high + pad, 31)
    if whole:
        edges = np.arange(np.floor(low) - 0.5, np.ceil(high) + 1.5)
    counts = np.array([np.histogram(x, edges)[0] for x in replicated])
    band = np.quantile(counts, [0.05, 0.95], axis=0)
    one.stairs(band[1], edges, baseline=band[0], fill=True, color=draw.BLUE, alpha=0.45)
    one.stairs(np.histogram(values, edges)[0], edges, color="black", linewidth=1.2)
    one.set_title("values: data, and 90 % of replicated", fontsize="small")
    one.set_yticks([])
    draw.plain(one, None)


def noise(
    fitted: Any, side: str | None = None, X: Any = None, *, level: float = 0.9, ax: Any = None
) -> Axes:
    """The noise of columns or rows, the noisiest first, in the units of the data.

    Parameters
    ----------
    fitted
        A fitted estimator, or a `Posterior` whose data are ``X``.
    side
        "rows" or "cols"; by default the side whose noise differs.
    X
        The data, where ``fitted`` does not have them.
    level
        Probability of the central intervals.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import BayesianMF, plots
    >>> X = np.random.default_rng(0).normal(size=(30, 8)) * np.arange(1, 9)
    >>> mf = BayesianMF("GGG", 1, noise="cols", draws=50, burn_in=50, random_state=0).fit(X)
    >>> plots.noise(mf).get_yticklabels()[0].get_text()
    '7'
    """
    found = draw.fitted_of(fitted, X)
    overall, *sides = found.noise(level)
    if side is None:
        side = "cols" if sides[1] is not None or sides[0] is None else "rows"
    k = draw.side_of(side)
    of = sides[k]
    if of is None:
        raise ModelError(
            f"All {_SIDES[side]} have the same noise, {float(overall.mean):.4g}; "
            f"noise={side!r} gives each its own."
        )
    names = found.X.names()[k]
    order = np.argsort(-of.mean, kind="stable")
    order = order[draw.ends(order.size, _WIDEST, _NARROWEST)]
    named = [names[i] for i in order]
    one = draw.lines(ax, named)
    draw.dots(one, named, *(part[order] for part in of))
    one.axvline(float(np.median(of.mean)), color=draw.GREY, linewidth=0.9, linestyle="--")
    what = "noise" if found.X.errors is None else "noise over the known errors"
    one.set_xlabel(f"standard deviation of the {what}, {100 * level:g} % intervals")
    if of.mean.max() > 30 * of.mean.min() > 0:
        one.set_xscale("log")
    else:
        one.set_xlim(0, None)
    _title_ends(one, of.mean.size, _SIDES[side], "noisiest", "most precise")
    return one
