"""Priors crossed with likelihoods: tables, variance components, and what a choice of each brings.

All of it follows from the errors, log densities and coverages of single folds (`fold_table`), from
which `cells_of` makes the cells again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesmf._files import Row
from bayesmf.metrics import standard_error
from bayesmf.streams import Array
from bayesmf.study.cells import Cell, Table, grouped
from bayesmf.study.observations import CHECKS, Check, Verdict, judge
from bayesmf.study.tasks import Result

NESTED, RANK, HIDDEN = None, 20.0, 0.9  # settings: rank chosen inside, one for all, few entries
EQUAL, POISSON = "equal", "Poisson"  # the likelihoods of the study
COUNTS = (POISSON, "negative binomial")
AGAIN = (EQUAL, "cols", "both", "censored", "ordinal", *COUNTS)  # those at all settings
BASE = "GGG"  # the prior without a choice
SAMPLES = 2000  # of the folds, with replacement
INTERVAL = (5, 95)  # percent

CHECKED: dict[float | None, set[str]] = {  # models that observations need at a setting
    RANK: {m for c in CHECKS if c.at == "rise" for m in (*c.more, *c.less)},
    HIDDEN: {m for c in CHECKS if c.experiment == "sparsity" for m in (*c.more, *c.less)},
}


class Measure(NamedTuple):
    """A number by which a pair is judged."""

    name: str  # of the part of a result
    scale: Callable[[Any], Any]
    sign: int  # 1 if more is better
    most: float  # by which a pair may be worse than the base; beyond, all are as bad


MEASURES = {
    "log error": Measure("mse", np.log, -1, math.log(2)),
    "log density": Measure("log_density", np.asarray, 1, 1.0),
}


# --- Tables -------------------------------------------------------------------------------------


def _values(c: Cell, name: str) -> list[float]:
    return [r[name] for r in c.results if r.get(name) is not None]


def reason(c: Cell) -> str:
    """Why a cell is empty, if it is."""
    return "" if c.values else str(next((r["failed"] for r in c.results if "failed" in r), ""))


def cell_table(cells: Sequence[Cell]) -> Table:
    """Error, log density and coverage of every prior with every likelihood, or why there are none.

    The setting is empty for nested cross-validation, the rank if it is the same for all, and the
    hidden share of the entries if most are.
    """
    head = (
        "dataset", "likelihood", "prior", "setting", "n", "failed", "mse", "standard error",
        "log density", "its standard error", "coverage of 90 %", "ranks", "at the edge", "seconds",
        "why not",
    )  # fmt: skip
    rows: list[Row] = []
    for c in cells:
        density, covered = _values(c, "log_density"), _values(c, "coverage")
        rows.append((
            c.dataset, c.variant, c.model, c.setting, len(c.values), c.failed, c.mean, c.error,
            float(np.mean(density)) if density else None, standard_error(density),
            float(np.mean(covered)) if covered else None, " ".join(map(str, c.ranks)),
            c.edges or None, c.seconds, reason(c),
        ))  # fmt: skip
    return head, rows


_FOLD = ("dataset", "likelihood", "prior", "setting", "fold", "mse", "log_density", "coverage",
         "rank", "why not")  # fmt: skip


def fold_table(cells: Sequence[Cell]) -> Table:
    """The same fold by fold: all that the other tables are made of. Empty cells have one line."""
    rows: list[Row] = []
    for c in cells:
        about = (c.dataset, c.variant, c.model, c.setting)
        if why := reason(c):
            rows.append((*about, None, None, None, None, None, why))
            continue
        for fold, r in zip(c.repeats, (r for r in c.results if r["mse"] is not None), strict=True):
            numbers = (round(r[name], 6) for name in ("mse", "log_density", "coverage"))
            rows.append((*about, fold, *numbers, r["rank"], None))
    return _FOLD, rows


def cells_of(rows: Iterable[Mapping[str, str]], protocol: str = "sound") -> list[Cell]:
    """Cells of the lines of a `fold_table`, as they are read from its file."""
    found: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for row in rows:
        key = row["dataset"], row["likelihood"], row["prior"], row["setting"]
        found.setdefault(key, []).append(row)
    cells = []
    for (dataset, likelihood, prior, setting), lines in found.items():
        done = [line for line in lines if line["mse"]]
        results: list[Result] = [
            {"mse": float(line["mse"]), "log_density": float(line["log_density"]),
             "coverage": float(line["coverage"]), "rank": int(line["rank"])}
            for line in done
        ] or [{"mse": None, "failed": lines[0]["why not"]}]  # fmt: skip
        cells.append(Cell(
            protocol, "likelihoods", dataset, likelihood, prior,
            float(setting) if setting else None, tuple(float(line["mse"]) for line in done),
            tuple(int(line["fold"]) for line in done), 0 if done else len(lines), None,
            tuple(int(line["rank"]) for line in done), 0, 0.0, None, tuple(results),
        ))  # fmt: skip
    return cells


# --- Blocks without holes -----------------------------------------------------------------------


class Block(NamedTuple):
    """One measure of all pairs of some priors and likelihoods, on all folds."""

    priors: list[str]
    likelihoods: list[str]
    values: Array  # (P, L, F)
    bounded: int = 0  # how many of them were so bad that the bound took their place


def block(cells: Iterable[Cell], measure: str, counts: bool = False) -> Block:
    """The nested results on one dataset, of the normal family or of counts.

    Likelihoods that most priors of the family do not have are left out, then priors with a hole.
    What is worse than the base by more than the measure's bound counts as that much worse: single
    chains that went astray would else decide everything.
    """
    name, scale, sign, most = MEASURES[measure]
    known: dict[tuple[str, str], dict[int, float]] = {}
    for c in cells:
        if c.setting == NESTED and c.values and (c.variant in COUNTS) == counts:
            known[c.model, c.variant] = dict(zip(c.repeats, scale(_values(c, name)), strict=True))
    priors = list(dict.fromkeys(model for model, _ in known))
    likelihoods = [
        one for one in dict.fromkeys(variant for _, variant in known)
        if 2 * sum((model, one) in known for model in priors) > len(priors)
    ]  # fmt: skip
    folds = sorted(set.union(set(), *map(set, known.values())))
    priors = [
        model for model in priors
        if all(set(known.get((model, one), ())) == set(folds) for one in likelihoods)
    ]  # fmt: skip
    values = [[[known[p, one][f] for f in folds] for one in likelihoods] for p in priors]
    array = np.array(values, dtype=float).reshape(len(priors), len(likelihoods), len(folds))
    bounded = 0
    if BASE in priors and EQUAL in likelihoods:
        least = sign * array[priors.index(BASE), likelihoods.index(EQUAL)] - most
        bounded = int(np.sum(sign * array < least))
        array = sign * np.maximum(sign * array, least)
    return Block(priors, likelihoods, array, bounded)


# --- Variance components ------------------------------------------------------------------------

PARTS = ("prior", "likelihood", "interaction", "residual")


def components(values: Array) -> Array:
    """Variances of priors, likelihoods, their interaction and the rest, of (P, L, F) numbers.

    From mean squares of a random-effects analysis with folds as blocks; none is below zero.
    """
    P, L, F = values.shape
    y = values - values.mean(axis=(0, 1))
    cell = y.mean(axis=2)
    prior, likelihood = cell.mean(axis=1), cell.mean(axis=0)
    both = cell - prior[:, None] - likelihood
    rest = np.sum((y - cell[..., None]) ** 2) / ((P * L - 1) * (F - 1))
    crossed = F * np.sum(both**2) / ((P - 1) * (L - 1))
    of_prior = L * F * np.sum(prior**2) / (P - 1)
    of_likelihood = P * F * np.sum(likelihood**2) / (L - 1)
    found = (
        (of_prior - crossed) / (L * F), (of_likelihood - crossed) / (P * F), (crossed - rest) / F,
        rest,
    )  # fmt: skip
    return np.maximum(found, 0.0)


def resampled(values: Array, samples: int = SAMPLES) -> Array:
    """Components (samples, 4) of folds drawn with replacement, those of a single fold left out."""
    rng, F = np.random.default_rng(0), values.shape[2]
    chosen = rng.integers(F, size=(samples, F))
    return np.array([components(values[..., k]) for k in chosen if np.ptp(k)])


def component_table(cells: Sequence[Cell]) -> Table:
    """Standard deviations of log error and log density that come from each part, with intervals."""
    head = ("dataset", "measure", "priors", "likelihoods", "folds", "bounded", "part", "sd", "from",
            "to", "share of the variance", "share from", "share to")  # fmt: skip
    rows: list[Row] = []
    for dataset, some in grouped(cells, "dataset").items():
        for measure in MEASURES:
            found = block(some, measure)
            if min(found.values.shape) < 2:
                continue  # nothing can be told apart
            variances, again = components(found.values), resampled(found.values)
            shares, share_again = variances / variances.sum(), again / again.sum(1, keepdims=True)
            low, high = np.percentile(np.sqrt(again), INTERVAL, axis=0)
            share_low, share_high = np.percentile(share_again, INTERVAL, axis=0)
            for k, part in enumerate(PARTS):
                numbers = variances[k] ** 0.5, low[k], high[k], shares[k], share_low[k]
                rows.append((dataset, measure, *found.values.shape, found.bounded, part,
                             *map(float, (*numbers, share_high[k]))))  # fmt: skip
    return head, rows


# --- What a choice brings -----------------------------------------------------------------------


def choices(found: Block, sign: float) -> dict[str, tuple[list[str], Array]]:
    """What is chosen on all folds but one, and how much it gains over the base on that one.

    The choice is of a prior under equal noise, of a likelihood with normal priors, or of both.
    Gains (F,) are positive for the better; ``sign`` is 1 where larger values are better.
    """
    values, P, L = sign * found.values, found.priors.index(BASE), found.likelihoods.index(EQUAL)
    base, folds = values[P, L], range(values.shape[2])
    parts = {
        "prior": (values[:, L], [f"{p}, {EQUAL}" for p in found.priors]),
        "likelihood": (values[P], [f"{BASE}, {one}" for one in found.likelihoods]),
        "both": (values.reshape(-1, len(folds)),
                 [f"{p}, {one}" for p in found.priors for one in found.likelihoods]),
    }  # fmt: skip
    gains = {}
    for what, (candidates, names) in parts.items():
        best = [int(np.argmax(np.delete(candidates, f, axis=1).mean(axis=1))) for f in folds]
        gain = np.array([candidates[k, f] - base[f] for k, f in zip(best, folds, strict=True)])
        gains[what] = [names[k] for k in best], gain
    return gains


def choice_table(cells: Sequence[Cell]) -> Table:
    """What choosing a prior, a likelihood or both brings, judged on folds that did not choose."""
    head = ("dataset", "measure", "choice of", "gain", "standard error", "chosen")
    rows: list[Row] = []
    for dataset, some in grouped(cells, "dataset").items():
        for measure in MEASURES:
            found = block(some, measure)
            known = BASE in found.priors and EQUAL in found.likelihoods
            if not known or found.values.shape[2] < 2:
                continue
            for what, (names, gain) in choices(found, MEASURES[measure].sign).items():
                chosen = "; ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
                rows.append(
                    (dataset, measure, what, float(gain.mean()), standard_error(gain), chosen)
                )
    return head, rows


# --- The study's observations again -------------------------------------------------------------


def right(cells: Iterable[Cell], counts: bool) -> str | None:
    """The likelihood of a family, of those run at all settings, with the largest log density.

    Of the median over the priors of its means over the folds, in nested cross-validation.
    """
    found = block(cells, "log density", counts)
    if not found.priors:
        return None
    middle = np.median(found.values.mean(axis=2), axis=0)
    known = {one: m for one, m in zip(found.likelihoods, middle, strict=True) if one in AGAIN}
    return max(known, key=known.__getitem__, default=None)


def _seen(check: Check, cells: Iterable[Cell], used: tuple[str | None, ...]) -> list[Cell]:
    """Cells of these likelihoods as results of the experiment that a check is about."""
    settings: dict[float | None, float | None] = {NESTED: NESTED}
    if check.at == "rise":
        settings = {NESTED: 0.0, RANK: RANK}
    elif check.experiment == "sparsity":
        settings = {HIDDEN: HIDDEN}
    elif check.experiment not in ("cross_validation", "model_selection"):
        return []  # noise and convergence were not run again
    words = ", ".join(filter(None, used))
    here = [c for c in cells if c.setting in settings and c.variant in used and c.values]
    whole = {  # a rise needs both ends
        key for key, some in grouped(here, "model", "variant").items() if len(some) == len(settings)
    }
    return [
        c._replace(experiment=check.experiment, setting=settings[c.setting], variant=words)
        for c in here if (c.model, c.variant) in whole
    ]  # fmt: skip


def verdicts(cells: Sequence[Cell]) -> list[Verdict]:
    """The study's observations under its own likelihoods, and under the right ones of a dataset."""
    found: list[Verdict] = []
    for some in grouped(cells, "dataset").values():
        best = right(some, counts=False), right(some, counts=True)
        for used in dict.fromkeys(((EQUAL, POISSON), best)):
            for check in _different():
                found += judge(_seen(check, some, used), [check])
    return found


def _different() -> Iterable[Check]:
    """The checks, without those that are the same here: by rank and in cross-validation."""
    alike = {"cross_validation": "", "model_selection": ""}
    return {
        (alike.get(c.experiment, c.experiment), *c.more, *c.less, c.at): c for c in CHECKS
    }.values()


def observation_table(cells: Sequence[Cell]) -> Table:
    """Verdicts on the study's observations; the variant names the likelihoods."""
    return Verdict._fields, list(verdicts(cells))
