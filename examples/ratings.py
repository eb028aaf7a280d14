"""Recommend films with uncertainty, also to users whom the model has never seen.

Users are rows and films columns. The model is GGGW: the factors of users and of films have normal
distributions whose means and covariances are learnt, so that it knows what a user is like of whom
nothing is known yet. Some users are left out of the fit altogether. ``predict`` takes their rows,
with NaN for films not rated, and needs no refitting: for every kept draw of the films' factors it
draws those of the new user, given the user's own ratings. The fewer there are, the wider the
predictions, and the figure compares the error that they promise with the one that is found.

A list of recommendations may be sorted by the mean, or by a lower quantile of the expected rating
(``include_noise=False``), which films must earn by being known well. The example says whether that
gave better lists for the users left out.

The ratings are MovieLens 100K (Harper and Konstan, 2015, doi:10.1145/2827872) if the folder that
BAYESMF_DATA names, or the cache, has them; nothing is downloaded. Otherwise they are simulated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from _figures import BLUE, GREY, INK, MUTED, ORANGE, arguments, new_figure, plain, save
from bayesmf import BayesianMF, ObservedMatrix, baseline
from bayesmf.datasets import fetch_movielens, present
from bayesmf.metrics import mse, standard_error

REVEALED = (0, 1, 2, 5, 10, 20, 40, 60)  # ratings of a new user that the model is shown
TESTED = 20  # further ratings of each new user, on which it is judged
KNOWN = 20  # ratings that are known when lists are judged
CAUTION = 0.1  # the quantile by which the cautious list is sorted
TASTE = {  # a made-up user of MovieLens
    "Star Wars (1977)": 5, "Alien (1979)": 5, "Blade Runner (1982)": 5,
    "Terminator, The (1984)": 4, "Sleepless in Seattle (1993)": 2, "Pretty Woman (1990)": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Ratings:
    """Users by films with NaN for films not rated, and one more user, who is not among them."""

    title: str
    X: np.ndarray
    films: list[str]
    newcomer: np.ndarray  # (1, films)


def load() -> Ratings:
    """MovieLens 100K if it is there, or else simulated ratings."""
    if not present("MovieLens_100K"):
        print("MovieLens 100K is not here (BAYESMF_DATA may name its folder): simulated ratings")
        return simulate(np.random.default_rng(0))
    data = fetch_movielens("100k", download=False)
    assert data.X.col_labels is not None
    films = data.X.col_labels.tolist()
    newcomer = np.full((1, len(films)), np.nan)
    for film, rating in TASTE.items():
        newcomer[0, films.index(film)] = rating
    return Ratings(data.title, data.X.to_array(), films, newcomer)


def simulate(rng: np.random.Generator, n: int = 400, m: int = 300, rank: int = 3) -> Ratings:
    """Whole stars from 1 to 5; some films are popular, and some users are busy."""
    U, V = 0.5 * rng.standard_normal((n + 1, rank)), 0.7 * rng.standard_normal((m, rank))
    liking = 3.5 + 0.4 * rng.standard_normal((n + 1, 1)) + 0.5 * rng.standard_normal(m) + U @ V.T
    stars = np.clip(np.round(liking + 0.7 * rng.standard_normal(liking.shape)), 1, 5)
    popular, busy = rng.lognormal(0, 1.0, m), rng.lognormal(0, 0.7, (n + 1, 1))
    X = np.where(rng.random(stars.shape) < 0.2 * popular * busy, stars, np.nan)
    newcomer = X[-1:].copy()
    newcomer[0, np.flatnonzero(~np.isnan(newcomer[0]))[len(TASTE) :]] = np.nan
    return Ratings("Simulated ratings", X[:-1], [f"film {k + 1}" for k in range(m)], newcomer)


def leave_out(X: np.ndarray, users: int, rng: np.random.Generator) -> np.ndarray:
    """Users with enough ratings, to be left out of the fit."""
    enough = np.flatnonzero((~np.isnan(X)).sum(axis=1) >= TESTED + max(REVEALED))
    return rng.choice(enough, min(users, enough.size // 2), replace=False)


def shuffled(X: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """The rated films of every user, in random order."""
    return [rng.permutation(np.flatnonzero(~np.isnan(row))) for row in X]


def only(X: np.ndarray, chosen: list[np.ndarray]) -> np.ndarray:
    """The chosen ratings of every user, and NaN elsewhere."""
    shown = np.full(X.shape, np.nan)
    for user, films in enumerate(chosen):
        shown[user, films] = X[user, films]
    return shown


@dataclass(frozen=True)
class Curve:
    """Errors (root mean square) on the tested ratings of new users, by the ratings shown."""

    users: int
    average: float  # error of the film's average
    found: list[float]
    promised: list[float]


def learning_curve(
    mf: BayesianMF, others: np.ndarray, X: np.ndarray, rng: np.random.Generator
) -> Curve:
    """Show the model more and more ratings of new users, and test it on the same others."""
    films = shuffled(X, rng)
    tested = only(X, [order[:TESTED] for order in films])
    at = ~np.isnan(tested)
    averages = np.broadcast_to(baseline(others, "column-average").mean[0], X.shape)
    found, promised = [], []
    for count in REVEALED:
        shown = only(X, [order[TESTED : TESTED + count] for order in films])
        mean, std = mf.predict(ObservedMatrix.of(shown), return_std=True)
        found.append(mse(tested[at], mean[at]) ** 0.5)
        promised.append(float(np.mean(std[at] ** 2)) ** 0.5)
    return Curve(len(X), mse(tested[at], averages[at]) ** 0.5, found, promised)


def judge_lists(
    mf: BayesianMF, X: np.ndarray, rng: np.random.Generator, length: int = 5
) -> dict[str, np.ndarray]:
    """Ratings that new users really gave to the films of either list, chosen among all they rated.

    The films whose ratings the model was shown are not among them.
    """
    films = shuffled(X, rng)
    shown = only(X, [order[:KNOWN] for order in films])
    mean, (low,) = mf.predict(ObservedMatrix.of(shown), quantiles=[CAUTION], include_noise=False)
    given = {}
    for name, score in (("mean", mean), ("quantile", low)):
        best = [
            order[KNOWN:][np.argsort(-score[user, order[KNOWN:]])[:length]]
            for user, order in enumerate(films)
        ]
        given[name] = np.array([X[user, chosen] for user, chosen in enumerate(best)])
    return given


@dataclass(frozen=True)
class Lists:
    """What the newcomer is expected to think of films, and the best of them in two orders."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    by_mean: list[int]
    by_quantile: list[int]


