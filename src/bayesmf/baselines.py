"""Baselines without a posterior: nonnegative matrix factorisation and averages.

They answer to `predict` as a `bayesmf.Posterior` does, so that they can stand beside it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesmf import _threads
from bayesmf._arguments import checked
from bayesmf._errors import DataError, ModelError, nearest, whole_number
from bayesmf.data.cells import cell_arrays
from bayesmf.data.observed import ObservedMatrix, View
from bayesmf.data.offsets import averages, fit_offsets
from bayesmf.kernels.nmf import multiplicative_update
from bayesmf.kernels.vectors import in_vectors
from bayesmf.priors import distributions as dist
from bayesmf.streams import Array, RandomState, Stream, seed_words
from bayesmf.updates.blocks import blocks, windows
from bayesmf.updates.normal import row_errors

_SMALLEST = 1e-12  # fits and sums below this are taken as this: 0 / 0 is never formed

BASELINES = ("NMF", "row-average", "column-average", "effects", "grand-average")


@dataclass(frozen=True, eq=False)
class PointEstimate:
    """A fitted baseline: predictions U V^T without uncertainty.

    ``train_mse`` and ``seconds`` have one entry per iteration, (1, iterations).
    """

    name: str
    U: Array
    V: Array
    train_mse: Array
    seconds: Array
    row_labels: Array | None
    col_labels: Array | None

    @property
    def mean(self) -> Array:
        """Predictions of all cells, (I, J)."""
        return self.U @ self.V.T

    def predict(self, rows: Any = None, cols: Any = None) -> Array:
        """Predict cells by position, or all of them."""
        if (rows is None) != (cols is None):
            raise ModelError("Give both rows and cols, or neither.")
        if rows is None:
            return self.mean
        i, j = cell_arrays((rows, cols), (len(self.U), len(self.V)))
        return np.einsum("tk,tk->t", self.U[i], self.V[j])


def spelt(name: str) -> str:
    """A name of `BASELINES` that was written with spaces or underscores, as it is there."""
    return name.replace(" ", "-").replace("_", "-")


@checked
def baseline(
    X: Any,
    name: str,
    n_components: int = 10,
    *,
    iterations: int = 500,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> PointEstimate:
    """Fit a baseline.

    Parameters
    ----------
    X
        The matrix, in any form that `bayesmf.sample` takes.
    name
        "NMF" (Lee and Seung's multiplicative updates for the KL objective over the observed
        entries), "row-average", "column-average", "effects" (of rows and columns, added, by least
        squares) or "grand-average", with a hyphen, a space or an underscore.
    n_components
        Rank; for NMF alone, as the next two.
    iterations
        Number of updates.
    random_state
        Seed of the starting point.
    n_jobs
        Threads; the result does not depend on it.

    Examples
    --------
    >>> from bayesmf import baseline
    >>> baseline([[1.0, 2.0], [3.0, float("nan")]], "row-average").predict([1], [1])
    array([3.])
    """
    given, name = name, spelt(name)
    if name not in BASELINES:
        raise ModelError(
            f"Unknown baseline {given!r}; there are {', '.join(BASELINES)}."
            f"{nearest(name, BASELINES)}"
        )
    matrix = ObservedMatrix.of(X)
    matrix.check_entries()
    matrix.check_range()
    if name == "NMF":
        K = whole_number("n_components", n_components)
        return _nmf(matrix, K, iterations, random_state, n_jobs)
    begin = time.perf_counter()
    U, V = np.ones((matrix.shape[0], 1)), np.ones((matrix.shape[1], 1))
    if name == "row-average":
        U[:, 0] = averages(matrix.rows, np.zeros(matrix.shape[1]), matrix.mean)
    elif name == "column-average":
        V[:, 0] = averages(matrix.cols, np.zeros(matrix.shape[0]), matrix.mean)
    elif name == "effects":
        offsets = fit_offsets(matrix, "both")
        U, V = np.column_stack([offsets.rows, U]), np.column_stack([V, offsets.cols])
    else:
        U *= matrix.mean
    error = row_errors(matrix.rows, U, V, 1).sum() / matrix.n_observed
    seconds = time.perf_counter() - begin
    return _estimate(name, matrix, U, V, [error], [seconds])


def _nmf(
    X: ObservedMatrix, K: int, iterations: int, random_state: RandomState, n_jobs: int | None
) -> PointEstimate:
    negative = X.rows.values < 0
    if negative.any():
        raise DataError(X.complaint(negative, "NMF with the KL objective", "nonnegative values"))
    threads = _threads.count(n_jobs)
    stream = Stream(seed_words(random_state))
    scale = (max(X.mean, _SMALLEST) / K) ** 0.5
    U, V = (dist.Exponential(rate=1 / scale).draw(stream, (n, K)) for n in X.shape)
    errors, seconds = [], []
    for _ in range(iterations):
        begin = time.perf_counter()
        for view, factors, other in ((X.rows, U, V), (X.cols, V, U)):
            _update(view, factors, other, threads)
        seconds.append(time.perf_counter() - begin)
        errors.append(row_errors(X.cols, V, U, threads).sum() / X.n_observed)
    return _estimate("NMF", X, U, V, errors, seconds)


def _update(view: View, U: Array, V: Array, threads: int) -> None:
    V = in_vectors(V)

    def block(start: int, stop: int) -> None:
        for first, last, own, _ in windows(view, start, stop):
            multiplicative_update(first, last, own.indptr, own.indices, own.stored, U, V, _SMALLEST)

    _threads.run(block, blocks(view, 4 * U.shape[1], U.shape[1]), threads)


def _estimate(
    name: str, X: ObservedMatrix, U: Array, V: Array, errors: list[float], seconds: list[float]
) -> PointEstimate:
    return PointEstimate(
        name, U, V, np.array([errors]), np.array([seconds]), X.row_labels, X.col_labels
    )
