"""A hundred million entries on one machine: reading, sweeps and memory as matrices grow.

Synthetic matrices of 10^6, 10^7 and 10^8 observed entries with a hundredth as many rows and a
thousandth as many columns. Entries per row and per column have heavy tails: weights of rows and of
columns are k^-0.6 for the k-th, and a cell is drawn with the product of both, each at most once.
Values are a product of rank 3 and noise. The triples lie in an .npz file, shuffled, as arrays
``rows``, ``cols`` (32 bits) and ``values``.

Every size runs in a process of its own: `read_matrix`, then some sweeps of GGGW at rank 20, whose
median after the first two counts. The last size runs once more with values in single precision
(``single=True``), which halves them. Memory is the peak of the resident memory of that process, the
interpreter and compiled kernels included; that after reading is given apart, less what the process
held before, beside the bytes of the two views. The exponent is the slope of the logarithms of the
seconds per sweep. SMURFF has the same 10^7 entries, less their mean. The files take 2 GB; in the
folder that BAYESMF_SCRATCH names they stay for the next run.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.common import in_process, say
from benchmarks.memory import MB, peak, resident
from benchmarks.report import Options, claim, table

SIZES = (10**6, 10**7, 10**8)
QUICK = (500_000, 10**6)
RANK, MODEL = 20, "GGGW"
PEERS_AT = 10**7
SWEEPS = {10**8: 5}  # otherwise a dozen
POWER = 2.5  # of a uniform number: the k-th row or column has the weight k^-0.6
READ, SWEEP, PEAK, EXPONENT, RATIO = 300.0, 8.0, 10_000.0, 1.1, 1.3  # targets


def make(path: str, observed: int) -> None:
    """Write the triples of one size to a file."""
    import numpy as np

    rng = np.random.default_rng(observed)
    n, m = observed // 100, observed // 1000
    cells = _cells(rng, n, m, observed)
    rows, cols = (cells // m).astype(np.int32), (cells % m).astype(np.int32)
    del cells
    U, V = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
    values = rng.normal(size=observed)
    for u, v in zip(U.T, V.T, strict=True):
        values += u[rows] * v[cols]
    np.savez(path, rows=rows, cols=cols, values=values)


def _cells(rng: Any, n: int, m: int, observed: int) -> Any:
    """Numbers of different cells in no order, more of them in the first rows and columns."""
    import numpy as np

    found = np.empty(0, np.int64)
    while found.size < observed:
        count = observed - found.size + observed // 10
        rows, cols = ((size * rng.random(count) ** POWER).astype(np.int64) for size in (n, m))
        found = np.union1d(found, rows * m + cols)
    return rng.permutation(found)[:observed]


def measure(path: str, sweeps: int, threads: int, single: bool = False) -> dict[str, float]:
    """Read the file and sweep, in this process alone."""
    import numpy as np

    from bayesmf import preset, read_matrix
    from bayesmf.sampler.run import chain
    from bayesmf.sampler.state import Problem

    read_matrix_of_few(read_matrix)
    before = resident()
    begin, used = time.perf_counter(), time.process_time()
    X = read_matrix(path, single=single)
    read, busy_reading = time.perf_counter() - begin, time.process_time() - used
    views = sum(p.nbytes for v in (X.rows, X.cols) for p in (v.indptr, v.indices, v.stored)) / MB
    built = peak() - before
    problem = Problem.of(X, preset(MODEL), RANK, threads=threads)
    states, seconds, busy = chain(problem, random_state=0), [], []
    for _ in range(sweeps):
        begin, used = time.perf_counter(), time.process_time()
        next(states)
        seconds.append(time.perf_counter() - begin)
        busy.append(time.process_time() - used)
    return {
        "rows": X.shape[0], "cols": X.shape[1], "longest row": int(X.rows.counts.max()),
        "longest column": int(X.cols.counts.max()), "read": read,
        "core seconds of reading": busy_reading, "views": views, "built": built,
        "first sweep": seconds[0], "sweep": float(np.median(seconds[2:])),
        "core seconds": float(np.median(busy[2:])), "peak": peak(),
    }  # fmt: skip


def read_matrix_of_few(read_matrix: Any) -> None:
    """Load all that reading needs, so that it is not counted as data."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "few.npz")
        np.savez(path, rows=[0, 1], cols=[1, 0], values=[1.0, 2.0])
        read_matrix(path)


