"""Whether `bayesmf.compare` recommends the likelihood that made the data, and none without signal.

Five matrices of each likelihood of `simulated`, 120 x 60 and rank 2 with a tenth of the cells
missing, and five of noise alone. The right family counts as found if the recommended model, or one
that is tied with it, has it; a family that holds the right one as a limit (noise of both sides for
that of columns, the negative binomial for Poisson) is not the right one. By log density, with the
budget "quick" on two processes. On noise alone the first sentence has to say that no model beats
the baseline.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bayesmf import compare
from benchmarks import simulated
from benchmarks.common import kept, read_json
from benchmarks.report import RESULTS, Options, claim, table

STORE = RESULTS / "families-runs.json"
SEEDS, SHAPE, MISSING = 5, (120, 60), 0.1
NOTHING = "noise alone"
LEAST = 0.9
FAMILIES = {  # what the names of models of a family have: their first letter, noise and limits
    "Gaussian": ("G", None, False),
    "Gaussian, rows": ("G", "rows", False),
    "Gaussian, cols": ("G", "cols", False),
    "Gaussian, both": ("G", "both", False),
    "Student-t": ("T", None, False),
    "censored": ("G", None, True),
    "ordinal": ("O", None, False),
    "Poisson": ("P", None, False),
    "negative binomial": ("N", None, False),
    "Bernoulli-Poisson": ("B", None, False),
}


def matrix(family: str, seed: int) -> np.ndarray:
    """A matrix of one family, with gaps."""
    rng = np.random.default_rng([seed, 7])
    if family == NOTHING:
        values = rng.normal(size=SHAPE)
    else:
        values, _ = simulated.simulate(simulated.CASES[family], seed, SHAPE)
    return np.where(rng.random(SHAPE) < MISSING, np.nan, values)


def advise(family: str, seed: int, **options: Any) -> dict[str, Any]:
    """What is recommended for such a matrix."""
    found = compare(matrix(family, seed), by="density", n_jobs=2, **{"budget": "quick"} | options)
    level = {found.best_, *found.ties}
    entrants = [lane.entrant for lane in found.lanes if lane.trial.name in level]
    families = [[one.model[0], one.noise, one.limits] for one in entrants]
    return {
        "recommended": found.best_, "ties": found.ties, "families": families,
        "words": found.recommendation,
    }  # fmt: skip


def is_right(family: str, run: dict[str, Any]) -> bool:
    """Whether the advice is what made the data."""
    if family == NOTHING:
        return run["words"].startswith("No model beats")
    return list(FAMILIES[family]) in run["families"]


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Every family: how often it was found, and what else was recommended."""
    rows = []
    for family, runs in data["families"].items():
        right = sum(is_right(family, run) for run in runs.values())
        names = sorted({run["recommended"] for run in runs.values()})
        rows.append((family, f"{right} of {len(runs)}", "; ".join(names)))
    header = ("made by", "found", "recommended")
    return [table("Likelihoods found", header, rows, quoted=True)]


def claims(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Shares of matrices whose family is found."""
    found = {
        family: [is_right(family, run) for run in runs.values()]
        for family, runs in data["families"].items()
    }
    made = []
    if likelihoods := [
        right for family, some in found.items() if family != NOTHING for right in some
    ]:
        what = "right family recommended or tied"
        made.append(claim(what, float(np.mean(likelihoods)), least=LEAST))
    if NOTHING in found:
        made.append(claim("noise alone is called so", float(np.mean(found[NOTHING])), least=1))
    return made


def part(options: Options) -> dict[str, Any]:
    """The advice on simulated matrices."""
    if options.quick:
        run = advise("Gaussian", 0, models=["GGG", "row-average"], ranks=[2])
        data: dict[str, Any] = {"families": {"Gaussian": {"0": run}}}
        return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": {}}
    for family in options.models or (*FAMILIES, NOTHING):
        for seed in range(SEEDS):
            kept(STORE, family, str(seed), make=partial(advise, family, seed))
    data = {"families": read_json(STORE)}
    return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": {}}
