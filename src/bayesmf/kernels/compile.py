"""How kernels are compiled and cached.

Kernels are serial functions that release the interpreter lock; the thin parallel loop is in
``_threads``. Nothing compiles until a kernel is first called with its types.
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
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
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


CACHE = _cache_folder()


def kernel(function: F | None = None, *, reassociate: bool = False, inner: bool = False) -> Any:
    """Compile a function to machine code on first use; ``reassociate`` lets its sums vectorise.

    An ``inner`` function is for other kernels alone and must never be called from Python: it is
    compiled without a way in from there, which takes half the time, and lies in the cache as a
    part of those kernels alone.
    """
    if function is None:
        return lambda f: kernel(f, reassociate=reassociate, inner=inner)
    # Numba reads the cache folder from a global setting while it decorates; put the user's own
    # setting back at once.
    settings: Any = numba.config
    previous = settings.CACHE_DIR
    settings.CACHE_DIR = str(CACHE) if CACHE else previous
    # Nothing here is called from C, and that way in takes a fifth of the compilation.
    ways_in: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": inner}
    try:
        return numba.njit(
            nogil=True,
            **ways_in,
            cache=CACHE is not None and not inner,
            error_model="numpy",
            fastmath=REASSOCIATE if reassociate else False,
        )(function)
    finally:
        settings.CACHE_DIR = previous
