"""Whether the verdict on a run is right: beside what is held out, and a run ten times as long.

Cases are the seventeen presets at the defaults on three matrices of the study (rank 5 on CCLE IC50,
10 on methylation and GDSC), the automatic model on the thirteen tables of the part "tables", and
runs that go wrong on purpose: values in molar without a scale, columns of different units without
one, -999 in the place of missing cells, an id among the values. 15 % of the entries are held out.

A run is bad if its mean absolute error is more than 5 % above that of a run with ten times the
sweeps on data that are not spoilt, by more than two standard errors of their difference over the
cells, or if its 90 % intervals hold a share that is more than 8 points off. (Squares of errors are
dominated by single cells of rows with one entry, and differ from run to run whatever its length.)
A false alarm is "do not use" of a run that is not bad, a miss anything
else of one that is. What is done is kept in a file, so that a run goes on where it was stopped.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from bayesmf import PRESETS, BayesianMF, ConvergenceWarning, datasets
from bayesmf.data.observed import ObservedMatrix
from bayesmf.metrics import mse
from bayesmf.splits import holdout
from benchmarks.common import load, read_json, say, write_json
from benchmarks.report import RESULTS, Options, claim, table

STORE = RESULTS / "verdicts-runs.json"
LONGER = 10
WORSE, OFF = 1.05, 0.08
STUDY = {"CCLE_IC50": 5, "Methylation_GM": 10, "GDSC": 10}


class Case(NamedTuple):
    """A fit: its data, the estimator's parameters, and whether it goes wrong on purpose."""

    data: str
    model: str = "auto"
    rank: Any = "auto"
    options: dict[str, Any] = {}  # noqa: RUF012
    spoilt: str = ""  # how the training data are spoilt

    def __str__(self) -> str:
        more = ", ".join(f"{key}={value}" for key, value in self.options.items())
        return ", ".join(filter(None, (self.data, self.model, str(self.rank), more, self.spoilt)))


def cases() -> list[Case]:
    """All of them; what is quick comes first."""
    from benchmarks.tables import TABLES

    raw = {"scale": "none", "center": "none"}
    spoilt = [
        Case("CCLE_IC50", spoilt="molar"),
        Case("CCLE_IC50", "GGGA", 10, raw, "molar"),
        Case("CCLE_IC50", "GGGW", 10, raw, "molar"),
        Case("CCLE_IC50", spoilt="-999"),
        Case("CCLE_IC50", "GGGA", 10, raw, "-999"),
        Case("wine", spoilt="-999"),
        Case("wine", spoilt="ids"),
        Case("CCLE_IC50", spoilt="ids"),
        Case("CCLE_IC50", "GGGA", 10, raw, "ids"),
        Case("overlap_gdsc", "GGGA", 10, raw | {"biases": True}, "ids"),
    ]
    presets = [Case(data, model, rank) for data, rank in STUDY.items() for model in PRESETS]
    return [*spoilt, *presets, *(Case(name) for name in TABLES)]


def matrix(name: str) -> ObservedMatrix:
    """A table of the part "tables", or a matrix of the catalogue."""
    from benchmarks.tables import TABLES, read

    if name in TABLES:
        return read(name)
    return datasets.load(name).X


def spoil(train: ObservedMatrix, how: str) -> tuple[ObservedMatrix, float]:
    """The training data with what makes them wrong, and what held-out values are multiplied by."""
    if how == "molar":
        return train.with_values(train.rows.values * 1e-6), 1e-6
    X = train.to_array()
    if how == "-999":
        gaps = np.isnan(X) & (np.random.default_rng(0).random(X.shape) < 0.3)
        X[gaps] = -999.0
    elif how == "ids":
        ids = np.random.default_rng(0).choice(10**6, len(X), replace=False)
        X = np.column_stack([ids.astype(float), X])
    return ObservedMatrix.of(X), 1.0


