"""Real-valued priors: normal, multivariate normal, Laplace, horseshoe."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from bayesmf._errors import ModelError, positive
from bayesmf.data.features import Features
from bayesmf.kernels import rotation
from bayesmf.priors import distributions as dist
from bayesmf.priors import regression
from bayesmf.priors.base import Prior, Setting
from bayesmf.priors.distributions import Values, Variable
from bayesmf.priors.hyperpriors import ARD, InverseGaussian, NormalInverseWishart, Steps
from bayesmf.streams import Array, Stream
from bayesmf.updates.terms import (
    EntryTerms,
    RotationTerms,
    RowTerms,
    ScaleTerms,
    over_rows,
    per_factor,
)

__all__ = ["Horseshoe", "Laplace", "MultivariateNormal", "Normal"]


@dataclass(frozen=True)
class Normal(Prior):
    """Independent normal entries with mean 0; ``update`` draws whole rows, or entries in turn.

    With ``features`` of the rows the means are linear in these (`bayesmf.priors.regression`).
    """

    precision: float | ARD = 0.1
    update: Literal["rows", "entries"] = "rows"
    features: Features | None = field(default=None, repr=False, compare=False)
    takes_features: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.precision, ARD):
            positive(self, precision=self.precision)
        if self.update not in ("rows", "entries"):
            raise ModelError(f"Normal: update must be 'rows' or 'entries', got {self.update!r}.")

    @property
    def rotation_invariant(self) -> bool:
        return self.ard is None

    def resolve(self, setting: Setting) -> Normal:
        return replace(self, features=setting.features)

    def variables(self, n: int, K: int) -> dict[str, Variable]:
        return {**super().variables(n, K), **regression.variables(self.features, K)}

    def terms(self, values: Values, K: int) -> RowTerms | EntryTerms:
        precision, linear, certainty = per_factor(values["precision"], K), np.zeros((1, K)), None
        if self.features is not None:
            linear = precision * regression.fitted(self.features, values)
            if self.features.is_new:
                certainty = regression.certainty(self.features, values)
                linear = linear * certainty[:, None]
        if self.update == "rows":
            return RowTerms(np.zeros((K, K)), precision, linear, certainty)
        return EntryTerms(
            precision if certainty is None else precision * certainty[:, None], linear
        )

    def updates(self, U: Array, values: Values) -> Steps:
        if self.features is not None:
            precision = self._matrix(values, U.shape[1])
            yield from regression.steps(self.features, U, values, precision)
        yield from super().updates(U, values)

    @staticmethod
    def _matrix(values: Values, K: int) -> Array:
        """The precision matrix of a row."""
        return np.diag(per_factor(values["precision"], K)[0])

    def governed(self, U: Array, values: Values) -> Array:
        return regression.with_weights(self.features, U, values)

    def relevance_terms(self, U: Array) -> tuple[float, Array]:
        return 0.5 * len(U), 0.5 * over_rows(U**2)

    def entries(self, values: Values, K: int) -> dist.Normal:
        return dist.Normal(precision=per_factor(values["precision"], K))

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        U, own = super().draw(stream, n, K, shared)
        if self.features is None:
            return U, own
        values = self.all_values(own, shared)
        own |= regression.draw(self.features, self._matrix(values, K), stream)
        return U + regression.fitted(self.features, own), own

    def log_density(self, U: Array, values: Values) -> float:
        if self.features is None:
            return super().log_density(U, values)
        weights = regression.log_density(self.features, values, self._matrix(values, U.shape[1]))
        return super().log_density(U - regression.fitted(self.features, values), values) + weights

    def scale_terms(self, U: Array, values: Values) -> ScaleTerms:
        rows = self.governed(U, values)
        return ScaleTerms.of(U.shape[1], len(rows), {2: values["precision"] * over_rows(rows**2)})

    def rotation_terms(self) -> RotationTerms | None:
        is_flat = self.rotation_invariant and self.features is None
        return RotationTerms(rotation.FLAT) if is_flat else None

    def rescale(self, values: Values, c: Array) -> Values:
        return regression.rescale(self.features, values, c)


@dataclass(frozen=True)
class MultivariateNormal(Prior):
    """Rows from one multivariate normal whose mean and covariance are learnt.

    With ``features`` of the rows the means are linear in these (`bayesmf.priors.regression`).
    """

    hyper: NormalInverseWishart = NormalInverseWishart()
    features: Features | None = field(default=None, repr=False, compare=False)
    rotation_invariant: ClassVar[bool] = True
    takes_features: ClassVar[bool] = True

    def variables(self, n: int, K: int) -> dict[str, Variable]:
        return {**self.hyper.variables(K), **regression.variables(self.features, K)}

    def resolve(self, setting: Setting) -> MultivariateNormal:
        return replace(self, hyper=self.hyper.resolve(setting.rank), features=setting.features)

    def terms(self, values: Values, K: int) -> RowTerms:
        precision = np.ascontiguousarray(values["precision"])
        if self.features is None:
            return RowTerms(precision, np.zeros((1, K)), (precision @ values["mean"])[None, :])
        linear, certainty = values["mean"] + regression.fitted(self.features, values), None
        if self.features.is_new:
            certainty = regression.certainty(self.features, values)
            linear = linear * certainty[:, None]
        linear = linear @ precision
        return RowTerms(precision, np.zeros((1, K)), linear, certainty)

    def updates(self, U: Array, values: Values) -> Steps:
        if self.features is None:
            yield from self.hyper.updates(U, values)
            return
        yield from regression.steps(self.features, U - values["mean"], values, values["precision"])
        rows = regression.with_weights(self.features, U, values)
        yield from self.hyper.updates(rows[: len(U)], values, rows[len(U) :])

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        own = self.hyper.draw(stream, K)
        rows = dist.MultivariateNormal(mean=own["mean"], precision=own["precision"])
        U = np.ascontiguousarray(rows.draw(stream, (n, K)))
        if self.features is None:
            return U, own
        own |= regression.draw(self.features, own["precision"], stream)
        return U + regression.fitted(self.features, own), own

    def log_density(self, U: Array, values: Values) -> float:
        rows = dist.MultivariateNormal(mean=values["mean"], precision=values["precision"])
        total = self.hyper.log_density(values)
        if self.features is not None:
            U = U - regression.fitted(self.features, values)
            total += regression.log_density(self.features, values, values["precision"])
        return float(rows.log_density(U).sum()) + total

    def scale_terms(self, U: Array, values: Values) -> ScaleTerms | None:
        return self.hyper.scale_terms(values, U.shape[1])

    def rescale(self, values: Values, c: Array) -> Values:
        return {**self.hyper.rescale(values, c), **regression.rescale(self.features, values, c)}


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

    def variables(self, n: int, K: int) -> dict[str, Variable]:
        names = ("eta", "variance") if isinstance(self.scale, InverseGaussian) else ("variance",)
        return {name: Variable.of_entries(n, K) for name in names}

    def _inverse_square_scale(self, values: Values) -> Array | float:
        if isinstance(self.scale, InverseGaussian):
            return self.scale.inverse_square_scale(values)
        return self.scale**-2.0

    def terms(self, values: Values, K: int) -> RowTerms:
        return RowTerms(np.zeros((K, K)), 1 / values["variance"], np.zeros((1, K)))

    def updates(self, U: Array, values: Values) -> Steps:
        # Under "scale" eta is drawn with the variances integrated out, so it comes first; under
        # "rate" it is drawn given the variances, which must be fresh.
        hyper = self.scale if isinstance(self.scale, InverseGaussian) else None
        if hyper and hyper.reading == "scale":
            yield "eta", hyper.conditional(U, values)
        yield "variance", dist.GIG(p=0.5, a=self._inverse_square_scale(values), b=U**2)
        if hyper and hyper.reading == "rate":
            yield "eta", hyper.conditional(U, values)

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        own: Values = {}
        if isinstance(self.scale, InverseGaussian):
            own = self.scale.draw(stream, (n, K))
        rate = 0.5 * self._inverse_square_scale(own)
        own["variance"] = dist.Exponential(rate=rate).draw(stream, (n, K))
        return dist.Normal(precision=1 / own["variance"]).draw(stream, (n, K)), own

    def log_density(self, U: Array, values: Values) -> float:
        """Without a "variance" in values, the density with the mixing variances integrated out."""
        square = self._inverse_square_scale(values)
        if "variance" in values:
            s = values["variance"]
            entries = dist.Normal(precision=1 / s).log_density(U)
            entries = entries + dist.Exponential(rate=0.5 * square).log_density(s)
        else:
            entries = 0.5 * np.log(square) - math.log(2) - np.sqrt(square) * np.abs(U)
        hyper = self.scale.log_density(values) if isinstance(self.scale, InverseGaussian) else 0.0
        return float(entries.sum()) + hyper

    def scale_terms(self, U: Array, values: Values) -> ScaleTerms:
        """With the variances integrated out: they are redrawn before they are used."""
        if isinstance(self.scale, InverseGaussian):
            return self.scale.scale_terms(values)
        n, K = U.shape
        return ScaleTerms.of(K, n, {1: 2 * over_rows(np.abs(U)) / self.scale})

    def rescale(self, values: Values, c: Array) -> Values:
        return self.scale.rescale(values, c) if isinstance(self.scale, InverseGaussian) else {}

    def rotation_terms(self) -> RotationTerms | None:
        if isinstance(self.scale, InverseGaussian):
            return self.scale.rotation_terms()
        return RotationTerms(rotation.LAPLACE, 1 / self.scale)


@dataclass(frozen=True)
class Horseshoe(Prior):
    """Normal entries whose standard deviations are a local times an overall half-Cauchy variable.

    The overall one belongs to a factor and has this ``scale``, the local ones have scale 1. The
    chain holds inverse squares. Those of local ones have a law of their own; for the overall ones,
    if a ~ Gamma(1/2, s^-2) and p ~ Gamma(1/2, a), then p^(-1/2) is half-Cauchy with scale s, and
    the conditionals of p and a are gammas (Makalic and Schmidt, 2016).
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        positive(self, scale=self.scale)

    def variables(self, n: int, K: int) -> dict[str, Variable]:
        local, overall = Variable.of_entries(n, K), Variable.of_factors(K)
        return {"local": local, "overall_rate": overall, "overall": overall}

    def terms(self, values: Values, K: int) -> RowTerms:
        return RowTerms(np.zeros((K, K)), values["local"] * values["overall"], np.zeros((1, K)))

    def updates(self, U: Array, values: Values) -> Steps:
        yield "local", dist.HalfCauchyPrecision(rate=0.5 * values["overall"] * U**2)
        rate = values["overall_rate"] + 0.5 * over_rows(values["local"] * U**2)
        yield "overall", dist.Gamma(shape=0.5 * (1 + len(U)), rate=rate)
        yield "overall_rate", dist.Exponential(rate=self.scale**-2.0 + values["overall"])

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        rate = dist.Gamma(shape=0.5, rate=1.0).draw(stream, (n, K))
        local = dist.Gamma(shape=0.5, rate=rate).draw(stream, (n, K))
        rate = dist.Gamma(shape=0.5, rate=self.scale**-2.0).draw(stream, (K,))
        overall = dist.Gamma(shape=0.5, rate=rate).draw(stream, (K,))
        own = {"local": local, "overall_rate": rate, "overall": overall}
        return dist.Normal(precision=local * overall).draw(stream, (n, K)), own

    def log_density(self, U: Array, values: Values) -> float:
        local, overall, rate = (values[name] for name in ("local", "overall", "overall_rate"))
        entries = dist.Normal(precision=local * overall).log_density(U)
        entries -= 0.5 * np.log(local) + np.log1p(local) + math.log(math.pi)
        factors = dist.Gamma(shape=0.5, rate=rate).log_density(overall)
        factors += dist.Gamma(shape=0.5, rate=self.scale**-2.0).log_density(rate)
        return float(entries.sum() + factors.sum())

    def scale_terms(self, U: Array, values: Values) -> ScaleTerms:
        """The overall precision moves along, so that only its own density answers."""
        return ScaleTerms.of(U.shape[1], -1.0, {-2: 2 * values["overall_rate"] * values["overall"]})

    def rescale(self, values: Values, c: Array) -> Values:
        return {"overall": values["overall"] / c**2}
