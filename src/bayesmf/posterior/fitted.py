"""A posterior with its data, and the units between them: what pictures and reports look at."""

from __future__ import annotations

from typing import NamedTuple

from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.units import Units
from bayesmf.posterior.noise import Noise, in_units
from bayesmf.posterior.posterior import Posterior
from bayesmf.posterior.predictive import Predictive


class Fitted(NamedTuple):
    """What a fit leaves: the posterior, in its own units, and the data, in theirs."""

    posterior: Posterior
    X: ObservedMatrix
    units: Units | None = None  # None where the model saw the data as they are

    def predictive(self, latent: bool = False) -> Predictive:
        """The predictive distribution of the cells, in the units of the data."""
        return Predictive.of(self.posterior, units=self.units, latent=latent)

    def noise(self, level: float = 0.9) -> Noise:
        """The noise in the units of the data; where errors are known, their common factor."""
        found = self.posterior.noise(level)
        known = self.units is None or self.X.errors is not None
        return found if known else in_units(found, self.units)  # type: ignore[arg-type]
