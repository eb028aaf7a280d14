"""How time and memory grow with the number of observed entries, and what a second thread brings.

*Growth*: synthetic matrices with 10^4 to 10^7 entries at K = 10. Rows and columns grow with the
entries, 25 to a row and 50 to a column, so that all work of a sweep should grow in proportion. The
time is that of a sweep on one thread, since small matrices would not use a second one. The memory
is the most that Python and NumPy hold during `bayesmf.sample`, from the given triples on, as
tracemalloc counts it (the interpreter and the compiled kernels left out); the moments of 100 cells
are kept instead of those of the full matrix, which is quadratic by nature. The exponent is the
slope of a straight line through the logarithms.

*Threads*: the time of a sweep on one thread over that on several, on a matrix of the size of
MovieLens 1M at K = 20.

The plot is written where the runner says: ``docs/images/scaling.svg`` (needs Matplotlib).
"""

from __future__ import annotations

import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bayesmf import ObservedMatrix, sample
from benchmarks.common import facts, load, say, synthetic
from benchmarks.report import Options, claim, table
from benchmarks.timing import PresetTimer, in_rounds, milliseconds

MODELS = ("GGGA", "GEE")
SIZES = (10_000, 31_600, 100_000, 316_000, 1_000_000, 3_160_000, 10_000_000)
PER_ROW, PER_COL = 25, 50
RANK = 10
EXPONENT, TOLERANCE = 1.0, 0.05
THREAD_MODELS = ("GGG", "GGGW", "GGGU", "GEE", "PGG", "GVG")
THREAD_TARGET = 1.7
MB = 1e6


def matrix(observed: int) -> ObservedMatrix:
    """Ratings at random places: always as many to a row and to a column."""
    return synthetic((observed // PER_ROW, observed // PER_COL), observed, 1, 5)


def megabytes(X: ObservedMatrix, name: str) -> float:
    """The most memory that a short run takes, its own copy of the data included."""
    triples = X.triples()
    cells = tuple(index[:100] for index in triples[:2])
    run = partial(sample, model=name, n_components=RANK, draws=1, burn_in=1, random_state=0)
    run(np.eye(9), cells=([0], [0]))  # loads the kernels
    tracemalloc.start()
    try:
        run(triples, cells=cells)
        return tracemalloc.get_traced_memory()[1] / MB
    finally:
        tracemalloc.stop()


def exponent(sizes: list[int], figures: list[float]) -> float:
    """Slope of the logarithms of the figures against those of the sizes."""
    return float(np.polyfit(np.log(sizes), np.log(figures), 1)[0])


def growth(options: Options) -> dict[str, Any]:
    """Time and memory of every model at every size."""
    sizes = [2500, 5000, 10_000] if options.quick else list(SIZES)
    found: dict[str, Any] = {"sizes": sizes, "ms": {}, "MB": {}}
    for observed in sizes:
        say(f"{observed} entries")
        X = matrix(observed)
        times = milliseconds(X, MODELS, RANK, options.repeats, options.batch)
        for name, ms in times.items():
            found["ms"].setdefault(name, []).append(ms)
            found["MB"].setdefault(name, []).append(megabytes(X, name))
    for quantity in ("ms", "MB"):
        found[f"{quantity} exponents"] = {
            name: exponent(sizes, figures) for name, figures in found[quantity].items()
        }
    return found


def growth_claims(found: dict[str, Any]) -> list[dict[str, Any]]:
    sizes = found["sizes"]
    span = f"{sizes[0]:.0e} to {sizes[-1]:.0e} entries".replace("e+0", "e")
    bounds = {"least": EXPONENT - TOLERANCE, "most": EXPONENT + TOLERANCE}
    return [
        claim(f"exponent of {word} in the entries, {name}, {span}", value, **bounds)
        for quantity, word in (("ms", "time"), ("MB", "memory"))
        for name, value in found[f"{quantity} exponents"].items()
    ]


def growth_tables(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Figures by size, and the exponent between neighbouring sizes."""
    made = []
    for quantity, title in (("ms", "Milliseconds per sweep, one thread"), ("MB", "Megabytes")):
        rows = []
        for k, observed in enumerate(found["sizes"]):
            row: list[Any] = [f"{observed:,}"]
            for figures in found[quantity].values():
                pair = [slice(k - 1, k + 1)] if k else []
                local = [exponent(found["sizes"][s], figures[s]) for s in pair]
                row += [figures[k], *(local or [None])]
            rows.append(row)
        header = ["entries", *(h for name in found[quantity] for h in (name, "exponent"))]
        made.append(table(f"{title}, K = {RANK}", header, rows))
    return made


def plot(found: dict[str, Any], path: Path) -> None:
    """Draw time and memory against the number of entries; says so where Matplotlib is absent."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib: not installed, no plot")
        return
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "bayesmf", "font.size": 9})
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 3), layout="constrained")
    sizes = np.array(found["sizes"], dtype=float)
    labels = {"ms": "milliseconds per sweep, one thread", "MB": "megabytes"}
    for axes, (quantity, label) in zip(figure.subplots(1, 2), labels.items(), strict=True):
        for name, figures in found[quantity].items():
            slope = found[f"{quantity} exponents"][name]
            axes.loglog(sizes, figures, "o-", markersize=3, label=f"{name}: exponent {slope:.2f}")
        last = next(iter(found[quantity].values()))[-1]
        axes.loglog(sizes, last * sizes / sizes[-1], "k:", linewidth=1, label="proportional")
        axes.set(xlabel="observed entries", ylabel=label)
        axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def threads_gain(options: Options) -> tuple[dict[str, Any], dict[str, Any]]:
    """Times on one thread and on several, and what is known of the data."""
    dataset = load("million", options.quick)
    rank, models = (3, THREAD_MODELS[:2]) if options.quick else (20, THREAD_MODELS)
    found = {}
    for name in models:
        say(f"{name}, 1 and {options.threads} threads")
        timers = [
            PresetTimer(dataset.X, name, rank, threads, options.batch)
            for threads in (1, options.threads)
        ]
        in_rounds(timers, options.repeats)
        one, several = (timer.result()["ms"] for timer in timers)
        found[name] = {"one": one, "several": several, "gain": one / several}
    return found, facts(dataset)


def part(options: Options) -> dict[str, Any]:
    """Growth with the number of entries, and the gain by threads."""
    found = growth(options)
    plot(found, options.images / "scaling.svg")
    gains, known = threads_gain(options)
    claims = [
        claim(f"{options.threads} threads against one, {name}, million", gain["gain"], "times",
              least=THREAD_TARGET)
        for name, gain in gains.items()
    ]  # fmt: skip
    rows = [[name, *gain.values()] for name, gain in gains.items()]
    header = ["ms per sweep", "1 thread", f"{options.threads} threads", "times faster"]
    shown = table("Threads, 6040 x 3503 with a million entries, K = 20", header, rows)
    return {
        "claims": claims + growth_claims(found),
        "tables": [shown, *growth_tables(found)],
        "data": {"growth": found, "threads": gains},
        "datasets": known,
    }
