"""What a comparison recommends, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesmf.comparison.race import is_worse
from bayesmf.posterior.loo import MANY

if TYPE_CHECKING:
    from bayesmf.comparison.compare import Comparison
    from bayesmf.comparison.race import Standing

WORST = 5  # columns that are named
_POOR = 0.1  # skill below which a column is predicted hardly better than by its average


def recommendation(found: Comparison) -> str:
    """What to use and why; if nothing beats an average, that comes first."""
    best = found.standings[0]
    return " ".join(
        part
        for part in (
            _progress(found),
            _against_baselines(found),
            _use(found, best),
            _ties(found),
            _screen(found, best),
            _columns(found),
        )
        if part
    )


def _progress(found: Comparison) -> str:
    if not found.interrupted:
        return ""
    return f"Stopped early: this is what {found.standings[0].folds} of {found.folds} folds say."


def _against_baselines(found: Comparison) -> str:
    """A first sentence where no model beats the best baseline by more than noise."""
    if not found._baselines:
        return ""
    rival = found._baselines[0]
    if is_worse(rival, found._best, "error"):
        return ""
    return (
        f"No model beats the baseline {rival.trial.name} by more than noise (mean squared error "
        f"{rival.errors.mean():.4g}): there is little to be learnt from these entries."
    )


def _use(found: Comparison, best: Standing) -> str:
    unit = ", in sizes of their columns," if found._best.trial.relative else ""
    text = (
        f"Use {best.model} with rank {best.rank}: its mean squared error on held-out entries{unit} "
        f"is {best.mse:.4g} (standard error {best.mse_error:.2g}, {best.folds} folds)"
    )
    if np.isfinite(best.log_density):
        text += f", their mean log density {best.log_density:.3f}"
    if np.isfinite(best.coverage):
        text += f", and its 90 % intervals hold {best.coverage:.0%} of them"
    text += "."
    rival = found._baselines[0] if found._baselines else None
    if rival is not None and np.isfinite(rival.errors.mean()) and not _against_baselines(found):
        gain = 1 - best.mse / rival.errors.mean()
        text += f" That is {gain:.0%} less than the best baseline ({rival.trial.name})."
    return text


def _ties(found: Comparison) -> str:
    """Who is as good, by the measure that decided."""
    models = [s for s in found.standings if s.status in ("recommended", "tie", "worse")]
    models = [s for s in models if s.folds == found.standings[0].folds]
    if len(models) < 2:
        return ""
    what = {"error": "error", "density": "log density", "coverage": "coverage"}[found.by]
    if not found.ties:
        others = "the other" if len(models) == 2 else f"the {len(models) - 1} others"
        far = ", or they fall far behind in log density" if found.by == "error" else ""
        return f"By {what}, a paired test tells it from {others} on all folds{far}."
    sentence = f"By {what}, a paired test does not tell it from {listed(found.ties)}"
    if found.by == "error":
        return f"{sentence}; its log density is the largest of these."
    return f"{sentence}."


def _screen(found: Comparison, best: Standing) -> str:
    """Whom PSIS-LOO of training entries puts first, and how far to trust it."""
    judged = [s for s in found.standings if np.isfinite(s.loo)]
    if best not in judged or len(judged) < 2:
        return ""
    first = max(judged, key=lambda standing: standing.loo)
    text = "PSIS-LOO, from training entries alone, "
    text += "puts it first too" if first is best else f"puts {first.model} first"
    if first.loo_unreliable > MANY:
        text += (
            f"; but k-hat is too large for {first.loo_unreliable:.0%} of them, so that its log "
            f"density, {first.loo:.3f}, is uncertain and mostly too high: go by the folds"
        )
    return f"{text}."


def _columns(found: Comparison) -> str:
    """Columns that are hardly predicted, if there are some."""
    poor = [column for column in found.columns() if column.skill < _POOR]
    if not poor:
        return ""
    names = listed([repr(column.column) for column in poor[:WORST]])
    hardly = "predicted hardly better than by"
    if len(poor) == 1:
        return f"Column {names} is {hardly} its own average."
    return f"{len(poor)} columns, such as {names}, are {hardly} their averages."


def listed(words: Sequence[str]) -> str:
    """Words with commas, and an "and" before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
