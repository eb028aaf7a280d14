"""Multiple imputation into a regression, and whether the 95 % interval holds the truth.

An outcome y depends on six covariates, the first of which has the coefficient 1. Covariates are the
more often missing the larger the outcome is; the outcome is always known. So cases without a gap
are no fair sample, and a gap that is filled once is taken for a fact.

Multiple imputation: fit a model of covariates *and outcome* (without it, imputed covariates would
have nothing to do with the outcome, and the coefficient would shrink), draw twenty completed
matrices with ``BayesianImputer.impute(m=20)``, run the regression on each, and pool by Rubin's
rules: the variance within completions plus that between them. All of it is repeated on many
simulated datasets, and the share of the intervals that hold the true coefficient is counted.

The rank matters: two traits make the covariates, but what only the first covariate and the outcome
share needs factors of its own. A rank as low as two leaves it out of the imputations. The units of
the columns do not matter, and each column has a noise of its own.
"""

from __future__ import annotations

import warnings

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from _figures import BLUE, GREY, ORANGE, arguments, new_figure, plain, save
from bayesmf import BayesianImputer, ConvergenceWarning

COEFFICIENTS = np.array([1.0, 0.5, -0.5, 0.0, 0.0, 0.5])
LOADINGS = np.array([[0.8, 0.0], [0.7, 0.3], [0.6, 0.6], [0.3, 0.7], [0.0, 0.8], [0.5, -0.5]])
RANKS = (2, 7)  # the number of traits, and the number of columns
COMPLETIONS = 20
ROWS = 200

Estimate = tuple[float, float, float]  # with the ends of its 95 % interval


