"""What a release needs agrees: version, changelog, recipe, workflows."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path

import pytest

import bayesmf
from tests.oldest import oldest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_first_section_of_the_changelog_is_that_of_the_version():
    """Dated, once it is a release."""
    heading = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE).group(1)
    version, _, state = heading.partition(" ")
    assert version == re.sub(r"\.dev\d+$", "", bayesmf.__version__)
    if "dev" in bayesmf.__version__:
        assert state == "(not yet released)"
    else:
        assert date.fromisoformat(state.strip("()")) <= date.today()


def test_the_recipe_for_conda_needs_what_the_package_needs():
    text = (ROOT / "conda.recipe" / "meta.yaml").read_text()
    (run,) = re.findall(r"^  run:\n(.*?)\n\n", text, re.DOTALL | re.MULTILINE)
    needed = [line.removeprefix("    - ").replace(" ", "") for line in run.splitlines()]
    assert needed == [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]]
    assert f"summary: {PROJECT['description']}" in text
    assert f"bayesmf = {PROJECT['scripts']['bayesmf']}" in text


def test_oldest_versions_are_those_of_the_project_file():
    found = oldest()
    assert {one.partition(">=")[0] for one in PROJECT["dependencies"]} <= set(found)
    assert f"numpy>={found['numpy']}" in PROJECT["dependencies"]
    assert "matplotlib" in found and "anndata" in found


def test_workflows_test_the_versions_of_python_that_the_package_names():
    yaml = pytest.importorskip("yaml")
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == named
    assert set(jobs) == {"lint", "tests", "oldest", "wheel", "docs"}
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        steps = [step for job in yaml.safe_load(file.read_text())["jobs"].values()
                 for step in job["steps"]]  # fmt: skip
        asked = "\n".join(step.get("run", "") for step in steps)
        assert set(re.findall(r"\bmake ([a-z-]+)", asked)) <= targets
        for test in re.findall(r"tests/\w+\.py", asked):
            assert (ROOT / test).exists()
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    lint = re.search(r"^lint:.*?\n\n", (ROOT / "Makefile").read_text(), re.DOTALL | re.M).group()
    assert all(hook["entry"].split()[0] in lint for hook in hooks)
