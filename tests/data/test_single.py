"""Values in single precision: half the memory, and the same draws where they are exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from bayesmf import BayesianMF, DataError, ObservedMatrix, baseline, preset, read_matrix, sample
from bayesmf.sampler import checkpoints
from bayesmf.sampler.start import initial_state
from bayesmf.sampler.state import Problem
from bayesmf.sampler.sweep import sweep
from bayesmf.splits import kfold
from bayesmf.updates import blocks
from tests.helpers.shards import CASES, after, data, on_threads

SPARSE, DENSE = 0.3, 0.8
FAST = [("GGGW", SPARSE), ("GGGW", DENSE), ("GLL", DENSE), ("PGG", SPARSE), ("ordinal", SPARSE)]
ALL = [(name, observed) for name in CASES for observed in (SPARSE, DENSE)]


def exact(kind, observed):
    """A matrix whose values single precision holds, and the same in single precision."""
    X = data(kind, observed)
    X = X.with_values(X.rows.values.astype(np.float32).astype(np.float64))
    return X, ObservedMatrix.of(X, single=True)


def drawn(X, name, shards=1):
    """All variables after some sweeps of a case, as every shard has them."""
    _, model, sweeps = CASES[name]
    problem = Problem.of(X, model(), 4)
    state = initial_state(problem, "data", 3)
    if shards > 1:
        return on_threads(problem, state, sweeps, shards)
    return [after(sweep, problem, state, sweeps)]


def differences(found, expected):
    return [key for key in expected if not np.array_equal(found[key], expected[key])]


@pytest.mark.parametrize(
    ("name", "observed"),
    [pytest.param(*case, marks=[] if case in FAST else pytest.mark.slow) for case in ALL],
)
def test_exact_values_give_the_same_draws(name, observed, monkeypatch):
    monkeypatch.setattr(blocks, "_WINDOW", 100)
    double, single = exact(CASES[name][0], observed)
    (expected,), (found,) = drawn(double, name), drawn(single, name)
    assert not differences(found, expected)
    if observed == SPARSE and name in ("GGGW", "PGG"):
        for shard in drawn(single, name, 3):
            assert not differences(shard, expected)


@pytest.mark.parametrize("name", ["GGGW", "GGG"])
def test_long_rows_are_summed_alike(name, monkeypatch):
    """Errors of rows come from sums of squares, whose order a compiler may choose."""
    monkeypatch.setattr(blocks, "_WINDOW", 300)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 700)).astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.7] = np.nan
    double, single = ObservedMatrix.of(X), ObservedMatrix.of(X, single=True)
    options = {"draws": 3, "burn_in": 2, "keep": "all", "random_state": 0}
    expected, found = (sample(data, preset(name), 3, **options) for data in (double, single))
    assert not differences(found.draws, expected.draws)
    np.testing.assert_array_equal(found.mean, expected.mean)


def test_values_are_half_as_large_and_read_as_doubles():
    X = ObservedMatrix.of([[1.5, None, 2.5], [None, 4.0, None]], single=True)
    assert X.is_single and "single precision" in repr(X)
    assert X.rows.stored.dtype == X.cols.stored.dtype == np.float32
    assert X.rows.values.dtype == X.triples()[2].dtype == X.to_array().dtype == np.float64
    assert ObservedMatrix.of(X) is X and ObservedMatrix.of(X, single=True) is X
    whole = ObservedMatrix.of(np.ones((3, 3)), single=True)
    assert whole.is_dense and whole.is_single


def test_parts_and_other_matrices_stay_single():
    X = exact("real", SPARSE)[1]
    train, _ = next(iter(kfold(X, 3, random_state=0)))
    for part in (X.T, X.take([0, 1]), X.part([0, 2], [1, 3]), train):
        assert part.is_single
    assert replace(X, errors=np.ones(X.n_observed)).is_single
    assert not X.with_values(X.rows.values).is_single


def test_a_fingerprint_is_that_of_the_numbers():
    double, single = exact("real", SPARSE)
    assert double.fingerprint() == single.fingerprint()
    rounded = double.with_values(double.rows.values * (1 + 1e-9))
    assert rounded.fingerprint() != double.fingerprint()
    again = ObservedMatrix.of(rounded, single=True)
    assert again.fingerprint() == double.fingerprint()  # since they are the same numbers again


@pytest.mark.parametrize("value", [1e39, -1e60, 1e-44])
def test_numbers_that_single_precision_does_not_hold_are_named(value):
    X = [[1.0, 2.0], [value, 3.0]]
    given = (X, np.array(X), sparse.csr_array(X), ([0, 1], [0, 0], [1.0, value]))
    for source in (*given, ObservedMatrix.of(X)):
        with pytest.raises(DataError, match=r"row 1, column 0 is \S+, which single precision"):
            ObservedMatrix.of(source, single=True)


def test_infinite_values_are_refused_as_ever():
    with pytest.raises(DataError, match="is infinite"):
        ObservedMatrix.of([[1.0, np.inf]], single=True)


@pytest.mark.parametrize("kind", ["npz", "sparse.npz", "npy", "mtx", "csv", "long.csv", "parquet"])
def test_files_are_read_in_single_precision(tmp_path, kind):
    dense = np.array([[0.5, np.nan, 3.0], [np.nan, 4.25, np.nan], [1.0, 2.0, -7.5]])
    i, j = np.nonzero(~np.isnan(dense))
    stored = sparse.coo_array((dense[i, j], (i, j)), shape=dense.shape)
    path, options = tmp_path / f"data.{kind}", {}
    if kind == "npz":
        np.savez(path, rows=i, cols=j, values=dense[i, j])
    elif kind == "sparse.npz":
        sparse.save_npz(path, stored.tocsr())
    elif kind == "npy":
        np.save(path, dense)
    elif kind == "mtx":
        from scipy.io import mmwrite

        mmwrite(path, stored)
    elif kind == "parquet":
        pd, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
        table = pd.DataFrame({"r": i, "c": j, "x": dense[i, j]})
        table.to_parquet(path)
        options = {"long": "r,c,x"}
    elif kind == "long.csv":
        lines = [f"{a},{b},{dense[a, b]}" for a, b in zip(i, j, strict=True)]
        path.write_text("\n".join(["r,c,x", *lines]) + "\n")
        options = {"long": "r,c,x"}
    else:
        path.write_text("a,b,c\n0.5,,3\n,4.25,\n1,2,-7.5\n")
    plain, X = (read_matrix(path, **options, single=single) for single in (False, True))
    assert X.is_single and not plain.is_single
    assert X.fingerprint() == plain.fingerprint()


def test_known_datasets_are_read_in_single_precision():
    assert read_matrix("digits", single=True).is_single


def test_a_stored_run_goes_on_in_the_other_precision(tmp_path, monkeypatch):
    double, single = exact("real", SPARSE)
    options = {"draws": 6, "burn_in": 3, "keep": ("U", "V"), "random_state": 0}

    class Stopped(Exception):
        pass

    def stop(event):
        if event.sweep == 5:
            raise Stopped

    monkeypatch.setattr(checkpoints, "_SECONDS", 0.0)
    with pytest.raises(Stopped):
        sample(double, "GGG", 3, store=tmp_path / "run", progress=stop, **options)
    told = []
    found = sample(single, "GGG", 3, store=tmp_path / "run", progress=told.append, **options)
    expected = sample(double, "GGG", 3, **options)
    assert told[0].sweep > 1
    assert not differences(found.draws, expected.draws)
    np.testing.assert_array_equal(found.mean, expected.mean)


@pytest.mark.filterwarnings("ignore::bayesmf.ConvergenceWarning")
def test_a_saved_fit_stays_in_single_precision(tmp_path):
    double, single = exact("counts", SPARSE)
    fits = []
    for X, options in ((double, {}), (double, {"single": True}), (single, {})):
        fit = BayesianMF("PGG", 2, draws=20, burn_in=5, random_state=0, **options).fit(X)
        fits.append(fit.predict())
    for found in fits[1:]:
        np.testing.assert_array_equal(found, fits[0])
    fit.save(tmp_path / "fit.npz")
    loaded = BayesianMF.load(tmp_path / "fit.npz")
    assert loaded._matrix.is_single
    np.testing.assert_array_equal(loaded.predict(), fits[0])
    assert str(loaded.summary()) == str(fit.summary())
    assert not any("single precision" in note for note in fit.notes_)


@pytest.mark.filterwarnings("ignore::bayesmf.ConvergenceWarning")
def test_units_are_in_double_and_said_to_be():
    double, single = exact("real", DENSE)
    options = {"draws": 5, "burn_in": 2, "random_state": 0}
    expected, found = (BayesianMF("GGG", 2, **options).fit(X) for X in (double, single))
    np.testing.assert_array_equal(found.predict(), expected.predict())
    told = [note for note in found.notes_ if "single precision" in note]
    assert len(told) == 1 and set(found.notes_) - set(told) == set(expected.notes_)


def test_baselines_see_the_same_values():
    double, single = exact("counts", SPARSE)
    for name in ("NMF", "row-average", "column-average"):
        found, expected = (baseline(X, name, random_state=0).predict() for X in (single, double))
        np.testing.assert_array_equal(found, expected)
