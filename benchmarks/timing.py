"""Timers of sweeps: presets and peers in turns, so that all see the machine in one condition."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np

from bayesmf import Model, ObservedMatrix, Problem, chain, preset

WARM_UP = 5  # sweeps after the first one that are not timed, fewer if they take a second
SHORT_RUN = 5  # sweeps in a peer's short run
BATCH_SECONDS = 0.3

Run = Callable[[int], float]  # seconds that so many sweeps take


class Timer(Protocol):
    """What is measured in rounds."""

    def round(self) -> None:
        """Measure once."""

    def result(self) -> dict[str, Any]:
        """Return the best round in "ms", and what else is known."""


class ModelTimer:
    """Times batches of sweeps of one chain that goes on and on."""

    def __init__(
        self, X: ObservedMatrix, model: Model, rank: int, threads: int,
        batch: float = BATCH_SECONDS,
    ) -> None:  # fmt: skip
        begin = time.perf_counter()
        problem = Problem.of(X, model, rank, threads=threads)
        self._states = chain(problem, random_state=0)
        self._state = next(self._states)
        self.first_call = time.perf_counter() - begin
        warm = time.perf_counter()
        for _ in range(WARM_UP):
            if time.perf_counter() - warm < 1:
                self._seconds(1)
        self.sweeps = batch_length(self._seconds, batch, 1)
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


class PresetTimer(ModelTimer):
    """The same of a preset."""

    def __init__(
        self, X: ObservedMatrix, name: str, rank: int, threads: int, batch: float = BATCH_SECONDS
    ) -> None:
        super().__init__(X, preset(name), rank, threads, batch)


class RunTimer:
    """Times whole runs, short and long: what a run does once cancels."""

    def __init__(self, run: Run, batch: float = BATCH_SECONDS) -> None:
        self._run = run
        run(SHORT_RUN)
        self.sweeps = batch_length(lambda sweeps: run(SHORT_RUN + sweeps) - run(SHORT_RUN), batch)
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


class CallTimer:
    """Times a function, called again and again."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._seconds: list[float] = []
        call()

    def round(self) -> None:
        """Time one call."""
        begin = time.perf_counter()
        self._call()
        self._seconds.append(time.perf_counter() - begin)

    def result(self) -> dict[str, Any]:
        """Milliseconds per call."""
        rounds = [1000 * seconds for seconds in self._seconds]
        return {"ms": min(rounds), "rounds_ms": rounds}


def batch_length(seconds: Run, least: float = BATCH_SECONDS, sweeps: int = 4) -> int:
    """Number of sweeps that take long enough to be timed; trying them out warms up, too."""
    while seconds(sweeps) < least:
        sweeps *= 2
    return sweeps


def in_rounds(timers: Iterable[Timer], repeats: int) -> None:
    """Give every timer a turn, then another, so that all see the machine in one condition."""
    timers = list(timers)
    for _ in range(repeats):
        for timer in timers:
            timer.round()


def milliseconds(
    X: ObservedMatrix, models: Iterable[str], rank: int, repeats: int, batch: float = BATCH_SECONDS
) -> dict[str, float]:
    """Time per sweep of every model on one thread."""
    timers = {name: PresetTimer(X, name, rank, 1, batch) for name in models}
    in_rounds(timers.values(), repeats)
    return {name: timer.result()["ms"] for name, timer in timers.items()}
