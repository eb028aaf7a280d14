"""Values known up to an interval: beyond a limit of detection, between two readings, or rounded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from bayesmf import _threads
from bayesmf._errors import DataError, ModelError
from bayesmf.data.bounds import Bounds, Intervals
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.shards import is_whole, own_bounds
from bayesmf.data.units import Units
from bayesmf.kernels.cells import dots, put_entries
from bayesmf.kernels.truncation import draw_between
from bayesmf.likelihoods.base import Cells, Fit, Likelihood, NormalData, Side, Working
from bayesmf.likelihoods.gaussian import Gaussian
from bayesmf.likelihoods.laws import Law, ReportedLaw
from bayesmf.priors import Prior
from bayesmf.priors.distributions import Values, Variable
from bayesmf.streams import Array, Stream
from bayesmf.updates.entries import in_columns

__all__ = ["Censored"]

_LIMITS = (("lower", -np.inf), ("upper", np.inf))


@dataclass(frozen=True, eq=False, repr=False)
class Censored(Likelihood):
    """Normal or Student noise, seen by an instrument with limits.

    An entry at or beyond a limit says that its value lies there or farther; entries may also come
    with intervals of their own (`ObservedMatrix.between`, `ObservedMatrix.rounded`, texts such as
    ">8" in files). Predictions are
    of the reported value, which never leaves the limits; the value behind it is latent.

    Parameters
    ----------
    lower, upper
        Limits: a number for all cells, one for each column (J,), or one for each cell (I, J);
        infinite or NaN where there is none. By default those that intervals of the data imply.
    noise
        `Gaussian` or `StudentT`, with all that they can.

    Examples
    --------
    >>> from bayesmf import Censored, Gaussian
    >>> Censored(upper=8, noise=Gaussian(cols=True))
    Censored(upper=8, noise=Gaussian(alpha=1.0, beta=1.0, cols=True))
    """

    lower: Any = None
    upper: Any = None
    noise: Gaussian = field(default_factory=Gaussian)
    name: ClassVar[str] = "censored"
    letter: ClassVar[str] = "C"
    takes_biases: ClassVar[bool] = True
    takes_units: ClassVar[bool] = True
    has_noise: ClassVar[bool] = True
    has_limits: ClassVar[bool] = True
    latent: ClassVar[bool] = True
    takes_errors: ClassVar[bool] = True
    takes_limits: ClassVar[bool] = True
    takes_shards: ClassVar[bool] = True
    symbols: ClassVar[dict[str, str]] = {}

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Gaussian):
            raise ModelError(
                f"Censored: noise must be Gaussian() or StudentT(), got {self.noise!r}."
            )
        for name, nothing in _LIMITS:
            object.__setattr__(self, name, _limit(name, getattr(self, name), nothing))
        low, high = (np.atleast_2d(self._limit(name)) for name, _ in _LIMITS)
        if any(a != b and 1 not in (a, b) for a, b in zip(low.shape, high.shape, strict=True)):
            raise ModelError(f"Censored: lower has {low.shape} limits and upper {high.shape}.")
        crossed = np.argwhere(low >= high)
        if crossed.size:
            i, j = crossed[0]
            where = "" if np.maximum(low.shape, high.shape).max() == 1 else f" at column {j}"
            low, high = (x[min(i, len(x) - 1), min(j, x.shape[1] - 1)] for x in (low, high))
            raise ModelError(
                f"Censored: the lower limit {low:g} is not below the upper one, {high:g}{where}; "
                "correct them."
            )

    def __repr__(self) -> str:
        parts = [f"{name}={_short(getattr(self, name))}" for name, _ in _LIMITS
                 if getattr(self, name) is not None]  # fmt: skip
        return f"Censored({', '.join([*parts, f'noise={self.noise!r}'])})"

    @property
    def takes_transforms(self) -> bool:  # type: ignore[override]
        """Whether its noise does."""
        return self.noise.takes_transforms

    def in_units(self, units: Units, shape: tuple[int, int]) -> Censored:
        if any(getattr(self, name) is not None for name, _ in _LIMITS) and not units.by_columns:
            raise ModelError(
                "Limits are not known for rows that are centred or scaled by themselves; use "
                "center and scale by columns, or 'none'."
            )
        limits = {name: units.limit(getattr(self, name), shape) for name, _ in _LIMITS}
        return replace(self, **limits)

    def unequal(self, noise: str) -> Censored:
        """The same with noise that is "equal" or differs by "rows", "cols" or "both"."""
        return replace(self, noise=self.noise.unequal(noise))

    def _limit(self, name: str) -> Array:
        value = getattr(self, name)
        return np.asarray(dict(_LIMITS)[name] if value is None else value, dtype=np.float64)

    # --- Data

    def fits(self, prior: type[Prior]) -> bool:
        return self.noise.fits(prior)

    def check(self, X: ObservedMatrix) -> None:
        super().check(X)
        for name, _ in _LIMITS:
            limit = self._limit(name)
            if limit.ndim and limit.shape not in ((X.shape[1],), X.shape):
                raise DataError(
                    f"{name}: there are {limit.shape} limits for a matrix of shape {X.shape}; give "
                    "one number, one for each column or one for each cell."
                )
        self._bounds(X)

    def resolve(self, X: ObservedMatrix) -> Likelihood:
        noise = self.noise.resolve(replace(X, bounds=None))
        assert isinstance(noise, Gaussian)
        limits: dict[str, Any] = {}
        if X.bounds is not None:
            limits = {name: _implied(X, name) for name, _ in _LIMITS if getattr(self, name) is None}
        return replace(self, noise=noise, **limits)

    def read(self, X: ObservedMatrix) -> ObservedMatrix:
        """The data with an interval for every entry at or beyond a limit."""
        return replace(self.noise.read(X), bounds=self._bounds(X))

    def _bounds(self, X: ObservedMatrix) -> Bounds:
        i, j, values = X.triples()
        known = X.bounds
        low, high = (values, values) if known is None else (known.low, known.high)
        low, high = low.copy(), high.copy()
        exact = low == high
        for name, sign, side in (("lower", -1.0, low), ("upper", 1.0, high)):
            limit = _at(self._limit(name), (i, j))
            beyond = exact & (sign * values >= sign * limit)
            own = np.ndim(self._limit(name)) == 2  # stated for this very cell
            if own and (wrong := beyond & (values != limit)).any():
                k = int(wrong.argmax())
                raise DataError(
                    f"{X.cell_name(i[k], j[k])} is {values[k]:g}, beyond its own {name} limit "
                    f"{np.broadcast_to(limit, values.shape)[k]:g}; correct one of them."
                )
            other = high if side is low else low
            other[beyond] = np.broadcast_to(limit, values.shape)[beyond]
            side[beyond] = sign * np.inf
        return Bounds(low, high)

    # --- Sweeps: complete the data, and leave the rest to the noise

    def variables(self, shape: tuple[int, int]) -> dict[str, Variable]:
        return self.noise.variables(shape)

    def draw(self, shape: tuple[int, int], stream: Stream) -> Values:
        return self.noise.draw(shape, stream)

    def start(self, X: ObservedMatrix) -> Values:
        return self.noise.start(X)

    def refresh(self, fit: Fit, own: Values, stream: Stream, sweep: int) -> None:
        if self.noise.refreshes(sweep):
            self.noise.refresh(self.completed(fit, own, stream), own, stream, sweep)

    def working(self, fit: Fit, own: Values, stream: Stream) -> NormalData:
        """The data, with values drawn for the entries that are intervals."""
        return self.noise.working(self.completed(fit, own, stream), own, stream)

    def completed(self, fit: Fit, own: Values, stream: Stream) -> Fit:
        """The fit with values in the place of intervals, any mixing variables integrated out."""
        X = fit.X
        if X.bounds is None or not X.bounds.places.size:
            return fit
        at = _intervals(X)
        U, V = (np.ascontiguousarray(side) for side in fit.predictors())
        tau, weights = float(own["noise_precision"]), self.noise.weights(X, own)
        precision = np.full(at.places.size, tau)
        for part, places in ((weights.rows, at.rows), (weights.cols, at.cols)):
            precision = precision if part is None else precision * part[places]
        if weights.entries is not None:
            precision = precision * weights.entries[0][at.places]
        key, dof, (by_row, by_column) = stream.key(), self.noise.degrees(own), at.buffers(X)
        means, out = np.empty((2, at.places.size))
        whole = is_whole(X)

        def block(start: int, stop: int) -> None:
            a, b = at.indptr[start], at.indptr[stop]
            dots(a, b, at.rows, at.cols, U, V, means)
            draw_between(start, stop, key, at.indptr, means, precision, dof, at.low, at.high, out)
            put_entries(a, b, out, at.places, by_row)
            if whole:
                put_entries(a, b, out, at.places_by_column, by_column)

        _threads.run(block, own_bounds(X.rows, at.blocks), stream.threads, joined=True)
        by_column = by_column if whole else in_columns(X, by_row)
        rows = replace(X.rows, stored=by_row, filled=None)
        cols = replace(X.cols, stored=by_column, filled=None)
        return replace(fit, X=replace(X, rows=rows, cols=cols))

    def update_side(
        self, side: Side, working: Working, errors: Array | None, own: Values, stream: Stream,
        shared: bool = True,
    ) -> Working:  # fmt: skip
        return self.noise.update_side(side, working, errors, own, stream, shared)

    def update(self, fit: Fit, own: Values, stream: Stream) -> Values:
        return self.noise.update(fit, own, stream)

    def log_density(self, fit: Fit, own: Values) -> float:
        """Values behind intervals are integrated out."""
        X = fit.X if fit.X.bounds is not None else self.read(fit.X)
        assert X.bounds is not None
        precision = float(own["noise_precision"]) * self.noise.weights(X, own).at_entries(X)
        law = self.noise.about(fit.means(), precision, own)
        root, means = np.sqrt(precision), fit.means()
        low, high = X.bounds.low, X.bounds.high
        inside = law.log_prob(X.rows.values)
        between = law.log_between((low - means) * root, (high - means) * root)
        total = float(np.where(low < high, between, inside).sum())
        return total + self.noise.own_log_density(own)

    # --- Results

    def law(
        self, means: Array, own: Values, cells: Cells, weights: Array | float | None = None
    ) -> Law:
        inner = self.noise.law(means, own, cells, weights)
        low, high = (_at(self._limit(name), cells) for name, _ in _LIMITS)
        if np.isinf(low).all() and np.isinf(high).all():
            return inner
        return ReportedLaw(means, inner, low, high)

    def noise_variance(self, own: Values, level: float) -> float:
        return self.noise.noise_variance(own, level)

    def noise_sd(self, own: Values) -> float | None:
        return self.noise.noise_sd(own)

    def monitored(self, own: Values, mse: Array) -> dict[str, Array]:
        return self.noise.monitored(own, mse)

    def notes(self, own: Values, X: ObservedMatrix, rank: int) -> list[str]:
        return self.noise.notes(own, X, rank)


def _limit(name: str, value: Any, nothing: float) -> Any:
    """A limit as it was given, arrays as such; NaN, which stands for none, becomes infinite."""
    if value is None:
        return None
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(
            f"{name} must be a number or an array of numbers, got {value!r}."
        ) from None
    if array.ndim > 2:
        raise ModelError(f"{name} must have at most two dimensions, not {array.ndim}.")
    array = np.where(np.isnan(array), nothing, array)
    if (array == -nothing).any():
        raise ModelError(f"{name} is {-nothing}, beyond which nothing lies; leave it out.")
    return array if array.ndim else (value if not np.isnan(value) else nothing)


def _short(value: Any) -> str:
    """A limit in a representation that tells different ones apart."""
    if np.size(value) <= 8:
        return repr(np.asarray(value).tolist())
    digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:12]
    return f"<{' x '.join(map(str, np.shape(value)))} limits, {digest}>"


def _at(limit: Array, cells: Cells) -> Array:
    """The limit of every cell."""
    if limit.ndim == 0:
        return limit
    return limit[cells[1]] if limit.ndim == 1 else limit[cells]


def _implied(X: ObservedMatrix, name: str) -> Any:
    """Limits of the columns, where the intervals of a column name one and no value is beyond it."""
    assert X.bounds is not None
    _, j, _ = X.triples()
    low, high = X.bounds.low, X.bounds.high
    sign, nothing = (-1.0, -np.inf) if name == "lower" else (1.0, np.inf)
    edge, end = (high, low) if name == "lower" else (low, high)
    open_ended = np.isinf(end) & (low < high)
    found = np.full(X.shape[1], nothing)
    for column in np.unique(j[open_ended]):
        here = j == column
        edges = np.unique(edge[here & open_ended])
        others = end[here & ~open_ended]
        if edges.size == 1 and (sign * others < sign * edges[0]).all():
            found[column] = edges[0]
    return None if np.isinf(found).all() else found


def _intervals(X: ObservedMatrix) -> Intervals:
    """The intervals of a matrix, worked out once."""
    assert X.bounds is not None
    found = X.bounds.__dict__.get("intervals")
    if found is None:
        found = X.bounds.__dict__["intervals"] = Intervals.of(X, is_whole(X))
    return found
