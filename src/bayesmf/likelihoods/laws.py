"""The law of a cell: its predictive distribution given each of several draws.

A likelihood turns means (D, n) of n cells and its own variables of D draws into a law. What a law
says of a cell has a leading axis over the draws; mixtures over draws are the caller's business. A
single draw needs no leading axis: all arrays broadcast against the means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import special

from bayesmf.streams import Array

_SMOOTH, KINKED = 11, 41  # nodes of an expectation, and where limits cut values off


@dataclass(frozen=True, eq=False)
class Law(ABC):
    """Distributions of cells about their means."""

    means: Array
    #: Whether values are steps of a scale, so that quantiles are.
    discrete: ClassVar[bool] = False

    def mean(self) -> Array:
        """Expected values."""
        return self.means

    @abstractmethod
    def variance(self) -> Array:
        """Variances about the expected values, in a shape that broadcasts to that of the means."""

    @abstractmethod
    def log_prob(self, values: Array) -> Array:
        """Log densities, or log probabilities, of values (n,): (D, n)."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Array:
        """One value of every cell, in the shape of the means."""

    @abstractmethod
    def replicates(self, times: int, seed: Sequence[int]) -> Array:
        """Values (times * D, n), as many from every draw; of use for each cell by itself.

        The seed ends with the number of the block of cells.
        """

    def quantiles(self, levels: Sequence[float], times: int, seed: Sequence[int]) -> Array:
        """Quantiles (levels, n) of the mixture over the draws."""
        method: Any = "inverted_cdf" if self.discrete else "linear"
        values = np.ascontiguousarray(self.replicates(times, seed).T)  # of a cell side by side
        return np.quantile(values, levels, axis=1, method=method)

    def probabilities(self) -> Array:
        """Probabilities of the categories, (C, D, n), where cells have such."""
        raise NotImplementedError

    def latent(self) -> Law:
        """The law of what lies behind the reported value; this one, if nothing does."""
        return self

    def is_atom(self, values: Array) -> Array:
        """Flags of values that have a probability, not a density."""
        return np.full(np.shape(values), self.discrete)

    def nodes(self, count: int = _SMOOTH) -> tuple[Iterator[Array], Array]:
        """Values and weights whose sums are expectations of functions of a cell's value."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class NormalLaw(Law):
    """Normal about the mean."""

    precision: Array

    def variance(self) -> Array:
        return 1 / self.precision

    def log_prob(self, values: Array) -> Array:
        tau = self.precision
        return 0.5 * (np.log(tau / (2 * np.pi)) - tau * (values - self.means) ** 2)

    def sample(self, rng: np.random.Generator) -> Array:
        tau = self.precision.item() if self.precision.size == 1 else self.precision
        return rng.normal(self.means, tau**-0.5)

    def replicates(self, times: int, seed: Sequence[int]) -> Array:
        """All cells share the noise, whatever their block, because each is looked at alone.

        Evenly spread over the noise's distribution it leaves less to chance.
        """
        rng = np.random.default_rng([*seed[:-1], 0])
        means, precision = (np.repeat(x, times, axis=0) for x in (self.means, self.precision))
        levels = (np.arange(len(means)) + 0.5) / len(means)
        noise = self._noise(rng.permutation(levels)[:, None], times)
        return means + noise / np.sqrt(precision)

    def _noise(self, levels: Array, times: int) -> Array:
        return special.ndtri(levels)

    def nodes(self, count: int = _SMOOTH) -> tuple[Iterator[Array], Array]:
        """By Gauss and Hermite."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(count)
        sd = self.precision**-0.5
        return (self.means + sd * node for node in nodes), weights / weights.sum()

    def below(self, z: Array) -> tuple[Array, Array, Array]:
        """Integrals of 1, t and t^2 over the standard density, from minus infinity to z."""
        whole = special.ndtr(z)
        first = -np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        return whole, first, whole + _product(z, first)

    def log_between(self, a: Array, b: Array) -> Array:
        """Log probability of the standard interval [a, b], by the tail that keeps digits."""
        flip = a > 0
        low, high = np.where(flip, -b, a), np.where(flip, -a, b)
        low, high = special.log_ndtr(low), special.log_ndtr(high)
        with np.errstate(divide="ignore"):
            gap = np.subtract(low, high, where=high > -np.inf, out=np.zeros_like(low + high))
            return high + np.log1p(-np.exp(np.minimum(gap, 0.0)))


