"""The command line: `fit`, `models`, `doctor`, `completion`, and how quick help is."""

from __future__ import annotations

import csv
import inspect
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import shtab

import bayesmf
from bayesmf import PRESETS, BayesianMF, Posterior
from bayesmf.cli import main, parser
from bayesmf.cli._tables import harmless
from bayesmf.cli.fit import FILES
from bayesmf.reading import read_matrix
from tests.helpers.matrices import small_matrix

QUICK = ["--model", "GGGA", "--rank", "2", "--draws", "20", "--burn-in", "10", "--seed", "3",
         "--jobs", "1"]  # fmt: skip
TABLES = FILES[:4]
WRITTEN = [*TABLES, "noise_cols.csv", *FILES[4:]]  # columns that are scaled have their own noise
COMMANDS = ("fit", "predict", "reproduce", "datasets", "models", "doctor", "completion")
HOSTILE = ["=cmd()", "+1", "@x", "-2+3", "-5", "../../x", "<script>", "a,b", 'say "é"', "x\ny"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to be in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, values, rows=None, cols=None):
    """A wide table, empty where missing."""
    rows = [f"r{i}" for i in range(len(values))] if rows is None else rows
    cols = [f"c{j}" for j in range(len(values[0]))] if cols is None else cols
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", *cols])
        for label, row in zip(rows, values, strict=True):
            writer.writerow([label, *("" if np.isnan(x) else repr(float(x)) for x in row)])


def cells(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def refused(capsys, *arguments, code=2):
    """The one line that a command complains with."""
    assert main([*arguments]) == code
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("bayesmf: ")
    assert "Traceback" not in err
    return err


# --- fit ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Columns without an observed value:bayesmf.DataWarning")
def test_fit_writes_everything(here, capsys):
    values = small_matrix()
    values[:, 4], values[:, 5] = np.nan, np.where(np.isnan(values[:, 5]), np.nan, 7.0)
    write("data.csv", values)
    assert main(["fit", "data.csv", "--level", "0.8", *QUICK, "--model", "auto"]) == 0
    out, err = capsys.readouterr()
    assert sorted(p.name for p in here.iterdir()) == ["data-fit", "data.csv"]
    both = [*WRITTEN, "noise_rows.csv"]  # as is said below
    assert sorted(p.name for p in Path("data-fit").iterdir()) == sorted(both)
    assert "noise by row and column among noise by column, noise by row and column" in out
    completed, std, lower, upper = (read_matrix(f"data-fit/{name}") for name in TABLES)
    for table in (completed, std, lower, upper):
        assert table.shape == values.shape and table.density == 1
        assert table.row_labels.tolist() == [f"r{i}" for i in range(17)]
        assert table.col_labels.tolist() == [f"c{j}" for j in range(12)]
    seen = ~np.isnan(values)
    np.testing.assert_array_equal(completed.to_array()[seen], values[seen])
    assert (std.to_array() > 0).all() and (lower.to_array() < upper.to_array()).all()
    mf = BayesianMF(n_components=2, draws=20, burn_in=10, random_state=3).fit(values)
    mean, sd, (low, high) = mf.predict(return_std=True, quantiles=[0.1, 0.9])
    found = zip((completed, std, lower, upper), (mean, sd, low, high), strict=True)
    for table, expected in found:
        np.testing.assert_allclose(table.to_array()[~seen], expected[~seen], rtol=1e-7)
    posterior = Posterior.load("data-fit/posterior.nc")
    assert posterior.row_labels.tolist() == [f"r{i}" for i in range(17)]
    assert "data.csv: 17 x 12," in out and "GGGW, rank 2; 2 x 20 draws, seed 3" in out
    assert "Columns without any observed entry: 1" in out
    assert "Columns that are constant: 1, 'c5' the first" in out
    assert "Written to data-fit: completed.csv" in out and "80 %" in out
    assert "Noise of standard deviation" in out and "GGGW: 100%" in err


def test_run_json(here, capsys):
    write("data.csv", small_matrix())
    options = ["--model", "GGG", "--set", "lambda=0.3", "--center", "global", "--json"]
    assert main(["fit", "data.csv", *QUICK, *options]) == 0
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert err == "" and record == json.loads(Path("data-fit/run.json").read_text())
    expected = {
        "data": "data.csv", "shape": [17, 12], "model": "GGG", "rank": 2, "draws": 20,
        "burn_in": 10, "thin": 1, "chains": 2, "seed": 3, "biases": None, "center": "global",
        "scale": "cols", "level": 0.9, "interrupted": False, "output": "data-fit",
        "files": WRITTEN, "model_asked": "GGG", "rank_asked": 2, "rank_errors": None,
        "hyperparameters": {"lambda": 0.3, "alpha_tau": 1.0, "beta_tau": 1.0},
    }  # fmt: skip
    assert {name: record[name] for name in expected} == expected
    assert record["observed"] == int(np.sum(~np.isnan(small_matrix())))
    assert "precision=0.3" in record["resolved"] and record["versions"]["numpy"] == np.__version__
    assert record["seconds"]["all"] > record["seconds"]["sampling"] > 0
    assert isinstance(record["diagnosis"]["trusted"], bool)
    assert record["diagnosis"]["level"] in ("fine", "usable", "do not use")
    scale, units = record["notes"]
    assert scale.startswith("The model sees values less the mean of all values and divided by")
    assert units == "posterior.nc has the units of the model, not those of the data."


def test_the_same_seed_gives_the_same_files_and_none_a_new_one(here, capsys):
    write("data.csv", small_matrix())
    assert main(["fit", "data.csv", *QUICK, "--quiet"]) == 0
    assert main(["fit", "data.csv", *QUICK, "--quiet", "--jobs", "2", "--output", "again"]) == 0
    for name in TABLES:
        assert Path("data-fit", name).read_bytes() == Path("again", name).read_bytes()
    assert capsys.readouterr() == ("", "")
    fresh = [option for option in QUICK if option not in ("--seed", "3")]
    seeds = set()
    for folder in "ab":
        assert main(["fit", "data.csv", *fresh, "--json", "--output", folder]) == 0
        seeds.add(json.loads(capsys.readouterr().out)["seed"])
    assert len(seeds) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "PGG"], ["Poisson noise", "too few draws to tell"]),
        (["--rank", "auto"], ["Note: Chosen by entries held out: rank ", " (errors by rank "]),
        (["--biases", "--thin", "2", "--chains", "1"], ["1 x 8 draws"]),
        (["--model", "GGGW", "--set", "W0=[[2,0],[0,1]]", "--set", "nu0=none"], ["GGGW"]),
        (["--model", "GLLI", "--set", "reading=rate"], ["GLLI"]),
    ],
)
def test_options(here, capsys, options, words):
    write("data.csv", small_matrix())
    assert main(["fit", "data.csv", *QUICK, "--draws", "8", *options]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in words), out


