"""Chains: one after the other yields its states, several run side by side and keep their draws."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bayesmf import __version__, _threads
from bayesmf._arguments import checked
from bayesmf._errors import RangeError
from bayesmf.sampler.checkpoints import Memory
from bayesmf.sampler.moments import Moments, products
from bayesmf.sampler.start import initial_state
from bayesmf.sampler.state import Problem, State
from bayesmf.sampler.sweep import out_of_range, sweep
from bayesmf.streams import Array, RandomState

Step = Callable[[Problem, State], State]


@checked
def chain(
    problem: Problem,
    init: str = "data",
    random_state: RandomState = None,
    number: int = 0,
    state: State | None = None,
    step: Step = sweep,
) -> Iterator[State]:
    """Yield the state after every sweep, for ever; stop by not asking for more.

    Give a ``state`` to go on from it; its own seed then decides, not ``random_state``. ``step`` is
    what draws the next state: `sweep`, or the same elsewhere.
    """
    if state is None:
        state = initial_state(problem, init, random_state, number)
    while True:
        try:
            state = step(problem, state)
        except RangeError:
            raise
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            raise out_of_range(problem, state) from error
        yield state


class Progress(NamedTuple):
    """What a progress callable is told after every sweep."""

    chain: int
    sweep: int
    total: int
    train_mse: float
    held_out_mse: float | None = None  # of the predictions so far, where `sample` knows the values


HeldOut = tuple[tuple[Array, Array], Array]  # cells, and what they hold


@dataclass(eq=False)
class ChainRun:
    """What one chain has so far; all of it can be saved and loaded."""

    number: int
    moments: Moments
    U_mean: Array
    V_mean: Array
    state: State | None = None
    train_mse: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, left: Array, right: Array, U: Array, V: Array, threads: int) -> None:
        """Take in one draw: two arrays whose product is that of all cells, and the factors."""
        self.moments.add(left, right, threads)
        self.U_mean += (U - self.U_mean) / self.moments.count
        self.V_mean += (V - self.V_mean) / self.moments.count

    def held_out_mse(self, held_out: HeldOut | None) -> float | None:
        """Mean squared error of the means of the cells; of one draw before there are any."""
        if held_out is None or self.state is None:
            return None
        cells, values = held_out
        if self.moments.count:
            means = self.moments.means(cells)
        else:
            means = products(*self.state.predictors(), cells)
        return float(np.mean((means - values) ** 2))

    def to_arrays(self) -> dict[str, Array]:
        """Everything by name, for a checkpoint."""
        assert self.state is not None
        own = {
            "mean": self.moments.mean, "square": self.moments.square,
            "count": np.array(self.moments.count), "U_mean": self.U_mean, "V_mean": self.V_mean,
            "train_mse": np.array(self.train_mse), "seconds": np.array(self.seconds),
        }  # fmt: skip
        state = self.state.to_arrays()
        return {f"run.{k}": v for k, v in own.items()} | {f"state.{k}": v for k, v in state.items()}

    def take(self, arrays: dict[str, Array]) -> None:
        """Go back to a checkpoint."""
        run = {k.removeprefix("run."): v for k, v in arrays.items() if k.startswith("run.")}
        state = {k.removeprefix("state."): v for k, v in arrays.items() if k.startswith("state.")}
        self.moments.mean, self.moments.square = run["mean"], run["square"]
        self.moments.count = int(run["count"])
        self.U_mean, self.V_mean = run["U_mean"], run["V_mean"]
        self.train_mse, self.seconds = run["train_mse"].tolist(), run["seconds"].tolist()
        self.state = State.from_arrays(state)


class Plan(NamedTuple):
    """What every chain of a run does."""

    problem: Problem
    draws: int
    burn_in: int
    thin: int
    init: str
    starts: tuple[Any, ...]
    seed: np.random.SeedSequence
    cells: tuple[Array, Array] | None
    keep: list[str]
    chains: int
    fingerprint: str  # of the data as they were given
    step: Step = sweep
    held_out: HeldOut | None = None  # entries that were left out, for the progress alone

    @property
    def sweeps(self) -> int:
        return self.burn_in + self.draws * self.thin

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the kept draws by variable: (chains, draws, ...)."""
        known = self.problem.model.variables(self.problem.X.shape, self.problem.n_components)
        return {name: (self.chains, self.draws, *known[name].shape) for name in self.keep}

    def record(self) -> dict[str, Any]:
        """What decides the result of the run, for a folder to remember."""
        return {
            "model": self.problem.model.name, "parts": repr(self.problem.model),
            "n_components": self.problem.n_components, "draws": self.draws,
            "burn_in": self.burn_in, "thin": self.thin, "chains": self.chains, "init": self.init,
            "scale_move": self.problem.scale_move, "seed": self.seed.entropy, "keep": self.keep,
            "cells": None if self.cells is None else [c.tolist() for c in self.cells],
            "start": [state and state.error for state in self.starts],
            "data": self.problem.X.fingerprint(), "bayesmf": __version__,
        }  # fmt: skip


