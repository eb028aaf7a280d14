"""`reproduce`: the study in one call. Run what the store lacks, then write tables and figures."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from bayesmf import datasets
from bayesmf._errors import DataError, ModelError
from bayesmf._files import write_table
from bayesmf.study import fitting, observations, tables
from bayesmf.study.cells import Cell, grouped
from bayesmf.study.estimate import learnt
from bayesmf.study.experiments import EXPERIMENTS, NAMES
from bayesmf.study.figures import style
from bayesmf.study.gallery import write_gallery
from bayesmf.study.tasks import BUDGETS, PROTOCOLS, Result, Task, check_models
from bayesmf.tasks.runner import run_all
from bayesmf.tasks.store import Store

BESIDE = {"CTRP": "CTRP_small", "CCLE_EC50": "CCLE_EC50_clean"}  # of the study's, when sound


def expand(
    experiment: str, protocol: str, budget: str = "quick", dataset: str | None = None
) -> list[Task]:
    """All tasks of an experiment, on one dataset or on all of the study's."""
    if experiment not in EXPERIMENTS:
        raise ModelError(f"Unknown experiment {experiment!r}; there are {', '.join(EXPERIMENTS)}.")
    for name, value, known in (("protocol", protocol, PROTOCOLS), ("budget", budget, BUDGETS)):
        if value not in known:
            raise ModelError(f"{name} must be {' or '.join(known)}, got {value!r}.")
    if protocol not in EXPERIMENTS[experiment].protocols:
        return []
    names = [dataset] if dataset else list(EXPERIMENTS[experiment].datasets)
    if not dataset and protocol == "sound":
        names = [one for name in names for one in (name, BESIDE.get(name)) if one]
    make = EXPERIMENTS[experiment].expand
    return [task for name in names for task in make(protocol, name, budget)]


def plan(
    experiments: Sequence[str], protocol: str, budget: str, names: Sequence[str] = (),
    models: Sequence[str] = (), store: Store | None = None,
) -> tuple[list[Task], list[str]]:  # fmt: skip
    """All tasks asked for, and the datasets that are left out because they are not here.

    A task whose record a store has needs no data.
    """
    check_models(models)
    found = [
        task
        for one in (PROTOCOLS if protocol == "both" else (protocol,))
        for experiment in experiments
        for name in names or (None,)
        for task in expand(experiment, one, budget, name)
        if not models or task.model in models
    ]
    if not found:
        raise ModelError(
            f"The protocol {protocol!r} has no {' or '.join(experiments)} of these models; pass "
            "protocol='sound' (--protocol sound), or other models."
        )
    here = {name: datasets.present(name) for name in dict.fromkeys(t.dataset for t in found)}
    tasks = [t for t in found if here[t.dataset] or (store is not None and store.get(t))]
    left = set(found).difference(tasks)
    return tasks, [name for name in here if any(task.dataset == name for task in left)]


def open_store(folder: str | Path, records: Iterable[str | Path] = ()) -> Store:
    """The store of a folder of the study, with packed records below it."""
    return Store(Path(folder) / "store", records, Task.version)


def run(task: Task) -> Result:
    """Do a task. What fails in a way that the study knew too is a result as well."""
    X = fitting.data(task.dataset)
    try:
        return EXPERIMENTS[task.experiment].run(task, X)
    except (FloatingPointError, DataError) as error:
        return {"mse": None, "failed": str(error)}


def draw_results(folder: Path, cells: Iterable[Cell]) -> list[Path]:
    """Draw whatever these cells allow, below a folder for each protocol."""
    written: list[Path] = []
    with style.drawing():
        for (protocol, name), some in grouped(cells, "protocol", "experiment").items():
            experiment = EXPERIMENTS[name]
            for file, figure in experiment.draw(experiment.title, some):
                written += style.save(figure, folder / protocol, file)
    return written


