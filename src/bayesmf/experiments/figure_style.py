"""How figures look, and the two that need no results: the priors, and the values of datasets.

Groups have the colours of the paper. Within a group, and within every panel of a row, models also
differ by marker, so that nothing depends on seeing colours. Matplotlib is loaded where it is used,
and never through pyplot: no display is needed and no setting of the caller is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import integrate, special, stats

from bayesmf._errors import ModelError
from bayesmf._files import replacing
from bayesmf.experiments.settings import SAME_RANK
from bayesmf.presets import hyperparameters
from bayesmf.streams import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, WIDE = 8.5, 18.0  # centimetres
FENCE = 2.5  # a range reaches so many quartile distances beyond the quartiles
DECADES = 1.3  # of a range that asks for a logarithmic axis

LOOKS: dict[str, tuple[str, str]] = {  # reds, blues, greens, ambers, greys
    "GGG": ("#d7191c", "o"), "GGGU": ("#ff7f7a", "s"), "GGGA": ("#7f0000", "D"),
    "GGGW": ("#b5446e", "P"), "GLL": ("#f4511e", "X"), "GLL narrow": ("#9c3a1c", "p"),
    "GLLI": ("#f9a48b", "*"), "GVG": ("#e0567f", "<"),
    "GEE": ("#1f5fbf", "s"), "GEEA": ("#08306b", "D"), "GTT": ("#4fa3e0", ">"),
    "GTTN": ("#8cb8e8", "o"), "GL21": ("#6a5fd0", "P"),
    "GEG": ("#1a8a34", "D"), "GVnG": ("#78c265", ">"),
    "PGG": ("#c98a00", "P"), "PGGG": ("#f2bd2c", "s"),
    "NMF": ("#3a3a3a", "X"), "row_average": ("#7d7d7d", "*"), "column_average": ("#ababab", "<"),
}  # fmt: skip
SIZES = {"*": 5.0, "P": 4.2, "X": 4.2, "p": 4.0, "<": 3.7, ">": 3.7}  # others are larger shapes
STEP = 0.06  # between triangles at one place, as a share of the axis
LABELS = {
    "GLL narrow": "GLL, scale 0.56", "row_average": "row average",
    "column_average": "column average",
}  # fmt: skip
NOTES: dict[str, dict[str, Any]] = {  # what a legend says beside the models
    "published": {"marker": "o", "mfc": "white", "ls": (0, (4, 2)), "lw": 0.6, "mew": 0.6},
    "beyond the axis": {"marker": "^", "ls": "none", "ms": 3.5},
    "some repeats failed": {
        "marker": "o", "ls": "none", "ms": 6, "mfc": "none", "mew": 0.6, "color": "black",
    },
}  # fmt: skip
RC: dict[str, Any] = {
    "font.size": 6.5, "axes.titlesize": 7, "axes.labelsize": 6.5, "figure.titlesize": 8,
    "xtick.labelsize": 6, "ytick.labelsize": 6, "legend.fontsize": 6.5, "axes.linewidth": 0.5,
    "xtick.major.width": 0.5, "ytick.major.width": 0.5, "xtick.major.size": 2,
    "ytick.major.size": 2, "xtick.minor.size": 1, "ytick.minor.size": 1, "lines.linewidth": 0.9,
    "lines.markersize": 3, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#e4e4e4", "grid.linewidth": 0.4, "axes.axisbelow": True,
    "legend.frameon": False, "legend.handlelength": 2.2, "legend.columnspacing": 1.0,
    "svg.fonttype": "none", "svg.hashsalt": "bayesmf",
}  # fmt: skip


@contextmanager
def drawing() -> Iterator[None]:
    """Settings of all figures, put back afterwards."""
    try:
        from matplotlib import style
    except ModuleNotFoundError as error:
        raise ModelError(
            "Figures need matplotlib; install it with: pip install 'bayesmf[report]'"
        ) from error
    with style.context(["default", RC]):
        yield


def panels(
    rows: int, cols: int, width: float, height: float, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of so many centimetres with a grid of axes, row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / 2.54, height / 2.54), layout="constrained")
    axes = figure.subplots(rows, cols, squeeze=False, **options)
    return figure, list(axes.flat)


def set_title(figure: Figure, text: str) -> None:
    """Title of a whole figure, in as many lines as its width asks for."""
    figure.suptitle(fill(text, int(13.5 * figure.get_figwidth()), break_on_hyphens=False))


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG, the same bytes for the same figure."""
    folder.mkdir(parents=True, exist_ok=True)
    about: dict[str, dict[str, Any]] = {
        "svg": {"Date": None, "Creator": None}, "png": {"Software": None},
    }  # fmt: skip
    written = []
    for kind, metadata in about.items():
        path = folder / f"{name}.{kind}"
        with replacing(path) as partial:
            figure.savefig(partial, format=kind, dpi=300, metadata=metadata)
        written.append(path)
    return written


# --- Ranges -------------------------------------------------------------------------------------


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


# --- Lines --------------------------------------------------------------------------------------


def label(model: str) -> str:
    """Name of a model for readers."""
    return LABELS.get(model, model)


