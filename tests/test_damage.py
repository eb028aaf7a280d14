"""Damaged files: never a wrong number, never an exception that is not ours."""

import shutil
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayesmf import Posterior, State, sample
from bayesmf._errors import BayesmfError, DataError
from bayesmf.sampler import checkpoints
from bayesmf.tasks.runner import run_all
from bayesmf.tasks.store import Store, Work
from tests.helpers.damage import damage, files

OPTIONS = {
    "model": "GGGA", "n_components": 2, "draws": 8, "burn_in": 3, "chains": 2, "keep": "all",
    "random_state": 0,
}  # fmt: skip
X = np.random.default_rng(0).normal(size=(5, 5))
X[2, 3] = np.nan
SEEDS = st.integers(0, 2**32 - 1)
FIELDS = ("mean", "variance", "U_mean", "V_mean", "train_mse")


class Stopped(Exception):
    """What a progress callable raises to end a run as a kill would."""


@dataclass(frozen=True)
class Square(Work):
    number: int


def squared(task):
    return {"square": task.number**2}


def assert_same(found, expected):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    assert set(found.draws) == set(expected.draws)
    for name, draws in expected.draws.items():
        np.testing.assert_array_equal(found.draws[name], draws, name)
    for one, other in zip(found.states, expected.states, strict=True):
        np.testing.assert_array_equal(one.U, other.U)
    assert found.settings == expected.settings and repr(found.model) == repr(expected.model)


@pytest.fixture(scope="module")
def expected():
    return sample(X, **OPTIONS)


@pytest.fixture(scope="module")
def originals(tmp_path_factory, expected):
    """One folder of each kind of store, undamaged."""
    root = tmp_path_factory.mktemp("originals")
    sample(X, store=root / "whole", **OPTIONS)

    def stop(event):
        if event.sweep == 7 and event.chain == 1:
            raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "_SECONDS", 0.0)  # a checkpoint after every sweep
        with pytest.raises(Stopped):
            sample(X, store=root / "half", progress=stop, **OPTIONS)
    for kind in ("npz", "nc"):
        (root / kind).mkdir()
        expected.save(root / kind / f"run.{kind}")
    (root / "state").mkdir()
    expected.states[0].save(root / "state" / "state.npz")
    run_all(squared, map(Square, range(4)), Store(root / "records"))
    return root


def outcome(path, call):
    """What a call returns, or None if it refuses with a sentence that names the path."""
    try:
        return call()
    except DataError as error:
        told = str(error)
    assert str(path) in told
    return None


def check_run(folder, expected):
    found = outcome(folder, lambda: sample(X, store=folder, **OPTIONS))
    if found is not None:
        assert_same(found, expected)
        assert not sample(X, store=folder, **OPTIONS).notes  # what was repaired is whole


def check_file(folder, expected):
    for path in files(folder):
        found = outcome(path, lambda path=path: Posterior.load(path))
        if found is not None:
            assert_same(found, expected)


def check_state(folder, expected):
    found = outcome(folder, lambda: State.load(folder / "state.npz"))
    for name, value in expected.states[0].to_arrays().items() if found else ():
        np.testing.assert_array_equal(found.to_arrays()[name], value, name)


def check_records(folder, expected):
    tasks, store = [Square(k) for k in range(4)], Store(folder)
    done = run_all(squared, tasks, store)
    assert done >= len(store.damaged)
    for task, record in store.records(tasks):
        assert record["result"] == squared(task)


CHECKS = {
    "whole": check_run, "half": check_run, "npz": check_file, "nc": check_file,
    "state": check_state, "records": check_records,
}  # fmt: skip


def check(kind, seed, originals, expected, folder):
    copy = folder / kind
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(originals / kind, copy)
    told = damage(copy, seed)
    try:
        CHECKS[kind](copy, expected)
    except BayesmfError as error:
        raise AssertionError(f"{told}: {error}") from error
    except Exception as error:
        error.add_note(told)
        raise


def settled(examples):
    """Settings for so many damages, always the same ones."""
    slack = [HealthCheck.function_scoped_fixture]
    return settings(max_examples=examples, deadline=None, derandomize=True, database=None,
                    suppress_health_check=slack)  # fmt: skip


@pytest.mark.parametrize("kind", CHECKS)
def test_damages_are_noticed(kind, originals, expected, tmp_path):
    @settled(5)
    @given(SEEDS)
    def some(seed):
        check(kind, seed, originals, expected, tmp_path)

    some()


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHECKS)
def test_many_damages_are_noticed(kind, originals, expected, tmp_path):
    @settled(90)
    @given(SEEDS)
    def many(seed):
        check(kind, seed, originals, expected, tmp_path)

    many()
