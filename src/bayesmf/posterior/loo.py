"""Entries predicted by the others, by Pareto-smoothed importance sampling (PSIS-LOO)."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy import special

from bayesmf._errors import DataError, whole_number
from bayesmf.posterior.fitted import Fitted
from bayesmf.posterior.left_out import khat_limit, smoothed
from bayesmf.posterior.residuals import Cells, exact_entries
from bayesmf.streams import Array

MANY = 0.01  # share of the entries without a reliable weight that is worth a warning


class LeaveOneOut(NamedTuple):
    """What PSIS-LOO found; printing it says it in words.

    ``log_density`` is the mean log predictive density of an entry given all others,
    ``log_density_error`` its standard error, ``pointwise`` (n,) the single ones. ``effective`` is
    the number of parameters that the entries looked at, ``cells``, have settled. Where ``khat``
    (n,), the shape of the tail of an entry's weights, exceeds ``limit``, these are not reliable.
    """

    log_density: float
    log_density_error: float
    effective: float
    pointwise: Array
    khat: Array
    limit: float
    cells: Cells

    @property
    def unreliable(self) -> float:
        """Share of the entries whose k-hat exceeds the limit."""
        return float(np.mean(~(self.khat <= self.limit)))

    @property
    def advice(self) -> str:
        """What to think of it where some k-hat are too large; empty if none is."""
        if not self.unreliable:
            return ""
        return (
            f"k-hat exceeds {self.limit:.2f} for {self.unreliable:.1%} of {self.khat.size} "
            "entries: the posterior without them differs so much from the one with them that their "
            "densities are uncertain, and mostly too high. Hold entries out instead, as compare "
            "does, or keep more draws."
        )

    def __str__(self) -> str:
        found = (
            f"Log density of an entry given the others: {self.log_density:.4f} "
            f"(standard error {self.log_density_error:.4f}, {self.khat.size} entries), "
            f"effective parameters {self.effective:.1f}."
        )
        return f"{found} {self.advice}".rstrip()


def leave_one_out(fitted: Fitted, entries: int) -> LeaveOneOut:
    """PSIS-LOO of exact entries of the data, of at most so many."""
    cells, values, weights = exact_entries(fitted.X, whole_number("entries", entries))
    if values.size < 2:
        raise DataError("PSIS-LOO needs two exact entries or more.")
    found = judged(fitted.predictive().log_densities(cells, values, weights), cells)
    if found.unreliable > MANY:
        warnings.warn(found.advice, stacklevel=3)
    return found


def judged(log_density: Array, cells: Cells) -> LeaveOneOut:
    """PSIS-LOO from log densities (D, n) of entries given the draws."""
    draws, n = log_density.shape
    weights, khat = smoothed(log_density)
    pointwise = special.logsumexp(weights + log_density, axis=0)
    seen = special.logsumexp(log_density, axis=0) - np.log(draws)
    return LeaveOneOut(
        float(pointwise.mean()), float(pointwise.std(ddof=1) / n**0.5),
        float((seen - pointwise).sum()), pointwise, khat, khat_limit(draws), cells,
    )  # fmt: skip
