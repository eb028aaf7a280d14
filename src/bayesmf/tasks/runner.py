"""Run tasks through one seam: in this process, in processes beside it, or on a Dask cluster.

Whoever runs them, a task's result depends on the task alone. This process writes all records, each
as soon as it arrives, so that whatever kills a run loses no more than what was running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from bayesmf._errors import ModelError
from bayesmf._locks import locked
from bayesmf.tasks.clusters import connected
from bayesmf.tasks.store import Store, Work

T = TypeVar("T", bound=Work)
Result = dict[str, Any]
_RETRIES = 3  # of a task whose worker died
_IDLE = 300  # seconds until a process without work ends: often long enough for more to come


def timed(function: Callable[[T], Result], task: T) -> tuple[T, Result, float]:
    """Do one task and take its time; this is what workers run."""
    from threadpoolctl import threadpool_limits

    begin = time.perf_counter()
    with threadpool_limits(limits=1):  # one thread each: cores are shared out over tasks
        result = function(task)
    return task, result, time.perf_counter() - begin


def run_all(
    function: Callable[[T], Result], tasks: Iterable[T], store: Store, jobs: int = 1,
    dask: str | None = None, report: Callable[[T, float], object] = lambda task, seconds: None,
) -> int:  # fmt: skip
    """Do all tasks that the store lacks by a function; returns how many that were.

    Another process that works on the same store is waited for, and what it has done is not done
    again.
    """
    waiting = [task for task in dict.fromkeys(tasks) if store.get(task) is None]
    if not waiting:
        return 0
    with locked(store.folder):
        return _run_missing(function, waiting, store, jobs, dask, report)


def _run_missing(
    function: Callable[[T], Result], tasks: Iterable[T], store: Store, jobs: int,
    dask: str | None, report: Callable[[T, float], object],
) -> int:  # fmt: skip
    waiting = [task for task in tasks if store.get(task) is None]
    others = [task for task in waiting if not task.alone]
    alone = [task for task in waiting if task.alone]  # after the others: nothing runs beside them
    work = partial(timed, function)
    done: Iterator[Any] = map(work, others)
    if others and dask is not None:
        done = _on_dask(work, others, dask)
    elif jobs > 1:
        done = _in_processes(work, others, jobs)
    for task, result, seconds in chain(done, map(work, alone)):
        store.add(task, result, seconds)
        report(task, seconds)
    return len(waiting)


def _in_processes(work: Any, tasks: list[T], jobs: int) -> Iterator[Any]:
    """Processes beside this one, kept for the next call; if one dies, its tasks are done again."""
    from loky import BrokenProcessPool, get_reusable_executor

    left = dict.fromkeys(tasks, 0)  # how often their worker died
    while left:
        pool = get_reusable_executor(max_workers=jobs, timeout=_IDLE)
        running: dict[Future[Any], T] = {}
        waiting = iter(list(left))
        try:
            while left:  # few at a time, so that a result is stored as soon as it is there
                for task in islice(waiting, 2 * jobs - len(running)):
                    running[pool.submit(work, task)] = task
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    done = future.result()
                    del running[future], left[done[0]]
                    yield done
        except BrokenProcessPool:
            for task in running.values():
                left[task] += 1
                if left[task] > _RETRIES:
                    raise ModelError(f"Worker processes keep dying at the task {task}.") from None
        except BaseException:
            pool.shutdown(wait=False, kill_workers=True)
            raise


def _on_dask(work: Any, tasks: list[T], address: str) -> Iterator[Any]:
    """A Dask cluster; it gives the tasks of a worker that dies to another one."""
    with connected(address) as client:
        from distributed import as_completed

        futures = [client.submit(work, task, pure=False, retries=_RETRIES) for task in tasks]
        for future in as_completed(futures):
            yield future.result()
            future.release()
