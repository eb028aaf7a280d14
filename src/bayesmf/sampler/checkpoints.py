"""Runs on disk: draws are written as they come, and a run that was killed goes on where it was.

A folder holds ``run.json`` (what the run is), one ``.npy`` file for each kept variable, and two
checkpoints for each chain, the last one and the one before. Nothing is pickled. A checkpoint says
how many draws are good, and has a checksum of each; it is replaced as a whole, so that a run killed
at any moment leaves one that fits.

Everything is checked before it is used. A checkpoint that is damaged, or of whose draws one is, is
passed over: the chain goes on from the one before, or from its start, to the same draws.
"""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bayesmf._errors import DataError
from bayesmf._files import (
    PART,
    claim,
    json_digest,
    read_arrays,
    replacing,
    sealed,
    unsealed,
    write_arrays,
    write_json,
    writing,
)
from bayesmf._locks import NAME as LOCK
from bayesmf._locks import locked
from bayesmf.streams import Array

_SECONDS = 5.0  # between checkpoints
_SUM = "sum."  # before the names of variables: checksums of their draws


def known_seed(path: str | Path) -> list[int] | None:
    """The seed of the run in a folder, if there is one."""
    file = Path(path) / "run.json"
    return _read_record(file)["seed"] if file.exists() else None


def _read_record(file: Path) -> dict[str, Any]:
    """What a run is; that of earlier versions has no checksum."""
    try:
        record = unsealed(file.read_text(encoding="utf-8"))
        return {**record, "seed": [int(word) for word in record["seed"]]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file} is damaged ({error}): restore it, or remove the folder {file.parent} to run "
            "again from the start."
        ) from None


class Memory:
    """Kept draws in memory; no checkpoints."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.shapes = shapes  # of the draws of each kept variable: (chains, draws, ...)
        self.arrays: dict[str, Array] = {}
        self.notes: list[str] = []  # what was damaged, in words

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Context in which chains may write."""
        self.arrays = {name: np.full(shape, np.nan) for name, shape in self.shapes.items()}
        yield

    def keep(self, name: str, chain: int, draw: int, value: Array) -> None:
        """Keep a draw of a variable."""
        self.arrays[name][chain, draw] = value

    def load(self, chain: int) -> dict[str, Array] | None:
        """The last checkpoint of a chain, if there is one."""
        return None

    def is_due(self, chain: int) -> bool:
        """Whether it is time for a checkpoint."""
        return False

    def save(self, chain: int, arrays: Mapping[str, Array]) -> None:
        """Write a checkpoint."""


