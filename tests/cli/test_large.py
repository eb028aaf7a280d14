"""Options of `bayesmf fit` for large matrices: Parquet, held-out entries, single precision."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from bayesmf import BayesianMF, read_matrix
from bayesmf.cli import main
from bayesmf.posterior import predictive

pq = pytest.importorskip("pyarrow.parquet")
SHORT = ("--model", "GGG", "--rank", "2", "--draws", "20", "--burn-in", "10", "--seed", "1")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a table: three columns, rows by name, some gaps."""
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=(12, 1)) * [1.0, 2.0, -1.0] + rng.normal(size=(12, 3)), 2)
    lines = ["name,a,b,=c"]
    for i, row in enumerate(values):
        lines.append(",".join([f"row {i}", *("" if (i + j) % 5 == 0 else str(x)
                                             for j, x in enumerate(row))]))  # fmt: skip
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record(folder):
    return json.loads((folder / "run.json").read_text())


def test_parquet_has_what_tables_have(here, monkeypatch):
    monkeypatch.setattr(predictive, "_NUMBERS", 7000)  # two rows at a time
    for form in ("csv", "parquet"):
        words = ("--format", form, "--output", form, "--clip", "observed", "--quiet")
        assert main(["fit", "data.csv", *SHORT, *words]) == 0
    file = pq.ParquetFile(here / "parquet" / "cells.parquet")
    assert file.num_row_groups == 6
    table = file.read().to_pydict()
    X = read_matrix("data.csv")
    rows, cols = X.names()
    assert table["row"] == [row for row in rows for _ in cols]
    assert table["column"] == cols * len(rows)  # as they are: no spreadsheet opens such files
    observed = X.to_array().ravel()
    np.testing.assert_array_equal(np.array(table["observed"], float), observed)
    for name, column in (("std", "sd"), ("lower", "lower"), ("upper", "upper")):
        expected = read_matrix(here / "csv" / f"{name}.csv").to_array().ravel()
        np.testing.assert_allclose(table[column], expected, rtol=1e-7)
    completed = read_matrix(here / "csv" / "completed.csv").to_array().ravel()
    gaps = np.isnan(observed)
    np.testing.assert_allclose(np.array(table["mean"])[gaps], completed[gaps], rtol=1e-7)
    found, expected = record(here / "parquet"), record(here / "csv")
    assert found["fit_mse"] == pytest.approx(expected["fit_mse"], rel=1e-12)
    assert "cells.parquet" in found["files"] and "completed.csv" not in found["files"]
    again = read_matrix(here / "parquet" / "cells.parquet", long="row,column,mean")
    assert again.shape == X.shape
    assert main(["fit", "data.csv", *SHORT, "--output", "parquet", "--force", "--quiet"]) == 0
    assert not (here / "parquet" / "cells.parquet").exists()


@pytest.mark.parametrize("option", ["--excel", "--mark=*"])
def test_parquet_takes_no_options_of_tables(here, capsys, option):
    assert main(["fit", "data.csv", *SHORT, "--format", "parquet", option]) == 2
    assert "is for tables; leave it out with --format parquet" in capsys.readouterr().err
    assert not (here / "data-fit").exists()


def test_a_share_is_held_out_and_told(here, capsys):
    assert main(["fit", "data.csv", *SHORT, "--held-out", "0.2", "--output", "fit"]) == 0
    told = capsys.readouterr()
    assert "held_out_mse" in told.err and "Held out: 6 entries, mean squared error" in told.out
    found, X = record(here / "fit"), read_matrix("data.csv")
    assert found["observed"] == X.n_observed - 6
    errors = found["held_out_errors"]
    assert errors["entries"] == 6 and errors["mse"] > 0 and 0 <= errors["covered"] <= 1
    assert main(["report", "fit", "--quiet"]) == 0  # which reads the data again
    assert main(["predict", "fit", "--rows", "data.csv", "--output", "new", "--quiet"]) == 0


def test_entries_of_a_file_are_held_out(here, capsys):
    X = read_matrix("data.csv")
    i, j, values = X.triples()
    first = int(np.flatnonzero(j == 0)[0])
    text = f",a\n{X.row_labels[i[first]]},{values[first]}\n"
    (here / "test.csv").write_text(text)
    words = ("--held-out", "test.csv", "--output", "fit", "--json")
    assert main(["fit", "data.csv", *SHORT, *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["observed"] == X.n_observed - 1
    assert found["held_out_errors"]["entries"] == 1
    assert main(["report", "fit", "--quiet"]) == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("none.csv", "none.csv: there is no such file"),
        ("data.csv", "--held-out data.csv has all entries of the data; leave some to fit"),
        ("0.99", "lower it"),
    ],
)
def test_what_cannot_be_held_out(here, capsys, given, message):
    assert main(["fit", "data.csv", *SHORT, "--held-out", given]) == 2
    assert message in capsys.readouterr().err
    assert not (here / "data-fit").exists()


def test_a_share_lies_between_zero_and_one(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "data.csv", "--held-out", "1.5"])
    assert "must be a share between 0 and 1, or a file, not 1.5" in capsys.readouterr().err


def test_held_out_categories_are_told_in_the_end(here, capsys):
    rng = np.random.default_rng(0)
    np.save("stars.npy", rng.integers(1, 5, (15, 8)).astype(float))
    words = ("--model", "OGGW", "--rank", "1", "--draws", "20", "--burn-in", "5", "--seed", "1")
    assert main(["fit", "stars.npy", *words, "--held-out", "0.1"]) == 0
    told = capsys.readouterr()
    assert "held_out_mse" not in told.err and "Held out: 12 entries" in told.out


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 10**6), (10**6, 1)])
@pytest.mark.filterwarnings("ignore::bayesmf.ConvergenceWarning")
def test_a_million_cells_in_one_line(here, shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    X[rng.random(shape) < 0.3] = np.nan
    begin = time.process_time()
    mf = BayesianMF("GGG", 1, draws=10, burn_in=5, random_state=0).fit(X)
    mean, std, (low, high) = mf.predict(return_std=True, quantiles=[0.05, 0.95])
    assert mean.shape == std.shape == low.shape == shape and (low < high).all()
    np.save("line.npy", X)
    words = ("--model", "GGG", "--rank", "1", "--draws", "10", "--burn-in", "5", "--quiet")
    for form in ("csv", "parquet"):
        assert main(["fit", "line.npy", *words, "--output", form, "--format", form]) == 0
    assert time.process_time() - begin < 300  # some minutes, where squares would be days


def test_single_precision_gives_the_same_files(here):
    for k, words in enumerate(((), ("--single",))):
        assert main(["fit", "data.csv", *SHORT, *words, "--output", str(k), "--quiet"]) == 0
    assert record(here / "1")["single"] is True
    assert main(["report", "1", "--quiet"]) == 0
