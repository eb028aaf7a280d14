"""The store: one file per task, with its result, seconds and versions.

A record is written whole or not at all, and carries the hash of its own content: one that is cut,
changed or of another task is never trusted, but named on standard error and done again.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

from bayesmf._files import sealed, unsealed, write_text
from bayesmf._versions import versions

Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Work:
    """A piece of work that a store can hold: plain data, known by the hash of its content."""

    version: ClassVar[int] = 1  # of what it means; a change makes all records out of date
    alone: ClassVar[bool] = False  # whether nothing may run beside it

    @cached_property
    def key(self) -> str:
        """Hash of the content."""
        text = json.dumps([self.version, asdict(self)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def place(self) -> tuple[str, ...]:
        """Names of the folders in which its record lies."""
        return ()


T = TypeVar("T", bound=Work)


class Store:
    """Records in a folder, by the hash of their task."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.damaged: list[str] = []  # what was found and not trusted, in words

    def path(self, task: Work) -> Path:
        """File of a task's record."""
        return self.folder.joinpath(*task.place, f"{task.key}.json")

    def add(self, task: Work, result: dict[str, Any], seconds: float) -> None:
        """Write a record."""
        about = {"task": asdict(task), "result": result, "seconds": seconds}
        write_text(self.path(task), json.dumps(sealed({**about, "versions": versions()})))

    def get(self, task: Work) -> Record | None:
        """The record of a task, or None if there is none that can be trusted."""
        path = self.path(task)
        try:
            record = unsealed(path.read_text(encoding="utf-8"), strict=True)
            if json.dumps(record["task"]) == json.dumps(asdict(task)):
                return record
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            pass  # it is not a record at all
        note = f"{path} ({task}) is damaged and will be made again."
        if note not in self.damaged:
            self.damaged.append(note)
            print(f"bayesmf: {note}", file=sys.stderr)
        return None

    def records(self, tasks: Iterable[T]) -> Iterator[tuple[T, Record]]:
        """Tasks that have a record, with it."""
        return ((task, record) for task in tasks if (record := self.get(task)) is not None)
