"""Effective samples per second of held-out predictions: GGGW beside SMURFF.

Both fit the same model at rank 20 to the same training entries, brought to mean 0 and variance 1,
and draw the predictions U V^T of the same 100 cells, which were held out. Every round is a chain of
either with another seed and the same numbers of sweeps for burn-in and for draws. The effective
sample size of a cell is its mean over the chains; the figure is the median over the cells, divided
by the seconds of the fastest chain's sweeps without burn-in and predictions.

Effective samples can be compared only where both sample one distribution: a chain that shrinks too
much, or has not arrived, has more or fewer of them for the wrong reason. So the posterior means of
the cells must correlate, and their standard deviations must be alike; else there is no figure.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from bayesmf import ObservedMatrix, Problem, chain, preset
from bayesmf.splits import holdout
from benchmarks.common import Dataset, facts, load, say
from benchmarks.peers import Draws, installed, shifted, smurff_draws
from benchmarks.report import Options, claim, table

TARGET = 4.0
CELLS = 100
CORRELATION, SPREADS = 0.95, (0.8, 1.25)  # between samplers of one posterior


class Plan(NamedTuple):
    """The data of one comparison and the length of its chains."""

    train: ObservedMatrix
    cells: tuple[np.ndarray, np.ndarray]
    truth: np.ndarray
    scale: float  # of the data before they were brought to unit variance
    rank: int
    burn_in: int
    draws: int


def effective_size(draws: np.ndarray) -> np.ndarray:
    """Effective sample size of every column of (draws, quantities).

    Geyer's initial monotone sequence: sums of neighbouring autocorrelations are added while they
    are positive, none larger than the one before. Draws that go to and fro may be worth more than
    independent ones, but no more than log10(n) times as many are believed.
    """
    n = len(draws)
    deviations = draws - draws.mean(axis=0)
    spectrum = np.fft.rfft(deviations, 2 * n, axis=0)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[: n - n % 2]
    pairs = (covariance[0::2] + covariance[1::2]) / covariance[0]
    pairs = np.minimum.accumulate(pairs, axis=0)
    sums = np.where(pairs > 0, pairs, 0.0).sum(axis=0)
    return n / np.maximum(2 * sums - 1, 1 / np.log10(n))


def preset_draws(plan: Plan, name: str, threads: int, seed: int) -> Draws:
    """Every draw of a preset's predictions of the cells, and the seconds of those sweeps alone."""
    problem = Problem.of(plan.train, preset(name), plan.rank, threads=threads)
    states = chain(problem, random_state=seed)
    rows, cols = plan.cells
    values, seconds = np.empty((plan.draws, rows.size)), 0.0
    for sweep in range(-plan.burn_in, plan.draws):
        begin = time.perf_counter()
        state = next(states)
        elapsed = time.perf_counter() - begin
        if sweep >= 0:
            seconds += elapsed
            values[sweep] = np.einsum("tk,tk->t", state.U[rows], state.V[cols])
    return Draws(values, seconds)


def plan_of(dataset: Dataset, quick: bool) -> Plan:
    """Hold out a tenth of the entries, and choose the cells to follow among them."""
    train, (rows, cols, values) = holdout(dataset.X, 0.1, random_state=0)
    chosen = np.random.default_rng(0).permutation(values.size)[:CELLS]
    scale = train.variance**0.5
    truth = (values[chosen] - train.mean) / scale
    lengths = (3, 10, 40) if quick else (20, 200, 600)
    unit = shifted(train, train.mean, scale)
    return Plan(unit, (rows[chosen], cols[chosen]), truth, scale, *lengths)


