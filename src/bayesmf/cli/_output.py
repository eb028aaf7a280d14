"""What `bayesmf fit` writes besides its record: tables, a Parquet file, noise, all draws."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmf._errors import ModelError, needs
from bayesmf.cli import _found, _tables

if TYPE_CHECKING:
    from bayesmf.data.observed import Array, ObservedMatrix
    from bayesmf.estimators import BayesianMF

CELLS = "cells.parquet"
DRAWS, PLAIN = "posterior.nc", "posterior.npz"  # the latter where NetCDF files cannot be written


def check_format(options: argparse.Namespace, X: ObservedMatrix) -> None:
    """Refuse to promise files that cannot be written."""
    if options.format == "parquet":
        for name in ("excel", "mark"):
            if getattr(options, name):
                raise ModelError(f"--{name} is for tables; leave it out with --format parquet.")
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise needs("--format parquet", "pyarrow", "parquet") from None
    elif options.excel:
        _tables.check_excel(X)


def write_cells(
    folder: Path, X: ObservedMatrix, estimator: BayesianMF, options: argparse.Namespace
) -> tuple[Array, list[str]]:
    """Write predictions of all cells; returns those of the observed ones, and what was left out."""
    write = _write_parquet if options.format == "parquet" else _write_tables
    return write(folder, X, estimator, options)


def _write_tables(
    folder: Path, X: ObservedMatrix, estimator: BayesianMF, options: argparse.Namespace
) -> tuple[Array, list[str]]:
    """Write the tables; returns predictions at the observed cells, and what was left out."""
    import numpy as np

    from bayesmf.data.ranges import clip_ends
    from bayesmf.posterior.filled import filled

    tail = (1 - options.level) / 2
    mean, std, (lower, upper) = estimator.predict(return_std=True, quantiles=[tail, 1 - tail])
    ends = clip_ends(options.clip, X)
    gaps = filled(X, mean, std, (lower, upper), ends)
    means = mean[X.triples()[:2]]
    if ends is not None:
        mean, lower, upper = (np.clip(table, *ends) for table in (mean, lower, upper))
    tables = {"completed": mean, "std": std, "lower": lower, "upper": upper}
    for name, table in tables.items():
        shown = _tables.shown(X) if name == "completed" else None
        mark = options.mark if name == "completed" else ""
        _tables.write_wide(folder / f"{name}.csv", X, table, shown, mark)
    notes = []
    if gaps.row.size <= _tables.LONGEST:
        _tables.write_long(
            folder / "filled.csv", X, gaps._fields, (column.tolist() for column in gaps)
        )
    else:
        notes.append(f"filled.csv was left out: it would have {gaps.row.size} lines.")
    if options.excel:
        _tables.write_excel(folder / "completed.xlsx", X, tables, gaps)
    return means, notes


def _write_parquet(
    folder: Path, X: ObservedMatrix, estimator: BayesianMF, options: argparse.Namespace
) -> tuple[Array, list[str]]:
    """Write all cells, some rows at a time; returns predictions at the observed ones."""
    from bayesmf.data.ranges import clip_ends

    tail = (1 - options.level) / 2
    found = estimator._predictive().in_blocks([tail, 1 - tail])
    return _tables.write_parquet(folder / CELLS, X, found, clip_ends(options.clip, X)), []


def held_out_errors(estimator: BayesianMF, test: Any, level: float) -> dict[str, Any] | None:
    """Errors of entries that were not fitted, in the units of the data."""
    import numpy as np

    if test is None:
        return None
    rows, cols, values = test
    tail = (1 - level) / 2
    mean, (low, high) = estimator.predict(rows, cols, quantiles=[tail, 1 - tail])
    return {
        "entries": values.size, "mse": float(np.mean((mean - values) ** 2)),
        "variance": float(values.var()),
        "covered": float(np.mean((low <= values) & (values <= high))),
    }  # fmt: skip


def write_noise(folder: Path, X: ObservedMatrix, estimator: BayesianMF, level: float) -> None:
    """The noise of every row and column, where they have their own."""
    if not estimator.posterior_.model.likelihood.has_noise:
        return
    noise = estimator.noise_sd(level)
    for interval, labels, name in zip(
        (noise.rows, noise.cols), X.names(), _found.NOISE_FILES.values(), strict=True
    ):
        if interval is not None:
            columns = [labels, *(numbers.tolist() for numbers in interval)]
            _tables.write_long(folder / name, X, ["label", *interval._fields], columns)


def save(folder: Path, estimator: BayesianMF) -> list[str]:
    """Write all draws; returns what there is to say about that."""
    name = DRAWS
    try:
        estimator.posterior_.save(folder / name)
    except ModelError:  # an optional package is absent
        name = PLAIN
        estimator.posterior_.save(folder / name)
    if not estimator.units_.changed:
        return []
    return [f"{name} has the units of the model, not those of the data."]
