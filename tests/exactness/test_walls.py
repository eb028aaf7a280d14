"""Rows that move between walls: the law they keep, the path, what makes a row unfit."""

import inspect

import numpy as np
import pytest

from bayesmf.kernels import entries, linalg, random, walls
from bayesmf.kernels.vectors import LANES
from bayesmf.streams import Stream, seed_words
from bayesmf.updates.blocks import relaxation
from tests.exactness.cdfs import ks, truncated_cdf
from tests.exactness.draws import fill, kinds
from tests.helpers import reference

LEVEL = 1e-6
TIME = relaxation(Stream(seed_words(0), sweep=2)).time
COVARIANCE = np.array([[1.0, -0.8, 0.3], [-0.8, 1.5, 0.2], [0.3, 0.2, 0.8]])
MEANS = {"far above": (8.0, 9.0, 7.0), "near": (0.3, 0.6, 0.1), "below": (-0.5, 1.0, -1.0)}


def moved(x, precision, linear, time=TIME, spread=1.0, seed=0):
    """Rows x (n, K) after one move each, with one stream; and whether they were fit for it."""
    K, s = x.shape[1], np.empty(4, np.uint64)
    random.seed_stream(Stream(seed_words(seed)).key(), 0, s)
    work, out = walls.single_workspace(K), x.copy()
    fit = [walls.move_row(s, i, out, precision, linear, spread, time, work) for i in range(len(x))]
    return out, np.array(fit)


def moved_alone(x, p, b, seed=0, move=entries.move_entry):
    """Entries x (n, 1) after one move each, as those of crowded rows, with one stream."""
    s = np.empty(4, np.uint64)
    random.seed_stream(Stream(seed_words(seed)).key(), 0, s)
    return np.array([[move(s, old, p, b, TIME)] for old in x[:, 0]])


def changed(line, wrong):
    """The motion of one entry with a line changed."""
    source = inspect.getsource(entries.move_entry.py_func)
    assert line in source
    found = dict(vars(entries))
    exec(source.replace(line, wrong), found)
    return lambda x: moved_alone(x, 1.0, 1.0, move=found["move_entry"])


def swung(x, v, mean, S, angle):
    """The kernel's own motion of one row, in all lanes alike: position and velocity at the end."""
    x, v, mean = (np.tile(np.array(a, float)[:, None], LANES) for a in (x, v, mean))
    left = np.full(LANES, np.tan(angle / 2))
    walls.swing(x, v, mean, np.tile(S[:, :, None], LANES), left, np.zeros(LANES))
    assert (left == 0).all() and (x == x[:, :1]).all() and (v == v[:, :1]).all()
    return x[:, 0], v[:, 0]


def truncated_normals(rng, mean, n):
    """Independent draws of N(mean, COVARIANCE) on x >= 0, by rejection."""
    x = rng.multivariate_normal(mean, COVARIANCE, size=200 * n)
    return x[(x >= 0).all(axis=1)][:n]


