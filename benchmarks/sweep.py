"""Milliseconds per Gibbs sweep of every preset, next to SMURFF and myFM in the same run.

    python benchmarks/sweep.py [--repeats 3] [--ranks 5 20 50] [--threads 2] [--models GGG GGGW]
                               [--datasets gdsc movielens] [--no-peers] [--json FILE]

For every dataset and rank all presets and peers are warmed up first, then measured in rounds: each
round gives every one of them a batch of sweeps, so that all see the machine in the same condition,
and the best round counts. A batch lasts about 0.3 seconds or more. Predictions are not part of a
sweep, neither here nor for the peers. Use an idle machine: SMURFF's threads spin while they wait
for each other, so that one busy core makes it several times slower, and the presets much less. On
Linux the script says how much other processes ran meanwhile, and marks ratios taken on a busy
machine.

A preset's first call (set-up, compiling the kernels or loading them from the cache, one sweep) is
shown apart. Presets share kernels, so the first one of a group compiles for those that follow;
first_use.py measures a preset alone with an empty cache.

The peers are optional (``pip install smurff myfm``). SMURFF has normal priors on both sides, which
is GGGW, and as many threads as the presets; myFM trains on one thread. Both get the data less its
mean. Their time per sweep is the difference between a long and a short run, each the best of all
rounds, divided by the sweeps between them, so that set-up cancels. SMURFF is driven step by step,
which spares it the progress bar that its own loop draws at every sweep.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from _common import (
    DATASETS,
    Dataset,
    load,
    machine,
    print_machine,
    print_table,
    verdict,
    version,
    watch_other_work,
    write_json,
)
from bayesmf.observed import ObservedMatrix
from bayesmf.presets import PRESETS, preset
from bayesmf.sampler import Problem, chain

WARM_UP = 5  # sweeps after the first one that are not timed
SHORT_RUN = 5  # sweeps in a peer's short run
BATCH_SECONDS = 0.3
# The project's targets: SMURFF's time over that of GGGW, and others over GGG on GDSC at K = 20.
SMURFF_TARGETS = {
    ("gdsc", 5): 2.5,
    ("gdsc", 20): 2.5,
    ("movielens", 5): 2.0,
    ("movielens", 20): 2.0,
}
GGG_TARGETS = {"GEE": 1.0, "GVG": 3.0, "PGG": 8.0}
BUSY = 0.1  # cores at work for other processes from which figures are not to be trusted

Run = Callable[[int], float]  # seconds that so many sweeps take


class PresetTimer:
    """Times batches of sweeps of one chain that goes on and on."""

    def __init__(self, X: ObservedMatrix, name: str, rank: int, threads: int) -> None:
        begin = time.perf_counter()
        problem = Problem.of(X, preset(name), rank, threads=threads)
        self._states = chain(problem, random_state=0)
        self._state = next(self._states)
        self.first_call = time.perf_counter() - begin
        self._seconds(WARM_UP)
        self.sweeps = batch_length(self._seconds)
        self._batches: list[float] = []

    def _seconds(self, sweeps: int) -> float:
        begin = time.perf_counter()
        for _ in range(sweeps):
            self._state = next(self._states)
        return time.perf_counter() - begin

    def round(self) -> None:
        """Time one batch."""
        self._batches.append(self._seconds(self.sweeps))

    def result(self) -> dict[str, Any]:
        """Milliseconds per sweep, whether the chain is still sound, seconds of the first call."""
        rounds = [1000 * seconds / self.sweeps for seconds in self._batches]
        return {
            "ms": min(rounds),
            "finite": bool(np.isfinite(self._state.error)),
            "rounds_ms": rounds,
            "sweeps_per_batch": self.sweeps,
            "first_call_seconds": self.first_call,
        }


class PeerTimer:
    """Times whole runs of a peer, short and long."""

    def __init__(self, run: Run) -> None:
        self._run = run
        run(SHORT_RUN)
        self.sweeps = batch_length(lambda sweeps: run(SHORT_RUN + sweeps) - run(SHORT_RUN))
        self._short: list[float] = []
        self._long: list[float] = []

    def round(self) -> None:
        """Time a short and a long run."""
        self._short.append(self._run(SHORT_RUN))
        self._long.append(self._run(SHORT_RUN + self.sweeps))

    def result(self) -> dict[str, Any]:
        """Milliseconds per sweep and the seconds of all runs."""
        return {
            "ms": 1000 * (min(self._long) - min(self._short)) / self.sweeps,
            "short_runs_seconds": self._short,
            "long_runs_seconds": self._long,
            "sweeps_between": self.sweeps,
        }


def batch_length(seconds: Run) -> int:
    """Number of sweeps that take long enough to be timed; trying them out warms up, too."""
    sweeps = 4
    while seconds(sweeps) < BATCH_SECONDS:
        sweeps *= 2
    return sweeps


def smurff_run(X: ObservedMatrix, rank: int, threads: int) -> Run:
    """Bayesian probabilistic matrix factorisation by SMURFF."""
    import smurff

    rows, cols, values = X.triples()
    train = sparse.coo_matrix((values - X.mean, (rows, cols)), shape=X.shape)

    def run(sweeps: int) -> float:
        with silence():
            session = smurff.TrainSession(
                priors=["normal", "normal"], num_latent=rank, burnin=sweeps - 1, nsamples=1,
                num_threads=threads, verbose=0, seed=1,
            )  # fmt: skip
            session.addTrainAndTest(train, None, smurff.SampledNoise(1.0))
            begin = time.perf_counter()
            session.init()
            while session.step():
                pass
            return time.perf_counter() - begin

    return run


def myfm_run(X: ObservedMatrix, rank: int, threads: int) -> Run:
    """Bayesian factorisation machine by myFM, whose training has one thread whatever is asked."""
    import myfm

    rows, cols, values = X.triples()
    entries, ones = np.arange(values.size), np.ones(values.size)
    design = sparse.hstack(
        [
            sparse.csr_matrix((ones, (entries, index)), shape=(values.size, size))
            for index, size in zip((rows, cols), X.shape, strict=True)
        ],
        format="csr",
    )

    def run(sweeps: int) -> float:
        model = myfm.MyFMRegressor(rank=rank, random_seed=0)
        with silence():
            begin = time.perf_counter()
            model.fit(
                design, values - X.mean, n_iter=sweeps, n_kept_samples=1, group_shapes=X.shape
            )
            return time.perf_counter() - begin

    return run


PEERS: dict[str, Callable[[ObservedMatrix, int, int], Run]] = {
    "smurff": smurff_run,
    "myfm": myfm_run,
}


@contextmanager
def silence() -> Iterator[None]:
    """Send standard output and error of this process, compiled code included, to nowhere."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for descriptor in (*saved, nowhere):
            os.close(descriptor)


