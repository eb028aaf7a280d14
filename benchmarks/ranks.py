"""Whether the automatic rank is the right one: of simulated matrices, and of the tables.

Matrices of 200 x 100 with 30 % missing, noise of variance one, and 2, 5, 10 or 15 factors: strong
ones, of variance one each, or weak ones, whose standard deviations fall from 0.3 to 0.12; five of
each. For weak ones what counts is the error on the missing cells (of the means that made them, with
the noise added) over that of the best fixed rank of 1, 2, 3, 5, 8, 12, 20.

On the thirteen tables of the part "tables", hiding 0: the error of the automatic model over that of
the best of the ranks 2, 5, 10, 20 and 30 with the same noise.

For tables, and the first simulated matrix of each kind and rank, also what the choice costs: the
seconds of a fit over those of one with rank and noise as they were chosen, less one; two threads,
the best of two in turns. That wants an idle machine.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import numpy as np

from bayesmf import BayesianMF, ConvergenceWarning
from bayesmf.metrics import mse
from bayesmf.splits import holdout
from benchmarks.common import kept, read_json
from benchmarks.report import RESULTS, Options, claim, table
from benchmarks.tables import HIDDEN, TABLES, read, spreads

STORE = RESULTS / "ranks-runs.json"
TRUE, SEEDS = (2, 5, 10, 15), range(5)
FIXED = (1, 2, 3, 5, 8, 12, 20)
OF_TABLES = (2, 5, 10, 20, 30)


def simulate(kind: str, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The means of all cells, and the matrix with gaps."""
    rng = np.random.default_rng([seed, rank, 200, 100])
    sd = np.ones(rank) if kind == "strong" else np.linspace(0.3, 0.12, rank)
    means = (rng.normal(size=(200, rank)) * sd) @ rng.normal(size=(rank, 100))
    X = means + rng.normal(size=means.shape)
    X[rng.random(X.shape) < 0.3] = np.nan
    return means, X


