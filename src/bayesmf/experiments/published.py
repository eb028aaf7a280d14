"""The study's published numbers, as data beside this file.

Brouwer and Lió, "Prior and Likelihood Choices for Bayesian Matrix Factorisation on Small Datasets":
test errors by cell, the folds of its cross-validation, training errors and seconds per iteration.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np


class Published(NamedTuple):
    """Test errors of one cell of the study: so many runs, their mean and so on."""

    n: int
    mean: float
    sd: float
    median: float
    smallest: float
    largest: float


def _read(name: str) -> list[dict[str, str]]:
    with (resources.files("bayesmf.experiments") / "published" / name).open(encoding="utf-8") as f:
        return list(csv.DictReader(f))


def _number(text: str) -> float:
    return float(text) if text else float("nan")


@cache
def errors() -> dict[tuple[str, str, str, str, float | None], Published]:
    """Test errors by (experiment, dataset, variant, model, setting)."""
    found = {}
    for row in _read("published.csv"):
        setting = float(row["setting"]) if row["setting"] else None
        key = (row["experiment"], row["dataset"], row["variant"], row["model"], setting)
        numbers = (_number(row[name]) for name in ("mean", "sd", "median", "min", "max"))
        found[key] = Published(int(row["n"]), *numbers)
    return found


@cache
def chosen_ranks() -> dict[tuple[str, str], tuple[int, ...]]:
    """Ranks that the study's outer folds chose, by (dataset, model)."""
    found: dict[tuple[str, str], list[int]] = {}
    for row in _read("cross_validation_folds.csv"):
        if row["K_chosen"]:
            found.setdefault((row["dataset"], row["model"]), []).append(int(float(row["K_chosen"])))
    return {key: tuple(ranks) for key, ranks in found.items()}


def own_rank(dataset: str, model: str) -> int:
    """A model's own rank on a dataset: the mean of those that its outer folds chose."""
    ranks = chosen_ranks().get((dataset.removesuffix("_clean"), model), (5,))
    return int(np.floor(np.mean(ranks) + 0.5))


@cache
def runtimes() -> dict[tuple[str, str, int], float]:
    """Seconds per iteration by (dataset, model, rank)."""
    return {
        (row["dataset"], row["model"], int(row["K"])): float(row["seconds_per_iteration"])
        for row in _read("runtime.csv")
    }


@cache
def training() -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Iterations, mean training errors and mean elapsed seconds by (dataset, model)."""
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for row in _read("convergence.csv"):
        line = (
            float(row["iteration"]),
            _number(row["mean_train_mse"]),
            _number(row["mean_elapsed_seconds"]),
        )
        found.setdefault((row["dataset"], row["model"]), []).append(line)
    columns = {key: np.array(sorted(lines)).T for key, lines in found.items()}
    return {key: (c[0], c[1], c[2]) for key, c in columns.items()}
