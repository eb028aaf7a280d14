"""What drawing rows on the other side of their mean brings, for several coefficients.

Two chains of 250 sweeps and 250 draws from two seeds, with the matrices, ranks and held-out cells
of `census`. The coefficient is the part of a row's deviation from its mean that stays; 0 is the
plain Gibbs sampler. What is told are effective draws of the 500, medians over the cells: of the
predictions, which decide about means, and of their squared deviations, which decide about
standard deviations.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np

import bayesmf
from bayesmf.model import biases
from bayesmf.updates import counts, normal, volume
from bayesmf.updates.blocks import Relaxation
from benchmarks.census import RANKS, held_out
from benchmarks.common import TITLES, facts, load, say
from benchmarks.mixing import effective_size
from benchmarks.report import Options, table

COEFFICIENTS = (0.0, -0.3, -0.5, -0.7)
MODELS = ("GGG", "GGGW", "GLL", "GHH", "GEE", "GL21")
SEEDS = range(2)


def effective(X: Any, cells: Any, model: str, rank: int, stay: float, sweeps: int) -> list[float]:
    """Effective draws of predictions and of their squared deviations, means over the seeds."""
    how = Relaxation(stay, math.sqrt(1 - stay**2))
    found = []
    with ExitStack() as patches:
        for module in (normal, volume, counts, biases):
            patches.enter_context(mock.patch.object(module, "relaxation", return_value=how))
        for seed in SEEDS:
            posterior = bayesmf.sample(
                X, model, rank, chains=2, burn_in=sweeps, draws=sweeps, keep=("U", "V"), n_jobs=2,
                random_state=seed,
            )  # fmt: skip
            U, V = (posterior.draws[name] for name in ("U", "V"))
            values = np.einsum("cdtk,cdtk->cdt", U[:, :, cells[0]], V[:, :, cells[1]])
            squares = (values - values.mean(axis=(0, 1))) ** 2
            found.append([np.median(sum(map(effective_size, of))) for of in (values, squares)])
    return np.mean(found, axis=0).tolist()


def part(options: Options) -> dict[str, Any]:
    """All matrices."""
    names = ["ccle"] if options.quick else list(RANKS)
    found: dict[str, Any] = {}
    for name in names:
        train, cells = held_out(load(name, options.quick).X)
        for model in MODELS[: 1 if options.quick else None]:
            say(f"{name}, {model}")
            for stay in COEFFICIENTS:
                size = effective(
                    train, cells, model, RANKS[name], stay, 20 if options.quick else 250
                )
                found.setdefault(f"{name}, {model}", {})[f"{stay:g}"] = size
    data = {"effective": found}
    return {
        "claims": [], "tables": tables(data), "data": data,
        "datasets": facts(*(load(name, options.quick) for name in names)),
    }  # fmt: skip


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for every matrix and model: effective draws for means / for spreads."""
    rows = []
    for place, one in data["effective"].items():
        name, model = place.split(", ")
        sizes = (f"{means:.0f} / {spreads:.0f}" for means, spreads in one.values())
        rows.append((TITLES[name], model, *sizes))
    header = ("data", "model", *(f"{stay:g}" for stay in COEFFICIENTS))
    return [table("Effective draws of 500, for means / for spreads", header, rows, quoted=True)]
