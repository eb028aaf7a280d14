"""The wheel works in a clean environment that has only its core dependencies."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import bayesmf

ROOT = Path(__file__).parents[1]
USE = """
import importlib.util, numpy as np
for absent in ("pandas", "matplotlib", "xarray", "distributed", "pytest"):
    assert importlib.util.find_spec(absent) is None, absent
from bayesmf import BayesianImputer, Posterior, compare, sample
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 30)) + 0.1 * rng.normal(size=(40, 30))
X[rng.random(X.shape) < 0.3] = np.nan
assert not np.isnan(BayesianImputer("GHH", 3, random_state=0).fit_transform(X)).any()
found = compare(X, ["GGG", "GEG", "row-average"], ranks=[1, 2], budget="quick")
assert found.best_rank_ == 2
found.report("report.html")
posterior = sample(X, "GGG", 2, draws=20, burn_in=20, random_state=0)
posterior.save("run.npz")
assert (Posterior.load("run.npz").mean == posterior.mean).all()
with open("data.csv", "w") as file:
    print("", *(f"drug {j}" for j in range(30)), sep=",", file=file)
    for i, row in enumerate(X):
        print(f"line {i}", *("" if np.isnan(x) else x for x in row), sep=",", file=file)
"""


def run(*words: object, cwd: Path = ROOT) -> str:
    done = subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_installs_and_works(tmp_path):
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert re.fullmatch(rf"bayesmf-{re.escape(bayesmf.__version__)}-py3-none-any\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    assert "bayesmf/py.typed" in names and not any(name.startswith("tests") for name in names)
    run(sys.executable, "-m", "venv", tmp_path / "clean")
    python = tmp_path / "clean" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel)
    run(python, "-c", USE, cwd=tmp_path)
    command = python.with_name("bayesmf")
    assert "check      passed" in run(command, "doctor", cwd=tmp_path)
    run(command, "fit", "data.csv", "--rank", "2", "--quiet", cwd=tmp_path)
    assert (tmp_path / "data-fit" / "posterior.npz").is_file()
    run(command, "report", "data-fit", cwd=tmp_path)
    assert (tmp_path / "data-fit" / "report.html").is_file()


@pytest.mark.slow
def test_the_sdist_builds_the_same_wheel(tmp_path):
    """Byte for byte, from a folder that has nothing but what the archive holds."""
    run(sys.executable, "-m", "build", "--wheel", "--sdist", "--outdir", tmp_path / "here")
    (archive,) = (tmp_path / "here").glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "there", source)
    wheels = [next((tmp_path / place).glob("*.whl")) for place in ("here", "there")]
    one, other = (
        {name: file.read(name) for name in file.namelist()} for file in map(zipfile.ZipFile, wheels)
    )
    assert wheels[0].name == wheels[1].name and one == other
    for needed in ("LICENSE", "CHANGELOG.md", "tests/draws.json", "docs/gallery.md"):
        assert (source / needed).is_file(), needed
