"""The report of a comparison and of its best fit: numbers gathered for the page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesmf.comparison.entrants import group
from bayesmf.comparison.words import WORST
from bayesmf.model.presets import COUNTS, NONNEGATIVE, REAL, SEMI
from bayesmf.report import ColumnRow, RankingRow, ReportData, write
from bayesmf.report.gather import describe

if TYPE_CHECKING:
    from bayesmf.comparison.compare import Comparison
    from bayesmf.comparison.race import Standing

_KINDS = {
    REAL: "real", NONNEGATIVE: "nonnegative", SEMI: "semi-nonnegative", COUNTS: "counts",
    "baseline": "baseline",
}  # fmt: skip


def write_page(found: Comparison, path: str | Path, title: str, **settings: object) -> None:
    """Write the report of a comparison, with its best model fitted to all entries."""
    trial = found.lanes[0].trial
    own = {
        "models": ", ".join(lane.trial.name for lane in found.lanes), "folds": found.folds,
        "candidate ranks": ", ".join(map(str, trial.ranks)), "draws": trial.draws,
        "burn-in": trial.burn_in, "seed": trial.seed,
    }  # fmt: skip
    parts = describe(found.fit_best(), found.X)
    best = f"{found.best_} with rank {found.best_rank_}"
    curves = {
        model: [(k, e, None if np.isnan(s) else s) for k, e, s in curve]
        for model, curve in found.rank_curves().items()
    }
    page = ReportData(
        title=title, subtitle=f"{best}, the best of {len(found.lanes)} models",
        settings={**own, **settings}, recommendation=found.recommendation,
        ranking=[_row(standing, found) for standing in found.standings], excluded=found.excluded,
        rank_curves=curves, worst=_worst(found), calibration=found.calibration, **parts,
    )  # fmt: skip
    write(page, path)


def _worst(found: Comparison) -> list[ColumnRow]:
    """The columns that are predicted worst, the worst first."""
    return [
        ColumnRow(
            one.column, one.entries,
            *(value if np.isfinite(value) else None
              for value in (one.skill, one.correlation, one.coverage)),
        )
        for one in found.columns()[:WORST]
    ]  # fmt: skip


def _row(standing: Standing, found: Comparison) -> RankingRow:
    kind = _KINDS[group(standing.model.partition(" + ")[0], found._own)]
    numbers = {
        field: None if np.isnan(value) or np.isinf(value) else value
        for field in (
            "mse", "mse_error", "behind", "log_density", "coverage", "loo", "loo_unreliable"
        )
        for value in [getattr(standing, field)]
    }  # fmt: skip
    known = ("recommended", "tie", "worse", "stopped early")
    return RankingRow(
        standing.model, kind, standing.rank, folds=standing.folds, **numbers,
        status=standing.status if standing.status in known else "worse",
    )  # fmt: skip
