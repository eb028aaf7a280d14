"""How kernels are compiled and cached.

Kernels are serial functions that release the interpreter lock; the thin parallel loop is in
``_threads``. Nothing compiles until a kernel is first called with its types.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core.compiler_lock import global_compiler_lock

from bayesmf.kernels.cache import cache_folder, cache_of

# A fork must not copy a compiler's lock that another thread holds: its child would wait for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )

F = TypeVar("F", bound=Callable[..., Any])

#: Sums may be reassociated (so that dot products vectorise) and a * b + c contracted. NaN and
#: infinity keep their meaning: nothing here assumes their absence.
REASSOCIATE = {"reassoc", "contract", "nsz"}

CACHE = cache_folder()


def kernel(function: F | None = None, *, reassociate: bool = False, inner: bool = False) -> Any:
    """Compile a function to machine code on first use; ``reassociate`` lets its sums vectorise.

    An ``inner`` function is for other kernels alone and must never be called from Python: it is
    compiled without a way in from there, which takes half the time, and lies in the cache as a
    part of those kernels alone.
    """
    if function is None:
        return lambda f: kernel(f, reassociate=reassociate, inner=inner)
    # Nothing here is called from C, and that way in takes a fifth of the compilation.
    ways_in: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": inner}
    compiled = numba.njit(
        nogil=True, **ways_in, error_model="numpy", fastmath=REASSOCIATE if reassociate else False
    )(function)
    if CACHE is not None and not inner and not numba.config.DISABLE_JIT:
        compiled._cache = cache_of(function, CACHE) or compiled._cache
    return compiled
