"""Whether units matter: the same data in other units, predictions compared.

Eight data sets, times 1e-9, 1e-3, 1e3 and 1e9, and each column times a power of ten of its own,
from 1e-6 to 1e6; every preset that fits, with short chains, and the automatic model. What is told
is the largest difference of a prediction, a standard deviation or an end of an interval, in other
units and put back, from what the data in their own units gave, relative to the size of its column.
The command line fits the files of both, and its completed tables are compared in the same way.
Columns without any entry are left out: nothing tells their unit.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bayesmf import PRESETS, BayesianMF, ConvergenceWarning, preset
from bayesmf.cli import main
from benchmarks.common import say
from benchmarks.report import Options, claim, table
from benchmarks.tables import read

DATA = ("iris", "wine", "diabetes", "breast_cancer", "overlap_gdsc", "overlap_ccle_ic50", "ccle",
        "methylation")  # fmt: skip
FACTORS = (1e-9, 1e-3, 1e3, 1e9)
SHORT = {"draws": 20, "burn_in": 20, "random_state": 0, "n_jobs": 2}


def units(columns: int) -> dict[str, np.ndarray]:
    """What columns are multiplied by."""
    powers = np.random.default_rng(0).integers(-6, 7, columns)
    return {f"{f:g}": np.full(columns, f) for f in FACTORS} | {"each its own": 10.0**powers}


def predict(X: np.ndarray, model: str) -> np.ndarray:
    """Means, standard deviations and intervals of all cells."""
    rank: Any = "auto" if model == "auto" else min(5, *X.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mf = BayesianMF(model, rank, **SHORT).fit(X)
    mean, std, ends = mf.predict(return_std=True, quantiles=[0.05, 0.95])
    return np.stack([mean, std, *ends])


def by_command(X: np.ndarray, model: str) -> np.ndarray:
    """The table that `bayesmf fit` completes."""
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "data.csv", Path(folder) / "fit"
        header = ",".join(f"c{j}" for j in range(X.shape[1]))
        np.savetxt(file, X, delimiter=",", header=header, comments="", fmt="%.17g")
        words = ["--model", model, "--rank", "3", "--draws", "20", "--burn-in", "20", "--seed", "0"]
        assert main(["fit", str(file), *words, "--row-labels", "no", "--output", str(out),
                     "--quiet"]) == 0  # fmt: skip
        lines = (out / "completed.csv").read_text().splitlines()[1:]
    return np.array([[float(cell) for cell in line.split(",")[1:]] for line in lines])[None]


def gap(X: np.ndarray, model: str, how: Callable[..., np.ndarray]) -> dict[str, float]:
    """The largest difference by unit."""
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        size = np.nan_to_num(np.nanstd(X, axis=0)) + np.nan_to_num(np.nanmax(np.abs(X), axis=0))
    size = np.where(size > 0, size, 1.0)
    own, known = how(X, model), ~np.isnan(X).all(axis=0)
    found = {}
    for name, unit in units(X.shape[1]).items():
        other = how(X * unit, model) / unit
        off = np.abs(other - own) / np.maximum(np.abs(own), size)
        found[name] = float(np.max(off[..., known]))
    return found


def part(options: Options) -> dict[str, Any]:
    """Largest differences by data set."""
    data: dict[str, Any] = {}
    for name in DATA[:1] if options.quick else DATA:
        X = read(name).to_array()
        X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
        negative = bool((np.nan_to_num(X) < 0).any())
        models = [m for m, row in PRESETS.items() if row.likelihood.takes_units
                  and not (negative and all(preset(m).nonnegative))]  # fmt: skip
        for model in ["GGG"] if options.quick else [*models, "auto"]:
            say(f"{name}, {model}")
            data.setdefault(name, {})[model] = gap(X, model, predict)
        say(f"{name}, command line")
        data[name]["bayesmf fit"] = gap(X, "GGGW", by_command)
    worst = max(g for found in data.values() for one in found.values() for g in one.values())
    claims = [claim("largest relative difference", worst, most=1e-8)]
    return {"claims": claims, "tables": tables(data), "data": data, "datasets": {}}


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The worst model of every data set, and the command line."""
    rows = []
    for name, found in ((name, data[name]) for name in DATA if name in data):
        largest = {model: max(one.values()) for model, one in found.items()}
        command = largest.pop("bayesmf fit")
        worst = max(largest, key=largest.__getitem__)
        rows.append((name, str(len(largest)), worst, f"{largest[worst]:.1e}", f"{command:.1e}"))
    header = ("data", "models", "worst", "largest difference", "command line")
    return [table("Other units, relative differences", header, rows, quoted=True)]
