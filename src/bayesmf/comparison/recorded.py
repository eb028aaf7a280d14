"""Log predictive probabilities of values as they are recorded.

Values that were rounded stand for all that round to them, and those at a limit for all beyond it.
Their probability under a continuous law is that of the interval; its density would reward a law for
spikes at values that are repeated, and could not be compared with the probabilities of counts,
categories and limits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from bayesmf.comparison.entrants import Ends, as_limit
from bayesmf.data.observed import ObservedMatrix
from bayesmf.likelihoods.laws import Law, NormalLaw, ReportedLaw
from bayesmf.likelihoods.mapped import MappedLaw
from bayesmf.posterior.predictive import Predictive
from bayesmf.streams import Array

_STEPS = (1.0, 0.1, 0.01, 0.001)
_REPEATED = 5  # times that a value occurs on average, from which on rounding matters
_NUMBERS = 2_000_000  # of draws and cells at once


def resolution(X: ObservedMatrix) -> float | None:
    """The power of ten to which values were rounded; None if they hardly repeat."""
    values = X.rows.values
    if _REPEATED * np.unique(values).size > values.size:
        return None
    scaled = (values / step for step in _STEPS)
    found = (np.abs(x - np.round(x)).max() < 1e-6 for x in scaled)
    return next((step for step, is_one in zip(_STEPS, found, strict=True) if is_one), None)


def log_recorded(
    predictive: Predictive,
    cells: tuple[Array, Array],
    values: Array,
    step: float | None,
    ends: Ends = (None, None),
    weights: Array | None = None,
) -> Array:
    """Log probabilities of the values, rounded to a step or at an end; log densities of the rest.

    ``ends`` are those of the range at which values heap; ``weights`` are inverse squares of the
    values' known errors.
    """
    found = np.empty(values.size)
    size = max(1, _NUMBERS // predictive.U.shape[0])
    for a in range(0, values.size, size):
        part = slice(a, a + size)
        given = None if weights is None else weights[part]
        terms = given_draws(predictive, _at(cells, part), values[part], step, ends, given)
        found[part] = special.logsumexp(terms, axis=0) - np.log(len(terms))
    return found


def given_draws(
    predictive: Predictive,
    cells: tuple[Array, Array],
    values: Array,
    step: float | None,
    ends: Ends = (None, None),
    weights: Array | None = None,
) -> Array:
    """The same given each draw (D, n)."""
    low, high = _interval(values, cells[1], step, ends)
    point = low == high
    found = np.empty((predictive.U.shape[0], values.size))
    given = None if weights is None else weights[point]
    found[:, point] = predictive.log_densities(_at(cells, point), values[point], given)
    if not point.all():
        part = ~point
        some = _at(cells, part)
        given = None if weights is None else weights[part]
        if given is not None and predictive.units is not None:
            given = given * predictive.units.size(some) ** 2
        law = predictive.law(predictive.means(some), some, given)
        found[:, part] = _log_between(law, low[part], high[part], values[part])
    return found


def _at(cells: tuple[Array, Array], chosen: Any) -> tuple[Array, Array]:
    return cells[0][chosen], cells[1][chosen]


def _interval(values: Array, cols: Array, step: float | None, ends: Ends) -> tuple[Array, Array]:
    """Between what the values lie for which these stand; both are one where it is the value."""
    half = 0.5 * (step or 0.0)
    low, high = values - half, values + half
    for end, side, beyond, far in (
        (ends[0], low, np.less_equal, -np.inf), (ends[1], high, np.greater_equal, np.inf),
    ):  # fmt: skip
        if (limit := as_limit(end)) is not None:
            side[beyond(values, limit[cols] if isinstance(limit, np.ndarray) else limit)] = far
    return low, high


def _log_between(law: Law, low: Any, high: Any, values: Any) -> Array:
    """Log probability of each interval under each draw; of the value, if the law is discrete."""
    if isinstance(law, MappedLaw):
        with np.errstate(invalid="ignore", divide="ignore"):
            low, high, values = (law.units.forward(x, law.cells) for x in (low, high, values))
        return _log_between(law.inner, np.where(np.isnan(low), -np.inf, low), high, values)
    if isinstance(law, ReportedLaw):
        low = np.where(values <= law.lower, -np.inf, low)
        high = np.where(values >= law.upper, np.inf, high)
        law = law.inner
    if not isinstance(law, NormalLaw):
        return law.log_prob(values)
    root = np.sqrt(law.precision)
    return law.log_between((low - law.means) * root, (high - law.means) * root)
