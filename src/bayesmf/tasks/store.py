"""The store: one file per task, with its result, seconds and versions.

A record is written whole or not at all, and carries the hash of its own content: one that is cut,
changed or of another task is never trusted, but named on standard error and done again. Below the
folder may lie packed files: what the folder lacks is looked for there.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from bayesmf._cached import cached_property
from bayesmf._files import sealed, unsealed, write_text
from bayesmf._versions import versions
from bayesmf.tasks.packed import Record, read_packed, write_packed

_DECIMALS = 4  # of seconds


@dataclass(frozen=True)
class Work:
    """A piece of work that a store can hold: plain data, known by the hash of its content."""

    version: ClassVar[int] = 1  # of what it means; a change makes all records out of date
    alone: ClassVar[bool] = False  # whether nothing may run beside it

    @cached_property
    def key(self) -> str:
        """Hash of the content."""
        return _key(self.version, asdict(self))

    @property
    def place(self) -> tuple[str, ...]:
        """Names of the folders in which its record lies."""
        return ()


T = TypeVar("T", bound=Work)


def _key(version: int, task: dict[str, Any]) -> str:
    text = json.dumps([version, task], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


class Store:
    """Records in a folder, and in packed files below it, by the hash of their task.

    Nothing is written but to the folder. A record that both have is the folder's, one that several
    files have that of the first.
    """

    def __init__(
        self, folder: str | Path, packed: Iterable[str | Path] = (), version: int = Work.version
    ) -> None:
        self.folder = Path(folder)
        self.version = version  # of the tasks in packed files
        self.damaged: list[str] = []  # what was found and not trusted, in words
        self.below: dict[str, Record] = {}
        for path in packed:
            records, notes = read_packed(path, version)
            for record in records:
                self.below.setdefault(_key(version, record["task"]), record)
            for note in notes:
                self._tell(note)

    def path(self, task: Work) -> Path:
        """File of a task's record."""
        return self.folder.joinpath(*task.place, f"{task.key}.json")

    def add(self, task: Work, result: dict[str, Any], seconds: float) -> None:
        """Write a record."""
        about = {"task": asdict(task), "result": result, "seconds": round(seconds, _DECIMALS)}
        write_text(self.path(task), json.dumps(sealed({**about, "versions": versions()})))

    def get(self, task: Work) -> Record | None:
        """The record of a task, or None if there is none that can be trusted."""
        note = f"({task}) is damaged and will be made again."
        return self._read(self.path(task), task.version, note) or self.below.get(task.key)

    def records(self, tasks: Iterable[T]) -> Iterator[tuple[T, Record]]:
        """Tasks that have a record, with it."""
        return ((task, record) for task in tasks if (record := self.get(task)) is not None)

    def pack(self, path: str | Path) -> int:
        """Write all records that can be trusted to one file; returns how many they are."""
        note = "is damaged, or of another version of the tasks, and is left out."
        files = sorted(self.folder.rglob("*.json"))
        found = {file.stem: self._read(file, self.version, note) for file in files}
        every = self.below | {key: record for key, record in found.items() if record is not None}
        write_packed(path, every.values(), self.version)
        return len(every)

    def _read(self, path: Path, version: int, note: str) -> Record | None:
        """The record in a file of the folder, or None, with a note if it cannot be trusted."""
        try:
            record = unsealed(path.read_text(encoding="utf-8"), strict=True)
            if _key(version, record["task"]) == path.stem:
                return record
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            pass  # it is not a record at all
        self._tell(f"{path} {note}")
        return None

    def _tell(self, note: str) -> None:
        if note not in self.damaged:
            self.damaged.append(note)
            print(f"bayesmf: {note}", file=sys.stderr)
