"""The paper's seven observations as inequalities, judged on stored results with their errors.

Each is a contrast of logarithms of test errors: the mean over some models less that over others. A
claim that one side is worse holds if the contrast exceeds two standard errors. A claim of no
difference holds if the whole interval lies within ``MARGIN``. Repeats that all models share
(``sound``) are compared pairwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from bayesmf.metrics import standard_error
from bayesmf.study.cells import Cell, grouped
from bayesmf.study.published import read

MARGIN = 0.02  # two percent of the error is no difference


class Check(NamedTuple):
    """Models ``more`` have larger errors than ``less``; or both the same, if ``equal``.

    ``at`` is "all" settings, "last" (the largest rank or fraction), or "rise": the error at the
    largest rank over that at the best one.
    """

    observation: int
    claim: str
    experiment: str
    more: list[str]
    less: list[str]
    at: str
    equal: bool


CHECKS = [
    Check(int(row["observation"]), row["claim"], row["experiment"], row["more"].split(";"),
          row["less"].split(";"), row["at"], bool(row["equal"]))
    for row in read("observations.csv")
]  # fmt: skip


class Verdict(NamedTuple):
    """What a check found on one dataset."""

    observation: int
    claim: str
    protocol: str
    dataset: str
    variant: str
    contrast: float
    error: float
    verdict: str


def judge(found: Sequence[Cell], checks: Sequence[Check] = CHECKS) -> list[Verdict]:
    """Every check on every dataset that has results for it."""
    places = grouped(found, "protocol", "experiment", "dataset", "variant").values()
    verdicts = []
    for check, here in product(checks, places):
        c = here[0]
        estimate = _contrast(check, here) if c.experiment == check.experiment else None
        if estimate is not None:
            about = (check.observation, check.claim, c.protocol, c.dataset, c.variant)
            verdicts.append(Verdict(*about, *estimate, _word(check, *estimate)))
    return verdicts


def _word(check: Check, contrast: float, error: float) -> str:
    low, high = contrast - 2 * error, contrast + 2 * error  # NaN of single repeats: undecided
    if check.equal:
        if low > -MARGIN and high < MARGIN:
            return "holds"
        return "fails" if low > MARGIN or high < -MARGIN else "undecided"
    return "holds" if low > 0 else "fails" if high < 0 else "undecided"


def _contrast(check: Check, here: Sequence[Cell]) -> tuple[float, float] | None:
    """Estimate and standard error, or None where a model has no results."""
    by_model = grouped(here, "model")
    sides: list[dict[int, float]] = []  # mean logarithms by repeat
    for models in (check.more, check.less):
        known = [logs for m in models if m in by_model and (logs := _logs(by_model[m], check.at))]
        common = sorted(set.intersection(*map(set, known))) if known else []
        sides.append({r: float(np.mean([logs[r] for logs in known])) for r in common})
    paired = here[0].protocol == "sound"
    if paired:
        shared = sorted(set(sides[0]) & set(sides[1]))
        sides = [{r: side[r] for r in shared} for side in sides]
    more, less = (np.array(list(side.values())) for side in sides)
    if not more.size or not less.size:
        return None
    gap = float(more.mean() - less.mean())
    if paired:
        return gap, standard_error(more - less)
    return gap, float(np.hypot(standard_error(more), standard_error(less)))


def _logs(cells: list[Cell], at: str) -> dict[int, float]:
    """Logarithms of the errors of a model by repeat, of those that worked at every setting."""
    cells = sorted((c for c in cells if c.values), key=lambda c: c.setting or 0.0)
    if not cells:
        return {}
    repeats = sorted(set.intersection(*(set(c.repeats) for c in cells)))
    by_repeat = [dict(zip(c.repeats, c.values, strict=True)) for c in cells]
    logs = np.log([[known[r] for r in repeats] for known in by_repeat])  # (settings, repeats)
    found = logs.mean(axis=0) if at == "all" else logs[-1]
    if at == "rise":
        found = logs[-1] - logs[int(np.argmin(logs.mean(axis=1)))]
    return dict(zip(repeats, found.tolist(), strict=True))
