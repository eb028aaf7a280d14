"""Rows of counts that are drawn whole: the surrogate, the ratio that accepts it, whole chains."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from bayesmf import ObservedMatrix, sample
from bayesmf.kernels import poisson
from bayesmf.kernels.vectors import in_vectors
from bayesmf.likelihoods import counts
from bayesmf.streams import Stream, seed_words
from tests.exactness.cases import CASES, DATA, LIKELIHOODS
from tests.exactness.ratios import Setup, moved_entries, some_rows, with_factors
from tests.exactness.simulation import geweke, judge, rebuilt

RATIOS, JOINT = "conditional ratios", "joint distribution"
NAMES = ("PGG", "PGGG", "PGG changed", "PGG-negbin", "PGGG-negbin")
CHAINS = {"chains": 100, "length": 25, "family_error": 1e-5}


@pytest.fixture
def whole(monkeypatch):
    """Rows are drawn whole in two sweeps of three, however small their counts are."""
    for name, value in {"_LARGE": 0, "_LONG": 0, "_SPLIT_FIRST": 0, "_SPLIT_EVERY": 3}.items():
        monkeypatch.setattr(counts, name, value)


def row(s: Setup, index: int, i: int):
    """What the kernel has of row i: factors in vectors, counts, exposures, prior's shape, rate."""
    side = s.problem.side(s.state, index)
    part = slice(side.view.indptr[i], side.view.indptr[i + 1])
    F = in_vectors(side.V)[side.view.indices[part]]
    exposures = np.ones(len(F))
    if s.work.exposures is not None:
        exposures = s.work.exposures[index][part]
    shape, rate = side.prior.gamma_terms(side.values, side.rank)
    own = shape[i % len(shape)], rate[i % len(rate)]
    return F, len(F), side.view.values[part], exposures, *own


def padded(x: np.ndarray, F: np.ndarray) -> np.ndarray:
    out = np.zeros(F.shape[1])
    out[: x.size] = x
    return out


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", NAMES)
def test_the_gain_is_that_of_the_joint_density(name, data, verdict):
    s = Setup({**CASES, **LIKELIHOODS}[name], DATA[data])
    for index in (0, 1):
        side = s.problem.side(s.state, index)
        for i in some_rows(side.view.n):
            X = side.U.copy()
            X[i] = moved_entries(s, X[i], True)
            own = row(s, index, i)
            x, y = padded(side.U[i], own[0]), padded(X[i], own[0])
            gain = poisson.log_density_gain(*own, x, y, np.empty((3, own[1])))
            s.compare(s.state, with_factors(s.state, index, X), gain, latent=s.latent)
    verdict(RATIOS, f"{name}, rows drawn whole", max(s.gaps), 1e-9)


