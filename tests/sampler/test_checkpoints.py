"""Runs on disk: bounded memory, and nothing lost or changed when a run is killed."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bayesmf import sample
from bayesmf._errors import DataError

SCRIPT = """
import sys
import numpy as np
import bayesmf.sampler.checkpoints
from bayesmf import sample

bayesmf.sampler.checkpoints._SECONDS = 0.02
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 40)) + rng.normal(size=(60, 40))
X[rng.random(X.shape) < 0.3] = np.nan
posterior = sample(
    X, "GGGA", 5, draws=1500, burn_in=300, thin=2, chains=2, keep=("U", "relevance"),
    random_state=7, n_jobs=2, store=sys.argv[1] if len(sys.argv) > 2 else None,
)
np.savez(sys.argv[-1], mean=posterior.mean, variance=posterior.variance,
         train_mse=posterior.train_mse, U_mean=posterior.U_mean, **posterior.draws)
"""


def start(*arguments):
    return subprocess.Popen([sys.executable, "-c", SCRIPT, *map(str, arguments)])


def test_a_run_killed_ten_times_ends_as_if_it_had_not_been(tmp_path):
    whole = start(tmp_path / "whole.npz")
    assert whole.wait(120) == 0
    begin = time.monotonic()
    assert start(tmp_path / "again.npz").wait(120) == 0
    lasts = time.monotonic() - begin
    rng, killed = np.random.default_rng(1), 0
    for _ in range(10):
        process = start(tmp_path / "run", tmp_path / "resumed.npz")
        try:
            process.wait(0.4 + rng.uniform(0.0, 0.25) * lasts)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
    assert start(tmp_path / "run", tmp_path / "resumed.npz").wait(120) == 0
    assert killed >= 3
    with np.load(tmp_path / "whole.npz") as expected, np.load(tmp_path / "resumed.npz") as found:
        assert set(found) == set(expected)
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


OPTIONS = {"draws": 5, "burn_in": 3, "keep": ("U", "V"), "random_state": 0}
X = np.arange(30.0).reshape(6, 5)


def test_a_finished_run_is_read_again(tmp_path):
    first = sample(X, "GGG", 2, store=tmp_path / "run", **OPTIONS)
    told = []
    again = sample(X, "GGG", 2, store=tmp_path / "run", progress=told.append, **OPTIONS)
    assert not told
    plain = sample(X, "GGG", 2, **OPTIONS)
    for name in plain.draws:
        np.testing.assert_array_equal(again.draws[name], plain.draws[name])
        np.testing.assert_array_equal(first.draws[name], plain.draws[name])
    np.testing.assert_array_equal(again.mean, plain.mean)
    assert isinstance(first.draws["U"], np.memmap)


@pytest.mark.parametrize(
    ("change", "named"),
    [({"draws": 6}, "draws"), ({"random_state": 1}, "seed"), ({"burn_in": 4}, "burn_in")],
)
def test_another_run_in_the_folder_is_refused(tmp_path, change, named):
    sample(X, "GGG", 2, store=tmp_path / "run", **OPTIONS)
    with pytest.raises(DataError, match=f"another run: {named}"):
        sample(X, "GGG", 2, store=tmp_path / "run", **{**OPTIONS, **change})
    with pytest.raises(DataError, match="another run: data"):
        sample(X + 1, "GGG", 2, store=tmp_path / "run", **OPTIONS)


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear all")
    with pytest.raises(DataError, match="not empty"):
        sample(X, "GGG", 2, store=tmp_path, **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_without_a_seed_a_folder_goes_on_with_its_own(tmp_path):
    options = {**OPTIONS, "random_state": None}
    first = sample(X, "GGG", 2, store=tmp_path / "run", **options)
    again = sample(X, "GGG", 2, store=tmp_path / "run", **options)
    np.testing.assert_array_equal(first.draws["U"], again.draws["U"])
