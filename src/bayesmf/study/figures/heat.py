"""Maps of priors by likelihoods, one for each dataset, and where their differences come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bayesmf.streams import Array
from bayesmf.study import crossing
from bayesmf.study.cells import Cell, grouped
from bayesmf.study.figures import style

REACH = 0.9  # quantile of the distances from the middle at which colours end
COLOURS = ["#2166ac", "#92c5de", "#f7f7f7", "#f4a582", "#b2182b"]  # better, the same, worse
SHADES = {"prior": "#1f5fbf", "likelihood": "#d7191c", "interaction": "#9a6fb0",
          "residual": "#b9b9b9"}  # fmt: skip


class Map(NamedTuple):
    """What a panel shows of a cell, beside the base: larger numbers are worse."""

    title: str
    value: Callable[[Cell, Cell], float]
    digits: int  # after the point of small numbers


def _mean(c: Cell, name: str) -> float:
    return float(np.mean([r[name] for r in c.results if r.get(name) is not None]))


MAPS = (
    Map("test error beside GGG, equal (%)",
        lambda c, base: 100 * (c.mean / base.mean - 1), 0),
    Map("log density lost (nats per entry)",
        lambda c, base: _mean(base, "log_density") - _mean(c, "log_density"), 2),
    Map("90 % intervals: points below 90 %",
        lambda c, base: 100 * (0.9 - _mean(c, "coverage")), 0),
)  # fmt: skip


def draw(words: str, cells: Sequence[Cell]) -> style.Drawn:
    """A row of maps for each dataset, then the variance components of all."""
    for dataset, some in grouped(cells, "dataset").items():
        nested = {(c.model, c.variant): c for c in some if c.setting == crossing.NESTED}
        base = nested.get((crossing.BASE, crossing.EQUAL))
        if base is not None and base.values:
            yield f"likelihoods_{dataset}", _draw_maps(words, nested, base)
    head, rows = crossing.component_table(cells)
    if rows:
        known = [dict(zip(map(str, head), row, strict=True)) for row in rows]
        yield "likelihood_components", _draw_components(known)


def _draw_maps(words: str, cells: dict[tuple[str, str], Cell], base: Cell) -> style.Figure:
    models = list(dict.fromkeys(model for model, _ in cells))
    variants = list(dict.fromkeys(variant for _, variant in cells))
    figure, axes = style.panels(3, 3, style.WIDE, 2.6 + 0.36 * len(models), sharey=True)
    for ax, panel in zip(axes, MAPS, strict=True):
        values = np.full((len(models), len(variants)), np.nan)
        for (model, variant), c in cells.items():
            if c.values:
                place = models.index(model), variants.index(variant)
                values[place] = panel.value(c, base)
        _draw_map(ax, values, panel)
        ax.set_xticks(np.arange(len(variants)) + 0.5, variants, rotation=60, ha="right")
    axes[0].set_yticks(np.arange(len(models)) + 0.5, models)
    axes[0].invert_yaxis()
    style.set_title(
        figure, f"{words}; grey: there is no such model, or it failed", base._replace(variant="")
    )
    return figure


def _draw_map(ax: style.Axes, values: Array, panel: Map) -> None:
    """Colours and numbers of one map; colours are those of the signs, up to most of the sizes."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("worse", COLOURS).with_extremes(bad="#d4d4d4")
    reach = float(np.nanquantile(np.abs(values), REACH)) or 1.0
    ax.pcolormesh(values, cmap=colours, vmin=-reach, vmax=reach, edgecolors="white", lw=0.4)
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            text = f"{value:.{0 if abs(value) >= 10 else panel.digits}f}"
            text = "0" if float(text) == 0 else text.replace("-", "\N{MINUS SIGN}")
            pale = abs(value) < 0.7 * reach
            ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=4.6,
                    color="black" if pale else "white")  # fmt: skip
    ax.set_title(panel.title, loc="left", fontsize=6.5)
    ax.grid(visible=False)


def _draw_components(rows: Sequence[dict[str, object]]) -> style.Figure:
    """Standard deviations of each part with their intervals, a panel for each measure."""
    measures = list(dict.fromkeys(str(row["measure"]) for row in rows))
    names = list(dict.fromkeys(str(row["dataset"]) for row in rows))
    figure, axes = style.panels(len(measures), len(measures), style.WIDE, 6.0)
    for ax, measure in zip(axes, measures, strict=True):
        for k, part in enumerate(crossing.PARTS):
            own = {
                str(r["dataset"]): r for r in rows if (r["measure"], r["part"]) == (measure, part)
            }
            x = np.array([names.index(name) for name in own]) + 0.2 * (k - 1.5)
            sd, low, high = (
                np.array([row[name] for row in own.values()], dtype=float)
                for name in ("sd", "from", "to")
            )
            ax.bar(x, sd, 0.18, color=SHADES[part], label=part)
            ends = np.maximum([sd - low, high - sd], 0.0)
            ax.errorbar(x, sd, ends, fmt="none", ecolor="black", elinewidth=0.5)
        ax.set_xticks(range(len(names)), [style.label(name) for name in names])
        ax.set(title=f"standard deviation of the {measure} (90 % interval)", ylim=(0, None))
        ax.grid(axis="x", visible=False)
    axes[0].legend(loc="best")
    style.set_title(figure, "Where differences between models come from")
    return figure
