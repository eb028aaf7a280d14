"""One shard of a matrix on a Dask worker: it sweeps together with the others.

A shard is a Dask actor. It talks to the other shards directly, worker to worker; whoever runs the
chain only says when to sweep, and learns what came out.
"""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayesmf import __version__
from bayesmf.data.observed import IntArray, ObservedMatrix
from bayesmf.data.shards import assembled
from bayesmf.model.model import Model
from bayesmf.sampler.state import Problem, State
from bayesmf.sampler.sweep import sweep

_LOOK = 0.5  # seconds between two looks at whether an attempt was given up


class LostError(Exception):
    """Another shard does not answer."""


@dataclass(frozen=True, eq=False)
class Part:
    """What a shard is made of: entries of its own, and what it has to know of the whole matrix."""

    held: ObservedMatrix
    cuts: Sequence[tuple[int, ...]]
    counts: tuple[IntArray, IntArray]
    average: float
    weights: Any
    model: Model
    n_components: int
    scale_move: bool
    threads: int


class Outcome(NamedTuple):
    """What came of one attempt to sweep; all shards have the same state, and the first tells it."""

    state: State | None = None
    digest: int = 0  # of all variables that every shard draws for itself
    sent: int = 0  # bytes to other shards
    error: Exception | None = None
    lost: bool = False


class Shard:
    """The actor: holds its part, sweeps when told, and has a letter box for the other shards."""

    def __init__(self) -> None:
        from distributed import get_worker

        self._worker: Any = get_worker()
        loop: Any = self._worker.loop
        self._loop = loop.asyncio_loop
        self._thread = ThreadPoolExecutor(1, "bayesmf-shard")
        self._letters: dict[tuple[int, int], dict[int, Any]] = {}
        self._arrived = threading.Condition()
        self._given_up = -1
        self._states: dict[int, State] = {}
        self._peers: list[tuple[str, str]] = []
        self._problem: Problem | None = None
        self.number = self.size = self._attempt = self._step = self._sent = 0

    # --- What the chain's process calls; coroutines never wait for a sweep

    async def load(self, part: Part) -> str:
        """Take a part of the matrix; returns the version of bayesmf."""
        X = assembled(part.held, part.cuts, part.counts, self, part.average, part.weights)
        self._problem = Problem(
            X, part.model, part.n_components, part.scale_move, threads=part.threads
        )
        return __version__

    async def join(self, number: int, peers: list[tuple[str, str]]) -> bool:
        """Learn one's own number, and address and key of every shard."""
        self.number, self.size, self._peers = number, len(peers), peers
        return True

    async def sweep(self, attempt: int, chain: int, state: State | None) -> Outcome:
        """One sweep from a state, or from that at which the chain stands here."""
        return await self._loop.run_in_executor(self._thread, self._sweep, attempt, chain, state)

    async def give_up(self, attempt: int) -> None:
        """End an attempt that waits for a shard that is gone."""
        with self._arrived:
            self._given_up = max(self._given_up, attempt)
            self._arrived.notify_all()

    async def close(self) -> None:
        """Let the thread go."""
        self._thread.shutdown(wait=False)

    # --- What other shards call

    async def deliver(self, attempt: int, step: int, source: int, part: Any) -> None:
        """Put a letter into the box."""
        with self._arrived:
            self._letters.setdefault((attempt, step), {})[source] = part
            self._arrived.notify_all()

    # --- The thread that sweeps

    def _sweep(self, attempt: int, chain: int, state: State | None) -> Outcome:
        assert self._problem is not None
        self._attempt, self._step, self._sent = attempt, 0, 0
        with self._arrived:
            self._letters = {k: v for k, v in self._letters.items() if k[0] >= attempt}
        try:
            # Rows of others are not drawn here, and what stands in their place may overflow.
            with np.errstate(all="ignore"):
                new = sweep(self._problem, self._states[chain] if state is None else state)
        except LostError:
            return Outcome(lost=True)
        except Exception as error:
            return Outcome(error=error)
        self._states[chain] = new
        return Outcome(new if self.number == 0 else None, _digest(new), self._sent)

    def exchange(self, parts: Sequence[Any]) -> list[Any]:
        """Give every shard its part, and return what all gave to this one; as `Peers` says."""
        self._step += 1
        letter = self._attempt, self._step
        others = [shard for shard in range(self.size) if shard != self.number]
        sending = [
            asyncio.run_coroutine_threadsafe(self._send(shard, *letter, parts[shard]), self._loop)
            for shard in others
        ]
        self._sent += sum(_bytes(parts[shard]) for shard in others)
        with self._arrived:
            while len(self._letters.get(letter, ())) < len(others):
                self._look()
                self._arrived.wait(_LOOK)
            given = self._letters.pop(letter, {})
        for future in sending:  # arrays may change once they are sent, not before
            while not wait([future], _LOOK).done:
                self._look()
            if future.exception() is not None:
                raise LostError
        return [parts[s] if s == self.number else given[s] for s in range(self.size)]

    def _look(self) -> None:
        """Whether to wait any longer."""
        if self._given_up >= self._attempt:
            raise LostError

    async def _send(self, shard: int, attempt: int, step: int, part: Any) -> None:
        from distributed.protocol import to_serialize

        address, key = self._peers[shard]
        answer = await self._worker.rpc(address).actor_execute(
            function="deliver", actor=key, kwargs={},
            args=[attempt, step, self.number, to_serialize(part)],
        )  # fmt: skip
        if answer["status"] != "OK":
            raise LostError


def _bytes(part: Any) -> int:
    """Size of the arrays of a letter."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    return sum(map(_bytes, part)) if isinstance(part, list) else 0


def _digest(state: State) -> int:
    """A number that tells different states apart, but for the factors, which come from all."""
    digest = 0
    for name, array in state.to_arrays().items():
        if name not in ("U", "V"):
            digest = zlib.crc32(np.ascontiguousarray(array).tobytes(), digest)
    return digest
