"""Run tasks through one seam: in this process, in processes beside it, or on a Dask cluster.

Whoever runs them, a task's result depends on the task alone. This process writes all records, each
as soon as it arrives, so that whatever kills a run loses no more than what was running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from bayesmf._errors import ModelError
from bayesmf.experiments.store import Store, Work

T = TypeVar("T", bound=Work)
Result = dict[str, Any]
_RETRIES = 3  # of a task whose worker died
_IDLE = 300  # seconds until a process without work ends: often long enough for more to come


def study(task: Any) -> Result:
    """Do a task of the study."""
    from bayesmf.experiments.work import run

    return run(task)


def timed(function: Callable[[T], Result], task: T) -> tuple[T, Result, float]:
    """Do one task and take its time; this is what workers run."""
    from threadpoolctl import threadpool_limits

    begin = time.perf_counter()
    with threadpool_limits(limits=1):  # one thread each: cores are shared out over tasks
        result = function(task)
    return task, result, time.perf_counter() - begin


def run_all(
    tasks: Iterable[T],
    store: Store,
    jobs: int = 1,
    dask: str | None = None,
    report: Callable[[T, float], object] = lambda task, seconds: None,
    function: Callable[[T], Result] = study,
) -> int:
    """Do all tasks that the store lacks; returns how many that were."""
    waiting = [task for task in dict.fromkeys(tasks) if store.get(task) is None]
    others = [task for task in waiting if not task.alone]
    alone = [task for task in waiting if task.alone]  # after the others: nothing runs beside them
    work = partial(timed, function)
    for task, result, seconds in chain(_through(work, others, jobs, dask), map(work, alone)):
        store.add(task, result, seconds)
        report(task, seconds)
    return len(waiting)


def _through(work: Any, tasks: list[T], jobs: int, dask: str | None) -> Iterator[Any]:
    if not tasks:
        return iter(())
    if dask is not None:
        return _on_dask(work, tasks, dask)
    return _in_processes(work, tasks, jobs) if jobs > 1 else map(work, tasks)


def _in_processes(work: Any, tasks: list[T], jobs: int) -> Iterator[Any]:
    """Processes beside this one, kept for the next call; if one dies, its tasks are done again."""
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import BrokenProcessPool

    left = dict.fromkeys(tasks, 0)
    while left:
        pool = get_reusable_executor(max_workers=jobs, timeout=_IDLE)
        running: dict[Future[Any], T] = {}
        try:
            for task in list(left):
                running[pool.submit(work, task)] = task
                if len(running) >= 2 * jobs:  # so that a result is stored as soon as it is there
                    yield from _finished(running, left)
            while running:
                yield from _finished(running, left)
        except BrokenProcessPool:
            for task in running.values():
                left[task] += 1
                if left[task] > _RETRIES:
                    raise ModelError(f"Worker processes keep dying at the task {task}.") from None
        except BaseException:
            pool.shutdown(wait=False, kill_workers=True)
            raise


def _finished(running: dict[Future[Any], T], left: dict[T, int]) -> Iterator[Any]:
    """Wait for at least one of the running tasks."""
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        done = future.result()
        del running[future], left[done[0]]
        yield done


def _on_dask(work: Any, tasks: list[T], address: str) -> Iterator[Any]:
    """A Dask cluster; it gives the tasks of a worker that dies to another one."""
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise ModelError(
            "--dask needs Dask; install it with: pip install 'bayesmf[dask]'"
        ) from None
    try:
        cluster = Client(address, timeout="30s")
    except (OSError, ValueError) as error:
        raise ModelError(f"--dask {address}: no scheduler answers there ({error}).") from None
    with cluster as client:
        futures = [client.submit(work, task, pure=False, retries=_RETRIES) for task in tasks]
        for future in as_completed(futures):
            yield future.result()
            future.release()
