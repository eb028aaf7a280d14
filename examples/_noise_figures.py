"""Pictures of docs/which-noise.md: simulated data, and what a plain Gaussian fit leaves of them.

Six matrices whose noise is not normal, or not alike everywhere, are fitted by GGGA with biases.
Each picture has the data on the left and the residuals of the fit on the right.

    python examples/_noise_figures.py [--quick] [--output docs/images]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator
from scipy import special, stats

from _figures import BLUE, GREY, INK, ORANGE, arguments, new_figure, plain, save
from bayesmf import BayesianMF

SHAPE, RANK, MISSING, SHOWN = (80, 30), 2, 0.3, 240
TITLES = "data", "what a Gaussian fit leaves"
Matrix = np.ndarray


def signal(rng: np.random.Generator) -> Matrix:
    """A product of factors, each cell of variance one."""
    U, V = (rng.normal(size=(n, RANK)) for n in SHAPE)
    return U @ V.T / np.sqrt(RANK)


def unequal_columns(rng: np.random.Generator) -> Matrix:
    """Normal noise, from quiet columns on the left to loud ones on the right."""
    return signal(rng) + rng.normal(size=SHAPE) * np.geomspace(0.1, 1.5, SHAPE[1])


def outliers(rng: np.random.Generator) -> Matrix:
    """Student noise with three degrees of freedom."""
    return signal(rng) + 0.4 * rng.standard_t(3, size=SHAPE)


def limit(rng: np.random.Generator) -> Matrix:
    """Values that an instrument shows as 8 if they are more."""
    return np.minimum(7 + 2 * signal(rng) + 0.7 * rng.normal(size=SHAPE), 8.0)


def categories(rng: np.random.Generator) -> Matrix:
    """Stars from one to five, of which four is the most frequent."""
    latent = 1.5 * signal(rng) + rng.normal(size=SHAPE)
    return 1.0 + np.searchsorted([-2.2, -1.3, -0.2, 1.2], latent)


def overdispersed(rng: np.random.Generator) -> Matrix:
    """Negative binomial counts of size two."""
    mean = rng.gamma(1.0, 3.0, (SHAPE[0], RANK)) @ rng.gamma(1.0, 1.0, (RANK, SHAPE[1]))
    return rng.poisson(mean * rng.gamma(2.0, 0.5, SHAPE)).astype(float)


def zeros_and_ones(rng: np.random.Generator) -> Matrix:
    """One where a Poisson count is not zero."""
    mean = rng.gamma(0.5, 1.0, (SHAPE[0], RANK)) @ rng.gamma(1.0, 1.0, (RANK, SHAPE[1]))
    return (rng.poisson(mean) > 0).astype(float)


# --- Panels: the axes, the observed values, their fitted means, their columns ---------------------


def some(x: np.ndarray) -> np.ndarray:
    """Every so many of the points, so that the file stays small."""
    return x[:: max(1, x.size // SHOWN)]


def points(axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Small open circles."""
    axes.plot(some(x), some(y), "o", color=BLUE, markersize=2.2, markerfacecolor="none",
              markeredgewidth=0.5)  # fmt: skip


def bars(axes: Axes, values: np.ndarray, heap: float | None = None) -> None:
    """How often each value, or each of some intervals, occurs; the heap is hatched."""
    x, height = np.unique(values, return_counts=True)
    width = 0.8
    if x.size <= 5:
        axes.set_xticks(x)
    elif (x % 1 == 0).all():
        width = 1.0
    else:
        height, edges = np.histogram(values, 40)
        x, width = 0.5 * (edges[1:] + edges[:-1]), edges[1] - edges[0]
    drawn = axes.bar(x, height, width, color=GREY, edgecolor="white", linewidth=0.3)
    if heap is not None:
        drawn[-1].set(color=ORANGE, hatch="////", edgecolor=INK)
        axes.annotate("heap", (x[-1], height[-1]), xytext=(-6, -2), textcoords="offset points",
                      ha="right", va="top")  # fmt: skip
    axes.set(xlabel="value", ylabel="entries")


def values_by_column(axes: Axes, values: np.ndarray, fit: np.ndarray, cols: np.ndarray) -> None:
    """Values above the number of their column."""
    points(axes, cols + 1.0, values)
    axes.set(xlabel="column", ylabel="value")


def residuals_by_column(axes: Axes, values: np.ndarray, fit: np.ndarray, cols: np.ndarray) -> None:
    """Nine tenths of the residuals of every column, and where they would be if all were alike."""
    residuals = values - fit
    for j in range(SHAPE[1]):
        low, high = np.quantile(residuals[cols == j], [0.05, 0.95])
        axes.plot([j + 1, j + 1], [low, high], color=BLUE, linewidth=2.0)
    edge = 1.645 * residuals.std()
    for sign in (-1, 1):
        axes.axhline(sign * edge, color=INK, linestyle="--", linewidth=0.9)
    axes.text(1, edge, "if all were alike", va="bottom")
    axes.set(xlabel="column", ylabel="90 % of the residuals")


