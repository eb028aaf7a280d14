"""Half-sweeps under normal noise: terms and data in, the factors of one side drawn in place.

Each function cuts the rows into blocks and hands them to a kernel. A half-sweep of the columns is
the same call with the column view and the two factor matrices exchanged.

Cells may have weights, which multiply the precision tau. Weights a_i b_j of rows and columns need
no kernel of their own: with factors and values of column j multiplied by the square root of b_j,
row i has the precision tau a_i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bayesmf import _threads
from bayesmf.data.observed import View
from bayesmf.data.shards import own_bounds, share
from bayesmf.kernels.entries import draw_entries_dense, draw_entries_sparse, find_crowded, width
from bayesmf.kernels.rows import draw_rows, squared_errors
from bayesmf.kernels.vectors import in_vectors
from bayesmf.streams import Array, Stream
from bayesmf.updates.blocks import (
    Gram,
    Noise,
    Roots,
    blocks,
    relaxation,
    windows,
    workspace,
)
from bayesmf.updates.terms import EntryTerms, NonnegativeTerms, RowTerms, VolumeTerms
from bayesmf.updates.volume import draw_beside, draw_volume_rows


class SideWeights(NamedTuple):
    """Weights of the cells as one side sees them, each None where all are one.

    ``own`` (n,) for its rows, ``other`` (m,) for the columns, ``entries`` (N,) for every entry, in
    the order of the view.
    """

    own: Array | None = None
    other: Array | None = None
    entries: Array | None = None

    def applied(self, view: View, V: Array) -> tuple[View, Array, Roots]:
        """A view without what weights rule out, V with the columns' weights in it, and the rest."""
        if self.entries is not None:
            view = replace(view, filled=None, mask=None)
        if self.other is None:
            return view, V, Roots(None, self.entries)
        scale = np.sqrt(self.other)
        return view, V * scale[:, None], Roots(scale, self.entries)


EVEN = SideWeights()
MANY = 17  # factors, from which on rows may be too crowded to be moved between the walls
WIDE = 10.0  # deviations of entries, added up, in the room between the walls: a crowded row
SOME = 16  # rows that are looked at


def draw_side(
    view: View,
    U: Array,
    V: Array,
    terms: RowTerms | EntryTerms | NonnegativeTerms | VolumeTerms,
    tau: float,
    stream: Stream,
    errors: bool = False,
    beside: Array | None = None,
    weights: SideWeights = EVEN,
) -> Array | None:
    """Draw U (n, K) in place given the other side's V, under normal noise of precision tau.

    ``beside`` (m, K) are further rows to which a volume prior ties these, instead of to each other.
    Returns the weighted sums of squared residuals of the new rows (n,), if ``errors`` asks for them
    or they come for nothing; the weights of the rows themselves are not in them.
    """
    noise = Noise(float(tau), weights.own)
    view, V, roots = weights.applied(view, V)
    found = _draw_own(view, U, V, roots, terms, noise, stream, errors, beside)
    share(view, U, *([] if found is None else [found]))
    return found


def _draw_own(
    view: View, U: Array, V: Array, roots: Roots, terms: Any, noise: Noise, stream: Stream,
    errors: bool, beside: Array | None,
) -> Array | None:  # fmt: skip
    """Draw the rows whose entries are here, by the kind of the terms."""
    if isinstance(terms, EntryTerms):
        return _draw_entries(view, U, V, roots, terms, noise, stream)
    if isinstance(terms, RowTerms):
        if terms.certainty is not None:
            return _draw_uncertain(view, U, V, roots, terms, noise, stream, errors)
        return _draw_rows(view, U, V, roots, terms, noise, stream, errors)
    if isinstance(terms, NonnegativeTerms):
        if _are_crowded(view, V, roots, terms.rows(), noise):
            return _draw_entries(view, U, V, roots, terms, noise, stream)
        return _draw_rows(view, U, V, roots, terms.rows(), noise, stream, errors, walls=True)
    if beside is not None:
        draw_beside(view, U, V, roots, beside, terms, noise, stream)
    else:
        draw_volume_rows(view, U, V, roots, terms, noise, stream)
    return _row_errors(view, U, V, roots, stream.threads) if errors else None


