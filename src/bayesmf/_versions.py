"""Versions of what a result depends on."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata

from bayesmf import __version__

NEEDED = ("numpy", "scipy", "numba", "scikit-learn", "arviz-stats")


def version(name: str) -> str | None:
    """Version of an installed package; None if it is absent."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def versions() -> dict[str, str]:
    """Versions of Python, of this package and of what it needs."""
    known = {"python": platform.python_version(), "bayesmf": __version__}
    return known | {name: version(name) or "absent" for name in NEEDED}
