"""Cells of a matrix, by position."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesmf._errors import DataError
from bayesmf.data.observed import Array


def cell_arrays(cells: Any, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Check cells given as (rows, cols) positions."""
    try:
        rows, cols = (np.atleast_1d(np.asarray(c)) for c in cells)
    except (TypeError, ValueError):
        raise DataError("cells must be two arrays, (rows, cols).") from None
    if rows.shape != cols.shape or rows.ndim != 1:
        raise DataError(f"cells: rows {rows.shape} and cols {cols.shape} must be of one length.")
    for name, index, size in (("row", rows, shape[0]), ("column", cols, shape[1])):
        if index.size and not np.issubdtype(index.dtype, np.integer):
            raise DataError(f"cells: {name} positions must be integers, got {index.dtype}.")
        bad = (index < 0) | (index >= size)
        if bad.any():
            raise DataError(
                f"cells: {name} {index[bad][0]} is outside the matrix of {size} {name}s."
            )
    return rows.astype(np.int64), cols.astype(np.int64)
