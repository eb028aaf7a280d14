import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bayesmf import splits
from bayesmf._errors import DataError, ModelError
from bayesmf.data.observed import ObservedMatrix
from bayesmf.splits import holdout, kfold


def scattered(seed, shape, density):
    rng = np.random.default_rng(seed)
    seen = rng.random(shape) < density
    seen[0, 0] = True
    return ObservedMatrix.of(np.where(seen, rng.normal(size=shape), np.nan))


sparse_matrices = st.builds(
    scattered,
    st.integers(0, 10**6),
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.floats(0.1, 1.0),
)


def least_cover(X):
    """The size of a smallest set of entries that touches all rows and columns, by augmenting."""
    partner = {}

    def augment(i, visited):
        for j in X.rows.indices[X.rows.indptr[i] : X.rows.indptr[i + 1]].tolist():
            if j not in visited:
                visited.add(j)
                if j not in partner or augment(partner[j], visited):
                    partner[j] = i
                    return True
        return False

    matched = sum(augment(i, set()) for i in range(X.shape[0]))
    return (~X.empty_rows).sum() + (~X.empty_cols).sum() - matched


def assert_partition(X, train, test):
    rows, cols, values = (
        np.concatenate(parts) for parts in zip(train.triples(), test, strict=True)
    )
    again = ObservedMatrix.from_triples(rows, cols, values, shape=X.shape)
    np.testing.assert_array_equal(again.to_array(), X.to_array())
    np.testing.assert_array_equal(train.empty_rows, X.empty_rows)
    np.testing.assert_array_equal(train.empty_cols, X.empty_cols)
    assert (np.diff(test[0] * X.shape[1] + test[1]) > 0).all()


@settings(deadline=None)
@given(sparse_matrices, st.floats(0.01, 0.99), st.integers(0, 99))
def test_holdout_keeps_every_row_and_column(X, fraction, seed):
    wanted = max(1, round(fraction * X.n_observed))
    most = X.n_observed - least_cover(X)
    if wanted > most:
        with pytest.raises(DataError, match=f"most {most} can go without emptying"):
            holdout(X, fraction, seed)
        return
    train, test = holdout(X, fraction, seed)
    assert test[2].size == wanted
    assert_partition(X, train, test)


def test_holdout_at_the_very_limit():
    X = ObservedMatrix.of(np.ones((20, 20)))
    train, test = holdout(X, 0.95, random_state=1)
    assert train.n_observed == 20
    assert_partition(X, train, test)
    with pytest.raises(DataError, match=r"fraction 0\.96 asks to hold out 384 of 400 entries"):
        holdout(X, 0.96)


def test_holdout_reaches_every_entry():
    X = np.arange(12.0).reshape(3, 4)
    held = {value for seed in range(200) for value in holdout(X, 0.25, seed)[1][2]}
    assert held == set(range(12))


@settings(deadline=None)
@given(sparse_matrices, st.integers(2, 6), st.integers(0, 99))
def test_kfold_partitions_the_entries(X, n_folds, seed):
    assume(X.n_observed >= n_folds)
    if (X.rows.counts == 1).any() or (X.cols.counts == 1).any():
        with pytest.raises(DataError, match="only entry of its"):
            kfold(X, n_folds, seed)
        return
    folds = list(kfold(X, n_folds, seed))
    assert len(folds) == n_folds
    for train, test in folds:
        assert_partition(X, train, test)
    rows, cols, values = (
        np.concatenate(parts) for parts in zip(*(t for _, t in folds), strict=True)
    )
    again = ObservedMatrix.from_triples(rows, cols, values, shape=X.shape)
    np.testing.assert_array_equal(again.to_array(), X.to_array())
    sizes = [test[2].size for _, test in folds]
    assert max(sizes) - min(sizes) <= 1


def test_kfold_copes_with_many_short_rows():
    rng = np.random.default_rng(0)
    cols = np.concatenate([rng.choice(30, 2, replace=False) for _ in range(1000)])
    X = ObservedMatrix.from_triples(np.repeat(np.arange(1000), 2), cols, np.ones(2000))
    for n_folds in (2, 5):
        for train, test in kfold(X, n_folds, random_state=0):
            assert_partition(X, train, test)