def peer(path: str, sweeps: int, threads: int) -> dict[str, float]:
    """Seconds per sweep of SMURFF on the same file, and its peak of memory."""
    from bayesmf import read_matrix
    from benchmarks.peers import smurff_run

    run = smurff_run(read_matrix(path), RANK, threads)
    few, many = run(2), run(2 + sweeps)
    return {"sweep": (many - few) / sweeps, "peak": peak()}


def part(options: Options) -> dict[str, Any]:
    """All sizes, each in a process of its own, and SMURFF in the middle."""
    from benchmarks.peers import installed

    sizes = QUICK if options.quick else SIZES
    found: dict[str, Any] = {"sizes": {}}
    at = sizes[-1] if options.quick else PEERS_AT
    with _scratch() as folder:
        for observed in sizes:
            path = Path(folder, f"size-{observed}.npz")
            if not path.exists():
                say(f"making {observed} entries")
                in_process("size.make", str(path), observed)
            say(f"{observed} entries")
            call = ("size.measure", str(path), SWEEPS.get(observed, 12), options.threads)
            found["sizes"][str(observed)] = in_process(*call)
            if observed == at and options.peers and installed(["smurff"]):
                say(f"SMURFF, {observed} entries")
                found["smurff"] = in_process("size.peer", str(path), 6, options.threads)
            if observed == sizes[-1]:
                say(f"{observed} entries in single precision")
                found["single"] = in_process(*call, True)
    found["exponent"] = _exponent(found["sizes"])
    return {"claims": claims(found, options), "tables": tables(found), "data": found}


def _scratch() -> AbstractContextManager[str]:
    """A folder for the files: that of BAYESMF_SCRATCH, where they stay, or one that goes."""
    if folder := os.environ.get("BAYESMF_SCRATCH"):
        return nullcontext(folder)
    return tempfile.TemporaryDirectory()


def _exponent(sizes: dict[str, Any]) -> float:
    import numpy as np

    seconds = [figures["sweep"] for figures in sizes.values()]
    return float(np.polyfit(np.log([int(size) for size in sizes]), np.log(seconds), 1)[0])


def claims(found: dict[str, Any], options: Options) -> list[dict[str, Any]]:
    """What is to be met at the largest size."""
    size, largest = list(found["sizes"].items())[-1]
    at = f"{int(size):,} entries, rank {RANK}"
    return [
        claim(f"reading {at}", largest["read"], "s", most=READ),
        claim(f"a sweep of {MODEL}, {at}, {options.threads} threads", largest["sweep"], "s",
              most=SWEEP),
        claim(f"peak memory, {at}", largest["peak"], "MB", most=PEAK),
        claim(f"memory of reading over that of the views, {at}",
              largest["built"] / largest["views"], "times", most=RATIO),
        claim("exponent of seconds per sweep", found["exponent"], most=EXPONENT),
    ]  # fmt: skip


def tables(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Figures by size, and the peer's."""
    largest = list(found["sizes"])[-1]
    measured = [(f"{int(size):,}", figures) for size, figures in found["sizes"].items()]
    if "single" in found:
        measured.append((f"{int(largest):,}, single precision", found["single"]))
    rows = [
        [size, f"{f['rows']:,} x {f['cols']:,}", f["read"], f["sweep"],
         f["core seconds"],
         f["views"] / 1000, f["built"] / f["views"], f["peak"] / 1000]
        for size, f in measured
    ]  # fmt: skip
    header = ["entries", "shape", "seconds to read", "seconds per sweep", "core seconds per sweep",
              "GB of views",
              "peak of reading / views", "GB at most"]  # fmt: skip
    title = f"One machine, {MODEL}, K = {RANK}, 2 threads"
    made = [table(title, header, rows, quoted=True)]
    if "smurff" in found:
        size = str(PEERS_AT) if str(PEERS_AT) in found["sizes"] else list(found["sizes"])[-1]
        ours, theirs = found["sizes"][size], found["smurff"]
        rows = [
            [name, figures["sweep"], figures["peak"] / 1000]
            for name, figures in (("bayesmf", ours), ("SMURFF", theirs))
        ]
        made.append(
            table(
                f"{int(size):,} entries", ["", "seconds per sweep", "GB at most"], rows, quoted=True
            )
        )
    return made
