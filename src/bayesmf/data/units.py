"""Units: values are transformed, centred and scaled before a model sees them, and put back after.

A model sees z = (t(x) - a_i - b_j) / (r_i c_j), where t is a transform (none by default), a and b
are averages (`center`) and r or c are sizes (`scale`), of rows, of columns or of all cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesmf._errors import ModelError, nearest
from bayesmf.data.bounds import Bounds
from bayesmf.data.observed import Array, ObservedMatrix, View
from bayesmf.data.offsets import CENTRES, Offsets, fit_offsets
from bayesmf.data.transforms import Transforms, check, fit_transforms

SCALES = ("auto", "none", "global", "cols", "rows")
_SPARSE = 0.1  # share of observed cells below which all columns are taken to have one unit
_FEW = 3  # entries below which a column has no size of its own
_ROUNDING = 1e-12  # of the values: a smaller size is that of rounding errors


@dataclass(frozen=True, eq=False)
class Units:
    """What was done to the data: a transform, offsets and scales (I,) and (J,) of both sides."""

    offsets: Offsets
    scale: str
    rows: Array
    cols: Array
    transforms: Transforms | None = None
    note: str = ""

    @property
    def changed(self) -> bool:
        """Whether the model sees other numbers than those of the user."""
        return self.offsets.center != "none" or self.scale != "none" or self.transforms is not None

    @property
    def by_columns(self) -> bool:
        """Whether all cells of a column are treated alike."""
        return self.offsets.center not in ("rows", "both") and self.scale != "rows"

    def shift(self, cells: tuple[Array, Array]) -> Array:
        """Offsets of cells."""
        return self.offsets.rows[cells[0]] + self.offsets.cols[cells[1]]

    def size(self, cells: tuple[Array, Array]) -> Array:
        """Scales of cells."""
        return self.rows[cells[0]] * self.cols[cells[1]]

    def forward(self, values: Array, cells: tuple[Array, Array]) -> Array:
        """Values of cells as the model sees them."""
        if self.transforms is not None:
            values = self.transforms.apply("forward", values, np.asarray(cells[1]))
        return (values - self.shift(cells)) / self.size(cells)

    def off(self, X: ObservedMatrix) -> ObservedMatrix:
        """The data as the model sees them, known errors and intervals too."""
        if not self.changed:
            return X
        if self.transforms is not None:
            check(X, self.transforms)
        i, j, values = X.triples()
        size = self.size((i, j))
        bounds = None
        if X.bounds is not None:
            ends = (self.forward(end, (i, j)) for end in (X.bounds.low, X.bounds.high))
            bounds = Bounds(*ends)
        return replace(
            X.with_values(self.forward(values, (i, j))), bounds=bounds,
            errors=None if X.errors is None else X.errors / size,
        )  # fmt: skip

    def limit(self, limit: Any, shape: tuple[int, int]) -> Any:
        """A limit of values (a number, one for each column or for each cell) in the model's."""
        if limit is None or not self.changed:
            return limit
        given = np.asarray(limit, dtype=np.float64)
        if given.ndim < 2:
            cols = np.arange(shape[1])
            if given.ndim and given.size != cols.size:
                return limit  # of another length, which the likelihood refuses
            return self.forward(np.broadcast_to(given, cols.shape), (np.zeros_like(cols), cols))
        i, j = np.indices(given.shape).reshape(2, -1)
        return self.forward(given.ravel(), (i, j)).reshape(given.shape)

    def of_new_rows(self, X: ObservedMatrix) -> Units:
        """The same for other rows: what belongs to rows is found from their own entries."""
        bare = replace(self, scale="none", offsets=_no_offsets(X), rows=np.ones(X.shape[0]))
        bare = replace(bare, cols=np.ones(X.shape[1]))
        offsets = self.offsets.of_new_rows(bare.off(X))
        rows = np.full(X.shape[0], self.rows[0] if self.rows.size else 1.0)
        if self.scale == "rows":
            centred = replace(bare, offsets=offsets).off(X)
            rows = _sizes(centred.rows, bare.off(X).rows, float(np.median(self.rows)))
        return replace(self, offsets=offsets, rows=rows)

    def of_new_cols(self, X: ObservedMatrix) -> Units:
        """The same for other columns: what belongs to columns is found from their own entries."""
        if self.transforms is not None and len(self.transforms.kinds) > 1:
            raise ModelError("New columns need a transformation that is the same in all columns.")
        m, transforms = X.shape[1], self.transforms
        if transforms is not None:
            transforms = replace(transforms, of=np.zeros(m, dtype=np.int64))
        bare = replace(
            self, scale="none", offsets=_no_offsets(X), rows=np.ones(X.shape[0]), cols=np.ones(m),
            transforms=transforms,
        )  # fmt: skip
        offsets = self.offsets.of_new_cols(bare.off(X))
        cols = np.full(m, self.cols[0] if self.cols.size else 1.0)
        if self.scale == "cols":
            centred = replace(bare, offsets=offsets).off(X)
            cols = _sizes(centred.cols, bare.off(X).cols, float(np.median(self.cols)))
        return replace(self, offsets=offsets, cols=cols, transforms=transforms)

    def with_rows_of(self, other: Units) -> Units:
        """The same with what belongs to rows from others."""
        offsets = replace(self.offsets, rows=other.offsets.rows)
        return replace(self, offsets=offsets, rows=other.rows)


