"""The twelve tasks of a newcomer: every line of the page runs, and prints what it says."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesmf.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "tasks.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
LONGEST = 5
pytestmark = pytest.mark.filterwarnings("ignore::bayesmf.ConvergenceWarning")


def tasks():
    """Title and blocks (kind, text) of every part of the page."""
    parts = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    blocks = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return {part.partition("\n")[0]: blocks.findall(part) for part in parts}


def make_files():
    """The files that the page names, as such exports look."""
    rng = np.random.default_rng(5)
    values = rng.normal(3, 1, (18, 2)) @ rng.normal(1, 0.5, (2, 6)) + rng.normal(0, 0.3, (18, 6))
    values = np.round(np.where(rng.random(values.shape) < 0.2, np.nan, values), 2)
    rows, cols = [f"s{i}" for i in range(18)], [f"c{j}" for j in range(6)]
    table = pd.DataFrame(values, index=pd.Index(rows, name="sample"), columns=cols)
    table.to_csv("labor.csv", sep=";", decimal=",")
    some = table.iloc[:2].set_axis(["new 1", "new 2"])
    some[cols[:3]].reindex(columns=cols).to_csv("new.csv", index_label="sample")
    sheet = table.astype(object).reset_index()
    sheet.insert(1, "operator", ["Ann", "Bob"] * 9)
    gaps = np.argwhere(np.isnan(values))[:3]
    for i, j in gaps:
        sheet.iloc[i, j + 2] = "n.d."
    with pd.ExcelWriter("plate.xlsx") as writer:
        sheet.to_excel(writer, index=False, startrow=2)
        writer.sheets["Sheet1"]["A1"] = "Plate 7"
    amounts = np.exp(table / 4).round(3)
    limit = round(float(np.nanquantile(amounts, 0.15)), 3)
    shown = amounts.astype(str).replace("nan", "").where(~(amounts < limit), f"<{limit}")
    shown.to_csv("concentrations.csv")
    stars = (values / 3).round().clip(1, 5)
    with open("ratings.csv", "w") as file:
        file.write("user,film,stars\n")
        for i, j in np.argwhere(~np.isnan(stars)):
            file.write(f"u{i},f{j},{stars[i, j]:g}\n")


def said(text):
    """What a command and what it prints are, of a block for the shell."""
    command, _, expected = text.removeprefix("$ bayesmf ").partition("\n")
    return shlex.split(command), expected


def test_every_task_runs_and_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_files()
    session: dict = {}
    checker, parser = doctest.OutputChecker(), doctest.DocTestParser()
    for title, blocks in tasks().items():
        for kind, text in blocks:
            if kind == "console":
                words, expected = said(text)
                out = io.StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                    assert main(words) == 0, title
                shown = out.getvalue()
                assert checker.check_output(expected, shown, FLAGS), (title, shown)
            else:
                test = parser.get_doctest(text, session, title, str(PAGE), 0)
                told = io.StringIO()
                runner = doctest.DocTestRunner(optionflags=FLAGS)
                found = runner.run(test, out=told.write, clear_globs=False)
                assert found.failed == 0, told.getvalue()
                session |= test.globs
    assert Path("plate-fit/completed.xlsx").exists() and Path("gaps.xlsx").exists()
    assert ";" in Path("labor-fit/completed.csv").read_text()


def test_there_are_twelve_and_each_is_short():
    found = tasks()
    titles = [title for title in found if title[:1].isdigit()]
    assert [title.partition(".")[0] for title in titles] == [str(k) for k in range(1, 13)]
    for title in titles:
        lines = [
            line
            for kind, text in found[title]
            for line in text.splitlines()
            if line.startswith(("$ ", ">>> ", "... "))
            and not (kind == "console" and line.startswith("... "))
        ]
        assert 1 <= len(lines) <= LONGEST, title
