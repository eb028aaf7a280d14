"""How many rungs a parallel tempering of modes would need, measured rung by rung.

The noise precision is held at its posterior mean tau, and the likelihood raised to a power b: a
chain under the precision b tau, which needs nothing but the sampler as it is. For falling b two
chains of 250 sweeps and 250 draws tell the share of the cells whose split R-hat is above 1.1, and
the standard deviation of the log likelihood (of b = 1). Neighbours that are to exchange their
states in three tries of ten may lie apart by 1.47 over this deviation (two normals that overlap so
much that erfc(1.47 / 2) = 0.3), so a ladder down to b takes the integral of the deviation from b
to 1 divided by 1.47. Every rung costs a chain.

Matrices, ranks and held-out cells are those of `census`; ``--models`` and ``--data`` choose.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import bayesmf
from bayesmf import Gaussian, preset
from benchmarks.census import ABOVE, RANKS, held_out, share_above
from benchmarks.common import TITLES, facts, load, say
from benchmarks.report import Options, table

MATRICES = ("methylation", "gdsc")
MODELS = ("GEE", "GEEA", "GL21", "GLL", "GHH")
POWERS = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015)
APART = 1.47  # standard deviations between neighbours that exchange in three tries of ten


def run(X: Any, name: str, rank: int, precision: float | None, sweeps: int) -> Any:
    """Two chains of a preset, its noise precision held fixed if one is given."""
    model = preset(name)
    if precision is not None:
        model = replace(model, likelihood=Gaussian(precision=precision))
    return bayesmf.sample(
        X, model, rank, chains=2, burn_in=sweeps, draws=sweeps,
        keep=("U", "V", "noise_precision") if precision is None else ("U", "V"), n_jobs=2,
        random_state=0,
    )  # fmt: skip


def rungs(deviations: dict[float, float]) -> list[float]:
    """Rungs from 1 down to every power, the deviation taken as a power of b between them."""
    powers = np.array(list(deviations))
    logs = np.log(powers[:-1] / powers[1:])  # of b, between neighbours
    weighted = powers * np.array(list(deviations.values()))  # of the deviation, per unit of log b
    return [1.0, *(1.0 + np.cumsum(0.5 * (weighted[:-1] + weighted[1:]) * logs) / APART).tolist()]


def ladder(X: Any, name: str, rank: int, sweeps: int) -> dict[str, Any]:
    """Shares of the cells that disagree, and rungs needed, by power."""
    tau = float(run(X, name, rank, None, sweeps).draws["noise_precision"].mean())
    above, deviations = [], {}
    for power in POWERS:
        posterior = run(X, name, rank, power * tau, sweeps)
        energy = 0.5 * tau * X.n_observed * posterior.train_mse[:, sweeps:]
        deviations[power] = float(energy.std(axis=1).mean())
        above.append(share_above(posterior.draws["U"], posterior.draws["V"]))
    return {"above": above, "deviation": list(deviations.values()), "rungs": rungs(deviations)}


def part(options: Options) -> dict[str, Any]:
    """All models that are left with modes."""
    names = [name for name in MATRICES if not options.data or name in options.data]
    found: dict[str, Any] = {}
    for name in names[:1] if options.quick else names:
        X, _ = held_out(load(name, options.quick).X)
        for model in options.models or (MODELS[:1] if options.quick else MODELS):
            say(f"{name}, {model}")
            rank = 2 if options.quick else RANKS[name]
            found[f"{name}, {model}"] = ladder(X, model, rank, 20 if options.quick else 250)
    data = {"ladders": found}
    return {
        "claims": [], "tables": tables(data), "data": data,
        "datasets": facts(*(load(name, options.quick) for name in names)),
    }  # fmt: skip


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for every matrix and model: cells that disagree / rungs down to each power."""
    rows = []
    for place, one in data["ladders"].items():
        name, model = place.split(", ")
        cells = (
            f"{100 * share:.1f} % / {count:.0f}"
            for share, count in zip(one["above"], one["rungs"], strict=True)
        )
        rows.append((TITLES[name], model, *cells))
    header = ("data", "model", *(f"{power:g}" for power in POWERS))
    what = f"Cells above {ABOVE} / rungs of a ladder, by the power of the likelihood"
    return [table(what, header, rows, quoted=True)]
