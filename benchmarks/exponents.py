"""How the time of a sweep grows with rows, columns, observed entries and rank: fitted exponents.

    python benchmarks/exponents.py [--repeats 5] [--json FILE]

One model for each kind of update, on one thread. Each size is varied alone: rows and columns at a
fixed density (so that the observed entries grow along), entries at a fixed shape, the rank on a
fixed matrix. The exponent is the slope of a straight line through the logarithms; it falls short of
the formula's where a sweep has parts that do not grow.
"""

from __future__ import annotations

import argparse
from typing import Any

from _common import machine, print_machine, print_table, synthetic, write_json
from _timing import milliseconds
from bayesmf import ObservedMatrix
from scaling import exponent

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


def measure(what: str, repeats: int) -> dict[str, Any]:
    """Milliseconds per sweep of every model at every size, and the exponents."""
    sizes = SIZES[what]
    times: dict[str, list[float]] = {name: [] for name in MODELS}
    for size in sizes:
        X, rank = problem(what, size)
        for name, ms in milliseconds(X, MODELS, rank, repeats).items():
            times[name].append(ms)
    exponents = {name: exponent(list(sizes), ms) for name, ms in times.items()}
    return {"sizes": sizes, "ms": times, "exponents": exponents}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", help="also write all figures to this file")
    args = parser.parse_args()
    found = {what: measure(what, args.repeats) for what in SIZES}
    rows = [
        (f"{kind} ({name})", *(f"{found[what]['exponents'][name]:.2f}" for what in SIZES))
        for name, kind in MODELS.items()
    ]
    print_table(("exponent of time in", *SIZES), rows)
    facts = machine()
    print_machine(facts)
    write_json(args.json, {"machine": facts, "growth": found})


if __name__ == "__main__":
    main()
