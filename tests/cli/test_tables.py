"""What `bayesmf fit` writes: tables in the manner of the data, the gaps alone, Excel."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesmf import BayesianMF, read_matrix
from bayesmf.cli import _tables, main
from tests.helpers.matrices import small_matrix

QUICK = ["--model", "GGGA", "--rank", "2", "--draws", "20", "--burn-in", "10", "--seed", "3",
         "--jobs", "1", "--quiet"]  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::bayesmf.ConvergenceWarning")


@pytest.fixture(scope="module")
def european(tmp_path_factory):
    """A fit of a table with semicolons, decimal commas, limits, and a column without any value."""
    folder = tmp_path_factory.mktemp("european")
    values = small_matrix() + 0.25
    values[:, 4] = np.nan
    texts = [["" if np.isnan(x) else f"{x:.2f}".replace(".", ",") for x in row] for row in values]
    texts[0][0], texts[1][0] = ">8,5", "[1,5; 2,5]"
    rows = [["Probe", *(f"c{j}" for j in range(12))]]
    rows += [[f"r{i}", *row] for i, row in enumerate(texts)]
    with open(folder / "data.csv", "w", newline="") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        options = ["--clip", "0,9", "--mark", "*", "--excel", "--level", "0.8"]
        assert main(["fit", "data.csv", *QUICK, *options]) == 0
    return folder


def cells(path, sep=";"):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter=sep))


def test_a_table_comes_out_as_it_came_in(european):
    before, after = cells(european / "data.csv"), cells(european / "data-fit" / "completed.csv")
    assert after[0] == before[0] and [row[0] for row in after] == [row[0] for row in before]
    for old, new in zip(before[1:], after[1:], strict=True):
        for x, y in zip(old[1:], new[1:], strict=True):
            assert y.endswith("*") if x == "" else y == x.removesuffix("0").removesuffix(",0"), y
    assert any("," in cell for row in after[1:] for cell in row if cell.endswith("*"))
    for name in ("std", "lower", "upper", "noise_cols"):
        table = cells(european / "data-fit" / f"{name}.csv")
        assert len(table[1]) > 1 and any("," in cell for cell in table[1][1:])


def test_the_gaps_alone(european):
    X = read_matrix(european / "data.csv")
    head, *lines = cells(european / "data-fit" / "filled.csv")
    assert head == ["row", "column", "value", "sd", "lower", "upper", "flag"]
    gaps = np.argwhere(np.isnan(X.to_array()))
    assert [line[:2] for line in lines] == [[f"r{i}", f"c{j}"] for i, j in gaps]
    numbers = np.array([[float(x.replace(",", ".")) for x in line[2:6]] for line in lines])
    completed = cells(european / "data-fit" / "completed.csv")
    for (i, j), line in zip(gaps, lines, strict=True):
        assert completed[i + 1][j + 1] == line[2] + "*"
    value, sd, lower, upper = numbers.T
    assert (numbers >= 0).all() and (sd > 0).all()
    assert (value <= 9).all() and (upper <= 9).all() and (lower <= upper).all()
    flags = {tuple(line[:2]): line[6] for line in lines}
    assert {flag for (_, column), flag in flags.items() if column == "c4"} == {"no data"}
    assert set(flags.values()) <= {"", "below", "above", "no data"}


def test_flags_are_those_of_values_outside_the_range_of_their_column():
    X = small_matrix()
    mf = BayesianMF("GGGA", 2, draws=20, burn_in=10, random_state=3).fit(X)
    found, mean = mf.filled(), mf.predict()
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    for i, j, value, flag in zip(found.row, found.column, found.value, found.flag, strict=True):
        assert value == mean[i, j]
        assert flag == ("below" if value < low[j] else "above" if value > high[j] else "")
    assert {"above", ""} <= set(found.flag)
    clipped = mf.filled(clip="observed")
    assert (clipped.value >= low[clipped.column]).all() and (clipped.flag == found.flag).all()
    assert len(pd.DataFrame(found._asdict())) == np.isnan(X).sum()


def test_excel_has_a_sheet_for_each_table_and_colours_what_was_filled(european):
    from openpyxl import load_workbook

    book = load_workbook(european / "data-fit" / "completed.xlsx")
    assert book.sheetnames == ["completed", "std", "lower", "upper", "gaps"]
    X = read_matrix(european / "data.csv")
    page, gaps = book["completed"], np.isnan(X.to_array())
    assert page["A1"].value == "Probe" and page["B2"].value == ">8,5"
    coloured = [[cell.fill.fill_type == "solid" for cell in row[1:]] for row in page.iter_rows(2)]
    np.testing.assert_array_equal(coloured, gaps)
    for cell, seen, value in zip(page[5][1:], ~gaps[3], X.to_array()[3], strict=True):
        assert not seen or cell.value == value
    again = read_matrix(european / "data-fit" / "completed.xlsx", sheet="completed", decimal=",")
    assert again.density == 1 and again.bounds is not None
    assert book["gaps"].max_row == gaps.sum() + 1


def test_excel_in_is_excel_out_unless_said_otherwise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(small_matrix(), columns=[f"c{j}" for j in range(12)])
    frame.index = pd.Index([f"+r{i}" for i in range(17)], name="sample")
    frame.to_excel("data.xlsx")
    assert main(["fit", "data.xlsx", *QUICK]) == 0
    found = pd.read_excel("data-fit/completed.xlsx", index_col=0)
    assert found.index.name == "sample" and found.index[0] == "'+r0" and found.shape == (17, 12)
    assert "completed.xlsx" in json.loads(Path("data-fit/run.json").read_text())["files"]
    assert main(["fit", "data.xlsx", *QUICK, "--no-excel", "--force"]) == 0
    assert not Path("data-fit/completed.xlsx").exists()


def test_excel_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("id,a\nx,1\n")
    monkeypatch.setattr(_tables, "_LARGEST", (1, 9))
    assert main(["fit", "data.csv", "--excel"]) == 2
    assert "an Excel sheet has at most 1 rows" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert main(["fit", "data.csv", "--excel"]) == 2
    assert "pip install 'bayesmf[excel]'" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def test_a_very_long_table_of_gaps_is_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", small_matrix())
    monkeypatch.setattr(_tables, "LONGEST", 3)
    assert main(["fit", "data.npy", *QUICK[:-1]]) == 0
    assert "filled.csv was left out: it would have" in capsys.readouterr().out
    assert not Path("data-fit/filled.csv").exists()


@pytest.mark.parametrize("clip", ["1", "5,1", "a,b", ",", "seen"])
def test_clips_that_make_no_sense(clip, capsys):
    with pytest.raises(SystemExit):
        main(["fit", "data.csv", "--clip", clip])
    assert "must be like 0,100" in capsys.readouterr().err


def test_predictions_are_clipped_as_asked():
    X = small_matrix()
    mf = BayesianMF("GGGA", 2, draws=20, burn_in=10, random_state=3).fit(X)
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    mean, std, levels = mf.predict(return_std=True, quantiles=[0.1, 0.9])
    some, same, ends = mf.predict(return_std=True, quantiles=[0.1, 0.9], clip="observed")
    np.testing.assert_array_equal(some, np.clip(mean, low, high))
    np.testing.assert_array_equal(ends, np.clip(levels, low, high))
    np.testing.assert_array_equal(same, std)
    cells = np.array([0, 3, 5]), np.array([1, 1, 7])
    np.testing.assert_allclose(mf.predict(*cells, clip=(2, None)), mean[cells].clip(2), rtol=1e-12)
    for clip in ("all", (3, 1), 5):
        with pytest.raises(ValueError, match="clip"):
            mf.predict(clip=clip)


def test_a_report_reads_the_data_as_the_fit_did(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    values = small_matrix()
    rows = [f"r{i},f,{','.join('low' if np.isnan(x) else f'{x:g}' for x in row)}"
            for i, row in enumerate(values)]  # fmt: skip
    names = ",".join(f"c{j}" for j in range(12))
    Path("data.csv").write_text("\n".join(["Plate 7", f"id,sex,{names}", *rows]))
    options = ["--skip", "1", "--drop", "sex", "--missing", "low"]
    assert main(["fit", "data.csv", *QUICK, *options]) == 0
    record = json.loads(Path("data-fit/run.json").read_text())
    assert [record[name] for name in ("skip", "drop", "missing")] == [1, "sex", "low"]
    assert main(["report", "data-fit", "--quiet"]) == 0
    assert "r16" in Path("data-fit/report.html").read_text()
    capsys.readouterr()
    short = ["--models", "GGG", "--ranks", "1", "--budget", "quick", "--no-report", "--quiet"]
    assert main(["compare", "data.csv", *short, *options]) == 0
    command = json.loads(Path("data-compare/run.json").read_text())["command"]
    assert "--skip 1 --missing low --drop sex" in command


def test_columns_of_text_that_were_dropped_are_in_their_places_again(tmp_path, monkeypatch):
    """Also where the last of them has no column behind it; a dropped total is gone."""
    values = small_matrix()
    table = pd.DataFrame(values, [f"r{i}" for i in range(len(values))], [*"abcdefghijkl"])
    notes = [f"=note {i}" for i in range(len(values))]
    table.insert(0, "site", ["north", *["south"] * (len(values) - 1)])
    table.insert(5, "unit", "mg")
    table["total"] = table[[*"abc"]].sum(axis=1)
    table["notes"] = notes
    table.to_csv(tmp_path / "data.csv", index_label="id")
    monkeypatch.chdir(tmp_path)
    options = ["--drop", "site,unit,total,notes,r3", "--excel", "--mark", "*"]
    assert main(["fit", "data.csv", *QUICK, *options]) == 0
    found = pd.read_csv("data-fit/completed.csv", index_col="id", dtype=str)
    left = table.drop(index="r3").drop(columns="total")
    assert [*found.columns] == [*left.columns] and [*found.index] == [*left.index]
    assert found["site"].tolist() == left["site"].tolist()
    assert found["notes"].tolist() == [f"'{note}" for note in left["notes"]]
    sheet = pd.read_excel("data-fit/completed.xlsx", sheet_name="completed", index_col=0)
    assert [*sheet.columns] == [*left.columns] and set(sheet["unit"]) == {"mg"}
    assert [*pd.read_csv("data-fit/std.csv", index_col=0).columns] == [*"abcdefghijkl"]
    again = ["--drop", "site,unit,notes", "--missing", "*", "--output", "again", *QUICK]
    assert main(["fit", "data-fit/completed.csv", *again]) == 2  # marks are text, and told
    X = read_matrix("data.csv", drop="site,unit,total,notes,r3")
    assert X.origin.aside[0].before == "a" and X.origin.aside[-1].before is None
