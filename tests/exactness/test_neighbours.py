"""Rows with the same data and the same factors are drawn independently of each other."""

import numpy as np
import pytest

from bayesmf import ObservedMatrix, Problem, preset
from bayesmf.kernels import counts, entries, nonnegative, poisson, rows
from bayesmf.likelihoods.base import CountData, Fit
from bayesmf.sampler.start import initial_state
from bayesmf.streams import Stream, seed_words
from tests.exactness.simulation import critical_value, rebuilt
from tests.helpers.verdicts import seeded

FAMILY_ERROR = 1e-4
TEST = "independent rows"
REPEATS, ROWS = 400, 6
BROKEN = {
    "GGG": (rows, "row"), "GGGU": (entries, "i"), "GEE": (rows, "row"), "PGG": (counts, "i"),
    "GEE, unfit": (nonnegative, "i + lane"), "PGG, whole": (poisson, "i"),
}  # fmt: skip
KINDS = {"PGG, whole": ("dense",)}  # rows of counts among empty columns are always split
CASES = [
    (name, kind)
    for name in ("GGG", "GLL", "GGGU", "GEE", "GEE, unfit", "PGG", "PGG, whole")
    for kind in KINDS.get(name, ("dense", "sparse"))
]


def equal_rows(kind):
    """Counts that are the same in every row; the sparse form has many empty columns besides."""
    X = np.tile([3.0, np.nan, 12.0, 1.0, 7.0], (ROWS, 1))
    if kind == "sparse":
        X = np.hstack([X, np.full((ROWS, 10), np.nan)])
    return ObservedMatrix.of(X)


def draws(name, kind):
    """The first factor of every row in repeated half-sweeps from one state (repeats, rows)."""
    problem = Problem.of(equal_rows(kind), preset(name.split(",")[0]), 2)
    state = initial_state(problem, "data", 0)
    state.U[:] = state.U[0]
    state.V[:] = np.random.default_rng(0).gamma(2.0, size=state.V.shape)
    if "unfit" in name:  # factors that cannot be told apart
        state.V[:] = state.V[:, :1]
    likelihood, found = problem.model.likelihood, []
    first = 32 if name == "PGG" else 39  # in every eighth sweep counts are split, however large
    for sweep in range(first, first + 8 * REPEATS, 8):
        now, stream = state.copy(), Stream(seed_words(seeded()), 0, sweep)
        working = likelihood.working(Fit(problem.X, now.U, now.V), now.noise, stream)
        if isinstance(working, CountData):  # factors follow from the split by draws of their own
            found.append(working.sums[0][:, 0])
            continue
        working.draw(problem.side(now, 0), stream)
        found.append(now.U[:, 0])
    return np.array(found)


def worst_score(x):
    """Largest correlation of neighbours, in standard errors."""
    pairs = zip(x.T[:-1], x.T[1:], strict=True)
    return max(abs(np.corrcoef(a, b)[0, 1]) for a, b in pairs) * np.sqrt(len(x))


LIMIT = critical_value(FAMILY_ERROR / len(CASES), ROWS - 1)


@pytest.mark.seeds
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_equal_rows_are_independent(name, kind, verdict):
    x = draws(name, kind)
    assert x.std(axis=0).min() > 0
    verdict(TEST, name, worst_score(x), LIMIT)


@pytest.mark.parametrize(("name", "kind"), [case for case in CASES if case[0] in BROKEN])
def test_a_stream_for_every_two_rows_is_noticed(name, kind, monkeypatch, verdict):
    module, row = BROKEN[name]
    right, wrong = (f"seed_stream(key, {one}, s)" for one in (row, f"({row}) // 2"))
    rebuilt(module, right, wrong)(monkeypatch)
    broken = f"{name}, {kind}: a stream for every two rows"
    verdict.rejects(TEST, broken, worst_score(draws(name, kind)) > LIMIT)
