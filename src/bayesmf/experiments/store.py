"""The store: one file per task, with result, seconds, seed and versions.

A record is written whole or not at all, and carries the hash of its own content: one that is cut,
changed or of another task is never trusted, but named and done again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from bayesmf._files import replacing
from bayesmf._versions import versions


def _digest(record: dict[str, Any]) -> str:
    text = json.dumps({k: v for k, v in record.items() if k != "digest"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


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
        record = {
            "task": asdict(task),
            "result": result,
            "seconds": seconds,
            "versions": versions(),
        }
        record["digest"] = _digest(json.loads(json.dumps(record)))
        path = self.path(task)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_text(json.dumps(record), encoding="utf-8")

    def get(self, task: Work) -> dict[str, Any] | None:
        """The record of a task, or None if there is none that can be trusted."""
        path = self.path(task)
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            good = record["digest"] == _digest(record) and record["task"] == json.loads(
                json.dumps(asdict(task))
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError):
            good = False
        if not good:
            note = f"{path} ({task}) is damaged and will be made again."
            self.damaged += [note] if note not in self.damaged else []
            return None
        return record

    def records(self, tasks: Iterable[T]) -> Iterator[tuple[T, dict[str, Any]]]:
        """Tasks that have a record, with it."""
        for task in tasks:
            record = self.get(task)
            if record is not None:
                yield task, record
