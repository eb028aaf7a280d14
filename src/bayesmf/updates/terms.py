"""What a prior states about its factors. The kind of terms picks the kernel; priors never draw.

Under normal working data the conditional of a row x, or of an entry, is proportional to
exp(-x^T (P + tau G) x / 2 + (b + tau g)^T x); a prior states P and b. Under working counts it is a
gamma, and the prior states its shape and rate. Arrays have one row for all, or one per row.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayesmf._errors import ModelError
from bayesmf.streams import Array

POWERS = (-2, -1, 1, 2)


class RowTerms(NamedTuple):
    """Whole rows: precision (K, K) plus diag(diagonal), linear term.

    ``certainty`` (n,) multiplies precision and diagonal of every row; None where all are one.
    """

    precision: Array
    diagonal: Array
    linear: Array
    certainty: Array | None = None


class EntryTerms(NamedTuple):
    """Entries in turn: precision and linear term."""

    precision: Array
    linear: Array


class NonnegativeTerms(NamedTuple):
    """Rows x >= 0: precision and linear term of entries, which see -coupling * the others' sum."""

    precision: Array
    linear: Array
    coupling: float = 0.0

    def rows(self) -> RowTerms:
        """The same of whole rows."""
        K = self.linear.shape[1]
        return RowTerms(self.coupling * (1.0 - np.eye(K)), self.precision, self.linear)


class VolumeTerms(NamedTuple):
    """Rows in sequence under exp(-gamma det(U^T U) - ridge |U|^2 / 2)."""

    log_gamma: float
    ridge: float
    nonnegative: bool


class GammaTerms(NamedTuple):
    """Gamma prior of every entry, for counts."""

    shape: Array
    rate: Array


class ScaleTerms(NamedTuple):
    """How one side's log density changes when its factor k is scaled by e^x (Jacobian included).

    It changes by exponent * x - sum over p of exp(log_weights[p] + p x) / 2, p in `POWERS`.
    ``together``: only all factors at once (one x). ``determinant``: log weight of one more term of
    power 2, which the scale of every factor multiplies.
    """

    exponent: Array
    log_weights: Array
    together: bool = False
    determinant: float = -math.inf

    @classmethod
    def of(cls, K: int, exponent: float, weights: dict[int, Array], **more: Any) -> ScaleTerms:
        """Terms from plain weights by power."""
        table = np.zeros((len(POWERS), K))
        for power, weight in weights.items():
            table[POWERS.index(power)] = weight
        with np.errstate(divide="ignore"):
            return cls(np.full(K, float(exponent)), np.log(table), **more)


class RotationTerms(NamedTuple):
    """The law of an entry, its own hyper-variables integrated out, to which a rotation turns it.

    ``law`` is one of `bayesmf.kernels.rotation`, which says what ``a`` and ``b`` are.
    """

    law: int
    a: float = 0.0
    b: float = 0.0


def checked(terms: Any, n: int, K: int, prior: object) -> Any:
    """Terms that kernels can read: of a known kind, floats, one row for all or one per row."""
    shapes = _SHAPES.get(type(terms))
    said = f"{type(prior).__name__}.{_METHOD.get(type(terms), 'terms')}"
    if shapes is None:
        kinds = ", ".join(kind.__name__ for kind in _SHAPES)
        raise ModelError(f"{said} must return one of {kinds}, got {type(terms).__name__}.")
    for name, many in shapes.items():
        array = getattr(terms, name)
        if not isinstance(array, np.ndarray) or array.dtype != np.float64:
            kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise ModelError(f"{said}: {name} must be an array of float64, got {kind}.")
        if array.shape != (1, K) and array.shape != (n, K) if many else array.shape != (K, K):
            wanted = f"(1, {K}) or ({n}, {K})" if many else f"({K}, {K})"
            raise ModelError(
                f"{said}: {name} must have the shape {wanted}, for {n} rows and {K} factors, "
                f"got {array.shape}."
            )
    return terms


_SHAPES = {  # arrays of terms: whether they have a row for all or one per row, or are (K, K)
    RowTerms: {"precision": False, "diagonal": True, "linear": True},
    EntryTerms: {"precision": True, "linear": True},
    NonnegativeTerms: {"precision": True, "linear": True},
    VolumeTerms: {},
    GammaTerms: {"shape": True, "rate": True},
}
_METHOD = {GammaTerms: "gamma_terms"}


def over_rows(U: Array) -> Array:
    """Sum over the rows of U (n, K), in half the time of NumPy's own sum."""
    return np.einsum("nk->k", U)


def per_factor(value: Array | float, K: int) -> Array:
    """A number or a vector over factors as one row of terms (1, K)."""
    return np.full((1, K), value, dtype=np.float64)


def per_entry(value: Array | float, K: int) -> Array:
    """A number, a vector over factors or a table over entries as terms (1 or n, K)."""
    array = np.atleast_2d(np.asarray(value, dtype=np.float64))
    return np.ascontiguousarray(np.broadcast_to(array, (array.shape[0], K)))
