"""Rows of cells out of text files: their encoding, comments, and what separates the cells."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from bayesmf import _sizes
from bayesmf._errors import DataError, ModelError
from bayesmf.reading.layout import Layout, option
from bayesmf.reading.progress import opened
from bayesmf.reading.table import SAMPLE, Row, Table

SEPARATOR_OF = {".csv": ",", ".tsv": "\t", ".txt": "\t"}  # as the ending of a name says
SEPARATORS = (",", ";", "\t", "|")
WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_NUL = "holds a NUL character, so this is not UTF-8 text; save it as such."
_MARKS = (b"\xff\xfe", b"\xfe\xff")  # with which UTF-16 begins
_UTF16 = f"it is not UTF-8 text; save it as such, or say {option('encoding', 'utf-16')}."
_ANNOUNCED = re.compile(r"\s*\"?sep=(.)\"?\s*", re.IGNORECASE)  # Excel's word on the separator


@contextmanager
def open_text(path: Path, layout: Layout) -> Iterator[Table]:
    """The table in a text file; what is wrong with its bytes or quotes becomes one sentence."""
    try:
        with _unpacked(path) as raw, _decoded(raw, layout.encoding) as text:
            # A look at the beginning: a file of zeros would be one line, as long as itself.
            if layout.encoding is None and b"\0" in (beginning := raw.peek(4096)):
                raise DataError(_UTF16 if beginning[:2] in _MARKS else f"it {_NUL}")
            yield _table(chain.from_iterable(_lines(text, layout)), layout, path)
    except UnicodeDecodeError:
        raise DataError(_undecoded(path, layout)) from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError("it is not a gzip file, or is damaged; get it again.") from None


@contextmanager
def _unpacked(path: Path) -> Iterator[Any]:
    """The bytes of a file, out of its .gz if it has one."""
    with opened(path) as raw:
        if not path.name.lower().endswith(".gz"):
            yield raw
            return
        with gzip.open(raw, "rb") as packed:
            yield packed


def _decoded(raw: Any, encoding: str | None) -> io.TextIOWrapper:
    try:
        return io.TextIOWrapper(raw, encoding or "utf-8-sig", newline="")
    except LookupError:
        raise ModelError(
            f"encoding {encoding!r} is not known; utf-8, cp1252 and utf-16 are."
        ) from None


def _lines(text: io.TextIOWrapper, layout: Layout) -> Iterator[list[str]]:
    """Lines, many at a time; those to be left out are blank, so that all keep their numbers."""
    begun, comment = 0, layout.comment
    for block in _sizes.lines(text):
        if "\0" in "".join(block):
            number = next(k for k, line in enumerate(block, begun + 1) if "\0" in line)
            raise DataError(f"line {number} {_NUL}")
        if comment or begun < layout.skip:
            block = [
                "\n" if k <= layout.skip or (comment and line.startswith(comment)) else line
                for k, line in enumerate(block, begun + 1)
            ]
        yield block
        begun += len(block)


def _undecoded(path: Path, layout: Layout) -> str:
    """What to say of a file in another encoding: where the first byte is that says so."""
    if layout.encoding is not None:
        return f"it is not in the encoding {layout.encoding!r}; name another."
    with _unpacked(path) as raw:
        for number, line in enumerate(raw, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                byte = f"line {number} is not UTF-8 text (byte 0x{line[error.start]:02x})"
                return f"{byte}; save it as UTF-8, or say {option('encoding', 'cp1252')}."
    return "it is not UTF-8 text; save it as such."


def _table(lines: Iterator[str], layout: Layout, path: Path) -> Table:
    sample, count = [], 0
    for line in lines:
        sample.append(line)
        count += line != "\n"
        if count == SAMPLE:
            break
    sep = layout.sep
    first = next((k for k, line in enumerate(sample) if line != "\n"), 0)
    if sample and (match := _ANNOUNCED.fullmatch(sample[first])):
        sample[first], sep = "\n", sep or match[1]
    natural = SEPARATOR_OF[Path(path.name.lower().removesuffix(".gz")).suffix]
    sep = sep or separator(sample, natural)
    notes = []
    if sep != natural and layout.sep is None:
        said = option("sep", "tab" if sep == "\t" else sep)
        notes.append(f"Cells are separated by {WORDS.get(sep, repr(sep))}: {said}.")
    return Table(_rows(chain(sample, lines), sep), layout, sep=sep, notes=notes)


def _rows(lines: Iterable[str], sep: str) -> Iterator[Row]:
    """Rows of cells with the numbers of their lines; blank lines have none."""
    reader: Any = csv.reader(lines, delimiter=sep, strict=True)
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(
            f"line {reader.line_num} cannot be read ({error}); look for a quote that is not closed."
        ) from None


def separator(lines: list[str], natural: str) -> str:
    """What separates the cells of these lines: what gives most of them the same number of cells.

    Examples
    --------
    >>> separator(["id;a;b", "x;1,5;2"], ","), separator(["id,a"], ","), separator(["a"], ",")
    (';', ',', ',')
    """
    shares = {sep: _share(lines, sep) for sep in dict.fromkeys([natural, *SEPARATORS])}
    return max(shares, key=lambda sep: shares[sep])  # the first of equals: the natural one


def _share(lines: list[str], sep: str) -> float:
    """Share of the lines with the usual number of cells; none if that is one."""
    try:
        widths = Counter(len(row) for row in csv.reader(lines, delimiter=sep) if row)
    except csv.Error:
        return 0.0
    if not widths:
        return 0.0
    width, times = widths.most_common(1)[0]
    return times / widths.total() if width > 1 else 0.0
