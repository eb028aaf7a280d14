"""Held-out error beside myFM and SMURFF, on shared splits of the real matrices.

    BAYESMF_DATA=... python benchmarks/accuracy.py [--data gdsc,ccle,...] [--models GGGA,...]
                                                   [--ranks 5,10,20] [--json FILE]
    python benchmarks/accuracy.py --readme

Five folds of the observed entries (seed 0), the same for all; the mean over the folds of the mean
squared error on the fold left out, for every method and rank, the best rank of each, and the
seconds per fold there. Every chain has 750 sweeps, of which the last 500 are kept; the peers run
one chain on two threads (myFM on one), presets two chains side by side on two threads. myFM has a
bias for every row and column, and the data less their mean; SMURFF has the data at mean 0 and
variance 1 with adaptive noise, without which its noise does not follow the residuals. Presets are
run as they are, with ``biases=True``, and with biases and a prior of the noise precision that is
chosen among four on a tenth of each training set (SMURFF bounds its precision from above, which
helps where errors have heavy tails). A file that is there already keeps its other matrices;
``--readme`` runs nothing, and puts ``results/accuracy.json`` into the README and the docs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from _common import load, machine, print_machine, print_table, write_json
from _peers import installed, shifted, silence, smurff_draws
from _report import RESULTS, markdown_table, quote
from bayesmf import BayesianMF, ConvergenceWarning, ObservedMatrix, sample
from bayesmf.metrics import mse
from bayesmf.splits import holdout, kfold

DATA = ("gdsc", "ccle", "methylation", "movielens")
MODELS = ("GGGW", "GEE")
TITLES = {
    "gdsc": "GDSC IC50", "ccle": "CCLE IC50", "methylation": "gene body methylation",
    "movielens": "MovieLens 100K",
}  # fmt: skip
FOUND, ROOT = RESULTS / "accuracy.json", Path(__file__).parents[1]
SHARES = (0.0, 0.02, 0.035, 0.06)  # of the data's variance, as a prior guess at the noise
SWEEPS, KEPT = 750, 500

Predictor = Callable[[ObservedMatrix, Any, int], np.ndarray]


def by_preset(name: str, biases: bool, tuned: bool = False) -> Predictor:
    def predict(train: ObservedMatrix, test: Any, rank: int) -> np.ndarray:
        mf = BayesianMF(
            name, rank, draws=KEPT, burn_in=SWEEPS - KEPT, chains=2, biases=biases,
            random_state=0, n_jobs=2, hyperparameters=_noise(train, name, rank) if tuned else None,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return mf.fit(train).predict(test[0], test[1])

    return predict


def _noise(train: ObservedMatrix, name: str, rank: int) -> dict[str, float]:
    """The noise's gamma prior, chosen on a tenth of the training data: the rate holds it up."""
    part, test = holdout(train, 0.1, random_state=0)
    errors = {}
    for share in SHARES:
        rate = 1.0 + 0.5 * share * train.n_observed * train.variance
        posterior = sample(
            part, name, rank, draws=150, burn_in=150, cells=test[:2], biases=True, random_state=0,
            hyperparameters={"beta_tau": rate}, n_jobs=2, chains=2,
        )  # fmt: skip
        errors[rate] = mse(test[2], posterior.predict())
    return {"beta_tau": min(errors, key=errors.__getitem__)}


def by_smurff(train: ObservedMatrix, test: Any, rank: int) -> np.ndarray:
    scale = train.variance**0.5
    unit = shifted(train, train.mean, scale)
    draws = smurff_draws(unit, (test[0], test[1]), rank, 2, SWEEPS - KEPT, KEPT, 1)
    return train.mean + scale * draws.values.mean(axis=0)


def _design(shape: tuple[int, int], rows: np.ndarray, cols: np.ndarray) -> Any:
    entries, ones = np.arange(rows.size), np.ones(rows.size)
    parts = [
        sparse.csr_matrix((ones, (entries, index)), shape=(rows.size, size))
        for index, size in zip((rows, cols), shape, strict=True)
    ]
    return sparse.hstack(parts, format="csr")


