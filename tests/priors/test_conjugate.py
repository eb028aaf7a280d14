"""Weights of features that are not decomposed: draws by conjugate gradients against formulas."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array, issparse

from bayesmf import BayesianMF, Features, ModelError, ObservedMatrix, Posterior, sample
from bayesmf.data import groups
from bayesmf.priors import conjugate
from bayesmf.priors.conjugate import RidgeWeights, solve
from bayesmf.streams import Stream, seed_words

RNG = np.random.default_rng(4)


def few(shape, density):
    """A sparse matrix of uniform numbers."""
    return csr_array(RNG.random(shape) * (RNG.random(shape) < density))


F = csr_array(RNG.poisson(0.5, (12, 6)) + np.eye(12, 6))
ROWS, RIDGE = RNG.normal(size=(12, 2)), 0.6
PRECISION = np.array([[2.0, 0.7], [0.7, 1.0]])
COPIES = 300  # of the two factors, independent of each other: as many draws at once


@pytest.fixture
def as_they_are(monkeypatch):
    """Features are not decomposed, however few they are."""
    monkeypatch.setattr(groups, "LARGEST", 1)


@pytest.fixture
def law(as_they_are):
    group = Features.of(F).groups[0]
    assert issparse(group.design) and not group.is_decomposed
    rows, precision = np.tile(ROWS, COPIES), np.kron(np.eye(COPIES), PRECISION)
    return RidgeWeights(group=group, rows=rows, ridge=RIDGE, precision=precision)


def surprise(law, stream=Stream) -> float:
    """The least p-value of weights that should be standard normal once they are whitened."""
    x, shape = law.group.design.toarray(), (6, 2 * COPIES)
    A = x.T @ x + RIDGE * np.eye(6)
    mean, L = np.linalg.solve(A, x.T @ ROWS), np.linalg.cholesky(PRECISION)
    found = [law.draw(stream(seed_words(1), 0, d), shape).reshape(6, -1, 2) for d in range(6)]
    draws = np.concatenate(found, axis=1) - mean[:, None]
    z = np.einsum("pq,qdk->dpk", np.linalg.cholesky(A).T, draws @ L).reshape(-1, 12)
    tests = [stats.kstest(column, "norm").pvalue for column in z.T]
    between = np.corrcoef(z.T)[np.triu_indices(12, 1)] * np.sqrt(len(z))
    return min(*tests, *(2 * stats.norm.sf(np.abs(between))))


def test_draws_have_the_stated_law(law):
    assert surprise(law) > 1e-4


class Quiet(Stream):
    """Leaves out the noise of the rows."""

    def fill(self, kind, shape, *parameters):
        return (shape[0] != len(ROWS)) * super().fill(kind, shape, *parameters)


def test_broken_draws_are_noticed(law, monkeypatch):
    assert surprise(law, Quiet) < 1e-6
    assert surprise(replace(law, ridge=1.3 * RIDGE)) < 1e-6
    monkeypatch.setattr(conjugate, "TOLERANCE", 3.0)
    assert surprise(law) < 1e-6


@pytest.mark.parametrize("make", [csr_array, lambda x: x.toarray()])
def test_errors_are_far_below_the_spread_of_weights(make, as_they_are):
    x = make(few((300, 200), 0.05))
    group, right = Features.of(x).groups[0], RNG.normal(size=(200, 3))
    design = group.design.toarray() if issparse(x) else group.design
    for ridge in (1e-4, 1.0, 1e4):
        A = design.T @ design + ridge * np.eye(200)
        error = solve(group, ridge, right) - np.linalg.solve(A, right)
        spreads = np.sqrt(np.einsum("pk,pq,qk->k", error, A, error))  # in standard deviations
        assert (spreads < 2 * conjugate.TOLERANCE).all()
    assert not solve(group, 1.0, np.zeros((200, 2))).any()


def test_too_many_steps_are_an_error(law, monkeypatch):
    monkeypatch.setattr(conjugate, "_MOST", 2)
    with pytest.raises(ModelError, match="'features' were not found in 2 steps"):
        law.draw(Stream(seed_words(1)), (6, 2 * COPIES))


@pytest.fixture(scope="module")
def data():
    x = few((80, 30), 0.15)
    signal = x @ RNG.normal(size=(30, 2)) @ RNG.normal(size=(2, 25))
    return x, 2 * signal / signal.std() + 0.3 * RNG.normal(size=signal.shape)


def test_both_ways_predict_the_same(data, monkeypatch):
    x, values = data
    found = []
    for largest in (groups.LARGEST, 1):
        monkeypatch.setattr(groups, "LARGEST", largest)
        mf = BayesianMF("GGGW", 2, biases=True, draws=200, burn_in=100, chains=1, random_state=0)
        mf.fit(values[10:], row_features=x[10:])
        mean, std = mf.predict(row_features=x[:10], return_std=True)
        weights = mf.posterior_.feature_weights()[0]
        found.append((mean, std, weights.mean, weights.importance, weights.share[0]))
    assert np.abs(found[0][0] - values[:10]).mean() < 0.5
    for one, other, limit in zip(*found, (0.15, 0.15, 0.1, 0.05, 0.05), strict=True):
        assert np.mean(np.abs(one - other)) < limit


def test_files_of_a_fit_keep_sparse_features(data, tmp_path, as_they_are):
    pytest.importorskip("h5netcdf")
    x, values = data
    mf = BayesianMF("GGGW", 2, draws=5, burn_in=5, chains=1, random_state=0)
    mf.fit(values[10:], row_features=x[10:], pattern="cols")
    mf.posterior_.save(tmp_path / "fit.nc")
    loaded = Posterior.load(tmp_path / "fit.nc")
    again = BayesianMF.from_posterior(
        loaded, ObservedMatrix.of(values[10:]), mf.units_.offsets.center, mf.units_.scale
    )
    assert issparse(loaded.model.rows.features.groups[0].design)
    for given in (x[:10], x[:10].toarray()):
        found = again.predict(row_features=given)
        np.testing.assert_allclose(found, mf.predict(row_features=x[:10]), rtol=1e-10)


def test_threads_and_hashes(data, as_they_are):
    x, values = data
    matrix = ObservedMatrix.of(values, row_features=x)
    options = {"draws": 3, "burn_in": 3, "random_state": 2}
    one, two = (sample(matrix, "GGGW", 3, n_jobs=n, **options) for n in (1, 2))
    np.testing.assert_array_equal(one.mean, two.mean)
    known = matrix.row_features
    other = Features.of(x * 2, standardize=False)
    assert known.fingerprint() != other.fingerprint()
    changed = replace(known.groups[0], design=known.groups[0].design * 2)
    assert replace(known, groups=(changed,)).fingerprint() != known.fingerprint()
