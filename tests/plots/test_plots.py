"""Pictures have what they promise: panels, names, numbers of the fit, on the Axes given."""

from __future__ import annotations

import inspect
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from bayesmf import BayesianImputer, BayesianMF, DataError, ModelError, compare, plots, sample
from bayesmf.plots import _drawing as draw
from bayesmf.posterior.residuals import exact_entries, quantile_residuals
from bayesmf.splits import holdout

plt = pytest.importorskip("matplotlib.pyplot")
OF_FIT = sorted(set(plots.__all__) - {"models", "rank_curves"})
LONG = "a label with forty characters, number "


def frame(shape=(40, 12), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1]))
    X += rng.normal(size=shape) * np.linspace(0.1, 1.0, shape[1])
    X[rng.random(shape) < 0.2] = np.nan
    return pd.DataFrame(
        X, [f"line {i}" for i in range(shape[0])], [f"drug {j}" for j in range(shape[1])]
    )


def fit(X, **options):
    options = {"noise": "cols", "draws": 60, "burn_in": 60, "random_state": 0, **options}
    return BayesianMF("GGGA", 2, **options).fit(X)


@pytest.fixture(scope="module")
def mf():
    return fit(frame())


@pytest.fixture(scope="module")
def found():
    names = ["GGG", "GLL", "row-average", "NMF"]
    return compare(frame(), names, [1, 2, 3], budget="quick")


def names(ax, which="y"):
    return [label.get_text() for label in getattr(ax, f"get_{which}ticklabels")()]


def values(ax, line=0):
    return np.asarray(ax.lines[line].get_xdata(), dtype=float)


@pytest.mark.parametrize("kind", OF_FIT)
def test_every_picture_is_drawn_on_new_and_on_given_axes(mf, kind):
    drawn = mf.plot(kind)
    figure = np.ravel(drawn)[0].figure
    figure.canvas.draw()
    given = plt.figure().subplots(len(np.ravel(drawn)), squeeze=False).ravel()
    again = getattr(plots, kind)(mf, ax=given if isinstance(drawn, np.ndarray) else given[0])
    assert list(np.ravel(again)) == list(given)
    assert [ax.get_title() for ax in given] == [ax.get_title() for ax in np.ravel(drawn)]


@pytest.mark.parametrize("kind", plots.__all__)
def test_every_picture_takes_axes_and_says_what_it_draws(kind):
    function = getattr(plots, kind)
    assert inspect.signature(function).parameters["ax"].default is None
    assert "Examples" in function.__doc__ and "Parameters" in function.__doc__


def test_the_matrix_shows_data_predictions_and_deviations(mf):
    axes = plots.matrix(mf)
    observed, completed, std = (np.ma.filled(ax.images[0].get_array(), np.nan) for ax in axes)
    X = frame().to_numpy()
    np.testing.assert_array_equal(observed, X)
    mean, deviation = mf.predict(return_std=True)
    np.testing.assert_allclose(completed, np.where(np.isnan(X), mean, X))
    np.testing.assert_allclose(std, deviation)
    assert axes[0].images[0].get_clim() == axes[1].images[0].get_clim()


def test_cells_are_found_by_label_and_show_their_intervals(mf):
    ax = plots.cells(mf, ["line 3", "line 5"], ["drug 2", "drug 1"], level=0.8)
    assert names(ax) == ["line 3, drug 2", "line 5, drug 1"]
    mean, (low, high) = mf.predict([3, 5], [2, 1], quantiles=[0.1, 0.9])
    np.testing.assert_allclose(values(ax), mean)
    ends = np.array([path.vertices[:, 0] for path in ax.collections[0].get_paths()])
    np.testing.assert_allclose(ends, np.column_stack([low, high]))
    np.testing.assert_array_equal(values(ax, 1), frame().to_numpy()[[3, 5], [2, 1]])
    row = plots.cells(mf, "line 7")
    assert set(names(row)) == set(frame().columns) and "line 7" in row.get_title()
    assert (np.diff(values(row)) <= 0).all()
    assert len(names(plots.cells(mf, cols="drug 4", most=10))) == 10


def test_without_names_the_surprising_cells_are_drawn(mf):
    X = frame()
    X.loc["line 8", "drug 0"] = 40.0
    ax = plots.cells(fit(X))
    assert names(ax)[0] == "line 8, drug 0"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rows": "line 99"}, "no row 'line 99'"),
        ({"cols": "drug l"}, "Did you mean"),
        ({"rows": 40, "cols": 0}, "no row 40"),
        ({"rows": [1, 2, 3], "cols": [1, 2]}, "one length"),
    ],
)
def test_cells_that_are_not_there(mf, options, said):
    with pytest.raises(DataError, match=said):
        plots.cells(mf, **options)


