"""What all pictures share: where they are drawn, colours, names along an axis, dots and maps.

Matplotlib is imported when something is drawn. No setting of the caller is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bayesmf._errors import ModelError, needs
from bayesmf.data.observed import ObservedMatrix
from bayesmf.posterior.fitted import Fitted
from bayesmf.posterior.posterior import Posterior
from bayesmf.streams import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

Panels: TypeAlias = np.ndarray  # of Axes

BLUE, ORANGE, GREEN, PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
COLOURS = (BLUE, ORANGE, GREEN, PINK, "#e69f00", "#56b4e9", "#666666")
GREY, FAINT, GAP = "#777777", "#dddddd", "#d4d4d4"
LINE = 0.19  # inches from one name to the next
LONGEST = 36  # characters of a name
SMALL = 8.0  # points, of names that stand close


def fitted_of(fitted: Any, X: Any = None) -> Fitted:
    """Posterior, data and units of a fitted estimator, or of a posterior and its data."""
    if isinstance(fitted, Posterior):
        if X is None:
            raise ModelError("This picture of a Posterior needs its data too: give them as X.")
        matrix = ObservedMatrix.of(X)
        if matrix.shape != fitted.shape:
            raise ModelError(f"The posterior is of shape {fitted.shape}, but X of {matrix.shape}.")
        return Fitted(fitted, matrix)
    if not hasattr(type(fitted), "fitted_"):
        kind = type(fitted).__name__
        raise ModelError(f"Give a fitted estimator, or a Posterior and its data, not {kind}.")
    found: Fitted = fitted.fitted_
    return found if X is None else found._replace(X=ObservedMatrix.of(X))


def posterior_of(fitted: Any) -> Posterior:
    """The posterior of a fitted estimator, or the one that is given."""
    return fitted if isinstance(fitted, Posterior) else fitted_of(fitted).posterior


def names_of(posterior: Posterior) -> tuple[list[str], list[str]]:
    """Labels of rows and columns as texts; positions where there are none."""
    sides = zip(posterior.shape, (posterior.row_labels, posterior.col_labels), strict=True)
    rows, cols = ([str(x) for x in (range(n) if of is None else of)] for n, of in sides)
    return rows, cols


def side_of(side: str) -> int:
    """Number of a side by its name."""
    if side not in ("rows", "cols"):
        raise ModelError(f"side must be 'rows' or 'cols', got {side!r}.")
    return int(side == "cols")


def panels(
    ax: Any, n: int, width: float, height: float, *, across: int | None = None, **options: Any
) -> Panels:
    """Axes (n,) to draw on: those given, or those of a new figure of so many inches."""
    if ax is not None:
        found = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if found.size != n:
            raise ModelError(f"ax must have {n} Axes for this picture, got {found.size}.")
        return found
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise needs("bayesmf.plots", "matplotlib", "plots") from None
    across = n if across is None else min(n, across)
    _, axes = plt.subplots(
        -(-n // across), across, figsize=(width, height), layout="constrained", squeeze=False,
        **options,
    )  # fmt: skip
    for spare in axes.flat[n:]:
        spare.set_visible(False)
    return axes.ravel()[:n]


def panel(ax: Any, width: float = 5.0, height: float = 3.6) -> Axes:
    """Axes to draw on: the one given, or that of a new figure."""
    return panels(ax, 1, width, height)[0]


def plain(ax: Axes, grid: str | None = "both") -> Axes:
    """Take the frame off two sides, and draw a faint grid along ``grid``."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    if grid is not None:
        ax.grid(axis=grid, color=FAINT, linewidth=0.6)  # type: ignore[arg-type]
    return ax


def plain_text(name: object) -> str:
    """A name that is drawn as it is: no formulas."""
    return str(name).replace("$", r"\$")


def short(name: object, longest: int = LONGEST) -> str:
    """A name in one line, its middle left out where it is long."""
    text = " ".join(str(name).split())
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[: longest - 1 - half]}…{text[-half:]}"


def several(names: Iterable[object], longest: int = LONGEST) -> list[str]:
    """Names in one line each: of long ones, what differs; those that look alike are numbered."""
    texts = [" ".join(str(name).split()) for name in names]
    alike = _alike(texts), _alike([text[::-1] for text in texts])
    seen: dict[str, list[str]] = {}
    found = []
    for text in texts:
        cut = _around(text, *alike, longest) if len(text) > longest and len(texts) > 1 else text
        cut = short(cut, longest)
        same = seen.setdefault(cut, [])
        if text not in same:
            same.append(text)
        number = same.index(text) + 1
        found.append(cut if number == 1 else f"{cut} ({number})")
    return found


