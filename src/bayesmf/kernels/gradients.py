"""Steps of conjugate gradients for several right-hand sides: all arrays (P, K) have whole vectors.

Each kernel goes once over its rows, and adds sums over them to ``sums``, one row for each.
"""

from __future__ import annotations

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.vectors import LANES, load, minus_product, plus_product, product, splat, store


@kernel
def advance(start, stop, along, ridge, scale, step, image, x, left, sums):
    """Go ``along`` (K,) the step, whose image is given but for ``ridge`` times itself.

    The solution x and the residual ``left`` change; sums are those of left^2, and of it scaled.
    """
    w = x.shape[1]
    for b in range(0, w, LANES):
        forth, squares, scaled = load(along, b), load(sums, b), load(sums, w + b)
        for p in range(start, stop):
            q = p * w + b
            s = load(step, q)
            store(x, q, plus_product(load(x, q), forth, s))
            r = minus_product(load(left, q), forth, plus_product(load(image, q), splat(ridge), s))
            store(left, q, r)
            squares = plus_product(squares, r, r)
            scaled = plus_product(scaled, product(splat(scale[p]), r), r)
        store(sums, b, squares)
        store(sums, w + b, scaled)


@kernel
def turn(start, stop, ratio, scale, left, step, sums):
    """Replace the step by the scaled residual and ``ratio`` (K,) times itself; sums of squares."""
    w = step.shape[1]
    for b in range(0, w, LANES):
        keep, squares = load(ratio, b), load(sums, b)
        for p in range(start, stop):
            q = p * w + b
            s = plus_product(product(splat(scale[p]), load(left, q)), keep, load(step, q))
            store(step, q, s)
            squares = plus_product(squares, s, s)
        store(sums, b, squares)
