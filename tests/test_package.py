"""The package as a whole: quick imports, documented examples, public names."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bayesmf

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "bayesmf"
DOCUMENTED = [
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>>" in path.read_text()
]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_in_docstrings_run(name):
    module = importlib.import_module(f"bayesmf.{name}")
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted > 0


def test_the_stub_says_what_the_lazy_table_has():
    """Editors read the stub; what it imports is what a user gets, name by name."""
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text())
    stated = {
        alias.asname or alias.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert stated == {name: f"bayesmf.{home}" for name, home in bayesmf._HOME.items()}
    for name, module in stated.items():
        assert getattr(importlib.import_module(module), name) is getattr(bayesmf, name)


def test_type_checkers_find_the_real_types(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\n"
        "from bayesmf import BayesianMF, Horseshoe, sample\n"
        "posterior = sample(np.ones((3, 2)), 'GGG', 2)\n"
        "reveal_type(posterior)\n"
        "reveal_type(BayesianMF('GGG').fit(np.ones((3, 2))))\n"
        "reveal_type(Horseshoe().scale)\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", sys.executable]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path), str(script)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    found = re.findall(r'Revealed type is "([^"]*)"', done.stdout)
    assert [name.rpartition(".")[2] for name in found] == ["Posterior", "BayesianMF", "float"]


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
