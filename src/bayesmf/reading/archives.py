"""Entries out of .npz archives, block by block, so that no array is ever held whole beside them.

An archive holds triples (arrays ``rows``, ``cols``, ``values``, and ``shape`` if it is to be larger
than the largest position), or what `scipy.sparse.save_npz` writes of COO, CSR and CSC matrices.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bayesmf import _sizes
from bayesmf._errors import DataError
from bayesmf.data.inputs import checked_shape
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.views import Array, Entries, Gathered

TRIPLES = {"rows", "cols", "values"}
_SPARSE = {"coo": ("row", "col"), "csr": ("indptr", "indices"), "csc": ("indptr", "indices")}
_BLOCK = 250_000  # numbers of an array that are read at once


class Member(NamedTuple):
    """An array of an archive: one-dimensional, of numbers."""

    archive: zipfile.ZipFile
    name: str

    def _opened(self) -> tuple[Any, int, np.dtype[Any]]:
        """The bytes of the numbers, how many there are, and what they are."""
        file = self.archive.open(f"{self.name}.npy")
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0}.get(
            version, np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(file)
        if len(shape) != 1 or dtype.kind not in "biuf":
            raise DataError(f"its array {self.name!r} must hold numbers in one row; save it so.")
        return file, shape[0], dtype

    @property
    def size(self) -> int:
        """How many numbers there are."""
        file, size, _ = self._opened()
        file.close()
        return size

    def blocks(self) -> Iterator[Array]:
        """The numbers, many at a time."""
        file, left, dtype = self._opened()
        with file:
            while left:
                count = min(left, _BLOCK)
                found = file.read(count * dtype.itemsize)
                if len(found) < count * dtype.itemsize:
                    raise EOFError(f"{self.name} ends early")
                yield np.frombuffer(found, dtype)
                left -= count

    def whole(self) -> Array:
        """All numbers."""
        return np.concatenate([np.empty(0, np.int64), *self.blocks()])


def read_triples(archive: zipfile.ZipFile, single: bool) -> ObservedMatrix:
    """The matrix of the arrays ``rows``, ``cols`` and ``values``; positions count from 0."""
    parts = [Member(archive, name) for name in ("rows", "cols", "values")]
    shape = None
    if "shape.npy" in archive.namelist():
        shape = tuple(Member(archive, "shape").whole().tolist())
    return _matrix(parts, shape, single)


def read_sparse(archive: zipfile.ZipFile, kind: str, single: bool) -> ObservedMatrix:
    """The matrix of a sparse one that SciPy has saved; the stored entries are the observed ones."""
    shape = tuple(Member(archive, "shape").whole().tolist())
    first, second = (Member(archive, name) for name in _SPARSE[kind])
    data = Member(archive, "data")
    if kind == "coo":
        return _matrix([first, second, data], shape, single)
    n, m = checked_shape(shape)[:: -1 if kind == "csc" else 1]
    indptr = first.whole()
    counts = np.diff(indptr)
    if indptr.size != n + 1 or indptr[0] != 0 or (counts < 0).any() or indptr[-1] != data.size:
        raise ValueError("its pointers do not fit its entries")
    X = _matrix([_Owners(indptr), second, data], (n, m), single)
    return X.transpose() if kind == "csc" else X


class _Owners(NamedTuple):
    """The row of every entry, block by block, as compressed pointers tell it."""

    indptr: Array

    @property
    def size(self) -> int:
        return int(self.indptr[-1])

    def blocks(self) -> Iterator[Array]:
        for first in range(0, self.size, _BLOCK):
            places = np.arange(first, min(first + _BLOCK, self.size))
            yield np.searchsorted(self.indptr, places, side="right") - 1


def known_kind(archive: zipfile.ZipFile) -> str | None:
    """The format of a sparse matrix that can be read in blocks."""
    try:
        with archive.open("format.npy") as file:
            kind = np.lib.format.read_array(file, allow_pickle=False).item()
    except (KeyError, ValueError):
        return None
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    return kind if kind in _SPARSE else None


def _matrix(parts: list[Any], shape: tuple[int, ...] | None, single: bool) -> ObservedMatrix:
    """The matrix of rows, columns and values; without a shape it is just large enough."""
    sizes = tuple(part.size for part in parts)
    if len(set(sizes)) > 1:
        raise DataError(f"rows, cols and values have different lengths {sizes}; match them.")
    if shape is not None:
        shape = checked_shape(shape)
        _sizes.check_shape(shape, sizes[0])
    most, entries = [-1, -1], Gathered(single=single)
    for rows, cols, values in zip(*(part.blocks() for part in parts), strict=True):
        for axis, places in enumerate((rows, cols)):
            most[axis] = max(most[axis], _largest(places, ("row", "column")[axis], shape, axis))
        entries.add(Entries(rows.astype(np.int32), cols.astype(np.int32), values))
    found = checked_shape((most[0] + 1, most[1] + 1)) if shape is None else shape
    _sizes.check_shape(found, sizes[0])
    return ObservedMatrix.of_entries(entries, (found[0], found[1]))


def _largest(places: Array, side: str, shape: tuple[int, ...] | None, axis: int) -> int:
    """The largest of some positions, all of which must lie in the matrix."""
    if places.dtype.kind not in "iu":
        raise DataError(f"The {side}s are no whole numbers; save positions, counted from 0.")
    end = np.iinfo(np.int32).max if shape is None else shape[axis]
    least, most = int(places.min()), int(places.max())
    if least < 0 or most >= end:
        stray = least if least < 0 else most
        raise DataError(f"{side} {stray} is outside 0 to {end - 1}; correct it, or the shape.")
    return most
