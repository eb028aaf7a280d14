"""The gaps of a matrix as a long table: what was filled in, and how sure that is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesmf.data.observed import Array, ObservedMatrix
from bayesmf.data.ranges import observed_ranges

BELOW, ABOVE, UNKNOWN = "below", "above", "no data"


class Filled(NamedTuple):
    """A line for each cell that was missing, in row order; all fields have that length.

    ``flag`` says where a value is an extrapolation: "below" or "above" what was observed of its
    column, or "no data" where nothing was; otherwise it is empty.
    """

    row: Array
    column: Array
    value: Array
    sd: Array
    lower: Array
    upper: Array
    flag: Array


def gaps(X: ObservedMatrix) -> tuple[Array, Array]:
    """Rows and columns of the cells that are missing, in row order."""
    seen = np.zeros(X.shape, dtype=bool)
    seen[X.triples()[:2]] = True
    rows, cols = np.nonzero(~seen)
    return rows, cols


def filled(
    X: ObservedMatrix, mean: Array, std: Array, ends: tuple[Array, Array],
    clip: tuple[Array, Array] | None = None,
) -> Filled:  # fmt: skip
    """The gaps of X out of tables (I, J) of means, deviations and ends of intervals.

    Values are clipped last; flags are those of values before that.
    """
    i, j = gaps(X)
    low, high = observed_ranges(X)
    value = mean[i, j]
    flag = np.full(i.size, "", dtype=object)
    flag[value < low[j]], flag[value > high[j]] = BELOW, ABOVE
    flag[X.empty_cols[j]] = UNKNOWN
    numbers = [value, *(end[i, j] for end in ends)]
    if clip is not None:
        numbers = [np.clip(part, clip[0][j], clip[1][j]) for part in numbers]
    names = (
        np.arange(n) if labels is None else labels
        for n, labels in zip(X.shape, (X.row_labels, X.col_labels), strict=True)
    )
    row, column = (side[at] for side, at in zip(names, (i, j), strict=True))
    return Filled(row, column, numbers[0], std[i, j], numbers[1], numbers[2], flag)
