"""The log joint of every model, written plainly from its densities: nothing of the library here.

A density takes factors X (n, K) and the values of the variables that govern them. It includes the
hyperpriors of one side; what both sides share is in `Plain`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats
from scipy.sparse import issparse

from tests.exactness.added import ADDED

Density = Callable[[np.ndarray, dict[str, Any]], float]


class Cells(NamedTuple):
    """Observed cells: rows, columns, values; known errors, and intervals where there are any."""

    i: np.ndarray
    j: np.ndarray
    values: np.ndarray
    errors: np.ndarray | float = 1.0
    low: np.ndarray | None = None
    high: np.ndarray | None = None


DataDensity = Callable[[Cells, np.ndarray, dict[str, Any]], float]


def gamma_log_density(x, shape, rate) -> float:
    return float(np.sum(stats.gamma.logpdf(x, shape, scale=1 / np.asarray(rate))))


def gamma_above(x, shape, rate, least) -> float:
    """Gamma restricted to numbers above the least."""
    law = stats.gamma(shape, scale=1 / rate)
    return float(law.logpdf(x) - law.logsf(least)) if x > least else -np.inf


def log_between(law, low, high) -> np.ndarray:
    """Log probabilities of intervals under a symmetric law about zero."""
    flip = low > 0
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    low, high = law.logcdf(low), law.logcdf(high)
    return high + np.log1p(-np.exp(low - high))


def cell_precision(cells: Cells, own: dict[str, Any]) -> np.ndarray:
    """Precisions of the observed cells but for the weights that are drawn."""
    found = own["noise_precision"] * np.asarray(cells.errors) ** -2.0
    if "noise_rows" in own:
        found = found * own["noise_rows"][cells.i]
    if "noise_cols" in own:
        found = found * own["noise_cols"][cells.j]
    return np.broadcast_to(found, cells.values.shape)


def gaussian(
    shape: float = 1.0, rate: float = 1.0, levels=(2.0, 0.5, 2.0), dof=(2.0, 0.1, 2.0)
) -> DataDensity:
    """Normal or Student values about their means, and the variables of the noise.

    ``levels`` and ``dof`` are shape, rate and least value of what governs the precisions of a side
    and of the degrees of freedom. Latent values "y" and weights "w" are integrated out unless they
    are given among the own variables.
    """

    def density(cells, means, own) -> float:
        total = gamma_log_density(own["noise_precision"], shape, rate)
        for side in ("noise_rows", "noise_cols"):
            if side in own:
                s = own[f"{side}_shape"]
                total += gamma_above(s, *levels) + gamma_log_density(own[side], s, s)
        precision = cell_precision(cells, own)
        law = stats.norm()
        if "dof" in own:
            nu = own["dof"]
            total += gamma_above(nu, *dof)
            law = stats.t(nu)
            if "w" in own:
                total += gamma_log_density(own["w"], nu / 2, nu / 2)
                precision, law = precision * own["w"], stats.norm()
        y, sd = own.get("y", cells.values), precision**-0.5
        inside = law.logpdf((y - means) / sd) - np.log(sd)
        if cells.low is None:
            return total + inside.sum()
        low, high = cells.low, cells.high
        if "y" in own:
            return total + inside.sum() if ((low <= y) & (y <= high)).all() else -np.inf
        wide = low < high
        a, b = ((x - means)[wide] / sd[wide] for x in (low, high))
        return total + inside[~wide].sum() + log_between(law, a, b).sum()

    return density


def edges(codes, cuts) -> tuple[np.ndarray, np.ndarray]:
    """Cuts below and above the categories of cells."""
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    return ends[codes.astype(int)], ends[codes.astype(int) + 1]


def ordinal(spread: float) -> DataDensity:
    """Categories between cuts; the latent values "y" are integrated out unless given."""

    def density(cells, means, own) -> float:
        cuts = own["cuts"]
        if not (np.diff(cuts) > 0).all():
            return -np.inf
        total = stats.norm.logpdf(cuts, 0, spread).sum() + special.gammaln(len(cuts) + 1)
        low, high = edges(cells.values, cuts)
        if "y" not in own:
            return total + log_between(stats.norm(), low - means, high - means).sum()
        if not ((low <= own["y"]) & (own["y"] <= high)).all():
            return -np.inf
        return total + stats.norm.logpdf(own["y"], means).sum()

    return density


def poisson(cells, means, own) -> float:
    """Counts; with counts "Z" split over the factors, the means are those of the parts."""
    return stats.poisson.logpmf(own.get("Z", cells.values), means).sum()


def negative_binomial(shape: float, rate: float) -> DataDensity:
    """Counts; exposures "theta" are integrated out unless given, "Z" as above."""

    def density(cells, means, own) -> float:
        size = own["size"]
        total = gamma_log_density(size, shape, rate)
        if "theta" not in own:
            return total + stats.nbinom.logpmf(cells.values, size, size / (size + means)).sum()
        theta = own["theta"]
        total += gamma_log_density(theta, size, size)
        rates = means * (theta[:, None] if "Z" in own else theta)
        return total + stats.poisson.logpmf(own.get("Z", cells.values), rates).sum()

    return density


def presence(cells, means, own) -> float:
    """One where a count is positive; the counts are integrated out unless split in "Z"."""
    if "Z" not in own:
        return np.where(cells.values > 0, np.log(-np.expm1(-means)), -means).sum()
    if ((own["Z"].sum(axis=1) > 0) != (cells.values > 0)).any():
        return -np.inf
    return stats.poisson.logpmf(own["Z"], means).sum()


def latent_log_density(cells: Cells, means, products, own, latent) -> float:
    """Log density of latent variables given all else; products (cells, K) add up to the means."""
    total, y = 0.0, latent.get("y", cells.values)
    if "noise_precision" in own:
        sd = cell_precision(cells, own) ** -0.5
        law = stats.t(own["dof"]) if "dof" in own else stats.norm()
        if "y" in latent:
            wide = cells.low < cells.high
            a, b, x = ((x - means)[wide] / sd[wide] for x in (cells.low, cells.high, y))
            total += (law.logpdf(x) - np.log(sd[wide]) - log_between(law, a, b)).sum()
        if "w" in latent:
            nu, square = own["dof"], ((y - means) / sd) ** 2
            total += gamma_log_density(latent["w"], (nu + 1) / 2, (nu + square) / 2)
    elif "y" in latent:
        low, high = edges(cells.values, own["cuts"])
        ends = log_between(stats.norm(), low - means, high - means)
        total += (stats.norm.logpdf(y, means) - ends).sum()
    if "theta" in latent:
        total += gamma_log_density(latent["theta"], own["size"] + y, own["size"] + means)
    if "Z" in latent:
        counts = latent["Z"].sum(axis=1)
        if (counts != cells.values).any():
            positive = cells.values > 0
            chance = stats.poisson.logpmf(counts, means) - np.log(-np.expm1(-means))
            total += chance[positive].sum()
        p = products / products.sum(axis=1, keepdims=True)
        total += stats.multinomial.logpmf(latent["Z"], counts, p).sum()
    return float(total)


class Group(NamedTuple):
    """Features x (n, P) by the name of their group, and the gamma of their weights' precision."""

    name: str
    x: np.ndarray
    shape: float
    rate: float


