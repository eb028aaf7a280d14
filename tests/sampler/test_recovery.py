"""Data simulated from a model is predicted by that model, and the noise is found."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmf import ObservedMatrix, preset, sample
from bayesmf.metrics import r2
from bayesmf.streams import Stream, seed_words
from tests.exactness.added import ADDED
from tests.helpers.matrices import ALL_PRESETS

SHAPE, K, MISSING, SIGNAL_TO_NOISE = (100, 80), 5, 0.3, 10.0

# The defaults of these two hyperpriors give factors without a mean, so that single cells would
# decide R^2; the models are the same, with tails that have a variance.
LIGHTER_TAILS = {"GTTN": {"a": 4.0, "b": 4.0}, "PGGG": {"a_prime": 4.0}}
# Where there are no lighter tails, what such a prior is for stands in: factors with many zeros.
SPARSE = [name for name, own in ADDED.items() if own.heavy]


def simulate(name: str, seed: int):
    """Factors from the model's own prior; the (improper) volume prior's from its starting point."""
    rng = np.random.default_rng([seed, 11])
    model = preset(name, **LIGHTER_TAILS.get(name, {})).resolve(
        ObservedMatrix.of(np.ones(SHAPE)), K
    )
    stream, shared = Stream(seed_words(seed)), {}
    if model.shared_ard:
        shared["relevance"] = model.shared_ard.prior().draw(stream, (K,))
    U, _ = model.rows.draw(stream, SHAPE[0], K, shared)
    V, _ = model.cols.draw(stream, SHAPE[1], K, shared)
    if name in SPARSE:
        U, V = (rng.normal(size=F.shape) * (rng.random(F.shape) < 0.3) for F in (U, V))
    signal = U @ V.T
    held_out = rng.random(SHAPE) < MISSING
    if model.likelihood.name == "Poisson":
        return signal, rng.poisson(signal).astype(float), held_out, None
    tau = SIGNAL_TO_NOISE / signal.var()
    return signal, signal + rng.normal(size=SHAPE) / np.sqrt(tau), held_out, tau


def fit(name: str, X, held_out, seed: int):
    return sample(
        np.where(held_out, np.nan, X), name, K, draws=300, burn_in=300, keep=["U", "V"],
        random_state=seed, hyperparameters=LIGHTER_TAILS.get(name),
    )  # fmt: skip


@pytest.mark.parametrize("name", ALL_PRESETS)
def test_held_out_signal_and_noise_precision(name):
    signal, X, held_out, tau = simulate(name, seed=1)
    posterior = fit(name, X, held_out, seed=1)
    least = 0.9 if tau is None else 0.95
    assert r2(signal[held_out], posterior.mean[held_out]) > least
    for factors, nonnegative in zip("UV", posterior.model.nonnegative, strict=True):
        assert not nonnegative or (posterior.draws[factors] >= 0).all()
    if tau is not None:
        low, high = np.quantile(posterior.noise_precision, [0.025, 0.975])
        assert low <= tau <= high


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in ALL_PRESETS if not n.startswith("P")])
def test_noise_intervals_cover_as_often_as_they_say(name):
    """Forty data sets: a 95 % interval misses more than seven with a probability below 0.2 %."""
    missed = 0
    for seed in range(40):
        _, X, held_out, tau = simulate(name, seed)
        low, high = np.quantile(fit(name, X, held_out, seed).noise_precision, [0.025, 0.975])
        missed += not low <= tau <= high
    assert missed <= 7
