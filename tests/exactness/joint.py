"""The log joint of every model, written plainly from its densities: nothing of the library here.

A density takes factors X (n, K) and the values of the variables that govern them. It includes the
hyperpriors of one side; what both sides share is in `Plain`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from tests.exactness.added import ADDED

Density = Callable[[np.ndarray, dict[str, Any]], float]
DataDensity = Callable[[np.ndarray, np.ndarray, dict[str, Any]], float]


def gamma_log_density(x, shape, rate) -> float:
    return float(np.sum(stats.gamma.logpdf(x, shape, scale=1 / np.asarray(rate))))


def gaussian(shape: float = 1.0, rate: float = 1.0) -> DataDensity:
    """Values about their means, and the noise precision."""

    def density(values, means, own) -> float:
        tau = own["noise_precision"]
        return (
            gamma_log_density(tau, shape, rate) + stats.norm.logpdf(values, means, tau**-0.5).sum()
        )

    return density


def poisson(values, means, own) -> float:
    return stats.poisson.logpmf(values, means).sum()


class Plain(NamedTuple):
    """Densities of both sides, the gamma of a shared relevance, and the density of the data.

    ``data`` takes values, their means and the likelihood's own variables. ``biases`` are mean and
    precision of the global mean, shape and rate of the effects' precisions.
    """

    rows: Density
    cols: Density
    ard: tuple[float, float] | None = None
    data: DataDensity = gaussian()
    biases: tuple[float, float, float, float] | None = None

    def log_joint(self, cells, U, V, rows, cols, shared, noise, biases, Z=None) -> float:
        """Cells are (i, j, values); with Z (cells, K) counts are split over the factors."""
        i, j, values = cells
        total = self.rows(U, {**rows, **shared}) + self.cols(V, {**cols, **shared})
        if self.ard:
            total += gamma_log_density(shared["relevance"], *self.ard)
        if Z is not None:
            return total + stats.poisson.logpmf(Z, U[i] * V[j]).sum()
        means = (U @ V.T)[i, j]
        if self.biases:
            means += biases["mean"] + biases["rows"][i] + biases["cols"][j]
            total += _effects(biases, *self.biases)
        return total + self.data(values, means, noise)


def _effects(v: dict[str, Any], mean, precision, shape, rate) -> float:
    total = stats.norm.logpdf(v["mean"], mean, precision**-0.5)
    for side in ("rows", "cols"):
        p = v[f"{side}_precision"]
        total += gamma_log_density(p, shape, rate) + stats.norm.logpdf(v[side], 0, p**-0.5).sum()
    return float(total)


def governed(value, v: dict[str, Any]):
    """A number, or the relevance of the factors where the number is left to an ARD."""
    return v["relevance"] if value is None else value


def own_ard(density: Density, alpha: float, beta: float) -> Density:
    """A density whose relevance belongs to its side alone."""
    return lambda X, v: density(X, v) + gamma_log_density(v["relevance"], alpha, beta)


def normal(precision: float | None) -> Density:
    return lambda X, v: stats.norm.logpdf(X, 0, governed(precision, v) ** -0.5).sum()


def exponential(rate: float | None) -> Density:
    return lambda X, v: stats.expon.logpdf(X, scale=1 / governed(rate, v)).sum()


def normal_wishart(K: int, mean=0.0, beta=1.0, dof=None, scale=1.0) -> Density:
    dof = K if dof is None else dof
    scale = scale * np.eye(K) if np.ndim(scale) == 0 else np.asarray(scale)
    centre = np.broadcast_to(np.asarray(mean, dtype=float), (K,))

    def density(X, v):
        covariance = np.linalg.inv(v["precision"])
        covariance = 0.5 * (covariance + covariance.T)
        total = stats.multivariate_normal.logpdf(X, v["mean"], covariance).sum()
        total += stats.multivariate_normal.logpdf(v["mean"], centre, covariance / beta)
        total += stats.invwishart.logpdf(covariance, dof, scale)
        # The chain holds the inverse of the covariance: d Sigma / d Sigma^-1 = |Sigma|^(K + 1).
        return float(total + (K + 1) * np.linalg.slogdet(covariance)[1])

    return density


def _laplace(X, v, scale) -> float:
    """Laplace, or the mixture of normals that it is, if the mixing variances are given."""
    if "variance" not in v:
        return stats.laplace.logpdf(X, 0, scale).sum()
    s = v["variance"]
    mixing = stats.expon.logpdf(s, scale=2 * scale**2)
    return (stats.norm.logpdf(X, 0, np.sqrt(s)) + mixing).sum()


def laplace(scale: float) -> Density:
    return lambda X, v: _laplace(X, v, scale)


def laplace_inverse_gaussian(mean: float, shape: float, reading: str) -> Density:
    def density(X, v):
        eta = v["eta"]
        hyper = stats.invgauss.logpdf(eta, mean / shape, scale=shape).sum()
        return hyper + _laplace(X, v, eta if reading == "scale" else eta**-0.5)

    return density


def _truncated(X, mean, precision) -> float:
    below = stats.norm.logcdf(mean * np.sqrt(precision))
    inside = np.where(X >= 0, stats.norm.logpdf(X, mean, precision**-0.5), -np.inf)
    return np.sum(inside - below)


def truncated_normal(mean: float, precision: float) -> Density:
    return lambda X, v: _truncated(X, mean, precision)


def truncated_normal_hyper(mean: float, precision: float, a: float, b: float) -> Density:
    def density(X, v):
        m, t = v["mean"], v["precision"]
        odd = -0.5 * np.log(t) + stats.norm.logcdf(m * np.sqrt(t))
        hyper = odd + stats.norm.logpdf(m, mean, precision**-0.5)
        return _truncated(X, m, t) + hyper.sum() + gamma_log_density(t, a, b)

    return density


def l21(strength: float) -> Density:
    def density(X, v):
        return -0.5 * strength * np.sum(X.sum(axis=1) ** 2) if (X >= 0).all() else -np.inf

    return density


def gamma(shape: float, rate: float | None) -> Density:
    return lambda X, v: gamma_log_density(X, shape, governed(rate, v))


def gamma_hyper(a: float, a_prime: float, b_prime: float) -> Density:
    def density(X, v):
        hyper = gamma_log_density(v["rate"], a_prime, a_prime / b_prime)
        return hyper + gamma_log_density(X, a, v["rate"])

    return density


def volume(strength: float, ridge: float = 0.0, nonnegative: bool = False) -> Density:
    def density(X, v):
        if nonnegative and (X < 0).any():
            return -np.inf
        return -strength * np.linalg.det(X.T @ X) - 0.5 * ridge * np.sum(X**2)

    return density


def _both(density: Density, **more) -> Plain:
    return Plain(density, density, **more)


# The table of models with its hyperparameters, name by name; K is the rank.
# fmt: off
TABLE: dict[str, Callable[..., Plain]] = {
    "GGG": lambda K, lambda_=0.1: _both(normal(lambda_)),
    "GGGU": lambda K, lambda_=0.1: _both(normal(lambda_)),
    "GGGA": lambda K, alpha0=1.0, beta0=1.0: _both(normal(None), ard=(alpha0, beta0)),
    "GGGW": lambda K, mu0=0.0, beta0=1.0, nu0=None, W0=1.0: _both(
        normal_wishart(K, mu0, beta0, nu0, W0)),
    "GLL": lambda K, eta=10**0.5: _both(laplace(eta)),
    "GLLI": lambda K, mu=None, lambda_=None, reading="scale": _both(
        laplace_inverse_gaussian(mu or K, lambda_ or K, reading)),
    "GVG": lambda K, gamma, ridge=0.0, lambda_=0.1: Plain(volume(gamma, ridge), normal(lambda_)),
    "GEE": lambda K, lambda_=0.1: _both(exponential(lambda_)),
    "GEEA": lambda K, alpha0=1.0, beta0=1.0: _both(exponential(None), ard=(alpha0, beta0)),
    "GTT": lambda K, mu_U=0.0, tau_U=0.1, mu_V=0.0, tau_V=0.1: Plain(
        truncated_normal(mu_U, tau_U), truncated_normal(mu_V, tau_V)),
    "GTTN": lambda K, mu_mu=0.0, tau_mu=0.1, a=1.0, b=1.0: _both(
        truncated_normal_hyper(mu_mu, tau_mu, a, b)),
    "GL21": lambda K, lambda_=0.1: _both(l21(lambda_)),
    "GEG": lambda K, lambda_=0.1: Plain(exponential(lambda_), normal(lambda_)),
    "GVnG": lambda K, gamma, ridge=0.0, lambda_=0.1: Plain(
        volume(gamma, ridge, True), normal(lambda_)),
    "PGG": lambda K, a=1.0, b=1.0: _both(gamma(a, b), data=poisson),
    "PGGG": lambda K, a=1.0, a_prime=1.0, b_prime=1.0: _both(
        gamma_hyper(a, a_prime, b_prime), data=poisson),
    **{name: lambda K, own=own, **hyper: _both(own.density(**hyper))
       for name, own in ADDED.items()},
}
# fmt: on


def table(name: str, K: int, **hyper) -> Plain:
    """A model of the table, with any hyperparameter changed."""
    noise = {name: hyper.pop(name) for name in ("alpha_tau", "beta_tau") if name in hyper}
    plain = TABLE[name](K, **hyper)
    return plain._replace(data=gaussian(*noise.values())) if noise else plain
