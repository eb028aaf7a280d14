"""A first look at the data: what a statistician would ask about before any model is fitted."""

from __future__ import annotations

import shlex
from typing import NamedTuple

import numpy as np

from bayesmf.data.observed import Labels, ObservedMatrix, View

HEAPED = 0.05  # of the values at the very end of their range, from which on it is worth asking
RATINGS = 10  # different values, up to which a heap at an end is nothing special
UNIT = 0.1, 300.0  # standard deviations that the default priors suit
FEW = 3  # entries below which a row tells little
WIDE = 1.2  # orders of magnitude of a typical column, from which on logarithms are proposed
SUMMARIES = {
    "total", "totals", "grand total", "subtotal", "sum", "mean", "average", "avg", "median", "sd",
    "std", "std dev", "standard deviation", "min", "max", "minimum", "maximum", "count", "n",
}  # fmt: skip
NEARLY = 0.9  # of the range from 0 to 1, or to 100, that values fill if it is theirs


class Heap(NamedTuple):
    """Many values at the very end of their range."""

    side: str  # "upper" or "lower"
    end: float
    share: float

    def __str__(self) -> str:
        name = "largest" if self.side == "upper" else "smallest"
        return f"{self.share:.1%} of the values are exactly {self.end:g}, the {name} one"


def heaps(X: ObservedMatrix, least: float = HEAPED, ratings: int = RATINGS) -> list[Heap]:
    """Ends of the range at which more than this share of the values lies; none of ratings.

    Ratings are those with so few different values.

    Examples
    --------
    >>> import numpy as np
    >>> heaps(ObservedMatrix.of(np.arange(100.0).clip(None, 90).reshape(10, 10)))
    [Heap(side='upper', end=90.0, share=0.1)]
    """
    values = X.rows.values
    found = []
    for end, side in ((values.max(), "upper"), (values.min(), "lower")):
        share = float(np.mean(values == end))
        if share > least and np.ptp(values) > 0 and np.unique(values).size > ratings:
            found.append(Heap(side, float(end), share))
    return found


def inspect(
    X: ObservedMatrix,
    *,
    limits: bool = True,
    transforms: bool = True,
    scaled: bool = True,
) -> list[str]:
    """What should be known about a matrix, in sentences.

    ``limits`` and ``transforms`` say whether the model could take some and has none yet, and
    ``scaled`` whether columns are brought to one scale.
    """
    values = X.rows.values
    notes = [] if X.origin is None else [*X.origin.notes]
    notes += [*empty_lines(X), *codes(X), *_counters(X), *_summaries(X)]
    if limits and X.bounds is None:
        notes += _limits(X)
    if transforms and X.bounds is None:
        notes += _transforms(X)
    tiny = (values != 0) & (np.abs(values) < 1e-100)
    if tiny.any():
        notes.append(f"Values within 1e-100 of zero: {tiny.sum()}; probably artefacts.")
    for view, labels, name in ((X.rows, X.row_labels, "Rows"), (X.cols, X.col_labels, "Columns")):
        notes += _lines(view, labels, name)
    if not scaled:
        notes += _scales(X)
    return notes


def empty_lines(X: ObservedMatrix) -> list[str]:
    """Rows and columns of which nothing is known."""
    return [
        f"{side} without any observed entry: {int(empty.sum())}, "
        f"{_label(labels, int(empty.argmax()))} the first; their factors are drawn from the prior."
        for side, empty, labels in (
            ("Rows", X.empty_rows, X.row_labels), ("Columns", X.empty_cols, X.col_labels)
        )
        if empty.any()
    ]  # fmt: skip


def _label(labels: Labels, at: int) -> str:
    """The label of a row or column, or its position."""
    return str(at) if labels is None else repr(str(labels[at]))


def codes(X: ObservedMatrix) -> list[str]:
    """Values that look like a code for missing: a whole number, repeated, far from all others.

    Far is farther from the other values of its column than these are from each other, in most
    columns in which it occurs.
    """
    found = []
    for end in {float(X.rows.values.min()), float(X.rows.values.max())}:
        where = X.rows.values == end
        if end == 0 or end != round(end) or where.sum() < 2 or where.mean() > 0.5:
            continue
        columns = np.unique(X.rows.indices[where])
        if np.mean([_isolated(X.cols, j, end) for j in columns]) > 0.5:
            found.append(
                f"{end:g} occurs {where.sum()} times, far from all other values: if it stands for "
                f"missing, make these cells empty, or read the file with missing={end:g} "
                f"(--missing={end:g})."
            )
    return found


def _isolated(view: View, j: int, end: float) -> bool:
    own = view.row(j)
    others = own[own != end]
    spread = float(np.ptp(others)) if others.size > 2 else 0.0
    return 0 < spread < float(np.abs(others - end).min())


