"""Put the results on priors by likelihoods, from the folder ``results``, into docs/revisited.md.

    bayesmf reproduce likelihoods --protocol sound --budget full --output study
    python -m benchmarks.study_tables study/store
    python -m benchmarks.revisited_page

Every number of the page follows from ``results/sound/likelihood_folds.csv``, fold by fold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesmf.model.presets import PRESETS
from bayesmf.study import crossing
from bayesmf.study.cells import Cell, grouped
from bayesmf.study.crossing import BASE, EQUAL, INTERVAL, NESTED, PARTS, block, cells_of
from bayesmf.study.experiments.likelihoods import DATASETS, FOLDS, LIKELIHOODS, RANKS
from benchmarks.common import ROOT
from benchmarks.report import markdown_table, quote
from benchmarks.study_page import rows_of, spoken
from benchmarks.study_tables import IMAGES

PAGE = ROOT / "docs" / "revisited.md"


def committed() -> list[Cell]:
    """The cells of the committed table of folds."""
    return cells_of(rows_of("sound", "likelihood_folds"))


def named(table: tuple) -> list[dict]:
    """Rows of a table by the names of its columns."""
    head, rows = table
    return [dict(zip(head, row, strict=True)) for row in rows]


def percent(change: float) -> str:
    """A difference of logarithms as percent."""
    return f"{100 * np.expm1(change):+.1f} %".replace("-", "\N{MINUS SIGN}")


def signed(value: float, digits: int = 3) -> str:
    return f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def coverage(cells: Sequence[Cell]) -> str:
    """What has been run: matrices, folds, pairs; what is missing, and why pairs do not exist."""
    lines = []
    for dataset in DATASETS:
        here = [c for c in cells if c.dataset == dataset and c.setting == NESTED]
        if not here:
            lines.append([spoken(dataset), "not run yet", "", "", ""])
            continue
        done = [c for c in here if c.values]
        folds = len({f for c in done for f in c.repeats})
        ranks = [rank for c in done for rank in c.ranks]
        edge = f"{ranks.count(RANKS[-1])} of {len(ranks)}"
        lines.append([spoken(dataset), f"{folds} of {FOLDS['full']}", str(len(done)),
                      str(len(here) - len(done)), edge])  # fmt: skip
    head = ["matrix", "folds", "pairs", "pairs that do not exist", "largest rank chosen"]
    return markdown_table(head, lines)


def reasons(cells: Sequence[Cell]) -> str:
    """Why pairs do not exist."""
    empty = [c for c in cells if c.setting == NESTED and not c.values]
    fit = sum("does not fit the priors" in crossing.reason(c) for c in empty)
    others = grouped([c for c in empty if "does not fit" not in crossing.reason(c)],
                     "dataset", "variant")  # fmt: skip
    words = "; ".join(
        f"{variant} on {spoken(dataset)} ({len(some)}): {crossing.reason(some[0])}"
        for (dataset, variant), some in others.items()
    )
    return f"Of the pairs that do not exist, {fit} have priors that the likelihood does not fit" + (
        f"; the others are: {words}." if words else "."
    )


def component_words(cells: Sequence[Cell]) -> list[str]:
    """Prior against likelihood on each matrix, in sentences."""
    found = named(crossing.component_table(cells))
    sentences = []
    for dataset in dict.fromkeys(row["dataset"] for row in found):
        parts = {(r["measure"], r["part"]): r for r in found if r["dataset"] == dataset}
        words = []
        for measure, unit in (("log error", ""), ("log density", " nats")):
            prior, likelihood = (parts[measure, part] for part in PARTS[:2])
            words.append(
                f"in {measure} {likelihood['sd']:.3f}{unit} ({likelihood['from']:.3f} to "
                f"{likelihood['to']:.3f}) from the likelihood and {prior['sd']:.3f}{unit} "
                f"({prior['from']:.3f} to {prior['to']:.3f}) from the prior"
            )
        sentences.append(f"**{spoken(dataset)}**: standard deviations are {', '.join(words)}.")
    return sentences


def component_rows(cells: Sequence[Cell]) -> str:
    rows = [
        [spoken(r["dataset"]), r["measure"], r["part"], f"{r['sd']:.3f}",
         f"{r['from']:.3f} to {r['to']:.3f}", f"{r['share of the variance']:.0%}",
         f"{r['share from']:.0%} to {r['share to']:.0%}"]
        for r in named(crossing.component_table(cells))
    ]  # fmt: skip
    level = INTERVAL[1] - INTERVAL[0]
    head = ["matrix", "measure", "part", "standard deviation", f"{level} % interval",
            "share of the variance", f"{level} % interval"]  # fmt: skip
    return markdown_table(head, rows)


def bounded(cells: Sequence[Cell]) -> str:
    """How many results the bounds of the measures touch."""
    rows = {(r["dataset"], r["measure"]): r for r in named(crossing.component_table(cells))}
    words = [
        f"{r['bounded']} of {r['priors'] * r['likelihoods'] * r['folds']} on {spoken(dataset)} "
        f"in {measure}"
        for (dataset, measure), r in rows.items()
    ]
    return "Results so bad that the bound took their place: " + "; ".join(words) + "."


def choice_rows(cells: Sequence[Cell]) -> str:
    rows = []
    for r in named(crossing.choice_table(cells)):
        error = r["measure"] == "log error"
        gain = percent(-r["gain"]) if error else f"{signed(r['gain'])} nats"
        spread = f"{100 * r['standard error']:.1f} %" if error else f"{r['standard error']:.3f}"
        rows.append([spoken(r["dataset"]), r["measure"].removeprefix("log "), r["choice of"],
                     f"{gain} ± {spread}", r["chosen"]])  # fmt: skip
    head = ["matrix", "measure", "choice of", f"beside {BASE} with equal noise", "chosen"]
    return markdown_table(head, rows)


def by_likelihood(cells: Sequence[Cell]) -> str:
    """Medians over the priors of every likelihood, beside equal noise, and the priors' range."""
    rows = []
    for dataset, some in grouped([c for c in cells if c.setting == NESTED], "dataset").items():
        error, density = block(some, "log error"), block(some, "log density")
        equal = error.likelihoods.index(EQUAL)
        held = {(c.model, c.variant): np.mean([r["coverage"] for r in c.results])
                for c in some if c.values}  # fmt: skip
        for k, one in enumerate(error.likelihoods):
            ratio = np.median((error.values[:, k] - error.values[:, equal]).mean(axis=1))
            gain = np.median((density.values[:, k] - density.values[:, equal]).mean(axis=1))
            spread = np.ptp(error.values[:, k].mean(axis=1))
            covered = np.median([held[p, one] for p in error.priors])
            rows.append([spoken(dataset), one, percent(ratio), f"{signed(gain)}",
                         f"{covered:.1%}", f"{100 * np.expm1(spread):.0f} %"])  # fmt: skip
    head = ["matrix", "likelihood", "error beside equal noise", "log density beside it",
            "coverage of 90 % intervals", "worst prior above the best"]  # fmt: skip
    return markdown_table(head, rows)


