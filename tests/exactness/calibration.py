"""Simulation-based calibration: the truth is one more draw from its own posterior.

A state is drawn from the prior, data from the state, and a chain given the data. Among draws that
are far enough apart the rank of the truth, for any quantity, is uniform (Cook, Gelman and Rubin,
2006; Talts and others, 2018). Uniformity is judged by the whole curve of cumulated ranks: its
pointwise binomial bands are widened until an exact recursion says that a uniform curve leaves
them anywhere with the probability asked for (after Säilynoja, Bürkner and Vehtari, 2022).
"""

from dataclasses import dataclass
from itertools import islice

import numpy as np
from scipy import optimize, stats

from bayesmf.sampler.run import chain
from tests.exactness.simulation import MASKS, Joint, standard_error
from tests.helpers.verdicts import seeded

MASKS["calibration"] = np.array(
    [[1, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1], [1, 1, 1, 0]], dtype=bool
)
HELD_OUT = (1, 1)
PILOTS, PILOT_LENGTH = 10, 600


# --- Uniform ranks ------------------------------------------------------------------------------


def limits(n, points, level):
    """Counts at or below each point that are inside the pointwise bands of this level."""
    low = stats.binom.ppf(0.5 * level, n, points).astype(int)
    high = stats.binom.isf(0.5 * level, n, points).astype(int)
    return low, high


def escape(n, points, low, high):
    """Chance that the cumulated counts of n uniform ranks leave their bands at any point."""
    counts = np.arange(n + 1)
    chance = (counts == 0).astype(float)
    before = 0.0
    for point, least, most in zip(points, low, high, strict=True):
        share = (point - before) / (1 - before)
        inside = counts[(counts >= least) & (counts <= most)]
        new = np.zeros(n + 1)
        steps = inside[:, None] - counts[None, :]
        new[inside] = stats.binom.pmf(steps, n - counts, share) @ chance
        chance, before = new, point
    return 1.0 - chance.sum()


def band(n, bins, error):
    """Simultaneous band of the cumulated counts: left with at most this probability."""
    points = np.arange(1, bins) / bins

    def excess(log_level):
        return escape(n, points, *limits(n, points, np.exp(log_level))) - error

    log_level = optimize.bisect(excess, np.log(1e-3 * error / bins), np.log(error), xtol=1e-2)
    return limits(n, points, np.exp(log_level - 1e-2))


def uniformity(ranks, bins):
    """Probability that uniform ranks stray as far from the diagonal as these, or farther."""
    n, points = len(ranks), np.arange(1, bins) / bins
    curve = np.searchsorted(np.sort(ranks), np.arange(1, bins), side="left")
    counts = np.arange(n + 1)[:, None]
    tails = np.minimum(stats.binom.cdf(counts, n, points), stats.binom.sf(counts - 1, n, points))
    inside = tails > tails[curve, np.arange(bins - 1)].min() * (1 + 1e-9)
    if not inside.any(axis=0).all():
        return 1.0  # as near to the diagonal as can be
    low = np.argmax(inside, axis=0)
    high = n - np.argmax(inside[::-1], axis=0)
    return float(escape(n, points, low, high))


# --- Ranks of the truth -------------------------------------------------------------------------


@dataclass
class Calibration:
    """Ranks of the truth by quantity, among `bins` - 1 draws."""

    ranks: dict
    bins: int
    thin: int

    def p_values(self):
        return {name: uniformity(ranks, self.bins) for name, ranks in self.ranks.items()}


def _quantities(problem, state, rng):
    """Own variables or mean rate, a new value of a cell not observed, and the log density.

    Of a variable with many numbers it is the first.
    """
    values = (state.U, state.V, state.rows, state.cols, state.shared, state.noise, state.biases)
    U, V = state.predictors()
    mean = U[HELD_OUT[0]] @ V[HELD_OUT[1]]
    place = tuple(np.array([k]) for k in HELD_OUT)
    cell = problem.model.likelihood.law(np.array([mean]), state.noise, place, 1.0).sample(rng)[0]
    own = {name: np.ravel(value)[0] for name, value in state.noise.items()}
    first = {name.replace("_", " "): float(value) for name, value in own.items()}
    return (first or {"mean rate": (state.U @ state.V.T).mean()}) | {
        "held-out cell": float(cell),
        "log density": problem.model.log_joint(problem.X, *values),
    }


def _posed(joint, number):
    """A true state, and the problem that its data pose."""
    truth = joint.prior_state(number)
    return truth, joint.posed(joint.draw_data(truth))


def _spacing(joint):
    """Sweeps between draws: twice the longest integrated autocorrelation time of any quantity."""
    runs = []
    for number in range(PILOTS):
        _, problem = _posed(joint, number)
        states = islice(chain(problem, "data", seeded(7), number), PILOT_LENGTH // 4, PILOT_LENGTH)
        found = [_quantities(problem, state, joint.rng) for state in states]
        runs.append([list(one.values()) for one in found])
    x = np.array(runs)
    x = stats.rankdata(x, axis=1)  # as the ranks that are to be judged
    times = []
    for q in range(x.shape[2]):
        centred = x[:, :, q] - x[:, :, q].mean(axis=1, keepdims=True)
        times.append(standard_error(centred) ** 2 * centred.size / centred.var())
    return int(np.ceil(2 * max(times)))


def calibrate(name, simulations, draws=31, seed=0):
    """Ranks of the truth in so many simulations of a model."""
    joint = Joint(name, "calibration", True, seed)
    thin = _spacing(joint)
    burn_in = 50 + 10 * thin
    ranks = {}
    for number in range(PILOTS, PILOTS + simulations):
        truth, problem = _posed(joint, number)
        true = _quantities(problem, truth, joint.rng)
        states = chain(problem, "data", seeded(7), number)
        kept = islice(states, burn_in, burn_in + draws * thin, thin)
        found = [_quantities(problem, state, joint.rng) for state in kept]
        for quantity, value in true.items():
            others = np.array([one[quantity] for one in found])
            ties = np.sum(others == value)
            rank = np.sum(others < value) + joint.rng.integers(ties + 1)
            ranks.setdefault(quantity, []).append(int(rank))
    return Calibration({k: np.array(v) for k, v in ranks.items()}, draws + 1, thin)
