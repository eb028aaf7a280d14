"""The sections of a report, in their order; one that has nothing to show is None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesmf.posterior.agreement import RHAT_LIMIT
from bayesmf.posterior.diagnostics import ESS_LIMIT
from bayesmf.report import charts, tables
from bayesmf.report import features as of_features
from bayesmf.report import noise as of_noise
from bayesmf.report.data import KINDS, Factor, ReportData
from bayesmf.report.markup import (
    Child,
    Html,
    copyable,
    figure,
    finite,
    join,
    number,
    paragraph,
    percent,
    tag,
    text,
)

OPEN = 4  # factors shown at once; the others unfold
CLOSE = 0.03  # coverage so near to its nominal value is about right


def the_data(data: ReportData) -> Html | None:
    """How much there is, where, and how it is distributed."""
    tiles = _tiles(data)
    drawings = []
    if "observed" in data.arrays:
        drawings.append(_pattern(data))
    if data.histogram is not None and len(data.histogram.counts):
        drawings.append(
            figure(charts.histogram(data.histogram), "How the observed values are distributed.")
        )
    if not (tiles or drawings or data.warnings):
        return None
    warned = [tag("li", tag("strong", "Note: "), warning) for warning in data.warnings]
    return join(
        tables.pairs(tiles, "tiles") if tiles else None,
        tag("ul", *warned, class_="warnings") if warned else None,
        tag("div", *drawings, class_="side") if drawings else None,
    )


def _tiles(data: ReportData) -> list[tuple[str, Child]]:
    """The numbers that describe the data."""
    tiles: list[tuple[str, Child]] = []
    if data.shape is not None:
        tiles += [("rows", f"{data.shape[0]:,}"), ("columns", f"{data.shape[1]:,}")]
    if data.n_observed is not None:
        tiles.append(("observed cells", f"{data.n_observed:,}"))
        if data.shape is not None and 0 not in data.shape:
            missing = 1 - data.n_observed / (data.shape[0] * data.shape[1])
            tiles.append(("of all cells missing", percent(missing)))
    return tiles


def _pattern(data: ReportData) -> Html:
    """Which cells are missing, as a small picture."""
    observed = data.arrays["observed"]
    rows, cols = observed.shape
    names = data.labels
    by_row, by_col = observed.mean(axis=1), observed.mean(axis=0)
    about = f"Pattern of missing cells: {rows} rows, {cols} columns, {percent(observed.mean())} "
    about += "of the cells shown are observed."
    if not observed.all():
        emptiest = names[0][int(by_row.argmin())], names[1][int(by_col.argmin())]
        about += f" The emptiest row is {emptiest[0]} ({percent(by_row.min())} observed), "
        about += f"the emptiest column {emptiest[1]} ({percent(by_col.min())} observed)."
    picture = tag(
        "div",
        tag("span", f"{rows} rows", class_="down"),
        tag("canvas", about, id="pattern", width=cols, height=rows, role="img", aria_label=about),
        tag("span", f"{cols} columns", class_="along"),
        class_="pattern",
    )
    key = tag(
        "span", tag("span", class_="swatch full"), " observed", tag("span", class_="swatch hatch"),
        " missing.", class_="nowrap",
    )  # fmt: skip
    return tag("figure", picture, tag("figcaption", key, " ", data.note))


def which_model(data: ReportData) -> Html | None:
    """The recommendation, the ranking behind it, and what was left out."""
    if not (data.recommendation or data.ranking or data.excluded):
        return None
    points = [tag("li", point) for point in data.recommendation]
    parts: list[Child] = [tag("ul", *points, class_="verdict-text") if points else None]
    if data.meaning:
        names = tables.pairs(data.meaning.items(), "reasons")
        parts.append(tag("details", tag("summary", "What the names mean"), names))
    if data.ranking:
        hint = (
            "Models are compared on cells that they did not see. Lower error and higher log "
            "density are better; a tie is too close to call; models that were stopped early ran on "
            "the first folds only. Coverage is the share of cells inside their 90 % intervals, and "
            "should be near 90 %. Choose a column head to sort by it."
        )
        if any(row.status == "recommended" for row in data.ranking):
            hint += " The shaded band marks the recommended model; an arrow, one beyond the axis."
        present = [k for k in KINDS if k in data.kinds.values()]
        keys = [tag("li", charts.key(kind), KINDS[kind]) for kind in present]
        parts += [
            paragraph(hint, "hint"),
            tag("ul", *keys, class_="keys", aria_label="Kinds of models"),
            tables.ranking(data.ranking),
        ]
    if data.worst:
        parts += [
            tag("h3", "Columns that are predicted worst"),
            paragraph(
                "Skill is one less the error over that of the column's own average: 1 is perfect, "
                "0 no better than the average. All of it is of cells that were held out.", "hint"
            ),
            tables.columns(data.worst),
        ]  # fmt: skip
    if data.excluded:
        parts += [tag("h3", "Left out"), tables.pairs(data.excluded.items(), "reasons")]
    return join(*parts)


def error_against_rank(data: ReportData) -> Html | None:
    """How the error of each model depends on its rank."""
    panels = charts.rank_panels(data.rank_curves, data.kinds)
    if not panels:
        return None
    shown = []
    for kind, panel in panels:
        name = KINDS.get(kind, "models" if kind == "other" else kind)
        head = tag("figcaption", charts.key(kind), name.capitalize(), class_="head")
        shown.append(tag("figure", head, panel))
    words = "A ring marks the lowest error of each model; bars are one standard error either side."
    if len(panels) > 1:
        words += " Other kinds are in grey. All models are on the same axes"
        words += "; baselines have their own." if panels[-1][0] == "baseline" else "."
    return join(paragraph(words, "hint"), tag("div", *shown, class_="side"))


def calibration(data: ReportData) -> Html | None:
    """Whether the intervals hold as many cells as they should."""
    points = [p for p in data.calibration if finite(p[0]) is not None and finite(p[1]) is not None]
    if not points:
        return None
    nominal, actual = min(points, key=lambda p: abs(p[0] - 0.9))
    off = actual - nominal
    verdict = (
        "the intervals are about right"
        if abs(off) <= CLOSE
        else f"the intervals are too {'wide' if off > 0 else 'narrow'}"
    )
    said = f"Of the held-out cells, {percent(actual)} lie inside their {percent(nominal)} "
    said += f"intervals: {verdict}."
    rows = [
        tag(
            "tr",
            tag("th", percent(n), scope="row", class_="num"),
            tag("td", percent(a), class_="num"),
        )
        for n, a in sorted(points)
    ]
    head = tag(
        "tr", tag("th", "Should be inside", scope="col"), tag("th", "Are inside", scope="col")
    )
    listed = tag("table", tag("thead", head), tag("tbody", *rows), class_="plain")
    return tag(
        "div",
        figure(
            charts.calibration(points),
            "On the dashed line, intervals hold exactly as many cells as they should.",
        ),
        tag("div", paragraph(said), tag("div", listed, class_="scroll")),
        class_="side",
    )


def completed_matrix(data: ReportData) -> Html | None:
    """A map of all cells, drawn by the page's script, in up to three layers."""
    layers = matrix_layers(data)
    if not layers:
        return None
    rows, cols = data.arrays["mean"].shape
    choices = [
        tag(
            "label",
            tag("input", type="radio", name="layer", value=key, checked=i == 0),
            tag("span", layer["name"]),
        )
        for i, (key, layer) in enumerate(layers.items())
    ]
    switch = tag("fieldset", tag("legend", "Show"), *choices, class_="switch")
    canvas = tag(
        "canvas", f"A map of {rows} rows and {cols} columns; it needs JavaScript.", id="heatmap",
        width=cols, height=rows, tabindex="0", role="application", aria_roledescription="heatmap",
        aria_label=f"Map of {rows} rows and {cols} columns", aria_describedby="matrix-help",
    )  # fmt: skip
    scale = tag(
        "div",
        tag("canvas", id="colours", width=256, height=1, aria_hidden="true"),
        tag("div", tag("span"), tag("span"), tag("span"), class_="ends"),
        class_="scale",
    )
    plot = tag(
        "div",
        tag("div", class_="row-labels", aria_hidden="true"),
        tag("div", canvas, tag("div", class_="cursor", hidden=True), class_="field"),
        tag("div", class_="col-labels", aria_hidden="true"),
        scale,
        class_="plot",
    )
    return join(
        paragraph(data.note, "hint"),
        switch if len(layers) > 1 else None,
        tag("p", id="layer-about", class_="hint"),
        tag("noscript", tag("p", "The map is drawn by a script, and scripts are off.")),
        tag("div", plot, class_="matrix"),
        tag("p", "No cell is chosen.", id="cell", class_="readout", aria_live="polite"),
        tag("p", "Point at a cell or tap it; or move with the arrow keys, Home and End.",
            id="matrix-help", class_="hint screen"),
    )  # fmt: skip


