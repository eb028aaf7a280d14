"""Half-sweeps of counts: split over the factors, or, where they are large, rows drawn whole."""

from __future__ import annotations

import numpy as np

from bayesmf import _threads
from bayesmf.data.observed import View
from bayesmf.data.shards import own_bounds, share, total_counts
from bayesmf.kernels.counts import split_counts, sum_factors
from bayesmf.kernels.fill import GAMMA, fill_common
from bayesmf.kernels.poisson import draw_count_rows
from bayesmf.kernels.vectors import in_vectors
from bayesmf.streams import Array, Stream
from bayesmf.updates.blocks import blocks, relaxation, windows

_PARALLEL = 20_000  # draws below which a second thread costs more than it saves
_STEPS = 1  # of Newton's method for a surrogate


def split(view: View, U: Array, V: Array, stream: Stream) -> tuple[Array, Array]:
    """Split every observed count over the factors: sums over columns (n, K), over rows (m, K).

    Of a shard both are complete for its own rows and columns.
    """
    key = stream.key()
    bounds = blocks(view, 20 * U.shape[1], 1, most=8)  # each has column sums of its own
    row_sums = np.zeros(U.shape)
    col_sums = np.zeros((len(bounds) - 1, *V.shape))
    position = {start: b for b, start in enumerate(bounds[:-1])}

    def block(start: int, stop: int) -> None:
        for first, last, own, _ in windows(view, start, stop):
            split_counts(
                first, last, key, own.indptr, own.indices, own.stored, U, V,
                row_sums, col_sums[position[start]],
            )  # fmt: skip

    _threads.run(block, bounds, stream.threads)
    return row_sums, total_counts(view, col_sums.sum(axis=0))


def factor_sums(view: View, V: Array, threads: int, weights: Array | None = None) -> Array:
    """Sum of the other side's factors over each row's observed entries (n, K), own rows of a shard.

    ``weights`` (N,) are those of the entries, in the order of the view.
    """
    out, mask = np.empty((view.n, V.shape[1])), view.mask if weights is None else None

    def block(start: int, stop: int) -> None:
        if mask is not None:
            np.matmul(mask[start:stop], V, out=out[start:stop])
        else:
            sum_factors(start, stop, view.indptr, view.indices, weights, V, out)

    bounds = blocks(view, V.shape[1], V.shape[1], whole=mask is not None)
    _threads.run(block, bounds, threads)
    return out


def draw_gammas(view: View, U: Array, shape: Array, rate: Array, stream: Stream) -> None:
    """Draw U (n, K) in place from gammas, whose shapes and rates (n, K) its own rows know."""
    key, pieces = stream.key(), own_bounds(view, _threads.bounds(view.n, 8))
    _threads.run(
        lambda start, stop: fill_common(start, stop, key, GAMMA, shape, rate, U),
        pieces,
        stream.threads if U.size > _PARALLEL else 1,
        joined=True,
    )
    share(view, U)


def draw_rows(
    view: View, U: Array, V: Array, shape: Array, rate: Array, exposures: Array | None,
    stream: Stream,
) -> None:  # fmt: skip
    """Draw U (n, K) in place given V, under a gamma prior; a row may stay as it was."""
    key, V = stream.key(), in_vectors(V)
    time = relaxation(stream).time

    def block(start: int, stop: int) -> None:
        for first, last, own, theta in windows(view, start, stop, exposures):
            draw_count_rows(
                first, last, key, U, V, own.indptr, own.indices, own.stored, theta,
                shape, rate, _STEPS, time,
            )  # fmt: skip

    bounds = blocks(view, 8 * U.shape[1], 40 * U.shape[1])
    _threads.run(block, bounds, stream.threads, joined=True)
    share(view, U)
