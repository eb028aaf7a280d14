"""The report of a fit: numbers gathered for the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bayesmf._versions import versions
from bayesmf.data.observed import ObservedMatrix
from bayesmf.estimators import BayesianMF
from bayesmf.posterior.alignment import largest, signal_shares
from bayesmf.posterior.residuals import surprising
from bayesmf.report import Factor, FeatureGroup, Histogram, Levels, ReportData, Surprise, write
from bayesmf.report.residuals import checks, residuals

LARGEST = 300  # rows and columns of the matrix that are drawn
SURPRISES = 15
LOADINGS = 8  # names shown for each side of a factor
FACTORS = 6
FEATURES, WEIGHTS = 15, 25  # the most important features of a group, its largest weights
NOISY, PRECISE = 20, 10  # rows or columns whose noise is shown, if there are more


def write_fit(
    mf: BayesianMF, X: ObservedMatrix, path: str | Path, title: str, **settings: object
) -> None:
    """Write the report of a single fit."""
    own = {"model": mf.posterior_.model.name, "rank": mf.n_components_, **mf.posterior_.settings}
    subtitle = f"{own['model']} with rank {own['rank']}"
    page = ReportData(title=title, subtitle=subtitle, settings={**own, **settings},
                      **describe(mf, X))  # fmt: skip
    write(page, path)


def describe(mf: BayesianMF, X: ObservedMatrix) -> dict[str, Any]:
    """What a report says about the data and a fit to them."""
    mean, std, (low, high) = mf.predict(return_std=True, quantiles=[0.05, 0.95])
    values = X.to_array()
    rows, cols = (_some(n) for n in X.shape)
    labels = X.names()
    summary = mf.summary()
    fitted = mf.fitted_._replace(X=X)
    shown = [
        f"all {n} {side}" if len(some) == n else f"{len(some)} of {n} {side}, evenly spread"
        for n, some, side in zip(X.shape, (rows, cols), ("rows", "columns"), strict=True)
    ]
    left_out = "" if (len(rows), len(cols)) == X.shape else f"Shown are {'; '.join(shown)}."
    part = np.ix_(rows, cols)
    return {
        "versions": versions(),
        "shape": X.shape,
        "n_observed": X.n_observed,
        "row_labels": [labels[0][i] for i in rows],
        "col_labels": [labels[1][j] for j in cols],
        "histogram": _histogram(X.rows.values),
        "warnings": mf.notes_,
        "note": left_out,
        "mean": mean[part],
        "std": std[part],
        "observed": ~np.isnan(values[part]),
        "values": values[part],
        "surprises": _surprises(values, mean, std, low, high, labels),
        "noise": _noise(mf, X, labels),
        "residuals": residuals(fitted),
        "checks": checks(fitted),
        "features": _features(mf, labels),
        "factors": _factors(mf, labels),
        "diagnosis": " ".join([summary.verdict, *summary.advice]),
        "diagnostics": summary.quantities,
    }  # fmt: skip


def _some(n: int) -> np.ndarray:
    """Positions that are drawn: all, or as many as fit, spread evenly."""
    return np.arange(n) if n <= LARGEST else np.linspace(0, n - 1, LARGEST).round().astype(int)


def _histogram(values: np.ndarray) -> Histogram:
    whole = bool((values % 1 == 0).all()) and np.ptp(values) <= 60
    bins: Any = np.arange(values.min() - 0.5, values.max() + 1.5) if whole else 40
    counts, edges = np.histogram(values, bins)
    return Histogram(edges.tolist(), counts.tolist())


def _surprises(
    values: np.ndarray, mean: np.ndarray, std: np.ndarray, low: np.ndarray, high: np.ndarray,
    labels: tuple[list[str], list[str]],
) -> list[Surprise]:  # fmt: skip
    """Observed cells farthest from what was fitted, in standard deviations."""
    found = []
    for cell in surprising(values, mean, std, low, high)[:SURPRISES]:
        i, j = np.unravel_index(cell, values.shape)
        numbers = (float(x[i, j]) for x in (values, mean, low, high))
        found.append(Surprise(labels[0][i], labels[1][j], *numbers))
    return found


def _noise(mf: BayesianMF, X: ObservedMatrix, labels: tuple[list[str], list[str]]) -> list[Levels]:
    """The noise of rows and columns, where they have their own: the noisiest come first."""
    if not mf.posterior_.model.likelihood.has_noise:
        return []
    noise, found = mf.noise_sd(), []
    unit = "" if X.errors is None else "in units of the known errors"
    if mf.posterior_.model.likelihood.has_limits:
        unit = "that of values as they would be without limits, which may lie far beyond them"
    for side, interval, names in zip(
        ("rows", "columns"), (noise.rows, noise.cols), labels, strict=True
    ):
        if interval is None:
            continue
        order = np.argsort(-interval.mean, kind="stable")
        gap = None
        if order.size > NOISY + PRECISE:
            order, gap = np.append(order[:NOISY], order[-PRECISE:]), NOISY
        levels = [(names[i], *(float(part[i]) for part in interval)) for i in order]
        typical = float(np.median(interval.mean))
        found.append(Levels(side, interval.mean.size, typical, levels, unit, gap=gap))
    return found


def _features(mf: BayesianMF, labels: tuple[list[str], list[str]]) -> list[FeatureGroup]:
    """What features explain; directions of a kernel have no names that mean anything."""
    found = []
    for axis, side in enumerate(("rows", "cols")):
        known = (mf.posterior_.model.rows, mf.posterior_.model.cols)[axis].features
        if known is None:
            continue
        sizes, unit = _sizes(mf, axis)
        others = labels[1 - axis]
        weights = mf.posterior_.feature_weights(side, level=0.9)
        for group, one in zip(known.groups, weights, strict=True):
            names = others if group.kind == "pattern" else one.features
            told: dict[str, Any] = {}
            if group.kind != "kernel":
                top = np.argsort(-one.importance, kind="stable")[:FEATURES]
                told["importance"] = [(names[p], float(one.importance[p])) for p in top]
                numbers = [part * sizes for part in (one.mean, one.lower, one.upper)]
                order = np.argsort(-np.abs(numbers[0]), axis=None, kind="stable")[:WEIGHTS]
                cells = [np.unravel_index(cell, numbers[0].shape) for cell in order]
                told["weights"] = [
                    (names[p], others[j], *(float(part[p, j]) for part in numbers))
                    for p, j in cells
                ]
            name = "pattern of entries" if group.kind == "pattern" else one.group
            lines = ("rows", "columns")[axis]
            found.append(FeatureGroup(lines, name, len(group.names), one.share, unit=unit, **told))
    return found


def _sizes(mf: BayesianMF, axis: int) -> tuple[np.ndarray, str]:
    """What turns weights on columns (on rows, for axis 1) into the data's units, if anything."""
    own, others = (mf.units_.rows, mf.units_.cols)[:: 1 - 2 * axis]
    if mf.units_.transforms is not None or np.ptp(own) > 0:
        return np.ones(others.size), "the model"
    return own[0] * others, "the data"


def _factors(mf: BayesianMF, labels: tuple[list[str], list[str]]) -> list[Factor]:
    """The largest aligned factors with the rows and columns that weigh most."""
    draws = mf.posterior_.align()
    shares = signal_shares(*draws)
    share, (low, high) = shares.mean(axis=0), np.quantile(shares, [0.05, 0.95], axis=0)
    means = [side.mean(axis=0) for side in draws]
    found = []
    for k in np.argsort(-share)[:FACTORS]:
        rows, cols = (_loadings(F[:, k], names) for F, names in zip(means, labels, strict=True))
        found.append(Factor(float(share[k]), rows, cols, (float(low[k]), float(high[k]))))
    return found


def _loadings(column: np.ndarray, names: list[str]) -> list[tuple[str, float]]:
    return [(names[i], float(column[i])) for i in largest(column, LOADINGS)]
