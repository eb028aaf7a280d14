"""Motion of normal rows x >= 0 between the walls at zero: exact, with nothing to reject.

A point whose potential energy is the negative logarithm of N(mean, S) goes round the mean,
x(t) = mean + (x - mean) cos t + v sin t, if it starts with a velocity v from N(0, S). Where an
entry meets zero, the velocity is reflected: v - 2 v_k / S_kk times column k of S. Energy is kept
and the motion can be reversed, so it leaves the truncated normal as it is (Pakman and Paninski,
2014). A row that meets no wall becomes what a real-valued one becomes (``rows``).

Times are written as tan(t / 2), in which a meeting with a wall is the root of a quadratic, and no
sine is ever asked for. `LANES` rows move at once, as in ``linalg``: each meets its own walls, and
waits at its end for the others.
"""

from __future__ import annotations

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.linalg import TILE, cholesky, clear_padding, padded
from bayesmf.kernels.random import normal
from bayesmf.kernels.vectors import (
    LANES,
    clamped_below,
    inverse_root,
    load,
    minus_product,
    plus_product,
    product,
    quotient,
    splat,
    square_root,
    store,
    where_less,
)

_MOST = 1000  # walls met, beyond which a row stays where it was
_FAR = 4.0  # standard deviations of a mean below zero, for each factor: too many walls on the way
_MANY = 128.0  # times that deviations fit between the walls, all factors added up: likewise, but
_FEW = 16  # factors meet few walls
_SMALL = 1e7  # times its rounding error: a pivot below that makes a matrix nearly singular


@kernel
def motion_workspace(K):
    """Return what ``move_rows`` works in: covariances, positions, velocities, means, and a state.

    The state (5, LANES) says of each lane whether its row is fit to be moved, what time is left to
    it, which wall it meets, the largest rounding error of a pivot, as a part of the pivot, and the
    size of its precision matrix.
    """
    x, v, mean = np.zeros((3, K, LANES))
    return np.zeros((K, K, LANES)), x, v, mean, np.zeros((5, LANES))


@kernel(inner=True)
def _size(x):
    """Return the absolute value of each lane."""
    return clamped_below(x, product(splat(-1.0), x))


@kernel
def measure(A, K, state):
    """Note the sum of the sizes of all entries of A, of which the lower triangle is there.

    Only rows of many factors are judged by it.
    """
    if K <= _FEW:
        return
    one, two, s = splat(1.0), splat(2.0), splat(0.0)
    for a in range(K):
        p = a * A.shape[1] * LANES
        for b in range(a):
            s = plus_product(s, two, _size(load(A, p + b * LANES)))
        s = plus_product(s, one, _size(load(A, p + a * LANES)))
    store(state, 4 * LANES, s)


@kernel
def prepare_motion(L, floor, S, state):
    """Set covariances S (K, K, LANES) and the state's errors from what ``cholesky`` leaves.

    L becomes its own inverse.
    """
    worst, step = splat(0.0), (L.shape[1] + 1) * LANES
    for k in range(S.shape[0]):
        x = load(L, k * step)
        worst = clamped_below(product(product(x, x), load(floor, k * LANES)), worst)
    store(state, 3 * LANES, worst)
    _invert(L)
    _set_covariances(L, S)


@kernel(inner=True)
def _invert(L):
    """Replace L, as ``linalg.cholesky`` leaves it, by its inverse."""
    size = L.shape[0]
    w = size * LANES
    for b in range(size):
        d = b * LANES
        for a in range(b + 1, size):
            s = splat(0.0)
            for c in range(b, a):
                s = minus_product(s, load(L, a * w + c * LANES), load(L, c * w + d))
            store(L, a * w + d, product(s, load(L, a * w + a * LANES)))


@kernel(inner=True)
def _set_covariances(T, S):
    """Set S (K, K, LANES) to T^T T, T being a lower triangle."""
    K, w = S.shape[0], T.shape[1] * LANES
    for a in range(K):
        for b in range(a + 1):
            s = splat(0.0)
            for c in range(a, K):
                s = plus_product(s, load(T, c * w + a * LANES), load(T, c * w + b * LANES))
            store(S, (a * K + b) * LANES, s)
            store(S, (b * K + a) * LANES, s)


@kernel(inner=True)
def _start(T, z, S, h, v, mean):
    """Set velocities v (K, LANES) to T^T z and the means to S h."""
    K, w = S.shape[0], T.shape[1] * LANES
    for a in range(K):
        s, t = splat(0.0), splat(0.0)
        for c in range(a, K):
            s = plus_product(s, load(T, c * w + a * LANES), load(z, c * LANES))
        for c in range(K):
            t = plus_product(t, load(S, (a * K + c) * LANES), load(h, c * LANES))
        store(v, a * LANES, s)
        store(mean, a * LANES, t)


@kernel(inner=True)
def _below_zero(mean, S):
    """Return how many deviations the means of each lane lie below zero, added up."""
    far, step = splat(0.0), (S.shape[1] + 1) * LANES
    for k in range(S.shape[0]):
        below = clamped_below(product(splat(-1.0), load(mean, k * LANES)), splat(0.0))
        far = plus_product(far, below, inverse_root(load(S, k * step)))
    return far


@kernel(inner=True)
def _crossings(S, h, state):
    """Return how often the deviations of each lane fit into the room of an entry, added up.

    That room is what all entries are if they are equal: linear terms over precisions, added up.
    """
    one, wide, pull = splat(1.0), splat(0.0), splat(0.0)
    for k in range(S.shape[0]):
        wide = plus_product(wide, one, square_root(load(S, k * (S.shape[1] + 1) * LANES)))
        pull = plus_product(pull, one, _size(load(h, k * LANES)))
    return quotient(product(wide, load(state, 4 * LANES)), pull)


