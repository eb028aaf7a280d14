"""The study as data beside this file: how it ran its models, and the numbers that it published.

Brouwer and Lió, "Prior and Likelihood Choices for Bayesian Matrix Factorisation on Small Datasets",
and what its authors published with it. In the files, an empty variant stands for all of them, and
an empty list of models for those that no other line names. CCLE IC50 was not in the study's model
selection, which is given the lengths of its cross-validation.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np


class Length(NamedTuple):
    """Sweeps in all, of which the first are not kept, and of the others every so many."""

    sweeps: int
    burn_in: int = 0
    thin: int = 1


class Published(NamedTuple):
    """Test errors of one cell of the study: so many runs, their mean and so on."""

    n: int
    mean: float
    sd: float
    median: float
    smallest: float
    largest: float

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.sd / self.n**0.5 if self.n > 1 else float("nan")


@cache
def read(name: str) -> list[dict[str, str]]:
    """Rows of a file, by the names of the columns."""
    with (resources.files("bayesmf.study") / "published" / name).open(encoding="utf-8") as f:
        return list(csv.DictReader(f))


def _numbers(row: dict[str, str], *names: str) -> tuple[float, ...]:
    return tuple(float(row[name] or "nan") for name in names)


def _rows(file: str, experiment: str, dataset: str, variant: str) -> list[dict[str, str]]:
    place = (experiment, dataset)
    known = [row for row in read(file) if (row["experiment"], row["dataset"]) == place]
    return [row for row in known if row["variant"] in ("", variant)]


def _original(dataset: str) -> str:
    """The study's matrix of which a dataset is a version or a part."""
    return dataset.removesuffix("_clean").removesuffix("_small")


@cache
def length(experiment: str, dataset: str, variant: str, model: str) -> Length:
    """How long the study ran a model, NMF by so many iterations.

    A matrix that it did not have is taken as GDSC in its cross-validation.
    """
    rows = _rows("lengths.csv", experiment, dataset, variant)
    rows = rows or _rows("lengths.csv", "cross_validation", "GDSC", "")
    row = max(rows, key=lambda row: (model in row["models"].split(), not row["models"]))
    return Length(*(int(row[name]) for name in Length._fields))


@cache
def gamma(experiment: str, dataset: str, variant: str = "") -> float:
    """Strength of the volume prior as the study printed it; 1 where it names none."""
    rows = _rows("volume_strengths.csv", experiment, _original(dataset), variant)
    return float(rows[0]["gamma"]) if rows else 1.0


@cache
def candidates() -> dict[tuple[str, str], tuple[int, ...]]:
    """Ranks among which the study's cross-validation chose, by (model, dataset)."""
    return {
        (row["model"], row["dataset"]): tuple(range(int(row["smallest"]), int(row["largest"]) + 1))
        for row in read("candidate_ranks.csv")
    }


@cache
def errors() -> dict[tuple[str, str, str, str, float | None], Published]:
    """Test errors by (experiment, dataset, variant, model, setting)."""
    found = {}
    for row in read("published.csv"):
        setting = float(row["setting"]) if row["setting"] else None
        key = (row["experiment"], row["dataset"], row["variant"], row["model"], setting)
        found[key] = Published(int(row["n"]), *_numbers(row, "mean", "sd", "median", "min", "max"))
    return found


def own_rank(dataset: str, model: str) -> int:
    """A model's own rank on a dataset: the mean of those that its outer folds chose."""
    ranks = _chosen_ranks().get((_original(dataset), model), [5])
    return int(np.floor(np.mean(ranks) + 0.5))


@cache
def _chosen_ranks() -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for row in read("cross_validation_folds.csv"):
        if row["K_chosen"]:
            found.setdefault((row["dataset"], row["model"]), []).append(int(float(row["K_chosen"])))
    return found


@cache
def runtimes() -> dict[tuple[str, str, int], float]:
    """Seconds per iteration by (dataset, model, rank)."""
    return {
        (row["dataset"], row["model"], int(row["K"])): float(row["seconds_per_iteration"])
        for row in read("runtime.csv")
    }


@cache
def training() -> dict[tuple[str, str], tuple[np.ndarray, ...]]:
    """Iterations, mean training errors and mean elapsed seconds by (dataset, model)."""
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for row in read("convergence.csv"):
        line = _numbers(row, "iteration", "mean_train_mse", "mean_elapsed_seconds")
        found.setdefault((row["dataset"], row["model"]), []).append(line)
    return {key: tuple(np.array(sorted(lines)).T) for key, lines in found.items()}
