"""Likelihoods: how an observed entry follows from the product of the factors.

A likelihood owns its own parameters (the noise precision) and knows how to update a side's factors
from the terms of their prior.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln

from bayesmf import distributions as dist
from bayesmf import updates
from bayesmf.hyperpriors import Values, positive
from bayesmf.observed import ObservedMatrix, View
from bayesmf.priors import Prior
from bayesmf.streams import Array, Stream


class Side(NamedTuple):
    """One side of the matrix as a half-sweep sees it: its view, factors, prior and values."""

    number: int  # 0 rows, 1 columns
    view: View
    X: Array
    F: Array  # the other side's factors
    prior: Prior
    h: Values

    @property
    def rank(self) -> int:
        """Number of factors."""
        return self.X.shape[1]


class Likelihood(ABC):
    """The distribution of the observed entries given U V^T."""

    name: ClassVar[str]

    @abstractmethod
    def fits(self, prior: type[Prior]) -> bool:
        """Whether factors with this prior can be drawn under the likelihood."""

    @abstractmethod
    def check(self, X: ObservedMatrix) -> None:
        """Refuse data that cannot come from the likelihood."""

    def begin(self, X: ObservedMatrix, U: Array, V: Array, stream: Stream) -> Any:
        """Draw what both half-sweeps of a sweep share."""
        return None

    @abstractmethod
    def draw_side(self, side: Side, own: Values, auxiliary: Any, stream: Stream) -> Array | None:
        """Draw the factors of one side in place.

        Returns the sums of squared residuals of its rows (n,), where they come for nothing.
        """

    @abstractmethod
    def update(self, X: ObservedMatrix, error: float, stream: Stream) -> Values:
        """Draw the likelihood's own parameters given the sum of squared residuals."""

    @abstractmethod
    def log_density(self, X: ObservedMatrix, U: Array, V: Array, own: Values) -> float:
        """Log density of the observed entries and the own parameters."""


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """Normal noise with a gamma-distributed precision."""

    alpha: float = 1.0
    beta: float = 1.0
    name: ClassVar[str] = "Gaussian"

    def __post_init__(self) -> None:
        positive(self, alpha=self.alpha, beta=self.beta)

    def fits(self, prior: type[Prior]) -> bool:
        return prior.terms is not Prior.terms

    def check(self, X: ObservedMatrix) -> None:
        """Any real data will do."""

    def draw_side(self, side: Side, own: Values, auxiliary: Any, stream: Stream) -> Array | None:
        tau = float(own["noise_precision"])
        terms = side.prior.terms(side.h, side.rank)
        return updates.draw_side(
            side.view, side.X, side.F, terms, tau, stream, last=side.number == 1
        )

    def conditional(self, n_observed: int, error: float) -> dist.Gamma:
        """Distribution of the noise precision given the sum of squared residuals."""
        return dist.Gamma(self.alpha + 0.5 * n_observed, self.beta + 0.5 * error)

    def update(self, X: ObservedMatrix, error: float, stream: Stream) -> Values:
        return {"noise_precision": self.conditional(X.n_observed, error).draw(stream, ())}

    def log_density(self, X: ObservedMatrix, U: Array, V: Array, own: Values) -> float:
        tau = float(own["noise_precision"])
        error = updates.row_errors(X.rows, U, V, 1).sum()
        likelihood = 0.5 * (X.n_observed * math.log(tau / (2 * math.pi)) - tau * error)
        prior = dist.Gamma(self.alpha, self.beta).log_density(np.asarray(tau))
        return float(likelihood + prior)


@dataclass(frozen=True)
class Poisson(Likelihood):
    """Counts; each is split over the factors, which makes every factor's conditional a gamma."""

    name: ClassVar[str] = "Poisson"

    def fits(self, prior: type[Prior]) -> bool:
        return prior.gamma_terms is not Prior.gamma_terms

    def check(self, X: ObservedMatrix) -> None:
        X.check_counts()

    def begin(self, X: ObservedMatrix, U: Array, V: Array, stream: Stream) -> Any:
        return updates.split(X.rows, U, V, stream)

    def conditional(self, side: Side, sums: Array, threads: int) -> dist.Gamma:
        """Distribution of the factors of one side given the split counts."""
        shape, rate = side.prior.gamma_terms(side.h, side.rank)
        return dist.Gamma(shape + sums, rate + updates.factor_sums(side.view, side.F, threads))

    def draw_side(self, side: Side, own: Values, auxiliary: Any, stream: Stream) -> Array | None:
        gamma = self.conditional(side, auxiliary[side.number], stream.threads)
        side.X[:] = gamma.draw(stream, side.X.shape)
        return None

    def update(self, X: ObservedMatrix, error: float, stream: Stream) -> Values:
        return {}

    def log_density(self, X: ObservedMatrix, U: Array, V: Array, own: Values) -> float:
        rows, cols, values = X.triples()
        mean = np.einsum("tk,tk->t", U[rows], V[cols])
        return float(np.sum(values * np.log(mean) - mean - gammaln(values + 1)))
