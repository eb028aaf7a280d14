"""Held-out error beside myFM and SMURFF, on shared splits of the real matrices.

Five folds of the observed entries (seed 0), the same for all; the mean over the folds of the mean
squared error on the fold left out, for every method and rank, the best rank of each, and the
seconds per fold there. Every chain has 750 sweeps, of which the last 500 are kept; the peers run
one chain on two threads (myFM on one), presets two chains side by side on two threads. myFM has a
bias for every row and column, and the data less their mean; SMURFF has the data at mean 0 and
variance 1 with adaptive noise, without which its noise does not follow the residuals. Presets are
run as they are, with ``biases=True``, and with biases and a prior of the noise precision that is
chosen among four on a tenth of each training set (SMURFF bounds its precision from above, which
helps where errors have heavy tails). ``--data``, ``--models`` and ``--ranks`` choose what is run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesmf import ObservedMatrix, sample
from bayesmf.metrics import mse
from bayesmf.splits import holdout, kfold
from benchmarks.common import TITLES, Dataset, facts, fitted, load_real, say
from benchmarks.peers import installed, myfm_design, shifted, silence, smurff_draws
from benchmarks.report import Options, table

MODELS, RANKS = ("GGGW", "GEE"), (5, 10, 20)
PEERS = ("SMURFF", "myFM")
SHARES = (0.0, 0.02, 0.035, 0.06)  # of the data's variance, as a prior guess at the noise


class Length(NamedTuple):
    """How many sweeps a chain throws away and keeps, and how many it has to choose a prior."""

    burn_in: int = 250
    kept: int = 500
    tuning: int = 150


Predictor = Callable[[ObservedMatrix, Any, int, Length], np.ndarray]


def by_preset(name: str, biases: bool, tuned: bool = False) -> Predictor:
    def predict(train: ObservedMatrix, test: Any, rank: int, length: Length) -> np.ndarray:
        mf = fitted(
            train, name, rank, draws=length.kept, burn_in=length.burn_in, chains=2, biases=biases,
            hyperparameters=_noise(train, name, rank, length.tuning) if tuned else None,
        )  # fmt: skip
        return mf.predict(test[0], test[1])

    return predict


def _noise(train: ObservedMatrix, name: str, rank: int, sweeps: int) -> dict[str, float]:
    """The noise's gamma prior, chosen on a tenth of the training data: the rate holds it up."""
    part, test = holdout(train, 0.1, random_state=0)
    errors = {}
    for share in SHARES:
        rate = 1.0 + 0.5 * share * train.n_observed * train.variance
        posterior = sample(
            part, name, rank, draws=sweeps, burn_in=sweeps, cells=test[:2], biases=True,
            random_state=0, hyperparameters={"beta_tau": rate}, n_jobs=2, chains=2,
        )  # fmt: skip
        errors[rate] = mse(test[2], posterior.predict())
    return {"beta_tau": min(errors, key=errors.__getitem__)}


def by_smurff(
    train: ObservedMatrix, test: Any, rank: int, length: Length, threads: int = 2
) -> np.ndarray:
    scale = train.variance**0.5
    unit = shifted(train, train.mean, scale)
    draws = smurff_draws(unit, (test[0], test[1]), rank, threads, length.burn_in, length.kept, 1)
    return train.mean + scale * draws.values.mean(axis=0)


def by_myfm(train: ObservedMatrix, test: Any, rank: int, length: Length) -> np.ndarray:
    import myfm

    rows, cols, values = train.triples()
    model = myfm.MyFMRegressor(rank=rank, random_seed=0)
    with silence():
        model.fit(
            myfm_design(train.shape, rows, cols), values - train.mean, group_shapes=train.shape,
            n_iter=length.burn_in + length.kept, n_kept_samples=length.kept,
        )  # fmt: skip
        found = model.predict(myfm_design(train.shape, test[0], test[1]))
    return found + train.mean


def methods(options: Options) -> dict[str, Predictor]:
    """What is compared, by name."""
    found: dict[str, Predictor] = {}
    for name in options.models or (MODELS[:1] if options.quick else MODELS):
        found[name] = by_preset(name, False)
        found[f"{name}, biases"] = by_preset(name, True)
        found[f"{name}, biases, noise tuned"] = by_preset(name, True, tuned=True)
    peers = {"smurff": ("SMURFF", by_smurff), "myfm": ("myFM", by_myfm)}
    return found | dict(peers[name] for name in installed(peers if options.peers else ()))


def measure(dataset: Dataset, options: Options) -> dict[str, Any]:
    """Errors of all folds and seconds per fold, by method and rank."""
    folds = list(kfold(dataset.X, 2 if options.quick else 5, random_state=0))
    length = Length(5, 5, 5) if options.quick else Length()
    results: dict[str, Any] = {}
    for method, predict in methods(options).items():
        for rank in options.ranks or (RANKS[:1] if options.quick else RANKS):
            say(f"{dataset.name}, {method}, K = {rank}")
            begin = time.perf_counter()
            errors = [mse(test[2], predict(train, test, rank, length)) for train, test in folds]
            seconds = (time.perf_counter() - begin) / len(folds)
            results.setdefault(method, {})[rank] = {"errors": errors, "seconds": seconds}
    return results


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The error at every rank; then the best rank of every method, the best method first."""
    made, best = [], []
    for name, title in TITLES.items():
        ordered = []
        for method, by_rank in data["errors"].get(name, {}).items():
            means = {rank: float(np.mean(run["errors"])) for rank, run in by_rank.items()}
            rank = min(means, key=means.__getitem__)
            ordered.append((means[rank], method, str(rank), by_rank[rank]["seconds"], means))
        for error, method, rank, seconds, _ in sorted(ordered, key=lambda row: row[:2]):
            best.append((title, method, f"{error:#.5g}", rank, f"{seconds:.1f}"))
            title = ""
        if ordered:
            rows = [(row[1], *(f"{mean:#.5g}" for mean in row[-1].values())) for row in ordered]
            header = ("method", *(f"K = {rank}" for rank in ordered[0][-1]))
            made.append(table(f"Mean squared error on held-out entries, {name}", header, rows))
    header = ("data", "method", "error", "at rank", "s per fold")
    return [*made, table("At the best rank of each", header, best, quoted=True)]


def part(options: Options) -> dict[str, Any]:
    """Errors of presets and peers on the real matrices."""
    names = options.data or (list(TITLES)[:1] if options.quick else TITLES)
    datasets = [load_real(name, options.quick) for name in names]
    data = {"errors": {dataset.name: measure(dataset, options) for dataset in datasets}}
    return {"claims": [], "tables": tables(data), "data": data, "datasets": facts(*datasets)}