def surrogate(own, steps=2):
    """Precision matrix and linear term of the surrogate of a row."""
    F, n, r, exposures, shape, rate = own
    K, w = shape.size, F.shape[1]
    G, A, diagonal, h = np.zeros((-(-K // 4) * 4, w)), np.zeros((K, w)), np.zeros(K), np.zeros(w)
    order, scaled = np.arange(n, dtype=np.int32), np.empty((n, w))
    poisson.set_surrogate(
        F, n, r, exposures, rate, steps, np.empty((3, n)), order, scaled, G, A, diagonal, h
    )
    assert not np.diag(A).any() and not A[:, K:].any() and not h[K:].any()
    return A, diagonal, h


@pytest.mark.parametrize("fit", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_proposals_are_from_the_surrogate_and_reversible(name, fit):
    """Between the walls, or by passes over the entries, forwards and backwards by turns."""
    s = Setup({**CASES, **LIKELIHOODS}[name], DATA["dense, K = 3"])
    own, K = row(s, 0, 0), 3
    A, diagonal, h = surrogate(own)
    whole = A[:, :K] + np.diag(diagonal)
    Y = padded(s.state.U[0], own[0])[None]
    begin, visited, order = Y[0, :K].copy(), [], [*range(K), *reversed(range(K))] * 2

    def move_row(_, i, rows, precision, linear, spread, time, work):
        np.testing.assert_allclose(precision[:, :K], whole)
        assert (linear == h).all() and spread == 1.0 and time == 2.4
        if fit:
            rows[i, :K] = s.rng.gamma(2.0, size=K)
        return fit

    def draw_entry(_, root, b, spread):
        k = order[len(visited)]
        others = np.delete(np.arange(K), k)
        assert root**2 == pytest.approx(whole[k, k]) and spread == 1.0
        expected = h[k] - whole[k, others] @ Y[0, :K][others]
        assert b == pytest.approx(expected, rel=1e-9, abs=1e-9)
        visited.append(k)
        return s.rng.gamma(2.0)

    with mock.patch.multiple(poisson, draw_entry=draw_entry, move_row=move_row):
        gain = poisson.propose.py_func(None, Y, A, diagonal, h, np.zeros_like(h), 2.4, None)
    assert visited == [] if fit else order
    assert not np.diag(A).any()
    form = [float(h[:K] @ z - 0.5 * z @ whole @ z) for z in (begin, Y[0, :K])]
    assert gain == pytest.approx(form[1] - form[0], rel=1e-9, abs=1e-8)


def test_the_surrogate_has_the_slope_of_the_log_density_at_large_counts():
    """And proposals from it are nearly always accepted."""
    rng = np.random.default_rng(0)
    F = in_vectors(rng.gamma(2.0, 1.0, (60, 3)))
    x = np.array([20.0, 35.0, 10.0])
    r = rng.poisson(F[:, :3] @ x).astype(float)
    own = F, 60, r, np.ones(60), np.ones(3), np.full(3, 0.1)
    A, diagonal, h = surrogate(own)
    whole = A[:, :3] + np.diag(diagonal)
    mode = np.linalg.solve(whole, h[:3])
    slope = F[:, :3].T @ (r / (F[:, :3] @ mode) - 1) - 0.1
    assert np.abs(slope / np.sqrt(diagonal)).max() < 0.05
    near = mode + 0.5 * np.linalg.solve(np.linalg.cholesky(whole).T, rng.normal(size=3))
    gain = poisson.log_density_gain(*own, padded(mode, F), padded(near, F), np.empty((3, 60)))
    change = h[:3] @ (near - mode) - 0.5 * (near @ whole @ near - mode @ whole @ mode)
    assert gain == pytest.approx(change, abs=0.05)


@pytest.mark.seeds
@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize("mask", ["dense", "sparse"])
@pytest.mark.parametrize("name", ["PGG", "PGGG", "PGG-negbin"])
def test_sweeps_keep_the_joint_distribution(name, mask, verdict):
    result = geweke(name, mask, True, **CHAINS)
    judge(verdict, JOINT, f"{name}, rows drawn whole", result)


BROKEN = {
    "the surrogate left out of the ratio": ("gain - surrogate >=", "gain >="),
    "always accepted": ("gain - surrogate >= -exponential(s)", "gain == gain"),
    "the prior's rate left out of the gain": ("gain -= rate[k] *", "gain -= 0.0 *"),
    "the prior's shape left out of the gain": ("(shape[k] - 1.0) *", "0.0 *"),
}


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_sampler_is_rejected(name, monkeypatch, verdict):
    rebuilt(poisson, *BROKEN[name])(monkeypatch)
    result = geweke("PGG", "dense", False, **CHAINS)
    verdict.rejects(JOINT, f"rows of counts drawn whole: {name}", result.rejected, str(result))


def test_exposures_belong_to_the_gain(monkeypatch, whole, verdict):
    right = counts.LargeCounts.draw
    monkeypatch.setattr(
        counts.LargeCounts, "draw",
        lambda self, side, stream, beside=None: right(replace(self, exposures=None), side, stream),
    )  # fmt: skip
    result = geweke("PGG-negbin", "dense", False, **CHAINS)
    name = "rows of counts drawn whole: exposures left out"
    verdict.rejects(JOINT, name, result.rejected, str(result))


@pytest.mark.parametrize("name", ["PGG", "PGGG", "NGG"])
def test_draws_do_not_depend_on_threads_or_stops(name):
    rng = np.random.default_rng(0)
    R = rng.poisson(rng.gamma(2.0, 1.0, (60, 2)) @ rng.gamma(2.0, 1.0, (2, 50))).astype(float)
    R[rng.random(R.shape) < 0.3] = np.nan
    X = ObservedMatrix.of(R)
    assert counts.are_large(X, 3)
    options = {"chains": 2, "keep": "all", "random_state": 3, "scale_move": False}
    one, two = (sample(X, name, 3, burn_in=35, draws=20, n_jobs=n, **options) for n in (1, 4))
    np.testing.assert_array_equal(one.draws["U"], two.draws["U"])
    first = sample(X, name, 3, burn_in=30, draws=7, **options)
    rest = sample(X, name, 3, burn_in=0, draws=18, **options, init=first)
    np.testing.assert_array_equal(rest.draws["V"], one.draws["V"][:, 2:])
    still = np.all(one.draws["U"][:, 1:] == one.draws["U"][:, :-1], axis=3)
    assert 0 < still.mean() < 0.5  # some rows are rejected, most are not


def test_small_counts_and_short_rows_are_split():
    s = Setup(CASES["PGG"], DATA["dense, K = 3"])
    assert not counts.are_large(ObservedMatrix.of(np.minimum(s.X.to_array(), 1)), 1)
    tall = ObservedMatrix.of(1000 * s.X.to_array())
    assert not counts.are_large(tall, 6)  # rows of eleven entries
    assert counts.are_large(tall, 1)
    fit = mock.Mock(X=tall, U=np.ones((8, 1)), V=np.ones((11, 1)))
    kinds = [
        type(counts.Poisson().working(fit, {}, Stream(seed_words(0), 0, sweep)))
        for sweep in (1, 30, 31, 39, 40)
    ]
    split, large = counts.CountData, counts.LargeCounts
    assert kinds == [split, split, large, large, split]
