"""Held-out error on GDSC beside what the study published at the same rank.

Mean over five random 90/10 splits, rank 10, 300 sweeps of which the last 150 are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesmf import ObservedMatrix, sample
from bayesmf.metrics import mse
from bayesmf.splits import holdout
from benchmarks.common import facts, load_real, say
from benchmarks.report import Options, claim, table

# Mean test error at K = 10 of the study's model selection experiment (Brouwer and Lió, published
# results), and the hyperparameters to compare at: the study's GLL really had this Laplace scale.
PUBLISHED = {
    "GGG": (696.574, {}),
    "GGGA": (691.761, {}),
    "GLL": (688.721, {"eta": 10**-0.25}),
    "GEE": (709.205, {}),
    "GVG": (695.085, {"gamma": 1e-30}),
}
TARGET = 1.01  # times the published error


def held_out_error(X: ObservedMatrix, name: str, n_jobs: int = 2, sweeps: int = 150) -> float:
    """Mean squared error of a preset on the entries that it never saw."""
    errors = []
    for seed in range(5):
        train, (rows, cols, values) = holdout(X, 0.1, random_state=seed)
        posterior = sample(
            train, name, 10, draws=sweeps, burn_in=sweeps, cells=(rows, cols),
            hyperparameters=PUBLISHED[name][1], random_state=seed, n_jobs=n_jobs,
        )  # fmt: skip
        errors.append(mse(values, posterior.mean))
    return float(np.mean(errors))


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Our errors and the published ones."""
    rows = []
    for name, error in data["errors"].items():
        published, hyper = PUBLISHED[name]
        settings = ", ".join(f"{key} = {value:.3g}" for key, value in hyper.items())
        rows.append(
            (name, settings, f"{error:.1f}", f"{published:.1f}", f"{error / published:.3f}")
        )
    header = ("preset", "setting", "bayesmf", "published", "ratio")
    return [table("Held-out error on GDSC, K = 10", header, rows)]


def part(options: Options) -> dict[str, Any]:
    """Errors of five presets on GDSC."""
    dataset = load_real("gdsc", options.quick)
    errors = {}
    for name in PUBLISHED:
        say(name)
        sweeps = 5 if options.quick else 150
        errors[name] = held_out_error(dataset.X, name, options.threads, sweeps)
    data = {"errors": errors}
    claims = [
        claim(f"held-out error / published, gdsc, {name}", error / PUBLISHED[name][0], most=TARGET)
        for name, error in errors.items()
    ]
    return {"claims": claims, "tables": tables(data), "data": data, "datasets": facts(dataset)}
