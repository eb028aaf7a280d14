"""What a comparison recommends, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesmf.comparison.race import USABLE, is_worse
from bayesmf.posterior.loo import MANY

if TYPE_CHECKING:
    from bayesmf.comparison.compare import Column, Comparison
    from bayesmf.comparison.race import Lane, Standing

WORST = 5  # columns that are named
ENOUGH = 10  # held-out entries, with fewer of which chance decides how well a column does
_POOR = 0.1  # skill below which a column is predicted hardly better than by its average


def sentences(found: Comparison) -> list[str]:
    """What to use and why, one thing after the other, of which the first is enough for a hurry."""
    best = found.standings[0]
    first = (_progress(found), _against_baselines(found), _use(found, best))
    rest = (_alone(found), _ties(found, best), _screen(found, best), _columns(found))
    return [" ".join(filter(None, first)), *filter(None, rest)]


def _progress(found: Comparison) -> str:
    """How far it came, and who has been ahead in a short chain, if it was stopped."""
    if not found.interrupted:
        return ""
    done = found.standings[0].folds
    said = f"Stopped early: this is what {done} of {found.folds} folds {_s(done, 'says', 'say')}."
    short = {lane.trial.name for lane in found.lanes if lane.trial.short}
    ahead = [s for s in found.standings if s.model in short and s.behind < 0]
    if ahead:
        first = min(ahead, key=lambda standing: standing.behind)
        gain = percent(-first.behind)
        said += f" {first.model} has an error {gain} smaller so far, in a short chain only."
    return said


def _unbeaten(found: Comparison) -> Lane | None:
    """The best baseline, if the best model does not beat it by more than noise."""
    rival = found._baselines[0] if found._baselines else None
    return None if rival is None or is_worse(rival, found._best, "error") else rival


def useless(found: Comparison) -> bool:
    """Whether averages do as well as the best model."""
    rival = _unbeaten(found)
    return rival is not None and rival.trial.is_average


def _against_baselines(found: Comparison) -> str:
    """A first sentence where no model beats the best baseline by more than noise."""
    rival = _unbeaten(found)
    if rival is None:
        return ""
    rest = ", which does not say how sure it is."
    if useless(found):
        rest = ": there is little to be learnt from these entries."
    return (
        f"No model beats the baseline {rival.trial.name} by more than noise (mean squared error "
        f"{rival.errors.mean():.4g}){rest}"
    )


def _use(found: Comparison, best: Standing) -> str:
    """The recommended model and how well it predicts; no advice to use what is of no use."""
    named = f"{best.model} with rank {best.rank}"
    text = f"Of the models, {named} does best" if useless(found) else f"Use {named}"
    unit = ", each divided by the size of its column," if found._best.trial.relative else ""
    error = "" if np.isnan(best.mse_error) else f"standard error {best.mse_error:.2g}, "
    text += (
        f": its mean squared error on held-out entries{unit} is {best.mse:.4g} "
        f"({error}{best.folds} {_s(best.folds, 'fold')})"
    )
    rival = found._baselines[0] if found._baselines and _unbeaten(found) is None else None
    if rival is not None and np.isfinite(rival.errors.mean()):
        gain = 1 - best.mse / rival.errors.mean()
        text += f", {percent(gain)} less than that of the best baseline ({rival.trial.name})"
    if np.isfinite(best.coverage):
        text += f", and its 90 % intervals hold {percent(best.coverage)} of them"
    return f"{text}."


def _alone(found: Comparison) -> str:
    """What cannot be known where little took part."""
    if found._baselines:
        return ""
    others = "" if len(found.standings) > 1 else "other model and no "
    return (
        f"No {others}baseline took part, so nothing says whether that is good: compare it with "
        "some, such as effects."
    )


def _ties(found: Comparison, best: Standing) -> str:
    """Who is as good, by the measure that decided."""
    models = [s for s in found.standings if s.status in ("recommended", "tie", "worse")]
    models = [s for s in models if s.folds == best.folds]
    density = f"{best.log_density:.3f}"
    if len(models) < 2:
        return f"Its mean log density is {density}." if np.isfinite(best.log_density) else ""
    what = f"log density (its mean is {density})" if found.by == "density" else found.by
    near = ""
    if found.by == "coverage":
        near = (
            f"Of the models whose error is within {percent(USABLE - 1)} of the smallest, its "
            "intervals hold most nearly what they should. "
        )
    if not found.ties:
        others = "the other" if len(models) == 2 else f"the {len(models) - 1} others"
        fall = "it falls" if len(models) == 2 else "they fall"
        far = f", or {fall} far behind in log density" if found.by == "error" else ""
        return f"{near}By {what}, a paired test tells it from {others} on all folds{far}."
    said = f"{near}By {what}, a paired test does not tell it from {listed(found.ties)}"
    if found.by == "error":
        said += f"; its mean log density, {density}, is the largest of these"
    return f"{said}."


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
            f"; but k-hat is too large for {percent(first.loo_unreliable)} of them, so that its "
            f"log density, {first.loo:.3f}, is uncertain and mostly too high: go by the folds"
        )
    return f"{text}."


def _columns(found: Comparison) -> str:
    """Columns that are hardly predicted, if there are some."""
    poor = [column for column in worst(found) if column.skill < _POOR]
    if not poor:
        return ""
    names = listed([repr(column.column) for column in poor[:WORST]])
    hardly = "predicted hardly better than by"
    if len(poor) == 1:
        return f"Column {names} is {hardly} its own average."
    some = "such as " if len(poor) > WORST else ""
    return f"{len(poor)} columns, {some}{names}, are {hardly} their averages."


def worst(found: Comparison) -> list[Column]:
    """Columns with enough entries to be judged, the one with least skill first."""
    return [column for column in found.columns() if column.entries >= ENOUGH]


def listed(words: Sequence[str]) -> str:
    """Words with commas, and an "and" before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def percent(share: float) -> str:
    """A share in whole per cent."""
    return f"{100 * share:.0f} %"


def _s(count: int, one: str, many: str = "") -> str:
    """The word for one, or for several."""
    return one if count == 1 else many or f"{one}s"
