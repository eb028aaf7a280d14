"""The estimators: scikit-learn's own checks, new rows, imputation, uncertainty."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayesmf import (
    BayesianImputer,
    BayesianMF,
    Biases,
    ConvergenceWarning,
    ObservedMatrix,
    Posterior,
    sample,
)
from bayesmf._errors import DataError, ModelError
from bayesmf.model.presets import PRESETS
from tests.helpers.matrices import small_matrix

# Most runs here are short; the tests of the warning turn it on again.
pytestmark = pytest.mark.filterwarnings("ignore::bayesmf.ConvergenceWarning")
SHORT = {"draws": 30, "burn_in": 30, "chains": 1, "random_state": 0}
PLAIN = {"center": "none", "scale": "none"}  # in the units of the data
COUNTS = ("PGG", "PGGG")

# Each check of scikit-learn that cannot hold, with the reason.
POSITION = "the random stream of a new row is that of its position: equal up to Monte Carlo error"
WHOLE = "predict gives all cells of a row, not one number"
EXPECTED_FAILURES = {
    "BayesianMF": {
        "check_methods_sample_order_invariance": POSITION,
        "check_methods_subset_invariance": POSITION,
        "check_estimator_sparse_array": WHOLE,
        "check_estimator_sparse_matrix": WHOLE,
    },
    "BayesianImputer": {},
}


@parametrize_with_checks(
    [
        BayesianMF("GGG", 2, draws=15, burn_in=15, chains=1, random_state=0),
        BayesianImputer("GGG", 2, draws=15, burn_in=15, chains=1, random_state=0),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES[type(estimator).__name__],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def matrix(seed=0, shape=(30, 18), rank=2, missing=0.3, noise=0.1, counts=False):
    """A matrix of low rank with gaps, and the same without gaps and noise."""
    rng = np.random.default_rng(seed)
    if counts:
        truth = rng.gamma(2.0, 1.0, (shape[0], rank)) @ rng.gamma(2.0, 1.0, (rank, shape[1]))
        X = rng.poisson(truth).astype(float)
    else:
        truth = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1])) + 1.0
        X = truth + rng.normal(0, noise, shape)
    X[rng.random(shape) < missing] = np.nan
    return X, truth


def data_for(name, **options):
    X, truth = matrix(counts=name in COUNTS, **options)
    return (X if name in COUNTS or name[1] in "GLV" else np.abs(X)), truth


@pytest.mark.parametrize("name", PRESETS)
def test_every_model_fits_predicts_and_transforms(name):
    X, _ = data_for(name)
    mf = BayesianMF(name, 3, **SHORT).fit(X)
    mean, std, (low, high) = mf.predict(return_std=True, quantiles=[0.1, 0.9])
    for array in (mean, std, low, high):
        assert array.shape == X.shape and np.isfinite(array).all()
    assert (std > 0).all() and (low <= high).all()
    new = mf.predict(X[:4])
    assert new.shape == (4, X.shape[1]) and np.isfinite(new).all()
    assert mf.transform(X[:4]).shape == (4, 3)
    assert mf.components_.shape == (3, X.shape[1])
    if name in COUNTS:
        assert np.array_equal(low, np.round(low))


@pytest.mark.parametrize(
    ("name", "biases"),
    [*((name, False) for name in PRESETS), ("GGGW", True), ("GEE", True), ("GVG", True)],
)
def test_a_new_row_equal_to_a_known_row_is_predicted_alike(name, biases):
    X, _ = data_for(name, noise=0.5)
    mf = BayesianMF(name, 2, draws=400, burn_in=300, chains=1, biases=biases, random_state=1)
    mf.fit(X)
    known, spread = mf.predict(return_std=True, include_noise=False)
    new = mf.predict(X)
    # Monte Carlo error of a mean of dependent draws: sd over the root of some 40 effective ones.
    assert np.abs(new - known).max() < 6 * np.max(spread) / 40**0.5
    score = np.mean((new - known) / (spread / 40**0.5))
    assert abs(score) < 1


@pytest.mark.parametrize(
    ("name", "biases"),
    [*((name, False) for name in ("GGG", "GGGA", "GGGW", "GEE", "PGG")), ("GGG", True)],
)
def test_a_row_without_entries_gets_the_prior_predictive(name, biases):
    X, _ = data_for(name)
    mf = BayesianMF(
        name, 2, draws=400, burn_in=200, chains=1, biases=biases, random_state=2, **PLAIN
    ).fit(X)
    empty = np.full((200, X.shape[1]), np.nan)
    V = mf.posterior_.factors()[1]
    expected = np.zeros(2)
    if name == "GGGW":
        expected = mf.posterior_.draws["rows.mean"][0]
    elif name == "GEE":
        expected = 1 / mf.posterior_.model.rows.rate + np.zeros(2)
    elif name == "PGG":
        expected = mf.posterior_.model.rows.shape / mf.posterior_.model.rows.rate + np.zeros(2)
    mean = np.mean(np.sum(V * np.broadcast_to(expected, (len(V), 2))[:, None], axis=2), axis=0)
    if biases:
        effects = mf.posterior_.biases()
        mean += np.mean(effects["mean"][:, None] + effects["cols"], axis=0)
    found, spread = mf.predict(empty, return_std=True, include_noise=False)
    found, spread = found.mean(axis=0), spread[0]
    assert np.abs(found - mean).max() < 6 * spread.max() / (200 * 400) ** 0.5 + 0.05 * spread.max()


def test_labels_survive_and_observed_cells_are_untouched():
    X, truth = matrix()
    labels = [f"r{i}" for i in range(30)], [f"c{j}" for j in range(18)]
    frame = pd.DataFrame(X, *labels)
    imputer = BayesianImputer("GGG", 3, **SHORT)
    filled = imputer.fit_transform(frame)
    assert isinstance(filled, pd.DataFrame)
    assert (filled.index == frame.index).all() and (filled.columns == frame.columns).all()
    seen = ~np.isnan(X)
    assert np.array_equal(filled.to_numpy()[seen], X[seen])
    assert np.mean((filled.to_numpy() - truth)[~seen] ** 2) < 0.2 * truth.var()
    assert imputer.get_feature_names_out().tolist() == frame.columns.tolist()


def test_multiple_imputation():
    X, truth = matrix(noise=0.5)
    imputer = BayesianImputer("GGG", 3, draws=200, burn_in=100, chains=1, random_state=0).fit(X)
    completed, seen = imputer.impute(50), ~np.isnan(X)
    assert completed.shape == (50, *X.shape)
    assert (completed[:, seen] == X[seen]).all()
    spread = completed[:, ~seen].std(axis=0)
    assert 0.4 < spread.mean() < 1.5  # noise of 0.5, and what is not known about the mean
    assert np.abs(completed[:, ~seen].mean(axis=0) - truth[~seen]).mean() < 0.5


def test_in_a_pipeline_and_a_grid():
    X, _ = matrix(shape=(80, 18), missing=0.1)
    y = np.nan_to_num(X).sum(axis=1)
    pipeline = make_pipeline(BayesianImputer("GGG", 2, **SHORT), Ridge())
    grid = {"bayesianimputer__n_components": [1, 3]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert set(search.best_params_) == {"bayesianimputer__n_components"}
    alone = GridSearchCV(BayesianMF("GGG", **SHORT), {"n_components": [1, 3]}, cv=2).fit(X)
    assert alone.best_params_ == {"n_components": 3}


@pytest.mark.parametrize("center", ["none", "global", "rows", "cols", "both"])
def test_centring(center):
    X, truth = matrix(noise=0.1, rank=1)
    effects = 50 + np.arange(30.0)[:, None] + 3 * np.arange(18.0)
    mf = BayesianMF("GGG", 3, center=center, scale="none", **SHORT).fit(X + effects)
    error = np.mean((mf.predict() - truth - effects) ** 2)
    assert error < (0.5 if center == "both" else 5.0)
    new = mf.predict((X + effects)[:3])
    assert np.abs(new - mf.predict()[:3]).max() < 3


@pytest.mark.parametrize("name", ["GGGA", "GEE"])
def test_biases_find_the_effects_of_rows_and_columns(name, tmp_path):
    rng = np.random.default_rng(1)
    X, truth = matrix(noise=0.2, rank=1, shape=(60, 40))
    rows, cols = rng.normal(0, 4, 60), rng.normal(0, 2, 40)
    effects = 50 + rows[:, None] + cols
    mf = BayesianMF(
        name, 3, biases=True, draws=200, burn_in=200, chains=2, random_state=0, **PLAIN
    ).fit(X + effects)
    missing = np.isnan(X)
    assert np.mean((mf.predict() - truth - effects)[missing] ** 2) < 0.05
    found = mf.posterior_.biases()
    assert np.corrcoef(found["rows"].mean(axis=0), rows)[0, 1] > 0.95
    assert np.corrcoef(found["cols"].mean(axis=0), cols)[0, 1] > 0.9
    assert 0.8 < np.mean(found["rows_precision"] ** -0.5) / 4 < 1.25
    mean, std = mf.predict(return_std=True, include_noise=False)
    np.testing.assert_allclose(mean, mf.posterior_.predict(), rtol=1e-8)
    np.testing.assert_allclose(std, mf.posterior_.predict(return_std=True)[1], rtol=1e-6)
    mf.posterior_.save(tmp_path / "run.nc")
    again = Posterior.load(tmp_path / "run.nc")
    assert again.model.biases == mf.posterior_.model.biases
    assert again.to_datatree()["/posterior/bias.rows"].dims == ("chain", "draw", "row")
    np.testing.assert_array_equal(again.predictors()[0], mf.posterior_.predictors()[0])
    with pytest.raises(ModelError, match="method='mean'"):
        again.predict(method="product_of_means")


def test_biases_that_make_no_sense_are_refused():
    X = matrix(counts=True)[0]
    with pytest.raises(ModelError, match=r"biases go with the Gaussian .*PGG has the Poisson one"):
        BayesianMF("PGG", 2, biases=True).fit(X)
    with pytest.raises(ModelError, match="biases must be"):
        BayesianMF("GGG", 2, biases="both").fit(X)
    with pytest.raises(ModelError, match="alpha must be a positive number"):
        Biases(alpha=-1.0)
    with pytest.raises(ModelError, match="biases were not kept"):
        sample(X, "GGG", 2, biases=True, keep=("U", "V"), draws=3, burn_in=0).predictors()


def test_centring_is_refused_for_nonnegative_models():
    with pytest.raises(ModelError, match="nonnegative"):
        BayesianMF("GEE", 2, center="global").fit(np.abs(matrix()[0]))


def test_automatic_rank():
    X, _ = matrix(shape=(60, 40), rank=3, noise=0.5)
    mf = BayesianMF("GGGA", noise="cols", draws=100, burn_in=200, chains=1, random_state=0)
    mf.fit(X + 50.0)  # of which the mean is taken off
    assert mf.n_components_ == mf.effective_rank_ == 3
    assert min(mf.rank_errors_, key=mf.rank_errors_.get) == 3
    assert 0.4 < mf.noise_sd().overall.mean < 0.6
    plain = BayesianMF("GGGA", draws=100, burn_in=200, chains=1, random_state=0, **PLAIN)
    plain.fit(X + 50.0)
    assert plain.n_components_ == plain.effective_rank_ == 4  # the mean is one factor more
    wide = BayesianMF("GGGA", 15, draws=100, burn_in=200, chains=1, random_state=0, **PLAIN).fit(X)
    assert wide.effective_rank_ == 4


def test_rank_by_cross_validation():
    X, _ = matrix(shape=(60, 40), rank=3, noise=0.3)
    mf = BayesianMF("GGG", [1, 3, 8], **SHORT).fit(X)
    assert set(mf.cv_errors_) == {1, 3, 8}
    assert mf.n_components_ == min(mf.cv_errors_, key=mf.cv_errors_.get) != 1
    again = BayesianMF("GGG", (3, 8, 1), **SHORT).fit(X)
    assert again.cv_errors_ == mf.cv_errors_
    small = BayesianImputer("GEE", "cv", **SHORT).fit(np.abs(X[:, :4]))
    assert set(small.cv_errors_) == {1, 2, 3}
    with pytest.raises(ModelError, match="'auto', 'cv'"):
        BayesianMF("GGG", "best").fit(X)
    with pytest.raises(ModelError, match="no candidate"):
        BayesianMF("GGG", []).fit(X)


def test_a_fit_is_kept_in_its_folder(tmp_path):
    X, _ = matrix()
    plain = BayesianMF("GGG", 2, biases=True, **SHORT).fit(X)
    stored = BayesianMF("GGG", 2, biases=True, store=tmp_path / "run", **SHORT).fit(X)
    again = BayesianMF("GGG", 2, biases=True, store=tmp_path / "run", **SHORT).fit(X)
    assert isinstance(stored.posterior_.draws["bias.rows"], np.memmap)
    for other in (stored, again):
        np.testing.assert_array_equal(other.predict(), plain.predict())
    with pytest.raises(DataError, match="holds another run: parts"):
        BayesianMF("GGG", 2, store=tmp_path / "run", **SHORT).fit(X)


def test_sparse_entries_are_the_observed_ones():
    X, _ = matrix(missing=0.7, shape=(40, 30))
    i, j = np.nonzero(~np.isnan(X))
    entries = sparse.csr_matrix((X[i, j], (i, j)), shape=X.shape)
    forms = X, entries, ObservedMatrix.of(X)
    fitted = [BayesianMF("GGG", 2, **SHORT).fit(data).predict() for data in forms]
    np.testing.assert_array_equal(fitted[0], fitted[1])
    np.testing.assert_array_equal(fitted[0], fitted[2])


def test_a_bad_run_is_warned_about_and_a_good_one_is_not():
    X, _ = matrix(shape=(40, 30), noise=0.01)
    with pytest.warns(ConvergenceWarning, match="90 % intervals would hold"):
        BayesianMF("GVG", 8, draws=30, burn_in=0, chains=2, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianMF("GGG", 2, draws=300, burn_in=200, chains=2, random_state=0).fit(X)


def test_score_of_held_out_entries_of_known_and_of_new_rows():
    X, truth = matrix(noise=0.3)
    mf = BayesianMF("GGG", 2, draws=200, burn_in=100, chains=1, random_state=0).fit(X)
    i, j = np.nonzero(np.isnan(X))
    found = mf.log_density(i, j, truth[i, j])
    assert found.shape == i.shape and found.mean() > mf.log_density(i, j, truth[i, j] + 1).mean()
    with pytest.raises(DataError, match="values must have shape"):
        mf.log_density(i, j, [1.0])
    assert mf.score(X[:7]) > mf.score(np.random.default_rng(0).permutation(X[:7].T).T)
    with pytest.raises(DataError, match="at least two"):
        mf.score(np.where(np.eye(18)[:2] > 0, 1.0, np.nan))


def test_predictions_are_those_of_the_kept_draws():
    X, _ = matrix()
    mf = BayesianMF("GGG", 2, **PLAIN, **SHORT).fit(X)
    U, V = mf.posterior_.factors()
    products = U @ V.transpose(0, 2, 1)
    tau = mf.posterior_.noise_precision.ravel()
    mean, std, quantiles = mf.predict([3, 4], [5, 6], return_std=True, quantiles=[0.05, 0.5, 0.95])
    some = products[:, [3, 4], [5, 6]]
    np.testing.assert_allclose(mean, some.mean(axis=0))
    np.testing.assert_allclose(mean, mf.posterior_.predict([3, 4], [5, 6]))
    np.testing.assert_allclose(std**2, some.var(axis=0, ddof=1) + np.mean(1 / tau))
    z = (quantiles[2] - quantiles[0]) / (2 * 1.645 * std)
    np.testing.assert_allclose(z, 1, atol=0.25)
    plain = mf.predict([3, 4], [5, 6], quantiles=[0.5], include_noise=False)[1][0]
    np.testing.assert_allclose(plain, np.median(some, axis=0))
    whole = mf.predict(quantiles=[0.05, 0.5, 0.95])[1]
    np.testing.assert_allclose(whole[:, [3, 4], [5, 6]], quantiles)


@pytest.mark.parametrize("name", ["GGG", "GGGA", "GEE"])
def test_aligned_factors_agree_and_multiply_to_the_same(name):
    X, _ = data_for(name, noise=0.05, shape=(60, 50))
    mf = BayesianMF(name, 3, draws=100, burn_in=200, chains=2, random_state=3)
    mf.fit(X)
    U, V = mf.posterior_.factors()
    aligned_U, aligned_V = mf.posterior_.align()
    np.testing.assert_allclose(
        aligned_U @ aligned_V.transpose(0, 2, 1), U @ V.transpose(0, 2, 1), atol=1e-8
    )

    def spread(W):
        return np.mean(W.std(axis=0)) / np.std(W)

    assert spread(aligned_U) < (0.7 if name == "GGG" else 1.001) * spread(U)
    if name == "GEE":
        assert (aligned_U >= 0).all()


def test_the_same_seed_gives_the_same_predictions_for_any_threads():
    X, _ = matrix()
    one, two = (BayesianMF("GGG", 2, n_jobs=n, **SHORT).fit(X) for n in (1, 2))
    np.testing.assert_array_equal(one.predict(), two.predict())
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    np.testing.assert_array_equal(one.sample_predictive(5), two.sample_predictive(5))
    quantiles = [mf.predict(quantiles=[0.1])[1] for mf in (one, two)]
    np.testing.assert_array_equal(*quantiles)


def test_masked_arrays_and_triples_mean_what_they_mean_elsewhere():
    X = small_matrix()
    rows, cols = np.nonzero(~np.isnan(X))
    forms = (X, np.ma.masked_invalid(X), (rows, cols, X[rows, cols]))
    means = [
        BayesianMF("GGG", 2, draws=20, burn_in=5, random_state=0).fit(form).predict()
        for form in forms
    ]
    for mean in means[1:]:
        np.testing.assert_array_equal(mean, means[0])


@pytest.mark.parametrize("seed", range(3))
def test_the_automatic_rank_does_not_count_factors_of_noise(seed):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 60)) + rng.normal(size=(100, 60))
    X[rng.random(X.shape) < 0.4] = np.nan
    mf = BayesianMF("GGGA", "auto", draws=20, burn_in=20, random_state=seed)
    assert mf.fit(X).n_components_ == 3


@pytest.mark.parametrize("units", [{}, PLAIN])
def test_estimators_of_a_posterior_have_all_that_fitted_ones_have(units):
    frame = pd.DataFrame(small_matrix(), columns=[f"c{j}" for j in range(12)])
    fitted = BayesianImputer("GGG", 2, draws=5, burn_in=5, random_state=0, **units).fit(frame)
    known = {} if units else {"center": "auto", "scale": "auto"}
    imputer = BayesianImputer.from_posterior(fitted.posterior_, frame, **known)
    np.testing.assert_array_equal(imputer.impute(2), fitted.impute(2))
    assert imputer.notes_ == fitted.notes_
    assert imputer.get_feature_names_out().tolist() == list(frame.columns)
    mf = BayesianMF.from_posterior(fitted.posterior_, frame, **known)
    assert mf.get_feature_names_out().tolist() == ["bayesianmf0", "bayesianmf1"]


def test_a_stored_fit_without_a_seed_finds_its_rank_again(tmp_path):
    X, options = matrix()[0], {"draws": 5, "burn_in": 5, "store": tmp_path / "run"}
    first, again = (BayesianMF("GGGA", **options).fit(X) for _ in range(2))
    assert first.n_components_ == again.n_components_
    np.testing.assert_array_equal(first.predict(), again.predict())


def test_a_fit_that_goes_on_is_the_longer_fit():
    X, _ = matrix()
    short = BayesianMF(n_components=2, draws=12, burn_in=20, random_state=0).fit(X)
    long = BayesianMF(n_components=2, draws=30, burn_in=20, random_state=0).fit(X)
    assert short.more_draws(18) is short
    for one, other in zip(*(mf.predict(return_std=True) for mf in (short, long)), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(short.transform(X[:3]), long.transform(X[:3]))


def test_transforms_of_fitted_rows_agree_with_fit_transform():
    X, _ = matrix()
    options = {"draws": 150, "burn_in": 100, "random_state": 0}
    mf, imputer = BayesianMF("GGGA", 2, **options), BayesianImputer("GGGA", 2, **options)
    np.testing.assert_array_equal(mf.fit_transform(X), mf.transform(X))
    fitted, std = imputer.fit_transform(X), BayesianMF("GGGA", 2, **options).fit(X)
    std = std.predict(return_std=True, include_noise=False)[1]
    gap = (imputer.transform(X) - fitted)[np.isnan(X)] / std[np.isnan(X)]
    assert np.abs(gap).mean() < 0.2 and np.abs(gap).max() > 0  # of 300 draws each