def histogram(axes: Axes, values: np.ndarray, fit: np.ndarray, cols: np.ndarray) -> None:
    """All values."""
    bars(axes, values, 8.0 if values.max() == 8.0 else None)


def quantile_plot(axes: Axes, values: np.ndarray, fit: np.ndarray, cols: np.ndarray) -> None:
    """Sorted residuals against those of a normal distribution."""
    residuals = np.sort((values - fit) / (values - fit).std())
    expected = special.ndtri((np.arange(residuals.size) + 0.5) / residuals.size)
    ends = np.r_[0:15, 15 : residuals.size - 15 : 12, residuals.size - 15 : residuals.size]
    axes.axline((0, 0), slope=1, color=INK, linestyle="--", linewidth=0.9)
    axes.plot(expected[ends], residuals[ends], "o", color=BLUE, markersize=2.2,
              markerfacecolor="none", markeredgewidth=0.5)  # fmt: skip
    axes.text(2.0, 1.2, "normal", va="top")
    axes.set(xlabel="quantile of a normal", ylabel="residual / its sd")


def against_fit(axes: Axes, values: np.ndarray, fit: np.ndarray, cols: np.ndarray) -> None:
    """Residuals against the fitted mean."""
    points(axes, fit, values - fit)
    axes.axhline(0, color=INK, linewidth=0.6)
    axes.set(xlabel="fitted mean", ylabel="residual")


def spread_against_fit(axes: Axes, values: np.ndarray, fit: np.ndarray, cols: np.ndarray) -> None:
    """Spread of the residuals where the fitted mean is about so large, and Poisson's beside it."""
    order = np.argsort(fit)
    groups = [part for part in np.array_split(order, 14) if fit[part].mean() > 0.3]
    m = np.array([values[part].mean() for part in groups])
    sd = np.array([(values - fit)[part].std() for part in groups])
    axes.loglog(m, sd, "o", color=BLUE, markersize=4)
    line = np.geomspace(m.min(), m.max(), 50)
    axes.loglog(line, np.sqrt(line), color=INK, linestyle="--", linewidth=0.9)
    axes.text(line[25], np.sqrt(line[25]) * 0.9, "Poisson", va="top")
    for axis, ticks in ((axes.xaxis, (1, 3, 10, 30)), (axes.yaxis, (1, 2, 4, 8))):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    axes.set(xlabel="mean count", ylabel="sd of the residuals")


Panel = Callable[[Axes, np.ndarray, np.ndarray, np.ndarray], None]
CASES: dict[str, tuple[Callable[[np.random.Generator], Matrix], Panel, Panel]] = {
    "columns": (unequal_columns, values_by_column, residuals_by_column),
    "outliers": (outliers, histogram, quantile_plot),
    "limit": (limit, histogram, against_fit),
    "categories": (categories, histogram, against_fit),
    "counts": (overdispersed, histogram, spread_against_fit),
    "binary": (zeros_and_ones, histogram, against_fit),
}


def main() -> None:
    """Simulate, fit and draw every case."""
    options = arguments(__doc__)
    draws = 30 if options.quick else 300
    for number, (name, (simulate, left, right)) in enumerate(CASES.items()):
        rng = np.random.default_rng(number)
        X = simulate(rng)
        X[rng.random(SHAPE) < MISSING] = np.nan
        mf = BayesianMF(
            "GGGA", RANK + 1, biases=True, draws=draws, burn_in=draws, chains=1, random_state=0
        ).fit(X)
        rows, cols = np.nonzero(~np.isnan(X))
        values, fit = X[rows, cols], mf.predict(rows, cols)
        residuals = values - fit
        print(
            f"{name:10} residuals: sd {residuals.std():.2f}, excess kurtosis "
            f"{stats.kurtosis(residuals):.1f}, most and least by column "
            f"{_spread(residuals, cols):.1f} times"
        )
        figure = new_figure(2.1)
        axes = figure.subplots(1, 2)
        for axis, panel, title in zip(axes, (left, right), TITLES, strict=True):
            panel(axis, values, fit, cols)
            axis.set_title(title)
            plain(axis)
        axes[0].yaxis.set_major_locator(MaxNLocator(5))
        print("figure:", save(figure, options.output, f"noise-{name}.svg"))


def _spread(residuals: np.ndarray, cols: np.ndarray) -> float:
    """Largest over smallest standard deviation of a column's residuals."""
    sd = np.array([residuals[cols == j].std() for j in range(SHAPE[1])])
    return float(sd.max() / sd.min())


if __name__ == "__main__":
    main()
