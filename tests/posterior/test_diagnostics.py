"""Diagnostics, alignment, predictive distributions and their scores, against plain computations."""

import numpy as np
import pytest
from scipy import stats

from bayesmf import Gaussian, Poisson, metrics, preset, sample
from bayesmf._errors import DataError
from bayesmf.model.presets import PRESETS
from bayesmf.posterior import agreement, diagnostics
from bayesmf.posterior.alignment import invariance, rotations
from bayesmf.posterior.predictive import Predictive


def low_rank(seed=0, shape=(40, 30), noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1]))
    X += rng.normal(0, noise, shape)
    X[rng.random(shape) < 0.2] = np.nan
    return X


def counts(seed=0, shape=(40, 30)):
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(2.0, size=(shape[0], 2)) @ rng.gamma(2.0, size=(2, shape[1])))
    return np.where(rng.random(shape) < 0.2, np.nan, X)


# --- Convergence


def test_split_rhat_is_one_for_one_distribution_and_more_for_two():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(4, 500, 3))
    draws[0, :, 1] += 3.0
    draws[:, 250:, 2] += 3.0  # all chains drift alike: only halves tell
    found = agreement.split_rhat(draws)
    assert found[0] < 1.01 and (found[1:] > 1.3).all()


def test_split_rhat_against_the_definition():
    x = np.random.default_rng(1).normal(size=(3, 20))
    halves = np.vstack([x[:, :10], x[:, 10:]])
    within = np.mean([h.var(ddof=1) for h in halves])
    between = 10 * np.var([h.mean() for h in halves], ddof=1)
    expected = np.sqrt((0.9 * within + between / 10) / within)
    assert agreement.split_rhat(x[:, :, None])[0] == pytest.approx(expected)


def test_a_series_with_known_autocorrelation_has_its_effective_size():
    rng, rho = np.random.default_rng(2), 0.8
    draws = np.zeros((4, 5000))
    for t in range(1, 5000):
        draws[:, t] = rho * draws[:, t - 1] + rng.normal(size=4)
    found = diagnostics.diagnose("x", draws)
    assert found.ess_bulk == pytest.approx(20000 * (1 - rho) / (1 + rho), rel=0.15)
    assert found.mcse == pytest.approx(found.sd / found.ess_bulk**0.5, rel=0.1)
    assert found.rhat < 1.01


@pytest.mark.parametrize("name", ["GGG", "GGGA", "PGG"])
def test_summary_of_a_good_run_in_words(name):
    X = counts() if name == "PGG" else low_rank()
    posterior = sample(
        X, name, 2, draws=300, burn_in=200, chains=2, keep="all", random_state=0, n_jobs=2
    )
    summary = posterior.summary(X)
    assert summary.level == "fine" and summary.trusted, str(summary)
    assert "The results can be used." in str(summary) and summary.advice == ()
    assert summary.cell_rhat.shape == (1200,)
    assert posterior.summary(screen=100).cell_rhat.shape == (90,)
    names = [d.quantity for d in summary.quantities]
    assert "training error" in names and sum(n.startswith("cell") for n in names) == 20
    assert ("noise precision" in names) == (name != "PGG")
    assert ("relevance, 1. smallest" in names) == (name == "GGGA")


def test_summary_of_a_bad_run_names_the_reasons():
    posterior = sample(
        low_rank(), "GGG", 6, draws=5, burn_in=0, chains=2, keep=("U", "V"), init="prior",
        scale_move=False, random_state=0,
    )  # fmt: skip
    summary = posterior.summary()
    assert summary.level == "do not use" and not summary.trusted
    assert len(summary.advice) == 1 and "Chains disagree" in summary.advice[0]
    assert "R-hat" in summary.advice[0] and "draws of 20" in summary.advice[0]
    assert "Do not use" in str(summary)
    assert any("explains nothing" in text for text in posterior.summary(low_rank()).advice)


def test_summary_without_factors_diagnoses_the_rest():
    summary = sample(low_rank(), "GGG", 2, draws=50, burn_in=50, random_state=0).summary()
    assert summary.cell_rhat.size == 0
    assert [d.quantity for d in summary.quantities][:2] == ["training error", "noise precision"]


# --- Alignment


def test_what_the_factors_of_the_presets_may_do():
    kinds = {name: invariance(preset(name)) for name in PRESETS}
    assert kinds["GGG"] == kinds["GGGU"] == kinds["GGGW"] == kinds["GVG"] == "rotation"
    assert kinds["GGGA"] == kinds["GLL"] == kinds["GLLI"] == "signs and order"
    assert kinds["GEE"] == kinds["GEG"] == kinds["GVnG"] == kinds["PGG"] == "order"


@pytest.mark.parametrize("kind", ["rotation", "signs and order", "order"])
def test_scrambled_copies_are_brought_back(kind):
    rng = np.random.default_rng(3)
    U, V = rng.gamma(1.0, size=(25, 4)), rng.gamma(1.0, size=(30, 4)) * [4.0, 3.0, 2.0, 1.0]
    scrambled = []
    for _ in range(20):
        turn = np.eye(4)[rng.permutation(4)]
        if kind != "order":
            turn = turn * rng.choice([-1.0, 1.0], 4)
        if kind == "rotation":
            turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        scrambled.append((U @ turn, V @ turn))
    found = rotations(*(np.stack(side) for side in zip(*scrambled, strict=True)), kind)
    aligned = np.stack([u @ t for (u, _), t in zip(scrambled, found, strict=True)])
    np.testing.assert_allclose(aligned, np.broadcast_to(aligned[0], aligned.shape), atol=1e-8)
    np.testing.assert_allclose(
        found @ found.transpose(0, 2, 1), np.broadcast_to(np.eye(4), found.shape), atol=1e-12
    )


