"""Large files: read block by block to what a careful look gives, with little memory."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesmf import DataError, ObservedMatrix, read_matrix
from bayesmf.reading import archives, long, table

LONG = "user,item,rating"
LABELS = st.sampled_from(["a", " b", "7", "007", "c d", "é", "", '"q,r"', "#x"])
VALUES = st.sampled_from(["1", "2.5", "-3e2", "NA", "", ">8", "5%", "1_0", "x", "inf", " 4 "])
LINES = st.lists(st.tuples(LABELS, LABELS, VALUES).map(",".join) | st.just(",,") | st.just(""))


def outcome(path, **options):
    """What reading a file gives: labels, values, limits and notes, or the sentence."""
    try:
        X = read_matrix(path, long=LONG, **options)
    except DataError as error:
        return str(error)
    bounds = None if X.bounds is None else (X.bounds.low.tolist(), X.bounds.high.tolist())
    labels = X.row_labels.tolist(), X.col_labels.tolist()
    return labels, X.fingerprint(), bounds, X.origin.notes


@settings(max_examples=150, deadline=None)
@given(LINES, st.sampled_from(["error", "first", "mean"]), st.sampled_from([1, 2, 5]))
def test_blocks_are_read_as_with_care(tmp_path_factory, lines, duplicates, size):
    path = tmp_path_factory.getbasetemp() / "blocks.csv"
    path.write_text("\n".join([LONG, *lines]) + "\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "BLOCK", size)
        found = outcome(path, duplicates=duplicates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long, "_add_plain", lambda *_: False)
        assert found == outcome(path, duplicates=duplicates)


def entries(seed=0, n=150_000, shape=(1500, 700)):
    rng = np.random.default_rng(seed)
    rows, cols = np.divmod(rng.permutation(shape[0] * shape[1])[:n], shape[1])
    return rows.astype(np.int32), cols.astype(np.int32), rng.normal(size=n), shape


def peak(make):
    tracemalloc.start()
    try:
        made = make()
        return tracemalloc.get_traced_memory()[1], made
    finally:
        tracemalloc.stop()


def views(X):
    return sum(part.nbytes for v in (X.rows, X.cols) for part in (v.indptr, v.indices, v.values))


@pytest.mark.parametrize("kind", ["triples", "packed", "coo", "csr", "csc"])
def test_archives_are_read_in_blocks(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(archives, "_BLOCK", 7001)
    rows, cols, values, shape = entries()
    path = tmp_path / "t.npz"
    if kind in ("triples", "packed"):
        save = np.savez if kind == "triples" else np.savez_compressed
        save(path, rows=rows, cols=cols, values=values, shape=shape)
    else:
        sp.save_npz(path, sp.coo_array((values, (rows, cols)), shape=shape).asformat(kind))
    read_matrix(path)  # loads what it needs
    most, X = peak(lambda: read_matrix(path))
    assert X.fingerprint() == ObservedMatrix.from_triples(rows, cols, values, shape).fingerprint()
    assert most < 1.3 * views(X)


def test_triples_without_a_shape_are_just_large_enough(tmp_path):
    np.savez(tmp_path / "t.npz", rows=[0, 4], cols=[2, 0], values=[1, 2])
    assert read_matrix(tmp_path / "t.npz").shape == (5, 3)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"rows": [0, 1], "cols": [0], "values": [1, 2]}, "different lengths"),
        ({"rows": [0.5], "cols": [0], "values": [1]}, "rows are no whole numbers"),
        ({"rows": [-1], "cols": [0], "values": [1]}, "row -1 is outside 0"),
        ({"rows": [0], "cols": [3], "values": [1], "shape": [1, 2]}, "column 3 is outside 0 to 1"),
        ({"rows": ["a"], "cols": [0], "values": [1]}, "'rows' must hold numbers in one row"),
        ({"rows": [0, 0], "cols": [1, 1], "values": [1, 2]}, "occurs more than once"),
        ({"rows": [0], "cols": [0], "values": [np.inf]}, "is infinite"),
        ({"rows": [2**40], "cols": [0], "values": [1]}, "is outside 0"),
        ({"rows": [10**9], "cols": [0], "values": [1]}, "too large for memory"),
    ],
)
def test_bad_triples(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(DataError, match=message):
        read_matrix(tmp_path / "t.npz")


def test_an_archive_that_ends_early(tmp_path):
    rows, cols, values, _ = entries(n=1000)
    held = io.BytesIO()
    np.save(held, values)
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        for name, part in (("rows", rows), ("cols", cols)):
            with archive.open(f"{name}.npy", "w") as file:
                np.save(file, part)
        archive.writestr("values.npy", held.getvalue()[:-100])
    with pytest.raises(DataError, match=r"it is not a \.npz file, or is damaged"):
        read_matrix(tmp_path / "t.npz")


@pytest.mark.parametrize("kind", ["integers", "texts"])
def test_parquet_is_read_in_blocks(tmp_path, kind):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows, cols, values, _ = entries(n=5000, shape=(80, 90))
    labels = [rows, cols] if kind == "integers" else [[f" r{k}" for k in rows], cols.astype(str)]
    columns = dict(zip(LONG.split(","), [*labels, values], strict=True))
    columns["rating"][3] = np.nan
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=700)
    lines = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    text = "\n".join([LONG, *(",".join(map(str, line)) for line in lines)])
    (tmp_path / "t.csv").write_text(text)
    assert outcome(tmp_path / "t.parquet") == outcome(tmp_path / "t.csv")


def test_odd_parquet_files_get_a_careful_look(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    for columns, message in (
        ({"user": ["a", None], "item": ["x", "y"], "rating": [1.0, 2.0]}, "line 3 has no 'user'"),
        ({"user": ["a", "b"], "item": ["x", "y"], "rating": ["1", "z"]}, "which is not a number"),
        ({"user": ["a"], "item": ["x"], "stars": [1.0]}, "there is no column 'rating'"),
        ({"user": ["a", "a"], "item": ["x", "x"], "rating": [1, 2]}, "say duplicates='mean'"),
    ):
        parquet.write_table(pa.table(columns), path)
        with pytest.raises(DataError, match=message):
            read_matrix(path, long=LONG)
