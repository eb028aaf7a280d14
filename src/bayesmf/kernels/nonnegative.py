"""Nonnegative rows: entries in turn, several times over, given the precision matrix of the row.

The data of a row enter through the Gram step alone, so that a pass over its K entries costs some
K^2 operations, however many observations it has. Where factors overlap the entries of a row are
correlated, and one pass would leave them almost where it found them.

A pass may mirror entries instead of drawing them: each goes to the other side of its mean given the
others, as far from it as it was, if that is not below zero. The density there is the same, so the
move leaves the distribution as it is, and in turns with draws it takes both sides along slow
directions step by step where draws would walk at random (overrelaxation; Adler, 1981).
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.cells import row_precision
from bayesmf.kernels.compile import kernel
from bayesmf.kernels.linalg import padded
from bayesmf.kernels.random import exponential, seed_stream
from bayesmf.kernels.special import truncated_excess
from bayesmf.kernels.vectors import LANES, load, minus_product, splat, store


@kernel
def draw_entry(s, root, b, spread):
    """Draw x >= 0 with density proportional to exp((b x - (root x)^2 / 2) / spread^2)."""
    if root == 0.0:
        return spread * spread * exponential(s) / -b
    return spread / root * truncated_excess(s, -b / (root * spread))


@kernel
def mirror_entry(s, root, b, spread, x):
    """Move x >= 0 so that the density of `draw_entry` stays: mirror it, or draw it.

    With a positive mean the points up to twice the mean are mirrored, and one beyond is drawn anew
    among those beyond; with any other mean there is nothing to mirror.
    """
    if not (root > 0.0 and b > 0.0):
        return draw_entry(s, root, b, spread)
    twice = 2.0 * (b / root) / root
    if x <= twice:
        return twice - x
    return twice + spread / root * truncated_excess(s, b / (root * spread))


@kernel
def subtract_row(x, A, k, linear):
    """Subtract x times row k of A."""
    w = A.shape[1]
    for a in range(0, w, LANES):
        store(linear, a, minus_product(load(linear, a), splat(x), load(A, k * w + a)))


@kernel
def draw_nonnegative(s, x, A, roots, linear, spread, passes, mirrored):
    """Draw, or mirror, the entries of x >= 0 (K,) in turn, ``passes`` times.

    The density is proportional to exp((linear^T x - x^T (A + R^2) x / 2) / spread^2), R being the
    diagonal matrix of ``roots`` (K,). A (K, whole vectors) is symmetric, with zeros on its diagonal
    and at the end of its rows. The linear term (whole vectors) becomes linear - A x.
    """
    K = x.shape[0]
    for k in range(K):
        subtract_row(x[k], A, k, linear)
    for _ in range(passes):
        for k in range(K):
            if mirrored:
                new = mirror_entry(s, roots[k], linear[k], spread, x[k])
            else:
                new = draw_entry(s, roots[k], linear[k], spread)
            subtract_row(new - x[k], A, k, linear)
            x[k] = new


@kernel
def draw_nonnegative_rows(
    start, stop, key, U, packed, rhs, tau, own, precision, linear, coupling, passes, mirrored
):
    """Draw rows start..stop of U (n, K) in place; packed and rhs are their Gram step.

    precision and linear (1 or n, K) are the prior's terms per entry; ``coupling`` adds
    -coupling * (sum of the row's other entries) to the linear term; ``passes`` (n,) says how often
    a row is gone over, ``mirrored`` how.
    """
    K = U.shape[1]
    A, h = np.zeros((K, padded(K, LANES))), np.zeros(padded(K, LANES))
    roots, s = np.empty(K), np.empty(4, np.uint64)
    for i in range(start, stop):
        p = precision[i if precision.shape[0] > 1 else 0]
        b = linear[i if linear.shape[0] > 1 else 0]
        noise, G = row_precision(tau, own, i), packed[i - start]
        position = 0
        for a in range(K):
            h[a] = b[a] + noise * rhs[i - start, a]
            for c in range(a):
                A[a, c] = A[c, a] = coupling + noise * G[position]
                position += 1
            roots[a] = math.sqrt(p[a] + noise * G[position])
            position += 1
        seed_stream(key, i, s)
        draw_nonnegative(s, U[i], A, roots, h, 1.0, passes[i], mirrored)
