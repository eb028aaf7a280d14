"""Files that are written whole or not at all: text, JSON, arrays and tables.

What is renamed into place has been flushed to the disk. Partial files have names of their own, and
those that a killed process left behind are removed by the next one that writes the same file.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import secrets
import shutil
import socket
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from bayesmf._errors import DataError, StorageError

Row: TypeAlias = Sequence[object]

PART, OLD = ".part", ".old"
_WEEK = 7 * 86400  # seconds after which what another machine left behind is given up
_ABOUT = "about.json"
_CHECKSUMS = "checksums"
_WHY = {
    errno.ENOSPC: "the disk is full; make room and start again",
    errno.EDQUOT: "the disk quota is used up; make room and start again",
    errno.EFBIG: "files there may not be so large; choose another disk",
    errno.EROFS: "the disk is read-only; choose another folder",
    errno.EACCES: "you may not write there; choose another folder",
    errno.EPERM: "you may not write there; choose another folder",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ENOTDIR: "a part of its path is a file, not a folder; choose another",
    errno.EEXIST: "a part of its path is a file, not a folder; choose another",
    errno.EISDIR: "it is a folder; name a file",
    errno.ENOENT: "its folder does not exist; make it first, or choose another",
}


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Say in one sentence why a file or folder cannot be written, if so."""
    try:
        yield
    except StorageError:  # which says so already
        raise
    except OSError as error:
        why = _WHY.get(error.errno or 0) or f"{error.strerror or error}; choose another"
        raise StorageError(f"{path} cannot be written: {why}.") from error


# --- Whole or absent ----------------------------------------------------------------------------


def partial_path(path: Path, ending: str = PART) -> Path:
    """A new name beside a path that says which process, on which machine, writes it.

    Its length does not depend on that of the path's own name.
    """
    token = secrets.token_hex(4)
    return path.with_name(f"{_prefix(path)}{_machine()}-{os.getpid()}-{token}{ending}")


def leftovers(path: Path, ending: str = PART) -> list[Path]:
    """What processes that are no more have left behind under such names."""
    with suppress(OSError):
        found = sorted(path.parent.glob(f"{_prefix(path)}*{ending}"))
        return [partial for partial in found if _abandoned(partial)]
    return []


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes have left behind of a file or folder."""
    for partial in leftovers(path):
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


def _prefix(path: Path) -> str:
    return f".bayesmf-{_digest(path.name.encode())[:12]}-"


def _machine() -> str:
    return _digest(socket.gethostname().encode())[:8]


def _abandoned(partial: Path) -> bool:
    """Whether the process that made a partial file is gone; elsewhere, whether it is a week old."""
    machine, pid = partial.name.split("-")[2:4]
    if machine != _machine():
        return time.time() - partial.stat().st_mtime > _WEEK
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it is alive, and somebody else's
    return False


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield another path to write to; it takes the place of ``path`` if nothing goes wrong.

    A StorageError says why, if it cannot be written; nothing is left of it then.
    """
    path = Path(path)
    with writing(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        remove_leftovers(path)
        partial = partial_path(path)
        try:
            yield partial
            flush(partial)
            partial.replace(path)
            flush(path.parent)
        except BaseException:
            with suppress(OSError):
                partial.unlink()
            raise


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """As `replacing`, for a folder; one that is there gives way when the new one is whole."""
    missing = [folder for folder in path.parents if not folder.exists()]
    partial, old = partial_path(path), partial_path(path, OLD)
    with writing(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(path)
            partial.mkdir()
            yield partial
            for file in partial.iterdir():
                flush(file)
            if path.exists():
                path.rename(old)
            try:
                partial.rename(path)
            except OSError:
                restore(path, [old])
                raise
            flush(path.parent)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            for folder in missing:
                with suppress(OSError):  # somebody else uses it by now
                    folder.rmdir()
            raise
    shutil.rmtree(old, ignore_errors=True)


def restore(path: Path, old: list[Path] | None = None) -> None:
    """Put back the folder that a process was about to replace when it was killed, if so."""
    for folder in leftovers(path, OLD) if old is None else old:
        if not path.exists() and folder.exists():
            folder.rename(path)
        shutil.rmtree(folder, ignore_errors=True)


def flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # names are on the disk as soon as they are there
    number = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def claim(path: Path, size: int) -> None:
    """Make a file so long that writing to any part of it needs no more room on the disk.

    A memory map of a file with holes ends in a signal that cannot be caught when the disk is full.
    """
    with path.open("ab") as file:
        missing = size - file.tell()
        if missing > 0 and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), file.tell(), missing)
            return
        block = bytes(2**20)
        for start in range(0, missing, len(block)):
            file.write(block[: missing - start])


