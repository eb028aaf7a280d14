"""The study: tasks, splits, work, tables and observations, on matrices that ship along."""

import json
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from bayesmf import DataError, ModelError, ObservedMatrix
from bayesmf.cli import main
from bayesmf.study import fitting, masks, observations, published, tables
from bayesmf.study.cells import Cell
from bayesmf.study.estimate import fits, guess, learnt, study_seconds
from bayesmf.study.experiments import EXPERIMENTS, cross_validation
from bayesmf.study.reproduce import expand, plan, reproduce, run
from bayesmf.study.tasks import NARROW, Task, models
from bayesmf.tasks.store import Store
from tests.study.small import SMALL, STUDY, reference_results, results, some_tasks

SPARSITY = {"names": [SMALL], "figures": False, "progress": False}


@pytest.fixture(scope="module")
def reference():
    """Results of the small protocol, run in this process."""
    return reference_results()


# --- Tasks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["paper", "sound"])
@pytest.mark.parametrize("experiment", STUDY)
def test_quick_tasks_are_full_ones_and_leave_out_no_model(experiment, protocol):
    quick, full = (expand(experiment, protocol, budget) for budget in ("quick", "full"))
    assert len({task.key for task in full}) == len(full)
    same = (
        quick if experiment == "runtime" else [replace(t, inner=5 if t.inner else 0) for t in quick]
    )
    assert {task.key for task in same} <= {task.key for task in full}
    wanted = set(models(protocol, averages=experiment not in ("runtime", "model_selection")))
    if experiment == "runtime":
        wanted.discard(NARROW)
    for dataset in EXPERIMENTS[experiment].datasets:
        here = {task.model for task in quick if task.dataset == dataset}
        left_out = wanted - here
        assert not left_out or (experiment, dataset) == ("noise", "MovieLens_100K")
        settings_of = [{t.setting for t in some if t.dataset == dataset} for some in (quick, full)]
        assert settings_of[0] == settings_of[1]


def test_numbers_of_the_study():
    assert published.candidates()["GGGW", "GDSC"] == (14, 15, 16, 17)
    assert published.candidates()["NMF", "Methylation_PM"] == (1, 2, 3, 4, 5)
    assert len(published.candidates()) == 17 * 8
    assert published.length("cross_validation", "GDSC", "", "GLL") == (250, 200, 1)
    assert published.length("model_selection", "GDSC", "", "GGG") == (200, 180, 2)
    assert published.length("noise", "MovieLens_100K", "perModelK", "PGG") == (70, 50, 1)
    assert published.gamma("sparsity", "MovieLens_100K", "perModelK") == 1e-30
    assert published.gamma("sparsity", "MovieLens_100K", "sameK") == 1.0
    assert published.own_rank("GDSC", "GGGA") in published.candidates()["GGGA", "GDSC"]
    assert len(published.errors()) == 1446
    assert published.runtimes()["GDSC", "GGG", 20] == 0.2882
    assert len(published.training()["GDSC", "GGG"][1]) == 65
    task = Task("cross_validation", "paper", "GDSC", "GVG", inner=5)
    assert fitting.hyperparameters(task) == {"gamma": 5e-31}
    assert fitting.hyperparameters(replace(task, protocol="sound")) == {"gamma": 1e-30}
    assert fitting.hyperparameters(replace(task, model="GTTN")) == {"a": 1.5}
    assert fitting.hyperparameters(replace(task, model="GLL", protocol="sound")) == {}
    assert fitting._chain(published.Length(200, 180, 2)) == {"draws": 10, "burn_in": 180, "thin": 2}


def test_bad_requests_are_refused():
    with pytest.raises(ModelError, match="Unknown experiment"):
        expand("nonsense", "paper")
    with pytest.raises(ModelError, match="protocol must be paper or sound"):
        expand("noise", "best")
    with pytest.raises(ModelError, match="Did you mean 'GGGA'"):
        plan(["noise"], "paper", "quick", models=["GGGAA"])
    with pytest.raises(DataError, match="no dataset"):
        plan(["noise"], "paper", "quick", names=["GDSK"])


# --- Splits -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def matrix():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 30))
    X[rng.random(X.shape) < 0.6] = np.nan
    return ObservedMatrix.of(X)


def test_stratified_folds_spread_every_column(matrix):
    fold = masks.stratified(matrix, 5, np.random.default_rng(1))
    cols = matrix.triples()[1]
    counts = np.array([np.bincount(fold[cols == j], minlength=5) for j in range(30)])
    assert (np.ptp(counts, axis=1) <= 1).all()
    assert np.ptp(np.bincount(fold)) < 0.2 * matrix.n_observed / 5
    assert np.ptp(np.bincount(masks.plain(matrix, 5, np.random.default_rng(1)))) <= 1


def test_random_splits_have_the_size_of_the_study(matrix):
    held = masks.random_split(matrix, 0.8, np.random.default_rng(0))
    assert np.sum(~held) == 30 + int(40 * 30 * (1 - 0.8))
    train = matrix.take(~held)
    assert not train.empty_rows.any() and not train.empty_cols.any()
    with pytest.raises(DataError, match="left a row or column"):
        masks.random_split(matrix, 0.99, np.random.default_rng(0))


