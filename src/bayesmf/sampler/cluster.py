"""One chain on a Dask cluster: the rows and columns of its matrix are spread over the workers.

Every worker holds a shard (`bayesmf.sampler.shard`) and runs the same sweep as one process would;
only rows are drawn by whoever has their entries. This process keeps the whole matrix and the last
state, so that a shard whose worker dies is made again elsewhere and the sweep is repeated, with the
same draws.
"""

from __future__ import annotations

import threading
import time
from asyncio import CancelledError
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

from bayesmf import __version__
from bayesmf._errors import ModelError
from bayesmf.data.shards import cuts, own_weights, shard_of
from bayesmf.model.model import Model
from bayesmf.sampler.run import Step
from bayesmf.sampler.shard import Outcome, Part, Shard
from bayesmf.sampler.state import Problem, State
from bayesmf.sampler.sweep import sweep
from bayesmf.tasks.clusters import connected, lost

_RETRIES = 10  # of a sweep, or of making shards, while workers die
_LOOK = 0.5  # seconds between two looks at shards that do not answer
_PATIENCE = 5.0  # seconds in which a worker that died may come back before another takes its shard
_SOON = 60.0  # seconds in which a worker has to answer, or to be there at all
_LOST = Outcome(lost=True)


@contextmanager
def sweeps_on(problem: Problem, address: str | None) -> Iterator[Step]:
    """What draws the next state: a sweep in this process or, with an address, on a Dask cluster."""
    if address is None:
        yield sweep
        return
    with connected(address, direct_to_workers=True) as client:
        crew = Crew(client, problem, address)
        try:
            yield crew.sweep
        finally:
            crew.close()


def check_cluster(model: Model, address: str | None) -> None:
    """Refuse models that cannot be spread over workers, and clusters that do not answer."""
    if address is None:
        return
    refuse(model)
    with connected(address):
        return


def refuse(model: Model) -> None:
    """Refuse models that cannot be spread over workers, with the reason."""
    if model.rows.couples_rows or model.cols.couples_rows:
        raise ModelError(
            f"dask: a volume prior draws one row after the other, which workers cannot share; run "
            f"{model.name} without dask, or use a model such as GGGW."
        )
    if not model.likelihood.takes_shards:
        raise ModelError(
            f"dask: the {model.likelihood.name} likelihood does not say that it can be spread over "
            "workers (takes_shards); run it without dask."
        )


class _Member(NamedTuple):
    """A shard as this process sees it."""

    key: str
    future: Any  # as long as it lives, so does the shard
    actor: Any
    address: str  # of its worker


