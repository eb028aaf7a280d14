"""The two views of the observed entries: laid out once for sweeps over the rows and the columns.

Both are made from entries in any order, with no more memory beside them than the entries take in
32-bit positions: at their peak about 1.2 times the views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bayesmf._errors import DataError

Array: TypeAlias = npt.NDArray[Any]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
Shape: TypeAlias = tuple[int, int]

# At this density a product over whole rows costs no more than gathering the observed entries.
DENSE_DENSITY = 0.4
# Beyond this many cells the dense copies, two in each view, would fill the memory.
DENSE_CELLS = 20_000_000
_BLOCK = 250_000  # values that are rounded at once


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """The observed entries as seen from one side, row after row."""

    indptr: IntArray  # row i owns the entries indptr[i]:indptr[i + 1]
    indices: npt.NDArray[np.int32]  # positions on the other side, increasing within a row
    # In the view's own order: a permutation into the other view's would take as many bytes, and
    # make half-sweeps jump through memory.
    stored: Array  # as doubles or, to halve them, in single precision
    filled: FloatArray | None  # the whole matrix, 0 at missing cells; None off the dense path
    mask: FloatArray | None  # 1 at observed cells and 0 elsewhere; None off the dense path
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)  # what follows from the cells

    @property
    def n(self) -> int:
        """Number of rows of this view."""
        return self.indptr.size - 1

    @property
    def values(self) -> FloatArray:
        """The values as doubles: a copy where they are stored in single precision."""
        return self.stored.astype(np.float64, copy=False)

    def row(self, i: int) -> FloatArray:
        """Values of one row as doubles."""
        return self.stored[self.indptr[i] : self.indptr[i + 1]].astype(np.float64, copy=False)

    @property
    def counts(self) -> IntArray:
        """Number of observed entries in each row of this view."""
        return np.diff(self.indptr)

    @property
    def owners(self) -> IntArray:
        """The row of every entry (N,)."""
        return np.repeat(np.arange(self.n), self.counts)


class Entries(NamedTuple):
    """Places and values of entries in any order."""

    rows: Array  # of 32 bits, as those of the columns
    cols: Array
    values: Array  # NaN where missing


class Gathered:
    """Entries that come in blocks, in arrays that grow with them.

    Arrays grow in place where the system can: a list of blocks would have to be held beside the
    whole in the end, and its memory might never be given back. Values are kept as doubles, or in
    ``single`` precision; the first that this cannot hold is ``lost``.

    Examples
    --------
    >>> import numpy as np
    >>> block = Entries(np.zeros(2, np.int32), np.arange(2, dtype=np.int32), np.ones(2))
    >>> Gathered([block, block]).pop().cols.tolist()
    [0, 1, 0, 1]
    """

    def __init__(self, blocks: Iterable[Entries] = (), single: bool = False) -> None:
        self._parts: Entries | None = None
        self._own = False  # whether the arrays are nobody else's
        self.size, self.single = 0, single
        self.lost: tuple[int, int, float] | None = None  # row, column and value
        for block in blocks:
            self.add(block)

    def add(self, block: Entries) -> None:
        """Take in a block; one that stays alone is not copied."""
        block = block._replace(values=self._as_stored(block))
        if self._parts is None:
            self._parts, self._own, self.size = block, False, block.values.size
            return
        end, room = self.size + block.values.size, self._parts.values.size
        if end > room:
            self._resize(self._parts, max(end, room + room // 8))
        for part, new in zip(self._parts, block, strict=True):
            part[self.size : end] = new
        self.size = end

    def _as_stored(self, block: Entries) -> Array:
        if not self.single:
            return block.values.astype(np.float64, copy=False)
        narrow, lost = narrowed(block.values)
        if lost is not None and self.lost is None:
            self.lost = int(block.rows[lost]), int(block.cols[lost]), float(block.values[lost])
        return narrow

    def _resize(self, parts: Entries, size: int) -> None:
        if not self._own:
            parts = Entries(*(part.copy() for part in parts))
        for part in parts:
            part.resize(size, refcheck=False)
        self._parts, self._own = parts, True

    @property
    def values(self) -> Array:
        """Values of all entries so far."""
        return np.empty(0) if self._parts is None else self._parts.values[: self.size]

    def pop(self) -> Entries:
        """All entries, which are given away."""
        if self._parts is None:
            nothing = np.empty(0, np.int32)
            return Entries(nothing, nothing, np.empty(0))
        if self._parts.values.size > self.size:
            self._resize(self._parts, self.size)
        found, self._parts, self.size = self._parts, None, 0
        return found


def narrowed(values: Array) -> tuple[npt.NDArray[np.float32], int | None]:
    """Values in single precision, and the place of the first that is none of its numbers.

    Others are rounded to the nearest, whose relative error is below 1e-7.

    Examples
    --------
    >>> narrowed(np.array([0.1, 1e60, 1e-60]))
    (array([0.1, inf, 0. ], dtype=float32), 1)
    """
    if values.dtype == np.float32:
        return values, None
    found, place = np.empty(values.size, np.float32), None
    for first in range(0, values.size, _BLOCK):
        part = values[first : first + _BLOCK]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            found[first : first + _BLOCK] = part
            lost = np.abs(found[first : first + _BLOCK] - part) > 1e-7 * np.abs(part)
        if place is None and lost.any():
            place = first + int(lost.argmax())
    return found, place


def doubles(values: Array) -> Iterator[FloatArray]:
    """Values as doubles, many at a time."""
    for first in range(0, values.size, _BLOCK):
        yield values[first : first + _BLOCK].astype(np.float64, copy=False)


def total(values: Array, function: Callable[[FloatArray], FloatArray] = np.asarray) -> float:
    """Sum of a function of the values as doubles, without a copy of all.

    Halves are added as NumPy would, so that the sum is that of ``function(values).sum()``.
    """
    if values.size <= _BLOCK:
        return float(function(values.astype(np.float64, copy=False)).sum())
    half = values.size // 2
    half -= half % 8
    return total(values[:half], function) + total(values[half:], function)


def not_single(cell: str, value: float) -> DataError:
    """The complaint about a value that single precision does not hold."""
    return DataError(
        f"{cell} is {value:g}, which single precision does not hold; leave out single (--single), "
        "or change the unit."
    )


class RepeatedError(DataError):
    """A cell occurs more than once."""


def lay_out(
    entries: Gathered, shape: Shape, name: Callable[[int, int], str], strict: bool = False
) -> tuple[View, View]:
    """Views of rows and columns of the entries, which are taken.

    Parameters
    ----------
    entries
        In any order, each cell once.
    shape
        Of the matrix, in which the places lie.
    name
        How to call a cell in a message.
    strict
        Whether missing entries are refused instead of left out.
    """
    if entries.lost is not None:
        i, j, value = entries.lost
        raise not_single(name(i, j), value)
    by_row = _sorted_rows(entries.pop(), shape, name)
    return both_views(_without_gaps(by_row, name, strict), shape)


def both_views(by_row: View, shape: Shape) -> tuple[View, View]:
    """A view of the rows and that of the columns; with the whole matrix if it is mostly seen."""
    cells = shape[0] * shape[1]
    by_column = transposed(by_row, shape)
    if by_row.stored.size < DENSE_DENSITY * cells or cells > DENSE_CELLS:
        return by_row, by_column
    return _with_whole(by_row, shape[1]), _with_whole(by_column, shape[0])


def taken(view: View, kept: BoolArray) -> View:
    """A view of some of the entries, without the whole matrix."""
    before, indptr = np.cumsum(kept), np.zeros_like(view.indptr)
    some = view.indptr > 0
    indptr[some] = before[view.indptr[some] - 1]
    return View(indptr, view.indices[kept], view.stored[kept], None, None)


def transposed(view: View, shape: Shape) -> View:
    """The same entries column after column, without the whole matrix."""
    from scipy.sparse import csr_array

    # SciPy widens all indices if pointers are wide.
    narrow = view.indptr.astype(np.min_scalar_type(-max(view.stored.size, 2**16)))
    matrix = csr_array((view.stored, view.indices, narrow), shape=shape)
    return _plain_view(matrix.tocsc())


def refilled(view: View, values: Array) -> View:
    """A view of the same cells with other values, in its own order."""
    if view.filled is None:
        return replace(view, stored=values)
    filled = np.zeros_like(view.filled)
    filled[view.owners, view.indices] = values
    return replace(view, stored=values, filled=filled)


def _sorted_rows(entries: Entries, shape: Shape, name: Callable[[int, int], str]) -> View:
    """Entries in the order of rows, and of columns within a row; cells that repeat are refused."""
    from scipy.sparse import coo_array

    found = coo_array((entries.values, (entries.rows, entries.cols)), shape=shape).tocsr()
    if found.nnz < entries.values.size:  # SciPy adds up what repeats a cell
        i, j = _first_repeated(entries, shape[1])
        raise RepeatedError(f"{name(i, j)} occurs more than once; keep one entry or combine them.")
    found.sort_indices()
    return _plain_view(found)


def _first_repeated(entries: Entries, width: int) -> tuple[int, int]:
    keys = np.sort(entries.rows.astype(np.int64) * width + entries.cols)
    i, j = divmod(int(keys[1:][keys[1:] == keys[:-1]][0]), width)
    return i, j


def _plain_view(matrix: Any) -> View:
    """The arrays of a compressed matrix of SciPy."""
    indices = matrix.indices.astype(np.int32, copy=False)
    return View(matrix.indptr.astype(np.int64), indices, matrix.data, None, None)


def _without_gaps(view: View, name: Callable[[int, int], str], strict: bool) -> View:
    """The view without missing entries; infinite ones are refused."""
    if np.isfinite(view.stored).all():
        return view

    def refuse(bad: BoolArray, why: str) -> None:
        if bad.any():
            k = int(bad.argmax())
            i = int(np.searchsorted(view.indptr, k, side="right")) - 1
            raise DataError(f"{name(i, int(view.indices[k]))} {why}.")

    refuse(np.isinf(view.stored), "is infinite; use NaN for a missing entry")
    seen = ~np.isnan(view.stored)
    if strict:
        refuse(~seen, "is missing though mask is True there; set mask to False")
    return taken(view, seen)


def _with_whole(view: View, width: int) -> View:
    """The view with the whole matrix beside it."""
    mask = np.zeros((view.n, width))
    mask[view.owners, view.indices] = 1.0
    return refilled(replace(view, filled=mask, mask=mask), view.stored)
