"""How figures look: sizes, colours and markers, ranges of axes, curves and legends.

Groups have the colours of the paper. Within a group, and within every panel of a row, models also
differ by marker, so that nothing depends on seeing colours. Matplotlib is loaded where it is used,
and never through pyplot: no display is needed and no setting of the caller is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from bayesmf._errors import needs
from bayesmf._files import replacing
from bayesmf.model.presets import PRESETS
from bayesmf.streams import Array
from bayesmf.study.cells import Cell, grouped
from bayesmf.study.tasks import BASELINES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panels: TypeAlias = tuple["Figure", list["Axes"]]
Drawn: TypeAlias = Iterator[tuple[str, "Figure"]]  # figures by name
Taken: TypeAlias = dict[tuple[str, float], list[str]]  # models with a triangle, by marker and place

COLUMN, WIDE = 8.5, 18.0  # centimetres
FENCE = 2.5  # a range reaches so many quartile distances beyond the quartiles
DECADES = 1.3  # of a range that asks for a logarithmic axis
ERROR = "test MSE (± 1 s.e.)"

LOOKS: dict[str, tuple[str, str]] = {  # reds, blues, greens, ambers, greys
    "GGG": ("#d7191c", "o"), "GGGU": ("#ff7f7a", "s"), "GGGA": ("#7f0000", "D"),
    "GGGW": ("#b5446e", "P"), "GLL": ("#f4511e", "X"), "GLL narrow": ("#9c3a1c", "p"),
    "GLLI": ("#f9a48b", "*"), "GVG": ("#e0567f", "<"), "GEE": ("#1f5fbf", "s"),
    "GEEA": ("#08306b", "D"), "GTT": ("#4fa3e0", ">"), "GTTN": ("#8cb8e8", "o"),
    "GL21": ("#6a5fd0", "P"), "GEG": ("#1a8a34", "D"), "GVnG": ("#78c265", ">"),
    "PGG": ("#c98a00", "P"), "PGGG": ("#f2bd2c", "s"), "NMF": ("#3a3a3a", "X"),
    "row_average": ("#7d7d7d", "*"), "column_average": ("#ababab", "<"),
}  # fmt: skip
SIZES = {"*": 5.0, "P": 4.2, "X": 4.2, "p": 4.0, "<": 3.7, ">": 3.7}  # others are larger shapes
STEP = 0.06  # between triangles at one place, as a share of the axis
LABELS = {"GLL narrow": "GLL, scale 0.56", "sameK": "the same K for all",  # others are as they are
          "perModelK": "each model's own K"}  # fmt: skip
NOTES: dict[str, dict[str, Any]] = {  # what a legend says beside the models
    "published": {"marker": "o", "mfc": "white", "ls": (0, (4, 2)), "lw": 0.6, "mew": 0.6},
    "beyond the axis": {"marker": "^", "ls": "none", "ms": 3.5},
    "some repeats failed": {"marker": "o", "ls": "none", "ms": 6, "mfc": "none", "mew": 0.6,
                            "color": "black"},
}  # fmt: skip


@contextmanager
def drawing() -> Iterator[None]:
    """Settings of all figures, put back afterwards."""
    try:
        from matplotlib import style
    except ModuleNotFoundError as error:
        raise needs("A figure", "matplotlib", "report") from error
    with style.context(["default", Path(__file__).with_name("study.mplstyle")]):
        yield


def panels(n: int, cols: int, width: float, height: float, **options: Any) -> Panels:
    """A figure of so many centimetres with n axes in rows of so many."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / 2.54, height / 2.54), layout="constrained")
    axes = list(figure.subplots(-(-n // cols), cols, squeeze=False, **options).flat)
    for ax in axes[n:]:
        ax.set_visible(False)
    return figure, axes[:n]


def set_title(
    figure: Figure, words: str, c: Cell | None = None, dataset: bool = True,
    failed: Iterable[str] = (),
) -> None:  # fmt: skip
    """Write a title about cells like ``c``, and name the models of which nothing can be drawn."""
    if c is not None:
        words = ", ".join(filter(None, (words, label(c.variant)))) + f" (protocol: {c.protocol})"
        words = f"{c.dataset}: {words}" if dataset else words
    names = ", ".join(dict.fromkeys(map(label, failed)))
    words += f"; failed: {names}" if names else ""
    figure.suptitle(fill(words, int(13.5 * figure.get_figwidth()), break_on_hyphens=False))


def save(figure: Figure, folder: str | Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG, the same bytes for the same figure."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    kinds: dict[str, Any] = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
    written = [Path(folder, f"{name}.{kind}") for kind in kinds]
    for path, (kind, metadata) in zip(written, kinds.items(), strict=True):
        with replacing(path) as partial:
            figure.savefig(partial, format=kind, dpi=300, metadata=metadata)
    return written


def limits(values: Iterable[float], log: bool = False, fence: float = FENCE) -> tuple[float, float]:
    """A readable range: that of the values, but not far beyond their quartiles."""
    v = np.asarray(list(values), dtype=float)
    v = v[np.isfinite(v) & (v > 0 if log else True)]
    if not v.size:
        return (0.1, 10.0) if log else (0.0, 1.0)
    v = np.log10(v) if log else v
    first, third = np.quantile(v, [0.25, 0.75])
    reach = fence * (third - first) or np.inf
    low, high = max(v.min(), first - reach), min(v.max(), third + reach)
    pad = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    low, high = float(low - pad), float(high + pad)
    return (10**low, 10**high) if log else (low, high)


def in_order(values: dict[Any, float]) -> tuple[Array, Array]:
    """Keys in order, and their values."""
    keys = sorted(values)
    return np.array(keys), np.array([values[key] for key in keys], dtype=float)


def wide(low: float, high: float) -> bool:
    """Whether a range asks for a logarithmic axis."""
    return low > 0 and np.log10(high / low) > DECADES


def plain_ticks(axis: Any, ticks: Sequence[float] = (), between: bool = False) -> None:
    """Ticks written as plain numbers: those given, or powers of ten, also ``between`` them."""
    from matplotlib import ticker

    if len(ticks):
        axis.set_major_locator(ticker.FixedLocator(list(ticks)))
        axis.set_minor_locator(ticker.NullLocator())
    elif between:
        axis.set_major_locator(ticker.LogLocator(subs=(1, 3)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def label(name: str) -> str:
    """Name of a model or variant for readers."""
    return LABELS.get(name, name.replace("_", " "))


def group(model: str) -> str:
    """The group of a model that figures keep together."""
    name = model.partition(" ")[0]
    return "baselines" if name in BASELINES else PRESETS[name].group


def by_model(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Cells by model, in the order of the groups."""
    found = grouped(cells, "model")
    return {model: found[model] for model in LOOKS if model in found}


def look(model: str, size: float = 1.0) -> dict[str, Any]:
    """How a model's lines are drawn."""
    colour, marker = LOOKS[model]
    return {"color": colour, "marker": marker, "ms": size * SIZES.get(marker, 3), "mew": 0}


def ring(ax: Axes, model: str) -> dict[str, Any]:
    """How points some of whose repeats failed are drawn."""
    return {"gid": name_of(ax, "failed", model), "zorder": 5, **NOTES["some repeats failed"]}


def name_of(ax: Axes, *words: object) -> str:
    """Name of a drawn thing, by which an SVG file tells it from those of other panels."""
    return "-".join(map(str, ("panel", ax.figure.axes.index(ax), *words))).replace(" ", "_")


class Curve(NamedTuple):
    """A model's results by setting, rank or time, and the study's."""

    x: Array
    mean: Array
    error: Array
    failed: Array  # whether some repeats did, though not all
    study_x: Array
    study: Array


def draw_curve(
    ax: Axes, model: str, curve: Curve, taken: Taken, offset: float | None = None
) -> set[str]:
    """Draw a model in a panel, ours solid, the study's dashed; return what has to be explained.

    A long curve has few markers, the first at an ``offset``, and no triangles but at its end.
    """
    every = [None if offset is None else (offset, gap) for gap in (0.25, 0.2)]
    last, notes = slice(None if offset is None else -1, None), set()
    if np.isfinite(curve.study).any():
        how = {**look(model, 0.9), "mfc": "white", "mew": 0.5, "ls": (0, (4, 2)), "lw": 0.6}
        ax.plot(curve.study_x, _within_reach(ax, curve.study), markevery=every[0], zorder=1.9,
                gid=name_of(ax, "published", model), **how)  # fmt: skip
        notes.add("published")
    y, error = np.where(np.isfinite(curve.mean), curve.mean, np.nan), np.nan_to_num(curve.error)
    shown = _within_reach(ax, y)
    ax.plot(curve.x, shown, markevery=every[1], gid=name_of(ax, "ours", model), **look(model))
    if np.any(error > 0):
        ax.fill_between(curve.x, y - error, y + error, color=LOOKS[model][0], alpha=0.18, lw=0)
    beyond = mark_beyond(ax, model, curve.study_x[last], curve.study[last], taken, published=True)
    if mark_beyond(ax, model, curve.x[last], curve.mean[last], taken) or beyond:
        notes.add("beyond the axis")
    if curve.failed.any():
        ax.plot(curve.x[curve.failed], curve.mean[curve.failed], **ring(ax, model))
        notes.add("some repeats failed")
    return notes


def _within_reach(ax: Axes, y: Array) -> Array:
    """Values that are not absurdly far beyond the axis, along which markers would be spread."""
    low, high = ax.get_ylim()
    far = 10 * (high - low)
    return np.clip(y, low - far, high + far)


def mark_beyond(
    ax: Axes, model: str, x: Array, y: Array, taken: Taken, *, published: bool = False,
    across: bool = False,
) -> bool:  # fmt: skip
    """Triangles at the edge for points outside the range, of y or (``across``) of x.

    Those of several models at one place go below each other; ours and the study's share theirs.
    """
    edges = ax.get_xlim() if across else ax.get_ylim()
    colour, whose = LOOKS[model][0], "published" if published else "ours"
    out = (np.isfinite(x) & (y < edges[0]), np.isfinite(x) & (y > edges[1]))
    for end, where, marker in zip((0, 1), out, "<>" if across else "v^", strict=True):
        for place in x[where]:
            models = taken.setdefault((marker, float(place)), [])
            if model not in models:
                models.append(model)
            at = abs(end - STEP * models.index(model))
            ax.plot(*((at, place) if across else (place, at)), marker, color=colour, mew=0.5,
                    ms=4.5 if published else 3, mfc="none" if published else colour, zorder=4,
                    transform=ax.get_yaxis_transform() if across else ax.get_xaxis_transform(),
                    clip_on=False, gid=name_of(ax, "beyond", whose, model, place))  # fmt: skip
    return bool(out[0].any() or out[1].any())


def add_legend(figure: Figure, models: Iterable[str], notes: Iterable[str], cols: int) -> None:
    """One legend below all panels: the models in the order of their groups, then the notes."""
    from matplotlib.lines import Line2D

    shown, said = set(models), set(notes)
    handles = [
        *(Line2D([], [], label=label(name), **look(name)) for name in LOOKS if name in shown),
        *(Line2D([], [], **{"color": "#555555", "label": note, **how})
          for note, how in NOTES.items() if note in said),
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=cols)