def test_models_share_splits_in_the_sound_protocol_alone():
    for protocol, shared in (("paper", False), ("sound", True)):
        tasks = [Task("sparsity", protocol, SMALL, m, 0, 0.7, 2, "sameK") for m in ("GGG", "GEE")]
        draws = [fitting.split_generator(t, "sparsity", 0.7, 0).random() for t in tasks]
        assert (draws[0] == draws[1]) == shared


# --- Work ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["paper", "sound"])
@pytest.mark.parametrize("experiment", STUDY)
def test_every_experiment_runs(experiment, protocol, monkeypatch):
    monkeypatch.setattr(fitting, "_ROUNDS", ((20, 20), (20, 30)))
    monkeypatch.setattr(fitting, "_INNER", (5, 5))
    monkeypatch.setattr(cross_validation, "INNER_RANKS", (1, 3))
    monkeypatch.setattr(published, "length", lambda *place: published.Length(20, 10))
    wanted = ("GGG", "PGG", "NMF", "row_average")
    tasks = [t for t in expand(experiment, protocol, "quick", SMALL) if t.model in wanted]
    last = {t.model: t for t in tasks if t.model != "PGG" or experiment == "noise"}
    monkeypatch.setattr(fitting, "_MAPPED", {})
    for task in last.values():
        result = run(task)
        assert "failed" not in result, result
        if experiment == "convergence":
            assert len(result["train_mse"]) == 200
        elif experiment == "runtime":
            assert 0 < result["seconds"] < 1
        else:
            assert result["mse"] > 0
        if (
            protocol == "sound"
            and task.model == "GGG"
            and experiment not in ("convergence", "runtime")
        ):
            assert result["rhat"] > 0
        if experiment == "cross_validation" and task.model == "GGG":
            assert result["rank"] in (1, 3) and set(result["inner"]) == {"1", "3"}
        if experiment == "noise":
            assert result["score"] > 0 and result["mse_clean"] > 0
        again = run(task)
        assert experiment in ("convergence", "runtime") or again == result


def test_what_cannot_be_split_or_computed_is_a_result():
    task = Task("sparsity", "paper", SMALL, "GGG", 0, 0.999, 2, "sameK")
    assert run(task) == {
        "mse": None,
        "failed": "1000 random splits all left a row or column without training data.",
    }


# --- Runs that are stopped -----------------------------------------------------------------------


def test_a_run_killed_three_times_ends_with_the_same_tables(tmp_path, reference):
    command = [
        sys.executable, "-m", "bayesmf.cli", "reproduce", "sparsity", "--datasets", SMALL,
        "--models", "GGG,GEE,NMF,row_average,column_average", "--no-figures", "--quiet",
        "--output", str(tmp_path),
    ]  # fmt: skip
    store = Store(tmp_path / "store")
    for _ in range(3):
        process = subprocess.Popen(command)
        before = len(list(tmp_path.rglob("*.json")))
        while process.poll() is None and len(list(tmp_path.rglob("*.json"))) < before + 2:
            time.sleep(0.01)
        process.kill()
        process.wait()
    assert 0 < len(list(tmp_path.rglob("*.json"))) < len(some_tasks())
    assert subprocess.run(command, check=False).returncode == 0
    assert results(store, some_tasks()) == reference
    table = (tmp_path / "tables/paper/sparsity.csv").read_text()
    assert table.count("\n") == 1 + 5 * 3


# --- Tables and observations --------------------------------------------------------------------


def cell(model="GGG", values=(1.0, 1.1, 0.9), setting=None, study=None, **more):
    known = {"protocol": "paper", "experiment": "cross_validation", "dataset": "GDSC"}
    fields = {**known, "variant": "", "failed": 0, "rhat": None, "ranks": (), "edges": 0}
    return Cell(
        **{**fields, **more}, model=model, setting=setting, values=tuple(values),
        repeats=tuple(range(len(values))), seconds=1.0, published=study,
    )  # fmt: skip


def test_cells_are_compared_with_the_published_ones():
    near = cell(study=published.Published(5, 1.05, 0.1, 1.05, 0.9, 1.2))
    error = np.hypot(near.error, 0.1 / 5**0.5)
    assert near.distance == pytest.approx((1.0 - 1.05) / error)
    wild = cell(study=published.Published(10, 500.0, 900.0, 1.0, 0.9, 4000.0))
    assert wild.by_median and wild.distance == pytest.approx(0.0)
    far = cell(values=(2.0, 2.1, 2.2), study=published.Published(5, 1.0, 0.1, 1.0, 0.9, 1.1))
    apart = cell("GGGW", (9.0, 9.1), study=published.Published(5, 1.0, 0.1, 1.0, 0.9, 1.1))
    found = tables.agreement([near, wild, far, apart, cell()])
    assert (found["cells"], found["within"]) == (3, 2)
    assert found["outside"] == [far, apart] and found["apart"] == [apart]


