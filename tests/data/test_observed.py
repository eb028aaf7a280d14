import pickle
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bayesmf import Poisson, baseline, sample
from bayesmf._errors import BayesmfError, DataError, ModelError, nearest
from bayesmf.data import observed, views
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.offsets import fit_offsets

NAN, INF = np.nan, np.inf


@st.composite
def matrices(draw):
    """An array with NaN at missing cells and at least one observed cell, zeros included."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    values = draw(hnp.arrays(np.float64, shape, elements=st.integers(-3, 3).map(float)))
    observed = draw(hnp.arrays(np.bool_, shape))
    observed.flat[draw(st.integers(0, observed.size - 1))] = True
    return np.where(observed, values, NAN)


def coo(array, order=None):
    rows, cols = np.nonzero(~np.isnan(array))
    order = np.arange(rows.size) if order is None else order
    rows, cols = rows[order], cols[order]
    return sp.coo_array((array[rows, cols], (rows, cols)), shape=array.shape)


def assert_same(a, b):
    assert a.shape == b.shape
    for one, other in ((a.rows, b.rows), (a.cols, b.cols)):
        for field in ("indptr", "indices", "values", "filled", "mask"):
            x, y = getattr(one, field), getattr(other, field)
            assert (x is None) == (y is None)
            if x is not None:
                assert x.dtype == y.dtype
                assert x.flags.c_contiguous
                assert y.flags.c_contiguous
                np.testing.assert_array_equal(x, y)


def containers(array):
    seen = ~np.isnan(array)
    objects = np.where(seen, array.astype(object), None)
    yield "copy", array.copy(), {}
    yield "fortran", np.asfortranarray(array), {}
    yield "float32", array.astype(np.float32), {}
    yield "objects", objects, {}
    yield "lists", array.tolist(), {}
    yield "lists with None", objects.tolist(), {}
    yield "masked", np.ma.masked_array(np.where(seen, array, INF), ~seen), {}
    yield "masked invalid", np.ma.masked_array(array, np.zeros_like(seen)), {}
    yield "masked integers", np.ma.masked_array(np.nan_to_num(array).astype(int), ~seen), {}
    yield "mask", np.where(seen, array, INF), {"mask": seen}
    yield "mask of integers", np.nan_to_num(array).astype(int), {"mask": seen.astype(int)}
    yield "mask over text", np.where(seen, array.astype(object), "?"), {"mask": seen.tolist()}
    yield "frame", pd.DataFrame(array), {}
    yield "frame of Int64", pd.DataFrame(array).astype("Int64"), {}
    yield "frame of objects", pd.DataFrame(objects, dtype=object), {}
    yield "frame with NA", pd.DataFrame(np.where(seen, objects, pd.NA), dtype=object), {}
    yield "frame and mask", pd.DataFrame(np.nan_to_num(array)), {"mask": pd.DataFrame(seen)}
    for kind in ("coo", "csr", "csc", "lil", "dok"):
        yield kind, coo(array).asformat(kind), {}
        yield f"{kind} matrix", sp.coo_matrix(coo(array)).asformat(kind), {}
    yield "bsr", coo(array).tobsr(blocksize=(1, 1)), {}


@settings(deadline=None)
@given(matrices(), st.randoms(use_true_random=False))
def test_every_container_gives_the_same_matrix(array, random):
    expected = ObservedMatrix.of(array)
    np.testing.assert_array_equal(expected.to_array(), array)
    for name, X, options in containers(array):
        try:
            assert_same(ObservedMatrix.of(X, **options), expected)
        except Exception as error:
            raise AssertionError(f"differs as {name}") from error
    rows, cols, values = expected.triples()
    order = random.sample(range(rows.size), rows.size)
    shuffled = rows[order], cols[order], values[order]
    assert_same(ObservedMatrix.from_triples(*shuffled, shape=array.shape), expected)
    assert_same(ObservedMatrix.of(coo(array, order)), expected)


@settings(deadline=None)
@given(matrices())
@example(np.where(np.arange(15).reshape(3, 5) < 6, 0.0, np.nan))  # at the very density
def test_views_agree(array):
    X = ObservedMatrix.of(array)
    seen = ~np.isnan(array)
    assert_same(ObservedMatrix.of(array.T), X.T)
    assert X.transpose().T.rows is X.rows
    for view, side in ((X.rows, array), (X.cols, array.T)):
        known = ~np.isnan(side)
        assert view.n == side.shape[0]
        assert view.indptr.dtype == np.int64
        assert view.indices.dtype == np.int32
        np.testing.assert_array_equal(view.counts, known.sum(axis=1))
        for i in range(view.n):
            own = slice(view.indptr[i], view.indptr[i + 1])
            np.testing.assert_array_equal(view.indices[own], np.flatnonzero(known[i]))
            np.testing.assert_array_equal(view.values[own], side[i, known[i]])
        if X.is_dense:
            np.testing.assert_array_equal(view.filled, np.nan_to_num(side))
            np.testing.assert_array_equal(view.mask, known)
        else:
            assert view.filled is None
            assert view.mask is None
    assert X.n_observed == seen.sum()
    assert X.density == seen.mean()
    assert (X.density == 1) == seen.all()
    assert X.is_dense == (seen.mean() >= views.DENSE_DENSITY)
    np.testing.assert_array_equal(X.empty_rows, ~seen.any(axis=1))
    np.testing.assert_array_equal(X.empty_cols, ~seen.any(axis=0))
    assert X.mean == pytest.approx(array[seen].mean())
    assert X.variance == pytest.approx(array[seen].var())


@settings(deadline=None)
@given(matrices(), st.data())
def test_take(array, data):
    X = ObservedMatrix.of(array, row_labels=[f"r{i}" for i in range(len(array))])
    flags = data.draw(hnp.arrays(np.bool_, X.n_observed))
    flags[data.draw(st.integers(0, X.n_observed - 1))] = True
    part = X.take(flags)
    rows, cols, values = X.triples()
    expected = np.full(array.shape, NAN)
    expected[rows[flags], cols[flags]] = values[flags]
    assert_same(part, ObservedMatrix.of(expected))
    assert_same(X.take(np.flatnonzero(flags)[::-1]), part)
    assert part.row_labels is X.row_labels


def test_dense_path_has_a_size_limit(monkeypatch):
    monkeypatch.setattr(views, "DENSE_CELLS", 5)
    assert not ObservedMatrix.of(np.ones((2, 3))).is_dense
    assert ObservedMatrix.of(np.ones((1, 5))).is_dense


def test_data_are_copied():
    array, values = np.ones((2, 2)), np.ones(2)
    X = ObservedMatrix.of(array)
    Y = ObservedMatrix.from_triples([0, 1], [0, 1], values)
    array[:] = values[:] = 7.0
    X.triples()[2][:] = 7.0
    assert X.mean == Y.mean == 1.0


def test_integer_and_boolean_input():
    assert ObservedMatrix.of(np.array([[True, False]])).rows.values.tolist() == [1.0, 0.0]
    assert ObservedMatrix.of(np.array([[1, 2]], dtype=np.uint8)).rows.values.tolist() == [1.0, 2.0]
    X = ObservedMatrix.of([[Decimal("0.5"), np.bool_(True), np.float32(2)]])
    assert X.rows.values.tolist() == [0.5, 1.0, 2.0]


def test_an_observed_matrix_passes_through():
    X = ObservedMatrix.of([[1.0]])
    assert ObservedMatrix.of(X) is X
    for option in ("mask", "row_labels", "col_labels"):
        with pytest.raises(DataError, match="mask and labels already"):
            ObservedMatrix.of(X, **{option: [[True]]})


def test_pickle_and_repr():
    X = ObservedMatrix.of([[1.0, NAN], [2.0, 3.0]], col_labels=["a", "b"])
    again = pickle.loads(pickle.dumps(X))
    assert_same(again, X)
    assert again.col_labels.tolist() == ["a", "b"]
    assert repr(X) == "ObservedMatrix(2 x 2, 3 observed, 75.0 %)"


def test_explicit_zeros_of_block_and_diagonal_formats():
    block = sp.bsr_array(np.array([[1.0, 0.0], [0.0, 2.0]]), blocksize=(2, 2))
    assert ObservedMatrix.of(block).density == 1
    band = sp.dia_array((np.array([[0.0, 5.0]]), [0]), shape=(2, 2))
    assert ObservedMatrix.of(band).triples()[2].tolist() == [5.0]


def test_stored_nan_is_missing():
    X = ObservedMatrix.of(sp.coo_array(([1.0, NAN], ([0, 1], [0, 0])), shape=(2, 1)))
    assert X.empty_rows.tolist() == [False, True]


# Labels


def test_frame_labels_are_kept():
    frame = pd.DataFrame([[1.0, NAN], [2.0, 3.0]], index=["p", "q"], columns=["a", 7])
    X = ObservedMatrix.of(frame)
    assert X.row_labels.tolist() == ["p", "q"]
    assert X.col_labels.tolist() == ["a", 7]
    assert X.T.row_labels is X.col_labels
    assert X.cell_name(1, 0) == "row 'q', column 'a'"
    assert X.cell_name(0, 1) == "row 'p', column 7"
    assert ObservedMatrix.of(frame, row_labels=["x", "y"]).row_labels.tolist() == ["x", "y"]


def test_labels_of_any_hashable_kind():
    tuples = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])
    X = ObservedMatrix.of(pd.DataFrame([[1.0], [2.0]], index=tuples))
    assert X.row_labels.tolist() == [("a", 1), ("a", 2)]
    days = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[ns]")
    assert ObservedMatrix.of([[1.0, 2.0]], col_labels=days).col_labels[1] == days[1]
    text = ObservedMatrix.of([[1.0]], row_labels=np.array(["a"]), col_labels=np.array([3]))
    assert text.cell_name(0, 0) == "row 'a', column 3"


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=2), st.integers(0, 4)), min_size=1, unique=True))
def test_labels_of_triples_are_numbered_by_first_appearance(cells):
    rows, cols = map(list, zip(*cells, strict=True))
    values = np.arange(len(cells), dtype=float)
    expected = list(dict.fromkeys(rows))
    for keys in (rows, np.array(rows, dtype=object), pd.Series(rows, dtype=object)):
        X = ObservedMatrix.from_triples(keys, np.array(cols), values)
        assert X.row_labels.tolist() == expected
        assert X.col_labels is None
        assert X.shape == (len(expected), max(cols) + 1)
        array = X.to_array()
        for row, col, value in zip(rows, cols, values, strict=True):
            assert array[expected.index(row), col] == value
    ordered = sorted(expected)
    Y = ObservedMatrix.of((rows, cols, values), row_labels=ordered)
    assert Y.row_labels.tolist() == ordered
    assert Y.to_array()[ordered.index(rows[-1]), cols[-1]] == values[-1]


def test_triples_without_value_still_make_rows():
    X = ObservedMatrix.from_triples(["a", "b"], [0, 1], [1.0, None])
    assert X.shape == (2, 2)
    assert X.empty_rows.tolist() == [False, True]
    masked = np.ma.masked_array([1.0, 9.0], [False, True])
    assert_same(ObservedMatrix.from_triples(["a", "b"], [0, 1], masked), X)


def test_positions_of_several_types():
    for rows in ([0, 1], np.uint8([0, 1]), np.array([0, 1], dtype=object), pd.Series([0, 1])):
        X = ObservedMatrix.from_triples(rows, pd.Series([0, 1], dtype="Int64"), [1.0, 2.0])
        assert X.row_labels is None
        assert X.shape == (2, 2)
    assert ObservedMatrix.from_triples([0], [0], [1.0], row_labels="ab").shape == (2, 1)


# Errors

FRAME = pd.DataFrame([[1.0, 2.0], [3.0, INF]], index=["p", "q"], columns=["a", "b"])
TWICE = sp.coo_array(([1.0, 2.0, 3.0], ([1, 0, 1], [2, 0, 2])), shape=(2, 3))
TWICE_CSR = sp.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 3))
TWICE_BSR = sp.bsr_array((np.ones((2, 1, 1)), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.ones((0, 3)), {}, r"empty: its shape is \(0, 3\)"),
        ([], {}, "empty"),
        (sp.coo_array((3, 0)), {}, r"empty: its shape is \(3, 0\)"),
        (([], [], []), {}, "empty"),
        (FRAME, {}, "row 'q', column 'b' is infinite"),
        ([[1.0, -INF], [INF, 1.0]], {}, "row 0, column 1 is infinite"),
        (sp.coo_array(([INF], ([1], [0])), shape=(2, 2)), {}, "row 1, column 0 is infinite"),
        ((["x"], ["y"], [INF]), {}, "row 'x', column 'y' is infinite"),
        ([[1.0, "abc"], [2.0, 3.0]], {}, "row 0, column 1 holds 'abc', which is not a real"),
        (np.array([["1", "2"]]), {}, "row 0, column 0 holds '1'"),
        (FRAME.assign(b=[1, "z"]), {}, "row 'q', column 'b' holds 'z'"),
        (FRAME.assign(b=["1", "2"]), {}, "Column 'b' holds text, not numbers"),
        (FRAME.assign(b=pd.Timestamp(0)), {}, "Column 'b' holds dates, not numbers"),
        ((["x"], [0], ["y"]), {}, "row 'x', column 0 holds 'y'"),
        ([[1.0, [2.0]]], {}, "differ in length"),
        (np.ones((1, 1), complex), {}, "real numbers, not complex128"),
        (sp.coo_array(np.ones((1, 1), complex)), {}, "real numbers, not complex128"),
        ([[1.0, None, 1j]], {}, "row 0, column 2 holds 1j"),
        (np.zeros((1, 1), "datetime64[s]"), {}, "real numbers, not datetime64"),
        (np.ones((2, 3)), {"mask": np.ones((3, 2), bool)}, r"\(3, 2\) but X has \(2, 3\)"),
        (np.ones((1, 2)), {"mask": [[2, 1]]}, "mask must be boolean"),
        (np.ones((1, 2)), {"mask": [[NAN, 1]]}, "mask must be boolean"),
        (np.ones((1, 2)), {"mask": [["yes", "no"]]}, "mask must be boolean"),
        ([[1.0, NAN]], {"mask": [[True, True]]}, "row 0, column 1 is missing though mask"),
        (FRAME, {"mask": FRAME[["b", "a"]] > 0}, "different labels; reindex"),
        (sp.coo_array(np.eye(2)), {"mask": np.eye(2)}, "mask goes with a dense"),
        (([0], [0], [1.0]), {"mask": [[True]]}, "mask goes with a dense"),
        (np.ones(3), {}, "2 dimensions, not 1"),
        (np.ones((1, 1, 1)), {}, "2 dimensions, not 3"),
        (sp.coo_array(np.ones(3)), {}, "2 dimensions, not 1"),
        (5.0, {}, "2 dimensions, not 0"),
        ([[1.0, 2.0], [3.0]], {}, "differ in length"),
        (TWICE, {}, "row 1, column 2 occurs more than once"),
        (TWICE_CSR, {}, "row 0, column 1 occurs more than once"),
        (TWICE_BSR, {}, "row 0, column 1 occurs more than once"),
        ((["a", "a"], ["b", "b"], [1.0, NAN]), {}, "row 'a', column 'b' occurs more than once"),
        (np.ones((2, 2)), {"row_labels": ["a"]}, "1 row labels for 2 rows"),
        (np.ones((2, 2)), {"col_labels": "abc"}, "3 column labels for 2 columns"),
        (np.ones((2, 2)), {"row_labels": ["a", "a"]}, "row label 'a' occurs more than once"),
        (FRAME.set_axis(["c", "c"], axis=1), {}, "column label 'c' occurs more than once"),
        (([0], [-1], [1.0]), {}, "column -1 is outside"),
        (([0.0], [1], [1.0]), {}, "row of triple 0 is 0.0; use an integer or a label"),
        ((["a", None], [0, 1], [1.0, 2.0]), {}, "row of triple 1 is None"),
        (([0, 1], ["a", NAN], [1.0, 2.0]), {}, "column of triple 1 is nan"),
        (([0, 2**40], [0, 0], [1.0, 2.0]), {}, "shape .* is out of range"),
        (([0, 1], [0], [1.0]), {}, r"different lengths \(2, 1, 1\)"),
        ((["drug_b"], [0], [1.0]), {"row_labels": ["drug_a"]}, "among the row labels. Did you"),
    ],
)
def test_errors(X, options, message):
    with pytest.raises(DataError, match=message):
        ObservedMatrix.of(X, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": (2, 5)}, "row 4 is outside 0 to 1; correct it, or the shape"),
        ({"shape": (5, 2)}, "column 3 is outside 0 to 1"),
        ({"shape": (5, 0)}, "empty"),
        ({"shape": (5, 5, 5)}, "2 dimensions"),
        ({"shape": (-5, 5)}, "out of range"),
        ({"shape": (5, 4), "row_labels": "ab"}, "2 row labels for 5 rows"),
        ({"row_labels": "ab"}, "row 4 is outside 0 to 1"),
    ],
)
def test_errors_of_positions(options, message):
    with pytest.raises(DataError, match=message):
        ObservedMatrix.from_triples([0, 4], [0, 3], [1.0, 2.0], **options)


def test_labels_do_not_fit_the_shape():
    with pytest.raises(DataError, match="2 row labels for 3 rows"):
        ObservedMatrix.from_triples(["a", "b"], [0, 0], [1.0, 2.0], shape=(3, 1))


def test_take_errors():
    X = ObservedMatrix.of([[1.0, 2.0]])
    with pytest.raises(DataError, match=r"needs 2 flags, not shape \(3,\)"):
        X.take(np.ones(3, bool))


@pytest.mark.parametrize(
    ("X", "options"),
    [
        (np.full((2, 2), NAN), {}),
        ([[None, None], [None, None]], {}),
        (sp.coo_array((2, 2)), {}),
        (np.ones((2, 2)), {"mask": np.zeros((2, 2), bool)}),
        (([0, 1], [0, 1], [NAN, NAN]), {}),
    ],
)
def test_a_matrix_without_entries_can_be_read_but_not_fitted(X, options):
    empty = ObservedMatrix.of(X, **options)
    assert (empty.n_observed, empty.shape) == (0, (2, 2))
    assert empty.empty_rows.all() and empty.take([]).n_observed == 0
    for fit in (sample, lambda X: baseline(X, "grand-average"), lambda X: fit_offsets(X, "both")):
        with pytest.raises(DataError, match="no observed entry"):
            fit(empty)


def test_checks_of_values():
    counts = ObservedMatrix.of([[0.0, 3.0], [NAN, 2.0]])
    Poisson().check(counts)
    for bad, shown in ((0.5, "0.5"), (-1.0, "-1")):
        X = ObservedMatrix.of([[0.0, NAN], [bad, -7.0]], row_labels=["u", "v"])
        message = f"the Poisson likelihood needs counts: row 'v', column 0 is {shown}"
        with pytest.raises(DataError, match=message):
            Poisson().check(X)
    message = "NMF with the KL objective needs nonnegative values: row 'v', column 0 is -1"
    with pytest.raises(DataError, match=message):
        baseline(X, "NMF")


def test_nearest():
    assert nearest("ggga", ["GGG", "GGGA"]) == " Did you mean 'GGGA'?"
    assert nearest("zzz", ["GGG", "GGGA"]) == ""
    assert nearest("zzz", []) == ""
    assert issubclass(DataError, BayesmfError)
    assert issubclass(ModelError, ValueError)


def test_import_needs_neither_scipy_nor_pandas():
    # A bare parent stands in for the package, whose other modules may well need scipy.
    code = f"""
