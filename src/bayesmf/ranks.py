"""Choosing the rank: held-out error of every candidate, over folds of the observed entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bayesmf._errors import ModelError
from bayesmf.data.observed import ObservedMatrix
from bayesmf.metrics import mse
from bayesmf.model.model import Model
from bayesmf.posterior.posterior import Posterior
from bayesmf.posterior.predictive import expected, kept_for
from bayesmf.posterior.sample import sample_whole
from bayesmf.splits import kfold
from bayesmf.streams import RandomState, seed_words

GENEROUS = 30  # factors of the first fit of an automatic rank, if the matrix is as large
ABOVE_NOISE = 4.0
WORSE = 1.02  # times the best error: a rank that is a step too far
LADDER = (1, 2, 3, 5, 8, 12, 20, 30)  # candidates, where nobody names any


def effective_rank(posterior: Posterior, X: ObservedMatrix) -> int:
    """Number of factors that carry signal: more than a factor can make of noise alone.

    A factor has I + J numbers, with which it can explain about (I + J) / n of the noise variance of
    n entries. Those that the data do not support come out at one to three times that.
    """
    U, V = posterior.align()
    size = np.mean(np.mean(U**2, axis=1) * np.mean(V**2, axis=1), axis=0)
    likelihood = posterior.model.likelihood
    noise = likelihood.noise_variance(posterior.likelihood_values(), X.mean)
    return int(np.sum(size > ABOVE_NOISE * noise * sum(X.shape) / X.n_observed))


def automatic_rank(X: ObservedMatrix, model: Model, **options: Any) -> int:
    """The number of factors that carry signal, at least one.

    The first fit has more factors than needed, and on noisy data some of the idle ones fit noise;
    so those that carry signal are fitted again alone, until all of them still do.
    """
    tried, rank = 0, min(GENEROUS, *X.shape)
    while rank != tried:
        tried = rank
        pilot = sample_whole(X, model, tried, draws=100, burn_in=200, keep=("U", "V"), **options)
        rank = max(1, effective_rank(pilot, X))
    return rank


def ranks_to_try(candidates: str | Iterable[int], shape: tuple[int, int]) -> list[int]:
    """The candidates in order, or those of `LADDER` that fit the matrix for the word "cv"."""
    if isinstance(candidates, str):
        return [rank for rank in LADDER if rank < min(shape)] or [1]
    ranks = sorted(set(candidates))
    if not ranks:
        raise ModelError("n_components: there is no candidate to choose from; name some ranks.")
    return ranks


def search(
    ranks: Iterable[int], error: Callable[[int], float], patience: int | None = None
) -> dict[int, float]:
    """Errors of the ranks, from small to large.

    With ``patience``, the search ends after so many in a row that are `WORSE` than the best.
    """
    errors: dict[int, float] = {}
    beyond = 0
    for rank in ranks:
        errors[rank] = error(rank)
        beyond = beyond + 1 if errors[rank] > WORSE * min(errors.values()) else 0
        if beyond == patience:
            break
    return errors


def cross_validate(
    X: ObservedMatrix,
    model: Model,
    n_components: int,
    *,
    folds: int = 5,
    random_state: RandomState = None,
    **options: Any,
) -> list[float]:
    """Mean squared error on each fold of the observed entries, sampled given the others.

    ``options`` are those of `sample`. The same seed makes the same folds for every model and rank.
    """
    seed = seed_words(random_state).tolist()
    errors = []
    parts = kfold(X, folds, np.random.SeedSequence(seed), keep_singles=True)
    for train, (rows, cols, values) in parts:
        posterior = sample_whole(
            train, model, n_components, cells=(rows, cols),
            random_state=np.random.SeedSequence(seed),
            keep=kept_for(model.likelihood.resolve(train)), **options,
        )  # fmt: skip
        errors.append(mse(values, expected(posterior, (rows, cols))))
    return errors


def choose_rank(
    X: ObservedMatrix, model: Model, candidates: str | Iterable[int], **options: Any
) -> tuple[int, dict[int, float]]:
    """The rank with the least cross-validated error, and the error of every candidate."""
    errors = search(
        ranks_to_try(candidates, X.shape),
        lambda rank: float(np.mean(cross_validate(X, model, rank, **options))),
    )
    return min(errors, key=errors.__getitem__), errors
