"""One entry at a time: x_ik ~ normal, or truncated normal, on a residual kept for the row.

All factors of a row are drawn while its residual e = r - x V^T stays in the nearest cache. The
residual is rebuilt when the row's turn comes, so nothing drifts and nothing is shared: the cost is
O(observed * K) per half-sweep. One pass over the row's cells corrects the residual for the entry
drawn last and sums what the next one needs. Cells are padded with zeros to pairs of vectors. The
noise precision tau is multiplied by ``own`` (n,) of the row, unless that is None.

That is for normal entries that a prior wants so, and for nonnegative rows of many factors that are
too crowded to be moved as a whole (``find_crowded``).
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.cells import longest_row, row_precision
from bayesmf.kernels.compile import kernel
from bayesmf.kernels.linalg import padded
from bayesmf.kernels.prefetch import NEAR, prefetch_row
from bayesmf.kernels.random import normal, seed_stream
from bayesmf.kernels.special import truncated_normal
from bayesmf.kernels.vectors import (
    LANES,
    at,
    load,
    minus_product,
    plus_product,
    product,
    splat,
    store,
    total,
)

PAIR = 2 * LANES


@kernel
def width(n):
    """Length of a row of n cells: whole pairs of vectors, and no large power of two."""
    length = padded(n, PAIR)
    return length + PAIR if length % 128 == 0 else length


@kernel
def subtract_fit(x, Vt, n, e):
    """Subtract x Vt from the first n cells of e."""
    w = Vt.shape[1]
    for t in range(0, n, PAIR):
        e0, e1 = load(e, t), load(e, t + LANES)
        for k in range(x.shape[0]):
            c, p = splat(x[k]), k * w + t
            e0, e1 = minus_product(e0, c, load(Vt, p)), minus_product(e1, c, load(Vt, p + LANES))
        store(e, t, e0)
        store(e, t + LANES, e1)


@kernel
def step(change, last, k, Vt, n, weight, e):
    """Subtract change * Vt[last] from e; return sums of w f^2 and w e f over cells, f = Vt[k]."""
    w = Vt.shape[1]
    p, q = last * w, k * w
    c = splat(change)
    d0 = d1 = g0 = g1 = splat(0.0)
    for t in range(0, n, PAIR):
        f0, f1 = load(Vt, q + t), load(Vt, q + t + LANES)
        e0 = minus_product(load(e, t), c, load(Vt, p + t))
        e1 = minus_product(load(e, t + LANES), c, load(Vt, p + t + LANES))
        store(e, t, e0)
        store(e, t + LANES, e1)
        f_w0, f_w1 = product(f0, load(weight, t)), product(f1, load(weight, t + LANES))
        d0, d1 = plus_product(d0, f_w0, f0), plus_product(d1, f_w1, f1)
        g0, g1 = plus_product(g0, f_w0, e0), plus_product(g1, f_w1, e1)
    one = splat(1.0)
    return total(plus_product(d0, one, d1)), total(plus_product(g0, one, g1))


@kernel
def squared_error(change, last, Vt, n, weight, e):
    """Return the sum of w r^2 over cells, r = e - change * Vt[last]."""
    p, c = last * Vt.shape[1], splat(change)
    s0 = s1 = splat(0.0)
    for t in range(0, n, PAIR):
        e0 = minus_product(load(e, t), c, load(Vt, p + t))
        e1 = minus_product(load(e, t + LANES), c, load(Vt, p + t + LANES))
        s0 = plus_product(s0, product(load(weight, t), e0), e0)
        s1 = plus_product(s1, product(load(weight, t + LANES), e1), e1)
    return total(plus_product(s0, splat(1.0), s1))


@kernel
def move_entry(s, x, p, b, time):
    """Move x >= 0, whose density is exp(b x - p x^2 / 2), round its mean, reflected by zero.

    It moves as a row does (``walls``), and meets zero once at the most, since the way back to it
    takes more than half a turn if the mean is positive. Where it is not, x is drawn afresh.
    """
    if not b > 0.0:
        return truncated_normal(s, p, b)
    mean = b / p
    off, v = x - mean, normal(s) / math.sqrt(p)
    square = off * off + v * v - mean * mean  # of the speed at zero
    if square > 0.0:
        root = math.sqrt(square)
        below = x - 2.0 * mean if v >= 0.0 else root - v
        above = v + root if v >= 0.0 else x
        if above < time * below:
            left = (time * below - above) / (below + time * above)
            turn = 2.0 * left / (1.0 + left * left)
            return max(turn * (root + left * mean), 0.0)
    turn = 2.0 * time / (1.0 + time * time)
    return max(x + turn * (v - time * off), 0.0)


@kernel
def _row(n, s, x, Vt, weight, e, tau, precision, linear, coupling, stay, spread):
    """Draw all entries of a row x in turn; e holds its values, 1 in ``weight`` marks its cells.

    Returns the sum of squared residuals of the new row.
    """
    subtract_fit(x, Vt, n, e)
    change, last = 0.0, 0
    if coupling is not None:
        time, others = spread / (1.0 + stay), 0.0
        for k in range(x.shape[0]):
            others += x[k]
    for k in range(x.shape[0]):
        d, g = step(change, last, k, Vt, n, weight, e)
        p = precision[k] + tau * d
        b = linear[k] + tau * (g + x[k] * d)
        if coupling is None:
            new = stay * x[k] + (1.0 - stay) * b / p + spread * normal(s) / math.sqrt(p)
        else:
            others -= x[k]
            new = move_entry(s, x[k], p, b - coupling * others, time)
            others += new
        change, last = new - x[k], k
        x[k] = new
    return squared_error(change, last, Vt, n, weight, e)


@kernel
def gather_row(V, indices, values, scale, weights, first, n, length, place, Vt, e):
    """Set Vt and e to factors and values of n entries from the first on, zero up to ``length``.

    Values are multiplied by the ``scale`` of their columns, and both by the roots of the entries'
    ``weights``, unless these are None.
    """
    K = V.shape[1]
    if V.size > NEAR:
        for t in range(first + n, first + 2 * n):  # for the next row
            prefetch_row(V, indices, t)
    for t in range(n):
        place[t] = indices[first + t] * K
        e[t] = values[first + t]
        if scale is not None:
            e[t] *= scale[indices[first + t]]
    for t in range(n, length):
        e[t] = 0.0
    for k in range(K):
        for t in range(n):
            Vt[k, t] = at(V, place[t] + k)
        for t in range(n, length):
            Vt[k, t] = 0.0
    if weights is not None:
        for t in range(n):
            root = math.sqrt(weights[first + t])
            e[t] *= root
            for k in range(K):
                Vt[k, t] *= root


@kernel
def draw_entries_sparse(
    start, stop, key, U, indptr, indices, values, scale, weights, V, errors,
    tau, own, precision, linear, coupling, stay, spread,
):  # fmt: skip
    """Draw rows start..stop of U (n, K) in place, from lists of observed entries.

    precision and linear (1 or n, K) are the prior's terms per entry. An entry becomes ``stay``
    times itself plus (1 - stay) times its mean plus ``spread`` times its noise. If ``coupling`` is
    not None, entries are nonnegative, see -coupling times the sum of the row's others, and move as
    ``move_entry`` does. ``errors`` (n,) takes the sums of squared residuals.
    """
    K = U.shape[1]
    longest = longest_row(start, stop, indptr)
    buffer = np.empty(K * width(longest))
    e = np.empty(width(longest))
    weight = np.ones(width(longest))
    place = np.empty(longest, np.int64)
    s = np.empty(4, np.uint64)
    for i in range(start, stop):
        first = indptr[i]
        n = indptr[i + 1] - first
        w, length = width(n), padded(n, PAIR)
        Vt = buffer[: K * w].reshape((K, w))
        gather_row(V, indices, values, scale, weights, first, n, length, place, Vt, e)
        seed_stream(key, i, s)
        p = precision[i if precision.shape[0] > 1 else 0]
        b = linear[i if linear.shape[0] > 1 else 0]
        noise = row_precision(tau, own, i)
        errors[i] = _row(length, s, U[i], Vt, weight, e, noise, p, b, coupling, stay, spread)


@kernel
def draw_entries_dense(
    start, stop, key, U, filled, mask, Vt, errors, tau, own, precision, linear, coupling, stay,
    spread,
):  # fmt: skip
    """Draw rows start..stop of U as above, from a filled matrix (n, m) with its 0/1 mask.

    Vt (K, ``width(m)``) is the other side's factors, transposed once for all rows and padded with
    zeros: nothing is gathered.
    """
    m = filled.shape[1]
    length = padded(m, PAIR)
    e = np.zeros(length)
    weight = np.zeros(length)
    s = np.empty(4, np.uint64)
    for i in range(start, stop):
        for t in range(m):
            e[t] = filled[i, t]
            weight[t] = mask[i, t]
        for t in range(m, length):
            e[t] = 0.0
        seed_stream(key, i, s)
        p = precision[i if precision.shape[0] > 1 else 0]
        b = linear[i if linear.shape[0] > 1 else 0]
        noise = row_precision(tau, own, i)
        errors[i] = _row(length, s, U[i], Vt, weight, e, noise, p, b, coupling, stay, spread)


@kernel
def find_crowded(
    start, stop, step, K, V, indptr, indices, values, scale, weights, tau, own, precision, diagonal,
    most, crowded,
):  # fmt: skip
    """Set ``crowded`` (n,) of every ``step``-th row >= 0: deviations are wide beside their room.

    The room is what all K entries are if they are equal, so that the row's fit is as large as its
    values; deviations are those of an entry given the others. A row with more than ``most`` of
    them, all factors added up, would meet wall after wall (``walls``). That follows from all but
    the row itself. V (m, whole vectors) has zeros at the end of its rows.
    """
    w, prior = V.shape[1], 0.0
    squares = np.empty(w)
    for a in range(K):
        for b in range(K):
            prior += precision[a, b]
    for i in range(start + -start % step, stop, step):
        p, fitted, size = min(i, diagonal.shape[0] - 1), 0.0, 0.0
        squares[:] = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            q = at(indices, t) * w
            s, x = splat(0.0), at(values, t)
            if scale is not None:
                x *= at(scale, at(indices, t))
            weight = 1.0
            if weights is not None:
                weight = at(weights, t)
            for b in range(0, w, LANES):
                f = load(V, q + b)
                s = plus_product(s, splat(1.0), f)
                store(squares, b, plus_product(load(squares, b), product(splat(weight), f), f))
            fit = total(s)
            fitted += weight * fit * fit
            size += weight * x * x
        noise = row_precision(tau, own, i)
        wide, least = 0.0, prior
        for k in range(K):
            wide += 1.0 / math.sqrt(precision[k, k] + diagonal[p, k] + noise * squares[k])
            least += diagonal[p, k]
        crowded[i] = wide * math.sqrt(least + noise * fitted) > most * math.sqrt(noise * size)
