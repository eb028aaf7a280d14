"""Held-out error on GDSC beside what the study published at the same rank.

Mean over five random 90/10 splits, rank 10, 300 sweeps of which the last 150 are kept. Run it with
``BAYESMF_DATA=... python benchmarks/gdsc.py``; the folder holds ``gdsc/ic50.txt``.
"""

from __future__ import annotations

import sys

import numpy as np

from _common import load, print_table
from bayesmf import ObservedMatrix, sample
from bayesmf.metrics import mse
from bayesmf.splits import holdout

# Mean test error at K = 10 of the study's model selection experiment (Brouwer and Lió, published
# results), and the hyperparameters to compare at: the study's GLL really had this Laplace scale.
PUBLISHED = {
    "GGG": (696.574, {}),
    "GGGA": (691.761, {}),
    "GLL": (688.721, {"eta": 10**-0.25}),
    "GEE": (709.205, {}),
    "GVG": (695.085, {"gamma": 1e-30}),
}


def held_out_error(X: ObservedMatrix, name: str, n_jobs: int = 2) -> float:
    """Mean squared error of a preset on the entries that it never saw."""
    errors = []
    for seed in range(5):
        train, (rows, cols, values) = holdout(X, 0.1, random_state=seed)
        posterior = sample(
            train, name, 10, draws=150, burn_in=150, cells=(rows, cols),
            hyperparameters=PUBLISHED[name][1], random_state=seed, n_jobs=n_jobs,
        )  # fmt: skip
        errors.append(mse(values, posterior.mean))
    return float(np.mean(errors))


def main() -> None:
    dataset = load("gdsc")
    if not dataset.real:
        sys.exit("This comparison needs the real matrix: set BAYESMF_DATA.")
    rows = []
    for name, (published, hyper) in PUBLISHED.items():
        error = held_out_error(dataset.X, name)
        settings = ", ".join(f"{k} = {v:.3g}" for k, v in hyper.items())
        rows.append(
            (name, settings, f"{error:.1f}", f"{published:.1f}", f"{error / published:.3f}")
        )
    print_table(("preset", "setting", "bayesmf", "published", "ratio"), rows)


if __name__ == "__main__":
    main()
