"""`reproduce`: the study in one call. Run what the store lacks, then write tables and figures."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bayesmf import datasets
from bayesmf.experiments import observations, tables
from bayesmf.experiments.estimate import learnt
from bayesmf.experiments.runner import run_all
from bayesmf.experiments.settings import EXPERIMENTS
from bayesmf.experiments.store import Store
from bayesmf.experiments.tasks import PROTOCOLS, Task, check_models, expand


def plan(
    experiments: Sequence[str],
    protocol: str,
    budget: str,
    names: Sequence[str] = (),
    models: Sequence[str] = (),
) -> tuple[list[Task], list[str]]:
    """All tasks asked for, and the datasets that are left out because they are not here."""
    check_models(list(models))
    protocols = PROTOCOLS if protocol == "both" else (protocol,)
    found: list[Task] = []
    for one in protocols:
        for experiment in experiments:
            if names:
                for name in names:
                    found += expand(experiment, one, budget, name)
            else:
                found += expand(experiment, one, budget)
    if models:
        found = [task for task in found if task.model in models]
    absent = [
        name for name in dict.fromkeys(t.dataset for t in found) if not datasets.present(name)
    ]
    return [task for task in found if task.dataset not in absent], absent


def reproduce(
    experiments: Sequence[str] = tuple(EXPERIMENTS),
    *,
    protocol: str = "paper",
    budget: str = "quick",
    names: Sequence[str] = (),
    models: Sequence[str] = (),
    folder: str | Path = "study",
    jobs: int = 1,
    dask: str | None = None,
    figures: bool = True,
    progress: bool = True,
) -> dict[str, Any]:
    """Re-run the study and write its tables and figures.

    Parameters
    ----------
    experiments
        Some of convergence, runtime, cross_validation, noise, sparsity, model_selection.
    protocol
        "paper" (what the study did), "sound" (what it should have done) or "both".
    budget
        "quick" (every figure, few repeats) or "full".
    names, models
        Datasets and methods; all of the experiment by default.
    folder
        Where the store, tables and figures are; a second call goes on from there.
    jobs
        Processes beside this one; results do not depend on it.
    dask
        Address of a Dask cluster that is to work instead.
    figures, progress
        Whether to draw, and whether to show a bar on standard error.

    Returns
    -------
    dict
        "done" (tasks that were run), "damaged" (records that were not trusted), "absent"
        (datasets that are not here), "written" (files), "cells", "verdicts".

    Examples
    --------
    >>> import tempfile
    >>> from bayesmf.experiments.reproduce import reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = reproduce(["sparsity"], names=["drug_sensitivity"], models=["row_average"],
    ...                       folder=folder, figures=False, progress=False)
    >>> len(found["cells"])
    3
    """
    if figures:  # refused now rather than after hours, where matplotlib is missing
        from bayesmf.experiments.figure_style import drawing
        from bayesmf.experiments.figures import draw_all, draw_priors, draw_values

        with drawing():
            pass
    tasks, absent = plan(experiments, protocol, budget, names, models)
    root = Path(folder)
    store = Store(root / "store")
    done = _run(tasks, store, jobs, dask, progress)
    found = tables.cells(store, tasks)
    written = tables.write_results(root / "tables", found)
    written += tables.write_table(root / "tables", "datasets", *tables.dataset_rows())
    verdicts = observations.judge(found)
    for one in dict.fromkeys(verdict.protocol for verdict in verdicts):
        rows = [tuple(verdict) for verdict in verdicts if verdict.protocol == one]
        written += tables.write_table(
            root / "tables" / one, "observations", observations.Verdict._fields, rows
        )
    if figures:
        written += draw_all(root / "figures", store, tasks)
        written += draw_priors(root / "figures")
        shown = list(dict.fromkeys(task.dataset for task in tasks))
        written += draw_values(root / "figures", shown)
    return {
        "done": done,
        "damaged": store.damaged,
        "absent": absent,
        "written": written,
        "cells": found,
        "verdicts": verdicts,
    }


def _run(tasks: list[Task], store: Store, jobs: int, dask: str | None, progress: bool) -> int:
    """Run what is missing, longest first, with a bar that knows how long tasks take."""
    from tqdm import tqdm

    known = dict(store.records(tasks))
    missing = [task for task in tasks if task not in known]
    for note in store.damaged:
        print(note, file=sys.stderr)
    length = learnt(known.items())
    missing.sort(key=length, reverse=True)  # so that no long one is left for the end
    begin, expected = time.monotonic(), sum(map(length, missing))
    bar = tqdm(
        total=round(expected, 1),
        disable=not progress or not missing,
        file=sys.stderr,
        bar_format="{percentage:3.0f}%|{bar}| {postfix}",
    )
    count = 0

    def report(task: Task, seconds: float) -> None:
        nonlocal count
        count += 1
        bar.update(min(length(task), bar.total - bar.n))
        share = max(bar.n / bar.total, 1e-9) if bar.total else 1.0
        left = (time.monotonic() - begin) * (1 / share - 1)
        bar.set_postfix_str(f"{count}/{len(missing)} tasks, {left / 60:.0f} min left, {task}")

    try:
        return run_all(missing, store, jobs, dask, report)
    finally:
        bar.close()
