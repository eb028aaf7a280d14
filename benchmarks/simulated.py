"""Whether each likelihood finds what simulated data were made with, and is told from the others.

Forty matrices of each likelihood, 40 x 30 with rank 2 and normal or gamma factors, a fifth of the
cells held out. The likelihood that made a matrix is fitted to it, and so are all others that fit
the kind of data. Counted are how often the 90 % intervals of the likelihood's own variables hold
the truth, and how many held-out cells lie within their central 50, 80 and 95 % (by randomised
probability integral transforms, so that steps of counts and categories do not matter); compared are
mean log densities of held-out cells.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from bayesmf import (
    BayesianMF,
    BernoulliPoisson,
    Censored,
    ConvergenceWarning,
    Gamma,
    Gaussian,
    Model,
    NegativeBinomial,
    Normal,
    ObservedMatrix,
    Ordinal,
    Poisson,
    StudentT,
)
from bayesmf.likelihoods import Likelihood
from bayesmf.metrics import pit
from bayesmf.splits import holdout
from benchmarks.common import say
from benchmarks.report import Options, claim, table

SHAPE, RANK = (40, 30), 2
LEVELS = (0.5, 0.8, 0.95)
OWN = 0.9  # level of the intervals of own variables
TOLERANCE = 3.0  # points
Truth = dict[str, np.ndarray]


class Case(NamedTuple):
    """A likelihood, how its data are made from means, and its rivals."""

    likelihood: Likelihood
    make: Callable[[np.random.Generator, np.ndarray], tuple[np.ndarray, Truth]]
    rivals: tuple[Likelihood, ...]
    rate: float | None = None  # of gamma factors; None for normal ones


def _normal(
    rng: np.random.Generator, means: np.ndarray, rows: bool, cols: bool, dof: float = np.inf
) -> tuple[np.ndarray, Truth]:
    truth: Truth = {"noise_precision": np.asarray(4.0)}
    precision = np.full(means.shape, 4.0)
    for on, name, size, axis in ((rows, "rows", 0, 1), (cols, "cols", 1, 0)):
        if on:
            levels = rng.gamma(3.0, 1 / 3.0, means.shape[size])
            truth[f"noise_{name}"] = levels
            precision = precision * np.expand_dims(levels, axis)
    if np.isfinite(dof):
        truth["dof"] = np.asarray(dof)
        precision = precision * rng.gamma(dof / 2, 2 / dof, means.shape)
    return means + rng.normal(size=means.shape) / np.sqrt(precision), truth


def _limited(rng: np.random.Generator, means: np.ndarray) -> tuple[np.ndarray, Truth]:
    values, truth = _normal(rng, means, False, False)
    return np.clip(values, -1.5, 1.0), truth


def _ordered(rng: np.random.Generator, means: np.ndarray) -> tuple[np.ndarray, Truth]:
    cuts = np.array([-1.2, -0.2, 0.6, 1.5])
    latent = means + rng.normal(size=means.shape)
    return np.searchsorted(cuts, latent).astype(float), {"cuts": cuts}


def _overdispersed(rng: np.random.Generator, means: np.ndarray) -> tuple[np.ndarray, Truth]:
    theta = rng.gamma(2.0, 0.5, means.shape)
    return rng.poisson(means * theta).astype(float), {"size": np.asarray(2.0)}


def _counts(rng: np.random.Generator, means: np.ndarray) -> tuple[np.ndarray, Truth]:
    return rng.poisson(means).astype(float), {}


def _present(rng: np.random.Generator, means: np.ndarray) -> tuple[np.ndarray, Truth]:
    return (rng.poisson(means) > 0).astype(float), {}


def _by(**how: Any) -> Callable[..., tuple[np.ndarray, Truth]]:
    return lambda rng, means: _normal(rng, means, **how)


_REAL = (Gaussian(), Gaussian(rows=True), Gaussian(cols=True), Gaussian(rows=True, cols=True),
         StudentT())  # fmt: skip
_LIMITS = {"lower": -1.5, "upper": 1.0}
CASES = {
    "Gaussian": Case(Gaussian(), _by(rows=False, cols=False), _REAL),
    "Gaussian, rows": Case(Gaussian(rows=True), _by(rows=True, cols=False), _REAL),
    "Gaussian, cols": Case(Gaussian(cols=True), _by(rows=False, cols=True), _REAL),
    "Gaussian, both": Case(Gaussian(rows=True, cols=True), _by(rows=True, cols=True), _REAL),
    "Student-t": Case(StudentT(), _by(rows=False, cols=False, dof=3.0), _REAL),
    "censored": Case(
        Censored(**_LIMITS), _limited,
        (Censored(**_LIMITS), Censored(**_LIMITS, noise=StudentT())),
    ),
    "ordinal": Case(Ordinal(categories=5), _ordered, (Ordinal(categories=5),)),
    "Poisson": Case(Poisson(), _counts, (Poisson(), NegativeBinomial()), 1.0),
    "negative binomial": Case(
        NegativeBinomial(), _overdispersed, (Poisson(), NegativeBinomial()), 1.0
    ),
    "Bernoulli-Poisson": Case(BernoulliPoisson(), _present, (BernoulliPoisson(),), 1.6),
}  # fmt: skip


def simulate(case: Case, seed: int, shape: tuple[int, int] = SHAPE) -> tuple[np.ndarray, Truth]:
    """A matrix made by a likelihood, and the values of its variables."""
    rng = np.random.default_rng([seed, 5])
    if case.rate:
        U, V = (rng.gamma(1.5, 1 / case.rate, (n, RANK)) for n in shape)
    else:
        U, V = (rng.normal(size=(n, RANK)) for n in shape)
    return case.make(rng, U @ V.T)


def fit(
    likelihood: Likelihood, train: ObservedMatrix, rate: float | None, draws: int
) -> BayesianMF:
    prior = Gamma(1.5, rate) if rate else Normal(1.0)
    mf = BayesianMF(
        Model(likelihood, prior, prior), RANK, draws=draws, burn_in=draws // 2, chains=1,
        random_state=0, center="none", scale="none",
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mf.fit(train)


def held(mf: BayesianMF, truth: Truth) -> list[bool]:
    """Whether intervals of the own variables hold the truth, number by number."""
    found: list[bool] = []
    own = mf.posterior_.likelihood_values()
    # Only the products of tau and relative precisions are the data's: levels are compared in logs.
    for name, true in truth.items():
        draws = own[name]
        if name.startswith("noise_") and name != "noise_precision":
            draws = np.log(draws) - np.log(draws).mean(axis=1, keepdims=True)
            true = np.log(true) - np.log(true).mean()
        elif name == "noise_precision" and len(truth) > 1 and "dof" not in truth:
            continue
        low, high = np.quantile(draws, [(1 - OWN) / 2, (1 + OWN) / 2], axis=0)
        found += np.atleast_1d((low <= true) & (true <= high)).tolist()
    return found


def transforms(mf: BayesianMF, test: Any, seed: int) -> np.ndarray:
    rows, cols, values = test
    predictive = mf._predictive()
    law = predictive.law(predictive.means((rows, cols)), (rows, cols))
    return pit(values, law.replicates(2, (seed, 0)), random_state=seed)


def measure(name: str, matrices: int, draws: int) -> dict[str, Any]:
    """Coverage and log densities over so many matrices of one likelihood."""
    say(name)
    case = CASES[name]
    own: list[bool] = []
    off: list[np.ndarray] = []
    density = np.zeros((len(case.rivals), matrices))
    for seed in range(matrices):
        values, truth = simulate(case, seed)
        train, test = holdout(ObservedMatrix.of(values), 0.2, random_state=seed)
        for k, rival in enumerate(case.rivals):
            mf = fit(rival, train, case.rate, draws)
            density[k, seed] = mf.log_density(*test).mean()
            if repr(rival) == repr(case.likelihood):
                own += held(mf, truth)
                off.append(2 * np.abs(transforms(mf, test, seed) - 0.5))
    inside = np.concatenate(off)
    return {
        "own": float(np.mean(own)) if own else None, "numbers": len(own),
        "coverage": [float(np.mean(inside <= level)) for level in LEVELS],
        "density": {repr(r): density[k].tolist() for k, r in enumerate(case.rivals)},
        "right": repr(case.likelihood),
    }  # fmt: skip


def best_rival(found: dict[str, Any]) -> tuple[str | None, float, float]:
    """The best of the others: its name, and by how much the right one is better, with its error."""
    right = np.array(found["density"][found["right"]])
    others = {k: right - np.array(v) for k, v in found["density"].items() if k != found["right"]}
    if not others:
        return None, float("nan"), float("nan")
    name = min(others, key=lambda k: others[k].mean())
    gain = others[name]
    return name, float(gain.mean()), float(gain.std(ddof=1) / gain.size**0.5)


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """One line for every likelihood."""
    rows = []
    for name, found in data["simulated"].items():
        rival, gain, error = best_rival(found)
        own = "-" if found["own"] is None else f"{100 * found['own']:.1f} % of {found['numbers']}"
        beside = "-" if rival is None else f"{gain:+.4f} ({error:.4f}) over {rival}"
        rows.append((name, own, *(f"{100 * c:.1f}" for c in found["coverage"]), beside))
    header = ("made by", "own variables in 90 %", *(f"cells in {100 * c:g} %" for c in LEVELS),
              "log density per cell")  # fmt: skip
    return [table("Simulated data", header, rows, quoted=True)]


def claims(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Cells within three points; own variables within chance; the right one is best."""
    made = []
    for name, found in data["simulated"].items():
        gap = 100 * max(abs(c - level) for c, level in zip(found["coverage"], LEVELS, strict=True))
        made.append(claim(f"{name}, coverage of cells, gap", gap, "points", most=TOLERANCE))
        if found["own"] is not None:
            n = found["numbers"]
            low = float(stats.binom.ppf(0.005, n, OWN)) / n
            made.append(claim(f"{name}, own variables held", found["own"], least=low))
        rival, gain, error = best_rival(found)
        if rival is not None:
            made.append(claim(f"{name}, gain over {rival}", gain, "nats", least=-2 * error))
    return made


def part(options: Options) -> dict[str, Any]:
    """Simulated matrices of every likelihood."""
    matrices, draws = (2, 40) if options.quick else (40, 400)
    data = {"simulated": {name: measure(name, matrices, draws) for name in CASES}}
    return {"claims": claims(data), "tables": tables(data), "data": data}
