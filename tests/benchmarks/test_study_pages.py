"""Pages on the study: every number from committed tables, and how these are put together."""

import numpy as np
import pytest

from bayesmf.study import crossing
from bayesmf.study.experiments.likelihoods import EXPERIMENT
from bayesmf.tasks.store import Store
from benchmarks import report, revisited_page, study_tables, volume
from tests.study.small import STUDY, reference_results, some_tasks


def test_the_page_on_likelihoods_follows_from_the_committed_folds():
    assert report.apart(revisited_page.PAGE, "revisited")[1] == revisited_page.page()


def test_what_the_page_says_in_short_follows_from_its_tables():
    cells = revisited_page.committed()
    parts = {(r["dataset"], r["measure"], r["part"]): r
             for r in revisited_page.named(crossing.component_table(cells))}  # fmt: skip
    gains = {(r["dataset"], r["measure"], r["choice of"]): r["gain"]
             for r in revisited_page.named(crossing.choice_table(cells))}  # fmt: skip
    ran = {c.dataset for c in cells}
    assert ran == {"CCLE_IC50", "Methylation_GM"}, "the page names what has been run"
    for name in ran:
        prior, likelihood = (parts[name, "log density", p] for p in ("prior", "likelihood"))
        assert likelihood["from"] > 2 * prior["to"]
        assert gains[name, "log density", "likelihood"] > 5 * gains[name, "log density", "prior"]
        found = crossing.block([c for c in cells if c.dataset == name], "log density")
        best = gains[name, "log density", "prior"]
        equal = found.values[:, found.likelihoods.index("equal")]
        good = ("censored", "ordinal") if name == "CCLE_IC50" else ("both",)
        for one in good:
            gain = (found.values[:, found.likelihoods.index(one)] - equal).mean(axis=1)
            assert (gain > best).all()
    error = {name: (gains[name, "log error", "likelihood"], gains[name, "log error", "prior"])
             for name in ran}  # fmt: skip
    assert error["Methylation_GM"][0] > error["Methylation_GM"][1]
    assert error["CCLE_IC50"][0] < error["CCLE_IC50"][1]
    found = crossing.block([c for c in cells if c.dataset == "CCLE_IC50"], "log error")
    middle = np.median(found.values.mean(axis=2), axis=0)
    assert found.likelihoods[int(np.argmax(middle))] == "Student-t"
    words = {(v.claim, v.variant): v for v in crossing.verdicts(cells) if v.dataset == "CCLE_IC50"}
    for claim in ("GGG rises more than GGGA", "GGG rises more than GGGW"):
        assert words[claim, "equal, Poisson"].verdict == "holds"
        assert words[claim, "ordinal, Poisson"].contrast <= 0.0


def test_no_number_of_the_results_is_written_by_hand():
    before, _, after = report.apart(revisited_page.PAGE, "revisited")
    results = {"%", "±"} & set(before.partition("## Methods")[0])
    assert not results and "±" not in before + after


@pytest.mark.parametrize("name", EXPERIMENT.more_tables)
def test_tables_of_likelihoods_follow_from_the_committed_folds(name):
    head, rows = EXPERIMENT.more_tables[name](revisited_page.committed())
    known = study_tables.read(study_tables.RESULTS / "sound" / f"{name}.csv")
    assert known[0] == list(head) and len(known[1]) == len(rows)
    for line, row in zip(known[1], rows, strict=True):
        for text, value in zip(line, row, strict=True):
            if isinstance(value, float) and value == value:
                assert float(text) == pytest.approx(value, rel=1e-3, abs=1e-5)
            else:
                assert text == ("" if value is None or value != value else str(value))


def test_rows_of_another_run_take_the_place_of_the_old_ones():
    head = ["dataset", "model", "setting", "mse"]
    old = (head, [["A", "GGG", "1", "2.5"], ["B", "GGG", "1", "3"], ["A", "GEE", "", "4"]])
    new = (head, [["A", "GGG", 1.0, 7.5], ["B", "GEE", None, 8.5]])
    assert study_tables.merged(old, new) == (
        head,
        [
            ["A", "GGG", 1.0, 7.5],
            ["A", "GEE", None, 4],
            ["B", "GGG", 1, 3],
            ["B", "GEE", None, 8.5],
        ],
    )
    ranks = (["model", "A"], [["GGG", "2"]]), (["model", "B"], [["GGG", 3.0], ["GEE", 4.0]])
    assert study_tables.merged(*ranks) == (
        ["model", "A", "B"], [["GGG", "2", 3.0], ["GEE", None, 4.0]],
    )  # fmt: skip
    assert study_tables.merged(([], []), new) == (head, new[1])


def test_repeats_that_lack_a_task_are_left_out(tmp_path, monkeypatch):
    tasks, found = some_tasks(), reference_results()
    monkeypatch.setattr(
        study_tables, "EXPERIMENTS", {"sparsity": study_tables.EXPERIMENTS["sparsity"]}
    )
    monkeypatch.setattr(study_tables, "expand", lambda name, protocol, budget: tasks)
    store = Store(tmp_path)
    for task in tasks[:-1]:
        store.add(task, found[task.key], 1.0)
    kept = study_tables.whole_repeats(store)
    assert {t.setting for t in kept} == {t.setting for t in tasks} - {tasks[-1].setting}
    assert "sparsity" in STUDY


def test_single_entries_of_a_volume_prior_are_drawn_from_the_printed_conditional():
    rng = np.random.default_rng(0)
    S, G = (a.T @ a for a in rng.normal(size=(2, 9, 4)))
    u, b = rng.normal(size=(2, 4))
    for gamma in (1e-6, 10.0):
        ours, theirs = (list(volume._terms(S, u, G, b, gamma, way)) for way in (False, True))
        for (A, h, scale), (B, g, _) in zip(ours, theirs, strict=True):
            assert A / scale**2 == pytest.approx(B, rel=1e-8)
            assert h / scale**2 == pytest.approx(g, rel=1e-8)
