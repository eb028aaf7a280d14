"""The time of a sweep and of the start in two source trees, in turns.

Each tree has a process of its own, in which ``bayesmf`` is that of the tree: this one (new), and
the one that ``--other`` names (old). Both know the public names `ObservedMatrix`, `Problem`,
`chain` and `preset`; nothing else of them is used. For every preset that both have, on GDSC and
MovieLens at K = 5 and 20, on several threads and on one, both are warmed up; then either times a
batch of sweeps in its turn, the one that goes first changing from round to round, and the best
batch counts. While one measures the other waits for its turn.

The start is that of fresh processes, from their start to the end of the first sweep, with an empty
folder of kernels (first use) and with the folder that this leaves (cached): the best of three.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bayesmf
from benchmarks.common import ROOT, Dataset, MissingError, commit_of, facts, load, say
from benchmarks.first_use import MODELS, until_first_sweep
from benchmarks.report import Options, table
from benchmarks.timing import PresetTimer

DATA, RANKS, STARTS = ("gdsc", "movielens"), (5, 20), 3

Found = list[dict[str, Any]]


def write_matrix(X: Any, path: Path) -> str:
    """Write a matrix for processes of other trees, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows, cols, values = X.triples()
    np.savez(path, rows=rows, cols=cols, values=values, shape=X.shape)
    return str(path)


def read_matrix(path: str) -> Any:
    """Read what `write_matrix` wrote, with the package of this process."""
    with np.load(path) as file:
        *triples, shape = (file[key] for key in ("rows", "cols", "values", "shape"))
    return bayesmf.ObservedMatrix.from_triples(*triples, tuple(shape.tolist()))


def serve() -> None:
    """Say which tree this is; then answer requests by the figures of one more batch.

    A request is a line of JSON: the file of the matrix, and what `PresetTimer` is given beside it.
    """
    timers: dict[str, PresetTimer] = {}
    matrices: dict[str, Any] = {}
    print(json.dumps([bayesmf.__file__, list(bayesmf.PRESETS)]), flush=True)
    for line in sys.stdin:
        path, *case = json.loads(line)
        if path not in matrices:
            matrices[path] = read_matrix(path)
        if line not in timers:
            timers[line] = PresetTimer(matrices[path], *case)  # warms up
        timers[line].round()
        print(json.dumps(timers[line].result()), flush=True)


class Tree(NamedTuple):
    """A process that sweeps with the package of one source tree."""

    process: subprocess.Popen[str]
    environment: dict[str, str]  # what makes a process use this tree
    presets: list[str]

    def ask(self, *request: Any) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        assert self.process.stdin and self.process.stdout
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


@contextmanager
def tree(source: Path, module: str = "benchmarks.versions") -> Iterator[Tree]:
    """Start a process of a source tree, which serves the requests of a module until there are none.

    The first thing it says is which package it has, and the presets of that.
    """
    environment = {"PYTHONPATH": str(source.resolve())}
    command = [sys.executable, "-c", f"from {module} import serve; serve()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, **pipes) as process:
        file, presets = json.loads(process.stdout.readline())
        if Path(file).parents[1] != source.resolve():
            raise MissingError(f"{source}: no bayesmf there, {file} was imported instead.")
        yield Tree(process, environment, presets)


def sweeps(
    dataset: Dataset, rank: int, trees: dict[str, Tree], path: str, options: Options
) -> Found:
    """Every preset on one dataset at one rank, in both trees in turns."""
    say(f"{dataset.name}, K = {rank}")
    shared = [name for name in trees["new"].presets if name in trees["old"].presets]
    models = options.models or (shared[:2] if options.quick else shared)
    counts = sorted({options.threads, 1}, reverse=True)
    best: dict[tuple[str, int], dict[str, Any]] = {(m, n): {} for n in counts for m in models}
    for turn in range(options.repeats):
        for (model, threads), by_tree in best.items():
            for name in sorted(trees, reverse=bool(turn % 2)):
                by_tree[name] = trees[name].ask(path, model, rank, threads, options.batch)
    return [
        {"model": model, "dataset": dataset.name, "rank": rank, "threads": threads,
         **{name: found["ms"] for name, found in by_tree.items()},
         "ratio": by_tree["new"]["ms"] / by_tree["old"]["ms"],
         "finite": all(found["finite"] for found in by_tree.values())}
        for (model, threads), by_tree in best.items()
    ]  # fmt: skip


def starts(trees: dict[str, Tree], options: Options) -> Found:
    """Seconds of the first use and of the start with a filled cache, in all trees in turns."""
    models = MODELS[:1] if options.quick else MODELS
    found: dict[tuple[str, str], dict[str, float]] = {}
    for turn in range(1 if options.quick else STARTS):
        for model in models:
            say(f"start of {model}, {turn + 1} of {STARTS}")
            for name in sorted(trees, reverse=bool(turn % 2)):
                with tempfile.TemporaryDirectory() as cache:
                    for use in ("first use", "cached"):
                        own = trees[name].environment | {"BAYESMF_CACHE": cache}
                        best = found.setdefault((model, use), {})
                        seconds = until_first_sweep(model, **own)
                        best[name] = min(best.get(name, np.inf), seconds)
    return [
        {"model": model, "use": use, **best, "ratio": best["new"] / best["old"]}
        for (model, use), best in found.items()
    ]


def largest(found: Found) -> str:
    """Where the new tree does worst."""
    worst = max(found, key=lambda row: row["ratio"])
    keys = ("model", "use", "dataset", "rank", "threads")
    where = ", ".join(f"{key} {worst[key]}" for key in keys if key in worst)
    mean = float(np.exp(np.mean([np.log(row["ratio"]) for row in found])))
    return f"Largest ratio: {worst['ratio']:.3f} ({where}); geometric mean: {mean:.3f}."


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Old, new and their ratio: of sweeps for every number of threads, then of starts."""
    made = []
    for threads in dict.fromkeys(row["threads"] for row in data["sweeps"]):
        found = [row for row in data["sweeps"] if row["threads"] == threads]
        made.append(_table(f"Milliseconds per sweep, threads: {threads}", found, "dataset", "rank"))
    return [*made, _table("Seconds to the end of the first sweep", data["starts"], "use")]


def _table(title: str, found: Found, *keys: str) -> dict[str, Any]:
    rows = [
        (row["model"], *(row[key] for key in keys), row["old"], row["new"], f"{row['ratio']:.3f}")
        for row in found
    ]
    return table(title, ("", *keys, "old", "new", "new / old"), rows, largest(found))


def part(options: Options) -> dict[str, Any]:
    """Sweeps and starts of this source tree and of another."""
    if options.other is None:
        raise MissingError("versions: name the other source tree, --other PATH/TO/src.")
    sources = {"old": options.other, "new": ROOT / "src"}
    names = options.data or (DATA[:1] if options.quick else DATA)
    datasets = [load(name, options.quick) for name in names]
    found: Found = []
    with (
        tree(sources["old"]) as old,
        tree(sources["new"]) as new,
        tempfile.TemporaryDirectory() as folder,
    ):
        trees = {"old": old, "new": new}
        for dataset in datasets:
            path = write_matrix(dataset.X, Path(folder) / f"{dataset.name}.npz")
            for rank in options.ranks or (RANKS[:1] if options.quick else RANKS):
                found += sweeps(dataset, rank, trees, path, options)
        commits = {name: commit_of(source.resolve().parent) for name, source in sources.items()}
        data = {"commits": commits, "sweeps": found, "starts": starts(trees, options)}
    return {"claims": [], "tables": tables(data), "data": data, "datasets": facts(*datasets)}
