"""Where a matrix came from: how its table was written, and what its reader had to decide."""

from __future__ import annotations

from typing import NamedTuple


class Origin(NamedTuple):
    """How the table of a matrix was written, so that results can be written in the same way."""

    corner: str = ""  # what stands above the row labels
    sep: str = ","
    decimal: str = "."
    notes: tuple[str, ...] = ()  # what was guessed or left out, in sentences
