"""The thin parallel loop: blocks of rows on threads that run compiled, lock-free kernels.

Results never depend on the number of threads: a block writes only its own rows, every row has
its own random stream, and block boundaries are fixed by the problem, not by the machine.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from bayesmf._errors import ModelError

T = TypeVar("T")

_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def _reset() -> None:
    """Forget the pool and all locks: the threads that have them do not survive a fork."""
    global _pool, _pool_size, _turn, _mine, _blas_lock
    _pool, _pool_size = None, 0
    _turn, _mine, _blas_lock = threading.Lock(), threading.local(), threading.Lock()
    _blas_users.clear()  # products of a child stay on one thread


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)


def _workers(n: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    if _pool is None or _pool_size < n:
        _pool = ThreadPoolExecutor(n, thread_name_prefix="bayesmf")
        _pool_size = n
    return _pool


def count(n_jobs: int | None) -> int:
    """Number of threads asked for: None means one, negative counts back from all cores."""
    if isinstance(n_jobs, bool) or not (n_jobs is None or isinstance(n_jobs, int)) or n_jobs == 0:
        raise ModelError(
            f"n_jobs must be None, a positive number of threads or -1, got {n_jobs!r}."
        )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if n_jobs is None:
        return 1
    return n_jobs if n_jobs > 0 else max(1, (cores or 1) + 1 + n_jobs)


def run(
    task: Callable[[int, int], object], bounds: Sequence[int], threads: int, joined: bool = False
) -> None:
    """Call ``task(start, stop)`` for every pair of neighbouring bounds, on up to ``threads``.

    The calling thread works too, so that one block, or one thread, costs nothing extra. ``joined``
    says that blocks may be joined without a change in any result; one thread then gets all of them
    in one call, and competes less for the interpreter's lock.
    """
    if joined and threads == 1 and len(bounds) > 2:
        bounds = bounds[:: len(bounds) - 1]
    blocks = deque(pairwise(bounds))

    def work() -> None:
        while True:
            try:
                start, stop = blocks.popleft()
            except IndexError:
                return
            task(start, stop)

    helpers = min(threads, len(blocks)) - 1
    with _out_of_turn():
        futures = [_workers(threads - 1).submit(work) for _ in range(helpers)]
        try:
            work()
        finally:
            for future in futures:
                if not future.cancel():
                    future.result()


def results(futures: Sequence[Future[T]]) -> list[T]:
    """What threads return, in order, while interrupts are answered.

    The system may give an interrupt to any thread, Python answers it in the main one, and a main
    thread that waits for a lock does not hear of it: so it looks up now and then.
    """
    for future in futures:
        while not future.done():
            wait([future], timeout=0.05)
    return [future.result() for future in futures]


_turn, _mine = threading.Lock(), threading.local()


@contextmanager
def turns() -> Iterator[None]:
    """Context in which threads run Python one after the other, and what `run` does side by side.

    Python's own lock does the same, but it changes hands at every small array operation, and each
    time a thread has to be woken. Chains that run beside each other change places at kernels only.
    """
    with _turn:
        _mine.turn = True
        try:
            yield
        finally:
            _mine.turn = False


@contextmanager
def _out_of_turn() -> Iterator[None]:
    """Let others have the turn meanwhile, if this thread has it."""
    if not getattr(_mine, "turn", False):
        yield
        return
    _mine.turn = False
    _turn.release()
    try:
        yield
    finally:
        _turn.acquire()
        _mine.turn = True


def bounds(n: int, blocks: int) -> list[int]:
    """Cut ``range(n)`` into at most ``blocks`` nearly equal, non-empty pieces."""
    blocks = max(1, min(blocks, n))
    return [n * b // blocks for b in range(blocks + 1)]


def balanced_bounds(cost: np.ndarray, blocks: int) -> list[int]:
    """Cut rows into at most ``blocks`` pieces of nearly equal total cost."""
    total = np.concatenate([[0], np.cumsum(cost)])
    goals = total[-1] * np.arange(1, max(1, blocks)) / max(1, blocks)
    inner = np.searchsorted(total, goals)
    return sorted({0, len(cost), *(int(i) for i in inner)})


@cache
def _blas() -> Any:
    """The libraries of matrix products in this process, looked up once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_blas_lock = threading.Lock()
_blas_users: list[Any] = []  # the first has what the last will put back


@contextmanager
def one_blas_thread(threads: int = 1) -> Iterator[None]:
    """Context in which matrix products use one thread: ours are the parallel ones.

    Threads may be in it together, and in it again: the first one sets the limit, the last one
    lifts it, and all others pay nothing. `here` says in it how many threads were given.
    """
    with _blas_lock:
        _blas_users.append(None if _blas_users else _blas().limit(limits=1, user_api="blas"))
    before, _mine.threads = getattr(_mine, "threads", 1), threads
    try:
        yield
    finally:
        _mine.threads = before
        with _blas_lock:
            if len(_blas_users) == 1:
                _blas_users[0].restore_original_limits()
                _blas_users.clear()
            else:
                _blas_users.pop()


def here() -> int:
    """Threads that `one_blas_thread` gives to what the calling thread does."""
    return getattr(_mine, "threads", 1)


@contextmanager
def interrupts() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets instead of raising; pressed twice, it raises as ever.

    An exception could strike between any two lines of whoever waits for threads, and lose their
    results. Off the main thread, or where interrupts are ignored, nothing changes.
    """
    event = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield event
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if event.is_set():
            before(number, frame)
        event.set()

    signal.signal(signal.SIGINT, handle)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)
