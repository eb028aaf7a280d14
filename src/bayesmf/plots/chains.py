"""Pictures of chains: of what is identifiable, since factors rotate and change places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from bayesmf._errors import ModelError, nearest
from bayesmf.plots import _drawing as draw
from bayesmf.posterior.diagnostics import diagnose, identifiable, knows_cells, some_cells
from bayesmf.streams import Array

_BINS = 20


def traces(
    fitted: Any, quantities: Sequence[str] | None = None, *, cells: int = 3, most: int = 8,
    ax: Any = None,
) -> draw.Panels:  # fmt: skip
    """Kept draws in the order in which they were made, each chain in its colour.

    Parameters
    ----------
    fitted
        A fitted estimator or a `Posterior`.
    quantities
        Names of what is drawn, as `summary` has them, such as "training error"; by default all
        that is identifiable.
    cells
        Predictions of so many cells are drawn too; they are in the units of the model.
    most
        Panels at most.
    ax
        As many Axes as panels; a new figure by default.

    Returns
    -------
    array of Axes
        One for each quantity; its title has R-hat and the effective number of draws.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import plots, sample
    >>> X = np.random.default_rng(0).normal(size=(20, 6))
    >>> posterior = sample(X, "GGG", 2, draws=50, chains=2, random_state=0)
    >>> [ax.get_title("left").partition(":")[0] for ax in plots.traces(posterior)][:2]
    ['training error', 'noise precision']
    """
    found = _series(fitted, quantities, cells, most)
    axes = draw.panels(ax, len(found), 7.0, 1.25 * len(found) + 0.5, across=1, sharex=True)
    for one, (name, draws) in zip(axes, found.items(), strict=True):
        about = diagnose(name, draws)
        for chain, colour in zip(draws, _colours(len(draws)), strict=True):
            one.plot(chain, color=colour, linewidth=0.7, alpha=0.8)
        told = f"R-hat {about.rhat:.2f}, effective draws {about.ess_bulk:.0f}"
        one.set_title(f"{draw.plain_text(name)}: {told}", fontsize="small", loc="left")
        draw.plain(one, None)
    axes[-1].set_xlabel("draw")
    return axes


def rank_histograms(
    fitted: Any, quantities: Sequence[str] | None = None, *, cells: int = 3, most: int = 8,
    ax: Any = None,
) -> draw.Panels:  # fmt: skip
    """How the draws of each chain rank among those of all chains: evenly, if chains agree.

    Parameters
    ----------
    fitted
        A fitted estimator or a `Posterior`, of two chains or more.
    quantities
        Names of what is drawn, as `summary` has them; by default all that is identifiable.
    cells
        Predictions of so many cells are drawn too.
    most
        Panels at most.
    ax
        As many Axes as panels; a new figure by default.

    Returns
    -------
    array of Axes
        One for each quantity: a line for each chain, and the even share as a dashed line.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import plots, sample
    >>> X = np.random.default_rng(0).normal(size=(20, 6))
    >>> posterior = sample(X, "GGG", 2, draws=50, chains=2, random_state=0)
    >>> plots.rank_histograms(posterior, ["training error", "noise precision"]).size
    2
    """
    found = _series(fitted, quantities, cells, most)
    if len(next(iter(found.values()))) < 2:
        raise ModelError("Ranks compare chains, and this run has one; use chains=2 or more.")
    rows = -(-len(found) // 2)
    axes = draw.panels(ax, len(found), 7.0, 1.6 * rows + 0.6, across=2, sharex=True)
    for one, (name, draws) in zip(axes, found.items(), strict=True):
        ranks = stats.rankdata(draws).reshape(draws.shape) / draws.size
        bins = min(_BINS, max(2, draws.shape[1] // 10))
        for chain, colour in zip(ranks, _colours(len(draws)), strict=True):
            counts, edges = np.histogram(chain, bins, (0, 1))
            one.stairs(counts, edges, color=colour, linewidth=1.3, baseline=None)
        one.axhline(draws.shape[1] / bins, color=draw.GREY, linewidth=0.8, linestyle="--")
        one.set_title(draw.plain_text(name), fontsize="small", loc="left")
        one.set_ylim(0, None)
        one.set_yticks([])
        draw.plain(one, None)
    for one in axes[-2:]:
        one.set_xlabel("rank among the draws of all chains")
        one.xaxis.set_tick_params(labelbottom=True)
    return axes


def _series(
    fitted: Any, quantities: Sequence[str] | None, cells: int, most: int
) -> dict[str, Array]:
    """Draws (chains, draws) by name."""
    posterior = draw.posterior_of(fitted)
    known = identifiable(posterior)
    if quantities is None:
        names = draw.names_of(posterior)
        found = some_cells(posterior, cells) if cells and knows_cells(posterior) else []
        first = dict(list(known.items())[: max(1, most - len(found))])
        named = draw.cell_names(
            [names[0][i] for i, _, _ in found], [names[1][j] for _, j, _ in found]
        )
        return first | {name: draws for name, (_, _, draws) in zip(named, found, strict=True)}
    wanted = [quantities] if isinstance(quantities, str) else list(quantities)
    for name in wanted:
        if name not in known:
            raise ModelError(
                f"quantities: there is no {name!r}; there are {', '.join(known)}."
                f"{nearest(name, known)}"
            )
    return {name: known[name] for name in wanted}


def _colours(n: int) -> list[str]:
    return [draw.COLOURS[k % len(draw.COLOURS)] for k in range(n)]
