"""Seconds until a newcomer sees the first sweep, with an empty and with a filled kernel cache.

    python benchmarks/first_use.py [--model GGGA] [--missing 0.3] [--repeats 3] [--json FILE]

Every figure is that of a fresh process, from its start: the end of the first sweep of a small
matrix when all kernels must be compiled (best of two, each with an empty cache folder); the same
when the cache holds them (best of the repeats); and ``python -c "import bayesmf"`` (likewise).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from _common import best_of, machine, print_machine, print_table, verdict, write_json
from _report import Options, claim, table
from bayesmf.presets import PRESETS

TARGETS = {"first use": 10.0, "second use": 1.5, "import": 0.3}  # seconds
MODELS = ("GGGA", "GGGW", "GEE", "GVG", "PGG")  # one or two of every kind of update

FIRST_SWEEP = """
import sys, time
import numpy as np
from bayesmf import Problem, chain, preset
rng = np.random.default_rng(0)
X = rng.poisson(3.0, size=(60, 40)).astype(float)
X[rng.random(X.shape) < float(sys.argv[2])] = np.nan
next(chain(Problem.of(X, preset(sys.argv[1]), 5), random_state=0))
print(time.time())
"""


def until_first_sweep(model: str, missing: float, cache: str | None = None) -> float:
    """Seconds from the start of a process to the end of its first sweep."""
    command = [sys.executable, "-c", FIRST_SWEEP, model, str(missing)]
    environment = os.environ | ({} if cache is None else {"BAYESMF_CACHE": cache})
    begin = time.time()
    done = subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return float(done) - begin


def until_imported() -> float:
    """Seconds of a process that does nothing but import the package."""
    begin = time.time()
    subprocess.run([sys.executable, "-c", "import bayesmf"], check=True)
    return time.time() - begin


def measure(model: str, missing: float, repeats: int) -> dict[str, float]:
    """All three figures, in seconds."""
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as other:
        first = min(until_first_sweep(model, missing, folder) for folder in (cache, other))
        second = best_of(repeats, lambda: until_first_sweep(model, missing, cache))
    return {"first use": first, "second use": second, "import": best_of(repeats, until_imported)}


def part(options: Options) -> dict[str, Any]:
    """First and second use of several presets, each alone."""
    results = {}
    for model in MODELS[:1] if options.quick else MODELS:
        print(f"{model} ...", file=sys.stderr)
        results[model] = measure(model, 0.3, options.repeats)
    claims = []
    for use in ("first use", "second use"):
        slowest = max(results, key=lambda model: results[model][use])
        title = f"{use}, from the start of the process to the first sweep (slowest: {slowest})"
        claims.append(claim(title, results[slowest][use], "s", most=TARGETS[use]))
    rows = [[model, *seconds.values()] for model, seconds in results.items()]
    shown = table(
        "Seconds from the start of a process to the end of its first sweep", ["", *TARGETS], rows,
        "The first use compiles all kernels, the second loads them; import is `import bayesmf`.",
        readme=True,
    )  # fmt: skip
    return {"claims": claims, "tables": [shown], "data": results}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", choices=PRESETS, default="GGGA", metavar="MODEL", help="preset")
    parser.add_argument(
        "--missing", type=float, default=0.3,
        help="share of the entries that are missing; with most of them missing other kernels run",
    )  # fmt: skip
    parser.add_argument(
        "--repeats", type=int, default=3, help="runs of the second use and the import; best counts"
    )
    parser.add_argument("--json", metavar="FILE", help="also write all figures to this file")
    return parser.parse_args()


def main() -> None:
    args = parse()
    print_machine(machine())
    seconds = measure(args.model, args.missing, args.repeats)
    print(f"\nSeconds from the start of a process, {args.model}")
    print_table(
        ["", "seconds", "target", ""],
        [
            [name, f"{value:.2f}", f"at most {TARGETS[name]:g}", verdict(value, TARGETS[name])]
            for name, value in seconds.items()
        ],
    )
    write_json(args.json, {"settings": vars(args), "seconds": seconds, "targets": TARGETS})


if __name__ == "__main__":
    main()