def by_myfm(train: ObservedMatrix, test: Any, rank: int) -> np.ndarray:
    import myfm

    rows, cols, values = train.triples()
    model = myfm.MyFMRegressor(rank=rank, random_seed=0)
    with silence():
        model.fit(
            _design(train.shape, rows, cols), values - train.mean, n_iter=SWEEPS,
            n_kept_samples=KEPT, group_shapes=train.shape,
        )  # fmt: skip
        found = model.predict(_design(train.shape, test[0], test[1]))
    return found + train.mean


def methods(models: list[str]) -> dict[str, Predictor]:
    found: dict[str, Predictor] = {}
    for name in models:
        found[name] = by_preset(name, False)
        found[f"{name}, biases"] = by_preset(name, True)
        found[f"{name}, biases, noise tuned"] = by_preset(name, True, tuned=True)
    peers = {"smurff": ("SMURFF", by_smurff), "myfm": ("myFM", by_myfm)}
    return found | dict(peers[name] for name in installed(peers))


def as_markdown(results: dict[str, Any]) -> str:
    """The best rank of every method on every matrix, the best method first."""
    rows = []
    for data, found in results.items():
        best = []
        for method, by_rank in found.items():
            means = {rank: float(np.mean(run["errors"])) for rank, run in by_rank.items()}
            rank = min(means, key=means.__getitem__)
            best.append((means[rank], method, rank, by_rank[rank]["seconds"]))
        title = TITLES[data]
        for error, method, rank, seconds in sorted(best):
            rows.append((title, method, f"{error:#.5g}", str(rank), f"{seconds:.1f}"))
            title = ""
    return markdown_table(("data", "method", "error", "at rank", "s per fold"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--ranks", default="5,10,20")
    parser.add_argument("--json", metavar="FILE", help="also write all figures to this file")
    parser.add_argument("--readme", action="store_true", help="put the results into the README")
    args = parser.parse_args()
    if args.readme:
        for page in (ROOT / "README.md", ROOT / "docs" / "estimators.md"):
            quote(page, "accuracy", as_markdown(json.loads(FOUND.read_text())["errors"]))
        return
    ranks = [int(rank) for rank in args.ranks.split(",")]
    results: dict[str, Any] = {}
    for name in args.data.split(","):
        dataset = load(name)
        if not dataset.real:
            sys.exit(f"{name}: this comparison needs the real matrix; set BAYESMF_DATA.")
        folds = list(kfold(dataset.X, 5, random_state=0))
        for method, predict in methods(args.models.split(",")).items():
            for rank in ranks:
                print(f"{name}, {method}, K = {rank} ...", file=sys.stderr)
                begin = time.perf_counter()
                errors = [mse(test[2], predict(train, test, rank)) for train, test in folds]
                seconds = (time.perf_counter() - begin) / len(folds)
                found = {"errors": errors, "seconds": seconds}
                results.setdefault(name, {}).setdefault(method, {})[rank] = found
        rows = []
        for method, by_rank in results[name].items():
            means = {rank: float(np.mean(found["errors"])) for rank, found in by_rank.items()}
            best = min(means, key=means.__getitem__)
            shown = [f"{means[r]:.5g}" for r in (*ranks, best)]
            rows.append((method, *shown, best, f"{by_rank[best]['seconds']:.1f}"))
        print(f"\n{name}: mean squared error on held-out entries")
        head = ("method", *(f"K = {rank}" for rank in ranks), "best", "at K", "s per fold")
        print_table(head, sorted(rows, key=lambda row: float(row[-3])))
    facts = machine()
    print_machine(facts)
    if args.json and Path(args.json).exists():
        known = json.loads(Path(args.json).read_text())["errors"]
        results = {name: (known | results)[name] for name in DATA if name in known | results}
    write_json(args.json, {"machine": facts, "errors": results})


if __name__ == "__main__":
    main()
