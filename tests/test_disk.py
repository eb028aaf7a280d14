"""Full and read-only disks, odd places, and two processes on one store."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from bayesmf import BayesianMF, StorageError, sample
from bayesmf._files import leftovers, partial_path, replacing, restore, write_text
from bayesmf.cli import main
from bayesmf.data.observed import ObservedMatrix
from bayesmf.tasks.runner import run_all
from bayesmf.tasks.store import Store
from tests.test_damage import Square, squared

OPTIONS = {
    "model": "GGG", "n_components": 4, "draws": 40, "burn_in": 5, "keep": ("U", "V"),
    "random_state": 0, "chains": 2,
}  # fmt: skip
X = np.random.default_rng(0).normal(size=(60, 40))
QUICK = ["--rank", "2", "--draws", "30", "--burn-in", "5", "--seed", "1", "--quiet"]


def write_data(path):
    rows = [",".join(["", *(f"c{j}" for j in range(X.shape[1]))])]
    rows += [",".join([f"r{i}", *map(repr, row.tolist())]) for i, row in enumerate(X)]
    Path(path).write_text("\n".join(rows) + "\n")


# --- A small disk -------------------------------------------------------------------------------


@contextmanager
def small_disk(folder, size):
    """A disk of so many bytes; the test is skipped where none can be mounted."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def store_of_draws(disk):
    sample(X, store=disk / "run", **OPTIONS)


def store_of_a_fit(disk):
    BayesianMF("GGG", 4, draws=40, burn_in=5, random_state=0, store=disk / "run").fit(X)


def posterior_npz(disk):
    sample(X, **OPTIONS).save(disk / "run.npz")


def posterior_nc(disk):
    pytest.importorskip("h5netcdf")
    sample(X, **OPTIONS).save(disk / "run.nc")


def state(disk):
    sample(np.ones((9000, 9)), "GGG", 2, draws=1, burn_in=0).states[0].save(disk / "s.npz")


def records(disk):
    run_all(squared, map(Square, range(200)), Store(disk / "records"))


def text(disk):
    write_text(disk / "deep" / "text.txt", 200_000 * "x")


def comparison(disk):
    command(disk, "compare", "data.csv", "--models", "GGG,GGGA", "--ranks", "1,2", "--folds", "2",
            "--quiet", "--budget", "quick", "--output", str(disk / "cmp"))  # fmt: skip


def fit(disk):
    command(disk, "fit", "data.csv", *QUICK, "--output", str(disk / "out"))


def fit_with_force(disk):
    command(disk, "fit", "data.csv", *QUICK, "--force", "--output", str(disk / "earlier"))


def report(disk):
    command(disk, "report", "fitted", "--quiet", "--output", str(disk / "report.html"))


def study(disk):
    command(disk, "reproduce", "sparsity", "--datasets", "drug_sensitivity", "--models",
            "row_average", "--no-figures", "--quiet", "--output", str(disk / "study"))  # fmt: skip


class Told(Exception):
    """What a command says when it fails."""


def command(disk, *words):
    """Run a command; what it complains with is raised."""
    with pytest.MonkeyPatch.context() as patch:
        lines = []
        patch.setattr(sys.stderr, "write", lines.append)
        code = main(list(words))
    if code:
        assert code == 1, lines
        raise Told("".join(lines))


PLACES = (
    store_of_draws, store_of_a_fit, posterior_npz, posterior_nc, state, records, text, comparison,
    fit, fit_with_force, report, study,
)  # fmt: skip
ROOM = {study: 12}  # kilobytes that are left
FAST = (store_of_draws, posterior_npz, text)


