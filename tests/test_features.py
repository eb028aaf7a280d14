"""Features from end to end: cold rows and columns, limits, folds, weights, files."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bayesmf import (
    BayesianImputer,
    BayesianMF,
    DataError,
    Features,
    Laplace,
    Model,
    ModelError,
    MultivariateNormal,
    ObservedMatrix,
    Posterior,
    preset,
    sample,
)
from bayesmf.likelihoods import Gaussian
from bayesmf.priors import regression
from bayesmf.splits import cold_folds
from bayesmf.streams import Stream, seed_words
from bayesmf.updates.normal import draw_side
from bayesmf.updates.terms import RowTerms

pytestmark = pytest.mark.filterwarnings("ignore::bayesmf.ConvergenceWarning")
RNG = np.random.default_rng(3)
F, G = RNG.normal(size=(50, 8)), RNG.normal(size=(24, 3))
FACTORS = F @ RNG.normal(size=(8, 2)) / 3, G @ RNG.normal(size=(3, 2)) / 2
FULL = FACTORS[0] @ FACTORS[1].T + 0.2 * RNG.normal(size=(50, 24)) + F[:, :1] + 0.7 * G[:, 1] + 3
X = np.where(RNG.random(FULL.shape) < 0.6, FULL, np.nan)
OLD, NEW = np.arange(8, 50), np.arange(8)  # rows
KNOWN, COLD = np.arange(5, 24), np.arange(5)  # columns
SHORT = {"draws": 60, "burn_in": 80, "chains": 1, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    return BayesianMF("GGGW", 2, biases=True, noise="both", **SHORT).fit(
        X[np.ix_(OLD, KNOWN)], row_features=F[OLD], col_features=G[KNOWN]
    )


CASES = {
    "new rows": (NEW, KNOWN, {"row_features": F[NEW]}),
    "new rows with entries": (
        NEW, KNOWN, {"rows": X[np.ix_(NEW, KNOWN)], "row_features": F[NEW]}
    ),
    "new columns": (OLD, COLD, {"col_features": G[COLD]}),
    "new columns with entries": (
        OLD, COLD, {"cols": X[np.ix_(OLD, COLD)], "col_features": G[COLD]}
    ),
    "both": (NEW, COLD, {"row_features": F[NEW], "col_features": G[COLD]}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_features_predict_what_was_never_seen(case, fitted):
    rows, cols, given = CASES[case]
    truth = FULL[np.ix_(rows, cols)]
    mean, std, (low, high) = fitted.predict(**given, return_std=True, quantiles=[0.05, 0.95])
    assert mean.shape == std.shape == truth.shape
    assert np.mean((mean - truth) ** 2) < 0.1 * truth.var()
    assert ((low <= truth) & (truth <= high)).mean() > 0.85


def test_a_row_as_it_was_fitted_is_predicted_as_it_was(fitted):
    whole = fitted.predict()
    again = fitted.predict(X[np.ix_(OLD, KNOWN)], row_features=F[OLD])
    assert np.abs(whole - again).max() < 0.35 and np.abs(whole - again).mean() < 0.06


def test_transform_score_and_imputer_take_features(fitted):
    data = X[np.ix_(NEW, KNOWN)]
    assert fitted.transform(data, row_features=F[NEW]).shape == (8, 2)
    assert np.isfinite(fitted.score(data, row_features=F[NEW]))
    imputer = BayesianImputer("GGGW", 2, draws=5, burn_in=5, chains=1, random_state=0)
    imputer.fit(X, row_features=F, pattern="cols")
    np.testing.assert_array_equal(np.isnan(imputer.transform(X[:4], row_features=F[:4])), False)


def test_missing_or_unknown_features_of_new_rows_are_refused(fitted):
    data = X[np.ix_(NEW, KNOWN)]
    with pytest.raises(DataError, match="The fit had features 'features'"):
        fitted.predict(data)
    with pytest.raises(DataError, match="3 columns, but the fit had 8"):
        fitted.predict(row_features=F[NEW, :3])
    with pytest.raises(DataError, match="no group 'other'"):
        fitted.predict(row_features={"features": F[NEW], "other": F[NEW]})
    plain = BayesianMF("GGGW", 2, draws=3, burn_in=3, chains=1, random_state=0).fit(X)
    with pytest.raises(DataError, match="had no row_features"):
        plain.predict(X[:2], row_features=F[:2])


def test_priors_that_take_no_features_are_refused():
    matrix = ObservedMatrix.of(X, row_features=F)
    with pytest.raises(ModelError, match="rows of GEE have Exponential"):
        sample(matrix, "GEE", 2)
    rows = MultivariateNormal(features=Features.of(F))
    mixed = sample(X, Model(Gaussian(), rows, Laplace(1.0)), 2, draws=3, burn_in=3, random_state=0)
    assert "rows.weights_features" in mixed.states[0].variables()


def test_features_of_the_prior_are_those_of_the_matrix():
    model = replace(preset("GGGW"), rows=MultivariateNormal(features=Features.of(F)))
    options = {"draws": 4, "burn_in": 4, "random_state": 1}
    one = sample(X, model, 2, **options)
    other = sample(ObservedMatrix.of(X, row_features=F), "GGGW", 2, **options)
    np.testing.assert_array_equal(one.mean, other.mean)


def test_sample_takes_features_by_label():
    names = [f"r{i}" for i in range(50)]
    data, known = pd.DataFrame(X, names), pd.DataFrame(F, names)
    options = {"draws": 4, "burn_in": 4, "random_state": 1}
    one = sample(X, "GGGW", 2, row_features=F, pattern="cols", **options)
    shuffled = known.sample(frac=1.0, random_state=0)
    other = sample(data, "GGGW", 2, row_features={"features": shuffled}, pattern="cols", **options)
    np.testing.assert_array_equal(one.mean, other.mean)
    matrix = ObservedMatrix.of(data).with_features(known, pattern="cols")
    np.testing.assert_array_equal(one.mean, sample(matrix, "GGGW", 2, **options).mean)
    with pytest.raises(DataError, match="row_features: 'r7' is not there"):
        sample(data, "GGGW", 2, row_features=known.drop(index="r7"), **options)


def test_more_features_than_rows_cost_and_draw_what_their_directions_do():
    wide = RNG.normal(size=(50, 300))
    directions = Features.of(wide).groups[0].design
    options = {"draws": 4, "burn_in": 4, "random_state": 1}
    one = sample(ObservedMatrix.of(X, row_features=wide), "GGGW", 2, **options)
    known = Features.of(directions, standardize=False)
    other = sample(ObservedMatrix.of(X, row_features=known), "GGGW", 2, **options)
    np.testing.assert_array_equal(one.mean, other.mean)
    assert one.states[0].rows["weights_features"].shape == (49, 2)


def test_weights_of_huge_precision_are_the_model_without_features():
    """The prior holds the weights at zero, so means agree to the error of two short chains."""
    none = Features.of(F, alpha=1e12, beta=1.0)
    options = {"draws": 400, "burn_in": 100, "random_state": 1}
    matrix = ObservedMatrix.of(X).with_features(none)
    with_features, without = (sample(x, "GGGW", 2, **options) for x in (matrix, X))
    gap = with_features.mean - without.mean
    error = np.sqrt((with_features.variance + without.variance) / 20)  # of some 20 effective draws
    assert np.abs(with_features.states[0].rows["weights_features"]).max() < 1e-4
    assert np.abs(gap / error).mean() < 1.5


def test_rows_whose_priors_are_less_certain_have_their_own_conditionals():
    """Mean and covariance of many equal rows against the formula, a row of the prior alone too."""
    n, K, c, tau = 20_000, 2, 0.3, 1.7
    precision, mean = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([0.4, -0.8])
    V, z = np.array([[1.0, 0.3], [-0.5, 0.8], [0.2, 0.9]]), np.array([0.7, -0.4, 1.1])
    for data in (np.tile(z, (n, 1)), np.full((n, 3), np.nan)):
        data[0] = z  # at least one entry
        linear = np.tile(c * precision @ mean, (n, 1))
        terms = RowTerms(precision, np.zeros((1, K)), linear, np.full(n, c))
        U, view = np.empty((n, K)), ObservedMatrix.of(data).rows
        errors = draw_side(view, U, V, terms, tau, Stream(seed_words(5)), errors=True)
        seen = not np.isnan(data[1, 0])
        A = c * precision + (tau * V.T @ V if seen else 0.0)
        b = c * precision @ mean + (tau * V.T @ z if seen else 0.0)
        covariance, rows = np.linalg.inv(A), U[1:]
        deviation = np.sqrt(np.diag(covariance) / n)
        assert (np.abs(rows.mean(axis=0) - covariance @ b) < 4.5 * deviation).all()
        spread = np.sqrt((covariance**2 + np.outer(np.diag(covariance), np.diag(covariance))) / n)
        assert (np.abs(np.cov(rows.T) - covariance) < 4.5 * spread).all()
        np.testing.assert_allclose(errors[0], ((z - V @ U[0]) ** 2).sum(), rtol=1e-9)


def test_rows_outside_the_span_of_the_fitted_ones_are_less_certain(monkeypatch):
    far = BayesianMF("GGGW", 2, draws=40, burn_in=40, chains=1, random_state=0)
    wide = np.hstack([F, RNG.normal(size=(50, 52))])
    far.fit(X[OLD], row_features=wide[OLD])
    std = far.predict(row_features=wide[NEW], return_std=True, include_noise=False)[1]
    monkeypatch.setattr(regression, "certainty", lambda features, *_: np.ones(features.n))
    narrow = far.predict(row_features=wide[NEW], return_std=True, include_noise=False)[1]
    assert (std > narrow).mean() > 0.9 and std.mean() > 1.1 * narrow.mean()


def test_weights_of_features_find_those_that_matter(fitted):
    group = fitted.posterior_.feature_weights()[0]
    assert group.mean.shape == (8, 19) and (group.lower <= group.upper).all()
    assert group.share[1] <= group.share[0] <= group.share[2] and group.share[0] > 0.2
    noise = np.column_stack([F[:, 0], RNG.normal(size=(50, 4))])
    matrix = ObservedMatrix.of(F[:, :1] * np.arange(1.0, 25), row_features=noise)
    found = sample(matrix, "GGGW", 1, draws=50, keep="all", random_state=0).feature_weights()[0]
    assert found.importance[0] > 20 * found.importance[1:].max()
    slope = np.arange(1.0, 25) * F[:, 0].std()
    np.testing.assert_allclose(found.mean[0], slope, rtol=0.1)
    with pytest.raises(ModelError, match="no features of the rows"):
        sample(X, "GGG", 2, draws=2, burn_in=1).feature_weights()


@pytest.mark.parametrize("side", ["rows", "cols", "both"])
def test_folds_of_whole_rows_never_leak(side):
    kernel = np.cov(RNG.normal(size=(50, 80)))
    matrix = ObservedMatrix.of(X).with_features(F, {"g": G}, row_kernel=kernel)
    tested, options = np.zeros(X.shape, dtype=int), {"draws": 3, "burn_in": 3, "chains": 1}
    for number, fold in enumerate(cold_folds(matrix, side, 4, random_state=0)):
        rows = np.arange(50) if fold.rows is None else fold.rows
        cols = np.arange(24) if fold.cols is None else fold.cols
        i, j, values = fold.test
        np.testing.assert_array_equal(X[rows[i], cols[j]], values)
        tested[rows[i], cols[j]] += 1
        kept = np.setdiff1d(np.arange(50), rows) if fold.rows is not None else rows
        left = np.setdiff1d(np.arange(24), cols) if fold.cols is not None else cols
        np.testing.assert_array_equal(fold.train.to_array(), X[np.ix_(kept, left)])
        fresh = Features.of(F[kept], kernel=kernel[np.ix_(kept, kept)])
        for one, other in zip(fold.train.row_features.groups, fresh.groups, strict=True):
            np.testing.assert_array_equal(one.design, other.design)
        if number == 0:
            mf = BayesianMF("GGGW", 2, biases=True, random_state=0, **options).fit(fold.train)
            found = mf.predict(row_features=fold.row_features, col_features=fold.col_features)
            assert found.shape == (len(rows), len(cols))
    expected = (~np.isnan(X)).astype(int)
    assert (tested <= expected).all() and (side == "both" or (tested == expected).all())


def test_a_saved_fit_predicts_new_rows_and_goes_on(tmp_path):
    pytest.importorskip("h5netcdf")
    frame = pd.DataFrame(F, index=[f"r{i}" for i in range(50)]).rename(columns=str)
    frame["kind"] = np.where(F[:, 0] > 0, "high", "low")
    data = pd.DataFrame(X, index=frame.index, columns=[f"c{j}" for j in range(24)])
    kernel = pd.DataFrame(np.cov(RNG.normal(size=(24, 40))), data.columns, data.columns)
    mf = BayesianMF("GGGA", 2, biases=True, draws=6, burn_in=6, chains=1, random_state=0)
    mf.fit(data, row_features=frame.iloc[::-1], col_kernel=kernel, pattern="rows")
    mf.posterior_.save(tmp_path / "fit.nc")
    loaded = Posterior.load(tmp_path / "fit.nc")
    again = BayesianMF.from_posterior(
        loaded, ObservedMatrix.of(data), mf.units_.offsets.center, mf.units_.scale
    )
    new = frame.iloc[:3].rename(index=str.upper)
    given = {"row_features": new, "col_kernel": kernel.iloc[:2].to_numpy()}
    np.testing.assert_array_equal(mf.predict(**given), again.predict(**given))
    seen = mf.units_.off(mf._matrix)
    options = {"draws": 3, "burn_in": 0, "chains": 1}
    ours, theirs = (
        sample(seen, p.model, 2, init=p, **options).mean for p in (mf.posterior_, loaded)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_a_stored_run_goes_on_and_knows_its_features(tmp_path):
    matrix, options = ObservedMatrix.of(X, row_features=F), {"draws": 4, "random_state": 0}
    whole = sample(matrix, "GGGW", 2, burn_in=2, **options)
    kept = sample(matrix, "GGGW", 2, burn_in=2, store=tmp_path / "run", **options)
    again = sample(matrix, "GGGW", 2, burn_in=2, store=tmp_path / "run", **options)
    np.testing.assert_array_equal(whole.mean, kept.mean)
    np.testing.assert_array_equal(whole.mean, again.mean)
    with pytest.raises(DataError, match="another run: data"):
        sample(X, "GGGW", 2, burn_in=2, store=tmp_path / "run", **options)


def test_threads_do_not_matter():
    matrix = ObservedMatrix.of(X).with_features(F, G, pattern="both")
    options = {"draws": 3, "burn_in": 3, "biases": True, "noise": "both", "random_state": 2}
    one, two = (sample(matrix, "GGGW", 3, n_jobs=n, **options) for n in (1, 2))
    np.testing.assert_array_equal(one.mean, two.mean)


def test_columns_with_features_are_not_centred_one_by_one(fitted):
    assert fitted.units_.scale == fitted.units_.offsets.center == "global"
    assert any("the columns have features" in note for note in fitted.notes_)
