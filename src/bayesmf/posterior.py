"""`sample` runs chains and gathers a `Posterior`: moments of the predictions, and kept draws."""

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
from bayesmf._errors import DataError, ModelError, nearest
from bayesmf.kernels.predict import accumulate, dots
from bayesmf.model import Model
from bayesmf.presets import preset
from bayesmf.sampler import Problem, State, chain, check_init
from bayesmf.streams import Array, RandomState, seed_words

_BLOCK = 64  # rows of the matrix whose predictions are formed at once


class Progress(NamedTuple):
    """What a progress callable is told after every sweep."""

    chain: int
    sweep: int
    total: int
    train_mse: float


class Cells:
    """Running mean and variance of U V^T, over the whole matrix or over listed cells."""

    def __init__(self, shape: tuple[int, int], cells: tuple[Array, Array] | None) -> None:
        self.shape, self.cells, self.count = shape, cells, 0
        size = shape[0] * shape[1] if cells is None else cells[0].size
        self.mean, self.square = np.zeros(size), np.zeros(size)

    def add(self, U: Array, V: Array, threads: int) -> None:
        """Take in one draw."""
        self.count += 1
        if self.cells is not None:
            rows, cols = self.cells
            values = np.empty(rows.size)
            dots(0, rows.size, rows, cols, U, V, values)
            accumulate(values, self.count, self.mean, self.square)
            return
        J = self.shape[1]

        def block(start: int, stop: int) -> None:
            values = (U[start:stop] @ V.T).ravel()
            part = slice(start * J, stop * J)
            accumulate(values, self.count, self.mean[part], self.square[part])

        _threads.run(block, _threads.bounds(self.shape[0], -(-self.shape[0] // _BLOCK)), threads)

    def merge(self, other: Cells) -> None:
        """Take in another chain's draws."""
        total = self.count + other.count
        gap = other.mean - self.mean
        self.mean += gap * (other.count / total)
        self.square += other.square + gap**2 * (self.count * other.count / total)
        self.count = total


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


@dataclass(frozen=True, eq=False)
class Posterior:
    """The result of `sample`.

    Attributes
    ----------
    model
        The model with all its defaults filled in.
    mean, variance
        Posterior mean and variance of U V^T: (I, J), or one number per requested cell.
    draws
        Kept draws by variable name, each (chains, draws, ...); always has "noise_precision" if the
        model has noise.
    train_mse, seconds
        Mean squared training error and seconds of every sweep, burn-in included: (chains, sweeps).
    U_mean, V_mean
        Posterior means of the factors of every chain: (chains, I, K), (chains, J, K). Factors may
        turn and change places between draws: for predictions use `predict`.
    states
        The last state of every chain, from which `bayesmf.chain` goes on.
    empty_rows, empty_cols
        Flags of the rows and columns without any observed entry: prior draws only.
    notes
        What should be known about this run, in sentences.
    """

    model: Model
    n_components: int
    shape: tuple[int, int]
    cells: tuple[Array, Array] | None
    mean: Array
    variance: Array
    draws: dict[str, Array]
    train_mse: Array
    seconds: Array
    U_mean: Array
    V_mean: Array
    states: tuple[State, ...]
    empty_rows: Array
    empty_cols: Array
    row_labels: Array | None
    col_labels: Array | None
    notes: tuple[str, ...]

    @property
    def noise_precision(self) -> Array:
        """Draws of the noise precision, (chains, draws)."""
        if "noise_precision" not in self.draws:
            raise ModelError(
                f"{self.model.name} has no noise precision: its likelihood is Poisson."
            )
        return self.draws["noise_precision"]

    def predict(
        self, rows: Any = None, cols: Any = None, *, method: str = "mean", return_std: bool = False
    ) -> Any:
        """Predict cells by the posterior mean of U V^T.

        Parameters
        ----------
        rows, cols
            Positions of the cells, two arrays of one length; all cells (or all that were requested
            from `sample`) if left out.
        method
            "mean" is the posterior mean of U V^T. "product_of_means" multiplies the posterior means
            of U and V, chain by chain, as the study did; it is not a posterior mean.
        return_std
            Also return the posterior standard deviation of U V^T (without observation noise).
        """
        if method not in ("mean", "product_of_means"):
            raise ModelError(f"method must be 'mean' or 'product_of_means', got {method!r}.")
        if (rows is None) != (cols is None):
            raise ModelError("Give both rows and cols, or neither.")
        where = None if rows is None else cell_arrays((rows, cols), self.shape)
        mean = self._product_of_means(where) if method != "mean" else self._pick(self.mean, where)
        if not return_std:
            return mean
        return mean, np.sqrt(self._pick(self.variance, where))

    def _pick(self, values: Array, where: tuple[Array, Array] | None) -> Array:
        if where is None:
            return values
        if self.cells is None:
            return values[where]
        known = {
            pair: t for t, pair in enumerate(zip(*(c.tolist() for c in self.cells), strict=True))
        }
        try:
            return values[[known[p] for p in zip(*(w.tolist() for w in where), strict=True)]]
        except KeyError as missing:
            raise DataError(
                f"The cell (row, column) = {missing.args[0]} was not among the cells requested "
                "from sample; add it to cells, or leave cells out."
            ) from None

    def _product_of_means(self, where: tuple[Array, Array] | None) -> Array:
        where = self.cells if where is None else where
        if where is None:
            return np.mean(self.U_mean @ self.V_mean.swapaxes(1, 2), axis=0)
        return np.einsum("ctk,ctk->t", self.U_mean[:, where[0]], self.V_mean[:, where[1]]) / len(
            self.U_mean
        )


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
    for name, value, least in (
        ("draws", draws, 1), ("burn_in", burn_in, 0), ("thin", thin, 1), ("chains", chains, 1),
    ):  # fmt: skip
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ModelError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    if isinstance(n_jobs, bool) or not (n_jobs is None or isinstance(n_jobs, int)) or n_jobs == 0:
        raise ModelError(
            f"n_jobs must be None, a positive number of threads or -1, got {n_jobs!r}."
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
        None if cells is None else cell_arrays(cells, problem.X.shape), keep,
    )  # fmt: skip
    plan = plan._replace(keep=plan.kept())
    return _gather(plan, _run_chains(plan, chains, workers, progress))


class _Plan(NamedTuple):
    """What every chain of a run does."""

    problem: Problem
    draws: int
    burn_in: int
    thin: int
    init: str
    seed: np.random.SeedSequence
    cells: tuple[Array, Array] | None
    keep: str | Iterable[str]

    @property
    def sweeps(self) -> int:
        return self.burn_in + self.draws * self.thin

    def kept(self) -> list[str]:
        """Names of the variables whose draws are kept."""
        names = self.problem.variable_names()
        keep = [self.keep] if isinstance(self.keep, str) else list(self.keep)
        if keep == ["all"]:
            return names
        for name in keep:
            if name not in names:
                raise ModelError(
                    f"keep: {self.problem.model.name} has no variable {name!r}; it has "
                    f"{', '.join(names)}.{nearest(name, names)}"
                )
        return [n for n in names if n in keep or n == "noise_precision"]


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


def cell_arrays(cells: Any, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Check cells given as (rows, cols) positions."""
    try:
        rows, cols = (np.atleast_1d(np.asarray(c)) for c in cells)
    except (TypeError, ValueError):
        raise DataError("cells must be two arrays, (rows, cols).") from None
    if rows.shape != cols.shape or rows.ndim != 1:
        raise DataError(f"cells: rows {rows.shape} and cols {cols.shape} must be of one length.")
    for name, index, size in (("row", rows, shape[0]), ("column", cols, shape[1])):
        if index.size and not np.issubdtype(index.dtype, np.integer):
            raise DataError(f"cells: {name} positions must be integers, got {index.dtype}.")
        bad = (index < 0) | (index >= size)
        if bad.any():
            raise DataError(
                f"cells: {name} {index[bad][0]} is outside the matrix of {size} {name}s."
            )
    return rows.astype(np.int64), cols.astype(np.int64)
