"""The sections about noise: whether the likelihood fits, and which rows and columns are noisy."""

from __future__ import annotations

from collections.abc import Sequence

from bayesmf.report import charts
from bayesmf.report.data import Check, Levels, ReportData, Residuals
from bayesmf.report.markup import Html, figure, finite, join, number, paragraph, percent, tag

FAR = 4.0  # standard deviations, beyond which lies one normal residual of 16,000
WIDE = 1.3  # times as wide as it should be
GROWS = 1.5  # times as wide where fitted values are large


def residuals(data: ReportData) -> Html | None:
    """Residuals in four pictures, and what data made by the model would look like."""
    found = data.residuals
    if found is None and not data.checks:
        return None
    hint = (
        "A residual is how far an observed cell lies from its prediction, in standard deviations "
        "that the model states for it. If the noise is right, residuals are standard normal "
        "everywhere. Each cell is predicted by the others."
    )
    parts = [] if found is None else [
        paragraph(hint, "hint"),
        paragraph(" ".join(_findings(found) or [_nothing(data.checks)]), "verdict-text"),
        tag("div", *_pictures(found), class_="side"),
    ]  # fmt: skip
    return join(*parts, _checked(data.checks) if data.checks else None)


def _findings(found: Residuals) -> list[str]:
    """What the residuals say about the noise, and what to try."""
    said = []
    tails = found.quantiles[0][1], found.quantiles[-1][1]
    ends = found.quantiles[0][0], found.quantiles[-1][0]
    if max(abs(tails[0]), abs(tails[1])) > WIDE * abs(ends[0]):
        said.append("The ends bend away from the line: there are outliers; a Student-t model, such "
                    "as TGGW, allows for them.")  # fmt: skip
    for side in found.by_line:
        name, size, low, _ = side.levels[0]
        if low > WIDE:
            word = "cols" if side.side == "columns" else "rows"
            said.append(f"{name} scatters {number(size, 2)} times as much as it should: noise of "
                        f"its own for the {side.side} (noise={word!r}) may help.")  # fmt: skip
    if len(found.by_size) > 2:
        (_, first, _, top), (_, last, bottom, _) = found.by_size[0], found.by_size[-1]
        if last > GROWS * first and bottom > top:
            said.append("Residuals grow with the fitted value: try logarithms, or a likelihood for "
                        "counts if these are counts.")  # fmt: skip
    return said


def _nothing(checks: Sequence[Check]) -> str:
    """What is said of residuals that show nothing."""
    if any(not check.holds for check in checks):
        return "The residuals look right, but data made by the model look otherwise: see below."
    return "Nothing in the residuals speaks against this noise."


def _pictures(found: Residuals) -> list[Html]:
    """Quantiles, shares, by size, by rows and columns."""
    shown = [
        figure(charts.quantiles(found.quantiles),
               "Residuals against normal ones: on the line, they are normal."),
        figure(charts.pit(found.pit), "The share of its prediction that lies below a cell (the "
               "probability integral transform): flat, if predictions are right. High in the "
               "middle: intervals are too wide; at both ends: too narrow. Flat bars end in the "
               "band, but for one in a hundred."),
    ]  # fmt: skip
    if len(found.by_size) > 1:
        said = "Spread of the residuals by fitted value; it should be 1."
        shown.append(figure(charts.by_size(found.by_size), said))
    for side in found.by_line:
        said = f"Spread of the residuals of {side.side}, the widest first; it should be 1."
        if len(side.levels) < side.total:
            said += f" Of {side.total} {side.side} the widest and the narrowest are shown."
        shown.append(figure(charts.levels(side), said))
    return shown


def _checked(checks: Sequence[Check]) -> Html:
    """Statistics of the data beside those of data that the model makes."""
    said = [_told(check) for check in checks if not check.holds]
    head = ("What is the share of zeros, the largest value, the spread, in data that the model "
            "makes in the same cells? ")  # fmt: skip
    if not said:
        head += "All that was looked at is as in the data."
    rows = [
        tag("tr", tag("th", check.name, scope="row"), tag("td", _shown(check, check.value)),
            tag("td", _range(check)))
        for check in checks
    ]  # fmt: skip
    titles = ("", "In the data", "In data made by the model (98 % interval)")
    top = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in titles)))
    return join(
        tag("h3", "Would the model make such data?"),
        paragraph(head, "hint"),
        tag("ul", *(tag("li", one) for one in said)) if said else None,
        tag("div", tag("table", top, tag("tbody", *rows), class_="plain"), class_="scroll"),
    )


def _shown(check: Check, value: float) -> str:
    return percent(value) if check.name.startswith("share") else number(value)


def _range(check: Check) -> str:
    """The interval of a statistic, one number where both ends look alike."""
    return " to ".join(dict.fromkeys((_shown(check, check.low), _shown(check, check.high))))


def _told(check: Check) -> str:
    """One statistic that the model gets wrong."""
    model = f"the model would make ({_range(check)})"
    above = check.value > check.high
    value = _shown(check, check.value)
    if check.name.startswith("share"):
        what = check.name.removeprefix("share of ").replace("share at", "values at")
        return f"The data have {'more' if above else 'fewer'} {what} ({value}) than {model}."
    return (
        f"The {check.name} of the data ({value}) is {'above' if above else 'below'} what {model}."
    )


def levels(data: ReportData) -> Html | None:
    """Which rows and columns are noisy, and which are not."""
    known = [side for side in data.noise if any(finite(level[1]) for level in side.levels)]
    if not known:
        return None
    hint = (
        "Noise is what the factors do not explain, as a standard deviation: errors of measurement, "
        "and what is peculiar to a row or column. A dot is that of one, a bar its 90 % interval; "
        "the dashed line is the noise of a typical one."
    )
    shown = [
        tag("figure", tag("figcaption", _badly(side), class_="head"), charts.levels(side),
            tag("figcaption", _worst(side)))
        for side in known
    ]  # fmt: skip
    return join(paragraph(hint, "hint"), tag("div", *shown, class_="side"))


def _badly(side: Levels) -> str:
    """A headline: whether some are clearly worse than a typical one."""
    if any(low > side.typical for _, _, low, _ in side.levels):
        return f"Some {side.side} are noisier than a typical one"
    return f"All {side.side} are about equally noisy"


def _worst(side: Levels) -> str:
    """Under a drawing: the worst, and how many are left out."""
    name, mean, low, high = side.levels[0]
    times = f"{number(mean / side.typical, 2)} times that of a typical one" if side.typical else ""
    said = f"The noisiest is {name}: {number(mean)} ({number(low)} to {number(high)}), {times}."
    said += f" The noise is {side.unit}." if side.unit else ""
    if len(side.levels) < side.total:
        said += f" Of {side.total} {side.side} the noisiest and the most precise are shown, "
        said += f"{len(side.levels)} in all."
    return said
