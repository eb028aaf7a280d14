"""What a fit leaves: residuals that justify its noise, and what replicated data would look like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import special, stats

from bayesmf.data.observed import ObservedMatrix
from bayesmf.estimators import BayesianMF
from bayesmf.posterior.predictive import Predictive
from bayesmf.report.data import Check, Levels, Residuals
from bayesmf.streams import Array

ENTRIES = 20_000  # that are looked at, if there are more
REPLICATES = 100
BINS, STEPS, POINTS = 20, 12, 101  # of the histogram, by size, of the quantile plot
WIDEST, NARROWEST = 12, 3  # rows or columns that are shown
LEAST = 3  # entries that a row or column needs to be judged
LEVEL = 0.9  # of intervals


def residuals(mf: BayesianMF, X: ObservedMatrix) -> Residuals | None:
    """Quantile residuals of observed entries; None where all are intervals.

    The share of its predictive distribution that lies below an entry (a random part of what lies at
    it) is uniform if the model is right, and its normal quantile standard normal.
    """
    cells, values, weights = _entries(X)
    if values.size == 0:
        return None
    predictive = Predictive.of(mf.posterior_, units=mf.units_)
    below, to = predictive.shares(cells, values, weights)
    pit = below + np.random.default_rng(0).random(values.size) * (to - below)
    half = 0.5 / (1 + REPLICATES * 10)
    z = special.ndtri(pit.clip(half, 1 - half))
    fitted = predictive.mean(cells)
    return Residuals(
        np.histogram(pit, BINS, (0, 1))[0].tolist(), _quantiles(z), _by_size(z, fitted),
        [
            levels
            for side, lines, names in zip(("rows", "columns"), cells, X.names(), strict=True)
            if (levels := _by_line(z, lines, names, side)) is not None
        ],
    )  # fmt: skip


def _entries(X: ObservedMatrix) -> tuple[tuple[Array, Array], Array, Array | None]:
    """Cells, values and weights of exact entries, as many as are looked at."""
    exact = np.ones(X.n_observed, dtype=bool)
    if X.bounds is not None:
        exact[X.bounds.places] = False
    kept = np.flatnonzero(exact)
    if kept.size > ENTRIES:
        kept = np.sort(np.random.default_rng(0).choice(kept, ENTRIES, replace=False))
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.rows.indptr))
    weights = None if X.errors is None else X.errors[kept] ** -2.0
    return (rows[kept], X.rows.indices[kept].astype(int)), X.rows.values[kept], weights


def _quantiles(z: Array) -> list[tuple[float, float]]:
    """Normal quantiles, and those of the residuals."""
    levels = (np.arange(min(POINTS, z.size)) + 0.5) / min(POINTS, z.size)
    return list(zip(special.ndtri(levels).tolist(), np.quantile(z, levels).tolist(), strict=True))


def _by_size(z: Array, fitted: Array) -> list[tuple[float, float, float, float]]:
    """Root mean squares of residuals in parts of equal size of the fitted values, with limits."""
    found = []
    for part in np.array_split(np.argsort(fitted, kind="stable"), min(STEPS, z.size // LEAST)):
        low, high = _limits(part.size)
        size = float(np.sqrt(np.mean(z[part] ** 2)))
        found.append((float(np.median(fitted[part])), size, size * float(low), size * float(high)))
    return found


def _limits(n: Array | int) -> tuple[Array, Array]:
    """What a root mean square of n normal residuals is multiplied by to have its interval."""
    tail = (1 - LEVEL) / 2
    low, high = (np.sqrt(n / stats.chi2.isf(level, n)) for level in (tail, 1 - tail))
    return low, high


def _by_line(z: Array, lines: Array, names: list[str], side: str) -> Levels | None:
    """Root mean squares of the residuals of rows or columns, the widest first."""
    count = np.bincount(lines, minlength=len(names))
    known = np.flatnonzero(count >= LEAST)
    if known.size < 2:
        return None
    size = np.sqrt(np.bincount(lines, z**2, len(names))[known] / count[known])
    low, high = _limits(count[known])
    order = np.argsort(-size, kind="stable")
    if order.size > WIDEST + NARROWEST:
        order = np.append(order[:WIDEST], order[-NARROWEST:])
    levels = [(names[known[k]], float(size[k]), float(size[k] * low[k]), float(size[k] * high[k]))
              for k in order]  # fmt: skip
    return Levels(side, known.size, 1.0, levels, name="residual")


def checks(mf: BayesianMF, X: ObservedMatrix) -> list[Check]:
    """What the data show, beside what replicated data of the model show in the same cells."""
    cells, values, weights = _entries(X)
    if values.size < LEAST:
        return []
    predictive = Predictive.of(mf.posterior_, units=mf.units_)
    kept = np.linspace(0, len(predictive.U) - 1, min(REPLICATES, len(predictive.U))).astype(int)
    own = {name: of[kept] for name, of in predictive.own.items()}
    some = replace(predictive, U=predictive.U[kept], V=predictive.V[kept], own=own)
    drawn = some.replicated(cells, weights)
    found = []
    for name, statistic in _statistics(values).items():
        low, high = np.quantile([statistic(one) for one in drawn], [0.01, 0.99])
        found.append(Check(name, float(statistic(values)), float(low), float(high)))
    return found


def _statistics(values: Array) -> dict[str, Callable[[Array], float]]:
    """What is looked at, by name; shares of the ends only where the data heap there."""
    least, most = values.min(), values.max()
    found: dict[str, Callable[[Array], float]] = {
        "share of exact zeros": lambda x: float(np.mean(x == 0)),
        f"share at {most:.6g}, the largest value": lambda x: float(np.mean(x == most)),
        f"share at {least:.6g}, the smallest value": lambda x: float(np.mean(x == least)),
        "share of whole numbers": lambda x: float(np.mean(x % 1 == 0)),
    }
    if least == 0:
        del found["share at 0, the smallest value"]
    found = {name: of for name, of in found.items() if of(values) > 0.005}
    found["largest value"] = lambda x: float(x.max())
    found["smallest value"] = lambda x: float(x.min())
    found["standard deviation"] = lambda x: float(x.std())
    found["skewness"] = lambda x: float(stats.skew(x)) if np.ptp(x) > 0 else 0.0
    return found
