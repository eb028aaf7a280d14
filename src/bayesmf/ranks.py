"""Choosing the rank, and the noise with it, by the errors of entries that are held out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bayesmf import _threads
from bayesmf._errors import DataError, ModelError
from bayesmf.data.observed import ObservedMatrix
from bayesmf.metrics import mse
from bayesmf.model.model import Model
from bayesmf.posterior.new_rows import needed
from bayesmf.posterior.posterior import Posterior
from bayesmf.posterior.predictive import Predictive, expected, kept_for
from bayesmf.posterior.sample import sample_whole
from bayesmf.splits import Triples, fold_numbers, kfold, split_at
from bayesmf.streams import Array, RandomState, seed_words

ABOVE_NOISE = 4.0
WORSE = 1.02  # times the best error: a rank that is a step too far
LADDER = (1, 2, 3, 5, 8, 12, 20, 30)  # candidates, where nobody names any
_PARTS, _MANY = 8, 20_000  # one part is held out; entries from which on one part is enough
_BURN_IN, _DRAWS = 60, 90  # sweeps of a short chain
# Parts of an error by which another may be larger:
_CLEARLY = 0.005  # and matter to nobody
_NEAR = 0.015  # and fewer factors may still be as good
_HARMLESS = 0.02  # for factors that are not needed, but do no harm
_MIDDLE = 8  # the step of the ladder that is tried first
_PATIENCE = 2  # steps up that may bring nothing


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


class Choice(NamedTuple):
    """What held-out entries say about rank and model: mean squared errors, of the model's units."""

    model: str
    rank: int
    errors: dict[int, float]  # by rank, of the first model
    others: dict[str, float]  # by model, at the rank that was chosen

    def __str__(self) -> str:
        tried = ", ".join(f"{k}: {error:.4g}" for k, error in sorted(self.errors.items()))
        chosen = [f"rank {self.rank} (errors by rank {tried})"] if tried else []
        if len(self.others) > 1:
            chosen.append(f"{self.model} among {', '.join(self.others)}")
        return f"Chosen by entries held out: {'; '.join(chosen)}."


