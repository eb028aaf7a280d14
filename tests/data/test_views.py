"""How views are laid out, and with how much memory."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from bayesmf import DataError, ObservedMatrix
from bayesmf.data.views import Entries, Gathered

N, SHAPE = 400_000, (4000, 900)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def scattered(rng):
    """Places of N different cells, in no order."""
    cells = rng.permutation(SHAPE[0] * SHAPE[1])[:N].astype(np.int32)
    return np.divmod(cells, np.int32(SHAPE[1]))


def in_blocks(i, j, x):
    gathered = Gathered()
    for first in range(0, N, 30_000):
        part = slice(first, first + 30_000)
        gathered.add(Entries(i[part].copy(), j[part].copy(), x[part].copy()))
    return gathered


def view_bytes(X):
    return sum(part.nbytes for v in (X.rows, X.cols) for part in (v.indptr, v.indices, v.values))


def peak(make):
    """The most memory that a call holds beside what was there before, and what it returns."""
    tracemalloc.start()
    try:
        made = make()
        return tracemalloc.get_traced_memory()[1], made
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["triples", "CSR", "CSC", "COO", "blocks", "take"])
def test_memory_is_that_of_the_views(rng, kind):
    i, j = scattered(rng)
    wide = i.astype(np.int64), j.astype(np.int64)
    x = rng.normal(size=N)
    given = sp.coo_array((x, (i, j)), shape=SHAPE)
    whole = ObservedMatrix.of(given)
    make = {
        "triples": lambda: ObservedMatrix.from_triples(*wide, x, SHAPE),
        "CSR": lambda: ObservedMatrix.of(given.tocsr()),
        "CSC": lambda: ObservedMatrix.of(given.tocsc()),
        "COO": lambda: ObservedMatrix.of(given),
        "blocks": lambda: ObservedMatrix.of_entries(in_blocks(i, j, x), SHAPE),
        "take": lambda: whole.take(np.ones(N, dtype=bool)),
    }[kind]
    # A matrix of SciPy that is made within counts as given: it is 12 bytes an entry.
    given_within = 12 * N if kind in ("CSR", "CSC") else 0
    most, X = peak(make)
    assert (most - given_within) / view_bytes(X) < 1.3
    assert X.fingerprint() == whole.fingerprint()
    assert {v.indices.dtype for v in (X.rows, X.cols)} == {np.dtype(np.int32)}
    assert {v.indptr.dtype for v in (X.rows, X.cols)} == {np.dtype(np.int64)}


def test_memory_of_a_dense_matrix(rng):
    array = rng.normal(size=SHAPE)
    array[rng.random(SHAPE) < 0.8] = np.nan
    most, X = peak(lambda: ObservedMatrix.of(array))
    assert not X.is_dense
    assert most / view_bytes(X) < 1.3


def test_gathered_entries_are_given_away():
    zero = np.zeros(1, np.int32)
    gathered = Gathered([Entries(zero, zero, np.ones(1)), Entries(zero, zero + 1, np.full(1, 2.0))])
    assert gathered.values.tolist() == [1.0, 2.0]
    X = ObservedMatrix.of_entries(gathered, (1, 2))
    assert X.to_array().tolist() == [[1.0, 2.0]]
    assert gathered.size == gathered.values.size == 0
    assert ObservedMatrix.of_entries(gathered, (2, 2)).n_observed == 0
    assert zero.size == 1  # what was given is left as it was


def test_cells_that_repeat_are_named_whatever_the_block():
    zero = np.zeros(1, np.int32)
    again = Entries(zero, zero + 1, np.full(1, np.nan)), Entries(zero, zero + 1, np.ones(1))
    with pytest.raises(DataError, match=r"row 0, column 1 occurs more than once"):
        ObservedMatrix.of_entries(Gathered(again), (1, 2))


def test_order_of_columns_follows_the_entries(rng):
    i, j = scattered(rng)
    X = ObservedMatrix.from_triples(i, j, rng.normal(size=N), SHAPE)
    np.testing.assert_array_equal(X.column_order, np.argsort(X.rows.indices, kind="stable"))
    np.testing.assert_array_equal(X.rows.values[X.column_order], X.cols.values)
