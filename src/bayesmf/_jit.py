"""The only file that names Numba: how kernels are compiled, and where they are cached.

Kernels are serial functions that release the interpreter lock; the thin parallel loop is in
``_threads``. Nothing here compiles until a kernel is first called with its types.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

#: Sums may be reassociated (so that dot products vectorise) and a * b + c contracted. NaN and
#: infinity keep their meaning: nothing here assumes their absence.
REASSOCIATE = {"reassoc", "contract", "nsz"}


def _cache_folder() -> Path | None:
    """Return a writable folder for compiled kernels, or None where there is none.

    Numba notices a change in the file of a cached function but not in the files of the functions
    it calls, so the folder is keyed by a hash of all kernel sources.
    """
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for source in [Path(__file__), *sorted((package / "kernels").glob("*.py"))]:
        digest.update(source.read_bytes())
    base = os.environ.get("BAYESMF_CACHE") or os.environ.get("XDG_CACHE_HOME")
    if base is None:
        local = os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else None
        base = local or str(Path.home() / ".cache")
    folder = Path(base) / "bayesmf" / "kernels" / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home: compile in every process rather than fail
        return None
    return folder if os.access(folder, os.W_OK) else None


_CACHE = _cache_folder()


def kernel(function: F | None = None, *, reassociate: bool = False) -> Any:
    """Compile a function to machine code on first use; ``reassociate`` lets its sums vectorise."""
    if function is None:
        return lambda f: kernel(f, reassociate=reassociate)
    # Numba reads the cache folder from a global setting while it decorates; put the user's own
    # setting back at once.
    settings: Any = numba.config
    previous = settings.CACHE_DIR
    settings.CACHE_DIR = str(_CACHE) if _CACHE else previous
    try:
        return numba.njit(
            nogil=True,
            cache=_CACHE is not None,
            error_model="numpy",
            fastmath=REASSOCIATE if reassociate else False,
        )(function)
    finally:
        settings.CACHE_DIR = previous