class Folder(Memory):
    """Kept draws and checkpoints in a folder, which one process uses at a time."""

    def __init__(
        self, path: str | Path, record: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]
    ) -> None:
        super().__init__(shapes)
        self.path = Path(path)
        self._record = json.loads(json.dumps(record))  # as it will be read
        self._run = json_digest(self._record)
        self._sums: dict[int, dict[str, list[int]]] = {}  # of the draws of a chain, by variable
        self._last: dict[int, float] = {}

    @contextmanager
    def opened(self) -> Iterator[None]:
        self._refuse_others()
        with locked(self.path):
            with writing(self.path):
                self._open()
            yield

    def _refuse_others(self) -> None:
        """Refuse a folder with anything but a run, before a lock is put there."""
        if not self.path.is_dir() or (self.path / "run.json").exists():
            return
        if any(path.suffix != PART and path.name != LOCK for path in self.path.iterdir()):
            raise DataError(f"The folder {self.path} is not empty and holds no run; give another.")

    def _open(self) -> None:
        """Begin a run, or open the files of one that is the same."""
        file = self.path / "run.json"
        if file.exists():
            known = _read_record(file)
            for name, value in self._record.items():
                if known.get(name) != value:
                    raise DataError(
                        f"The folder {self.path} holds another run: {name} is {known.get(name)!r} "
                        f"there and {value!r} here; give another folder, or remove this one."
                    )
        else:
            write_json(file, sealed(self._record))
        self.arrays = {name: self._map(name, shape) for name, shape in self.shapes.items()}

    def _map(self, name: str, shape: tuple[int, ...]) -> Array:
        """The draws of a variable on disk; all the room that they need there is taken at once."""
        path = self.path / f"{name}.npy"
        if path.exists() and not _fits(path, shape):
            self._told(f"{path} is damaged")
            path.unlink()
        if not path.exists():
            with replacing(path) as partial:
                with partial.open("wb") as file:
                    about = {"descr": "<f8", "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(file, about)
                claim(partial, partial.stat().st_size + 8 * math.prod(shape))
        return np.lib.format.open_memmap(path, mode="r+")

    def _told(self, what: str) -> None:
        self.notes.append(f"{what}: what was lost was drawn again.")

    def keep(self, name: str, chain: int, draw: int, value: Array) -> None:
        super().keep(name, chain, draw, value)
        sums = self._sums.setdefault(chain, {}).setdefault(name, [])
        sums[draw:] = [_checksum(name, chain, draw, self.arrays[name][chain, draw])]

    def load(self, chain: int) -> dict[str, Array] | None:
        for path in self._checkpoints(chain):
            if path.exists():
                try:
                    return self._checked(path, chain)
                except DataError as error:
                    self._told(str(error).rstrip("."))
                    path.unlink()
        self._sums[chain] = {}
        return None

    def _checkpoints(self, chain: int) -> tuple[Path, Path]:
        """Where the last checkpoint is, and the one before."""
        return self.path / f"chain-{chain}.npz", self.path / f"chain-{chain}-before.npz"

    def _checked(self, path: Path, chain: int) -> dict[str, Array]:
        """A checkpoint of which everything is good, its draws included.

        Those of earlier versions have no checksums.
        """
        arrays, about = read_arrays(path)
        if about and (about.get("run"), about.get("chain")) != (self._run, chain):
            raise DataError(f"{path} is of another run or chain.")
        sums: dict[str, list[int]] = {}
        for name, draws in self.arrays.items():
            count = range(int(arrays["run.count"]))
            sums[name] = [_checksum(name, chain, k, draws[chain, k]) for k in count]
            known = arrays.pop(f"{_SUM}{name}").tolist() if about else sums[name]
            if wrong := [k for k in count if sums[name][k] != known[k]]:
                where = f"{self.path / name}.npy is damaged at draw {wrong[0]} of chain {chain}"
                raise DataError(where)
        self._sums[chain] = sums
        return arrays

    def is_due(self, chain: int) -> bool:
        return time.monotonic() - self._last.setdefault(chain, time.monotonic()) >= _SECONDS

    def save(self, chain: int, arrays: Mapping[str, Array]) -> None:
        with writing(self.path):
            for array in self.arrays.values():
                array.flush()  # type: ignore[attr-defined]
        own = self._sums.get(chain, {})
        sums = {f"{_SUM}{name}": np.array(own.get(name, []), np.uint32) for name in self.arrays}
        last, before = self._checkpoints(chain)
        if last.exists():
            with writing(before):
                last.replace(before)
        write_arrays(last, {**arrays, **sums}, {"run": self._run, "chain": chain})
        self._last[chain] = time.monotonic()


def _fits(path: Path, shape: tuple[int, ...]) -> bool:
    """Whether a file holds an array of numbers of a shape, to its end."""
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            found = np.lib.format.read_array_header_1_0(file)
            size = file.tell() + 8 * math.prod(shape)
    except Exception:  # whatever the parser of a damaged header may raise
        return False
    return found == (shape, False, np.dtype("<f8")) and path.stat().st_size == size


def _checksum(name: str, chain: int, draw: int, value: Array) -> int:
    """Checksum of a draw, which is another one in another place or under another name."""
    where = zlib.crc32(f"{name} {chain} {draw}".encode())
    return zlib.crc32(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data, where)
