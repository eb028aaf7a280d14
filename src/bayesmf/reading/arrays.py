"""Matrices out of files of numbers alone: NumPy and SciPy arrays, MatrixMarket.

Nothing is ever unpickled.
"""

from __future__ import annotations

import gzip
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bayesmf import _sizes
from bayesmf._errors import DataError
from bayesmf.data.observed import ObservedMatrix
from bayesmf.reading import archives
from bayesmf.reading.progress import opened

LONGEST = 200_000_000  # rows and columns together, beyond which a header must be wrong
_OBJECTS = "Python objects, which may run code and are never loaded; save numbers instead."
_DAMAGED = (
    ValueError, TypeError, KeyError, IndexError, OverflowError, NotImplementedError, EOFError,
    zlib.error, zipfile.BadZipFile, gzip.BadGzipFile,
)  # fmt: skip  # what readers of damaged files raise


def loaded(kind: str, read: Callable[[], Any]) -> Any:
    """What a library reads; what it raises for a damaged file becomes one sentence."""
    try:
        found = read()
    except DataError:
        raise
    except _DAMAGED as error:
        if "allow_pickle" in str(error):
            raise DataError(f"it holds {_OBJECTS}") from None
        what = str(error).partition("\n")[0].rstrip(".")
        raise DataError(f"it is not {kind}, or is damaged ({what}).") from None
    if hasattr(found, "nnz"):
        _sizes.check_shape(found.shape, found.nnz)
    if sum(getattr(found, "shape", ())) > LONGEST:
        raise DataError(f"its shape {found.shape} is too large for memory; read a part of it.")
    return found


def read_npy(path: Path, single: bool) -> ObservedMatrix:
    """A dense array, NaN where missing."""

    def read() -> Any:
        with opened(path) as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    return ObservedMatrix.of(loaded("a .npy file", read), single=single)


def read_npz(path: Path, single: bool) -> ObservedMatrix:
    """The only array of an archive, three of triples, or a sparse one."""

    def read() -> Any:
        if not zipfile.is_zipfile(path):
            raise ValueError("no zip archive")
        with opened(path) as file, zipfile.ZipFile(file) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            if archives.TRIPLES <= set(names) <= archives.TRIPLES | {"shape"}:
                return archives.read_triples(archive, single)
            if kind := archives.known_kind(archive):
                return archives.read_sparse(archive, kind, single)
            if len(names) == 1:
                with archive.open(archive.namelist()[0]) as only:
                    return np.lib.format.read_array(only, allow_pickle=False)
        if not {"format", "shape"} <= set(names):
            raise DataError(
                f"it has {len(names)} arrays {names[:8]}; save one alone, or triples: rows, cols "
                "and values."
            )
        from scipy import sparse

        matrix = sparse.load_npz(path)
        if hasattr(matrix, "check_format"):  # indices that lead elsewhere could crash SciPy
            matrix.check_format(full_check=True)
        return matrix

    return ObservedMatrix.of(loaded("a .npz file", read), single=single)


def read_mtx(path: Path, single: bool) -> ObservedMatrix:
    """A matrix in the MatrixMarket format."""
    from scipy.io import mmread

    def read() -> Any:
        _sizes.check_market(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # sparse arrays are as welcome
            return mmread(path)

    return ObservedMatrix.of(loaded("a MatrixMarket file", read), single=single)
