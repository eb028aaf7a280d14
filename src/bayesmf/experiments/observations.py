"""The paper's seven observations as inequalities, judged on stored results with their errors.

Each is a contrast of logarithms of test errors: the mean over some models less that over others. A
claim that one side is worse holds if the contrast exceeds two standard errors. A claim of no
difference holds if the whole interval lies within ``MARGIN``. Repeats that all models share
(``sound``) are compared pairwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from bayesmf.experiments.tables import Cell

MARGIN = 0.02  # two percent of the error is no difference
REAL, NONNEGATIVE = ("GGG", "GGGU", "GGGA", "GGGW", "GLL", "GLLI", "GVG"), (
    "GEE", "GEEA", "GTT", "GTTN", "GL21",
)  # fmt: skip
POISSON = ("PGG", "PGGG")


class Check(NamedTuple):
    """``more`` have larger errors than ``less``; or both the same, if ``equal``.

    ``at`` is "all" settings, "last" (the largest rank or fraction), or "rise": the error at the
    largest rank over that at the best one.
    """

    claim: str
    experiment: str
    more: tuple[str, ...]
    less: tuple[str, ...]
    at: str = "all"
    equal: bool = False


OBSERVATIONS: dict[int, tuple[str, tuple[Check, ...]]] = {
    1: ("Poisson models predict worse than Gaussian ones, and overfit", (
        Check("worse in cross-validation", "cross_validation", POISSON, NONNEGATIVE),
        Check("worse under noise", "noise", POISSON, NONNEGATIVE),
        Check("rise more with the rank", "model_selection", POISSON, ("GEE", "GTT"), "rise"),
        Check("converge less deep", "convergence", POISSON, NONNEGATIVE),
    )),
    2: ("Nonnegative models converge less deep and overfit less at high sparsity than GGG", (
        Check("converge less deep", "convergence", NONNEGATIVE, ("GGG",)),
        Check("GGG worse at the highest sparsity", "sparsity", ("GGG",), NONNEGATIVE, "last"),
        Check("GGG worse than GGGW there", "sparsity", ("GGG",), ("GGGW",), "last"),
    )),
    3: ("Real-valued and semi-nonnegative models are the same", (
        Check("GGG and GEG", "model_selection", ("GGG",), ("GEG",), equal=True),
        Check("GVG and GVnG", "model_selection", ("GVG",), ("GVnG",), equal=True),
        Check("GGG and GEG, by sparsity", "sparsity", ("GGG",), ("GEG",), equal=True),
    )),
    4: ("Drawing rows or single entries makes no difference (GGG, GGGU)", (
        Check("by sparsity", "sparsity", ("GGG",), ("GGGU",), equal=True),
        Check("by rank", "model_selection", ("GGG",), ("GGGU",), equal=True),
        Check("in cross-validation", "cross_validation", ("GGG",), ("GGGU",), equal=True),
    )),
    5: ("ARD and Wishart priors prevent overfitting as the rank grows", (
        Check("GGG rises more than GGGA", "model_selection", ("GGG",), ("GGGA",), "rise"),
        Check("GGG rises more than GGGW", "model_selection", ("GGG",), ("GGGW",), "rise"),
        Check("GEE rises more than GEEA", "model_selection", ("GEE",), ("GEEA",), "rise"),
    )),
    6: ("Laplace priors reduce overfitting as the rank grows", (
        Check("GGG rises more than GLL", "model_selection", ("GGG",), ("GLL",), "rise"),
        Check("GGG rises more than GLL at scale 10^-1/4", "model_selection", ("GGG",),
              ("GLL narrow",), "rise"),
    )),
    7: ("Other hierarchical priors make no difference (GLLI, GTTN, PGGG)", (
        Check("GLL and GLLI", "model_selection", ("GLL",), ("GLLI",), equal=True),
        Check("GTT and GTTN", "model_selection", ("GTT",), ("GTTN",), equal=True),
        Check("PGG and PGGG", "model_selection", ("PGG",), ("PGGG",), equal=True),
    )),
}  # fmt: skip


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


def judge(found: Sequence[Cell]) -> list[Verdict]:
    """Every check on every dataset that has results for it."""
    places = dict.fromkeys((c.protocol, c.experiment, c.dataset, c.variant) for c in found)
    verdicts = []
    for number, (_, checks) in OBSERVATIONS.items():
        for check in checks:
            for place in places:
                if place[1] != check.experiment:
                    continue
                here = [c for c in found if c[:4] == place]
                estimate = _contrast(check, here)
                if estimate is not None:
                    verdicts.append(
                        Verdict(number, check.claim, place[0], *place[2:], *estimate,
                                _word(check, *estimate))
                    )  # fmt: skip
    return verdicts


def _word(check: Check, contrast: float, error: float) -> str:
    if not np.isfinite(error):
        return "undecided"
    low, high = contrast - 2 * error, contrast + 2 * error
    if check.equal:
        if low > -MARGIN and high < MARGIN:
            return "holds"
        return "fails" if low > MARGIN or high < -MARGIN else "undecided"
    return "holds" if low > 0 else "fails" if high < 0 else "undecided"


def _contrast(check: Check, here: Iterable[Cell]) -> tuple[float, float] | None:
    """Estimate and standard error, or None where a model has no results."""
    by_model: dict[str, list[Cell]] = {}
    for cell in here:
        by_model.setdefault(cell.model, []).append(cell)
    sides: list[dict[int, float]] = []
    for models in (check.more, check.less):
        known = [_logs(by_model[m], check.at) for m in models if m in by_model]
        known = [logs for logs in known if logs]
        if not known:
            return None
        common = set.intersection(*(set(logs) for logs in known))
        sides.append({r: float(np.mean([logs[r] for logs in known])) for r in sorted(common)})
    shared = sorted(set(sides[0]) & set(sides[1]))
    paired = next(iter(by_model.values()))[0].protocol == "sound"
    if paired:
        sides = [{r: side[r] for r in shared} for side in sides]
    values = [np.array(list(side.values())) for side in sides]
    if min(v.size for v in values) == 0:
        return None
    gap = float(values[0].mean() - values[1].mean())
    if min(v.size for v in values) < 2:
        return gap, float("nan")
    if paired:
        return gap, float(np.std(values[0] - values[1], ddof=1) / len(shared) ** 0.5)
    return gap, float(np.hypot(*(np.std(v, ddof=1) / v.size**0.5 for v in values)))


def _logs(cells: list[Cell], at: str) -> dict[int, float]:
    """Logarithms of the errors of a model by repeat, of those that worked at every setting."""
    cells = sorted((c for c in cells if c.values), key=lambda c: c.setting or 0.0)
    if not cells:
        return {}
    repeats = sorted(set.intersection(*(set(c.repeats) for c in cells)))
    by_repeat = [dict(zip(c.repeats, c.values, strict=True)) for c in cells]
    logs = np.log([[known[r] for r in repeats] for known in by_repeat])  # (settings, repeats)
    if at == "last":
        found = logs[-1]
    elif at == "rise":
        found = logs[-1] - logs[int(np.argmin(logs.mean(axis=1)))]
    else:
        found = logs.mean(axis=0)
    return dict(zip(repeats, found.tolist(), strict=True))