def _counters(X: ObservedMatrix) -> list[str]:
    """A column that counts the rows is a label, not a measurement."""
    found = []
    for j in np.flatnonzero(X.cols.counts == X.shape[0]) if X.shape[0] > FEW else ():
        own = X.cols.row(int(j))
        if (np.diff(own) == 1).all() and (own % 1 == 0).all():
            name = X.names()[1][j]
            found.append(
                f"Column {name!r} counts the rows: if it is an id, make it a label or leave it out."
            )
    return found


def _summaries(X: ObservedMatrix) -> list[str]:
    """Last rows and columns whose labels say that they sum others up."""
    found = []
    for side, labels in (("Row", X.row_labels), ("Column", X.col_labels)):
        for label in () if labels is None else labels[1:][-FEW:]:
            if str(label).strip(" :.").casefold() in SUMMARIES:
                found.append(
                    f"{side} {str(label)!r} seems to sum up the others: if so, leave it out, as by "
                    f"drop={str(label)!r} (--drop {shlex.quote(str(label))}) when it is read."
                )
    return found


def _limits(X: ObservedMatrix) -> list[str]:
    """Limits that the data may have."""
    counts = bool((X.rows.values >= 0).all() and (X.rows.values % 1 == 0).all())
    found = []
    for heap in heaps(X):
        if counts and heap.side == "lower":
            continue  # no count is below zero
        end = repr(heap.end).removesuffix(".0")
        option = f"--{heap.side}{'=' if end.startswith('-') else ' '}{end}"
        found.append(
            f"{heap}: probably cut off there, so that errors are not normal; {heap.side}={end} "
            f"({option}) says so to the model."
        )
    return found


def _transforms(X: ObservedMatrix) -> list[str]:
    """A transformation that the range of the values suggests."""
    values = X.rows.values
    low, high = float(values.min()), float(values.max())
    if np.unique(values[:10_000]).size <= RATINGS or (values % 1 == 0).all() or low <= 0:
        return []
    orders = float(np.median([_orders(X.cols, j) for j in range(X.shape[1])]))
    if orders >= WIDE:
        return [
            f"The values are positive, and those of a typical column span {orders:.1f} orders of "
            "magnitude: transformation='log' (--transform log) models ratios, and keeps intervals "
            "above zero."
        ]
    for whole in (1.0, 100.0):
        if NEARLY * whole < high < whole and low < (1 - NEARLY) * whole:
            return [
                f"The values lie between 0 and {whole:g}: transformation='logit' (--transform "
                "logit) keeps intervals there."
            ]
    return []


def _orders(view: View, j: int) -> float:
    """Orders of magnitude that the middle nine tenths of a column's positive values span."""
    own = view.row(j)
    low, high = np.quantile(own, [0.05, 0.95]) if own.size > FEW else (1.0, 1.0)
    return float(np.log10(high / low))


def _scales(X: ObservedMatrix) -> list[str]:
    """Columns whose size drowns that of the others, where nothing brings them to one scale."""
    values, notes = X.rows.values, []
    spread = values.std()
    if spread > 0 and not UNIT[0] < spread < UNIT[1]:
        notes.append(
            f"The values have a standard deviation of {spread:.2g}; priors are made for numbers "
            "nearer to one: use scale='auto', or another unit."
        )
    squares = (X.cols.values - values.mean()) ** 2
    shares = np.add.reduceat(np.append(squares, 0.0), X.cols.indptr[:-1]) * (X.cols.counts > 0)
    most = int(shares.argmax())
    if spread > 0 and X.shape[1] > 20 and shares[most] > 0.1 * shares.sum():
        notes.append(
            f"Column {X.names()[1][most]!r} has {shares[most] / shares.sum():.0%} of all variance; "
            "scale='cols' brings columns to one scale."
        )
    return notes


def _lines(view: View, labels: Labels, name: str) -> list[str]:
    """Rows or columns with few entries, or with one value throughout; the first by name."""
    notes, counts = [], view.counts
    few = int(np.sum((counts > 0) & (counts < FEW)))
    if few:
        notes.append(f"{name} with fewer than {FEW} entries: {few}; expect wide intervals there.")
    several = np.flatnonzero(counts > 1)
    if several.size:
        values = view.values[np.repeat(counts > 1, counts)]
        first = np.append(0, np.cumsum(counts[several]))[:-1]
        constant = np.maximum.reduceat(values, first) == np.minimum.reduceat(values, first)
        if constant.any():
            label = _label(labels, int(several[constant][0]))
            notes.append(
                f"{name} that are constant: {constant.sum()}, {label} the first; no model can "
                "learn from them."
            )
    return notes