def matrix_layers(data: ReportData) -> dict[str, dict[str, Any]]:
    """The layers of the map that can be drawn, each with a name, words and a range of colours."""
    arrays = data.arrays
    if "mean" not in arrays:
        return {}
    mean = arrays["mean"]
    known = arrays.get("observed", np.zeros(mean.shape, dtype=bool))
    shown = np.where(known, arrays.get("values", mean), mean)
    whole = "Observed values, and predictions where there are none."
    plain = "Predictions of all cells."
    layers: dict[str, dict[str, Any]] = {
        "values": {"name": "Values", "about": whole if "values" in arrays else plain},
    }
    layers["values"] |= _range(shown)
    if "std" in arrays:
        about = "Predictive standard deviation of each cell: the brighter, the less certain."
        layers["uncertainty"] = {"name": "Uncertainty", "about": about} | _range(arrays["std"])
    if known.any():
        about = "Only the cells that were observed; missing ones are hatched."
        layers["observed"] = layers["values"] | {"name": "Observed only", "about": about}
    return layers


def _range(matrix: np.ndarray) -> dict[str, Any]:
    """The range of colours: all of the numbers, unless a few lie far outside the rest."""
    finite_ones = matrix[np.isfinite(matrix)]
    if not finite_ones.size:
        return {"low": 0.0, "high": 1.0, "cut": [False, False]}
    low, high = float(finite_ones.min()), float(finite_ones.max())
    first, last = (float(q) for q in np.quantile(finite_ones, [0.01, 0.99]))
    spread = last - first
    bottom = first if spread and first - low > spread / 2 else low
    top = last if spread and high - last > spread / 2 else high
    ends = [float(f"{x:.3g}") for x in (bottom, top)]
    if ends[0] == ends[1]:
        ends = [bottom - 0.5, top + 0.5]
    return {"low": ends[0], "high": ends[1], "cut": [bottom > low, top < high]}


