"""The study's records in one file: the same tables, and only what is missing is run."""

import pytest

from bayesmf import DataError
from bayesmf.cli import main
from bayesmf.study.reproduce import open_store, pack, plan, reproduce
from bayesmf.tasks.store import Store
from benchmarks import study_tables
from tests.study.small import SMALL, some_tasks

MODELS = ["row_average", "column_average", "NMF"]
ASKED = {"names": [SMALL], "models": MODELS, "figures": False, "progress": False}
ARGUMENTS = ["reproduce", "sparsity", "--datasets", SMALL, "--models", ",".join(MODELS),
             "--no-figures", "--output"]  # fmt: skip


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder of the study, and its records packed."""
    root = tmp_path_factory.mktemp("study")
    assert reproduce(["sparsity"], folder=root / "whole", **ASKED)["done"] == 9
    assert pack(root / "whole", root / "records.jsonl.xz") == 9
    return root


def tables(folder):
    """What all tables hold, byte for byte."""
    return {p.name: p.read_bytes() for p in (folder / "tables").rglob("*") if p.is_file()}


def test_packed_records_give_the_same_tables(study, tmp_path):
    found = reproduce(["sparsity"], folder=tmp_path, records=[study / "records.jsonl.xz"], **ASKED)
    assert found["done"] == 0 and not (tmp_path / "store").exists()
    assert tables(tmp_path) == tables(study / "whole")


def test_a_run_goes_on_from_a_packed_file(study, tmp_path, capsys):
    file, half = study / "records.jsonl.xz", tmp_path / "half"
    assert main([*ARGUMENTS[:5], "row_average", *ARGUMENTS[6:], str(half)]) == 0
    assert main(["reproduce", "--output", str(half), "--pack", str(tmp_path / "half.xz")]) == 0
    assert "3 records were written to" in capsys.readouterr().out
    new = [*ARGUMENTS, str(tmp_path / "new"), "--records", str(tmp_path / "half.xz")]
    assert main([*new, "--dry-run"]) == 0
    assert "9 tasks, 6 of them to be run" in capsys.readouterr().out
    assert main(new) == 0
    assert "6 tasks were run" in capsys.readouterr().out
    assert len(list((tmp_path / "new").rglob("*.json"))) == 6
    assert main(["reproduce", "--output", str(tmp_path / "new"), "--records",
                 str(tmp_path / "half.xz"), "--pack", str(tmp_path / "all.xz")]) == 0  # fmt: skip
    tasks = plan(["sparsity"], "paper", "quick", [SMALL], MODELS)[0]
    one, other = (dict(open_store(tmp_path / "none", [f]).records(tasks))
                  for f in (file, tmp_path / "all.xz"))  # fmt: skip
    assert [r["result"] for r in one.values()] == [r["result"] for r in other.values()]
    assert len(one) == 9


def test_records_of_matrices_that_are_not_here_are_used(study, tmp_path, monkeypatch):
    monkeypatch.setattr("bayesmf.datasets.present", lambda name: False)
    found = reproduce(["sparsity"], folder=tmp_path, records=[study / "records.jsonl.xz"], **ASKED)
    assert found["absent"] == [] and len(found["cells"]) == 9
    asked = {**ASKED, "models": [*MODELS, "GGG"]}
    found = reproduce(["sparsity"], folder=tmp_path, records=[study / "records.jsonl.xz"], **asked)
    assert found["absent"] == [SMALL] and len(found["cells"]) == 9


def test_tables_of_the_results_come_from_packed_records(study, monkeypatch):
    tasks = [task for task in some_tasks() if task.model in MODELS]
    only = {"sparsity": study_tables.EXPERIMENTS["sparsity"]}
    monkeypatch.setattr(study_tables, "EXPERIMENTS", only)
    monkeypatch.setattr(study_tables, "expand", lambda name, protocol, budget: tasks)
    packed = study_tables.whole_repeats(study_tables.opened(study / "records.jsonl.xz"))
    assert packed == study_tables.whole_repeats(Store(study / "whole/store")) and len(packed) == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pack", "new.xz"], "study/store has no records to pack"),
        (["noise", "--pack", "new.xz"], "--pack takes all records of a folder"),
        (["--models", "GGG", "--pack", "new.xz"], "--pack takes all records of a folder"),
        (["noise", "--records", "none.xz"], "There is no file none.xz"),
        (["noise", "--dry-run", "--records", "table.csv"], "table.csv is no file of packed"),
    ],
)
def test_bad_commands_end_with_one_sentence(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("a,b\n")
    assert main(["reproduce", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err and captured.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_a_library_call_names_what_it_cannot_pack(tmp_path):
    with pytest.raises(DataError, match="has no records to pack"):
        pack(tmp_path / "none", tmp_path / "new.xz")
    assert not (tmp_path / "new.xz").exists()
