"""Complete a drug-sensitivity matrix, and see how sure each filled cell is.

A quarter of the tests was never made or failed: half of the cell lines have not met the last twelve
drugs at all. The model is a mean, an effect of every cell line and drug, and factors whose number
held-out entries decide. All drugs are measured alike and in one unit, which the fit is told. Each
missing cell gets a distribution, not just a number.

The matrix is simulated, so the truth is known and the intervals can be checked twice on the missing
cells: those with noise should hold new measurements, those without it the true values.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from _figures import BLUE, MUTED, ORANGE, arguments, hatch, new_figure, plain, save, with_gaps
from bayesmf import BayesianMF, baseline
from bayesmf.datasets import NOISE_SD, Dataset, load_drug_sensitivity
from bayesmf.metrics import coverage, mse

LEVELS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
TICKS = [0, 3, 6, 9, 12]


def shares(
    mf: BayesianMF, hidden: np.ndarray, values: np.ndarray, include_noise: bool
) -> list[float]:
    """Share of the values of the hidden cells inside central intervals of every level."""
    rows, cols = np.nonzero(hidden)
    ends = [*(0.5 - LEVELS / 2), *(0.5 + LEVELS / 2)]
    _, found = mf.predict(rows, cols, quantiles=ends, include_noise=include_noise)
    low, high = np.split(found, 2)
    return [coverage(values[hidden], *pair) for pair in zip(low, high, strict=True)]


def order(observed: np.ndarray, completed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns with like ones side by side, and the block without tests in one corner."""
    gaps = np.isnan(observed)
    late = gaps.mean(axis=0) > 0.4
    untested = gaps[:, late].all(axis=1)
    return (
        np.lexsort([completed.mean(axis=1), untested]),
        np.lexsort([completed.mean(axis=0), late]),
    )


def heatmap(
    figure: SubFigure, axes: Axes, values: np.ndarray, title: str, colours: str,
    limits: tuple[float, float],
) -> None:  # fmt: skip
    """One matrix with its colour bar below; gaps are hatched."""
    hatch(axes, 8)
    image = axes.imshow(
        values, with_gaps(colours), aspect="auto", interpolation="nearest",
        vmin=limits[0], vmax=limits[1],
    )  # fmt: skip
    axes.set_title(title)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel(f"{values.shape[1]} drugs")
    bar = figure.colorbar(image, ax=axes, location="bottom", aspect=16, pad=0.02, extend="both")
    bar.set_label("log IC50")
    bar.outline.set_visible(False)


def calibration(axes: Axes, measured: list[float], true: list[float]) -> None:
    """What intervals promise, and what they hold."""
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.plot(LEVELS, measured, "o-", color=BLUE, markersize=3)
    axes.plot(LEVELS, true, "s-", color=ORANGE, markersize=3)
    axes.text(0.04, 0.98, "● measured\n    again", color=BLUE, va="top")
    axes.text(0.99, 0.06, "■ true values", color=ORANGE, ha="right")
    axes.set_title("Intervals of the gaps")
    axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="promised", ylabel="held")
    axes.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    plain(axes)


def against_truth(axes: Axes, truth: np.ndarray, mean: np.ndarray) -> None:
    """Predictions of the missing cells beside their true values."""
    ends = truth.min(), truth.max()
    axes.plot(ends, ends, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.plot(truth, mean, ".", color=BLUE, markersize=2.5, alpha=0.5, mew=0, rasterized=True)
    axes.set_title("Values in the gaps")
    axes.set(xlabel="true", ylabel="filled in", xticks=TICKS, yticks=TICKS)
    plain(axes)


def draw(
    observed: np.ndarray, completed: np.ndarray, std: np.ndarray, truth: np.ndarray,
    held: tuple[list[float], list[float]],
) -> Figure:  # fmt: skip
    """Three heatmaps side by side, and the two checks beside them."""
    figure = new_figure(3.9)
    left, right = figure.subfigures(1, 2, width_ratios=[2.35, 1], wspace=0.02)
    hidden = np.isnan(observed)
    upper, lower = right.subplots(2, 1)
    calibration(upper, *held)
    against_truth(lower, truth[hidden], completed[hidden])
    rows, cols = order(observed, completed)
    observed, completed, std = (x[np.ix_(rows, cols)] for x in (observed, completed, std))
    maps = left.subplots(1, 3)
    limits = tuple(np.nanquantile(observed, [0.01, 0.99]))
    narrow = tuple(np.quantile(std, [0.005, 0.995]))
    heatmap(left, maps[0], observed, "Observed", "viridis", limits)
    heatmap(left, maps[1], completed, "Completed", "viridis", limits)
    heatmap(left, maps[2], std, "Standard deviation", "cividis", narrow)
    maps[0].set_ylabel(f"{observed.shape[0]} cell lines")
    return figure


def fit(data: Dataset, quick: bool) -> BayesianMF:
    """Fit the automatic model, with one scale and one noise for all drugs."""
    draws = 100 if quick else 500
    return BayesianMF(
        noise="equal", scale="global", draws=draws, burn_in=draws, random_state=0, n_jobs=1
    ).fit(data.X)


def main() -> None:
    """Fit, say how close the missing cells come to the truth, and draw."""
    options = arguments(__doc__)
    data = load_drug_sensitivity()
    observed, truth = data.X.to_array(), data.truth
    assert truth is not None
    hidden = np.isnan(observed)
    mf = fit(data, options.quick)
    mean, std = mf.predict(return_std=True)
    again = truth + NOISE_SD * np.random.default_rng(0).standard_normal(truth.shape)
    measured, true = shares(mf, hidden, again, True), shares(mf, hidden, truth, False)

    plain_guess = baseline(data.X, "column-average").mean
    n, m = data.X.shape
    print(f"{n} cell lines x {m} drugs, {hidden.mean():.0%} missing; {mf.n_components_} factors")
    print(
        f"error on the missing cells: {mse(truth[hidden], mean[hidden]) ** 0.5:.2f} "
        f"(the drug's average: {mse(truth[hidden], plain_guess[hidden]) ** 0.5:.2f}; "
        f"one measurement: {NOISE_SD:.2f})"
    )
    print(
        f"their 90 % intervals hold {measured[-2]:.1%} of new measurements; "
        f"without noise, {true[-2]:.1%} of true values"
    )
    completed = np.where(hidden, mean, observed)
    figure = draw(observed, completed, std, truth, (measured, true))
    print(f"figure: {save(figure, options.output, 'completed-matrix.svg')}")


if __name__ == "__main__":
    main()
