"""Time per sweep of all presets and NMF beside the runtime that the study printed.

On GDSC and MovieLens 100K at the study's four ranks, on several threads and on one, in the same
rounds. A ratio is the study's seconds per iteration (``reference/runtime.csv``, measured by its
authors on their machine) over ours. The study's code is Python with NumPy.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any, NamedTuple

from bayesmf import ObservedMatrix, baseline
from bayesmf.model.presets import PAPER
from benchmarks.common import Dataset, facts, load, say
from benchmarks.report import Options, claim, table
from benchmarks.timing import PresetTimer, Run, RunTimer, Timer, in_rounds

REFERENCE = Path(__file__).parent / "reference" / "runtime.csv"
NAMES = {"gdsc": "GDSC", "movielens": "MovieLens_100K"}  # ours, the study's
RANKS = (5, 10, 20, 50)
MODELS = (*PAPER, "NMF")


class Group(NamedTuple):
    """Models that share a target: how many times faster than the study, with all threads."""

    title: str
    models: tuple[str, ...]
    target: float
    ranks: tuple[int, ...] = RANKS


GROUPS = (
    Group("row block", ("GGG", "GGGA", "GGGW", "GLL", "GLLI"), 50),
    Group("nonnegative", ("GEE", "GEEA", "GTT", "GTTN", "GL21", "GEG"), 50),
    Group("Poisson", ("PGG", "PGGG"), 30),
    Group("GGGU and NMF", ("GGGU", "NMF"), 15),
    Group("volume prior", ("GVG", "GVnG"), 1000, (50,)),
)

Key = tuple[str, str, int]  # model, dataset, rank


def published() -> dict[Key, float]:
    """Seconds per iteration of the study."""
    ours = {theirs: name for name, theirs in NAMES.items()}
    with open(REFERENCE, newline="", encoding="utf-8") as file:
        return {
            (row["model"], ours[row["dataset"]], int(row["K"])): float(row["seconds_per_iteration"])
            for row in csv.DictReader(file)
        }


def nmf_run(X: ObservedMatrix, rank: int, threads: int) -> Run:
    """NMF of so many iterations, training error included."""

    def run(iterations: int) -> float:
        begin = time.perf_counter()
        baseline(X, "NMF", rank, iterations=iterations, random_state=0, n_jobs=threads)
        return time.perf_counter() - begin

    return run


def timer(X: ObservedMatrix, model: str, rank: int, threads: int, batch: float) -> Timer:
    if model == "NMF":
        return RunTimer(nmf_run(X, rank, threads), batch)
    return PresetTimer(X, model, rank, threads, batch)


def measure(
    dataset: Dataset, rank: int, models: tuple[str, ...], options: Options
) -> list[dict[str, Any]]:
    """Time all models on one dataset at one rank, on all threads and on one."""
    say(f"{dataset.name}, K = {rank}")
    counts = sorted({options.threads, 1}, reverse=True)
    timers = {
        (model, threads): timer(dataset.X, model, rank, threads, options.batch)
        for model in models
        for threads in counts
    }
    in_rounds(timers.values(), options.repeats)
    place = {"dataset": dataset.name, "rank": rank}
    return [
        {"name": model, "threads": threads, **place, **timed.result()}
        for (model, threads), timed in timers.items()
    ]


def least_of(group: Group, ratios: dict[Key, float]) -> Key | None:
    """Where a group does worst; None if none of it was measured."""
    found = [key for key in ratios if key[0] in group.models and key[2] in group.ranks]
    return min(found, key=lambda key: ratios[key], default=None)


def share(threads: int) -> float:
    """Part of a group's target that is asked of so many threads."""
    return 0.5 if threads == 1 else 1.0


def group_claims(ratios: dict[Key, float], threads: int) -> list[dict[str, Any]]:
    """The least ratio of every group against its target."""
    claims = []
    for group in GROUPS:
        if (key := least_of(group, ratios)) is not None:
            at = f"least: {key[0]}, {key[1]}, K = {key[2]}"
            title = f"study / {group.title}, {plural(threads)} ({at})"
            least = share(threads) * group.target
            claims.append(claim(title, ratios[key], "times", least=least))
    return claims


def group_table(ratios: dict[int, dict[Key, float]]) -> dict[str, Any]:
    """The least ratio of every group, by the number of threads."""
    rows = []
    for group in GROUPS:
        worst = {threads: least_of(group, of) for threads, of in ratios.items()}
        if None in worst.values():
            continue
        ranks = "" if group.ranks == RANKS else f", K = {', '.join(map(str, group.ranks))}"
        row: list[Any] = [f"{group.title} ({', '.join(group.models)}){ranks}"]
        for threads, key in worst.items():
            row += [ratios[threads][key], f"{share(threads) * group.target:g}"]
        rows.append(row)
    header = ["", *(word for threads in ratios for word in (plural(threads), "target"))]
    title = "Times faster than the study's printed runtime, least over datasets, ranks and models"
    return table(title, header, rows)


def plural(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def tables(results: list[dict[str, Any]], ratios: dict[int, dict[Key, float]]) -> list[Any]:
    """Milliseconds per sweep and ratios, each for every number of threads."""
    ms = {(r["threads"], r["name"], r["dataset"], r["rank"]): r["ms"] for r in results}
    places = list(dict.fromkeys((r["dataset"], r["rank"]) for r in results))
    models = list(dict.fromkeys(r["name"] for r in results))
    header = [f"{dataset} {rank}" for dataset, rank in places]
    made = []
    for threads in ratios:
        rows = [[model, *(ms[threads, model, *place] for place in places)] for model in models]
        title = f"Milliseconds per sweep, {plural(threads)}"
        made.append(table(title, ["", *header], rows))
    for threads, of in ratios.items():
        rows = [[model, *(of.get((model, *place)) for place in places)] for model in models]
        title = f"Times faster than the study's printed runtime, {plural(threads)}"
        made.append(table(title, ["", *header], rows))
    return made


def part(options: Options) -> dict[str, Any]:
    """Every preset and NMF beside the study's runtime."""
    datasets = [load(name, options.quick) for name in NAMES]
    ranks, models = ((5,), ("GGG", "GEE", "NMF")) if options.quick else (RANKS, MODELS)
    results = [
        result
        for dataset in datasets
        for rank in ranks
        for result in measure(dataset, rank, models, options)
    ]
    theirs = published()
    ratios: dict[int, dict[Key, float]] = {}
    for r in results:
        key = (r["name"], r["dataset"], r["rank"])
        ratios.setdefault(r["threads"], {})[key] = 1000 * theirs[key] / r["ms"]
    claims = [entry for threads, of in ratios.items() for entry in group_claims(of, threads)]
    return {
        "claims": claims,
        "tables": [group_table(ratios), *tables(results, ratios)],
        "data": results,
        "datasets": facts(*datasets),
    }
