"""Simulation-based calibration of every preset with a proper prior, and of every likelihood.

All levels follow from `FAMILY_ERROR`, shared out over the models and their quantities.
"""

import numpy as np
import pytest
from scipy import stats

from tests.exactness.calibration import band, calibrate, escape, uniformity
from tests.exactness.simulation import PROPER
from tests.exactness.test_geweke import MUTATIONS

FAMILY_ERROR = 1e-4
TEST = "calibration"
NAMES = [name for name in PROPER if "-mean" not in name]
# One or two of every likelihood; each has at most five variables of its own.
LIKELIHOODS = [
    "GGG-rows", "GEE-both", "GGG-errors", "GGG-student", "GEE-student-cols", "GGG-censored",
    "GGG-censored-student", "GGG-rounded", "GGG-ordinal", "GGG-ordinal-biases", "PGG-negbin",
    "PGG-presence",
]  # fmt: skip
LEVEL = FAMILY_ERROR / (3 * len(NAMES) + 7 * len(LIKELIHOODS))
BINS = 32
# Of the broken samplers of the joint-distribution test, those whose ranks move.
BROKEN = [
    "Laplace scale for its inverse square",
    "observations not halved",
    "squared error not halved",
    "squares not halved in the relevance",
    "exponential rate doubled",
    "rest of the row ignored",
    "rate counts half the factors",
    "missing counts taken for zeros",
    "stale data",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, *LIKELIHOODS])
def test_the_truth_is_one_more_draw(name, verdict):
    result = calibrate(name, simulations=300)
    for quantity, p in result.p_values().items():
        ranks = np.bincount(result.ranks[quantity], minlength=BINS).tolist()
        verdict(
            TEST, name, p, LEVEL, at_least=True, quantity=quantity, ranks=ranks, thin=result.thin
        )


@pytest.mark.seeds
def test_the_truth_is_one_more_draw_in_a_short_run(verdict):
    for p in calibrate("GEE", simulations=60).p_values().values():
        verdict(TEST, "GEE", p, LEVEL, at_least=True)


@pytest.mark.slow
@pytest.mark.parametrize("mutation", BROKEN)
def test_a_wrong_sampler_is_rejected(mutation, monkeypatch, verdict):
    name, _, _, apply = MUTATIONS[mutation]
    apply(monkeypatch)
    found = calibrate(name, simulations=300).p_values()
    verdict.rejects(TEST, mutation, min(found.values()) < LEVEL, str(found))


def test_the_chance_to_leave_the_bands_is_exact():
    """Against a simulation of 20,000 rank samples."""
    n, draws = 40, 20_000
    low, high = band(n, 8, 0.05)
    points = np.arange(1, 8) / 8
    ranks = np.random.default_rng(0).integers(0, 8, (draws, n))
    curves = np.array([(ranks < point).sum(axis=1) for point in range(1, 8)]).T
    left = np.sum(((curves < low) | (curves > high)).any(axis=1))
    chance = escape(n, points, low, high)
    assert 0.01 < chance < 0.05
    assert stats.binomtest(int(left), draws, chance).pvalue > 1e-4


@pytest.mark.parametrize("bins", [4, 32])
def test_uniform_ranks_have_valid_p_values(bins):
    rng = np.random.default_rng(1)
    p = np.array([uniformity(rng.integers(0, bins, 100), bins) for _ in range(1000)])
    for level in (0.01, 0.1, 0.5):  # discrete, so never more often than the level, nor far less
        assert stats.binomtest(int((p <= level).sum()), 1000, level).pvalue > 1e-4


def test_ranks_that_are_not_uniform_are_noticed():
    rng = np.random.default_rng(2)
    assert uniformity(rng.binomial(31, 0.5, 600), 32) < 1e-10
    assert uniformity(np.minimum(rng.integers(0, 36, 600), 31), 32) < LEVEL
