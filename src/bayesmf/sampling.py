"""`sample`: run chains side by side and gather their draws into a `Posterior`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesmf import __version__, _threads
from bayesmf._errors import ModelError, nearest
from bayesmf.biases import Biases
from bayesmf.model import Model
from bayesmf.posterior import Cells, Posterior, cell_arrays
from bayesmf.presets import as_model
from bayesmf.sampler import Problem, State, chain, check_init
from bayesmf.storage import Folder, Memory, fingerprint, known_seed
from bayesmf.streams import Array, RandomState, seed_words


class Progress(NamedTuple):
    """What a progress callable is told after every sweep."""

    chain: int
    sweep: int
    total: int
    train_mse: float


def sample(
    X: Any,
    model: str | Model = "GGGA",
    n_components: int = 10,
    *,
    draws: int = 250,
    burn_in: int = 250,
    thin: int = 1,
    chains: int = 1,
    hyperparameters: dict[str, Any] | None = None,
    biases: bool | Biases = False,
    init: str | Posterior = "data",
    scale_move: bool = True,
    cells: Any = None,
    keep: str | Iterable[str] = (),
    random_state: RandomState = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[Progress], object] = False,
    store: str | Path | None = None,
) -> Posterior:
    """Draw from the posterior of a matrix factorisation by Gibbs sampling.

    Parameters
    ----------
    X
        The matrix: an array with NaN for missing entries, a masked array, a pandas DataFrame, a
        scipy sparse matrix (stored entries are observed), a triple (rows, cols, values), or an
        `ObservedMatrix`.
    model
        Name of a preset, such as "GGGA", or a `Model`.
    n_components
        Rank K of the factorisation.
    draws, burn_in
        Kept draws per chain; sweeps before the first of them.
    thin
        Sweeps per kept draw.
    chains
        Number of chains.
    hyperparameters
        Changes to the preset's hyperparameters, by name.
    biases
        Whether to add a global mean and an effect of every row and column, sampled with the
        factors; a `Biases` sets their hyperparameters. For the Gaussian likelihood.
    init
        "data" starts from factors with the scale of the data, "prior" from a prior draw. A
        `Posterior` of the same model goes on where its chains ended, with their own seed: in all
        it is the longer run.
    scale_move
        Whether sweeps include the exact move of the factors' scales.
    cells
        Two arrays (rows, cols): keep moments of these cells only, instead of the whole matrix.
    keep
        Variables whose draws to keep: "all", or names such as "U", "V", "relevance", "rows.eta".
    random_state
        None, an integer, a numpy Generator or SeedSequence. The same seed gives the same draws,
        bit for bit, for any ``n_jobs``.
    n_jobs
        Threads: chains run side by side, then rows. None is one thread, -1 all cores.
    progress
        True shows a bar on standard error; a callable is called with a `Progress`.
    store
        A folder for kept draws and checkpoints: draws then take no memory, and the same call made
        again after the run was killed goes on where it was, to the same result bit for bit.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import sample
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 15))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> posterior = sample(X, "GGG", 2, draws=100, burn_in=100, random_state=0)
    >>> posterior.predict().shape
    (20, 15)
    """
    _check_numbers(
        n_jobs, draws=(draws, 1), burn_in=(burn_in, 0), thin=(thin, 1), chains=(chains, 1)
    )
    model = as_model(model, hyperparameters, biases)
    threads = _threads.count(n_jobs)
    workers = min(threads, chains)
    problem = Problem.of(
        X, model, n_components, scale_move=scale_move, threads=max(1, threads // workers)
    )
    starts = _starts(init, problem, chains)
    words = known_seed(store) if store is not None and random_state is None else None
    if isinstance(init, Posterior):
        words, init = starts[0].seed.tolist(), f"after sweep {starts[0].sweep}"
    seed = np.random.SeedSequence(words or seed_words(random_state).tolist())
    plan = _Plan(
        problem, draws, burn_in, thin, init, starts, seed,
        None if cells is None else cell_arrays(cells, problem.X.shape),
        _kept_names(problem, keep),
        chains,
    )  # fmt: skip
    memory = Memory() if store is None else Folder(store, plan.record())
    return _gather(plan, memory, _run_chains(plan, memory, workers, progress))


def sample_whole(*arguments: Any, **options: Any) -> Posterior:
    """As `sample`, for a result that is of use only if it is whole: an interrupt raises."""
    posterior = sample(*arguments, **options)
    if posterior.interrupted:
        raise KeyboardInterrupt
    return posterior


def _check_numbers(n_jobs: int | None, **least: tuple[int, int]) -> None:
    """Refuse counts that are not whole numbers or too small; each comes as (value, least)."""
    for name, (value, smallest) in least.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < smallest:
            raise ModelError(
                f"{name} must be a whole number of at least {smallest}, got {value!r}."
            )
    if isinstance(n_jobs, bool) or not (n_jobs is None or isinstance(n_jobs, int)) or n_jobs == 0:
        raise ModelError(
            f"n_jobs must be None, a positive number of threads or -1, got {n_jobs!r}."
        )


def _starts(init: str | Posterior, problem: Problem, chains: int) -> tuple[Any, ...]:
    """State from which each chain goes on, or None where it has to find a start of its own."""
    if not isinstance(init, Posterior):
        check_init(init)
        return (None,) * chains
    ours, theirs = problem.variable_names(), init.states[0].variables()
    for what, a, b in (
        ("model", problem.model.name, init.model.name),
        ("shape", problem.X.shape, init.shape),
        ("n_components", problem.n_components, init.n_components),
        ("chains", chains, len(init.states)),
        ("list of variables", ", ".join(sorted(ours)), ", ".join(sorted(theirs))),
    ):
        if a != b:
            raise ModelError(f"init: {what} of the run is {a}, but that of the posterior is {b}.")
    return init.states


def _kept_names(problem: Problem, keep: str | Iterable[str]) -> list[str]:
    """Names of the variables whose draws are kept."""
    names = problem.variable_names()
    wanted = [keep] if isinstance(keep, str) else list(keep)
    if wanted == ["all"]:
        return names
    for name in wanted:
        if name not in names:
            raise ModelError(
                f"keep: {problem.model.name} has no variable {name!r}; it has "
                f"{', '.join(names)}.{nearest(name, names)}"
            )
    return [name for name in names if name in wanted or name == "noise_precision"]


@dataclass(eq=False)
class ChainRun:
    """What one chain has so far; all of it can be saved and loaded."""

    number: int
    cells: Cells
    U_mean: Array
    V_mean: Array
    state: State | None = None
    train_mse: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def to_arrays(self) -> dict[str, Array]:
        """Everything by name, for a checkpoint."""
        assert self.state is not None
        own = {
            "mean": self.cells.mean, "square": self.cells.square,
            "count": np.array(self.cells.count), "U_mean": self.U_mean, "V_mean": self.V_mean,
            "train_mse": np.array(self.train_mse), "seconds": np.array(self.seconds),
        }  # fmt: skip
        state = self.state.to_arrays()
        return {f"run.{k}": v for k, v in own.items()} | {f"state.{k}": v for k, v in state.items()}

    def take(self, arrays: dict[str, Array]) -> None:
        """Go back to a checkpoint."""
        run = {k.removeprefix("run."): v for k, v in arrays.items() if k.startswith("run.")}
        state = {k.removeprefix("state."): v for k, v in arrays.items() if k.startswith("state.")}
        self.cells.mean, self.cells.square = run["mean"], run["square"]
        self.cells.count = int(run["count"])
        self.U_mean, self.V_mean = run["U_mean"], run["V_mean"]
        self.train_mse, self.seconds = run["train_mse"].tolist(), run["seconds"].tolist()
        self.state = State.from_arrays(state)


class _Plan(NamedTuple):
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

    @property
    def sweeps(self) -> int:
        return self.burn_in + self.draws * self.thin

    def record(self) -> dict[str, Any]:
        """What decides the result of the run, for a folder to remember."""
        return {
            "model": self.problem.model.name, "parts": repr(self.problem.model),
            "n_components": self.problem.n_components, "draws": self.draws,
            "burn_in": self.burn_in, "thin": self.thin, "chains": self.chains, "init": self.init,
            "scale_move": self.problem.scale_move, "seed": self.seed.entropy, "keep": self.keep,
            "cells": None if self.cells is None else [c.tolist() for c in self.cells],
            "start": [state and state.error for state in self.starts],
            "data": fingerprint(self.problem.X), "bayesmf": __version__,
        }  # fmt: skip


def _run_chains(
    plan: _Plan, memory: Memory, workers: int, progress: bool | Callable[[Progress], object]
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
            runs = [future.result() for future in futures]
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
    order = sorted((run for run in runs if run.cells.count), key=lambda run: -run.cells.count)
    kept = max(range(len(order) + 1), key=lambda n: n * order[n - 1].cells.count if n else 0)
    return sorted(order[:kept], key=lambda run: run.number)


def _run_chain(
    plan: _Plan,
    number: int,
    memory: Memory,
    stop: threading.Event,
    report: Callable[[Progress], object],
) -> ChainRun:
    problem = plan.problem
    I, J, K = *problem.X.shape, problem.n_components  # noqa: E741
    run = ChainRun(number, Cells((I, J), plan.cells), np.zeros((I, K)), np.zeros((J, K)))
    saved = memory.load(number)
    if saved:
        run.take(saved)
    states = chain(problem, plan.init, plan.seed, number, run.state or plan.starts[number])
    for sweep in range(len(run.seconds) + 1, plan.sweeps + 1):
        if stop.is_set():
            break
        begin = time.perf_counter()
        with _threads.turns():
            run.state = next(states)
        run.seconds.append(time.perf_counter() - begin)
        run.train_mse.append(run.state.error / problem.X.n_observed)
        if sweep > plan.burn_in and (sweep - plan.burn_in) % plan.thin == 0:
            _keep(plan, memory, run)
        report(Progress(number, sweep, plan.sweeps, run.train_mse[-1]))
        if memory.is_due(number):
            memory.save(number, run.to_arrays())
    if run.state is not None:
        memory.save(number, run.to_arrays())
    return run


def _keep(plan: _Plan, memory: Memory, run: ChainRun) -> None:
    """Take the present state into the moments and the kept draws."""
    assert run.state is not None
    run.cells.add(*run.state.predictors(), plan.problem.threads)
    count = run.cells.count
    run.U_mean += (run.state.U - run.U_mean) / count
    run.V_mean += (run.state.V - run.V_mean) / count
    variables = run.state.variables()
    for name in plan.keep:
        value = variables[name]
        memory.array(name, (plan.chains, plan.draws, *value.shape))[run.number, count - 1] = value


def _reporter(
    plan: _Plan, progress: bool | Callable[[Progress], object]
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
            bar.set_postfix(train_mse=f"{event.train_mse:.4g}", refresh=False)
            bar.update()

    return report, bar.close


def _gather(plan: _Plan, memory: Memory, runs: list[ChainRun]) -> Posterior:
    """Combine the chains, in order, so that the result does not depend on who finished first."""
    X, problem = plan.problem.X, plan.problem
    done = min(run.cells.count for run in runs)
    sweeps = min(len(run.seconds) for run in runs)
    notes = problem.model.notes(X)
    if done < plan.draws:
        notes.append(f"Interrupted: {done} of {plan.draws} draws per chain were kept.")
    if len(runs) < plan.chains:
        notes.append(f"Interrupted: {len(runs)} of {plan.chains} chains were kept.")
    whole = done == plan.draws and len(runs) == plan.chains
    numbers = [run.number for run in runs]
    draws = {
        name: memory.arrays[name] if whole else memory.arrays[name][numbers][:, :done]
        for name in plan.keep
    }
    cells = runs[0].cells
    for run in runs[1:]:
        cells.merge(run.cells)
    cells.square /= max(1, cells.count - 1)  # in place: these are the largest arrays of a run
    shape = X.shape if plan.cells is None else (-1,)
    return Posterior(
        model=problem.model,
        n_components=problem.n_components,
        shape=X.shape,
        cells=plan.cells,
        mean=cells.mean.reshape(shape),
        variance=cells.square.reshape(shape),
        draws=draws,
        train_mse=np.array([run.train_mse[:sweeps] for run in runs]),
        seconds=np.array([run.seconds[:sweeps] for run in runs]),
        U_mean=np.stack([run.U_mean for run in runs]),
        V_mean=np.stack([run.V_mean for run in runs]),
        states=tuple(run.state for run in runs if run.state is not None),
        empty_rows=X.empty_rows,
        empty_cols=X.empty_cols,
        row_labels=X.row_labels,
        col_labels=X.col_labels,
        notes=tuple(notes),
        settings={
            "draws": done, "burn_in": plan.burn_in, "thin": plan.thin, "chains": len(runs),
            "init": plan.init, "scale_move": problem.scale_move, "seed": plan.seed.entropy,
            "interrupted": not whole,
        },
    )  # fmt: skip
