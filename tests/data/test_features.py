"""Features of rows and columns: read, matched, encoded, decomposed, applied to new rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from bayesmf import DataError, Features, ObservedMatrix, _threads
from bayesmf.data import decomposition, designs
from bayesmf.data import groups as module

RNG = np.random.default_rng(0)
WIDE, TALL = RNG.normal(size=(8, 30)), RNG.normal(size=(40, 5))
NAMES = list("abcdefgh")
FRAME = pd.DataFrame(
    {"age": [30.0, 41, np.nan, 25, 60, 33, 29, 50], "sex": list("mffmfmfm"), "same": 1},
    index=NAMES,
)


def entries(m, J=4):
    return ObservedMatrix.from_triples([], [], [], (m, J)).rows


def new_rows(features, values=None, kernel=None, m=None, labels=None):
    m = len(values if kernel is None else kernel) if m is None else m
    return features.of_rows(values, kernel, entries(m), labels)


def kernel_of(n, seed=1):
    A = np.random.default_rng(seed).normal(size=(n, 2 * n))
    return A @ A.T / n


@pytest.mark.parametrize("x", [WIDE, TALL], ids=["wide", "tall"])
@pytest.mark.parametrize("large", [False, True])
def test_directions_are_orthogonal_and_span_the_features(x, large, monkeypatch):
    if large:
        monkeypatch.setattr(decomposition, "_CELLS", 0)
    group = Features.of(x).groups[0]
    z = (x - x.mean(axis=0)) / x.std(axis=0) / np.sqrt(x.shape[1])
    np.testing.assert_allclose(group.design @ group.design.T, z @ z.T, atol=1e-12)
    np.testing.assert_allclose(group.design.T @ group.design, np.diag(group.squares), atol=1e-12)
    assert group.rank == np.linalg.matrix_rank(z)
    np.testing.assert_allclose((group.design**2).sum() / len(x), 1.0)


def test_the_directions_of_features_are_features_of_the_same_directions():
    once = Features.of(WIDE).groups[0]
    again = Features.of(once.design, standardize=False).groups[0]
    np.testing.assert_array_equal(once.design, again.design)


def test_fitted_rows_are_new_rows_with_nothing_outside():
    for features in (Features.of(WIDE), Features.of(FRAME), Features.of(csr_array(TALL))):
        again = new_rows(features, features, m=features.n)
        np.testing.assert_allclose(again.groups[0].design, features.groups[0].design, atol=1e-12)
        assert not again.groups[0].outside.any()


def test_what_new_rows_have_outside_is_their_distance_from_the_span():
    features, new = Features.of(WIDE), RNG.normal(size=(3, 30))
    group = new_rows(features, new).groups[0]
    x = (new - WIDE.mean(axis=0)) / WIDE.std(axis=0) / np.sqrt(30)
    z = (WIDE - WIDE.mean(axis=0)) / WIDE.std(axis=0) / np.sqrt(30)
    away = x - x @ np.linalg.pinv(z) @ z
    np.testing.assert_allclose(group.outside, (away**2).sum(axis=1))
    np.testing.assert_allclose(group.design @ features.groups[0].design.T, x @ z.T, atol=1e-12)


def test_new_rows_do_not_depend_on_each_other():
    features, new = Features.of(FRAME), FRAME.assign(age=np.arange(8.0))
    together = new_rows(features, new).groups[0].design
    alone = new_rows(features, new.iloc[:1]).groups[0].design
    np.testing.assert_allclose(together[:1], alone, rtol=1e-13)


def test_kernel_of_known_and_new_rows():
    whole = kernel_of(9)
    features = Features.of(kernel=whole[:6, :6])
    group, size = features.groups[0], features.groups[0].length ** 2
    np.testing.assert_allclose(size * group.design @ group.design.T, whole[:6, :6], atol=1e-12)
    order = [*range(6), *range(6, 9)]
    new = new_rows(features, kernel=whole[np.ix_(range(6, 9), order)]).groups[0]
    np.testing.assert_allclose(size * new.design @ group.design.T, whole[6:, :6], atol=1e-10)
    total = size * ((new.design**2).sum(axis=1) + new.outside)
    np.testing.assert_allclose(total, np.diag(whole)[6:])
    short = new_rows(features, kernel=whole[6:, :6]).groups[0]
    np.testing.assert_allclose((short.design**2).sum(axis=1) + short.outside, 1.0)


def test_frames_are_matched_by_label_and_categories_are_one_hot():
    X = pd.DataFrame(RNG.normal(size=(4, 3)), index=list("dbha"))
    matrix = ObservedMatrix.of(X, row_features=FRAME)
    group = matrix.row_features.groups[0]
    assert group.names == ("age", "sex=f", "sex=m")
    direct = Features.of(FRAME.loc[list("dbha")]).groups[0]
    np.testing.assert_array_equal(group.design, direct.design)
    assert any("'same'" in note for note in matrix.row_features.notes)


def test_gaps_become_means_with_a_note():
    features = Features.of(FRAME)
    assert any("'age'" in note and "mean" in note for note in features.notes)
    filled = FRAME.assign(age=FRAME["age"].fillna(FRAME["age"].mean()))
    assert features.groups[0].rank == 2
    np.testing.assert_allclose(features.groups[0].encoding.centre[0], filled["age"].mean())


def test_sparse_features_are_scaled_only():
    x = RNG.poisson(0.5, (20, 6)).astype(float)
    sparse = Features.of(csr_array(x)).groups[0]
    dense = Features.of(x / np.sqrt((x**2).mean(axis=0)), standardize=False).groups[0]
    np.testing.assert_allclose(
        sparse.design @ sparse.design.T, dense.design @ dense.design.T, atol=1e-12
    )


def test_the_pattern_follows_the_entries():
    X = ObservedMatrix.of([[1.0, 2.0, np.nan], [3.0, np.nan, 4.0], [5.0, 6.0, 7.0]])
    X = X.with_features(pattern="both")
    mask = ~np.isnan(X.to_array())
    rows = mask / np.sqrt(mask.sum(axis=1, keepdims=True))
    design = X.features(0).groups[0].design
    np.testing.assert_allclose(design @ design.T, rows @ rows.T, atol=1e-12)
    fewer = X.take([0, 2, 4]).features(0).groups[0].design
    assert np.linalg.norm(fewer @ fewer.T - design @ design.T) > 0.1
    np.testing.assert_array_equal(X.T.features(1).groups[0].design, design)


def test_part_uses_nothing_of_the_other_rows():
    X = ObservedMatrix.of(RNG.normal(size=(8, 5)), row_features=WIDE, row_kernel=kernel_of(8))
    part = X.part([1, 2, 5, 7])
    fresh = Features.of(WIDE[[1, 2, 5, 7]], kernel=kernel_of(8)[np.ix_([1, 2, 5, 7], [1, 2, 5, 7])])
    for one, other in zip(part.row_features.groups, fresh.groups, strict=True):
        np.testing.assert_array_equal(one.design, other.design)


def test_fingerprints():
    values = RNG.normal(size=(8, 4))
    plain = ObservedMatrix.of(values)
    known = {plain.fingerprint()}
    for more in (
        {"row_features": WIDE},
        {"row_features": WIDE + 1e-3 * WIDE**2},
        {"pattern": "rows"},
    ):
        known.add(plain.with_features(**more).fingerprint())
    assert len(known) == 4
    assert plain.with_features().fingerprint() == plain.fingerprint()


@pytest.mark.parametrize(
    ("known", "why"),
    [
        ({"row_features": np.ones((3, 2))}, "3 rows, but 8"),
        ({"row_features": FRAME.rename(index={"c": "z"})}, "'c' is not there"),
        ({"row_features": FRAME.iloc[[0, 0, *range(1, 8)]]}, "more than once"),
        ({"row_features": np.ones((8, 2))}, "no feature differs"),
        ({"row_features": np.full((8, 2), np.nan)}, "no feature differs"),
        ({"row_features": [["x"], ["y"]] * 4}, "not a real number"),
        ({"row_features": np.where(WIDE > 2, np.inf, WIDE)}, "infinite"),
        ({"row_features": FRAME.assign(id=[f"n{i}" for i in range(8)])}, "no categories"),
        ({"row_features": {"a b/c": WIDE}}, "no name of a group"),
        ({"row_features": {"x": WIDE}, "row_kernel": {"x": np.eye(8)}}, "called 'x'"),
        ({"row_kernel": np.ones((8, 3))}, "as many columns as rows"),
        ({"row_kernel": -np.eye(8)}, "diagonal"),
        ({"row_kernel": np.eye(8) - 0.5}, "eigenvalue"),
        ({"row_kernel": np.triu(np.ones((8, 8)))}, "not symmetric"),
        ({"row_kernel": csr_array(np.eye(5))}, "5 rows, but 8"),
        ({"row_kernel": pd.DataFrame([["x"] * 8] * 8, NAMES, NAMES)}, "must hold numbers"),
        ({"row_kernel": np.where(np.eye(8) > 0, np.nan, 0.0)}, "no gaps"),
        ({"row_kernel": pd.DataFrame(np.eye(8), NAMES, [*NAMES[:7], "z"])}, "'h' is not there"),
        ({"pattern": "row"}, "Did you mean 'rows'"),
        ({"row_features": "genes"}, "must be an array .* not str of shape"),
        ({"row_features": np.ones((8, 2, 2))}, r"shape \(8, 2, 2\)"),
        ({"row_features": np.empty((8, 0))}, "at least one feature"),
        ({"row_features": {}}, "give features, or a kernel"),
        ({"row_features": csr_array((8, 4))}, "no feature differs"),
        ({"row_features": csr_array(np.eye(5))}, "5 rows, but 8"),
        ({"row_features": csr_array(np.diag([np.nan] * 8))}, "not a finite number"),
        ({"row_features": WIDE * 1e200}, "beyond 1e\\+100"),
        ({"row_features": csr_array(WIDE * 1e200)}, "beyond 1e\\+100"),
        ({"row_features": WIDE + 1j}, "must be real numbers"),
        ({"row_features": pd.concat([FRAME, FRAME], axis=1)}, "'age' occurs more than once"),
        ({"row_features": Features.of(WIDE[:5])}, "5 rows, but 8"),
        ({"col_features": WIDE}, "col_features have 8 rows, but 3"),
    ],
)
def test_bad_input_is_one_sentence(known, why):
    X = ObservedMatrix.of(pd.DataFrame(RNG.normal(size=(8, 3)), index=NAMES))
    with pytest.raises(DataError, match=why) as caught:
        X.with_features(**known)
    assert "\n" not in str(caught.value) and str(caught.value).startswith(tuple(known))


def test_columns_without_information_are_dropped_with_a_note():
    frame = pd.DataFrame({"gone": np.nan, "same": 3.0, "good": np.arange(8.0)}, NAMES)
    known = Features.of(frame)
    assert known.groups[0].names == ("good",)
    assert known.notes == ("features: dropped 'gone', 'same', the same (or missing) in all rows.",)
    np.testing.assert_array_equal(
        Features.of(csr_array(np.eye(8))).groups[0].design @ np.ones(8),
        Features.of(None, kernel=csr_array(np.eye(8))).groups[0].design @ np.ones(8),
    )


def test_too_many_rows_and_features_are_taken_as_they_are(monkeypatch):
    assert Features.of(TALL).groups[0].is_decomposed
    monkeypatch.setattr(module, "LARGEST", 4)
    group = Features.of(csr_array(TALL), standardize=False).groups[0]
    assert not group.is_decomposed and group.loadings is None
    np.testing.assert_allclose(group.design.toarray() * group.length, TALL)
    new = new_rows(Features((group,)), csr_array(2 * TALL[:3]), m=3).groups[0]
    np.testing.assert_allclose(new.design.toarray(), 2 * group.design.toarray()[:3])
    np.testing.assert_array_equal(new.outside, 0.0)


@pytest.mark.parametrize("shape", [(1, 1), (50, 9), (3, 40), (9, 70), (130, 3), (67, 33)])
@pytest.mark.parametrize("K", [1, 3, 20, 25])
def test_products_with_designs(shape, K):
    A, B, R = (RNG.normal(size=size) for size in (shape, (shape[1], K), (shape[0], K)))
    thin = csr_array(A * (RNG.random(shape) < 0.3))
    np.testing.assert_allclose(designs.times(A, B), A @ B, atol=1e-12)
    np.testing.assert_allclose(designs.transposed_times(A, R), A.T @ R, atol=1e-12)
    np.testing.assert_allclose(designs.times(thin, B), thin @ B, atol=1e-12)
    np.testing.assert_allclose(designs.times(A, B[:, 0]), A @ B[:, 0], atol=1e-12)


@pytest.mark.parametrize(
    "product",
    [
        designs.times,
        lambda A, B: designs.times(csr_array(A), B),
        lambda A, B: designs.transposed_times(np.ascontiguousarray(A.T), B),
    ],
)
def test_products_in_blocks_do_not_depend_on_threads(product, monkeypatch):
    A, B = RNG.normal(size=(90, 50)), RNG.normal(size=(50, 3))
    whole = product(A, B)
    monkeypatch.setattr(designs, "_BLOCK", 200)
    with _threads.one_blas_thread(2):
        np.testing.assert_array_equal(product(A, B), whole)


def test_what_is_remembered_of_weights_is_theirs():
    group, weights = Features.of(TALL).groups[0], RNG.normal(size=(5, 2))
    first = group.fitted(weights)
    assert group.fitted(weights.copy()) is first
    weights[0, 0] += 1.0  # in place
    np.testing.assert_allclose(group.fitted(weights), group.design @ weights, atol=1e-12)
    np.testing.assert_allclose(
        replace(group, design=2 * group.design).fitted(weights[:, 0]),
        2 * group.design @ weights[:, 0],
        atol=1e-12,
    )
