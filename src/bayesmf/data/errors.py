"""Known errors of measurement: a standard deviation, or a weight, of every observed entry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bayesmf._errors import DataError
from bayesmf.data.observed import Array, ObservedMatrix


def known_errors(X: ObservedMatrix, errors: Any = None, weights: Any = None) -> ObservedMatrix:
    """The matrix with known errors of its entries: standard deviations, or weights.

    Either is anything that `ObservedMatrix.of` reads, of the shape of X, with a positive number
    wherever X has an entry. A weight is the inverse square of an error. Numbers at other cells are
    left out.

    Examples
    --------
    >>> from bayesmf.data.observed import ObservedMatrix
    >>> X = ObservedMatrix.of([[1.0, 2.0], [3.0, None]])
    >>> known_errors(X, [[0.1, 0.2], [0.1, 9.0]]).errors
    array([0.1, 0.2, 0.1])
    """
    if errors is None and weights is None:
        return X
    if errors is not None and weights is not None:
        raise DataError("Give errors or weights, not both: a weight is the inverse square of one.")
    name, given = ("errors", errors) if weights is None else ("weights", weights)
    try:
        known = ObservedMatrix.of(given)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
    if known.bounds is not None:
        i, j, _ = (part[known.bounds.places][0] for part in known.triples())
        raise DataError(f"{name}: {known.cell_name(i, j)} is a limit; give a number.")
    if known.shape != X.shape:
        raise DataError(f"{name} have shape {known.shape}, but the matrix has {X.shape}.")
    for ours, theirs, side in (
        (X.row_labels, known.row_labels, "row"),
        (X.col_labels, known.col_labels, "column"),
    ):
        if ours is not None and theirs is not None and ours.tolist() != theirs.tolist():
            where = next(k for k, label in enumerate(ours) if label != theirs[k])
            raise DataError(
                f"{name}: {side} {where} is {theirs[where]!r}, but {ours[where]!r} in the matrix; "
                "bring both into one order."
            )
    values = _at_entries(X, known)
    problems = (np.isnan(values), "is missing"), (~(values > 0), "is {:g}")
    for bad, what in problems:
        if bad.any():
            i, j, _ = (part[bad][0] for part in X.triples())
            state = what.format(values[bad][0])
            raise DataError(
                f"{name}: {X.cell_name(i, j)} {state}; every observed entry needs a positive "
                "number."
            )
    return replace(X, errors=values if name == "errors" else values**-0.5)


def _at_entries(X: ObservedMatrix, known: ObservedMatrix) -> Array:
    """Numbers of another matrix at the entries of this one, NaN where it has none."""
    m = X.shape[1]
    ours, theirs = (a * m + b for a, b, _ in (X.triples(), known.triples()))
    place = np.minimum(np.searchsorted(theirs, ours), max(theirs.size - 1, 0))
    if not theirs.size:
        return np.full(ours.size, np.nan)
    return np.where(theirs[place] == ours, known.rows.values[place], np.nan)
