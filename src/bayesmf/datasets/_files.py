"""Files of the datasets: where they are, how they are downloaded, how archives are unpacked."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bayesmf._errors import DataError
from bayesmf._files import replacing

VARIABLE = "BAYESMF_DATA"  # names the folder that is looked into first
_ATTEMPTS = 3  # before a connection that keeps breaking is given up
_WAIT = 1.0  # seconds before the second attempt; twice that before the third
_TIMEOUT = 30.0  # seconds without a byte after which a connection counts as broken
_PLAIN = (0, stat.S_IFREG, stat.S_IFDIR)  # kinds of zip members; 0 where the system wrote none


def folders(data_home: str | Path | None = None) -> list[Path]:
    """Folders to look into, in order: ``data_home``, or else BAYESMF_DATA and the user's cache."""
    if data_home is not None:
        return [Path(data_home).expanduser()]
    named = os.environ.get(VARIABLE)
    found = [Path(named).expanduser()] if named else []
    try:
        import pooch
    except ImportError:  # then nothing was ever downloaded
        return found
    return [*found, Path(pooch.os_cache("bayesmf"))]


def fetch_archive(url: str, known_hash: str | None, folder: Path) -> None:
    """Download an archive, check it and unpack it into a folder.

    Parameters
    ----------
    url : str
        Address of a zip or tar archive.
    known_hash : str or None
        What it must be, as in ``"md5:0e33..."``; None accepts anything.
    folder : path
        Where its members go; made if need be.
    """
    try:
        import pooch
    except ImportError:
        raise DataError(
            f"Downloading {url} needs pooch; run pip install 'bayesmf[data]'."
        ) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = pooch.retrieve(url, known_hash, _name(url), folder, downloader=download)
    except (OSError, ValueError) as error:  # ValueError: the checksum differs
        raise DataError(
            f"{url} could not be downloaded into {folder} ({error}); try again, "
            "pass another data_home, or download it by hand and unpack it there."
        ) from error
    try:
        unpack(Path(path), folder)
    finally:
        Path(path).unlink()


def download(url: str, output: str, _pooch: Any = None) -> None:
    """Download a file for pooch, and go on where a broken connection stopped, even next time."""
    import requests

    broken = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
    part = Path(output).with_name(_name(url) + ".part")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _go_on(url, part)
            break
        except broken:
            if attempt == _ATTEMPTS:
                raise
            time.sleep(_WAIT * attempt)
    part.replace(output)


def _go_on(url: str, part: Path) -> None:
    """Append to a partial file what it lacks."""
    import requests
    from tqdm import tqdm

    begun = part.stat().st_size if part.exists() else 0
    # Lengths are those of the file only if the server does not compress it on the way.
    headers = {"Accept-Encoding": "identity", "Range": f"bytes={begun}-"}
    with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as answer:
        if begun and answer.status_code == requests.codes.requested_range_not_satisfiable:
            return  # nothing is lacking; the checksum tells whether it is the right file
        answer.raise_for_status()
        if answer.status_code != requests.codes.partial_content:  # the server sends it all
            begun = 0
        length = answer.headers.get("Content-Length")
        total = begun + int(length) if length else None
        bar = tqdm(
            desc=part.stem, initial=begun, total=total, unit="B", unit_scale=True, disable=None
        )
        with part.open("ab" if begun else "wb") as file, bar:
            for chunk in answer.iter_content(1 << 16):
                bar.update(file.write(chunk))
            end = file.tell()
    if total is not None and end != total:
        raise requests.ConnectionError(f"the connection broke after {end} of {total} bytes")


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip or tar archive, or nothing if a member is a link or leaves the folder."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as pack:
            _check(archive, {m.filename: _is_plain(m) for m in pack.infolist()})
            for member in pack.infolist():
                if not member.is_dir():
                    _write(partial(pack.open, member), folder / member.filename)
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            _check(archive, {m.name: m.isfile() or m.isdir() for m in tar.getmembers()})
            for item in tar.getmembers():
                if item.isfile():
                    _write(partial(tar.extractfile, item), folder / item.name)
    else:
        raise DataError(f"{archive} is neither a zip nor a tar archive; delete it and try again.")


def _check(archive: Path, members: dict[str, bool]) -> None:
    """Raise a DataError that names the first member that is not safe to write."""
    for name, is_plain in members.items():
        parts = name.replace("\\", "/").split("/")
        if not is_plain or parts[0] == "" or ":" in parts[0] or ".." in parts:
            raise DataError(
                f"{archive} holds {name!r}, a link or a path out of its folder; "
                "nothing was unpacked: get the archive from its source."
            )


def _is_plain(member: zipfile.ZipInfo) -> bool:
    return stat.S_IFMT(member.external_attr >> 16) in _PLAIN


def _write(source: Callable[[], Any], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as part, source() as member, part.open("wb") as file:
        shutil.copyfileobj(member, file)


def _name(url: str) -> str:
    """Name of the file at an address."""
    return Path(urlsplit(url).path).name
