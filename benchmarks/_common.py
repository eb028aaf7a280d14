"""What the benchmark scripts share: the data, facts about the machine, tables and JSON files.

The real matrices are looked for in the folder that the environment variable BAYESMF_DATA names.
Where a file is absent, a synthetic matrix of the same shape and number of observed entries takes
its place, and says so.

NumPy is imported inside the functions that need it: memory.py measures from before that import.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import bayesmf

if TYPE_CHECKING:
    from bayesmf import ObservedMatrix


class Dataset(NamedTuple):
    """A matrix, and whether it is the real one."""

    name: str
    X: ObservedMatrix
    real: bool

    def facts(self) -> dict[str, Any]:
        """What a reader of the results needs to know about the data."""
        source = "real" if self.real else "synthetic"
        return {"source": source, "shape": self.X.shape, "observed": self.X.n_observed}


class _Source(NamedTuple):
    """A real matrix by its name in the catalogue, and what is known of it."""

    catalogue: str | None  # None: always synthetic
    shape: tuple[int, int]
    observed: int
    low: int
    high: int


_SOURCES = {
    "gdsc": _Source("GDSC", (705, 139), 79_259, 0, 100),
    "movielens": _Source("MovieLens_100K", (943, 1473), 99_723, 1, 5),
    "ccle": _Source("CCLE_IC50", (504, 24), 11_670, 0, 8),
    "methylation": _Source("Methylation_GM", (160, 254), 40_640, 0, 19),
    # As many users, films and ratings as MovieLens 1M; values and places are made up.
    "million": _Source(None, (6040, 3503), 1_000_000, 1, 5),
}
DATASETS = tuple(_SOURCES)


def load(name: str, quick: bool = False) -> Dataset:
    """Read the matrix "gdsc" or "movielens", or make one like it where the data is absent.

    "million" is always made. A ``quick`` run gets a small synthetic matrix by that name.
    """
    from bayesmf import datasets

    source = _SOURCES[name]
    values = (source.low, source.high)
    if quick:
        share = source.observed / (source.shape[0] * source.shape[1])
        return Dataset(name, synthetic((60, 40), int(2400 * max(share, 0.2)), *values), False)
    folder = os.environ.get("BAYESMF_DATA")
    if not (folder and source.catalogue and datasets.present(source.catalogue, folder)):
        return Dataset(name, synthetic(source.shape, source.observed, *values), False)
    return Dataset(name, datasets.load(source.catalogue, data_home=folder).X, True)


def synthetic(shape: tuple[int, int], observed: int, low: int, high: int) -> ObservedMatrix:
    """Whole numbers from low to high: a nonnegative product of rank 5 and noise, cells at random.

    Cells and values are drawn entry by entry, so that no array of the full shape is ever made.
    """
    import numpy as np

    from bayesmf import ObservedMatrix

    rng = np.random.default_rng(0)
    n, m = shape
    cells = np.unique(rng.integers(n * m, size=2 * observed)) if 4 * observed < n * m else n * m
    rows, cols = np.divmod(np.sort(rng.choice(cells, observed, replace=False)), m)
    U, V = (rng.gamma(2.0, 1.0, size=(size, 5)) for size in shape)
    values = np.zeros(observed)
    for u, v in zip(U.T, V.T, strict=True):
        values += u[rows] * v[cols]
    values *= (low + high) / 2 / values.mean()
    values += rng.normal(scale=(high - low) / 8, size=observed)
    return ObservedMatrix.from_triples(rows, cols, np.clip(np.rint(values), low, high), shape)


def machine() -> dict[str, Any]:
    """Return the processor, the cores this process may use, and the versions that matter."""
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "cpu": _cpu_model(),
        "cores": len(affinity(0)) if affinity else os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
        "bayesmf": bayesmf.__version__,
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def version(distribution: str) -> str:
    """Return the version of an installed distribution, or "not installed"."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def best_of(n: int, measure: Callable[[], float]) -> float:
    """Measure n times and return the smallest figure: whatever disturbs a run makes it longer."""
    return min(measure() for _ in range(n))


def watch_other_work() -> Callable[[], float | None]:
    """Begin to watch the machine; the function returned says how many cores others kept busy.

    It says None where the system does not tell.
    """
    begin, used = time.perf_counter(), _used_by_others()

    def busy_elsewhere() -> float | None:
        now = _used_by_others()
        if used is None or now is None:
            return None
        return max(0.0, (now - used) / (time.perf_counter() - begin))

    return busy_elsewhere


def _used_by_others() -> float | None:
    """Seconds of processor time, over all cores, of neither this process nor its children."""
    try:
        first = Path("/proc/stat").read_text().partition("\n")[0]
    except OSError:
        return None
    user, nice, system, _idle, _wait, irq, softirq, steal = (int(t) for t in first.split()[1:9])
    ticks = user + nice + system + irq + softirq + steal
    own = time.process_time() + sum(os.times()[2:4])
    return ticks / os.sysconf("SC_CLK_TCK") - own


def verdict(value: float, limit: float, *, at_least: bool = False) -> str:
    """Say whether a figure meets its target: at most the limit, or at least."""
    return "met" if (value >= limit if at_least else value <= limit) else "NOT met"


def print_machine(facts: dict[str, Any]) -> None:
    print(", ".join(f"{name} {value}" for name, value in facts.items()))


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print columns of text: the first to the left, the others to the right."""
    lines = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    for line in lines:
        first, *others = (
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join([first, *others]).rstrip())


def write_json(path: str | None, results: dict[str, Any]) -> None:
    """Write the results and the facts about the machine, if a path is given."""
    if path is not None:
        text = json.dumps({"machine": machine(), **results}, indent=2)
        Path(path).write_text(text + "\n", encoding="utf-8")
