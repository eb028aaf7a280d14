"""The drawings of a report, as SVG: nothing in them depends on seeing colours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bayesmf.report.axes import (
    DECADE,
    FENCE,
    Axis,
    drawing,
    frame,
    label,
    limits,
    line,
    mark,
    short,
    style,
    words,
)
from bayesmf.report.data import KINDS, Histogram, Levels, RankingRow, Surprise
from bayesmf.report.markup import Html, finite, number, percent, tag

WIDTH = 360.0
DASHES = (None, "7 3", "2 3", "9 3 2 3", "12 4")
GAP = 14.0  # between labels of lines
WIDEST = 18  # letters of a line of such a label, about
STEP = 16.0  # between lines of a list
Curve = Sequence[tuple[int, float, float | None]]


def histogram(data: Histogram) -> Html:
    """How the observed values are distributed."""
    edges, counts = [float(e) for e in data.edges], [int(c) for c in data.counts]
    top = max(counts, default=0) or 1
    x = Axis(edges[0], edges[-1], 46, WIDTH - 12)
    y = Axis(0, top * 1.04, 190, 34)
    bars = []
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        if count:
            left, right = x(low), x(high)
            gap = min(1.0, (right - left) / 4)
            bar = tag(
                "rect",
                tag("title", f"{label(low)} to {label(high)}: {count:,} cells"),
                x=round(left + gap / 2, 2),
                y=round(y(count), 2),
                width=round(right - left - gap, 2),
                height=round(y.start - y(count), 2),
                class_="bar",
            )
            bars.append(bar)
    tallest = counts.index(top) if top in counts else 0
    about = (
        f"Histogram of {sum(counts):,} observed values from {number(edges[0])} to "
        f"{number(edges[-1])}; the most, {top:,}, lie between {number(edges[tallest])} and "
        f"{number(edges[tallest + 1])}."
    )
    return drawing(WIDTH, 232, about, frame(x, y, "value", "cells", y_ticks=4), bars)


def calibration(points: Sequence[tuple[float, float]]) -> Html:
    """The share of cells inside intervals against the share that should be there."""
    x, y = Axis(0, 1, 46, WIDTH - 14), Axis(0, 1, 300, 30)
    place = [(x(nominal), y(actual)) for nominal, actual in sorted(points)]
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in place)
    about = "Actual against nominal coverage: " + ", ".join(
        f"{percent(actual)} inside {percent(nominal)} intervals"
        for nominal, actual in sorted(points)
    )
    return drawing(
        WIDTH,
        342,
        about + ".",
        frame(x, y, "share that should be inside", "share that is inside", 5, 5),
        line(x(0), y(0), x(1), y(1), "ideal"),
        words(x(0.06), y(0.87), "intervals too wide", "hint"),
        words(x(0.98), y(0.13), "intervals too narrow", "hint", text_anchor="end"),
        tag("g", tag("path", d=path, class_="curve"), [mark("real", a, b) for a, b in place]),
    )


def error_axis(ranking: Sequence[RankingRow], width: float = 130.0) -> Axis | None:
    """The common axis of the errors of all models, or None where no error is known."""
    ends = [
        end
        for row in ranking
        if (error := finite(row.mse)) is not None
        for end in (error - (finite(row.mse_error) or 0), error + (finite(row.mse_error) or 0))
    ]
    if not ends:
        return None
    low, high = limits(ends, FENCE)
    return Axis(low, high, 6, width - 12)


def error_scale(axis: Axis) -> Html:
    """The axis itself, for the head of a table."""
    parts = [line(axis.start, 15, axis.end, 15, "axis")]
    for tick in axis.ticks(4):
        parts.append(line(axis(tick), 15, axis(tick), 19, "axis"))
        parts.append(words(axis(tick), 11, label(tick), "tick", text_anchor="middle"))
    size = f"0 0 {axis.end + 12:g} 20"
    return tag("svg", *parts, viewBox=size, class_="dot", aria_hidden="true")


def error_dot(row: RankingRow, axis: Axis, best: RankingRow | None) -> Html:
    """The error of one model with a bar of one standard error either side."""
    parts = []
    if best is not None and (middle := finite(best.mse)) is not None:
        reach = finite(best.mse_error) or 0.0
        left, right = axis(middle - reach), axis(middle + reach)
        parts.append(
            tag("rect", x=left, y=0, width=max(right - left, 1.0), height=24, class_="band")
        )
    error, spread = finite(row.mse), finite(row.mse_error)
    if error is not None and axis.low <= error <= axis.high:
        if spread:
            parts.append(line(axis(error - spread), 12, axis(error + spread), 12, "range"))
        parts.append(mark(row.kind, axis(error), 12))
    elif error is not None:  # an arrow: the place is beyond the axis
        tip, back = (axis.end + 10, -1) if error > axis.high else (axis.start - 4, 1)
        head = f"l{5 * back} -4m0 8l{-5 * back} -4"
        parts.append(tag("path", d=f"M{tip + 14 * back:.1f} 12H{tip:.1f}{head}"))
        parts.append(mark(row.kind, tip + 22 * back, 12))
    size = f"0 0 {axis.end + 12:g} 24"
    return tag("svg", *parts, viewBox=size, class_=f"dot {style(row.kind)}", aria_hidden="true")


def surprise_dot(surprise: Surprise, reach: float) -> Html:
    """A value beside the interval it should be in; drawings reach so many widths to each side."""
    width = surprise.high - surprise.low or 1.0
    middle = (surprise.high + surprise.low) / 2
    x = Axis(-reach, reach, 6, 114)
    low, high, mean, value = (
        x((place - middle) / width)
        for place in (surprise.low, surprise.high, surprise.mean, surprise.value)
    )
    parts = [
        tag("rect", x=low, y=7, width=max(high - low, 1.0), height=10, class_="band"),
        line(mean, 4, mean, 20, "axis"),
        mark("semi-nonnegative", value, 12, 3.6),
    ]
    return tag("svg", *parts, viewBox="0 0 120 24", class_="dot small", aria_hidden="true")


def levels(data: Levels) -> Html:
    """Noise or residuals of rows or columns, one under the other, each with its interval."""
    known = [level for level in data.levels if all(finite(x) is not None for x in level[1:])]
    ends = [data.typical, *(x for level in known for x in level[1:])]
    low, high = min(ends), max(ends)
    log = low > 0 and high > DECADE * low
    low, high = (low / 1.1, high * 1.1) if log else limits(ends)
    left = 20 + 6.4 * max((len(short(level[0])) for level in known), default=0)
    gap = data.gap if data.gap is not None and len(known) == len(data.levels) else len(known)
    bottom = 24 + STEP * (len(known) + (gap < len(known)))
    x = Axis(low, high, left, WIDTH - 14, log)
    parts = []
    for tick in x.ticks(5):
        parts.append(line(x(tick), 16, x(tick), bottom, "grid"))
        parts.append(words(x(tick), bottom + 15, label(tick), "tick", text_anchor="middle"))
    parts.append(words((left + x.end) / 2, bottom + 33, data.name, "name", text_anchor="middle"))
    parts.append(line(x(data.typical), 14, x(data.typical), bottom, "ideal"))
    for k, (name, mean, least, most) in enumerate(known):
        y = 24 + STEP * (k + 0.5 + (k >= gap))
        told = f"{name}: {number(mean)} ({number(least)} to {number(most)})"
        drawn = [
            tag("title", told),
            words(left - 8, y + 4, short(name), "tick", text_anchor="end"),
            line(x(least), y, x(most), y, "range"),
            mark("real", x(mean), y, 3.2),
        ]
        parts.append(tag("g", *drawn))
    if gap < len(known):
        parts.append(words(left - 8, 28 + STEP * (gap + 0.5), "\u22ef", "tick", text_anchor="end"))
    worst, best = known[0], known[-1]
    about = (
        f"The {data.name} of {len(known)} {data.side} with intervals: the largest is that of "
        f"{worst[0]}, {number(worst[1])}, the smallest that of {best[0]}, {number(best[1])}; "
        f"typical is {number(data.typical)}."
    )
    return drawing(WIDTH, bottom + 38, about, parts)


def quantiles(points: Sequence[tuple[float, float]]) -> Html:
    """Quantiles of the residuals against normal ones."""
    reach = 1.05 * max(abs(points[0][0]), *(abs(value) for _, value in points))
    x, y = Axis(-reach, reach, 46, WIDTH - 14), Axis(-reach, reach, 300, 30)
    about = "Normal quantile plot of the residuals: " + ", ".join(
        f"{number(value)} at {number(normal)}" for normal, value in points[:: len(points) // 8 or 1]
    )
    return drawing(
        WIDTH, 342, about + ".", frame(x, y, "normal quantile", "residual", 5, 5),
        line(x(-reach), y(-reach), x(reach), y(reach), "ideal"),
        tag("g", [mark("real", x(normal), y(value), 2.2) for normal, value in points]),
    )  # fmt: skip


def pit(counts: Sequence[int]) -> Html:
    """A histogram of shares between 0 and 1, with the band in which chance keeps flat ones."""
    total, bins = sum(counts), len(counts)
    even = total / bins
    reach = 2.6 * math.sqrt(even * (1 - 1 / bins))  # 99 % of a binomial
    x = Axis(0, 1, 46, WIDTH - 14)
    y = Axis(0, 1.08 * max(*counts, even + reach), 190, 34)
    top, bottom = y(even + reach), y(max(even - reach, 0))
    bars = [
        tag("rect", tag("title", f"{k / bins:.2f} to {(k + 1) / bins:.2f}: {count:,} cells"),
            x=round(x(k / bins) + 0.5, 2), y=round(y(count), 2),
            width=round(x((k + 1) / bins) - x(k / bins) - 1, 2),
            height=round(y.start - y(count), 2), class_="bar")
        for k, count in enumerate(counts)
    ]  # fmt: skip
    band = tag("rect", x=x.start, y=top, width=x.end - x.start, height=bottom - top, class_="band")
    ends = [line(x.start, end, x.end, end, "edge") for end in (top, bottom)]
    about = "Shares of predictions below the observed cells, in twenty parts: " + ", ".join(
        f"{count:,}" for count in counts
    )
    return drawing(
        WIDTH, 232, about + ".", band, frame(x, y, "share below", "cells", 5, 4), bars, ends,
    )  # fmt: skip


def by_size(points: Sequence[tuple[float, float, float, float]]) -> Html:
    """The spread of residuals against the fitted value, with intervals."""
    x = Axis(*limits([point[0] for point in points]), 46, WIDTH - 14)
    y = Axis(0, 1.08 * max(1.0, *(point[3] for point in points)), 190, 34)
    about = "Spread of the residuals by fitted value: " + ", ".join(
        f"{number(size)} at {number(fitted)}" for fitted, size, _, _ in points
    )
    drawn = [
        tag("g", line(x(fitted), y(low), x(fitted), y(high), "range"),
            mark("real", x(fitted), y(size), 3.2))
        for fitted, size, low, high in points
    ]  # fmt: skip
    return drawing(
        WIDTH, 232, about + ".", frame(x, y, "fitted value", "spread", 5, 4),
        line(x.start, y(1), x.end, y(1), "ideal"), drawn,
    )  # fmt: skip


def key(kind: str) -> Html:
    """The shape of a kind of model, to stand beside its name."""
    shape = mark(kind, 7, 7)
    return tag("svg", shape, viewBox="0 0 14 14", class_=f"key {style(kind)}", aria_hidden="true")


def bar(value: float, largest: float, signed: bool) -> Html:
    """A loading as a bar; those below zero go to the left and are hollow."""
    zero = 50.0 if signed else 0.0
    length = abs(value) / (largest or 1.0) * (49.0 if signed else 99.0)
    class_ = "bar below" if value < 0 else "bar"
    parts = [tag("rect", x=zero - (length if value < 0 else 0), y=2, width=length, height=8)]
    if signed:
        parts.append(line(50, 0, 50, 12, "axis"))
    size = {"viewBox": "0 0 100 12", "preserveAspectRatio": "none"}
    return tag("svg", *parts, class_=class_, aria_hidden="true", **size)


# --- Error against rank -------------------------------------------------------------------------


def rank_panels(curves: Mapping[str, Curve], kinds: Mapping[str, str]) -> list[tuple[str, Html]]:
    """One drawing for each kind of model, on the same axes, with the others in the background."""
    known = {
        model: [p for p in sorted(points) if finite(p[1]) is not None]
        for model, points in curves.items()
    }
    known = {model: points for model, points in known.items() if points}
    if not known:
        return []
    groups: dict[str, list[str]] = {}
    for model in known:
        groups.setdefault(kinds.get(model, "other"), []).append(model)
    order = [*KINDS, *(k for k in groups if k not in KINDS)]
    right = WIDTH - 16 - 7.2 * max(len(one) for model in known for one in _lines(model))
    models = {m: points for m, points in known.items() if kinds.get(m) != "baseline"} or known
    panels = []
    for kind in (k for k in order if k in groups):  # baselines may be far above all others
        shown = known if kind == "baseline" else models
        panels.append((kind, _rank_panel(kind, groups[kind], shown, *_rank_axes(shown, right))))
    return panels


def _rank_axes(curves: Mapping[str, Curve], right: float) -> tuple[Axis, Axis]:
    """Axes that hold all curves; errors that differ tenfold get a logarithmic one."""
    ranks = [p[0] for points in curves.values() for p in points]
    ends = [
        end
        for points in curves.values()
        for _, error, spread in points
        for end in (error - (finite(spread) or 0), error + (finite(spread) or 0))
    ]
    low, high = min(ends), max(ends)
    log = low > 0 and high > DECADE * low
    low, high = (low / 1.1, high * 1.1) if log else limits(ends)
    first, last = min(ranks), max(ranks)
    if first == last:
        first, last = first - 1, last + 1
    return Axis(first, last, 46, right), Axis(low, high, 268, 32, log)


def _rank_panel(
    kind: str, models: Sequence[str], curves: Mapping[str, Curve], x: Axis, y: Axis
) -> Html:
    """The curves of one kind of model."""
    parts = [frame(x, y, "rank", "error (MSE)", 5, 5)]
    parts += [
        tag("path", d=_path(points, x, y), class_="faint")
        for model, points in curves.items()
        if model not in models
    ]
    gap = GAP * max(len(_lines(model)) for model in models)
    ends = _apart([y(curves[model][-1][1]) for model in models], y.end, y.start, gap)
    said = []
    for i, (model, end) in enumerate(zip(models, ends, strict=True)):
        points = curves[model]
        rank, lowest, _ = min(points, key=lambda p: p[1])
        said.append(f"{model}: lowest error {number(lowest)} at rank {rank}")
        last = (x(points[-1][0]), y(points[-1][1]))
        drawn = [
            tag("title", said[-1]),
            tag("path", d=_path(points, x, y), class_="curve", stroke_dasharray=DASHES[i % 5]),
            [
                line(x(r), y(error - spread), x(r), y(error + spread), "range")
                for r, error, spread in points
                if spread is not None and finite(spread)
            ],
            [mark(kind, x(r), y(error), 2.6) for r, error, _ in points],
            tag("circle", cx=x(rank), cy=y(lowest), r=5.5, class_="lowest"),
            line(last[0] + 4, last[1], x.end + 9, end, "leader"),
            [
                words(x.end + 12, end + 4 + GAP * (k - (len(_lines(model)) - 1) / 2), one, "direct")
                for k, one in enumerate(_lines(model))
            ],
        ]
        parts.append(tag("g", *drawn, class_="series"))
    about = f"Error against rank, {KINDS.get(kind, kind)} models. {'; '.join(said)}."
    return drawing(WIDTH, 310, about, *parts, class_=f"lines {style(kind)}")


def _lines(model: str) -> list[str]:
    """The name of a model in one line or two, broken before an option."""
    first, *options = model.split(" + ")
    found = [first]
    for option in options:
        if len(found) == 1 and len(found[0]) + len(option) < WIDEST:
            found[0] += f" + {option}"
        elif len(found) == 1:
            found.append(f"+ {option}")
        else:
            found[1] += f" + {option}"
    return [short(one, WIDEST + 3) for one in found]


def _path(points: Curve, x: Axis, y: Axis) -> str:
    """The line through the points of a curve."""
    return "M" + "L".join(f"{x(r):.1f} {y(error):.1f}" for r, error, _ in points)


def _apart(places: Sequence[float], top: float, bottom: float, gap: float) -> list[float]:
    """Places of labels moved as little as it takes for none to cover another."""
    gap = min(gap, (bottom - top) / max(1, len(places) - 1))
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    limit = -math.inf
    for i in order:  # down from the top
        limit = moved[i] = max(moved[i], limit + gap)
    limit = bottom + gap
    for i in reversed(order):  # and back up from the bottom
        limit = moved[i] = min(moved[i], limit - gap)
    return moved
