"""What features do: their weights on every column (or row), and how much they explain.

Factors rotate, so weights on factors mean nothing by themselves. What a feature does to a cell is
its weight on the factors of the row times the factors of the column, and its weight on the effects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesmf._errors import ModelError
from bayesmf.data.decomposition import column_squares
from bayesmf.data.groups import Group
from bayesmf.priors.regression import weights_name
from bayesmf.streams import Array

if TYPE_CHECKING:
    from bayesmf.posterior.posterior import Posterior

_NUMBERS = 4_000_000  # held at once


class FeatureWeights(NamedTuple):
    """Weights of the P features of one group, in the units of the model.

    ``mean``, ``lower`` and ``upper`` (P, J) are what one standard deviation more of a feature adds
    to the cells of each column (of each row, for features of columns), effects included. ``share``
    is the part of the variance of all fitted cells that the group explains (mean, lower, upper),
    and ``importance`` (P,) the part that each feature would explain alone.
    """

    group: str
    features: tuple[str, ...]
    mean: Array
    lower: Array
    upper: Array
    share: tuple[float, float, float]
    importance: Array


def feature_weights(posterior: Posterior, side: str, level: float) -> list[FeatureWeights]:
    """Weights of all groups of features of one side."""
    if side not in ("rows", "cols"):
        raise ModelError(f"side must be 'rows' or 'cols', got {side!r}.")
    if not 0 < level < 1:
        raise ModelError(f"level must lie between 0 and 1, got {level!r}.")
    axis = ("rows", "cols").index(side)
    features = (posterior.model.rows, posterior.model.cols)[axis].features
    if features is None:
        raise ModelError(f"The fit had no features of the {side}.")
    missing = [g for g in features.groups if f"{side}.{weights_name(g)}" not in posterior.draws]
    if missing:
        raise ModelError("The draws of the weights were not kept; sample with keep='all'.")
    variance = _variances(posterior)
    return [_of_group(posterior, side, group, level, variance) for group in features.groups]


def _of_group(
    posterior: Posterior, side: str, group: Group, level: float, variance: Array
) -> FeatureWeights:
    ends = [0.5 * (1 - level), 0.5 * (1 + level)]
    others = posterior.factors()[1 if side == "rows" else 0]
    draws = _flat(posterior.draws[f"{side}.{weights_name(group)}"])
    none = np.zeros((1, 1, group.rank))
    effects = _flat(posterior.draws.get(f"bias.{side}_{weights_name(group)}", none))
    loadings = None if group.loadings is None else group.loadings / group.length
    P = group.rank if loadings is None else len(loadings)
    size = 1.0 if group.is_decomposed else group.length
    shares = np.array(
        [
            _explained(group.design, B, V, b)
            for B, V, b in zip(
                draws, others, np.broadcast_to(effects, draws.shape[:2]), strict=True
            )
        ]
    ) / np.maximum(variance, 1e-300)
    mean, lower, upper = (np.empty((P, others.shape[1])) for _ in range(3))
    squares = np.empty(P)
    for part in _parts(P, others.shape[1] * len(draws)):
        if loadings is None:
            weights = np.einsum("dpk,djk->dpj", draws[:, part] / size, others, optimize=True)
            own = effects[:, part] / size
        else:
            weights = np.einsum("pr,drk,djk->dpj", loadings[part], draws, others, optimize=True)
            own = effects @ loadings[part].T
        weights += np.broadcast_to(own, weights.shape[:2])[:, :, None]
        mean[part] = weights.mean(axis=0)
        lower[part], upper[part] = np.quantile(weights, ends, axis=0)
        squares[part] = ((weights**2).mean(axis=2) / variance[:, None]).mean(axis=0)
    low, high = np.quantile(shares, ends)
    share = float(shares.mean()), float(low), float(high)
    names = tuple(map(str, range(group.rank))) if group.kind == "kernel" else group.names
    importance = squares * _feature_variances(group)
    return FeatureWeights(group.name, names, mean, lower, upper, share, importance)


def _feature_variances(group: Group) -> Array:
    """Variances of the features (P,) over the fitted rows: one where they are standardised."""
    n, centre = group.design.shape[0], np.asarray(group.design.mean(axis=0)).ravel()
    if group.loadings is None:
        spread = column_squares(group.design) / n - centre**2
        return spread if group.is_decomposed else spread * group.length**2
    W, design = group.loadings * group.length, group.design - centre
    return np.einsum("pr,rs,ps->p", W, design.T @ design / n, W, optimize=True)


def _explained(design: Array, B: Array, V: Array, effects: Array) -> float:
    """Variance over all cells of what a group adds to them, about the mean of each column."""
    left = np.column_stack([design @ B, design @ effects])
    left -= left.mean(axis=0)
    right = np.column_stack([V, np.ones(len(V))])
    return float(np.sum((left.T @ left) * (right.T @ right)) / (len(left) * len(right)))


def _variances(posterior: Posterior) -> Array:
    """Variance over all cells of each draw's fit (D,)."""
    found = []
    for U, V in zip(*posterior.predictors(), strict=True):
        total = np.sum((U.T @ U) * (V.T @ V)) / (len(U) * len(V))
        found.append(total - (U.mean(axis=0) @ V.mean(axis=0)) ** 2)
    return np.array(found)


def _parts(n: int, each: int) -> Iterator[slice]:
    step = max(1, _NUMBERS // each)
    return (slice(a, a + step) for a in range(0, n, step))


def _flat(draws: Array) -> Array:
    return draws.reshape(-1, *draws.shape[2:])
