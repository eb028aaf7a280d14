"""A bar that shows how much of a file has been read; every reader opens files through it."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

LARGE = 200_000_000  # bytes from which on a bar is shown if nobody says whether
_bar: ContextVar[Any] = ContextVar("bar", default=None)


class _Watched(io.FileIO):
    """A file that tells a bar how many of its bytes were asked for."""

    def __init__(self, path: Path, bar: Any) -> None:
        super().__init__(path)
        self._bar = bar

    def readinto(self, buffer: Any) -> int | None:
        count = super().readinto(buffer)
        self._bar.update(
            min(count or 0, self._bar.total - self._bar.n)
        )  # some bytes are read twice
        return count


def opened(path: Path) -> Any:
    """A file for reading bytes."""
    bar = _bar.get()
    return open(path, "rb") if bar is None else io.BufferedReader(_Watched(path, bar), 1 << 20)


@contextmanager
def showing(path: Path, wanted: bool | None) -> Iterator[None]:
    """Context in which files that are opened move a bar on standard error, if it is wanted.

    None leaves it to the size of the file.
    """
    size = path.stat().st_size
    if not (size >= LARGE if wanted is None else wanted):
        yield
        return
    from tqdm import tqdm

    with tqdm(total=size, unit="B", unit_scale=True, desc=path.name, file=sys.stderr) as bar:
        before = _bar.set(bar)
        try:
            yield
            bar.update(max(0, size - bar.n))  # what a reader had no need of
        finally:
            _bar.reset(before)