# --- Predictive distributions


def predictive(counts=False, D=400):
    rng = np.random.default_rng(4)
    U, V = rng.gamma(4.0, 0.5, (D, 7, 2)), rng.gamma(4.0, 0.5, (D, 5, 2))
    own = {} if counts else {"noise_precision": rng.gamma(5.0, 0.2, D)}
    likelihood = Poisson() if counts else Gaussian()
    return Predictive(likelihood, U, V, own, seed=(1,))


def test_moments_and_densities_of_a_mixture_of_normals():
    p = predictive()
    cells = np.array([1, 2, 6]), np.array([0, 3, 4])
    means, sd = p.means(cells), p.own["noise_precision"][:, None] ** -0.5
    np.testing.assert_allclose(p.mean()[cells], means.mean(axis=0))
    np.testing.assert_allclose(p.std()[cells], np.sqrt(means.var(axis=0, ddof=1) + np.mean(sd**2)))
    y = np.array([1.0, 2.0, 3.0])
    expected = np.log(stats.norm.pdf(y, means, sd).mean(axis=0))
    np.testing.assert_allclose(p.log_density(cells, y), expected)
    for level, q in zip([0.05, 0.5, 0.9], p.quantiles([0.05, 0.5, 0.9], cells), strict=True):
        np.testing.assert_allclose(stats.norm.cdf(q, means, sd).mean(axis=0), level, atol=0.02)


def test_moments_and_densities_of_a_mixture_of_counts():
    p = predictive(counts=True, D=2000)
    cells = np.array([1, 2, 6]), np.array([0, 3, 4])
    means = p.means(cells)
    variance = means.var(axis=0, ddof=1) + means.mean(axis=0)
    np.testing.assert_allclose(p.std(cells) ** 2, variance)
    y = np.array([1.0, 2.0, 30.0])
    expected = np.log(stats.poisson.pmf(y, means).mean(axis=0))
    np.testing.assert_allclose(p.log_density(cells, y), expected)
    low, high = p.quantiles([0.1, 0.9], cells)
    assert np.array_equal(low, np.round(low)) and np.array_equal(high, np.round(high))
    inside = stats.poisson.cdf(high, means) - stats.poisson.cdf(low - 1, means)
    assert (inside.mean(axis=0) > 0.77).all()


def test_blocks_do_not_matter(monkeypatch):
    p = predictive()
    whole = p.mean(), p.std(), p.quantiles([0.2])
    monkeypatch.setattr("bayesmf.posterior.predictive._NUMBERS", 900)
    for a, b in zip(whole, (p.mean(), p.std(), p.quantiles([0.2])), strict=True):
        np.testing.assert_allclose(a, b)


# --- Scores


def test_coverage_counts_both_ends():
    assert metrics.coverage([1.0, 2.0, 3.0], [1.0, 2.5, 0.0], [1.0, 3.0, 3.0]) == 2 / 3
    with pytest.raises(DataError, match="shape"):
        metrics.coverage([1.0, 2.0], [0.0], [1.0])


def test_crps_of_normal_draws_is_the_known_one():
    rng = np.random.default_rng(5)
    y = np.array([0.3, -1.2])
    draws = rng.normal(size=(200_000, 2))
    expected = y * (2 * stats.norm.cdf(y) - 1) + 2 * stats.norm.pdf(y) - np.pi**-0.5
    assert metrics.crps(y, draws) == pytest.approx(expected.mean(), abs=2e-3)
    few = [metrics.crps(y, rng.normal(size=(3, 2))) for _ in range(20_000)]
    assert np.mean(few) == pytest.approx(expected.mean(), abs=0.01)  # unbiased even so


@pytest.mark.parametrize("counts", [False, True])
def test_pit_is_uniform_for_calibrated_draws_and_not_for_others(counts):
    rng = np.random.default_rng(6)

    def draw(*size):
        return rng.poisson(2.0, size).astype(float) if counts else rng.normal(size=size)

    good = metrics.pit(draw(4000), draw(50, 4000))
    assert stats.kstest(good, "uniform").pvalue > 1e-3
    shifted = metrics.pit(draw(4000) + 1, draw(50, 4000))
    assert stats.kstest(shifted, "uniform").pvalue < 1e-6


def test_draws_of_the_wrong_shape_are_refused():
    with pytest.raises(DataError, match=r"\(draws, 2\)"):
        metrics.crps([1.0, 2.0], [[1.0], [2.0]])


def test_biases_that_were_not_kept_leave_the_cells_out():
    posterior = sample(
        low_rank(), "GGG", 2, draws=30, burn_in=30, random_state=0, biases=True, keep=("U", "V")
    )
    assert posterior.summary().cell_rhat.size == 0
