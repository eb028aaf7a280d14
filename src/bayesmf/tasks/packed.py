"""Many records in one file: lines of JSON, compressed, the same bytes for the same records.

The first line says of which version the tasks are, and which versions of software made records.
Every other line is a record, in the order of the tasks, with the first digits of the hash that it
has in a store.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from bayesmf._errors import DataError
from bayesmf._files import json_digest, make_folder, replacing, sealed, unsealed

Record: TypeAlias = dict[str, Any]

_KIND = "bayesmf records 1"  # and how they are written
_PRESET = 6 | lzma.PRESET_EXTREME  # higher ones take more memory, and no fewer bytes
_DIGITS = 8  # of the hash of a record; the compressed file has a checksum of its own


def write_packed(path: str | Path, records: Iterable[Record], version: int) -> None:
    """Write records of tasks of one version to a file, whole or not at all."""
    found = sorted(records, key=lambda record: json.dumps(record["task"]))
    made = {json.dumps(record["versions"], sort_keys=True): 0 for record in found}
    made = {text: number for number, text in enumerate(sorted(made))}
    head = {"kind": _KIND, "version": version, "versions": [json.loads(text) for text in made]}
    make_folder(Path(path).parent)
    with replacing(path) as partial, lzma.open(partial, "wb", preset=_PRESET) as file:
        file.write(_line(sealed(head)))
        for record in found:
            number = made[json.dumps(record["versions"], sort_keys=True)]
            digest = json_digest(record)[:_DIGITS]
            file.write(_line({**record, "versions": number, "digest": digest}))


def _line(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def read_packed(path: str | Path, version: int) -> tuple[list[Record], list[str]]:
    """Records of a file that can be trusted, and in words what cannot; another version is refused.

    A file that is damaged somewhere is good up to there, because every record has its checksum.
    """
    records: list[Record] = []
    notes: list[str] = []
    number = 0  # of the line before
    try:
        with lzma.open(path, "rb") as file:
            made = _made(path, file.readline(), version)
            for number, line in enumerate(file, 2):
                try:
                    records.append(_unpacked(line, made))
                except (ValueError, TypeError, KeyError, IndexError, AttributeError):
                    notes.append(f"Line {number} of {path} is damaged")
    except (lzma.LZMAError, EOFError):
        if not number:
            raise _strange(path) from None
        notes.append(f"{path} is damaged behind line {number}")
    except FileNotFoundError:
        raise DataError(f"There is no file {path} of records.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    return records, [f"{note}; what it lacks will be made again where needed." for note in notes]


def _made(path: str | Path, line: bytes, version: int) -> list[dict[str, str]]:
    """Versions that made the records, by the first line."""
    try:
        head = unsealed(line.decode(), strict=True)
        kind, found, made = head["kind"], head["version"], head["versions"]
    except (ValueError, KeyError):
        raise _strange(path) from None
    if (kind, found) != (_KIND, version):
        raise DataError(
            f"{path} has {kind} of version {found} of the tasks, and needed are {_KIND} of version "
            f"{version}; leave it out."
        )
    return list(made)


def _strange(path: str | Path) -> DataError:
    return DataError(
        f"{path} is no file of packed records, or damaged at its beginning; restore it, or leave "
        "it out."
    )


def _unpacked(line: bytes, made: list[dict[str, str]]) -> Record:
    """The record of a line; an error if it is not that which was packed."""
    record: Record = json.loads(line)
    digest = record.pop("digest")
    record["versions"] = made[record["versions"]]
    if json_digest(record)[:_DIGITS] != digest:
        raise ValueError("its checksum is not that which was written")
    return record
