"""A matrix made of another, with what is known: some entries, some lines, single precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bayesmf._errors import DataError
from bayesmf.data.inputs import checked_shape, places
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.views import Gathered, both_views, narrowed, not_single, refilled, taken


def take(X: ObservedMatrix, selected: npt.ArrayLike) -> ObservedMatrix:
    """Some entries, as `ObservedMatrix.take` describes it."""
    try:
        chosen = np.asarray(selected)
    except ValueError:
        chosen = np.array([None])
    if chosen.dtype.kind not in "biu" and chosen.size:
        raise DataError("selected needs flags or positions of entries.")
    if chosen.dtype == bool and chosen.shape != (X.n_observed,):
        raise DataError(f"selected needs {X.n_observed} flags, not shape {chosen.shape}.")
    kept = np.zeros(X.n_observed, dtype=bool)
    try:
        kept[chosen if chosen.size else []] = True
    except IndexError:
        raise DataError(f"selected has positions outside 0 to {kept.size - 1}.") from None
    views = both_views(taken(X.rows, kept), X.shape)
    part = ObservedMatrix(X.shape, *views, X.row_labels, X.col_labels)
    return replace(
        part,
        errors=None if X.errors is None else X.errors[kept],
        bounds=None if X.bounds is None else X.bounds.take(kept),
        origin=X.origin, row_features=X.row_features, col_features=X.col_features,
        pattern=X.pattern,
    )  # fmt: skip


def part(
    X: ObservedMatrix, rows: npt.ArrayLike | None, cols: npt.ArrayLike | None
) -> ObservedMatrix:
    """Some rows and columns, as `ObservedMatrix.part` describes it."""
    chosen = [
        np.arange(n)[slice(None) if some is None else np.asarray(some)]
        for n, some in zip(X.shape, (rows, cols), strict=True)
    ]
    new = []
    for n, some in zip(X.shape, chosen, strict=True):
        place = np.full(n, -1)
        place[some] = np.arange(some.size)
        new.append(place)
    i, j, values = X.triples()
    kept = np.flatnonzero((new[0][i] >= 0) & (new[1][j] >= 0))
    i, j = new[0][i[kept]], new[1][j[kept]]
    order = np.lexsort((j, i))
    kept, i, j = kept[order], i[order], j[order]
    names = [
        None if labels is None else labels[some]
        for labels, some in zip((X.row_labels, X.col_labels), chosen, strict=True)
    ]
    shape = checked_shape((chosen[0].size, chosen[1].size))
    features = [
        known if known is None or some is None else known.take(some)
        for known, some in ((X.row_features, rows), (X.col_features, cols))
    ]
    return replace(
        ObservedMatrix.of_entries(
            Gathered([places(i, j, values[kept])], X.is_single), shape, (names[0], names[1])
        ),
        errors=None if X.errors is None else X.errors[kept],
        bounds=None if X.bounds is None else X.bounds.take(kept),
        origin=X.origin, row_features=features[0], col_features=features[1],
        pattern=X.pattern,
    )  # fmt: skip


def in_single(X: ObservedMatrix) -> ObservedMatrix:
    """The matrix with its values in single precision."""
    if X.is_single:
        return X
    values, lost = narrowed(X.rows.stored)
    if lost is not None:
        i, j, value = (part[lost] for part in X.triples())
        raise not_single(X.cell_name(i, j), value)
    mine = refilled(X.rows, values), refilled(X.cols, narrowed(X.cols.stored)[0])
    return replace(X, rows=mine[0], cols=mine[1])
