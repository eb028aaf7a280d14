"""Matrices from files: every format, labels, missing values, and what is refused."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pandas as pd
import pytest
import scipy.io
from scipy import sparse

from bayesmf import DataError, ModelError
from bayesmf.datasets import CATALOGUE
from bayesmf.reading import progress, read_matrix, sheets, text

VALUES = np.array([[1.5, np.nan, -3.0], [0.0, 2e-5, np.nan]])
WIDE = ",a,b,c\nx,1.5,,-3\ny,0,2e-5,NA\n"
LONG = "user,when,item,rating\nx,1,a,1.5\nx,2,c,-3\ny,3,a,0\ny,4,b,2e-5\n"


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def check(X, values=VALUES, rows=("x", "y"), cols=("a", "b", "c")):
    np.testing.assert_array_equal(X.to_array(), values)
    for labels, expected in ((X.row_labels, rows), (X.col_labels, cols)):
        assert (None if labels is None else tuple(labels)) == expected


# --- Formats ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt", ".csv.gz", ".TSV", ".txt.GZ"])
def test_wide_tables(tmp_path, ending):
    delimiter = "," if "csv" in ending else "\t"
    path = tmp_path / f"table{ending}"
    data = WIDE.replace(",", delimiter).encode()
    path.write_bytes(gzip.compress(data) if ending.lower().endswith(".gz") else data)
    check(read_matrix(path))
    check(read_matrix(str(path)))


@pytest.mark.parametrize(
    "long", ["user,item,rating", "user, item ,rating", ["user", "item", "rating"]]
)
def test_long_tables(tmp_path, long):
    X = read_matrix(write(tmp_path / "t.csv.gz", LONG), long=long)
    check(X, VALUES[:, [0, 2, 1]], cols=("a", "c", "b"))


def test_long_labels_are_texts_and_missing_values_keep_their_row(tmp_path):
    X = read_matrix(write(tmp_path / "t.tsv", "u\ti\tr\n7\t1\t2\n5\t1\tNA\n"), long="u,i,r")
    check(X, np.array([[2.0], [np.nan]]), ("7", "5"), ("1",))


def test_arrays(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    np.savez_compressed(tmp_path / "a.npz", whatever=VALUES)
    for name in ("a.npy", "a.npz"):
        check(read_matrix(tmp_path / name), rows=None, cols=None)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_stored_entries_of_sparse_files_are_observed(tmp_path, kind):
    i, j = np.nonzero(~np.isnan(VALUES))
    matrix = sparse.coo_array((VALUES[i, j], (i, j)), shape=VALUES.shape).asformat(kind)
    sparse.save_npz(tmp_path / "a.npz", matrix)
    scipy.io.mmwrite(tmp_path / "a.mtx", matrix)
    write(tmp_path / "b.mtx.gz", (tmp_path / "a.mtx").read_bytes())
    for name in ("a.npz", "a.mtx", "b.mtx.gz"):
        check(read_matrix(tmp_path / name), rows=None, cols=None)


def parquet(monkeypatch, tmp_path, frame, **options):
    """Read a frame as though it came from a Parquet file, for which pyarrow would be needed."""
    monkeypatch.setattr(pd, "read_parquet", lambda path: frame)
    monkeypatch.setattr(sheets, "plain_triples", lambda path, layout: None)
    return read_matrix(write(tmp_path / "t.parquet", "any"), **options)


def test_parquet(monkeypatch, tmp_path):
    frame = pd.DataFrame(VALUES, index=["x", "y"], columns=["a", "b", "c"])
    check(parquet(monkeypatch, tmp_path, frame))
    check(parquet(monkeypatch, tmp_path, frame.reset_index()))
    check(parquet(monkeypatch, tmp_path, frame.reset_index(drop=True)), rows=None)
    check(parquet(monkeypatch, tmp_path, frame, labels="no"), rows=None)
    triples = frame.melt(ignore_index=False, var_name="i", value_name="r").reset_index(names="u")
    check(parquet(monkeypatch, tmp_path, triples, long="u,i,r"))
    triples.loc[1, "i"] = None
    with pytest.raises(DataError, match=r"line 3 has no .i.; fill it in"):
        parquet(monkeypatch, tmp_path, triples, long="u,i,r")


def test_parquet_without_its_library(monkeypatch, tmp_path):
    def absent(path):
        raise ImportError("Unable to find a usable engine")

    monkeypatch.setattr(pd, "read_parquet", absent)
    with pytest.raises(DataError, match=r"t\.parquet: .* pip install pandas pyarrow"):
        read_matrix(write(tmp_path / "t.parquet", "any"))


def test_datasets_by_name():
    assert read_matrix("digits").shape == CATALOGUE["digits"].shape


# --- Labels and cells ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "first", "labels", "expected"),
    [
        ("", "12", "auto", True),  # an empty corner: labels, though numbers
        ("Index", "12", "auto", True),
        ("id", "12", "auto", True),
        ("line", "x", "auto", True),  # a text: labels
        ("line", "12", "auto", False),
        ("line", "", "auto", False),  # all missing is data too
        ("line", "12", "yes", True),
        ("", "12", "no", False),
    ],
)
def test_which_first_columns_are_labels(tmp_path, header, first, labels, expected):
    X = read_matrix(write(tmp_path / "t.csv", f"{header},a\n3,1\n{first},2\n"), labels=labels)
    assert X.shape == (2, 1 if expected else 2)
    assert X.col_labels.tolist() == (["a"] if expected else [header or "column 1", "a"])
    assert (X.row_labels is not None) == expected


def test_cells_in_every_spelling(tmp_path):
    missing = ["", "NA", "NaN", "nan", "N/A", "null", "None", "none", "NULL", " ", " na "]
    numbers = {"1": 1, " 2.5 ": 2.5, "-3e-2": -0.03, "+4": 4, "0": 0, ".5": 0.5}
    for cells in (missing, list(numbers), [*missing, *numbers]):
        header = ",".join(["", *map(str, range(len(cells) + 1))])
        X = read_matrix(write(tmp_path / "t.csv", f"{header}\nx,7,{','.join(cells)}\n"))
        expected = [7.0, *(numbers.get(cell, np.nan) for cell in cells)]
        np.testing.assert_array_equal(X.to_array()[0], expected)


def bounds(X):
    """Low and high ends of all entries, by row and column."""
    i, j, _ = X.triples()
    names = X.names()
    ends = zip(X.bounds.low.tolist(), X.bounds.high.tolist(), strict=True)
    return {(names[0][a], names[1][b]): end for a, b, end in zip(i, j, ends, strict=True)}


@pytest.mark.parametrize(
    ("text", "value", "ends"),
    [
        (">8", 8, (8, np.inf)),
        (" >= 8.5 ", 8.5, (8.5, np.inf)),
        ("<0.05", 0.05, (-np.inf, 0.05)),
        ("<= -1e-3", -1e-3, (-np.inf, -1e-3)),
        ("8+", 8, (8, np.inf)),
        ("8 +", 8, (8, np.inf)),
        ("[2, 4]", 3, (2, 4)),
        ("[ -2.5,.5 ]", -1, (-2.5, 0.5)),
    ],
)
def test_limits(tmp_path, text, value, ends):
    content = f"\ta\tb\tc\nx\t1.5\t\t-3\ny\t0\t{text}\tNA\n"
    X = read_matrix(write(tmp_path / "t.tsv", content))
    check(X, np.array([[1.5, np.nan, -3.0], [0.0, value, np.nan]]))
    exact = {("x", "a"): (1.5, 1.5), ("x", "c"): (-3, -3), ("y", "a"): (0, 0)}
    assert bounds(X) == exact | {("y", "b"): ends}
    lines = [("y", "b", text), ("x", "a", 1.5), ("z", "b", ""), ("x", "c", -3), ("y", "a", 0)]
    content = "\n".join("\t".join(map(str, line)) for line in [("u", "i", "r"), *lines])
    X = read_matrix(write(tmp_path / "long.tsv", content), long="u,i,r")
    assert X.shape == (3, 3) and bounds(X) == exact | {("y", "b"): ends}


def test_limits_in_a_first_column_without_labels(tmp_path):
    X = read_matrix(write(tmp_path / "t.csv", "p,q\n>8,1\n2,<3\n,\n4,5\n"))
    assert X.row_labels is None
    np.testing.assert_array_equal(X.to_array(), [[8, 1], [2, 3], [np.nan] * 2, [4, 5]])
    inf = np.inf
    assert X.bounds.low.tolist() == [8, 1, 2, -inf, 4, 5]
    assert X.bounds.high.tolist() == [inf, 1, 2, 3, 4, 5]


def test_tables_without_limits_have_no_bounds(tmp_path):
    assert read_matrix(write(tmp_path / "t.csv", WIDE)).bounds is None
    table = WIDE.replace("2e-5", '"[2, 2]"')
    assert read_matrix(write(tmp_path / "same.csv", table)).bounds is None


def test_byte_order_mark_line_endings_blanks_and_quotes(tmp_path):
    text = '\ufeff,"a ",b,"c"\r\n x ,1.5,,"-3"\r\n\r\ny,0,2e-5,NA\r\n\r\n'
    check(read_matrix(write(tmp_path / "t.csv", text)))
    check(read_matrix(write(tmp_path / "t.csv", WIDE.replace("\n", "\r"))))
    X = read_matrix(write(tmp_path / "t.csv", ',"a,b","c\nd"\n"say ""é""",1,2\n'))
    check(X, np.array([[1.0, 2.0]]), ('say "é"',), ("a,b", "c\nd"))


