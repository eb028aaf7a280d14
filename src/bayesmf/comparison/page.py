"""The report of a comparison and of its best fit: numbers gathered for the page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesmf.comparison import words
from bayesmf.comparison.entrants import group, meaning
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


def write_page(
    found: Comparison, path: str | Path, title: str, advice: str = "", **settings: object
) -> None:
    """Write the report of a comparison, with its best model fitted to all entries."""
    trial = found.lanes[0].trial
    own = {
        "models": len(found.standings), "folds": found.folds,
        "candidate ranks": ", ".join(map(str, trial.ranks)), "draws": trial.draws,
        "burn-in": trial.burn_in,
    }  # fmt: skip
    parts = describe(found.fit_best(), found.X)
    best = f"{found.best_} with rank {found.best_rank_}"
    curves = {
        model: [(k, e, None if np.isnan(s) else s) for k, e, s in curve]
        for model, curve in found.rank_curves().items()
    }
    page = ReportData(
        title=title,
        subtitle=f"The best of {len(found.lanes)} models: {best}" if len(found.lanes) > 1 else best,
        about=meaning([found.best_]), advice=advice,
        settings={**own, **settings}, recommendation=words.sentences(found),
        meaning=meaning(standing.model for standing in found.standings),
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
        for one in words.worst(found)[: words.WORST]
    ]  # fmt: skip


def _row(standing: Standing, found: Comparison) -> RankingRow:
    kind = _KINDS[group(standing.model.partition(" + ")[0], found._own)]
    numbers = {
        field: value if np.isfinite(value := getattr(standing, field)) else None
        for field in ("mse", "mse_error", "behind", "log_density", "coverage")
    }
    return RankingRow(
        standing.model, kind, standing.rank or None, folds=standing.folds, **numbers,
        status=standing.status,
    )  # fmt: skip
