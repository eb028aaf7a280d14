"""Comparison of models: the race, its statistics, the recommendation, and units of the data."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bayesmf import Comparison, DataError, ModelError, ObservedMatrix, baseline, compare
from bayesmf.comparison import race, trials
from bayesmf.comparison.compare import _forbidden as forbidden
from bayesmf.comparison.race import Lane
from bayesmf.comparison.trials import LEVELS, Trial
from bayesmf.metrics import mse

SMALL = {"ranks": [1, 2, 3], "budget": "quick", "folds": 3, "scale": "none"}


def matrix(seed=0, shape=(40, 25), noise=0.3, missing=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1]))
    X = X + rng.normal(0, noise, shape)
    X[rng.random(shape) < missing] = np.nan
    return X


@pytest.fixture(scope="module")
def found():
    return compare(matrix(), ["GGG", "GGGA", "GGGW", "GLL", "PGG", "NMF", "row average"], **SMALL)


def test_the_right_rank_is_recommended_with_reasons(found):
    assert found.best_rank_ == 2 and found.best_model_ in ("GGG", "GGGA", "GGGW", "GLL")
    best = found.standings[0]
    assert best.status == "recommended" and best.folds == 3
    assert 0.09 < best.mse < 0.2  # the noise has variance 0.09
    assert 0.8 < best.coverage <= 1.0
    assert set(found.excluded) == {"PGG", "NMF"} and "counts" in found.excluded["PGG"]
    assert f"Use {best.model} with rank 2" in found.recommendation
    assert "less than the best baseline (row-average)" in found.recommendation
    table = found.table
    assert table.model[0] == best.model and len(table) == 5
    assert found.rank_curves()[best.model][1][0] == 2
    assert [level for level, _ in found.calibration] == list(LEVELS)
    assert "rank 2" in repr(found)


def test_the_best_estimator_predicts(found):
    mf = found.fit_best()
    assert mf.n_components_ == 2 and mf.posterior_.settings["chains"] == 2
    assert found.fit_best() is mf


def test_a_plot_has_all_models(found):
    pytest.importorskip("matplotlib")
    labels = [t.get_text() for t in found.plot().axes[0].get_yticklabels()]
    assert len(labels) == 5 and any("row-average" in label for label in labels)


def test_the_same_seed_gives_the_same_comparison_in_processes_and_from_a_store(found, tmp_path):
    calls = []
    names = ["GGG", "GGGA", "GGGW", "GLL", "PGG", "NMF", "row-average"]
    again = compare(
        matrix(), names, **SMALL, n_jobs=2, store=tmp_path,
        progress=lambda lanes, text: calls.append(text),
    )  # fmt: skip
    for one, other in zip(found.standings, again.standings, strict=True):
        np.testing.assert_equal(one._replace(seconds=0.0), other._replace(seconds=0.0))
    took = [text for text in calls if "took" in text]
    assert took and any("fold 3 of 3 is done" in text for text in calls)
    calls.clear()
    compare(matrix(), names, **SMALL, store=tmp_path, progress=lambda _, text: calls.append(text))
    assert not [text for text in calls if "took" in text]


def test_biases_are_tried_when_asked():
    rng = np.random.default_rng(1)
    X = matrix(noise=0.2) + rng.normal(0, 5, 40)[:, None] + rng.normal(0, 5, 25)
    names = ["GGG", "PGG", "row-average"]
    found = compare(X, names, [2], budget="quick", biases=True, scale="none")
    assert {s.model for s in found.standings} == {"GGG", "GGG + biases", "row-average"}
    assert found.best_model_ == "GGG" and found.best_biases_
    assert found.fit_best().posterior_.model.biases is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": ["GGGX"]}, "Unknown model 'GGGX'"),
        ({"models": ["PGG"]}, "No model is left to compare"),
        ({"models": ["row-average"]}, "No model is left"),
        ({"budget": "huge"}, "budget must be"),
        ({"ranks": []}, "no candidate"),
    ],
)
def test_bad_requests(options, message):
    with pytest.raises(ModelError, match=message):
        compare(matrix(), **options)


def test_a_matrix_without_entries_is_refused():
    with pytest.raises(DataError, match="no observed entry"):
        compare(np.full((3, 3), np.nan))


# --- The race -----------------------------------------------------------------------------------


def lane(errors, **more):
    trial = Trial("x", more.pop("model", "GGG"), 0, 5, (1, 2), 10, 10)
    results = [{"mse": e, "rank": 1, "inner": {"1": 1.0, "2": 2.0}, **more} for e in errors]
    return Lane(trial, results)


def test_those_that_cannot_win_are_stopped():
    lanes = [lane([1.0 + 0.01 * k]) for k in range(4)] + [lane([1.2]), lane([1.4]), lane([None])]
    race._stop(lanes, 1)
    assert [x.stopped for x in lanes] == [False] * 5 + [True, True]
    steady = [lane([1.0, 1.1, 0.9]) for _ in range(4)] + [
        lane([1.1, 1.2, 1.01]),  # worse in every fold
        lane([1.5, 0.9, 1.0]),  # worse in one
        lane([1.001, 1.101, 0.901]),  # worse, but by nothing that matters
    ]
    race._stop(steady, 3)
    assert [x.stopped for x in steady] == [False] * 4 + [True, False, False]


def test_ties_are_called_by_a_paired_test():
    best, tie, worse = lane([1.0, 2.0, 3.0]), lane([1.1, 2.1, 2.9]), lane([1.2, 2.21, 3.19])
    lost = lane([1.0, None, 1.0])
    short = lane([9.0])
    order = race.standings([worse, lost, short, tie, best], 3)
    assert [s.status for s in order] == ["recommended", "tie", "worse", "failed", "stopped early"]
    assert order[0].rank == 1 and np.isnan(order[4].mse_error)


def test_ranks_are_searched_upwards_until_they_get_worse(monkeypatch):
    tried = []

    def error(trial, part, test, rank, size):
        tried.append(rank)
        return {1: 2.0, 2: 1.0, 3: 1.01, 5: 1.1, 8: 1.2, 12: 0.1}[rank]

    monkeypatch.setattr(trials, "_quick_error", error)
    trial = Trial("x", "GGG", 0, 3, (1, 2, 3, 5, 8, 12), 10, 10)
    found = trials._search(trial, ObservedMatrix.of(matrix()))
    assert tried == [1, 2, 3, 5, 8] and min(found, key=found.get) == 2
    assert trials._search(Trial("x", "row-average", 0, 3, (1, 2), 10, 10), None) == {}


# --- The data -----------------------------------------------------------------------------------


def test_models_that_the_data_forbid():
    names = ["GGG", "GEE", "GEG", "PGG", "NMF", "row-average"]
    assert forbidden(ObservedMatrix.of([[1.0, 2.0], [3.0, 0.0]]), names) == {}
    assert set(forbidden(ObservedMatrix.of([[1.5, 2.0]]), names)) == {"PGG"}
    assert set(forbidden(ObservedMatrix.of([[-1.0, 2.0]]), names)) == {"GEE", "PGG", "NMF"}


def test_the_report_is_one_page(found, tmp_path):
    pytest.importorskip("bayesmf.report")
    found.report(tmp_path / "report.html", "A <b>title</b>", command="bayesmf compare x.csv")
    text = (tmp_path / "report.html").read_text()
    assert "A &lt;b&gt;title&lt;/b&gt;" in text and "bayesmf compare x.csv" in text
    assert found.recommendation.split(":")[0] in text
    assert isinstance(found, Comparison)


def test_an_interrupt_ends_the_race_and_stores_no_half_trial(tmp_path):
    """Sent when a trial is drawing; before, its few draws would have passed for the whole."""
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import numpy as np\n"
        "from bayesmf import compare, sample\n"
        "from bayesmf.comparison.compare import BUDGETS\n"
        "X = np.random.default_rng(0).normal(size=(60, 40))\n"
        "BUDGETS['quick'] = (3, 10, 10**5)\n"
        "sample(X, 'GGG', 2, draws=1)\n"
        "print('ready', flush=True)\n"
        "compare(X, ['GGG'], [2], budget='quick', store='trials')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
    assert not list((tmp_path / "trials").rglob("*.json"))


def test_units_do_not_decide_a_comparison():
    X, sizes = matrix(shape=(25, 12)), 10.0 ** np.arange(-6, 6)
    data = X, 1e6 * X, sizes * X, 1e6 * sizes * X
    found = [compare(Y, ["GGG"], [2], budget="quick") for Y in data]
    plain, large, own, larger = (f.standings[0] for f in found)
    assert plain.coverage == large.coverage and own.coverage == larger.coverage
    assert large.mse == pytest.approx(1e12 * plain.mse, rel=1e-8)
    assert own.mse == pytest.approx(larger.mse, rel=1e-8) and own.mse < 1  # in sizes of columns
    for one, other in ((plain, large), (own, larger)):
        assert other.log_density == pytest.approx(one.log_density - np.log(1e6), rel=1e-8)
    told = ["in sizes of their columns" in f.recommendation for f in found]
    assert told == [False, False, True, True]
    assert [f.lanes[0].trial.scale for f in found] == ["global", "global", "cols", "cols"]


def test_a_transformation_is_judged_in_the_units_of_the_data():
    X = np.exp(matrix(shape=(25, 12), noise=0.1))
    plain, log = (
        compare(X, ["GGG"], [2], budget="quick", transformation=name) for name in (None, "log")
    )
    assert log.standings[0].log_density > plain.standings[0].log_density + 0.5
    assert log.fit_best().units_.transforms.asked == "log"
    whole = ObservedMatrix.of([[1.0, 2.0]])
    assert "no use for a transformation" in forbidden(whole, ["GGG", "PGG"], "log")["PGG"]
    assert forbidden(whole, ["GGG", "PGG"]) == {}
    with pytest.raises(ModelError, match="transformation must be one of"):
        compare(X, ["GGG"], [2], transformation="logg")


def test_the_folds_can_be_used_again(found):
    """A model that is fitted to them by hand has the errors of the comparison."""
    parts = list(found.splits())
    assert len(parts) == 3
    held = [len(test[2]) for _, test in parts]
    assert sum(held) <= found.X.n_observed and min(held) > 0.9 * found.X.n_observed / 3
    average = next(s for s in found.standings if s.model == "row-average")
    errors = [
        mse(test[2], baseline(train, "row-average").predict(test[0], test[1]))
        for train, test in parts
    ]
    assert np.mean(errors[: average.folds]) == pytest.approx(average.mse)
