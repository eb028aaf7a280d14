"""Hyperpriors: a hyperparameter of a prior is a number or one of these.

A hyperprior draws its variables from the prior, states their conditionals given the factors, knows
its log density, and how it takes part in the scale move. The variables live in a plain dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy import special

from bayesmf._cached import cached_property
from bayesmf._errors import ModelError, positive
from bayesmf.kernels import rotation
from bayesmf.priors import distributions as dist
from bayesmf.priors.distributions import Values, Variable
from bayesmf.streams import Array, Stream
from bayesmf.updates.terms import RotationTerms, ScaleTerms, over_rows

Steps: TypeAlias = Iterator[tuple[str, dist.Distribution]]


@dataclass(frozen=True)
class ARD:
    """Automatic relevance determination: one precision (or rate) per factor, gamma distributed.

    With ``shared`` (the paper's form) one vector governs both sides, if both have the same ARD.
    """

    alpha: float = 1.0
    beta: float = 1.0
    shared: bool = True

    def __post_init__(self) -> None:
        positive(self, alpha=self.alpha, beta=self.beta)

    def prior(self) -> dist.Gamma:
        """Distribution of the relevance before any factor is seen."""
        return dist.Gamma(shape=self.alpha, rate=self.beta)

    def conditional(self, statistics: list[tuple[float, Array]]) -> dist.Gamma:
        """Distribution given (shape, rate) statistics of each side it governs."""
        shape = self.alpha + sum(s for s, _ in statistics)
        return dist.Gamma(shape=shape, rate=self.beta + np.sum([r for _, r in statistics], axis=0))


@dataclass(frozen=True, eq=False)
class NormalInverseWishart:
    """Hyperprior of a multivariate normal: Sigma ~ W^-1(dof, scale), mu ~ N(mean, Sigma / beta).

    ``dof`` defaults to K and ``scale`` (a number stands for a multiple of the identity) to 1.
    """

    mean: float | Array = 0.0
    beta: float = 1.0
    dof: float | None = None
    scale: float | Array = 1.0

    def __post_init__(self) -> None:
        positive(self, beta=self.beta, dof=self.dof)

    def resolve(self, K: int) -> NormalInverseWishart:
        """Fill in what depends on the rank."""
        dof = float(K) if self.dof is None else float(self.dof)
        if dof <= K - 1:
            raise ModelError(
                f"NormalInverseWishart: dof must exceed K - 1 = {K - 1} for a proper prior, "
                f"got {dof:g}; leave it out to use K."
            )
        try:
            mean = np.broadcast_to(np.asarray(self.mean, dtype=float), (K,))
            scale = np.asarray(self.scale, dtype=float)
            scale = scale * np.eye(K) if scale.ndim == 0 else np.broadcast_to(scale, (K, K))
            np.linalg.cholesky(scale)
        except (ValueError, np.linalg.LinAlgError):
            raise ModelError(
                f"NormalInverseWishart: mean must have {K} entries and scale must be a positive "
                f"number or a positive definite {K} x {K} matrix."
            ) from None
        return replace(self, dof=dof, mean=mean, scale=scale)

    def variables(self, K: int) -> dict[str, Variable]:
        """Mean and precision matrix."""
        matrix = Variable((K, K), ("component", "other_component"))
        return {"mean": Variable.of_factors(K), "precision": matrix}

    def draw(self, stream: Stream, K: int) -> Values:
        """Mean and precision matrix from the prior."""
        wishart = dist.Wishart(dof=float(self.dof or K), scale=np.asarray(self.scale))
        precision = wishart.draw(stream, (K, K))
        mean = self._mean(np.asarray(self.mean), self.beta, precision).draw(stream, (K,))
        return {"mean": mean, "precision": precision}

    @staticmethod
    def _mean(centre: Array, weight: float, precision: Array) -> dist.MultivariateNormal:
        return dist.MultivariateNormal(mean=centre, precision=weight * precision)

    def updates(self, U: Array, values: Values, beside: Array | None = None) -> Steps:
        """Precision with the mean integrated out, then the mean.

        ``beside`` (m, K) are further rows of the same precision, whose mean is zero.
        """
        n, K = U.shape
        centre = over_rows(U) / n
        gap, deviation = np.asarray(self.mean) - centre, U - centre
        shift = self.beta * n / (self.beta + n) * (gap[:, None] * gap)
        scale, dof = self.scale + deviation.T @ deviation + shift, float(self.dof or K) + n
        if beside is not None:
            scale, dof = scale + beside.T @ beside, dof + len(beside)
        yield "precision", dist.Wishart(dof=dof, scale=0.5 * (scale + scale.T))
        weight = self.beta + n
        mean = (self.beta * self.mean + n * centre) / weight
        yield "mean", self._mean(mean, weight, values["precision"])

    def log_density(self, values: Values) -> float:
        """Log density of (mean, precision)."""
        wishart = dist.Wishart(dof=float(self.dof or 0), scale=np.asarray(self.scale))
        mean = self._mean(np.asarray(self.mean), self.beta, values["precision"])
        return float(wishart.log_density(values["precision"]) + mean.log_density(values["mean"]))

    @cached_property
    def _is_centred_and_diagonal(self) -> bool:
        scale = np.asarray(self.scale)
        return not np.any(self.mean) and not np.any(scale - np.diag(np.diag(scale)))

    def scale_terms(self, values: Values, K: int) -> ScaleTerms | None:
        """Mean and covariance move along; only a centred, diagonal hyperprior has the move."""
        if not self._is_centred_and_diagonal:
            return None
        weights = np.asarray(self.scale).diagonal() * values["precision"].diagonal()
        return ScaleTerms.of(K, -float(self.dof or K), {-2: weights})

    @staticmethod
    def rescale(values: Values, c: Array) -> Values:
        """Mean and precision after factor k has been multiplied by c[k]."""
        return {"mean": values["mean"] * c, "precision": values["precision"] / (c[:, None] * c)}


@dataclass(frozen=True)
class InverseGaussian:
    """Hyperprior of a Laplace prior: one inverse Gaussian variable eta per entry.

    ``reading="scale"``: eta is the Laplace scale, as the paper's table of models says.
    ``reading="rate"``: the scale is 1 / sqrt(eta), as the paper's formulas aim at. Mean and shape
    default to K.
    """

    mean: float | None = None
    shape: float | None = None
    reading: str = "scale"

    def __post_init__(self) -> None:
        positive(self, mean=self.mean, shape=self.shape)
        if self.reading not in ("scale", "rate"):
            raise ModelError(
                f"InverseGaussian: reading must be 'scale' or 'rate', got {self.reading!r}."
            )

    def resolve(self, K: int) -> InverseGaussian:
        """Fill in what depends on the rank."""
        return replace(self, mean=self.mean or float(K), shape=self.shape or float(K))

    @property
    def _ab(self) -> tuple[float, float]:
        """The prior as GIG(-1/2, a, b)."""
        mean, shape = float(self.mean or 1), float(self.shape or 1)
        return shape / mean**2, shape

    def draw(self, stream: Stream, shape: tuple[int, int]) -> Values:
        """One eta per entry, from the prior."""
        prior = dist.InverseGaussian(mean=float(self.mean or 1), shape=float(self.shape or 1))
        return {"eta": prior.draw(stream, shape)}

    def inverse_square_scale(self, values: Values) -> Array:
        """1 / (Laplace scale)^2 of every entry."""
        return values["eta"] if self.reading == "rate" else values["eta"] ** -2.0

    def conditional(self, U: Array, values: Values) -> dist.GIG:
        """Distribution of eta: given U alone (scale), or given the mixing variances (rate)."""
        a, b = self._ab
        if self.reading == "scale":
            return dist.GIG(p=-1.5, a=a, b=b + 2 * np.abs(U))
        return dist.GIG(p=0.5, a=values["variance"] + a, b=b)

    def log_density(self, values: Values) -> float:
        """Log density of eta."""
        prior = dist.InverseGaussian(mean=float(self.mean or 1), shape=float(self.shape or 1))
        return float(np.sum(prior.log_density(values["eta"])))

    def scale_terms(self, values: Values) -> ScaleTerms:
        """Eta moves along: as c under "scale", as 1 / c^2 under "rate"."""
        a, b = self._ab
        n, K = values["eta"].shape
        up, down = over_rows(values["eta"]), over_rows(1 / values["eta"])
        if self.reading == "scale":
            return ScaleTerms.of(K, -0.5 * n, {1: a * up, -1: b * down})
        return ScaleTerms.of(K, n, {-2: a * up, 2: b * down})

    def rescale(self, values: Values, c: Array) -> Values:
        """Eta after factor k has been multiplied by c[k]."""
        return {"eta": values["eta"] * (c if self.reading == "scale" else c**-2.0)}

    def rotation_terms(self) -> RotationTerms | None:
        """Eta integrated out, which has a closed form under "scale" alone."""
        if self.reading == "rate":
            return None
        return RotationTerms(rotation.LAPLACE_INVERSE_GAUSSIAN, *self._ab)


@dataclass(frozen=True)
class TruncatedNormalHyper:
    """Hyperprior of a truncated normal: an own mean and precision for every entry.

    p(mu, tau) is proportional to tau^-1/2 Phi(mu sqrt tau) N(mu | mean, 1 / precision)
    Gamma(tau | shape, rate); both odd factors cancel in the conditionals. Proper for shape > 1/2.
    """

    mean: float = 0.0
    precision: float = 0.1
    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        positive(self, precision=self.precision, shape=self.shape, rate=self.rate)
        if self.shape <= 0.5:
            raise ModelError(
                f"TruncatedNormalHyper: shape must exceed 1/2 for a proper prior, got {self.shape}."
            )

    @property
    def _means(self) -> dist.Normal:
        return dist.Normal(linear=self.mean * self.precision, precision=self.precision)

    def draw(self, stream: Stream, shape: tuple[int, int]) -> tuple[Array, Values]:
        """Factors with their means and precisions, exactly from the prior, by rejection."""
        U, mu, tau = (np.empty(shape) for _ in range(3))
        todo = np.arange(U.size)
        while todo.size:
            t = dist.Gamma(shape=self.shape - 0.5, rate=self.rate).draw(stream, (todo.size,))
            m = self._means.draw(stream, (todo.size,))
            x = dist.Normal(linear=m * t, precision=t).draw(stream, (todo.size,))
            good = x >= 0
            for target, new in ((U, x), (mu, m), (tau, t)):
                target.flat[todo[good]] = new[good]
            todo = todo[~good]
        return U, {"mean": mu, "precision": tau}

    def without_mean(self, values: Values) -> Array:
        """Precision of an entry about the hyperprior's mean, its own mean integrated out."""
        precision = values["precision"]
        return precision * self.precision / (precision + self.precision)

    def of_means(self, U: Array, values: Values) -> dist.Normal:
        """Distribution of the means given factors and precisions."""
        linear = values["precision"] * U + self.precision * self.mean
        return dist.Normal(linear=linear, precision=values["precision"] + self.precision)

    def of_precisions(self, U: Array, values: Values) -> dist.Gamma:
        """Distribution of the precisions given factors and means."""
        rate = self.rate + 0.5 * (U - values["mean"]) ** 2
        return dist.Gamma(shape=self.shape, rate=rate)

    def log_density(self, values: Values) -> float:
        """Log density of means and precisions, up to a constant."""
        mu, tau = values["mean"], values["precision"]
        total = -0.5 * np.log(tau) + special.log_ndtr(mu * np.sqrt(tau))
        total += self._means.log_density(mu)
        total += dist.Gamma(shape=self.shape, rate=self.rate).log_density(tau)
        return float(np.sum(total))

    def scale_terms(self, values: Values) -> ScaleTerms | None:
        """Means and precisions move along; only a centred hyperprior has the move."""
        if self.mean != 0:
            return None
        n, K = values["mean"].shape
        weights = {
            2: self.precision * over_rows(values["mean"] ** 2),
            -2: 2 * self.rate * over_rows(values["precision"]),
        }
        return ScaleTerms.of(K, -2 * (self.shape - 1) * n, weights)

    @staticmethod
    def rescale(values: Values, c: Array) -> Values:
        """Means and precisions after factor k has been multiplied by c[k]."""
        return {"mean": values["mean"] * c, "precision": values["precision"] / c**2}


@dataclass(frozen=True)
class GammaRate:
    """Hyperprior of a gamma prior's rate: one rate per row, Gamma(shape, shape / mean)."""

    shape: float = 1.0
    mean: float = 1.0

    def __post_init__(self) -> None:
        positive(self, shape=self.shape, mean=self.mean)

    def prior(self) -> dist.Gamma:
        """Distribution of a rate before any factor is seen."""
        return dist.Gamma(shape=self.shape, rate=self.shape / self.mean)

    def conditional(self, U: Array, shape: float) -> dist.Gamma:
        """Distribution of the rates (n, 1) given factors with this gamma shape."""
        rate = self.shape / self.mean + U.sum(axis=1, keepdims=True)
        return dist.Gamma(shape=self.shape + U.shape[1] * shape, rate=rate)