def test_kfold_names_a_lone_entry():
    X = ObservedMatrix.of(
        [[1.0, 2.0, np.nan], [3.0, 4.0, np.nan], [5.0, np.nan, 6.0], [7.0, 8.0, np.nan]],
        row_labels="pqrs",
        col_labels="abc",
    )
    with pytest.raises(DataError, match="row 'r', column 'c' is the only entry of its column"):
        kfold(X, 2)
    with pytest.raises(DataError, match="row 'r', column 'c' is the only entry of its row"):
        kfold(X.take(np.arange(8) != 4), 2)


def test_kfold_gives_up_with_a_name(monkeypatch):
    # Around one long cycle two folds have to alternate, which chance does not find.
    monkeypatch.setattr(splits, "MAX_SHUFFLES", 20)
    k = np.arange(200)
    X = ObservedMatrix.from_triples(np.r_[k, k], np.r_[k, (k + 1) % 200], np.ones(400))
    message = r"20 shuffles gave no 2 folds .* of row \d+, column \d+ has only 2 entries"
    with pytest.raises(DataError, match=message):
        kfold(X, 2, random_state=0)


def test_kfold_may_succeed_with_the_last_shuffle(monkeypatch):
    k = np.arange(6)
    X = ObservedMatrix.from_triples(np.r_[k, k], np.r_[k, (k + 1) % 6], np.ones(12))
    monkeypatch.setattr(splits, "MAX_SHUFFLES", 1)
    outcomes = set()
    for seed in range(300):
        try:
            outcomes.add(len(list(kfold(X, 4, seed))))
        except DataError:
            outcomes.add(0)
    assert outcomes == {0, 4}


def test_random_state():
    X = np.arange(30.0).reshape(5, 6)

    def held(state):
        return holdout(X, 0.3, state)[1][2].tolist()

    assert held(3) == held(3) == held(np.random.default_rng(3)) == held(np.random.SeedSequence(3))
    assert held(3) != held(4)
    assert len(held(None)) == 9
    first, second = ([test[2].tolist() for _, test in kfold(X, 3, 5)] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5, np.nan])
def test_fraction_out_of_range(fraction):
    with pytest.raises(ModelError, match="fraction must lie between 0 and 1"):
        holdout(np.ones((3, 3)), fraction)


@pytest.mark.parametrize("n_folds", [0, 1, 2.5, 10])
def test_number_of_folds_out_of_range(n_folds):
    with pytest.raises(ModelError, match="n_folds must be an integer from 2 to 9"):
        kfold(np.ones((3, 3)), n_folds)


def test_single_entries_can_stay_in_training():
    X = np.full((5, 4), np.nan)
    X[:3, :3] = np.arange(9.0).reshape(3, 3)
    X[3, 0] = X[4, 3] = 1.0  # alone in their row, the second in its column too
    X[0, 3] = 2.0  # beside the second alone
    tested = []
    for train, (rows, cols, values) in kfold(X, 3, random_state=0, keep_singles=True):
        assert train.n_observed + values.size == 12
        assert not (train.empty_rows.any() or train.empty_cols.any())
        tested += zip(rows.tolist(), cols.tolist(), strict=True)
    assert sorted(tested) == [(i, j) for i in range(3) for j in range(3)]
    with pytest.raises(DataError, match="Only 0 entries can be tested"):
        kfold(np.where(np.eye(3) > 0, 1.0, np.nan), 2, keep_singles=True)


def test_single_entries_far_down_a_tall_matrix_are_found():
    rows, cols = [0, 0, 1, 1, 90], [0, 1, 0, 1, 0]
    X = ObservedMatrix.from_triples(rows, cols, [1.0, 2.0, 3.0, 4.0, 5.0], shape=(100, 2))
    tested = [t[0].tolist() for _, t in kfold(X, 2, random_state=0, keep_singles=True)]
    assert sorted(row for rows in tested for row in rows) == [0, 0, 1, 1]
