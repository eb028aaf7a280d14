"""Comparison of models: the race, its statistics, the recommendation, and units of the data."""

import itertools
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from bayesmf import (
    BayesianMF,
    Comparison,
    DataError,
    Gaussian,
    Model,
    ModelError,
    ObservedMatrix,
    baseline,
    compare,
    preset,
)
from bayesmf.comparison import entrants, race, recorded, trials
from bayesmf.comparison.entrants import Entrant
from bayesmf.comparison.race import Lane
from bayesmf.comparison.trials import LEVELS, Trial
from bayesmf.metrics import mse
from bayesmf.posterior.predictive import Predictive
from bayesmf.priors import Normal


def forbidden(X, names, transformation=None):
    return entrants.forbidden(X, [Entrant(name) for name in names], {}, transformation)


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
    assert "less than that of the best baseline (row-average)" in found.recommendation
    assert found.standings[-1].rank == 0  # an average has no factors
    table = found.table
    assert table.model[0] == best.model and len(table) == 5
    assert found.rank_curves()[best.model][1][0] == 2
    assert [level for level, _ in found.calibration] == list(LEVELS)
    assert "rank 2" in repr(found)


def test_psis_loo_stands_beside_the_folds_with_its_warning(found):
    """Where its weights can be trusted it is near the folds, and it costs no fit."""
    for s in found.standings:
        if s.model == "row-average":
            assert np.isnan([s.loo, s.loo_unreliable]).all()
            continue
        assert 0 <= s.loo_unreliable <= 1
        assert s.loo == pytest.approx(s.log_density, abs=0.3)
    of_later_folds = [r for lane in found.lanes for r in lane.results[1:]]
    assert not any("loo" in result for result in of_later_folds)
    first = max((s for s in found.standings if s.loo == s.loo), key=lambda s: s.loo)
    text = found.recommendation
    assert (
        "puts it first too" in text
        or f"PSIS-LOO, from training entries alone, puts {first.model} first" in text
    )
    assert (f"k-hat is too large for {100 * first.loo_unreliable:.0f} %" in text) == (
        first.loo_unreliable > 0.01
    )


def test_the_best_estimator_predicts(found):
    mf = found.fit_best()
    assert mf.n_components_ == 2 and mf.posterior_.settings["chains"] == 2
    assert found.fit_best() is mf


def test_a_plot_has_all_models(found):
    pytest.importorskip("matplotlib")
    labels = [t.get_text() for t in found.plot().get_yticklabels()]
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


def trial(model="GGG", **more):
    return Trial("x", Entrant(model), 0, 5, (1, 2), 10, 10, **more)


def lane(errors, densities=None, model="GGG", short=False):
    """Errors of folds, each the mean over eight groups that differ alike in all lanes."""
    bumps = np.linspace(-0.2, 0.2, 8)
    results = []
    for k, e in enumerate(errors):
        result = {"mse": e, "rank": 1, "inner": {"1": 1.0, "2": 2.0}}
        if e is not None:
            jitter = 0.01 * np.random.default_rng([k, int(1e4 * e)]).normal(size=8)
            result["squares"] = (e + bumps + jitter - jitter.mean()).tolist()
        if densities is not None:
            result |= {"log_density": densities[k], "densities": (densities[k] + bumps).tolist()}
        results.append(result)
    return Lane(trial(model, short=short), results)


def run_of(lanes, by="error"):
    found = race.Race(None, {}, None, 1, None, by, lambda *_: None)
    found.lanes = lanes
    return found


def test_those_that_cannot_win_are_stopped():
    lanes = [lane([1.0]), lane([1.001]), lane([1.002]), lane([1.003]), lane([1.2]), lane([None])]
    run_of(lanes)._stop()
    assert [x.stopped for x in lanes] == [False] * 4 + [True, True]  # 1.003 is as good as 1.0
    others = [lane([9.0], model=name) for name in ("NMF", "effects")]
    run_of([*lanes[:3], *others])._stop()
    assert not any(x.stopped for x in others)  # baselines are quick