@pytest.mark.seeds
@pytest.mark.parametrize("p", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("ratio", [-3.0, 0.0, 0.3, 1.0, 3.0, 12.0])
def test_an_entry_stays_truncated_normal(ratio, p, verdict):
    """And goes to the other side of a mean that is far from zero."""
    b = ratio * np.sqrt(p)
    old = fill(kinds.TRUNCATED, b, p)[:20_000, None]
    new, fit = moved(old, np.array([[p]]), np.array([b]))
    alone = moved_alone(old, p, b)
    assert fit.all() and new.min() >= 0 and alone.min() >= 0
    for x, name in ((new, "moved"), (alone, "moved alone")):
        found = ks(x[:, 0], truncated_cdf(p, b))
        verdict("distributions", f"truncated normal, {name}", found, LEVEL, at_least=True)
        if ratio > 2:
            assert np.corrcoef(old[:, 0], x[:, 0])[0, 1] < -0.4
    if ratio > 0:  # the same path
        np.testing.assert_allclose(alone, new, rtol=1e-9, atol=1e-9 * np.std(old))


@pytest.mark.parametrize("place", MEANS)
@pytest.mark.parametrize("spread", [1.0, 0.01])
def test_rows_stay_truncated_normal(place, spread, verdict):
    """Means, spreads and products of rows before and after, whose differences would show."""
    rng, mean = np.random.default_rng(0), np.array(MEANS[place])
    old = truncated_normals(rng, mean, 20_000)
    precision = np.linalg.inv(COVARIANCE)
    new, fit = moved(spread * old, precision, precision @ mean * spread, spread=spread)
    assert fit.all()
    worst = 0.0
    for f in (lambda x: x, lambda x: x**2, lambda x: x * np.roll(x, 1, axis=1), np.sqrt):
        gap = f(new / spread) - f(old)
        worst = max(worst, np.max(np.abs(gap.mean(axis=0)) / gap.std(axis=0)) * np.sqrt(len(old)))
    verdict("distributions", "truncated normal rows, moved", worst, 5.0)


@pytest.mark.parametrize("place", MEANS)
@pytest.mark.parametrize("seed", range(5))
def test_the_path_is_that_of_sines_and_can_be_reversed(place, seed):
    rng, mean = np.random.default_rng(seed), np.array(MEANS[place])
    x = truncated_normals(rng, mean, 10)[seed]
    v = np.linalg.cholesky(COVARIANCE) @ rng.normal(size=3)
    angle = 2 * np.arctan(TIME)
    end, speed = swung(x, v, mean, COVARIANCE, angle)
    plain = reference.swing(x.copy(), v.copy(), mean, COVARIANCE, angle)
    np.testing.assert_allclose(end, plain, rtol=1e-9, atol=1e-9)
    back, rest = swung(end, -speed, mean, COVARIANCE, angle)
    np.testing.assert_allclose(back, x, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(rest, -v, rtol=1e-8, atol=1e-8)


def test_without_walls_a_row_becomes_what_a_real_valued_one_becomes():
    stay, spread = relaxation(Stream(seed_words(0), sweep=2))
    mean, x, v = np.full(3, 50.0), np.array([50.5, 49.0, 51.0]), np.array([0.3, -1.0, 0.4])
    end, _ = swung(x, v, mean, COVARIANCE, 2 * np.arctan(TIME))
    np.testing.assert_allclose(end, mean + stay * (x - mean) + spread * v, rtol=1e-13)


def test_covariances_are_the_inverse_of_precisions():
    precision, (L, floor, *_, (S, *_, state)) = np.linalg.inv(COVARIANCE), walls.single_workspace(3)
    L[:3, :3] = precision[:, :, None]
    linalg.cholesky(L, floor)
    walls.prepare_motion(L, floor, S, state)
    for lane in range(LANES):
        T = np.tril(L[:3, :3, lane])
        np.testing.assert_allclose(S[:, :, lane], COVARIANCE, rtol=1e-13)
        np.testing.assert_allclose(T.T @ T, COVARIANCE, rtol=1e-13)


@pytest.mark.parametrize("x", [0.0, 1e-9, 1.0, 1e6])
def test_what_makes_a_row_unfit_is_not_the_row(x):
    rows, diagonal = np.full((4, 2), x), np.diag([1.0, 2.0])
    same = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-9]])
    for precision, linear, fit in (
        (diagonal, [1.0, 1.0], True),
        (diagonal, [-3.0, 1.0], True),
        (diagonal, [-9.0, 1.0], False),  # nine deviations below zero
        (same, [1.0, 1.0], False),
        (np.zeros((2, 2)), [-1.0, -1.0], False),
        (1e-30 * diagonal, [1e-15, 1e-15], True),
    ):
        new, found = moved(rows, precision, np.array(linear))
        assert (found == fit).all()
        assert fit or (new == rows).all()


@pytest.mark.parametrize(("factors", "fit"), [(16, True), (17, False)])
def test_a_row_of_many_factors_that_are_alike_is_unfit(factors, fit):
    """Its deviations add up to some 9,000 times the room that it has between the walls."""
    precision, rows = 1.0 + 1e-3 * np.eye(factors), np.full((4, factors), 0.05)
    new, found = moved(rows, precision, np.ones(factors))
    assert (found == fit).all()
    assert fit or (new == rows).all()


def test_a_row_that_is_bound_for_its_wall_at_once_turns_back():
    x, v = np.array([0.0, 1.0, 0.0]), np.array([-1.0, 0.2, -0.5])
    end, _ = swung(x, v, np.array([1.0, 1.0, -0.1]), COVARIANCE, 2 * np.arctan(TIME))
    assert np.isfinite(end).all() and (end >= 0).all()


BROKEN = {
    "another mean": lambda x: moved(x, np.eye(1), np.array([0.9])),
    "another precision": lambda x: moved(x, 1.1 * np.eye(1), np.array([1.1])),
    "another spread": lambda x: moved(x, np.eye(1), np.array([1.0]), spread=0.95),
    "alone: not turned back": changed("turn * (root + left", "turn * (root - left"),
    "alone: for too short after the wall": changed("turn = 2.0 * left", "turn = 1.5 * left"),
    "alone: velocities too small": changed("normal(s) /", "0.9 * normal(s) /"),
    "alone: afresh where it is small": changed("if not b > 0.0:", "if not b > 0.0 or x < 0.5:"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_motion_is_noticed(name, verdict):
    x = fill(kinds.TRUNCATED, 1.0, 1.0)[:20_000, None]
    for _ in range(3):
        found = BROKEN[name](x)
        x = found[0] if isinstance(found, tuple) else found
    found = ks(x[:, 0], truncated_cdf(1.0, 1.0))
    verdict.rejects("distributions", f"truncated normal, moved: {name}", found < LEVEL, f"{found}")
