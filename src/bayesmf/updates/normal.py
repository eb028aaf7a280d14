"""Half-sweeps under normal noise: terms and data in, the factors of one side drawn in place.

Each function cuts the rows into blocks and hands them to a kernel. A half-sweep of the columns is
the same call with the column view and the two factor matrices exchanged.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayesmf import _threads
from bayesmf.data.observed import View
from bayesmf.kernels.entries import draw_entries_dense, draw_entries_sparse, width
from bayesmf.kernels.rows import draw_rows, squared_errors
from bayesmf.streams import Array, Stream
from bayesmf.updates.blocks import Gram, blocks, in_vectors, workspace
from bayesmf.updates.terms import EntryTerms, RowTerms, VolumeTerms
from bayesmf.updates.volume import draw_beside, draw_volume_rows


def draw_side(
    view: View,
    U: Array,
    V: Array,
    terms: RowTerms | EntryTerms | VolumeTerms,
    tau: float,
    stream: Stream,
    last: bool = False,
    beside: Array | None = None,
) -> Array | None:
    """Draw U (n, K) in place given the other side's V, under normal noise of precision tau.

    ``beside`` (m, K) are further rows to which a volume prior ties these, instead of to each other.
    Returns the sums of squared residuals of the new rows (n,), where they come for nothing, or for
    little and the side is the ``last`` of a sweep.
    """
    if isinstance(terms, EntryTerms):
        return _draw_entries(view, U, V, terms, tau, stream)
    if isinstance(terms, RowTerms):
        return _draw_rows(view, U, V, terms, tau, stream, last)
    if beside is not None:
        draw_beside(view, U, V, beside, terms, tau, stream)
    else:
        draw_volume_rows(view, U, V, terms, tau, stream)
    return None


def _draw_rows(
    view: View, U: Array, V: Array, terms: RowTerms, tau: float, stream: Stream, last: bool
) -> Array | None:
    key, gram, errors = stream.key(), Gram(view, V), np.empty(view.n if last else 0)

    def block(start: int, stop: int) -> None:
        draw_rows(start, stop, key, U, *gram.data, tau, *terms, errors, *workspace(U.shape[1]))

    _threads.run(block, gram.bounds(), stream.threads, joined=True)
    return errors if last else None


def _draw_entries(
    view: View, U: Array, V: Array, terms: EntryTerms, tau: float, stream: Stream
) -> Array:
    key, errors = stream.key(), np.empty(view.n)
    block: Callable[[int, int], None]
    if view.mask is not None:
        filled, mask, Vt = view.filled, view.mask, np.zeros((U.shape[1], width(len(V))))
        Vt[:, : len(V)] = V.T

        def block(start: int, stop: int) -> None:
            draw_entries_dense(start, stop, key, U, filled, mask, Vt, errors, tau, *terms)
    else:

        def block(start: int, stop: int) -> None:
            draw_entries_sparse(
                start, stop, key, U, view.indptr, view.indices, view.values, V, errors, tau, *terms
            )

    bounds = blocks(view, 4 * U.shape[1], 32 * U.shape[1])
    _threads.run(block, bounds, stream.threads, joined=True)
    return errors


def row_errors(view: View, U: Array, V: Array, threads: int) -> Array:
    """Sum of squared residuals of every row (n,) over its observed entries."""
    out, rank, V = np.empty(view.n), U.shape[1], in_vectors(V)
    _threads.run(
        lambda start, stop: squared_errors(
            start, stop, view.indptr, view.indices, view.values, U, V, out
        ),
        blocks(view, rank, 1),
        threads,
        joined=True,
    )
    return out
