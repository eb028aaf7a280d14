"""Fuzzed command lines: an answer, or one sentence; never a traceback, never NaN."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayesmf.cli import main

VALUES = ["", "0", "-1", "1", "2", "3.5", "nan", "1e400", "auto", "x", "cols", "log", "GGGA", "PGG",
          "b=log", ",,", "1,2", "../x", "out", "data.csv", "tall.csv", "é" * 300,
          "/dev/null", "/proc/none/x", "lambda=1", "lambda=nan", "alpha=[1,2]"]  # fmt: skip
DATA = ["data.csv", "tall.csv", "long.csv", "big.csv", "text.csv", "none.csv", "empty.csv", "out",
        "array.npy", "huge.mtx", "a.gz"]  # fmt: skip
QUICK = ["--draws", "3", "--burn-in", "2", "--chains", "1", "--quiet", "--jobs", "1"]
OPTIONS = {
    "fit": ["--long", "--row-labels", "--model", "--rank", "--draws", "--thin", "--chains",
            "--seed", "--center", "--scale", "--transform", "--noise", "--errors", "--weights",
            "--lower", "--upper", "--set", "--level", "--output", "--biases", "--force", "--json"],
    "compare": ["--models", "--ranks", "--folds", "--seed", "--by", "--scale", "--output", "--long",
                "--lower", "--transform", "--row-labels", "--json"],
    "report": ["--data", "--output"],
    "models": ["--json"],
    "datasets": ["--json"],
    "completion": [],
}  # fmt: skip
FLAGS = ("--biases", "--force", "--json")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, values in (
        ("data.csv", rng.normal(size=(8, 5))), ("tall.csv", rng.poisson(3.0, (40, 1)) * 1.0),
        ("big.csv", 1e200 * rng.normal(size=(4, 3))),
    ):  # fmt: skip
        lines = [",".join(["", *(f"c{j}" for j in range(values.shape[1]))])]
        lines += [",".join([f"r{i}", *map(repr, row.tolist())]) for i, row in enumerate(values)]
        Path(name).write_text("\n".join(lines) + "\n")
    Path("long.csv").write_text("1,2,b\nx,a,1\ny,b,2\nx,b,3\n")
    Path("text.csv").write_text(",a\nx,hello\n")
    Path("empty.csv").touch()
    Path("a.gz").write_bytes(b"no archive")
    np.save("array.npy", np.full((3, 3), np.nan))
    Path("huge.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n100000000 90000000 1\n1 1 1\n"
    )
    (tmp_path / "out").mkdir()
    Path("out/run.json").write_text('{"kind": "fit"}')


def words(data):
    """A command line with a few odd options."""
    command = data.draw(st.sampled_from(sorted(OPTIONS)))
    if command in ("models", "datasets"):
        return [command, *data.draw(st.sampled_from([[], ["--json"], ["--x"], ["y"]]))]
    if command == "completion":
        return [command, data.draw(st.sampled_from(["bash", "zsh", "fish", "", "x"]))]
    line = [command, data.draw(st.sampled_from(DATA))]
    line += QUICK if command == "fit" else ["--quiet"]
    if command == "compare":
        line += ["--models", "GGG,row-average", "--ranks", "1", "--folds", "2", "--jobs", "1",
                 "--budget", "quick", "--no-report"]  # fmt: skip
    for name in data.draw(st.lists(st.sampled_from(OPTIONS[command]), max_size=3, unique=True)):
        line += [name] if name in FLAGS else [f"{name}={data.draw(st.sampled_from(VALUES))}"]
    return line


def try_one(line, capsys):
    capsys.readouterr()
    try:
        code = main(line)
    except SystemExit as left:  # bad options, and --help
        code = left.code
    out, err = capsys.readouterr()
    told = f"{line}: {code}\n{err}"
    assert code in (0, 1, 2), told
    assert "Traceback" not in err and "repeat with --debug" not in err, told
    if code and "usage:" not in err:
        assert err.count("\n") == 1 and err.startswith("bayesmf: "), told
    if not code and "--json" in line and line[0] == "fit":
        json.loads(out, parse_constant=lambda constant: pytest.fail(f"{constant} in {line}"))


def fuzz(capsys, examples):
    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.data())
    def one(data):
        try_one(words(data), capsys)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of runs that are far too short
        one()
    assert not list(Path().rglob(".bayesmf-*")), "something is left behind"


def test_odd_command_lines(here, capsys):
    fuzz(capsys, 20)


@pytest.mark.slow
def test_many_odd_command_lines(here, capsys):
    fuzz(capsys, 200)


def test_errors_that_are_not_ours_are_told_with_a_hint(here, capsys, monkeypatch):
    def broken(*_, **__):
        raise KeyError("no such thing")

    monkeypatch.setattr("bayesmf.reading.read_matrix", broken)
    line = ["fit", "data.csv", *QUICK]
    assert main(line) == 1
    err = capsys.readouterr().err
    assert (
        err
        == "bayesmf: KeyError: 'no such thing'; repeat with --debug to see where that happened.\n"
    )
    with pytest.raises(KeyError):
        main([*line, "--debug"])


def test_an_interrupt_claims_nothing(here, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bayesmf.reading.read_matrix", interrupted)
    assert main(["fit", "data.csv", *QUICK]) == 130
    assert capsys.readouterr().err == "bayesmf: interrupted; nothing was written.\n"
    assert main(["compare", "data.csv"]) == 130
    assert "the same command goes on where it was" in capsys.readouterr().err