@kernel(inner=True)
def _next_walls(x, v, mean, time):
    """Return when each lane meets its next wall, or its time if that comes first, and which.

    With T = tan(t / 2) an entry is at zero where (2 mean - x) T^2 + 2 v T + x = 0, of which the
    root is written so that nothing cancels.
    """
    zero, one, two, never = splat(0.0), splat(1.0), splat(2.0), splat(np.inf)
    first, hit = time, splat(-1.0)
    for k in range(x.shape[0]):
        p = k * LANES
        at, speed = load(x, p), load(v, p)
        beyond = minus_product(at, two, load(mean, p))
        square = plus_product(product(at, beyond), speed, speed)
        root = square_root(clamped_below(square, zero))
        above = where_less(speed, zero, at, plus_product(root, one, speed))
        below = where_less(speed, zero, minus_product(root, one, speed), beyond)
        when = where_less(zero, below, quotient(above, below), never)
        when = where_less(zero, square, when, never)
        hit = where_less(when, first, splat(float(k)), hit)
        first = where_less(when, first, when, first)
    return first, hit


@kernel(inner=True)
def _go_round(x, v, mean, time):
    """Move positions and velocities on by a time without walls, each lane by its own."""
    zero, one, two = splat(0.0), splat(1.0), splat(2.0)
    turn = quotient(product(two, time), plus_product(one, time, time))
    less = product(turn, time)  # 1 - cos t
    for p in range(0, x.size, LANES):
        at, speed = load(x, p), load(v, p)
        off = minus_product(at, one, load(mean, p))
        moved = plus_product(minus_product(at, less, off), turn, speed)
        store(x, p, clamped_below(moved, zero))
        store(v, p, minus_product(minus_product(speed, less, speed), turn, off))


@kernel(inner=True)
def _reflect(x, v, S, hit):
    """Reflect the velocity of each lane that is at a wall; return whether there is any."""
    K, met = x.shape[0], False
    for lane in range(LANES):
        if hit[lane] >= 0.0:
            met = True
            wall = int(hit[lane])
            speed = v[wall, lane]
            push = 2.0 * speed / S[wall, wall, lane]
            for k in range(K):
                v[k, lane] -= push * S[wall, k, lane]
            x[wall, lane], v[wall, lane] = 0.0, -speed
    return met


@kernel
def swing(x, v, mean, S, left, hit):
    """Move x >= 0 and v (K, LANES) for the time of each lane that is ``left``, between the walls.

    Nothing is left to lanes that came to their end. ``hit`` (LANES,) is there to work in.
    """
    one = splat(1.0)
    for _ in range(_MOST):
        time = load(left, 0)
        first, walls = _next_walls(x, v, mean, time)
        _go_round(x, v, mean, first)
        store(left, 0, quotient(minus_product(time, one, first), plus_product(one, time, first)))
        store(hit, 0, walls)
        if not _reflect(x, v, S, hit):
            return


@kernel
def move_rows(i, rows, U, T, h, z, spread, time, S, x, v, mean, state):
    """Move the rows i, i + 1... of U between the walls, those that are fit for it.

    One is unfit whose precision matrix is nearly singular, or that would meet walls without end,
    because its mean is far below zero, or because its factors are many and so alike that deviations
    are much wider than the room between the walls. That follows from all but the row itself. T and
    S are what ``prepare_motion`` leaves, of precisions times spread^2; h are the linear terms times
    spread^2, and z is normal with the standard deviation ``spread``.
    """
    K, fit, left, hit = x.shape[0], state[0], state[1], state[2]
    for lane in range(rows):
        for k in range(K):
            x[k, lane] = U[i + lane, k]
    _start(T, z, S, h, v, mean)
    store(left, 0, _below_zero(mean, S))
    if K > _FEW:
        store(hit, 0, _crossings(S, h, state))
    for lane in range(LANES):
        regular = state[3, lane] * _SMALL < 1.0 and left[lane] < _FAR * K * spread
        regular = regular and (K <= _FEW or hit[lane] * spread < _MANY)
        fit[lane] = regular and lane < rows
        left[lane] = time * fit[lane]
    swing(x, v, mean, S, left, hit)
    for lane in range(rows):
        if fit[lane] and left[lane] == 0.0:
            for k in range(K):
                U[i + lane, k] = x[k, lane]


@kernel
def single_workspace(K):
    """Return what ``move_row`` works in."""
    size = padded(K, TILE)
    L = np.zeros((size, size, LANES))
    clear_padding(L, K)
    floor, h, z = np.zeros((3, size, LANES))
    return L, floor, h, z, motion_workspace(K)


@kernel
def move_row(s, i, U, A, linear, spread, time, work):
    """Move row i of U >= 0, whose density is exp((linear^T x - x^T A x / 2) / spread^2), if it can.

    Returns whether the row is fit for it. A has K rows of whole vectors.
    """
    L, floor, h, z, (S, x, v, mean, state) = work
    for a in range(x.shape[0]):
        for c in range(a + 1):
            L[a, c, 0] = A[a, c]
        h[a, 0], z[a, 0] = linear[a], spread * normal(s)
    measure(L, x.shape[0], state)
    cholesky(L, floor)
    prepare_motion(L, floor, S, state)
    move_rows(i, 1, U, L, h, z, spread, time, S, x, v, mean, state)
    return state[0, 0] != 0.0
