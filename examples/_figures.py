"""What the examples share: two options, one look, and how a figure becomes a file."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # files only: no display is needed

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

WIDTH = 7.0  # inches: 700 pixels at 100 pixels per inch
INK, MUTED, GRID = "#222222", "#666666", "#dddddd"
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#8a8a8a"

matplotlib.rcParams.update({
    "font.family": "DejaVu Sans", "font.size": 8, "axes.titlesize": 8.5, "axes.labelsize": 8,
    "xtick.labelsize": 7, "ytick.labelsize": 7, "legend.fontsize": 7.5, "text.color": INK,
    "axes.labelcolor": INK, "axes.edgecolor": MUTED, "axes.linewidth": 0.6, "axes.titlepad": 5,
    "axes.titlelocation": "left", "xtick.color": MUTED, "ytick.color": MUTED,
    "xtick.labelcolor": INK, "ytick.labelcolor": INK, "xtick.major.width": 0.6,
    "ytick.major.width": 0.6, "xtick.major.size": 2.5, "ytick.major.size": 2.5,
    "legend.frameon": False, "lines.linewidth": 1.5, "hatch.linewidth": 0.5,
    "svg.hashsalt": "bayesmf",
})  # fmt: skip


def arguments(description: str | None) -> argparse.Namespace:
    """Read ``--quick`` and ``--output`` of an example whose docstring is the description."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="few draws and repeats: a try in seconds"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("figures"), metavar="FOLDER",
        help="where the figure goes (default: figures, in the current folder)",
    )  # fmt: skip
    return parser.parse_args()


def new_figure(height: float) -> Figure:
    """An empty figure of the common width, with room for all labels."""
    return Figure(figsize=(WIDTH, height), layout="constrained", facecolor="white")


def plain(axes: Axes, grid: str | None = "both") -> None:
    """Take the frame off two sides, and draw a faint grid along ``grid`` ("x", "y", "both")."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    if grid is not None:
        axes.grid(axis=grid, color=GRID, linewidth=0.6)  # type: ignore[arg-type]


def with_gaps(name: str) -> Colormap:
    """A colour map that leaves missing cells (NaN) clear, so that a hatched ground shows."""
    return colormaps[name].with_extremes(bad=(0, 0, 0, 0))


def hatch(axes: Axes, density: int, ground: str = "white") -> None:
    """Hatch the ground of a heatmap: it is seen where the map has gaps."""
    axes.add_patch(Rectangle(
        (0, 0), 1, 1, hatch="/" * density, facecolor=ground, edgecolor="#9a9a9a", linewidth=0,
        transform=axes.transAxes, zorder=-1,
    ))  # fmt: skip


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write a figure, the same bytes every time; the ending of the name is the format."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    none = {"Date": None, "Creator": None} if path.suffix == ".svg" else {"Software": None}
    figure.savefig(path, dpi=200, metadata=none)
    return path
