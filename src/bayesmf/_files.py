"""Files that are written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield another path to write to; it takes the place of ``path`` if nothing goes wrong."""
    path = Path(path)
    partial = path.with_name(path.name + ".part")
    yield partial
    partial.replace(path)
