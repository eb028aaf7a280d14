"""Pictures of the matrix and of single cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmf._errors import DataError, nearest
from bayesmf.data.observed import ObservedMatrix
from bayesmf.plots import _drawing as draw
from bayesmf.posterior.fitted import Fitted
from bayesmf.posterior.residuals import exact_entries, surprising
from bayesmf.streams import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Cells = tuple[Array, Array]


def matrix(fitted: Any, X: Any = None, *, most: int = 400, ax: Any = None) -> draw.Panels:
    """The data, the completed matrix and the standard deviations of its cells, side by side.

    Parameters
    ----------
    fitted
        A fitted estimator, or a `Posterior` whose data are ``X``.
    X
        The data, where ``fitted`` does not have them.
    most
        Rows and columns that are drawn at most, evenly spread over the matrix.
    ax
        Three Axes to draw on; a new figure by default.

    Returns
    -------
    array of Axes
        Observed values, with grey gaps; observed and predicted values; standard deviations of a
        new observation.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import BayesianMF, plots
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> mf = BayesianMF("GGG", 2, draws=50, burn_in=50, random_state=0).fit(X)
    >>> [ax.get_title() for ax in plots.matrix(mf)]
    ['observed', 'completed', 'standard deviation']
    """
    found = draw.fitted_of(fitted, X)
    rows, cols = (draw.spread(n, most) for n in found.X.shape)
    cells = np.repeat(rows, cols.size), np.tile(cols, rows.size)
    mean, std = found.predictive().quantities(cells, True, None, True)
    observed = found.X.to_array()[np.ix_(rows, cols)]
    completed = np.where(np.isnan(observed), mean.reshape(observed.shape), observed)
    names = [found.X.names()[0][i] for i in rows], [found.X.names()[1][j] for j in cols]
    upright = max(min(24, len(name)) for name in names[1])
    axes = draw.panels(ax, 3, 10.5, 3.8 + 0.06 * upright)
    low, high = draw.colour_range(completed)
    image = None
    for one, title, values in (
        (axes[0], "observed", observed), (axes[1], "completed", completed),
    ):  # fmt: skip
        image = draw.heat_map(one, values, cmap="viridis", vmin=low, vmax=high)
        one.set_title(title)
    assert image is not None
    draw.colour_bar(axes[1], image, "value")
    low, high = draw.colour_range(std)
    spread = draw.heat_map(
        axes[2], std.reshape(observed.shape), cmap="magma_r", vmin=low, vmax=high
    )
    axes[2].set_title("standard deviation")
    draw.colour_bar(axes[2], spread, "of a new observation")
    for one in axes:
        draw.some_ticks(one, "x", names[1])
        draw.some_ticks(one, "y", names[0])
        one.yaxis.set_tick_params(labelleft=one is axes[0])
        one.set_xlabel(draw.counted(cols.size, found.X.shape[1], "columns"))
    axes[0].set_ylabel(draw.counted(rows.size, found.X.shape[0], "rows"))
    return axes


def cells(
    fitted: Any, rows: Any = None, cols: Any = None, X: Any = None, *, level: float = 0.9,
    most: int = 30, ax: Any = None,
) -> Axes:  # fmt: skip
    """Predictions of cells with their intervals, beside what was observed.

    Parameters
    ----------
    fitted
        A fitted estimator, or a `Posterior` whose data are ``X``.
    rows, cols
        Labels or positions of the cells: one for each, or one for all. All cells of a row, or of a
        column, if the other is left out; if both are, the observed cells that lie farthest outside
        their intervals.
    X
        The data, where ``fitted`` does not have them.
    level
        Probability of the central intervals, which are those of a new observation.
    most
        Cells that are drawn at most.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import BayesianMF, ObservedMatrix, plots
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 3))
    >>> X = ObservedMatrix.of(X, col_labels=["height", "weight", "age"])
    >>> mf = BayesianMF("GGG", 2, draws=50, burn_in=50, random_state=0).fit(X)
    >>> ax = plots.cells(mf, rows=4)
    >>> sorted(label.get_text() for label in ax.get_yticklabels())
    ['age', 'height', 'weight']
    """
    found = draw.fitted_of(fitted, X)
    tails = [(1 - level) / 2, (1 + level) / 2]
    predictive = found.predictive()
    if rows is None and cols is None:
        where, heading = _surprises(found, tails), "farthest from their predictions"
    else:
        where, heading = _cells(found.X, rows, cols)
    mean, (low, high) = predictive.quantities(where, False, tails, True)
    order = np.arange(mean.size)
    if (rows is None) != (cols is None):
        order = np.argsort(-mean, kind="stable")
    order = order[draw.spread(order.size, most)]
    where = where[0][order], where[1][order]
    names = _names(found.X, where, rows, cols)
    one = draw.lines(ax, names)
    draw.dots(one, names, mean[order], low[order], high[order], label="prediction")
    known = found.X.to_array()[where]
    one.plot(known, np.arange(known.size), "D", color=draw.ORANGE, markersize=4, mfc="none",
             label="observed")  # fmt: skip
    one.set_xlabel(f"value, with {100 * level:g} % intervals")
    heading = draw.counted(order.size, mean.size, heading)
    one.set_title(draw.plain_text(heading), fontsize="medium")
    one.legend(frameon=False, fontsize=draw.SMALL)
    return one


def _surprises(found: Fitted, tails: list[float]) -> Cells:
    """Observed cells outside their intervals, the farthest first."""
    entries = exact_entries(found.X)
    mean, std, (low, high) = found.predictive().quantities(entries.cells, True, tails, True)
    order = surprising(entries.values, mean, std, low, high)
    if not order.size:
        raise DataError("No observed cell lies outside its interval; name rows or cols to see.")
    return entries.cells[0][order], entries.cells[1][order]


def _cells(X: ObservedMatrix, rows: Any, cols: Any) -> tuple[Cells, str]:
    """Positions of cells by label or position, and what they are called together."""
    sides = zip((rows, cols), (X.row_labels, X.col_labels), X.shape, ("row", "column"), strict=True)
    i, j = (_positions(of, labels, n, side) for of, labels, n, side in sides)
    try:
        i, j = np.broadcast_arrays(i, j)
    except ValueError:
        raise DataError(f"cells: {i.size} rows and {j.size} cols must be of one length.") from None
    if cols is None and np.ndim(rows) == 0:
        return (i, j), f"row {draw.short(rows)}"
    if rows is None and np.ndim(cols) == 0:
        return (i, j), f"column {draw.short(cols)}"
    return (i, j), "cells"


def _positions(wanted: Any, labels: Any, n: int, side: str) -> Array:
    """Positions of labels, or positions as they are; all of them where nothing is named."""
    if wanted is None:
        return np.arange(n)
    asked = [wanted] if isinstance(wanted, str) or np.ndim(wanted) == 0 else list(wanted)
    known = {} if labels is None else {label: k for k, label in enumerate(labels)}
    found = []
    for one in asked:
        if one in known:
            found.append(known[one])
        elif isinstance(one, (int, np.integer)) and 0 <= one < n:
            found.append(int(one))
        else:
            hint = nearest(str(one), map(str, known))
            raise DataError(f"There is no {side} {one!r} in the matrix.{hint}")
    return np.array(found)


def _names(X: ObservedMatrix, where: Cells, rows: Any, cols: Any) -> Sequence[str]:
    """Names of cells: without that of the row or column that all share."""
    i, j = ([names[k] for k in at] for names, at in zip(X.names(), where, strict=True))
    if cols is None and rows is not None and np.ndim(rows) == 0:
        return j
    if rows is None and cols is not None and np.ndim(cols) == 0:
        return i
    return draw.cell_names(i, j)
