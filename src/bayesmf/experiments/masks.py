"""Splits as the study made them; its masks are drawn anew until no row or column is empty."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from bayesmf._errors import DataError
from bayesmf.observed import ObservedMatrix
from bayesmf.streams import Array

TRIES = 1000

Flags = np.ndarray


def stratified(X: ObservedMatrix, folds: int, rng: np.random.Generator) -> Array:
    """Fold of every entry: each column is spread evenly over the folds."""
    cols, order = X.triples()[1], np.empty(X.n_observed, dtype=np.int64)
    indptr = X.cols.indptr

    def draw() -> Array:
        shuffled = np.lexsort((rng.random(cols.size), cols))
        place = np.arange(cols.size) - indptr[cols[shuffled]]
        # Columns begin with different folds, so that the folds are of one size too.
        order[shuffled] = (place + rng.permutation(X.shape[1])[cols[shuffled]]) % folds
        return order.copy()

    return _until_covered(X, draw, range(folds))


def plain(X: ObservedMatrix, folds: int, rng: np.random.Generator) -> Array:
    """Fold of every entry: shuffled entries cut into equal parts."""
    parts = np.arange(X.n_observed) * folds // X.n_observed
    return _until_covered(X, lambda: rng.permutation(parts), range(folds))


def random_split(X: ObservedMatrix, fraction: float, rng: np.random.Generator) -> Flags:
    """Flags of the test entries: a fraction of the whole matrix is not observed in training.

    One entry of every column is put in training first, and the nominal number beyond these.
    """
    cols, n = X.triples()[1], X.n_observed
    wanted = int(X.shape[0] * X.shape[1] * (1 - fraction))

    def draw() -> Array:
        order = rng.permutation(n)
        _, first = np.unique(cols[order], return_index=True)
        train = np.zeros(n, dtype=bool)
        train[order[first]] = True
        others = order[~train[order]]
        train[others[:wanted]] = True
        return (~train).astype(np.int64)

    return _until_covered(X, draw, (1,)) == 1


def _until_covered(X: ObservedMatrix, draw: Callable[[], Array], tests: Iterable[int]) -> Array:
    """The first draw of folds of which no test fold takes all of a row or column."""
    rows, cols, _ = X.triples()
    for _ in range(TRIES):
        fold = draw()
        if all(_covers(X, rows, cols, fold != k) for k in tests):
            return fold
    raise DataError(f"{TRIES} random splits all left a row or column without training data.")


def _covers(X: ObservedMatrix, rows: Array, cols: Array, train: Flags) -> bool:
    return all(
        np.array_equal(np.bincount(lines[train], minlength=empty.size) == 0, empty)
        for lines, empty in ((rows, X.empty_rows), (cols, X.empty_cols))
    )
