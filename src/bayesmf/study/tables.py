"""Tables of stored results, with the published numbers beside them; nothing is sampled here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayesmf._files import Row, write_table
from bayesmf.datasets import CATALOGUE, present
from bayesmf.study.cells import Cell, Table, grouped
from bayesmf.study.experiments import EXPERIMENTS
from bayesmf.study.published import errors
from bayesmf.study.tasks import Task
from bayesmf.tasks.store import Record

CLOSE = 3.0  # combined standard errors within which a cell counts as reproduced
APART = ("GGGW", "GLLI")  # no prior has what the study's samplers drew here


def cells(records: Iterable[tuple[Task, Record]]) -> list[Cell]:
    """Records of tasks, one cell for each setting of each model."""
    known = dict(records)
    groups = grouped(known, *Cell._fields[:6]).values()
    return [_cell(tasks, [known[task] for task in tasks]) for tasks in groups]


def _cell(tasks: list[Task], records: list[Record]) -> Cell:
    task, experiment = tasks[0], EXPERIMENTS[tasks[0].experiment]
    place = (task.experiment, task.dataset, task.variant, task.model, task.setting)
    results = tuple(record["result"] for record in records)
    found = {t.repeat: experiment.value(r) for t, r in zip(tasks, results, strict=True)}
    worked = {repeat: value for repeat, value in found.items() if value is not None}
    return Cell(
        task.protocol, *place, values=tuple(worked.values()), repeats=tuple(worked),
        failed=len(found) - len(worked), results=results,
        rhat=max((r["rhat"] for r in results if "rhat" in r), default=None),
        ranks=tuple(r["rank"] for r in results if "rank" in r),
        edges=sum(bool(r.get("edge")) for r in results),
        seconds=sum(record["seconds"] for record in records),
        published=errors().get(place) if task.protocol in experiment.compared else None,
    )  # fmt: skip


def agreement(found: Iterable[Cell]) -> dict[str, Any]:
    """How many of the published cells ours lie near, those apart left out; and all others."""
    judged = [c for c in found if np.isfinite(c.distance)]
    plain = [c for c in judged if c.model not in APART]
    near = sum(abs(c.distance) <= CLOSE for c in plain)
    return {
        "cells": len(plain), "within": near, "share": near / len(plain) if plain else float("nan"),
        "apart": [c for c in judged if c.model in APART],
        "outside": [c for c in judged if abs(c.distance) > CLOSE],
    }  # fmt: skip


def agreement_table(found: Sequence[Cell]) -> Table:
    """How many published cells are met, by experiment and dataset, and of all."""
    head = ("experiment", "dataset", "compared", "within three standard errors", "share",
            "median ratio to published", "outside", "GGGW and GLLI outside")  # fmt: skip
    paper = [c for c in found if c.protocol == "paper" and np.isfinite(c.distance)]
    places = [*grouped(paper, "experiment", "dataset").items(), (("all", ""), paper)]
    rows: list[Row] = []
    for (name, dataset), some in places if paper else ():
        near = agreement(some)
        ratios = [c.median / c.published.median for c in some
                  if c.published and c.model not in APART]  # fmt: skip
        apart = sum(c.model in APART for c in near["outside"])
        rows.append((name, dataset, near["cells"], near["within"], near["share"],
                     float(np.median(ratios)) if ratios else None,
                     len(near["outside"]) - apart, apart))  # fmt: skip
    return head, rows


def write_results(folder: Path, found: Sequence[Cell]) -> list[Path]:
    """All tables of some cells: those of each experiment, below a folder for each protocol."""
    written: list[Path] = []
    for (protocol, name), some in grouped(found, "protocol", "experiment").items():
        experiment = EXPERIMENTS[name]
        for file, table in {name: experiment.table, **experiment.more_tables}.items():
            written += write_table(folder / protocol, file, *table(some))
    return written


def dataset_table() -> Table:
    """The datasets, and whether they are here."""
    rows: list[Row] = [
        (name, entry.rows, entry.cols, *entry.shape, entry.n_observed / math.prod(entry.shape),
         entry.licence, "yes" if present(name) else "no")
        for name, entry in CATALOGUE.items()
    ]  # fmt: skip
    return ("name", "rows", "columns", "n", "m", "observed", "licence", "present"), rows
