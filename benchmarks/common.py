"""What the parts of the benchmark share: the data, the machine, other processes, JSON files.

The real matrices are looked for in the folder that the environment variable BAYESMF_DATA names.
Where a file is absent, a synthetic matrix of the same shape and number of observed entries takes
its place, and says so.

NumPy is imported inside the functions that need it: `memory` measures from before that import.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import bayesmf

if TYPE_CHECKING:
    from bayesmf import BayesianMF, ObservedMatrix

ROOT = Path(__file__).parents[1]


class MissingError(Exception):
    """Something that a part cannot do without is not there."""


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
TITLES = {  # of the real ones
    "gdsc": "GDSC IC50", "ccle": "CCLE IC50", "methylation": "gene body methylation",
    "movielens": "MovieLens 100K",
}  # fmt: skip


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


def load_real(name: str, quick: bool = False) -> Dataset:
    """The same where figures of a synthetic matrix would mean nothing, but for a quick run."""
    dataset = load(name, quick)
    if not (dataset.real or quick):
        raise MissingError(f"{name}: this needs the real matrix; set BAYESMF_DATA.")
    return dataset


def facts(*datasets: Dataset) -> dict[str, Any]:
    """What a reader needs to know about several matrices, by their names."""
    return {dataset.name: dataset.facts() for dataset in datasets}


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


def fitted(train: ObservedMatrix, model: str, rank: int, **options: Any) -> BayesianMF:
    """A preset fitted with seed 0 on two threads; whether its chains converged is not warned of."""
    from bayesmf import BayesianMF, ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain = {"center": "none", "scale": "none"}
        return BayesianMF(model, rank, random_state=0, n_jobs=2, **plain, **options).fit(train)


def say(what: str) -> None:
    """Tell whoever waits what is being measured."""
    print(f"{what} ...", file=sys.stderr, flush=True)


def in_process(call: str, *args: Any, **environment: str) -> Any:
    """Call a function of the benchmark, named "memory.sample_here", in a process of its own."""
    module, _, name = call.rpartition(".")
    code = (
        f"import json, sys; from benchmarks.{module} import {name} as call; "
        "print(json.dumps(call(*json.loads(sys.argv[1]))))"
    )
    command = [sys.executable, "-c", code, json.dumps(args)]
    own = os.environ | environment
    done = subprocess.run(command, cwd=ROOT, env=own, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def read_json(path: Path) -> dict[str, Any]:
    """What a file of results holds; nothing if it is not there."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write_json(path: Path, results: dict[str, Any]) -> None:
    """Write a file of results, and its folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=1, default=float)
    path.write_text(text + "\n", encoding="utf-8")


def kept(store: Path, *place: str, make: Callable[[], Any]) -> Any:
    """What a file of runs holds at a place; if there is nothing yet, it is made and written."""
    found = read_json(store)
    for name in place[:-1]:
        found = found.get(name, {})
    if place[-1] in found:
        return found[place[-1]]
    say(", ".join(place))
    made = make()
    latest = at = read_json(store)  # others may have written meanwhile
    for name in place[:-1]:
        at = at.setdefault(name, {})
    at[place[-1]] = made
    write_json(store, latest)
    return made


def commit_of(folder: Path) -> str | None:
    """The commit of a checkout, "-dirty" if its code differs from it; None if not known."""
    try:
        head, changes = (
            subprocess.run(
                ["git", *words], cwd=folder, check=True, capture_output=True, text=True
            ).stdout.strip()
            for words in (
                ("rev-parse", "--short=12", "HEAD"),
                ("status", "--porcelain", "--", "src", "benchmarks/*.py"),
            )
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}-dirty" if changes else head
