"""`sample`: run chains side by side and gather their draws into a `Posterior`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bayesmf import _threads
from bayesmf._errors import ModelError, nearest
from bayesmf.model import Model
from bayesmf.posterior import Cells, Posterior, cell_arrays
from bayesmf.presets import preset
from bayesmf.sampler import Problem, State, chain, check_init
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
    init: str = "data",
    scale_move: bool = True,
    cells: Any = None,
    keep: str | Iterable[str] = (),
    random_state: RandomState = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[Progress], object] = False,
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
    draws, burn_in, thin, chains
        Kept draws per chain; sweeps before the first of them; sweeps per kept draw; chains.
    hyperparameters
        Changes to the preset's hyperparameters, by name.
    init
        "data" starts from factors with the scale of the data, "prior" from a prior draw.
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
    if not isinstance(model, Model):
        model = preset(model, **(hyperparameters or {}))
    elif hyperparameters:
        raise ModelError("Hyperparameters go with a preset's name; give them to the Model's parts.")
    threads = _threads.count(n_jobs)
    workers = min(threads, chains)
    problem = Problem.of(
        X, model, n_components, scale_move=scale_move, threads=max(1, threads // workers)
    )
    check_init(init)
    seed = np.random.SeedSequence(seed_words(random_state).tolist())
    plan = _Plan(
        problem, draws, burn_in, thin, init, seed,
        None if cells is None else cell_arrays(cells, problem.X.shape),
        _kept_names(problem, keep),
    )  # fmt: skip
    return _gather(plan, _run_chains(plan, chains, workers, progress))


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
    """What one chain leaves behind."""

    cells: Cells
    U_mean: Array
    V_mean: Array
    state: State
    draws: dict[str, list[Array]] = field(default_factory=dict)
    train_mse: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


class _Plan(NamedTuple):
    """What every chain of a run does."""

    problem: Problem
    draws: int
    burn_in: int
    thin: int
    init: str
    seed: np.random.SeedSequence
    cells: tuple[Array, Array] | None
    keep: list[str]

    @property
    def sweeps(self) -> int:
        return self.burn_in + self.draws * self.thin


def _run_chains(
    plan: _Plan, chains: int, workers: int, progress: bool | Callable[[Progress], object]
) -> list[ChainRun]:
    """Run all chains; an interrupt ends them early and keeps what they have."""
    stop = threading.Event()
    report, close = _reporter(plan, chains, progress)
    with plan.problem.one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(_run_chain, plan, c, stop, report) for c in range(chains)]
        try:
            for future in futures:
                future.result()
        except BaseException as error:
            stop.set()
            if not isinstance(error, KeyboardInterrupt):
                raise
        finally:
            close()
        runs = [future.result() for future in futures]
    runs = [run for run in runs if run.cells.count]
    if not runs:
        raise KeyboardInterrupt("interrupted before the first kept draw")
    return runs


def _run_chain(
    plan: _Plan, number: int, stop: threading.Event, report: Callable[[Progress], object]
) -> ChainRun:
    problem = plan.problem
    I, J, K = *problem.X.shape, problem.n_components  # noqa: E741
    states = chain(problem, plan.init, plan.seed, number)
    cells = Cells((I, J), plan.cells)
    run: ChainRun | None = None
    for sweep in range(1, plan.sweeps + 1):
        begin = time.perf_counter()
        state = next(states)
        seconds = time.perf_counter() - begin
        if run is None:
            draws: dict[str, list[Array]] = {name: [] for name in plan.keep}
            run = ChainRun(cells, np.zeros((I, K)), np.zeros((J, K)), state, draws)
        run.state = state
        run.seconds.append(seconds)
        run.train_mse.append(state.error / problem.X.n_observed)
        if sweep > plan.burn_in and (sweep - plan.burn_in) % plan.thin == 0:
            cells.add(state.U, state.V, problem.threads)
            run.U_mean += (state.U - run.U_mean) / cells.count
            run.V_mean += (state.V - run.V_mean) / cells.count
            variables = state.variables()
            for name, kept in run.draws.items():
                kept.append(variables[name])
        report(Progress(number, sweep, plan.sweeps, run.train_mse[-1]))
        if stop.is_set():
            break
    assert run is not None
    return run


def _reporter(
    plan: _Plan, chains: int, progress: bool | Callable[[Progress], object]
) -> tuple[Callable[[Progress], object], Callable[[], None]]:
    """What to call after a sweep, and at the end."""
    if callable(progress):
        return progress, lambda: None
    if not progress:
        return lambda _: None, lambda: None
    from tqdm import tqdm

    bar = tqdm(
        total=chains * plan.sweeps, unit="sweep", desc=plan.problem.model.name, file=sys.stderr
    )
    lock = threading.Lock()

    def report(event: Progress) -> None:
        with lock:
            bar.set_postfix(train_mse=f"{event.train_mse:.4g}", refresh=False)
            bar.update()

    return report, bar.close


def _gather(plan: _Plan, runs: list[ChainRun]) -> Posterior:
    """Combine the chains, in order, so that the result does not depend on who finished first."""
    X, problem = plan.problem.X, plan.problem
    done = min(run.cells.count for run in runs)
    sweeps = min(len(run.seconds) for run in runs)
    notes = problem.model.notes(X)
    if done < plan.draws:
        notes.append(f"Interrupted: {done} of {plan.draws} draws per chain were kept.")
    names = runs[0].draws
    draws = {name: np.stack([np.stack(run.draws[name][:done]) for run in runs]) for name in names}
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
        states=tuple(run.state for run in runs),
        empty_rows=X.empty_rows,
        empty_cols=X.empty_cols,
        row_labels=X.row_labels,
        col_labels=X.col_labels,
        notes=tuple(notes),
    )