def test_rank_by_cross_validation(here, capsys):
    write("data.csv", small_matrix(shape=(8, 4)))
    assert main(["fit", "data.csv", *QUICK, "--draws", "5", "--rank", "cv"]) == 0
    out, err = capsys.readouterr()
    assert "by cross-validation" in out and err.startswith("Choosing the rank")
    record = json.loads(Path("data-fit/run.json").read_text())
    assert str(record["rank"]) in record["cv_errors"] and record["rank_asked"] == "cv"


def test_long_tables_arrays_and_datasets(here, capsys):
    Path("t.csv").write_text("u,i,r\na,x,1\na,y,2\nb,x,3\nb,y,\n")
    assert main(["fit", "t.csv", "--long", "u,i,r", *QUICK]) == 0
    assert cells("t-fit/completed.csv")[0] == ["", "x", "y"]
    assert [row[:2] for row in cells("t-fit/completed.csv")[1:]] == [["a", "1"], ["b", "3"]]
    np.save("a.npy", small_matrix())
    assert main(["fit", "a.npy", *QUICK]) == 0
    assert cells("a-fit/std.csv")[0] == ["", *map(str, range(12))]
    assert "The first column" not in capsys.readouterr().out
    assert main(["fit", "drug_sensitivity", *QUICK, "--scale", "none"]) == 0
    assert cells("drug_sensitivity-fit/completed.csv")[1][0] == "CL-001"
    assert "Note" not in capsys.readouterr().out


def test_a_first_column_of_numbers_is_noted(here, capsys):
    Path("t.csv").write_text("age,a,b\n31,1,\n45,2,4\n45,2,5\n")
    assert main(["fit", "t.csv", *QUICK]) == 0
    assert "The first column, 'age', holds numbers only" in capsys.readouterr().out
    assert cells("t-fit/completed.csv")[1][:2] == ["0", "31"]
    assert main(["fit", "t.csv", *QUICK, "--row-labels", "no", "--force"]) == 0
    assert "The first column" not in capsys.readouterr().out