def observations(cells: Sequence[Cell]) -> str:
    """Verdicts on the study's observations, with its own likelihoods and with the right ones."""
    found = crossing.verdicts(cells)
    rows = []
    for (number, claim), some in grouped(found, "observation", "claim").items():
        for dataset, here in grouped(some, "dataset").items():
            words = {v.variant: v for v in here}
            own = words.pop(f"{EQUAL}, {crossing.POISSON}", None)
            other = next(iter(words.values()), None)
            rows.append([str(number), claim, spoken(dataset), *_verdict(own), *_verdict(other),
                         other.variant if other else ""])  # fmt: skip
    head = ["", "claim", "matrix", "equal noise, Poisson", "contrast", "right likelihoods",
            "contrast", "which are"]  # fmt: skip
    return markdown_table(head, sorted(rows, key=lambda row: int(row[0])))


def _verdict(v: crossing.Verdict | None) -> tuple[str, str]:
    return ("", "") if v is None else (v.verdict, f"{signed(v.contrast)} ± {v.error:.3f}")


def survival(cells: Sequence[Cell]) -> str:
    """How many verdicts change."""
    found = crossing.verdicts(cells)
    pairs = [
        (own.verdict, other.verdict)
        for some in grouped(found, "claim", "dataset").values()
        for own in some if own.variant == f"{EQUAL}, {crossing.POISSON}"
        for other in some if other.variant != own.variant
    ]  # fmt: skip
    held = [other for own, other in pairs if own == "holds"]
    words = ", ".join(f"{held.count(word)} {word}" for word in ("holds", "undecided", "fails")
                      if word in held)  # fmt: skip
    return (
        f"Of {len(pairs)} claims on single matrices, {len(held)} hold with the study's "
        f"likelihoods; of these, with the right ones: {words or 'none was judged'}. "
        f"{sum(own != other for own, other in pairs)} verdicts in all are not the same."
    )


def page(cells: Sequence[Cell] | None = None) -> str:
    """Everything that the docs quote."""
    cells = committed() if cells is None else cells
    figures = [
        f"![Priors by likelihoods, {spoken(name)}](images/study-sound-likelihoods_{name}.svg)"
        for name in DATASETS
        if (IMAGES / f"study-sound-likelihoods_{name}.svg").is_file()
    ]
    return "\n\n".join([
        f"### What was run\n\n{len(PRESETS)} priors and {len(LIKELIHOODS)} likelihoods:",
        coverage(cells), reasons(cells),
        "### Where differences come from", *component_words(cells),
        "![Variance components](images/study-sound-likelihood_components.svg)",
        component_rows(cells), bounded(cells),
        "One bad likelihood may make up all of this component. Without Student-t noise:",
        *component_words([c for c in cells if c.variant != "Student-t"]),
        "### What a choice brings", choice_rows(cells),
        "### Likelihood by likelihood", by_likelihood(cells), *figures,
        "### The seven observations again", survival(cells), observations(cells),
    ])  # fmt: skip


if __name__ == "__main__":
    quote(PAGE, "revisited", page())