def test_empty_rows_and_columns_are_allowed(tmp_path):
    X = read_matrix(write(tmp_path / "t.csv", ",a,b\nx,1,\ny,,\n"))
    assert X.empty_rows.tolist() == X.empty_cols.tolist() == [False, True]


def test_a_table_without_any_label_column(tmp_path):
    check(
        read_matrix(write(tmp_path / "t.csv", "a\n1\n2\n")), np.array([[1.0], [2.0]]), None, ("a",)
    )


def test_large_files_have_a_bar(tmp_path, monkeypatch, capsys):
    path = write(tmp_path / "t.csv", WIDE)
    check(read_matrix(path))
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(progress, "LARGE", 10)
    check(read_matrix(path))
    assert "t.csv: 100%" in capsys.readouterr().err
    check(read_matrix(path, progress=False))
    assert capsys.readouterr() == ("", "")


def test_a_file_of_zeros_is_refused_at_once(tmp_path, capsys):
    path = tmp_path / "t.csv"
    with path.open("wb") as file:
        file.truncate(2_000_000_000)  # takes no room on the disk
    with pytest.raises(DataError, match="NUL"):
        read_matrix(path)
    assert "2.00G" in capsys.readouterr().err  # of the bar


# --- What is refused ----------------------------------------------------------------------------


