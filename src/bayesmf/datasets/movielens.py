"""Reader of MovieLens ratings: users in rows, films in columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bayesmf._errors import DataError
from bayesmf.data.observed import ObservedMatrix
from bayesmf.datasets._tables import COLS, ROWS, lines, numbers, study, unique

_ENCODING = "latin-1"


def movielens(paths: Sequence[Path], raw: bool) -> ObservedMatrix:
    """Ratings of either size; in the raw matrix every film has a column, rated or not."""
    ratings, films = paths
    text = ratings.read_text(encoding=_ENCODING).replace("::", "\t")
    user, film, rating = numbers(ratings, text, dtype=np.int64, usecols=(0, 1, 2)).T
    users, rows = np.unique(user, return_inverse=True)
    ids, titles = _titles(films)
    order = np.argsort(ids)
    cols = order[np.searchsorted(ids, film, sorter=order).clip(max=ids.size - 1)]
    if (stray := ids[cols] != film).any():
        raise DataError(
            f"{ratings}: film {film[stray][0]} is not in {films}; "
            "take both files from the same archive."
        )
    X = ObservedMatrix.from_triples(
        rows, cols, rating, (users.size, ids.size), [f"user {user}" for user in users], titles
    )
    return X if raw else study(X, sparse=(ROWS, COLS, ROWS))


def _titles(path: Path) -> tuple[np.ndarray, list[str]]:
    """Numbers and unique titles of the films, in the order of the file."""
    separator = "::" if path.suffix == ".dat" else "|"
    fields = [line.split(separator) for line in lines(path, _ENCODING)]
    try:
        ids = np.array([int(number) for number, _title, *_ in fields])
    except ValueError:
        raise DataError(f"{path} is not a list of number{separator}title; get it again.") from None
    return ids, unique([title.strip() for _, title, *_ in fields], ids)
