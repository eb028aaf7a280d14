"""The documentation keeps its word: snippets run, defaults are the code's, the site builds."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import tomllib
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name

import pytest

import bayesmf
from bayesmf import (
    PRESETS,
    ConvergenceWarning,
    ModelError,
    hyperparameters,
    metrics,
    preset,
    priors,
    splits,
)
from bayesmf.cli import parser as command_parser
from bayesmf.datasets import loaders
from bayesmf.model.presets import LETTERS, PAPER

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SAYS = {
    "README.md": "GGGW: 2 chains",
    "docs/estimators.md": "GGGA: 2 chains",
    "docs/compare.md": "with rank 2",
    "docs/side-information.md": "of the variance of all cells",
    "docs/adding-a-prior.md": "StudentT(degrees=3.0, scale=1.0)",
    "docs/adding-a-likelihood.md": "rate 4.0",
    "docs/likelihoods/normal.md": "common factor of the errors",
    "docs/which-noise.md": "noisiest columns [29 28 27]",
}


NOISE_FIGURES = ROOT / "examples" / "_noise_figures.py"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def snippets(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


# The building of the site runs the code of the gallery, to draw its pictures.
TO_RUN = [page for page in PAGES if snippets(page) and page.name != "gallery.md"]


@pytest.mark.parametrize("page", TO_RUN, ids=name_of)
def test_snippets_run(page, capsys, tmp_path, monkeypatch):
    """In order, in one session, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    session: dict = {"__name__": "snippets"}
    monkeypatch.setitem(sys.modules, "snippets", type(sys)("snippets"))  # dataclasses look it up
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # runs are short on purpose
        for snippet in snippets(page):
            exec(compile(snippet, name_of(page), "exec"), session)
    assert SAYS.get(name_of(page), "") in capsys.readouterr().out


# --- Defaults -----------------------------------------------------------------------------------


def public_functions() -> list[tuple[str, Callable]]:
    """Every public function and method with the text that documents its parameters."""
    public = [getattr(bayesmf, name) for name in bayesmf.__all__]
    public += [v for m in (metrics, splits, priors, loaders) for v in vars(m).values()]
    own = [t for t in public if getattr(t, "__module__", "").startswith("bayesmf")]
    found = [(inspect.getdoc(t) or "", t) for t in own if inspect.isfunction(t)]
    for kind in filter(inspect.isclass, own):
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            found.append((inspect.getdoc(kind if name == "__init__" else method) or "", method))
    return found


def known_defaults() -> dict[str, list]:
    """Every default that the code has, by the name of the parameter."""
    known = defaultdict(list)
    for _, function in public_functions():
        for parameter in inspect.signature(function).parameters.values():
            if parameter.default is not parameter.empty:
                known[parameter.name].append(parameter.default)
    for name in PRESETS:
        for key, value in hyperparameters(name).items():
            known[key].append(value)
    for parser in command_parser()._subparsers._group_actions[0].choices.values():
        for action in parser._actions:
            known[action.dest].append(action.default)
    return known


def test_parameters_that_are_described_together_have_one_default():
    """The reference shows the default of the first for all of them."""
    for text, function in public_functions():
        known = inspect.signature(function).parameters
        for line in re.findall(r"^\w+(?:, \w+)+$", text, re.MULTILINE):
            values = {repr(known[n].default) for n in line.split(", ") if n in known}
            assert len(values) <= 1, (function.__qualname__, line)


SPAN = re.compile(r"`(\w+)=([^`]+)`")


def stated_defaults():
    for page in PAGES:
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if re.search(r"\bdefaults?\b", line):
                for name, value in SPAN.findall(line):
                    yield pytest.param(name, value, id=f"{name_of(page)}:{number}-{name}")


@pytest.mark.parametrize(("name", "value"), list(stated_defaults()))
def test_stated_defaults_are_those_of_the_code(name, value):
    assert ast.literal_eval(value) in known_defaults()[name]


ROW = re.compile(r"^\| (\w+) \| `?(\w+)`? \| `([^`]*)` \|", re.MULTILINE)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "models").glob("*.md")), ids=name_of)
def test_tables_of_hyperparameters_are_complete(page):
    """A model that has one row in a page's table has all of them there."""
    found = defaultdict(dict)
    for model, key, value in ROW.findall(page.read_text()):
        if model in PRESETS:
            found[model][key] = ast.literal_eval(value)
    for model, values in found.items():
        own = {k: v for k, v in hyperparameters(model).items() if k not in values}
        assert set(own) <= {"alpha_tau", "beta_tau"}, (model, own)  # said once, for all models
        assert values == {k: pytest.approx(hyperparameters(model)[k]) for k in values}


def test_every_model_of_the_paper_has_its_hyperparameters_in_the_docs():
    text = "\n".join(p.read_text() for p in (ROOT / "docs" / "models").glob("*.md"))
    assert {model for model, _, _ in ROW.findall(text)} >= set(PAPER)


def test_the_exponents_in_the_documentation_are_the_measured_ones():
    found = json.loads((ROOT / "benchmarks" / "results" / "exponents.json").read_text())["growth"]
    page = (ROOT / "docs" / "performance.md").read_text()
    for model in found["rows"]["exponents"]:
        figures = " | ".join(f"{part['exponents'][model]:.2f}" for part in found.values())
        assert f"({model}) | {figures} |" in page, model


# --- Pages --------------------------------------------------------------------------------------


def test_the_prior_of_the_guide_is_the_one_of_the_example():
    source = (ROOT / "examples" / "custom_prior.py").read_text()
    own = re.search(r"@dataclass.*?\n\n\n", source, re.DOTALL)
    assert own and own.group().strip() in (ROOT / "docs" / "adding-a-prior.md").read_text()


