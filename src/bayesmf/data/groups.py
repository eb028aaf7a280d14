"""A group of features: its principal directions, and the same directions of other rows.

With the thin singular value decomposition X = Q S W^T the n x r design Q S takes the place of the
n x P features, since what of their weights is orthogonal to W is never seen by the data. Where that
would be too large, the design is the features themselves. A group is divided by the root mean
square length of its rows, so that the number of its features and their units do not matter.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from bayesmf import _threads
from bayesmf._cached import cached_property
from bayesmf._errors import DataError, positive
from bayesmf.data.decomposition import (
    LOST,
    column_squares,
    kernel_roots,
    mask_rows,
    principal,
    row_squares,
)
from bayesmf.data.designs import is_sparse, times, transposed_times
from bayesmf.data.encoding import Encoding, Source, fit_encoding
from bayesmf.data.observed import Array, FloatArray, View

#: Rows or features, whichever are fewer, of a table that is decomposed.
LARGEST = 10_000
_MOST = 2 * LARGEST**2  # numbers in a design
_REMEMBERED = 16  # products: two for each of some chains
Kind = Literal["features", "kernel", "pattern"]


@dataclass(frozen=True, eq=False)
class Group:
    """Features with one prior precision of their weights, which is Gamma(alpha, beta).

    ``design`` (n, r) has orthogonal columns, the principal directions of the features; ``loadings``
    (P, r) say how each feature contributes to them (None for a kernel). ``outside`` (n,) is the
    squared length of what new rows have outside the directions of the fitted ones. Without
    ``is_decomposed`` the design is the features (n, P) as they are, often a sparse array.
    """

    name: str
    kind: Kind
    design: Any
    loadings: FloatArray | None
    length: float
    encoding: Encoding | None = None
    source: Any = None
    outside: FloatArray | None = None
    squares: FloatArray | None = None  # squared lengths of the columns of the fitted design
    alpha: float = 1.0
    beta: float = 1.0
    standardize: bool = True
    is_decomposed: bool = True
    _products: dict[tuple[int, int], tuple[Array, Array]] = field(
        init=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        positive(self, alpha=self.alpha, beta=self.beta)
        if self.squares is None:
            object.__setattr__(self, "squares", column_squares(self.design))

    @property
    def rank(self) -> int:
        """Number r of principal directions, or of features that have none."""
        return self.design.shape[1]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features; numbers where they have none."""
        if self.encoding is not None:
            return self.encoding.names
        kernel = self.design.shape[self.kind != "kernel"]
        return tuple(str(p) for p in range(kernel if self.loadings is None else len(self.loadings)))

    def fitted(self, weights: Array) -> Array:
        """What these weights (r, K), or (r,), add to the means of rows (n, K), or (n,).

        A sweep asks several times for the same, so each chain's last answer is remembered.
        """
        key = threading.get_ident(), weights.ndim
        last = self._products.get(key)
        if last is None or not np.array_equal(last[0], weights):
            if len(self._products) >= _REMEMBERED:
                self._products.clear()
            product = times(self.design, weights)
            product.flags.writeable = False
            last = self._products[key] = weights.copy(), product
        return last[1]

    def moments(self, rows: Array) -> Array:
        """Sums over the rows (n, K) of each direction times each factor (r, K)."""
        if is_sparse(self.design):
            return times(self.transposed, rows)
        return transposed_times(self.design, rows)

    @cached_property
    def transposed(self) -> Any:
        """The transpose of a sparse design, laid out by its rows."""
        return self.design.T.tocsr()

    def of_rows(self, x: Any) -> Group:
        """The same group of other rows, of which the encoded features are x (m, P)."""
        x = x / self.length
        if not self.is_decomposed:
            return replace(self, design=x, outside=np.zeros(x.shape[0]), source=None)
        assert self.loadings is not None
        design = np.ascontiguousarray(x @ self.loadings)
        return self._beyond(design, row_squares(x))

    def of_similarities(self, k: FloatArray, own: FloatArray) -> Group:
        """That of a kernel: similarities to the fitted rows (m, n), and of rows to themselves.

        The latter are those of the fitted rows on average where they are NaN.
        """
        assert self.squares is not None
        k, own = k / self.length**2, np.where(np.isnan(own), 1.0, own / self.length**2)
        return self._beyond(np.ascontiguousarray(k @ self.design / self.squares), own)

    def _beyond(self, design: FloatArray, total: FloatArray) -> Group:
        outside = total - row_squares(design)
        outside = np.where(outside > 1e-9 * total, outside, 0.0)
        return replace(self, design=design, outside=outside, source=None)

    def take(self, rows: Array, what: str) -> Group:
        """The group of some rows alone: nothing of the others is left in it."""
        if self.source is None:
            raise DataError(f"{what}: the features of a saved fit cannot be divided; give them.")
        if self.kind == "kernel":
            part = self.source.values[np.ix_(rows, rows)]
            return kernel_group(self.name, Source(part), what, self.alpha, self.beta)
        return feature_group(
            self.name, self.source.take(rows), what, self.standardize, self.alpha, self.beta
        )[0]


def feature_group(
    name: str, source: Source, what: str, standardize: bool, alpha: float, beta: float
) -> tuple[Group, list[str]]:
    """The group of features as they were given, and what there is to say about them."""
    encoding, x, notes = fit_encoding(source, standardize, what)
    group = _scaled(name, "features", x)
    return replace(
        group, encoding=encoding, source=source, alpha=alpha, beta=beta, standardize=standardize
    ), notes


def _scaled(name: str, kind: Kind, x: Any) -> Group:
    """The group of features x (n, P), in its principal directions unless they are too many."""
    length = float(np.sqrt(row_squares(x).mean())) or 1.0
    length = 1.0 if abs(length - 1) < LOST else length
    x = x / length
    if min(x.shape) > LARGEST or x.shape[0] * min(x.shape) > _MOST:
        x = x if is_sparse(x) else np.ascontiguousarray(x)
        return Group(name, kind, x, None, length, is_decomposed=False)
    with _threads.one_blas_thread():
        design, loadings = principal(x)
    return Group(name, kind, design, loadings, length)


def kernel_group(name: str, source: Source, what: str, alpha: float, beta: float) -> Group:
    """The group of a kernel over all rows."""
    design, length = kernel_roots(source.values, what)
    return Group(name, "kernel", design, None, length, source=source, alpha=alpha, beta=beta)


def pattern_group(view: View, m: int) -> Group:
    """The group of the rows of the mask of m columns, over the roots of their counts."""
    return _scaled("pattern", "pattern", mask_rows(view, m))
