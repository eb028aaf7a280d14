"""Whether to use what a run found: its predictions and their intervals, on three levels.

Hyper-variables that mix slowly condemn nothing: what counts is how far chains differ about cells,
as a part of the error that predictions have anyhow, and whether entries lie where a prediction
without them, by importance sampling, would expect them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesmf.data.observed import ObservedMatrix
from bayesmf.likelihoods.laws import Law
from bayesmf.posterior.agreement import settled_apart
from bayesmf.posterior.left_out import log_left_out, without_entry
from bayesmf.streams import Array

if TYPE_CHECKING:
    from bayesmf.posterior.posterior import Posterior

FINE, USABLE, UNUSABLE = "fine", "usable", "do not use"
_LOOKED_AT, _AT_ONCE = 2000, 250  # cells, and entries
_ENOUGH = 200  # entries below which shares of them say little
_LEVEL = 0.9  # of the intervals whose coverage is judged
_FAR = 6.0  # standard deviations


class Evidence(NamedTuple):
    """What a run is judged by; None where draws, or the data, are not at hand.

    ``inflation``: by what part of a cell's predictive variance its squared error grows because
    chains and their halves differ, on average. ``beyond``: how far a cell is predicted outside the
    range of the data, in ranges. Of entries predicted by the others: ``coverage``, share in 90 %
    intervals, ``outliers``, share more than six standard deviations off, and ``useless``, mean
    squared error over the variance of the data; so many ``entries`` were looked at.

    ``modes``: chains by number, in groups that agree, where every chain agrees with itself but not
    with all others; empty where chains agree, or still move. ``densities``: mean log density of
    entries given the others, by chain.
    """

    inflation: float | None = None
    beyond: float | None = None
    coverage: float | None = None
    outliers: float | None = None
    useless: float | None = None
    entries: int = 0
    modes: tuple[tuple[int, ...], ...] = ()
    densities: tuple[float, ...] = ()

    def miss(self) -> float | None:
        """How far coverage is off, beyond what chance would make of so many entries."""
        if self.coverage is None:
            return None
        return abs(self.coverage - _LEVEL) - 2 * (_LEVEL * (1 - _LEVEL) / self.entries) ** 0.5


def gather(posterior: Posterior, X: ObservedMatrix | None) -> Evidence:
    """Look at some cells and some entries, always the same of a matrix."""
    rng = np.random.default_rng(0)
    I, J = posterior.shape  # noqa: E741
    cells = rng.integers(0, I, _LOOKED_AT), rng.integers(0, J, _LOOKED_AT)
    cells = tuple(part[~(posterior.empty_rows[cells[0]] | posterior.empty_cols[cells[1]])]
                  for part in cells)  # fmt: skip
    if not cells[0].size:
        return Evidence()
    law = _law(posterior, cells)
    means = law.mean().reshape(*posterior.draws["U"].shape[:2], -1)
    inflation = _inflation(means, np.broadcast_to(law.variance(), law.means.shape).mean(axis=0))
    modes = settled_apart(means)
    if X is None:
        return Evidence(inflation, modes=modes)
    values = X.rows.values
    middle, spread = 0.5 * (values.max() + values.min()), 0.5 * np.ptp(values)
    beyond = float(np.abs(law.mean().mean(axis=0) - middle).max() / spread) if spread else None
    found = _of_entries(posterior, X, rng)
    return found._replace(inflation=inflation, beyond=beyond, modes=modes)


def _law(posterior: Posterior, cells: tuple[Array, Array], weights: Array | None = None) -> Law:
    U, V = posterior.predictors()
    parts = [slice(a, a + _AT_ONCE) for a in range(0, cells[0].size, _AT_ONCE)]
    means = [np.einsum("dtk,dtk->dt", U[:, cells[0][p]], V[:, cells[1][p]]) for p in parts]
    own = posterior.likelihood_values()
    return posterior.model.likelihood.law(np.hstack(means), own, cells, weights)


def _inflation(means: Array, noise: Array) -> float:
    """Variance of the mean of the half-chains, as a part of the variance of a new value."""
    half = means.shape[1] // 2
    if half < 2:
        return 0.0
    halves = np.concatenate([means[:, :half], means[:, -half:]]).mean(axis=1)
    between = halves.var(axis=0, ddof=1) / len(halves)
    whole = means.reshape(-1, means.shape[2]).var(axis=0) + noise
    return float(np.mean(between / np.where(whole > 0, whole, 1.0)))


def _of_entries(posterior: Posterior, X: ObservedMatrix, rng: np.random.Generator) -> Evidence:
    """What entries show that are predicted by the others.

    A draw counts by the inverse of its density of the entry, truncated, so that what remains is the
    posterior without it.
    """
    values, X = X.rows.values, posterior.model.likelihood.read(X)
    exact = np.arange(X.n_observed)
    if X.bounds is not None:  # between two numbers there is no value to predict
        exact = np.flatnonzero(
            (X.bounds.low == X.bounds.high) | np.isinf(X.bounds.high - X.bounds.low)
        )
    chosen = rng.permutation(exact)[:_LOOKED_AT]
    if chosen.size < _ENOUGH:
        return Evidence()
    i, j, _ = (part[chosen] for part in X.triples())
    y = values[chosen]
    law = _law(posterior, (i, j), None if X.weights is None else X.weights[0][chosen])
    log_density = law.log_prob(y)
    weights = without_entry(log_density)
    drawn = law.replicates(1, (0, 0))
    jump = np.sum(weights * (drawn == y), axis=0)
    pit = np.sum(weights * (drawn < y), axis=0) + rng.random(y.size) * jump
    mean = np.sum(weights * law.mean(), axis=0)
    square = np.sum(weights * (law.variance() + (law.mean() - mean) ** 2), axis=0)
    off = (y - mean) ** 2
    outliers = float(np.mean(off > _FAR**2 * square))
    useless = float(off.mean() / y.var()) if y.var() > 0 else None
    covered = float(np.mean(np.abs(2 * pit - 1) <= _LEVEL))
    by_chain = log_density.reshape(*posterior.draws["U"].shape[:2], -1)
    densities = tuple(float(np.mean(log_left_out(chain))) for chain in by_chain)
    return Evidence(None, None, covered, outliers, useless, y.size, (), densities)


class Rule(NamedTuple):
    """What is judged, up to what it is fine and up to what usable, and what is said beyond."""

    measure: Callable[[Evidence], float | None]
    fine: float
    usable: float
    text: str


RULES = (
    Rule(
        lambda e: e.inflation, 0.005, 0.05,
        "Chains disagree: that adds {e.inflation:.1%} to the squared error of predictions, and "
        "{share:.1%} of the cells have an R-hat above its limit. {remedy}",
    ),
    Rule(
        Evidence.miss, 0.03, 0.062,
        "90 % intervals would hold {e.coverage:.0%} of new entries: the noise is not of the kind "
        "that the model says. Try noise='cols' or 'both', limits where values heap at an end, a "
        "transformation, or a Student-t model (TGGW); of counts, a negative binomial one (NGG).",
    ),
    Rule(
        lambda e: e.outliers, 0.005, 0.05,
        "{e.outliers:.2%} of the entries lie more than six standard deviations from what the "
        "others predict: look for codes of missing values and slips of units, or use a Student-t "
        "model (TGGW).",
    ),
    Rule(
        lambda e: e.useless, 0.98, 1.5,
        "Predictions of entries by the others have a squared error of {e.useless:.3g} times the "
        "variance of the data: the model explains nothing. Use scale='auto', biases, or plain "
        "averages.",
    ),
    Rule(
        lambda e: e.beyond, 3.0, 20.0,
        "Some cells are predicted {e.beyond:.3g} times as far from the middle as any value of the "
        "data. Use fewer components or scale='auto'.",
    ),
)  # fmt: skip


_LONGER = (
    "Run longer, with fit(..., until='converged') or burn_in and draws of {longer}; where that "
    "does not help, use fewer components or a model with normal priors (GGGW)."
)


def _remedy(evidence: Evidence, draws: int) -> str:
    """What to do about chains that disagree: move on, or are at rest in different places."""
    if not evidence.modes:
        return _LONGER.format(longer=4 * draws)
    said = f"Each chain agrees with itself: there are {len(evidence.modes)} modes"
    groups = [_numbers(group) for group in evidence.modes]
    if evidence.densities:
        best = [max(evidence.densities[c] for c in group) for group in evidence.modes]
        groups = [f"{name}: {value:.3f}" for name, value in zip(groups, best, strict=True)]
        said += ", by chains, with the mean log density of entries given the others"
    return (
        f"{said} ({'; '.join(groups)}). Longer runs do not mend that: use fewer components or a "
        "model with normal priors (GGGW), or run more chains and weight them, with stacked(X)."
    )


def _numbers(chains: tuple[int, ...]) -> str:
    """Numbers of chains in words, counted from one."""
    return ", ".join(str(c + 1) for c in chains)


def judge(evidence: Evidence, draws: int, share: float) -> tuple[str, list[str]]:
    """The level of a run, and in sentences why and what to do.

    ``share`` is that of the cells about which chains disagree.
    """
    said: dict[str, list[str]] = {FINE: [], USABLE: [], UNUSABLE: []}
    for rule in RULES:
        value = rule.measure(evidence)
        if value is not None and value > rule.fine:
            level = USABLE if value <= rule.usable else UNUSABLE
            remedy = _remedy(evidence, draws)
            said[level].append(rule.text.format(e=evidence, share=share, remedy=remedy))
    level = next((level for level in (UNUSABLE, USABLE) if said[level]), FINE)
    return level, said[level]
