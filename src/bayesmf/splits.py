"""Random splits of the observed entries that leave no row or column without training data.

And, for what has features, splits that hold out whole rows or columns (`cold_folds`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bayesmf._arguments import checked
from bayesmf._errors import DataError, ModelError
from bayesmf.data.observed import ObservedMatrix, View

RandomState: TypeAlias = int | np.random.Generator | np.random.SeedSequence | None
Triples: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]
IntArray: TypeAlias = npt.NDArray[np.int64]

MAX_SHUFFLES = 1000


@checked
def holdout(
    X: Any, fraction: float = 0.1, random_state: RandomState = None
) -> tuple[ObservedMatrix, Triples]:
    """Hold out random entries for testing.

    Every row and column that has entries keeps at least one for training.

    Parameters
    ----------
    X : ObservedMatrix, or anything that `ObservedMatrix.of` reads
    fraction : float
        Share of the observed entries to hold out, between 0 and 1; at least one entry is.
    random_state : None, int, Generator or SeedSequence

    Returns
    -------
    train : ObservedMatrix
        The matrix without the test entries, in the same shape and labels.
    test : tuple of arrays
        Rows, columns and values of the test entries, in row order.

    Examples
    --------
    >>> train, (rows, cols, values) = holdout([[1.0, 2.0], [3.0, 4.0]], 0.25, random_state=0)
    >>> train.n_observed, values.size
    (3, 1)
    """
    X = ObservedMatrix.of(X)
    rng = np.random.default_rng(random_state)
    wanted = max(1, round(fraction * X.n_observed))
    free = _outside_cover(X, rng)
    if free.size < wanted:
        free = _outside_least_cover(X, rng)
    if free.size < wanted:
        raise DataError(
            f"fraction {fraction} asks to hold out {wanted} of {X.n_observed} entries, but at "
            f"most {free.size} can go without emptying a row or column; lower it."
        )
    held = np.zeros(X.n_observed, dtype=bool)
    held[rng.choice(free, wanted, replace=False)] = True
    return split_at(X, held)


@checked
def kfold(
    X: Any, n_folds: int = 5, random_state: RandomState = None, *, keep_singles: bool = False
) -> Iterator[tuple[ObservedMatrix, Triples]]:
    """Split the entries into folds, each of which serves as the test set once.

    The folds have the same size, give or take one entry, and every training set keeps an entry
    of every row and column that has any.

    Parameters
    ----------
    X : ObservedMatrix, or anything that `ObservedMatrix.of` reads
    n_folds : int
        Number of folds, at least 2.
    random_state : None, int, Generator or SeedSequence
    keep_singles : bool
        Whether entries that are the only ones of their row or column are never tested; by default
        they are refused.

    Returns
    -------
    iterator of (train, test)
        As returned by `holdout`.

    Examples
    --------
    >>> folds = kfold([[1.0, 2.0], [3.0, 4.0]], n_folds=2, random_state=0)
    >>> [test[2].size for _, test in folds]
    [2, 2]
    """
    X = ObservedMatrix.of(X)
    fold = fold_numbers(X, n_folds, random_state, keep_singles=keep_singles)
    return (split_at(X, fold == k) for k in range(int(n_folds)))


class ColdFold(NamedTuple):
    """A fold whose rows, columns or both are not in the training set at all.

    ``rows`` and ``cols`` are positions of those held out (None: none are), ``row_features`` and
    ``col_features`` what `BayesianMF.predict` takes for them. ``test`` are rows, columns and values
    of the entries to predict, by their places in that prediction.
    """

    train: ObservedMatrix
    rows: IntArray | None
    cols: IntArray | None
    row_features: Any
    col_features: Any
    test: Triples


def cold_folds(
    X: Any, side: str = "rows", n_folds: int = 10, random_state: RandomState = None
) -> Iterator[ColdFold]:
    """Split the rows, the columns or both into folds that a fit has never seen.

    A training set lacks the rows of its fold and their entries; features of the other rows are
    standardised anew, so that nothing leaks. With "both", each fold holds out rows and columns, and
    tests where they meet.

    Parameters
    ----------
    X : ObservedMatrix, or anything that `ObservedMatrix.of` reads
    side : {"rows", "cols", "both"}
    n_folds : int
        Number of folds, at least 2.
    random_state : None, int, Generator or SeedSequence

    Examples
    --------
    >>> import numpy as np
    >>> X = ObservedMatrix.of(np.arange(12.0).reshape(6, 2), row_features=np.arange(6.0))
    >>> [fold.train.shape for fold in cold_folds(X, n_folds=3, random_state=0)]
    [(4, 2), (4, 2), (4, 2)]
    """
    X = ObservedMatrix.of(X)
    if side not in ("rows", "cols", "both"):
        raise ModelError(f"side must be 'rows', 'cols' or 'both', got {side!r}.")
    held = [side in ("rows", "both"), side in ("cols", "both")]
    least = min(n for n, out in zip(X.shape, held, strict=True) if out)
    if n_folds != int(n_folds) or not 2 <= n_folds <= least:
        raise ModelError(f"n_folds must be an integer from 2 to {least}, not {n_folds}.")
    rng = np.random.default_rng(random_state)
    numbers = [
        rng.permutation(np.arange(n) % int(n_folds)) if out else None
        for n, out in zip(X.shape, held, strict=True)
    ]
    return (_cold_fold(X, numbers, k) for k in range(int(n_folds)))


def _cold_fold(X: ObservedMatrix, numbers: list[IntArray | None], k: int) -> ColdFold:
    kept, out, known = [], [], []
    for fold, features in zip(numbers, (X.row_features, X.col_features), strict=True):
        inside = None if fold is None else np.flatnonzero(fold != k)
        outside = None if fold is None else np.flatnonzero(fold == k)
        kept.append(inside)
        out.append(outside)
        some = features is not None and inside is not None and outside is not None
        known.append(features.beside(outside, inside) if some else None)  # type: ignore[union-attr]
    train, test = X.part(kept[0], kept[1]), X.part(out[0], out[1])
    return ColdFold(train, out[0], out[1], known[0], known[1], test.triples())


def fold_numbers(
    X: ObservedMatrix, n_folds: int, random_state: RandomState = None, *, keep_singles: bool = False
) -> IntArray:
    """The fold of each entry, as `kfold` makes them; -1 for those that are never tested."""
    if n_folds != int(n_folds) or not 2 <= n_folds <= X.n_observed:
        raise ModelError(
            f"n_folds must be an integer from 2 to {X.n_observed} (the number of entries), "
            f"not {n_folds}."
        )
    tested = _beside_others(X) if keep_singles else np.ones(X.n_observed, dtype=bool)
    if tested.sum() < n_folds:
        raise DataError(f"Only {tested.sum()} entries can be tested; {n_folds} folds need more.")
    fold = np.full(X.n_observed, -1)
    part = X.take(tested)
    fold[tested] = _assign_folds(part, int(n_folds), np.random.default_rng(random_state))
    return fold


def _beside_others(X: ObservedMatrix) -> npt.NDArray[np.bool_]:
    """Flags of the entries that share their row and their column with others of them."""
    rows, cols, _ = X.triples()
    kept = np.ones(X.n_observed, dtype=bool)
    while True:
        in_row = np.bincount(rows[kept], minlength=X.shape[0])
        in_col = np.bincount(cols[kept], minlength=X.shape[1])
        alone = kept & ((in_row[rows] == 1) | (in_col[cols] == 1))
        if not alone.any():
            return kept
        kept &= ~alone


def hide_some(X: ObservedMatrix) -> tuple[ObservedMatrix, Triples]:
    """Hold out a fifth of the entries of every row, at least one of two, always the same ones."""
    i, counts = X.triples()[0], X.rows.counts
    order = np.lexsort((np.random.default_rng(0).random(len(i)), i))
    place = np.empty(len(i), dtype=np.int64)
    place[order] = np.arange(len(i)) - X.rows.indptr[i[order]]
    held = (place < np.maximum(1, counts // 5)[i]) & (counts > 1)[i]
    if not held.any():
        raise DataError("Rows with at least two observed entries are needed to score new rows.")
    return split_at(X, held)


def split_at(X: ObservedMatrix, held: npt.NDArray[np.bool_]) -> tuple[ObservedMatrix, Triples]:
    """The matrix without the flagged entries, and these as triples, in row order."""
    rows, cols, values = X.triples()
    return X.take(~held), (rows[held], cols[held], values[held])


def _outside_cover(X: ObservedMatrix, rng: np.random.Generator) -> IntArray:
    """Return the entries that are not the first of their row or column in a random order.

    Those that are first cover all rows and columns: they are what a walk in that order
    protects if it takes an entry whenever its row or column has none yet.
    """
    rows, cols, _ = X.triples()
    order = rng.permutation(X.n_observed)
    free = np.ones(X.n_observed, dtype=bool)
    free[_first_of_each(rows, order)] = False
    free[_first_of_each(cols, order)] = False
    return np.flatnonzero(free)


def _outside_least_cover(X: ObservedMatrix, rng: np.random.Generator) -> IntArray:
    """Return the entries outside a cover of all rows and columns by the fewest entries.

    Such a cover is a maximum matching, and one more entry for each line that it leaves out.
    """
    # Imported here because few calls come this close to the limit.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    rows, cols, _ = X.triples()
    # Older versions of csgraph know no index type but int32.
    indptr = X.rows.indptr.astype(np.int32)
    graph = csr_array((np.ones(X.n_observed), X.rows.indices, indptr), shape=X.shape)
    partner = maximum_bipartite_matching(graph, perm_type="column")
    matched = partner[rows] == cols
    free = ~matched
    order = rng.permutation(X.n_observed)
    for lines in (rows, cols):
        bare = ~np.isin(lines, lines[matched])
        free[_first_of_each(lines, order[bare[order]])] = False
    return np.flatnonzero(free)


def _first_of_each(lines: IntArray, order: IntArray) -> IntArray:
    """Return the entry that comes first in the order for each row (or column) it touches."""
    _, first = np.unique(lines[order], return_index=True)
    return order[first]


def _assign_folds(X: ObservedMatrix, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Return the fold of each entry, such that no row or column lies in one fold alone."""
    rows, cols, _ = X.triples()
    by_column = np.argsort(cols, kind="stable")
    sides = [(np.arange(rows.size), _starts(X.rows)), (by_column, _starts(X.cols))]
    for (order, starts), side in zip(sides, ("row", "column"), strict=True):
        single = np.diff(starts, append=rows.size) == 1
        if single.any():
            k = order[starts[single.argmax()]]
            cell = X.cell_name(rows[k], cols[k])
            raise DataError(
                f"{cell} is the only entry of its {side}, which no training set may lack; "
                "remove it, or use holdout."
            )
    fold = rng.permutation(np.arange(rows.size) % n_folds)
    stuck = _stuck(fold, sides)
    for _ in range(MAX_SHUFFLES):
        if not stuck.size:
            break
        # Where many lines have few entries, no shuffle of all entries would ever do. To shuffle
        # some of the stuck ones with as many others, unless that is worse, gets there soon.
        some = rng.permutation(stuck)[: rng.integers(1, stuck.size + 1)]
        some = np.union1d(some, rng.integers(rows.size, size=some.size))
        trial = fold.copy()
        trial[some] = rng.permutation(fold[some])
        still_stuck = _stuck(trial, sides)
        if still_stuck.size <= stuck.size:
            fold, stuck = trial, still_stuck
    if not stuck.size:
        return fold
    i, j = rows[stuck[0]], cols[stuck[0]]
    few = min(X.rows.counts[i], X.cols.counts[j])
    raise DataError(
        f"{MAX_SHUFFLES} shuffles gave no {n_folds} folds that leave training data everywhere: "
        f"the row or the column of {X.cell_name(i, j)} has only {few} entries; use more folds."
    )


def _starts(view: View) -> IntArray:
    return view.indptr[:-1][view.counts > 0]


def _stuck(fold: IntArray, sides: list[tuple[IntArray, IntArray]]) -> IntArray:
    """Return the first entry of each row and each column that lies in one fold alone."""
    found = []
    for order, starts in sides:
        ordered = fold[order]
        alone = np.minimum.reduceat(ordered, starts) == np.maximum.reduceat(ordered, starts)
        found.append(order[starts[alone]])
    return np.concatenate(found)