def _are_crowded(view: View, V: Array, roots: Roots, terms: RowTerms, noise: Noise) -> bool:
    """Whether most rows of many factors have little room between the walls at zero.

    Such rows gain nothing by being moved as a whole, which costs much more than their entries.
    """
    K = V.shape[1]
    if K < MANY:
        return False
    crowded, V, step = np.zeros(view.n, np.bool_), in_vectors(V), view.n // SOME + 1
    start, stop = own_bounds(view, [0, view.n])
    for first, last, own, weights in windows(view, start, stop, roots.weights):
        find_crowded(
            first, last, step, K, V, own.indptr, own.indices, own.stored, roots.scale, weights,
            *noise, *terms[:2], WIDE, crowded,
        )  # fmt: skip
    share(view, crowded)
    return bool(2 * np.count_nonzero(crowded) > -(-view.n // step))


def _draw_rows(
    view: View, U: Array, V: Array, roots: Roots, terms: RowTerms, noise: Noise,
    stream: Stream, last: bool, walls: bool | None = None,
) -> Array | None:  # fmt: skip
    key, gram, errors = stream.key(), Gram(view, V, roots), np.empty(view.n if last else 0)
    relaxed = relaxation(stream)

    def block(start: int, stop: int) -> None:
        for first, last, data in gram.data(start, stop):
            draw_rows(
                first, last, key, U, *data, *noise, *terms[:3], *relaxed, walls, errors,
                *workspace(U.shape[1]),
            )  # fmt: skip

    _threads.run(block, gram.bounds(), stream.threads, joined=True)
    return errors if last else None


def _draw_uncertain(
    view: View, U: Array, V: Array, roots: Roots, terms: RowTerms, noise: Noise,
    stream: Stream, last: bool,
) -> Array | None:  # fmt: skip
    """Rows whose prior precisions are multiples c_i of one: the rows sqrt(c_i) u_i have that one.

    They see values times sqrt(c_i) with a noise precision divided by c_i.
    """
    c = terms.certainty
    assert c is not None
    root, own = np.sqrt(c), 1.0 if noise.own is None else noise.own
    values = view.values * np.repeat(root, view.counts)
    view = replace(view, stored=values, filled=None, mask=None)
    U *= root[:, None]
    terms = RowTerms(terms.precision, terms.diagonal, terms.linear / root[:, None])
    errors = _draw_rows(view, U, V, roots, terms, Noise(noise.tau, own / c), stream, last)
    U /= root[:, None]
    return None if errors is None else errors / c


def _draw_entries(
    view: View, U: Array, V: Array, roots: Roots, terms: EntryTerms | NonnegativeTerms,
    noise: Noise, stream: Stream,
) -> Array:  # fmt: skip
    key, errors, relaxed = stream.key(), np.empty(view.n), relaxation(stream)
    stated = _stated(terms)
    block: Callable[[int, int], None]
    if view.filled is not None and view.mask is not None:
        filled = view.filled if roots.scale is None else view.filled * roots.scale
        mask, Vt = view.mask, np.zeros((U.shape[1], width(len(V))))
        Vt[:, : len(V)] = V.T

        def block(start: int, stop: int) -> None:
            draw_entries_dense(
                start, stop, key, U, filled, mask, Vt, errors, *noise, *stated, *relaxed
            )
    else:

        def block(start: int, stop: int) -> None:
            for first, last, own, weights in windows(view, start, stop, roots.weights):
                draw_entries_sparse(
                    first, last, key, U, own.indptr, own.indices, own.stored, roots.scale, weights,
                    V, errors, *noise, *stated, *relaxed,
                )  # fmt: skip

    bounds = blocks(view, 4 * U.shape[1], 32 * U.shape[1])
    _threads.run(block, bounds, stream.threads, joined=True)
    return errors


def _stated(terms: EntryTerms | NonnegativeTerms) -> tuple[Any, ...]:
    """Precision, linear term and coupling of entries, which is None for real ones."""
    return (*terms, None)[:3]


def row_errors(view: View, U: Array, V: Array, threads: int, weights: SideWeights = EVEN) -> Array:
    """Weighted sum of squared residuals of every row (n,) over its observed entries.

    The weights of the rows themselves are not in it.
    """
    view, V, roots = weights.applied(view, V)
    found = _row_errors(view, U, V, roots, threads)
    share(view, found)
    return found


def _row_errors(view: View, U: Array, V: Array, roots: Roots, threads: int) -> Array:
    out, rank, V = np.empty(view.n), U.shape[1], in_vectors(V)

    def block(start: int, stop: int) -> None:
        for first, last, own, weights in windows(view, start, stop, roots.weights):
            squared_errors(
                first, last, own.indptr, own.indices, own.stored, roots.scale, weights, U, V, out
            )

    _threads.run(block, blocks(view, rank, 1), threads, joined=True)
    return out
