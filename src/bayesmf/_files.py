"""Files that are written whole or not at all: text, JSON, arrays and tables."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

Row: TypeAlias = Sequence[object]


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield another path to write to; it takes the place of ``path`` if nothing goes wrong."""
    path = Path(path)
    partial = path.with_name(path.name + ".part")
    yield partial
    partial.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write text to a file, whose folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write plain data as JSON."""
    write_text(path, json.dumps(content, indent=1))


def write_arrays(path: str | Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays to an .npz file."""
    import numpy as np

    with replacing(path) as partial, open(partial, "wb") as file:
        np.savez(file, **arrays)


def plain(value: object) -> str:
    """A number or word as it is printed; None and NaN are empty."""
    if value is None or value != value:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def markdown(head: Row, rows: Iterable[Row]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(plain, line)) + " |\n" for line in lines)


def write_table(folder: Path, name: str, head: Row, rows: Sequence[Row]) -> list[Path]:
    """Write a table as CSV and Markdown."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([head, *([None if x != x else x for x in row] for row in rows)])
    written = [folder / f"{name}.csv", folder / f"{name}.md"]
    for path, content in zip(written, (text.getvalue(), markdown(head, rows)), strict=True):
        write_text(path, content)
    return written
