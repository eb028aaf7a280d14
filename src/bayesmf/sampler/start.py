"""The state before the first sweep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayesmf import _threads
from bayesmf._errors import ModelError
from bayesmf.data.observed import ObservedMatrix, View
from bayesmf.likelihoods.base import Fit, Weights
from bayesmf.model.biases import without
from bayesmf.model.model import Model
from bayesmf.priors import Prior
from bayesmf.priors import distributions as dist
from bayesmf.priors.distributions import Values
from bayesmf.sampler.state import Problem, State
from bayesmf.sampler.sweep import finish, update_hyper, update_shared
from bayesmf.streams import Array, RandomState, Stream, seed_words


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
    model, K = problem.model, problem.n_components
    X = model.likelihood.targets(problem.X)
    seed = seed_words(random_state)
    stream = Stream(seed, chain, 0, problem.threads)
    with _threads.one_blas_thread():
        shared: Values = {}
        if model.shared_ard:
            shared["relevance"] = model.shared_ard.prior().draw(stream, (K,))
        U, rows = _drawn(model.rows, stream, X.shape[0], K, shared)
        V, cols = _drawn(model.cols, stream, X.shape[1], K, shared)
        noise = model.likelihood.start(problem.X)
        state = State(U, V, rows, cols, shared, noise, 0.0, seed, chain, 0)
        if model.biases:
            start = init == "data"
            found = model.biases.start(X, stream) if start else model.biases.draw(stream, X.shape)
            state, X = replace(state, biases=found), without(X, found)
        if init == "data":
            _scale_to_data(problem.model, X, state, stream)
            for one, other, prior in ((U, V, model.rows), (V, U, model.cols)):
                scale = prior.typical_scale(one)
                one *= scale
                other /= scale
            for index in (0, 1):
                update_hyper(problem, state, index, stream)
            update_shared(problem, state, stream)
        fit = Fit(X, state.U, state.V, problem.threads, weights=Weights(entries=X.weights))
        return finish(problem, state, fit, stream)


def _drawn(prior: Prior, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
    """Factors and hyper-variables from a prior, which must be what it says that they are."""
    U, own = prior.draw(stream, n, K, shared)
    said = {name: v.shape for name, v in prior.variables(n, K).items() if name not in shared}
    found = {"U": np.shape(U), **{name: np.shape(value) for name, value in own.items()}}
    if found != {"U": (n, K), **said}:
        listed = ", ".join(f"{name} {shape}" for name, shape in found.items())
        wanted = ", ".join(f"{name} {shape}" for name, shape in {"U": (n, K), **said}.items())
        raise ModelError(f"{type(prior).__name__}.draw must return {wanted}; it returns {listed}.")
    return U, own


def _scale_to_data(model: Model, X: ObservedMatrix, state: State, stream: Stream) -> None:
    """Overwrite the factors with random ones whose product has the mean and spread of the data."""
    K, mean = state.U.shape[1], X.mean
    size = max(X.variance**0.5, 0.1 * abs(mean)) or 1.0
    if all(model.nonnegative):
        # Every factor adds its share of the mean, in the shape of a few lines of the data.
        level = max(mean, 0.1 * size)
        for factors, view in ((state.U, X.cols), (state.V, X.rows)):
            factors[:] = _few_lines(view, factors.shape, mean, stream)
            np.maximum(factors, 0.01 * level, out=factors)
            factors *= (level / K) ** 0.5 / factors.mean(axis=0)
        return
    for factors, nonnegative in zip((state.U, state.V), model.nonnegative, strict=True):
        factors[:] = dist.Normal(precision=(K / size**2) ** 0.5).draw(stream, factors.shape)
        if nonnegative:
            factors[:] = np.abs(factors)
    if abs(mean) > 0.1 * size:  # the first factor carries the grand mean
        sign = -1.0 if model.nonnegative[1] and mean < 0 else 1.0
        state.U[:, 0] = 0.1 * state.U[:, 0] + sign * abs(mean) ** 0.5
        state.V[:, 0] = 0.1 * state.V[:, 0] + sign * np.sign(mean) * abs(mean) ** 0.5


def _few_lines(view: View, shape: tuple[int, int], mean: float, stream: Stream) -> Array:
    """Columns (n, K), each the average of three random lines of the data, the mean in gaps."""
    rng = np.random.default_rng(stream.key().tolist())
    factors = np.full(shape, mean)
    for k in range(shape[1]):
        for line in rng.integers(0, view.n, 3):
            part = slice(view.indptr[line], view.indptr[line + 1])
            factors[view.indices[part], k] += (view.row(line) - mean) / 3
    return factors
