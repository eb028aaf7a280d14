"""Ranges of columns: what was observed of each, and what predictions are clipped to."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from bayesmf._errors import ModelError
from bayesmf.data.observed import FloatArray, ObservedMatrix

#: None, "observed", or two numbers, either of which may be None.
Clip: TypeAlias = str | tuple[float | None, float | None] | None


def observed_ranges(X: ObservedMatrix) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest observed value of each column (J,), NaN where there is none."""
    low, high = np.full((2, X.shape[1]), np.nan)
    some = ~X.empty_cols
    starts = X.cols.indptr[:-1][some]
    if starts.size:
        low[some] = np.minimum.reduceat(X.cols.stored, starts)
        high[some] = np.maximum.reduceat(X.cols.stored, starts)
    return low, high


def clip_ends(clip: Any, X: ObservedMatrix) -> tuple[FloatArray, FloatArray] | None:
    """Ends (J,) to which values of each column are clipped, None if they are not.

    Examples
    --------
    >>> X = ObservedMatrix.of([[1.0, 5.0], [2.0, None]])
    >>> clip_ends("observed", X), clip_ends((0, None), X)
    ((array([1., 5.]), array([2., 5.])), (array([0., 0.]), array([inf, inf])))
    """
    if clip is None:
        return None
    if isinstance(clip, str):
        if clip != "observed":
            raise ModelError(f"clip must be 'observed' or two numbers, got {clip!r}.")
        low, high = observed_ranges(X)
        return np.nan_to_num(low, nan=-np.inf), np.nan_to_num(high, nan=np.inf)
    try:
        first, last = (math.nan if end is None else float(end) for end in clip)
    except (TypeError, ValueError):
        raise ModelError(f"clip must be 'observed' or two numbers, got {clip!r}.") from None
    if first > last:
        raise ModelError(f"clip: {first:g} is above {last:g}; give the smaller one first.")
    ends = -np.inf if math.isnan(first) else first, np.inf if math.isnan(last) else last
    return np.full(X.shape[1], ends[0]), np.full(X.shape[1], ends[1])
