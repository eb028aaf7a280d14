"""Reproducibility: threads, input type, interruption; and what a state is."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from itertools import islice

import numpy as np
import pytest
import scipy.sparse

from bayesmf import ModelError, ObservedMatrix, Problem, State, _threads, chain, preset, sample
from bayesmf.sampler.start import initial_state
from bayesmf.sampler.sweep import sweep
from tests.helpers.matrices import ALL_PRESETS, models, small_matrix


def assert_same_state(a: State, b: State) -> None:
    left, right = a.variables(), b.variables()
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)
    assert a.error == b.error


def run(problem: Problem, n: int, state: State | None = None) -> State:
    return list(islice(chain(problem, random_state=5, state=state), n))[-1]


@pytest.fixture(scope="module", params=[0.25, 0.8], ids=["sparse", "dense"])
def wide(request):
    """Large enough that the work is really cut into several blocks."""
    return ObservedMatrix.of(small_matrix(request.param, (260, 190), seed=3))


@pytest.mark.parametrize("model", models())
def test_draws_do_not_depend_on_threads(model, wide):
    states = [run(Problem.of(wide, model, 6, threads=t), 4) for t in (1, 2, 4)]
    assert_same_state(states[0], states[1])
    assert_same_state(states[0], states[2])


@pytest.mark.parametrize("model", models())
@pytest.mark.parametrize("density", [0.25, 0.8])
def test_draws_do_not_depend_on_the_type_of_input(model, density):
    X = small_matrix(density)
    rows, cols = np.nonzero(~np.isnan(X))
    coo = scipy.sparse.coo_array((X[rows, cols], (rows, cols)), shape=X.shape)
    states = [run(Problem.of(x, model, 3), 5) for x in (X, coo, coo.tocsc())]
    assert_same_state(states[0], states[1])
    assert_same_state(states[0], states[2])


@pytest.mark.parametrize("model", models())
@pytest.mark.parametrize("stop_at", [3, 9], ids=["burn-in", "sampling"])
def test_save_and_resume_is_bit_for_bit(model, stop_at, tmp_path):
    problem = Problem.of(small_matrix(), model, 3)
    whole = run(problem, 14)
    run(problem, stop_at).save(tmp_path / "state.npz")
    resumed = run(problem, 14 - stop_at, State.load(tmp_path / "state.npz"))
    assert_same_state(whole, resumed)
    assert [p.name for p in tmp_path.iterdir()] == ["state.npz"]


@pytest.mark.parametrize("name", ALL_PRESETS)
def test_seeds_and_chains_differ(name):
    problem = Problem.of(small_matrix(), preset(name), 2)
    base = next(chain(problem, random_state=0))
    assert not np.array_equal(base.U, next(chain(problem, random_state=1)).U)
    assert not np.array_equal(base.U, next(chain(problem, random_state=0, number=1)).U)


@pytest.mark.parametrize("model", models())
def test_a_sweep_leaves_the_old_state_alone(model):
    problem = Problem.of(small_matrix(), model, 2)
    state = initial_state(problem, random_state=0)
    before = state.copy()
    sweep(problem, state)
    assert_same_state(state, before)


@pytest.mark.parametrize("init", ["data", "prior"])
@pytest.mark.parametrize("model", models())
def test_initial_states_are_finite_and_have_the_right_signs(model, init):
    problem = Problem.of(small_matrix(), model, 3)
    state = initial_state(problem, init, random_state=0)
    for name, value in state.variables().items():
        assert np.isfinite(value).all(), name
    for F, nonnegative in zip((state.U, state.V), problem.model.nonnegative, strict=True):
        assert not nonnegative or (F >= 0).all()


def test_a_negative_mean_can_start_too():
    problem = Problem.of(-small_matrix(), preset("GEG"), 3)
    state = initial_state(problem, random_state=0)
    assert (state.U >= 0).all()
    assert np.mean(state.U @ state.V.T) < 0


def test_unknown_init_is_refused():
    with pytest.raises(ModelError, match="init must be 'data' or 'prior', got 'zero'"):
        sample(small_matrix(), "GGG", 2, init="zero")


@pytest.mark.parametrize("name", ["GGG", "GGGW", "GLL", "GVG", "GEE", "GTT", "PGG"])
def test_data_scaled_start_needs_fewer_sweeps(name):
    """Sweeps until the training error is within 10 % of where the better start settles."""
    rng = np.random.default_rng(0)
    fit = 30 + rng.gamma(2.0, 3.0, (80, 3)) @ rng.gamma(2.0, 0.5, (3, 60))
    X = np.round(fit + rng.normal(size=fit.shape))
    problem = Problem.of(X, preset(name), 4)
    errors = {
        init: np.array(
            [[s.error for s in islice(chain(problem, init, seed), 100)] for seed in range(6)]
        )
        for init in ("data", "prior")
    }
    goal = 1.1 * min(np.median(e[:, -20:]) for e in errors.values())
    needed = {
        init: np.mean([np.argmax(run < goal) if (run < goal).any() else 100 for run in e])
        for init, e in errors.items()
    }
    assert needed["data"] <= needed["prior"], needed


@pytest.mark.parametrize("model", models())
def test_scale_move_changes_only_the_path(model):
    """With and without the move the training error settles at the same level."""
    X = small_matrix(0.9, (40, 30))
    errors = [
        sample(X, model, 2, draws=400, burn_in=200, scale_move=move, random_state=1).train_mse[
            0, 200:
        ]
        for move in (True, False)
    ]
    assert abs(np.log(errors[0].mean() / errors[1].mean())) < 0.1


def test_chains_that_take_turns_do_not_wait_for_each_other():
    """Kernels run out of turn: inside one, another chain can take the turn."""
    inside, outside = threading.Event(), threading.Event()

    def first():
        with _threads.turns():
            _threads.run(lambda *_: (inside.set(), outside.wait(5)), [0, 1], 1)

    def second():
        inside.wait(5)
        with _threads.turns():
            outside.set()

    threads = [threading.Thread(target=work) for work in (first, second)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outside.is_set() and time.perf_counter() - begin < 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_beside_a_property_that_is_being_worked_out():
    code = (
        "import os, threading\n"
        "from bayesmf._cached import cached_property\n"
        "begun, may_end = threading.Event(), threading.Event()\n"
        "class Slow:\n"
        "    def __init__(self, wait): self.wait = wait\n"
        "    @cached_property\n"
        "    def value(self):\n"
        "        if self.wait: begun.set(); may_end.wait()\n"
        "        return 1\n"
        "thread = threading.Thread(target=lambda: Slow(True).value)\n"
        "thread.start(); begun.wait()\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(0 if Slow(False).value == 1 else 1)\n"
        "found = os.waitpid(child, 0)[1]; may_end.set(); thread.join()\n"
        "raise SystemExit(found)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_inherits_no_lock():
    code = (
        "import os, numpy as np\n"
        "from bayesmf import _threads, sample\n"
        "X = np.random.default_rng(0).normal(size=(20, 10))\n"
        "with _threads.turns(), _threads._blas_lock:\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        sample(X, 'GGG', 2, draws=5, chains=2, n_jobs=2)\n"
        "        os._exit(0)\n"
        "raise SystemExit(os.waitpid(child, 0)[1])\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
