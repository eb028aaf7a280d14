"""Memory that `sample` takes on a matrix of the size of MovieLens 1M.

The matrix is synthetic: 6040 x 3503 with 1,000,000 observed counts, given as triples. Every model
runs in a process of its own with an empty kernel cache. Its figure is the peak of the resident
memory after ``sample(..., n_components=20, draws=5, burn_in=5)``, less the resident memory of the
bare interpreter: so it includes NumPy, Numba, the compilation of the kernels, the data, and the
mean and variance of all 21 million cells. Needs Linux or macOS.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import in_process, say, synthetic
from benchmarks.report import Options, claim, table

SHAPE, OBSERVED = (6040, 3503), 1_000_000
TARGET = 1000.0  # MB
MODELS = ("GGGA", "GEE", "GVG", "PGG")
MB = 1e6


def resident() -> float:
    """MB of memory that this process holds now; the most so far where the system cannot tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return peak()
    return pages * os.sysconf("SC_PAGE_SIZE") / MB


def peak() -> float:
    """MB of memory that this process held at most."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MB


def sample_here(model: str, threads: int) -> dict[str, float]:
    """Sample in this process, which has imported neither NumPy nor Numba before."""
    start = resident()
    X = synthetic(SHAPE, OBSERVED, 1, 5)
    from bayesmf import sample

    begin = time.perf_counter()
    posterior = sample(
        X, model, n_components=20, draws=5, burn_in=5, random_state=0, n_jobs=threads
    )
    seconds = time.perf_counter() - begin
    assert posterior.mean.shape == SHAPE
    most = peak()
    return {"start": start, "peak": most, "difference": most - start, "seconds": seconds}


def part(options: Options) -> dict[str, Any]:
    """Memory of several presets, each in a process of its own with an empty kernel cache."""
    results = {}
    for model in options.models or (MODELS[:1] if options.quick else MODELS):
        say(model)
        with tempfile.TemporaryDirectory() as cache:
            call = ("memory.sample_here", model, options.threads)
            results[model] = in_process(*call, BAYESMF_CACHE=cache)
    most = max(results, key=lambda model: results[model]["difference"])
    what = f"memory of a run on a million entries, all moments (largest: {most})"
    rows = [[model, *figures.values()] for model, figures in results.items()]
    header = ["MB", "start", "peak", "difference", "seconds"]
    title = "Resident memory of a run, K = 20, 6040 x 3503 with a million entries"
    return {
        "claims": [claim(what, results[most]["difference"], "MB", most=TARGET)],
        "tables": [table(title, header, rows)],
        "data": results,
    }
