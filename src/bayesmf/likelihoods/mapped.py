"""Laws in the units of the data, where a model saw them transformed, centred or scaled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bayesmf._cached import cached_property
from bayesmf.data.units import Units
from bayesmf.likelihoods.base import Cells
from bayesmf.likelihoods.laws import KINKED, Law
from bayesmf.streams import Array


@dataclass(frozen=True, eq=False)
class MappedLaw(Law):
    """The law of x where ``inner`` is that of what the model sees of it.

    All are increasing functions of each other: quantiles are mapped as they are, densities are
    multiplied by the slope, and means under a transform are sums over the nodes of the inner law.
    """

    inner: Law
    units: Units = field(repr=False)
    cells: Cells = field(repr=False)

    def _back(self, z: Array) -> Array:
        x = self.units.shift(self.cells) + self.units.size(self.cells) * z
        if self.units.transforms is None:
            return x
        return self.units.transforms.apply("inverse", x, self.cells[1])

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """Mean and variance by the nodes of the inner law, about a point in their midst."""
        middle = self._back(self.inner.means)
        first, second = np.zeros_like(middle), np.zeros_like(middle)
        assert self.units.transforms is not None
        smooth = self.units.transforms.smooth
        for node, weight in zip(*self.inner.nodes(*() if smooth else (KINKED,)), strict=True):
            off = self._back(node) - middle
            first += weight * off
            second += weight * off**2
        return middle + first, np.maximum(second - first**2, 0.0)

    def mean(self) -> Array:
        if self.units.transforms is not None:
            return self._moments[0]
        return self._back(self.inner.mean())

    def variance(self) -> Array:
        if self.units.transforms is not None:
            return self._moments[1]
        return self.units.size(self.cells) ** 2 * self.inner.variance()

    def log_prob(self, values: Array) -> Array:
        seen = self.units.forward(values, self.cells)
        slope = -np.log(self.units.size(self.cells))
        if self.units.transforms is not None:
            slope = slope + self.units.transforms.apply("log_slope", values, self.cells[1])
        return self.inner.log_prob(seen) + np.where(self.inner.is_atom(seen), 0.0, slope)

    def sample(self, rng: np.random.Generator) -> Array:
        return self._back(self.inner.sample(rng))

    def replicates(self, times: int, seed: Sequence[int]) -> Array:
        return self._back(self.inner.replicates(times, seed))

    def quantiles(self, levels: Sequence[float], times: int, seed: Sequence[int]) -> Array:
        return self._back(self.inner.quantiles(levels, times, seed))

    def is_atom(self, values: Array) -> Array:
        return self.inner.is_atom(self.units.forward(values, self.cells))

    def latent(self) -> Law:
        return MappedLaw(self.means, self.inner.latent(), self.units, self.cells)
