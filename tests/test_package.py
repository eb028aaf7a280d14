"""The package as a whole: quick imports, documented examples, public names."""

from __future__ import annotations

import doctest
import importlib
import json
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


def test_the_coverage_in_the_documentation_is_the_measured_one():
    found = json.loads((ROOT / "benchmarks" / "results" / "coverage.json").read_text())
    page = (ROOT / "docs" / "estimators.md").read_text()
    for row in found["simulated"] + found["real"]:
        shares = " | ".join(f"{100 * share:.1f} %" for share in row["coverage"])
        assert f"| {row['model']} | {shares} |" in page, row
    assert all(row["met"] for row in found["simulated"])


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
