"""Pictures of the factors, after alignment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmf._errors import ModelError
from bayesmf.plots import _drawing as draw
from bayesmf.posterior.alignment import largest, signal_shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORDS = {"rows": "rows", "cols": "columns"}


def factors(
    fitted: Any, side: str = "cols", *, level: float = 0.9, most: int = 40, ax: Any = None
) -> Axes:
    """The factors of one side as a map: posterior means after alignment.

    A dot marks a loading whose interval does not hold zero, so that its sign is certain.

    Parameters
    ----------
    fitted
        A fitted estimator or a `Posterior` with draws of U and V.
    side
        "rows" or "cols".
    level
        Probability of the central intervals.
    most
        Rows or columns that are drawn at most: those with the largest loadings, in their order.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import plots, sample
    >>> X = np.random.default_rng(0).normal(size=(20, 6))
    >>> posterior = sample(X, "GGG", 2, draws=50, keep="all", random_state=0)
    >>> plots.factors(posterior).get_xlabel()
    'component'
    """
    posterior = draw.posterior_of(fitted)
    k, names = draw.side_of(side), draw.names_of(posterior)
    draws = posterior.align()[k]
    mean = draws.mean(axis=0)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    size = np.abs(mean) / np.maximum(np.abs(mean).max(axis=0), 1e-300)
    chosen = np.sort(largest(size.max(axis=1), most))
    signed = not posterior.model.nonnegative[k]
    reach = float(np.abs(mean).max()) or 1.0
    named = [names[k][i] for i in chosen]
    one = draw.lines(ax, named, max(3.0, 0.35 * mean.shape[1] + 1.7))
    image = draw.heat_map(
        one, mean[chosen], cmap="RdBu_r" if signed else "Blues",
        vmin=-reach if signed else 0.0, vmax=reach,
    )  # fmt: skip
    draw.name_ticks(one, "y", named)
    draw.name_ticks(one, "x", range(mean.shape[1]))
    if signed:
        certain = (low[chosen] > 0) | (high[chosen] < 0)
        y, x = np.nonzero(certain)
        dark = np.abs(mean[chosen][y, x]) > 0.6 * reach
        one.scatter(x, y, s=6, c=np.where(dark, "white", "black"), linewidths=0)
        one.set_title(f"dots: {100 * level:g} % intervals without 0", fontsize="small", loc="left")
    one.set_xlabel("component")
    one.set_ylabel(draw.counted(chosen.size, len(mean), WORDS[side]))
    draw.colour_bar(one, image, "loading")
    return one


def loadings(
    fitted: Any, component: int = 0, side: str = "cols", *, level: float = 0.9, most: int = 12,
    ax: Any = None,
) -> Axes:  # fmt: skip
    """The largest loadings of one factor, with intervals.

    Parameters
    ----------
    fitted
        A fitted estimator or a `Posterior` with draws of U and V.
    component
        Number of the factor, from 0, as in ``components_``.
    side
        "rows" or "cols".
    level
        Probability of the central intervals.
    most
        Loadings that are drawn at most.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import plots, sample
    >>> X = np.random.default_rng(0).normal(size=(20, 6))
    >>> posterior = sample(X, "GGG", 2, draws=50, keep="all", random_state=0)
    >>> len(plots.loadings(posterior, 1).get_yticklabels())
    6
    """
    posterior = draw.posterior_of(fitted)
    if not 0 <= component < posterior.n_components:
        raise ModelError(f"component must lie between 0 and {posterior.n_components - 1}, "
                         f"got {component!r}.")  # fmt: skip
    k, names = draw.side_of(side), draw.names_of(posterior)
    draws = posterior.align()[k][:, :, component]
    mean = draws.mean(axis=0)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    chosen = largest(mean, most)
    named = [names[k][i] for i in chosen]
    one = draw.lines(ax, named)
    draw.dots(one, named, mean[chosen], low[chosen], high[chosen])
    one.axvline(0.0, color=draw.GREY, linewidth=0.8)
    one.set_xlabel(f"loading, with {100 * level:g} % intervals")
    what = draw.counted(chosen.size, len(mean), WORDS[side])
    one.set_title(f"component {component}: {what}", fontsize="medium")
    return one


def variance(fitted: Any, *, level: float = 0.9, ax: Any = None) -> Axes:
    """The share of each factor in the signal, with intervals.

    The signal of a factor is the sum of squares of its part of U V^T.

    Parameters
    ----------
    fitted
        A fitted estimator or a `Posterior` with draws of U and V.
    level
        Probability of the central intervals.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import plots, sample
    >>> X = np.random.default_rng(0).normal(size=(20, 6))
    >>> posterior = sample(X, "GGG", 3, draws=50, keep="all", random_state=0)
    >>> len(plots.variance(posterior).patches)
    3
    """
    shares = signal_shares(*draw.posterior_of(fitted).align())
    mean = shares.mean(axis=0)
    low, high = np.quantile(shares, [(1 - level) / 2, (1 + level) / 2], axis=0)
    one = draw.plain(draw.panel(ax, max(3.5, 0.3 * mean.size + 1.5), 3.0), "y")
    at = np.arange(mean.size)
    one.bar(at, mean, color=draw.BLUE, alpha=0.55, width=0.7)
    one.vlines(at, low, high, color=draw.BLUE, linewidth=1.6)
    draw.name_ticks(one, "x", at.tolist())
    one.set_ylim(0, None)
    one.yaxis.set_major_formatter("{x:.0%}")
    one.set_xlabel("component")
    one.set_ylabel(f"share of the signal, {100 * level:g} % intervals")
    return one
