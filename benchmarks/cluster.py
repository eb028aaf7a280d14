"""One chain on a Dask cluster: what it costs beside threads, what it sends, and a model of both.

The workers are processes on this machine with one thread each. *Overhead*: seconds per sweep of two
workers over those of one process with two threads, at 10^7 entries and rank 20 (GGGW). *Bytes*:
what passes the loopback device during the sweeps, beside what the model says. *Model*: `seconds`,
with figures of this machine that are measured apart from the sweeps it is compared with, and,
beyond what can be measured here, its extrapolation to a hundred workers and 10^10 entries.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesmf import ObservedMatrix, Problem, State, preset
from bayesmf.sampler.cluster import Crew
from bayesmf.sampler.shard import Shard
from bayesmf.sampler.start import initial_state
from bayesmf.sampler.sweep import move_scales, sweep, update_hyper
from bayesmf.streams import Stream
from benchmarks.common import say, synthetic
from benchmarks.report import Options, claim, table

MODEL, RANK = "GGGW", 20
SHAPE, OBSERVED = (100_000, 20_000), 10_000_000
WORKERS = (1, 2, 4)
OVERHEAD, BYTES = 1.6, 0.1  # targets
WARM_UP = 2
FAR = (10_000_000, 1_000_000, 10_000_000_000, 100)  # rows, columns, entries, workers
NETWORK = 1.25e9  # bytes per second that each worker can send and receive there: 10 Gbit/s
_LOOPBACK = Path("/proc/net/dev")


class Machine(NamedTuple):
    """What sweeps depend on, measured without a cluster's sweeps."""

    entry: float  # seconds of one core per observed entry, at the rank
    side: float  # seconds per row and column of what every worker does for itself
    byte: float  # seconds per byte that a worker sends while it receives another one
    letter: float  # seconds until a short letter has arrived
    cores: int


def bytes_between(rows: int, cols: int, rank: int, shards: int) -> int:
    """Bytes that the shards send to each other in a sweep of a model without biases.

    Each gives its rows of both sides' factors to all others, and the squared errors of its columns.
    """
    return 8 * (shards - 1) * ((rows + cols) * rank + cols)


def bytes_to_chain(rows: int, cols: int, rank: int) -> int:
    """Bytes of the state that the first shard tells after a sweep; hyper-variables are few."""
    return 8 * (rows + cols) * rank


def seconds(
    m: Machine, rows: int, cols: int, entries: int, rank: int, shards: int, network: float = np.inf
) -> dict[str, float]:
    """Seconds per sweep by what they are spent on, the workers sharing the cores of one machine.

    ``network`` is the most bytes per second of a worker, where workers have machines of their own.
    """
    crowd, byte = max(1.0, shards / m.cores), max(m.byte, 1 / network)
    return {
        "own rows": m.entry * entries / shards * crowd,
        "everybody": m.side * (rows + cols) * crowd,
        "letters": bytes_between(rows, cols, rank, shards) / shards * byte * crowd + 2 * m.letter,
        "state": bytes_to_chain(rows, cols, rank) * byte,
    }


# --- Measurements


class Probe(Shard):
    """A shard that does nothing but exchange letters."""

    async def probe(self, size: int, times: int) -> float:
        """Seconds per exchange of so many numbers."""
        return await self._loop.run_in_executor(self._thread, self._probe, size, times)

    def _probe(self, size: int, times: int) -> float:
        self._attempt += 1
        self._step = 0
        numbers = np.zeros(size)
        begin = time.perf_counter()
        for _ in range(times):
            self.exchange([[numbers]] * self.size)
        return (time.perf_counter() - begin) / times


def letters(client: Any) -> tuple[float, float]:
    """Seconds per byte and of an empty letter, between the first two workers."""
    probes = []
    for number, address in enumerate(list(client.nthreads())[:2]):
        key = f"probe-{number}"
        future = client.submit(Probe, key=key, workers=[address], actor=True)
        probes.append((address, key, future, future.result()))
    for number, probe in enumerate(probes):
        probe[3].join(number, [found[:2] for found in probes]).result()

    def exchange(size: int, times: int) -> float:
        futures = [probe[3].probe(size, times) for probe in probes]
        return max(float(future.result()) for future in futures)

    exchange(10, 10)
    short, long = exchange(10, 50), min(exchange(1_000_000, 5) for _ in range(3))
    return max(0.0, long - short) / 8e6, short


def in_turns(
    steps: list[Callable[[State], State]], states: list[State], times: int
) -> tuple[list[float], list[State]]:
    """The shortest of some sweeps of each kind, in turns, so that all meet the same machine."""
    best = [np.inf] * len(steps)
    for _ in range(times):
        for k, step in enumerate(steps):
            begin = time.perf_counter()
            states[k] = step(states[k])
            best[k] = min(best[k], time.perf_counter() - begin)
    return best, states