def write_text(path: Path, text: str) -> None:
    """Write text to a file, whose folder is made if need be."""
    make_folder(path.parent)
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def make_folder(path: Path) -> None:
    """Make a folder and those above it, if need be."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Write plain data as JSON."""
    write_text(path, json.dumps(content, indent=1))


# --- Checked ------------------------------------------------------------------------------------


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def json_digest(content: Any) -> str:
    """Hash of plain data."""
    return _digest(json.dumps(content, sort_keys=True).encode())


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data as JSON knows them, with their own hash."""
    plain = json.loads(json.dumps(content))
    return {**plain, "digest": json_digest(plain)}


def unsealed(text: str, strict: bool = False) -> dict[str, Any]:
    """What `sealed` sealed and JSON holds; a ValueError if it is not that any more.

    What earlier versions wrote may have no hash; it is refused if one is ``strict``.
    """
    record = json.loads(text)
    if not isinstance(record, dict):
        raise ValueError("it is not a record")
    digest = record.pop("digest", None)
    if digest != json_digest(record) and (strict or digest is not None):
        raise ValueError("its checksum is not that which was written")
    return record


def array_digest(array: Any, name: str = "") -> str:
    """Hash of an array: its name, type, shape and numbers."""
    import numpy as np

    array = np.asarray(array)
    digest = hashlib.sha256(f"{name} {array.dtype.str} {array.shape}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def write_arrays(
    path: str | Path, arrays: Mapping[str, Any], about: Mapping[str, Any] | None = None
) -> None:
    """Write arrays, and plain data about them, to an .npz file with a checksum for each.

    `numpy.load` reads it too. The member ``about.json`` holds the checksums and the plain data.
    """
    import numpy as np

    found = {name: np.asarray(array) for name, array in arrays.items()}
    sums = {name: array_digest(array, name) for name, array in found.items()}
    text = json.dumps({_CHECKSUMS: sums, **(about or {})})
    with replacing(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as file:
        for name, array in found.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        file.writestr(_ABOUT, text)


def read_arrays(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `write_arrays` wrote: arrays and what it says about them, both checked.

    Files of earlier versions have no checksums, and nothing is said about them.
    """
    import numpy as np

    if not Path(path).is_file():
        raise DataError(f"There is no file {path}.")
    arrays, about, sums = {}, {}, None
    try:
        with zipfile.ZipFile(path) as file:
            for member in file.namelist():
                with file.open(member) as content:
                    if member == _ABOUT:
                        about = json.loads(content.read())
                        sums = about.pop(_CHECKSUMS)
                        continue
                    name = member.removesuffix(".npy")
                    arrays[name] = np.lib.format.read_array(content, allow_pickle=False)
                    content.read()  # to its end, where zip compares its own checksum
        if sums is not None:
            found = {name: array_digest(array, name) for name, array in arrays.items()}
            compare_checksums(sums, found)
    except MemoryError:
        raise DataError(f"{path} does not fit into memory.") from None
    except Exception as error:  # whatever the readers of zip, JSON and arrays may raise
        what = str(error).partition("\n")[0].rstrip(".")
        raise DataError(f"{path} is damaged ({what}); restore it, or make it again.") from None
    return arrays, about


def compare_checksums(known: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Raise a ValueError that names the first array whose checksum is another one."""
    if wrong := [name for name in known if found.get(name) != known[name]]:
        raise ValueError(f"the checksum of {wrong[0]!r} is not that which was written")
    if strange := set(found) - set(known):
        raise ValueError(f"{min(strange)!r} has no checksum")


# --- Tables -------------------------------------------------------------------------------------


def plain(value: object) -> str:
    """A number or word as it is printed; None and NaN are empty."""
    if value is None or value != value:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def markdown(head: Row, rows: Iterable[Row]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(plain, line)) + " |\n" for line in lines)


def write_table(folder: Path, name: str, head: Row, rows: Sequence[Row]) -> list[Path]:
    """Write a table as CSV and Markdown."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([head, *([None if x != x else x for x in row] for row in rows)])
    written = [folder / f"{name}.csv", folder / f"{name}.md"]
    for path, content in zip(written, (text.getvalue(), markdown(head, rows)), strict=True):
        write_text(path, content)
    return written
