"""What fetching ahead brings: sweeps of large matrices with and without it.

Kernels ask for the rows of the other side that they will need some entries later, unless all rows
fit into the caches of one core. Here they are also compiled with caches that are taken to hold
everything, so that they never ask. The matrices are those of `scaling`; processes of either kind
run in turns, on one thread, and the shortest times are compared.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

from benchmarks.common import in_process, say
from benchmarks.report import Options, table

MODELS = ("GGGA", "GEE", "PGG")
SIZES = (1_000_000, 10_000_000)
KINDS = ("without", "with")


def sweeps(size: int, kind: str, models: tuple[str, ...] = MODELS) -> dict[str, float]:
    """Milliseconds per sweep of every model, in this process."""
    if kind == "without":
        if any(name.startswith("bayesmf.kernels.") for name in sys.modules):
            raise RuntimeError("the kernels have been loaded already, with fetching")
        from bayesmf.kernels import prefetch

        prefetch.NEAR = 2**62
    from benchmarks.scaling import RANK, matrix
    from benchmarks.timing import milliseconds

    return milliseconds(matrix(size), models, RANK, 3)


def in_turns(
    size: int, models: tuple[str, ...], repeats: int, cache: str
) -> dict[str, dict[str, float]]:
    """The shortest times of either kind, each in processes and a kernel cache of its own."""
    runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for _ in range(repeats):
        for kind, done in runs.items():
            say(f"{size:,} entries, {kind}")
            own = os.path.join(cache, kind)
            done.append(in_process("fetching.sweeps", size, kind, models, BAYESMF_CACHE=own))
    return {
        model: {kind: min(ms[model] for ms in done) for kind, done in runs.items()}
        for model in models
    }


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Times with and without, and their ratio."""
    rows = [
        (model, f"{int(size):,}", f"{ms['without']:.0f}", f"{ms['with']:.0f}",
         f"{ms['with'] / ms['without']:.2f}")
        for size, models in data["fetching"].items()
        for model, ms in models.items()
    ]  # fmt: skip
    header = ("ms per sweep", "entries", "without", "with", "ratio")
    return [table("Sweeps without and with fetching ahead", header, rows, quoted=True)]


def part(options: Options) -> dict[str, Any]:
    """Sweeps of large matrices, of processes of either kind in turns."""
    sizes, models = ((10_000,), MODELS[:1]) if options.quick else (SIZES, MODELS)
    with tempfile.TemporaryDirectory() as cache:
        found = {str(size): in_turns(size, models, options.repeats, cache) for size in sizes}
    data = {"fetching": found}
    return {"claims": [], "tables": tables(data), "data": data}
