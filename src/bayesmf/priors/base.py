"""What every prior is: terms for a kernel, updates of its hyper-variables, density, prior draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bayesmf.hyperpriors import ARD, Steps, Values
from bayesmf.streams import Array, Stream
from bayesmf.terms import EntryTerms, GammaTerms, RowTerms, ScaleTerms, VolumeTerms

__all__ = ["Prior", "Setting"]


class Setting(NamedTuple):
    """What a default may depend on: the rank, this side's and the other side's length, the data."""

    rank: int
    n: int
    m: int
    mean_square: float
    other_precision: float


class Prior(ABC):
    """The prior of one side's factors X (n, K)."""

    nonnegative: ClassVar[bool] = False
    #: Own hyper-variables that all rows share; any others belong to a row or to an entry.
    common: ClassVar[tuple[str, ...]] = ("relevance",)

    def resolve(self, setting: Setting) -> Prior:
        """Fill in the defaults that depend on the rank or the data."""
        return self

    @property
    def ard(self) -> tuple[str, ARD] | None:
        """Name and value of the hyperparameter that is governed by an ARD, if one is."""
        for name, value in vars(self).items():
            if isinstance(value, ARD):
                return name, value
        return None

    def values(self, own: Values, shared: Values) -> dict[str, Any]:
        """All hyperparameters by name: fixed numbers, this side's variables, shared ones."""
        h, ard = {**vars(self), **own}, self.ard
        if ard:
            h[ard[0]] = own["relevance"] if "relevance" in own else shared["relevance"]
        return h

    def relevance_terms(self, X: Array) -> tuple[float, Array]:
        """Shape and rate that the factors add to the gamma conditional of an ARD."""
        raise NotImplementedError

    def terms(self, h: Values, K: int) -> RowTerms | EntryTerms | VolumeTerms:
        """What the prior states about the factors under a Gaussian likelihood."""
        raise NotImplementedError

    def gamma_terms(self, h: Values, K: int) -> GammaTerms:
        """What the prior states about the factors under a Poisson likelihood."""
        raise NotImplementedError

    def updates(self, X: Array, h: Values) -> Steps:
        """Gibbs steps of this side's own hyper-variables, in order; each sees those before it."""
        if "relevance" in h:
            assert self.ard is not None
            yield "relevance", self.ard[1].conditional([self.relevance_terms(X)])

    @abstractmethod
    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        """Factors and own hyper-variables from the prior."""

    def typical_scale(self, X: Array) -> float:
        """Number by which to multiply a starting point, to make it typical of the prior."""
        return 1.0

    @abstractmethod
    def log_density(self, X: Array, h: Values) -> float:
        """Log density of factors and own hyper-variables, up to a constant."""

    def scale_terms(self, X: Array, h: Values) -> ScaleTerms | None:
        """How the log density answers to scaling a factor; None if there is no exact move."""
        return None

    def rescale(self, h: Values, c: Array) -> Values:
        """Hyper-variables that move along when factor k is multiplied by c[k]."""
        return {}

    def _own_relevance(self, stream: Stream, K: int, shared: Values) -> tuple[Values, Values]:
        """Own ARD variables from the prior, and all values with them."""
        own: Values = {}
        if self.ard and "relevance" not in shared:
            own["relevance"] = self.ard[1].prior().draw(stream, (K,))
        return own, self.values(own, shared)

    def _log_relevance(self, h: Values) -> float:
        if "relevance" not in h or self.ard is None:
            return 0.0
        return float(np.sum(self.ard[1].prior().log_density(h["relevance"])))
