"""One number for every observed entry: fitted means, draws, and their order in the two views.

Numbers are made in the order of the rows, and copied into that of the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bayesmf import _threads
from bayesmf.data import shards
from bayesmf.data.observed import ObservedMatrix, View
from bayesmf.kernels.cells import scale_entries, take_entries
from bayesmf.kernels.rows import fit_entries
from bayesmf.kernels.vectors import in_vectors
from bayesmf.streams import Array
from bayesmf.updates.blocks import blocks


def fitted(view: View, U: Array, V: Array, threads: int) -> Array:
    """Products of the factors at the entries (N,), in the order of the view."""
    out, V = np.empty(view.stored.size), in_vectors(V)

    def block(start: int, stop: int) -> None:
        fit_entries(start, stop, view.indptr, view.indices, U, V, out)

    _threads.run(block, blocks(view, U.shape[1], 1), threads, joined=True)
    return out


def by_rows(view: View, work: int, block: Callable[[int, int], None], threads: int) -> None:
    """Call ``block(start, stop)`` for blocks of rows, ``work`` being the cost of one entry."""
    _threads.run(block, blocks(view, work, 1), threads, joined=True)


def in_columns(X: ObservedMatrix, values: Array, threads: int = 1) -> Array:
    """Numbers of the entries, given in the order of the rows, in that of the columns."""
    if isinstance(X, shards.ShardMatrix):
        return shards.in_columns(X, values)
    order, out = X.column_order, np.empty(values.size)
    pieces = _threads.bounds(values.size, 8 if values.size > 20_000 else 1)
    _threads.run(lambda a, b: take_entries(a, b, values, order, out), pieces, threads, joined=True)
    return out


def scaled(view: View, scale: Array, threads: int = 1) -> Array:
    """Values of the entries, each times the scale of its column (N,)."""
    out = np.empty(view.stored.size)

    def block(start: int, stop: int) -> None:
        scale_entries(start, stop, view.indptr, view.indices, view.stored, scale, out)

    _threads.run(block, blocks(view, 1, 1), threads, joined=True)
    return out


def with_entries(X: ObservedMatrix, values: Array, threads: int = 1) -> ObservedMatrix:
    """The same cells with other numbers, given in row order; none is laid out as a whole matrix."""
    rows = replace(X.rows, stored=values, filled=None)
    return replace(
        X, rows=rows, cols=replace(X.cols, stored=in_columns(X, values, threads), filled=None)
    )
