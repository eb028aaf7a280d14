"""How close the row block comes to what the machine can do.

The machine's limits are measured in the same rounds as the sweeps: the rate of a large matrix
product in double precision, and the rate at which dot products read arrays from memory and from
cache.

*Row block* (GGG on GDSC, K = 50): a dense Gram step needs, for either side, I J K (K + 1) / 2
multiply-adds for the symmetric matrices (I J K^2 if both halves are formed), of two operations
each. These alone are counted, and divided by the time of the whole sweep: the Cholesky factors,
random numbers, residuals and hyper-variables are in the time but not in the count.

*Roofline* (GGGW on a million entries, K = 20): all arithmetic of the two half-sweeps and of the
residuals is counted; so are the bytes that must come from memory (values and indices, three passes)
and those that are gathered from the other side's factors, which fit in the cache. Each of the three
over its measured rate is a time that no sweep can beat; the largest says what limits.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bayesmf import ObservedMatrix
from benchmarks.common import facts, load
from benchmarks.report import Options, claim, table
from benchmarks.timing import CallTimer, PresetTimer, in_rounds

ROW_BLOCK_TARGET = 40.0  # percent of the matrix product's rate
PASSES = 3  # over the observed entries: rows, columns, residuals
ENTRY_BYTES = 8 + 4  # a value and an index


def product(n: int, threads: int) -> Callable[[], object]:
    """A product of two n x n matrices: 2 n^3 operations."""
    a, b = np.random.default_rng(0).random((2, n, n))
    out = np.empty((n, n))

    def call() -> None:
        with threadpool_limits(threads, user_api="blas"):
            np.matmul(a, b, out=out)

    return call


def reading(size: int, times: int, threads: int) -> Callable[[], object]:
    """Threads that each read two arrays of this many numbers, so many times."""
    pairs = [np.random.default_rng(t).random((2, size)) for t in range(threads)]

    def read(pair: np.ndarray) -> None:
        for _ in range(times):
            np.dot(pair[0], pair[1])

    def call() -> None:
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
            list(pool.map(read, pairs))

    return call


def probes(options: Options) -> dict[str, tuple[CallTimer, float]]:
    """Measurements of the machine: each a timer, and the operations or bytes of one call."""
    threads = options.threads
    n = 256 if options.quick else 2000
    memory, again = (2**16, 1) if options.quick else (2**24, 2)
    cache, often = 2**15, (2 if options.quick else 2000)
    return {
        "dgemm": (CallTimer(product(n, threads)), 2 * n**3),
        "memory": (CallTimer(reading(memory, again, threads)), 16 * memory * again * threads),
        "cache": (CallTimer(reading(cache, often, threads)), 16 * cache * often * threads),
    }


def gram_operations(shape: tuple[int, int], K: int, *, full: bool = False) -> float:
    """Operations of a dense Gram step for both sides, of one half or of the full matrices."""
    entries = K * K if full else K * (K + 1) // 2
    return 2 * 2 * shape[0] * shape[1] * entries


def sweep_operations(X: ObservedMatrix, K: int) -> dict[str, float]:
    """Operations of a row-block sweep over the observed entries only."""
    lines, observed = sum(X.shape), X.n_observed
    return {
        "Gram matrices": 2 * 2 * observed * K * (K + 1) / 2,
        "right-hand sides": 2 * 2 * observed * K,
        "Cholesky factors and solves": lines * (K**3 / 3 + 2 * K**2),
        "residuals": observed * (2 * K + 3),
    }


def sweep_bytes(X: ObservedMatrix, K: int) -> dict[str, float]:
    """Bytes that a sweep reads: what streams from memory, what is gathered from the factors."""
    return {
        "memory": PASSES * X.n_observed * ENTRY_BYTES + 4 * 8 * K * sum(X.shape),
        "cache": PASSES * X.n_observed * 8 * K,
    }


def row_block(ms: float, shape: tuple[int, int], K: int, dgemm: float) -> dict[str, Any]:
    """Rate of a row-block sweep in terms of a dense Gram step."""
    found: dict[str, Any] = {"ms": ms, "K": K, "shape": shape}
    for name, full in (("half", False), ("full", True)):
        rate = gram_operations(shape, K, full=full) / ms / 1e6
        found[name] = {"GFLOP/s": rate, "percent of dgemm": 100 * rate / dgemm}
    return found


def roofline(ms: float, X: ObservedMatrix, K: int, rates: dict[str, float]) -> dict[str, Any]:
    """What a sweep takes, and the least time that arithmetic and transfers would."""
    operations, transfers = sweep_operations(X, K), sweep_bytes(X, K)
    total = sum(operations.values())
    bounds = {
        "arithmetic": total / rates["dgemm"] / 1e6,
        "memory": transfers["memory"] / rates["memory"] / 1e6,
        "cache": transfers["cache"] / rates["cache"] / 1e6,
    }
    return {
        "ms": ms,
        "K": K,
        "operations": operations,
        "bytes": transfers,
        "GFLOP/s": total / ms / 1e6,
        "operations per byte of memory": total / transfers["memory"],
        "bounds_ms": bounds,
        "limit": max(bounds, key=lambda name: bounds[name]),
        "percent of limit": 100 * max(bounds.values()) / ms,
    }


def roofline_table(found: dict[str, Any], rates: dict[str, float]) -> dict[str, Any]:
    bounds, counts = found["bounds_ms"], found["bytes"]
    operations = sum(found["operations"].values())
    rows: list[list[Any]] = [
        ["arithmetic", operations / 1e9, "GFLOP", rates["dgemm"], bounds["arithmetic"]],
        ["from memory", counts["memory"] / 1e9, "GB", rates["memory"], bounds["memory"]],
        ["gathered from cache", counts["cache"] / 1e9, "GB", rates["cache"], bounds["cache"]],
        ["the sweep", None, "", None, found["ms"]],
    ]
    note = (
        f"Limited by {found['limit']}, and at {found['percent of limit']:.0f} % of that limit: "
        f"{found['GFLOP/s']:.1f} GFLOP/s, {found['operations per byte of memory']:.1f} operations "
        "per byte from memory."
    )
    header = ["", "amount", "unit", "measured rate (per s, in 1e9)", "ms"]
    title = f"Roofline of a sweep of GGGW, a million entries, K = {found['K']}"
    return table(title, header, rows, note)


def row_block_table(found: dict[str, Any]) -> dict[str, Any]:
    rows = [
        [name, found["ms"], found[key]["GFLOP/s"], found[key]["percent of dgemm"]]
        for name, key in (("2 I J K (K + 1) / 2", "half"), ("2 I J K^2", "full"))
    ]
    header = ["multiply-adds counted", "ms", "GFLOP/s", "% of dgemm"]
    return table(f"Row block (GGG) on GDSC, K = {found['K']}", header, rows)


def part(options: Options) -> dict[str, Any]:
    """Row block and roofline, with the machine's rates from the same rounds."""
    gdsc, million = (load(name, options.quick) for name in ("gdsc", "million"))
    ranks = (5, 5) if options.quick else (50, 20)
    timers = {
        "GGG": PresetTimer(gdsc.X, "GGG", ranks[0], options.threads, options.batch),
        "GGGW": PresetTimer(million.X, "GGGW", ranks[1], options.threads, options.batch),
    }
    probed = probes(options)
    in_rounds([*timers.values(), *(timer for timer, _ in probed.values())], options.repeats)
    rates = {name: work / timer.result()["ms"] / 1e6 for name, (timer, work) in probed.items()}
    ms = {name: timer.result()["ms"] for name, timer in timers.items()}
    rows = row_block(ms["GGG"], gdsc.X.shape, ranks[0], rates["dgemm"])
    roof = roofline(ms["GGGW"], million.X, ranks[1], rates)
    claims = [
        claim(
            f"row block, GGG, gdsc, K = {ranks[0]}: share of the rate of dgemm",
            rows["half"]["percent of dgemm"], "%", least=ROW_BLOCK_TARGET,
        )
    ]  # fmt: skip
    return {
        "claims": claims,
        "tables": [row_block_table(rows), roofline_table(roof, rates)],
        "data": {"rates_1e9_per_second": rates, "row block": rows, "roofline": roof},
        "datasets": facts(gdsc, million),
    }