def test_the_readme_lists_every_preset_with_its_likelihood():
    rows = re.findall(r"^\| (\w+) \| (Gaussian|Poisson) \|", (ROOT / "README.md").read_text(), re.M)
    assert rows == [(name, row.likelihood.name) for name, row in PRESETS.items()]


LETTERED = re.compile(r"^\| (\w) \| ((?:\w+, )*\w+) \|", re.MULTILINE)


def test_names_of_models_are_listed_under_every_letter():
    page = (ROOT / "docs" / "likelihoods" / "index.md").read_text()
    listed = {letter: set(names.split(", ")) for letter, names in LETTERED.findall(page)}
    assert set(listed) == set(LETTERS)
    for letter, names in listed.items():
        for other in {letter + name[1:] for name in PRESETS}:
            if other in names:
                assert preset(other).likelihood.letter == letter
            else:
                with pytest.raises(ModelError):
                    preset(other)


def test_the_tables_of_likelihoods_say_what_the_code_says():
    row = re.compile(r"^\| \[?`(\w+)(?:\(\))?`(?:\]\S+)? \| (\w) \|(.*)\|$", re.MULTILINE)
    for page in (ROOT / "README.md", ROOT / "docs" / "likelihoods" / "index.md"):
        found = row.findall(re.sub(r"\(lower, upper, noise\)", "()", page.read_text()))
        assert [letter for _, letter, _ in found] == list("GTCOPNB"), page
        for name, letter, rest in found:
            kind = getattr(bayesmf, name)
            assert kind.letter == letter
            assert ("| no |" in rest) != kind.takes_biases, (page, name)


def test_pictures_of_the_noise_are_those_that_the_script_draws(tmp_path):
    pytest.importorskip("matplotlib", reason="the pictures are drawn with matplotlib")
    page = (ROOT / "docs" / "which-noise.md").read_text()
    assert f"python {name_of(NOISE_FIGURES)}" in page
    done = subprocess.run(
        [sys.executable, str(NOISE_FIGURES), "--quick", "--output", str(tmp_path)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    named = re.findall(r"\]\(images/(noise-\w+\.svg)\)", page)
    assert sorted(named) == sorted(path.name for path in tmp_path.iterdir())
    for name in named:
        assert (ROOT / "docs" / "images" / name).stat().st_size < 100_000


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 140
    assert re.findall(r"<!-- (\w+): begin -->", text) == ["sweep", "tables"]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_files_and_modules_that_pages_name_exist(page):
    text = page.read_text()
    for path in re.findall(r"`((?:src|tests|benchmarks|examples|docs)/[\w/.-]+)`", text):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"`(bayesmf(?:\.\w+)+)", text):
        assert resolve_name(name), name


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_options_of_commands_that_pages_name_exist(page):
    known = command_parser()._subparsers._group_actions[0].choices
    for name, rest in re.findall(r"\bbayesmf (\w+)([^`#\n]*)", page.read_text()):
        if name in known:
            options = {option for a in known[name]._actions for option in a.option_strings}
            assert set(re.findall(r"--[a-z][a-z-]*", rest)) <= options, (name, rest)


def test_the_rooms_of_the_architecture_are_those_of_the_code():
    page, source = (ROOT / "docs" / "architecture.md").read_text(), ROOT / "src" / "bayesmf"
    (tree,) = re.findall(r"^src/bayesmf/\n(.*?)^tests/", page, re.DOTALL | re.MULTILINE)
    named, room = set(), source
    for indent, name, rest in re.findall(r"^( +)(\S+)(.*)", tree, re.MULTILINE):
        where = room if len(indent) == 4 else source
        named.add(where / name.rstrip("/"))
        if name.endswith("/") and where == source:
            room = where = source / name.rstrip("/")
        named |= {where / other for other in re.findall(r"\b\w+\.pyi?\b", rest)}
    assert all(path.exists() for path in named), [path for path in named if not path.exists()]
    told_in_one_line = ("cli", "datasets", "report", "experiments", "figures")
    for path in source.rglob("*.py"):
        if path.parent.name not in told_in_one_line and path.name != "__init__.py":
            assert path in named, path
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    (order,) = re.findall(r"From the bottom up: (.*?)\. ", page, re.DOTALL)
    assert [f"bayesmf.{name}" for name in re.findall(r"`(\w+)`", order)] == layers[::-1]


def test_sources_are_portable():
    """What another engine may not know: admonitions, macros, HTML, generated reference."""
    for page in PAGES[1:]:
        text = re.sub(r"^```.*?^```|`[^`]*`", "", page.read_text(), flags=re.DOTALL | re.M)
        assert not re.search(r"^(!!!|\?\?\?)|\{[{%]|</?[a-z]+[ >]", text, re.M), page
        assert page.name == "api.md" or not re.search(r"^:::", text, re.M), page


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"([\w/-]+\.md)", (ROOT / "mkdocs.yml").read_text()))
    assert listed == {p.relative_to(ROOT / "docs").as_posix() for p in PAGES[1:]}


def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install -e '.[docs]'")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    drawn = re.findall(r"\]\((images/gallery/.*?)\)", (ROOT / "docs" / "gallery.md").read_text())
    assert all((tmp_path / name).stat().st_size > 5000 for name in drawn) and len(drawn) > 14
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(PAGES) - 2
    for page in pages:
        text = page.read_text()
        assert not re.search(r'<(?:script|img|iframe)[^>]+src="https?:', text), page
        assert not re.search(r'<link[^>]+rel="stylesheet"[^>]+href="https?:', text), page
        assert "$$" not in re.sub(r"<(pre|code).*?</\1>", "", text, flags=re.DOTALL), page
