"""One sweep: the page to read first.

A sweep is: move scales, and rotate factors whose priors have axes; working data of the likelihood,
and before them those of its variables that are drawn without them; biases; rows' hyper-variables,
rows' factors and what they were drawn without, the noise of the rows if they have their own; the
same for the columns; what both sides share; the rest of the likelihood's variables. A chain repeats
it, and a state holds all that the next sweep needs: saved and loaded, it goes on bit for bit as if
it had never stopped.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayesmf import _threads
from bayesmf._errors import ModelError, RangeError
from bayesmf.kernels.fill import fill_log_scales
from bayesmf.kernels.rotation import FLAT, rotate_pairs
from bayesmf.likelihoods.base import Fit
from bayesmf.model.biases import level, without
from bayesmf.model.model import joint_scale_terms
from bayesmf.sampler.state import Problem, State
from bayesmf.streams import Stream


def sweep(problem: Problem, state: State) -> State:
    """One Gibbs sweep: a new state; the old one is left as it was."""
    stream = Stream(state.seed, state.chain, state.sweep + 1, problem.threads)
    state = replace(state.copy(), sweep=state.sweep + 1)
    with _threads.one_blas_thread(problem.threads):
        if problem.scale_move and state.sweep > 1:  # a mere starting point has no scale to move
            move_scales(problem, state, stream)
            rotate_factors(problem, state, stream)
        likelihood, beside = problem.model.likelihood, level(state.biases)
        fit = Fit(problem.X, state.U, state.V, problem.threads, beside=beside)
        likelihood.refresh(fit, state.noise, stream, state.sweep)
        working = likelihood.working(fit, state.noise, stream)
        if problem.model.biases:
            problem.model.biases.step(working, state.U, state.V, state.biases, stream)
            working = replace(working, X=without(working.X, state.biases))
        errors = None
        for index in (0, 1):
            update_hyper(problem, state, index, stream)
            side = problem.side(state, index, working.X)
            errors = working.draw(side, stream)
            update_hyper(problem, state, index, stream, afterwards=True)
            working = likelihood.update_side(side, working, errors, state.noise, stream)
        update_shared(problem, state, stream)
        fit = Fit(working.X, state.U, state.V, problem.threads, errors, working.weights)
        return finish(problem, state, fit, stream)


def move_scales(problem: Problem, state: State, stream: Stream) -> None:
    """Exact move along U_k -> c U_k, V_k -> V_k / c, which the likelihood does not see."""
    rows, cols = problem.side(state, 0), problem.side(state, 1)
    joint = joint_scale_terms(
        rows.prior.scale_terms(rows.U, rows.values), cols.prior.scale_terms(cols.U, cols.values)
    )
    if joint is None:
        return
    terms, up, low = joint
    x = np.empty(terms.exponent.shape[0])
    fill_log_scales(stream.key(), terms.exponent, terms.log_weights, up, low, x)
    c = np.exp(np.broadcast_to(x, (problem.n_components,)))
    for side, own, factor in ((rows, state.rows, c), (cols, state.cols, 1 / c)):
        side.U[:] *= factor
        own.update(side.prior.rescale(own, factor))


def rotate_factors(problem: Problem, state: State, stream: Stream) -> None:
    """Exact move of factors, two by two, along a rotation, which the likelihood does not see.

    Hyper-variables of entries are integrated out: both sides draw theirs anew before their use.
    """
    rows, cols = problem.model.rows.rotation_terms(), problem.model.cols.rotation_terms()
    if rows is None or cols is None or rows.law == cols.law == FLAT:
        return
    rotate_pairs(stream.key(), tuple(rows), tuple(cols), state.U, state.V)


def update_hyper(
    problem: Problem, state: State, index: int, stream: Stream, *, afterwards: bool = False
) -> None:
    """Draw one side's hyper-variables; each step sees the values drawn before it.

    Those that the factors are drawn without, integrated over, come afterwards.
    """
    side = problem.side(state, index)
    own = (state.rows, state.cols)[index]
    steps = side.prior.afterwards if afterwards else side.prior.updates
    for name, distribution in steps(side.U, side.values):
        said = f"{type(side.prior).__name__}.{steps.__name__}: {name!r}"
        if name not in own:
            raise ModelError(f"{said} is none of its variables, {', '.join(own) or 'of none'}.")
        try:
            side.values[name] = own[name] = distribution.draw(stream, own[name].shape)
        except ModelError as error:
            raise ModelError(f"{said}: {error}") from None


def update_shared(problem: Problem, state: State, stream: Stream) -> None:
    """Draw what governs both sides: the relevance of each factor."""
    model = problem.model
    if model.shared_ard:
        sides = (problem.side(state, index) for index in (0, 1))
        statistics = [
            side.prior.relevance_terms(side.prior.governed(side.U, side.values)) for side in sides
        ]
        conditional = model.shared_ard.conditional(statistics)
        state.shared["relevance"] = conditional.draw(stream, (problem.n_components,))


def out_of_range(problem: Problem, state: State) -> RangeError:
    """The error of a chain whose numbers cannot be told any more."""
    return RangeError(
        f"The chain of {problem.model.name} left the range of double precision in sweep "
        f"{state.sweep}; rescale the data, or use a smaller rank or weaker hyperparameters."
    )


def finish(problem: Problem, state: State, fit: Fit, stream: Stream) -> State:
    """Draw the likelihood's own variables given the new fit."""
    error = fit.squared_error
    if not np.isfinite(error):
        raise out_of_range(problem, state)
    noise = problem.model.likelihood.update(fit, state.noise, stream)
    return replace(state, noise=noise, error=error)
