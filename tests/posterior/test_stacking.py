"""Chains weighted by stacking."""

import numpy as np
import pytest
from scipy import optimize, special

from bayesmf import Posterior, sample
from bayesmf._errors import DataError, ModelError
from bayesmf.posterior.stacking import stacking_weights


def test_weights_are_those_of_a_general_optimiser():
    rng = np.random.default_rng(0)
    given = rng.normal(size=(3, 400)) * np.array([[1.0], [0.5], [2.0]])

    def loss(free):
        weights = special.log_softmax(np.append(free, 0.0))
        return -np.mean(special.logsumexp(given + weights[:, None], axis=0))

    best = special.softmax(np.append(optimize.minimize(loss, np.zeros(2), tol=1e-12).x, 0.0))
    np.testing.assert_allclose(stacking_weights(given), best, atol=1e-4)


def test_a_worse_chain_has_no_weight_and_equal_ones_share():
    given = np.random.default_rng(1).normal(size=(1, 50)).repeat(3, axis=0)
    given[2] -= 5
    np.testing.assert_allclose(stacking_weights(given), [0.5, 0.5, 0.0], atol=1e-6)


def test_no_finite_density_is_an_error_of_ours():
    with pytest.raises(DataError, match="finite"):
        stacking_weights(np.full((2, 3), -np.inf))


@pytest.fixture(scope="module")
def run():
    """Three chains, of which the last is spoilt: its rows are those of other rows."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 15)) + 0.1 * rng.normal(size=(30, 15))
    X[rng.random(X.shape) < 0.2] = np.nan
    good = sample(X, "GGGW", 2, chains=3, draws=40, keep="all", biases=True, random_state=0)
    good.draws["U"][2] = good.draws["U"][2][:, ::-1]
    return X, good


def test_a_spoilt_chain_is_left_out(run):
    X, posterior = run
    found = posterior.stacked(X)
    weights = found.settings["stacking"]
    assert weights[2] < 1e-3 and abs(sum(weights) - 1) < 1e-9
    assert "stacking: " in found.notes[-1] and len(found.notes) == len(posterior.notes) + 1
    seen = ~np.isnan(X)
    assert np.mean((found.mean - X)[seen] ** 2) < 0.1 * np.mean(X[seen] ** 2)
    U, V = found.predictors()
    np.testing.assert_allclose(found.mean, np.mean(U @ V.swapaxes(1, 2), axis=0))
    np.testing.assert_allclose(found.variance, np.var(U @ V.swapaxes(1, 2), axis=0, ddof=1))
    assert found.train_mse.shape == found.seconds.shape == found.draws["U"].shape[:2]


def test_it_is_saved_loaded_and_summarised_but_does_not_go_on(run, tmp_path):
    X, posterior = run
    found = posterior.stacked(X)
    found.save(tmp_path / "run.npz")
    again = Posterior.load(tmp_path / "run.npz")
    assert again.settings == found.settings and (again.mean == found.mean).all()
    assert again.summary(X).chains == 1
    for call in (
        lambda: found.more_draws(X, 3),
        lambda: sample(X, "GGGW", 2, init=found, biases=True, draws=3),
        lambda: found.stacked(X),
    ):
        with pytest.raises(ModelError):
            call()
