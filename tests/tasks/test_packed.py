"""Packed files of records: the same records, the same bytes, and no damage that goes unnoticed."""

import json
import lzma
from dataclasses import dataclass

import pytest

from bayesmf import DataError
from bayesmf._versions import versions
from bayesmf.tasks import packed
from bayesmf.tasks.runner import run_all
from bayesmf.tasks.store import Store, Work

N = 5


@dataclass(frozen=True)
class Root(Work):
    number: int

    @property
    def place(self):
        return ("odd" if self.number % 2 else "even",)


TASKS = [Root(k) for k in range(N)]


def rooted(task):
    return {"root": task.number**0.5, "failed": None, "series": [1 / 3, float("inf")]}


def filled(folder, tasks=TASKS):
    store = Store(folder)
    for task in tasks:
        store.add(task, rooted(task), 0.25 * task.number)
    return store


@pytest.fixture
def store(tmp_path):
    return filled(tmp_path / "store")


@pytest.fixture
def file(store, tmp_path):
    assert store.pack(tmp_path / "packed.xz") == N
    return tmp_path / "packed.xz"


def test_records_come_back_as_they_were(store, file, tmp_path):
    below = Store(tmp_path / "new", [file])
    assert dict(below.records(TASKS)) == dict(store.records(TASKS)) and not below.damaged
    assert run_all(rooted, TASKS, below) == 0 and not below.folder.exists()


def test_the_same_records_are_the_same_bytes(file, tmp_path):
    filled(tmp_path / "other", TASKS[::-1]).pack(tmp_path / "other.xz")
    Store(tmp_path / "none", [file]).pack(tmp_path / "again.xz")
    halves = [tmp_path / "first.xz", tmp_path / "second.xz"]
    for half, some in zip(halves, (TASKS[:3], TASKS[2:]), strict=True):
        filled(half.with_suffix(""), some).pack(half)
    Store(tmp_path / "none", halves).pack(tmp_path / "merged.xz")
    for name in ("other", "again", "merged"):
        assert (tmp_path / f"{name}.xz").read_bytes() == file.read_bytes(), name


def test_only_what_is_missing_is_run(tmp_path):
    filled(tmp_path / "half", TASKS[:3]).pack(tmp_path / "half.xz")
    store, done = Store(tmp_path / "store", [tmp_path / "half.xz"]), []
    run_all(rooted, TASKS, store, report=lambda task, seconds: done.append(task))
    assert done == TASKS[3:] and len(list(store.folder.rglob("*.json"))) == 2
    assert store.pack(tmp_path / "all.xz") == N