def run_chains(
    plan: Plan, memory: Memory, workers: int, progress: bool | Callable[[Progress], object]
) -> list[ChainRun]:
    """Run all chains; an interrupt ends them early and keeps what they have."""
    report, close = _reporter(plan, progress)
    numbers = range(plan.chains)
    with (
        _threads.one_blas_thread(),
        ThreadPoolExecutor(workers) as pool,
        _threads.interrupts() as stop,
    ):
        futures = [pool.submit(_run_chain, plan, c, memory, stop, report) for c in numbers]
        try:
            runs = _threads.results(futures)
        except BaseException:
            stop.set()
            raise
        finally:
            close()
    runs = _most_draws(runs)
    if not runs:
        raise KeyboardInterrupt("interrupted before the first kept draw")
    return runs


def _most_draws(runs: list[ChainRun]) -> list[ChainRun]:
    """After an interrupt, the chains that keep most draws when all are cut to the shortest."""
    order = sorted((run for run in runs if run.moments.count), key=lambda run: -run.moments.count)
    kept = max(range(len(order) + 1), key=lambda n: n * order[n - 1].moments.count if n else 0)
    return sorted(order[:kept], key=lambda run: run.number)


def _run_chain(
    plan: Plan,
    number: int,
    memory: Memory,
    stop: threading.Event,
    report: Callable[[Progress], object],
) -> ChainRun:
    problem = plan.problem
    I, J, K = *problem.X.shape, problem.n_components  # noqa: E741
    run = ChainRun(number, Moments((I, J), plan.cells), np.zeros((I, K)), np.zeros((J, K)))
    saved = memory.load(number)
    if saved:
        run.take(saved)
    start = run.state or plan.starts[number]
    states = chain(problem, plan.init, plan.seed, number, start, plan.step)
    begun = len(run.seconds)
    for done in range(begun + 1, plan.sweeps + 1):
        if stop.is_set():
            break
        begin = time.perf_counter()
        with _threads.turns():
            run.state = next(states)
        run.seconds.append(time.perf_counter() - begin)
        run.train_mse.append(run.state.error / problem.X.n_observed)
        if done > plan.burn_in and (done - plan.burn_in) % plan.thin == 0:
            _keep(plan, memory, run)
        held_out = run.held_out_mse(plan.held_out)
        report(Progress(number, done, plan.sweeps, run.train_mse[-1], held_out))
        if memory.is_due(number):
            memory.save(number, run.to_arrays())
    if len(run.seconds) > begun:
        memory.save(number, run.to_arrays())
    return run


def _keep(plan: Plan, memory: Memory, run: ChainRun) -> None:
    """Take the present state into the moments and the kept draws."""
    assert run.state is not None
    run.add(*run.state.predictors(), run.state.U, run.state.V, plan.problem.threads)
    count = run.moments.count
    variables = run.state.variables()
    for name in plan.keep:
        memory.keep(name, run.number, count - 1, variables[name])


def _reporter(
    plan: Plan, progress: bool | Callable[[Progress], object]
) -> tuple[Callable[[Progress], object], Callable[[], None]]:
    """What to call after a sweep, and at the end."""
    if callable(progress):
        return progress, lambda: None
    if not progress:
        return lambda _: None, lambda: None
    from tqdm import tqdm

    bar = tqdm(
        total=plan.chains * plan.sweeps, unit="sweep", desc=plan.problem.model.name, file=sys.stderr
    )
    lock = threading.Lock()

    def report(event: Progress) -> None:
        with lock:
            errors = {"train_mse": event.train_mse, "held_out_mse": event.held_out_mse}
            shown = {name: f"{mse:.4g}" for name, mse in errors.items() if mse is not None}
            bar.set_postfix(shown, refresh=False)
            bar.update()

    return report, bar.close