def test_hostile_labels(here):
    write("data.csv", small_matrix(shape=(10, 10)), HOSTILE, [f"{x} " for x in HOSTILE])
    assert main(["fit", "data.csv", *QUICK, "--quiet"]) == 0
    assert sorted(p.name for p in here.iterdir()) == ["data-fit", "data.csv"]
    assert sorted(p.name for p in Path("data-fit").iterdir()) == sorted(WRITTEN)
    shown = ["'=cmd()", "'+1", "'@x", "'-2+3", *HOSTILE[4:]]
    for name in TABLES:
        table = cells(f"data-fit/{name}")
        assert table[0] == ["", *shown] and [row[0] for row in table[1:]] == shown
    assert Posterior.load("data-fit/posterior.nc").row_labels.tolist() == HOSTILE


@pytest.mark.parametrize("label", ["=1", "+a", "@a", "\tx", "-", "-a", "-1-1", "-1.5e3+x"])
def test_formulas_are_quoted(label):
    assert harmless(label) == "'" + label


@pytest.mark.parametrize("label", ["", "a", "1", "-1", "-1.5", "a=b", "'x", "<b>"])
def test_other_labels_are_not(label):
    assert harmless(label) == label


def test_without_optional_packages_posteriors_are_archives_of_arrays(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    write("data.csv", small_matrix())
    assert main(["fit", "data.csv", *QUICK]) == 0
    assert sorted(p.name for p in Path("data-fit").iterdir()) == sorted(
        {*WRITTEN, "posterior.npz"} - {"posterior.nc"}
    )
    assert main(["report", "data-fit", "--quiet"]) == 0
    assert Path("data-fit/report.html").stat().st_size > 10_000


# --- The folder ---------------------------------------------------------------------------------


def test_force_replaces_a_fit_and_nothing_else(here, capsys):
    write("data.csv", small_matrix())
    fit = ["fit", "data.csv", *QUICK, "--quiet", "--output"]
    assert main([*fit, "out"]) == 0
    before = Path("out/run.json").read_bytes()
    assert "The folder out is not empty; name another, or add --force." in refused(
        capsys, *fit, "out"
    )
    assert Path("out/run.json").read_bytes() == before
    assert main([*fit, "out", "--force", "--level", "0.5"]) == 0
    assert json.loads(Path("out/run.json").read_text())["level"] == 0.5
    Path("out/thesis.docx").write_text("years of work")
    assert "holds 'thesis.docx'" in refused(capsys, *fit, "out", "--force")
    Path("mine").mkdir()
    Path("mine/completed.csv").write_text("not of a fit")
    assert "holds 'completed.csv'" in refused(capsys, *fit, "mine", "--force")
    assert Path("mine/completed.csv").read_text() == "not of a fit"
    assert sorted(p.name for p in here.iterdir()) == ["data.csv", "mine", "out"]


def test_other_folders(here, capsys):
    write("data.csv", small_matrix())
    fit = ["fit", "data.csv", *QUICK, "--quiet", "--output"]
    Path("empty").mkdir()
    assert main([*fit, "empty"]) == main([*fit, "deep/er/out"]) == 0
    assert "is a file; name a folder" in refused(capsys, *fit, "data.csv")
    assert "is where you are" in refused(capsys, *fit, ".")
    assert "is where you are" in refused(capsys, *fit, str(here.parent), "--force")
    inside = refused(capsys, *fit, "data.csv/out", code=1)
    assert "data.csv/out cannot be written: a part of its path is a file" in inside
    assert "the name is too long" in refused(capsys, *fit, 300 * "x", code=1)


def test_nothing_is_left_when_writing_fails(here, capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    write("data.csv", small_matrix())
    fit = ["fit", "data.csv", *QUICK, "--quiet", "--output"]
    assert main([*fit, "old"]) == 0
    before = Path("old/run.json").read_bytes()
    monkeypatch.setattr(Posterior, "save", full)
    assert "the disk is full" in refused(capsys, *fit, "deep/out", code=1)
    assert "the disk is full" in refused(capsys, *fit, "old", "--force", code=1)
    assert sorted(p.name for p in here.iterdir()) == ["data.csv", "old"]
    assert Path("old/run.json").read_bytes() == before


def test_interrupted_fits_keep_what_they_have(here):
    write("data.csv", small_matrix())
    options = ["--rank", "2", "--draws", "30000", "--burn-in", "0", "--jobs", "1", "--seed", "1"]
    # A process that was started in the background may ignore interrupts, and so do its children.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from bayesmf.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "fit", "data.csv", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        seen = b""
        while b"train_mse" not in seen:
            seen += (chunk := process.stderr.read1())
            assert chunk, seen
        process.send_signal(signal.SIGINT)
        out = process.communicate()[0].decode()
    assert process.returncode == 130 and "Note: Interrupted: " in out
    record = json.loads(Path("data-fit/run.json").read_text())
    assert record["interrupted"] and 0 < record["draws"] < 30000
    assert read_matrix("data-fit/completed.csv").density == 1


# --- What is refused ----------------------------------------------------------------------------

TABLE = ",a,b\nx,1,2\ny,,4\n"
LONG = "user,item,rating\nx,a,1\n"
BAD = {
    "empty": ("t.csv", "", "the file is empty"),
    "ragged": ("t.csv", TABLE + "z,1\n", "line 4 has 2 cells"),
    "row twice": ("t.csv", TABLE + "x,1,2\n", "row label 'x' occurs more than once"),
    "column twice": ("t.csv", ",a,a\nx,1,2\n", "column label 'a' occurs more than once"),
    "text": ("t.csv", TABLE + "z,1,high\n", "row 'z', column 'b' holds 'high'"),
    "infinite": ("t.csv", TABLE + "z,1,inf\n", "row 'z', column 'b' is infinite"),
    "all missing": ("t.csv", ",a,b\nx,,\n", "no observed entry"),
    "no such column": ("t.csv", LONG, "Did you mean 'item'?", "--long", "user,itm,rating"),
    "two columns": ("t.csv", LONG, "three columns", "--long", "user,item"),
    "pair twice": ("t.csv", LONG + "x,a,2\n", "more than once", "--long", "user,item,rating"),
    "Latin 1": ("t.csv", b",a\n\xe4,1\n", "line 2 is not UTF-8 text"),
    "binary": ("t.csv", b"\0\1\2", "NUL"),
    "ending": ("t.docx", "x", "'.docx' is not known; it must be one of .csv"),
    "no array": ("t.npy", "x" * 50, "not a .npy file"),
    "no counts": ("t.csv", TABLE + "z,1,0.5\n", "row 'z', column 'b' is 0.5", "--model", "PGG"),
    "model": ("t.csv", TABLE, "Did you mean 'GGGA'?", "--model", "GGGAA"),
    "hyperparameter": ("t.csv", TABLE, "Did you mean 'alpha_tau'?", "--set", "alpha=1"),
    "reserved": ("t.csv", TABLE, "no hyperparameter 'name'", "--set", "name=1"),
    "value": ("t.csv", TABLE, "positive number, got -1", "--set", "alpha_tau=-1"),
    "transform": (
        "t.csv", TABLE, "Did you mean 'log'?", "--transform", "lgo", "--rank", "1",
    ),
    "no column": (
        "t.csv", TABLE, "there is no column 'c'", "--transform", "a=log,c=log", "--rank", "1",
    ),
    "no logarithm": (
        "t.csv", TABLE + "z,-3,2\n", "needs positive values: row 'z', column 'a' is -3",
        "--transform", "a=log", "--rank", "1",
    ),
    "center": ("t.csv", TABLE, "nonnegative factors", "--model", "GEE", "--center", "rows"),
    "biases": ("t.csv", TABLE, "biases go with the Gaussian", "--model", "PGG", "--biases"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_with_one_sentence_and_writes_nothing(here, capsys, name):
    file, content, message, *options = BAD[name]
    Path(file).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in refused(capsys, "fit", file, "--output", "new/out", *options)
    assert [p.name for p in here.iterdir()] == [file]


def test_sources_that_are_no_files(here, capsys):
    assert "there is no such file" in refused(capsys, "fit", "nothing.csv")
    assert "Did you mean 'digits'?" in refused(capsys, "fit", "digitz")
    Path("folder").mkdir()
    assert "folder: this is a folder" in refused(capsys, "fit", "folder")
    assert [p.name for p in here.iterdir()] == ["folder"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rank", "0"], "at least 1"),
        (["--rank", "best"], "at least 1, not 'best'"),
        (["--burn-in", "-1"], "at least 0, not '-1'"),
        (["--jobs", "0"], "at least 1 or -1, not '0'"),
        (["--seed", "x"], "at least 0, not 'x'"),
        (["--level", "90"], "between 0 and 1, not '90'"),
        (["--level", "nan"], "between 0 and 1"),
        (["--set", "lambda"], "must be like lambda=0.1"),
        (["--center", "median"], "invalid choice"),
    ],
)
def test_options_out_of_range(capsys, options, message):
    with pytest.raises(SystemExit) as stop:
        main(["fit", "data.csv", *options])
    assert stop.value.code == 2 and message in capsys.readouterr().err


def test_defaults_are_those_of_the_estimator():
    options = vars(parser().parse_args(["fit", "data.csv"]))
    options |= {"n_components": options["rank"]}
    known = inspect.signature(BayesianMF).parameters
    for name in ("model", "n_components", "draws", "burn_in", "thin", "chains", "biases", "center"):
        assert options[name] == known[name].default, name


# --- models, doctor -----------------------------------------------------------------------------


def test_models_are_listed(capsys):
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n{name} " in "\n" + out for name in PRESETS) and "lambda=0.1" in out
    assert main(["models", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == list(PRESETS)
    assert rows["GEG"]["rows"] == "Exponential" and rows["GEG"]["columns"] == "Normal"
    assert rows["GGGA"]["rows"] == "Normal with ARD" and rows["GLL"]["support"] == "real-valued"
    for name, row in rows.items():
        assert row["hyperparameters"] == bayesmf.hyperparameters(name)
        assert row["good_for"] and row["likelihood"] == PRESETS[name].likelihood.name


def test_the_doctor_reports(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("BAYESMF_DATA", str(tmp_path))
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert f"numpy {np.__version__}" in out and "check      passed in" in out
    assert f"BAYESMF_DATA is {tmp_path}; present are " in out and "drug_sensitivity" in out
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["versions"]["bayesmf"] == bayesmf.__version__ and found["check"]["passed"]
    assert (
        found["threads"] >= 1 and "digits" in found["datasets"] and "pyarrow" in found["optional"]
    )
    assert found["kernel_cache"] is None or Path(found["kernel_cache"]).is_dir()


def test_the_doctor_tells_of_failure(capsys, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no compiler")

    monkeypatch.setattr("bayesmf.posterior.sample.sample", broken)
    monkeypatch.setattr("bayesmf.kernels.compile.CACHE", None)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "FAILED" in out and "RuntimeError: no compiler" in out and "set BAYESMF_CACHE" in out


# --- completion and help ------------------------------------------------------------------------


def completed(words):
    """What bash offers for the last of some words."""
    text = shtab.complete(parser(), "bash")
    array = " ".join(f"'{word}'" for word in words)
    code = f"{text}\nCOMP_WORDS=({array}); COMP_CWORD={len(words) - 1}\n_shtab_bayesmf\n"
    code += 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
def test_bash_completes(capsys):
    assert main(["completion", "bash"]) == 0
    subprocess.run(["bash", "-n"], input=capsys.readouterr().out, text=True, check=True)
    assert completed(["bayesmf", "da"]) == ["datasets"]
    assert set(completed(["bayesmf", ""])) >= set(COMMANDS)
    assert completed(["bayesmf", "fit", "data.csv", "--row-l"]) == ["--row-labels"]
    assert completed(["bayesmf", "fit", "--center", "g"]) == ["global"]
    assert completed(["bayesmf", "fit", "--output", ""]) == []  # bash then offers files
    assert completed(["bayesmf", "completion", "f"]) == ["fish"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete(shell, capsys):
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS) and "row-labels" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


def test_help_is_quick():
    """What loads decides how long it takes; the time itself depends on the machine."""
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "bayesmf.cli", "--help"], capture_output=True, check=True
        )
        times.append(time.perf_counter() - begin)
    assert min(times) < 1.0


def test_help_loads_nothing_heavy():
    code = f"""
import sys
from bayesmf.cli import main
for name in {COMMANDS!r}:
    try:
        main([name, "--help"])
    except SystemExit as stop:
        assert stop.code == 0
heavy = ("numpy", "numba", "scipy", "pandas", "sklearn", "matplotlib", "xarray", "distributed")
print("loaded:", [m for m in heavy if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded: []"
    assert all(f"usage: bayesmf {name}" in done.stdout for name in COMMANDS)


# --- compare and report -------------------------------------------------------------------------


def test_compare_writes_a_ranking_and_a_report(here, capsys):
    write("data.csv", small_matrix())
    options = ["--models", "GGG,GEE,PGG,NMF", "--ranks", "1,2", "--budget", "quick", "--jobs", "1"]
    assert main(["compare", "data.csv", *options]) == 0
    out = capsys.readouterr().out
    assert "Use " in out and "with rank" in out and "verdict" in out
    folder = here / "data-compare"
    record = json.loads((folder / "run.json").read_text())
    assert record["kind"] == "compare" and record["best"]["rank"] in (1, 2)
    assert record["command"].startswith("bayesmf compare data.csv --models GGG,GEE,PGG,NMF")
    page = (folder / "report.html").read_text()
    assert record["recommendation"].split(":")[0] in page
    best = record["best"]
    assert f"--model {best['model']} --rank {best['rank']} --scale" in record["fit"]
    assert f"To fill the gaps with it: {record['fit']}\n" in out
    short = ["--draws", "20", "--burn-in", "10", "--quiet"]
    assert main([*shlex.split(record["fit"])[1:], *short]) == 0
    fitted = json.loads((here / "data-fit" / "run.json").read_text())
    assert (fitted["model"], fitted["rank"]) == (best["model"], best["rank"])
    (folder / "report.html").unlink()
    assert main(["report", "data-compare"]) == 0
    assert capsys.readouterr().out.strip() == str(Path("data-compare") / "report.html")
    assert record["recommendation"].split(":")[0] in (folder / "report.html").read_text()
    assert main(["compare", "data.csv", *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"] == record["best"]


def test_compare_takes_options_of_models_limits_and_the_measure(here, capsys):
    write("data.csv", small_matrix())
    names = "gggw + noise cols, ggg + biases,effects"
    options = ["--models", names, "--ranks", "1,2", "--budget", "quick", "--jobs", "1"]
    options += ["--by", "density", "--upper", "20", "--row-labels", "yes", "--no-report"]
    assert main(["compare", "data.csv", *options]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Read 17 rows and 12 columns (labels of rows and columns), 148 entries")
    record = json.loads((here / "data-compare" / "run.json").read_text())
    assert record["by"] == "density" and not record["interrupted"]
    found = {row["model"] for row in record["ranking"]}
    assert found == {"GGGW + noise cols + limits", "GGG + limits + biases", "effects"}
    assert "--upper 20" in record["command"] and "By log density" in record["recommendation"]
    noisy = record["best"]["model"] == "GGGW"
    assert "--upper 20" in record["fit"]
    assert ("--noise cols" in record["fit"], "--biases" in record["fit"]) == (noisy, not noisy)
    assert {"column", "skill", "coverage"} <= set(record["columns"][0])
    assert (here / "data-compare" / "columns.csv").exists()
    assert main(["report", "data-compare"]) == 0


def test_a_report_of_a_fit(here, capsys):
    write("data.csv", small_matrix())
    assert main(["fit", "data.csv", *QUICK, "--center", "global", "--quiet"]) == 0
    assert main(["report", "data-fit", "--output", "page.html", "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert "data.csv, filled in" in (here / "page.html").read_text()
    write("other.csv", small_matrix(seed=5))
    assert main(["report", "data-fit", "--data", "other.csv"]) == 2
    assert "are not those of the run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "nowhere"], "run.json is missing"),
        (["compare", "data.csv", "--ranks", "1,x"], "--ranks must be whole numbers"),
        (["compare", "data.csv", "--models", "GGGX"], "Unknown model 'GGGX'"),
        (["compare", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_bad_comparisons_end_with_one_sentence(here, capsys, arguments, message):
    write("data.csv", small_matrix())
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err and captured.err.count("\n") == 1
    assert [path.name for path in here.iterdir()] == ["data.csv"]


# --- Noise, errors and limits -------------------------------------------------------------------


def numbers(path):
    """A table of labels and numbers."""
    head, *rows = cells(path)
    return head, {label: [float(x) for x in row] for label, *row in rows}


def run(capsys, *options):
    """A quick fit of data.csv; what it printed, and its record."""
    assert main(["fit", "data.csv", *QUICK, "--force", *options]) == 0
    return capsys.readouterr().out, json.loads(Path("data-fit/run.json").read_text())


@pytest.mark.filterwarnings("ignore::bayesmf._errors.ConvergenceWarning")
def test_noise_of_rows_and_columns(here, capsys):
    write("data.csv", small_matrix())
    out, record = run(capsys, "--noise", "cols")
    assert "(columns from " in out and "; noisiest: 'c" in out
    assert record["noise"] == "cols" and record["files"][4] == "noise_cols.csv"
    head, table = numbers("data-fit/noise_cols.csv")
    assert head == ["label", "mean", "lower", "upper"] and list(table) == [
        f"c{j}" for j in range(12)
    ]
    assert all(low < mean < high for mean, low, high in table.values())
    worst = max(table, key=lambda name: table[name][0])
    assert record["found"]["noise"]["cols"]["noisiest"][0] == worst
    mf = BayesianMF("GGGA", 2, draws=20, burn_in=10, random_state=3, noise="cols")
    np.testing.assert_allclose(
        [mean for mean, *_ in table.values()],
        mf.fit(small_matrix()).noise_sd().cols.mean,
        rtol=1e-7,
    )
    out, record = run(capsys, "--noise", "both")
    assert "(rows from " in out and "; columns from " in out
    assert record["files"][4:6] == ["noise_rows.csv", "noise_cols.csv"]
    out, record = run(capsys, "--noise", "equal", "--scale", "none")
    assert sorted(p.name for p in Path("data-fit").iterdir()) == sorted(FILES)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "TGGW"], ["Student-t noise of scale ", " degrees of freedom"]),
        (["--model", "NGG"], ["Negative binomial noise of size "]),
        (["--model", "OGGW", "--biases"], ["Ordinal likelihood with cut points at "]),
        (["--upper", "8", "--center", "global"], ["at or beyond a limit"]),
        (["--upper", "8"], ["entries (", "%) are known to lie at or beyond a limit"]),
        (["--lower=1", "--upper", "8", "--model", "TGGA"], ["at or beyond a limit"]),
    ],
)
def test_likelihoods_tell_what_they_found(here, capsys, options, words):
    values = small_matrix()
    write("data.csv", np.clip(values, 0, 4) if "OGGW" in options else values)
    out, record = run(capsys, *options)
    assert all(word in out for word in words), out
    count = record["found"]["beyond_a_limit"]
    if "--upper" in options:
        low = 1 if "--lower=1" in options else -np.inf
        assert count == np.sum((values >= 8) | (values <= low)) > 0
        assert record["upper"] == 8
        completed, upper = (read_matrix(f"data-fit/{name}.csv") for name in ("completed", "upper"))
        gaps = np.isnan(values)
        assert (completed.to_array()[gaps] <= 8).all() and (upper.to_array() <= 8).all()
    else:
        assert count == 0
    if "OGGW" in options:
        assert len(record["found"]["cuts"]) == 4 and "categories 0, 1, 2, 3, 4" in out


def test_limits_in_the_table_itself(here, capsys):
    Path("data.csv").write_text(',a,b\nx,1,>8\ny,"[2, 4]",3\nz,2,5\n')
    out, record = run(capsys, "--scale", "none")
    assert "1 entry (16.7%) is known to lie at or beyond" in out
    assert "1 entry (16.7%) is known to lie between two" in out
    assert record["upper"] is None and "upper=[inf, 8.0]" in record["resolved"]
    assert main(["report", "data-fit", "--output", "page.html", "--quiet"]) == 0
    assert "no use for limits" in refused(
        capsys, "fit", "data.csv", "--model", "PGG", "--output", "new"
    )


@pytest.mark.filterwarnings("ignore::bayesmf._errors.ConvergenceWarning")
@pytest.mark.parametrize("name", ["errors", "weights"])
def test_known_errors(here, capsys, name):
    values = small_matrix()
    write("data.csv", values)
    known = np.random.default_rng(0).uniform(0.5, 2.0, values.shape)
    backwards = [f"r{i}" for i in range(16, -1, -1)]  # labels tell which is which
    write("known.csv", known[::-1], rows=backwards)
    out, record = run(capsys, f"--{name}", "known.csv")
    assert "times the known errors" in out and record[name] == "known.csv"
    mf = BayesianMF("GGGA", 2, draws=20, burn_in=10, random_state=3)
    expected = mf.fit(values, **{name: np.round(known, 8)}).predict()
    found, gaps = read_matrix("data-fit/completed.csv").to_array(), np.isnan(values)
    np.testing.assert_allclose(found[gaps], expected[gaps], rtol=1e-3)
    assert main(["report", "data-fit", "--output", "page.html", "--quiet"]) == 0


def test_limits_in_files(here, capsys):
    values = small_matrix()
    write("data.csv", values)
    Path("some.csv").write_text(",c3,c0\nlimit,6,7\n")
    _, record = run(capsys, "--upper", "some.csv")
    beyond = np.sum(values[:, 3] >= 6) + np.sum(values[:, 0] >= 7)
    assert record["found"]["beyond_a_limit"] == beyond > 0 and record["upper"] == "some.csv"
    write("all.csv", np.where(values > 9, values, 99.0))
    _, record = run(capsys, "--upper", "all.csv")
    assert record["found"]["beyond_a_limit"] == np.sum(values > 9) > 0
    long = ["row,col,value", *(f"r{i},c{j},{values[i, j]}" for i in range(17) for j in range(12))]
    Path("data.csv").write_text("\n".join(long).replace("nan", ""))
    _, record = run(capsys, "--long", "row,col,value", "--upper", "some.csv")
    assert record["found"]["beyond_a_limit"] == beyond


KNOWN = {
    "a zero": ("a,b\nx,0,1\ny,1,1\n", "--errors", "errors: row 'x', column 'a' is 0; every"),
    "a minus": ("a,b\nx,1,1\ny,1,-2\n", "--weights", "weights: row 'y', column 'b' is -2"),
    "a gap": ("a,b\nx,1,\ny,1,1\n", "--errors", "errors: row 'x', column 'b' is missing"),
    "a stranger": ("a,b\nx,1,1\nz,1,1\n", "--errors", "k.csv: row 'z' is not in the data"),
    "an interval": ("a,b\nx,1,<2\ny,1,1\n", "--errors", "'b' is an interval; write one number"),
    "a column": ("a,q\nx,8,8\n", "--upper", "k.csv: column 'q' is not in the data"),
    "a cell": ("a,b\nx,8,1\ny,8,8\n", "--upper", "'b' is 2, beyond its own upper limit 1"),
    "a text": ("a,b\nx,8,high\n", "--upper", "k.csv: line 2, row 'x', column 'b' holds 'high'"),
    "no file": (None, "--upper", "k.csv: there is no such file"),
}


@pytest.mark.parametrize("case", KNOWN)
def test_files_that_do_not_fit_the_data(here, capsys, case):
    content, option, message = KNOWN[case]
    Path("data.csv").write_text(TABLE)
    if content is not None:
        Path("k.csv").write_text("," + content)
    assert message in refused(capsys, "fit", "data.csv", option, "k.csv", "--output", "new")
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lower", "3", "--upper", "2"], "lower limit 3 is not below the upper one, 2"),
        (["--upper", "8", "--model", "PGG"], "with Gaussian and Student-t likelihoods"),
        (["--noise", "rows", "--model", "OGGW"], "with Gaussian and Student-t likelihoods"),
        (["--upper", "8", "--center", "rows", "--rank", "2"], "Limits are not known for rows"),
        (["--model", "PGG", "--scale", "cols", "--rank", "2"], "counts and categories stay"),
    ],
)
def test_options_that_do_not_fit_the_model(here, capsys, options, message):
    Path("data.csv").write_text(TABLE)
    assert message in refused(capsys, "fit", "data.csv", "--output", "new", *options)


def test_limits_must_be_finite(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "data.csv", "--upper", "inf"])
    assert "must be a finite number or a file" in capsys.readouterr().err


def test_heaps_are_told_and_nothing_is_decided(here, capsys):
    rng = np.random.default_rng(0)
    values = rng.normal(0.0, 20.0, (20, 10)).round(2)
    write("data.csv", values.clip(-25.5, 30.25))
    out, record = run(capsys)
    notes = [note for note in record["notes"] if "exactly" in note]
    assert len(notes) == 2 and "upper=30.25 (--upper 30.25) says so" in notes[0]
    assert "lower=-25.5 (--lower=-25.5) says so" in notes[1] and notes[0] in out
    assert record["upper"] is None and "Censored" not in record["resolved"]
    for option in ("--upper=30.25", "--lower=-25.5"):
        assert not any("exactly" in note for note in run(capsys, option)[1]["notes"])
    write("data.csv", rng.integers(1, 6, (20, 10)))  # ratings
    assert not any("exactly" in note for note in run(capsys)[1]["notes"])
    counts = rng.poisson(rng.gamma(0.5, 20.0, (20, 10)))  # many zeros, but no limit
    write("data.csv", counts)
    assert np.mean(counts == 0) > 0.05
    assert not any("exactly" in note for note in run(capsys)[1]["notes"])


def test_letters_of_likelihoods_are_listed(capsys):
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert "ordinal likelihood: ordered categories" in out and "as in OGG, OGGU" in out
    assert main(["models", "--json"]) == 0
    rows = {row["name"]: row["letters"] for row in json.loads(capsys.readouterr().out)}
    assert "T" in rows["GGGW"] and "N" not in rows["GGGW"] and "N" in rows["PGG"]
