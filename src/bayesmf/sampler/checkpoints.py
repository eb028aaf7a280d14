"""Runs on disk: draws are written as they come, and a run that was killed goes on where it was.

A folder holds ``run.json`` (what the run is), one ``.npy`` file for each kept variable, and a
checkpoint for each chain. Nothing is pickled. The checkpoint says how many draws are good; it is
replaced as a whole, so that a run killed at any moment leaves one that fits.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayesmf._errors import DataError
from bayesmf._files import replacing, write_arrays
from bayesmf.streams import Array

_SECONDS = 5.0  # between checkpoints


def known_seed(path: str | Path) -> list[int] | None:
    """The seed of the run in a folder, if there is one."""
    file = Path(path) / "run.json"
    return json.loads(file.read_text(encoding="utf-8"))["seed"] if file.exists() else None


class Memory:
    """Kept draws in memory; no checkpoints."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._lock = threading.Lock()

    def array(self, name: str, shape: tuple[int, ...]) -> Array:
        """The draws (chains, draws, ...) of a variable, made when first asked for."""
        with self._lock:
            if name not in self.arrays:
                self.arrays[name] = self._new(name, shape)
            return self.arrays[name]

    def _new(self, name: str, shape: tuple[int, ...]) -> Array:
        return np.full(shape, np.nan)

    def load(self, chain: int) -> dict[str, Array] | None:
        """The last checkpoint of a chain, if there is one."""
        return None

    def is_due(self, chain: int) -> bool:
        """Whether it is time for a checkpoint."""
        return False

    def save(self, chain: int, arrays: Mapping[str, Array]) -> None:
        """Write a checkpoint."""


class Folder(Memory):
    """Kept draws and checkpoints in a folder."""

    def __init__(self, path: str | Path, record: dict[str, Any]) -> None:
        super().__init__()
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._last: dict[int, float] = {}
        file = self.path / "run.json"
        if not file.exists():
            if any(path.suffix != ".part" for path in self.path.iterdir()):
                raise DataError(
                    f"The folder {self.path} is not empty and holds no run; give another."
                )
            with replacing(file) as partial:
                partial.write_text(json.dumps(record, indent=1), encoding="utf-8")
            return
        known = json.loads(file.read_text(encoding="utf-8"))
        for name, value in json.loads(json.dumps(record)).items():
            if known.get(name) != value:
                raise DataError(
                    f"The folder {self.path} holds another run: {name} is {known.get(name)!r} "
                    f"there and {value!r} here; give another folder, or remove this one."
                )
        for path in self.path.glob("*.npy"):
            self.arrays[path.stem] = np.lib.format.open_memmap(path, mode="r+")

    def _new(self, name: str, shape: tuple[int, ...]) -> Array:
        with replacing(self.path / f"{name}.npy") as partial:
            return np.lib.format.open_memmap(partial, mode="w+", dtype=np.float64, shape=shape)

    def load(self, chain: int) -> dict[str, Array] | None:
        path = self.path / f"chain-{chain}.npz"
        if not path.exists():
            return None
        with np.load(path, allow_pickle=False) as file:
            return dict(file)

    def is_due(self, chain: int) -> bool:
        return time.monotonic() - self._last.setdefault(chain, time.monotonic()) >= _SECONDS

    def save(self, chain: int, arrays: Mapping[str, Array]) -> None:
        for array in self.arrays.values():
            array.flush()  # type: ignore[attr-defined]
        write_arrays(self.path / f"chain-{chain}.npz", arrays)
        self._last[chain] = time.monotonic()