def test_ties_are_called_by_a_paired_test():
    best, tie = lane([1.0, 2.0, 3.0], [-1.0] * 3), lane([1.001, 2.0, 3.002], [-1.02] * 3)
    spikes = lane([1.0001, 2.0, 3.0], [-3.0] * 3)  # as good on average, but with absurd intervals
    worse, lost, short = lane([1.2, 2.2, 3.2], [-1.1] * 3), lane([1.0, None, 1.0]), lane([0.9])
    order = race.standings([worse, lost, short, spikes, tie, best], "error")
    assert [s.status for s, _ in order] == [
        "recommended", "worse", "tie", "worse", "failed", "stopped early"
    ]  # fmt: skip
    assert [lane for _, lane in order][:3] == [best, spikes, tie]
    assert order[0][0].rank == 1 and np.isnan(order[5][0].mse_error)


def test_the_measure_decides():
    """Between equal errors the density does, unless there is a clear difference."""
    small = lane([1.0, 1.0], [-2.0, -2.0])
    sure = lane([1.001, 1.002], [-1.0, -1.0])
    surer = lane([1.5, 1.5], [-0.5, -0.5])
    best = {by: race.standings([small, sure, surer], by)[0][1] for by in ("error", "density")}
    assert best == {"error": sure, "density": surer}
    for one, gap in ((small, 0.05), (sure, 0.01), (surer, 0.0)):
        for result in one.results:
            result["covered"] = [level - gap for level in LEVELS]
    assert race.standings([small, sure, surer], "coverage")[0][1] is sure  # surer errs too much


def test_ranks_are_walked_from_the_start_both_ways():
    tried = []

    def error(rank):
        tried.append(rank)
        return {1: 2.0, 2: 1.0, 3: 1.001, 5: 1.1, 8: 1.2, 12: 0.1}[rank]

    found = trials.walk((1, 2, 3, 5, 8, 12), 5, error)
    assert tried == [5, 8, 3, 2, 1] and min(found, key=found.get) == 2
    tried.clear()
    found = trials.walk((1, 2, 3, 5, 8, 12), 3, error)
    assert tried == [3, 5, 2, 1] and min(found, key=found.get) == 2
    assert trials._search(trial("row-average"), {}, None) == {}


# --- Words --------------------------------------------------------------------------------------


def test_it_says_first_that_nothing_beats_an_average(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 15))
    found = compare(X, ["GGG", "GGGA", "row-average", "column-average"], [1, 2], budget="quick")
    assert found.recommendation.startswith("No model beats the baseline")
    assert " than that of the best baseline" not in found.recommendation
    best = found.standings[0]
    assert f"Of the models, {best.model} with rank {best.rank} does best" in found.recommendation
    assert "Use " not in found.recommendation
    found.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    for s in found.standings:
        if "baseline" in s.status:
            row = page[page.index(f"</span>{s.model}</span>") :]
            assert f"{s.status}</span>" in row[: row.index("</tr>")]
            assert '<td class="num" data-value="">\u2013</td>' in row[: row.index("</tr>")]


def test_one_model_has_no_others():
    found = compare(matrix(), ["GGG"], [2], budget="quick")
    assert "paired" not in found.recommendation and "Use GGG with rank 2" in found.recommendation
    assert "No other model and no baseline took part" in found.recommendation


