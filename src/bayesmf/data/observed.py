"""A matrix with missing entries: its two views, labels, and what else is known of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bayesmf._arguments import checked
from bayesmf._cached import cached_property
from bayesmf._errors import DataError
from bayesmf.data import frames
from bayesmf.data.bounds import Bounds
from bayesmf.data.inputs import (
    Labels,
    Names,
    as_array,
    as_floats,
    as_labels,
    as_positions,
    cell_name,
    checked_mask,
    checked_shape,
    coordinates,
    dense_entries,
    places,
)
from bayesmf.data.origin import Origin
from bayesmf.data.views import (
    Array,
    BoolArray,
    FloatArray,
    Gathered,
    IntArray,
    Shape,
    View,
    doubles,
    lay_out,
    refilled,
    total,
    transposed,
)

if TYPE_CHECKING:
    from bayesmf.data.features import Features

LARGEST = 1e100  # entries beyond which squares, and their products, leave the range of doubles


@dataclass(frozen=True, eq=False, repr=False)
class ObservedMatrix:
    """A matrix with missing entries; make one with `of` or `from_triples`."""

    shape: Shape
    rows: View
    cols: View  # the view of the transpose
    row_labels: Labels = None
    col_labels: Labels = None
    errors: FloatArray | None = None  # known standard deviations of the entries, in row order
    bounds: Bounds | None = None  # intervals of the entries, in row order
    origin: Origin | None = None  # of what table it was read, and what reading it decided
    row_features: Features | None = None
    col_features: Features | None = None
    # Sides with features that say which of their entries are observed: "rows", "cols" or "both".
    pattern: str | None = None

    @classmethod
    @checked
    def of(
        cls, X: Any, mask: Any = None, row_labels: Any = None, col_labels: Any = None,
        *, single: bool = False, **known: Any,
    ) -> ObservedMatrix:  # fmt: skip
        """Read a matrix from any of the usual containers.

        Parameters
        ----------
        X : array, masked array, DataFrame, nested lists, sparse matrix or array, or 3-tuple
            NaN, None and pandas.NA are missing, and so are masked cells. In a scipy.sparse
            container the stored entries are the observed ones, explicit zeros included. Mind
            that DIA cannot tell a stored zero from padding, so its zeros are missing, and that
            BSR stores whole blocks, so the zeros inside a block are observed. Any 3-tuple is
            read by `from_triples`. AnnData are read by `from_anndata`. An `ObservedMatrix` is
            returned as it is.
        mask : boolean array, optional
            True where a cell of a dense `X` is observed; the content of others is ignored.
        row_labels, col_labels : iterable of hashable, optional
            Names of the rows and columns; by default those of a DataFrame, but none of rows if its
            index repeats some.
        single
            Whether to keep values in single precision, which halves them: each is rounded to its
            first seven digits, and all arithmetic on them stays in double. Ratings, counts and
            other numbers that single precision holds exactly give the same draws, bit for bit. An
            ``ObservedMatrix`` that is in single precision already stays so.
        **known
            Features of rows and columns, as `with_features` takes them.

        Examples
        --------
        >>> X = ObservedMatrix.of([[1.0, None], [2.0, 3.0]], col_labels=["a", "b"])
        >>> X, X.cell_name(0, 1)
        (ObservedMatrix(2 x 2, 3 observed, 75.0 %), "row 0, column 'b'")
        """
        if known:
            return cls.of(X, mask, row_labels, col_labels, single=single).with_features(**known)
        if isinstance(X, ObservedMatrix):
            if mask is not None or row_labels is not None or col_labels is not None:
                raise DataError("An ObservedMatrix has its mask and labels already; pass only X.")
            from bayesmf.data.parts import in_single

            return in_single(X) if single else X
        if hasattr(X, "obs_names") and hasattr(X, "var_names"):
            from bayesmf.data.annotated import from_anndata

            if mask is not None or row_labels is not None or col_labels is not None:
                raise DataError("AnnData have labels and gaps of their own; pass only X.")
            return cls.of(from_anndata(X), single=single)
        is_triple, is_sparse = isinstance(X, tuple) and len(X) == 3, hasattr(X, "tocoo")
        if mask is not None and (is_triple or is_sparse):
            raise DataError("mask goes with a dense matrix; leave unobserved entries out of X.")
        if is_triple:
            return cls.from_triples(X[0], X[1], X[2], None, row_labels, col_labels, single=single)
        if frames.is_frame(X):
            frames.refuse_text(X)
            own = frames.labels(X)
            row_labels = own[0] if row_labels is None else row_labels
            col_labels = own[1] if col_labels is None else col_labels
        # COO leaves duplicates apart.
        source: Any = coordinates(X) if is_sparse else as_array(X)
        shape = checked_shape(source.shape)
        names = as_labels(row_labels, shape[0], "row"), as_labels(col_labels, shape[1], "column")
        if is_sparse:
            values = as_floats(source.data, source.row, source.col, names)
            entries = Gathered([places(source.row, source.col, values)], single)
            del source, values
            return cls.of_entries(entries, shape, names)
        flags = None if mask is None else checked_mask(mask, X, shape)
        entries = Gathered(dense_entries(source, flags, names), single)
        return cls.of_entries(entries, shape, names, strict=mask is not None)

    @classmethod
    @checked
    def from_triples(
        cls,
        rows: Any,
        cols: Any,
        values: Any,
        shape: Shape | None = None,
        row_labels: Any = None,
        col_labels: Any = None,
        *,
        single: bool = False,
    ) -> ObservedMatrix:
        """Read a matrix from one (row, column, value) triple for each observed entry.

        Parameters
        ----------
        rows, cols : sequences of int or of labels
            Integers are positions. Anything else is a label: labels are numbered in order of
            first appearance, or in the order of `row_labels` and `col_labels` when given.
        values : sequence of float
            A triple whose value is NaN or None is missing, but its row and column exist.
        shape : tuple of int, by default just large enough
        row_labels, col_labels : iterable of hashable, optional
        single
            Whether to keep values in single precision, as in `of`.

        Examples
        --------
        >>> X = ObservedMatrix.from_triples(["b", "a", "b"], [0, 0, 2], [1.0, 2.0, 3.0])
        >>> X.row_labels.tolist(), X.shape
        (['b', 'a'], (2, 3))
        """
        limits = (None, None) if shape is None else checked_shape(shape)
        i, n, row_names = as_positions(rows, limits[0], row_labels, "row")
        j, m, col_names = as_positions(cols, limits[1], col_labels, "column")
        x = as_array(values).ravel()
        sizes = i.size, j.size, x.size
        if len(set(sizes)) > 1:
            raise DataError(f"rows, cols and values have different lengths {sizes}; match them.")
        names, shape = (row_names, col_names), checked_shape((n, m))
        entries = Gathered([places(i, j, as_floats(x, i, j, names))], single)
        return cls.of_entries(entries, shape, names)

    @classmethod
    def of_entries(
        cls, entries: Gathered, shape: Shape, names: Names = (None, None), strict: bool = False
    ) -> ObservedMatrix:
        """Return the matrix of entries in any order, which are taken.

        Missing ones are left out, or refused if ``strict``.
        """
        views = lay_out(entries, shape, lambda i, j: cell_name(i, j, names), strict)
        return cls(shape, *views, *names)

    @property
    def n_observed(self) -> int:
        """Number of observed entries."""
        return self.rows.stored.size

    @property
    def density(self) -> float:
        """Share of the cells that are observed."""
        return self.n_observed / (self.shape[0] * self.shape[1])

    @property
    def is_dense(self) -> bool:
        """Whether the views hold the whole matrix; the share of observed entries decides."""
        return self.rows.filled is not None

    @property
    def is_single(self) -> bool:
        """Whether values are kept in single precision."""
        return self.rows.stored.dtype == np.float32

    @property
    def empty_rows(self) -> BoolArray:
        """Flags of the rows without any observed entry."""
        return self.rows.counts == 0

    @property
    def empty_cols(self) -> BoolArray:
        """Flags of the columns without any observed entry."""
        return self.cols.counts == 0

    @cached_property
    def mean(self) -> float:
        """Mean of the observed values."""
        return float(np.divide(total(self.rows.stored), self.n_observed))

    @cached_property
    def variance(self) -> float:
        """Mean squared deviation of the observed values from their mean."""
        squares = total(self.rows.stored, lambda x: (x - self.mean) ** 2)
        return float(np.divide(squares, self.n_observed))

    @cached_property
    def weights(self) -> tuple[FloatArray, FloatArray] | None:
        """Inverse squares of the known errors, in the order of the rows and of the columns."""
        if self.errors is None:
            return None
        weights = self.errors**-2.0
        return weights, weights[self.column_order]

    @property
    def column_order(self) -> Array:
        """Positions in row order of the entries in column order (N,), worked out once."""
        if "from rows" not in self.cols.cache:
            kind = np.min_scalar_type(max(self.n_observed, 2**16))
            order = np.arange(self.n_observed, dtype=kind)
            self.cols.cache["from rows"] = transposed(
                replace(self.rows, stored=order), self.shape
            ).stored
        return self.cols.cache["from rows"]

    def transpose(self) -> ObservedMatrix:
        """Return the transpose, which shares its views with this matrix."""
        n, m = self.shape
        return ObservedMatrix(
            (m, n), self.cols, self.rows, self.col_labels, self.row_labels,
            None if self.errors is None else self.errors[self.column_order],
            None if self.bounds is None else self.bounds.take(self.column_order),
            self.origin, self.col_features, self.row_features,
            _TRANSPOSED.get(self.pattern, self.pattern),
        )  # fmt: skip

    T = property(transpose)

    def triples(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return fresh arrays of the rows, columns and values of the entries, in row order."""
        values = self.rows.stored.astype(np.float64)
        return self.rows.owners, self.rows.indices.astype(np.int64), values

    def to_array(self) -> FloatArray:
        """Return the matrix as an array with NaN at the missing cells."""
        rows, cols, values = self.triples()
        array = np.full(self.shape, np.nan)
        array[rows, cols] = values
        return array

    def take(self, selected: npt.ArrayLike) -> ObservedMatrix:
        """Return the matrix with only the selected entries, in the same shape and labels.

        `selected` holds a flag for each entry in row order, or positions in that order.

        Examples
        --------
        >>> ObservedMatrix.of([[1.0, 2.0], [3.0, 4.0]]).take([0, 3]).to_array()
        array([[ 1., nan],
               [nan,  4.]])
        """
        from bayesmf.data.parts import take

        return take(self, selected)

    def part(
        self, rows: npt.ArrayLike | None = None, cols: npt.ArrayLike | None = None
    ) -> ObservedMatrix:
        """Return the matrix of some rows and columns, given by flags or positions, in order.

        Their features are made anew from these rows and columns alone.

        Examples
        --------
        >>> ObservedMatrix.of([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).part([2, 0]).to_array()
        array([[5., 6.],
               [1., 2.]])
        """
        from bayesmf.data.parts import part

        return part(self, rows, cols)

    def with_features(
        self, row_features: Any = None, col_features: Any = None, *, row_kernel: Any = None,
        col_kernel: Any = None, pattern: str | None = None,
    ) -> ObservedMatrix:  # fmt: skip
        """Return the matrix with what is known of its rows and columns besides their entries.

        Parameters
        ----------
        row_features, col_features
            Features (I, .) of the rows and (J, .) of the columns: arrays, DataFrames (matched by
            label), sparse matrices, dictionaries of several, or `Features`.
        row_kernel, col_kernel
            Similarities (I, I) of the rows, or (J, J) of the columns, to each other.
        pattern
            "rows", "cols" or "both": features that say which entries of a row, or column, are
            observed. They follow the entries of the matrix, also after `take`.

        Examples
        --------
        >>> X = ObservedMatrix.of([[1.0, None], [2.0, 3.0], [4.0, 5.0]])
        >>> X.with_features([[0.0], [1.0], [5.0]], pattern="rows").features(0)
        Features(3 rows; features: 1, pattern: 2)
        """
        from bayesmf.data.informed import with_features

        known = (row_features, row_kernel), (col_features, col_kernel)
        return with_features(self, known, pattern)

    @property
    def has_features(self) -> bool:
        """Whether anything is known of rows or columns besides their entries."""
        return not (
            self.row_features is None and self.col_features is None and self.pattern is None
        )

    def without_features(self) -> ObservedMatrix:
        """Return the matrix with its entries alone."""
        if not self.has_features:
            return self
        return replace(self, row_features=None, col_features=None, pattern=None)

    def features(self, axis: int) -> Features | None:
        """All features of the rows (0) or columns (1), the pattern included, if there are any."""
        from bayesmf.data.informed import features_of

        return features_of(self, axis)

    def with_values(self, values: Array) -> ObservedMatrix:
        """Return the matrix with other values of its entries, given in row order.

        Errors and intervals stay as they are.
        """
        mine = refilled(self.rows, values), refilled(self.cols, values[self.column_order])
        return replace(self, rows=mine[0], cols=mine[1])

    @checked
    def between(self, low: npt.ArrayLike, high: npt.ArrayLike) -> ObservedMatrix:
        """Return the matrix with entries known up to an interval only.

        Parameters
        ----------
        low, high
            Ends of the intervals: numbers, or arrays (I, J); infinite where an end is open. An
            entry is exact where both ends are equal or NaN; other cells are left out.

        Examples
        --------
        >>> X = ObservedMatrix.of([[1.0, 8.0], [3.0, None]])
        >>> X.between([[1, 8], [2.5, 0]], [[1, float("inf")], [3.5, 0]]).bounds.places
        array([1, 2])
        """
        rows, cols, values = self.triples()
        ends = []
        for name, end in (("low", low), ("high", high)):
            try:
                whole = np.broadcast_to(np.asarray(end, dtype=np.float64), self.shape)
            except ValueError:
                raise DataError(f"{name} does not have the shape {self.shape} of X.") from None
            ends.append(np.where(np.isnan(whole[rows, cols]), values, whole[rows, cols]))
        if (crossed := ends[0] > ends[1]).any():
            k = int(crossed.argmax())
            cell = self.cell_name(rows[k], cols[k])
            raise DataError(f"{cell} lies between {ends[0][k]:g} and {ends[1][k]:g}; swap them.")
        return replace(self, bounds=Bounds(*ends))

    @checked
    def rounded(self, unit: float = 1.0) -> ObservedMatrix:
        """Return the matrix with values that were rounded to multiples of a unit.

        Examples
        --------
        >>> X = ObservedMatrix.of([[1.0, 2.0]]).rounded(0.5)
        >>> X.bounds.low, X.bounds.high
        (array([0.75, 1.75]), array([1.25, 2.25]))
        """
        if not unit > 0:
            raise DataError(f"unit must be a positive number, got {unit!r}.")
        values = self.rows.values
        return replace(self, bounds=Bounds(values - unit / 2, values + unit / 2))

    def cell_name(self, i: int, j: int) -> str:
        """Return how messages call a cell: by its labels, or else by its position."""
        return cell_name(i, j, (self.row_labels, self.col_labels))

    def names(self) -> tuple[list[str], list[str]]:
        """Return labels of rows and columns as texts; positions where there are none."""
        rows, cols = (
            [str(label) for label in (range(n) if labels is None else labels)]
            for n, labels in zip(self.shape, (self.row_labels, self.col_labels), strict=True)
        )
        return rows, cols

    def check_entries(self) -> None:
        """Raise a DataError if there is no observed entry."""
        if not self.n_observed:
            raise DataError("The matrix has no observed entry; at least one is needed.")

    def check_range(self) -> None:
        """Raise a DataError if there is an entry whose square is too large."""
        values = self.rows.stored
        if max(float(values.max(initial=0.0)), -float(values.min(initial=0.0))) > LARGEST:
            large = np.abs(values) > LARGEST
            i, j, value = (part[large][0] for part in self.triples())
            raise DataError(
                f"{self.cell_name(i, j)} is {value:g}, too large to compute with; divide all "
                f"values, so that none lies beyond {LARGEST:g}."
            )

    def complaint(self, bad: BoolArray, what: str, needs: str) -> str:
        """Return a sentence that names the first of the bad entries, flagged in row order."""
        i, j, value = (part[bad][0] for part in self.triples())
        cell = f"{self.cell_name(i, j)} is {value:g}"
        return f"{what} needs {needs}: {cell}; correct it or choose another model."

    def fingerprint(self, *, features: bool = True) -> str:
        """Return a hash of shape, places and values of the data, and of features if wanted.

        The same numbers have the same hash, whether in single precision or in double.
        """
        digest = hashlib.sha256(repr(self.shape).encode())
        arrays = [self.rows.indptr, self.rows.indices, *doubles(self.rows.stored)]
        arrays += [] if self.errors is None else [self.errors]
        arrays += [] if self.bounds is None else [self.bounds.low, self.bounds.high]
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
        if not features:
            return digest.hexdigest()
        for side, known in (("rows", self.row_features), ("cols", self.col_features)):
            if known is not None:
                digest.update(f"features of {side} {known.fingerprint()}".encode())
        if self.pattern is not None:
            digest.update(f"pattern of {self.pattern}".encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        n, m = self.shape
        share = f"{100 * self.density:.1f} %{', single precision' if self.is_single else ''}"
        return f"ObservedMatrix({n} x {m}, {self.n_observed} observed, {share})"


_TRANSPOSED: dict[str | None, str] = {"rows": "cols", "cols": "rows"}
