"""Options of reading: what each does, and what is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from bayesmf import DataError, ModelError, read_matrix, sample
from bayesmf.data.inspection import inspect

NAN = np.nan


def file(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def values(tmp_path, text, **options):
    return read_matrix(file(tmp_path, text), **options).to_array().tolist()


def refused(tmp_path, text, message, name="t.csv", **options):
    with pytest.raises((DataError, ModelError)) as error:
        read_matrix(file(tmp_path, text, name), **options)
    assert message in str(error.value)


# --- Cells --------------------------------------------------------------------------------------


def test_decimals_as_they_are_said(tmp_path):
    table = "id;a;b\nx;1,234;2\ny;3,5;4\n"
    assert values(tmp_path, table) == [[1.234, 2], [3.5, 4]]
    assert values(tmp_path, table.replace("3,5", "3"), decimal=".") == [[1234, 2], [3, 4]]
    refused(tmp_path, table, "write decimals with a point, or say decimal=','", decimal=".")
    assert values(tmp_path, "id,a\nx,1.234\n", decimal=",") == [[1234]]
    refused(tmp_path, "id;a\nx;0,5\ny;0,7\nz;1.5\n", "with a comma as elsewhere")


def test_separators_as_they_are_said(tmp_path):
    assert values(tmp_path, "id,a b\nx,1 2\n", sep=" ", labels="yes") == [[2]]
    refused(tmp_path, "a b\n1 2\n", "say sep='space' (--sep space)", sep="tab")
    for sep in ("tab", "\t", "\\t"):
        assert values(tmp_path, "id\ta\nx\t1\n", sep=sep) == [[1]]


def test_limits_in_other_spellings(tmp_path):
    X = read_matrix(file(tmp_path, 'id;a;b\nx;<0,05;"[1,5; 2]"\ny;1.000,5;>= 1.200\n'))
    assert X.bounds.low.tolist() == [-np.inf, 1.5, 1000.5, 1200]
    assert X.bounds.high.tolist() == [0.05, 2, 1000.5, np.inf]


def test_limits_as_gaps(tmp_path):
    path = file(tmp_path, "id,a,b\nx,1,>8\ny,2,3\nz,4,5\n")
    short = {"draws": 2, "burn_in": 0}
    with pytest.raises(DataError, match=r"missing='limits' \(--missing limits\)"):
        sample(read_matrix(path), "PGG", 1, **short)
    X = read_matrix(path, missing="limits")
    assert X.bounds is None and np.isnan(X.to_array()[0, 1])
    assert sample(X, "PGG", 1, **short).shape == (3, 2)


@pytest.mark.parametrize("missing", ["-999,low", ["-999", "LOW"], [-999.0, "low"]])
def test_codes_for_missing(tmp_path, missing):
    found = values(tmp_path, "id,a,b\nx,-999,Low\ny,-999.0,2\n", missing=missing)
    np.testing.assert_array_equal(found, [[NAN, NAN], [NAN, 2]])
    assert "-999" not in str(inspect(read_matrix(tmp_path / "t.csv", missing=missing)))


def test_percents_in_some_cells_of_a_column_are_refused(tmp_path):
    assert values(tmp_path, "id,a\nx,5%\ny,0\nz,12.5 %\n") == [[5], [0], [12.5]]
    refused(tmp_path, "id,a\nx,5%\ny,0.07\n", "column 'a' has percent signs in 1 of its 2 numbers")


def test_five_of_many_bad_cells_are_named(tmp_path):
    rows = "".join(f"r{i},{'?!' if i % 3 and i < 12 else i},1\n" for i in range(30))
    table = f"id,a,b\n{rows}".replace("?!,1", "1,?!")
    refused(tmp_path, table, "8 cells are not numbers: line 3, row 'r1', column 'b' holds '?!'; ")
    refused(tmp_path, table, "line 9, row 'r7', column 'b' holds '?!' and 3 more; correct it, or ")


def test_a_date_says_where_it_comes_from(tmp_path):
    refused(tmp_path, "id,a\nx,1\ny,3.Mar\nz,2\n", "holds '3.Mar', which is not a number; it looks")


# --- Rows and columns ---------------------------------------------------------------------------


def test_drop(tmp_path):
    table = "id,a,Total\nx,1,9\nTotal,3,4\ny,5,6\n"
    X = read_matrix(file(tmp_path, table), drop="Total")
    assert X.row_labels.tolist() == ["x", "y"] and X.to_array().tolist() == [[1], [5]]
    refused(
        tmp_path, table, "neither a column nor a row 'total'. Did you mean 'Total'?", drop="total"
    )
    refused(tmp_path, table, "drop leaves no column", drop="id,a,Total")
    X = read_matrix(file(tmp_path, "u,i,r\na,p,1\na,q,2\nb,p,3\n"), long="u,i,r", drop="q")
    assert X.to_array().tolist() == [[1], [3]]
    with pytest.raises(DataError, match="neither a column nor a row 'z'"):
        read_matrix(tmp_path / "t.csv", long="u,i,r", drop=["z"])


def test_duplicates(tmp_path):
    table = "id,a,b,a\nx,1,2,3\ny,4,,6\nx,5,8,\n"
    refused(tmp_path, table, "row label 'x' occurs more than once")
    first = read_matrix(tmp_path / "t.csv", duplicates="first")
    np.testing.assert_array_equal(first.to_array(), [[1, 2], [4, NAN]])
    mean = read_matrix(tmp_path / "t.csv", duplicates="mean")
    np.testing.assert_array_equal(mean.to_array(), [[3, 5], [5, NAN]])
    assert "Of 3 rows, 1 repeat a label such as 'x': means were taken." in mean.origin.notes
    limited = table.replace("5,8", ">5,8")
    refused(tmp_path, limited, "limits have no mean", duplicates="mean")
    assert values(tmp_path, limited, duplicates="first")[0] == [1, 2]


def test_duplicates_of_triples(tmp_path):
    table = "u,i,r\na,p,1\nb,q,\na,p,4\nb,p,>7\nb,q,3\n"
    refused(tmp_path, table, "row 'a', column 'p' occurs more than once", long="u,i,r")
    for how, cell, q in (("mean", 2.5, 3), ("first", 1, NAN)):
        X = read_matrix(tmp_path / "t.csv", long="u,i,r", duplicates=how)
        np.testing.assert_array_equal(X.to_array(), [[cell, NAN], [7, q]])
        assert X.bounds.low.tolist()[:2] == [cell, 7] and X.bounds.high[1] == np.inf
    refused(tmp_path, f"{table}b,p,8\n", "limits have no mean", long="u,i,r", duplicates="mean")


def test_columns_and_rows_without_a_name(tmp_path):
    X = read_matrix(file(tmp_path, "id,a,\nx,1,2\n,3,4\n"))
    assert X.col_labels.tolist() == ["a", "column 3"] and X.row_labels.tolist() == ["x", "line 3"]
    assert "Columns without a name: 1; the first was called 'column 3'." in X.origin.notes
    assert "Rows without a label: 1; the first was called 'line 3'." in X.origin.notes
    assert values(tmp_path, "id,a,\nx,1,2\n", drop="column 3") == [[1]]


def test_summaries_are_noticed_at_the_end_alone(tmp_path):
    rows = "".join(f"g{i},{i},1\n" for i in range(6))
    assert "seems to sum up" not in str(
        inspect(read_matrix(file(tmp_path, f"id,a,b\nMAX,1,2\n{rows}")))
    )
    notes = inspect(read_matrix(file(tmp_path, f"id,a,b\n{rows}Grand total,1,2\n")))
    assert any("drop='Grand total' (--drop 'Grand total')" in note for note in notes)


def test_a_header_that_may_be_data_is_noticed(tmp_path):
    said = "All column labels are numbers: if the first row holds data"
    for header, noticed in (("3,1", True), ("1.5,2", True), ("2001,2002", False), ("a,1", False)):
        X = read_matrix(file(tmp_path, f"x,{header}\ny,3,4\n"))
        assert (said in str(X.origin.notes)) == noticed, header


# --- Files --------------------------------------------------------------------------------------


def workbook(tmp_path, *rows, **sheets):
    from openpyxl import Workbook

    book = Workbook()
    for page, content in {
        book.active: rows,
        **{book.create_sheet(k): v for k, v in sheets.items()},
    }.items():
        for row in content:
            page.append(row)
    book.save(tmp_path / "t.xlsx")
    return tmp_path / "t.xlsx"


def test_excel(tmp_path):
    path = workbook(
        tmp_path,
        ["id", "a", "b"],
        [17, 1.5, "1,5"],
        [18, ">2", None],
        Other=[["id", "c"], ["x", 3]],
    )
    X = read_matrix(path)
    assert X.row_labels.tolist() == ["17", "18"]
    np.testing.assert_array_equal(X.to_array(), [[1.5, 1.5], [2, NAN]])
    for sheet in ("Other", 2, "2"):
        assert read_matrix(path, sheet=sheet).to_array().tolist() == [[3]]
    with pytest.raises(
        ModelError, match=r"no sheet 'other'; the sheets are .* Did you mean 'Other'"
    ):
        read_matrix(path, sheet="other")
    with pytest.raises(ModelError, match=r"sep \(--sep\) is not for such data"):
        read_matrix(path, sep=",")


def test_formulas_without_values_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"row 2 has the formula '=1\+1' without a value"):
        read_matrix(workbook(tmp_path, ["id", "a"], ["x", "=1+1"]))


def test_excel_without_its_library(tmp_path, monkeypatch):
    path = workbook(tmp_path, ["id", "a"], ["x", 1])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        DataError, match=r"pip install 'bayesmf\[excel\]', or export the sheet as CSV"
    ):
        read_matrix(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"duplicates": "last"}, "duplicates must be one of error, mean, first, got 'last'"),
        ({"decimal": ";"}, "decimal must be one of ., ,, got ';'"),
        ({"sep": ";;"}, "sep must be one character"),
        ({"sep": ",", "decimal": ","}, "sep and decimal are both ','"),
        ({"skip": -1}, "skip must be a whole number of at least 0"),
        ({"comment": ""}, "comment must be what such lines begin with"),
        ({"encoding": "klingon"}, "encoding 'klingon' is not known"),
        ({"encoding": "ascii"}, "it is not in the encoding 'ascii'"),
        ({"sheet": "A"}, "sheet (--sheet) is not for such data"),
        ({"skip": 9}, "the file is empty"),
    ],
)
def test_bad_options(tmp_path, options, message):
    refused(tmp_path, "id,ä\nx,1\n", message, **options)
