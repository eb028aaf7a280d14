"""The example scripts run in quick mode, write their figures, and find something sensible."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bayesmf.datasets import present
from tests.helpers.matrices import data_folder

matplotlib = pytest.importorskip("matplotlib", reason="the examples draw with matplotlib")

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name[0] != "_")
BY_MAKE = {"demo.py"}  # has no quick mode: `make demo` runs it


def numbers(pattern: str, text: str) -> list[float]:
    """The numbers in the groups of the only place where a pattern is found."""
    (found,) = re.findall(pattern, text)
    return [float(number) for number in ([found] if isinstance(found, str) else found)]


def completes_the_matrix(said: str) -> None:
    error, average = numbers(
        r"error on the missing cells: ([\d.]+) \(the drug's average: ([\d.]+);", said
    )
    assert error < 0.4 * average
    for share in numbers(r"90 % intervals hold ([\d.]+)% .* without noise, ([\d.]+)%", said):
        assert 80 < share < 98


def fills_in_digits(said: str) -> None:
    error, average = numbers(
        r"error ([\d.]+) grey levels of 16 \(the pixel's average: ([\d.]+)\)", said
    )
    assert error < 0.85 * average


def learns_from_ratings(said: str) -> None:
    (average,) = numbers(r"new users: ([\d.]+) stars by the film's average", said)
    rows = re.findall(r"^ +(\d+) +([\d.]+) +([\d.]+)$", said, re.MULTILINE)
    found = {int(count): float(error) for count, error, _ in rows}
    assert found[0] < 1.05 * average  # nothing is known of the user yet
    assert found[60] < 0.95 * average
    for _, error, promised in rows:
        assert float(promised) == pytest.approx(float(error), rel=0.15)


def recovers_the_coefficient(said: str) -> None:
    rows = re.findall(
        r"^(\w[^\d\n]*(?:\d factors)?) +([\d.]+) +[\d.]+ +(\d+)%$", said, re.MULTILINE
    )
    estimate = {name.strip(): float(mean) for name, mean, _ in rows}
    covers = {name.strip(): int(share) for name, _, share in rows}
    off = {name: abs(mean - 1) for name, mean in estimate.items()}
    assert off["multiple, 7 factors"] < min(off["column means"], off["multiple, 2 factors"])
    assert covers["multiple, 7 factors"] >= 75 > covers["column means"]


def recovers_sparse_factors(said: str) -> None:
    errors = re.findall(r"^(.+?) +missing cells: squared error ([\d.]+);", said, re.MULTILINE)
    assert len(errors) == 4
    assert all(float(error) < 0.3 for _, error in errors)  # the cells have a variance above 1


def beats_the_average(said: str) -> None:
    errors = dict(re.findall(r"^([\w-]+) +([\d.]+) +[\d.%-]+$", said, re.MULTILINE))
    assert float(errors["GGGA"]) < 0.3 * float(errors["column-average"])


CHECKS: dict[str, tuple[str | None, Callable[[str], None]]] = {  # figure, what the text must say
    "custom_prior.py": ("custom-prior.png", recovers_sparse_factors),
    "digits_inpainting.py": ("digits.png", fills_in_digits),
    "drug_sensitivity.py": ("completed-matrix.svg", completes_the_matrix),
    "multiple_imputation.py": ("multiple-imputation.png", recovers_the_coefficient),
    "quickstart.py": (None, beats_the_average),
    "ratings.py": ("ratings.png", learns_from_ratings),
}


def run(script: Path, folder: Path, **environment: str) -> str:
    """What a script prints in quick mode, on one thread, where no dataset has been fetched."""
    caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    own = {
        "XDG_CACHE_HOME": str(folder / "cache"),  # of the datasets; the others stay as they are
        "BAYESMF_CACHE": os.environ.get("BAYESMF_CACHE") or caches,
        "MPLCONFIGDIR": matplotlib.get_cachedir(),
        "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    rest = {name: value for name, value in os.environ.items() if name != "BAYESMF_DATA"}
    quick = [] if CHECKS[script.name][0] is None else ["--quick", "--output", "pictures"]
    done = subprocess.run(
        [sys.executable, str(script), *quick], cwd=folder, env=rest | own | environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "script", [path for path in SCRIPTS if path.name not in BY_MAKE], ids=lambda path: path.stem
)
def test_it_runs_and_finds_something_sensible(script, tmp_path):
    assert script.name in CHECKS, f"say in CHECKS what {script.name} draws and finds"
    figure, check = CHECKS[script.name]
    said = run(script, tmp_path)
    check(said)
    if figure is not None:
        path = Path("pictures", figure)
        assert (tmp_path / path).stat().st_size > 10_000
        assert f"figure: {path}" in said
    if script.name == "ratings.py":
        assert "simulated ratings" in said.splitlines()[0]


def test_scripts_without_a_quick_mode_are_run_by_make():
    for name in BY_MAKE:
        assert f"python examples/{name}" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("name", [name for name, (figure, _) in CHECKS.items() if figure])
def test_the_documentation_has_its_picture_and_its_command(name):
    page = (ROOT / "docs" / "examples.md").read_text()
    assert f"](images/{CHECKS[name][0]})" in page
    assert f"python examples/{name}" in page
    assert (ROOT / "docs" / "images" / str(CHECKS[name][0])).stat().st_size > 10_000


@pytest.mark.data
def test_ratings_are_those_of_movielens_where_it_is_present(tmp_path):
    folder = data_folder()
    if folder is None or not present("MovieLens_100K", folder):
        pytest.skip("MovieLens 100K is not here: set BAYESMF_DATA to the folder that has it")
    said = run(ROOT / "examples" / "ratings.py", tmp_path, BAYESMF_DATA=str(folder))
    assert said.startswith("MovieLens 100K ratings: fitted to ")
    learns_from_ratings(said)
