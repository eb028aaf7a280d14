"""One process at a time: the lock of a folder.

The system lets go of a lock when its process ends, however it ends, so that none is ever stale; the
file ``.lock`` stays, and says who had it last. Where the system has no such locks (Windows), there
is none.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bayesmf._files import make_folder, writing

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"
_held: set[int] = set()


def _let_go() -> None:
    """A child process has no share in the locks of its parent."""
    while _held:
        os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made if need be; wait for whoever has it, and say who."""
    make_folder(folder)
    if fcntl is None:
        yield
        return
    with writing(folder / NAME):
        number = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o666)
    _held.add(number)
    try:
        _take(number, folder)
        yield
    finally:
        if number in _held:  # not in a child that was forked meanwhile
            _held.remove(number)
            os.close(number)


def _take(number: int, folder: Path) -> None:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if not isinstance(error, BlockingIOError):
            return  # a file system without locks
        print(f"bayesmf: waiting for {_owner(folder)}, which uses {folder}.", file=sys.stderr)
        fcntl.flock(number, fcntl.LOCK_EX)
    since = time.strftime("%Y-%m-%d %H:%M:%S %z")
    text = json.dumps({"pid": os.getpid(), "machine": socket.gethostname(), "since": since})
    with suppress(OSError):  # a full disk: the lock holds, although nobody can read whose it is
        os.ftruncate(number, 0)
        os.pwrite(number, text.encode(), 0)


def _owner(folder: Path) -> str:
    try:
        about: Any = json.loads((folder / NAME).read_text(encoding="utf-8"))
        return f"process {about['pid']} on {about['machine']} (since {about['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
