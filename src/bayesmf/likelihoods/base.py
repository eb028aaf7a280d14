"""What every likelihood is: working data for a sweep, own variables, and the law of a cell.

A likelihood turns the data into working data, which draw the factors: for the normal family targets
and a precision (`NormalData`), for the Poisson family counts split over the factors (`CountData`).
It owns its variables and the predictive distribution of a cell; nobody else asks which one it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bayesmf._errors import DataError
from bayesmf.data.observed import ObservedMatrix, View
from bayesmf.priors import Prior
from bayesmf.priors import distributions as dist
from bayesmf.priors.distributions import Values, Variable
from bayesmf.streams import Array, Stream
from bayesmf.updates import counts, normal


class Side(NamedTuple):
    """One side as a half-sweep sees it: its factors U are drawn given those of the other side, V.

    In the half-sweep of the columns both are exchanged.
    """

    axis: int  # 0 rows, 1 columns
    view: View
    U: Array
    V: Array
    prior: Prior
    values: Values

    @property
    def rank(self) -> int:
        """Number of factors."""
        return self.U.shape[1]


@dataclass(eq=False)
class Fit:
    """Data and the factors that explain them; once biases are drawn, the data less these."""

    X: ObservedMatrix
    U: Array
    V: Array
    threads: int = 1
    errors: Array | None = None  # sums of squared residuals of the columns, once they are known

    @property
    def squared_error(self) -> float:
        """Sum of squared residuals."""
        if self.errors is None:  # no cached property: its lock would be shared by all chains
            self.errors = normal.row_errors(self.X.cols, self.V, self.U, self.threads)
        return float(self.errors.sum())

    def means(self) -> Array:
        """Fitted means of the observed entries, in row order."""
        rows, cols, _ = self.X.triples()
        return np.einsum("tk,tk->t", self.U[rows], self.V[cols])


@dataclass(frozen=True, eq=False)
class Working(ABC):
    """The data of one sweep as the half-sweeps see them."""

    X: ObservedMatrix

    @abstractmethod
    def draw(self, side: Side, stream: Stream, beside: Array | None = None) -> Array | None:
        """Draw the factors of one side in place.

        ``beside`` (m, K): further rows to which the prior may tie these; each is then drawn by
        itself. Returns the sums of squared residuals of the rows (n,), where they cost nothing.
        """


@dataclass(frozen=True, eq=False)
class NormalData(Working):
    """Targets that are normal about the fit, with one precision."""

    precision: float

    def draw(self, side: Side, stream: Stream, beside: Array | None = None) -> Array | None:
        terms = side.prior.terms(side.values, side.rank)
        return normal.draw_side(
            side.view, side.U, side.V, terms, self.precision, stream,
            last=side.axis == 1, beside=beside,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class CountData(Working):
    """Counts split over the factors: ``sums`` over the columns (n, K) and over the rows (m, K)."""

    sums: tuple[Array, Array]

    def conditional(self, side: Side, threads: int) -> dist.Gamma:
        """Distribution of the factors of one side given the split counts."""
        shape, rate = side.prior.gamma_terms(side.values, side.rank)
        exposure = counts.factor_sums(side.view, side.V, threads)
        return dist.Gamma(shape=shape + self.sums[side.axis], rate=rate + exposure)

    def draw(self, side: Side, stream: Stream, beside: Array | None = None) -> None:
        side.U[:] = self.conditional(side, stream.threads).draw(stream, side.U.shape)


class Likelihood(ABC):
    """The distribution of the observed entries given U V^T, and biases if the model has them.

    ``own`` holds the values of the likelihood's variables: of one state, or (in the predictive
    distribution) of D draws, each an array with a leading axis of length D.
    """

    name: ClassVar[str]
    #: Whether data are whole numbers, so that quantiles are.
    discrete: ClassVar[bool] = False
    #: Whether a model may have biases beside its factors.
    takes_biases: ClassVar[bool] = False
    #: What the data must be, in words.
    needs: ClassVar[str] = "numbers"
    #: Names of the fields among a preset's hyperparameters.
    symbols: ClassVar[dict[str, str]] = {}

    @classmethod
    def hyperparameters(cls) -> dict[str, Any]:
        """Defaults of the fields, by the names that presets give them."""
        defaults = {field.name: field.default for field in fields(cls)}  # type: ignore[arg-type]
        return {symbol: defaults[name] for name, symbol in cls.symbols.items()}

    @abstractmethod
    def fits(self, prior: type[Prior]) -> bool:
        """Whether factors with this prior can be drawn under the likelihood."""

    def allowed(self, values: Array) -> Array:
        """Flags of the values that can come from the likelihood."""
        return np.ones(values.shape, dtype=bool)

    def check(self, X: ObservedMatrix) -> None:
        """Refuse data that cannot come from the likelihood."""
        bad = ~self.allowed(X.rows.values)
        if bad.any():
            raise DataError(X.complaint(bad, f"the {self.name} likelihood", self.needs))

    def variables(self, shape: tuple[int, int]) -> dict[str, Variable]:
        """Own variables by name."""
        return {}

    def draw(self, shape: tuple[int, int], stream: Stream) -> Values:
        """Own variables from the prior."""
        return {}

    @abstractmethod
    def working(self, fit: Fit, own: Values, stream: Stream) -> Working:
        """Working data of a sweep, drawn given the present fit."""

    def draws_jointly(self, side: Side) -> bool:
        """Whether one half-sweep draws whole rows, given nothing else of the same rows."""
        return False

    def update(self, fit: Fit, own: Values, stream: Stream) -> Values:
        """Draw the own variables given the fit."""
        return {}

    @abstractmethod
    def log_density(self, fit: Fit, own: Values) -> float:
        """Log density of the observed entries and the own variables."""

    def noise_sd(self, own: Values) -> float | None:
        """Mean standard deviation of the noise, if it has one that is the same in all cells."""
        return None

    def monitored(self, own: Values, mse: Array) -> dict[str, Array]:
        """Series (chains, draws) by which to judge a run: of own variables and the mean error."""
        return {}

    # --- The predictive distribution of cells, given means (D, n) and own variables of D draws.

    def mean(self, means: Array, own: Values) -> Array:
        """Expected values."""
        return means

    @abstractmethod
    def variance(self, means: Array, own: Values) -> Array:
        """Variances about the expected values, in a shape that broadcasts to that of the means."""

    @abstractmethod
    def log_prob(self, values: Array, means: Array, own: Values) -> Array:
        """Log densities, or log probabilities, of values (n,): (D, n)."""

    @abstractmethod
    def sample(self, means: Array, own: Values, rng: np.random.Generator) -> Array:
        """One matrix of values, given the means (I, J) and own variables of a single draw."""

    @abstractmethod
    def replicates(self, means: Array, own: Values, times: int, seed: Sequence[int]) -> Array:
        """Values (times * D, n), as many from every draw; of use for each cell by itself.

        The seed ends with the number of the block of cells.
        """

    def quantiles(
        self, levels: Sequence[float], means: Array, own: Values, times: int, seed: Sequence[int]
    ) -> Array:
        """Quantiles (levels, n) of the mixture over the draws."""
        method: Any = "inverted_cdf" if self.discrete else "linear"
        return np.quantile(self.replicates(means, own, times, seed), levels, axis=0, method=method)
