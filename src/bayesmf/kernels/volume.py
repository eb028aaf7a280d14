"""Rows coupled through the volume prior exp(-gamma det(U^T U)), visited in sequence.

With row i removed from S = U^T U, det(U^T U) = det S_- + x_i^T adj(S_-) x_i, so the whole row has a
Gaussian conditional prior with precision 2 gamma adj(S_-). P = S^-1 and log det S are carried along
by rank-one changes, and only log gamma + log det is ever formed, never a determinant. Where S is
nearly singular, P belongs to Y = U W^T instead, which is orthonormal to begin with. What has to be
computed afresh, and the rare row that leaves a singular S_-, are the business of ``moments``.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.linalg import factor_one, padded, solve_one
from bayesmf.kernels.nonnegative import draw_row
from bayesmf.kernels.random import normal, seed_stream
from bayesmf.kernels.vectors import LANES
from bayesmf.kernels.walls import single_workspace


@kernel
def rank_one(P, u, sign, B, q):
    """Set B to (P^-1 + sign u u^T)^-1 and return 1 + sign u^T P u (B is unset if that is tiny).

    ``q`` (K,) takes P u.
    """
    K = u.shape[0]
    q[:] = 0.0
    for b in range(K):
        for a in range(K):
            q[a] += P[b, a] * u[b]
    form = 0.0
    for a in range(K):
        form += u[a] * q[a]
    ratio = 1.0 + sign * form
    if ratio >= 1e-6:
        c = sign / ratio
        for a in range(K):
            for b in range(K):
                B[a, b] = P[a, b] - c * q[a] * q[b]
    return ratio


@kernel
def _draw_real(s, A, linear, inverse, z, stay, spread):
    """Replace the linear term by a draw with precision A, less ``stay`` times its mean.

    Noise is multiplied by ``spread``; A is overwritten.
    """
    for k in range(z.shape[0]):
        linear[k] *= 1.0 - stay
        z[k] = normal(s)
    factor_one(A, inverse)
    solve_one(A, inverse, linear, z, spread)


@kernel
def assemble(A, linear, B, c, source, g, tau, ridge):
    """Set precision A and linear term of a row, both divided by e^scale; return scale.

    The precision is 2 e^c B + tau G + ridge; dividing keeps either part from overflowing.
    """
    K = B.shape[0]
    seen = ridge
    for k in range(K):
        seen += source[k * (k + 1) // 2 + k]
    scale = max(c, 0.0) if seen > 0.0 else c
    if scale == -np.inf:
        scale = 0.0
    prior = 2.0 * math.exp(c - scale)
    data = math.exp(-scale) if seen > 0.0 else 0.0
    linear[K:] = 0.0
    position = 0
    for a in range(K):
        for b in range(a + 1):
            A[a, b] = A[b, a] = prior * B[a, b] + data * tau * source[position]
            position += 1
        A[a, a] += data * ridge
        linear[a] = data * tau * g[a]
    return scale


@kernel
def assemble_singular(A, linear, T, log_weights, source, g, tau, log_gamma, ridge):
    """Set precision A and linear term of y, where x = T y diagonalises adj(S_-).

    There a huge prior precision stays on the diagonal and drowns none of the data's.
    """
    K = T.shape[0]
    linear[K:] = 0.0
    M, MT = np.empty((K, K)), np.zeros((K, K))
    position = 0
    for a in range(K):
        for b in range(a + 1):
            M[a, b] = M[b, a] = tau * source[position]
            position += 1
        M[a, a] += ridge
    for a in range(K):
        for c in range(K):
            for b in range(K):
                MT[a, b] += M[a, c] * T[c, b]
    for a in range(K):
        linear[a] = 0.0
        for c in range(K):
            linear[a] += T[c, a] * tau * g[c]
        for b in range(a, K):
            A[a, b] = 0.0
            for c in range(K):
                A[a, b] += T[c, a] * MT[c, b]
        exponent = log_gamma + log_weights[a]
        if exponent > -np.inf:
            A[a, a] += 2.0 * math.exp(min(max(exponent, -600.0), 600.0))


@kernel
def congruent(W, B, C, BW):
    """Set C to W^T B W, and the first K columns of BW to B W."""
    K = B.shape[0]
    for a in range(K):
        for b in range(K):
            BW[a, b] = C[a, b] = 0.0
    for a in range(K):
        for c in range(K):
            for b in range(K):
                BW[a, b] += B[a, c] * W[c, b]
    for c in range(K):
        for a in range(K):
            for b in range(K):
                C[a, b] += W[c, a] * BW[c, b]


def volume_workspace(K, nonnegative):
    """Return what ``draw_volume`` works in; the last is None where entries have no sign."""
    w, s = padded.py_func(K, LANES), np.zeros(4, np.uint64)
    walls = True if nonnegative else None
    return np.zeros((K, w)), *np.ones((2, K, K)), np.zeros(w), *np.zeros((2, K)), s, walls


@kernel
def draw_volume(
    start, stop, key, U, Y, W, P, log_det, packed, rhs, tau, log_gamma, ridge, stay,
    spread, A, B, C, linear, z, inverse, s, walls,
):  # fmt: skip
    """Draw rows of U (n, K) in turn, from start on; return where it ended, and log det U^T U there.

    It ends at stop, or at a row without which U^T U is singular in doubles (``draw_singular``).
    packed and rhs are the Gram step's of the last rows up to stop. The prior is
    exp(-gamma det(U^T U) - ridge |U|^2 / 2), on U >= 0 unless ``walls`` is None. A row becomes
    ``stay`` times itself plus (1 - stay) times its mean plus ``spread`` times its noise, or goes
    there between the walls at zero. Y is U W^T, or U itself if W is None, and P is (Y^T Y)^-1; both
    are kept so. With K = 1, P and log_det have no use. The last eight arguments are the
    ``volume_workspace``. No code is compiled for what None rules out.
    """
    K, first = U.shape[1], stop - len(rhs)
    C = B if W is None else C
    if walls is not None:
        work = single_workspace(K)
    for i in range(start, stop):
        if K > 1:
            ratio = rank_one(P, Y[i], -1.0, B, z)
            if not (ratio >= 1e-6 and math.isfinite(log_det)):
                return i, log_det
            log_det += math.log(ratio)
            if W is not None:
                congruent(W, B, C, A)
        c = log_gamma + (log_det if K > 1 else 0.0)
        scale = assemble(A, linear, C, c, packed[i - first], rhs[i - first], tau, ridge)
        seed_stream(key, i, s)
        if walls is not None:
            draw_row(s, i, U, A, linear, math.exp(-0.5 * scale), spread / (1.0 + stay), work)
        else:
            _draw_real(s, A, linear, inverse, z, stay, spread * math.exp(-0.5 * scale))
            for k in range(K):
                U[i, k] = stay * U[i, k] + linear[k]
        if W is not None:
            for a in range(K):
                Y[i, a] = 0.0
                for k in range(K):
                    Y[i, a] += W[a, k] * U[i, k]
        if K > 1:
            log_det += math.log(rank_one(B, Y[i], 1.0, P, z))
    return stop, log_det


@kernel
def draw_singular(
    i, key, U, T, weights, B, c, source, g, tau, log_gamma, ridge, nonnegative, stay, spread
):  # fmt: skip
    """Draw row i of U, whatever the other rows are.

    T and log weights are the ``directions`` of the moments without the row, B and c their
    ``adjugate``; source and g are the row's Gram step.
    """
    K = U.shape[1]
    A, linear = np.zeros((K, padded(K, LANES))), np.zeros(padded(K, LANES))
    s = np.empty(4, np.uint64)
    seed_stream(key, i, s)
    if nonnegative:
        scale = assemble(A, linear, B, log_gamma + c, source, g, tau, ridge)
        time, work = spread / (1.0 + stay), single_workspace(K)
        draw_row(s, i, U, A, linear, math.exp(-0.5 * scale), time, work)
        return
    assemble_singular(A, linear, T, weights, source, g, tau, log_gamma, ridge)
    _draw_real(s, A, linear, np.empty(K), np.empty(K), stay, spread)
    for a in range(K):
        U[i, a] *= stay
        for k in range(K):
            U[i, a] += T[a, k] * linear[k]
