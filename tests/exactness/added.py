"""Priors beyond the paper's: what the exactness suite has to know about each, in one list.

The suite knows everything else from the preset's row. A density is written from its definition
with SciPy, nothing of the library in it; a broken formula is one that the conditional ratios must
notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from bayesmf.priors import Horseshoe, Prior


class Added(NamedTuple):
    """A preset whose two sides have the same new prior.

    ``density``: maker of the log density of factors and hyper-variables from the hyperparameters.
    ``settings``: hyperparameters of the chain tests. ``slope``: the derivative of the log density
    along X_k -> c X_k at c = 1. ``broken``: what is broken -> (check, method, how its result
    changes); a step of `updates` is "updates: its name". ``heavy``: its draws have no mean, so that
    single cells would decide how well simulated data are predicted.
    """

    prior: type[Prior]
    density: Callable[..., Callable[[np.ndarray, dict[str, Any]], float]]
    settings: dict[str, float]
    slope: Callable[[np.ndarray, dict[str, Any]], np.ndarray]
    broken: dict[str, tuple[str, str, Callable]]
    heavy: bool = False


def horseshoe(scale: float = 1.0):
    def density(U, v):
        deviation = (v["local"] * v["overall"]) ** -0.5
        total = stats.norm.logpdf(U, 0, deviation).sum()
        # of the inverse square p of a half-Cauchy deviation, p^(-1/2), the last the Jacobian
        local = v["local"] ** -0.5
        total += (stats.halfcauchy.logpdf(local) + np.log(0.5 * local**3)).sum()
        total += stats.gamma.logpdf(v["overall"], 0.5, scale=1 / v["overall_rate"]).sum()
        return total + stats.gamma.logpdf(v["overall_rate"], 0.5, scale=scale**2).sum()

    return density


ADDED = {
    "GHH": Added(
        Horseshoe,
        horseshoe,
        {"scale": 0.7},
        lambda U, v: -(v["local"] * v["overall"] * U**2).sum(axis=0),
        {
            "variance for precision": (
                "factors", "terms", lambda t, *_: t._replace(diagonal=1 / t.diagonal)
            ),
            "local precisions without the overall one": (
                "hyper", "updates: local",
                lambda d, prior, U, values: replace(d, rate=0.5 * U**2),
            ),
            "local precisions of a normal without its 1/2": (
                "hyper", "updates: local", lambda d, *_: replace(d, rate=2.0 * d.rate)
            ),
            "overall precision counts the rows twice": (
                "hyper", "updates: overall",
                lambda d, prior, U, values: replace(d, shape=d.shape + 0.5 * len(U)),
            ),
            "overall rate of scale 1": (
                "hyper", "updates: overall_rate",
                lambda d, prior, U, values: replace(d, rate=2.0 + values["overall"]),
            ),
            "scale move without the 2": (
                "scale", "scale_terms",
                lambda t, *_: t._replace(log_weights=t.log_weights - np.log(2.0)),
            ),
            "scale move leaves the overall precision": ("scale", "rescale", lambda *_: {}),
        },
        heavy=True,
    ),
}  # fmt: skip
