"""Matrices with what is known of their rows and columns: those of a fit, and new ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bayesmf._errors import DataError, nearest
from bayesmf.data.encoding import read_source
from bayesmf.data.features import Features, NewFeatures, pattern_of
from bayesmf.data.observed import Labels, ObservedMatrix, Shape

PATTERNS = ("rows", "cols", "both")
_SIDES = ("row", "col")

Known = tuple[tuple[Any, Any], tuple[Any, Any]]  # features and kernels of rows and of columns


def with_features(X: ObservedMatrix, known: Known, pattern: str | None) -> ObservedMatrix:
    """The matrix with features and kernels of its sides; those it has stay if none are given."""
    if pattern is not None and pattern not in PATTERNS:
        hint = nearest(str(pattern), PATTERNS)
        raise DataError(f"pattern must be one of {', '.join(PATTERNS)}, got {pattern!r}.{hint}")
    found: dict[str, Any] = {}
    for side, (values, kernel), n, labels in zip(
        _SIDES, known, X.shape, (X.row_labels, X.col_labels), strict=True
    ):
        if values is None and kernel is None:
            continue
        what = f"{side}_features" if kernel is None else f"{side}_kernel"
        made = Features.of(values, kernel=kernel, labels=labels, n=n, what=what)
        if made.n != n:
            raise DataError(f"{what} have {made.n} rows, but the matrix has {n} {side}s.")
        found[f"{side}_features"] = made
    return replace(X, **found, pattern=pattern or X.pattern)


def features_of(X: ObservedMatrix, axis: int) -> Features | None:
    """All features of the rows (0) or columns (1), the pattern included, if there are any."""
    given = (X.row_features, X.col_features)[axis]
    if X.pattern not in (PATTERNS[axis], "both"):
        return given
    pattern = pattern_of((X.rows, X.cols)[axis], X.shape[1 - axis])
    return pattern if given is None else given + pattern


def with_new(X: ObservedMatrix, values: Any, kernel: Any, axis: int) -> ObservedMatrix:
    """Entries of new rows (or columns) with their features; those they have, if none are given."""
    if values is None and kernel is None:
        return X
    given: Any = values if isinstance(values, NewFeatures) else NewFeatures(values, kernel)
    return replace(X, row_features=given) if axis == 0 else replace(X, col_features=given)


def without_entries(known: tuple[Any, Any], shape: Shape, axis: int) -> ObservedMatrix:
    """New rows (or columns) that have features alone, beside a fitted matrix of this shape."""
    what = f"{_SIDES[axis]}_{'kernel' if known[0] is None else 'features'}"
    first = known[0] if known[0] is not None else known[1]
    first = next(iter(first.values()), None) if isinstance(first, dict) else first
    if isinstance(first, (Features, NewFeatures)):
        n, labels = first.n or 0, first.labels
    else:
        source = read_source(first, what)
        n, labels = source.n, source.labels
    size = list(shape)
    names: list[Labels] = [None, None]
    size[axis], names[axis] = n, labels
    return ObservedMatrix.from_triples([], [], [], (size[0], size[1]), *names)


def of_new(fitted: Features | None, X: ObservedMatrix, axis: int) -> Features | None:
    """Features of new rows (or columns), whose entries are X, in the terms of the fitted ones."""
    given: Any = (X.row_features, X.col_features)[axis]
    what = f"{_SIDES[axis]}_features"
    if fitted is None:
        if given is not None:
            raise DataError(f"The fit had no {what}, so new ones cannot have any; leave them out.")
        return None
    if not isinstance(given, NewFeatures):
        given = NewFeatures(given, None)
    view, labels = ((X.rows, X.row_labels), (X.cols, X.col_labels))[axis]
    return fitted.of_rows(given.values, given.kernel, view, labels, what)