def test_tables_are_written_with_ranks_and_gaps(tmp_path):
    some = [cell(ranks=(3, 4, 4)), cell("GEE", (), failed=3, ranks=())]
    written = tables.write_results(tmp_path, some)
    assert {path.name for path in written} == {
        "cross_validation.csv", "cross_validation.md", "chosen_ranks.csv", "chosen_ranks.md",
    }  # fmt: skip
    lines = (tmp_path / "paper/cross_validation.csv").read_text().splitlines()
    assert lines[1].startswith("GDSC,,GGG,,3,0,1.0,") and ",3 4 4," in lines[1]
    assert lines[2].startswith("GDSC,,GEE,,0,3,,,,")
    assert "| GGG | 3.667 |" in (tmp_path / "paper/chosen_ranks.md").read_text()


def test_observations_are_judged_with_their_errors():
    rng = np.random.default_rng(0)
    split = rng.normal(0, 0.3, 10)  # what all models share

    def selection(model, errors, protocol="sound"):
        return [
            cell(model, np.exp(np.log(e) + split + rng.normal(0, 0.005, 10)), setting=k,
                 experiment="model_selection", protocol=protocol)
            for k, e in errors.items()
        ]  # fmt: skip

    found = [
        *selection("GGG", {1: 1.2, 10: 1.0, 30: 1.5}),
        *selection("GGGA", {1: 1.2, 10: 1.0, 30: 1.01}),
        *selection("GGGW", {1: 1.2, 10: 1.0, 30: 1.5}),
        *selection("GEG", {1: 1.2, 10: 1.0, 30: 1.5}),
        *selection("GGGU", {1: 1.4, 10: 1.2, 30: 1.8}),
    ]
    words = {(v.observation, v.claim): v.verdict for v in observations.judge(found)}
    assert words[5, "GGG rises more than GGGA"] == "holds"
    assert words[5, "GGG rises more than GGGW"] == "undecided"
    assert words[3, "GGG and GEG"] == "holds"
    assert words[4, "by rank"] == "fails"
    apart = [c._replace(protocol="paper") for c in found]  # unpaired, the splits are noise
    words = {(v.observation, v.claim): v.verdict for v in observations.judge(apart)}
    assert words[3, "GGG and GEG"] == "undecided"
    holes = [
        c._replace(values=c.values[1:], repeats=c.repeats[1:]) if c.model == "GEG" else c
        for c in found
    ]  # a failed repeat moves no pair
    words = {(v.observation, v.claim): v.verdict for v in observations.judge(holes)}
    assert words[3, "GGG and GEG"] == "holds"
    few = [c._replace(values=c.values[:1], repeats=(0,)) for c in found]
    assert {v.verdict for v in observations.judge(few)} == {"undecided"}


# --- One call -----------------------------------------------------------------------------------


def test_reproduce_and_again_from_a_full_store(tmp_path):
    options = {**SPARSITY, "models": ["row_average", "GGG"], "folder": tmp_path}
    first = reproduce(["sparsity"], **options)
    assert first["done"] == 6 and not first["absent"]
    second = reproduce(["sparsity"], **options)
    assert second["done"] == 0 and second["gallery"] is None
    assert [c.values for c in second["cells"]] == [c.values for c in first["cells"]]


def test_absent_matrices_are_left_out_and_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BAYESMF_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["reproduce", "noise", "--dry-run", "--output", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "0 tasks" in out and "GDSC" in out.splitlines()[-1]


def test_a_dry_run_prints_tasks_and_times(tmp_path, capsys):
    arguments = ["--datasets", SMALL, "--models", "GGG,NMF", "--output", str(tmp_path)]
    assert main(["reproduce", "sparsity", "--dry-run", *arguments]) == 0
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 7
    assert out[0].endswith(" s  paper sparsity drug_sensitivity sameK GGG at 0.5 (1 tasks)")
    assert "6 tasks, 6 of them to be run" in out[-1]
    assert not list(tmp_path.iterdir())
    task = some_tasks()[0]
    assert 0 < guess(task) < 60 and study_seconds(task) > 0
    assert fits(replace(task, model="row_average")) == []


def test_an_estimate_learns_from_what_is_done():
    task = some_tasks()[0]
    other = replace(task, model="GVG")
    length = learnt([(task, {"seconds": 3 * guess(task)}), (task, {"seconds": guess(task)})])
    assert length(replace(task, repeat=7)) == pytest.approx(2 * guess(task))
    assert length(other) == guess(other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "Unknown experiment 'nonsense'"),
        (["noise", "--models", "GGGG"], "Unknown model 'GGGG'"),
        (["noise", "--datasets", "GDSK"], "no dataset 'GDSK'"),
    ],
)
def test_bad_commands_end_with_one_sentence(arguments, message, capsys, tmp_path):
    assert main(["reproduce", *arguments, "--output", str(tmp_path / "new")]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_datasets_are_listed(capsys):
    assert main(["datasets"]) == 0
    assert "drug_sensitivity" in capsys.readouterr().out
    assert main(["datasets", "--json"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} >= {"GDSC", "digits"}