def recommend(mf: BayesianMF, newcomer: np.ndarray, length: int = 8) -> Lists:
    """Films that the newcomer has not rated, the best first."""
    mean, ends = mf.predict(
        ObservedMatrix.of(newcomer), quantiles=[CAUTION, 1 - CAUTION], include_noise=False
    )
    mean, (low, high) = mean[0], ends[:, 0]
    unseen = np.flatnonzero(np.isnan(newcomer[0]))
    best, safest = (unseen[np.argsort(-score[unseen])[:length]].tolist() for score in (mean, low))
    return Lists(mean, low, high, best, safest)


def draw_curve(axes: Axes, curve: Curve) -> None:
    """Error against the number of ratings of the user."""
    at = np.arange(len(REVEALED))
    axes.axhline(curve.average, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    axes.text(
        at[-1], curve.average, "film's average", color=MUTED, ha="right", va="bottom", size=7.5
    )
    axes.plot(at, curve.promised, "s-", color=ORANGE, markersize=4, label="promised")
    axes.plot(at, curve.found, "o-", color=BLUE, markersize=4, label="found")
    axes.set_xticks(at, [str(count) for count in REVEALED])
    axes.yaxis.set_major_locator(MultipleLocator(0.05))
    axes.set(xlabel="ratings known of the user", ylabel="error in stars (root mean square)")
    axes.set_title(f"{curve.users} users left out of the fit")
    axes.legend(loc="lower left")
    plain(axes, "y")


def draw_lists(axes: Axes, lists: Lists, films: list[str]) -> None:
    """Expected ratings of the films on either list, with intervals and both ranks."""
    shown = sorted({*lists.by_mean, *lists.by_quantile}, key=lambda film: lists.mean[film])
    at = np.arange(len(shown))
    axes.hlines(at, lists.low[shown], lists.high[shown], color=BLUE, linewidth=2, alpha=0.45)
    axes.plot(lists.low[shown], at, "|", color=ORANGE, markersize=8, markeredgewidth=2)
    axes.plot(lists.mean[shown], at, "o", color=BLUE, markersize=5)
    for column, ranks, colour in (
        (1.06, lists.by_mean, BLUE), (1.17, lists.by_quantile, ORANGE),
    ):  # fmt: skip
        for y, film in enumerate(shown):
            text = str(ranks.index(film) + 1) if film in ranks else "-"
            axes.text(
                column, y, text, transform=axes.get_yaxis_transform(), color=colour,
                ha="center", va="center", size=7.5,
            )  # fmt: skip
    for column, y, text, colour in (
        (1.06, 1.0, "●", BLUE), (1.17, 1.0, "❙", ORANGE), (1.115, 1.065, "rank", INK),
    ):  # fmt: skip
        axes.text(column, y, text, transform=axes.transAxes, color=colour, ha="center", size=7.5)
    axes.set_yticks(at, [short(films[film]) for film in shown])
    axes.set_xlabel(f"expected rating: mean ●, {100 * CAUTION:.0f} % quantile ❙")
    axes.set_title(f"A newcomer, {len(TASTE)} films rated")
    axes.tick_params(axis="y", length=0)
    plain(axes, "x")


def short(title: str, length: int = 27) -> str:
    """A title that fits beside an axis."""
    return title if len(title) <= length else title[: length - 1].rstrip(" ,:") + "…"


def draw(curve: Curve, lists: Lists, films: list[str]) -> Figure:
    """The learning curve and the lists, side by side."""
    figure = new_figure(3.2)
    left, right = figure.subplots(1, 2, width_ratios=[1, 0.9])
    draw_curve(left, curve)
    draw_lists(right, lists, films)
    return figure


def tell(data: Ratings, curve: Curve, given: dict[str, np.ndarray], lists: Lists) -> None:
    """Print what was found."""
    print(f"error for {curve.users} new users: {curve.average:.3f} stars by the film's average")
    print(f"{'ratings known':>15}{'found':>8}{'promised':>10}")
    for count, *errors in zip(REVEALED, curve.found, curve.promised, strict=True):
        print(f"{count:15d}{errors[0]:8.3f}{errors[1]:10.3f}")
    for name, stars in given.items():
        print(
            f"top 5 by {name}: rated {stars.mean():.3f} on average, {(stars <= 2).mean():.1%} "
            "with two stars or fewer"
        )
    gain = (given["quantile"] - given["mean"]).mean(axis=1)
    print(f"gain by the quantile: {gain.mean():.3f}, standard error {standard_error(gain):.3f}")
    for name, best in (("mean", lists.by_mean), ("quantile", lists.by_quantile)):
        titles = "; ".join(short(data.films[film]) for film in best[:3])
        print(f"for the newcomer, by {name}: {titles}")


def main() -> None:
    """Fit without some users, meet them, recommend, and draw."""
    options = arguments(__doc__)
    rng = np.random.default_rng(1)
    data = load()
    new = leave_out(data.X, 40 if options.quick else 150, rng)
    X, others = data.X[new], np.delete(data.X, new, axis=0)
    draws = 60 if options.quick else 300
    mf = BayesianMF("GGGW", 10, draws=draws, burn_in=draws, random_state=0, n_jobs=1)
    mf.fit(ObservedMatrix.of(others))
    print(f"{data.title}: fitted to {len(others)} users and {len(data.films)} films")

    curve, given = learning_curve(mf, others, X, rng), judge_lists(mf, X, rng)
    lists = recommend(mf, data.newcomer)
    tell(data, curve, given, lists)
    taste = mf.transform(ObservedMatrix.of(data.newcomer))[0]
    print(f"the newcomer's factors, by transform: {np.array2string(taste[:5], precision=2)} ...")
    figure = draw(curve, lists, data.films)
    print(f"figure: {save(figure, options.output, 'ratings.png')}")


if __name__ == "__main__":
    main()
