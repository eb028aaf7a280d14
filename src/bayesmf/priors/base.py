"""What every prior is: terms for a kernel, updates of its hyper-variables, density, prior draw."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from bayesmf.data.features import Features
from bayesmf.priors.distributions import Distribution, Values, Variable
from bayesmf.priors.hyperpriors import ARD, Steps
from bayesmf.streams import Array, Stream
from bayesmf.updates.terms import (
    EntryTerms,
    GammaTerms,
    NonnegativeTerms,
    RotationTerms,
    RowTerms,
    ScaleTerms,
    VolumeTerms,
)

__all__ = ["Prior", "Setting"]


class Setting(NamedTuple):
    """What a default may depend on: the rank, this side's and the other side's length, the data.

    ``other_precision`` is the `fixed_precision` of the other side's prior; ``features`` are those
    of this side's rows.
    """

    rank: int
    n: int
    m: int
    mean_square: float
    other_precision: float
    features: Features | None = None


class Prior:
    """The prior of one side's factors U (n, K), whichever side that is."""

    nonnegative: ClassVar[bool] = False
    #: Whether the density ties rows to each other, beyond what they have in ``values``.
    couples_rows: ClassVar[bool] = False
    #: Features of the rows, on which their means depend, for priors that take them.
    features: Features | None = None
    takes_features: ClassVar[bool] = False

    @property
    def rotation_invariant(self) -> bool:
        """Whether the density does not see a rotation of the factors."""
        return False

    @property
    def fixed_precision(self) -> float:
        """The precision of an entry where it is a given number, else 1."""
        value = getattr(self, "precision", 1.0)
        return float(value) if isinstance(value, (int, float)) else 1.0

    def notes(self) -> list[str]:
        """What a user should know about this (resolved) prior, in sentences."""
        return []

    def variables(self, n: int, K: int) -> dict[str, Variable]:
        """Own hyper-variables by name, in the order in which `draw` makes them."""
        return {"relevance": Variable.of_factors(K)} if self.ard else {}

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

    def all_values(self, own: Values, shared: Values) -> dict[str, Any]:
        """All hyperparameters by name: fixed numbers, this side's variables, shared ones."""
        values, ard = {**vars(self), **own}, self.ard
        if ard:
            values[ard[0]] = own["relevance"] if "relevance" in own else shared["relevance"]
        return values

    def relevance_terms(self, U: Array) -> tuple[float, Array]:
        """Shape and rate that the factors add to the gamma conditional of an ARD."""
        raise NotImplementedError

    def governed(self, U: Array, values: Values) -> Array:
        """All rows (m, K) whose size an ARD governs: the factors, or what stands for them."""
        return U

    def terms(
        self, values: Values, K: int
    ) -> RowTerms | EntryTerms | NonnegativeTerms | VolumeTerms:
        """What the prior states about the factors under normal working data."""
        raise NotImplementedError

    def gamma_terms(self, values: Values, K: int) -> GammaTerms:
        """What the prior states about the factors under working counts."""
        raise NotImplementedError

    def updates(self, U: Array, values: Values) -> Steps:
        """Gibbs steps of this side's own hyper-variables, in order; each sees those before it."""
        if "relevance" in values:
            assert self.ard is not None
            statistics = self.relevance_terms(self.governed(U, values))
            yield "relevance", self.ard[1].conditional([statistics])

    def afterwards(self, U: Array, values: Values) -> Steps:
        """Gibbs steps of the hyper-variables that `terms` leaves out, integrated over.

        They follow directly upon the factors: both together are one draw.
        """
        yield from ()

    def entries(self, values: Values, K: int) -> Distribution:
        """Distribution of the entries, where they are independent given the values."""
        raise NotImplementedError

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        """Factors and own hyper-variables from the prior."""
        own, values = self._own_relevance(stream, K, shared)
        return self.entries(values, K).draw(stream, (n, K)), own

    def typical_scale(self, U: Array) -> float:
        """Number by which to multiply a starting point, to make it typical of the prior."""
        return 1.0

    def log_density(self, U: Array, values: Values) -> float:
        """Log density of factors and own hyper-variables, up to a constant."""
        total = float(self.entries(values, U.shape[1]).log_density(U).sum())
        if "relevance" in values and self.ard is not None:
            total += float(np.sum(self.ard[1].prior().log_density(values["relevance"])))
        return total

    def scale_terms(self, U: Array, values: Values) -> ScaleTerms | None:
        """How the log density answers to scaling a factor; None if there is no exact move."""
        return None

    def rescale(self, values: Values, c: Array) -> Values:
        """Hyper-variables that move along when factor k is multiplied by c[k]."""
        return {}

    def rotation_terms(self) -> RotationTerms | None:
        """How the log density answers to a rotation of two factors; None if there is no such move.

        Hyper-variables that it leaves out are those that `updates` draws given the factors alone.
        """
        return None

    def _own_relevance(self, stream: Stream, K: int, shared: Values) -> tuple[Values, Values]:
        """Own ARD variables from the prior, and all values with them."""
        own: Values = {}
        if self.ard and "relevance" not in shared:
            own["relevance"] = self.ard[1].prior().draw(stream, (K,))
        return own, self.all_values(own, shared)
