"""What a fit leaves of the data: quantile residuals, and statistics of replicated data.

The share of its predictive distribution that lies below an entry (a random part of what lies at it)
is uniform if the model is right, and its normal quantile, the residual, standard normal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from bayesmf.data.observed import ObservedMatrix
from bayesmf.posterior.fitted import Fitted
from bayesmf.streams import Array

ENTRIES = 20_000  # that are looked at, if there are more
REPLICATES = 100
LEAST = 3  # entries that a row or column, or a statistic, needs
LEVEL = 0.9  # of intervals
_FINEST = 0.5 / 1001  # share that is told from none

Cells = tuple[Array, Array]


class Entries(NamedTuple):
    """Cells, values and weights (inverse squares of known errors) of exact entries."""

    cells: Cells
    values: Array
    weights: Array | None


class Spread(NamedTuple):
    """Root mean squares of residuals in groups, with intervals: 1, if the model is right."""

    at: Array  # fitted value, or position of the row or column, of each group
    size: Array
    low: Array
    high: Array


class Statistic(NamedTuple):
    """A number that describes data: that of the data, and of data made by the model."""

    name: str
    value: float
    replicated: Array


def exact_entries(X: ObservedMatrix, most: int = ENTRIES) -> Entries:
    """Entries that are known exactly; if there are too many, some, always the same of a matrix."""
    exact = np.ones(X.n_observed, dtype=bool)
    if X.bounds is not None:
        exact[X.bounds.places] = False
    kept = np.flatnonzero(exact)
    if kept.size > most:
        kept = np.sort(np.random.default_rng(0).choice(kept, most, replace=False))
    rows, cols, values = X.triples()
    weights = None if X.errors is None else X.errors[kept] ** -2.0
    return Entries((rows[kept], cols[kept]), values[kept], weights)


@dataclass(frozen=True, eq=False)
class QuantileResiduals:
    """Residuals of n entries.

    ``below`` and ``to`` are the shares of the predictive distribution below an entry and up to it,
    ``pit`` a random number between them, ``z`` its normal quantile, ``fitted`` the expected value.
    """

    cells: Cells
    below: Array
    to: Array
    pit: Array
    z: Array
    fitted: Array

    def quantiles(self, points: int) -> tuple[Array, Array]:
        """Quantiles of a standard normal distribution, and of the residuals."""
        points = min(points, self.z.size)
        levels = (np.arange(points) + 0.5) / points
        return special.ndtri(levels), np.quantile(self.z, levels)

    def coverage(self, levels: Sequence[float]) -> Array:
        """Share of the entries inside their central intervals of each level."""
        inside = np.maximum(2 * self.below - 1, 1 - 2 * self.to)
        return np.array([np.mean(inside <= level) for level in levels])

    def by_size(self, steps: int) -> Spread:
        """In parts of equal size of the fitted values."""
        order = np.argsort(self.fitted, kind="stable")
        parts = np.array_split(order, max(1, min(steps, self.z.size // LEAST)))
        at, size, n = (
            np.array([of(part) for part in parts])
            for of in (lambda p: np.median(self.fitted[p]), lambda p: _root(self.z[p]), len)
        )
        low, high = _limits(n)
        return Spread(at, size, size * low, size * high)

    def by_line(self, side: int, n: int) -> Spread:
        """By row (side 0) or column (side 1) of n, where they have enough entries."""
        count = np.bincount(self.cells[side], minlength=n)
        at = np.flatnonzero(count >= LEAST)
        size = np.sqrt(np.bincount(self.cells[side], self.z**2, n)[at] / count[at])
        low, high = _limits(count[at])
        return Spread(at, size, size * low, size * high)


def _root(z: Array) -> float:
    return float(np.sqrt(np.mean(z**2)))


def _limits(n: Array) -> tuple[Array, Array]:
    """What a root mean square of n normal residuals is multiplied by to have its interval."""
    tail = (1 - LEVEL) / 2
    low, high = (np.sqrt(n / stats.chi2.isf(level, n)) for level in (tail, 1 - tail))
    return low, high


def quantile_residuals(fitted: Fitted, entries: Entries | None = None) -> QuantileResiduals | None:
    """Residuals of entries: the exact ones of the fit, each predicted by the others, or new ones.

    None where there are no exact entries.
    """
    cells, values, weights = exact_entries(fitted.X) if entries is None else entries
    if values.size == 0:
        return None
    predictive = fitted.predictive()
    below, to = predictive.shares(cells, values, weights, left_out=entries is None)
    pit = below + np.random.default_rng(0).random(values.size) * (to - below)
    z = special.ndtri(pit.clip(_FINEST, 1 - _FINEST))
    return QuantileResiduals(cells, below, to, pit, z, predictive.mean(cells))


def surprising(values: Array, mean: Array, std: Array, low: Array, high: Array) -> Array:
    """Flat positions of values outside their intervals, the farthest from the mean first.

    Distances are in standard deviations; NaN is no value.
    """
    score = np.nan_to_num(np.abs(values - mean) / np.maximum(std, 1e-300))
    outside = np.where((values < low) | (values > high), score, 0.0).ravel()
    order = np.argsort(-outside, kind="stable")
    return order[: np.count_nonzero(outside)]


def replicates(fitted: Fitted) -> tuple[Array, Array]:
    """Values of exact entries (n,), and of data that the model makes in their cells (., n)."""
    cells, values, weights = exact_entries(fitted.X)
    if values.size == 0:
        return values, np.empty((0, 0))
    predictive = fitted.predictive()
    kept = np.linspace(0, len(predictive.U) - 1, min(REPLICATES, len(predictive.U))).astype(int)
    own = {name: of[kept] for name, of in predictive.own.items()}
    some = replace(predictive, U=predictive.U[kept], V=predictive.V[kept], own=own)
    return values, some.replicated(cells, weights)


def statistics(values: Array, replicated: Array) -> list[Statistic]:
    """What the data show, beside what data that the model makes show; nothing of few entries."""
    if values.size < LEAST:
        return []
    return [
        Statistic(name, float(of(values)), np.array([of(one) for one in replicated]))
        for name, of in _statistics(values).items()
    ]


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