def test_the_time_to_go_counts_what_will_run(monkeypatch):
    """One model and one baseline run on three folds, four of them at ten seconds each to go."""
    clock, said = itertools.count(0, 10), []
    monkeypatch.setattr(race, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    compare(matrix(), ["GGG", "effects"], [2], budget="quick",
            progress=lambda _, text: said.append(text.rpartition("; ")[2]))  # fmt: skip
    assert said[:2] == ["about 50 s to go", "about 40 s to go"]


def test_columns_with_few_entries_are_not_blamed():
    X = matrix(noise=0.1, missing=0.2)
    X[4:, 3] = np.nan  # four entries, by chance badly predicted
    X[:4, 3] = [1.0, 1.1, 0.9, 1.0]
    found = compare(X, ["GGG", "effects"], [2], budget="quick", scale="none")
    assert found.columns()[0].column == "3" and "hardly better" not in found.recommendation


def test_columns_are_judged_one_by_one():
    rng = np.random.default_rng(3)
    X = matrix(noise=0.1, missing=0.2)
    X[:, 4] = rng.normal(size=40)  # has nothing to do with the others
    found = compare(X, ["GGG", "effects"], [2], budget="quick", scale="none")
    worst, *_, best = found.columns()
    assert worst.column == "4" and worst.skill < 0.1 and best.skill > 0.9
    assert best.correlation > 0.95 and best.entries > 20 and 0.7 < best.coverage <= 1
    assert "Column '4' is predicted hardly better" in found.recommendation
    total = sum(column.mse * column.entries for column in found.columns())
    assert total / sum(c.entries for c in found.columns()) == pytest.approx(
        found.standings[0].mse, rel=0.05
    )


def test_models_of_ones_own_take_part_beside_names(tmp_path):
    mine = Model(Gaussian(alpha=2.0), Normal(0.5), Normal(2.0), "mine")
    options = {"ranks": [2], "budget": "quick", "store": tmp_path}
    found = compare(matrix(), [mine, "ggg"], **options)
    assert {s.model for s in found.standings} == {"mine", "GGG"}
    other = compare(matrix(), [Model(Gaussian(), Normal(9.0), Normal(2.0), "mine")], **options)
    assert other.standings[0].mse != next(s.mse for s in found.standings if s.model == "mine")
    assert other.fit_best().posterior_.model.rows == Normal(9.0)


def test_an_interrupt_keeps_what_is_known(monkeypatch):
    seen = []

    def progress(lanes, text):
        seen.append(text)
        if text.startswith("GGGA, fold 2"):
            raise KeyboardInterrupt

    found = compare(matrix(), ["GGG", "GGGA"], [2], budget="quick", progress=progress)
    assert found.interrupted and found.recommendation.startswith("Stopped early")
    assert any("to go" in text for text in seen)
    if found.standings[0].folds == 1:
        assert "1 of 3 folds says" in found.recommendation and "(1 fold)" in found.recommendation
    assert "nan" not in found.recommendation


def test_a_race_that_is_broken_off_is_judged_on_folds_that_all_have_run():
    first, late = lane([1.0, 1.0]), lane([2.0, 0.1, 0.1], model="GGGA")
    tried = lane([0.5], model="GLL", short=True)
    waiting = Lane(trial("GLL"), tried=tried)
    known = race._compared([first, late, lane([9.0] * 3, model="NMF"), waiting, Lane(trial("GVG"))])
    assert [len(one.results) for one in known] == [2, 2, 2, 1] and known[-1] is tried
    order = race.standings([one for one in known if not one.trial.is_baseline], "error")
    assert order[0][1] is first and len(late.results) == 2


def test_the_race_tries_likelihoods_with_the_best_priors():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 30))
    X += rng.normal(size=X.shape) * 10 ** rng.uniform(-1.5, 0.5, 30)
    X[rng.random(X.shape) < 0.2] = np.nan
    found = compare(X, budget="quick", ranks=[1, 2, 3], scale="none", n_jobs=2)
    names = {s.model for s in found.standings}
    assert {"GGGW + noise both", "TGGW", "GGGW + biases", "effects", "GEG"} <= names
    assert "noise" in found.best_ and ("cols" in found.best_ or "both" in found.best_)
    assert any("noise" in name and not name[1:].startswith("GGW") for name in names)  # crossed
    assert found.fit_best().posterior_.model.likelihood.cols
    assert sum(s.folds == 3 and s.status != "baseline" for s in found.standings) <= 6


# --- Who takes part -----------------------------------------------------------------------------


def test_names_are_read_back_in_any_case():
    names = ["ggga", "gvng", "tggw + noise BOTH", "GGGW + noise cols + log + biases", "row average"]
    found, own = entrants.read(names)
    assert [str(one) for one in found] == [
        "GGGA", "GVnG", "TGGW + noise both", "GGGW + noise cols + log + biases", "row-average"
    ]  # fmt: skip
    assert own == {} and entrants.read([str(one) for one in found])[0] == found
    model = preset("GGG", lambda_=2.0)
    found, own = entrants.read(["GGG", model, Model(Gaussian(), Normal(1.0), Normal(2.0), "mine")])
    assert [str(one) for one in found] == ["GGG", "GGG (own 1)", "mine"]
    assert own["GGG (own 1)"].rows == model.rows


