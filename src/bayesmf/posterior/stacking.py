"""Chains weighted by how well their mixture predicts entries: stacking.

Chains at rest in different modes visit these in numbers that say nothing about their probability.
Stacking (Yao, Vehtari and Gelman, 2022) weights the chains so that the mixture of their predictive
distributions gives entries, each left out in turn, the highest log density.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayesmf._errors import DataError, ModelError
from bayesmf.data.observed import ObservedMatrix
from bayesmf.posterior.fitted import Fitted
from bayesmf.posterior.left_out import log_left_out
from bayesmf.posterior.posterior import Posterior
from bayesmf.posterior.residuals import exact_entries
from bayesmf.sampler.moments import moments_of
from bayesmf.streams import Array

_STEPS, _CLOSE = 10_000, 1e-9  # at most, and the change of a weight at which they end


def stacking_weights(log_densities: Array) -> Array:
    """Weights (chains,) of the mixture with the highest mean log density.

    From log densities (chains, n) of entries, each given the others. The problem is concave; every
    step of expectation and maximisation raises it and keeps weights on the simplex.
    """
    log_densities = log_densities[:, np.isfinite(log_densities).all(axis=0)]
    if not log_densities.size:
        raise DataError("Stacking needs entries whose density is a finite number under all chains.")
    density = np.exp(log_densities - log_densities.max(axis=0))
    weights = np.full(len(density), 1 / len(density))
    for _ in range(_STEPS):
        before = weights
        weights = weights * np.mean(density / (weights @ density), axis=1)
        if np.abs(weights - before).max() < _CLOSE:
            break
    return weights / weights.sum()


def stacked(posterior: Posterior, X: ObservedMatrix, entries: int) -> Posterior:
    """The posterior whose draws stand for its chains by their weights, as one chain."""
    U = posterior.draws.get("U")
    if U is None or len(U) < 2:
        raise ModelError(
            "Stacking needs the draws of two chains or more: sample with chains=4 and keep='all'."
        )
    cells, values, errors = exact_entries(X, entries)
    given = Fitted(posterior, X).predictive().log_densities(cells, values, errors)
    left_out = np.array([log_left_out(chain) for chain in given.reshape(*U.shape[:2], -1)])
    return _one_chain(posterior, stacking_weights(left_out))


def _one_chain(posterior: Posterior, weights: Array) -> Posterior:
    """All draws of the chain with the largest weight, and of the others fewer in proportion."""
    chains, draws = posterior.draws["U"].shape[:2]
    counts = np.rint(draws * weights / weights.max()).astype(int)
    spread = [((np.arange(n) + 0.5) * draws / n).astype(int) for n in counts if n]
    chosen = np.repeat(np.arange(chains), counts), np.concatenate(spread)
    left, right = (side.reshape(chains, draws, *side.shape[1:]) for side in posterior.predictors())
    draws_of_both = ((left[place], right[place]) for place in zip(*chosen, strict=True))
    mean, variance = moments_of(draws_of_both, posterior.shape, posterior.cells)
    settings, kept = posterior.settings, {k: v[chosen][None] for k, v in posterior.draws.items()}
    last = settings["burn_in"] + settings["thin"] * (chosen[1] + 1) - 1  # sweeps of the draws
    said = ", ".join(f"{weight:.2f}" for weight in weights)
    return replace(
        posterior,
        mean=mean, variance=variance, draws=kept,
        U_mean=kept["U"].mean(axis=1), V_mean=kept["V"].mean(axis=1),
        train_mse=posterior.train_mse[chosen[0], last][None],
        seconds=posterior.seconds[chosen[0], last][None],
        states=posterior.states[:1],
        notes=(*posterior.notes, f"Chains are weighted by stacking: {said}."),
        settings={
            **settings, "chains": 1, "draws": chosen[0].size, "burn_in": 0, "thin": 1,
            "stacking": weights.tolist(),
        },
    )  # fmt: skip
