"""Memory that `sample` takes on a matrix of the size of MovieLens 1M.

    python benchmarks/memory.py [--models GGGA GEE GVG PGG] [--threads 2] [--json FILE]

The matrix is synthetic: 6040 x 3503 with 1,000,000 observed counts, given as triples. Every model
runs in a process of its own with an empty kernel cache. Its figure is the peak of the resident
memory after ``sample(..., n_components=20, draws=5, burn_in=5)``, less the resident memory of the
bare interpreter: so it includes NumPy, Numba, the compilation of the kernels, the data, and the
mean and variance of all 21 million cells. Needs Linux or macOS.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _common import machine, print_machine, print_table, synthetic, verdict, write_json
from _report import Options, claim, table

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


def sample_apart(model: str, threads: int) -> dict[str, float]:
    """Sample in a process of its own, with an empty kernel cache."""
    command = [sys.executable, __file__, "--child", model, "--threads", str(threads)]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "BAYESMF_CACHE": cache}
        done = subprocess.run(
            command, env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
    return json.loads(done.stdout)


def part(options: Options) -> dict[str, Any]:
    """Memory of several presets, each in a process of its own."""
    results = {}
    for model in MODELS[:1] if options.quick else MODELS:
        print(f"{model} ...", file=sys.stderr)
        results[model] = sample_apart(model, options.threads)
    most = max(results, key=lambda model: results[model]["difference"])
    what = f"memory of a run on a million entries, all moments (largest: {most})"
    rows = [[model, *figures.values()] for model, figures in results.items()]
    header = ["MB", "start", "peak", "difference", "seconds"]
    title = "Resident memory of a run, K = 20, 6040 x 3503 with a million entries"
    shown = table(title, header, rows)
    return {
        "claims": [claim(what, results[most]["difference"], "MB", most=TARGET)],
        "tables": [shown],
        "data": results,
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--models", nargs="+", default=MODELS, metavar="MODEL",
        help="presets to measure",
    )  # fmt: skip
    parser.add_argument("--threads", type=int, default=2, help="threads of the sampler")
    parser.add_argument("--json", metavar="FILE", help="also write all figures to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = parse()
    if args.child:
        print(json.dumps(sample_here(args.child, args.threads)))
        return
    print_machine(machine())
    print(f"\nMB of resident memory, {SHAPE[0]} x {SHAPE[1]}, {OBSERVED} observed, K = 20")
    results = {model: sample_apart(model, args.threads) for model in args.models}
    target = f"at most {TARGET:g}"
    print_table(
        ["", "start", "peak", "difference", "target", "", "seconds"],
        [
            [model, *(f"{r[key]:.0f}" for key in ("start", "peak", "difference")), target,
             verdict(r["difference"], TARGET), f"{r['seconds']:.1f}"]
            for model, r in results.items()
        ],
    )  # fmt: skip
    settings = {"models": args.models, "threads": args.threads}
    write_json(args.json, {"settings": settings, "target_mb": TARGET, "memory_mb": results})


if __name__ == "__main__":
    main()
