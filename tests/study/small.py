"""A small part of the study on a matrix that ships along, and its results."""

import tempfile
from functools import cache

from bayesmf.study.experiments import EXPERIMENTS
from bayesmf.study.reproduce import expand, run
from bayesmf.tasks.runner import run_all
from bayesmf.tasks.store import Store

SMALL = "drug_sensitivity"
STUDY = [name for name, one in EXPERIMENTS.items() if "paper" in one.protocols]  # its own six


def some_tasks():
    """A small protocol: three quick methods and two slower ones."""
    chosen = ("GGG", "GEE", "NMF", "row_average", "column_average")
    return [task for task in expand("sparsity", "paper", "quick", SMALL) if task.model in chosen]


def results(store, tasks):
    return {task.key: record["result"] for task, record in store.records(tasks)}


@cache
def reference_results():
    """Results of the small protocol, run in this process."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        assert run_all(run, some_tasks(), store) == len(some_tasks())
        return results(store, some_tasks())
