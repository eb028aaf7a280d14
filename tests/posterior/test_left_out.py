"""Weights of the posterior without an entry: PSIS against ArviZ, and where no tail can be had."""

import numpy as np
import pytest

from bayesmf.posterior.left_out import khat_limit, smoothed
from bayesmf.posterior.loo import judged


@pytest.mark.parametrize("draws", [30, 100, 226, 500])
def test_smoothed_weights_are_those_of_arviz(draws):
    stats = pytest.importorskip("arviz_stats.base").array_stats
    rng = np.random.default_rng(draws)
    log_density = -0.5 * rng.normal(size=(draws, 60)) ** 2 * np.exp(rng.normal(size=60))
    found = judged(log_density, (np.arange(60), np.arange(60)))
    pointwise, khat, effective = stats.loo(log_density.T[:, None], chain_axis=1, draw_axis=2)
    np.testing.assert_allclose(found.pointwise, pointwise, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.khat, khat, rtol=0, atol=1e-10)
    assert found.effective == pytest.approx(effective.sum(), abs=1e-9)
    assert (found.khat > found.limit).any() and (found.khat < found.limit).any()


def test_tails_that_cannot_be_fitted():
    """Too few draws are never relied on; a density that is the same in all draws always is."""
    rng = np.random.default_rng(0)
    few = rng.normal(size=(29, 3))
    weights, khat = smoothed(few)
    np.testing.assert_allclose(np.exp(weights), np.exp(-few) / np.exp(-few).sum(axis=0))
    assert np.isinf(khat).all()
    same = np.full((100, 2), -1.5)
    same[:, 1] = np.where(np.arange(100) == 7, -np.inf, same[:, 1])  # one draw rules it out
    found = judged(same, (np.arange(2), np.arange(2)))
    assert found.khat[0] == 0 and found.pointwise[0] == pytest.approx(-1.5)
    assert found.khat[1] > found.limit and np.isfinite(found.pointwise[1])


def test_the_limit_grows_with_the_draws():
    assert khat_limit(100) == pytest.approx(0.5) and khat_limit(10**6) == 0.7
