"""Files that claim, or hold, more than anybody means: refused before they fill memory and time."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import TextIO

from bayesmf._errors import DataError

BLANK_LINES = 1_000_000  # in a row
LONGEST_LINE = 200_000_000  # characters
EMPTY_LINES = 10_000_000  # rows and columns that a matrix may have whatever its entries
_CHUNK = 1_000_000  # characters that are read at once
_PER_ENTRY = 100  # rows and columns for each entry beyond that
_PACKED = 1100  # bytes that gzip makes of one, at most


def lines(text: TextIO) -> Iterator[list[str]]:
    """The lines of a text, many at a time, as it was opened with ``newline=""``.

    Blank ones without end, and one without an end, are refused.
    """
    rest, blank = "", 0
    while chunk := text.read(_CHUNK):
        rest += chunk
        # A carriage return at the very end may be half of a line's end.
        end = max(rest.rfind("\n"), rest.rfind("\r", 0, -1)) + 1
        if not end and len(rest) >= LONGEST_LINE:
            raise DataError(f"a line has more than {LONGEST_LINE} characters; this is no table.")
        if end:
            found = StringIO(rest[:end], newline="").readlines()
            blank = _blank(found, blank)
            yield found
            rest = rest[end:]
    if rest:
        yield [rest]


def _blank(lines: list[str], before: int) -> int:
    """How many blank lines there are at the end; too many in a row are refused."""
    if not any(map(str.isspace, lines)):
        return 0
    for line in lines:
        before = before + 1 if line.isspace() else 0
        if before > BLANK_LINES:
            raise DataError(f"there are more than {BLANK_LINES} blank lines in a row; remove them.")
    return before


def check_memory(size: float, what: str, advice: str) -> None:
    """Refuse what takes more bytes than the machine has, where the system tells."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return
    if size > there:
        raise DataError(
            f"The {what} take {size / 1e9:.0f} GB of memory, and this machine has "
            f"{there / 1e9:.0f} GB; {advice}."
        )


def check_shape(shape: tuple[int, ...], entries: int) -> None:
    """Refuse a sparse matrix that is next to nothing but empty rows and columns."""
    if sum(shape) > max(EMPTY_LINES, _PER_ENTRY * entries):
        raise DataError(
            f"its shape {tuple(shape)} with {entries} entries is too large for memory; leave out "
            "the empty rows and columns."
        )


def check_market(path: Path) -> None:
    """Refuse a MatrixMarket file that is too short for the entries that its header claims."""
    packed = path.name.lower().endswith(".gz")
    size = path.stat().st_size * (_PACKED if packed else 1)
    with (gzip.open if packed else open)(path, "rb") as file:
        kind = file.readline(1024).lower().split()
        line = b"%"
        for _ in range(BLANK_LINES):
            if line.strip() and not line.startswith(b"%"):
                break
            line = file.readline(LONGEST_LINE)
            if not line:
                return  # the reader will say what is missing
        else:
            raise DataError(f"there are more than {BLANK_LINES} lines before its header.")
    try:
        numbers = [int(word) for word in line.split()]
    except ValueError:
        return
    if len(numbers) == 3 and b"coordinate" in kind:
        check_shape((numbers[0], numbers[1]), numbers[2])
        least = 4 * numbers[2]  # two positions of one digit, and what is between them
    elif len(numbers) == 2:
        least = numbers[0] * numbers[1]  # at least half of which a symmetric matrix has
    else:
        return
    if least > size:
        raise DataError("its header claims more entries than the file has; get it again.")
