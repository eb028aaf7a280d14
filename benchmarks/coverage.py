"""How often predictive intervals hold the truth, on simulated and on real matrices.

    python benchmarks/coverage.py [--quick] [--json FILE]

*Simulated*: matrices drawn from GGG, GGGA, GEE and PGG, 20 of each, 40 x 30 with rank 3; a fifth of
the cells is held out, the model that made the matrix is fitted, and the share of held-out cells
inside their central 50, 80 and 95 % predictive intervals is counted. A right sampler covers as it
says. PGG has gamma factors with rate 0.1, so that counts are large: intervals of counts are whole
numbers, and small ones must hold more than they promise.

*Real*: the matrices in the folder that BAYESMF_DATA names, a tenth of the cells held out (seed 0),
rank 10. Nothing promises that a model covers there: the data were not made by it.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import numpy as np

from _common import load, machine, print_machine, print_table, write_json
from bayesmf import BayesianMF, ConvergenceWarning, ObservedMatrix, Problem, preset
from bayesmf.metrics import coverage
from bayesmf.sampler import initial_state
from bayesmf.splits import holdout

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
    mf = BayesianMF(name, rank, random_state=0, n_jobs=2, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mf.fit(train)
    ends = [0.5 + sign * level / 2 for level in LEVELS for sign in (-1, 1)]
    found = mf.predict(i, j, quantiles=ends)[1]
    return [coverage(values, found[2 * k], found[2 * k + 1]) for k in range(len(LEVELS))]


def simulations(repeats: int, **options: Any) -> list[dict[str, Any]]:
    rows = []
    for name, hyper in SIMULATED.items():
        runs = []
        for seed in range(repeats):
            print(f"{name}, {seed + 1} of {repeats} ...", file=sys.stderr, end="\r")
            train, test = simulated(name, seed)
            runs.append(covered(train, test, 3, name, hyperparameters=hyper, **options))
        share, error = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) / repeats**0.5
        good = bool(np.all(np.abs(share - LEVELS) <= TOLERANCE))
        rows.append(
            {"model": name, "coverage": share.tolist(), "error": error.tolist(), "met": good}
        )
    return rows


def real(quick: bool, **options: Any) -> list[dict[str, Any]]:
    rows = []
    for dataset in (load(name, quick) for name in REAL):
        if not (dataset.real or quick):
            print(f"{dataset.name}: not in BAYESMF_DATA, left out", file=sys.stderr)
            continue
        train, test = holdout(dataset.X, 0.1, random_state=0)
        for name in REAL_MODELS:
            print(f"{dataset.name}, {name} ...", file=sys.stderr)
            share = covered(train, test, 10, name, **options)
            rows.append({"dataset": dataset.name, "model": name, "coverage": share})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two small runs of each")
    parser.add_argument("--json", metavar="FILE", help="also write all figures to this file")
    args = parser.parse_args()
    options = {"draws": 50, "burn_in": 50} if args.quick else {"draws": 500, "burn_in": 500}
    made = simulations(2 if args.quick else 20, **options)
    found = real(args.quick, **options)
    facts = machine()
    print_machine(facts)
    head = [f"{level:.0%}" for level in LEVELS]
    print("\nSimulated from the model: share of held-out cells inside central intervals")
    print_table(
        ("model", *head, f"within {TOLERANCE:.0%}"),
        [
            (
                row["model"],
                *(
                    f"{c:.1%} +- {e:.1%}"
                    for c, e in zip(row["coverage"], row["error"], strict=True)
                ),
                "yes" if row["met"] else "NO",
            )
            for row in made
        ],
    )
    print("\nReal matrices: share of held-out cells inside central intervals")
    print_table(
        ("dataset", "model", *head),
        [(r["dataset"], r["model"], *(f"{c:.1%}" for c in r["coverage"])) for r in found],
    )
    write_json(args.json, {"machine": facts, "simulated": made, "real": found})


if __name__ == "__main__":
    main()
