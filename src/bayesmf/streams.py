"""Seeds and keys: every variable of every sweep of every chain has random streams of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from bayesmf import _threads
from bayesmf._errors import ModelError
from bayesmf.kernels.fill import COMMON, fill_common, fill_special

Array: TypeAlias = np.ndarray
RandomState: TypeAlias = int | Sequence[int] | np.random.Generator | np.random.SeedSequence | None

_PARALLEL_DRAWS = 20_000  # below this many draws a second thread costs more than it saves


def seed_words(random_state: RandomState) -> Array:
    """Two 64-bit words that stand for a user's ``random_state``, or are it."""
    if isinstance(random_state, (list, tuple)) and len(random_state) == 2:
        return np.array(random_state, dtype=np.uint64)
    if isinstance(random_state, np.random.Generator):
        return random_state.integers(0, 2**64, size=2, dtype=np.uint64)
    if isinstance(random_state, np.random.SeedSequence):
        return random_state.generate_state(2, np.uint64)
    if random_state is None or isinstance(random_state, (int, np.integer)):
        if random_state is not None and random_state < 0:
            raise ModelError(f"random_state must not be negative, got {random_state}.")
        return np.random.SeedSequence(random_state).generate_state(2, np.uint64)
    raise ModelError(
        "random_state must be None, an integer, a numpy Generator, a SeedSequence or the two "
        "numbers of another run's seed, got "
        f"{type(random_state).__name__}."
    )


class Stream:
    """The random numbers of one sweep of one chain.

    Each call of `key` opens the next site: within a sweep the order of the sites is fixed by the
    model, so a (seed, chain, sweep) determines every draw, whatever the number of threads.
    """

    def __init__(
        self, seed: Array, chain: int = 0, sweep: int = 0, threads: int = 1, goes_on: bool = True
    ) -> None:
        self.seed, self.chain, self.sweep, self.threads = seed, chain, sweep, threads
        self.goes_on = goes_on  # from the sweep before, rather than from anywhere
        self._site = 0

    def is_between(self, every: int, first: int = 0) -> bool:
        """Whether moves may lean on other sweeps: in all but the first and each ``every``-th.

        That depends on the number of the sweep alone, never on the state.
        """
        return self.goes_on and self.sweep > first and self.sweep % every != 0

    def key(self) -> Array:
        """Key of the next site: its streams are then told apart by their row."""
        self._site += 1
        site = (self.chain << 32) | self._site
        return np.array([self.seed[0], self.seed[1], site, self.sweep], dtype=np.uint64)

    def fill(self, kind: int, shape: tuple[int, ...], *parameters: Array | float) -> Array:
        """Array of independent draws of a distribution of `bayesmf.kernels.fill`."""
        rows, columns = (*shape, 1, 1)[:2]
        out = np.empty((rows, columns))
        kernel, needed = (fill_common, 2) if kind in COMMON else (fill_special, 3)
        padded = (*parameters, 1.0, 1.0)[:needed]
        arguments = [_two_dimensional(p, len(shape)) for p in padded]
        for array in arguments:  # kernels read without asking
            if array.shape[0] not in (1, rows) or array.shape[1] not in (1, columns):
                raise ModelError(
                    f"a parameter of shape {array.shape} does not broadcast to a variable of shape "
                    f"{shape}."
                )
        key = self.key()
        if out.size < _PARALLEL_DRAWS:
            kernel(0, rows, key, kind, *arguments, out)
        else:
            _threads.run(
                lambda start, stop: kernel(start, stop, key, kind, *arguments, out),
                _threads.bounds(rows, 8),
                self.threads,
            )
        return out.reshape(shape)


def _two_dimensional(parameter: Array | float, dimensions: int) -> Array:
    """View a broadcastable parameter of a draw of 0, 1 or 2 dimensions as (rows, columns)."""
    array = np.asarray(parameter, dtype=np.float64)
    if array.ndim < 2:
        array = array.reshape((-1, 1) if dimensions == 1 else (1, -1))
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)
