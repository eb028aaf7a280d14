"""Rows with the same data and the same factors are drawn independently of each other."""

import numpy as np
import pytest

from bayesmf import ObservedMatrix, Problem, preset
from bayesmf.kernels import counts, entries, nonnegative, rows
from bayesmf.likelihoods.base import CountData, Fit
from bayesmf.sampler.start import initial_state
from bayesmf.streams import Stream, seed_words
from tests.exactness.simulation import critical_value, rebuilt
from tests.helpers.verdicts import seeded

FAMILY_ERROR = 1e-4
TEST = "independent rows"
REPEATS, ROWS = 400, 6
BROKEN = {rows: "GGG", entries: "GGGU", nonnegative: "GEE", counts: "PGG"}
CASES = [
    (name, kind) for name in ("GGG", "GLL", "GGGU", "GEE", "PGG") for kind in ("dense", "sparse")
]


def equal_rows(kind):
    """Counts that are the same in every row; the sparse form has many empty columns besides."""
    X = np.tile([3.0, np.nan, 12.0, 1.0, 7.0], (ROWS, 1))
    if kind == "sparse":
        X = np.hstack([X, np.full((ROWS, 10), np.nan)])
    return ObservedMatrix.of(X)


def draws(name, kind):
    """The first factor of every row in repeated half-sweeps from one state (repeats, rows).

    Their numbers are those of sweeps that draw; mirrored, equal rows would stay equal.
    """
    problem = Problem.of(equal_rows(kind), preset(name), 2)
    state = initial_state(problem, "data", 0)
    state.U[:] = state.U[0]
    likelihood, found = problem.model.likelihood, []
    for sweep in range(0, 8 * REPEATS, 8):
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


@pytest.mark.parametrize("module", BROKEN, ids=lambda module: module.__name__.split(".")[-1])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_stream_for_every_two_rows_is_noticed(module, kind, monkeypatch, verdict):
    row = "row" if module is rows else "i"
    rebuilt(module, f"seed_stream(key, {row}, s)", f"seed_stream(key, {row} // 2, s)")(monkeypatch)
    broken = f"{module.__name__.split('.')[-1]}, {kind}: a stream for every two rows"
    verdict.rejects(TEST, broken, worst_score(draws(BROKEN[module], kind)) > LIMIT)
