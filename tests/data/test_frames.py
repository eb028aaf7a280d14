"""DataFrames of any library: in, out, and what of them is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from bayesmf import BayesianImputer, BayesianMF, DataError, DataWarning, ObservedMatrix
from tests.helpers.matrices import small_matrix

pytestmark = pytest.mark.filterwarnings("ignore::bayesmf.ConvergenceWarning")
SHORT = {"draws": 15, "burn_in": 10, "chains": 1, "random_state": 0}
NAMES = [f"c{j}" for j in range(12)]


def as_pandas(values):
    return pd.DataFrame(values, columns=NAMES)


def as_polars(values):
    polars = pytest.importorskip("polars")
    return polars.DataFrame({n: [None if np.isnan(x) else x for x in column]
                             for n, column in zip(NAMES, values.T, strict=True)})  # fmt: skip


def as_arrow(values):
    arrow = pytest.importorskip("pyarrow")
    return arrow.table({n: [None if np.isnan(x) else x for x in column]
                        for n, column in zip(NAMES, values.T, strict=True)})  # fmt: skip


LIBRARIES = [as_pandas, as_polars, as_arrow]


def array(frame):
    """The values of a frame of any library."""
    return np.column_stack([np.asarray(frame[name], dtype=float) for name in NAMES])


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_comes_in_goes_out(library):
    values = small_matrix()
    frame = library(values)
    imputer = BayesianImputer("GGGA", 2, **SHORT)
    expected = BayesianImputer("GGGA", 2, **SHORT).fit_transform(values)
    filled = imputer.fit_transform(frame)
    assert type(filled) is type(frame)
    np.testing.assert_array_equal(array(filled), expected)
    assert imputer.feature_names_in_.tolist() == NAMES
    again = imputer.transform(library(values[:4]))
    assert type(again) is type(frame) and again.shape == (4, 12)
    np.testing.assert_array_equal(ObservedMatrix.of(frame).to_array(), values)
    assert ObservedMatrix.of(frame).col_labels.tolist() == NAMES


@pytest.mark.parametrize("library", LIBRARIES)
def test_imputations_are_frames_of_known_and_of_new_rows(library):
    values = small_matrix()
    imputer = BayesianImputer("GGGA", 2, **SHORT).fit(library(values))
    plain = BayesianImputer("GGGA", 2, **SHORT).fit(values)
    for rows in (None, values[:5]):
        found = imputer.impute(3, None if rows is None else library(rows))
        expected = plain.impute(m=3, X=rows)
        assert isinstance(found, list) and expected.shape == (3, 17 if rows is None else 5, 12)
        for one, other in zip(found, expected, strict=True):
            assert type(one) is type(library(values))
            np.testing.assert_array_equal(array(one), other)
    seen = ~np.isnan(values[:5])
    np.testing.assert_array_equal(expected[:, seen], np.tile(values[:5][seen], (3, 1)))
    assert (expected[0] != expected[1])[~seen].all()


def test_an_index_may_repeat_labels():
    frame = as_pandas(small_matrix())
    frame.index = pd.Index(["a", "a", *range(15)], name="who")
    filled = BayesianImputer("GGGA", 2, **SHORT).fit_transform(frame)
    assert filled.index.equals(frame.index) and not filled.isna().any().any()
    assert ObservedMatrix.of(frame).row_labels is None
    with pytest.raises(DataError, match="column label 'c0' occurs more than once"):
        ObservedMatrix.of(frame.rename(columns={"c1": "c0"}))


@pytest.mark.parametrize("library", LIBRARIES[:2])
def test_columns_without_numbers_are_refused_by_name(library):
    values = small_matrix()
    frame = library(values)
    sex = ["f", "m"] * 8 + ["f"]
    if library is as_pandas:
        bad = frame.assign(sex=pd.Categorical(sex), site="North")
        dated = frame.assign(day=pd.Timestamp(0))
    else:
        polars = pytest.importorskip("polars")
        bad = frame.with_columns(
            polars.Series("sex", sex, dtype=polars.Categorical), polars.lit("North").alias("site")
        )
        dated = frame.with_columns(polars.lit(np.datetime64(0, "us")).alias("day"))
    message = "Columns 'sex', 'site' hold categories, text, not numbers; leave them out"
    for read in (BayesianMF("GGG", 2, **SHORT).fit, ObservedMatrix.of):
        with pytest.raises(DataError, match=message):
            read(bad)
        with pytest.raises(DataError, match="Column 'day' holds dates"):
            read(dated)


def test_one_text_among_numbers_is_named_with_its_row():
    frame = as_pandas(small_matrix()).astype(object)
    frame.loc[3, "c2"] = "low"
    with pytest.raises(DataError, match="row 3, column 'c2' holds 'low'"):
        BayesianMF("GGG", 2, **SHORT).fit(frame)


def test_lazy_frames_are_refused():
    pytest.importorskip("polars")
    with pytest.raises(DataError, match="A LazyFrame cannot be read; collect it"):
        BayesianMF("GGG", 2, **SHORT).fit(as_polars(small_matrix()).lazy())


def test_columns_are_known_by_name_in_other_libraries_too():
    polars = pytest.importorskip("polars")
    frame = as_polars(small_matrix())
    imputer = BayesianImputer("GGGA", 2, **SHORT).fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        imputer.transform(frame.rename({"c0": "other"}))
    whole = polars.DataFrame({name: [1, None, 3] for name in NAMES})
    assert imputer.transform(whole)["c0"].to_list()[::2] == [1.0, 3.0]


def test_empty_columns_are_warned_about():
    values = small_matrix()
    values[:, 3] = np.nan
    with pytest.warns(DataWarning, match=r"without an observed value \(1\): 'c3'; what fills"):
        BayesianImputer("GGGA", 2, **SHORT).fit(as_pandas(values))


def test_narwhals_is_loaded_for_other_frames_alone():
    """Those of pandas and arrays do not wait for it; scikit-learn may load it by itself."""
    code = """
import sys, numpy as np
from bayesmf import ObservedMatrix
ObservedMatrix.of(np.ones((2, 2)))
print("narwhals" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
