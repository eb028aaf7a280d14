"""Units: what is taken off and divided by, its way back, and the transforms of values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bayesmf import DataError, ModelError, ObservedMatrix
from bayesmf.data.errors import known_errors
from bayesmf.data.transforms import TRANSFORMS, Transform, fit_transforms
from bayesmf.data.units import fit_units, plain

CENTRES = ("none", "global", "rows", "cols", "both")
SCALES = ("none", "global", "rows", "cols")


def matrix(density=0.7, shape=(30, 8), seed=0, low=None):
    """Columns and rows of different means and sizes, above ``low`` if that is given."""
    rng = np.random.default_rng(seed)
    X = 5 + rng.normal(size=(shape[0], 1)) + 3.0 ** np.arange(shape[1]) * rng.normal(size=shape)
    X[rng.random(shape) > density] = np.nan
    X[0, 0] = 4.0
    return X if low is None else low + np.abs(X)


def observed(X=None):
    return ObservedMatrix.of(matrix() if X is None else X)


def all_cells(shape):
    return tuple(np.indices(shape).reshape(2, -1))


def back(units, values, cells):
    """Values of the model in the units of the data, by the formula."""
    values = units.shift(cells) + units.size(cells) * values
    if units.transforms is None:
        return values
    return units.transforms.apply("inverse", values, cells[1])


# --- What is done -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("density", "options", "center", "scale"),
    [
        (0.7, {}, "cols", "cols"),
        (0.05, {}, "global", "global"),
        (0.7, {"fixed": True}, "none", "none"),
        (0.05, {"fixed": True}, "none", "none"),
        (0.7, {"nonnegative": True}, "none", "cols"),
        (0.05, {"nonnegative": True}, "none", "global"),
        (0.7, {"scale": "none"}, "none", "none"),
        (0.7, {"scale": "rows"}, "none", "rows"),
        (0.7, {"scale": "global"}, "global", "global"),
        (0.7, {"center": "both"}, "both", "cols"),
        (0.05, {"transform": "rank"}, "cols", "global"),
    ],
)
def test_what_is_automatic(density, options, center, scale):
    units = fit_units(observed(matrix(density, (60, 30))), **options)
    assert (units.offsets.center, units.scale) == (center, scale)
    assert units.changed == ((center, scale) != ("none", "none"))
    assert units.by_columns == (center != "both" and scale != "rows")


def test_the_rule_changes_at_a_tenth_of_the_cells():
    X = np.full((10, 10), np.nan)
    for count, scale in ((9, "global"), (10, "cols")):
        X.ravel()[:count] = np.arange(count)
        assert fit_units(observed(X)).scale == scale


def test_columns_get_mean_zero_and_variance_one():
    X = fit_units(observed()).off(observed()).to_array()
    np.testing.assert_allclose(np.nanmean(X, axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(X, axis=0), 1)
    whole = fit_units(observed(), scale="global").off(observed()).to_array()
    assert np.nanmean(whole) == pytest.approx(0) and np.nanstd(whole) == pytest.approx(1)
    rows = fit_units(observed(), "none", "rows").off(observed()).to_array()
    np.testing.assert_allclose(np.nanmean(rows**2, axis=1), 1)
    np.testing.assert_array_equal(np.sign(rows), np.sign(matrix()))


def test_nonnegative_values_stay_so():
    X = matrix(low=0.0)
    seen = fit_units(observed(X), nonnegative=True).off(observed(X)).to_array()
    np.testing.assert_allclose(np.nanmean(seen**2, axis=0), 1)
    assert np.nanmin(seen) >= 0


def test_an_automatic_choice_is_told_and_another_is_not():
    assert fit_units(observed()).note == (
        "The model sees values less the mean of each column and divided by the standard deviation "
        "of each column (scale='auto': 0.696 of the cells are observed); results are in the "
        "data's units."
    )
    assert "root mean square of each column" in fit_units(observed(), nonnegative=True).note
    assert "its row and column" in fit_units(observed(), "both").note
    for options in ({"center": "cols", "scale": "cols"}, {"fixed": True}, {"scale": "none"}):
        assert fit_units(observed(), **options).note == ""


@pytest.mark.parametrize("options", [{"center": "col"}, {"scale": "columns"}, {"scale": 1}])
def test_unknown_centres_and_scales_are_refused(options):
    with pytest.raises(ModelError, match=f"{next(iter(options))} must be one of auto, none"):
        fit_units(observed(), **options)


# --- There and back -----------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [None, "log", "rank", ["sqrt", None, "log", "rank"] * 2])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("center", CENTRES)
def test_the_way_back_is_the_inverse(center, scale, transform):
    X = observed(matrix(low=0.1))
    units = fit_units(X, center, scale, transform)
    seen = units.off(X)
    i, j, values = X.triples()
    np.testing.assert_allclose(back(units, seen.rows.values, (i, j)), values, rtol=1e-12)
    np.testing.assert_array_equal(seen.rows.values, units.forward(values, (i, j)))
    np.testing.assert_array_equal(seen.cols.values, seen.rows.values[X.column_order])
    assert (seen is X) == ((center, scale, transform) == ("none", "none", None))


def test_dense_parts_are_scaled_like_the_entries():
    X = observed(matrix(density=1.0))
    seen = fit_units(X).off(X)
    for view in (seen.rows, seen.cols):
        assert view.filled is not None
        np.testing.assert_array_equal(view.filled[view.mask.astype(bool)], view.values)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("center", CENTRES)
def test_units_of_multiples_are_multiples(center, scale):
    cells = all_cells((30, 8))
    one, large = (fit_units(observed(unit * matrix()), center, scale) for unit in (1.0, 1e9))
    np.testing.assert_allclose(large.shift(cells), 1e9 * one.shift(cells))
    np.testing.assert_allclose(large.size(cells), (1 if scale == "none" else 1e9) * one.size(cells))


@pytest.mark.parametrize("unit", [1e-200, 1e200])
@pytest.mark.parametrize(("scale", "axis"), [("global", None), ("cols", 0), ("rows", 1)])
def test_squares_stay_in_the_range_of_doubles(unit, scale, axis):
    X = observed(unit * matrix())
    seen = fit_units(X, "none", scale).off(X).to_array()
    np.testing.assert_allclose(np.nanmean(seen**2, axis=axis), 1)


@pytest.mark.parametrize("scale", SCALES)
def test_errors_and_intervals_go_along(scale):
    X = matrix()
    errors = np.random.default_rng(1).uniform(0.5, 2.0, X.shape)
    units = fit_units(observed(X), scale=scale)
    i, j, _ = observed(X).triples()
    size = units.size((i, j))
    seen = units.off(known_errors(observed(X), errors, None))
    np.testing.assert_allclose(seen.errors * size, errors[i, j])
    ends = np.where(X < 5, -np.inf, X - 1), np.where(X > 9, np.inf, X + 1)
    bounds = units.off(observed(X).between(*ends)).bounds
    for found, end in zip((bounds.low, bounds.high), ends, strict=True):
        np.testing.assert_allclose(units.shift((i, j)) + size * found, end[i, j], rtol=1e-12)


@pytest.mark.parametrize("transform", [None, "log", "rank"])
def test_limits_go_along(transform):
    X = observed(matrix(low=0.1))
    units, shape = fit_units(X, transform=transform), X.shape
    cells = np.zeros(8, dtype=int), np.arange(8)
    of_columns = np.arange(1.0, 9.0)
    for limit in (7.0, of_columns):
        found = units.limit(limit, shape)
        np.testing.assert_allclose(back(units, found, cells), np.broadcast_to(limit, 8))
    of_cells = 1 + np.random.default_rng(0).random(shape)
    found = units.limit(of_cells, shape)
    np.testing.assert_allclose(
        back(units, found.ravel(), all_cells(shape)).reshape(shape), of_cells
    )
    assert (units.limit(-np.inf, shape) == -np.inf).all() or transform == "log"
    assert (units.limit(np.inf, shape) == np.inf).all()
    assert units.limit(None, shape) is None and plain(X).limit(7.0, shape) == 7.0
    assert units.limit([1.0, 2.0], shape) == [1.0, 2.0]  # which the likelihood refuses


def test_a_value_at_its_limit_stays_there():
    X = observed(np.minimum(matrix(low=0.1), 6.0))
    for transform in (None, "log", "sqrt", "rank"):
        units = fit_units(X, transform=transform)
        seen = units.off(X).to_array()
        at = matrix(low=0.1) >= 6.0
        assert at.any() and (seen >= units.limit(6.0, X.shape))[at].all()


# --- New rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("center", CENTRES)
@pytest.mark.parametrize("scale", SCALES)
def test_known_rows_have_the_same_units_as_new_ones(center, scale):
    X = observed()
    units = fit_units(X, center, scale)
    again = units.of_new_rows(X)
    for cells in (all_cells(X.shape), X.triples()[:2]):
        np.testing.assert_allclose(again.shift(cells), units.shift(cells), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(again.size(cells), units.size(cells), rtol=1e-8)


def test_new_rows_have_sizes_of_their_own_where_rows_are_scaled():
    units = fit_units(observed(), "none", "rows")
    new = observed(1e6 * matrix(seed=1, shape=(5, 8)))
    np.testing.assert_allclose(
        units.of_new_rows(new).rows, np.sqrt(np.nanmean(new.to_array() ** 2, axis=1))
    )
    by_column = fit_units(observed()).of_new_rows(new)
    assert by_column.rows.shape == (5,) and (by_column.rows == 1).all()
    np.testing.assert_array_equal(by_column.cols, fit_units(observed()).cols)


# --- Columns that say little --------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("center", ["none", "cols"])
def test_columns_that_say_little_have_a_size_like_that_of_others(center, unit):
    X = matrix(shape=(30, 20))
    X[:, 1] = 7.0  # constant
    X[1:, 2] = np.nan  # a single entry
    X[0, 2] = -3.0
    X[:, 3] = 0.1 * 3  # constant, and its mean has a rounding error
    sizes = fit_units(observed(unit * X), center, "cols").cols / unit
    others = np.delete(np.arange(20), [1, 2, 3])
    whole = np.sqrt(np.nanmean(X**2, axis=0))
    found = np.nanstd(X, axis=0) if center == "cols" else whole
    expected = np.median(found[others] / whole[others])
    if center == "none":
        np.testing.assert_allclose(sizes[[1, 3]], [7.0, 0.3])
    else:
        np.testing.assert_allclose(sizes[[1, 3]], expected * np.array([7.0, 0.3]))
    assert sizes[2] == pytest.approx(3 * expected)


def test_columns_of_zeros_and_without_entries_have_a_positive_size():
    X = matrix()
    X[:, 1], X[:, 2] = 0.0, np.nan
    units = fit_units(observed(X))
    assert (units.cols > 0).all() and (units.off(observed(X)).to_array()[:, 1] == 0).all()
    for nothing in (np.zeros((4, 3)), np.ones((4, 3)), np.array([[5.0]]), np.array([[0.0]])):
        for scale in SCALES:
            units = fit_units(observed(nothing), scale=scale)
            assert (units.size(all_cells(nothing.shape)) > 0).all()
            assert np.isfinite(units.off(observed(nothing)).rows.values).all()


# --- Transforms ---------------------------------------------------------------------------------

SUITED = {
    "log": np.geomspace(1e-3, 1e3, 60),
    "log1p": np.linspace(-0.9, 50, 60),
    "logit": np.linspace(0.01, 0.99, 60),
    "sqrt": np.linspace(0.01, 40, 60),
    "rank": np.random.default_rng(0).gamma(2.0, 1.0, 60).round(1),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_have_their_inverse_and_their_slope(name):
    x = np.sort(SUITED[name])
    kind = TRANSFORMS[name].fit(x)
    assert kind.allowed(x).all() and (np.diff(kind.forward(np.unique(x))) > 0).all()
    np.testing.assert_allclose(kind.inverse(kind.forward(x)), x, rtol=1e-9)
    between = x[:-1] + 0.37 * np.diff(x)  # not at the corners of normal scores
    between = between[np.diff(x) > 0]
    step = 1e-6 * np.diff(x)[np.diff(x) > 0]
    slope = (kind.forward(between + step) - kind.forward(between - step)) / (2 * step)
    np.testing.assert_allclose(kind.log_slope(between), np.log(slope), atol=1e-6)


def test_percentages_have_a_logit_too():
    kind = TRANSFORMS["logit"].fit(np.array([3.0, 97.0]))
    share = TRANSFORMS["logit"].fit(np.array([0.03, 0.97]))
    x = np.array([1.0, 50.0, 99.5])
    np.testing.assert_allclose(kind.forward(x), share.forward(x / 100))
    np.testing.assert_allclose(kind.inverse(kind.forward(x)), x)
    np.testing.assert_allclose(kind.log_slope(x), share.log_slope(x / 100) - np.log(100))


def test_ranks_are_normal_scores_of_each_column():
    X = matrix(low=0.0)
    seen = fit_units(observed(X), "none", "none", "rank").off(observed(X)).to_array()
    for j in range(8):
        own = seen[~np.isnan(seen[:, j]), j]
        expected = stats.norm.ppf((np.arange(own.size) + 0.5) / own.size)
        np.testing.assert_allclose(np.sort(own), expected, atol=1e-12)
    constant = TRANSFORMS["rank"].fit(np.full(4, 3.0))
    assert type(constant) is Transform and constant.forward(np.array([3.0])) == 3.0


def test_values_beyond_the_range_of_a_transform_stay_finite():
    far = np.array([-1e4, 1e4])
    for name in TRANSFORMS:
        kind = TRANSFORMS[name].fit(SUITED[name])
        assert np.isfinite(kind.inverse(far)).all()
        assert (np.diff(kind.inverse(far)) > 0).all()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("log", 0.0, "needs positive values: row 'r0', column 'c0' is 0; use transformation="),
        ("log1p", -1.0, r"needs values above -1: row 'r0', column 'c0' is -1; leave"),
        ("logit", 0.0, "strictly between 0 and 1, .* row 'r0', column 'c0' is 0; move"),
        ("logit", 100.0, "between 0 and 100: row 'r0', column 'c0' is 100; move"),
        ("sqrt", -2.5, "not negative: row 'r0', column 'c0' is -2.5; leave"),
    ],
)
def test_values_that_have_no_transform_are_named(name, value, message):
    X = np.full((4, 3), 0.5)
    X[0, 0] = value
    labels = {"row_labels": [f"r{i}" for i in range(4)], "col_labels": [f"c{j}" for j in range(3)]}
    data = ObservedMatrix.of(X, **labels)
    with pytest.raises(DataError, match=f"transformation='{name}' .*{message}"):
        fit_units(data, transform=name)
    units = fit_units(data, transform=[None, name, name])  # the others are fine
    with pytest.raises(DataError, match="row 'r0', column 'c1'"):
        units.off(ObservedMatrix.of(np.roll(X, 1, axis=1), **labels))


def test_columns_are_transformed_by_name():
    X = pd.DataFrame(matrix(low=0.1), columns=[f"c{j}" for j in range(8)])
    data = ObservedMatrix.of(X)
    some = fit_transforms(data, {"c2": "log", "c5": "log", "c3": "rank"})
    names = [some.kinds[k].name for k in some.of]
    assert names == ["none", "none", "log", "rank", "none", "log", "none", "none"]
    listed = fit_transforms(data, [None, "none", "log", "rank", None, "log", None, None])
    np.testing.assert_array_equal(
        some.apply("forward", np.full(8, 2.0), np.arange(8)),
        listed.apply("forward", np.full(8, 2.0), np.arange(8)),
    )
    numbered = fit_transforms(observed(X.to_numpy()), {2: "log"})
    assert numbered.kinds[numbered.of[2]].name == "log"
    assert fit_transforms(data, None) is fit_transforms(data, "none") is None
    assert fit_transforms(data, {}) is None


def test_transforms_work_on_many_draws_at_once():
    data = observed(matrix(low=0.1))
    some = fit_transforms(data, ["log", None, "rank", "sqrt"] * 2)
    cols = np.array([3, 0, 0, 1, 2, 7])
    values = np.random.default_rng(0).random((5, 6)) + 0.2
    found = some.apply("forward", values, cols)
    for d in range(5):
        for n, j in enumerate(cols):
            single = some.kinds[some.of[j]].forward(values[d : d + 1, n])
            assert found[d, n] == pytest.approx(single[0], rel=1e-14)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("logarithm", "transformation must be one of none, log, .* got 'logarithm'. Did you mean"),
        (["log", "lgo"], "Did you mean 'log'"),
        (["log", "log", "log"], "names 3 columns, but the matrix has 2"),
        ({"height": "log"}, "there is no column 'height'"),
        ({0: "cube"}, "got 'cube'"),
    ],
)
def test_unknown_transforms_and_columns_are_refused(asked, message):
    with pytest.raises((DataError, ModelError), match=message):
        fit_units(observed(np.ones((3, 2))), transform=asked)
