"""The automatic rank and noise: what entries that are held out make of them."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmf import BayesianMF, ModelError, ObservedMatrix
from bayesmf.model.presets import as_model
from bayesmf.ranks import _Losses, _smallest, automatic

SHORT = {"draws": 5, "burn_in": 5, "chains": 1, "random_state": 0}


def factors(rank, shape=(60, 40), noisy_rows=0.0, seed=0):
    """Strong factors, of unit variance, and noise that may differ from row to row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    X += 0.3 * np.exp(noisy_rows * rng.normal(size=(shape[0], 1))) * rng.normal(size=shape)
    X[rng.random(shape) < 0.2] = np.nan
    return ObservedMatrix.of(X / np.nanstd(X))


def noises(*kinds):
    return {noise: as_model("GGGW", None, True, noise) for noise in kinds}


@pytest.fixture
def quick(monkeypatch):
    """Short chains, where it does not matter what they find."""
    for name in ("_BURN_IN", "_DRAWS"):
        monkeypatch.setattr(f"bayesmf.ranks.{name}", 10)


@pytest.mark.parametrize(
    ("rank", "tried"),
    [(3, [2, 3, 5, 8, 12, 20]), (8, [5, 6, 7, 8, 12, 20]), (10, [8, 9, 10, 12, 20, 30])],
)
def test_the_rank_of_strong_factors_is_found(rank, tried):
    choice = automatic(factors(rank), {"": as_model("GGG", None)}, random_state=0)
    assert (choice.model, choice.rank, choice.others) == ("", rank, {})
    assert min(choice.errors, key=choice.errors.get) == rank
    assert sorted(choice.errors) == sorted(tried)  # no more than is needed, and between two steps
    below = max(k for k in choice.errors if k < rank)
    assert choice.errors[below] > 2 * choice.errors[rank]
    words = f"Chosen by entries held out: rank {rank} (errors by rank {min(tried)}: "
    assert str(choice).startswith(words)


def test_a_given_rank_is_kept_when_the_noise_is_chosen():
    for noisy, expected in ((1.5, "both"), (0.0, "cols")):
        X = factors(3, (40, 35), noisy, seed=1)
        choice = automatic(X, noises("cols", "both"), 3, random_state=1)
        assert (choice.rank, choice.model, choice.errors) == (3, expected, {})
        assert set(choice.others) == {"cols", "both"}
    mf = BayesianMF(n_components=2, **SHORT).fit(factors(3, (12, 9)).to_array())
    assert mf.n_components_ == 2 and mf.rank_errors_ == {}


def test_the_same_seed_makes_the_same_choice_for_any_threads(quick):
    X, models = factors(2, (20, 6)), {"": as_model("GGG", None)}
    one, two = (automatic(X, models, random_state=3, n_jobs=n) for n in (1, 2))
    assert one == two
    assert automatic(X, models, random_state=4).errors != one.errors


def test_a_rank_that_is_no_number_is_refused():
    X = factors(1, (8, 5)).to_array()
    for wanted in (0, 2.5, -1):
        with pytest.raises(ModelError, match="n_components"):
            BayesianMF(n_components=wanted, **SHORT).fit(X)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (2, 2), (1, 9), (9, 1), (3, 4)])
@pytest.mark.parametrize("model", ["auto", "GEE"])
def test_small_matrices_have_an_automatic_rank(quick, shape, model):
    X = 1 + np.arange(float(np.prod(shape))).reshape(shape) % 7
    mf = BayesianMF(model, **SHORT).fit(X)
    assert 1 <= mf.n_components_ <= min(shape)
    assert np.isfinite(mf.predict(return_std=True)).all()


def test_entries_that_are_alone_are_not_held_out(quick):
    X = np.full((6, 6), np.nan)
    X[np.arange(6), np.arange(6)] = np.arange(6.0)
    X[0] = np.arange(6.0)  # every column but the first has an entry that nobody can spare
    mf = BayesianMF("GGG", **SHORT).fit(X)
    assert np.isfinite(mf.predict()).all()


@pytest.mark.parametrize(("entries", "found"), [(100, 2), (100_000, 4)])
def test_a_gain_that_may_be_chance_buys_no_factors(entries, found):
    """Rank 4 is better by two percent: less than one standard error of few entries."""
    rng = np.random.default_rng(0)
    common, chance = rng.chisquare(1, entries), rng.normal(0, 0.5, (9, entries))
    chance -= chance.mean(axis=1, keepdims=True)

    def squares(rank):
        mean = 3.0 if rank == 1 else 1.0 if rank == 4 else 1.02
        return mean * common / common.mean() + chance[rank]

    losses = _Losses(squares)
    for rank in (1, 2, 3, 4, 5, 8):
        losses.error(rank)
    assert _smallest(losses) == found
    assert losses.best == 4
