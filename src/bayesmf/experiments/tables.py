"""Tables of the stored results, with the published numbers beside them; nothing is sampled here."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bayesmf._files import replacing
from bayesmf.experiments.published import Published, errors, runtimes
from bayesmf.experiments.store import Store
from bayesmf.experiments.tasks import Task
from bayesmf.metrics import standard_error

OUTLIER = 2.0  # a published cell whose largest run is so many medians is compared by its median
CLOSE = 3.0  # combined standard errors within which a cell counts as reproduced
APART = ("GGGW", "GLLI")  # no prior has what the study's samplers drew here


Place: TypeAlias = tuple[str, str, str, str, str, float | None]


class Cell(NamedTuple):
    """Repeats of one model at one setting: ours, and the study's beside it."""

    protocol: str
    experiment: str
    dataset: str
    variant: str
    model: str
    setting: float | None
    values: tuple[float, ...]  # test errors of the repeats that worked
    repeats: tuple[int, ...]  # which ones these are
    failed: int
    rhat: float | None  # the largest
    ranks: tuple[int, ...]  # chosen ones
    edges: int  # how often the largest candidate was chosen
    seconds: float
    published: Published | None

    @property
    def mean(self) -> float:
        return float(np.mean(self.values)) if self.values else float("nan")

    @property
    def median(self) -> float:
        return float(np.median(self.values)) if self.values else float("nan")

    @property
    def error(self) -> float:
        """Standard error of the mean over the repeats."""
        return standard_error(self.values)

    @property
    def by_median(self) -> bool:
        """Whether single runs that blew up decide the published mean."""
        p = self.published
        return p is not None and p.largest > OUTLIER * p.median

    @property
    def distance(self) -> float:
        """Ours less published, in combined standard errors."""
        p = self.published
        if p is None or len(self.values) < 2 or p.n < 2:
            return float("nan")
        gap, spread = self.mean - p.mean, float(np.hypot(self.error, p.sd / p.n**0.5))
        if self.by_median:  # its spread is taken from our own runs, for both
            gap, spread = self.median - p.median, 2**0.5 * 1.2533 * self.error
        return gap / spread if spread > 0 else float("nan")


def cells(store: Store, tasks: Iterable[Task]) -> list[Cell]:
    """Stored results of the tasks, one cell for each setting of each model."""
    groups: dict[Place, list[dict[str, Any]]] = {}
    for task, record in store.records(tasks):
        key = (
            task.protocol,
            task.experiment,
            task.dataset,
            task.variant,
            task.model,
            task.setting,
        )
        groups.setdefault(key, []).append(record)
    return [_cell(key, records) for key, records in groups.items()]


def _value(experiment: str, result: dict[str, Any]) -> float | None:
    if experiment == "convergence":
        return result["train_mse"][-1] if "train_mse" in result else None
    return result.get("seconds" if experiment == "runtime" else "mse")


def _cell(key: Place, records: list[dict[str, Any]]) -> Cell:
    results = [record["result"] for record in records]
    found = {r["task"]["repeat"]: _value(key[1], r["result"]) for r in records}
    worked = {repeat: value for repeat, value in found.items() if value is not None}
    rhats = [r["rhat"] for r in results if "rhat" in r]
    # Noise has another variance under ``sound``, so that the study's errors say nothing there.
    comparable = key[:2] != ("sound", "noise")
    study = errors().get((key[1], *key[2:5], key[5])) if comparable else None
    return Cell(
        *key,
        values=tuple(worked.values()),
        repeats=tuple(worked),
        failed=len(found) - len(worked),
        rhat=max(rhats) if rhats else None,
        ranks=tuple(r["rank"] for r in results if "rank" in r),
        edges=sum(bool(r.get("edge")) for r in results),
        seconds=sum(record["seconds"] for record in records),
        published=study,
    )


Row = Sequence[object]


