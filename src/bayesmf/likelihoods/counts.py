"""Counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from bayesmf.likelihoods.base import CountData, Fit, Likelihood
from bayesmf.priors import Prior
from bayesmf.priors.distributions import Values
from bayesmf.streams import Array, Stream
from bayesmf.updates import counts

__all__ = ["Poisson"]


@dataclass(frozen=True)
class Poisson(Likelihood):
    """Counts; each is split over the factors, which makes every factor's conditional a gamma."""

    name: ClassVar[str] = "Poisson"
    discrete: ClassVar[bool] = True
    needs: ClassVar[str] = "counts"

    def fits(self, prior: type[Prior]) -> bool:
        return prior.gamma_terms is not Prior.gamma_terms

    def allowed(self, values: Array) -> Array:
        return (values >= 0) & (values % 1 == 0)

    def working(self, fit: Fit, own: Values, stream: Stream) -> CountData:
        """The split is drawn once for both half-sweeps."""
        return CountData(fit.X, counts.split(fit.X.rows, fit.U, fit.V, stream))

    def log_density(self, fit: Fit, own: Values) -> float:
        return float(np.sum(self.log_prob(fit.X.rows.values, fit.means(), own)))

    def variance(self, means: Array, own: Values) -> Array:
        return means

    def log_prob(self, values: Array, means: Array, own: Values) -> Array:
        return special.xlogy(values, means) - means - special.gammaln(values + 1)

    def sample(self, means: Array, own: Values, rng: np.random.Generator) -> Array:
        return rng.poisson(np.maximum(means, 0.0))

    def replicates(self, means: Array, own: Values, times: int, seed: Sequence[int]) -> Array:
        rng = np.random.default_rng(list(seed))
        means = np.repeat(means, times, axis=0)
        return rng.poisson(np.maximum(means, 0.0)).astype(np.float64)