def simulate(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariates, the same with gaps that depend on the outcome, and the outcome."""
    traits = rng.standard_normal((ROWS, LOADINGS.shape[1]))
    X = traits @ LOADINGS.T + 0.6 * rng.standard_normal((ROWS, len(LOADINGS)))
    y = X @ COEFFICIENTS + rng.standard_normal(ROWS)
    z = (y - y.mean()) / y.std()
    odds = np.column_stack([-0.8 + 1.2 * z, *(5 * [-2.0 + 0.8 * z])])
    return X, np.where(rng.random(X.shape) < 1 / (1 + np.exp(-odds)), np.nan, X), y


def regress(X: np.ndarray, y: np.ndarray) -> tuple[float, float, int]:
    """Least squares: the first covariate's coefficient, its variance, degrees of freedom."""
    A = np.column_stack([X, np.ones(len(y))])
    inverse = np.linalg.inv(A.T @ A)
    found = inverse @ (A.T @ y)
    freedom = len(y) - A.shape[1]
    return found[0], np.sum((y - A @ found) ** 2) / freedom * inverse[0, 0], freedom


def interval(estimate: float, variance: float, freedom: float) -> Estimate:
    """The estimate with its 95 % interval."""
    half = stats.t.ppf(0.975, freedom) * variance**0.5
    return estimate, estimate - half, estimate + half


def pool(estimates: np.ndarray, variances: np.ndarray, freedom: int) -> Estimate:
    """Rubin's rules, with the degrees of freedom of Barnard and Rubin (1999) for small samples."""
    m = len(estimates)
    between = (1 + 1 / m) * estimates.var(ddof=1)
    total = variances.mean() + between
    share = between / total  # of the variance that is due to the gaps
    by_draws = (m - 1) / share**2
    by_data = (freedom + 1) / (freedom + 3) * freedom * (1 - share)
    return interval(estimates.mean(), total, 1 / (1 / by_draws + 1 / by_data))


def impute(X: np.ndarray, y: np.ndarray, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Covariates filled once by posterior means, and completed several times at random."""
    imputer = BayesianImputer(
        n_components=rank, noise="cols", draws=100, burn_in=100, chains=1, random_state=seed,
        n_jobs=1,
    )  # fmt: skip
    with warnings.catch_warnings():  # means are good with so few draws; coverage is counted below
        warnings.simplefilter("ignore", ConvergenceWarning)
        once = imputer.fit_transform(np.column_stack([X, y]))
    return once[:, :-1], imputer.impute(m=COMPLETIONS)[:, :, :-1]


def analyse(seed: int) -> dict[str, Estimate]:
    """Estimates of the first coefficient from one simulated dataset, by every method."""
    X, gappy, y = simulate(np.random.default_rng([1, seed]))
    complete = ~np.isnan(gappy).any(axis=1)
    averages = np.where(np.isnan(gappy), np.nanmean(gappy, axis=0), gappy)
    found = {
        "all data, no gaps": interval(*regress(X, y)),
        "complete cases": interval(*regress(gappy[complete], y[complete])),
        "column means": interval(*regress(averages, y)),
    }
    pooled = {}
    for rank in RANKS:
        once, completions = impute(gappy, y, rank, seed)
        fits = [regress(completed, y) for completed in completions]
        estimates, variances, freedoms = (np.array(part) for part in zip(*fits, strict=True))
        pooled[f"multiple, {rank} factors"] = pool(estimates, variances, freedoms[0])
    return found | {"posterior means, once": interval(*regress(once, y))} | pooled


def covered(estimates: np.ndarray) -> int:
    """How many of the intervals hold the true coefficient."""
    return int(np.sum((estimates[:, 1] <= COEFFICIENTS[0]) & (COEFFICIENTS[0] <= estimates[:, 2])))


def draw_estimates(axes: Axes, found: dict[str, np.ndarray]) -> None:
    """All estimates of every method, with their mean."""
    rng = np.random.default_rng(0)
    axes.axvline(COEFFICIENTS[0], color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    for y, estimates in enumerate(found.values()):
        jitter = y + rng.uniform(-0.22, 0.22, len(estimates))
        axes.plot(estimates[:, 0], jitter, ".", color=BLUE, markersize=4, alpha=0.35, mew=0)
        axes.plot(estimates[:, 0].mean(), y, "D", color=ORANGE, markersize=5, mec="white")
    axes.set_yticks(range(len(found)), list(found))
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_xlabel("estimate of the coefficient (true: 1)")
    axes.set_title("Estimates, and their mean ◆")
    axes.tick_params(axis="y", length=0, labelsize=8)
    plain(axes, "x")


def draw_coverage(axes: Axes, found: dict[str, np.ndarray]) -> None:
    """Share of the intervals that hold the truth, with its own 95 % interval."""
    axes.axvline(0.95, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    for y, estimates in enumerate(found.values()):
        result = stats.binomtest(covered(estimates), len(estimates))
        ends = result.proportion_ci(method="wilson")
        axes.hlines(y, ends.low, ends.high, color=BLUE, linewidth=2.5, alpha=0.45)
        axes.plot(result.statistic, y, "o", color=BLUE, markersize=5)
        axes.text(
            1.06, y, f"{100 * result.statistic:.0f} %", transform=axes.get_yaxis_transform(),
            va="center", ha="left",
        )  # fmt: skip
    axes.set_xticks([0, 0.25, 0.5, 0.75, 0.95], ["0", "25", "50", "75", "95 %"])
    axes.set(xlim=(0, 1.02), xlabel="intervals that hold the truth")
    axes.set_title("Coverage of 95 % intervals")
    axes.tick_params(axis="y", length=0, labelleft=False)
    plain(axes, "x")


def draw(found: dict[str, np.ndarray]) -> Figure:
    """Estimates and coverage, one line for each method."""
    figure = new_figure(2.9)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1.25, 1])
    draw_estimates(left, found)
    draw_coverage(right, found)
    return figure


def main() -> None:
    """Repeat, count, and draw."""
    options = arguments(__doc__)
    repeats = 8 if options.quick else 120
    runs = [analyse(seed) for seed in range(repeats)]
    found = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    print(f"{repeats} simulated datasets of {ROWS} rows; the true coefficient is 1")
    print(f"{'':24}{'mean estimate':>15}{'mean width':>12}{'95 % interval covers':>22}")
    for name, estimates in found.items():
        width = np.mean(estimates[:, 2] - estimates[:, 1])
        share = covered(estimates) / repeats
        print(f"{name:24}{estimates[:, 0].mean():15.2f}{width:12.2f}{share:22.0%}")
    print(f"figure: {save(draw(found), options.output, 'multiple-imputation.png')}")


if __name__ == "__main__":
    main()
