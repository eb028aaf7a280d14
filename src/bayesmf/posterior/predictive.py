"""The posterior predictive distribution: what a cell may hold, given kept draws of the factors.

A cell's distribution is a mixture over the draws, and the likelihood knows each component. Means,
variances and densities are those of the mixture; quantiles come from one or a few values drawn from
each component. Cells are visited in blocks, once for all that is asked, so that memory is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy import special

from bayesmf._errors import ModelError, whole_number
from bayesmf.data.units import Units
from bayesmf.likelihoods import Likelihood
from bayesmf.likelihoods.laws import Law
from bayesmf.likelihoods.mapped import MappedLaw
from bayesmf.posterior.left_out import without_entry
from bayesmf.posterior.posterior import Posterior
from bayesmf.priors.distributions import Values
from bayesmf.streams import Array

_NUMBERS = 4_000_000  # held at once
_VALUES = 1000  # drawn at least, for the quantiles of a cell

Cells = tuple[Array, Array]
OfBlock = Callable[[Law, int], Array]  # (law of n cells, number of the block) -> (..., n)


def kept_for(likelihood: Likelihood) -> tuple[str, ...]:
    """What `sample` has to keep for `expected`."""
    return ("all",) if likelihood.latent else ()


def expected(posterior: Posterior, cells: Cells, units: Units | None = None) -> Array:
    """Expected values of cells, from moments where these suffice."""
    plain = units is None or units.transforms is None
    if posterior.model.likelihood.latent or not plain:
        return Predictive.of(posterior, units=units).mean(cells)
    means = posterior.predict(*cells)
    return means if units is None else units.shift(cells) + units.size(cells) * means


@dataclass(frozen=True, eq=False)
class Predictive:
    """Draws of the factors and of the likelihood's own variables, and the units of the data.

    U (D, I, K), V (D, J, K), own (D, ...); a cell's mean is U_i V_j, in the units of the model.
    ``latent`` asks for what lies behind reported values.
    """

    likelihood: Likelihood
    U: Array
    V: Array
    own: Values
    units: Units | None = None
    seed: Sequence[int] = (0,)
    latent: bool = False

    @classmethod
    def of(
        cls, posterior: Posterior, factors: tuple[Array, Array] | None = None,
        units: Units | None = None, seed: Sequence[int] | None = None,
        own: Values | None = None, latent: bool = False,
    ) -> Predictive:  # fmt: skip
        """That of a posterior: of its matrix, or of rows with these factors and ``own`` values."""
        U, V = posterior.predictors() if factors is None else factors
        words = [int(word) for word in posterior.states[0].seed] if seed is None else seed
        own = posterior.likelihood_values() if own is None else own
        return cls(posterior.model.likelihood, U, V, own, units, words, latent)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.U.shape[1], self.V.shape[1]

    def means(self, cells: Cells) -> Array:
        """Means of the mixture's components (D, n) at the cells."""
        i, j = cells
        found = np.empty((len(self.U), len(i)))
        for U, V, mean in zip(self.U, self.V, found, strict=True):
            np.einsum("tk,tk->t", U[i], V[j], out=mean)
        return found

    def law(self, means: Array, cells: Cells, weights: Array | None = None) -> Law:
        """Law of cells of these means, given all draws."""
        return self._in_units(self.likelihood.law(means, self.own, cells, weights), cells)

    def _in_units(self, law: Law, cells: Cells) -> Law:
        """The law in the units of the data, of the reported or of the latent value."""
        law = law.latent() if self.latent else law
        if self.units is None or not self.units.changed:
            return law
        return MappedLaw(law.means, law, self.units, cells)

    def _blocks(self, cells: Cells | None, weights: Array | None = None) -> Iterator[Law]:
        """Laws of the cells, block by block, in order; weights are in the units of the data."""
        D = len(self.U)
        if weights is not None and self.units is not None and cells is not None:
            weights = weights * self.units.size(cells) ** 2
        if cells is not None:
            step = max(1, _NUMBERS // max(D * self.U.shape[2], _VALUES))
            for a in range(0, len(cells[0]), step):
                some = cells[0][a : a + step], cells[1][a : a + step]
                given = None if weights is None else weights[a : a + step]
                yield self.law(self.means(some), some, given)
            return
        for _, law in self._of_all():
            yield law

    def _of_all(self) -> Iterator[tuple[Cells, Law]]:
        """All cells, block by block, in order, with their laws."""
        D, (I, J) = len(self.U), self.shape  # noqa: E741
        most = max(1, _NUMBERS // max(D, _VALUES))  # quantiles take so many values of each cell
        step, width = max(1, most // J), min(J, most)
        for a, b in product(range(0, I, step), range(0, J, width)):  # a long row is cut
            means = self.U[:, a : a + step] @ self.V[:, b : b + width].transpose(0, 2, 1)
            n, m = means.shape[1:]
            places = np.repeat(np.arange(a, a + n), m), b + np.arange(n * m) % m
            yield places, self.law(means.reshape(D, -1), places)

    def in_blocks(self, levels: Sequence[float]) -> Iterator[tuple[Cells, Array, Array, Array]]:
        """Cells, means, deviations and quantiles (levels, n) of the whole matrix, in blocks.

        They are those of `quantities`, which holds them all.
        """
        std, quantiles = self._std(True), self._quantiles(levels, True)
        for number, (cells, law) in enumerate(self._of_all()):
            yield cells, self._mean(law, number), std(law, number), quantiles(law, number)

    def _by_block(self, cells: Cells | None, *functions: OfBlock) -> list[Array]:
        """Apply functions to all cells, in one pass over the blocks."""
        found: list[list[Array]] = [[] for _ in functions]
        for number, law in enumerate(self._blocks(cells)):
            for parts, function in zip(found, functions, strict=True):
                parts.append(function(law, number))
        whole = [np.concatenate(parts, axis=-1) if parts else np.empty(0) for parts in found]
        if cells is not None:
            return whole
        return [array.reshape(*array.shape[:-1], *self.shape) for array in whole]

    def _mean(self, law: Law, number: int) -> Array:
        return law.mean().mean(axis=0)

    def _std(self, noise: bool) -> OfBlock:
        ddof = 1 if len(self.U) > 1 else 0

        def block(law: Law, number: int) -> Array:
            variance = law.mean().var(axis=0, ddof=ddof)
            if noise:
                variance = variance + law.variance().mean(axis=0)
            return np.sqrt(variance)

        return block

    def _quantiles(self, levels: Sequence[float], noise: bool) -> OfBlock:
        times = -(-_VALUES // len(self.U))

        def block(law: Law, number: int) -> Array:
            if not noise:
                return np.quantile(law.mean(), levels, axis=0)
            return law.quantiles(levels, times, [*self.seed, number])

        return block

    def mean(self, cells: Cells | None = None) -> Array:
        """Mean of every cell: (n,), or (I, J) for all of them."""
        return self._by_block(cells, self._mean)[0]

    def std(self, cells: Cells | None = None, noise: bool = True) -> Array:
        """Standard deviation of every cell, with or without the observation noise."""
        return self._by_block(cells, self._std(noise))[0]

    def quantiles(
        self, levels: Sequence[float], cells: Cells | None = None, noise: bool = True
    ) -> Array:
        """Quantiles (len(levels), ...) of every cell; whole numbers for counts with noise."""
        return self._by_block(cells, self._quantiles(levels, noise))[0]

    def replicated(self, cells: Cells, weights: Array | None = None) -> Array:
        """New data (D, n) in the cells, one set for each draw."""
        rng = np.random.default_rng(self.seed)
        return np.concatenate([law.sample(rng) for law in self._blocks(cells, weights)], axis=1)

    def shares(
        self, cells: Cells, values: Array, weights: Array | None = None, left_out: bool = False
    ) -> tuple[Array, Array]:
        """Shares (n,) of every cell's distribution that lie below a value, and up to it.

        They differ where single values have a probability. A central interval holds the value if
        its lower level is at most the second and its upper level at least the first. ``weights``
        are inverse squares of the values' known errors. ``left_out``: the values are among the data
        of the fit, and each is to be predicted by the others.
        """
        found, a = np.empty((2, len(values))), 0
        times = -(-_VALUES // len(self.U))
        for number, law in enumerate(self._blocks(cells, weights)):
            part = slice(a, a + law.means.shape[1])
            drawn = law.replicates(times, [*self.seed, number])
            counts = None
            if left_out:
                counts = np.repeat(without_entry(law.log_prob(values[part])), times, axis=0)
            found[0, part] = np.average(drawn < values[part], axis=0, weights=counts)
            found[1, part] = np.average(drawn <= values[part], axis=0, weights=counts)
            a = part.stop
        return found[0], found[1]

    def log_densities(self, cells: Cells, values: Array, weights: Array | None = None) -> Array:
        """Log density (or probability) of a value in each of the cells, given each draw: (D, n)."""
        found, a = np.empty((len(self.U), len(values))), 0
        for law in self._blocks(cells, weights):
            part = slice(a, a + law.means.shape[1])
            found[:, part] = law.log_prob(values[part])
            a = part.stop
        return found

    def log_density(self, cells: Cells, values: Array, weights: Array | None = None) -> Array:
        """Log predictive density (or probability) of a value in each of the cells.

        ``weights`` are inverse squares of the values' known errors.
        """
        found, a = np.empty(len(values)), 0
        for law in self._blocks(cells, weights):
            part = slice(a, a + law.means.shape[1])
            terms = law.log_prob(values[part])
            found[part] = special.logsumexp(terms, axis=0) - np.log(len(terms))
            a = part.stop
        return found

    def probabilities(self, cells: Cells | None = None) -> Array:
        """Probabilities of the categories of every cell: (n, C), or (I, J, C) for all of them."""

        def block(law: Law, number: int) -> Array:
            return law.probabilities().mean(axis=1)

        if not self.likelihood.has_categories:
            name = self.likelihood.name
            raise ModelError(f"A cell has no categories under the {name} likelihood.")
        return np.moveaxis(self._by_block(cells, block)[0], 0, -1)

    def quantities(
        self,
        cells: Cells | None,
        return_std: bool,
        quantiles: Sequence[float] | None,
        noise: bool,
    ) -> Any:
        """The mean; with it, if asked for, standard deviations and quantiles."""
        asked: list[OfBlock] = [self._mean]
        if return_std:
            asked.append(self._std(noise))
        if quantiles is not None:
            levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
            if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
                raise ModelError(f"quantiles must lie between 0 and 1, got {quantiles!r}.")
            asked.append(self._quantiles(levels.tolist(), noise))
        found = self._by_block(cells, *asked)
        return found[0] if len(found) == 1 else tuple(found)

    def completions(self, m: int) -> Array:
        """Draw m matrices (m, I, J), noise included, from m of the draws that are evenly spread."""
        out = np.empty((whole_number("m", m), *self.shape))
        chosen = np.linspace(0, len(self.U) - 1, m).round().astype(int)
        for k, d in enumerate(chosen):
            rng = np.random.default_rng([*self.seed, 2, k])
            mean = self.U[d] @ self.V[d].T
            own = {name: values[d] for name, values in self.own.items()}
            i, j = np.ogrid[: mean.shape[0], : mean.shape[1]]
            out[k] = self._in_units(self.likelihood.law(mean, own, (i, j)), (i, j)).sample(rng)
        return out