def name_of(ax: Axes, *words: object) -> str:
    """Name of a drawn thing, by which an SVG file tells it from those of other panels."""
    return "-".join(map(str, ("panel", ax.figure.axes.index(ax), *words))).replace(" ", "_")


def draw_line(
    ax: Axes, model: str, x: Array, y: Array, error: Array | None = None, every: Any = None
) -> None:
    """Our results: a solid line with a band of one standard error."""
    colour, marker = LOOKS[model]
    y = np.where(np.isfinite(y), y, np.nan)
    ax.plot(x, y, color=colour, marker=marker, ms=SIZES.get(marker, 3), mew=0, markevery=every,
            gid=name_of(ax, "ours", model))  # fmt: skip
    if error is not None and np.any(error > 0):
        e = np.nan_to_num(error)
        ax.fill_between(x, y - e, y + e, color=colour, alpha=0.18, lw=0)


def draw_published(ax: Axes, model: str, x: Array, y: Array, every: Any = None) -> bool:
    """The study's results: a thin dashed line with open markers; say whether there are any."""
    colour, marker = LOOKS[model]
    if not np.isfinite(y).any():
        return False
    ax.plot(x, y, color=colour, marker=marker, ms=0.9 * SIZES.get(marker, 3), mfc="white", mew=0.5,
            ls=(0, (4, 2)), lw=0.6, markevery=every, gid=name_of(ax, "published", model),
            zorder=1.9)  # fmt: skip
    return True


Taken = dict[tuple[str, float], list[str]]  # models that have a triangle, by marker and place


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


def ring_failed(ax: Axes, model: str, x: Array, y: Array) -> None:
    """A ring around points some of whose repeats failed."""
    ax.plot(x, y, gid=name_of(ax, "failed", model), zorder=5, **NOTES["some repeats failed"])


def add_legend(figure: Figure, models: Iterable[str], notes: Iterable[str], cols: int) -> None:
    """One legend below all panels: the models in the order of their groups, then the notes."""
    from matplotlib.lines import Line2D

    shown = set(models)
    handles = [
        Line2D(
            [], [], color=colour, marker=marker, ms=SIZES.get(marker, 3), mew=0, label=label(model)
        )
        for model, (colour, marker) in LOOKS.items()
        if model in shown
    ]
    said = set(notes)
    handles += [
        Line2D([], [], **{"color": "#555555", "label": note, **how})
        for note, how in NOTES.items()
        if note in said
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=cols)


# --- Priors -------------------------------------------------------------------------------------

Density = Callable[[Array, dict[str, Any]], Array]  # of an entry, given the hyperparameters


def _wishart(x: Array, h: dict[str, Any]) -> Array:
    """An entry of a row whose mean and covariance are integrated out, at any rank if nu0 = K."""
    return stats.cauchy(h["mu0"], (h["W0"] * (1 + 1 / h["beta0"])) ** 0.5).pdf(x)


def _inverse_gaussian(x: Array, h: dict[str, Any]) -> Array:
    """A Laplace variable whose scale is integrated out."""
    mean, shape = h["mu"] or SAME_RANK, h["lambda"] or SAME_RANK
    scale = stats.invgauss(mean / shape, scale=shape).ppf((np.arange(400) + 0.5) / 400)
    return stats.laplace(0, scale).pdf(np.asarray(x)[..., None]).mean(axis=-1)


def _truncated_hyper(x: Array, h: dict[str, Any]) -> Array:
    """A truncated normal variable whose mean and precision are integrated out."""
    spread = h["tau_mu"] ** -0.5
    mean = stats.norm(h["mu_mu"], spread).ppf((np.arange(400) + 0.5) / 400)
    fine = np.concatenate([np.linspace(0, 20, 401), np.geomspace(20.1, 1e6, 400)])

    def weight(at: Array) -> Array:
        return ((h["b"] + 0.5 * (at[..., None] - mean) ** 2) ** -h["a"]).mean(axis=-1)

    return weight(np.asarray(x)) / integrate.trapezoid(weight(fine), fine)


def _l21(x: Array, h: dict[str, Any]) -> Array:
    """An entry of a row of two, the other integrated out."""
    return (
        h["lambda"]
        * (np.pi / (2 * h["lambda"])) ** 0.5
        * special.erfc(x * (h["lambda"] / 2) ** 0.5)
    )


