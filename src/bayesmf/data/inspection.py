"""A first look at the data: what a statistician would ask about before any model is fitted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesmf.data.observed import ObservedMatrix, View

CAPPED = 0.1  # of the values at the very end of their range
HEAPED = 0.05  # of them, from which on it is worth asking
RATINGS = 10  # different values, up to which a heap at an end is nothing special
UNIT = 0.1, 300.0  # standard deviations that the default priors suit
FEW = 3  # entries below which a row tells little


class Heap(NamedTuple):
    """Many values at the very end of their range."""

    side: str  # "upper" or "lower"
    end: float
    share: float

    def __str__(self) -> str:
        name = "largest" if self.side == "upper" else "smallest"
        return f"{self.share:.1%} of the values are exactly {self.end:g}, the {name} one"


def heaps(X: ObservedMatrix, least: float = HEAPED) -> list[Heap]:
    """Ends of the range at which more than this share of the values lies; none of ratings.

    Examples
    --------
    >>> import numpy as np
    >>> heaps(ObservedMatrix.of(np.arange(100.0).clip(None, 90).reshape(10, 10)))
    [Heap(side='upper', end=90.0, share=0.1)]
    """
    values = X.rows.values
    found = []
    for end, side in ((values.max(), "upper"), (values.min(), "lower")):
        share = float(np.mean(values == end))
        if share > least and np.ptp(values) > 0 and np.unique(values).size > RATINGS:
            found.append(Heap(side, float(end), share))
    return found


def inspect(X: ObservedMatrix, limited: bool = False) -> list[str]:
    """What should be known about a matrix, in sentences; ``limited`` if its limits are known."""
    values = X.rows.values
    capped = [] if limited or X.bounds is not None else heaps(X, CAPPED)
    notes = [f"{heap}: probably capped, so the errors there are not normal." for heap in capped]
    tiny = (values != 0) & (np.abs(values) < 1e-100)
    if tiny.any():
        notes.append(f"Values within 1e-100 of zero: {tiny.sum()}; probably artefacts.")
    for view, name in ((X.rows, "Rows"), (X.cols, "Columns")):
        notes += _lines(view, name)
    spread = values.std()
    if spread > 0 and not UNIT[0] < spread < UNIT[1]:
        notes.append(
            f"The values have a standard deviation of {spread:.2g}; priors are made for numbers "
            "nearer to one, so measure in another unit."
        )
    if spread > 0:
        heavy = float(np.mean(np.abs(values - values.mean()) > 5 * spread))
        if heavy > 1e-3:
            notes.append(f"{heavy:.2%} of the values are more than five standard deviations out.")
    return notes


def _lines(view: View, name: str) -> list[str]:
    notes, counts = [], view.counts
    empty, few = int(np.sum(counts == 0)), int(np.sum((counts > 0) & (counts < FEW)))
    if empty:
        notes.append(f"{name} without any observed entry: {empty}; predicted from the prior.")
    if few:
        notes.append(f"{name} with fewer than {FEW} entries: {few}; expect wide intervals there.")
    several = counts > 1
    if several.any():
        values = view.values[np.repeat(several, counts)]
        first = np.append(0, np.cumsum(counts[several]))[:-1]
        constant = np.maximum.reduceat(values, first) == np.minimum.reduceat(values, first)
        if constant.any():
            notes.append(
                f"{name} that are constant: {constant.sum()}; no model can learn from them."
            )
    return notes
