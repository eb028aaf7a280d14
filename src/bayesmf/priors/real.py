"""Real-valued priors: normal, multivariate normal, Laplace, horseshoe."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from bayesmf import distributions as dist
from bayesmf._errors import ModelError
from bayesmf.hyperpriors import ARD, InverseGaussian, NormalInverseWishart, Steps, Values, positive
from bayesmf.priors.base import Prior, Setting
from bayesmf.streams import Array, Stream
from bayesmf.terms import EntryTerms, RowTerms, ScaleTerms, over_rows, per_factor

__all__ = ["Horseshoe", "Laplace", "MultivariateNormal", "Normal"]


@dataclass(frozen=True)
class Normal(Prior):
    """Independent normal entries with mean 0; ``update`` draws whole rows, or entries in turn."""

    precision: float | ARD = 0.1
    update: Literal["rows", "entries"] = "rows"

    def __post_init__(self) -> None:
        if not isinstance(self.precision, ARD):
            positive(self, precision=self.precision)
        if self.update not in ("rows", "entries"):
            raise ModelError(f"Normal: update must be 'rows' or 'entries', got {self.update!r}.")

    def terms(self, h: Values, K: int) -> RowTerms | EntryTerms:
        precision, zero = per_factor(h["precision"], K), np.zeros((1, K))
        if self.update == "entries":
            return EntryTerms(precision, zero, 0.0, False)
        return RowTerms(np.zeros((K, K)), precision, zero)

    def relevance_terms(self, X: Array) -> tuple[float, Array]:
        return 0.5 * len(X), 0.5 * over_rows(X**2)

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        own, h = self._own_relevance(stream, K, shared)
        return dist.Normal(0.0, per_factor(h["precision"], K)).draw(stream, (n, K)), own

    def log_density(self, X: Array, h: Values) -> float:
        entries = dist.Normal(0.0, per_factor(h["precision"], X.shape[1])).log_density(X)
        return float(entries.sum()) + self._log_relevance(h)

    def scale_terms(self, X: Array, h: Values) -> ScaleTerms:
        n, K = X.shape
        return ScaleTerms.of(K, n, {2: h["precision"] * over_rows(X**2)})


@dataclass(frozen=True)
class MultivariateNormal(Prior):
    """Rows from one multivariate normal whose mean and covariance are learnt."""

    hyper: NormalInverseWishart = NormalInverseWishart()
    common: ClassVar[tuple[str, ...]] = ("mean", "precision")

    def resolve(self, setting: Setting) -> MultivariateNormal:
        return replace(self, hyper=self.hyper.resolve(setting.rank))

    def terms(self, h: Values, K: int) -> RowTerms:
        linear = (h["precision"] @ h["mean"])[None, :]
        return RowTerms(np.ascontiguousarray(h["precision"]), np.zeros((1, K)), linear)

    def updates(self, X: Array, h: Values) -> Steps:
        return self.hyper.updates(X, h)

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        own = self.hyper.draw(stream, K)
        rows = dist.MultivariateNormal(own["mean"], own["precision"])
        return np.ascontiguousarray(rows.draw(stream, (n, K))), own

    def log_density(self, X: Array, h: Values) -> float:
        rows = dist.MultivariateNormal(h["mean"], h["precision"]).log_density(X)
        return float(rows.sum()) + self.hyper.log_density(h)

    def scale_terms(self, X: Array, h: Values) -> ScaleTerms | None:
        return self.hyper.scale_terms(h, X.shape[1])

    def rescale(self, h: Values, c: Array) -> Values:
        return self.hyper.rescale(h, c)


@dataclass(frozen=True)
class Laplace(Prior):
    """Independent Laplace entries, drawn as normals with exponential mixing variances."""

    scale: float | InverseGaussian = math.sqrt(10)

    def __post_init__(self) -> None:
        if not isinstance(self.scale, InverseGaussian):
            positive(self, scale=self.scale)

    def resolve(self, setting: Setting) -> Laplace:
        if isinstance(self.scale, InverseGaussian):
            return replace(self, scale=self.scale.resolve(setting.rank))
        return self

    def _inverse_square_scale(self, h: Values) -> Array | float:
        if isinstance(self.scale, InverseGaussian):
            return self.scale.inverse_square_scale(h)
        return self.scale**-2.0

    def terms(self, h: Values, K: int) -> RowTerms:
        return RowTerms(np.zeros((K, K)), 1 / h["variance"], np.zeros((1, K)))

    def updates(self, X: Array, h: Values) -> Steps:
        # Under "scale" eta is drawn with the variances integrated out, so it comes first; under
        # "rate" it is drawn given the variances, which must be fresh.
        hyper = self.scale if isinstance(self.scale, InverseGaussian) else None
        if hyper and hyper.reading == "scale":
            yield "eta", hyper.conditional(X, h)
        yield "variance", dist.GIG(0.5, self._inverse_square_scale(h), X**2)
        if hyper and hyper.reading == "rate":
            yield "eta", hyper.conditional(X, h)

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        own: Values = {}
        if isinstance(self.scale, InverseGaussian):
            own = self.scale.draw(stream, (n, K))
        rate = 0.5 * self._inverse_square_scale(own)
        own["variance"] = dist.Exponential(rate).draw(stream, (n, K))
        return dist.Normal(0.0, 1 / own["variance"]).draw(stream, (n, K)), own

    def log_density(self, X: Array, h: Values) -> float:
        """Without a "variance" in h, the density with the mixing variances integrated out."""
        square = self._inverse_square_scale(h)
        if "variance" in h:
            s = h["variance"]
            entries = dist.Normal(0.0, 1 / s).log_density(X)
            entries = entries + dist.Exponential(0.5 * square).log_density(s)
        else:
            entries = 0.5 * np.log(square) - math.log(2) - np.sqrt(square) * np.abs(X)
        hyper = self.scale.log_density(h) if isinstance(self.scale, InverseGaussian) else 0.0
        return float(entries.sum()) + hyper

    def scale_terms(self, X: Array, h: Values) -> ScaleTerms:
        """With the variances integrated out: they are redrawn before they are used."""
        if isinstance(self.scale, InverseGaussian):
            return self.scale.scale_terms(h)
        n, K = X.shape
        return ScaleTerms.of(K, n, {1: 2 * over_rows(np.abs(X)) / self.scale})

    def rescale(self, h: Values, c: Array) -> Values:
        return self.scale.rescale(h, c) if isinstance(self.scale, InverseGaussian) else {}


@dataclass(frozen=True)
class Horseshoe(Prior):
    """Normal entries whose standard deviations are a local times an overall half-Cauchy variable.

    The overall one belongs to a factor and has this ``scale``, the local ones have scale 1. The
    chain holds inverse squares: if a ~ Gamma(1/2, s^-2) and p ~ Gamma(1/2, a), then p^(-1/2) is
    half-Cauchy with scale s, and all conditionals are gammas (Makalic and Schmidt, 2016).
    """

    scale: float = 1.0
    common: ClassVar[tuple[str, ...]] = ("overall", "overall_rate")

    def __post_init__(self) -> None:
        positive(self, scale=self.scale)

    def terms(self, h: Values, K: int) -> RowTerms:
        return RowTerms(np.zeros((K, K)), h["local"] * h["overall"], np.zeros((1, K)))

    def updates(self, X: Array, h: Values) -> Steps:
        yield "local", dist.Gamma(1.0, h["local_rate"] + 0.5 * h["overall"] * X**2)
        yield "local_rate", dist.Gamma(1.0, 1.0 + h["local"])
        squares = over_rows(h["local"] * X**2)
        yield "overall", dist.Gamma(0.5 * (1 + len(X)), h["overall_rate"] + 0.5 * squares)
        yield "overall_rate", dist.Gamma(1.0, self.scale**-2.0 + h["overall"])

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        own: Values = {}
        for name, shape, rate in (("local", (n, K), 1.0), ("overall", (K,), self.scale**-2.0)):
            own[f"{name}_rate"] = dist.Gamma(0.5, rate).draw(stream, shape)
            own[name] = dist.Gamma(0.5, own[f"{name}_rate"]).draw(stream, shape)
        return dist.Normal(0.0, own["local"] * own["overall"]).draw(stream, (n, K)), own

    def log_density(self, X: Array, h: Values) -> float:
        total = dist.Normal(0.0, h["local"] * h["overall"]).log_density(X).sum()
        for name, rate in (("local", 1.0), ("overall", self.scale**-2.0)):
            total += dist.Gamma(0.5, h[f"{name}_rate"]).log_density(h[name]).sum()
            total += dist.Gamma(0.5, rate).log_density(h[f"{name}_rate"]).sum()
        return float(total)

    def scale_terms(self, X: Array, h: Values) -> ScaleTerms:
        """The overall precision moves along, so that only its own density answers."""
        return ScaleTerms.of(X.shape[1], -1.0, {-2: 2 * h["overall_rate"] * h["overall"]})

    def rescale(self, h: Values, c: Array) -> Values:
        return {"overall": h["overall"] / c**2}
