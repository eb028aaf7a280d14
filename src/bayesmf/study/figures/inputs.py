"""The two figures that need no results: the priors, and the values of datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import integrate, special, stats

from bayesmf import datasets
from bayesmf.model.presets import hyperparameters
from bayesmf.streams import Array
from bayesmf.study.figures import style
from bayesmf.study.tasks import SAME_RANK

Density = Callable[[Array, dict[str, Any]], Array]  # of an entry, given the hyperparameters


def _inverse_gaussian(x: Array, v: dict[str, Any]) -> Array:
    """A Laplace variable whose scale is integrated out."""
    mean, shape = v["mu"] or SAME_RANK, v["lambda"] or SAME_RANK
    scale = stats.invgauss(mean / shape, scale=shape).ppf((np.arange(400) + 0.5) / 400)
    return stats.laplace(0, scale).pdf(np.asarray(x)[..., None]).mean(axis=-1)


def _truncated_hyper(x: Array, v: dict[str, Any]) -> Array:
    """A truncated normal variable whose mean and precision are integrated out."""
    mean = stats.norm(v["mu_mu"], v["tau_mu"] ** -0.5).ppf((np.arange(400) + 0.5) / 400)
    fine = np.concatenate([np.linspace(0, 20, 401), np.geomspace(20.1, 1e6, 400)])

    def weight(at: Array) -> Array:
        return ((v["b"] + 0.5 * (at[..., None] - mean) ** 2) ** -v["a"]).mean(axis=-1)

    return weight(np.asarray(x)) / integrate.trapezoid(weight(fine), fine)


DENSITIES: dict[str, dict[str, tuple[str, Density]]] = {  # of one entry, by panel and model
    "real-valued": {
        "GGG": ("normal", lambda x, v: stats.norm(0, v["lambda"] ** -0.5).pdf(x)),
        "GGGA": ("ARD", lambda x, v: stats.t(
            2 * v["alpha0"], 0, (v["beta0"] / v["alpha0"]) ** 0.5).pdf(x)),
        "GGGW": ("Wishart", lambda x, v: stats.cauchy(  # at any rank if nu0 = K
            v["mu0"], (v["W0"] * (1 + 1 / v["beta0"])) ** 0.5).pdf(x)),
        "GLL": ("Laplace", lambda x, v: stats.laplace(0, v["eta"]).pdf(x)),
        "GLL narrow": ("", lambda x, v: stats.laplace(0, 10**-0.25).pdf(x)),
        "GLLI": (f"K = {SAME_RANK}", _inverse_gaussian),
    },
    "nonnegative": {
        "GEE": ("exponential", lambda x, v: stats.expon(0, 1 / v["lambda"]).pdf(x)),
        "GEEA": ("exponential, ARD", lambda x, v: stats.lomax(
            v["alpha0"], scale=v["beta0"]).pdf(x)),
        "GTT": ("truncated normal", lambda x, v: stats.truncnorm(
            -v["mu_U"] * v["tau_U"] ** 0.5, np.inf, v["mu_U"], v["tau_U"] ** -0.5).pdf(x)),
        "GTTN": ("hierarchical", _truncated_hyper),
        "GL21": ("K = 2", lambda x, v: v["lambda"] * (np.pi / (2 * v["lambda"])) ** 0.5
                 * special.erfc(x * (v["lambda"] / 2) ** 0.5)),
    },
    "Poisson": {
        "PGG": ("gamma", lambda x, v: stats.gamma(v["a"], scale=1 / v["b"]).pdf(x)),
        "PGGG": ("hierarchical", lambda x, v: stats.betaprime(
            v["a"], v["a_prime"], scale=v["a_prime"] / v["b_prime"]).pdf(x)),
    },
}  # fmt: skip
SURFACES: dict[str, tuple[str, float, Callable[[Array, Array], Array]]] = {  # and where they begin
    "GL21: a row, K = 2": ("GL21", 0.0, lambda x, y: np.exp(
        -hyperparameters("GL21")["lambda"] / 2 * (x + y) ** 2)),
    "GVG: a row, gamma = 1, other row (1, 1)": ("GVG", -8.0, lambda x, y: np.exp(-((x - y) ** 2))),
}  # fmt: skip


def draw_priors(folder: str | Path) -> list[Path]:
    """Draw the priors with their default hyperparameters: of entries, and of rows of two."""
    with style.drawing():
        from matplotlib.colors import LinearSegmentedColormap

        figure, axes = style.panels(6, 3, style.WIDE, 10.5)
        tails, far = axes[5], np.geomspace(0.1, 100, 301)
        for ax, (title, models) in zip(axes, DENSITIES.items(), strict=False):
            start, stop = (-6, 10) if title == "real-valued" else (1e-6, 8)
            x = np.linspace(start, stop, 641)
            for model, (words, density) in models.items():
                known = hyperparameters(model.partition(" ")[0])
                _prior(ax, model, x, density(x, known), f"{style.label(model)} {words}".strip())
                _prior(tails, model, far, density(far, known))
            ax.set(title=title, xlabel="entry", ylabel="density", ylim=(0, None))
            ax.legend(loc="upper right", handlelength=1.6, fontsize=6)
        for ax, (title, (model, start, surface)) in zip(axes[3:], SURFACES.items(), strict=False):
            fade = LinearSegmentedColormap.from_list("fade", ["white", style.LOOKS[model][0]])
            grid = np.linspace(start, 8, 61)
            ax.contourf(grid, grid, surface(*np.meshgrid(grid, grid)), 10, cmap=fade)
            ax.set(title=title, xlabel="first entry", ylabel="second entry", aspect="equal")
        tails.set(title="tails of all", xlabel="entry", ylabel="density", xscale="log",
                  yscale="log", ylim=(1e-6, 2))  # fmt: skip
        style.plain_ticks(tails.xaxis)
        style.plain_ticks(tails.yaxis)
        style.set_title(figure, "Priors with the default hyperparameters")
        return style.save(figure, folder, "priors")


def _prior(ax: style.Axes, model: str, x: Array, y: Array, words: str | None = None) -> None:
    every = (0.02 * list(style.LOOKS).index(model), 0.3)
    name = style.name_of(ax, "prior", model)
    ax.plot(x, y, label=words, markevery=every, gid=name, **style.look(model))


def draw_values(folder: str | Path, names: Iterable[str]) -> list[Path]:
    """Draw histograms of the values of those datasets that are here."""
    here = [name for name in names if datasets.present(name)]
    if not here:
        return []
    with style.drawing():
        cols = min(4, len(here))
        width, height = max(style.COLUMN, style.WIDE * cols / 4), 3.8 * -(-len(here) // cols) + 0.8
        figure, axes = style.panels(len(here), cols, width, height)
        for ax, name in zip(axes, here, strict=True):
            values = datasets.load(name).X.rows.values
            low, high = values.min(), values.max()
            whole = np.array_equal(values, np.round(values)) and high - low <= 120
            edges = np.arange(low - 0.5, high + 1) if whole else np.linspace(low, high, 41)
            ax.hist(values, edges.tolist(), color="#6b8fb5", linewidth=0)
            ax.set_title(name, loc="left")
            ax.grid(axis="x", visible=False)
        figure.supxlabel("value", fontsize=6.5)
        figure.supylabel("entries", fontsize=6.5)
        style.set_title(figure, "Values of the datasets")
        return style.save(figure, folder, "values")
