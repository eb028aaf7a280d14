"""The sampler: initial state, sweep, chain. This is the page to read first.

A sweep is: move the scales; biases; rows' hyper-variables, then rows' factors; the same for the
columns; what both sides share; the noise. A chain repeats it, yields each state, and a state holds
all that the next sweep needs: saved and loaded, it goes on bit for bit as if it had never stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bayesmf import _threads, updates
from bayesmf import distributions as dist
from bayesmf._errors import ModelError
from bayesmf._files import replacing
from bayesmf.biases import augmented, without
from bayesmf.hyperpriors import Values
from bayesmf.kernels.fill import fill_log_scales
from bayesmf.likelihoods import Side
from bayesmf.model import Model, joint_scale_terms
from bayesmf.observed import ObservedMatrix, View
from bayesmf.streams import Array, RandomState, Stream, seed_words

_GROUPS = ("rows", "cols", "shared", "noise", "biases")


@dataclass(frozen=True, eq=False)
class State:
    """One point of a chain: factors, hyper-variables, and where the random streams stand.

    ``rows`` and ``cols`` hold the hyper-variables of either side, ``shared`` those of both,
    ``noise`` those of the likelihood, ``biases`` mean, effects and their precisions, if the model
    has them. ``error`` is the sum of squared residuals.
    """

    U: Array
    V: Array
    rows: Values
    cols: Values
    shared: Values
    noise: Values
    error: float
    seed: Array
    chain: int
    sweep: int
    biases: Values = field(default_factory=dict)

    def variables(self) -> Values:
        """All random variables by name: "U", "V", "noise_precision", "rows.eta", "bias.mean"."""
        named = {"U": self.U, "V": self.V, **self.noise, **self.shared}
        for side in ("rows", "cols"):
            named |= {f"{side}.{name}": value for name, value in getattr(self, side).items()}
        return named | {f"bias.{name}": value for name, value in self.biases.items()}

    def predictors(self) -> tuple[Array, Array]:
        """Two arrays whose product is the mean of all cells: U and V, biases put beside them."""
        return augmented(self.U, self.V, self.biases)

    def copy(self) -> State:
        """Return a state with arrays of its own."""
        groups = {g: {k: v.copy() for k, v in getattr(self, g).items()} for g in _GROUPS}
        return replace(self, U=self.U.copy(), V=self.V.copy(), **groups)  # type: ignore[arg-type]

    def to_arrays(self) -> dict[str, Array]:
        """All of it as plain arrays by name."""
        arrays = {f"{g}.{k}": v for g in _GROUPS for k, v in getattr(self, g).items()}
        numbers = {"error": self.error, "chain": self.chain, "sweep": self.sweep}
        return {
            "U": self.U, "V": self.V, "seed": self.seed, **arrays,
            "numbers": np.array(json.dumps(numbers)),
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> State:
        """Return the state that `to_arrays` took apart."""
        groups: dict[str, Any] = {g: {} for g in _GROUPS}
        for name in arrays:
            group, _, key = name.partition(".")
            if key and group in groups:
                groups[group][key] = arrays[name]
        numbers = json.loads(str(arrays["numbers"]))
        return cls(arrays["U"], arrays["V"], **groups, **numbers, seed=arrays["seed"])

    def save(self, path: str | Path) -> None:
        """Write the state to an .npz file, whole or not at all."""
        write_arrays(path, self.to_arrays())

    @classmethod
    def load(cls, path: str | Path) -> State:
        """Read a state that `save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            return cls.from_arrays(dict(file))


def write_arrays(path: str | Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays to an .npz file, whole or not at all."""
    with replacing(path) as partial, open(partial, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Problem:
    """Data, a model whose defaults are filled in, a rank, and how to sweep."""

    X: ObservedMatrix
    model: Model
    n_components: int
    scale_move: bool = True
    threads: int = 1

    @classmethod
    def of(cls, X: Any, model: Model, n_components: int, **options: Any) -> Problem:
        """Check that model and data fit, and fill in the model's defaults."""
        X = ObservedMatrix.of(X)
        X.check_entries()
        if isinstance(n_components, bool) or not isinstance(n_components, (int, np.integer)):
            raise ModelError(f"n_components must be a whole number, got {n_components!r}.")
        if n_components < 1:
            raise ModelError(f"n_components must be at least 1, got {n_components}.")
        model.likelihood.check(X)
        return cls(X, model.resolve(X, int(n_components)), int(n_components), **options)

    def given(self, biases: Values) -> Problem:
        """The problem that is left to the factors: data less the biases."""
        return replace(self, X=without(self.X, biases)) if biases else self

    def side(self, state: State, index: int) -> Side:
        """The rows (0) or columns (1) of a state as a half-sweep sees them."""
        prior = (self.model.rows, self.model.cols)[index]
        own = (state.rows, state.cols)[index]
        X, F = (state.U, state.V) if index == 0 else (state.V, state.U)
        return Side(
            index, (self.X.rows, self.X.cols)[index], X, F, prior, prior.values(own, state.shared)
        )

    def variable_names(self) -> list[str]:
        """Names of all random variables of the chain, as in `State.variables`."""
        one = ObservedMatrix.of(np.ones((1, 1)))
        return list(initial_state(replace(self, X=one), "prior", 0).variables())


def check_init(init: str) -> None:
    """Refuse a start of unknown name."""
    if init not in ("data", "prior"):
        raise ModelError(f"init must be 'data' or 'prior', got {init!r}.")


def initial_state(
    problem: Problem, init: str = "data", random_state: RandomState = None, chain: int = 0
) -> State:
    """State before the first sweep.

    ``init="prior"`` draws everything from the prior, as the study did. ``init="data"`` gives the
    factors the scale of the data, which needs fewer sweeps, and draws the rest given the factors.
    """
    check_init(init)
    X, model, K = problem.X, problem.model, problem.n_components
    seed = seed_words(random_state)
    stream = Stream(seed, chain, 0, problem.threads)
    with _threads.one_blas_thread():
        shared: Values = {}
        if model.shared_ard:
            shared["relevance"] = model.shared_ard.prior().draw(stream, (K,))
        U, rows = model.rows.draw(stream, X.shape[0], K, shared)
        V, cols = model.cols.draw(stream, X.shape[1], K, shared)
        state = State(U, V, rows, cols, shared, {}, 0.0, seed, chain, 0)
        if model.biases:
            start = init == "data"
            found = model.biases.start(X, stream) if start else model.biases.draw(stream, X.shape)
            state, problem = replace(state, biases=found), problem.given(found)
        if init == "data":
            _scale_to_data(problem, state, stream)
            for one, other, prior in ((U, V, model.rows), (V, U, model.cols)):
                scale = prior.typical_scale(one)
                one *= scale
                other /= scale
            for index in (0, 1):
                _update_hyper(problem, state, index, stream)
            _update_shared(problem, state, stream)
        return _finish(problem, state, stream)


def _scale_to_data(problem: Problem, state: State, stream: Stream) -> None:
    """Overwrite the factors with random ones whose product has the mean and spread of the data."""
    X, K = problem.X, problem.n_components
    mean = X.mean
    size = max(X.variance**0.5, 0.1 * abs(mean)) or 1.0
    if all(problem.model.nonnegative):
        # Every factor adds its share of the mean, in the shape of a few lines of the data.
        level = max(mean, 0.1 * size)
        for F, view in ((state.U, X.cols), (state.V, X.rows)):
            F[:] = _few_lines(view, F.shape, mean, stream)
            np.maximum(F, 0.01 * level, out=F)
            F *= (level / K) ** 0.5 / F.mean(axis=0)
        return
    for F, nonnegative in zip((state.U, state.V), problem.model.nonnegative, strict=True):
        F[:] = dist.Normal(0.0, (K / size**2) ** 0.5).draw(stream, F.shape)
        if nonnegative:
            F[:] = np.abs(F)
    if abs(mean) > 0.1 * size:  # the first factor carries the grand mean
        sign = -1.0 if problem.model.nonnegative[1] and mean < 0 else 1.0
        state.U[:, 0] = 0.1 * state.U[:, 0] + sign * abs(mean) ** 0.5
        state.V[:, 0] = 0.1 * state.V[:, 0] + sign * np.sign(mean) * abs(mean) ** 0.5


def _few_lines(view: View, shape: tuple[int, int], mean: float, stream: Stream) -> Array:
    """Columns (n, K), each the average of three random lines of the data, the mean in gaps."""
    rng = np.random.default_rng(stream.key().tolist())
    F = np.full(shape, mean)
    for k in range(shape[1]):
        for line in rng.integers(0, view.n, 3):
            part = slice(view.indptr[line], view.indptr[line + 1])
            F[view.indices[part], k] += (view.values[part] - mean) / 3
    return F


def sweep(problem: Problem, state: State) -> State:
    """One Gibbs sweep: a new state; the old one is left as it was."""
    stream = Stream(state.seed, state.chain, state.sweep + 1, problem.threads)
    state = replace(state.copy(), sweep=state.sweep + 1)
    with _threads.one_blas_thread():
        if problem.scale_move and state.sweep > 1:  # a mere starting point has no scale to move
            move_scales(problem, state, stream)
        if problem.model.biases:
            tau = float(state.noise["noise_precision"])
            problem.model.biases.step(problem.X, state.U, state.V, state.biases, tau, stream)
            problem = problem.given(state.biases)
        auxiliary = problem.model.likelihood.begin(problem.X, state.U, state.V, stream)
        errors = None
        for index in (0, 1):
            _update_hyper(problem, state, index, stream)
            side = problem.side(state, index)
            errors = problem.model.likelihood.draw_side(side, state.noise, auxiliary, stream)
        _update_shared(problem, state, stream)
        return _finish(problem, state, stream, errors)


def move_scales(problem: Problem, state: State, stream: Stream) -> None:
    """Exact move along U_k -> c U_k, V_k -> V_k / c, which the likelihood does not see."""
    rows, cols = problem.side(state, 0), problem.side(state, 1)
    joint = joint_scale_terms(
        rows.prior.scale_terms(rows.X, rows.h), cols.prior.scale_terms(cols.X, cols.h)
    )
    if joint is None:
        return
    terms, up, low = joint
    x = np.empty(terms.exponent.shape[0])
    fill_log_scales(stream.key(), terms.exponent, terms.log_weights, up, low, x)
    c = np.exp(np.broadcast_to(x, (problem.n_components,)))
    for side, own, factor in ((rows, state.rows, c), (cols, state.cols, 1 / c)):
        side.X[:] *= factor
        own.update(side.prior.rescale(own, factor))


def _update_hyper(problem: Problem, state: State, index: int, stream: Stream) -> None:
    """Draw one side's hyper-variables; each step sees the values drawn before it."""
    side = problem.side(state, index)
    own = (state.rows, state.cols)[index]
    for name, distribution in side.prior.updates(side.X, side.h):
        side.h[name] = own[name] = distribution.draw(stream, own[name].shape)


def _update_shared(problem: Problem, state: State, stream: Stream) -> None:
    """Draw what governs both sides: the relevance of each factor."""
    model = problem.model
    if model.shared_ard:
        statistics = [model.rows.relevance_terms(state.U), model.cols.relevance_terms(state.V)]
        conditional = model.shared_ard.conditional(statistics)
        state.shared["relevance"] = conditional.draw(stream, (problem.n_components,))


def _finish(problem: Problem, state: State, stream: Stream, errors: Array | None = None) -> State:
    """Draw the likelihood's own parameters from the residuals of the new factors.

    ``errors`` are the sums of squared residuals of all columns, if they are known already.
    """
    if errors is None:
        errors = updates.row_errors(problem.X.cols, state.V, state.U, problem.threads)
    error = float(errors.sum())
    if not np.isfinite(error):
        raise FloatingPointError(
            f"The chain of {problem.model.name} left the range of double precision in sweep "
            f"{state.sweep}; rescale the data, or use a smaller rank or weaker hyperparameters."
        )
    noise = problem.model.likelihood.update(problem.X, error, stream)
    return replace(state, noise=noise, error=error)


def chain(
    problem: Problem,
    init: str = "data",
    random_state: RandomState = None,
    number: int = 0,
    state: State | None = None,
) -> Iterator[State]:
    """Yield the state after every sweep, for ever; stop by not asking for more.

    Give a ``state`` to go on from it; its own seed then decides, not ``random_state``.
    """
    if state is None:
        state = initial_state(problem, init, random_state, number)
    while True:
        state = sweep(problem, state)
        yield state