@pytest.mark.parametrize(
    ("values", "there", "not_there"),
    [
        (np.arange(60.0) - 30.5, {"GGGW + noise both", "TGGW", "GGGW + biases"}, {"OGGW", "BGG"}),
        (np.arange(60) % 5 + 1.0, {"OGGW", "NGG", "OGGW + biases"}, {"BGG", "GGGW + limits"}),
        (np.arange(60) % 2 * 1.0, {"BGG", "OGGW"}, {"NGG"}),
        (np.exp(np.arange(60) / 10) + 0.01, {"GGGW + log", "GGGW + sqrt"}, {"GGGW + log1p"}),
        (np.arange(60.0).clip(None, 40) + 0.5, {"GGGW + limits"}, {"OGGW"}),
        (np.minimum(np.arange(60) % 12, 6) * 1.0, {"GGGW + limits", "OGGW"}, {"BGG"}),
        (np.linspace(0.01, 0.99, 60), {"GGGW + logit"}, {"GGGW + log"}),
    ],
)
def test_the_data_say_which_likelihoods_are_tried(values, there, not_there):
    X = ObservedMatrix.of(np.random.default_rng(0).permutation(values).reshape(10, 6))
    names = {str(one) for one in entrants.field(X, None, None)}
    assert there <= names and not not_there & names
    assert not any("biases" in str(one) for one in entrants.field(X, False, None))
    assert "GLL + biases" in {str(one) for one in entrants.field(X, True, None)}


def test_the_best_priors_meet_the_best_options():
    order = [Entrant("GGGW", "cols"), Entrant("GLL"), Entrant("OGGW"), Entrant("TGGW"),
             Entrant("GEE"), Entrant("GGGW"), Entrant("GGGW", "rows")]  # fmt: skip
    assert [str(one) for one in entrants.crossed(order, Entrant("GGGW"))] == [
        "GLL + noise cols", "GEE + noise cols", "TLL", "TEE"
    ]  # fmt: skip


def test_rounded_values_are_judged_by_probabilities():
    """Those of all categories add up to one, whatever the law."""
    X = np.random.default_rng(0).integers(1, 6, (30, 20)).astype(float)
    matrix = ObservedMatrix.of(X)
    assert recorded.resolution(matrix) == 1.0
    assert recorded.resolution(ObservedMatrix.of(X / 100)) == 0.01
    assert (
        recorded.resolution(ObservedMatrix.of(np.random.default_rng(0).normal(size=X.shape)))
        is None
    )
    cells = np.zeros(41, int), np.arange(41) % 20
    for model in ("GGG", "TGGW"):
        fit = BayesianMF(model, 2, draws=50, burn_in=50, random_state=0).fit(X)
        predictive = Predictive.of(fit.posterior_, units=fit.units_)
        same = cells[0], np.zeros(41, int)
        logs = recorded.log_recorded(predictive, same, np.arange(-17.0, 24.0), 1.0)
        assert np.exp(logs).sum() == pytest.approx(1.0, abs=2e-3)
    limited = BayesianMF("GGG", 2, draws=50, burn_in=50, random_state=0).fit(X, upper=5)
    predictive = Predictive.of(limited.posterior_, units=limited.units_)
    logs = recorded.log_recorded(predictive, same, np.minimum(np.arange(-17.0, 24.0), 5.0), 1.0)
    assert np.exp(logs[:23]).sum() == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize(
    ("model", "transformation"), [("GGG", None), ("TGGW", None), ("GGG", "log")]
)
def test_values_at_an_end_are_judged_by_the_probability_of_what_lies_beyond(model, transformation):
    """Densities between the ends and probabilities at them add up to one, limits known or not."""
    X = np.clip(np.random.default_rng(0).normal(3.0, 1.0, (30, 20)), 2.0, 4.0)
    ends = (2.0, 4.0)
    for limits in ({}, {"lower": 2.0, "upper": 4.0}):
        fit = BayesianMF(model, 2, draws=50, burn_in=50, transformation=transformation,
                         random_state=0).fit(X, **limits)  # fmt: skip
        predictive = Predictive.of(fit.posterior_, units=fit.units_)
        values = np.linspace(2.0, 4.0, 401)
        cells = np.zeros(values.size, int), np.zeros(values.size, int)
        chances = np.exp(recorded.log_recorded(predictive, cells, values, None, ends))
        inner = np.interp(values, values[1:-1], chances[1:-1])
        whole = np.trapezoid(inner, values) + chances[0] + chances[-1]
        assert whole == pytest.approx(1.0, abs=5e-3)
        by_column = recorded.log_recorded(
            predictive, cells, values, None, (tuple([2.0] * 20), tuple([4.0] * 20))
        )
        np.testing.assert_allclose(np.exp(by_column), chances)


