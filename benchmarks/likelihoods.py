"""Milliseconds per sweep under every likelihood, beside the plain one in the same run.

GDSC and MovieLens 100K, rank 20; all are warmed up, then measured in rounds like `sweep`, and the
best round counts. Unequal noise has precisions of rows and columns; limits on GDSC are 100,
or 0 and 100;
Poisson and negative binomial see the values rounded. myFM's ordered probit runs on one thread.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from bayesmf import (
    Censored,
    Gaussian,
    Model,
    NegativeBinomial,
    ObservedMatrix,
    Ordinal,
    StudentT,
    preset,
)
from benchmarks.common import Dataset, facts, load, say, watch_other_work
from benchmarks.peers import installed, myfm_design, silence
from benchmarks.report import Options, claim, table
from benchmarks.timing import ModelTimer, Run, RunTimer, in_rounds

RANK = 20
BOTH = Gaussian(rows=True, cols=True)
# Likelihood in the place of GGGW's own, and how much longer a sweep may be at most.
NORMAL = {
    "unequal, rows": (Gaussian(rows=True), 1.15),
    "unequal, cols": (Gaussian(cols=True), 1.15),
    "unequal, both": (BOTH, 1.15),
    "Student-t": (StudentT(), 3.0),
}
LIMITS = {
    "censored, 32 % of the entries": (Censored(upper=100.0), 1.6),
    "censored, 55 % of the entries": (Censored(0.0, 100.0), 1.6),
}
RATINGS = {"ordinal": (Ordinal(), 2.5)}


def ordered_probit_run(X: ObservedMatrix, rank: int) -> Run:
    """Sweeps of myFM's ordered probit."""
    import myfm
    import numpy as np

    rows, cols, values = X.triples()
    design = myfm_design(X.shape, rows, cols)
    codes = np.unique(values, return_inverse=True)[1]

    def run(sweeps: int) -> float:
        model = myfm.MyFMOrderedProbit(rank=rank, random_seed=0)
        with silence():
            begin = time.perf_counter()
            model.fit(design, codes, group_shapes=X.shape, n_iter=sweeps, n_kept_samples=1)
            return time.perf_counter() - begin

    return run


def measure(dataset: Dataset, options: Options) -> dict[str, float]:
    """Milliseconds per sweep of all contestants on one matrix."""
    say(dataset.name)
    plain, batch = preset("GGGW"), 2 * options.batch
    more = LIMITS if dataset.name == "gdsc" else RATINGS
    models: dict[str, tuple[ObservedMatrix, Model]] = {"plain": (dataset.X, plain)}
    for name, (likelihood, _) in (NORMAL | more).items():
        models[name] = dataset.X, replace(plain, likelihood=likelihood)
    rows, cols, values = dataset.X.triples()
    counts = ObservedMatrix.from_triples(rows, cols, values.round(), dataset.X.shape)
    models["Poisson"] = counts, preset("PGG")
    models["negative binomial"] = counts, replace(preset("PGG"), likelihood=NegativeBinomial())
    timers: dict[str, Any] = {
        name: ModelTimer(X, model, RANK, options.threads, batch)
        for name, (X, model) in models.items()
    }
    if dataset.name == "movielens" and options.peers and installed(["myfm"]):
        timers["myFM ordered probit"] = RunTimer(ordered_probit_run(dataset.X, RANK), batch)
    in_rounds(timers.values(), options.repeats)
    return {name: timer.result()["ms"] for name, timer in timers.items()}


def claims(name: str, ms: dict[str, float]) -> list[dict[str, Any]]:
    """Ratios to the plain sweep, and their targets."""
    made = []
    for title, (_, most) in (NORMAL | LIMITS | RATINGS).items():
        if title in ms:
            ratio = ms[title] / ms["plain"]
            made.append(claim(f"{title} / plain, {name}", ratio, "times", most=most))
    ratio = ms["negative binomial"] / ms["Poisson"]
    made.append(claim(f"negative binomial / Poisson, {name}", ratio, "times", most=1.7))
    if "myFM ordered probit" in ms:
        ratio = ms["myFM ordered probit"] / ms["ordinal"]
        made.append(claim(f"myFM ordered probit / ordinal, {name}", ratio, "times", least=6))
    return made


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Milliseconds and ratios on both matrices."""
    names = list(dict.fromkeys(method for ms in data["ms"].values() for method in ms))
    rows = []
    for method in names:
        cells: list[Any] = [method]
        for ms in data["ms"].values():
            base = ms["Poisson" if method == "negative binomial" else "plain"]
            cells += [ms.get(method), ms[method] / base if method in ms else None]
        rows.append(cells)
    header = ["likelihood", *(h for name in data["ms"] for h in (f"{name}, ms", "ratio"))]
    return [table(f"A sweep at rank {RANK}", header, rows, quoted=True)]


def part(options: Options) -> dict[str, Any]:
    """Sweeps under every likelihood."""
    loaded = [load(name, options.quick) for name in ("gdsc", "movielens")]
    busy = watch_other_work()
    data = {"ms": {dataset.name: measure(dataset, options) for dataset in loaded}}
    data["cores_busy_elsewhere"] = busy()
    made = [entry for name, ms in data["ms"].items() for entry in claims(name, ms)]
    return {"claims": made, "tables": tables(data), "data": data, "datasets": facts(*loaded)}
