"""Features as numbers: categories one-hot, gaps filled by means, columns centred and scaled.

All of it is found from the rows of a fit, kept, and applied to new rows as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayesmf._errors import DataError
from bayesmf.data.observed import LARGEST, Array, FloatArray, Labels, ObservedMatrix

_ROUNDING = 1e-12  # of a feature's size: a smaller spread is that of rounding errors
_SHOWN = 3  # names of features in a note


class Source(NamedTuple):
    """Features as they were given: a DataFrame, floats with NaN for gaps (n, P), or a CSR array."""

    values: Any
    labels: Labels = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.values.shape[0]

    @property
    def is_sparse(self) -> bool:
        return hasattr(self.values, "tocsr")

    @property
    def is_frame(self) -> bool:
        return hasattr(self.values, "columns")

    def take(self, rows: Array) -> Source:
        """The same of some rows, in this order."""
        values = self.values.iloc[rows] if self.is_frame else self.values[rows]
        return Source(values, None if self.labels is None else self.labels[rows])


def read_source(given: Any, what: str) -> Source:
    """Features from an array (n, P) or (n,), nested lists, a DataFrame or a sparse matrix."""
    if hasattr(given, "tocsr"):
        values = given.tocsr().astype(np.float64)
        if not np.isfinite(values.data).all():
            raise DataError(f"{what}: a stored entry of the sparse matrix is not a finite number.")
        return Source(values)
    if hasattr(given, "to_frame") and not hasattr(given, "columns"):  # a Series
        given = given.to_frame()
    if hasattr(given, "columns") and hasattr(given, "index"):
        labels = np.empty(len(given), dtype=object)
        labels[:] = list(given.index)
        return Source(given, labels)
    array = np.asarray(given, dtype=object if isinstance(given, list) else None)
    if array.ndim not in (1, 2) or 0 in array.shape:
        raise DataError(
            f"{what} must be an array (n, P), a DataFrame or a sparse matrix with at least one "
            f"feature, not {type(given).__name__} of shape {array.shape}."
        )
    try:
        return Source(ObservedMatrix.of(array[:, None] if array.ndim == 1 else given).to_array())
    except DataError as error:
        text = " Text goes as a column of a DataFrame." if array.dtype.kind in "OSU" else ""
        raise DataError(f"{what}: {error}{text}") from None


def in_order(source: Source, labels: Labels, n: int, what: str) -> Source:
    """The rows that belong to these labels, in their order; by position where there are none."""
    if labels is None or source.labels is None:
        if source.n != n:
            raise DataError(
                f"{what} have {source.n} rows, but {n} are needed; give one for each, in order."
            )
        return source
    return source.take(places(source.labels, labels, what))


def places(known: Array, labels: Array, what: str) -> Array:
    """Positions of labels among those that are known; a missing one is named."""
    table: dict[Any, int] = {}
    for k, label in enumerate(known):
        if table.setdefault(label, k) != k:
            raise DataError(f"{what}: {label!r} occurs more than once; keep one of them.")
    if not all(label in table for label in labels):  # numbers may have been read as text
        table |= {str(label): k for label, k in table.items()}
    found = [table.get(label, table.get(str(label))) for label in labels]
    if None in found:
        missing = labels[found.index(None)]
        raise DataError(f"{what}: {missing!r} is not there; add it, or leave it out of the data.")
    return np.array(found, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Encoding:
    """How features as given become numbers: x_p = (z_p - centre_p) / scale_p.

    ``columns`` are names of the given columns, None where only their position counts, and
    ``levels`` their categories, None where they are numbers. Of all columns and categories, those
    at ``kept`` are features; ``fill`` stands for a gap.
    """

    columns: tuple[str, ...] | None
    levels: tuple[tuple[Any, ...] | None, ...]
    names: tuple[str, ...]
    kept: Array
    fill: FloatArray
    centre: FloatArray
    scale: FloatArray

    def apply(self, source: Source, what: str = "The features") -> Any:
        """Numbers (m, P) of rows, as an array or, of sparse features, a CSR array."""
        if source.is_sparse:
            self._check_width(source.values.shape[1], what)
            return source.values[:, self.kept].multiply(1 / self.scale).tocsr()
        if self.columns is not None and any(self.levels) and not source.is_frame:
            raise DataError(f"{what}: the fit had columns with categories; give a DataFrame.")
        z = _spread(_matched(source, self.columns, what), self.levels, what)
        self._check_width(z.shape[1], what)
        z = z[:, self.kept]
        return (np.where(np.isnan(z), self.fill, z) - self.centre) / self.scale

    def _check_width(self, width: int, what: str) -> None:
        total = sum(1 if levels is None else len(levels) for levels in self.levels)
        if width != total:
            raise DataError(f"{what} have {width} columns, but the fit had {total}; give the same.")


def fit_encoding(source: Source, standardize: bool, what: str) -> tuple[Encoding, Any, list[str]]:
    """The encoding of these rows, their numbers, and what there is to say about them."""
    columns, levels = None, (None,) * source.values.shape[1]
    if source.is_frame:
        columns = tuple(str(name) for name in source.values.columns)
        levels = tuple(_levels(source, c, what) for c in range(len(columns)))
    names = _names(columns, levels)
    if source.is_sparse:
        _check_range(source.values.data, what)
        squares = np.asarray(source.values.multiply(source.values).mean(axis=0)).ravel()
        spread, centre, notes = np.sqrt(squares), np.zeros(squares.size), []
        fill = centre
    else:
        z = _spread(source, levels, what)
        _check_range(z, what)
        gaps = np.isnan(z)
        counts = np.maximum((~gaps).sum(axis=0), 1)
        fill = np.where(gaps, 0.0, z).sum(axis=0) / counts
        spread = np.sqrt((np.where(gaps, 0.0, z - fill) ** 2).sum(axis=0) / counts)
        spread = np.where(spread > _ROUNDING * np.abs(fill), spread, 0.0)
        centre = fill if standardize else np.zeros(fill.size)
        notes = _gap_notes(gaps, spread > 0, names, what)
    kept = np.flatnonzero(spread > 0)
    if not kept.size:
        raise DataError(f"{what}: no feature differs between rows; leave them out.")
    if kept.size < spread.size:
        gone = [names[p] for p in np.flatnonzero(spread == 0)]
        notes.append(f"{what}: dropped {_listed(gone)}, the same (or missing) in all rows.")
    scale = spread[kept] if standardize else np.ones(kept.size)
    encoding = Encoding(
        columns, levels, tuple(names[p] for p in kept), kept, fill[kept], centre[kept], scale
    )
    return encoding, encoding.apply(source, what), notes


def _check_range(z: FloatArray, what: str) -> None:
    """Squares of all numbers must be numbers."""
    if z.size and np.nanmax(np.abs(z), initial=0.0) > LARGEST:
        raise DataError(f"{what}: a feature lies beyond {LARGEST:g}; divide it by some number.")


def _levels(source: Source, c: int, what: str) -> tuple[Any, ...] | None:
    """Categories of a column of a DataFrame, None if it holds numbers."""
    column = source.values.iloc[:, c]
    if getattr(column.dtype, "kind", "O") in "biuf":
        return None
    present = column.dropna()
    found = sorted(set(present), key=lambda level: (str(type(level)), level))
    if len(found) > max(2, len(column) // 2):
        raise DataError(
            f"{what}: column {column.name!r} has {len(found)} different values, such as "
            f"{found[0]!r}; they are no categories: make them numbers or drop the column."
        )
    return tuple(found)


def _names(columns: tuple[str, ...] | None, levels: tuple[Any, ...]) -> list[str]:
    """Names of all columns and categories."""
    if columns is None:
        return [str(p) for p in range(len(levels))]
    return [
        name
        for column, some in zip(columns, levels, strict=True)
        for name in ([column] if some is None else [f"{column}={level}" for level in some])
    ]


def _matched(source: Source, columns: tuple[str, ...] | None, what: str) -> Source:
    """A DataFrame with its columns in the order of the fit, if that had names."""
    if columns is None or not source.is_frame:
        return source
    theirs = np.array([str(name) for name in source.values.columns], dtype=object)
    order = places(theirs, np.array(columns, dtype=object), f"{what}, columns")
    return source._replace(values=source.values.iloc[:, order])


def _spread(source: Source, levels: tuple[Any, ...], what: str) -> FloatArray:
    """Numbers of all columns and categories (n, .), NaN where they are missing."""
    if not source.is_frame:
        return source.values
    parts = []
    for c, some in enumerate(levels):
        column = source.values.iloc[:, c]
        if some is None:
            try:
                numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
            except (TypeError, ValueError):
                raise DataError(f"{what}: column {column.name!r} must hold numbers.") from None
            if np.isinf(numbers).any():
                raise DataError(f"{what}: column {column.name!r} holds an infinite number.")
            parts.append(numbers[:, None])
            continue
        values = column.to_numpy(dtype=object)
        hot = np.array([[value == level for level in some] for value in values], dtype=np.float64)
        hot = hot.reshape(len(values), len(some))
        hot[hot.sum(axis=1) == 0] = np.nan  # missing, or a category that the fit did not have
        parts.append(hot)
    return np.hstack(parts) if parts else np.empty((source.n, 0))


def _gap_notes(gaps: Array, used: Array, names: list[str], what: str) -> list[str]:
    some = np.flatnonzero(gaps.any(axis=0) & used)
    if not some.size:
        return []
    share = gaps[:, some].mean()
    told = _listed([names[p] for p in some])
    return [f"{what}: gaps in {told} ({share:.1%}) are filled with the feature's mean."]


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
