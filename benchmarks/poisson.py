"""Time to the same held-out log-likelihood on MovieLens 100K: PGG and PGGG beside hpfrec.

hpfrec fits PGGG's model by variational inference, at the same rank, to the same nine tenths of the
ratings; the figure is the mean Poisson log-probability of the others. The peer's is that of its
estimated rates after the number of iterations, out of a list, that makes it largest; its time is
that of so many iterations, set-up left out. Ours is that of the running posterior mean of the
rates, after ten sweeps that are thrown away; its time runs from the start, set-up and those sweeps
included, to the first sweep at which it is no smaller than the peer's best.

The peer knows no missing entries: cells without a rating count as zeros. So there are two
comparisons. In "unrated cells missing" ours leaves them out, as it should with ratings. In "unrated
cells zero" ours is given the very matrix that the peer sees, a million zeros included.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from bayesmf import ObservedMatrix, Problem, chain, preset
from bayesmf.splits import holdout
from benchmarks.common import facts, load, say
from benchmarks.peers import hpfrec_fit, installed
from benchmarks.report import Options, claim, table

RANK = 20
BURN_IN = 10
MOST_SWEEPS = 300
ITERATIONS = (1, 2, 5, 10, 15, 20, 25, 30, 40, 50, 70, 100)
MODELS = ("PGG", "PGGG")


class HeldOut(NamedTuple):
    """Cells that were held out, and their counts."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray

    def rates(self, U: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Rate of every cell given the factors."""
        return np.einsum("tk,tk->t", U[self.rows], V[self.cols])

    def log_likelihood(self, rates: np.ndarray) -> float:
        """Mean Poisson log-probability."""
        terms = self.values * np.log(rates) - rates - gammaln(self.values + 1)
        return float(terms.mean())


def with_zeros(X: ObservedMatrix) -> ObservedMatrix:
    """Return the matrix with zero in every cell that is not observed."""
    rows, cols, values = X.triples()
    full = np.zeros(X.shape)
    full[rows, cols] = values
    return ObservedMatrix.of(full)


def peer(train: ObservedMatrix, test: HeldOut, rank: int, options: Options) -> dict[str, Any]:
    """The best value of hpfrec over its iterations, and the seconds until it has it."""
    counts = ITERATIONS[:4] if options.quick else ITERATIONS
    values = {}
    for iterations in counts:
        U, V, _ = hpfrec_fit(train, rank, options.threads, iterations)
        values[iterations] = test.log_likelihood(test.rates(U, V))
    best = max(values, key=lambda iterations: values[iterations])
    seconds = {
        n: min(hpfrec_fit(train, rank, options.threads, n)[2] for _ in range(options.repeats))
        for n in (1, 1 + best)
    }
    return {
        "name": "hpfrec",
        "log_likelihood": values[best],
        "iterations": best,
        "seconds": seconds[1 + best] - seconds[1],
        "log_likelihoods": values,
    }


def until(
    goal: float, X: ObservedMatrix, test: HeldOut, name: str, rank: int, options: Options
) -> dict[str, Any]:
    """Sweeps and seconds until the running mean of a preset's rates is as good as the goal."""
    begin = time.perf_counter()
    problem = Problem.of(X, preset(name), rank, threads=options.threads)
    states = chain(problem, random_state=0)
    mean, aside, value = np.zeros(test.values.size), 0.0, -np.inf
    burn_in, most = (2, 20) if options.quick else (BURN_IN, MOST_SWEEPS)
    sweep = 0
    while value < goal and sweep < most:
        sweep += 1
        state = next(states)
        if sweep > burn_in:
            mean += (test.rates(state.U, state.V) - mean) / (sweep - burn_in)
            paused = time.perf_counter()
            value = test.log_likelihood(mean)
            aside += time.perf_counter() - paused
    seconds = time.perf_counter() - begin - aside
    reached = value >= goal
    return {
        "name": name,
        "log_likelihood": value,
        "sweeps": sweep,
        "seconds": seconds if reached else None,
    }


def ours(
    goal: float, X: ObservedMatrix, test: HeldOut, name: str, rank: int, options: Options
) -> dict[str, Any]:
    """The fastest of several runs, which all draw the same; a first one compiles."""
    until(goal, X, test, name, rank, options._replace(quick=True))
    runs = [until(goal, X, test, name, rank, options) for _ in range(options.repeats)]
    return min(runs, key=lambda run: run["seconds"] or np.inf)


def part(options: Options) -> dict[str, Any]:
    """Seconds to the peer's best held-out log-likelihood."""
    if not (options.peers and installed(["hpfrec"])):
        return {"claims": [], "tables": [], "data": None}
    dataset = load("movielens", options.quick)
    rank = 3 if options.quick else RANK
    train, entries = holdout(dataset.X, 0.1, random_state=0)
    test = HeldOut(*entries)
    say("hpfrec")
    goal = peer(train, test, rank, options)
    results, claims = [], []
    for unrated, X in (("missing", train), ("zero", with_zeros(train))):
        for name in MODELS:
            say(f"{name}, unrated cells {unrated}")
            found = ours(goal["log_likelihood"], X, test, name, rank, options)
            results.append({"unrated": unrated, **found})
            ratio = found["seconds"] and found["seconds"] / goal["seconds"]
            title = f"time to hpfrec's held-out log-likelihood, {name} / hpfrec"
            claims.append(claim(f"{title}, unrated cells {unrated}", ratio, "times", most=1))
    keys = ("name", "unrated", "sweeps", "seconds", "log_likelihood")
    shown = [*results, {**goal, "unrated": "zero", "sweeps": goal["iterations"]}]
    return {
        "claims": claims,
        "tables": [
            table(
                f"Until the held-out log-likelihood is hpfrec's best, movielens, K = {rank}",
                ["", "unrated cells", "sweeps", "seconds", "held-out log-likelihood"],
                [[r[key] for key in keys] for r in shown],
            )
        ],
        "data": {"peer": goal, "ours": results},
        "datasets": facts(dataset),
    }