def installed_peers() -> list[str]:
    """Names of the peers that can be imported; says which cannot."""
    found = []
    for name in PEERS:
        try:
            import_module(name)
        except ImportError:
            print(f"{name}: not installed")
        else:
            found.append(name)
    return found


def measure(
    dataset: Dataset, rank: int, models: list[str], peers: list[str], args: argparse.Namespace
) -> list[dict[str, Any]]:
    """Measure all contestants on one dataset at one rank."""
    print(f"{dataset.name}, K = {rank} ...", file=sys.stderr)
    timers: dict[str, PresetTimer | PeerTimer] = {
        name: PresetTimer(dataset.X, name, rank, args.threads) for name in models
    }
    timers |= {name: PeerTimer(PEERS[name](dataset.X, rank, args.threads)) for name in peers}
    busy_elsewhere = watch_other_work()
    for _ in range(args.repeats):
        for timer in timers.values():
            timer.round()
    place = {"dataset": dataset.name, "rank": rank, "cores_busy_elsewhere": busy_elsewhere()}
    return [{"name": name, **place, **timer.result()} for name, timer in timers.items()]


def tracked_ratios(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ratios that the project tracks, with their targets, where both figures were measured."""
    measured = {(r["dataset"], r["rank"], r["name"]): r for r in results}
    wanted = [
        (dataset, rank, "smurff", "GGGW", "at least", SMURFF_TARGETS.get((dataset, rank)))
        for dataset, rank in places(results)
    ]
    wanted += [("gdsc", 20, name, "GGG", "at most", limit) for name, limit in GGG_TARGETS.items()]
    ratios = []
    for dataset, rank, top, bottom, kind, limit in wanted:
        pair = [measured.get((dataset, rank, name)) for name in (top, bottom)]
        if None in pair:
            continue
        value = pair[0]["ms"] / pair[1]["ms"]
        judgement = "-" if limit is None else verdict(value, limit, at_least=kind == "at least")
        if not all(sound(r) for r in pair):
            judgement = "void (not finite)"
        elif (pair[0]["cores_busy_elsewhere"] or 0) > BUSY:
            judgement += " (machine busy)"
        target = "-" if limit is None else f"{kind} {limit:g}"
        ratios.append(
            {"ratio": f"{top} / {bottom}", "dataset": dataset, "rank": rank, "value": value,
             "target": target, "verdict": judgement}
        )  # fmt: skip
    return ratios


def sound(result: dict[str, Any]) -> bool:
    """Whether a chain stayed among the finite numbers; not known of peers."""
    return result.get("finite", True)


def places(results: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """The pairs of dataset and rank that were measured, in order."""
    return list(dict.fromkeys((r["dataset"], r["rank"]) for r in results))


def print_results(results: list[dict[str, Any]]) -> None:
    """Print a row for every preset and peer, and how busy the machine was otherwise."""
    columns = places(results)
    rows: dict[str, list[str]] = {}
    for r in results:
        rows.setdefault(r["name"], [r["name"]]).append(f"{r['ms']:#.3g}" + "!" * (not sound(r)))
    first_calls = {r["name"]: r.get("first_call_seconds") for r in reversed(results)}
    busy = {(r["dataset"], r["rank"]): r["cores_busy_elsewhere"] for r in results}
    print("\nMilliseconds per sweep; on the right, seconds of the first call in this process")
    print_table(
        ["", *(f"{dataset} K={rank}" for dataset, rank in columns), "first call"],
        [
            *([*row, decimals(first_calls[name])] for name, row in rows.items()),
            ["cores busy elsewhere", *(decimals(busy[place]) for place in columns), ""],
        ],
    )
    if not all(sound(r) for r in results):
        print("! The chain did not stay finite: its time means nothing.")


def print_ratios(ratios: list[dict[str, Any]]) -> None:
    keys = ("ratio", "dataset", "rank", "value", "target", "verdict")
    print("\nRatios of times")
    print_table(
        ["", "dataset", "K", "ratio", "target", ""],
        [[decimals(r[key]) if key == "value" else r[key] for key in keys] for r in ratios],
    )


def decimals(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3, help="rounds; the best one counts")
    parser.add_argument("--ranks", type=int, nargs="+", default=[5, 20, 50], help="numbers K")
    parser.add_argument("--threads", type=int, default=2, help="threads of presets and SMURFF")
    parser.add_argument(
        "--models", nargs="+", choices=PRESETS, default=list(PRESETS), metavar="MODEL",
        help="presets to measure (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--datasets", nargs="+", choices=DATASETS, default=list(DATASETS), help="matrices"
    )
    parser.add_argument("--no-peers", action="store_true", help="leave SMURFF and myFM out")
    parser.add_argument("--json", metavar="FILE", help="also write all figures to this file")
    return parser.parse_args()


def main() -> None:
    args = parse()
    print_machine(machine())
    peers = [] if args.no_peers else installed_peers()
    datasets = [load(name) for name in args.datasets]
    for dataset in datasets:
        print(f"{dataset.name}: {'real' if dataset.real else 'SYNTHETIC'} data, {dataset.X!r}")
    results = [
        result
        for dataset in datasets
        for rank in args.ranks
        for result in measure(dataset, rank, args.models, peers, args)
    ]
    ratios = tracked_ratios(results)
    print_results(results)
    if ratios:
        print_ratios(ratios)
    write_json(
        args.json,
        {
            "peers": {name: version(name) for name in PEERS},
            "settings": vars(args),
            "datasets": {dataset.name: dataset.facts() for dataset in datasets},
            "sweeps": results,
            "ratios": ratios,
        },
    )


if __name__ == "__main__":
    main()
