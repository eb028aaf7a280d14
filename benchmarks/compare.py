"""Whether the recommendation of `bayesmf.compare` is a good one.

Ten times over a tenth of the entries is set aside (the folds of seed 0). `compare` sees the rest
alone, with its default budget on two processes, once by error and once by log density. Then every
model that it tried is fitted to the same rest, at the rank that it had there, and judged on the
tenth. The recommended model's error should be within 1 % of the smallest on average, and never
more than 3 % above it; its log density within 0.02 of the largest on average.

``--data`` chooses matrices, ``--repeats`` the number of tenths; what is done is kept in a file, so
that a run goes on where it was stopped.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import numpy as np

from bayesmf import ConvergenceWarning, ObservedMatrix, compare
from bayesmf.comparison.recorded import log_recorded
from bayesmf.metrics import mse
from bayesmf.splits import kfold
from benchmarks.common import kept, load, read_json
from benchmarks.noise import MATRICES, matrix
from benchmarks.report import RESULTS, Options, claim, table

STORE = RESULTS / "compare-runs.json"
DATA = ("ccle", "ccle_ec50", "overlap", "methylation", "gdsc", "movielens")
MEASURES = ("error", "density")
TENTHS = 10
MEAN, MOST, NATS = 1.01, 1.03, 0.02
QUICK: dict[str, Any] = {"models": ["GGG", "GGGU"], "ranks": [2], "folds": 2, "budget": "quick"}


def judged(train: ObservedMatrix, test: Any, by: str, known: dict[str, Any], **options: Any) -> Any:
    """The recommendation for the rest, and what every model tried does on the tenth.

    ``known`` has what was found out by another measure: models with a rank in common are not fitted
    again.
    """
    begin = time.perf_counter()
    found = compare(train, n_jobs=2, by=by, **options)
    seconds = time.perf_counter() - begin
    for lane in found.lanes:
        name = lane.trial.name
        key = f"{name}, rank {lane.rank()}"
        if not lane.trial.is_baseline and key not in known and np.isfinite(lane.errors).all():
            known[key] = scores(found, name, test)
    best = f"{found.best_}, rank {found.best_rank_}"
    tried = {
        key: known[key] for key in
        (f"{lane.trial.name}, rank {lane.rank()}" for lane in found.lanes) if key in known
    }  # fmt: skip
    return {
        "seconds": seconds,
        "recommended": best,
        "set aside": tried,
        "words": found.recommendation,
    }


def scores(found: Any, name: str, test: Any) -> dict[str, float]:
    """Error and mean log density of one model of a comparison on entries set aside."""
    rows, cols, values = test
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mf = found.fit(name)
    trial = found.lanes[0].trial
    density = log_recorded(mf._predictive(), (rows, cols), values, trial.step, trial.ends)
    return {"error": mse(values, mf.predict(rows, cols)), "density": float(density.mean())}


def measure(name: str, X: ObservedMatrix, tenths: int) -> dict[str, Any]:
    """All tenths of a matrix, by either measure."""
    for number, (train, test) in enumerate(kfold(X, TENTHS, random_state=0)):
        if number < tenths:
            known: dict[str, Any] = {}
            for by in MEASURES:
                kept(STORE, name, str(number), by, make=partial(judged, train, test, by, known))
    return read_json(STORE).get(name, {})


def behind(run: dict[str, Any], by: str) -> float:
    """How far the recommended model is behind the best on the tenth: a ratio, or nats."""
    own = run["set aside"][run["recommended"]][by]
    every = [one[by] for one in run["set aside"].values()]
    return own / min(every) if by == "error" else max(every) - own


def _behind(tenths: dict[str, Any], by: str) -> list[float]:
    return [behind(runs[by], by) for runs in tenths.values() if by in runs]


def claims(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The advice beside its targets."""
    made = []
    for name, tenths in data["compare"].items():
        if ratios := _behind(tenths, "error"):
            what = f"{name}, error of the recommended over the best"
            made.append(claim(f"{what}, mean", float(np.mean(ratios)), most=MEAN))
            made.append(claim(f"{what}, largest", max(ratios), most=MOST))
        if nats := _behind(tenths, "density"):
            what = f"{name}, log density of the recommended below the best, mean"
            made.append(claim(what, float(np.mean(nats)), most=NATS))
    return made


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Every matrix: how far the advice is from the best in hindsight."""
    rows = []
    for name, tenths in data["compare"].items():
        ratios, nats = _behind(tenths, "error"), _behind(tenths, "density")
        runs = [run for one in tenths.values() for run in one.values()]
        advised = [one["error"]["recommended"] for one in tenths.values() if "error" in one]
        often = max(set(advised), key=advised.count) if advised else "-"
        rows.append((
            MATRICES[name].title, len(tenths), int(np.median([len(r["set aside"]) for r in runs])),
            *(f"{x:.3f}" for x in (np.mean(ratios), max(ratios), np.mean(nats))), often,
        ))  # fmt: skip
    header = ("data", "tenths", "models", "error / smallest, mean", "largest",
              "log density below the best, mean", "most often recommended by error")  # fmt: skip
    return [table("Advice beside hindsight", header, rows, quoted=True)]


def part(options: Options) -> dict[str, Any]:
    """The advice on real matrices, against what every model does on entries set aside."""
    if options.quick:
        train, test = next(iter(kfold(load("ccle", quick=True).X, TENTHS, random_state=0)))
        runs = {by: judged(train, test, by, {}, **QUICK) for by in MEASURES}
        data: dict[str, Any] = {"compare": {"ccle": {"0": runs}}}
        return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": {}}
    names = options.data or DATA
    found = {name: measure(name, matrix(name), options.repeats) for name in names}
    data = {"compare": found}
    about = {name: {"source": "real"} for name in names}
    return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": about}