def largest_surprises(data: ReportData) -> Html | None:
    """The observed cells that the model finds least likely."""
    if not data.surprises:
        return None
    hint = (
        "They may be errors in the data, or the most interesting cells of it. Each drawing shows "
        "the interval as a band, the expected value as a line and the observed one as a diamond."
    )
    return join(paragraph(hint, "hint"), tables.surprises(data.surprises))


def factors(data: ReportData) -> Html | None:
    """The aligned factors, with the rows and columns that weigh most in each."""
    if not data.factors:
        return None
    hint = "Bars to the right are positive loadings; hollow bars to the left are negative ones."
    signed = any(value < 0 for f in data.factors for _, value in (*f.rows, *f.cols))
    cards = [_factor(i, factor, signed) for i, factor in enumerate(data.factors)]
    return join(paragraph(hint, "hint") if signed else None, tag("div", *cards, class_="cards"))


def _factor(i: int, factor: Factor, signed: bool) -> Html:
    """One factor as a card that unfolds."""
    size = finite(factor.size)
    head = [tag("h3", f"Factor {i + 1}")]
    if size is not None:
        head += [
            tag("span", f"{percent(size)} of the signal{_range_of(factor)}", class_="size"),
            charts.bar(size, 1.0, signed=False),
        ]
    columns = []
    for name, loadings in (("Rows", factor.rows), ("Columns", factor.cols)):
        known = [(label, value) for label, value in loadings if finite(value) is not None]
        if not known:
            continue
        largest = max(abs(value) for _, value in known)
        rows = [
            tag(
                "tr",
                tag("th", label, scope="row"),
                tag("td", charts.bar(value, largest, signed)),
                tag("td", number(value, 2), class_="num"),
            )
            for label, value in sorted(known, key=lambda pair: -pair[1])
        ]
        columns.append(tag("table", tag("caption", name), tag("tbody", *rows), class_="loadings"))
    return tag(
        "details",
        tag("summary", *head),
        tag("div", *columns, class_="loading-sides"),
        class_="card",
        open=i < OPEN,
    )


