"""How long `bayesmf.compare` takes with its default budget, in two source trees in turns.

CCLE IC50 and gene body methylation, whole, on two processes, in fresh ones with the kernels of
their tree compiled before; and how many models each tree tries. GDSC is run in this tree alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import bayesmf
from benchmarks.common import ROOT, TITLES, load_real, say
from benchmarks.report import Options, claim, table
from benchmarks.versions import read_matrix, write_matrix

BOTH, ALONE = ("ccle", "methylation"), ("gdsc",)
HALF, MINUTES, TWICE = 0.5, 4.0, 2.0
RUN = "from benchmarks.race import compared; import sys; compared(*sys.argv[1:])"


def compared(path: str, budget: str) -> None:
    """Compare all models on a matrix; prints seconds and the number of models."""
    X = read_matrix(path)
    begin = time.perf_counter()
    found = bayesmf.compare(X, budget=budget, n_jobs=2)
    models = [one for one in found.standings if "baseline" not in one.status]
    print(time.perf_counter() - begin, len(models), found.standings[0].model, sep="\t")


def timed(source: Path, path: str, budget: str = "default") -> dict[str, Any]:
    """The same in a process whose package is that of a source tree."""
    places = os.pathsep.join([str(source), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", RUN, path, budget], env=os.environ | {"PYTHONPATH": places},
        cwd=ROOT / "build", check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    seconds, models, best = done.stdout.strip().splitlines()[-1].split("\t")
    return {"seconds": float(seconds), "models": int(models), "recommended": best}


def measure(name: str, trees: dict[str, Path], repeats: int) -> dict[str, Any]:
    """The best time of every tree, in turns."""
    path = write_matrix(load_real(name).X, ROOT / "build" / f"race-{name}.npz")
    found: dict[str, Any] = {}
    for turn in range(repeats + 1):
        for which, source in trees.items():
            say(f"{which}, {name}, {turn if turn else 'compiling'}")
            run = timed(source, path, "default" if turn else "quick")
            if turn and (which not in found or run["seconds"] < found[which]["seconds"]):
                found[which] = run
    return found


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Seconds and models of both trees."""
    rows = [
        (TITLES[name], which, run["models"], f"{run['seconds']:.0f}", run["recommended"])
        for name, runs in data["race"].items()
        for which, run in runs.items()
    ]
    header = ("data", "tree", "models", "seconds", "recommended")
    return [table("Seconds of compare", header, rows, quoted=True)]


def claims(data: dict[str, Any]) -> list[dict[str, Any]]:
    """New beside old."""
    made = []
    for name, runs in data["race"].items():
        if "old" in runs:
            new, old = runs["new"], runs["old"]
            ratio, times = new["seconds"] / old["seconds"], new["models"] / old["models"]
            made.append(claim(f"{name}, seconds of compare, new over old", ratio, most=HALF))
            made.append(claim(f"{name}, models tried, new over old", times, least=TWICE))
        elif name in ALONE:
            minutes = runs["new"]["seconds"] / 60
            made.append(claim(f"{name}, minutes of compare", minutes, most=MINUTES))
    return made


def part(options: Options) -> dict[str, Any]:
    """Times of both trees, or of this one alone."""
    trees = {"new": ROOT / "src"} | ({"old": options.other} if options.other else {})
    names = options.data or (*BOTH, *ALONE)
    data = {"race": {
        name: measure(name, trees if name in BOTH else {"new": ROOT / "src"}, options.repeats)
        for name in names
    }}  # fmt: skip
    about = {name: {"source": "real"} for name in names}
    return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": about}
