"""Where a matrix came from: how its table was written, and what its reader had to decide."""

from __future__ import annotations

from typing import NamedTuple


class Aside(NamedTuple):
    """A column of text that stood in the table beside the values."""

    name: str
    before: str | None  # the column of the matrix that comes next; None at the end
    cells: dict[str, str]  # by row


class Origin(NamedTuple):
    """How the table of a matrix was written, so that results can be written in the same way."""

    corner: str = ""  # what stands above the row labels
    sep: str = ","
    decimal: str = "."
    notes: tuple[str, ...] = ()  # what was guessed or left out, in sentences
    aside: tuple[Aside, ...] = ()  # columns of text that were left out
