"""What the readers share: tables in text files, unique names, the study's preprocessing."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np

from bayesmf._errors import DataError
from bayesmf.data.observed import Array, FloatArray, ObservedMatrix

ROWS, COLS = 0, 1
LEAST = 3  # rows and columns with fewer values were left out of the study
_MISSING = {"", "na", "nan"}


def number(text: str) -> float:
    """A number, or NaN for one that is missing."""
    return np.nan if text.strip().lower() in _MISSING else float(text)


def numbers(path: Path, text: str | None = None, **options: object) -> Array:
    """A tab-separated table of numbers without names, from a file or its (changed) text."""
    try:
        source = path if text is None else io.StringIO(text)
        return np.loadtxt(source, delimiter="\t", ndmin=2, **options)  # type: ignore[call-overload]
    except ValueError as error:
        raise DataError(f"{path} is not a table of numbers ({error}); get it again.") from None


def records(path: Path, columns: Sequence[str], delimiter: str = "\t") -> list[tuple[str, ...]]:
    """The named columns of a table with a header, row by row."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        reader = csv.reader(file, delimiter=delimiter)
        header = next(reader, [])
        if lacking := [column for column in columns if column not in header]:
            raise DataError(f"{path} has no column {lacking[0]!r}, only {header}; get it again.")
        pick = itemgetter(*map(header.index, columns))
        try:
            return [pick(row) for row in reader if row]
        except IndexError:
            raise DataError(f"{path}: line {reader.line_num} is too short; get it again.") from None


def lines(path: Path, encoding: str = "utf-8") -> list[str]:
    """The lines of a file that are not empty."""
    # Not splitlines: in Latin-1 it would also break lines at bytes inside names.
    return [line for line in path.read_text(encoding=encoding).split("\n") if line]


def unique(names: Sequence[str], ids: Iterable[object]) -> list[str]:
    """The names, followed by their id in brackets where several are the same."""
    times = Counter(names)
    pairs = zip(names, ids, strict=True)
    return [name if times[name] == 1 else f"{name} [{key}]" for name, key in pairs]


def labelled(
    path: Path, values: FloatArray, rows: Sequence[str], cols: Sequence[str]
) -> ObservedMatrix:
    """A matrix with its names, whose numbers must agree."""
    if values.shape != (len(rows), len(cols)):
        raise DataError(
            f"{path} is {values.shape[0]} x {values.shape[1]}, but its labels name {len(rows)} "
            f"rows and {len(cols)} columns; get all of its files again."
        )
    return ObservedMatrix.of(values, row_labels=rows, col_labels=cols)


def study(
    X: ObservedMatrix, sparse: Sequence[int] = (), least: int = LEAST, cap: float = np.inf
) -> ObservedMatrix:
    """The study's preprocessing of a matrix with labels.

    Parameters
    ----------
    X : ObservedMatrix
    sparse : sequence of 0 (rows) and 1 (columns)
        Sides whose sparse members are dropped, one side after the other.
    least : int
        Fewest values of a row or column that is kept.
    cap : float
        Larger values are set to it; then all are truncated to integers.
    """
    places, values = list(X.triples()[:2]), X.rows.values
    names = [X.row_labels, X.col_labels]
    for side in sparse:
        labels = names[side]
        assert labels is not None
        kept = np.bincount(places[side], minlength=labels.size) >= least
        inside = kept[places[side]]
        places, values = [place[inside] for place in places], values[inside]
        places[side] = kept.cumsum()[places[side]] - 1
        names[side] = labels[kept]
    (rows, cols), (row_names, col_names) = places, names
    values = np.trunc(np.minimum(values, cap))
    return ObservedMatrix.from_triples(rows, cols, values, None, row_names, col_names)