def measure(dataset: Dataset, peers: bool, options: Options) -> list[dict[str, Any]]:
    """Chains of GGGW, and of SMURFF where it is there, in turns."""
    plan = plan_of(dataset, options.quick)
    chains: dict[str, list[Draws]] = {"GGGW": [], "SMURFF": []} if peers else {"GGGW": []}
    preset_draws(plan._replace(burn_in=1, draws=1), "GGGW", options.threads, 0)  # compiles
    for seed in range(options.repeats):
        say(f"{dataset.name}, chain {seed + 1} of {options.repeats}")
        chains["GGGW"].append(preset_draws(plan, "GGGW", options.threads, seed))
        if peers:
            chains["SMURFF"].append(
                smurff_draws(
                    plan.train, plan.cells, plan.rank, options.threads,
                    plan.burn_in, plan.draws, seed + 1,
                )
            )  # fmt: skip
    return [
        {"name": name, "dataset": dataset.name, **summary(plan, found)}
        for name, found in chains.items()
    ]


def summary(plan: Plan, chains: list[Draws]) -> dict[str, Any]:
    """Figures of one sampler on one dataset."""
    sizes = np.mean([effective_size(chain.values) for chain in chains], axis=0)
    seconds = min(chain.seconds for chain in chains)
    mean = np.mean([chain.values.mean(axis=0) for chain in chains], axis=0)
    spread = np.mean([chain.values.std(axis=0) for chain in chains], axis=0)
    return {
        "rank": plan.rank,
        "burn_in": plan.burn_in,
        "draws": plan.draws,
        "effective_samples": float(np.median(sizes)),
        "effective_samples_of_cells": sizes.tolist(),
        "seconds": seconds,
        "per_second": float(np.median(sizes)) / seconds,
        "held_out_mse": float(np.mean((mean - plan.truth) ** 2)) * plan.scale**2,
        "sd": float(np.median(spread)) * plan.scale,
        "means_of_cells": (mean * plan.scale).tolist(),
        "sds_of_cells": (spread * plan.scale).tolist(),
    }


def agreement(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Whether two samplers drew from one posterior, by the means and spreads of the cells."""
    means, spreads = (
        np.array([r[key] for r in (one, other)]) for key in ("means_of_cells", "sds_of_cells")
    )
    correlation = float(np.corrcoef(means)[0, 1])
    ratio = float(np.median(spreads[0] / spreads[1]))
    same = correlation >= CORRELATION and SPREADS[0] <= ratio <= SPREADS[1]
    return {"correlation": correlation, "ratio of sds": ratio, "same": bool(same)}


def compare(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """State the ratio of effective samples per second, or why there is none."""
    title = f"effective samples per second, GGGW / SMURFF, {ours['dataset']}"
    found = agreement(ours, theirs)
    if not found["same"]:
        title += (
            f" (not comparable: means correlate by {found['correlation']:.2f}, "
            f"ratio of sds {found['ratio of sds']:.2f})"
        )
        return claim(title, None, "times", least=TARGET)
    return claim(title, ours["per_second"] / theirs["per_second"], "times", least=TARGET)


def part(options: Options) -> dict[str, Any]:
    """Effective samples per second on GDSC and MovieLens."""
    peers = options.peers and bool(installed(["smurff"]))
    datasets = [load(name, options.quick) for name in ("gdsc", "movielens")]
    results = [r for dataset in datasets for r in measure(dataset, peers, options)]
    of = {(r["name"], r["dataset"]): r for r in results}
    pairs = [[of.get((who, d.name)) for who in ("GGGW", "SMURFF")] for d in datasets]
    claims = [compare(*pair) for pair in pairs if None not in pair]
    checks = {pair[0]["dataset"]: agreement(*pair) for pair in pairs if None not in pair}
    keys = ("name", "dataset", "draws", "effective_samples", "seconds", "per_second")
    said = [
        f"{name}: means correlate by {c['correlation']:.3f}, ratio of sds {c['ratio of sds']:.2f}"
        for name, c in checks.items()
    ]
    shown = table(
        f"Effective samples of {CELLS} held-out cells, median, K = {results[0]['rank']}",
        ["", "dataset", "draws", "effective", "seconds", "per second", "sd", "held-out error"],
        [[r[key] for key in (*keys, "sd", "held_out_mse")] for r in results],
        "; ".join(said),
    )
    return {
        "claims": claims,
        "tables": [shown],
        "data": {"chains": results, "agreement": checks},
        "datasets": facts(*datasets),
    }
