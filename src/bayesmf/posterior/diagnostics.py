"""Whether chains agree: R-hat, effective sample sizes and errors of what is identifiable.

Factors rotate and change places, so nothing is diagnosed on them. What chains agree on is the
training error, what the likelihood monitors (the noise precision), the ARD precisions in order of
size, and the predictions of cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesmf.data.observed import ObservedMatrix
from bayesmf.posterior.agreement import RHAT_LIMIT, split_rhat
from bayesmf.posterior.verdict import FINE, UNUSABLE, USABLE, Evidence, gather, judge
from bayesmf.streams import Array

if TYPE_CHECKING:
    from bayesmf.posterior.posterior import Posterior

TOO_FEW = 20  # draws, with which chains cannot be compared
ESS_LIMIT = 50  # fewer effective draws say little about an interval
SCREENED = 100_000  # cells that are looked at after every fit
_UNSEEN = (
    "The draws of the factors were not kept, so that nothing is known of predictions; sample with "
    "keep='all'."
)
_WORDS = {
    FINE: "The results can be used.",
    USABLE: "The results can be used, with caution.",
    UNUSABLE: "Do not use these results.",
}


@dataclass(frozen=True)
class Diagnosis:
    """One quantity: split R-hat, bulk and tail effective sample size, error of the mean."""

    quantity: str
    mean: float
    sd: float
    rhat: float
    ess_bulk: float
    ess_tail: float
    mcse: float


def diagnose(name: str, draws: Array) -> Diagnosis:
    """Diagnose draws (chains, draws) of one number."""
    from arviz_stats.base import array_stats

    draws = np.asarray(draws, dtype=np.float64)
    mean, sd = float(draws.mean()), float(draws.std(ddof=1)) if draws.size > 1 else 0.0
    if draws.shape[1] < 4 or np.ptp(draws) == 0:
        return Diagnosis(name, mean, sd, *[float("nan")] * 4)
    axes = {"chain_axis": 0, "draw_axis": 1}
    return Diagnosis(
        name,
        mean,
        sd,
        float(array_stats.rhat(draws, **axes)),
        float(array_stats.ess(draws, method="bulk", **axes)),
        float(array_stats.ess(draws, method="tail", prob=(0.05, 0.95), **axes)),
        float(array_stats.mcse(draws, method="mean", **axes)),
    )


def _chance(draws: int) -> float:
    """An R-hat that chains of so few independent draws reach by chance, one time in a thousand."""
    return (1 + 10 / max(1, draws // 2)) ** 0.5


@dataclass(frozen=True)
class Summary:
    """What `Posterior.summary` found; printing it says it in words.

    ``level`` is "fine", "usable" or "do not use"; ``advice`` has the reasons and what to change,
    ``evidence`` what it was judged by, ``quantities`` the figures of single numbers, ``cell_rhat``
    the split R-hat of all cells (empty if unknown).
    """

    model: str
    chains: int
    draws: int
    level: str
    advice: tuple[str, ...]
    evidence: Evidence
    quantities: tuple[Diagnosis, ...]
    cell_rhat: Array

    @property
    def trusted(self) -> bool:
        """Whether results may be used, if with caution."""
        return self.level != UNUSABLE

    @property
    def verdict(self) -> str:
        """The level in words."""
        return _WORDS[self.level]

    def __str__(self) -> str:
        width = max([24, *(len(d.quantity) + 1 for d in self.quantities)])
        lines = [
            f"{self.model}: {self.chains} chains of {self.draws} draws. {self.verdict}",
            *self.advice,
            f"{'':{width}}{'mean':>10}{'sd':>10}{'R-hat':>8}{'ESS bulk':>10}{'ESS tail':>10}",
        ]
        for d in self.quantities:
            lines.append(
                f"{d.quantity:{width}}{d.mean:10.4g}{d.sd:10.3g}{d.rhat:8.3f}"
                f"{d.ess_bulk:10.0f}{d.ess_tail:10.0f}"
            )
        if self.cell_rhat.size:
            worst, share = self.cell_rhat.max(), np.mean(self.cell_rhat > RHAT_LIMIT)
            lines.append(
                f"{self.cell_rhat.size} cells: largest split R-hat {worst:.3f}, "
                f"{share:.2%} above {RHAT_LIMIT}"
            )
        return "\n".join(lines)


def identifiable(posterior: Posterior) -> dict[str, Array]:
    """Draws (chains, draws) of single numbers about which chains can agree, by name."""
    kept, settings = posterior.draws, posterior.settings
    series: dict[str, Array] = {}
    sweeps = posterior.train_mse[:, settings["burn_in"] :]
    series["training error"] = sweeps[:, settings["thin"] - 1 :: settings["thin"]]
    likelihood = posterior.model.likelihood
    own = {name: kept[name] for name in likelihood.variables(posterior.shape)}
    series |= likelihood.monitored(own, series["training error"][:, : settings["draws"]])
    for name, title in (("rows", "spread of row effects"), ("cols", "spread of column effects")):
        if f"bias.{name}_precision" in kept:
            series[title] = kept[f"bias.{name}_precision"] ** -0.5
    for name in ("relevance", "rows.relevance", "cols.relevance"):
        if name in kept:
            ordered = np.sort(kept[name], axis=2)
            for k in range(ordered.shape[2]):
                series[f"{name}, {k + 1}. smallest"] = ordered[:, :, k]
    return series


def summarise(
    posterior: Posterior, n_cells: int, screen: int | None = None, X: ObservedMatrix | None = None
) -> Summary:
    """Diagnose a posterior, with its data if they are at hand."""
    found = [diagnose(name, draws) for name, draws in identifiable(posterior).items()]
    settings, cells = posterior.settings, np.empty(0)
    evidence, known = Evidence(), knows_cells(posterior)
    if known:
        evidence = gather(posterior, X)
        I, J = posterior.shape  # noqa: E741
        rows = I if screen is None else min(I, max(1, screen // J))
        chosen = np.linspace(0, I - 1, rows).round().astype(int)
        U, V = _by_chain(posterior)
        cells = _screen(U if rows == I else U[:, :, chosen], V)
        found += [
            diagnose(_cell(posterior, i, j), draws)
            for i, j, draws in some_cells(posterior, n_cells)
        ]
    draws = settings["draws"]
    share = float(np.mean(cells > max(RHAT_LIMIT, _chance(draws)))) if cells.size else 0.0
    level, advice = judge(evidence, draws, share) if known else (USABLE, [_UNSEEN])
    return Summary(
        posterior.model.name, settings["chains"], draws, level, tuple(advice), evidence,
        tuple(found), cells,
    )  # fmt: skip


def knows_cells(posterior: Posterior) -> bool:
    """Whether all was kept that predictions of cells are made of."""
    biases = {"bias.mean", "bias.rows", "bias.cols"} if posterior.model.biases else set()
    return {"U", "V"} | biases <= set(posterior.draws)


def _by_chain(posterior: Posterior) -> tuple[Array, Array]:
    """Draws (chains, draws, n, .) of two arrays whose product is the mean of all cells."""
    U, V = posterior.predictors()
    first = posterior.draws["U"].shape[:2]
    return U.reshape(*first, *U.shape[1:]), V.reshape(*first, *V.shape[1:])


def _cell(posterior: Posterior, i: int, j: int) -> str:
    """The name of a cell: labels, or positions where there are none."""
    rows, cols = posterior.row_labels, posterior.col_labels
    return f"cell ({i if rows is None else rows[i]}, {j if cols is None else cols[j]})"


def some_cells(posterior: Posterior, n: int) -> list[tuple[int, int, Array]]:
    """Predictions of a few cells, always the same of a matrix: row, column, (chains, draws)."""
    U, V = _by_chain(posterior)
    rng = np.random.default_rng(0)
    i, j = (rng.integers(0, F.shape[2], n) for F in (U, V))
    values = np.einsum("cdtk,cdtk->cdt", U[:, :, i], V[:, :, j])
    return list(zip(i.tolist(), j.tolist(), np.moveaxis(values, 2, 0), strict=True))


def _screen(U: Array, V: Array) -> Array:
    """Split R-hat of the predictions of all cells, in blocks of rows."""
    chains, draws, rows, _ = U.shape
    if draws < 4:
        return np.empty(0)
    step = max(1, 4_000_000 // (chains * draws * V.shape[2]))
    blocks = []
    for a in range(0, rows, step):
        values = U[:, :, a : a + step] @ V.swapaxes(2, 3)
        blocks.append(split_rhat(values.reshape(chains, draws, -1)))
    return np.concatenate(blocks)
