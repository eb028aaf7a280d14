"""`sample`: run chains and gather their draws into a `Posterior`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bayesmf import _threads
from bayesmf._arguments import checked
from bayesmf._errors import DataError, ModelError, nearest
from bayesmf._sizes import check_memory
from bayesmf.data.cells import cell_arrays
from bayesmf.data.observed import ObservedMatrix
from bayesmf.model.biases import Biases
from bayesmf.model.model import Model
from bayesmf.model.presets import as_model
from bayesmf.posterior.diagnostics import SCREENED
from bayesmf.posterior.posterior import Posterior
from bayesmf.posterior.verdict import FINE
from bayesmf.sampler.checkpoints import Folder, Memory, known_seed
from bayesmf.sampler.cluster import check_cluster, sweeps_on
from bayesmf.sampler.moments import Moments
from bayesmf.sampler.run import ChainRun, HeldOut, Plan, Progress, run_chains
from bayesmf.sampler.start import check_init
from bayesmf.sampler.state import Problem
from bayesmf.streams import Array, RandomState, seed_words


@checked
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
    noise: str | None = None,
    lower: Any = None,
    upper: Any = None,
    row_features: Any = None,
    col_features: Any = None,
    row_kernel: Any = None,
    col_kernel: Any = None,
    pattern: str | None = None,
    init: str | Posterior = "data",
    scale_move: bool = True,
    cells: Any = None,
    held_out: Any = None,
    keep: str | Iterable[str] = (),
    random_state: RandomState = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[Progress], object] = False,
    store: str | Path | None = None,
    dask: str | None = None,
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
        factors; a `Biases` sets their hyperparameters. For likelihoods that take them.
    noise
        Whether the noise of all cells is "equal", or that of "rows", "cols" or "both" differs; by
        default as the model says. For normal and Student noise.
    lower, upper
        Limits of the values, which are then known to lie there or farther: a number, one for each
        column, or one for each cell. For normal and Student noise; see `Censored`.
    row_features, col_features, row_kernel, col_kernel, pattern
        What is known of rows and columns besides their entries, DataFrames matched by label, as
        `ObservedMatrix.with_features` takes it; by default what ``X`` has.
    init
        "data" starts from factors with the scale of the data, "prior" from a prior draw. A
        `Posterior` of the same model goes on where its chains ended, with their own seed: in all
        it is the longer run.
    scale_move
        Whether sweeps include the exact moves that data do not see: of the factors' scales, and
        rotations of factors with Laplace priors.
    cells
        Two arrays (rows, cols): keep moments of these cells only, instead of the whole matrix,
        which a large one needs. With a third array, or as a matrix of the shape of X, they are
        ``held_out`` as well.
    held_out
        Entries that were left out of X, three arrays (rows, cols, values) or a matrix of the shape
        of X: progress tells the error of their predictions so far.
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
    dask
        Address of a Dask scheduler: rows and columns are spread over its workers, which draw the
        same as this process would, bit for bit. Not for volume priors.

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
    model = as_model(model, hyperparameters, biases, noise, (lower, upper))
    check_cluster(model, dask)
    threads = _threads.count(n_jobs)
    workers = min(threads, chains)
    X = ObservedMatrix.of(X).with_features(
        row_features, col_features, row_kernel=row_kernel, col_kernel=col_kernel, pattern=pattern
    )
    problem = Problem.of(
        X, model, n_components, scale_move=scale_move, threads=max(1, threads // workers)
    )
    wanted, known = _cells("cells", cells, problem)
    if held_out is not None:
        known = _cells("held_out", held_out, problem)[1]
        if known is None:
            raise DataError("held_out: give three arrays, (rows, cols, values).")
    starts = _starts(init, problem, chains)
    words = known_seed(store) if store is not None and random_state is None else None
    if isinstance(init, Posterior):
        words, init = starts[0].seed.tolist(), f"after sweep {starts[0].sweep}"
    seed = np.random.SeedSequence(words or seed_words(random_state).tolist())
    plan = Plan(
        problem, draws, burn_in, thin, init, starts, seed,
        wanted, _kept_names(problem, keep), chains, X.fingerprint(features=False),
        held_out=known,
    )  # fmt: skip
    shapes = plan.shapes()
    _check_memory(plan, store is None)
    memory = Memory(shapes) if store is None else Folder(store, plan.record(), shapes)
    with memory.opened(), sweeps_on(problem, dask) as step:
        plan = plan._replace(step=step)
        return _gather(plan, memory, run_chains(plan, memory, workers, progress))


_WITHOUT = {"cells": "give (rows, cols)", "held_out": "leave it out"}


def _cells(
    name: str, cells: Any, problem: Problem
) -> tuple[tuple[Array, Array] | None, HeldOut | None]:
    """The cells that an argument names, None for all, and what they hold, if that is known."""
    if cells is None:
        return None, None
    if hasattr(cells, "shape") or isinstance(cells, ObservedMatrix):
        matrix = ObservedMatrix.of(cells)
        if matrix.shape != problem.X.shape:
            raise DataError(
                f"{name}: the shape {matrix.shape} is not that of X, {problem.X.shape}."
            )
        cells = matrix.triples()
    if not hasattr(cells, "__len__") or len(cells) != 3:
        return cell_arrays(cells, problem.X.shape), None
    if problem.model.likelihood.latent:
        raise ModelError(
            f"{name}: values are for models whose U V^T is what cells hold, not for "
            f"{problem.model.name}; {_WITHOUT[name]}."
        )
    where = cell_arrays(cells[:2], problem.X.shape)
    values = _numbers(name, cells[2])
    if values.shape != where[0].shape or not np.isfinite(values).all():
        raise DataError(f"{name}: there must be a number for each of the {where[0].size} cells.")
    return where, (where, values)


def _numbers(name: str, values: Any) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name}: their values must be numbers.") from None


def check_cells(shape: tuple[int, int], chains: int) -> None:
    """Refuse to keep moments of all cells where these cannot fit into memory."""
    check_memory(
        16 * shape[0] * shape[1] * chains,
        f"means and variances of all {shape[0]} x {shape[1]} cells in {chains} chains",
        "ask for the cells that you need: sample(..., cells=(rows, cols))",
    )


def _check_memory(plan: Plan, draws_too: bool) -> None:
    """Refuse what cannot fit into memory: moments of all cells, and kept draws without a store."""
    if plan.cells is None:
        check_cells(plan.problem.X.shape, plan.chains)
    if draws_too:
        kept = sum(8 * math.prod(shape) for shape in plan.shapes().values())
        check_memory(kept, f"kept draws of {', '.join(plan.keep)}", "name a folder for them: store")


def run_on(
    posterior: Posterior, X: Any, draws: int, thin: int, *, most: int = 16, **options: Any
) -> Posterior:
    """Go on, each time twice as long as before, until results are fine.

    Or until the last run has ``most`` times the sweeps of the first. The same number of draws is
    kept, farther and farther apart; what came before is burn-in.
    """
    times, store = 1, options.pop("store", None)
    while not posterior.interrupted and times < most:
        if posterior.summary(X, screen=SCREENED).level == FINE:
            break
        times *= 2
        folder = None if store is None else Path(store) / f"times-{times}"
        posterior = sample(
            X, posterior.model, posterior.n_components, draws=draws, burn_in=0, thin=thin * times,
            init=posterior, store=folder, **options,
        )  # fmt: skip
    return posterior


@checked
def more_draws(
    posterior: Posterior, X: Any, draws: int, n_jobs: int | None, progress: Any
) -> Posterior:
    """The run of a posterior made longer, as `Posterior.more_draws` describes it."""
    if "stacking" in posterior.settings:
        raise ModelError("Draws of weighted chains cannot go on; make the run longer, then stack.")
    if posterior.interrupted:
        raise ModelError("The run was interrupted, so its chains differ in length; sample again.")
    settings, chains, X = posterior.settings, len(posterior.states), ObservedMatrix.of(X)
    threads = _threads.count(n_jobs)
    workers = min(threads, chains)
    problem = Problem.of(
        X, posterior.model, posterior.n_components, scale_move=settings["scale_move"],
        threads=max(1, threads // workers),
    )  # fmt: skip
    plan = Plan(
        problem, settings["draws"] + draws, settings["burn_in"], settings["thin"],
        settings["init"], _starts(posterior, problem, chains),
        np.random.SeedSequence(settings["seed"]), posterior.cells, list(posterior.draws), chains,
        X.fingerprint(features=False),
    )  # fmt: skip
    memory = _Earlier(posterior, plan)
    with memory.opened():
        return _gather(plan, memory, run_chains(plan, memory, workers, progress))


class _Earlier(Memory):
    """Draws of a run that is to become longer, and checkpoints of where its chains ended."""

    def __init__(self, posterior: Posterior, plan: Plan) -> None:
        super().__init__(plan.shapes())
        self._posterior, self._plan = posterior, plan
        self._predictors = posterior.predictors()

    @contextmanager
    def opened(self) -> Iterator[None]:
        with super().opened():
            for name, kept in self._posterior.draws.items():
                self.arrays[name][:, : kept.shape[1]] = kept
            yield

    def load(self, chain: int) -> dict[str, Array]:
        """Moments are taken anew from the kept draws, in their order."""
        earlier, shape, K = self._posterior, self._posterior.shape, self._posterior.n_components
        done = earlier.settings["draws"]
        run = ChainRun(
            chain, Moments(shape, earlier.cells), np.zeros((shape[0], K)), np.zeros((shape[1], K)),
            earlier.states[chain], earlier.train_mse[chain].tolist(),
            earlier.seconds[chain].tolist(),
        )  # fmt: skip
        for d in range(done):
            left, right = (side[chain * done + d] for side in self._predictors)
            run.add(left, right, earlier.draws["U"][chain, d], earlier.draws["V"][chain, d],
                    self._plan.problem.threads)  # fmt: skip
        return run.to_arrays()


def sample_whole(*arguments: Any, **options: Any) -> Posterior:
    """As `sample`, for a result that is of use only if it is whole: an interrupt raises."""
    posterior = sample(*arguments, **options)
    if posterior.interrupted:
        raise KeyboardInterrupt
    return posterior


def _starts(init: str | Posterior, problem: Problem, chains: int) -> tuple[Any, ...]:
    """State from which each chain goes on, or None where it has to find a start of its own."""
    if not isinstance(init, Posterior):
        check_init(init)
        return (None,) * chains
    if "stacking" in init.settings:
        raise ModelError("init: draws of weighted chains cannot go on; give the run itself.")
    ours, theirs = _variables(problem), init.states[0].variables()
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
    names, own = _variables(problem), problem.model.likelihood.variables(problem.X.shape)
    wanted = [keep] if isinstance(keep, str) else list(keep)
    if wanted == ["all"]:
        return names
    for name in wanted:
        if name not in names:
            raise ModelError(
                f"keep: {problem.model.name} has no variable {name!r}; it has "
                f"{', '.join(names)}.{nearest(name, names)}"
            )
    return [name for name in names if name in wanted or name in own]


def _variables(problem: Problem) -> list[str]:
    """Names of all random variables of a chain."""
    return list(problem.model.variables(problem.X.shape, problem.n_components))


def _gather(plan: Plan, memory: Memory, runs: list[ChainRun]) -> Posterior:
    """Combine the chains, in order, so that the result does not depend on who finished first."""
    X, problem = plan.problem.X, plan.problem
    done = min(run.moments.count for run in runs)
    sweeps = min(len(run.seconds) for run in runs)
    notes = problem.model.notes(X)
    own = {
        name: np.concatenate([memory.arrays[name][run.number, :done] for run in runs])
        for name in problem.model.likelihood.variables(X.shape)
    }
    notes += problem.model.likelihood.notes(own, X, problem.n_components)
    notes += memory.notes
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
    moments = runs[0].moments
    for run in runs[1:]:
        moments.merge(run.moments)
    moments.square /= max(1, moments.count - 1)  # in place: these are the largest arrays of a run
    shape = X.shape if plan.cells is None else (-1,)
    return Posterior(
        model=problem.model, n_components=problem.n_components, shape=X.shape, cells=plan.cells,
        mean=moments.mean.reshape(shape), variance=moments.square.reshape(shape), draws=draws,
        train_mse=np.array([run.train_mse[:sweeps] for run in runs]),
        seconds=np.array([run.seconds[:sweeps] for run in runs]),
        U_mean=np.stack([run.U_mean for run in runs]),
        V_mean=np.stack([run.V_mean for run in runs]),
        states=tuple(run.state for run in runs if run.state is not None),
        empty_rows=X.empty_rows, empty_cols=X.empty_cols,
        row_labels=X.row_labels, col_labels=X.col_labels, notes=tuple(notes),
        settings={
            "draws": done, "burn_in": plan.burn_in, "thin": plan.thin, "chains": len(runs),
            "init": plan.init, "scale_move": problem.scale_move, "seed": plan.seed.entropy,
            "interrupted": not whole,
        },
        fingerprint=plan.fingerprint,
    )  # fmt: skip
