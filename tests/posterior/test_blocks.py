"""Matrices too large for moments of all cells: chosen cells, rows, the best of a row, Parquet."""

import numpy as np
import pytest

from bayesmf import BayesianMF, DataError, ModelError, ObservedMatrix, _sizes, sample
from bayesmf.posterior import blocks

OPTIONS = {"draws": 12, "burn_in": 3, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20))
    X[rng.random(X.shape) < 0.4] = np.nan
    return ObservedMatrix.of(X, row_labels=[f"r{i}" for i in range(30)])


@pytest.fixture(scope="module")
def whole(data):
    return sample(data, "GGG", 2, keep=("U", "V"), biases=False, **OPTIONS)


def test_any_cell_is_predicted_from_draws(data, whole):
    some = sample(data, "GGG", 2, cells=([0], [0]), keep=("U", "V"), **OPTIONS)
    rows, cols = np.array([3, 29, 0]), np.array([1, 19, 0])
    for ours, theirs in zip(
        some.predict(rows, cols, return_std=True),
        whole.predict(rows, cols, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    alone = sample(data, "GGG", 2, cells=([0], [0]), **OPTIONS)
    with pytest.raises(DataError, match=r"keep=\('U', 'V'\)"):
        alone.predict(rows, cols)


def test_rows_come_in_blocks(whole, monkeypatch):
    monkeypatch.setattr(blocks, "_CELLS", 70)
    rows = np.array([5, 4, 20, 7])
    parts = list(blocks.row_moments(whole, rows))
    assert len(parts) == 2
    assert np.concatenate([part[0] for part in parts]).tolist() == rows.tolist()
    for k, wanted in ((1, whole.mean), (2, whole.variance)):
        np.testing.assert_allclose(np.concatenate([p[k] for p in parts]), wanted[rows], rtol=1e-9)


def test_top(data, whole, monkeypatch):
    monkeypatch.setattr(blocks, "_CELLS", 70)
    found = whole.top(4)
    np.testing.assert_array_equal(found.cols, np.argsort(-whole.mean, axis=1)[:, :4])
    np.testing.assert_allclose(found.mean, -np.sort(-whole.mean, axis=1)[:, :4], rtol=1e-10)
    new = whole.top(20, rows=[2, 8], X=data)
    seen = ~np.isnan(data.to_array())
    for i, cols, means in zip((2, 8), *new, strict=True):
        gaps = np.flatnonzero(~seen[i])
        best = gaps[np.argsort(-whole.mean[i, gaps])]
        assert cols.tolist() == [*best, *[-1] * (20 - gaps.size)]
        assert np.isnan(means).sum() == 20 - gaps.size
    with pytest.raises(DataError, match="between 0 and 29"):
        whole.top(2, rows=[30])
    with pytest.raises(DataError, match="positions of rows"):
        whole.top(2, rows=[0.5])
    with pytest.raises(DataError, match="shape"):
        whole.top(2, X=np.eye(3))


def test_to_parquet(data, whole, tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(blocks, "_CELLS", 70)
    path = tmp_path / "all.parquet"
    assert whole.to_parquet(path) == 600
    table = parquet.read_table(path).to_pydict()
    assert table["row"][:21] == ["r0"] * 20 + ["r1"]
    assert table["column"][:21] == [*range(20), 0]
    np.testing.assert_allclose(table["mean"], whole.mean.ravel(), rtol=1e-10)
    np.testing.assert_allclose(table["sd"], np.sqrt(whole.variance.ravel()), rtol=1e-9)
    assert whole.to_parquet(path, rows=[3], X=data) == 20 - data.rows.counts[3]
    assert set(parquet.read_table(path).to_pydict()["row"]) == {"r3"}


def test_held_out_error_is_told(data):
    test = ObservedMatrix.of(np.where(np.isnan(data.to_array()), 1.0, np.nan))
    rows, cols, values = test.triples()
    told = {}
    for kind, cells in {"matrix": test, "triple": (rows, cols, values), "none": None}.items():
        events = []
        last = sample(data, "GGG", 2, cells=cells, progress=events.append, **OPTIONS)
        told[kind] = [event.held_out_mse for event in events]
    assert told["none"] == [None] * 15
    assert told["matrix"] == told["triple"]
    assert last.cells is None
    posterior = sample(data, "GGG", 2, cells=test, **OPTIONS)
    assert told["matrix"][-1] == np.mean((posterior.mean - values) ** 2)
    assert all(mse > 0 for mse in told["matrix"][:3])  # of burn-in too


def test_bad_cells(data):
    for cells, message in (
        (([0], [0], [np.nan]), "a number for each of the 1 cells"),
        (([0], [0], ["x"]), "must be numbers"),
        (np.eye(3), "not that of X"),
    ):
        with pytest.raises(DataError, match=message):
            sample(data, "GGG", 2, cells=cells, **OPTIONS)
    ordinal = ObservedMatrix.of(np.array([[1.0, 2.0], [3.0, 1.0]]))
    with pytest.raises(ModelError, match="U V\\^T is what cells hold"):
        sample(ordinal, "OGG", 1, cells=([0], [0], [1.0]), **OPTIONS)


def test_what_cannot_fit_into_memory_is_refused_at_once():
    wide = ObservedMatrix.from_triples([0, 999_999], [0, 99_999], [1.0, 2.0])
    with pytest.raises(DataError, match=r"1000000 x 100000 cells .* 1600 GB .* cells=\(rows, cols"):
        sample(wide, "GGG", 2, **OPTIONS)
    with pytest.raises(DataError, match=r"1000000 x 100000 cells in 2 chains take 3200 GB"):
        BayesianMF(chains=2).fit(wide)
    with pytest.raises(DataError, match=r"kept draws of U, V.* store"):
        sample(wide, "GGG", 2, cells=([0], [0]), keep=("U", "V"), draws=10**6)
    _sizes.check_memory(1e6, "numbers", "buy more")


def test_a_large_matrix_needs_no_more_than_its_factors():
    rng = np.random.default_rng(0)
    rows, cols = rng.permutation(200_000)[:5000], rng.permutation(90_000)[:5000]
    X = ObservedMatrix.from_triples(rows, cols, rng.normal(size=5000), (200_000, 90_000))
    posterior = sample(X, "GGG", 2, cells=(rows[:5], cols[:5]), draws=2, burn_in=1, keep=("U", "V"))
    assert posterior.mean.shape == (5,)
    assert posterior.top(3, rows=[7]).cols.shape == (1, 3)