def plain(X: ObservedMatrix) -> Units:
    """Units of data that are left as they are."""
    return Units(_no_offsets(X), "none", np.ones(X.shape[0]), np.ones(X.shape[1]))


def fit_units(
    X: ObservedMatrix,
    center: str = "auto",
    scale: str = "auto",
    transform: Any = None,
    *,
    fixed: bool = False,
    nonnegative: bool = False,
) -> Units:
    """Units of a matrix.

    Parameters
    ----------
    center
        What is subtracted: "none", "global", "rows", "cols" or "both"; "auto" is as ``scale`` says,
        and none where that would make values negative that must not be.
    scale
        What values are divided by: the root mean square of what is left after centring, of all
        cells ("global"), of each column ("cols") or each row ("rows"), or nothing ("none").
        "auto" is "cols", but "global" where fewer than a tenth of the cells are observed, or where
        columns have features, which are to explain how columns differ.
    transform
        A name of `TRANSFORMS`, one for each column, or a dictionary of columns.
    fixed
        Whether values are counts or categories, which nothing may change.
    nonnegative
        Whether values must stay at or above zero.
    """
    for name, value, known in (("scale", scale, SCALES), ("center", center, ("auto", *CENTRES))):
        if value not in known:
            hint = nearest(str(value), known)
            raise ModelError(f"{name} must be one of {', '.join(known)}, got {value!r}.{hint}")
    X.check_entries()
    asked, transforms = (center, scale), fit_transforms(X, transform)
    if scale == "auto":
        shared = X.density < _SPARSE or X.features(1) is not None
        scale = "none" if fixed else "global" if shared else "cols"
    if center == "auto":
        center = "none" if fixed or nonnegative or scale == "rows" else scale
        center = "cols" if transforms is not None and not (fixed or nonnegative) else center
    bare = replace(plain(X), transforms=transforms)
    values = bare.off(X)
    offsets = _offsets(values, center)
    centred = replace(bare, offsets=offsets).off(X)
    rows, cols = np.ones(X.shape[0]), np.ones(X.shape[1])
    if scale == "global":
        cols *= _size(centred.rows.values, values.rows.values)
    elif scale == "cols":
        cols = _sizes(centred.cols, values.cols)
    elif scale == "rows":
        rows = _sizes(centred.rows, values.rows)
    return Units(offsets, scale, rows, cols, transforms, _note(asked, offsets.center, scale, X))


def _offsets(X: ObservedMatrix, center: str) -> Offsets:
    """Averages, found in units in which steps of an iteration can be told from nothing."""
    unit = _size(X.rows.values, X.rows.values)
    found = fit_offsets(X.with_values(X.rows.values / unit), center)
    return Offsets(center, unit * found.rows, unit * found.cols, unit * found.otherwise)


def _no_offsets(X: ObservedMatrix) -> Offsets:
    return Offsets("none", np.zeros(X.shape[0]), np.zeros(X.shape[1]))


def _sizes(centred: View, values: View, typical: float | None = None) -> Array:
    """Root mean square of every row of a view.

    A row with too few entries, or with a single value throughout, gets the share of its values'
    root mean square that is typical of the other rows; without any value but zero, a typical size.
    """
    found, whole = _root_mean_squares(centred), _root_mean_squares(values)
    good = (centred.counts >= _FEW) & (found > _ROUNDING * whole)
    share = float(np.median(found[good] / whole[good])) if good.any() else 1.0
    sizes = np.where(good, found, share * whole)
    if typical is None:
        typical = float(np.median(sizes[sizes > 0])) if (sizes > 0).any() else 1.0
    return np.where(sizes > 0, sizes, typical)


def _root_mean_squares(view: View) -> Array:
    """That of every row, by its largest value, so that squares stay in the range of doubles."""
    some, first = view.counts > 0, view.indptr[:-1]
    largest = np.maximum.reduceat(np.append(np.abs(view.values), 0.0), first) * some
    unit = np.where(largest > 0, largest, 1.0)
    squares = np.append((view.values / np.repeat(unit, view.counts)) ** 2, 0.0)
    return unit * np.sqrt(np.add.reduceat(squares, first) * some / np.maximum(view.counts, 1))


def _size(centred: Array, values: Array) -> float:
    """Root mean square of all values, centred or, if that leaves rounding errors alone, not."""
    largest = np.abs(centred).max(), np.abs(values).max()
    part, unit = (
        (centred, largest[0]) if largest[0] > _ROUNDING * largest[1] else (values, largest[1])
    )
    return float(unit * np.sqrt(np.mean((part / unit) ** 2))) if unit > 0 else 1.0


def _note(asked: tuple[str, str], center: str, scale: str, X: ObservedMatrix) -> str:
    """What an automatic choice was, and why, in a sentence; nothing where nothing was done."""
    if "auto" not in asked or (center, scale) == ("none", "none"):
        return ""
    whose = {"cols": "each column", "rows": "each row", "global": "all values"}
    done = []
    if center != "none":
        done.append(f"less the mean of {whose.get(center, 'its row and column')}")
    if scale != "none":
        size = "standard deviation" if center == scale else "root mean square"
        done.append(f"divided by the {size} of {whose[scale]}")
    what = f"{X.density:.3g} of the cells are observed"
    what = what if X.features(1) is None else "the columns have features"
    why = f" (scale='auto': {what})" if asked[1] == "auto" else ""
    return f"The model sees values {' and '.join(done)}{why}; results are in the data's units."
