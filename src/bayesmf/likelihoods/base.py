"""What every likelihood is: working data for a sweep, own variables, and the law of a cell.

A likelihood turns the data into working data, which draw the factors: for the normal family targets
and precisions (`NormalData`), for the Poisson family counts split over the factors (`CountData`).
It owns its variables and the predictive distribution of a cell; nobody else asks which one it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bayesmf._errors import DataError, ModelError
from bayesmf.data.observed import ObservedMatrix, View
from bayesmf.data.units import Units
from bayesmf.data.views import doubles
from bayesmf.kernels.cells import half_squares
from bayesmf.likelihoods.laws import Law
from bayesmf.priors import Prior
from bayesmf.priors import distributions as dist
from bayesmf.priors.distributions import Values, Variable
from bayesmf.streams import Array, Stream
from bayesmf.updates import counts, entries, normal
from bayesmf.updates.normal import SideWeights
from bayesmf.updates.terms import GammaTerms, checked

Cells = tuple[Array, Array]  # rows and columns of cells
_GAPS = "read them as missing, with missing='limits' (--missing limits)"


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

    def terms(self) -> Any:
        """What the prior states under normal working data."""
        terms = self.prior.terms(self.values, self.rank)
        return checked(terms, len(self.U), self.rank, self.prior)

    def gamma_terms(self) -> GammaTerms:
        """What the prior states under working counts."""
        terms = self.prior.gamma_terms(self.values, self.rank)
        return checked(terms, len(self.U), self.rank, self.prior)


class Weights(NamedTuple):
    """By what the precisions of cells are multiplied, each None where all are one.

    A number for every row (I,), every column (J,), and every entry: (N,) twice, in the order of
    the rows and in that of the columns.
    """

    rows: Array | None = None
    cols: Array | None = None
    entries: tuple[Array, Array] | None = None

    def of(self, axis: int) -> SideWeights:
        """The same as one side sees them."""
        own, other = (self.rows, self.cols)[:: 1 - 2 * axis]
        return SideWeights(own, other, None if self.entries is None else self.entries[axis])

    def at_entries(self, X: ObservedMatrix, chosen: Array | slice = slice(None)) -> Array:
        """The product of all of them at the entries (or chosen ones), in row order."""
        rows, cols, _ = X.triples()
        found = np.ones(rows[chosen].size)
        for weights, places in ((self.rows, rows), (self.cols, cols)):
            found = found if weights is None else found * weights[places[chosen]]
        return found if self.entries is None else found * self.entries[0][chosen]

    def half_squares(self, fit: Fit, tau: float) -> Array:
        """Half of the weighted squared residuals of the entries (N,), times tau, in row order."""
        view, means, one = fit.X.rows, fit.means(), np.ones(1)
        out = np.empty(means.size)
        each = None if self.entries is None else self.entries[0]
        parts = [one if part is None else part for part in (self.rows, self.cols, each)]
        entries.by_rows(
            view,
            1,
            lambda start, stop: half_squares(
                start, stop, view.indptr, view.indices, view.stored, means, tau, *parts, out
            ),
            fit.threads,
        )
        return out


@dataclass(eq=False)
class Fit:
    """Data, and what explains them: factors, and biases unless the data are without them."""

    X: ObservedMatrix
    U: Array
    V: Array
    threads: int = 1
    errors: Array | None = None  # weighted sums of squared residuals of the columns, once known
    weights: Weights = Weights()
    beside: tuple[Array, Array] | None = None  # of rows and of columns: added to the product
    _means: Array | None = field(default=None, repr=False)

    @property
    def squared_error(self) -> float:
        """Sum of squared residuals, times the weights of their cells."""
        if self.errors is None:  # no cached property: its lock would be shared by all chains
            (U, V), weights = self.predictors(), self.weights.of(1)
            self.errors = normal.row_errors(self.X.cols, V, U, self.threads, weights)
        cols = self.weights.cols
        return float(self.errors.sum() if cols is None else self.errors @ cols)

    def means(self) -> Array:
        """Fitted means of the observed entries (N,), in row order."""
        if self._means is None:
            self._means = entries.fitted(self.X.rows, *self.predictors(), self.threads)
        return self._means

    def predictors(self) -> tuple[Array, Array]:
        """Two arrays whose product is the mean of all cells."""
        if self.beside is None:
            return self.U, self.V
        rows, cols = (effects[:, None] for effects in self.beside)
        left = np.hstack([self.U, rows, np.ones_like(rows)])
        return left, np.hstack([self.V, np.ones_like(cols), cols])


@dataclass(frozen=True, eq=False)
class Working(ABC):
    """The data of one sweep as the half-sweeps see them."""

    X: ObservedMatrix
    weights: Weights = field(default=Weights(), kw_only=True)

    def __post_init__(self) -> None:
        """Kernels do not look where arrays end."""
        for side, array, n in zip(("rows", "columns"), self.weights[:2], self.X.shape, strict=True):
            self._check(f"weights of {side}", array, n)
        self._check_entries("weights", self.weights.entries)

    def _check_entries(self, what: str, arrays: Any) -> None:
        views = (("rows", self.X.rows), ("columns", self.X.cols))
        for (order, view), array in zip(views, arrays or (None, None), strict=True):
            self._check(f"{what} of entries, in the order of the {order},", array, view.stored.size)

    def _check(self, what: str, array: Any, n: int) -> None:
        if array is None:
            return
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != (n,):
            shown = type(array).__name__
            if isinstance(array, np.ndarray):
                shown = f"{array.dtype} of shape {array.shape}"
            raise ModelError(
                f"{type(self).__name__}: {what} must be an array of float64 of shape ({n},), got "
                f"{shown}."
            )

    @abstractmethod
    def draw(self, side: Side, stream: Stream, beside: Array | None = None) -> Array | None:
        """Draw the factors of one side in place.

        ``beside`` (m, K): further rows to which the prior may tie these; each is then drawn by
        itself. Returns the sums of squared residuals of the rows (n,), where they are of use.
        """


@dataclass(frozen=True, eq=False)
class NormalData(Working):
    """Targets that are normal about the fit, with one precision or, by their weights, several."""

    precision: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.precision):
            shape = np.shape(self.precision)
            raise ModelError(
                f"NormalData: precision must be one number, got an array of shape {shape}; those "
                "of rows, columns and entries are weights."
            )

    def draw(self, side: Side, stream: Stream, beside: Array | None = None) -> Array | None:
        terms, weights = side.terms(), self.weights.of(side.axis)
        return normal.draw_side(
            side.view, side.U, side.V, terms, self.precision, stream,
            errors=side.axis == 1 or weights.own is not None, beside=beside, weights=weights,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class CountData(Working):
    """Counts split over the factors: ``sums`` over the columns (n, K) and over the rows (m, K).

    ``exposures`` multiply the means of the entries: (N,) in row order and in column order.
    """

    sums: tuple[Array, Array]
    exposures: tuple[Array, Array] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_entries("exposures", self.exposures)

    def conditional(self, side: Side, threads: int) -> dist.Gamma:
        """Distribution of the factors of one side given the split counts."""
        shape, rate = side.gamma_terms()
        weights = None if self.exposures is None else self.exposures[side.axis]
        exposure = counts.factor_sums(side.view, side.V, threads, weights)
        return dist.Gamma(shape=shape + self.sums[side.axis], rate=rate + exposure)

    def draw(self, side: Side, stream: Stream, beside: Array | None = None) -> None:
        law = self.conditional(side, stream.threads)
        shape, rate = np.asarray(law.shape), np.asarray(law.rate)
        counts.draw_gammas(side.view, side.U, shape, rate, stream)


@dataclass(frozen=True, eq=False)
class LargeCounts(Working):
    """Counts as they are, for rows that are drawn whole; ``exposures`` as those of `CountData`."""

    exposures: tuple[Array, Array] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_entries("exposures", self.exposures)

    def draw(self, side: Side, stream: Stream, beside: Array | None = None) -> None:
        terms = side.gamma_terms()
        exposures = None if self.exposures is None else self.exposures[side.axis]
        counts.draw_rows(side.view, side.U, side.V, *terms, exposures, stream)


class Likelihood(ABC):
    """The distribution of the observed entries given U V^T, and biases if the model has them.

    ``own`` holds the values of the likelihood's variables: of one state, or (in the law of cells)
    of D draws, each an array with a leading axis of length D.
    """

    name: ClassVar[str]
    #: The letter that stands for it at the beginning of a model's name.
    letter: ClassVar[str] = ""
    #: Whether data are counts.
    counts: ClassVar[bool] = False
    #: Whether a model may have biases beside its factors.
    takes_biases: ClassVar[bool] = False
    #: Whether variables of its own take the place of the biases' global mean.
    has_level: ClassVar[bool] = False
    #: Whether the expected value of a cell is another number than the product of its factors.
    latent: ClassVar[bool] = False
    #: Whether the data may be centred and scaled, and whether transformed.
    takes_units: ClassVar[bool] = False
    takes_transforms: ClassVar[bool] = False
    #: Whether cells have a noise with a standard deviation, `Posterior.noise`.
    has_noise: ClassVar[bool] = False
    #: Whether it knows limits of the values.
    has_limits: ClassVar[bool] = False
    #: Whether cells have categories, with probabilities.
    has_categories: ClassVar[bool] = False
    #: Whether it reads known errors of the entries, and limits.
    takes_errors: ClassVar[bool] = False
    takes_limits: ClassVar[bool] = False
    #: Whether its sweeps take matrices whose entries are spread over workers (`data.shards`).
    takes_shards: ClassVar[bool] = False
    #: What the data must be, in words.
    needs: ClassVar[str] = "numbers"
    #: Names of the fields among a preset's hyperparameters.
    symbols: ClassVar[dict[str, str]] = {}

    @classmethod
    def hyperparameters(cls) -> dict[str, Any]:
        """Defaults of the fields, by the names that presets give them."""
        defaults = {field.name: field.default for field in fields(cls)}  # type: ignore[arg-type]
        return {symbol: defaults[name] for name, symbol in cls.symbols.items()}

    @property
    def values(self) -> Array:
        """The categories, where cells have such."""
        raise NotImplementedError

    # --- Data

    @abstractmethod
    def fits(self, prior: type[Prior]) -> bool:
        """Whether factors with this prior can be drawn under the likelihood."""

    def allowed(self, values: Array) -> Array:
        """Flags of the values that can come from the likelihood."""
        return np.ones(values.shape, dtype=bool)

    def check(self, X: ObservedMatrix) -> None:
        """Refuse data that cannot come from the likelihood."""
        parts = [self.allowed(part) for part in doubles(X.rows.stored)]
        bad = ~np.concatenate([np.empty(0, dtype=bool), *parts])
        if bad.any():
            raise DataError(X.complaint(bad, f"the {self.name} likelihood", self.needs))
        for given, takes, what, how in (
            (X.errors, self.takes_errors, "errors or weights", "leave them out"),
            (X.bounds, self.takes_limits, "limits or intervals", _GAPS),
        ):
            if given is not None and not takes:
                raise DataError(
                    f"the {self.name} likelihood has no use for {what} of entries; {how}, or "
                    "choose a model of the normal family, such as GGGA."
                )

    def resolve(self, X: ObservedMatrix) -> Likelihood:
        """Fill in the defaults that depend on the data."""
        return self

    def in_units(self, units: Units, shape: tuple[int, int]) -> Likelihood:
        """The same for data of this shape in other units: what it says of values goes along."""
        return self

    def read(self, X: ObservedMatrix) -> ObservedMatrix:
        """The data as sweeps want them."""
        return X

    def targets(self, X: ObservedMatrix) -> ObservedMatrix:
        """Numbers on the scale of U V^T that stand for the data where a chain begins."""
        return X

    # --- Own variables and sweeps

    def variables(self, shape: tuple[int, int]) -> dict[str, Variable]:
        """Own variables by name."""
        return {}

    def draw(self, shape: tuple[int, int], stream: Stream) -> Values:
        """Own variables from the prior."""
        return {}

    def start(self, X: ObservedMatrix) -> Values:
        """Values from which a chain begins, of the own variables that `update` does not draw."""
        return {}

    def refresh(self, fit: Fit, own: Values, stream: Stream, sweep: int) -> None:
        """Draw in place the own variables that come before the working data.

        They are drawn with the latent variables of the working data integrated out.
        """
        return

    @abstractmethod
    def working(self, fit: Fit, own: Values, stream: Stream) -> Working:
        """Working data of a sweep, drawn given the present fit."""

    def draws_jointly(self, side: Side) -> bool:
        """Whether one half-sweep draws whole rows, given nothing else of the same rows."""
        return False

    def update_side(
        self, side: Side, working: Working, errors: Array | None, own: Values, stream: Stream,
        shared: bool = True,
    ) -> Working:  # fmt: skip
        """Draw in place what one side has of its own, given its new factors.

        ``errors`` are what `Working.draw` returned; without ``shared``, what all rows of the side
        have in common is left alone. Returns the working data from then on.
        """
        return working

    def update(self, fit: Fit, own: Values, stream: Stream) -> Values:
        """Draw the other own variables given the fit, and return all of them."""
        return own

    @abstractmethod
    def log_density(self, fit: Fit, own: Values) -> float:
        """Log density of the observed entries and the own variables."""

    # --- Results

    @abstractmethod
    def law(
        self, means: Array, own: Values, cells: Cells, weights: Array | float | None = None
    ) -> Law:
        """Predictive distribution of cells, given means (D, n) and own variables of D draws.

        ``weights`` are those of the cells where errors of measurement are known.
        """

    def noise_variance(self, own: Values, level: float) -> float:
        """Mean variance of the noise about a cell of this mean, on the scale of U V^T."""
        return level

    def noise_sd(self, own: Values) -> float | None:
        """Mean standard deviation of the noise, if it has one that is the same in all cells."""
        return None

    def monitored(self, own: Values, mse: Array) -> dict[str, Array]:
        """Series (chains, draws) by which to judge a run: of own variables and the mean error."""
        return {}

    def notes(self, own: Values, X: ObservedMatrix, rank: int) -> list[str]:
        """What a user should know about a run with these draws (D, ...), in sentences."""
        return []
