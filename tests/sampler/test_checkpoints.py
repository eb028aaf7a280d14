"""Runs on disk: bounded memory, and nothing lost or changed when a run is killed."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bayesmf import sample
from bayesmf._errors import DataError
from bayesmf._locks import locked
from bayesmf.sampler import checkpoints

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


# --- Damage -------------------------------------------------------------------------------------


def stopped_run(folder, monkeypatch, sweep=12):
    """A run that was stopped after a sweep, with a checkpoint after every one."""

    class Stopped(Exception):
        pass

    def stop(event):
        if event.sweep == sweep:
            raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "_SECONDS", 0.0)
        with pytest.raises(Stopped):
            sample(X, "GGG", 2, store=folder, progress=stop, **LONGER)


LONGER = {"draws": 20, "burn_in": 3, "keep": ("U", "V"), "random_state": 0}


def resumed(folder):
    """What is drawn when the run goes on, compared with one that was not stopped."""
    told = []
    found = sample(X, "GGG", 2, store=folder, progress=told.append, **LONGER)
    plain = sample(X, "GGG", 2, **LONGER)
    np.testing.assert_array_equal(found.mean, plain.mean)
    for name in plain.draws:
        np.testing.assert_array_equal(found.draws[name], plain.draws[name])
    return found, [event.sweep for event in told]


def test_a_damaged_checkpoint_costs_what_came_after_the_one_before(tmp_path, monkeypatch):
    stopped_run(tmp_path / "run", monkeypatch)
    last = tmp_path / "run" / "chain-0.npz"
    last.write_bytes(last.read_bytes()[:-100])
    found, sweeps = resumed(tmp_path / "run")
    assert sweeps[0] == 11 and "chain-0.npz is damaged" in found.notes[-1]


@pytest.mark.parametrize("draw", [0, 7])
def test_damaged_draws_are_made_again(tmp_path, monkeypatch, draw):
    stopped_run(tmp_path / "run", monkeypatch)
    draws = np.load(tmp_path / "run" / "U.npy")
    draws[0, draw, 0, 0] += 1e-9
    np.save(tmp_path / "run" / "U.npy", draws)
    found, sweeps = resumed(tmp_path / "run")
    # The last checkpoint has 8 draws, the one before 7, of which draw 7 is not one.
    assert sweeps[0] == (11 if draw == 7 else 1)
    assert f"U.npy is damaged at draw {draw} of chain 0" in found.notes[0]


def test_lost_and_swapped_files_are_noticed(tmp_path):
    square = X[:5]
    options = {**OPTIONS, "chains": 2}
    plain = sample(square, "GGG", 2, **options)
    for first, second in (("U.npy", "V.npy"), ("chain-0.npz", "chain-1.npz"), ("U.npy", None)):
        sample(square, "GGG", 2, store=tmp_path / "run", **options)
        one, other = (tmp_path / "run" / (name or "none") for name in (first, second))
        if second is None:
            one.unlink()
        else:
            one.rename(tmp_path / "run" / "spare")
            other.rename(one)
            (tmp_path / "run" / "spare").rename(other)
        found = sample(square, "GGG", 2, store=tmp_path / "run", **options)
        for name in plain.draws:
            np.testing.assert_array_equal(found.draws[name], plain.draws[name])
        assert found.notes and not plain.notes


def test_folders_of_earlier_versions_go_on(tmp_path, monkeypatch):
    stopped_run(tmp_path / "run", monkeypatch)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    del record["digest"]
    (tmp_path / "run" / "run.json").write_text(json.dumps(record, indent=1))
    (tmp_path / "run" / "chain-0-before.npz").unlink()
    path = tmp_path / "run" / "chain-0.npz"
    with np.load(path) as file:
        arrays = {k: file[k] for k in file.files if k != "about.json" and not k.startswith("sum.")}
    np.savez(path, **arrays)
    found, sweeps = resumed(tmp_path / "run")
    assert sweeps[0] == 12 and not found.notes


def test_a_damaged_record_is_named(tmp_path):
    sample(X, "GGG", 2, store=tmp_path / "run", **OPTIONS)
    path = tmp_path / "run" / "run.json"
    path.write_text(path.read_text().replace('"draws": 5', '"draws": 6'))
    with pytest.raises(DataError, match=r"run.json is damaged \(its checksum"):
        sample(X, "GGG", 2, store=tmp_path / "run", **OPTIONS)


# --- One process at a time ----------------------------------------------------------------------


def test_a_second_process_waits_and_says_for_whom(tmp_path):
    script = "from pathlib import Path; from bayesmf._locks import locked; import sys\n"
    script += "with locked(Path(sys.argv[1])): print('mine')"
    with locked(tmp_path):
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)], stderr=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert f"waiting for process {os.getpid()} on " in process.stderr.readline()
        assert process.poll() is None
    assert process.communicate(timeout=20) == ("mine\n", "")
    assert process.returncode == 0


def test_the_lock_of_a_dead_process_holds_nobody(tmp_path):
    script = "from pathlib import Path; from bayesmf._locks import locked; import os, sys\n"
    script += "with locked(Path(sys.argv[1])): os._exit(1)"
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)]).returncode == 1
    with locked(tmp_path):
        assert json.loads((tmp_path / ".lock").read_text())["pid"] == os.getpid()


def test_a_forked_child_has_no_share_in_a_lock(tmp_path):
    with locked(tmp_path):
        child = os.fork()
        if not child:
            time.sleep(20)
            os._exit(0)
    begin = time.monotonic()
    with locked(tmp_path):
        assert time.monotonic() - begin < 10
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