@dataclass(frozen=True, eq=False)
class StudentLaw(NormalLaw):
    """Student's t about the mean, with degrees of freedom above two."""

    dof: Array

    def variance(self) -> Array:
        return self.dof / (self.dof - 2) / self.precision

    def log_prob(self, values: Array) -> Array:
        nu, square = self.dof, self.precision * (values - self.means) ** 2
        constant = special.gammaln((nu + 1) / 2) - special.gammaln(nu / 2)
        constant = constant + 0.5 * np.log(self.precision / (nu * np.pi))
        return constant - 0.5 * (nu + 1) * np.log1p(square / nu)

    def sample(self, rng: np.random.Generator) -> Array:
        nu = np.broadcast_to(self.dof, np.shape(self.means))
        return self.means + rng.standard_t(nu) / np.sqrt(self.precision)

    def _noise(self, levels: Array, times: int) -> Array:
        return special.stdtrit(np.repeat(self.dof, times, axis=0), levels)

    def below(self, z: Array) -> tuple[Array, Array, Array]:
        nu, ends = self.dof, np.isinf(z)
        z = np.where(ends, 0.0, z)
        whole = special.stdtr(nu, z)
        constant = (
            special.gammaln((nu + 1) / 2) - special.gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
        )
        density = np.exp(constant - 0.5 * (nu + 1) * np.log1p(z**2 / nu))
        first = -(nu + z**2) / (nu - 1) * density
        second = ((nu - 1) * z * first + nu * whole) / (nu - 2)
        return whole, first, second

    def log_between(self, a: Array, b: Array) -> Array:
        flip = a > 0
        low, high = np.where(flip, -b, a), np.where(flip, -a, b)
        with np.errstate(divide="ignore"):
            return np.log(special.stdtr(self.dof, high) - special.stdtr(self.dof, low))


def _product(z: Array, y: Array) -> Array:
    """Z y, zero where z is infinite."""
    return np.where(np.isinf(z), 0.0, np.where(np.isinf(z), 0.0, z) * y)


@dataclass(frozen=True, eq=False)
class ReportedLaw(Law):
    """What an instrument with limits shows: the value, or the limit that it lies beyond."""

    inner: NormalLaw
    lower: Array
    upper: Array

    def _standard(self, x: Array) -> Array:
        return (x - self.means) * np.sqrt(self.inner.precision)

    def _pieces(self) -> tuple[list[Array], list[Array]]:
        """Integrals of `NormalLaw.below` from minus infinity to both limits."""
        found = []
        for x in (self.lower, self.upper):
            z = self._standard(x)
            low, high = z == -np.inf, z == np.inf
            parts = self.inner.below(np.where(low | high, 0.0, z))
            ends = (1.0, 0.0, self.inner.variance() * self.inner.precision)
            found.append(
                [
                    np.where(low, 0.0, np.where(high, end, part))
                    for part, end in zip(parts, ends, strict=True)
                ]
            )
        return found[0], found[1]

    def _ends(self, below: Array, above: Array, power: int) -> Array:
        """Share of the two limits in a moment."""
        low, high = np.isinf(self.lower), np.isinf(self.upper)
        lower, upper = np.where(low, 0.0, self.lower), np.where(high, 0.0, self.upper)
        return lower**power * np.where(low, 0.0, below) + upper**power * np.where(high, 0.0, above)

    def mean(self) -> Array:
        (a0, a1, _), (b0, b1, _) = self._pieces()
        sd = self.inner.precision**-0.5
        return self._ends(a0, 1 - b0, 1) + self.means * (b0 - a0) + sd * (b1 - a1)

    def variance(self) -> Array:
        """About the mean of the latent value first, so that large values lose no digits."""
        (a0, a1, a2), (b0, b1, b2) = self._pieces()
        sd = self.inner.precision**-0.5
        shifted = ReportedLaw(
            np.zeros_like(self.means), self.inner, self.lower - self.means, self.upper - self.means
        )
        first = shifted._ends(a0, 1 - b0, 1) + sd * (b1 - a1)
        second = shifted._ends(a0, 1 - b0, 2) + sd**2 * (b2 - a2)
        return np.maximum(second - first**2, 0.0)

    def log_prob(self, values: Array) -> Array:
        a, b = self._standard(self.lower), self._standard(self.upper)
        inside = self.inner.log_prob(values)
        low = self.inner.log_between(np.full_like(a, -np.inf), a)
        high = self.inner.log_between(b, np.full_like(b, np.inf))
        return np.where(values <= self.lower, low, np.where(values >= self.upper, high, inside))

    def sample(self, rng: np.random.Generator) -> Array:
        return np.clip(self.inner.sample(rng), self.lower, self.upper)

    def replicates(self, times: int, seed: Sequence[int]) -> Array:
        return np.clip(self.inner.replicates(times, seed), self.lower, self.upper)

    def latent(self) -> Law:
        return self.inner

    def is_atom(self, values: Array) -> Array:
        return (values <= self.lower) | (values >= self.upper)

    def nodes(self, count: int = KINKED) -> tuple[Iterator[Array], Array]:
        nodes, weights = self.inner.nodes(count)
        return (np.clip(node, self.lower, self.upper) for node in nodes), weights


