"""Two chains compared by the moments of what every chain has: cells of U V^T, noise precision."""

from typing import NamedTuple

import numpy as np

from bayesmf import sample
from tests.exactness.simulation import Comparison, critical_value, standard_error


class Moments(NamedTuple):
    """First and second moments of quantities about a centre, and their Monte Carlo errors."""

    means: np.ndarray
    errors: np.ndarray


def with_noise(cells, noise):
    """Draws (chains, draws, quantities): cells row by row, then the noise precision, if any."""
    chains, draws = cells.shape[:2]
    parts = [cells, noise] if noise is not None else [cells]
    return np.concatenate([part.reshape(chains, draws, -1) for part in parts], axis=2)


def draws_of(X, model, rank, seed, chains, burn_in, length):
    """Draws of all cells and of the noise precision in the posterior of a model."""
    posterior = sample(
        X, model, rank, draws=length, burn_in=burn_in, chains=chains, keep=("U", "V"),
        random_state=seed,
    )  # fmt: skip
    kept = posterior.draws
    cells = np.einsum("...ik,...jk->...ij", kept["U"], kept["V"])
    return with_noise(cells, kept.get("noise_precision"))


def moments(draws, centre):
    """Moments of draws (chains, draws, quantities), errors by their measured autocorrelation."""
    powers = np.concatenate([draws, (draws - centre) ** 2], axis=2)
    errors = [standard_error(powers[:, :, q]) for q in range(powers.shape[2])]
    return Moments(powers.mean(axis=(0, 1)), np.array(errors))


def compare(one, other, family_error):
    """Compare means and second moments (about the middle of both means) of two sets of draws."""
    centre = 0.5 * (one.mean(axis=(0, 1)) + other.mean(axis=(0, 1)))
    left, right = moments(one, centre), moments(other, centre)
    scores = (left.means - right.means) / np.hypot(left.errors, right.errors)
    names = [f"{moment} of {q}" for moment in ("mean", "square") for q in range(centre.size)]
    return Comparison(names, scores, critical_value(family_error, scores.size))
