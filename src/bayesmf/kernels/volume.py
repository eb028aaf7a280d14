"""Rows coupled through the volume prior exp(-gamma det(X^T X)), visited in sequence.

With row i removed from S = X^T X, det(X^T X) = det S_- + x_i^T adj(S_-) x_i, so the whole row has a
Gaussian conditional prior with precision 2 gamma adj(S_-). P = S^-1 and log det S are carried along
by rank-one changes, and only log gamma + log det is ever formed, never a determinant.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf._jit import kernel
from bayesmf.kernels.linalg import (
    LANES,
    TILE,
    cholesky,
    padded,
    solve_and_draw,
    sum_gram,
    workspace,
)
from bayesmf.kernels.random import normal, seed_stream
from bayesmf.kernels.special import truncated_normal


@kernel
def _moments(X, skip, C, D):
    """X^T X without row ``skip`` (none if negative) as D C D, C with unit diagonal."""
    n, K = X.shape
    F = np.zeros((n, padded(K, LANES)))
    for i in range(n):
        if i != skip:
            F[i, :K] = X[i]
    for k in range(K):
        top = 0.0  # scale before squaring: factors may be huge or tiny
        for i in range(n):
            top = max(top, abs(F[i, k]))
        total = 0.0
        for i in range(n):
            if top > 0.0:
                F[i, k] /= top
            total += F[i, k] * F[i, k]
        norm = math.sqrt(total)
        D[k] = top * norm
        for i in range(n):
            if norm > 0.0:
                F[i, k] /= norm
    G = np.zeros((padded(K, TILE), padded(K, LANES)))
    sum_gram(F, np.arange(n).astype(np.int32), 0, n, G)
    for a in range(K):
        for b in range(a + 1):
            C[a, b] = C[b, a] = G[a, b]


@kernel
def _factor(A, L):
    """Set every lane of L to the Cholesky factor of A, of which the lower triangle is read."""
    for a in range(A.shape[0]):
        for b in range(a + 1):
            L[a, b] = A[a, b]
    cholesky(L)


@kernel
def inverse_moments(X, P):
    """Set P to (X^T X)^-1 and return log det X^T X; NaN where that is singular in doubles."""
    K = X.shape[1]
    C, D = np.empty((K, K)), np.empty(K)
    L, _, _ = workspace(K)
    _moments(X, -1, C, D)
    _factor(C, L)
    log_det = 0.0
    for k in range(K):
        if D[k] == 0.0 or L[k, k, 0] > 1e4:  # the diagonal of L is inverted
            return np.nan
        log_det += 2.0 * (math.log(D[k]) - math.log(L[k, k, 0]))
    inverse = np.zeros((K, K))  # of L, lower triangular
    for j in range(K):
        inverse[j, j] = L[j, j, 0]
        for i in range(j + 1, K):
            total = 0.0
            for c in range(j, i):
                total -= L[i, c, 0] * inverse[c, j]
            inverse[i, j] = total * L[i, i, 0]
    for a in range(K):
        for b in range(a + 1):
            total = 0.0
            for c in range(a, K):
                total += inverse[c, a] * inverse[c, b]
            P[a, b] = P[b, a] = total / (D[a] * D[b])
    return log_det


@kernel
def _jacobi(C, V, K):
    """Eigenvectors of C into the columns of V, eigenvalues onto the diagonal of C."""
    V[:] = 0.0
    for k in range(K):
        V[k, k] = 1.0
    for _ in range(60):
        off = 0.0
        for p in range(K):
            for q in range(p + 1, K):
                off += C[p, q] * C[p, q]
        if off < 1e-32:
            return
        for p in range(K):
            for q in range(p + 1, K):
                if abs(C[p, q]) < 1e-300:
                    continue
                theta = 0.5 * (C[q, q] - C[p, p]) / C[p, q]
                t = math.copysign(1.0, theta) / (abs(theta) + math.hypot(theta, 1.0))
                c = 1.0 / math.hypot(t, 1.0)
                s = t * c
                for k in range(K):
                    x, y = C[k, p], C[k, q]
                    C[k, p], C[k, q] = c * x - s * y, s * x + c * y
                for k in range(K):
                    x, y = C[p, k], C[q, k]
                    C[p, k], C[q, k] = c * x - s * y, s * x + c * y
                for k in range(K):
                    x, y = V[k, p], V[k, q]
                    V[k, p], V[k, q] = c * x - s * y, s * x + c * y


@kernel
def directions(X, skip, T, log_weights):
    """Coordinates that diagonalise adj(S_-), row ``skip`` left out.

    With x = T y, x^T adj(S_-) x = sum over l of e^log_weights[l] y_l^2. Valid for singular S_-: one
    zero eigenvalue leaves one weight, two leave none (-inf).
    """
    K = X.shape[1]
    C, D = np.empty((K, K)), np.empty(K)
    V = np.empty((K, K))
    _moments(X, skip, C, D)
    _jacobi(C, V, K)
    scale = 0.0
    for k in range(K):
        if D[k] == 0.0:  # a factor that no other row uses: its eigenvalue is zero
            D[k] = 1.0
        scale += 2.0 * math.log(D[k])
    logs = np.empty(K)
    for k in range(K):
        logs[k] = math.log(C[k, k]) if C[k, k] > 1e-15 * K else -np.inf
    for k in range(K):
        log_weights[k] = scale
        for m in range(K):
            if m != k:
                log_weights[k] += logs[m]
        for a in range(K):
            T[a, k] = D[a] * V[a, k]


@kernel
def adjugate(T, log_weights, B):
    """Set B to adj(S_-) / e^c from its ``directions``, and return c (-inf if adj is zero)."""
    K = T.shape[0]
    c = np.max(log_weights)
    B[:] = 0.0
    if c == -np.inf:
        return c
    for a in range(K):
        square = 0.0  # D^2, because T = D V with V orthogonal; the vectors of adj are D^-1 V
        for k in range(K):
            square += T[a, k] * T[a, k]
        for b in range(a + 1):
            other = 0.0
            for k in range(K):
                other += T[b, k] * T[b, k]
            total = 0.0
            for k in range(K):
                total += math.exp(log_weights[k] - c) * T[a, k] * T[b, k]
            B[a, b] = B[b, a] = total / square / other
    return c


@kernel
def _rank_one(P, u, sign, B):
    """Set B to (P^-1 + sign u u^T)^-1 and return 1 + sign u^T P u (B is unset if that is tiny)."""
    K = u.shape[0]
    q = np.empty(K)
    h = 0.0
    for a in range(K):
        total = 0.0
        for b in range(K):
            total += P[a, b] * u[b]
        q[a] = total
        h += u[a] * total
    ratio = 1.0 + sign * h
    if ratio >= 1e-6:
        c = sign / ratio
        for a in range(K):
            for b in range(K):
                B[a, b] = P[a, b] - c * q[a] * q[b]
    return ratio


@kernel
def _draw_entries(s, x, A, h, half_log_scale):
    """Draw the entries of x >= 0 in turn; A and h, precision and linear term, lack e^(2 half)."""
    K = x.shape[0]
    spread = math.exp(-half_log_scale)
    for k in range(K):
        b = h[k]
        for c in range(K):
            if c != k:
                b -= (A[k, c] if c < k else A[c, k]) * x[c]
        x[k] = spread * truncated_normal(s, max(A[k, k], 1e-300), b / spread)


@kernel
def _assemble(A, h, B, c, source, g, tau, ridge):
    """Set A and h to precision and linear term of a row, both divided by e^scale; return scale.

    The precision is 2 e^c B + tau G + ridge; dividing keeps either part from overflowing.
    """
    K = h.shape[0]
    seen = ridge
    for k in range(K):
        seen += source[k * (k + 1) // 2 + k]
    scale = max(c, 0.0) if seen > 0.0 else c
    if scale == -np.inf:
        scale = 0.0
    prior = 2.0 * math.exp(c - scale)
    data = math.exp(-scale) if seen > 0.0 else 0.0
    position = 0
    for a in range(K):
        for b in range(a + 1):
            A[a, b] = prior * B[a, b] + data * tau * source[position]
            position += 1
        A[a, a] += data * ridge
        h[a] = data * tau * g[a]
    return scale


@kernel
def _assemble_singular(A, h, T, log_weights, source, g, tau, log_gamma, ridge):
    """Set A and h to precision and linear term of y, where x = T y diagonalises adj(S_-).

    There a huge prior precision stays on the diagonal and drowns none of the data's.
    """
    K = h.shape[0]
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
        h[a] = 0.0
        for c in range(K):
            h[a] += T[c, a] * tau * g[c]
        for b in range(a + 1):
            A[a, b] = 0.0
            for c in range(K):
                A[a, b] += T[c, a] * MT[c, b]
        exponent = log_gamma + log_weights[a]
        if exponent > -np.inf:
            A[a, a] += 2.0 * math.exp(min(max(exponent, -600.0), 600.0))


@kernel
def _transform(T, y, x):
    """Set x to T y."""
    for a in range(x.shape[0]):
        x[a] = 0.0
        for c in range(y.shape[0]):
            x[a] += T[a, c] * y[c]


@kernel
def draw_volume(key, X, packed, rhs, tau, log_gamma, ridge, nonnegative):
    """Draw all rows of X (n, K) in turn; packed and rhs come from the Gram step.

    The prior is exp(-gamma det(X^T X) - ridge |X|^2 / 2), on X >= 0 if ``nonnegative``.
    """
    n, K = X.shape
    L, y, z = workspace(K)
    P, B, T, A = np.ones((K, K)), np.ones((K, K)), np.empty((K, K)), np.empty((K, K))
    h, weights = np.empty(K), np.empty(K)
    s = np.empty(4, np.uint64)
    log_det, stale = 0.0, K > 1
    for i in range(n):
        seed_stream(key, i, s)
        source = packed[0 if packed.shape[0] == 1 else i]
        if stale:
            log_det = inverse_moments(X, P)
        regular = K == 1
        if K > 1 and math.isfinite(log_det):
            ratio = _rank_one(P, X[i], -1.0, B)
            regular = ratio >= 1e-6
            if regular:
                log_det += math.log(ratio)
        c, scale = log_gamma + log_det, 0.0
        if not regular:
            directions(X, i, T, weights)
        turned = not regular and not nonnegative
        if turned:
            _assemble_singular(A, h, T, weights, source, rhs[i], tau, log_gamma, ridge)
        else:
            if not regular:
                c = log_gamma + adjugate(T, weights, B)
            scale = _assemble(A, h, B, c, source, rhs[i], tau, ridge)
        if nonnegative:
            _draw_entries(s, X[i], A, h, 0.5 * scale)
        else:
            for k in range(K):
                y[k], z[k] = h[k], normal(s)
            _factor(A, L)
            solve_and_draw(L, y, z, math.exp(-0.5 * scale))
            if turned:
                _transform(T, y[:K, 0], X[i])
            else:
                X[i] = y[:K, 0]
        stale = not regular
        if regular and K > 1:
            log_det += math.log(_rank_one(B, X[i], 1.0, P))
