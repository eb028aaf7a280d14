"""Nonnegative priors: exponential, truncated normal, L21 norm, gamma."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayesmf._errors import ModelError, positive
from bayesmf.priors import distributions as dist
from bayesmf.priors.base import Prior
from bayesmf.priors.distributions import Values, Variable
from bayesmf.priors.hyperpriors import ARD, GammaRate, Steps, TruncatedNormalHyper
from bayesmf.streams import Array, Stream
from bayesmf.updates.terms import (
    GammaTerms,
    NonnegativeTerms,
    ScaleTerms,
    over_rows,
    per_entry,
    per_factor,
)

__all__ = ["L21", "Exponential", "Gamma", "TruncatedNormal"]


@dataclass(frozen=True)
class Exponential(Prior):
    """Independent exponential entries."""

    rate: float | ARD = 0.1
    nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.rate, ARD):
            positive(self, rate=self.rate)

    def terms(self, values: Values, K: int) -> NonnegativeTerms:
        return NonnegativeTerms(np.zeros((1, K)), -per_factor(values["rate"], K))

    def gamma_terms(self, values: Values, K: int) -> GammaTerms:
        return GammaTerms(np.ones((1, K)), per_factor(values["rate"], K))

    def relevance_terms(self, U: Array) -> tuple[float, Array]:
        return float(len(U)), over_rows(U)

    def entries(self, values: Values, K: int) -> dist.Exponential:
        return dist.Exponential(rate=per_factor(values["rate"], K))

    def scale_terms(self, U: Array, values: Values) -> ScaleTerms:
        n, K = U.shape
        return ScaleTerms.of(K, n, {1: 2 * values["rate"] * over_rows(U)})


@dataclass(frozen=True)
class TruncatedNormal(Prior):
    """Independent normal entries restricted to x >= 0; mean 0 is the half-normal."""

    mean: float = 0.0
    precision: float | TruncatedNormalHyper = 0.1
    nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.precision, TruncatedNormalHyper):
            if self.mean != 0:
                raise ModelError(
                    "TruncatedNormal: mean is learnt under a TruncatedNormalHyper; give the "
                    "hyperprior's own mean instead."
                )
        else:
            positive(self, precision=self.precision)
            if not math.isfinite(self.mean):
                raise ModelError(f"TruncatedNormal: mean must be finite, got {self.mean!r}.")

    def variables(self, n: int, K: int) -> dict[str, Variable]:
        if isinstance(self.precision, TruncatedNormalHyper):
            return {name: Variable.of_entries(n, K) for name in ("mean", "precision")}
        return {}

    def terms(self, values: Values, K: int) -> NonnegativeTerms:
        hyper = self.precision
        if isinstance(hyper, TruncatedNormalHyper):
            precision = per_entry(hyper.without_mean(values), K)
            return NonnegativeTerms(precision, precision * hyper.mean)
        precision = per_entry(values["precision"], K)
        return NonnegativeTerms(precision, precision * self.mean)

    def updates(self, U: Array, values: Values) -> Steps:
        if isinstance(self.precision, TruncatedNormalHyper):
            yield "precision", self.precision.of_precisions(U, values)

    def afterwards(self, U: Array, values: Values) -> Steps:
        if isinstance(self.precision, TruncatedNormalHyper):
            yield "mean", self.precision.of_means(U, values)

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        if isinstance(self.precision, TruncatedNormalHyper):
            return self.precision.draw(stream, (n, K))
        entries = dist.TruncatedNormal(linear=self.mean * self.precision, precision=self.precision)
        return entries.draw(stream, (n, K)), {}

    def log_density(self, U: Array, values: Values) -> float:
        precision = np.asarray(values["precision"])
        entries = dist.TruncatedNormal(linear=values["mean"] * precision, precision=precision)
        total = entries.log_density(U).sum()
        if isinstance(self.precision, TruncatedNormalHyper):
            total += self.precision.log_density(values)
        return float(total)

    def scale_terms(self, U: Array, values: Values) -> ScaleTerms | None:
        if isinstance(self.precision, TruncatedNormalHyper):
            return self.precision.scale_terms(values)
        if self.mean != 0:
            return None
        n, K = U.shape
        return ScaleTerms.of(K, n, {2: self.precision * over_rows(U**2)})

    def rescale(self, values: Values, c: Array) -> Values:
        if isinstance(self.precision, TruncatedNormalHyper):
            return self.precision.rescale(values, c)
        return {}


@dataclass(frozen=True)
class L21(Prior):
    """Nonnegative entries, density proportional to exp(-strength * sum_i (sum_k x_ik)^2 / 2)."""

    strength: float = 0.1
    nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self, strength=self.strength)

    def terms(self, values: Values, K: int) -> NonnegativeTerms:
        return NonnegativeTerms(per_factor(self.strength, K), np.zeros((1, K)), self.strength)

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        """Exactly: a uniform direction on the simplex times a chi-distributed sum."""
        direction = dist.Exponential(rate=1.0).draw(stream, (n, K))
        direction /= direction.sum(axis=1, keepdims=True)
        square = dist.Gamma(shape=0.5 * K, rate=0.5 * self.strength).draw(stream, (n, 1))
        return np.sqrt(square) * direction, {}

    def log_density(self, U: Array, values: Values) -> float:
        if (U < 0).any():
            return -math.inf
        return -0.5 * self.strength * float(np.sum(U.sum(axis=1) ** 2))

    def scale_terms(self, U: Array, values: Values) -> ScaleTerms:
        n, K = U.shape
        total = self.strength * np.sum(U.sum(axis=1) ** 2)
        return ScaleTerms.of(K, n, {2: np.full(K, total / K)}, together=True)


@dataclass(frozen=True)
class Gamma(Prior):
    """Independent gamma entries, for counts; the rate may be learnt for every row."""

    shape: float = 1.0
    rate: float | GammaRate | ARD = 1.0
    nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self, shape=self.shape)
        if not isinstance(self.rate, (GammaRate, ARD)):
            positive(self, rate=self.rate)

    def variables(self, n: int, K: int) -> dict[str, Variable]:
        if isinstance(self.rate, GammaRate):
            return {"rate": Variable((n, 1), ("row", "all_components"))}
        return super().variables(n, K)

    def gamma_terms(self, values: Values, K: int) -> GammaTerms:
        return GammaTerms(per_factor(self.shape, K), per_entry(values["rate"], K))

    def relevance_terms(self, U: Array) -> tuple[float, Array]:
        return self.shape * len(U), over_rows(U)

    def updates(self, U: Array, values: Values) -> Steps:
        yield from super().updates(U, values)
        if isinstance(self.rate, GammaRate):
            yield "rate", self.rate.conditional(U, self.shape)

    def entries(self, values: Values, K: int) -> dist.Gamma:
        return dist.Gamma(shape=self.shape, rate=per_entry(values["rate"], K))

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        if not isinstance(self.rate, GammaRate):
            return super().draw(stream, n, K, shared)
        own = {"rate": self.rate.prior().draw(stream, (n, 1))}
        return self.entries(own, K).draw(stream, (n, K)), own

    def log_density(self, U: Array, values: Values) -> float:
        total = super().log_density(U, values)
        if isinstance(self.rate, GammaRate):
            total += float(self.rate.prior().log_density(values["rate"]).sum())
        return total

    def scale_terms(self, U: Array, values: Values) -> ScaleTerms:
        n, K = U.shape
        return ScaleTerms.of(K, self.shape * n, {1: 2 * over_rows(values["rate"] * U)})
