"""What a cell of a table says: a number, a gap, a limit, or nothing that can be read.

A cell is a text, or a float where the file knows numbers.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from bayesmf.reading.layout import option

Cell: TypeAlias = str | float

# Codes for missing cells, in small letters. Those that need no word are what programs write.
_PLAIN = frozenset({"", "na", "nan", "n/a", "null", "none"})
_TOLD = frozenset(
    {
        "-",
        "--",
        "\u2013",
        "\u2014",
        ".",
        "?",
        "nd",
        "n.d.",
        "n.d",
        "n.a.",
        "n.a",
        "missing",
        "#n/a",
        "#na",
    }
    | {"#value!", "#div/0!", "#num!", "#null!", "#ref!", "#name?"}
)
# Values that are low, but nobody says how low.
_BELOW = re.compile(r"<\s*(l?lo[dq]|dl|mdl)|bdl|bl[oq]q|bql", re.IGNORECASE)
LIMITS = "limits"  # as a code for missing it stands for all of them
_USUAL = frozenset({"", "NA", "NaN", "nan", "N/A", "null", "NULL", "None"})  # as they mostly come
_BLANKS = "\u0020\u00a0\u202f'\u2019"  # that may stand between thousands
_COMMA = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.IGNORECASE)
_POINT = re.compile(r"[-+]?\d*\.\d+(e[-+]?\d+)?", re.IGNORECASE)
_THREE = re.compile(r"[-+]?[1-9]\d{0,2}([.,])\d{3}")  # 1,234: a decimal, or a thousand
_LIMIT = re.compile(r"(?P<sign>[<>≤≥])=?\s*(?P<end>.+)|(?P<least>.+?)\s*\+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}[-. ][A-Za-z]{3,}")


class Reading(NamedTuple):
    """What a cell says: a number, NaN if it is missing, or an interval and what stands for it."""

    value: float
    low: float
    high: float


def grouped(decimal: str) -> re.Pattern[str]:
    """Numbers with marks between thousands, where decimals have this mark."""
    mark = re.escape("," if decimal == "." else ".")
    groups = f"(?:(?:{mark}\\d{{3}})+|(?:[{_BLANKS}]\\d{{3}})+)"
    return re.compile(f"[-+]?[1-9]\\d{{0,2}}{groups}(?:{re.escape(decimal)}\\d*)?")


_GROUPED = {decimal: grouped(decimal) for decimal in ".,"}


def decimal_mark(cells: Iterable[Cell], sep: str | None) -> str | None:
    """The mark of decimals that cells speak for, None if none does.

    A group of three digits may be decimals or thousands: where semicolons separate cells it is
    taken for decimals, where commas do for thousands, and elsewhere it decides nothing.

    Examples
    --------
    >>> decimal_mark(["1,5", "2,25"], ";"), decimal_mark(["1,234", "2.5"], ","), decimal_mark([], ";")
    (',', '.', None)
    >>> decimal_mark(["1,234"], ";"), decimal_mark(["1,234"], ","), decimal_mark(["1,234"], "tab")
    (',', '.', None)
    """  # noqa: E501
    votes: Counter[str] = Counter()
    for cell in cells:
        text = cell.strip().rstrip("%").lstrip("<>=≤≥ ") if isinstance(cell, str) else ""
        if "," not in text and "." not in text:
            continue
        if match := _THREE.fullmatch(text):
            votes[f"three{match[1]}"] += 1
        elif _COMMA.fullmatch(text) or ("." in text and _GROUPED[","].fullmatch(text)):
            votes[","] += 1
        elif _POINT.fullmatch(text) or ("," in text and _GROUPED["."].fullmatch(text)):
            votes["."] += 1
    if votes[","] or votes["."]:
        return "," if votes[","] > votes["."] else "."
    if votes["three,"]:
        return {";": None if votes["three."] else ",", ",": "."}.get(sep or "")
    return None


class Cells:
    """A reader of cells, which counts what it makes of those that are no plain numbers."""

    def __init__(
        self, decimal: str | None, missing: Sequence[str] = (), typed: bool = False
    ) -> None:
        self.decimal, self.missing, self.typed = decimal, missing, typed
        self._codes = {code.casefold() for code in missing}
        self._numbers = {x for code in missing if (x := _float(code)) is not None}
        self._usual = _USUAL | set(missing)
        self._grouped = _GROUPED[decimal or "."]
        self.gaps: Counter[str] = Counter()  # codes for missing of which users should know
        self.thousands: Counter[str] = Counter()  # under the first such text
        self.percents = 0

    def fresh(self) -> Cells:
        """A reader of the same habits that has not read anything yet."""
        return Cells(self.decimal, self.missing, self.typed)

    def add(self, other: Cells) -> None:
        """Count what another reader has counted."""
        self.gaps += other.gaps
        self.thousands += other.thousands
        self.percents += other.percents

    def plain(self, cells: Sequence[Cell]) -> list[float]:
        """Cells as floats, NaN where missing; a ValueError if one is neither, or needs a look."""
        usual = self._usual
        if self.typed:
            if any(type(cell) is str and cell not in usual for cell in cells):
                raise ValueError("text")
            found = [math.nan if cell in usual else float(cell) for cell in cells]
        else:
            line = "\t".join(cells)  # type: ignore[arg-type]
            if "_" in line or (self.decimal == "," and "." in line):
                raise ValueError("needs a look")  # Python takes 1_000 for a number, others do not
            texts = line.replace(",", ".").split("\t") if self.decimal == "," else cells
            found = [math.nan if cell in usual else float(cell) for cell in texts]
        if self._numbers:
            return [math.nan if value in self._numbers else value for value in found]
        return found

    def read(self, cell: Cell) -> Reading:
        """A cell as a number or an interval; a ValueError if it is neither."""
        if not isinstance(cell, str):
            value = math.nan if cell in self._numbers else float(cell)
            return Reading(value, value, value)
        text = cell.strip()
        code = text.casefold()
        if code in self._codes or code in _PLAIN:
            return Reading(math.nan, math.nan, math.nan)
        if code in _TOLD or _BELOW.fullmatch(text):
            self.gaps[text] += 1
            return Reading(math.nan, math.nan, math.nan)
        try:
            value = self.number(text)
        except ValueError:
            interval = self._interval(text)
            if LIMITS not in self._codes or interval.low == interval.high:
                return interval
            self.gaps[text] += 1
            return Reading(math.nan, math.nan, math.nan)
        value = math.nan if value in self._numbers else value
        return Reading(value, value, value)

    def number(self, text: str) -> float:
        """A text as a float; a ValueError if it is none."""
        text = text.strip().replace("\u2212", "-")
        if text.endswith("%"):
            value = self.number(text[:-1])
            self.percents += 1
            return value
        if "_" in text:
            raise ValueError(text)
        try:
            if self.decimal != ",":
                return float(text)
            if "." not in text:
                return float(text.replace(",", "."))
        except ValueError:
            pass
        if not self._grouped.fullmatch(text) or (self.decimal is None and "," in text):
            raise ValueError(text)
        self.thousands[next(iter(self.thousands), text)] += 1
        mark = "," if self.decimal != "," else "."
        digits = text.translate({ord(blank): None for blank in (*_BLANKS, mark)})
        return float(digits.replace(",", "."))

    def _interval(self, text: str) -> Reading:
        if text.startswith("[") and text.endswith("]"):
            between = ";" if ";" in text or self.decimal == "," else ","
            low, high = (self.number(end) for end in text[1:-1].split(between))
            if low > high:
                raise ValueError(text)
            return Reading((low + high) / 2, low, high)
        match = _LIMIT.fullmatch(text)
        if match is None:
            raise ValueError(text)
        end = self.number(match["end"] or match["least"])
        if match["sign"] in ("<", "≤"):
            return Reading(end, -math.inf, end)
        return Reading(end, end, math.inf)

    def notes(self) -> list[str]:
        """What was made of cells that are no plain numbers."""
        found = []
        if below := {code: n for code, n in self.gaps.items() if _BELOW.fullmatch(code)}:
            found.append(
                f"Cells below a limit that is not said, {_times(below)}, are taken for missing; "
                "write the limit itself, as in <0.05, and the model knows that they are low."
            )
        if gaps := {code: n for code, n in self.gaps.items() if code not in below}:
            found.append(f"Taken for missing: {_times(gaps)}.")
        for text in list(self.thousands)[:1]:
            found.append(
                f"Marks between thousands were left out of {self.thousands.total()} cells: "
                f"{text!r} is {self.fresh().number(text):g}."
            )
        if self.percents:
            found.append(
                f"Percent signs were left out of {self.percents} cells, whose numbers stay as they "
                "are: 5% is 5."
            )
        return found

    def advice(self, cell: Cell) -> str:
        """What to do about a cell that cannot be read: the end of a sentence."""
        text = str(cell).strip()
        missing = option("missing", text[:40])
        if text.startswith("[") and text.endswith("]"):
            return "write the smaller end first, as in [2, 4]"
        if text.startswith(("<", ">", "[")) or text.endswith("+"):
            return f"write limits as >8, <0.05, 8+ or [2, 4], or say {missing}"
        if _THREE.fullmatch(text) and self.decimal is None:
            return f"say what the mark means: {option('decimal', ',')} or {option('decimal', '.')}"
        if self.decimal != "," and _COMMA.fullmatch(text):
            return f"write decimals with a point, or say {option('decimal', ',')}"
        if self.decimal == "," and _POINT.fullmatch(text):
            return f"write decimals with a comma as elsewhere, or say {option('decimal', '.')}"
        if _DATE.fullmatch(text):
            return "it looks like a date, into which spreadsheets turn numbers: correct it there"
        return f"correct it, or say {missing} if it stands for missing"


def is_blank(cell: Cell) -> bool:
    """Whether there is nothing in a cell."""
    return not cell.strip() if isinstance(cell, str) else cell != cell


def is_word(cell: Cell) -> bool:
    """Whether a cell is no kind of number, not even with a mark of decimals that is out of place.

    Examples
    --------
    >>> is_word("low"), is_word("2024-05-01"), is_word("1,5"), is_word(">8,5")
    (True, True, False, False)
    """
    text = str(cell).strip().lstrip("<>=")
    return not (_COMMA.fullmatch(text) or _POINT.fullmatch(text))


def text_of(cell: Cell) -> str:
    """A cell as a label."""
    if isinstance(cell, str):
        return cell.strip()
    return str(int(cell)) if float(cell).is_integer() else str(cell)


def texts_of(cells: Sequence[Cell]) -> list[str]:
    """Cells as labels."""
    try:
        return list(map(str.strip, cells))  # type: ignore[arg-type]
    except TypeError:  # there are numbers
        return [text_of(cell) for cell in cells]


def _times(counts: dict[str, int]) -> str:
    return ", ".join(f"{code!r} ({n})" for code, n in counts.items())


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
