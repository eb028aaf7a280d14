"""Splits as the study made them; its masks are drawn anew until no row or column is empty."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from bayesmf._errors import DataError
from bayesmf.data.observed import ObservedMatrix
from bayesmf.streams import Array

TRIES = 1000


def stratified(X: ObservedMatrix, folds: int, rng: np.random.Generator) -> Array:
    """Fold of every entry: each column is spread evenly over the folds."""
    cols, fold = X.triples()[1], np.empty(X.n_observed, dtype=np.int64)

    def draw() -> Array:
        shuffled = np.lexsort((rng.random(cols.size), cols))
        place = np.arange(cols.size) - X.cols.indptr[cols[shuffled]]
        # Columns begin with different folds, so that the folds are of one size too.
        fold[shuffled] = (place + rng.permutation(X.shape[1])[cols[shuffled]]) % folds
        return fold

    return _until_covered(X, draw, range(folds))


def plain(X: ObservedMatrix, folds: int, rng: np.random.Generator) -> Array:
    """Fold of every entry: shuffled entries cut into equal parts."""
    parts = np.arange(X.n_observed) * folds // X.n_observed
    return _until_covered(X, lambda: rng.permutation(parts), range(folds))


def random_split(X: ObservedMatrix, fraction: float, rng: np.random.Generator) -> Array:
    """Flags of the test entries: a fraction of the whole matrix is not observed in training.

    One entry of every column is put in training first, and the nominal number beyond these.
    """
    cols, n = X.triples()[1], X.n_observed
    wanted = int(X.shape[0] * X.shape[1] * (1 - fraction))

    def draw() -> Array:
        order = rng.permutation(n)
        _, first = np.unique(cols[order], return_index=True)
        test = np.ones(n, dtype=bool)
        test[order[first]] = False
        test[order[test[order]][:wanted]] = False
        return test

    return _until_covered(X, draw, (True,))


def _until_covered(X: ObservedMatrix, draw: Callable[[], Array], tests: Iterable[int]) -> Array:
    """The first draw of folds of which no test fold takes all of a row or column."""
    rows, cols, _ = X.triples()
    sides = ((rows, X.empty_rows), (cols, X.empty_cols))
    for _ in range(TRIES):
        fold = draw()
        if all(
            np.array_equal(np.bincount(lines[fold != k], minlength=empty.size) == 0, empty)
            for k in tests
            for lines, empty in sides
        ):
            return fold
    raise DataError(f"{TRIES} random splits all left a row or column without training data.")
