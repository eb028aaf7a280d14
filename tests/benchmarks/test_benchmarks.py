"""The benchmark scripts still run, on small data and without peers; no figure is checked."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from bayesmf.model.presets import PAPER
from bayesmf.splits import holdout
from benchmarks import (
    fetching,
    first_use,
    memory,
    poisson,
    report,
    run,
    study,
    study_page,
    sweep,
    versions,
)
from benchmarks.common import ROOT, MissingError, load, read_json
from benchmarks.mixing import compare, effective_size
from benchmarks.report import RESULTS, Options, claim

OWN = [name for name, part in run.PARTS.items() if not part.bench]  # parts with a file of their own
SHORT = ("sweep", "study", "hardware", "mixing", "scaling", "accuracy", "chains", "compare",
         "coverage", "evidence", "families", "features", "feature_sweeps", "gdsc", "likelihoods",
         "noise", "simulated", "tables", "tempering")  # fmt: skip


@pytest.fixture
def quick(tmp_path) -> Options:
    return Options(repeats=1, peers=False, quick=True, images=tmp_path)


@pytest.mark.parametrize("name", SHORT)
def test_a_part_runs_and_its_result_can_be_written(name, quick):
    result = run.module(name).part(quick)
    assert result["tables"] and json.loads(json.dumps(result, default=float))
    for entry in result["tables"]:
        assert {len(row) for row in entry["rows"]} == {len(entry["header"])}, entry["title"]


def test_every_part_keeps_to_the_protocol():
    for name, part in run.PARTS.items():
        module = run.module(name)
        assert module.__doc__ and callable(module.part), name
        assert part.bench or callable(module.tables), name
    assert set(run.BENCH) == set(read_json(RESULTS / "bench.json")["parts"])


@pytest.mark.parametrize("name", OWN)
def test_files_that_are_there_can_be_read(name):
    found = read_json(RESULTS / f"{name}.json")
    assert not found or all(entry["rows"] for entry in run.module(name).tables(found))


def test_the_poisson_comparison_reaches_what_it_can_and_says_what_it_cannot(quick):
    train, entries = holdout(load("movielens", quick=True).X, 0.1, random_state=0)
    test = poisson.HeldOut(*entries)
    for X in (train, poisson.with_zeros(train)):
        easy = poisson.ours(-50.0, X, test, "PGGG", 3, quick)
        assert easy["seconds"] > 0 and easy["log_likelihood"] > -50
        assert poisson.ours(0.0, X, test, "PGGG", 3, quick)["seconds"] is None


def test_first_use_and_memory_measure_something(monkeypatch):
    assert 0 < first_use.until_imported() < first_use.until_first_sweep("GGGA", 0.3)
    monkeypatch.setattr(memory, "SHAPE", (60, 40))
    monkeypatch.setattr(memory, "OBSERVED", 500)
    assert memory.sample_here("GGGA", 1)["peak"] > 0


def test_the_runner_writes_resumes_and_quotes(quick, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "commit_of", lambda _: "0123456789ab")
    stem = tmp_path / "bench"
    first = run.run(["study"], quick, stem, resume=False)
    assert "GGG" in stem.with_suffix(".md").read_text()
    again = run.run(["study", "poisson"], quick, stem, resume=True)
    assert "kept from the run before" in capsys.readouterr().out
    assert list(again["parts"]) == ["study", "poisson"]
    assert again["parts"]["study"]["seconds"] == first["parts"]["study"]["seconds"]
    page = tmp_path / "README.md"
    begin, end = "<!-- benchmark: begin -->", "<!-- benchmark: end -->"
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    for _ in range(2):
        report.quote(page, "benchmark", report.everything(again))
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert text.count("## Targets") == 1


def test_a_part_that_fails_is_reported_and_run_again(quick, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "commit_of", lambda _: "0123456789ab")
    monkeypatch.setattr(study, "part", lambda options: 1 / 0)
    stem = tmp_path / "bench"
    run.run(["study"], quick, stem, resume=False)
    assert "Failed: ZeroDivisionError" in stem.with_suffix(".md").read_text()
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert run.earlier(stem.with_suffix(".json"), {}) == {}


def test_parts_of_another_commit_are_kept_and_said_to_be(quick, tmp_path, monkeypatch):
    stem = tmp_path / "bench"
    for commit, part in (("0123", "study"), ("4567", "poisson")):
        monkeypatch.setattr(run, "commit_of", lambda _, commit=commit: commit)
        found = run.run([part], quick, stem, resume=True)
    assert "; commit 0123: study; commit 4567: poisson." in report.everything(found)
    monkeypatch.setattr(run, "version", lambda name: "another")
    assert list(run.run(["poisson"], quick, stem, resume=True)["parts"]) == ["poisson"]


def test_claims_know_their_bounds():
    assert claim("a", 4.0, least=4)["met"] and not claim("a", 3.9, least=4)["met"]
    assert claim("a", 1.0, most=1)["met"] and not claim("a", None, most=1)["met"]
    assert not claim("a", 1.06, least=0.95, most=1.05)["met"]
    assert claim("a", 1.0, least=0.95, most=1.05)["target"] == "0.95 to 1.05"


def test_the_page_quotes_the_last_benchmark():
    page = ROOT / "docs" / "performance.md"
    results = read_json(RESULTS / "bench.json")
    assert report.apart(page, "benchmark")[1] == report.everything(results)


@pytest.mark.parametrize("name", [name for name, part in run.PARTS.items() if part.readme])
def test_the_readme_quotes_the_last_figures_in_short(name):
    made = run.module(name).in_short(run.on_file(name, RESULTS))
    assert report.apart(ROOT / "README.md", name)[1] == report.bare(made)
    assert len(made["rows"]) <= 6


@pytest.mark.parametrize(
    ("name", "page"), [(name, page) for name in OWN for page in run.PARTS[name].pages]
)
def test_pages_quote_the_files_of_single_parts(name, page):
    found = run.module(name).tables(read_json(RESULTS / f"{name}.json"))
    assert report.apart(ROOT / page, name)[1] == report.tables_block(found)


def test_on_every_matrix_the_best_method_has_biases():
    for found in read_json(RESULTS / "accuracy.json")["errors"].values():
        best = {
            method: min(np.mean(run["errors"]) for run in by_rank.values())
            for method, by_rank in found.items()
        }
        assert "biases" in min(best, key=best.__getitem__)


def call(monkeypatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["run", *map(str, words)])
    run.main()


def test_a_part_alone_is_written_to_its_own_file_and_keeps_other_matrices(
    tmp_path, monkeypatch, capsys
):
    own = tmp_path / "quick.accuracy.json"
    own.write_text(json.dumps({"errors": {"ccle": {}}}))
    words = ("accuracy", "--quick", "--models", "GGG", "--ranks", "2,3", "--no-peers")
    call(monkeypatch, *words, "--out", tmp_path)
    found = read_json(own)
    assert list(found["errors"]) == ["ccle", "gdsc"] and "machine" in found
    assert list(found["errors"]["gdsc"]["GGG, biases"]) == ["2", "3"]
    assert "K = 3" in capsys.readouterr().out


def test_a_choice_of_models_is_not_put_among_the_figures_of_the_benchmark(
    tmp_path, monkeypatch, capsys
):
    words = ("sweep", "--quick", "--repeats", 1, "--models", "GEE", "--data", "gdsc", "--no-peers")
    call(monkeypatch, *words, "--out", tmp_path)
    assert "GEE" in capsys.readouterr().out and not list(tmp_path.iterdir())
    call(monkeypatch, *words, "--json", tmp_path / "one.json")
    assert [r["name"] for r in read_json(tmp_path / "one.json")["data"]] == ["GEE"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "no part 'nothing'"),
        (["study", "--models", "GGG"], "--models is for memory, sweep"),
        (["compare", "--data", "iris"], "no data 'iris'"),
        (["accuracy", "--ranks", "five"], "invalid"),
        (["chains", "fetching", "--json", "x"], "--json is for one part"),
    ],
)
def test_what_a_part_does_not_know_is_refused(words, message, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        call(monkeypatch, *words)
    assert message in capsys.readouterr().err


def test_a_part_without_what_it_needs_says_so_and_leaves_its_file(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("BAYESMF_DATA", raising=False)
    with pytest.raises(SystemExit, match="failed: gdsc, versions"):
        call(monkeypatch, "gdsc", "versions", "--out", tmp_path)
    said = capsys.readouterr()
    assert "set BAYESMF_DATA" in said.out and "--other" in said.out and "Trace" not in said.err
    assert not list(tmp_path.iterdir())


def test_two_source_trees_are_timed_in_turns(quick, tmp_path, monkeypatch):
    seconds = iter([4.0, 2.0, 2.0, 1.0])  # new, then old: first use, cached
    monkeypatch.setattr(versions, "until_first_sweep", lambda model, **environment: next(seconds))
    found = versions.part(quick._replace(other=ROOT / "src", models=("GGG", "GEE")))
    assert [entry["note"][:13] for entry in found["tables"]] == 3 * ["Largest ratio"]
    assert {(r["model"], r["threads"]) for r in found["data"]["sweeps"]} == {
        (model, threads) for model in ("GGG", "GEE") for threads in (1, 2)
    }
    assert all(r["ratio"] == r["new"] / r["old"] and r["finite"] for r in found["data"]["sweeps"])
    assert [r["ratio"] for r in found["data"]["starts"]] == [2.0, 2.0]
    with pytest.raises(MissingError, match="no bayesmf there"):
        versions.part(quick._replace(other=tmp_path))


def test_fetching_ahead_is_compared_with_kernels_that_never_ask():
    assert set(fetching.sweeps(5000, "with")) == set(fetching.MODELS)
    with pytest.raises(RuntimeError, match="loaded already"):
        fetching.sweeps(5000, "without")


def test_a_peer_is_beside_the_preset_with_its_model():
    ms = {("GGGW", "gdsc", 5): 2.0, ("GGGW", "ccle", 5): None}
    ms |= {("smurff", "gdsc", 5): 9.0, ("smurff", "ccle", 5): 1.0}
    rows, claims = sweep.beside(ms, "GGGW", "smurff", [("gdsc", 5), ("ccle", 5)])
    assert rows == [["SMURFF", 9.0, 1.0], ["*times faster*", "4.5", None]]
    assert [(c["what"], c["value"]) for c in claims] == [("SMURFF / GGGW, gdsc, K = 5", 4.5)]


def test_the_study_s_runtimes_and_targets_cover_every_model():
    wanted = {
        (model, dataset, rank)
        for model in (*PAPER, "NMF")
        for dataset in study.NAMES
        for rank in study.RANKS
    }
    assert set(study.published()) == wanted
    grouped = [model for group in study.GROUPS for model in group.models]
    assert sorted(grouped) == sorted([*PAPER, "NMF"])


def test_the_effective_size_of_an_autoregression_is_known():
    rng = np.random.default_rng(0)
    draws = np.zeros((4001, 100))
    for t in range(1, len(draws)):
        draws[t] = 0.8 * draws[t - 1] + rng.normal(size=100)
    assert effective_size(draws).mean() == pytest.approx(4000 * 0.2 / 1.8, rel=0.1)
    assert effective_size(rng.normal(size=(4000, 100))).mean() == pytest.approx(4000, rel=0.1)


def test_effective_samples_of_different_posteriors_are_not_compared():
    cells = np.random.default_rng(0).normal(size=100)
    one = {"dataset": "d", "per_second": 8.0, "means_of_cells": cells, "sds_of_cells": [1.0] * 100}
    assert compare(one, one | {"per_second": 2.0})["value"] == 4.0
    for wrong in ({"sds_of_cells": [0.5] * 100}, {"means_of_cells": cells[::-1]}):
        found = compare(one, one | wrong)
        assert found["value"] is None and not found["met"] and "not comparable" in found["what"]


def test_the_page_of_the_study_quotes_its_results():
    assert report.apart(ROOT / "docs" / "study.md", "study")[1] == study_page.page()
    found = study_page.rows_of("paper", "cross_validation")
    assert "68 of 68 published cells (100%)" in study_page.agreement(found)
    ranks = study_page.rows_of("paper", "model_selection")
    assert "147 of 150 published cells (98%)" in study_page.agreement(ranks)
    for name in ("cross_validation", "model_selection"):
        sound = study_page.no_worse(study_page.rows_of("sound", name))
        assert "16 of 16" in sound and "worse:" not in sound
