"""HTML from Python: plain text is escaped on the way in, so that no label can become markup."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable
from typing import Any, TypeAlias

VOID = {"input"}
UNSEEN = dict.fromkeys((*range(9), *range(11, 32), 127, *range(0xD800, 0xE000)), "\ufffd")
MISSING = "\u2013"


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = str | int | Iterable["Child"] | None


def text(value: object) -> Html:
    """A value as text of a page, in which control characters are replaced."""
    return Html(html.escape(str(value).translate(UNSEEN)))


def join(*children: Child) -> Html:
    """One piece of markup from many; what is not `Html` is escaped."""
    parts = []
    for child in children:
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, str | int):
            parts.append(text(child))
        elif child is not None:
            parts.append(join(*child))
    return Html("".join(parts))


def tag(name: str, /, *children: Child, **attributes: Any) -> Html:
    """An element; ``class_`` and ``aria_label`` stand for ``class`` and ``aria-label``."""
    written = [name]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(key)
        elif value is not None and value is not False:
            value = f"{value:.6g}" if isinstance(value, float) else value
            written.append(f'{key}="{text(value)}"')
    start = f"<{' '.join(written)}>"
    return Html(start if name in VOID else f"{start}{join(*children)}</{name}>")


def embed(data: object) -> Html:
    """Data as JSON that can stand inside a script element."""
    written = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return Html(written)


def finite(value: float | None) -> float | None:
    """The number, or None for what is missing or not finite."""
    return float(value) if value is not None and math.isfinite(value) else None


def decimals(value: float, digits: int) -> int:
    """How many decimals show a number with so many significant digits."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits, or a dash where there is none."""
    value = finite(value)
    if value is None:
        return MISSING
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{decimals(float(f'{value:.{digits}g}'), digits)}f}"


def whole(value: float | None) -> str:
    """A number without decimals."""
    value = finite(value)
    return MISSING if value is None else f"{value:,.0f}"


def places_for(errors: Iterable[float | None]) -> int | None:
    """How many decimals numbers with such errors deserve; None where none will do."""
    known = sorted(e for error in errors if (e := finite(error)))
    if not known or not 1e-6 <= (middle := known[len(known) // 2]) < 1e7:
        return None
    return decimals(float(f"{middle:.2g}"), 2)


def with_error(value: float | None, error: float | None, places: int | None) -> str:
    """A number and its standard error with so many decimals, as far as they are known."""
    value, error = finite(value), finite(error)
    if value is None or places is None:
        return number(value)
    return f"{value:,.{places}f}" + (f" \u00b1 {error:,.{places}f}" if error else "")


def percent(share: float | None, fixed: bool = False) -> str:
    """A share in percent with one decimal, which a zero needs only in a column of others."""
    share = finite(share)
    if share is None:
        return MISSING
    return f"{100 * share:.1f} %" if fixed else f"{round(100 * share, 1):g} %"


def slug(value: str) -> str:
    """A name made safe for a class."""
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in value.casefold()) or "other"


def figure(drawing: Child, caption: str) -> Html:
    """A drawing with words under it."""
    return tag("figure", drawing, tag("figcaption", caption))


def paragraph(words: str, class_: str | None = None) -> Html | None:
    """A paragraph, if there are words for it."""
    return tag("p", words, class_=class_) if words else None


def copyable(command: str) -> Html:
    """A command, broken between its words alone, with a button that copies it."""
    words = [tag("span", word, class_="nowrap") for word in command.split(" ")]
    return tag(
        "div",
        tag("pre", tag("code", Html(" ".join(words))), tabindex="0"),
        tag("button", "Copy", type="button", class_="screen"),
        tag("span", class_="hint screen", role="status"),
        class_="command",
    )
