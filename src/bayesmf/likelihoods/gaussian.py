"""Normal noise: of one precision, or of one for every row or column."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from bayesmf._errors import ModelError, positive
from bayesmf.data.observed import ObservedMatrix, View
from bayesmf.likelihoods.base import Cells, Fit, Likelihood, NormalData, Side, Weights, Working
from bayesmf.likelihoods.laws import NormalLaw
from bayesmf.likelihoods.mixing import distinct, draw_shape
from bayesmf.priors import Prior
from bayesmf.priors import distributions as dist
from bayesmf.priors.distributions import Values, Variable
from bayesmf.streams import Array, Stream
from bayesmf.updates.terms import RowTerms

__all__ = ["Gaussian"]

NOISE = ("equal", "rows", "cols", "both")
SIDES = ("rows", "cols")
_ALWAYS = 10  # first sweeps, in which nothing is left out
_OTHER = {"rows": "cols", "cols": "rows"}


@dataclass(frozen=True, repr=False)
class Gaussian(Likelihood):
    """Normal noise with a gamma-distributed precision, or with unequal ones.

    A cell has the precision tau a_i b_j: tau ~ G(alpha, beta), relative precisions of rows
    a_i ~ G(s, s) if ``rows``, of columns b_j ~ G(s, s) if ``cols``, each side with its own
    s ~ G(shape_alpha, shape_beta) above ``shape_least``. Known errors of entries divide it by their
    squares. A ``precision`` fixes tau.

    Examples
    --------
    >>> from bayesmf import Gaussian
    >>> Gaussian(cols=True)
    Gaussian(alpha=1.0, beta=1.0, cols=True)
    """

    alpha: float = 1.0
    beta: float = 1.0
    rows: bool = False
    cols: bool = False
    precision: float | None = None
    shape_alpha: float = 2.0
    shape_beta: float = 0.5
    shape_least: float = 2.0
    typical: float = field(default=1.0, kw_only=True)  # weight of a cell without a known error
    name: ClassVar[str] = "Gaussian"
    letter: ClassVar[str] = "G"
    takes_biases: ClassVar[bool] = True
    takes_units: ClassVar[bool] = True
    takes_transforms: ClassVar[bool] = True
    has_noise: ClassVar[bool] = True
    takes_errors: ClassVar[bool] = True
    takes_limits: ClassVar[bool] = True
    takes_shards: ClassVar[bool] = True
    symbols: ClassVar[dict[str, str]] = {"alpha": "alpha_tau", "beta": "beta_tau"}

    def __post_init__(self) -> None:
        positive(
            self, alpha=self.alpha, beta=self.beta, precision=self.precision,
            shape_alpha=self.shape_alpha, shape_beta=self.shape_beta,
        )  # fmt: skip
        if not 0 <= self.shape_least < math.inf:
            raise ModelError(
                f"{type(self).__name__}: shape_least must not be negative, got {self.shape_least}."
            )
        for side in SIDES:
            if not isinstance(getattr(self, side), bool):
                raise ModelError(f"{self.name}: {side} must be True or False.")

    def __repr__(self) -> str:
        shown = [f for f in fields(self) if f.name in ("alpha", "beta") or self._changed(f)]
        values = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in shown)
        return f"{type(self).__name__}({values})"

    def _changed(self, f: Any) -> bool:
        return bool(getattr(self, f.name) != f.default)

    def unequal(self, noise: str) -> Gaussian:
        """The same with noise that is "equal" or differs by "rows", "cols" or "both"."""
        return replace(self, rows=noise in ("rows", "both"), cols=noise in ("cols", "both"))

    @property
    def sides(self) -> list[str]:
        """Sides whose rows have a noise of their own."""
        return [side for side in SIDES if getattr(self, side)]

    # --- Data

    def fits(self, prior: type[Prior]) -> bool:
        return prior.terms is not Prior.terms

    def resolve(self, X: ObservedMatrix) -> Likelihood:
        own = self
        if X.errors is not None:
            own = replace(self, typical=float(np.median(X.errors)) ** -2)
        if X.bounds is None:
            return own
        from bayesmf.likelihoods.censored import Censored

        return Censored(noise=own).resolve(X)

    def read(self, X: ObservedMatrix) -> ObservedMatrix:
        """The data; new rows without known errors have typical ones."""
        if X.errors is not None or self.typical == 1.0:
            return X
        return replace(X, errors=np.full(X.n_observed, self.typical**-0.5))

    # --- Own variables

    def variables(self, shape: tuple[int, int]) -> dict[str, Variable]:
        named = {"noise_precision": Variable((), ())}
        for side, n, dim in zip(SIDES, shape, ("row", "column"), strict=True):
            if side in self.sides:
                named[f"noise_{side}"] = Variable((n,), (dim,))
                named[f"noise_{side}_shape"] = Variable((), ())
        return named

    def prior(self) -> dist.Gamma:
        """Distribution of the noise precision before any data are seen."""
        return dist.Gamma(shape=self.alpha, rate=self.beta)

    def shape_prior(self) -> dist.GammaAbove:
        """Distribution of the shape that governs the relative precisions of a side."""
        return dist.GammaAbove(shape=self.shape_alpha, rate=self.shape_beta, least=self.shape_least)

    def draw(self, shape: tuple[int, int], stream: Stream) -> Values:
        if self.precision is None:
            own = {"noise_precision": self.prior().draw(stream, ())}
        else:
            own = {"noise_precision": np.asarray(self.precision)}
        for side in self.sides:
            s = self.shape_prior().draw(stream)
            levels = dist.Gamma(shape=s, rate=s).draw(stream, (shape[SIDES.index(side)],))
            own |= {f"noise_{side}": levels, f"noise_{side}_shape": s}
        return own

    def start(self, X: ObservedMatrix) -> Values:
        own: Values = {}
        for side, n in zip(SIDES, X.shape, strict=True):
            if side in self.sides:
                own[f"noise_{side}"] = np.ones(n)
                middle = self.shape_least + self.shape_alpha / self.shape_beta
                own[f"noise_{side}_shape"] = np.asarray(middle)
        return own

    def weights(self, X: ObservedMatrix, own: Values) -> Weights:
        """By what the precision tau of every cell is multiplied."""
        return Weights(own.get("noise_rows"), own.get("noise_cols"), X.weights)

    # --- Sweeps

    def working(self, fit: Fit, own: Values, stream: Stream) -> NormalData:
        """The data themselves."""
        tau = float(own["noise_precision"])
        return NormalData(fit.X, tau, weights=self.weights(fit.X, own))

    def draws_jointly(self, side: Side) -> bool:
        if getattr(self, SIDES[side.axis]):
            return False
        return isinstance(side.prior.terms(side.values, side.rank), RowTerms)

    def level_terms(self, view: View, tau: float, errors: Array) -> tuple[Array, Array]:
        """What the data add to shape and rate of a side's relative precisions."""
        if "half counts" not in view.cache:
            view.cache["half counts"] = 0.5 * view.counts
        return view.cache["half counts"], (0.5 * tau) * errors

    def update_side(
        self, side: Side, working: Working, errors: Array | None, own: Values, stream: Stream,
        shared: bool = True,
    ) -> Working:  # fmt: skip
        name = SIDES[side.axis]
        if not getattr(self, name):
            return working
        assert isinstance(working, NormalData) and errors is not None
        h, d = self.level_terms(side.view, working.precision, errors)
        # The shape of a side is hardly news from one sweep to the next: rows and columns in turn.
        if shared and (stream.sweep <= _ALWAYS or stream.sweep % 2 == side.axis):
            if "distinct counts" not in side.view.cache:
                side.view.cache["distinct counts"] = distinct(h, h.size)
            known, now = side.view.cache["distinct counts"], float(own[f"noise_{name}_shape"])
            shape = draw_shape(self.shape_prior(), now, h, d, stream, known)
            own[f"noise_{name}_shape"] = shape
        own[f"noise_{name}"] = self.levels(own[f"noise_{name}_shape"], h, d).draw(stream, h.shape)
        changed: dict[str, Any] = {name: own[f"noise_{name}"]}
        return replace(working, weights=working.weights._replace(**changed))

    def levels(self, s: Array, h: Array, d: Array) -> dist.Gamma:
        """Distribution of a side's relative precisions given what the data add."""
        return dist.Gamma(shape=s + h, rate=s + d)

    def conditional(self, n_observed: int, error: float) -> dist.Gamma:
        """Distribution of the noise precision given the sum of squared residuals."""
        return dist.Gamma(shape=self.alpha + 0.5 * n_observed, rate=self.beta + 0.5 * error)

    def update(self, fit: Fit, own: Values, stream: Stream) -> Values:
        tau = np.asarray(self.precision)
        if self.precision is None:
            conditional = self.conditional(fit.X.n_observed, fit.squared_error)
            tau = conditional.draw(stream, ())
        own = {**own, "noise_precision": tau}
        return own | self.move_levels(own, stream) if self.sides else own

    def move_levels(self, own: Values, stream: Stream) -> Values:
        """Move the levels of tau and of the sides' precisions along what the data do not see.

        One of the moves in every sweep, all in turn.
        """
        moves = [*self.sides] if self.precision is None else []
        moves += ["trade"] if len(self.sides) == 2 else []
        if not moves:
            return {}
        side = moves[stream.sweep % len(moves)]
        if side == "trade":
            c = self.trade_move(own).draw(stream, ())
            return {"noise_rows": own["noise_rows"] * c, "noise_cols": own["noise_cols"] / c}
        c, name = self.level_move(own, side).draw(stream, ()), f"noise_{side}"
        return {"noise_precision": own["noise_precision"] * c, name: own[name] / c}

    def level_move(self, own: Values, side: str) -> dist.GIG:
        """Distribution of c when tau is multiplied and a side's precisions are divided by it.

        The data do not see it, so without this move the level would creep.
        """
        s, levels = float(own[f"noise_{side}_shape"]), own[f"noise_{side}"]
        return dist.GIG(
            p=self.alpha - levels.size * s,
            a=2 * self.beta * own["noise_precision"],
            b=2 * s * levels.sum(),
        )

    def trade_move(self, own: Values) -> dist.GIG:
        """Distribution of c when rows' precisions are multiplied and columns' divided by it."""
        s, t = float(own["noise_rows_shape"]), float(own["noise_cols_shape"])
        a, b = own["noise_rows"], own["noise_cols"]
        return dist.GIG(p=a.size * s - b.size * t, a=2 * s * a.sum(), b=2 * t * b.sum())

    def log_density(self, fit: Fit, own: Values) -> float:
        tau = float(own["noise_precision"])
        weights = self.weights(fit.X, own)
        fit = replace(fit, weights=weights, errors=None)
        constant = fit.X.n_observed * math.log(tau / (2 * math.pi))
        if any(part is not None for part in weights):
            constant += float(np.sum(np.log(weights.at_entries(fit.X))))
        likelihood = 0.5 * (constant - tau * fit.squared_error)
        return likelihood + self.own_log_density(own)

    def own_log_density(self, own: Values) -> float:
        """Log density of the own variables."""
        total = 0.0
        if self.precision is None:
            total = float(self.prior().log_density(own["noise_precision"]))
        for side in self.sides:
            s = own[f"noise_{side}_shape"]
            levels = dist.Gamma(shape=s, rate=s).log_density(own[f"noise_{side}"])
            total += float(self.shape_prior().log_density(s)) + float(levels.sum())
        return total

    def refreshes(self, sweep: int) -> bool:
        """Whether `refresh` draws anything in this sweep."""
        return False

    def degrees(self, own: Values) -> float:
        """Degrees of freedom of the noise, infinite where it is normal."""
        return math.inf

    # --- Results

    def cell_precision(
        self, own: Values, cells: Cells, weights: Array | float | None = None
    ) -> Array:
        """Precisions of cells, that broadcast against their means."""
        found = own["noise_precision"][..., None]
        for side, places in zip(SIDES, cells, strict=True):
            if side in self.sides:
                found = found * own[f"noise_{side}"][..., places]
        weight = self.typical if weights is None else weights
        return found if np.ndim(weight) == 0 and weight == 1.0 else found * weight

    def about(self, means: Array, precision: Array, own: Values) -> NormalLaw:
        """Distribution of values of these precisions about their means."""
        return NormalLaw(means, precision)

    def law(
        self, means: Array, own: Values, cells: Cells, weights: Array | float | None = None
    ) -> NormalLaw:
        return self.about(means, self.cell_precision(own, cells, weights), own)

    def noise_variance(self, own: Values, level: float) -> float:
        variance = 1 / own["noise_precision"]
        for side in self.sides:
            variance = variance * (1 / own[f"noise_{side}"]).mean(axis=-1)
        return float(variance.mean()) / self.typical

    def noise_sd(self, own: Values) -> float | None:
        if self.sides:
            return None
        return float((own["noise_precision"] ** -0.5).mean()) * self.typical**-0.5

    def monitored(self, own: Values, mse: Array) -> dict[str, Array]:
        tau = own["noise_precision"]
        density = 0.5 * (np.log(tau / (2 * np.pi)) - tau * mse)
        if not self.sides:
            return {"noise precision": tau, "log likelihood per entry": density}
        series = {}
        for side, lines in zip(SIDES, ("row", "column"), strict=True):
            if side in self.sides:
                level = np.log(own[f"noise_{side}"]).mean(axis=-1)
                tau = tau * np.exp(level)
                series[f"shape of {lines} noise"] = own[f"noise_{side}_shape"]
        return {"noise precision": tau} | series

    def notes(self, own: Values, X: ObservedMatrix, rank: int) -> list[str]:
        """Heywood cases: factors interpolate a row, and its precision runs up to its bound."""
        notes = []
        for side, view in zip(SIDES, (X.rows, X.cols), strict=True):
            if side not in self.sides:
                continue
            middle = float(np.median(view.counts[view.counts > 0]))
            if middle >= 5 * rank or not self._at_bound(own[f"noise_{side}_shape"]):
                continue
            other = _OTHER[side]
            instead = f'noise="{other}"' if len(self.sides) == 1 else f'noise="{other}" alone'
            notes.append(
                f"The noise of the {'rows' if side == 'rows' else 'columns'} is not to be trusted: "
                f"half of them have at most {middle:g} entries for {rank} factors, which can "
                f'follow them too closely; use {instead}, a smaller rank or noise="equal".'
            )
        return notes

    def _at_bound(self, shape: Array) -> bool:
        """Whether the posterior of a shape leans on its lower bound."""
        return float(np.median(shape)) < self.shape_least + 0.5
