"""How often predictive intervals hold the truth, on simulated and on real matrices.

*Simulated*: matrices drawn from GGG, GGGA, GEE and PGG, 20 of each, 40 x 30 with rank 3; a fifth of
the cells is held out, the model that made the matrix is fitted, and the share of held-out cells
inside their central 50, 80 and 95 % predictive intervals is counted. A right sampler covers as it
says. PGG has gamma factors with rate 0.1, so that counts are large: intervals of counts are whole
numbers, and small ones must hold more than they promise.

*Real*: the matrices in the folder that BAYESMF_DATA names, a tenth of the cells held out (seed 0),
rank 10. Nothing promises that a model covers there: the data were not made by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesmf import ObservedMatrix, Problem, preset
from bayesmf.metrics import coverage
from bayesmf.sampler.start import initial_state
from bayesmf.splits import holdout
from benchmarks.common import Dataset, facts, fitted, load, say
from benchmarks.report import Options, claim, table

LEVELS = (0.5, 0.8, 0.95)
SIMULATED: dict[str, dict[str, float]] = {"GGG": {}, "GGGA": {}, "GEE": {}, "PGG": {"b": 0.1}}
REAL = ("gdsc", "ccle", "methylation", "movielens")
REAL_MODELS = ("GGGA", "GEE", "PGG")
TOLERANCE = 0.03


def simulated(name: str, seed: int) -> tuple[ObservedMatrix, tuple[Any, Any, Any]]:
    """A matrix drawn from a model, and its held-out cells."""
    shape, rank = (40, 30), 3
    blank = ObservedMatrix.of(np.ones(shape))
    model = preset(name, **SIMULATED[name])
    state = initial_state(Problem.of(blank, model, rank), "prior", seed)
    rng = np.random.default_rng([seed, 1])
    mean = state.U @ state.V.T
    if model.likelihood.name == "Poisson":
        values = rng.poisson(mean).astype(float)
    else:
        values = rng.normal(mean, rng.gamma(1.0, 1.0) ** -0.5)
    return holdout(ObservedMatrix.of(values), 0.2, random_state=seed)


def covered(train: ObservedMatrix, test: Any, rank: int, name: str, **options: Any) -> list[float]:
    """Share of the held-out cells inside their intervals, for every level."""
    i, j, values = test
    ends = [0.5 + sign * level / 2 for level in LEVELS for sign in (-1, 1)]
    found = fitted(train, name, rank, **options).predict(i, j, quantiles=ends)[1]
    return [coverage(values, found[2 * k], found[2 * k + 1]) for k in range(len(LEVELS))]


def simulations(repeats: int, **options: Any) -> list[dict[str, Any]]:
    """Coverage by every model of matrices that it made, and its standard error."""
    rows = []
    for name, hyper in SIMULATED.items():
        say(f"{name}, simulated")
        runs = [
            covered(*simulated(name, seed), 3, name, hyperparameters=hyper, **options)
            for seed in range(repeats)
        ]
        share, error = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) / repeats**0.5
        good = bool(np.all(np.abs(share - LEVELS) <= TOLERANCE))
        rows.append(
            {"model": name, "coverage": share.tolist(), "error": error.tolist(), "met": good}
        )
    return rows


def real(datasets: list[Dataset], **options: Any) -> list[dict[str, Any]]:
    """Coverage of held-out cells of real matrices."""
    rows = []
    for dataset in datasets:
        train, test = holdout(dataset.X, 0.1, random_state=0)
        for name in REAL_MODELS:
            say(f"{dataset.name}, {name}")
            share = covered(train, test, 10, name, **options)
            rows.append({"dataset": dataset.name, "model": name, "coverage": share})
    return rows


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Shares inside the intervals, simulated and real."""
    levels = [f"{level:.0%}" for level in LEVELS]
    made = [
        (
            row["model"],
            *(f"{c:.1%} +- {e:.1%}" for c, e in zip(row["coverage"], row["error"], strict=True)),
        )
        for row in data["simulated"]
    ]
    found = [(r["dataset"], r["model"], *(f"{c:.1%}" for c in r["coverage"])) for r in data["real"]]
    title = "share of held-out cells inside central intervals"
    return [
        table(f"Simulated from the model: {title}", ("model", *levels), made),
        table(f"Real matrices: {title}", ("dataset", "model", *levels), found),
    ]


def part(options: Options) -> dict[str, Any]:
    """Coverage of simulated matrices, and of the real ones that are there."""
    sweeps, repeats = (50, 2) if options.quick else (500, 20)
    there = []
    for dataset in (load(name, options.quick) for name in (REAL[:1] if options.quick else REAL)):
        if dataset.real or options.quick:
            there.append(dataset)
        else:
            print(f"{dataset.name}: not in BAYESMF_DATA, left out")
    length = {"draws": sweeps, "burn_in": sweeps}
    data = {"simulated": simulations(repeats, **length), "real": real(there, **length)}
    claims = []
    for row in data["simulated"]:
        distance = max(abs(c - level) for c, level in zip(row["coverage"], LEVELS, strict=True))
        what = f"coverage of {row['model']}: largest distance from what the intervals promise"
        claims.append(claim(what, 100 * distance, "points", most=100 * TOLERANCE))
    return {"claims": claims, "tables": tables(data), "data": data, "datasets": facts(*there)}