def packed(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def array_file(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


MARKET = "%%MatrixMarket matrix coordinate real general\n"
STRAY = {
    "format": np.array(b"csr"),
    "shape": np.array([2, 2]),
    "data": np.ones(2),
    "indices": np.array([0, 1], np.int32),
    "indptr": np.array([0, 2**30, 2], np.int32),
}
# Name of a file, its content, what the one sentence must say; the long columns after a |.
BAD = [
    ("t.csv", "", "the file is empty"),
    ("t.csv", "\n\n", "the file is empty"),
    ("t.csv", "\ufeff", "the file is empty"),
    ("t.csv", ",a,b\n", "no row below"),
    ("t.csv", ",a,b\nx,1,2\n\ny,3\n", "line 4 has 2 cells, but the first row has 3"),
    ("t.csv", ",a,b\nx,1,2,3\n", "line 2 has 4 cells"),
    ("t.csv", ",a,b\nx,1,2\nx,3,4\n", "row label 'x' occurs more than once"),
    ("t.csv", ",a, a\nx,1,2\n", "column label 'a' occurs more than once"),
    ("t.csv", ",a,b\nx,1,2\ny,3,low\n", "line 3, row 'y', column 'b' holds 'low'"),
    ("t.csv", ",a,b\nx,1,2\ny,2,1_000\n", "holds '1_000'"),
    ("t.csv", ",a,b\nx,1,2\ny,2,>high\n", "line 3, row 'y', column 'b' holds '>high', which is not "
     "a number; write limits as >8, <0.05, 8+ or [2, 4], or say missing='>high' (--missing "),
    ("t.csv", ",a,b\nx,1,2\ny,2,<\n", "write limits as"),
    ("t.csv", ",a,b\nx,1,2\ny,2,A+\n", "write limits as"),
    ("t.csv", ',a,b\nx,1,2\ny,2,"[4, 2]"\n', "holds '[4, 2]', which is not a number; write the "
     "smaller end first"),
    ("t.csv", ",a,b\nx,1,2\ny,2,2..4\n", "holds '2..4', which is not a number; correct it"),
    ("t.csv", ",a,b\nx,1,>1e999\n", "is infinite"),
    ("t.csv|user,item,rating", LONG + "z,9,a,>\n", "row 'z', column 'rating' holds '>'"),
    ("t.csv", ",a,b\nx,1,inf\n", "row 'x', column 'b' is infinite"),
    ("t.csv", ",a,b\nx,1,1e999\n", "is infinite"),
    ("t.csv", ",a,b\nx,,NA\n", "no observed entry"),
    ("t.csv", b",a,b\nx,1,2\n\xe9,1,2\n", "line 3 is not UTF-8 text (byte 0xe9)"),
    ("t.csv", WIDE.encode("utf-16"), "UTF-8"),
    ("t.csv", ",a\n" + "x,1\n" * 3000 + "\0,1\n", "line 3002 holds a NUL character"),
    ("t.csv", b"\x7fELF\x02\x01\0\0\0", "holds a NUL character"),
    ("t.csv", ',a\n"x,1\n', "a quote that is not closed"),
    ("t.csv|usr,item,rating", LONG, "no column 'usr'; the columns are 'user', 'when', 'item', "
     "'rating'. Did you mean 'user'?"),
    ("t.csv|user,item,rating", LONG + "x,9,a,2\n", "row 'x', column 'a' occurs more than once"),
    ("t.csv|user,item,rating", LONG + "x,9,,2\n", "line 6 has no 'item'"),
    ("t.csv|user,item,rating", LONG + "z,9,a,good\n", "column 'rating' holds 'good'"),
    ("t.csv|user,item,rating", LONG[:22], "no row below"),
    ("t.csv|user,item,rating", "user,user,item,rating\n", "'user' occurs more than once"),
    ("t.xlsx", "any", "it is not an Excel file, or is damaged"),
    ("t.ods", "any", ".ods is not read; save the sheet as .xlsx, or export it as CSV"),
    ("t.docx", "any", "the ending '.docx' is not known; it must be one of .csv(.gz), .tsv(.gz)"),
    ("table", WIDE, "the ending '' is not known"),
    ("t.npy.gz", "any", "the ending '.gz' is not known"),
    ("t.npy", array_file(np.array([[1.0, None]], dtype=object)), "never loaded"),
    ("t.npy", b"\x80\x04K\x01.", "not a .npy file, or is damaged"),
    ("t.npy", array_file(np.ones((5, 4)))[:-8], "not a .npy file, or is damaged"),
    ("t.npy", array_file(np.ones(4)), "must have 2 dimensions"),
    ("t.npy", array_file(np.array([["a", "b"]])), "row 0, column 0 holds 'a'"),
    ("t.npy", array_file(np.array([[1j]])), "must be real numbers"),
    ("t.npz", packed(x=np.array([[None]], dtype=object)), "never loaded"),
    ("t.npz", packed(x=VALUES, y=VALUES), "it has 2 arrays ['x', 'y']"),
    ("t.npz", b"PK and nothing else", "not a .npz file, or is damaged"),
    ("t.npz", packed(x=VALUES)[:-40], "not a .npz file, or is damaged"),
    ("t.npz", packed(**STRAY), "not a .npz file, or is damaged"),
    ("t.mtx", "1 2 3\n", "not a MatrixMarket file, or is damaged"),
    ("t.mtx", MARKET + "2 2 2\n1 1 3\n1 1 4\n", "row 0, column 0 occurs more than once"),
    ("t.mtx", MARKET + "2 2 1\n3 1 4\n", "out of bounds"),
    ("t.mtx", MARKET + "2000000000 2000000000 1\n1 1 4\n", "too large for memory"),
    ("t.mtx", MARKET + "2 2 0\n", "no observed entry"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), BAD)
def test_bad_files(tmp_path, name, content, message):
    name, _, long = name.partition("|")
    path = write(tmp_path / name, b"") if not content else write(tmp_path / name, content)
    with pytest.raises(DataError) as error:
        read_matrix(path, long=long or None)
    assert str(error.value).startswith(f"{path}: ") and message in str(error.value)
    assert_one_sentence(error, path)


@pytest.mark.parametrize("name", ["t.csv.gz", "t.mtx.gz"])
@pytest.mark.parametrize(
    "content", [b"no gzip at all", gzip.compress(WIDE.encode(), mtime=0)[:30]], ids=["none", "cut"]
)
def test_damaged_gzip(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match="or is damaged") as error:
        read_matrix(path)
    assert_one_sentence(error, path)


def test_folders_and_missing_files(tmp_path):
    for source, message in [
        (tmp_path, "this is a folder"),
        (tmp_path / "t.csv", "there is no such file"),
        (tmp_path / "digit", "Did you mean 'digits'?"),
        ("/dev/null", "not a regular file"),
    ]:
        with pytest.raises(DataError) as error:
            read_matrix(source)
        assert message in str(error.value)
        assert_one_sentence(error, source)
    with pytest.raises(DataError, match="Did you mean 'GDSC'"):
        read_matrix("GDSK")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(text, "opened", refused)
    with pytest.raises(DataError, match=r"t\.csv cannot be read \(Permission denied\)"):
        read_matrix(write(tmp_path / "t.csv", WIDE))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "maybe"}, "labels must be one of auto, yes, no, got 'maybe'"),
        ({"long": "a,b"}, "long must name three columns"),
        ({"long": "a,a,b"}, "long must name three columns"),
        ({"long": "a,,b"}, "long must name three columns"),
    ],
)
def test_bad_options(tmp_path, options, message):
    with pytest.raises(ModelError) as error:
        read_matrix(write(tmp_path / "t.csv", WIDE), **options)
    assert message in str(error.value)


@pytest.mark.parametrize("options", [{"long": "a,b,c"}, {"labels": "yes"}])
def test_options_of_tables_do_not_go_with_arrays(tmp_path, options):
    np.save(tmp_path / "a.npy", VALUES)
    for source in (tmp_path / "a.npy", "digits"):
        with pytest.raises(ModelError, match=r"\(--.*\) is not for such data; leave it out for"):
            read_matrix(source, **options)


def assert_one_sentence(error, path) -> None:
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 500 + len(str(path))
    assert text.endswith((".", "?"))