import sys, types
sys.modules["bayesmf"] = types.ModuleType("bayesmf")
sys.modules["bayesmf"].__path__ = [{str(Path(observed.__file__).parents[1])!r}]
import bayesmf.data.observed, bayesmf.splits
sys.exit(bool({{"scipy", "pandas"}} & set(sys.modules)))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_intervals_go_with_the_entries():
    X = ObservedMatrix.of([[1.0, 8.0, None], [3.0, None, 5.0]])
    low = [[1.0, 8.0, 0.0], [2.5, 0.0, np.nan]]
    high = [[1.0, np.inf, 0.0], [3.5, 0.0, np.nan]]
    bounded = X.between(low, high)
    assert bounded.bounds.places.tolist() == [1, 2]
    part = bounded.take([1, 3])
    assert part.bounds.low.tolist() == [8.0, 5.0] and part.bounds.high.tolist() == [np.inf, 5.0]
    assert bounded.T.bounds.low.tolist() == [1.0, 2.5, 8.0, 5.0]
    assert bounded.fingerprint() != X.fingerprint()
    rounded = X.rounded(0.1)
    np.testing.assert_allclose(rounded.bounds.high - rounded.bounds.low, 0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: X.between([[0, 3]], 2.0), "row 'a', column 'y' lies between 3 and 2; swap them"),
        (lambda X: X.between([1, 2, 3], 2.0), "low does not have the shape"),
        (lambda X: X.rounded(0), "unit must be a positive number"),
    ],
)
def test_intervals_that_make_no_sense_are_refused(call, message):
    X = ObservedMatrix.of([[1.0, 2.0]], row_labels=["a"], col_labels=["x", "y"])
    with pytest.raises(DataError, match=re.escape(message)):
        call(X)
