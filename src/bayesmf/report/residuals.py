"""Residuals and checks of a fit, cut to what a page shows."""

from __future__ import annotations

import numpy as np

from bayesmf.posterior.fitted import Fitted
from bayesmf.posterior.residuals import (
    QuantileResiduals,
    quantile_residuals,
    replicates,
    statistics,
)
from bayesmf.report.data import Check, Levels, Residuals

BINS, STEPS, POINTS = 20, 12, 101  # of the histogram, by size, of the quantile plot
WIDEST, NARROWEST = 12, 3  # rows or columns that are shown


def residuals(fitted: Fitted) -> Residuals | None:
    """Quantile residuals of observed entries; None where all are intervals."""
    found = quantile_residuals(fitted)
    if found is None:
        return None
    normal, own = found.quantiles(POINTS)
    sides = zip(("rows", "columns"), fitted.X.names(), strict=True)
    by_line = [_by_line(found, k, names, side) for k, (side, names) in enumerate(sides)]
    return Residuals(
        np.histogram(found.pit, BINS, (0, 1))[0].tolist(),
        list(zip(normal.tolist(), own.tolist(), strict=True)),
        list(zip(*(part.tolist() for part in found.by_size(STEPS)), strict=True)),
        [levels for levels in by_line if levels is not None],
    )


def _by_line(found: QuantileResiduals, k: int, names: list[str], side: str) -> Levels | None:
    """Root mean squares of the residuals of rows or columns, the widest first."""
    at, *spread = found.by_line(k, len(names))
    if at.size < 2:
        return None
    order = np.argsort(-spread[0], kind="stable")
    gap = None
    if order.size > WIDEST + NARROWEST:
        order, gap = np.append(order[:WIDEST], order[-NARROWEST:]), WIDEST
    levels = [(names[at[i]], *(float(part[i]) for part in spread)) for i in order]
    return Levels(side, at.size, 1.0, levels, name="spread", gap=gap)


def checks(fitted: Fitted) -> list[Check]:
    """What the data show, beside what replicated data of the model show in the same cells."""
    found = []
    for name, value, drawn in statistics(*replicates(fitted)):
        low, high = np.quantile(drawn, [0.01, 0.99])
        found.append(Check(name, value, float(low), float(high)))
    return found