def test_a_record_takes_few_bytes(tmp_path):
    task = {"experiment": "sparsity", "protocol": "paper", "dataset": "GDSC", "model": "GGG"}
    records = [
        {"task": {**task, "repeat": k % 10, "setting": k // 10 / 100}, "seconds": k % 977 / 1e4,
         "result": {"mse": k**0.5, "r2": k % 991 / 1e6, "rp": k % 983 / 1e6},
         "versions": versions()}
        for k in range(2000)
    ]  # fmt: skip
    packed.write_packed(tmp_path / "packed.xz", records, 1)
    assert (tmp_path / "packed.xz").stat().st_size < 40 * len(records)


def test_versions_are_kept_of_each_record(store, tmp_path, monkeypatch):
    monkeypatch.setattr("bayesmf.tasks.store.versions", lambda: {"bayesmf": "0.0.1"})
    store.add(TASKS[3], rooted(TASKS[3]), 1.0)
    store.pack(tmp_path / "mixed.xz")
    mixed = Store(tmp_path / "new", [tmp_path / "mixed.xz"])
    assert dict(mixed.records(TASKS)) == dict(store.records(TASKS))
    assert mixed.get(TASKS[3])["versions"] == {"bayesmf": "0.0.1"}
    assert set(mixed.get(TASKS[2])["versions"]) > {"bayesmf", "numpy"}


def test_the_folder_lies_above_files_and_the_first_file_above_others(store, file, tmp_path):
    task = TASKS[2]
    late = Store(tmp_path / "late")
    late.add(task, {"root": "late"}, 1.0)
    late.pack(tmp_path / "late.xz")
    both = [tmp_path / "late.xz", file]
    assert Store(tmp_path / "none", both).get(task)["result"] == {"root": "late"}
    assert Store(tmp_path / "none", both[::-1]).get(task)["result"] == rooted(task)
    assert Store(store.folder, both).get(task)["result"] == rooted(task)
    store.path(task).write_text("{")  # what is damaged above is looked for below
    again = Store(store.folder, both)
    assert again.get(task)["result"] == {"root": "late"} and len(again.damaged) == 1


# --- Damage -------------------------------------------------------------------------------------


def lines(file):
    return lzma.decompress(file.read_bytes()).splitlines(keepends=True)


def check_damage(content, file, store, what):
    """A file that is not what it was is refused, or named and used as far as it is right."""
    file.write_bytes(content)
    try:
        found = Store(store.folder / "none", [file])
    except DataError:
        return
    assert found.damaged and str(file) in found.damaged[0], what
    for task, record in found.records(TASKS):
        assert record == store.get(task), what


def test_a_change_of_any_byte_is_noticed(store, file, capsys):
    content = file.read_bytes()
    for k in range(len(content)):
        changed = bytes([content[k] ^ (1 << k % 8)])
        check_damage(content[:k] + changed + content[k + 1 :], file, store, f"byte {k}")
    for k in range(0, len(content), 9):
        check_damage(content[:k], file, store, f"cut at {k}")


def test_a_change_of_any_character_of_a_record_is_noticed(store, file, capsys):
    head, first, *others = lines(file)
    for k in range(len(first) - 1):
        for new in b"7", b"\xff":
            if new != first[k : k + 1]:
                text = head + first[:k] + new + first[k + 1 :] + b"".join(others)
                content = lzma.compress(text, preset=0)
                check_damage(content, file, store, f"character {k}, {new!r}")


def test_damaged_lines_are_named_and_made_again(store, file, tmp_path, capsys):
    text = lines(file)
    text[3] = text[3].replace(b'"seconds":0.5', b'"seconds":0.6')
    text[5] = b"[]\n"
    file.write_bytes(lzma.compress(b"".join(text)))
    found, done = Store(tmp_path / "new", [file]), []
    run_all(rooted, TASKS, found, report=lambda task, seconds: done.append(task))
    assert done == [TASKS[2], TASKS[4]]
    assert [note.partition(" is")[0] for note in found.damaged] == [
        f"Line 4 of {file}", f"Line 6 of {file}",
    ]  # fmt: skip
    assert capsys.readouterr().err.count("bayesmf: Line") == 2


def test_a_file_that_ends_early_is_used_up_to_there(tmp_path, capsys):
    many = [Root(k) for k in range(3000)]
    records = [{"task": {"number": t.number}, "result": {"root": t.number**0.5}, "seconds": 0.0,
                "versions": {}} for t in many]  # fmt: skip
    packed.write_packed(tmp_path / "many.xz", records, 1)
    content = (tmp_path / "many.xz").read_bytes()
    (tmp_path / "many.xz").write_bytes(content[: len(content) // 2])
    found = Store(tmp_path / "new", [tmp_path / "many.xz"])
    assert 1000 < len(found.below) < 2000
    assert "is damaged behind line" in capsys.readouterr().err


def test_damaged_records_are_not_packed(store, tmp_path, capsys):
    store.path(TASKS[0]).write_text("{")
    store.path(TASKS[1]).rename(store.path(TASKS[1]).with_name("other.json"))
    assert store.pack(tmp_path / "packed.xz") == N - 2
    assert len(store.damaged) == 2 and "is left out" in store.damaged[0]
    assert Store(tmp_path / "new", [tmp_path / "packed.xz"]).get(TASKS[0]) is None


# --- What is refused ----------------------------------------------------------------------------


def test_another_version_of_the_tasks_is_refused(store, file, tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"of version 1 of the tasks, and needed are .* version 2"):
        Store(tmp_path / "new", [file], version=2)
    monkeypatch.setattr(packed, "_KIND", "bayesmf records 2")
    with pytest.raises(DataError, match="has bayesmf records 1 of version 1"):
        Store(tmp_path / "new", [file])
    store.version = 2  # nor are records of another version packed as if they were of this one
    assert store.pack(tmp_path / "none.xz") == 0 and len(store.damaged) == N


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "There is no file"),
        (b"", "is no file of packed records"),
        (b"a,b\n1,2\n", "is no file of packed records"),
        (lzma.compress(b""), "is no file of packed records"),
        (lzma.compress(b"a,b\n1,2\n"), "is no file of packed records"),
        (lzma.compress(b"\xff\n"), "is no file of packed records"),
        (lzma.compress(json.dumps({"kind": "bayesmf records 1"}).encode()), "is no file of packed"),
    ],
)
def test_other_files_are_refused(content, message, tmp_path):
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    with pytest.raises(DataError, match=message):
        Store(tmp_path / "new", [tmp_path / "file"])


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        Store(tmp_path / "new", [tmp_path])


def test_a_file_is_written_whole_or_not_at_all(store, file):
    before = file.read_bytes()
    records = [store.get(task) for task in TASKS[:2]]
    with pytest.raises(TypeError):
        packed.write_packed(file, [records[0], {**records[1], "result": object()}], 1)
    assert file.read_bytes() == before
    assert sorted(path.name for path in file.parent.iterdir()) == ["packed.xz", "store"]
