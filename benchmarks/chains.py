"""What a second chain costs: two chains on two cores against one chain on one core.

Chains run side by side on threads; kernels run without Python's lock. Both runs of a pair are made
in turns, and the shortest of each is compared, on GDSC's IC50 matrix (or one like it where the data
is absent: set BAYESMF_DATA).
"""

from __future__ import annotations

import time
from typing import Any

from bayesmf import ObservedMatrix, sample
from benchmarks.common import facts, load, say
from benchmarks.report import Options, claim, table

MODELS = ("GGGA", "GGGW", "GEE", "GVG", "PGG")
RANK, SWEEPS, TARGET = 10, 200, 1.3


def seconds(X: ObservedMatrix, model: str, chains: int, sweeps: int) -> float:
    """Time of a run with as many threads as chains."""
    begin = time.perf_counter()
    sample(
        X, model, RANK, draws=sweeps // 2, burn_in=sweeps // 2, chains=chains, n_jobs=chains,
        random_state=0, cells=([0], [0]),
    )  # fmt: skip
    return time.perf_counter() - begin


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Seconds of one chain and of two, and their ratio."""
    rows = [
        (model, f"{r['one']:.3f}", f"{r['two']:.3f}", f"{r['ratio']:.2f}")
        for model, r in data["chains"].items()
    ]
    header = ("model", "one chain, s", "two chains, s", "ratio")
    return [table(f"Runs of {SWEEPS} sweeps, gdsc, K = {RANK}", header, rows, quoted=True)]


def part(options: Options) -> dict[str, Any]:
    """One chain and two, in turns."""
    dataset = load("gdsc", options.quick)
    models, sweeps = (MODELS[:1], 10) if options.quick else (MODELS, SWEEPS)
    results = {}
    for model in models:
        say(model)
        seconds(dataset.X, model, 2, sweeps)  # compiles
        times = [
            [seconds(dataset.X, model, n, sweeps) for n in (1, 2)] for _ in range(options.repeats)
        ]
        one, two = (min(column) for column in zip(*times, strict=True))
        results[model] = {"one": one, "two": two, "ratio": two / one}
    data = {"target": TARGET, "chains": results}
    claims = [
        claim(f"two chains on two cores / one on one, {model}", r["ratio"], "times", most=TARGET)
        for model, r in results.items()
    ]
    return {"claims": claims, "tables": tables(data), "data": data, "datasets": facts(dataset)}