def _alike(texts: list[str]) -> int:
    """Number of characters with which all texts begin."""
    first, last = min(texts, default=""), max(texts, default="")  # what these two share, all do
    pairs = enumerate(zip(first, last, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(first), len(last)))


def _around(text: str, head: int, tail: int, longest: int) -> str:
    """A part of a text with all but so many characters of its head and tail, and some of these."""
    spare = max(0, longest - 2 - (len(text) - head - tail))
    before = min(head, spare // 2)
    after = min(tail, spare - before)
    before = min(head, spare - after)
    start, stop = head - before, len(text) - tail + after
    return f"{'…' * (start > 0)}{text[start:stop]}{'…' * (stop < len(text))}"


def cell_names(rows: Sequence[object], cols: Sequence[object]) -> list[str]:
    """Names of cells by row and column."""
    both = (several(side, LONGEST // 2 - 1) for side in (rows, cols))
    return [f"{i}, {j}" for i, j in zip(*both, strict=True)]


def counted(n: int, total: int, what: str) -> str:
    """How many of something are drawn, if not all."""
    return what if n == total else f"{what} ({n:,} of {total:,})"


def spread(n: int, most: int) -> Array:
    """Positions of at most so many of n, evenly spread."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).round().astype(int)


def ends(n: int, first: int, last: int) -> Array:
    """Positions of the first and the last of n, or of all if there are no more."""
    if n <= first + last:
        return np.arange(n)
    return np.append(np.arange(first), np.arange(n - last, n))


def name_ticks(ax: Axes, which: str, names: Sequence[object], longest: int = LONGEST) -> None:
    """Write all names along the "x" or "y" axis."""
    texts = [plain_text(name) for name in several(names, longest)]
    put = ax.set_yticks if which == "y" else ax.set_xticks
    put(range(len(texts)), texts, fontsize=SMALL)


def some_ticks(ax: Axes, which: str, names: Sequence[object], longest: int = 24) -> None:
    """Write names along the "x" or "y" axis, of as many as there is room for when it is drawn."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    texts = [plain_text(name) for name in several(names, longest)]
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    axis.set_major_formatter(FuncFormatter(
        lambda at, _: texts[round(at)] if 0 <= round(at) < len(texts) else ""
    ))  # fmt: skip
    upright = which == "x" and max(map(len, texts), default=0) > 4
    axis.set_tick_params(labelsize=SMALL, rotation=90 if upright else 0, length=2)


def dots(
    ax: Axes, names: Sequence[object], middle: Array, low: Array, high: Array, *,
    colour: str = BLUE, label: str | None = None,
) -> Axes:  # fmt: skip
    """A dot and an interval for each name, the first on top."""
    at = np.arange(len(names))
    ax.hlines(at, low, high, color=colour, linewidth=1.6, alpha=0.55)
    ax.plot(middle, at, "o", color=colour, markersize=4, label=label)
    ax.set_ylim(len(names) - 0.4, -0.6)
    name_ticks(ax, "y", names)
    return plain(ax, "x")


def lines(ax: Any, names: Sequence[object], width: float = 4.0) -> Axes:
    """Axes for a picture with a name in each line: the one given, or one that has room for all."""
    longest = max((min(LONGEST, len(str(name))) for name in names), default=0)
    return panel(ax, width + 0.065 * longest, LINE * len(names) + 1.0)


def heat_map(ax: Axes, values: Array, **options: Any) -> AxesImage:
    """Colours for a matrix; missing cells are grey."""
    ax.set_facecolor(GAP)
    return ax.imshow(values, aspect="auto", interpolation="nearest", **options)


def colour_range(values: Array) -> tuple[float, float]:
    """Range of the colours of a map: nearly that of the values, so that one outlier rules not."""
    low, high = np.nanquantile(values, [0.01, 0.99])
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)


def colour_bar(ax: Axes, image: AxesImage, label: str) -> None:
    """The scale of a map beside it; arrows where values lie beyond."""
    bar = ax.figure.colorbar(image, ax=ax, extend="both", shrink=0.9)
    bar.set_label(label)
    bar.ax.spines["outline"].set_visible(False)