@pytest.mark.parametrize("model", ["GGG", "PGG"])
def test_shares_say_which_intervals_hold_a_value(model):
    X = np.random.default_rng(0).poisson(5.0, (12, 9)).astype(float)
    fit = BayesianMF(model, 2, draws=50, burn_in=50, random_state=0).fit(X)
    predictive = Predictive.of(fit.posterior_, units=fit.units_)
    cells = np.repeat(np.arange(12), 9), np.tile(np.arange(9), 12)
    below, to = predictive.shares(cells, X.ravel())
    assert (below <= to).all() and (below < to).all() == (model == "PGG")
    for level in (0.3, 0.9):
        low, high = predictive.quantiles([0.5 - level / 2, 0.5 + level / 2], cells)
        inside = np.maximum(2 * below - 1, 1 - 2 * to) <= level
        assert np.mean(inside == ((low <= X.ravel()) & (X.ravel() <= high))) > 0.97
    some = cells[0][:5], cells[1][:5]  # a few cells, or all of them: two ways to the same means
    np.testing.assert_allclose(predictive.means(cells)[:, :5], predictive.means(some), rtol=1e-12)


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
    assert "A &lt;b&gt;title&lt;/b&gt;" in text
    assert "bayesmf compare x.csv" in re.sub("<[^>]*>", "", text)
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


def test_one_column_in_another_unit_does_not_decide_alone():
    X = matrix(shape=(40, 20))
    X[:, 7] *= 1e4
    found = compare(X, ["GGG", "column-average"], [2], budget="quick")
    assert found.recommendation.startswith("Use GGG with rank 2")
    assert "each divided by the size of its column" in found.recommendation


def test_parts_of_names_are_explained():
    said = entrants.meaning(["NGG + noise cols + biases", "TGGW", "NMF", "mine", "GGG (own 1)"])
    assert list(said) == ["NGG", "TGGW", "NMF", "noise cols", "biases"]
    assert "counts" in said["NGG"] and "outliers" in said["TGGW"]
    assert set(entrants.BASELINES_MEAN) == set(entrants.BASELINES)
    for option in entrants.OPTIONS_MEAN:
        (one,), _ = entrants.read([f"GGGW + {option}"])
        assert str(one) == f"GGGW + {option}"


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
    told = ["each divided by the size of its column" in f.recommendation for f in found]
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


def test_features_are_tried_beside_the_entries_alone():
    """Rows are made by a feature, so that the model that sees it predicts sparse rows better."""
    rng = np.random.default_rng(0)
    known = rng.normal(size=(60, 2))
    X = known @ rng.normal(size=(2, 12)) + rng.normal(0, 0.3, (60, 12))
    X[rng.random(X.shape) < 0.7] = np.nan
    matrix = ObservedMatrix.of(X).with_features(known)
    names = [str(one) for one in entrants.field(matrix, None, None)]
    assert "GGGW + noise cols + biases + features" in names
    assert not any(
        "features" in str(one) for one in entrants.field(ObservedMatrix.of(X), None, None)
    )
    found = compare(
        matrix, ["ggga", "ggga + features", "GEG + features"], [2], folds=2, budget="quick"
    )
    assert found.best_ == "GGGA + features" and "row_features" in found.excluded["GEG + features"]
    assert found.fit_best().posterior_.model.rows.features is not None
    assert found.fit("GGGA").posterior_.model.rows.features is None
    assert (
        "nothing is known"
        in compare(X, ["GGG", "GGG + features"], [1], folds=2, budget="quick").excluded[
            "GGG + features"
        ]
    )