@pytest.mark.parametrize(
    "place", [pytest.param(p, marks=[] if p in FAST else pytest.mark.slow) for p in PLACES]
)
@pytest.mark.filterwarnings("ignore::bayesmf.ConvergenceWarning")
def test_a_full_disk_is_told_in_one_sentence(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data("data.csv")
    if place is report:
        assert main(["fit", "data.csv", *QUICK, "--output", "fitted"]) == 0
    with small_disk(tmp_path / "disk", 400 * 1024) as disk:
        (disk / "filler").write_bytes(bytes((400 - ROOM.get(place, 64)) * 1024))
        if place is fit_with_force:
            (disk / "earlier").mkdir()
            (disk / "earlier" / "run.json").write_text("{}")
        before = {path for path in disk.rglob("*") if path.name != "filler"}
        with pytest.raises((StorageError, Told)) as caught:
            place(disk)
        assert "the disk is full" in str(caught.value), caught.value
        assert str(caught.value).count("\n") <= 1
        assert not list(disk.rglob(".bayesmf-*")), "something half is left"
        if place in (posterior_npz, posterior_nc, state, text, fit, fit_with_force, report):
            found = {path for path in disk.rglob("*") if path.name not in ("filler", "deep")}
            assert found == before
        (disk / "filler").unlink()
        subprocess.run(["mount", "-o", f"remount,size={2**26}", str(disk)], check=True)
        place(disk)  # with more room it goes on
        if place is store_of_draws:
            found, plain = sample(X, store=disk / "run", **OPTIONS), sample(X, **OPTIONS)
            np.testing.assert_array_equal(found.mean, plain.mean)
            np.testing.assert_array_equal(found.draws["U"], plain.draws["U"])


# --- Odd places ---------------------------------------------------------------------------------


def test_odd_places_are_told_in_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for path, why in (
        (tmp_path / "file" / "x.npz", "a part of its path is a file"),
        (tmp_path / "none" / "x.npz", "its folder does not exist"),
        (tmp_path / "folder", "it is a folder"),
        (tmp_path / (300 * "x"), "the name is too long"),
    ):
        with pytest.raises(StorageError, match=why), replacing(path) as partial:
            partial.write_text("x")
    with pytest.raises(StorageError, match="a part of its path is a file"):
        sample(X, store=tmp_path / "file" / "run", **OPTIONS)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]


def test_names_as_long_as_the_disk_allows(tmp_path):
    path = tmp_path / (255 * "x")
    write_text(path, "whole")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


# --- Killed processes ---------------------------------------------------------------------------

KILLED = """
import os, sys
from pathlib import Path
from bayesmf._files import OLD, partial_path, replacing
path = Path(sys.argv[1])
partial_path(path.with_name("folder")).mkdir()
partial_path(path.with_name("gone"), OLD).mkdir()
with replacing(path) as partial:
    partial.write_text("half")
    os._exit(1)
"""


def test_what_killed_processes_leave_is_removed_by_the_next(tmp_path):
    path = tmp_path / "text.txt"
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)]).returncode == 1
    mine = partial_path(path)
    mine.write_text("of a process that lives")
    assert len(list(tmp_path.iterdir())) == 4 and len(leftovers(path)) == 1
    write_text(path, "whole")
    restore(tmp_path / "gone")  # which was about to be replaced
    assert (tmp_path / "gone").is_dir() and mine.exists() and not leftovers(path)
    assert path.read_text() == "whole"


def test_a_killed_fit_leaves_nothing_for_ever(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data("data.csv")
    words = ["fit", "data.csv", *QUICK, "--model", "GGG", "--output", "out"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bayesmf.cli", *words, "--draws", "100000", "--jobs", "1"]
    )
    while not list(tmp_path.glob(".bayesmf-*")):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert main(words) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv", "out"]


# --- Two processes ------------------------------------------------------------------------------

TWO = """
import sys, hashlib, numpy as np
from pathlib import Path
from bayesmf import sample
from bayesmf.tasks.runner import run_all
from bayesmf.tasks.store import Store
from tests.test_damage import Square, squared
from tests.test_disk import OPTIONS, X
posterior = sample(X, store=Path(sys.argv[1]) / "run", **OPTIONS)
run_all(squared, map(Square, range(20)), Store(Path(sys.argv[1]) / "records"))
print(hashlib.sha256(posterior.draws["U"].tobytes() + posterior.mean.tobytes()).hexdigest())
"""


def two_processes(folder):
    """Two processes that begin together on the same stores; returns what they found."""
    both = [
        subprocess.Popen([sys.executable, "-c", TWO, str(folder)], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
        for _ in range(2)
    ]  # fmt: skip
    found = [process.communicate(timeout=120) for process in both]
    assert not any(process.returncode for process in both), found
    return {out for out, _ in found}


@pytest.mark.slow
def test_two_processes_on_one_store_twenty_times(tmp_path):
    assert len(set.union(*(two_processes(tmp_path / str(k)) for k in range(20)))) == 1


@pytest.mark.slow
def test_forks_beside_running_chains_can_sample():
    script = Path(__file__).parent / "helpers" / "forks.py"
    done = subprocess.run([sys.executable, str(script), "60"], capture_output=True, timeout=1200)
    assert done.returncode == 0, done.stderr.decode()


def test_matrices_of_one_long_row_are_predicted_in_blocks(monkeypatch):
    from bayesmf.posterior import predictive

    one = ObservedMatrix.of(X[:1])
    mf = BayesianMF("GGG", 1, draws=5, burn_in=1, random_state=0).fit(one)
    whole = mf.predict(return_std=True)
    monkeypatch.setattr(predictive, "_NUMBERS", 100)
    for cut, expected in zip(mf.predict(return_std=True), whole, strict=True):
        np.testing.assert_allclose(cut, expected)
