"""The package as a whole: quick imports, documented examples, public names."""

from __future__ import annotations

import doctest
import importlib
import json
import re
import runpy
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import bayesmf

ROOT = Path(__file__).parents[1]
DOCUMENTED = [
    "_errors",
    "baselines",
    "biases",
    "comparison.result",
    "datasets.catalogue",
    "datasets.loaders",
    "estimators",
    "experiments.reproduce",
    "metrics",
    "model",
    "observed",
    "sampling",
    "presets",
    "splits",
]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_in_docstrings_run(name):
    module = importlib.import_module(f"bayesmf.{name}")
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted > 0


@pytest.mark.parametrize(
    ("page", "least", "says"),
    [
        ("README.md", 2, "GGGA: 2 chains"),
        ("docs/estimators.md", 1, "GGGA: 2 chains"),
        ("docs/compare.md", 1, "with rank 2"),
    ],
)
def test_snippets_of_the_documentation_run(capsys, page, least, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    """In order, in one session, as a reader would type them."""
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert len(snippets) >= least
    session: dict = {}
    for snippet in snippets:
        exec(snippet, session)
    assert says in capsys.readouterr().out


def test_the_coverage_in_the_documentation_is_the_measured_one():
    found = json.loads((ROOT / "benchmarks" / "results" / "coverage.json").read_text())
    page = (ROOT / "docs" / "estimators.md").read_text()
    for row in found["simulated"] + found["real"]:
        shares = " | ".join(f"{100 * share:.1f} %" for share in row["coverage"])
        assert f"| {row['model']} | {shares} |" in page, row
    assert all(row["met"] for row in found["simulated"])


def test_the_readme_lists_every_preset_with_its_likelihood():
    rows = re.findall(r"^\| (\w+) \| (Gaussian|Poisson) \|", (ROOT / "README.md").read_text(), re.M)
    assert rows == [(name, row.likelihood.name) for name, row in bayesmf.PRESETS.items()]


def test_the_quickstart_runs(capsys):
    runpy.run_path(str(ROOT / "examples" / "quickstart.py"), run_name="__main__")
    assert "GGGW" in capsys.readouterr().out


def test_every_public_name_exists_and_is_documented():
    for name in bayesmf.__all__:
        assert getattr(bayesmf, name).__doc__ or name == "__version__", name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = bayesmf.nothing


def test_import_loads_nothing_heavy():
    """What loads decides how long it takes; the time itself depends on the machine."""
    code = (
        "import sys, bayesmf; "
        "print([m for m in ('numpy', 'numba', 'scipy', 'pandas', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_accuracy_in_the_documentation_is_the_measured_one():
    found = json.loads((ROOT / "benchmarks" / "results" / "accuracy.json").read_text())["errors"]
    page = (ROOT / "docs" / "estimators.md").read_text()
    for methods in found.values():
        best = {}
        for method, by_rank in methods.items():
            means = {rank: statistics.fmean(run["errors"]) for rank, run in by_rank.items()}
            rank = min(means, key=means.__getitem__)
            best[method] = means[rank]
            assert f"| {method} | {means[rank]:.4f} | {rank} |" in page, method
        assert "biases" in min(best, key=best.__getitem__)