def run(case: Case, longer: int = 1) -> tuple[dict[str, Any], np.ndarray]:
    """Fit, and hold against the entries left out; figures, and all absolute errors."""
    train, (i, j, values) = holdout(matrix(case.data), 0.15, random_state=0)
    train, unit = spoil(train, case.spoilt) if case.spoilt else (train, 1.0)
    if case.spoilt == "ids":
        j = j + 1
    mf = BayesianMF(
        case.model, case.rank, random_state=longer, n_jobs=2, draws=250, burn_in=250 * longer,
        thin=longer, **case.options,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mf.fit(train)
    mean, (low, high) = mf.predict(i, j, quantiles=[0.05, 0.95])
    truth = unit * values
    errors = np.abs(truth - mean) / unit
    found: dict[str, Any] = {
        "error": float(errors.mean()),
        "mse": mse(truth, mean) / unit**2,
        "covered": float(np.mean((low <= truth) & (truth <= high))),
        "rank": mf.n_components_,
    }
    if longer == 1:
        summary = mf.summary()
        rhat = summary.cell_rhat
        found |= {
            "level": summary.level, "advice": list(summary.advice), "notes": mf.notes_,
            "share": float(np.mean(rhat > 1.1)) if rhat.size else 0.0,
            **summary.evidence._asdict(),
        }  # fmt: skip
    return found, errors


def measure(options: Options) -> dict[str, Any]:
    """Figures of all cases; what is on file is not run again."""
    for case in cases():
        if options.models and case.model not in options.models:
            continue
        if str(case) not in read_json(STORE):
            say(str(case))
            found, errors = run(case)
            sound = case._replace(rank=found["rank"], spoilt="")
            long, others = run(sound, LONGER)
            gap = errors - others
            long["gap_error"] = float(gap.std(ddof=1) / gap.size**0.5)
            done = read_json(STORE)
            write_json(STORE, done | {str(case): {"run": found, "long": long}})
    return read_json(STORE)


def is_bad(found: dict[str, Any]) -> bool:
    """Whether the results of a run should not be used."""
    one, long = found["run"], found["long"]
    gap = one["error"] - long["error"]
    worse = gap > (WORSE - 1) * long["error"] and gap > 2 * long.get("gap_error", 0.0)
    return worse or abs(one["covered"] - 0.9) > OFF


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """All cases that are bad or called so, and how many there are of each."""
    rows, counts = [], {}
    for case in cases():
        found = data.get(str(case), {})
        if "long" not in found:
            continue
        bad, level = is_bad(found), found["run"]["level"]
        counts[bad, level] = counts.get((bad, level), 0) + 1
        ratio = f"{found['run']['error'] / found['long']['error']:.3f}"
        if bad or level != "fine":
            rows.append((str(case), ratio, f"{found['run']['covered']:.1%}",
                         "bad" if bad else "good", level))  # fmt: skip
    header = ("case", "error over that of a long run", "coverage", "truth", "verdict")
    levels = ("fine", "usable", "do not use")
    census = [(truth, *(counts.get((truth == "bad", level), 0) for level in levels))
              for truth in ("good", "bad")]  # fmt: skip
    return [
        table("Verdicts", ("truth", *levels), census, quoted=True),
        table("Cases that are bad or not called fine", header, rows),
    ]


def part(options: Options) -> dict[str, Any]:
    """Verdicts beside the truth."""
    if options.quick:
        return _quick()
    data = measure(options)
    judged = [(is_bad(found), found["run"]["level"]) for found in data.values() if "long" in found]
    alarms = sum(not bad and level == "do not use" for bad, level in judged)
    misses = sum(bad and level != "do not use" for bad, level in judged)
    claims = [
        claim("false alarms", alarms, most=2),
        claim("misses", misses, most=0),
    ]
    return {"claims": claims, "tables": tables(data), "data": data, "datasets": {}}


def _quick() -> dict[str, Any]:
    X = load("gdsc", quick=True).X
    mf = BayesianMF("GGG", 2, draws=30, burn_in=10, random_state=0).fit(X)
    return {"claims": [], "tables": [], "data": {"level": mf.summary().level}, "datasets": {}}
