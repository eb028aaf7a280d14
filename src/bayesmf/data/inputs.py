"""What users give as a matrix, as arrays: values, positions, labels, masks and shapes, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bayesmf._errors import DataError, nearest
from bayesmf.data import frames
from bayesmf.data.views import Array, BoolArray, Entries, Shape

Labels: TypeAlias = npt.NDArray[np.object_] | None
Names: TypeAlias = tuple[Labels, Labels]

_ABSENT = {"NoneType", "NAType"}  # types of missing values, by name: pandas is not imported
_BLOCK = 250_000  # cells of a dense matrix that are looked at at once


def as_array(X: Any) -> Array:
    """Return an array of floats or of anything that `as_floats` can sort out."""
    if frames.is_frame(X) and not frames.has_index(X):
        return frames.numbers(X)
    if frames.has_index(X):
        if all(dtype.kind in "biuf" for dtype in X.dtypes):
            return X.to_numpy(dtype=np.float64, na_value=np.nan)
        return X.to_numpy(dtype=object)
    if isinstance(X, np.ma.MaskedArray):
        kind, hole = (np.float64, np.nan) if X.dtype.kind in "biuf" else (object, None)
        return np.ma.filled(X.astype(kind), hole)
    try:
        array = np.asarray(X)
    except ValueError:
        raise DataError("The rows of the matrix differ in length; make them equal.") from None
    # One text in a list turns every number into text; as objects they stay what they are.
    is_text = array.dtype.kind in "US" and not isinstance(X, np.ndarray)
    return np.array(X, dtype=object) if is_text else array


def as_floats(raw: Array, rows: Array, cols: Array, names: Names) -> Array:
    """Return the values of the cells at `rows` and `cols` as floats, None and NA as NaN."""
    if raw.dtype.kind == "f":
        return raw
    if raw.dtype.kind in "biu":
        return raw.astype(np.float64)
    if raw.dtype.kind not in "OUS":
        raise DataError(f"The values must be real numbers, not {raw.dtype}; convert them first.")
    items = raw.tolist()
    kinds = set(map(type, items))
    absent = tuple(kind for kind in kinds if kind.__name__ in _ABSENT)
    if bad := {kind for kind in kinds if not issubclass(kind, (Real, Decimal, np.bool_, *absent))}:
        k = next(k for k, item in enumerate(items) if type(item) in bad)
        what = (
            f"{cell_name(rows[k], cols[k], names)} holds {items[k]!r}, which is not a real number"
        )
        raise DataError(f"{what}; convert it, or use NaN for a missing entry.")
    return np.array([np.nan if type(v) in absent else v for v in items], dtype=np.float64)


def as_positions(keys: Any, n: int | None, labels: Any, side: str) -> tuple[Array, int, Labels]:
    """Return the positions that one side of the triples names, its length, and its labels."""
    names = as_labels(labels, n, side)
    if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
        return *_within(keys.ravel(), n, names, side), names
    items = _items(keys)
    kinds = set(map(type, items))
    # Floats are refused: taken for labels, positions would end up in order of appearance.
    if bad := {t for t in kinds if t.__name__ in _ABSENT or issubclass(t, (float, np.floating))}:
        k = next(k for k, item in enumerate(items) if type(item) in bad)
        raise DataError(f"The {side} of triple {k} is {items[k]!r}; use an integer or a label.")
    if not all(issubclass(kind, Integral) for kind in kinds):
        known = dict.fromkeys(items) if names is None else names
        table = {label: k for k, label in enumerate(known)}
        if unknown := [item for item in dict.fromkeys(items) if item not in table]:
            hint = nearest(str(unknown[0]), map(str, table))
            raise DataError(f"{side} {unknown[0]!r} is not among the {side} labels.{hint}")
        names, items = as_labels(table, n, side), list(map(table.__getitem__, items))
    return *_within(np.array(items, dtype=np.int64), n, names, side), names


def _within(positions: Array, n: int | None, names: Labels, side: str) -> tuple[Array, int]:
    """Positions that lie on a side, and its length: just large enough if nothing else is said."""
    least, most = (int(positions.min()), int(positions.max())) if positions.size else (0, -1)
    if n is None:
        n = most + 1 if names is None else names.size
    if least < 0 or most >= n:
        stray = positions[((positions < 0) | (positions >= n)).argmax()]
        raise DataError(f"{side} {stray} is outside 0 to {n - 1}; correct it, or the shape.")
    return positions, n


def as_labels(labels: Any, n: int | None, side: str) -> Labels:
    """Labels of n rows or columns, each once, if there are any."""
    if labels is None:
        return None
    array = np.fromiter(_items(labels), dtype=object)
    if n is not None and array.size != n:
        raise DataError(f"There are {array.size} {side} labels for {n} {side}s; give one for each.")
    if again := [label for label, times in Counter(array).items() if times > 1]:
        raise DataError(f"{side} label {again[0]!r} occurs more than once; make labels unique.")
    return array


def _items(sequence: Any) -> list[Any]:
    if not isinstance(sequence, Iterable):
        raise DataError(f"Rows and columns are given as sequences, not as {sequence!r}.")
    if not hasattr(sequence, "dtype"):
        sequence = list(sequence)
        if bad := [kind.__name__ for kind in set(map(type, sequence)) if kind.__hash__ is None]:
            raise DataError(f"A {bad[0]} names no row or column; use an integer or a label.")
    # Python objects read better in messages than NumPy scalars, but dates would turn to integers.
    if isinstance(sequence, np.ndarray) and sequence.dtype.kind not in "mM":
        return sequence.ravel().tolist()
    return list(sequence)


def checked_mask(mask: Any, X: Any, shape: Shape) -> BoolArray:
    """Flags of the observed cells of X."""
    flags = as_array(mask)
    if flags.shape != shape:
        raise DataError(f"mask has shape {flags.shape} but X has {shape}; they must be equal.")
    if flags.dtype.kind not in "biuf" or not ((flags == 0) | (flags == 1)).all():
        raise DataError("mask must be boolean (or 0 and 1), True where a cell is observed.")
    if (
        frames.has_index(mask)
        and frames.has_index(X)
        and not all(map(np.array_equal, mask.axes, X.axes))
    ):
        raise DataError("mask and X have different labels; reindex mask like X.")
    return flags.astype(bool)


def checked_shape(shape: tuple[int, ...]) -> Shape:
    """The shape of a matrix that can be one."""
    if 0 in shape:
        raise DataError(f"The matrix is empty: its shape is {shape}; it needs rows and columns.")
    if len(shape) != 2:
        raise DataError(f"The matrix must have 2 dimensions, not {len(shape)}; reshape it.")
    if min(shape) < 0 or max(shape) > np.iinfo(np.int32).max:
        raise DataError(f"The shape {shape} is out of range; number the rows and columns from 0.")
    return int(shape[0]), int(shape[1])


def cell_name(i: int, j: int, names: Names) -> str:
    """How messages call a cell: by its labels, or else by its position."""
    row = i if names[0] is None else repr(names[0][i])
    column = j if names[1] is None else repr(names[1][j])
    return f"row {row}, column {column}"


def places(rows: Array, cols: Array, values: Array) -> Entries:
    """Entries whose places fit into 32 bits, as those of every matrix do."""
    return Entries(rows.astype(np.int32, copy=False), cols.astype(np.int32, copy=False), values)


def coordinates(X: Any) -> Any:
    """A sparse matrix by coordinates, without a copy of its values where SciPy can do so."""
    try:
        return X.tocoo(copy=False)
    except TypeError:  # of another library
        return X.tocoo()


def dense_entries(source: Array, mask: BoolArray | None, names: Names) -> Iterator[Entries]:
    """Entries of a dense matrix, some rows at a time: those that are numbers, or in the mask."""
    step = max(1, _BLOCK // source.shape[1])
    for first in range(0, source.shape[0], step):
        part = source[first : first + step]
        if mask is not None:
            kept = mask[first : first + step]
        elif part.dtype.kind == "f":
            kept = ~np.isnan(part)
        else:
            kept = np.ones(part.shape, dtype=bool)
        i, j = np.nonzero(kept)
        i += first
        yield places(i, j, as_floats(part[kept], i, j, names))
