"""What a user says about a table: options that decide how it is read."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from bayesmf._errors import ModelError, nearest, whole_number

LABELS = ("auto", "yes", "no")
DUPLICATES = ("error", "mean", "first")
DECIMALS = (".", ",")
SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_ROW_LABELS = {"labels": "row-labels"}  # options that the command line calls otherwise


@dataclass(frozen=True)
class Layout:
    """How a table is laid out; what is left at its default is found out from the table."""

    long: tuple[str, ...] | None = None
    labels: str = "auto"
    sep: str | None = None
    decimal: str | None = None
    skip: int = 0
    comment: str | None = None
    encoding: str | None = None
    sheet: str | int | None = None
    layer: str | None = None
    missing: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    duplicates: str = "error"
    single: bool = False

    @classmethod
    def of(cls, **options: Any) -> Layout:
        """From options as users give them, which are checked."""
        one_of("labels", options["labels"], LABELS)
        one_of("duplicates", options["duplicates"], DUPLICATES)
        if options["decimal"] is not None:
            one_of("decimal", options["decimal"], DECIMALS)
        whole_number("skip", options["skip"], 0)
        if options["comment"] == "":
            raise ModelError("comment must be what such lines begin with, as in '#', got ''.")
        return cls(
            **options
            | {
                "long": None if options["long"] is None else _three(options["long"]),
                "sep": _separator(options["sep"], options["decimal"]),
                "missing": names(options["missing"]),
                "drop": names(options["drop"]),
            }
        )

    def refuse(self, allowed: Iterable[str], what: object) -> None:
        """Refuse options that were given but mean nothing for a kind of file."""
        for field in fields(self):
            if getattr(self, field.name) != field.default and field.name not in allowed:
                option = _ROW_LABELS.get(field.name, field.name)
                raise ModelError(
                    f"{field.name} (--{option}) is not for such data; leave it out for {what}."
                )


ALL = frozenset(field.name for field in fields(Layout))


def names(given: str | float | Iterable[Any]) -> tuple[str, ...]:
    """Several names: a list of them, or one text in which commas separate them.

    Examples
    --------
    >>> names('sex, site,"height, cm"'), names(["a,b", -999])
    (('sex', 'site', 'height, cm'), ('a,b', '-999'))
    """
    if isinstance(given, str):
        found: Iterable[Any] = next(csv.reader([given], skipinitialspace=True), [])
    else:
        found = [given] if isinstance(given, (int, float)) else given
    return tuple(text for name in found if (text := str(name).strip()))


def option(name: str, value: object) -> str:
    """How an option is written, in Python and on the command line.

    Examples
    --------
    >>> option("skip", 2), option("missing", "-999"), option("drop", "a b")
    ('skip=2 (--skip 2)', "missing='-999' (--missing=-999)", "drop='a b' (--drop 'a b')")
    """
    import shlex

    text = shlex.quote(str(value))
    join = "=" if text.startswith("-") else " "
    return f"{name}={value!r} (--{_ROW_LABELS.get(name, name)}{join}{text})"


def quoted(texts: Sequence[str]) -> str:
    """Names as one text that `names` takes apart again."""
    return ",".join(f'"{text}"' if "," in text or '"' in text else text for text in texts)


def one_of(name: str, value: object, known: Sequence[str]) -> None:
    """Refuse what is not known."""
    if value not in known:
        hint = nearest(str(value), known)
        raise ModelError(f"{name} must be one of {', '.join(known)}, got {value!r}.{hint}")


def _three(long: str | Sequence[str]) -> tuple[str, ...]:
    found = tuple(n.strip() for n in (long.split(",") if isinstance(long, str) else long))
    if len(set(found)) != 3 or len(found) != 3 or not all(found):
        raise ModelError(
            f"long must name three columns, as in 'row,col,value', got {','.join(found)!r}."
        )
    return found


def _separator(sep: str | None, decimal: str | None) -> str | None:
    if sep is None:
        return None
    found = SEPARATORS.get(sep, sep)
    if len(found) != 1 or found in "\r\n\"'.":
        raise ModelError(
            f"sep must be one character, as in ',' or ';', or tab, got {sep!r}; cells cannot be "
            "separated by others."
        )
    if found == decimal:
        raise ModelError(f"sep and decimal are both {found!r}; they must differ.")
    return found