class Crew:
    """The shards of a problem on the workers of a cluster: one each, or as many as asked for."""

    def __init__(
        self, client: Any, problem: Problem, address: str, shards: int | None = None
    ) -> None:
        self._client, self._problem, self._address = client, problem, address
        self._why: BaseException | None = None  # of the last shard that did not answer
        self._size = shards or len(self._workers(1, 0.0))
        X, K = problem.X, problem.n_components
        self._cuts = [cuts(view, self._size, K) for view in (X.rows, X.cols)]
        self._members: dict[int, _Member] = {}
        self._last: dict[int, State] = {}  # of every chain, as the shards have it
        self._attempt, self._lock = 0, threading.Lock()
        self.sent = 0  # bytes that shards have sent to each other
        self._complete()

    def sweep(self, problem: Problem, state: State) -> State:
        """One sweep of all shards; chains take turns."""
        with self._lock:
            known = self._last.get(state.chain) is state
            for _ in range(_RETRIES):
                outcomes = self._try(None if known else state, state.chain)
                for outcome in outcomes:
                    if outcome.error is not None:
                        raise outcome.error
                if not any(outcome.lost for outcome in outcomes):
                    return self._agreed(state, outcomes)
                known = False
                self._complete()
        raise self._dying(f"in sweep {state.sweep + 1}")

    def close(self) -> None:
        """Let all shards go."""
        for member in self._members.values():
            self._answer(self._ask(member, "close"))

    # --- Sweeps

    def _try(self, state: State | None, chain: int) -> list[Outcome]:
        """What came of a sweep at every shard; once one is lost, all others give up."""
        self._attempt += 1
        asked = {
            number: self._ask(member, "sweep", self._attempt, chain, state)
            for number, member in self._members.items()
        }
        found: dict[int, Outcome] = {}
        end = None
        while len(found) < self._size and (end is None or time.monotonic() < end):
            for number in self._done({n: future for n, future in asked.items() if n not in found}):
                found[number] = self._answer(asked[number]) or _LOST
            if end is None and any(o.lost or o.error is not None for o in found.values()):
                end = time.monotonic() + _SOON
                for member in self._members.values():
                    self._answer(self._ask(member, "give_up", self._attempt))
        return [found.get(number, _LOST) for number in range(self._size)]

    def _done(self, waiting: dict[int, Any]) -> list[int]:
        """Shards that have answered, or will never do so."""
        first = next((future for future in waiting.values() if future is not None), None)
        self._answer(first)
        done = [n for n, future in waiting.items() if future is None or future.done()]
        if done:
            return done
        there = self._workers(0, 0.0)
        return [n for n in waiting if self._members[n].address not in there]

    def _agreed(self, before: State, outcomes: list[Outcome]) -> State:
        """The state that all shards have come to."""
        new = outcomes[0].state
        if new is None or len({outcome.digest for outcome in outcomes}) > 1:
            raise ModelError(
                f"--dask {self._address}: workers do not agree about sweep {before.sweep + 1}; "
                "they need processors of one kind, and the same versions of NumPy and Numba."
            )
        self.sent += sum(outcome.sent for outcome in outcomes)
        self._last[before.chain] = new
        return new

    # --- Shards and their workers

    def _ask(self, member: _Member, method: str, *arguments: Any) -> Any:
        """Call a shard: a future of its answer, or None if its worker is gone."""
        try:
            return getattr(member.actor, method)(*arguments)
        except (Exception, CancelledError) as error:
            self._why = error
            return None

    def _answer_from(self, address: str, future: Any) -> Any:
        """The answer of a shard, however long it takes; None if its worker is gone."""
        while future is not None and address in self._workers(0, 0.0):
            answer = self._answer(future)
            if answer is not None or future.done():
                return answer
        return None

    def _answer(self, future: Any, timeout: float = _LOOK) -> Any:
        """The answer of a shard, or None if there is none (yet)."""
        try:
            return None if future is None else future.result(timeout=timeout)
        except TimeoutError:
            return None
        except (Exception, CancelledError) as error:
            self._why = error
            return None

    def _workers(self, least: int, patience: float) -> dict[str, int]:
        """Threads of every worker, by address; ``least`` are waited for, and one for longer."""
        begin = time.monotonic()
        end = begin + patience
        while True:
            if self._client.status != "running":
                raise lost(self._address)
            found: dict[str, int] = self._client.nthreads()
            if len(found) >= least or (found and time.monotonic() > end):
                return found
            if time.monotonic() > max(end, begin + _SOON):
                raise ModelError(f"--dask {self._address}: the cluster has no workers; start some.")
            time.sleep(0.1)

    def _complete(self) -> None:
        """Make the shards that are not there, and tell all of them who the others are."""
        for _ in range(_RETRIES):
            self._members = {n: m for n, m in self._members.items() if self._joins(n, m)}
            missing = [n for n in range(self._size) if n not in self._members]
            if not missing and all(self._joins(n, m) for n, m in self._members.items()):
                return
            workers = self._workers(self._size, _PATIENCE if self._last else 0.0)
            for number in missing:
                self._make(number, workers)
        raise self._dying("before the first sweep is done")

    def _joins(self, number: int, member: _Member) -> bool:
        """Tell a shard its number and all shards that there are; returns whether it heard."""
        everybody = [(m.address, m.key) for _, m in sorted(self._members.items())]
        return bool(self._answer_from(member.address, self._ask(member, "join", number, everybody)))

    def _make(self, number: int, workers: dict[str, int]) -> None:
        """Make a shard on the worker that has the fewest, and give it its part of the matrix."""
        load = Counter(member.address for member in self._members.values())
        address = min(workers, key=lambda name: load[name])
        problem, X, key = self._problem, self._problem.X, f"bayesmf-shard-{uuid4().hex}"
        part = Part(
            shard_of(X, self._cuts, number), self._cuts, (X.rows.counts, X.cols.counts), X.mean,
            own_weights(X, self._cuts, number), problem.model, problem.n_components,
            problem.scale_move, workers[address],
        )  # fmt: skip
        future = self._client.submit(Shard, key=key, workers=[address], actor=True)
        actor = self._answer_from(address, future)
        if actor is None:
            return
        member = _Member(key, future, actor, address)
        version = self._answer_from(address, self._ask(member, "load", part))
        if version not in (None, __version__):
            raise ModelError(
                f"--dask {self._address}: the worker {address} has bayesmf {version}, not "
                f"{__version__}; install the same everywhere."
            )
        if version is not None:
            self._members[number] = member

    def _dying(self, when: str) -> ModelError:
        why = "" if self._why is None else f" ({type(self._why).__name__}: {self._why})"
        return ModelError(
            f"--dask {self._address}: workers were lost {_RETRIES} times {when}{why}; read their "
            "logs."
        )