def groups_of(features) -> list[Group]:
    """The features that a side has, as plain arrays."""
    if features is None:
        return []
    dense = [g.design.toarray() if issparse(g.design) else g.design for g in features.groups]
    return [Group(g.name, x, g.alpha, g.beta) for g, x in zip(features.groups, dense, strict=True)]


def weights_log_density(v: dict[str, Any], groups: list[Group], covariance, prefix="") -> float:
    """Weights (P, K) of groups whose rows have this covariance over their precision."""
    total = 0.0
    for group in groups:
        w = v[f"{prefix}weights_precision_{group.name}"]
        rows = v[f"{prefix}weights_{group.name}"].reshape(group.x.shape[1], -1)
        total += gamma_log_density(w, group.shape, group.rate)
        total += np.sum(
            stats.multivariate_normal.logpdf(rows, np.zeros(rows.shape[1]), covariance / w)
        )
    return float(total)


def regressed(density: Density, groups: list[Group], precision: float | None) -> Density:
    """A density of rows whose means are linear in features, a common mean beside them."""
    if not groups:
        return density

    def whole(X, v):
        matrix = (
            v["precision"]
            if np.ndim(v.get("precision")) == 2
            else np.diag(np.broadcast_to(governed(precision, v), X.shape[1:]))
        )
        covariance = np.linalg.inv(matrix)
        means = sum(group.x @ v[f"weights_{group.name}"] for group in groups)
        return density(X - means, v) + weights_log_density(
            v, groups, 0.5 * (covariance + covariance.T)
        )

    return whole


class Plain(NamedTuple):
    """Densities of both sides, the gamma of a shared relevance, and the density of the data.

    ``data`` takes cells, their means and the likelihood's own and latent variables. ``biases`` are
    mean and precision of the global mean, shape and rate of the effects' precisions; ``effects``
    are the features of the effects.
    """

    rows: Density
    cols: Density
    ard: tuple[float, float] | None = None
    data: DataDensity = gaussian()
    biases: tuple[float, float, float, float] | None = None
    effects: tuple[list[Group], list[Group]] = ([], [])

    def log_joint(self, cells, U, V, rows, cols, shared, noise, biases, latent) -> float:
        """With "Z" (cells, K) among the latent variables, counts are split over the factors."""
        i, j, own = cells.i, cells.j, {**noise, **latent}
        total = self.rows(U, {**rows, **shared}) + self.cols(V, {**cols, **shared})
        if self.ard:
            total += gamma_log_density(shared["relevance"], *self.ard)
        if "Z" in own:
            return total + self.data(cells, U[i] * V[j], own)
        means = (U @ V.T)[i, j]
        if self.biases:
            means += biases["mean"] + biases["rows"][i] + biases["cols"][j]
            total += _effects(biases, self.effects, *self.biases)
        return total + self.data(cells, means, own)


def _effects(v: dict[str, Any], groups, mean, precision, shape, rate) -> float:
    fixed = np.isinf(precision)
    total = 0.0 if fixed else stats.norm.logpdf(v["mean"], mean, precision**-0.5)
    for side, known in zip(("rows", "cols"), groups, strict=True):
        p = v[f"{side}_precision"]
        means = sum(group.x @ v[f"{side}_weights_{group.name}"] for group in known)
        total += gamma_log_density(p, shape, rate)
        total += stats.norm.logpdf(v[side], means, p**-0.5).sum()
        total += weights_log_density(v, known, 1 / p, f"{side}_")
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
