"""Entries predicted by the others: draws count by the inverse of their density of the entry.

What remains is the posterior without the entry, so that a fit can be judged by its own data. Few
draws may have almost all the weight: it is truncated, or a generalised Pareto distribution smooths
the largest (PSIS; Vehtari, Simpson, Gelman, Yao and Gabry, 2024), whose shape says whether to trust
the weights.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from bayesmf.streams import Array

_DEEP = 500.0  # nats below the best draw, where a density is as good as none
_LEAST = 6  # weights to which a tail can be fitted, so that the first quarter of them is one


def without_entry(log_density: Array) -> Array:
    """Weights (D, n) of the draws for the posterior without each entry, truncated.

    From the log densities (D, n) of the entries given the draws.
    """
    log_density = _bounded(log_density)
    weights = np.exp(log_density.min(axis=0) - log_density)
    weights = np.minimum(weights, weights.mean(axis=0) * len(weights) ** 0.5)
    return weights / weights.sum(axis=0)


def log_left_out(log_density: Array) -> Array:
    """Log density of each entry given the others (n,), from those given draws (D, n)."""
    best = log_density.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.exp(log_density - np.where(np.isfinite(best), best, 0.0))
        return best + np.log(np.sum(without_entry(log_density) * ratios, axis=0))


def smoothed(log_density: Array) -> tuple[Array, Array]:
    """Log weights (D, n) as of `without_entry`, their tails smoothed, and the tails' shapes (n,).

    A shape, k-hat, is infinite where there are too few draws for it, and 0 where all weights of the
    tail are equal.
    """
    log_density = _bounded(log_density)
    ratios = log_density.min(axis=0) - log_density
    draws = len(ratios)
    size = int(3 * draws**0.5) if draws > 225 else draws // 5
    if size < _LEAST:
        return ratios - special.logsumexp(ratios, axis=0), np.full(ratios.shape[1], np.inf)
    order = np.argsort(ratios, axis=0)
    tail = np.take_along_axis(ratios, order[-size:], axis=0)
    start = np.exp(np.take_along_axis(ratios, order[[-size - 1]], axis=0))
    with np.errstate(all="ignore"):  # tails that cannot be fitted stay as they are
        shape, scale = _pareto(np.exp(tail) - start)
        levels = -np.log1p(-(np.arange(size)[:, None] + 0.5) / size)
        fitted = np.minimum(np.log(start + scale * np.expm1(shape * levels) / shape), 0.0)
    fits = np.isfinite(fitted).all(axis=0) & (tail[_quarter(size)] > tail[0])
    np.put_along_axis(ratios, order[-size:], np.where(fits, fitted, tail), axis=0)
    khat = np.where(tail[-1] > tail[0], np.where(fits, shape, np.inf), 0.0)
    return ratios - special.logsumexp(ratios, axis=0), khat


def khat_limit(draws: int) -> float:
    """The shape of a tail above which weights of so many draws are not reliable."""
    return float(min(0.7, 1 - 1 / np.log10(max(draws, 11))))


def _pareto(x: Array) -> tuple[Array, Array]:
    """Shapes and scales (n,) of generalised Pareto distributions, of numbers (t, n) in order.

    Empirical Bayes estimates of Zhang and Stephens (2009), the shapes drawn a little to one half.
    """
    t = len(x)
    m = 30 + int(t**0.5)
    steps = 1 - np.sqrt(m / (np.arange(m)[:, None] + 0.5))
    b = steps / (3 * x[_quarter(t)]) + 1 / x[-1]
    k = np.array([np.log1p(-one * x).mean(axis=0) for one in b])
    weights = special.softmax(t * (np.log(-b / k) - k - 1), axis=0)
    weights[weights < 10 * np.finfo(float).eps] = 0.0
    b = np.sum(b * weights, axis=0) / weights.sum(axis=0)
    shape = np.log1p(-b * x).mean(axis=0)
    return (t * shape + 5) / (t + 10), -shape / b


def _quarter(t: int) -> int:
    """The place of the first quartile of t numbers in order."""
    return int(t / 4 + 0.5) - 1


def _bounded(log_density: Array) -> Array:
    """Log densities, those far below the best draw of an entry lifted to a floor."""
    best = log_density.max(axis=0)
    return np.maximum(log_density, np.where(np.isfinite(best), best, 0.0) - _DEEP)