def _range_of(factor: Factor) -> str:
    """The interval of a factor's share, in brackets."""
    if factor.range is None:
        return ""
    return " ({} to {})".format(*map(percent, factor.range))


def trust(data: ReportData) -> Html | None:
    """What the chains say about themselves, in words and numbers."""
    if not (data.diagnosis or data.diagnostics):
        return None
    rule = (
        "R-hat compares the chains and should be close to 1, at most "
        f"{RHAT_LIMIT:g}; ESS is the number of independent draws that the chains are worth, "
        f"and should be at least {ESS_LIMIT}. Single quantities may miss that while predictions "
        "are good: what counts is the sentence above. Cells are in the units in which the model "
        "sees the data."
    )
    return join(
        paragraph(data.diagnosis, "verdict-text"),
        (paragraph(rule, "hint"), tables.diagnostics(data.diagnostics))
        if data.diagnostics
        else None,
    )


def repeat(data: ReportData) -> Html | None:
    """Everything that is needed to do it again."""
    settings = {k: v for k, v in data.settings.items() if k != "command"}
    command = data.settings.get("command")
    if not (settings or command or data.versions):
        return None
    parts: list[Child] = []
    if command:
        parts += [tag("h3", "Command"), copyable(str(command))]
    for name, entries in (("Settings", settings), ("Versions", data.versions)):
        if entries:
            listed = [(key, plain(value)) for key, value in entries.items()]
            parts += [tag("h3", name), tables.pairs(listed, "settings")]
    return join(*parts)


def plain(value: object) -> Html:
    """A setting as text, without the signs of a programming language."""
    if isinstance(value, Mapping):
        return text(", ".join(f"{key} = {plain_words(item)}" for key, item in value.items()))
    return text(plain_words(value))


def plain_words(value: object) -> str:
    """One value, or the members of a list, in words."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, list | tuple | np.ndarray):
        return ", ".join(plain_words(item) for item in value)
    return str(value)


SECTIONS = {
    "data": ("The data", the_data),
    "models": ("Which model", which_model),
    "rank": ("Error against rank", error_against_rank),
    "calibration": ("Calibration", calibration),
    "matrix": ("The completed matrix", completed_matrix),
    "surprises": ("Largest surprises", largest_surprises),
    "residuals": ("Does the noise fit?", of_noise.residuals),
    "noise": ("Which are noisy", of_noise.levels),
    "features": ("What features explain", of_features.features),
    "factors": ("Factors", factors),
    "trust": ("Can it be trusted?", trust),
    "repeat": ("To repeat this", repeat),
}
