"""The folder of compiled kernels: what is read from it is whole, and nobody else can write there.

Numba pickles what it compiles, and whoever can write pickles into the folder can run code. An entry
that is damaged is compiled again; where nothing can be written, kernels are compiled in memory.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core import caching


def cache_folder() -> Path | None:
    """Return a folder for compiled kernels that is safe to use, or None where there is none.

    Numba notices a change in the file of a cached function but not in the files of the functions
    it calls, so the folder is keyed by a hash of all kernel sources.
    """
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    base = os.environ.get("BAYESMF_CACHE") or os.environ.get("XDG_CACHE_HOME")
    if base is None:
        local = os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else None
        base = local or str(Path.home() / ".cache")
    folder = Path(base) / "bayesmf" / "kernels" / digest.hexdigest()[:16]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        why = unsafe(folder)
    except OSError:  # a read-only home: compile in every process rather than fail
        return None
    if why:
        warnings.warn(
            f"The folder of compiled kernels {folder} {why}, who could put code there that runs "
            "here, so it is not used and kernels are compiled in memory; remove it, or set "
            "BAYESMF_CACHE to a folder of your own.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return folder if os.access(folder, os.W_OK) else None


def unsafe(folder: Path) -> str:
    """Why code in a folder should not be run, in words that follow its name; empty if it may."""
    if not hasattr(os, "geteuid"):  # Windows, where homes are private
        return ""
    about = folder.lstat()
    if about.st_uid != os.geteuid():
        return "belongs to another user"
    if not stat.S_ISDIR(about.st_mode) or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users"
    return ""


class _CheckedFile(caching.IndexDataCacheFile):
    """Index and entries of one kernel, each with its hash before it."""

    def _load_index(self) -> dict[Any, Any]:
        try:
            version, stamp, overloads = _read(self._index_path)
        except OSError:
            return {}
        known = (version, stamp) == (self._version, self._source_stamp)
        return overloads if known else {}

    def _save_index(self, overloads: dict[Any, Any]) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return _read(self._data_path(name))  # an OSError says that there is none

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, content: Any) -> None:
        dumped = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(_digest(path, dumped) + dumped)


def _read(path: str) -> Any:
    """Unpickle a file that has not changed since it was written; otherwise an OSError."""
    content = Path(path).read_bytes()
    if _digest(path, content[32:]) != content[:32]:
        raise OSError(f"{path} is damaged")
    return pickle.loads(content[32:])


def _digest(path: str, content: bytes) -> bytes:
    """Hash of 32 bytes of what a file of that name holds."""
    return hashlib.sha256(Path(path).name.encode() + b" " + content).digest()


class _KernelCache(caching.FunctionCache):
    """The cache of one kernel."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFile(self._cache_path, self._impl.filename_base, stamp)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save what was compiled; a full disk is no reason to stop."""
        with suppress(OSError):
            super().save_overload(sig, data)


def cache_of(function: Any, folder: Path) -> caching.FunctionCache | None:
    """The cache of a kernel in a folder, or None if nothing can be written there any more."""
    # Numba reads the folder from a global setting; put the user's own back at once.
    settings: Any = numba.config
    previous, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
    try:
        found = _KernelCache(function)
    except (OSError, RuntimeError):
        return None
    finally:
        settings.CACHE_DIR = previous
    # Where it cannot write to the folder, Numba takes another one.
    return found if Path(found.cache_path).is_relative_to(folder) else None
