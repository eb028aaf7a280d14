"""Seconds until a newcomer sees the first sweep, with an empty and with a filled kernel cache.

Every figure is that of a fresh process, from its start: the end of the first sweep of a small
matrix when all kernels must be compiled (best of two, each with an empty cache folder); the same
when the cache holds them (best of the repeats); and ``python -c "import bayesmf"`` (likewise).
With most of the entries missing (``--missing 0.9``) other kernels run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.common import say
from benchmarks.report import Options, claim, table

TARGETS = {"first use": 10.0, "second use": 1.5, "import": 0.3}  # seconds
MODELS = ("GGGA", "GGGW", "GEE", "GVG", "PGG")  # one or two of every kind of update
MISSING = 0.3

FIRST_SWEEP = """
import sys, time
import numpy as np
from bayesmf import sample
rng = np.random.default_rng(0)
X = rng.poisson(3.0, size=(60, 40)).astype(float)
X[rng.random(X.shape) < float(sys.argv[2])] = np.nan
sample(X, sys.argv[1], 5, draws=1, burn_in=0, random_state=0)
print(time.time())
"""


def until_first_sweep(model: str, missing: float = MISSING, **environment: str) -> float:
    """Seconds from the start of a process to the end of its first sweep."""
    command = [sys.executable, "-c", FIRST_SWEEP, model, str(missing)]
    own = os.environ | environment
    begin = time.time()
    done = subprocess.run(command, env=own, check=True, stdout=subprocess.PIPE)
    return float(done.stdout) - begin


def until_imported() -> float:
    """Seconds of a process that does nothing but import the package."""
    begin = time.time()
    subprocess.run([sys.executable, "-c", "import bayesmf"], check=True)
    return time.time() - begin


def measure(model: str, missing: float, repeats: int) -> dict[str, float]:
    """All three figures, in seconds."""
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as other:
        first, second = (
            min(until_first_sweep(model, missing, BAYESMF_CACHE=folder) for folder in folders)
            for folders in ((cache, other), repeats * [cache])
        )
        return {
            "first use": first,
            "second use": second,
            "import": min(until_imported() for _ in range(repeats)),
        }


def part(options: Options) -> dict[str, Any]:
    """First and second use of several presets, each alone."""
    results = {}
    missing = MISSING if options.missing is None else options.missing
    for model in options.models or (MODELS[:1] if options.quick else MODELS):
        say(model)
        results[model] = measure(model, missing, options.repeats)
    claims = []
    for use in ("first use", "second use"):
        slowest = max(results, key=lambda model: results[model][use])
        title = f"{use}, from the start of the process to the first sweep (slowest: {slowest})"
        claims.append(claim(title, results[slowest][use], "s", most=TARGETS[use]))
    rows = [[model, *seconds.values()] for model, seconds in results.items()]
    shown = table(
        "Seconds from the start of a process to the end of its first sweep", ["", *TARGETS], rows,
        "The first use compiles all kernels, the second loads them; import is `import bayesmf`.",
    )  # fmt: skip
    return {"claims": claims, "tables": [shown], "data": results}
