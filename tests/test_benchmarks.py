"""The benchmark scripts still run, on small data and without peers; no figure is checked."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import _report
import accuracy
import chains
import fetching
import first_use
import memory
import poisson
import run
import study
import study_page
from _common import load
from _report import Options, claim
from bayesmf.presets import PAPER
from bayesmf.splits import holdout
from mixing import compare, effective_size

ROOT = Path(__file__).parents[1]


@pytest.fixture
def quick(tmp_path) -> Options:
    return Options(repeats=1, peers=False, quick=True, images=tmp_path)


@pytest.mark.parametrize("name", ["sweep", "study", "hardware", "mixing", "scaling"])
def test_a_part_runs_and_its_result_can_be_written(name, quick):
    result = import_module(name).part(quick)
    assert result["tables"] and json.loads(json.dumps(result, default=float))
    for entry in result["tables"]:
        assert {len(row) for row in entry["rows"]} == {len(entry["header"])}, entry["title"]


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
    monkeypatch.setattr(run, "commit", lambda: "0123456789ab")
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
        _report.quote(page, "benchmark", _report.readme_block(again))
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert text.count("Times faster than") == 1


def test_a_part_that_fails_is_reported_and_run_again(quick, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "commit", lambda: "0123456789ab")
    monkeypatch.setattr(study, "part", lambda options: 1 / 0)
    stem = tmp_path / "bench"
    run.run(["study"], quick, stem, resume=False)
    assert "Failed: ZeroDivisionError" in stem.with_suffix(".md").read_text()
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert run.earlier(stem.with_suffix(".json"), {}) == {}


def test_parts_of_another_commit_are_kept_and_said_to_be(quick, tmp_path, monkeypatch):
    stem = tmp_path / "bench"
    for commit, part in (("0123", "study"), ("4567", "poisson")):
        monkeypatch.setattr(run, "commit", lambda commit=commit: commit)
        found = run.run([part], quick, stem, resume=True)
    assert "; commit 0123: study; commit 4567: poisson." in _report.everything(found)
    monkeypatch.setattr(run, "version", lambda name: "another")
    assert list(run.run(["poisson"], quick, stem, resume=True)["parts"]) == ["poisson"]


def test_claims_know_their_bounds():
    assert claim("a", 4.0, least=4)["met"] and not claim("a", 3.9, least=4)["met"]
    assert claim("a", 1.0, most=1)["met"] and not claim("a", None, most=1)["met"]
    assert not claim("a", 1.06, least=0.95, most=1.05)["met"]
    assert claim("a", 1.0, least=0.95, most=1.05)["target"] == "0.95 to 1.05"


@pytest.mark.parametrize(
    ("page", "made"),
    [("README.md", _report.readme_block), ("docs/performance.md", _report.everything)],
)
def test_pages_quote_the_last_benchmark(page, made):
    results = json.loads((_report.RESULTS / "bench.json").read_text())
    assert _report.apart(ROOT / page, "benchmark")[1] == made(results)


@pytest.mark.parametrize("page", ["README.md", "docs/estimators.md"])
def test_pages_quote_the_last_comparison_with_peers(page):
    results = json.loads(accuracy.FOUND.read_text())["errors"]
    assert _report.apart(ROOT / page, "accuracy")[1] == accuracy.as_markdown(results)
    for found in results.values():
        best = {
            method: min(np.mean(run["errors"]) for run in by_rank.values())
            for method, by_rank in found.items()
        }
        assert "biases" in min(best, key=best.__getitem__)


def test_the_page_quotes_what_a_second_chain_costs():
    found = json.loads(chains.FOUND.read_text())
    assert _report.apart(_report.PAGE, "chains")[1] == chains.as_markdown(found)


def test_the_page_quotes_what_fetching_ahead_brings():
    found = json.loads(fetching.FOUND.read_text())
    assert _report.apart(_report.PAGE, "fetching")[1] == fetching.as_markdown(found)


def test_fetching_ahead_is_compared_with_kernels_that_never_ask():
    assert set(fetching.sweeps(5000, "with")) == set(fetching.MODELS)
    with pytest.raises(RuntimeError, match="loaded already"):
        fetching.sweeps(5000, "without")


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
    assert _report.apart(ROOT / "docs" / "study.md", "study")[1] == study_page.page()
    found = study_page.rows_of("paper", "cross_validation")
    assert "51 of 51 published cells (100%)" in study_page.agreement(found)
    ranks = study_page.rows_of("paper", "model_selection")
    assert "147 of 150 published cells (98%)" in study_page.agreement(ranks)
    for name in ("cross_validation", "model_selection"):
        sound = study_page.no_worse(study_page.rows_of("sound", name))
        assert "16 of 16" in sound and "worse:" not in sound
