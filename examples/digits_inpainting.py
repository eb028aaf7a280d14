"""Fill in the hidden pixels of handwritten digits, several times over.

Four tenths of the pixels of 1797 images are hidden. Each image is a row of a matrix and each pixel
a column, so that what other images look like tells what is hidden in this one. The posterior mean
is the best single guess, and it is smoother than any real digit. The standard deviation says where
it is a guess, and draws from the posterior predictive distribution show what else could be there.

Pixels at the border hardly vary and others do a lot: each has a size and a noise of its own. They
are whole numbers from 0 to 16 and often exactly 0, and a Gaussian model knows neither. It fills
them in all the same, but its intervals are only roughly right: the second line of the output says
how roughly.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from _figures import arguments, hatch, new_figure, save, with_gaps
from bayesmf import BayesianMF, baseline
from bayesmf.datasets import load_digits
from bayesmf.metrics import coverage, mse

HIDDEN = 0.4
SHOWN = (0, 3, 4, 7, 8)  # the images of the figure; the first ten are the digits from 0 to 9
LEVELS = (0.5, 0.8, 0.9)


def fit(X: np.ndarray, quick: bool) -> BayesianMF:
    """Fit the automatic model; in a hurry its rank and noise are not looked for."""
    if quick:
        return BayesianMF("GGGW", 6, noise="cols", draws=60, burn_in=60, random_state=0).fit(X)
    return BayesianMF(draws=200, burn_in=200, random_state=0, n_jobs=-1).fit(X)


def picture(
    axes: Axes, pixels: np.ndarray, limits: tuple[float, float], colours: str = "gray_r",
    ground: str | None = "#d9e8f5",
) -> AxesImage:  # fmt: skip
    """One image of 8 x 8 pixels; missing ones are hatched, or blank without a ground."""
    if ground is not None:
        hatch(axes, 7, ground)
    axes.set_xticks([])
    axes.set_yticks([])
    return axes.imshow(
        pixels.reshape(8, 8), with_gaps(colours), interpolation="nearest",
        vmin=limits[0], vmax=limits[1],
    )  # fmt: skip


def draw(X: np.ndarray, truth: np.ndarray, columns: dict[str, np.ndarray]) -> Figure:
    """A row for each digit: seen, filled in, standard deviation, three draws, truth."""
    hidden = np.isnan(X)
    columns = {"seen": X, **columns, "truth": truth}
    figure = new_figure(5.25)
    grid = figure.subplots(len(SHOWN), len(columns))
    shown = list(SHOWN)
    spreads = columns["std. dev."][shown][hidden[shown]]
    for row, digit in enumerate(SHOWN):
        for axes, (name, values) in zip(grid[row], columns.items(), strict=True):
            if name == "std. dev.":
                unsure = np.where(hidden[digit], values[digit], np.nan)
                spread = picture(axes, unsure, (spreads.min(), spreads.max()), "cividis", None)
            else:
                grey = picture(axes, values[digit], (0, 16))
            if row == 0:
                axes.set_title(name, loc="center")
    for image, name, place in (
        (grey, "grey level", grid[-1, :4]),
        (spread, "standard deviation of a hidden pixel", grid[-1, 4:]),
    ):
        bar = figure.colorbar(
            image, ax=place, location="bottom", aspect=8 * len(place), shrink=0.8, pad=0.08,
            label=name,
        )  # fmt: skip
        bar.outline.set_linewidth(0.4)
    return figure


def main() -> None:
    """Hide pixels, fill them in, and say how well that went."""
    options = arguments(__doc__)
    truth = load_digits().X.to_array()[: 400 if options.quick else None]
    hidden = np.random.default_rng(0).random(truth.shape) < HIDDEN
    X = np.where(hidden, np.nan, truth)
    mf = fit(X, options.quick)
    mean, std = mf.predict(return_std=True)
    plain_guess = baseline(X, "column-average").mean
    print(
        f"{len(truth)} images, {hidden.mean():.0%} of the pixels hidden; error "
        f"{mse(truth[hidden], mean[hidden]) ** 0.5:.2f} grey levels of 16 "
        f"(the pixel's average: {mse(truth[hidden], plain_guess[hidden]) ** 0.5:.2f})"
    )
    rows, cols = np.nonzero(hidden)
    ends = [*(0.5 - np.array(LEVELS) / 2), *(0.5 + np.array(LEVELS) / 2)]
    _, found = mf.predict(rows, cols, quantiles=ends)
    low, high = np.split(found, 2)
    held = [coverage(truth[hidden], *pair) for pair in zip(low, high, strict=True)]
    print("hidden pixels inside their intervals: " + ", ".join(
        f"{share:.1%} of {level:.0%}" for share, level in zip(held, LEVELS, strict=True)
    ))  # fmt: skip
    draws = {
        f"draw {k + 1}": np.where(hidden, values, truth)
        for k, values in enumerate(mf.sample_predictive(3))
    }
    filled = {"filled in": np.where(hidden, mean, truth), "std. dev.": std}
    figure = draw(X, truth, filled | draws)
    print(f"figure: {save(figure, options.output, 'digits.png')}")


if __name__ == "__main__":
    main()
