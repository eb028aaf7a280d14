"""Half-sweeps of counts: every count is split over the factors, and only the sums are kept."""

from __future__ import annotations

import numpy as np

from bayesmf import _threads
from bayesmf.data.observed import View
from bayesmf.kernels.counts import split_counts, sum_factors
from bayesmf.streams import Array, Stream
from bayesmf.updates.blocks import blocks


def split(view: View, U: Array, V: Array, stream: Stream) -> tuple[Array, Array]:
    """Split every observed count over the factors: sums over columns (n, K), over rows (m, K)."""
    key = stream.key()
    bounds = blocks(view, 20 * U.shape[1], 1, most=8)  # each has column sums of its own
    row_sums = np.zeros(U.shape)
    col_sums = np.zeros((len(bounds) - 1, *V.shape))
    position = {start: b for b, start in enumerate(bounds[:-1])}

    def block(start: int, stop: int) -> None:
        split_counts(
            start, stop, key, view.indptr, view.indices, view.values, U, V,
            row_sums, col_sums[position[start]],
        )  # fmt: skip

    _threads.run(block, bounds, stream.threads)
    return row_sums, col_sums.sum(axis=0)


def factor_sums(view: View, V: Array, threads: int, weights: Array | None = None) -> Array:
    """Sum of the other side's factors over each row's observed entries (n, K).

    ``weights`` (N,) are those of the entries, in the order of the view.
    """
    out, mask = np.empty((view.n, V.shape[1])), view.mask if weights is None else None

    def block(start: int, stop: int) -> None:
        if mask is not None:
            np.matmul(mask[start:stop], V, out=out[start:stop])
        else:
            sum_factors(start, stop, view.indptr, view.indices, weights, V, out)

    _threads.run(block, blocks(view, V.shape[1], V.shape[1]), threads)
    return out
