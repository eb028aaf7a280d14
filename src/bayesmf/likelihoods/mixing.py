"""Gamma mixing variables of mean one, drawn together with the shape that governs them.

See `bayesmf.kernels.mixing` for the densities: whoever has ``h`` more shape and ``d`` more rate
from the data draws the shape with the variables integrated out, then the variables.
"""

from __future__ import annotations

import numpy as np

from bayesmf.data.observed import View
from bayesmf.data.shards import at_one
from bayesmf.kernels.mixing import draw_mixing
from bayesmf.kernels.mixing import draw_shape as draw_shape_kernel
from bayesmf.priors.distributions import GammaAbove
from bayesmf.streams import Array, Stream
from bayesmf.updates.entries import by_rows

_GAMMA = 60  # vector operations that a gamma draw takes


def distinct(h: Array, n: int) -> tuple[Array, Array]:
    """The distinct numbers of h, and how often each occurs among n terms."""
    if h.size == 1:
        return h, np.array([float(n)])
    if h.max() <= 10_000 and (h % 1 == 0).all():
        times = np.bincount(h.astype(np.int64))
        values = np.flatnonzero(times)
        return values.astype(np.float64), times[values].astype(np.float64)
    values, times = np.unique(h, return_counts=True)
    return values, times.astype(np.float64)


def draw_shape(
    prior: GammaAbove, now: float, h: Array, d: Array, stream: Stream,
    known: tuple[Array, Array] | None = None,
) -> Array:  # fmt: skip
    """Draw the shape given its present value; ``known`` are the `distinct` numbers of h."""
    values, times = distinct(h, d.size) if known is None else known
    limits = prior.least, prior.shape, prior.rate
    return np.asarray(draw_shape_kernel(stream.key(), now, *limits, values, times, h, d))


def draw_shape_of_entries(
    view: View, prior: GammaAbove, now: float, h: Array, d: Array, stream: Stream
) -> Array:
    """As `draw_shape`, of variables of all entries; h has a number for each, or one for all."""
    key, limits = stream.key(), (prior.least, prior.shape, prior.rate)

    def drawn(d: Array, h: Array = h) -> Array:
        return np.asarray(draw_shape_kernel(key, now, *limits, *distinct(h, d.size), h, d))

    return at_one(view, drawn, *([d] if h.size == 1 else [d, h]))


def draw_of_entries(view: View, s: float, h: Array, d: Array, stream: Stream) -> Array:
    """Mixing variables of all entries (N,), given the shape."""
    key, out = stream.key(), np.empty(d.size)
    by_rows(
        view,
        _GAMMA,
        lambda start, stop: draw_mixing(start, stop, key, view.indptr, s, h, d, out),
        stream.threads,
    )
    return out
