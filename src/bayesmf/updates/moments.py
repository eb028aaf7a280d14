"""U^T U of one side's factors, safely: its inverse and determinant, and adjugates.

Columns are scaled to unit length first, because factors may be huge or tiny, and only logarithms of
determinants are formed.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmf.streams import Array


def _scaled(U: Array) -> tuple[Array, Array]:
    """Return U with columns of unit length (or zero), and their lengths."""
    top = np.abs(U).max(axis=0)  # before squaring
    F = U / np.where(top > 0, top, 1.0)
    norm = np.sqrt((F**2).sum(axis=0))
    return F / np.where(norm > 0, norm, 1.0), top * norm


def inverse_moments(U: Array) -> tuple[Array, float]:
    """Return (U^T U)^-1 (K, K) and log det U^T U, which is NaN where it is singular in doubles."""
    K = U.shape[1]
    F, D = _scaled(U)
    try:
        L = np.linalg.cholesky(F.T @ F)
    except np.linalg.LinAlgError:
        return np.ones((K, K)), math.nan
    pivots = np.diag(L)
    if not (D.min() > 0 and pivots.min() > 1e-4):
        return np.ones((K, K)), math.nan
    inverse = np.linalg.inv(L) / D
    return inverse.T @ inverse, float(2 * (np.log(D) + np.log(pivots)).sum())


def whitened(U: Array) -> tuple[Array, Array, Array, float] | None:
    """Return Y, T, W and log det U^T U, where U = Y T^T, Y^T Y = I and W = T^-1.

    None where U^T U is so near to singular that doubles cannot tell.
    """
    n, K = U.shape
    F, D = _scaled(U)
    if n < K or not D.min() > 0:
        return None
    Y, singular, axes = np.linalg.svd(F, full_matrices=False)
    if not singular[-1] > 1e-11:
        return None
    log_det = float(2 * (np.log(D) + np.log(singular)).sum())
    T = np.ascontiguousarray(D[:, None] * axes.T * singular)
    return np.ascontiguousarray(Y), T, np.ascontiguousarray(axes / singular[:, None] / D), log_det


def directions(U: Array, skip: int | None = None) -> tuple[Array, Array]:
    """Coordinates that diagonalise adj(S), S = U^T U with row ``skip`` (if any) left out.

    With x = T y, x^T adj(S) x = sum over l of e^log_weights[l] y_l^2: returns T (K, K) and
    log_weights (K,). Valid for singular S: one zero eigenvalue leaves one weight, two leave none
    (-inf).
    """
    K = U.shape[1]
    others = U if skip is None else np.delete(U, skip, axis=0)
    D, R = np.zeros(K), np.zeros((K, K))
    if len(others):
        F, D = _scaled(others)
        triangle = np.linalg.qr(F, mode="r")
        R[: len(triangle)] = triangle
    _, singular, axes = np.linalg.svd(R)
    D = np.where(D > 0, D, 1.0)  # a factor that no other row uses: its eigenvalue is zero
    logs = np.full(K, -math.inf)
    kept = singular > 1e-15 * K
    logs[kept] = 2 * np.log(singular[kept])
    rest = np.array([np.delete(logs, k).sum() for k in range(K)])
    return D[:, None] * axes.T, 2 * np.log(D).sum() + rest


def adjugate(T: Array, log_weights: Array) -> tuple[Array, float]:
    """Return adj(S) / e^c from its `directions`, and c (-inf if adj(S) is zero)."""
    c = float(log_weights.max())
    if c == -math.inf:
        return np.zeros_like(T), c
    D = np.hypot.reduce(T, axis=1)[:, None]  # because T = D axes with axes orthogonal
    vectors = T / D / D
    return (vectors * np.exp(log_weights - c)) @ vectors.T, c
