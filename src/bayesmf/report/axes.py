"""Scales, ticks and marks that the charts share; a kind of model has its own colour and shape."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bayesmf.report.data import KINDS
from bayesmf.report.markup import Child, Html, number, slug, tag

FENCE = 1.5  # an axis reaches so many quartile distances beyond the quartiles
DECADE = 10.0  # a range of so many times its start gets a logarithmic axis


@dataclass(frozen=True)
class Axis:
    """A scale from numbers to places in a drawing."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a number; what lies beyond the axis stays at its end."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers along the axis."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for leading in ((1, 2, 5), (1, 3), (1,)):
                found = [d * 10.0**k for k in decades for d in leading]
                found = [x for x in found if self.low <= x <= self.high]
                if len(found) <= most:
                    return found
            return found[:: math.ceil(len(found) / most)]
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(i * step, 12) for i in range(first, last + 1)]


def limits(
    values: Iterable[float], fence: float | None = None, pad: float = 0.05
) -> tuple[float, float]:
    """A range with a margin, if asked not far beyond the quartiles of the values."""
    v = np.asarray([x for x in values if math.isfinite(x)], dtype=float)
    if not v.size:
        return 0.0, 1.0
    low, high = float(v.min()), float(v.max())
    if fence is not None:
        first, third = (float(q) for q in np.quantile(v, [0.25, 0.75]))
        reach = fence * (third - first) or math.inf
        low, high = max(low, first - reach), min(high, third + reach)
    margin = pad * (high - low) or 0.05 * abs(high) or 0.5
    return low - margin, high + margin


def label(tick: float) -> str:
    """A tick as text, as short as it goes."""
    return f"{tick:,.6g}" if not tick or 1e-4 <= abs(tick) < 1e7 else number(tick, 2)


def short(value: str, most: int = 18) -> str:
    """Start and end of a long label: labels that begin alike differ at their ends."""
    if len(value) <= most:
        return value
    end = (most - 1) // 2
    return f"{value[: most - 1 - end]}\u2026{value[-end:]}"


def style(kind: str) -> str:
    """The class that gives a kind of model its colour."""
    return f"kind-{slug(kind)}" if kind in KINDS else "kind-other"


def mark(kind: str, x: float, y: float, r: float = 4.0) -> Html:
    """The shape of a kind of model: circle, square, diamond, triangle, or cross."""
    shapes = {
        "real": f"M{x - r:.1f} {y:.1f}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z",
        "nonnegative": f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z",
        "semi-nonnegative": f"M{x:.1f} {y - 1.3 * r:.1f}l{1.3 * r} {1.3 * r}l{-1.3 * r} {1.3 * r}"
        f"l{-1.3 * r} {-1.3 * r}z",
        "counts": f"M{x:.1f} {y - 1.25 * r:.1f}l{1.25 * r} {2.2 * r}h{-2.5 * r}z",
    }
    cross = f"M{x - r:.1f} {y - r:.1f}l{2 * r} {2 * r}m0 {-2 * r}l{-2 * r} {2 * r}"
    return tag("path", d=shapes.get(kind, cross), class_="mark" if kind in shapes else "mark cross")


def words(x: float, y: float, content: str, class_: str = "", **attributes: object) -> Html:
    """Text in a drawing."""
    return tag("text", content, x=round(x, 1), y=round(y, 1), class_=class_ or None, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    """A straight line in a drawing."""
    return tag("path", d=f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}", class_=class_)


def drawing(width: float, height: float, about: str, *children: Child, class_: str = "") -> Html:
    """A drawing with a description for those who cannot see it."""
    return tag(
        "svg",
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        class_=f"chart {class_}".strip(),
        role="img",
        aria_label=about,
    )


def frame(x: Axis, y: Axis, x_name: str, y_name: str, x_ticks: int = 6, y_ticks: int = 5) -> Html:
    """Grid lines, tick labels and names of both axes."""
    parts = []
    for tick in y.ticks(y_ticks):
        parts.append(line(x.start, y(tick), x.end, y(tick), "grid"))
        parts.append(words(x.start - 6, y(tick) + 4, label(tick), "tick", text_anchor="end"))
    for tick in x.ticks(x_ticks):
        parts.append(line(x(tick), y.start, x(tick), y.start + 4, "axis"))
        parts.append(words(x(tick), y.start + 17, label(tick), "tick", text_anchor="middle"))
    parts.append(line(x.start, y.start, x.end, y.start, "axis"))
    middle = (x.start + x.end) / 2
    parts.append(words(middle, y.start + 34, x_name, "name", text_anchor="middle"))
    parts.append(words(0, y.end - 10, y_name, "name"))
    return tag("g", *parts)
