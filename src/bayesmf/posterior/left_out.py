"""Entries predicted by the others: draws count by the inverse of their density of the entry.

What remains is the posterior without the entry, so that a fit can be judged by its own data.
"""

from __future__ import annotations

import numpy as np

from bayesmf.streams import Array

_DEEP = 500.0  # nats below the best draw, where a density is as good as none


def without_entry(log_density: Array) -> Array:
    """Weights (D, n) of the draws for the posterior without each entry, truncated.

    From the log densities (D, n) of the entries given the draws.
    """
    best = log_density.max(axis=0)
    log_density = np.maximum(log_density, np.where(np.isfinite(best), best, 0.0) - _DEEP)
    weights = np.exp(log_density.min(axis=0) - log_density)
    weights = np.minimum(weights, weights.mean(axis=0) * len(weights) ** 0.5)
    return weights / weights.sum(axis=0)


def log_left_out(log_density: Array) -> Array:
    """Log density of each entry given the others (n,), from those given draws (D, n)."""
    best = log_density.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.exp(log_density - np.where(np.isfinite(best), best, 0.0))
        return best + np.log(np.sum(without_entry(log_density) * ratios, axis=0))
