"""Bring the factors of all draws into one order, so that averages of them mean something.

The likelihood does not tell factors apart: they change places, change signs and, under some priors,
rotate. Predictions do not notice; whoever looks at factors must align them first.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import linear_sum_assignment

from bayesmf.model.model import Model
from bayesmf.streams import Array


def invariance(model: Model) -> str:
    """What a model does not see of its factors: their "rotation", "signs and order" or "order"."""
    if model.rows.rotation_invariant and model.cols.rotation_invariant:
        return "rotation"
    return "order" if any(model.nonnegative) else "signs and order"


def signal_shares(U: Array, V: Array) -> Array:
    """Share of each factor in the signal of every draw: U (D, I, K) and V (D, J, K) to (D, K)."""
    sizes = np.sum(U**2, axis=1) * np.sum(V**2, axis=1)
    return sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1e-300)


def largest(loadings: Array, n: int) -> Array:
    """Positions of the n largest loadings of either sign, from the highest to the lowest."""
    most = np.argsort(-np.abs(loadings), kind="stable")[:n]
    return most[np.argsort(-loadings[most], kind="stable")]


def _nearest(W: Array, reference: Array, kind: str) -> Array:
    """The orthogonal matrix (K, K) that brings W nearest to the reference, both (I + J, K)."""
    if kind == "rotation":
        return orthogonal_procrustes(W, reference)[0]
    likeness = W.T @ reference
    gain = np.abs(likeness) if kind == "signs and order" else likeness
    own, place = linear_sum_assignment(gain, maximize=True)
    signs = np.zeros(gain.shape)
    signs[own, place] = np.sign(likeness[own, place]) if kind == "signs and order" else 1.0
    signs[own, place] += signs[own, place] == 0.0
    return signs


def rotations(U: Array, V: Array, kind: str) -> Array:
    """Orthogonal matrices (D, K, K) that align draws U (D, I, K) and V (D, J, K) with each other.

    Multiply a draw's U and V by its matrix from the right; U V^T stays what it is. The reference
    is the last draw, and then the mean of what that gives; factors come in order of size.
    """
    # Rows and columns count alike: both are brought to unit mean square first.
    weight = [1 / max(np.sqrt(np.mean(F**2)), 1e-300) for F in (U, V)]
    W = np.concatenate([U * weight[0] / len(U[0]) ** 0.5, V * weight[1] / len(V[0]) ** 0.5], axis=1)
    reference = W[-1]
    if kind == "rotation":  # principal axes of the product
        _, _, axes = np.linalg.svd(reference, full_matrices=False)
        reference = reference @ axes.T
    order = np.argsort(-np.sum(reference**2, axis=0), kind="stable")
    reference = reference[:, order]
    if kind != "order":  # the largest entry of every factor is positive
        top = reference[np.argmax(np.abs(reference), axis=0), np.arange(reference.shape[1])]
        reference = reference * np.where(top < 0, -1.0, 1.0)
    found = np.empty((0, 0, 0))
    for _ in range(3):
        found = np.stack([_nearest(w, reference, kind) for w in W])
        reference = np.einsum("dnk,dkl->nl", W, found) / len(W)
    return found