def test_factors_are_the_aligned_means_with_their_certain_signs(mf):
    ax = plots.factors(mf)
    V = mf.posterior_.align()[1]
    np.testing.assert_allclose(ax.images[0].get_array(), V.mean(axis=0))
    low, high = np.quantile(V, [0.05, 0.95], axis=0)
    marked = {(int(x), int(y)) for x, y in ax.collections[0].get_offsets()}
    assert marked == {(k, j) for j, k in zip(*np.nonzero((low > 0) | (high < 0)), strict=True)}
    assert names(ax) == list(frame().columns)
    few = plots.factors(mf, "rows", most=5)
    assert len(names(few)) == 5 and "5 of 40" in few.get_ylabel()


def test_nonnegative_factors_have_no_signs():
    posterior = sample(np.abs(frame().to_numpy()), "GEE", 2, draws=20, keep="all", random_state=0)
    ax = plots.factors(posterior)
    assert not ax.collections and ax.images[0].get_clim()[0] == 0


def test_loadings_and_shares(mf):
    V = mf.components_[1]
    ax = plots.loadings(mf, 1, most=4)
    most = np.argsort(-np.abs(V))[:4]
    assert set(names(ax)) == {f"drug {j}" for j in most} and (np.diff(values(ax)) <= 0).all()
    bars = [bar.get_height() for bar in plots.variance(mf).patches]
    assert sum(bars) == pytest.approx(1.0) and len(bars) == 2
    with pytest.raises(ModelError, match="component must lie between 0 and 1"):
        plots.loadings(mf, 2)


def test_chains_are_shown_by_what_is_identifiable(mf):
    axes = plots.traces(mf, cells=2)
    titles = [ax.get_title(loc="left") for ax in axes]
    kept = mf.posterior_.train_mse[:, 60:]
    np.testing.assert_array_equal([line.get_ydata() for line in axes[0].lines], kept)
    assert (
        titles[0].startswith("training error: R-hat")
        and sum("line" in title for title in titles) == 2
    )
    ranks = plots.rank_histograms(mf, ["training error"])
    counts = [patch.get_data().values for patch in ranks[0].patches]
    assert [sum(count) for count in counts] == [60, 60]
    with pytest.raises(ModelError, match="Did you mean 'noise precision'"):
        plots.traces(mf, ["noise precison"])
    with pytest.raises(ModelError, match="chains=2"):
        plots.rank_histograms(fit(frame(), chains=1))


def test_residuals_of_a_fit_are_calibrated_though_it_has_seen_the_entries(mf):
    """Each entry is predicted by the others; judged by the fit itself intervals look too wide."""
    fitted = mf.fitted_
    entries = exact_entries(fitted.X)
    own, seen = quantile_residuals(fitted), quantile_residuals(fitted, entries)
    n = own.z.size
    assert abs(np.std(own.z) - 1) < 4 / np.sqrt(2 * n) < 1 - np.std(seen.z)
    assert own.coverage([0.9])[0] < seen.coverage([0.9])[0]


def test_calibration_of_own_and_of_held_out_entries(mf, found):
    train, test = holdout(mf.fitted_.X, 0.2, 0)
    ax = plots.calibration(fit(train), held_out=test)
    _, (low, high) = fit(train).predict(*test[:2], quantiles=[0.25, 0.75])
    inside = np.mean((low <= test[2]) & (test[2] <= high))
    drawn = dict(zip(np.round(values(ax, 1), 3), ax.lines[1].get_ydata(), strict=True))
    assert drawn[0.5] == pytest.approx(inside, abs=0.03)
    assert "held-out" in ax.get_title()
    judged = plots.calibration(found)
    np.testing.assert_array_equal(judged.lines[1].get_xydata(), found.calibration)
    with pytest.raises(DataError, match="three arrays"):
        plots.pit(mf, held_out=test[:2])
    with pytest.raises(DataError, match="have 1 values"):
        plots.pit(mf, held_out=(test[0], test[1], [1.0]))


def test_residuals_tell_columns_that_scatter():
    X = frame()
    rough = fit(X, noise="equal", scale="global")
    ax = plots.residuals(rough, "cols")
    first, last = names(ax)[0], names(ax)[-1]
    assert int(first.removeprefix("drug ")) > 8 and int(last.removeprefix("drug ")) < 4
    assert values(ax)[0] > 1.3
    with pytest.raises(ModelError, match="by must be"):
        plots.residuals(rough, "weekday")


def test_predictive_checks_mark_what_the_model_does_not_make():
    counts = np.random.default_rng(0).poisson(1.0, (40, 12)).astype(float)
    posterior = sample(counts, "GGG", 1, draws=30, keep="all", random_state=0)
    axes = plots.predictive_checks(posterior, counts)
    panels = {ax.get_title(): ax for ax in axes}
    assert panels["share of exact zeros"].lines[-1].get_color() != "black"
    assert values(panels["share of exact zeros"], -1)[0] == pytest.approx(np.mean(counts == 0))


def test_noise_in_the_units_of_the_data_the_noisiest_first(mf):
    ax = plots.noise(mf)
    np.testing.assert_allclose(values(ax), np.sort(mf.noise_sd().cols.mean)[::-1])
    assert int(names(ax)[0].removeprefix("drug ")) > 8
    with pytest.raises(ModelError, match="noise='rows'"):
        plots.noise(mf, "rows")


