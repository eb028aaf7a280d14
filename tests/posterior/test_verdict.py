"""Whether a run can be used: good ones, stuck ones, and data that no model of theirs can fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesmf import BayesianMF, ConvergenceWarning, ModelError, sample
from bayesmf.posterior.agreement import settled_apart
from bayesmf.posterior.left_out import without_entry
from bayesmf.posterior.verdict import Evidence, judge

RUN = {"draws": 100, "burn_in": 100, "random_state": 0}


def low_rank(seed=0, shape=(40, 12), noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1]))
    X += rng.normal(0, noise, shape)
    X[rng.random(shape) < 0.2] = np.nan
    return X


@pytest.fixture(scope="module")
def good():
    X = low_rank()
    return sample(X, "GGGA", 2, chains=2, keep="all", **RUN), X


def changed(posterior, **draws):
    return replace(posterior, draws={**posterior.draws, **draws})


def test_a_good_run_is_fine(good):
    posterior, X = good
    summary = posterior.summary(X)
    assert (summary.level, summary.trusted, summary.advice) == ("fine", True, ())
    assert summary.verdict == "The results can be used."
    evidence = summary.evidence
    assert evidence.inflation < 0.005 and abs(evidence.coverage - 0.9) < 0.05
    assert evidence.outliers == 0 and evidence.useless < 0.5 and evidence.beyond < 2
    assert evidence.entries == np.sum(~np.isnan(X))
    alone = posterior.summary()
    assert alone.level == "fine" and alone.evidence.inflation == evidence.inflation
    assert alone.evidence.coverage is alone.evidence.useless is None


def test_chains_that_are_stuck_apart_are_not_used(good):
    posterior, X = good
    U = np.array(posterior.draws["U"])
    U[1] *= -1
    for data in (None, X):
        summary = changed(posterior, U=U).summary(data)
        assert summary.level == "do not use" and not summary.trusted
        assert summary.advice[0].startswith("Chains disagree: that adds ")
        assert summary.evidence.modes == ((0,), (1,))
        assert "there are 2 modes" in summary.advice[0] and "GGGW" in summary.advice[0]
        assert "until='converged'" not in summary.advice[0]  # it would not help
    right, wrong = summary.evidence.densities
    assert right > wrong + 1
    assert f"(1: {right:.3f}; 2: {wrong:.3f})" in summary.advice[0]
    assert (summary.cell_rhat > 1.1).mean() > 0.8


def test_chains_in_modes_are_told_from_chains_that_move():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(5, 200, 300))
    assert settled_apart(draws) == ()
    draws[[1, 4], :, :60] += 3.0
    assert settled_apart(draws) == ((0, 2, 3), (1, 4))
    assert settled_apart(draws[:1]) == settled_apart(draws[:, :50]) == ()
    draws[2, :, :60] += np.linspace(0, 3, 200)[:, None]  # on its way from one to the other
    assert settled_apart(draws) == ()


def test_chains_that_move_are_told_to_run_longer(good):
    posterior, X = good
    U = np.array(posterior.draws["U"])
    U[1] *= np.linspace(-1, 1, 100)[:, None, None]
    summary = changed(posterior, U=U).summary(X)
    assert summary.evidence.modes == () and len(summary.evidence.densities) == 2
    assert "until='converged'" in summary.advice[0] and "draws of 400" in summary.advice[0]


def test_chains_that_drift_together_are_noticed(good):
    posterior, _ = good
    U = np.array(posterior.draws["U"]) * np.linspace(1, 3, 100)[:, None, None]
    summary = changed(posterior, U=U).summary()
    assert summary.level != "fine" and "Chains disagree" in summary.advice[0]


def test_a_slow_hypervariable_condemns_nothing(good):
    posterior, X = good
    relevance = np.array(posterior.draws["relevance"]) * np.linspace(1, 100, 100)[:, None]
    relevance[1] *= 1e6
    summary = changed(posterior, relevance=relevance).summary(X)
    told = [d.rhat for d in summary.quantities if d.quantity.startswith("relevance")]
    assert min(told) > 1.5
    assert summary.level == "fine" and summary.advice == ()


def test_noise_that_is_too_small_is_not_used(good):
    posterior, X = good
    precision = 100 * np.array(posterior.draws["noise_precision"])
    summary = changed(posterior, noise_precision=precision).summary(X)
    assert summary.level == "do not use"
    assert any("of new entries: the noise is not" in text for text in summary.advice)


def test_tiny_values_are_not_used_unless_they_are_scaled():
    X = 3e-9 * np.exp(0.5 * low_rank(1))
    with pytest.warns(ConvergenceWarning, match="Use scale='auto'"):
        bad = BayesianMF("GGG", 2, center="none", scale="none", **RUN).fit(X)
    assert bad.summary().level == "do not use"
    assert any("use scale='auto', or another unit" in note for note in bad.notes_)
    assert BayesianMF("GGG", 2, **RUN).fit(X).summary().level == "fine"  # without a warning


def test_codes_of_missing_values_are_not_used():
    X = 5 + low_rank(2)
    X[np.random.default_rng(0).random(X.shape) < 0.02] = -999
    with pytest.warns(ConvergenceWarning, match="-999 occurs 10 times"):
        mf = BayesianMF("GGG", 2, **RUN).fit(X)
    assert mf.summary().level == "do not use"
    assert any(note.startswith("-999 occurs 10 times, far from all") for note in mf.notes_)
    clean = BayesianMF("GGG", 2, **RUN).fit(np.where(X == -999, np.nan, X))
    assert clean.summary().level == "fine" and not any("-999" in note for note in clean.notes_)


REASONS = {  # serious, mild, and what is said
    "inflation": (0.5, 0.02, "Chains disagree: that adds {:.1%} to"),
    "coverage": (0.5, 0.96, "90 % intervals would hold {:.0%} of new entries"),
    "outliers": (0.3, 0.01, "{:.2%} of the entries lie more than six standard deviations"),
    "useless": (5.0, 1.2, "a squared error of {:.3g} times the variance of the data"),
    "beyond": (100.0, 10.0, "Some cells are predicted {:.3g} times as far"),
}
NOTHING = Evidence(0.001, 1.0, 0.9, 0.0, 0.2, 2000)


@pytest.mark.parametrize("name", REASONS)
def test_each_reason_by_itself(name):
    serious, mild, text = REASONS[name]
    for value, expected in ((serious, "do not use"), (mild, "usable")):
        level, (advice,) = judge(NOTHING._replace(**{name: value}), 100, 0.2)
        assert level == expected and text.format(value) in advice


def test_the_worst_reasons_are_told():
    assert judge(NOTHING, 100, 0.2) == judge(Evidence(), 100, 0.2) == ("fine", [])
    level, advice = judge(NOTHING._replace(inflation=0.5, useless=5.0, beyond=10.0), 100, 0.2)
    assert level == "do not use" and len(advice) == 2
    assert "20.0% of the cells have an R-hat above its limit" in advice[0]


def test_coverage_of_few_entries_is_forgiven():
    few, many = (NOTHING._replace(coverage=0.83, entries=n) for n in (200, 2000))
    assert judge(few, 100, 0.0)[0] == "fine" and judge(many, 100, 0.0)[0] != "fine"


def test_running_until_results_are_fine(tmp_path):
    X = low_rank()
    options = {"draws": 60, "burn_in": 0, "random_state": 1}
    first = BayesianMF("GGG", 6, **options).fit(X)
    assert first.summary().level == "usable"
    mf = BayesianMF("GGG", 6, **options).fit(X, until="converged")
    settings = mf.posterior_.settings
    assert settings["thin"] in (2, 4, 8, 16) and settings["draws"] == 60
    assert mf.summary().level == "fine" or settings["thin"] == 16
    assert mf.posterior_.draws["U"].shape == first.posterior_.draws["U"].shape
    for _ in range(2):  # made again, it is read from the folder
        stored = BayesianMF("GGG", 6, store=tmp_path / "run", **options).fit(X, until="converged")
        np.testing.assert_array_equal(stored.predict(), mf.predict())


def test_running_on_ends_at_the_budget_and_does_nothing_when_all_is_fine():
    X, options = low_rank(), {"draws": 20, "burn_in": 0, "random_state": 0}
    mf = BayesianMF("GGG", 8, **options).fit(X, until="converged")  # 20 draws say little for ever
    assert mf.posterior_.settings["thin"] == 16 and mf.summary().level == "usable"
    fine, again = (BayesianMF("GGG", 2, **RUN).fit(X, until=u) for u in (None, "converged"))
    assert again.posterior_.settings["thin"] == 1
    np.testing.assert_array_equal(again.predict(), fine.predict())
    with pytest.raises(ModelError, match="until must be None or 'converged'"):
        BayesianMF("GGG", 2).fit(X, until="fine")


def test_an_entry_that_some_draws_rule_out_leaves_finite_weights():
    density = np.array([[-np.inf, -np.inf], [0.0, -np.inf], [0.0, -np.inf]])
    weights = without_entry(density)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)
    assert weights[0, 0] > 0.3


@pytest.mark.parametrize("first", [0, 1, 10])
def test_categories_are_judged_by_their_values(first):
    rng = np.random.default_rng(3)
    latent = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 10)) + rng.normal(size=(40, 10))
    stars = first + np.digitize(latent, [-1.0, 0.0, 1.0]).astype(float)
    mf = BayesianMF("OGGA", 2, biases=True, **RUN).fit(stars)
    assert abs(mf.summary().evidence.coverage - 0.9) < 0.06


def test_without_the_factors_nothing_is_said_to_be_fine(good):
    summary = sample(good[1], "GGGA", 2, chains=2, **RUN).summary()
    assert summary.level == "usable" and "were not kept" in summary.advice[0]