def error_rows(found: Iterable[Cell]) -> tuple[Row, list[Row]]:
    """Head and rows of a table of test errors."""
    head = (
        "dataset",
        "variant",
        "model",
        "setting",
        "n",
        "failed",
        "mse",
        "standard error",
        "median",
        "ranks",
        "at the edge",
        "largest R-hat",
        "published n",
        "published mse",
        "published standard error",
        "published median",
        "standard errors apart",
        "seconds",
    )
    rows: list[Row] = []
    for c in found:
        p = c.published
        study: Row = ("", "", "", "")
        if p is not None:
            study = (p.n, p.mean, p.sd / p.n**0.5 if p.n > 1 else "", p.median)
        rows.append(
            (
                c.dataset,
                c.variant,
                c.model,
                "" if c.setting is None else c.setting,
                len(c.values),
                c.failed,
                c.mean,
                c.error,
                c.median,
                " ".join(map(str, c.ranks)),
                c.edges or "",
                "" if c.rhat is None else c.rhat,
                *study,
                c.distance,
                c.seconds,
            )
        )
    return head, rows


def runtime_rows(found: Iterable[Cell]) -> tuple[Row, list[Row]]:
    """Head and rows of the table of seconds per sweep."""
    head = ("dataset", "model", "K", "seconds per sweep", "published", "times faster")
    rows: list[Row] = []
    for c in found:
        study = runtimes().get((c.dataset, c.model, int(c.setting or 0)))
        ratio = study / c.mean if study else ""
        rows.append((c.dataset, c.model, int(c.setting or 0), c.mean, study or "", ratio))
    return head, rows


def rank_rows(found: Sequence[Cell]) -> tuple[Row, list[Row]]:
    """The table of chosen dimensionalities: means over the outer folds."""
    names = list(dict.fromkeys(c.dataset for c in found if c.ranks))
    models = dict.fromkeys(c.model for c in found if c.ranks)
    known = {(c.dataset, c.model): c for c in found if c.ranks}
    rows: list[Row] = []
    for model in models:
        row: list[object] = [model]
        for name in names:
            c = known.get((name, model))
            row.append("" if c is None else float(np.mean(c.ranks)))
        rows.append(row)
    return ("model", *names), rows


def agreement(found: Iterable[Cell]) -> dict[str, Any]:
    """How many of the published cells ours lie near, those apart left out; and all others."""
    judged = [c for c in found if np.isfinite(c.distance)]
    plain = [c for c in judged if c.model not in APART]
    far = [c for c in judged if abs(c.distance) > CLOSE]
    near = [c for c in plain if abs(c.distance) <= CLOSE]
    return {
        "cells": len(plain),
        "within": len(near),
        "share": len(near) / len(plain) if plain else float("nan"),
        "apart": [c for c in judged if c.model in APART],
        "outside": far,
    }


# --- Writing ------------------------------------------------------------------------------------


def plain(value: object) -> str:
    """A number or word as it is printed."""
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else f"{value:.4g}"
    return str(value)


def markdown(head: Row, rows: Iterable[Row]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(plain, line)) + " |\n" for line in lines)


def write_table(folder: Path, name: str, head: Row, rows: Sequence[Row]) -> list[Path]:
    """Write a table as CSV and Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([["" if x != x else x for x in row] for row in rows])  # NaN is empty
    written = []
    for suffix, content in ((".csv", text.getvalue()), (".md", markdown(head, rows))):
        path = folder / f"{name}{suffix}"
        with replacing(path) as partial:
            partial.write_text(content, encoding="utf-8")
        written.append(path)
    return written


def write_results(folder: Path, found: Sequence[Cell]) -> list[Path]:
    """All tables of some cells: one for each experiment of each protocol, and the ranks chosen."""
    written: list[Path] = []
    for protocol, experiment in dict.fromkeys((c.protocol, c.experiment) for c in found):
        some = [c for c in found if (c.protocol, c.experiment) == (protocol, experiment)]
        rows = runtime_rows(some) if experiment == "runtime" else error_rows(some)
        written += write_table(folder / protocol, experiment, *rows)
        if experiment == "cross_validation":
            written += write_table(folder / protocol, "chosen_ranks", *rank_rows(some))
    return written


def dataset_rows() -> tuple[Row, list[Row]]:
    """The table of datasets."""
    from bayesmf.datasets import CATALOGUE, present

    rows: list[Row] = []
    for name, entry in CATALOGUE.items():
        n, m = entry.shape
        rows.append(
            (
                name,
                entry.rows,
                entry.cols,
                n,
                m,
                entry.n_observed / (n * m),
                entry.licence,
                "yes" if present(name) else "no",
            )
        )
    return ("name", "rows", "columns", "n", "m", "observed", "licence", "present"), rows


def write_json(path: Path, content: Any) -> None:
    """Write plain data as JSON, whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(json.dumps(content, indent=1), encoding="utf-8")
