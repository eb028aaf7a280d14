"""What is said of data before any model: each note once, and nothing of plain numbers."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmf import ObservedMatrix
from bayesmf.data.inspection import inspect


def plain(seed=0, shape=(40, 30)):
    return np.random.default_rng(seed).normal(50, 2, shape)


def notes(X, **options):
    return inspect(ObservedMatrix.of(X), **options)


def the_note(X, **options):
    """The one thing that is said."""
    (note,) = notes(X, **options)
    return note


@pytest.mark.parametrize("scaled", [True, False])
def test_nothing_is_said_of_plain_numbers(scaled):
    for seed in range(5):
        X = plain(seed)
        X[np.random.default_rng(seed).random(X.shape) < 0.3] = np.nan
        assert notes(X, scaled=scaled) == notes(X - 50, scaled=scaled) == []
    assert notes(np.random.default_rng(0).integers(1, 6, (40, 30)).astype(float)) == []  # ratings
    assert notes(np.random.default_rng(0).poisson(3.0, (40, 30)).astype(float)) == []


@pytest.mark.parametrize(("end", "side"), [(51.5, "upper"), (48.5, "lower")])
def test_heaps_at_an_end_propose_a_limit(end, side):
    X = plain().clip(None, end) if side == "upper" else plain().clip(end, None)
    note = the_note(X)
    share, name = np.mean(end == X), "largest" if side == "upper" else "smallest"
    assert note.startswith(
        f"{share:.1%} of the values are exactly {end:g}, the {name} one: probably cut off there"
    )
    assert f"{side}={end:g}" in note and note.endswith("says so to the model.")
    assert notes(X, limits=False) == []
    known = ObservedMatrix.of(X).between(np.where(end == X, -np.inf, X), X)
    assert inspect(known) == []


def test_a_heap_of_zeros_is_no_limit_of_counts():
    counts = np.random.default_rng(0).poisson(np.random.default_rng(1).gamma(0.5, 20.0, (40, 30)))
    assert np.mean(counts == 0) > 0.05 and notes(counts.astype(float)) == []
    assert "exactly 0, the smallest" in the_note(np.maximum(plain() - 48, 0.0))


@pytest.mark.parametrize("code", [-999.0, 9999.0, -1.0])
def test_codes_of_missing_values_are_named(code):
    X = plain()
    X[np.random.default_rng(0).random(X.shape) < 0.02] = code
    note = the_note(X)
    assert note.startswith(f"{code:g} occurs {np.sum(code == X)} times, far from all other values")
    assert "make these cells empty" in note


def test_what_is_no_code():
    single, odd, near = plain(), plain(), plain()
    single[3, 4] = -999.0
    odd[:5, 4] = -999.5
    near[:5, 4] = 57.0
    for X in (single, odd, near):
        assert notes(X) == []


def test_columns_that_count_the_rows_are_named():
    X = plain()
    X[:, 7] = np.arange(40) + 100.0
    assert the_note(X) == (
        "Column '7' counts the rows: if it is an id, make it a label or leave it out."
    )
    labels = [f"c{j}" for j in range(30)]
    labelled = ObservedMatrix.of(X, row_labels=range(40), col_labels=labels)
    assert "Column 'c7' counts the rows" in inspect(labelled)[0]
    X[5, 7] = 3.5
    assert notes(X) == []


def test_values_of_many_sizes_propose_logarithms():
    X = np.exp(np.random.default_rng(0).normal(0, 2, (40, 30)))
    note = the_note(X)
    assert "orders of magnitude: transformation='log'" in note
    assert notes(X, transforms=False) == notes(-X) == notes(np.ceil(X)) == []
    units = 10.0 ** np.arange(-15, 15)
    assert notes(plain() * units) == []  # each column has its own unit, and none spans much
    assert notes(X * units) == [note]


@pytest.mark.parametrize("whole", [1.0, 100.0])
def test_shares_propose_logits(whole):
    X = whole * np.random.default_rng(0).uniform(0.08, 0.99, (40, 30))
    assert the_note(X).startswith(f"The values lie between 0 and {whole:g}: transformation='logit'")
    assert notes(X, transforms=False) == notes(0.5 * X) == notes(X - 0.5 * whole) == []


def test_artefacts_are_counted():
    X = plain() - 50
    X[0, 0], X[1, 1], X[2, 2] = 1e-314, -1e-200, 0.0
    assert the_note(X) == "Values within 1e-100 of zero: 2; probably artefacts."


def test_rows_and_columns_that_say_little():
    X = plain()
    X[5, 2:], X[2:, 9] = np.nan, np.nan
    assert notes(X) == [
        "Rows with fewer than 3 entries: 1; expect wide intervals there.",
        "Columns with fewer than 3 entries: 1; expect wide intervals there.",
    ]
    empty = plain()
    empty[4], empty[:, 8], empty[:, 9] = np.nan, np.nan, np.nan
    said = notes(empty)
    assert [note.split(";")[0] for note in said] == [
        "Rows without any observed entry: 1, 4 the first",
        "Columns without any observed entry: 2, 8 the first",
    ]  # fmt: skip


def test_constant_rows_and_columns_are_named():
    X = plain()
    X[:, [3, 8]] = 49.9
    X[6, :] = 49.9
    X[6, 0] = np.nan
    assert notes(X) == [
        "Rows that are constant: 1, 6 the first; no model can learn from them.",
        "Columns that are constant: 2, 3 the first; no model can learn from them.",
    ]
    labels = {"row_labels": range(40), "col_labels": [f"c{j}" for j in range(30)]}
    assert "2, 'c3' the first" in inspect(ObservedMatrix.of(X, **labels))[1]


@pytest.mark.parametrize(("unit", "noted"), [(1e-4, True), (1.0, False), (1e6, True)])
def test_units_far_from_one_are_noted_where_nothing_scales(unit, noted):
    X = unit * plain()
    assert notes(X) == []
    said = notes(X, scaled=False)
    assert len(said) == noted and all("use scale='auto', or another unit" in s for s in said)


def test_a_column_that_drowns_the_others_is_named_where_nothing_scales():
    X = plain() - 50
    X[:, 11] *= 20
    assert notes(X) == []
    note = the_note(X, scaled=False)
    assert note.startswith("Column '11' has ") and note.endswith("brings columns to one scale.")