def reproduce(
    experiments: Sequence[str] = NAMES, *, protocol: str = "paper", budget: str = "quick",
    names: Sequence[str] = (), models: Sequence[str] = (), folder: str | Path = "study",
    records: Sequence[str | Path] = (), jobs: int = 1, dask: str | None = None,
    figures: bool = True, progress: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Re-run the study and write its tables and figures.

    Parameters
    ----------
    experiments
        Some of convergence, runtime, cross_validation, noise, sparsity, model_selection, and (in
        the sound protocol alone) likelihoods.
    protocol
        "paper" (what the study did), "sound" (what it should have done) or "both".
    budget
        "quick" (every figure, few repeats) or "full".
    names, models
        Datasets and methods; all of the experiment by default.
    folder
        Where the store, tables and figures are; a second call goes on from there.
    records
        Files of packed records (`pack`): their tasks count as done, also on datasets that are not
        here. What is missing goes to the folder.
    jobs, dask
        Processes beside this one, or the address of a Dask cluster; results depend on neither.
    figures, progress
        Whether to draw, and whether to show a bar on standard error.

    Returns
    -------
    dict
        "done" (tasks that were run), "damaged" (records that were not trusted), "absent"
        (datasets that are not here), "written" (files), "cells", "verdicts", "gallery" (the page
        with all figures).

    Examples
    --------
    >>> import tempfile
    >>> from bayesmf.study.reproduce import reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = reproduce(["sparsity"], names=["drug_sensitivity"], models=["row_average"],
    ...                       folder=folder, figures=False, progress=False)
    >>> len(found["cells"])
    3
    """
    if figures:  # refused now rather than after hours, where matplotlib is missing
        from bayesmf.study.figures.inputs import draw_priors, draw_values

        with style.drawing():
            pass
    root, store = Path(folder), open_store(folder, records)
    tasks, absent = plan(experiments, protocol, budget, names, models, store)
    done = _run(tasks, store, jobs, dask, progress)
    found = tables.cells(store.records(tasks))
    written = tables.write_results(root / "tables", found)
    written += write_table(root / "tables", "datasets", *tables.dataset_table())
    verdicts = observations.judge(found)
    for one, rows in grouped(verdicts, "protocol").items():
        written += write_table(root / "tables" / one, "observations", rows[0]._fields, rows)
    met = tables.agreement_table(found)
    written += write_table(root / "tables", "agreement", *met)
    gallery = None
    if figures:
        drawn = draw_results(root / "figures", found)
        drawn += draw_priors(root / "figures")
        drawn += draw_values(root / "figures", dict.fromkeys(task.dataset for task in tasks))
        gallery = write_gallery(root / "figures.html", drawn, met)
        written += [*drawn, gallery]
    return {
        "done": done, "damaged": store.damaged, "absent": absent, "written": written,
        "cells": found, "verdicts": verdicts, "gallery": gallery,
    }  # fmt: skip


def pack(folder: str | Path, path: str | Path, records: Sequence[str | Path] = ()) -> int:
    """Write all records of a folder of the study, and of packed files, to one file.

    Parameters
    ----------
    folder
        What `reproduce` was given; it need not be finished, and nothing is run.
    path
        The file, by custom ``.jsonl.xz``; written whole or not at all. The same records are the
        same bytes.
    records
        Files of packed records, for what the folder lacks.

    Returns
    -------
    int
        How many records they are; those that are damaged are named and left out.
    """
    store = open_store(folder, records)
    if not store.below and not any(store.folder.rglob("*.json")):
        raise DataError(f"{store.folder} has no records to pack; name the folder of a run.")
    return store.pack(path)


def _run(tasks: list[Task], store: Store, jobs: int, dask: str | None, progress: bool) -> int:
    """Run what is missing, longest first, with a bar that knows how long tasks take."""
    from tqdm import tqdm

    known = dict(store.records(tasks))
    missing = [task for task in tasks if task not in known]
    length = learnt(known.items())
    missing.sort(key=length, reverse=True)  # so that no long one is left for the end
    begin, expected = time.monotonic(), sum(map(length, missing))
    bar = tqdm(
        total=round(expected, 1), disable=not progress or not missing, file=sys.stderr,
        bar_format="{percentage:3.0f}%|{bar}| {postfix}",
    )  # fmt: skip
    numbers = count(1)

    def report(task: Task, seconds: float) -> None:
        bar.update(min(length(task), bar.total - bar.n))
        share = max(bar.n / bar.total, 1e-9) if bar.total else 1.0
        left = (time.monotonic() - begin) * (1 / share - 1)
        bar.set_postfix_str(
            f"{next(numbers)}/{len(missing)} tasks, {left / 60:.0f} min left, {task}"
        )

    try:
        return run_all(run, missing, store, jobs, dask, report)
    finally:
        bar.close()
