"""A matrix that is spread over shards: its sweeps draw what those of the whole matrix draw."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmf.data import shards
from bayesmf.likelihoods import ordinal
from bayesmf.sampler.sweep import sweep
from bayesmf.updates import normal
from tests.helpers.shards import CASES, after, data, on_threads, problem

SPARSE, DENSE = 0.3, 0.8


def check(name, observed, sizes):
    whole, state, sweeps = problem(name, observed)
    alone = after(sweep, whole, state, sweeps)
    for size in sizes:
        for found in on_threads(whole, state, sweeps, size):
            differ = [k for k in alone if not np.array_equal(found[k], alone[k])]
            assert not differ, (name, observed, size, differ)


@pytest.mark.parametrize("name", CASES)
def test_shards_draw_what_one_process_draws(name, monkeypatch):
    monkeypatch.setattr(ordinal, "_PIECE", 100)  # pieces that begin in one shard and end in another
    check(name, SPARSE, [3])
    if name in ("GGGW", "PGG", "ordinal"):
        check(name, DENSE, [3])


def test_shards_agree_whether_rows_are_crowded(monkeypatch):
    """Each sees some of the rows that decide it."""
    answers, right = set(), normal._are_crowded

    def noted(*args):
        answer = right(*args)
        answers.add(answer)
        return answer

    monkeypatch.setattr(normal, "MANY", 1)
    monkeypatch.setattr(normal, "WIDE", 2.0)
    monkeypatch.setattr(normal, "_are_crowded", noted)
    check("GEE", SPARSE, [3])
    assert answers == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize("observed", [SPARSE, DENSE, 1.0])
@pytest.mark.parametrize("name", CASES)
def test_any_number_of_shards_draws_the_same(name, observed, monkeypatch):
    monkeypatch.setattr(ordinal, "_PIECE", 100)
    check(name, observed, [1, 2, 4, 7, 50])


def test_a_shard_holds_its_own_entries_and_no_others():
    X = data("real", SPARSE)
    cuts = [shards.cuts(view, 4, 3) for view in (X.rows, X.cols)]
    held = [shards.shard_of(X, cuts, number) for number in range(4)]
    for axis in ("rows", "cols"):
        whole = getattr(X, axis)
        parts = [getattr(shard, axis) for shard in held]
        assert np.array_equal(np.concatenate([part.values for part in parts]), whole.values)
        assert np.array_equal(np.concatenate([part.indices for part in parts]), whole.indices)
        assert np.array_equal(sum(np.diff(part.indptr) for part in parts), whole.counts)
    sizes = [shard.rows.values.size for shard in held]
    assert max(sizes) < 0.35 * X.n_observed