def automatic(
    X: ObservedMatrix,
    models: dict[str, Model],
    rank: int | None = None,
    *,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Choice:
    """The rank, and the model among some, that predict held-out entries best.

    An eighth of the entries is held out, twice if there are few, and short chains predict them at
    the ranks of `LADDER`: from the middle up, until two in a row bring nothing, and then down,
    as long as that is not clearly worse. The smallest rank whose error is as good as the
    best one's, up to half a percent or one standard error of the difference over the same entries,
    is then found between two steps; but a table of few rows or columns gets
    as many factors as it has of these, unless fewer are clearly better: idle factors are harmless,
    and a few entries tell ranks apart by chance. The other models are tried at this rank, and must
    beat the first in error and in log density. A model whose noise has too few entries to be
    trusted is left out if another has not.
    """
    trials = _Trials(X, seed_words(random_state).tolist(), n_jobs)
    first = next(iter(models))
    errors: dict[int, float] = {}
    if rank is None:
        losses = _Losses(lambda k: trials.scores(models[first], k).squares)
        rank, errors = _find(losses, min(X.shape)), losses.errors
    found = {name: trials.scores(model, rank) for name, model in models.items() if len(models) > 1}
    sound = [name for name, scores in found.items() if scores.sound] or [first]
    best = sound[0]
    for name in sound[1:]:
        if (
            found[name].error < (1 - _CLEARLY) * found[best].error
            and found[name].density > found[best].density
        ):
            best = name
    return Choice(best, rank, errors, {name: scores.error for name, scores in found.items()})


class Scores(NamedTuple):
    """Squared errors and log densities of held-out entries; whether nothing speaks against it."""

    squares: Array
    densities: Array
    sound: bool

    @property
    def error(self) -> float:
        return float(self.squares.mean())

    @property
    def density(self) -> float:
        return float(self.densities.mean())


class _Trials:
    """Short chains on all but a part of the entries."""

    def __init__(self, X: ObservedMatrix, seed: list[int], n_jobs: int | None) -> None:
        self.seed, self.threads = seed, _threads.count(n_jobs)
        self.known: dict[tuple[Model, int], Scores] = {}
        try:
            fold = fold_numbers(X, _PARTS, np.random.SeedSequence(seed), keep_singles=True)
        except (DataError, ModelError):  # too few entries to hold out any
            self.parts = []
            return
        times = 2 if X.n_observed < _MANY else 1
        self.parts = [split_at(X, fold == k) for k in range(times) if (fold == k).any()]

    def _sample(self, train: ObservedMatrix, model: Model, rank: int, **options: Any) -> Posterior:
        return sample_whole(
            train, model, rank, draws=_DRAWS, burn_in=_BURN_IN,
            n_jobs=max(1, self.threads // len(self.parts)),
            random_state=np.random.SeedSequence([*self.seed, rank]), **options,
        )  # fmt: skip

    def _on_parts(self, function: Callable[[ObservedMatrix, Triples], Any]) -> list[Any]:
        """What a function of training data and held-out entries finds; parts run side by side."""
        if min(self.threads, len(self.parts)) < 2:
            return [function(*part) for part in self.parts]
        with ThreadPoolExecutor(len(self.parts)) as pool:
            return list(pool.map(function, *zip(*self.parts, strict=True)))

    def scores(self, model: Model, rank: int) -> Scores:
        """How well a model predicts held-out entries, and whether its noise can be trusted."""
        if (model, rank) not in self.known:
            self.known[model, rank] = self._scores(model, rank)
        return self.known[model, rank]

    def _scores(self, model: Model, rank: int) -> Scores:
        def judged(train: ObservedMatrix, test: Triples) -> tuple[Array, Array, bool]:
            posterior = self._sample(train, model, rank, cells=test[:2], keep=needed(model))
            squares = (test[2] - expected(posterior, test[:2])) ** 2
            densities = Predictive.of(posterior).log_density(test[:2], test[2])
            own = posterior.likelihood_values()
            return squares, densities, not posterior.model.likelihood.notes(own, train, rank)

        found = self._on_parts(judged)
        if not found:
            return Scores(np.zeros(1), np.zeros(1), True)
        squares, densities, sound = zip(*found, strict=True)
        return Scores(np.concatenate(squares), np.concatenate(densities), all(sound))


class _Losses:
    """Squared errors of the same held-out entries by rank, found when they are first asked for."""

    def __init__(self, of: Callable[[int], Array]) -> None:
        self._of, self._squares = of, dict[int, Array]()
        self.errors: dict[int, float] = {}

    def error(self, rank: int) -> float:
        """Mean squared error at a rank."""
        if rank not in self.errors:
            self._squares[rank] = self._of(rank)
            self.errors[rank] = float(self._squares[rank].mean())
        return self.errors[rank]

    @property
    def best(self) -> int:
        """The rank with the least error so far."""
        return min(self.errors, key=self.errors.__getitem__)

    def is_worse(self, rank: int, than: int, by: float) -> bool:
        """Whether a rank's error is this part larger than another's, and not by chance.

        By chance it may be one standard error of the difference over the entries.
        """
        more = self.error(rank) - self.error(than)
        differences = self._squares[rank] - self._squares[than]
        return more > max(by * self.error(than), differences.std() / differences.size**0.5)


def _find(losses: _Losses, size: int) -> int:
    """The rank for a matrix whose smaller side has this size."""
    _climb(losses, min(LADDER[-1], size))
    if size <= LADDER[-1] and not losses.is_worse(size, losses.best, _HARMLESS):
        return size
    return _smallest(losses)


def _climb(losses: _Losses, most: int) -> None:
    """Try steps of the ladder, from the middle up and then down, as far as they are good."""
    steps = [step for step in LADDER if step < most] + [most]
    start = min(len(steps) - 1, LADDER.index(_MIDDLE))
    losses.error(steps[start])
    idle = 0
    for rank in steps[start + 1 :]:
        best = losses.best
        idle = 0 if losses.is_worse(best, rank, _CLEARLY) else idle + 1
        if idle == _PATIENCE:
            break
    for above, rank in pairwise(steps[start::-1]):
        if losses.is_worse(above, losses.best, _NEAR):
            break
        losses.error(rank)


def _smallest(losses: _Losses) -> int:
    """The smallest rank that is as good as the best, also between the steps."""
    best = losses.best
    high = min(k for k in losses.errors if not losses.is_worse(k, best, _CLEARLY))
    low = max((k for k in losses.errors if k < high), default=0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if losses.is_worse(middle, best, _CLEARLY) else (low, middle)
    return high


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