def fit(X: Any, seed: int, **options: Any) -> tuple[BayesianMF, float]:
    """A fit, and its seconds."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mf = BayesianMF(random_state=seed, n_jobs=2, **options).fit(X)
    return mf, time.perf_counter() - begin


def as_chosen(mf: BayesianMF) -> dict[str, Any]:
    """Options of a fit of the same model."""
    noise = "both" if mf.posterior_.model.likelihood.rows else "cols"
    return {"model": "GGGW", "biases": True, "noise": noise}


def on_simulated(kind: str, rank: int, seed: int) -> dict[str, Any]:
    """The rank found; of weak factors also the errors by rank."""
    means, X = simulate(kind, rank, seed)
    gaps = np.isnan(X)
    mf, _ = fit(X, seed)
    same = as_chosen(mf)
    found: dict[str, Any] = {"rank": mf.n_components_}
    if kind == "weak":
        fixed = {k: fit(X, seed, n_components=k, chains=1, **same)[0] for k in FIXED}
        errors = {k: 1 + mse(means[gaps], one.predict()[gaps]) for k, one in fixed.items()}
        own = 1 + mse(means[gaps], mf.predict()[gaps])
        found |= {"error": own, "errors": errors, "ratio": own / min(errors.values())}
    return found


def on_table(name: str) -> dict[str, Any]:
    """The error of the automatic model beside those of fixed ranks."""
    X = read(name)
    shown, (rows, cols, values) = holdout(X, HIDDEN, random_state=0)
    unit = spreads(X.to_array())[cols]
    mf, _ = fit(shown, 0)
    same = as_chosen(mf)
    errors = {}
    for rank in sorted({min(k, *X.shape) for k in OF_TABLES}):
        one, _ = fit(shown, 0, n_components=rank, **same)
        errors[rank] = mse(values / unit, one.predict(rows, cols) / unit) ** 0.5
    own = mse(values / unit, mf.predict(rows, cols) / unit) ** 0.5
    return {
        "rank": mf.n_components_, "noise": same["noise"], "error": own, "errors": errors,
        "ratio": own / min(errors.values()),
    }  # fmt: skip


def cost(X: Any) -> dict[str, Any]:
    """Seconds with and without the choice, in turns."""
    seconds: dict[str, list[float]] = {"automatic": [], "plain": []}
    for _ in range(2):
        mf, whole = fit(X, 0)
        _, plain = fit(X, 0, n_components=mf.n_components_, **as_chosen(mf))
        seconds["automatic"].append(whole)
        seconds["plain"].append(plain)
    return {**seconds, "cost": min(seconds["automatic"]) / min(seconds["plain"]) - 1}


def cost_on_simulated(kind: str, rank: int) -> dict[str, Any]:
    """What the choice costs on the first matrix."""
    return cost(simulate(kind, rank, 0)[1])


def cost_on_table(name: str) -> dict[str, Any]:
    """What the choice costs on hiding 0 of a table."""
    return cost(holdout(read(name), HIDDEN, random_state=0)[0])


def part(options: Options) -> dict[str, Any]:
    """Ranks and errors."""
    if options.quick:
        _, X = simulate("strong", 2, 0)
        mf, _ = fit(X[:30, :20], 0, draws=5, burn_in=5)
        return {"claims": [], "tables": [], "data": {"rank": mf.n_components_}, "datasets": {}}
    tasks = {f"{kind} {rank} {seed}": (on_simulated, kind, rank, seed)
             for kind in ("strong", "weak") for rank in TRUE for seed in SEEDS}  # fmt: skip
    tasks |= {name: (on_table, name) for name in TABLES}  # type: ignore[dict-item]
    tasks |= {f"cost {kind} {rank}": (cost_on_simulated, kind, rank)  # type: ignore[dict-item]
              for kind in ("strong", "weak") for rank in TRUE}  # fmt: skip
    tasks |= {f"cost {name}": (cost_on_table, name) for name in TABLES}  # type: ignore[dict-item]
    for name, (function, *arguments) in tasks.items():
        kept(STORE, name, make=partial(function, *arguments))  # type: ignore[operator]
    done = read_json(STORE)
    return {"claims": claims(done), "tables": tables(done), "data": done, "datasets": {}}


def _ranks(done: dict[str, Any], kind: str, rank: int) -> list[dict[str, Any]]:
    return [done[f"{kind} {rank} {seed}"] for seed in SEEDS]


def claims(done: dict[str, Any]) -> list[dict[str, Any]]:
    """Targets."""
    close = sum(abs(one["rank"] - k) <= 1 for k in TRUE for one in _ranks(done, "strong", k))
    weak = max(one["ratio"] for k in TRUE for one in _ranks(done, "weak", k))
    real = {name: done[name] for name in TABLES if name in done}
    worst = max(real, key=lambda name: real[name]["ratio"])
    costs = [one["cost"] for name, one in done.items() if name.startswith("cost")]
    return [
        claim("strong factors: within one of the truth, of 20", close, least=18),
        claim("weak factors: largest error over the best fixed rank's", weak, most=1.02),
        claim(f"tables: the same ({worst})", real[worst]["ratio"], most=1.03),
        claim("cost in fits, median", float(np.median(costs)), most=3),
        claim("cost in fits, largest", max(costs), most=3),
    ]


def tables(done: dict[str, Any]) -> list[dict[str, Any]]:
    """Ranks of the simulated matrices, and errors of the tables."""
    rows = [
        (str(k), *(" ".join(str(one["rank"]) for one in _ranks(done, kind, k))
                   for kind in ("strong", "weak")),
         f"{max(one['ratio'] for one in _ranks(done, 'weak', k)):.3f}",
         *(f"{done[f'cost {kind} {k}']['cost']:.1f}" for kind in ("strong", "weak")))
        for k in TRUE
    ]  # fmt: skip
    real = [
        (TABLES[name].title, str(one["rank"]), f"{one['error']:.4f}",
         min(one["errors"], key=one["errors"].get), f"{min(one['errors'].values()):.4f}",
         f"{one['ratio']:.3f}", f"{done[f'cost {name}']['cost']:.1f}")
        for name in TABLES if (one := done.get(name))
    ]  # fmt: skip
    return [
        table("Ranks found", ("true rank", "strong", "weak", "largest error ratio",
                              "cost in fits, strong", "weak"), rows, quoted=True),
        table("Tables", ("table", "rank", "error", "best fixed", "its error", "ratio",
                         "cost in fits"), real, quoted=True),
    ]  # fmt: skip