def test_models_and_ranks_of_a_comparison(found):
    ax = plots.models(found)
    assert names(ax)[0] == f"{found.best_}, rank {found.best_rank_}" and "row-average" in names(ax)
    best = [line for line in ax.lines if line.get_fillstyle() == "full"]
    assert len(best) == 1 + len(found.ties)
    curves = plots.rank_curves(found)
    shown = {line.get_label(): line for line in curves.lines}
    for model, curve in found.rank_curves().items():
        np.testing.assert_allclose(shown[model].get_xydata(), [point[:2] for point in curve])
    with pytest.raises(ModelError, match="Comparison"):
        plots.models(fit(frame()))


def test_a_posterior_is_drawn_with_its_data():
    X = frame()
    posterior = sample(X, "GGG", 2, draws=30, keep="all", random_state=0)
    assert len(plots.matrix(posterior, X)) == 3
    with pytest.raises(ModelError, match="give them as X"):
        plots.pit(posterior)
    with pytest.raises(ModelError, match="of shape"):
        plots.pit(posterior, X.iloc[:4])
    with pytest.raises(ModelError, match="not dict"):
        plots.matrix({})


def test_an_imputer_is_drawn_as_well_and_a_misspelt_kind_is_refused():
    imputer = BayesianImputer("GGG", 1, draws=30, burn_in=30, random_state=0).fit(frame())
    assert len(imputer.plot()) == 3
    with pytest.raises(ModelError, match="Did you mean 'residuals'"):
        imputer.plot("residual")
    with pytest.raises(ModelError, match="must have 3 Axes"):
        imputer.plot(ax=plt.figure().subplots(2))
    with pytest.raises(ModelError, match="No ranks"):
        imputer.plot("rank_curves")


# --- Names ---------------------------------------------------------------------------------------


def test_long_names_keep_what_tells_them_apart():
    long = [f"{LONG}{k:03d}" for k in range(3)]
    assert [name[-3:] for name in draw.several(long)] == ["000", "001", "002"]
    assert all(len(name) <= draw.LONGEST for name in draw.several(long))
    front = [f"{k:03d} {LONG}" for k in range(3)]
    assert [name[:3] for name in draw.several(front)] == ["000", "001", "002"]
    middle = [f"{'x' * 50}{k}{'y' * 50}" for k in "abc"]
    assert [name.strip("xy…") for name in draw.several(middle)] == ["a", "b", "c"]
    assert draw.several(["same", "same", "other"]) == ["same", "same", "other"]
    ends = [f"{a}{'x' * 40}{b}{'y' * 40}{c}" for a, b, c in ("1a1", "1b1", "2a2")]
    assert len(set(draw.several(ends))) == 3


def test_two_thousand_columns_with_long_names_stay_readable():
    """No two names overlap, and none leaves the figure."""
    X = np.random.default_rng(0).normal(size=(12, 2000)).astype(np.float32)
    labelled = pd.DataFrame(
        X, [f"{LONG}${i:03d}$" for i in range(12)], [f"{j:04d} {LONG}" for j in range(2000)]
    )
    wide = BayesianMF("GGG", 2, draws=10, burn_in=5, random_state=0).fit(labelled)
    for kind in ("matrix", "factors", "cells"):
        for ax in np.ravel(wide.plot(kind)):
            ax.figure.canvas.draw()
            for which, low, high in (("x", "x0", "x1"), ("y", "y0", "y1")):
                labels = getattr(ax, f"get_{which}ticklabels")()
                boxes = [label.get_window_extent() for label in labels if label.get_text()]
                order = sorted(boxes, key=lambda box: getattr(box, low))
                for one, other in pairwise(order):
                    assert getattr(one, high) <= getattr(other, low) + 1, (kind, which)
                assert all(box.x0 >= -1 and box.y0 >= -1 for box in boxes), kind


# --- Images, and what is loaded ------------------------------------------------------------------


def pixels(figure):
    figure.set_dpi(30)
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(float)


@pytest.mark.parametrize("kind", ["matrix", "pit", "loadings"])
def test_the_same_fit_is_drawn_alike_and_another_one_otherwise(mf, kind):
    one, again, other = (
        pixels(np.ravel(fitted.plot(kind))[0].figure)
        for fitted in (mf, fit(frame()), fit(frame(seed=1)))
    )
    np.testing.assert_array_equal(one, again)
    assert one.shape == other.shape and np.mean(np.abs(one - other)) > 1.0


def test_nothing_is_loaded_or_changed_before_something_is_drawn():
    code = (
        "import sys, bayesmf.plots as p; assert 'matplotlib' not in sys.modules; "
        "import matplotlib as m; m.use('Agg'); before = dict(m.rcParams); import numpy as np; "
        "from bayesmf import sample; "
        "p.variance(sample(np.ones((4, 3)), 'GGG', 1, draws=4, keep='all')); "
        "assert before == dict(m.rcParams)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
