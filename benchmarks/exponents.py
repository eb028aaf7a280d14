"""How the time of a sweep grows with rows, columns, observed entries and rank: fitted exponents.

One model for each kind of update, on one thread. Each size is varied alone: rows and columns at a
fixed density (so that the observed entries grow along), entries at a fixed shape, the rank on a
fixed matrix. The exponent is the slope of a straight line through the logarithms; it falls short of
the formula's where a sweep has parts that do not grow.
"""

from __future__ import annotations

from typing import Any

from bayesmf import ObservedMatrix
from benchmarks.common import say, synthetic
from benchmarks.report import Options, table
from benchmarks.scaling import exponent
from benchmarks.timing import BATCH_SECONDS, milliseconds

MODELS = {"GGGA": "row block", "GEE": "entries", "GVG": "volume", "PGG": "counts"}
SIZES: dict[str, tuple[int, ...]] = {
    "rows": (1000, 2000, 4000, 8000, 16_000),
    "columns": (1000, 2000, 4000, 8000, 16_000),
    "entries": (50_000, 100_000, 200_000, 400_000, 800_000),
    "rank": (8, 16, 32, 64),
}
RANK, OTHER, DENSITY, SHAPE, ENTRIES = 10, 1000, 0.05, (2000, 2000), 100_000


def problem(what: str, size: int) -> tuple[ObservedMatrix, int]:
    """A matrix and a rank in which one thing has this size."""
    if what == "rows":
        return synthetic((size, OTHER), round(DENSITY * size * OTHER), 1, 5), RANK
    if what == "columns":
        return synthetic((OTHER, size), round(DENSITY * size * OTHER), 1, 5), RANK
    if what == "entries":
        return synthetic(SHAPE, size, 1, 5), RANK
    return synthetic(SHAPE, ENTRIES, 1, 5), size


def measure(what: str, options: Options) -> dict[str, Any]:
    """Milliseconds per sweep of every model at every size, and the exponents."""
    sizes = SIZES[what][: 2 if options.quick else None]
    batch = options.batch if options.quick else BATCH_SECONDS
    times: dict[str, list[float]] = {name: [] for name in MODELS}
    for size in sizes:
        say(f"{size} {what}" if what != "rank" else f"rank {size}")
        X, rank = problem(what, size)
        for name, ms in milliseconds(X, MODELS, rank, options.repeats, batch).items():
            times[name].append(ms)
    exponents = {name: exponent(list(sizes), ms) for name, ms in times.items()}
    return {"sizes": sizes, "ms": times, "exponents": exponents}


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The exponents of every kind of update."""
    found = data["growth"]
    rows = [
        (f"{kind} ({name})", *(f"{growth['exponents'][name]:.2f}" for growth in found.values()))
        for name, kind in MODELS.items()
    ]
    return [table("Growth of the time of a sweep", ("exponent of time in", *found), rows)]


def part(options: Options) -> dict[str, Any]:
    """Every size in its turn."""
    data = {"growth": {what: measure(what, options) for what in SIZES}}
    return {"claims": [], "tables": tables(data), "data": data}
