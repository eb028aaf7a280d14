"""The store and the runner: records that are damaged, processes and workers that die."""

import importlib
import json
import os
import signal

import pytest
from loky import get_reusable_executor

from bayesmf import ModelError
from bayesmf.study.reproduce import run
from bayesmf.tasks.runner import run_all
from bayesmf.tasks.store import Store
from tests.study.small import reference_results, results, some_tasks


@pytest.fixture(scope="module")
def reference():
    """Results of the small protocol, run in this process."""
    return reference_results()


# --- Store --------------------------------------------------------------------------------------


def test_damaged_records_are_named_and_made_again(tmp_path, reference):
    tasks, store = some_tasks(), Store(tmp_path)
    run_all(run, tasks, store)
    paths = [store.path(task) for task in tasks[:4]]
    paths[0].write_text(paths[0].read_text()[:50])
    changed = json.loads(paths[1].read_text())
    changed["result"]["mse"] += 0.1
    paths[1].write_text(json.dumps(changed))
    paths[2].write_text(paths[3].read_text())  # the record of another task
    paths[3].write_bytes(b"\xff\xfe")
    again = Store(tmp_path)
    assert run_all(run, tasks, again) == 4
    assert len(again.damaged) == 4 and str(tasks[0]) in again.damaged[0]
    assert results(store, tasks) == reference
    assert run_all(run, tasks, Store(tmp_path)) == 0
    assert not list(tmp_path.rglob("*.part"))


# --- Runner -------------------------------------------------------------------------------------


def test_processes_give_the_same_results(tmp_path, reference):
    store = Store(tmp_path)
    run_all(run, some_tasks(), store, jobs=2)
    assert results(store, some_tasks()) == reference


def test_a_process_that_dies_loses_nothing(tmp_path, reference):
    store, killed = Store(tmp_path), []

    def report(task, seconds):
        if not killed:
            os.kill(next(iter(get_reusable_executor(reuse=True)._processes)), signal.SIGKILL)
            killed.append(task)

    run_all(run, some_tasks(), store, jobs=2, report=report)
    assert killed
    assert results(store, some_tasks()) == reference


def test_a_dask_cluster_that_loses_a_worker_gives_the_same_store(tmp_path, reference):
    distributed = pytest.importorskip("distributed")
    store, killed = Store(tmp_path), []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:

        def report(task, seconds):
            if not killed:
                worker = next(iter(cluster.workers.values()))
                os.kill(worker.process.pid, signal.SIGKILL)
                killed.append(worker.process.pid)

        run_all(run, some_tasks(), store, dask=cluster.scheduler_address, report=report)
    assert killed
    assert results(store, some_tasks()) == reference


def test_a_scheduler_that_does_not_answer_is_named(tmp_path, monkeypatch):
    pytest.importorskip("distributed", reason="Dask is not installed")
    client = importlib.import_module("distributed").Client
    monkeypatch.setattr("distributed.Client", lambda address, timeout: client(address, timeout=1))
    with pytest.raises(ModelError, match="9: no scheduler answers there"):
        run_all(run, some_tasks(), Store(tmp_path), dask="tcp://127.0.0.1:9")
