"""Normal noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from bayesmf._errors import positive
from bayesmf.likelihoods.base import Fit, Likelihood, NormalData, Side
from bayesmf.priors import Prior
from bayesmf.priors import distributions as dist
from bayesmf.priors.distributions import Values, Variable
from bayesmf.streams import Array, Stream
from bayesmf.updates.terms import RowTerms

__all__ = ["Gaussian"]


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """Normal noise with a gamma-distributed precision."""

    alpha: float = 1.0
    beta: float = 1.0
    name: ClassVar[str] = "Gaussian"
    takes_biases: ClassVar[bool] = True
    symbols: ClassVar[dict[str, str]] = {"alpha": "alpha_tau", "beta": "beta_tau"}

    def __post_init__(self) -> None:
        positive(self, alpha=self.alpha, beta=self.beta)

    def fits(self, prior: type[Prior]) -> bool:
        return prior.terms is not Prior.terms

    def variables(self, shape: tuple[int, int]) -> dict[str, Variable]:
        return {"noise_precision": Variable((), ())}

    def prior(self) -> dist.Gamma:
        """Distribution of the noise precision before any data are seen."""
        return dist.Gamma(shape=self.alpha, rate=self.beta)

    def draw(self, shape: tuple[int, int], stream: Stream) -> Values:
        return {"noise_precision": self.prior().draw(stream, ())}

    def working(self, fit: Fit, own: Values, stream: Stream) -> NormalData:
        """The data themselves."""
        return NormalData(fit.X, float(own["noise_precision"]))

    def draws_jointly(self, side: Side) -> bool:
        return isinstance(side.prior.terms(side.values, side.rank), RowTerms)

    def conditional(self, n_observed: int, error: float) -> dist.Gamma:
        """Distribution of the noise precision given the sum of squared residuals."""
        return dist.Gamma(shape=self.alpha + 0.5 * n_observed, rate=self.beta + 0.5 * error)

    def update(self, fit: Fit, own: Values, stream: Stream) -> Values:
        conditional = self.conditional(fit.X.n_observed, fit.squared_error)
        return {"noise_precision": conditional.draw(stream, ())}

    def log_density(self, fit: Fit, own: Values) -> float:
        tau = float(own["noise_precision"])
        constant = fit.X.n_observed * math.log(tau / (2 * math.pi))
        likelihood = 0.5 * (constant - tau * fit.squared_error)
        return float(likelihood + self.prior().log_density(np.asarray(tau)))

    def noise_sd(self, own: Values) -> float:
        return float((own["noise_precision"] ** -0.5).mean())

    def monitored(self, own: Values, mse: Array) -> dict[str, Array]:
        tau = own["noise_precision"]
        density = 0.5 * (np.log(tau / (2 * np.pi)) - tau * mse)
        return {"noise precision": tau, "log likelihood per entry": density}

    def variance(self, means: Array, own: Values) -> Array:
        return 1 / own["noise_precision"][..., None]

    def log_prob(self, values: Array, means: Array, own: Values) -> Array:
        tau = own["noise_precision"][:, None]
        return 0.5 * (np.log(tau / (2 * np.pi)) - tau * (values - means) ** 2)

    def sample(self, means: Array, own: Values, rng: np.random.Generator) -> Array:
        return rng.normal(means, own["noise_precision"] ** -0.5)

    def replicates(self, means: Array, own: Values, times: int, seed: Sequence[int]) -> Array:
        """All cells share the noise, whatever their block, because each is looked at alone.

        Evenly spread over the normal distribution it leaves less to chance.
        """
        rng = np.random.default_rng([*seed[:-1], 0])
        means = np.repeat(means, times, axis=0)
        levels = (np.arange(len(means)) + 0.5) / len(means)
        deviation = np.sqrt(np.repeat(own["noise_precision"], times))
        return means + (special.ndtri(rng.permutation(levels)) / deviation)[:, None]
