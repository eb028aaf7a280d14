"""Numbers of groups of features: principal directions, kernels, rows of the mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from bayesmf import _threads
from bayesmf._errors import DataError
from bayesmf.data.encoding import Source, in_order, places
from bayesmf.data.observed import FloatArray, Labels, View

_CELLS = 50_000_000  # of a table that is decomposed as it is; larger ones by their Gram matrix
LOST = 1e-12  # of the largest singular value: what is smaller is rounding
_LOST_GRAM = 1e-7  # the same where it comes out of a Gram matrix


def principal(x: Any) -> tuple[FloatArray, FloatArray]:
    """Q S and W of the thin singular value decomposition of x; x itself if it is orthogonal."""
    n, P = x.shape
    if n >= P:
        gram = np.asarray((x.T @ x).todense() if hasattr(x, "todense") else x.T @ x)
        root = np.sqrt(np.diag(gram))
        beside = np.abs(gram - np.diag(np.diag(gram)))
        if (beside <= 1e-13 * np.outer(root, root)).all() and (root > LOST * root.max()).all():
            return np.ascontiguousarray(x.toarray() if hasattr(x, "toarray") else x), np.eye(P)
    if n * P <= _CELLS:
        Q, S, Wt = linalg.svd(x.toarray() if hasattr(x, "toarray") else x, full_matrices=False)
        kept = LOST * S[0] < S
        W = Wt[kept].T
        signs = _signs(W)
        return np.ascontiguousarray(Q[:, kept] * (S[kept] * signs)), np.ascontiguousarray(W * signs)
    short = x @ x.T if n <= P else x.T @ x
    squares, vectors = linalg.eigh(
        np.asarray(short.todense() if hasattr(short, "todense") else short)
    )
    kept = squares > _LOST_GRAM**2 * squares[-1]
    vectors, S = vectors[:, kept], np.sqrt(squares[kept])
    if n <= P:
        return np.ascontiguousarray(vectors * S), np.asarray(x.T @ (vectors / S))
    return np.ascontiguousarray(x @ vectors), vectors


def kernel_roots(kernel: FloatArray, what: str) -> tuple[FloatArray, float]:
    """Eigenvectors times roots of eigenvalues (n, r) of a kernel over its mean diagonal.

    And the root of that mean, which is the length of a row.
    """
    size = np.abs(kernel).max()
    if not np.allclose(kernel, kernel.T, atol=1e-8 * size):
        raise DataError(f"{what}: the kernel is not symmetric; give similarities of rows to rows.")
    length = float(np.sqrt(max(np.diag(kernel).mean(), 0.0)))
    if not length > 0:
        raise DataError(f"{what}: the diagonal of the kernel must be positive.")
    with _threads.one_blas_thread():
        values, vectors = linalg.eigh(0.5 * (kernel + kernel.T) / length**2)
    if values[0] < -1e-6 * values[-1]:
        raise DataError(
            f"{what}: the kernel has the eigenvalue {values[0] * length**2:.3g}; it must be "
            "positive semidefinite: add a number to its diagonal."
        )
    kept = values > 1e-10 * values[-1]
    vectors = vectors[:, kept]
    return np.ascontiguousarray(vectors * np.sqrt(values[kept]) * _signs(vectors)), length


def _signs(vectors: FloatArray) -> FloatArray:
    """Signs that make the largest entry of every column positive."""
    top = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return np.where(top < 0, -1.0, 1.0)


def mask_rows(view: View, m: int) -> Any:
    """Rows of the mask over the root of their counts, as a CSR array (n, m)."""
    from scipy.sparse import csr_array

    roots = np.repeat(np.maximum(view.counts, 1) ** -0.5, view.counts)
    return csr_array((roots, view.indices, view.indptr), shape=(view.n, m))


def square(source: Source, labels: Labels, n: int, what: str) -> Source:
    """A kernel in the order of the labels."""
    if source.values.shape[0] != source.values.shape[1]:
        raise DataError(f"{what}: a kernel has as many columns as rows, not {source.values.shape}.")
    values = _numbers(source, what)
    if labels is None or source.labels is None:
        return in_order(Source(values), None, n, what)
    columns = np.array([*source.values.columns, None], dtype=object)[:-1]
    rows, cols = (places(side, labels, what) for side in (source.labels, columns))
    return Source(values[np.ix_(rows, cols)])


def _numbers(source: Source, what: str) -> FloatArray:
    """All similarities as an array."""
    values = source.values.toarray() if source.is_sparse else source.values
    try:
        values = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{what}: a kernel must hold numbers; make them of its text.") from None
    if not np.isfinite(values).all():
        raise DataError(f"{what}: a kernel must have no gaps; fill or drop them.")
    return values


def similarities(
    source: Source, labels: Labels, n: int, what: str
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Similarities of new rows to the n fitted ones, and of each to itself, NaN if not given."""
    values = _numbers(source, what)
    m = len(values)
    if source.is_frame and labels is not None and source.labels is not None:
        columns = np.array([*source.values.columns, None], dtype=object)[:-1]
        known = values[:, places(columns, labels, what)]
        if set(source.labels) <= set(columns):
            return known, values[np.arange(m), places(columns, source.labels, what)]
        return known, np.full(m, np.nan)
    if values.shape[1] not in (n, n + m):
        raise DataError(
            f"{what}: new rows need similarities to the {n} fitted ones, or to these and the {m} "
            f"new ones, not {values.shape[1]}."
        )
    own = np.diag(values[:, n:]) if values.shape[1] == n + m else np.full(m, np.nan)
    return values[:, :n], own


def row_squares(x: Any) -> FloatArray:
    """Squared lengths of rows."""
    if hasattr(x, "multiply"):
        return np.asarray(x.multiply(x).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", x, x)


def column_squares(x: Any) -> FloatArray:
    """Squared lengths of columns."""
    if hasattr(x, "multiply"):
        return np.asarray(x.multiply(x).sum(axis=0)).ravel()
    return np.einsum("ij,ij->j", x, x)