DENSITIES: dict[str, dict[str, tuple[str, Density]]] = {  # of one entry, by panel and model
    "real-valued": {
        "GGG": ("normal", lambda x, h: stats.norm(0, h["lambda"] ** -0.5).pdf(x)),
        "GGGA": ("ARD", lambda x, h: stats.t(
            2 * h["alpha0"], 0, (h["beta0"] / h["alpha0"]) ** 0.5).pdf(x)),
        "GGGW": ("Wishart", _wishart),
        "GLL": ("Laplace", lambda x, h: stats.laplace(0, h["eta"]).pdf(x)),
        "GLL narrow": ("", lambda x, h: stats.laplace(0, 10**-0.25).pdf(x)),
        "GLLI": (f"K = {SAME_RANK}", _inverse_gaussian),
    },
    "nonnegative": {
        "GEE": ("exponential", lambda x, h: stats.expon(0, 1 / h["lambda"]).pdf(x)),
        "GEEA": ("exponential, ARD", lambda x, h: stats.lomax(
            h["alpha0"], scale=h["beta0"]).pdf(x)),
        "GTT": ("truncated normal", lambda x, h: stats.truncnorm(
            -h["mu_U"] * h["tau_U"] ** 0.5, np.inf, h["mu_U"], h["tau_U"] ** -0.5).pdf(x)),
        "GTTN": ("hierarchical", _truncated_hyper),
        "GL21": ("K = 2", _l21),
    },
    "Poisson": {
        "PGG": ("gamma", lambda x, h: stats.gamma(h["a"], scale=1 / h["b"]).pdf(x)),
        "PGGG": ("hierarchical", lambda x, h: stats.betaprime(
            h["a"], h["a_prime"], scale=h["a_prime"] / h["b_prime"]).pdf(x)),
    },
}  # fmt: skip
SURFACES: dict[str, tuple[str, float, Callable[[Array, Array], Array]]] = {  # and where they begin
    "GL21: a row, K = 2": ("GL21", 0.0, lambda x, y: np.exp(
        -hyperparameters("GL21")["lambda"] / 2 * (x + y) ** 2)),
    "GVG: a row, gamma = 1, other row (1, 1)": (
        "GVG", -8.0, lambda x, y: np.exp(-((x - y) ** 2))),
}  # fmt: skip


def draw_priors(folder: str | Path) -> list[Path]:
    """Draw the priors with their default hyperparameters: of entries, and of rows of two."""
    with drawing():
        figure, axes = panels(2, 3, WIDE, 10.5)
        for ax, (title, models) in zip(axes, DENSITIES.items(), strict=False):
            start, stop = (-6, 10) if title == "real-valued" else (1e-6, 8)
            x = np.linspace(start, stop, 641)
            for model, (words, density) in models.items():
                y = density(x, hyperparameters(model.partition(" ")[0]))
                _prior(ax, model, x, y, f"{label(model)} {words}".strip())
            ax.set(title=title, xlabel="entry", ylabel="density", ylim=(0, None))
            ax.legend(loc="upper right", handlelength=1.6, fontsize=6)
        for ax, (title, (model, start, surface)) in zip(axes[3:], SURFACES.items(), strict=False):
            _surface(ax, model, np.linspace(start, 8, 161), surface)
            ax.set(title=title, xlabel="first entry", ylabel="second entry", aspect="equal")
        far = np.geomspace(0.1, 100, 301)
        for model, (_, density) in (pair for some in DENSITIES.values() for pair in some.items()):
            _prior(axes[5], model, far, density(far, hyperparameters(model.partition(" ")[0])))
        axes[5].set(title="tails of all", xlabel="entry", ylabel="density", xscale="log",
                    yscale="log", ylim=(1e-6, 2))  # fmt: skip
        plain_ticks(axes[5].xaxis)
        plain_ticks(axes[5].yaxis)
        set_title(figure, "Priors with the default hyperparameters")
        return save(figure, Path(folder), "priors")


def _prior(ax: Axes, model: str, x: Array, y: Array, words: str | None = None) -> None:
    colour, marker = LOOKS[model]
    ax.plot(x, y, color=colour, marker=marker, ms=SIZES.get(marker, 3), mew=0, label=words,
            markevery=(0.02 * list(LOOKS).index(model), 0.3),
            gid=name_of(ax, "prior", model))  # fmt: skip


def _surface(ax: Axes, model: str, grid: Array, density: Callable[[Array, Array], Array]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    fade = LinearSegmentedColormap.from_list("fade", ["white", LOOKS[model][0]])
    ax.contourf(grid, grid, density(*np.meshgrid(grid, grid)), 10, cmap=fade)


# --- Values -------------------------------------------------------------------------------------


def draw_values(folder: str | Path, names: Iterable[str]) -> list[Path]:
    """Draw histograms of the values of those datasets that are here."""
    from bayesmf import datasets

    here = [name for name in names if datasets.present(name)]
    if not here:
        return []
    with drawing():
        cols = min(4, len(here))
        rows = -(-len(here) // cols)
        figure, axes = panels(rows, cols, max(COLUMN, WIDE * cols / 4), 3.8 * rows + 0.8)
        for ax, name in zip(axes, here, strict=False):
            values = datasets.load(name).X.rows.values
            low, high = values.min(), values.max()
            whole = np.array_equal(values, np.round(values)) and high - low <= 120
            edges = np.arange(low - 0.5, high + 1) if whole else np.linspace(low, high, 41)
            ax.hist(values, edges.tolist(), color="#6b8fb5", linewidth=0)
            ax.set_title(name, loc="left")
            ax.grid(axis="x", visible=False)
        for ax in axes[len(here) :]:
            ax.set_visible(False)
        figure.supxlabel("value", fontsize=6.5)
        figure.supylabel("entries", fontsize=6.5)
        set_title(figure, "Values of the datasets")
        return save(figure, Path(folder), "values")
