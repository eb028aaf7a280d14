"""Multiple imputation pooled by Rubin's rules: how often intervals of coefficients hold the truth.

In every replication 200 rows of six correlated variables in units from 1e-6 to 1e4 are drawn, and a
seventh that depends on them. A fifth of the cells of four columns is missing: at random in two, and
with a probability that grows with a complete column in the other two. The table is completed 20
times by `BayesianImputer` with no argument but the seed, the regression is fitted to each completed
table, and the results are pooled (Rubin 1987, with the degrees of freedom of Barnard and Rubin
1999). Beside it stand rows without gaps, and the tables before anything was missing.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import special, stats

from bayesmf import BayesianImputer, ConvergenceWarning
from benchmarks.common import read_json, say, write_json
from benchmarks.report import RESULTS, Options, claim, table

STORE = RESULTS / "imputation-runs.json"
REPLICATIONS, ROWS, IMPUTATIONS = 200, 200, 20
UNITS = np.array([1e-6, 1e-3, 1.0, 50.0, 1e4, 0.2])
SLOPES = np.array([0.8, -0.5, 0.4, 0.0, 0.3, 0.0])  # in standard deviations of the columns
WAYS = ("imputed", "rows without gaps", "nothing missing")
TESTED = (0, 1)  # coefficients that are judged


def simulate(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A complete table, its last column the response, and the same with gaps."""
    rng = np.random.default_rng([seed, 18])
    loadings = np.random.default_rng(18).normal(size=(2, UNITS.size))
    Z = rng.normal(size=(ROWS, 2)) @ loadings + rng.normal(size=(ROWS, UNITS.size))
    Z /= np.sqrt((loadings**2).sum(axis=0) + 1)
    y = Z @ SLOPES + rng.normal(size=ROWS)
    whole = np.column_stack([Z * UNITS + 3 * UNITS, 100 * y])
    missing = np.zeros(whole.shape, dtype=bool)
    for j in (0, 2):
        missing[:, j] = rng.random(ROWS) < 0.2
    for j in (1, 4):
        missing[:, j] = rng.random(ROWS) < special.expit(1.5 * Z[:, 3] - 1.7)
    return whole, np.where(missing, np.nan, whole)


def regress(whole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the response in units of the truth, and their variances."""
    design = np.column_stack([np.ones(len(whole)), whole[:, :-1] / UNITS])
    y = whole[:, -1] / 100
    inverse = np.linalg.inv(design.T @ design)
    found = inverse @ design.T @ y
    noise = np.sum((y - design @ found) ** 2) / (len(y) - design.shape[1])
    return found[1:], noise * np.diag(inverse)[1:]


def interval(
    found: np.ndarray, variance: np.ndarray, rows: int = ROWS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pooled estimates and 95 % intervals from m completed tables, (m, coefficients) each."""
    m, complete = len(found), rows - UNITS.size - 1
    mean, within = found.mean(axis=0), variance.mean(axis=0)
    between = found.var(axis=0, ddof=1) if m > 1 else np.zeros_like(mean)
    total = within + (1 + 1 / m) * between
    lost = np.maximum((1 + 1 / m) * between / total, 1e-12)
    old = (m - 1) / lost**2 if m > 1 else np.full_like(mean, np.inf)
    seen = (complete + 1) / (complete + 3) * complete * (1 - lost)
    freedom = 1 / (1 / old + 1 / seen) if m > 1 else np.full_like(mean, complete)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(total)
    return mean, mean - half, mean + half


def replicate(seed: int, draws: int = 250) -> dict[str, Any]:
    """Estimates and whether intervals hold the truth, of all three methods."""
    whole, gaps = simulate(seed)
    imputer = BayesianImputer(random_state=seed, draws=draws, burn_in=draws, n_jobs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        completed = imputer.fit(gaps).impute(IMPUTATIONS)
    full = gaps[~np.isnan(gaps).any(axis=1)]
    results = [regress(table) for table in completed], [regress(full)], [regress(whole)]
    ways = dict(zip(WAYS, results, strict=True))
    rows = {"rows without gaps": len(full)}
    out: dict[str, Any] = {"rank": imputer.n_components_}
    for way, of_tables in ways.items():
        found, variance = (np.array(part) for part in zip(*of_tables, strict=True))
        mean, low, high = interval(found, variance, rows.get(way, ROWS))
        held = (low <= SLOPES) & (high >= SLOPES)
        out[way] = {
            "mean": mean.tolist(), "held": held.tolist(), "width": (high - low).tolist(),
        }  # fmt: skip
    return out


def part(options: Options) -> dict[str, Any]:
    """Coverage, bias and width over the replications."""
    if options.quick:
        replicate(0, 30)
        return {"claims": [], "tables": [], "data": {}, "datasets": {}}
    done = read_json(STORE)
    for seed in range(REPLICATIONS):
        if str(seed) not in done:
            if seed % 10 == 0:
                say(f"replication {seed}")
            done[str(seed)] = replicate(seed)
            write_json(STORE, done)
    data = {"replications": len(done), "ways": {way: _pooled(done, way) for way in WAYS}}
    return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": {}}


def _pooled(done: dict[str, Any], way: str) -> list[dict[str, float]]:
    """Coverage, bias and width of the coefficients that are judged."""
    mean, held, width = (
        np.array([run[way][key] for run in done.values()]) for key in ("mean", "held", "width")
    )
    return [
        {"truth": SLOPES[k], "held": float(held[:, k].mean()),
         "bias": float(mean[:, k].mean() / SLOPES[k] - 1), "width": float(width[:, k].mean())}
        for k in TESTED
    ]  # fmt: skip


def claims(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Targets of the imputed tables."""
    made = []
    for one in data["ways"]["imputed"]:
        name = f"{one['truth']:g}"
        made.append(claim(f"coverage of {name}", one["held"], least=0.91, most=0.98))
        made.append(claim(f"bias of {name}", abs(one["bias"]), most=0.05))
    return made


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """All three ways."""
    rows = [
        (way, f"{one['truth']:g}", f"{one['held']:.1%}", f"{one['bias']:+.1%}",
         f"{one['width']:.3f}")
        for way, found in data["ways"].items() for one in found
    ]  # fmt: skip
    header = ("method", "coefficient", "95 % intervals hold", "bias", "width")
    return [table("Pooled coefficients", header, rows, quoted=True)]
