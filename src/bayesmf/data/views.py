"""The two views of the observed entries: laid out once for sweeps over the rows and the columns.

Both are made from entries in any order, with no more memory beside them than the entries take in
32-bit positions: at their peak about 1.2 times the views.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """The observed entries as seen from one side, row after row."""

    indptr: IntArray  # row i owns the entries indptr[i]:indptr[i + 1]
    indices: npt.NDArray[np.int32]  # positions on the other side, increasing within a row
    # In the view's own order: a permutation into the other view's would take as many bytes, and
    # make half-sweeps jump through memory.
    values: FloatArray
    filled: FloatArray | None  # the whole matrix, 0 at missing cells; None off the dense path
    mask: FloatArray | None  # 1 at observed cells and 0 elsewhere; None off the dense path
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)  # what follows from the cells

    @property
    def n(self) -> int:
        """Number of rows of this view."""
        return self.indptr.size - 1

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

    rows: npt.NDArray[np.int32]
    cols: npt.NDArray[np.int32]
    values: FloatArray  # NaN where missing

    @classmethod
    def joined(cls, blocks: list[Entries]) -> Entries:
        """All entries of several blocks, which are taken apart: nothing is held twice at the end.

        Examples
        --------
        >>> import numpy as np
        >>> block = Entries(np.zeros(2, np.int32), np.arange(2, dtype=np.int32), np.ones(2))
        >>> Entries.joined([block, block]).cols.tolist()
        [0, 1, 0, 1]
        """
        if len(blocks) == 1:
            return blocks.pop()
        parts = [list(part) for part in zip(*blocks, strict=True)] or [[], [], []]
        blocks.clear()
        kinds: Sequence[Any] = (np.int32, np.int32, np.float64)
        made = []
        for kind in kinds:
            own = parts.pop(0)
            made.append(np.concatenate(own, dtype=kind) if own else np.empty(0, kind))
        return cls(*made)


class RepeatedError(DataError):
    """A cell occurs more than once."""


def lay_out(
    entries: list[Entries], shape: Shape, name: Callable[[int, int], str], strict: bool = False
) -> tuple[View, View]:
    """Views of rows and columns of the entries, which are taken out of their list.

    Parameters
    ----------
    entries
        Blocks of entries, in any order, each cell once.
    shape
        Of the matrix, in which the places lie.
    name
        How to call a cell in a message.
    strict
        Whether missing entries are refused instead of left out.
    """
    by_row = _sorted_rows(Entries.joined(entries), shape, name)
    return both_views(_without_gaps(by_row, name, strict), shape)


def both_views(by_row: View, shape: Shape) -> tuple[View, View]:
    """A view of the rows and that of the columns; with the whole matrix if it is mostly seen."""
    cells = shape[0] * shape[1]
    by_column = transposed(by_row, shape)
    if by_row.values.size < DENSE_DENSITY * cells or cells > DENSE_CELLS:
        return by_row, by_column
    return _with_whole(by_row, shape[1]), _with_whole(by_column, shape[0])


def taken(view: View, kept: BoolArray) -> View:
    """A view of some of the entries, without the whole matrix."""
    before, indptr = np.cumsum(kept), np.zeros_like(view.indptr)
    some = view.indptr > 0
    indptr[some] = before[view.indptr[some] - 1]
    return View(indptr, view.indices[kept], view.values[kept], None, None)


def transposed(view: View, shape: Shape) -> View:
    """The same entries column after column, without the whole matrix."""
    from scipy.sparse import csr_array

    # SciPy widens all indices if pointers are wide.
    narrow = view.indptr.astype(np.min_scalar_type(-max(view.values.size, 2**16)))
    matrix = csr_array((view.values, view.indices, narrow), shape=shape)
    return _plain_view(matrix.tocsc())


def refilled(view: View, values: FloatArray) -> View:
    """A view of the same cells with other values, in its own order."""
    if view.filled is None:
        return replace(view, values=values)
    filled = np.zeros_like(view.filled)
    filled[view.owners, view.indices] = values
    return replace(view, values=values, filled=filled)


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
    if np.isfinite(view.values).all():
        return view

    def refuse(bad: BoolArray, why: str) -> None:
        if bad.any():
            k = int(bad.argmax())
            i = int(np.searchsorted(view.indptr, k, side="right")) - 1
            raise DataError(f"{name(i, int(view.indices[k]))} {why}.")

    refuse(np.isinf(view.values), "is infinite; use NaN for a missing entry")
    seen = ~np.isnan(view.values)
    if strict:
        refuse(~seen, "is missing though mask is True there; set mask to False")
    return taken(view, seen)


def _with_whole(view: View, width: int) -> View:
    """The view with the whole matrix beside it."""
    filled, mask = np.zeros((view.n, width)), np.zeros((view.n, width))
    owners = view.owners
    filled[owners, view.indices], mask[owners, view.indices] = view.values, 1.0
    return replace(view, filled=filled, mask=mask)
