"""The posterior predictive distribution: what a cell may hold, given kept draws of the factors.

A cell's distribution is a mixture over the draws, of normals or of Poisson distributions. Means,
variances and densities are those of the mixture; quantiles come from one or a few values drawn from
each of its components. Cells are visited in blocks, so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from bayesmf._errors import ModelError
from bayesmf.streams import Array

_NUMBERS = 4_000_000  # held at once
_VALUES = 1000  # drawn at least, for the quantiles of a cell

Cells = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Predictive:
    """Draws of the factors with the noise precision (None for counts) and fixed offsets.

    U (D, I, K), V (D, J, K), precision (D,); a cell's mean is U_i V_j and the offsets of its row
    and its column.
    """

    U: Array
    V: Array
    precision: Array | None
    row_offset: Array
    col_offset: Array
    seed: Sequence[int] = (0,)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.U.shape[1], self.V.shape[1]

    def means(self, cells: Cells) -> Array:
        """Means of the mixture's components (D, n) at the cells."""
        i, j = cells
        product = np.einsum("dtk,dtk->dt", self.U[:, i], self.V[:, j])
        return product + (self.row_offset[i] + self.col_offset[j])

    def _blocks(self, cells: Cells | None) -> Iterator[Array]:
        """Means (D, n) of the components, block of cells by block, in order."""
        D, (I, J) = len(self.U), self.shape  # noqa: E741
        if cells is not None:
            step = max(1, _NUMBERS // (D * self.U.shape[2]))
            for a in range(0, len(cells[0]), step):
                yield self.means((cells[0][a : a + step], cells[1][a : a + step]))
            return
        step = max(1, _NUMBERS // (D * J))
        for a in range(0, I, step):
            product = self.U[:, a : a + step] @ self.V.transpose(0, 2, 1)
            offset = self.row_offset[a : a + step, None] + self.col_offset
            yield (product + offset).reshape(D, -1)

    def _by_block(self, cells: Cells | None, function: Callable[[Array, int], Array]) -> Array:
        """Apply ``function`` (means (D, n), number of the block) -> (..., n) to all cells."""
        blocks = [function(means, number) for number, means in enumerate(self._blocks(cells))]
        found = np.concatenate(blocks, axis=-1) if blocks else np.empty(0)
        return found.reshape(*found.shape[:-1], *self.shape) if cells is None else found

    def mean(self, cells: Cells | None = None) -> Array:
        """Mean of every cell: (n,), or (I, J) for all of them."""
        return self._by_block(cells, lambda means, _: means.mean(axis=0))

    def std(self, cells: Cells | None = None, noise: bool = True) -> Array:
        """Standard deviation of every cell, with or without the observation noise."""
        ddof = 1 if len(self.U) > 1 else 0

        def block(means: Array, _: int) -> Array:
            variance = means.var(axis=0, ddof=ddof)
            if noise and self.precision is not None:
                variance = variance + np.mean(1 / self.precision)
            elif noise:
                variance = variance + means.mean(axis=0)
            return np.sqrt(variance)

        return self._by_block(cells, block)

    def quantiles(
        self, levels: Sequence[float], cells: Cells | None = None, noise: bool = True
    ) -> Array:
        """Quantiles (len(levels), ...) of every cell; whole numbers for counts with noise."""
        whole = self.precision is None and noise
        method: Any = "inverted_cdf" if whole else "linear"

        def block(means: Array, number: int) -> Array:
            values = self._values(means, number) if noise else means
            return np.quantile(values, levels, axis=0, method=method)

        return self._by_block(cells, block)

    def _values(self, means: Array, number: int) -> Array:
        """At least `_VALUES` values of the mixture at each cell, as many from every component."""
        times = -(-_VALUES // len(means))
        rng = np.random.default_rng([*self.seed, 0 if self.precision is not None else number])
        means = np.repeat(means, times, axis=0)
        if self.precision is None:
            return rng.poisson(np.maximum(means, 0.0)).astype(np.float64)
        # All cells may share the noise, because each is looked at alone; evenly spread over the
        # normal distribution it leaves less to chance.
        levels = (np.arange(len(means)) + 0.5) / len(means)
        spread = special.ndtri(rng.permutation(levels)) / np.sqrt(np.repeat(self.precision, times))
        return means + spread[:, None]

    def log_density(self, cells: Cells, values: Array) -> Array:
        """Log predictive density (or probability) of a value in each of the cells."""
        found, a = np.empty(len(values)), 0
        for means in self._blocks(cells):
            part = slice(a, a + means.shape[1])
            found[part] = self._log_components(means, values[part])
            a = part.stop
        return found

    def _log_components(self, means: Array, y: Array) -> Array:
        if self.precision is None:
            terms = special.xlogy(y, means) - means - special.gammaln(y + 1)
        else:
            tau = self.precision[:, None]
            terms = 0.5 * (np.log(tau / (2 * np.pi)) - tau * (y - means) ** 2)
        return special.logsumexp(terms, axis=0) - np.log(len(means))

    def quantities(
        self,
        cells: Cells | None,
        return_std: bool,
        quantiles: Sequence[float] | None,
        noise: bool,
    ) -> Any:
        """The mean; with it, if asked for, standard deviations and quantiles."""
        found = [self.mean(cells)]
        if return_std:
            found.append(self.std(cells, noise))
        if quantiles is not None:
            levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
            if not ((levels >= 0) & (levels <= 1)).all():
                raise ModelError(f"quantiles must lie between 0 and 1, got {quantiles!r}.")
            found.append(self.quantiles(levels.tolist(), cells, noise))
        return found[0] if len(found) == 1 else tuple(found)

    def completions(self, m: int) -> Array:
        """Draw m matrices (m, I, J), noise included, from m of the draws that are evenly spread."""
        if isinstance(m, bool) or not isinstance(m, (int, np.integer)) or m < 1:
            raise ModelError(f"m must be a whole number of at least 1, got {m!r}.")
        out = np.empty((m, *self.shape))
        chosen = np.linspace(0, len(self.U) - 1, m).round().astype(int)
        offset = self.row_offset[:, None] + self.col_offset
        for k, d in enumerate(chosen):
            rng = np.random.default_rng([*self.seed, 2, k])
            mean = self.U[d] @ self.V[d].T + offset
            if self.precision is None:
                out[k] = rng.poisson(np.maximum(mean, 0.0))
            else:
                out[k] = rng.normal(mean, self.precision[d] ** -0.5)
        return out