def replicated(problem: Problem, state: State) -> float:
    """Seconds of what every worker does for itself: copies, scales, hyper-variables."""
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        new, stream = state.copy(), Stream(state.seed, state.chain, state.sweep + 1, 1)
        move_scales(problem, new, stream)
        for axis in (0, 1):
            update_hyper(problem, new, axis, stream)
        best = min(best, time.perf_counter() - begin)
    return best


def on_loopback() -> int:
    """Bytes that processes of this machine have sent to each other so far."""
    line = next(line for line in _LOOPBACK.read_text().splitlines() if line.strip()[:3] == "lo:")
    return int(line.split(":")[1].split()[0])


def on_workers(problem: Problem, state: State, workers: int, times: int) -> dict[str, Any]:
    """Seconds and bytes per sweep of so many workers, in turns with one process with threads."""
    from distributed import Client, LocalCluster

    say(f"{workers} workers")
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster.scheduler_address, direct_to_workers=True) as client,
    ):  # fmt: skip
        found: dict[str, Any] = {}
        if workers == 2:
            found["byte"], found["letter"] = letters(client)
        begin = time.perf_counter()
        crew = Crew(client, problem, cluster.scheduler_address)
        found["load_seconds"] = time.perf_counter() - begin
        alone = replace(problem, threads=min(workers, 2))
        steps = [partial(crew.sweep, problem), partial(sweep, alone)]
        _, states = in_turns(steps, [state, state], WARM_UP)
        before, counted = on_loopback(), crew.sent
        (found["seconds"], found["threads"]), states = in_turns(steps, states, times)
        found["bytes"] = (on_loopback() - before) / times
        found["counted"] = (crew.sent - counted) / times
        assert states[0].error == states[1].error  # the same draws
        found["replicated"] = replicated(problem, states[1])
        crew.close()
    return found


def measured(X: ObservedMatrix, workers: tuple[int, ...], times: int) -> dict[str, Any]:
    """Figures of every number of workers, each beside one process with one or two threads."""
    problem = Problem.of(X, preset(MODEL), RANK)
    start = initial_state(problem, "data", 0)
    return {"workers": {str(n): on_workers(problem, start, n, times) for n in workers}}


# --- What is told


def machine_of(found: dict[str, Any]) -> Machine:
    """The figures that the model needs."""
    (rows, cols), two = found["shape"], found["workers"]["2"]
    one = found["workers"].get("1", two)  # a quick run has no other
    every = min(run["replicated"] for run in found["workers"].values())
    return Machine(
        (one["threads"] - every) / found["entries"], every / (rows + cols), two["byte"],
        two["letter"], found["cores"],
    )  # fmt: skip


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Measured and modelled, side by side; and the extrapolation."""
    found = data["cluster"]
    m, (rows, cols), entries = machine_of(found), found["shape"], found["entries"]
    lines = []
    for n, run in found["workers"].items():
        said = sum(seconds(m, rows, cols, entries, RANK, int(n)).values())
        sent = bytes_between(rows, cols, RANK, int(n)) + bytes_to_chain(rows, cols, RANK)
        lines.append(
            (n, f"{run['seconds']:.2f}", f"{said:.2f}", f"{run['threads']:.2f} ({min(int(n), 2)})",
             f"{run['bytes'] / 1e6:.1f}", f"{sent / 1e6:.1f}")
        )  # fmt: skip
    header = ("workers", "seconds per sweep", "the model's", "one process (threads)",
              "MB per sweep", "the model's")  # fmt: skip
    far = seconds(m._replace(cores=FAR[3]), *FAR[:3], RANK, FAR[3], NETWORK)
    guess = [(what, f"{value:.1f}") for what, value in {**far, "all": sum(far.values())}.items()]
    return [
        table("One chain on workers of one machine", header, lines, quoted=True),
        table("Extrapolated, not measured",
              ("extrapolated, not measured", f"seconds per sweep, {FAR[3]} workers"), guess,
              quoted=True),
    ]  # fmt: skip


def claims(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The targets: overhead of two workers, and how well the model knows what is sent."""
    rows, cols = found["shape"]
    made = [
        claim("seconds of two workers over those of two threads",
              found["workers"]["2"]["seconds"] / found["workers"]["2"]["threads"], most=OVERHEAD)
    ]  # fmt: skip
    for n, run in found["workers"].items():
        sent = bytes_between(rows, cols, RANK, int(n)) + bytes_to_chain(rows, cols, RANK)
        made.append(
            claim(f"bytes per sweep over the model's, {n} workers", run["bytes"] / sent,
                  least=1 - BYTES, most=1 + BYTES)
        )  # fmt: skip
    return made


def part(options: Options) -> dict[str, Any]:
    """Sweeps in one process and on workers of this machine."""
    shape, observed = ((400, 300), 20_000) if options.quick else (SHAPE, OBSERVED)
    workers = (2,) if options.quick else WORKERS
    X = synthetic(shape, observed, 1, 5)
    found = measured(X, workers, 2 * options.repeats)
    found |= {"shape": shape, "entries": observed, "cores": len(os.sched_getaffinity(0))}
    data = {"cluster": found}
    return {"claims": claims(found), "tables": tables(data), "data": data}
