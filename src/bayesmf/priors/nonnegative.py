"""Nonnegative priors: exponential, truncated normal, L21 norm, gamma."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayesmf import distributions as dist
from bayesmf._errors import ModelError
from bayesmf.hyperpriors import ARD, GammaRate, Steps, TruncatedNormalHyper, Values, positive
from bayesmf.priors.base import Prior
from bayesmf.streams import Array, Stream
from bayesmf.terms import EntryTerms, GammaTerms, ScaleTerms, over_rows, per_entry, per_factor

__all__ = ["L21", "Exponential", "Gamma", "TruncatedNormal"]


@dataclass(frozen=True)
class Exponential(Prior):
    """Independent exponential entries."""

    rate: float | ARD = 0.1
    nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.rate, ARD):
            positive(self, rate=self.rate)

    def terms(self, h: Values, K: int) -> EntryTerms:
        return EntryTerms(np.zeros((1, K)), -per_factor(h["rate"], K), 0.0, True)

    def gamma_terms(self, h: Values, K: int) -> GammaTerms:
        return GammaTerms(np.ones((1, K)), per_factor(h["rate"], K))

    def relevance_terms(self, X: Array) -> tuple[float, Array]:
        return float(len(X)), over_rows(X)

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        own, h = self._own_relevance(stream, K, shared)
        return dist.Exponential(per_factor(h["rate"], K)).draw(stream, (n, K)), own

    def log_density(self, X: Array, h: Values) -> float:
        entries = dist.Exponential(per_factor(h["rate"], X.shape[1])).log_density(X)
        return float(entries.sum()) + self._log_relevance(h)

    def scale_terms(self, X: Array, h: Values) -> ScaleTerms:
        n, K = X.shape
        return ScaleTerms.of(K, n, {1: 2 * h["rate"] * over_rows(X)})


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

    def terms(self, h: Values, K: int) -> EntryTerms:
        precision = per_entry(h["precision"], K)
        return EntryTerms(precision, per_entry(precision * h["mean"], K), 0.0, True)

    def updates(self, X: Array, h: Values) -> Steps:
        if isinstance(self.precision, TruncatedNormalHyper):
            yield from self.precision.updates(X, h)

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        if isinstance(self.precision, TruncatedNormalHyper):
            return self.precision.draw(stream, (n, K))
        entries = dist.TruncatedNormal(self.mean * self.precision, self.precision)
        return entries.draw(stream, (n, K)), {}

    def log_density(self, X: Array, h: Values) -> float:
        precision = np.asarray(h["precision"])
        total = dist.TruncatedNormal(h["mean"] * precision, precision).log_density(X).sum()
        if isinstance(self.precision, TruncatedNormalHyper):
            total += self.precision.log_density(h)
        return float(total)

    def scale_terms(self, X: Array, h: Values) -> ScaleTerms | None:
        if isinstance(self.precision, TruncatedNormalHyper):
            return self.precision.scale_terms(h)
        if self.mean != 0:
            return None
        n, K = X.shape
        return ScaleTerms.of(K, n, {2: self.precision * over_rows(X**2)})

    def rescale(self, h: Values, c: Array) -> Values:
        if isinstance(self.precision, TruncatedNormalHyper):
            return self.precision.rescale(h, c)
        return {}


@dataclass(frozen=True)
class L21(Prior):
    """Nonnegative entries, density proportional to exp(-strength * sum_i (sum_k x_ik)^2 / 2)."""

    strength: float = 0.1
    nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self, strength=self.strength)

    def terms(self, h: Values, K: int) -> EntryTerms:
        return EntryTerms(per_factor(self.strength, K), np.zeros((1, K)), self.strength, True)

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        """Exactly: a uniform direction on the simplex times a chi-distributed sum."""
        direction = dist.Exponential(1.0).draw(stream, (n, K))
        direction /= direction.sum(axis=1, keepdims=True)
        square = dist.Gamma(0.5 * K, 0.5 * self.strength).draw(stream, (n, 1))
        return np.sqrt(square) * direction, {}

    def log_density(self, X: Array, h: Values) -> float:
        if (X < 0).any():
            return -math.inf
        return -0.5 * self.strength * float(np.sum(X.sum(axis=1) ** 2))

    def scale_terms(self, X: Array, h: Values) -> ScaleTerms:
        n, K = X.shape
        total = self.strength * np.sum(X.sum(axis=1) ** 2)
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

    def gamma_terms(self, h: Values, K: int) -> GammaTerms:
        return GammaTerms(per_factor(self.shape, K), per_entry(h["rate"], K))

    def relevance_terms(self, X: Array) -> tuple[float, Array]:
        return self.shape * len(X), over_rows(X)

    def updates(self, X: Array, h: Values) -> Steps:
        yield from super().updates(X, h)
        if isinstance(self.rate, GammaRate):
            yield "rate", self.rate.conditional(X, self.shape)

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        own, h = self._own_relevance(stream, K, shared)
        if isinstance(self.rate, GammaRate):
            h["rate"] = own["rate"] = self.rate.prior().draw(stream, (n, 1))
        return dist.Gamma(self.shape, per_entry(h["rate"], K)).draw(stream, (n, K)), own

    def log_density(self, X: Array, h: Values) -> float:
        total = dist.Gamma(self.shape, per_entry(h["rate"], X.shape[1])).log_density(X).sum()
        if isinstance(self.rate, GammaRate):
            total += self.rate.prior().log_density(h["rate"]).sum()
        return float(total) + self._log_relevance(h)

    def scale_terms(self, X: Array, h: Values) -> ScaleTerms:
        n, K = X.shape
        return ScaleTerms.of(K, self.shape * n, {1: 2 * over_rows(h["rate"] * X)})
