"""Results do not depend on the units of the data: whole estimators and the command line."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from bayesmf import BayesianImputer, BayesianMF
from bayesmf.cli import main
from bayesmf.reading import read_matrix

pytestmark = pytest.mark.filterwarnings("ignore::bayesmf.ConvergenceWarning")
SHORT = {"draws": 10, "burn_in": 10, "chains": 2, "random_state": 0}
SHAPE = 25, 8
OWN = 10.0 ** np.array([-9.0, -6.0, -3.0, 0.0, 2.0, 4.0, 6.0, 9.0])  # a unit for every column
PLAIN = ("GGGW", "GGGA", "GLL", "GVG", "GHH", "GEG", "GEE", "GTTN", "TGGW")
MORE = [
    ("GGGW", {"noise": "both", "biases": True}),
    ("GEE", {"biases": True}),
    ("GGG", {"transformation": "log"}),
    ("GGG", {"transformation": ["sqrt", None, "rank", "log"] * 2}),
]


@pytest.fixture
def quick(monkeypatch):
    """Short chains in the search for the rank."""
    for name in ("_BURN_IN", "_DRAWS"):
        monkeypatch.setattr(f"bayesmf.ranks.{name}", 10)


def matrix():
    rng = np.random.default_rng(0)
    truth = rng.gamma(2.0, 1.0, (SHAPE[0], 2)) @ rng.gamma(2.0, 1.0, (2, SHAPE[1]))
    X = np.abs(truth + 0.3 * rng.normal(size=SHAPE))
    X[rng.random(SHAPE) < 0.25] = np.nan
    return X, truth


def results(mf, unit, truth, X):
    """All that an estimator says of cells, brought back to the first unit."""
    wide = np.broadcast_to(unit, SHAPE)
    mean, std, quantiles = mf.predict(return_std=True, quantiles=[0.1, 0.9])
    new = mf.predict(X[:4] * unit, return_std=True, quantiles=[0.5])
    i, j = np.arange(16), np.arange(16) % 8
    density = mf.log_density(i, j, (truth * wide)[i, j]) + np.log(wide)[i, j]
    noise = mf.predict(return_std=True, include_noise=False)[1]
    return {
        "mean": mean / wide, "std": std / wide, "quantiles": quantiles / wide,
        "spread": noise / wide, "new mean": new[0] / wide[:4], "new std": new[1] / wide[:4],
        "new median": new[2] / wide[:4], "drawn": mf.sample_predictive(2) / wide,
        "log density": density, "factors": mf.transform(X[:4] * unit),
        "components": mf.components_,
    }  # fmt: skip


def assert_alike(found, expected):
    for name, values in expected.items():
        np.testing.assert_allclose(
            found[name], values, rtol=1e-8, atol=1e-8 * np.abs(values).max(), err_msg=name
        )


@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in PLAIN), *MORE])
def test_units_do_not_matter(name, options):
    X, truth = matrix()
    units = [1e-9, 1e9, OWN]
    if name in ("GEE", "GTTN", "GEG"):  # walls make much of a last digit, which these units keep
        units = [np.exp2(np.round(np.log2(unit))) for unit in units]
    fitted = [BayesianMF(name, 2, **options, **SHORT).fit(X * unit) for unit in (1.0, *units)]
    expected = results(fitted[0], 1.0, truth, X)
    for mf, unit in zip(fitted[1:], units, strict=True):
        assert_alike(results(mf, unit, truth, X), expected)
    assert np.corrcoef(expected["mean"].ravel(), truth.ravel())[0, 1] > 0.7  # and all are of use


def test_what_is_automatic_is_the_same_in_all_units(quick):
    X, truth = matrix()
    one, other = (BayesianMF(**SHORT).fit(X * unit) for unit in (1.0, 1e-3 * OWN))
    assert one.n_components_ == other.n_components_ and one.notes_[:2] == other.notes_[:2]
    assert list(one.rank_errors_) == list(other.rank_errors_)
    np.testing.assert_allclose(*(list(mf.rank_errors_.values()) for mf in (one, other)), rtol=1e-8)
    assert_alike(results(other, 1e-3 * OWN, truth, X), results(one, 1.0, truth, X))
    assert other.summary().level == one.summary().level


@pytest.mark.parametrize(
    ("options", "units"),
    [
        ({"scale": "global"}, (1e-9, 1e9)),
        ({"scale": "global", "center": "none"}, (1e-9, 1e9)),
        ({"scale": "rows", "center": "rows"}, (1e-9, 10.0 ** (np.arange(25.0)[:, None] % 13 - 6))),
        ({"center": "rows"}, (1e-9, 1e9)),
        ({"center": "global"}, (1e-9, 1e9)),
    ],
)
def test_other_units_do_what_they_say(options, units):
    X, _ = matrix()
    one = BayesianMF("GGG", 2, **options, **SHORT).fit(X)
    expected = one.predict(return_std=True)
    new = one.predict(X[:3], return_std=True)
    for unit in units:
        mf = BayesianMF("GGG", 2, **options, **SHORT).fit(X * unit)
        wide = np.broadcast_to(unit, SHAPE)
        for found, was in zip(mf.predict(return_std=True), expected, strict=True):
            np.testing.assert_allclose(found / wide, was, rtol=1e-8)
        for found, was in zip(mf.predict((X * wide)[:3], return_std=True), new, strict=True):
            np.testing.assert_allclose(found / wide[:3], was, rtol=1e-8)


@pytest.mark.filterwarnings("ignore:Columns without an observed value:bayesmf.DataWarning")
def test_units_of_matrices_with_few_entries_do_not_matter():
    X = np.full((60, 40), np.nan)
    rng = np.random.default_rng(0)
    X[rng.integers(0, 60, 150), rng.integers(0, 40, 150)] = rng.normal(3, 2, 150)
    unit = 2.0**-30  # rounds alike: with so few entries a chain soon makes much of a last digit
    one, other = (BayesianMF("GGG", 2, **SHORT).fit(Y) for Y in (X, X * unit))
    assert one.units_.scale == other.units_.scale == "global"
    for a, b in zip(one.predict(return_std=True), other.predict(return_std=True), strict=True):
        np.testing.assert_allclose(b / unit, a, rtol=1e-8)


def test_imputations_do_not_depend_on_units():
    X, _ = matrix()
    found = []
    for unit in (1.0, 1e-9, OWN):
        imputer = BayesianImputer("GGGW", 2, **SHORT)
        filled = imputer.fit_transform(X * unit)
        found.append((filled / unit, imputer.impute(3) / unit, imputer.transform(X * unit) / unit))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-8)


@pytest.mark.parametrize("name", ["GGG", "TGGA"])
def test_limits_and_errors_have_the_units_of_the_data(name):
    X, truth = matrix()
    limit = float(np.nanquantile(X, 0.9))
    X = np.minimum(X, limit)
    i, j = np.nonzero(limit == X)
    found = []
    for unit in (1.0, 1e-9, OWN):
        upper = limit * unit * np.ones(8)
        mf = BayesianMF(name, 2, **SHORT).fit(X * unit, upper=upper)
        latent = mf.predict(latent=True) / unit
        inside = mf.log_density(i, j, (0.5 * truth * unit)[i, j])
        inside += np.log(np.broadcast_to(unit, SHAPE))[i, j]
        at = mf.log_density(i, j, upper[j])  # a probability, whatever the unit
        found.append((mf.predict() / unit, latent, inside, at))
        assert (mf.predict() <= upper * (1 + 1e-12)).all() and (at <= 0).all()
        assert (latent[i, j].mean()) > limit
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-8)
    errors = np.random.default_rng(1).uniform(0.5, 2.0, SHAPE)
    found = []
    for unit in (1.0, 1e-9, OWN):
        mf = BayesianMF(name, 2, **SHORT).fit(X * unit, errors=errors * unit)
        known = mf.log_density(i, j, X[i, j] * (unit * np.ones(8))[j], errors=(errors * unit)[i, j])
        known += np.log(unit * np.ones(8))[j]
        found.append((mf.predict(return_std=True)[1] / unit, known))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-8)


def test_limits_of_rows_cannot_be_scaled_but_those_of_columns_can():
    X, _ = matrix()
    limit = np.nanquantile(X, 0.9)
    for center in ("none", "global", "cols"):
        for scale in ("none", "global", "cols"):
            options = {"center": center, "scale": scale}
            mf = BayesianMF("GGG", 2, **options, **SHORT).fit(np.minimum(X, limit), upper=limit)
            assert mf.predict().max() <= limit * (1 + 1e-12)
            count = np.sum(limit <= X)
            bounds = mf.posterior_.model.likelihood.read(mf.units_.off(mf._matrix)).bounds
            assert np.isinf(bounds.high).sum() == count > 0


def test_the_noise_is_in_the_units_of_the_data():
    X, _ = matrix()
    for options in ({}, {"noise": "both"}):
        one, other = (
            BayesianMF("GGG", 2, **options, **SHORT).fit(X * u).noise_sd() for u in (1.0, OWN)
        )
        for a, b in zip(one.cols, other.cols, strict=True):
            np.testing.assert_allclose(b / OWN, a, rtol=1e-8)
        whole = np.exp(np.log(OWN).mean())
        assert other.overall.mean == pytest.approx(whole * one.overall.mean)
        assert (one.rows is None) == (options == {})
        if options:
            np.testing.assert_allclose(other.rows.mean, whole * one.rows.mean, rtol=1e-8)
    plain = BayesianMF("GGG", 2, scale="none", **SHORT).fit(X)
    assert plain.noise_sd().cols is None
    assert plain.noise_sd().overall == plain.posterior_.noise().overall


@pytest.mark.parametrize("name", ["PGG", "NGG", "OGGW"])
def test_counts_and_categories_are_left_as_they_are(name):
    X = np.random.default_rng(0).poisson(2.0, SHAPE).clip(0, 3).astype(float)
    X[0] = np.nan
    X[0, :4] = range(4)
    auto, none = (
        BayesianMF(name, 2, scale=scale, center=scale, **SHORT).fit(X) for scale in ("auto", "none")
    )
    assert not auto.units_.changed
    np.testing.assert_array_equal(auto.predict(), none.predict())
    np.testing.assert_array_equal(auto.predict(X[:3]), none.predict(X[:3]))
    assert not any("The model sees values" in note for note in auto.notes_)


def test_named_models_are_scaled_too_and_nonnegative_ones_not_centred():
    X, _ = matrix()
    real, positive = (BayesianMF(name, 2, **SHORT).fit(X).units_ for name in ("GGG", "GEE"))
    assert (real.offsets.center, real.scale) == ("cols", "cols")
    assert (positive.offsets.center, positive.scale) == ("none", "cols")
    np.testing.assert_allclose(positive.cols, np.sqrt(np.nanmean(X**2, axis=0)))
    np.testing.assert_allclose(real.cols, np.nanstd(X, axis=0))


def test_the_command_line_does_not_depend_on_units(quick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, _ = matrix()
    X = X.round(3)
    options = ["--draws", "10", "--burn-in", "10", "--seed", "1", "--jobs", "1"]
    for name, exponent in (("one", ""), ("small", "e-6")):
        with open(f"{name}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["", *"abcdefgh"])
            for i, row in enumerate(X):
                writer.writerow([f"r{i}", *("" if x != x else f"{x:g}{exponent}" for x in row)])
        assert main(["fit", f"{name}.csv", *options, "--quiet"]) == 0
    for table in ("completed", "std", "lower", "upper"):
        one, small = (
            read_matrix(f"{name}-fit/{table}.csv").to_array() for name in ("one", "small")
        )
        np.testing.assert_allclose(1e6 * small, one, rtol=2e-8)  # which is what is written


def test_factors_of_known_errors_have_no_unit():
    rng = np.random.default_rng(5)
    errors = rng.uniform(0.5, 2.0, (40, 8))
    X = rng.normal(size=(40, 1)) @ rng.normal(size=(1, 8)) + errors * rng.normal(size=(40, 8))
    run = {"draws": 60, "burn_in": 60, "random_state": 0}
    one, other = (
        BayesianMF("GGG", 1, **run).fit(unit * X, errors=unit * errors).noise_sd()
        for unit in (1.0, 1e3)
    )
    assert 0.7 < one.overall.mean < 1.4
    np.testing.assert_allclose(other.overall.mean, one.overall.mean, rtol=1e-8)
