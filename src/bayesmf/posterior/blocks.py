"""Predictions of more cells than memory holds, some rows at a time, from kept draws of factors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesmf._errors import DataError, ModelError, needs, whole_number
from bayesmf._files import replacing
from bayesmf.data.observed import ObservedMatrix
from bayesmf.posterior.posterior import Posterior
from bayesmf.sampler.moments import moments_of
from bayesmf.streams import Array

_CELLS = 2_000_000  # whose means are formed at once


class Top(NamedTuple):
    """The columns with the largest means of some rows, largest first: each (rows, n).

    Rows with fewer columns to choose from have -1 and NaN at the end.
    """

    cols: Array
    mean: Array


def cell_moments(posterior: Posterior, rows: Array, cols: Array) -> tuple[Array, Array]:
    """Mean and variance (n,) of U V^T in cells, over the kept draws."""
    draws = zip(*posterior.predictors(), strict=True)
    return moments_of(draws, posterior.shape, (rows, cols))


def row_moments(posterior: Posterior, rows: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Some rows at a time, with mean and variance (rows, J) of U V^T over the kept draws."""
    left, right = posterior.predictors()
    J = posterior.shape[1]
    step = max(1, _CELLS // J)
    for first in range(0, rows.size, step):
        some = rows[first : first + step]
        draws = ((U[some], V) for U, V in zip(left, right, strict=True))
        yield some, *moments_of(draws, (some.size, J))


def row_positions(posterior: Posterior, rows: Any) -> Array:
    """Positions of rows, all of them by default, checked."""
    I = posterior.shape[0]  # noqa: E741
    found = np.arange(I) if rows is None else np.atleast_1d(np.asarray(rows))
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise DataError("rows must be positions of rows, counted from 0.")
    if found.size and not (found.min() >= 0 and found.max() < I):
        raise DataError(f"rows must lie between 0 and {I - 1}, the last row of the matrix.")
    return found.astype(np.int64)


def top(posterior: Posterior, n: int, rows: Any, X: ObservedMatrix | None) -> Top:
    """The n columns with the largest means of each row, as `Posterior.top` describes it."""
    chosen = _chosen(posterior, rows, X)
    n = min(whole_number("n", n), posterior.shape[1])
    cols, means = np.full((chosen.size, n), -1), np.full((chosen.size, n), np.nan)
    done = 0
    for some, mean, _ in row_moments(posterior, chosen):
        mean[_observed(X, some, mean.shape)] = -np.inf
        best = np.argpartition(-mean, n - 1, axis=1)[:, :n]
        best = np.take_along_axis(best, np.argsort(-np.take_along_axis(mean, best, 1), 1), 1)
        value = np.take_along_axis(mean, best, 1)
        part = slice(done, done + some.size)
        cols[part] = np.where(np.isinf(value), -1, best)
        means[part] = np.where(np.isinf(value), np.nan, value)
        done += some.size
    return Top(cols, means)


def to_parquet(posterior: Posterior, path: str | Path, rows: Any, X: ObservedMatrix | None) -> int:
    """Write predictions in blocks, as `Posterior.to_parquet` describes it; returns their number."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise needs("to_parquet", "pyarrow", "parquet") from None
    chosen, count = _chosen(posterior, rows, X), 0
    names = [
        _names(labels, n)
        for labels, n in zip(
            (posterior.row_labels, posterior.col_labels), posterior.shape, strict=True
        )
    ]
    kinds = [pa.int64() if names[side].dtype.kind == "i" else pa.string() for side in (0, 1)]
    schema = pa.schema([("row", kinds[0]), ("column", kinds[1]), ("mean", pa.float64()),
                        ("sd", pa.float64())])  # fmt: skip
    with replacing(Path(path)) as partial, parquet.ParquetWriter(partial, schema) as file:
        for some, mean, variance in row_moments(posterior, chosen):
            wanted = ~_observed(X, some, mean.shape)
            i, j = np.nonzero(wanted)
            columns = names[0][some[i]], names[1][j], mean[wanted], np.sqrt(variance[wanted])
            file.write_table(pa.table([pa.array(c) for c in columns], schema=schema))
            count += i.size
    return count


def _chosen(posterior: Posterior, rows: Any, X: ObservedMatrix | None) -> Array:
    """Positions of the rows, where means are what cells hold and the data are those of the fit."""
    _check_scale(posterior)
    chosen = row_positions(posterior, rows)
    if X is not None and X.shape != posterior.shape:
        raise DataError(f"X has the shape {X.shape}, but {posterior.shape} was fitted.")
    return chosen


def _observed(X: ObservedMatrix | None, rows: Array, shape: tuple[int, ...]) -> Array:
    """Flags (rows, J) of the observed entries of some rows; none without data."""
    flags = np.zeros(shape, dtype=bool)
    if X is not None:
        for k, i in enumerate(rows):
            flags[k, X.rows.indices[X.rows.indptr[i] : X.rows.indptr[i + 1]]] = True
    return flags


def _names(labels: Array | None, n: int) -> Array:
    return np.arange(n) if labels is None else np.array([str(label) for label in labels], object)


def _check_scale(posterior: Posterior) -> None:
    likelihood = posterior.model.likelihood
    if likelihood.latent:
        raise ModelError(
            f"Under the {likelihood.name} likelihood U V^T is not what cells hold; use "
            "BayesianMF.predict."
        )