@dataclass(frozen=True, eq=False)
class PoissonLaw(Law):
    """Poisson with the mean as its rate."""

    discrete: ClassVar[bool] = True

    def variance(self) -> Array:
        return self.means

    def log_prob(self, values: Array) -> Array:
        return special.xlogy(values, self.means) - self.means - special.gammaln(values + 1)

    def sample(self, rng: np.random.Generator) -> Array:
        return rng.poisson(np.maximum(self.means, 0.0))

    def replicates(self, times: int, seed: Sequence[int]) -> Array:
        rng = np.random.default_rng(list(seed))
        means = np.repeat(self.means, times, axis=0)
        return rng.poisson(np.maximum(means, 0.0)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class NegativeBinomialLaw(Law):
    """Negative binomial with this mean, and variance mean + mean^2 / size."""

    size: Array
    discrete: ClassVar[bool] = True

    def variance(self) -> Array:
        return self.means + self.means**2 / self.size

    def log_prob(self, values: Array) -> Array:
        r, m = self.size, self.means
        ways = special.gammaln(values + r) - special.gammaln(r) - special.gammaln(values + 1)
        return ways + special.xlogy(values, m) - values * np.log(r + m) - r * np.log1p(m / r)

    def sample(self, rng: np.random.Generator) -> Array:
        size = np.broadcast_to(self.size, np.shape(self.means))
        return rng.poisson(np.maximum(self.means, 0.0) * rng.gamma(size) / size)

    def replicates(self, times: int, seed: Sequence[int]) -> Array:
        rng = np.random.default_rng(list(seed))
        means, size = (np.repeat(x, times, axis=0) for x in (self.means, self.size))
        return NegativeBinomialLaw(means, size).sample(rng).astype(np.float64)


@dataclass(frozen=True, eq=False)
class CategoryLaw(Law):
    """Ordered categories of these values.

    ``bounds`` (C, D, n) are their upper edges less the means, on a latent scale on which the noise
    is standard normal; the last is infinite.
    """

    values: Array = field(repr=False)
    bounds: Array = field(repr=False)
    discrete: ClassVar[bool] = True

    def probabilities(self) -> Array:
        """Probabilities of the categories, (C, D, n)."""
        below = special.ndtr(self.bounds)
        above = special.ndtr(-self.bounds)
        zero, one = np.zeros_like(below[:1]), np.ones_like(below[:1])
        low, high = np.concatenate([zero, below[:-1]]), np.concatenate([one, above[:-1]])
        return np.where(self.bounds > 0, high - above, below - low)

    def _moment(self, power: int) -> Array:
        return np.tensordot(self.values**power, self.probabilities(), axes=1)

    def mean(self) -> Array:
        return self._moment(1)

    def variance(self) -> Array:
        return np.maximum(self._moment(2) - self._moment(1) ** 2, 0.0)

    def log_prob(self, values: Array) -> Array:
        place = np.searchsorted(self.values, values)
        known = np.minimum(place, self.values.size - 1)
        chosen = np.broadcast_to(known, self.bounds.shape[1:])[None]
        with np.errstate(divide="ignore"):
            found = np.log(np.take_along_axis(self.probabilities(), chosen, axis=0)[0])
        return np.where(self.values[known] == values, found, -np.inf)

    def _report(self, noise: Array, bounds: Array) -> Array:
        return self.values[(noise > bounds[:-1]).sum(axis=0)]

    def sample(self, rng: np.random.Generator) -> Array:
        return self._report(rng.normal(size=np.shape(self.means)), self.bounds)

    def replicates(self, times: int, seed: Sequence[int]) -> Array:
        rng = np.random.default_rng([*seed[:-1], 0])
        bounds = np.repeat(self.bounds, times, axis=1)
        levels = (np.arange(bounds.shape[1]) + 0.5) / bounds.shape[1]
        return self._report(special.ndtri(rng.permutation(levels))[:, None], bounds)


@dataclass(frozen=True, eq=False)
class PresenceLaw(Law):
    """One where a Poisson count with this mean is not zero, else zero."""

    discrete: ClassVar[bool] = True

    def probabilities(self) -> Array:
        """Probabilities of zero and one, (2, D, n)."""
        return np.stack([np.exp(-self.means), -np.expm1(-self.means)])

    def mean(self) -> Array:
        return -np.expm1(-self.means)

    def variance(self) -> Array:
        return self.mean() * np.exp(-self.means)

    def log_prob(self, values: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.where(values > 0, np.log(-np.expm1(-self.means)), -self.means)

    def sample(self, rng: np.random.Generator) -> Array:
        return (rng.random(np.shape(self.means)) < self.mean()).astype(np.float64)

    def replicates(self, times: int, seed: Sequence[int]) -> Array:
        rng = np.random.default_rng(list(seed))
        return PresenceLaw(np.repeat(self.means, times, axis=0)).sample(rng)
