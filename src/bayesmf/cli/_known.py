"""What is known of entries besides their values, from files: errors, weights and limits."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from bayesmf._errors import DataError, ModelError

if TYPE_CHECKING:
    from bayesmf.data.observed import Array, ObservedMatrix

NOISE = ("equal", "rows", "cols", "both")
LIMITS = ("lower", "upper")


def limit(text: str) -> float | str:
    """A type of options: a number, or the name of a file."""
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"must be a finite number or a file, not {text!r}")
    return number


def with_errors(X: ObservedMatrix, asked: dict[str, Any]) -> ObservedMatrix:
    """The matrix with the errors or weights that were asked for, if any."""
    from bayesmf.data.errors import known_errors

    found = {}
    for name in ("errors", "weights"):
        if path := asked.get(name):
            found[name] = _aligned(_beside(path, asked), X, path)
    return known_errors(X, **found)


def limits(X: ObservedMatrix, asked: dict[str, Any]) -> dict[str, Any]:
    """Limits of the values: numbers, or arrays of the columns or the cells out of files."""
    found = {name: asked.get(name) for name in LIMITS}
    return {
        name: _limits_of(X, value, asked) if isinstance(value, str) else value
        for name, value in found.items()
    }


def entries(text: str) -> float | str:
    """A type of options: a share of the entries, or the name of a file with some."""
    number = limit(text)
    if isinstance(number, float) and not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"must be a share between 0 and 1, or a file, not {text}")
    return number


def without_held_out(
    X: ObservedMatrix, asked: dict[str, Any]
) -> tuple[ObservedMatrix, tuple[Array, Array, Array] | None]:
    """The matrix without the entries that were held out, and these."""
    import numpy as np

    from bayesmf.splits import holdout

    wanted = asked.get("held_out")
    if wanted is None:
        return X, None
    if not isinstance(wanted, str):
        return holdout(X, wanted, asked["seed"])
    test = _aligned(_beside(wanted, asked), X, wanted).triples()
    rows, cols, _ = X.triples()
    width = X.shape[1]
    kept = ~np.isin(rows * width + cols, test[0] * width + test[1])
    if not kept.any():
        raise DataError(f"--held-out {wanted} has all entries of the data; leave some to fit.")
    return X.take(kept), test


def _limits_of(X: ObservedMatrix, path: str, asked: dict[str, Any]) -> Array:
    import numpy as np

    table = _beside(path, asked)
    if table.shape[0] == 1:
        _, j, values = table.triples()
        found = np.full(X.shape[1], np.nan)
        found[_places(table, X, path, 1)[j]] = values
        return found
    return _aligned(table, X, path).to_array()


def _beside(path: str, asked: dict[str, Any]) -> ObservedMatrix:
    """A table beside the data, read as they are; if it cannot be, as though nothing was said.

    Beside a table of triples the limits of columns may be wide, for one.
    """
    from bayesmf.cli._reading import table_options
    from bayesmf.reading import TABLES, read_matrix, suffix_of

    alike = suffix_of(path) in TABLES and suffix_of(asked.get("data") or path) == suffix_of(path)
    options = table_options(asked) | {"single": False} if alike else {}
    try:
        table = read_matrix(path, **options)
    except (DataError, ModelError) as error:
        try:
            table = read_matrix(path)
        except DataError:
            raise error from None
    if table.bounds is not None:
        i, j, _ = (part[table.bounds.places][0] for part in table.triples())
        raise DataError(f"{path}: {table.cell_name(i, j)} is an interval; write one number.")
    return table


def _aligned(table: ObservedMatrix, X: ObservedMatrix, path: str) -> ObservedMatrix:
    """A table in the shape and order of the data, by its labels where both have some."""
    from bayesmf.data.observed import ObservedMatrix

    i, j, values = table.triples()
    rows, cols = (_places(table, X, path, axis) for axis in (0, 1))
    names = X.row_labels, X.col_labels
    return ObservedMatrix.from_triples(rows[i], cols[j], values, X.shape, *names)


def _places(table: ObservedMatrix, X: ObservedMatrix, path: str, axis: int) -> Array:
    """Positions in the data of the rows (0) or columns (1) of a table."""
    import numpy as np

    name = ("row", "column")[axis]
    theirs, ours = ((m.row_labels, m.col_labels)[axis] for m in (table, X))
    if theirs is None or ours is None:
        if table.shape[axis] != X.shape[axis]:
            raise DataError(
                f"{path} has {table.shape[axis]} {name}s, but the data have {X.shape[axis]}; give "
                "one for each."
            )
        return np.arange(X.shape[axis])
    known = {str(label): k for k, label in enumerate(ours)}
    for label in theirs:
        if str(label) not in known:
            raise DataError(f"{path}: {name} {label!r} is not in the data; correct or remove it.")
    return np.array([known[str(label)] for label in theirs])
