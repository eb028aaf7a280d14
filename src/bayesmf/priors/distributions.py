"""Distributions that know how to be drawn and how dense they are.

Gibbs steps are stated with them, so that what the sampler draws from and what the exactness tests
check is one object. Parameters are keywords: arrays that broadcast to the shape of the variable.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import special
from scipy.linalg.lapack import dpotrf, dtrtrs

from bayesmf.kernels import fill as kinds
from bayesmf.kernels.ridge import draw_ridge, ridge_log_density
from bayesmf.streams import Array, Stream

_LOG_2PI = math.log(2 * math.pi)


Values: TypeAlias = dict[str, Array]  # random variables by name


class Variable(NamedTuple):
    """Shape and names of the dimensions of a random variable of a chain.

    A prior calls its own side's dimension "row", whichever side it stands on.
    """

    shape: tuple[int, ...]
    dims: tuple[str, ...]

    @classmethod
    def of_entries(cls, n: int, K: int) -> Variable:
        """One for every entry of the factors."""
        return cls((n, K), ("row", "component"))

    @classmethod
    def of_factors(cls, K: int) -> Variable:
        """One for every factor, common to all rows."""
        return cls((K,), ("component",))


class Distribution(ABC):
    """A distribution with independent entries, unless it says otherwise."""

    @abstractmethod
    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        """One draw of this shape."""

    @abstractmethod
    def log_density(self, x: Array) -> Array:
        """Logarithm of the normalised density, entry by entry."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Normal(Distribution):
    """Normal with a linear term and a precision: mean linear / precision."""

    linear: Array | float = 0.0
    precision: Array | float

    @property
    def mean(self) -> Array | float:
        """Its mean, one for each number that it is of."""
        return self.linear / self.precision

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        return stream.fill(kinds.NORMAL, shape, self.linear, self.precision)

    def log_density(self, x: Array) -> Array:
        p = np.asarray(self.precision)
        return 0.5 * (np.log(p) - _LOG_2PI - p * (x - self.linear / p) ** 2)


@dataclass(frozen=True, eq=False, kw_only=True)
class TruncatedNormal(Distribution):
    """Normal with a linear term and a precision, restricted to x >= 0."""

    linear: Array | float
    precision: Array | float

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        return stream.fill(kinds.TRUNCATED, shape, self.linear, self.precision)

    def log_density(self, x: Array) -> Array:
        p = np.asarray(self.precision)
        inside = Normal(linear=self.linear, precision=p).log_density(x) - special.log_ndtr(
            self.linear / np.sqrt(p)
        )
        return np.where(x >= 0, inside, -np.inf)


@dataclass(frozen=True, eq=False, kw_only=True)
class Exponential(Distribution):
    """Exponential with a rate."""

    rate: Array | float

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        return stream.fill(kinds.EXPONENTIAL, shape, self.rate)

    def log_density(self, x: Array) -> Array:
        return np.where(x >= 0, np.log(self.rate) - self.rate * x, -np.inf)


@dataclass(frozen=True, eq=False, kw_only=True)
class Bernoulli(Distribution):
    """One, or zero: the logarithm of the odds of a one."""

    log_odds: Array | float

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        waiting = stream.fill(kinds.EXPONENTIAL, shape, 1.0)
        return (waiting > np.logaddexp(0.0, -np.asarray(self.log_odds))).astype(np.float64)

    def log_density(self, x: Array) -> Array:
        return -np.logaddexp(0.0, np.asarray(self.log_odds) * (1.0 - 2.0 * x))


