"""Features on the command line: `fit` with them, `predict` for new rows and columns."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest

from bayesmf.cli import main

pytest.importorskip("h5netcdf")
RNG = np.random.default_rng(0)
ROWS, COLS = [f"line{i}" for i in range(20)], [f"drug{j}" for j in range(8)]
LINES = pd.DataFrame(RNG.normal(size=(20, 3)), index=ROWS, columns=list("abc"))
LINES["tissue"] = RNG.choice(["skin", "lung"], 20)
DRUGS = pd.DataFrame(RNG.normal(size=(8, 2)), index=COLS, columns=list("xy"))
DATA = pd.DataFrame(np.outer(LINES["a"], np.arange(8)) + DRUGS["x"].to_numpy(), ROWS, COLS)
QUICK = ["--model", "GGGW", "--rank", "1", "--draws", "20", "--burn-in", "20", "--chains", "1",
         "--seed", "3", "--jobs", "1", "--quiet"]  # fmt: skip


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    """A folder with a fit of all rows but the last four, and of all columns but the last."""
    here = tmp_path_factory.mktemp("features")
    DATA.iloc[:16, :7].to_csv(here / "ic50.csv")
    LINES.iloc[::-1].to_csv(here / "lines.csv")
    DRUGS.to_csv(here / "drugs.csv")
    LINES.iloc[16:].to_csv(here / "new-lines.csv")
    DRUGS.iloc[7:].to_csv(here / "new-drugs.csv")
    DATA.iloc[16:, :7].to_csv(here / "entries.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        options = ["--row-features", "lines.csv", "--col-features", "drugs.csv", "--biases"]
        assert main(["fit", "ic50.csv", *options, "--pattern", "rows", *QUICK]) == 0
    return here


@pytest.fixture
def here(fit, monkeypatch):
    monkeypatch.chdir(fit)
    return fit


def test_a_fit_says_what_its_features_explain(here):
    with open("ic50-fit/features_rows.csv", encoding="utf-8", newline="") as file:
        first = next(csv.DictReader(file))
    assert (first["group"], first["feature"]) == ("lines", "a")
    assert (here / "ic50-fit" / "features_cols.csv").exists()


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        (["--row-features", "new-lines.csv"], (4, 7)),
        (["--row-features", "new-lines.csv", "--rows", "entries.csv"], (4, 7)),
        (["--col-features", "new-drugs.csv"], (16, 1)),
        (["--row-features", "new-lines.csv", "--col-features", "new-drugs.csv"], (4, 1)),
    ],
)
def test_new_rows_and_columns_are_predicted(here, tmp_path, capsys, options, shape):
    folder = tmp_path / "new"
    assert main(["predict", "ic50-fit", *options, "--output", str(folder)]) == 0
    assert "predicted.csv" in capsys.readouterr().out
    tables = {
        name: pd.read_csv(folder / f"{name}.csv", index_col=0)
        for name in ("predicted", "std", "lower", "upper")
    }
    assert {table.shape for table in tables.values()} == {shape}
    truth = DATA.loc[tables["predicted"].index, tables["predicted"].columns]
    assert ((tables["lower"] <= truth) & (truth <= tables["upper"])).to_numpy().mean() > 0.7
    assert np.corrcoef(tables["predicted"].to_numpy().ravel(), truth.to_numpy().ravel())[0, 1] > 0.8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "ic50-fit"], "Nothing is new"),
        (["predict", "ic50-fit", "--rows", "entries.csv"], "The fit had features 'lines'"),
        (["predict", "ic50-fit", "--row-features", "lines.csv", "drugs.csv"], "needs 1 files"),
        (["predict", "ic50-fit", "--row-features", "new-drugs.csv"], "'a' is not there"),
        (["predict", "nothing", "--row-features", "lines.csv"], "is not a folder"),
        (["predict", "ic50-fit", "--data", "drugs.csv", "--row-features", "x"], "not those of"),
        (["fit", "ic50.csv", "--row-features", "absent.csv"], "cannot be read"),
        (["fit", "ic50.csv", "--row-features", "new-lines.csv"], "'line0' is not there"),
        (["fit", "ic50.csv", "--row-features", "lines.csv", "lines.csv"], "Two files"),
        (["fit", "ic50.csv", "--model", "GEE", "--pattern", "rows"], "Exponential"),
    ],
)
def test_bad_input_ends_with_one_sentence_and_writes_nothing(here, capsys, arguments, message):
    assert main([*arguments, "--output", "none", "--quiet"]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1 and not (here / "none").exists()