@dataclass(frozen=True, eq=False, kw_only=True)
class Categorical(Distribution):
    """One of the numbers 0 to C - 1 for each of n: logarithms of their weights, (n or 1, C)."""

    log_weights: Array

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        log_weights = np.atleast_2d(self.log_weights)
        waiting = stream.fill(kinds.EXPONENTIAL, (*shape, log_weights.shape[1]), 1.0)
        return np.argmin(np.log(waiting) - log_weights, axis=1).astype(np.float64)

    def log_density(self, x: Array) -> Array:
        log_weights = np.broadcast_to(self.log_weights, (len(x), np.shape(self.log_weights)[-1]))
        chosen = np.take_along_axis(log_weights, np.asarray(x, dtype=int)[:, None], axis=1)[:, 0]
        return chosen - special.logsumexp(log_weights, axis=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Gamma(Distribution):
    """Gamma with a shape and a rate."""

    shape: Array | float
    rate: Array | float

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        return stream.fill(kinds.GAMMA, shape, self.shape, self.rate)

    def log_density(self, x: Array) -> Array:
        a, b = np.asarray(self.shape), self.rate
        return a * np.log(b) - special.gammaln(a) + special.xlogy(a - 1, x) - b * x


@dataclass(frozen=True, eq=False, kw_only=True)
class GammaAbove(Distribution):
    """Gamma with a shape and a rate, restricted to x > least; a single number."""

    shape: float
    rate: float
    least: float = 0.0

    def draw(self, stream: Stream, shape: tuple[int, ...] = ()) -> Array:
        while True:  # the least number is far from the tail
            x = stream.fill(kinds.GAMMA, (), self.shape, self.rate)
            if x > self.least:
                return x

    def log_density(self, x: Array) -> Array:
        inside = Gamma(shape=self.shape, rate=self.rate).log_density(x)
        inside -= np.log(special.gammaincc(self.shape, self.rate * self.least))
        return np.where(x > self.least, inside, -np.inf)


@dataclass(frozen=True, eq=False, kw_only=True)
class InverseGaussian(Distribution):
    """Inverse Gaussian with a mean and a shape."""

    mean: Array | float
    shape: Array | float

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        return stream.fill(kinds.INVERSE_GAUSSIAN, shape, self.mean, self.shape)

    def log_density(self, x: Array) -> Array:
        m, s = self.mean, self.shape
        return 0.5 * (np.log(s) - _LOG_2PI - 3 * np.log(x)) - s * (x - m) ** 2 / (2 * m**2 * x)


@dataclass(frozen=True, eq=False, kw_only=True)
class GIG(Distribution):
    """Generalised inverse Gaussian, density proportional to x^(p-1) exp(-(a x + b / x) / 2)."""

    p: float
    a: Array | float
    b: Array | float

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        return stream.fill(kinds.GIG, shape, self.p, self.a, self.b)

    def log_density(self, x: Array) -> Array:
        a, b = np.asarray(self.a, dtype=float), np.asarray(self.b, dtype=float)
        root = np.sqrt(a * b)
        with np.errstate(divide="ignore", invalid="ignore"):
            constant = 0.5 * self.p * np.log(a / b) - np.log(2 * special.kve(self.p, root)) + root
        if self.p > 0:  # b = 0 is a gamma
            limit = self.p * np.log(a / 2) - special.gammaln(self.p)
            constant = np.where(b == 0, limit, constant)
        return constant + (self.p - 1) * np.log(x) - 0.5 * (a * x + b / x)


@dataclass(frozen=True, eq=False, kw_only=True)
class HalfCauchyPrecision(Distribution):
    """Inverse square x of a standard half-Cauchy deviation, given a normal entry that it governs.

    Its density x^(-1/2) / (pi (1 + x)) and an entry u of precision c x make one proportional to
    exp(-rate x) / (1 + x), with the ``rate`` c u^2 / 2.
    """

    rate: Array | float

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        return stream.fill(kinds.HALF_CAUCHY, shape, self.rate)

    def log_density(self, x: Array) -> Array:
        rate = np.asarray(self.rate, dtype=float)
        return -rate * x - np.log1p(x) - np.log(special.hyperu(1.0, 1.0, rate))


def cholesky(A: Array) -> Array:
    """Lower factor of A; a Wishart with few degrees of freedom may be singular in doubles."""
    L, failed = dpotrf(A, lower=1)
    if failed:
        values, vectors = np.linalg.eigh(A)
        roots = np.sqrt(np.maximum(values, 1e-15 * values[-1]))
        L = np.linalg.qr((vectors * roots).T).R.T
    return L


def solve_transposed(L: Array, B: Array) -> Array:
    """Solve L^T X = B for X, L being lower triangular."""
    return dtrtrs(L, B, lower=1, trans=1)[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class Wishart(Distribution):
    """Wishart of a K x K precision matrix whose inverse is inverse Wishart(dof, scale).

    Drawn by Bartlett's decomposition of the precision itself: nothing is inverted but a triangle.
    """

    dof: float
    scale: Array

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        K = shape[0]
        diagonal = stream.fill(kinds.GAMMA, (K,), 0.5 * (self.dof - np.arange(K)), 0.5)
        A = np.tril(stream.fill(kinds.NORMAL, (K, K), 0.0, 1.0), -1)
        A.flat[:: K + 1] = np.sqrt(diagonal)
        T = solve_transposed(cholesky(self.scale), A)
        return T @ T.T

    def log_density(self, x: Array) -> Array:
        K = x.shape[0]
        constant = 0.5 * self.dof * (np.linalg.slogdet(self.scale)[1] - K * math.log(2))
        constant -= special.multigammaln(0.5 * self.dof, K)
        log_det = np.linalg.slogdet(x)[1]
        trace = np.sum(self.scale * x)
        return np.asarray(constant + 0.5 * (self.dof - K - 1) * log_det - 0.5 * trace)


@dataclass(frozen=True, eq=False, kw_only=True)
class MultivariateNormal(Distribution):
    """Normal vector (K,), or rows (n, K), with one mean and one precision matrix."""

    mean: Array
    precision: Array

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        z = stream.fill(kinds.NORMAL, shape, 0.0, 1.0)
        return self.mean + solve_transposed(cholesky(self.precision), z.T).T

    def log_density(self, x: Array) -> Array:
        d = x - self.mean
        log_det = np.linalg.slogdet(self.precision)[1]
        quadratic = np.einsum("...k,kl,...l->...", d, self.precision, d)
        return 0.5 * (log_det - x.shape[-1] * _LOG_2PI - quadratic)


@dataclass(frozen=True, eq=False, kw_only=True)
class MatrixNormal(Distribution):
    """Independent normal rows (r, K) whose precision matrices are multiples of one."""

    mean: Array
    weights: Array
    precision: Array

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        z = stream.fill(kinds.NORMAL, shape, 0.0, 1.0)
        rows = solve_transposed(cholesky(self.precision), z.T).T
        return np.ascontiguousarray(self.mean + rows / np.sqrt(self.weights)[:, None])

    def log_density(self, x: Array) -> Array:
        K, d = x.shape[1], x - self.mean
        log_det = np.linalg.slogdet(self.precision)[1] + K * np.log(self.weights)
        quadratic = self.weights * np.einsum("rk,kl,rl->r", d, self.precision, d)
        return 0.5 * (log_det - K * _LOG_2PI - quadratic)


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgePrecision(Distribution):
    """Precision of the weights of orthogonal features, the weights integrated out.

    Features of squared lengths ``squares`` (r,) explain ``count`` numbers each, whose weighted sums
    of squares are ``sums`` (r,). A draw is a slice step from ``now``; the density has no constant.
    """

    shape: float
    rate: float
    squares: Array
    sums: Array
    count: int
    now: float

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        prior = self.shape, self.rate
        return np.asarray(
            draw_ridge(stream.key(), self.now, *prior, self.count, self.squares, self.sums)
        )

    def log_density(self, x: Array) -> Array:
        prior = self.shape, self.rate
        return np.asarray(ridge_log_density(float(x), *prior, self.count, self.squares, self.sums))


@dataclass(frozen=True, eq=False, kw_only=True)
class Flat(Distribution):
    """A law of a single column (r, 1) as that of a vector (r,)."""

    law: Distribution

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        return self.law.draw(stream, (*shape, 1))[:, 0]

    def log_density(self, x: Array) -> Array:
        return self.law.log_density(x[:, None])
