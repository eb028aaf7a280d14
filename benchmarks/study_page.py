"""Put the results of the study, from the folder ``results``, into docs/study.md.

    bayesmf reproduce ... --budget full --output study     # hours; see docs/study.md
    python -m benchmarks.study_tables study/store          # tables and figures to results, docs
    python -m benchmarks.study_page

The page has the experiments in the paper's order, what has not been run included. Under ``paper``
it says how many cells lie within three combined standard errors of the published ones and lists the
others; under ``sound`` it counts the models that are no worse than published.
"""

from __future__ import annotations

import csv
import math
import statistics
from typing import NamedTuple

from bayesmf.datasets import CATALOGUE
from bayesmf.model.presets import PAPER
from bayesmf.study.experiments import EXPERIMENTS
from bayesmf.study.published import training
from bayesmf.study.tables import APART, CLOSE
from benchmarks.common import ROOT
from benchmarks.report import markdown_table, quote
from benchmarks.study_tables import IMAGES, RESULTS

WORSE = 2.0  # combined standard errors by which a model must be above the published figure
ABSENT = ("CTRP", "CTRP_small", "MovieLens_1M", "Methylation_PM")  # not part of these runs

Rows = list[dict[str, str]]


class Section(NamedTuple):
    """An experiment on the page."""

    name: str
    title: str
    paper: str  # where the paper has it


SECTIONS = (
    Section("cross_validation", "Nested cross-validation", "figure 3 and the table of ranks"),
    Section("convergence", "Convergence", "figure 4"),
    Section("noise", "Noise", "figure 5"),
    Section("sparsity", "Sparse predictions", "figure 6, and the supplement"),
    Section("model_selection", "Error against rank", "figure 7, and the supplement"),
    Section("runtime", "Runtime", "a table of the supplement"),
)


def rows_of(protocol: str, name: str) -> Rows:
    """The rows of a table as text; none if it is not there."""
    path = RESULTS / protocol / f"{name}.csv"
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(text: str) -> str:
    return f"{float(text):.4g}"


def spoken(name: str) -> str:
    return name.replace("_", " ")


def errors(rows: Rows) -> str:
    """Models by datasets: error and its standard error, the published error beside them."""
    data = list(dict.fromkeys(row["dataset"] for row in rows))
    models = list(dict.fromkeys(row["model"] for row in rows))
    by = {(row["dataset"], row["model"]): row for row in rows}
    lines = []
    for model in models:
        line = [spoken(model)]
        for name in data:
            row = by.get((name, model))
            line.append(
                "" if row is None else f"{number(row['mse'])} ± {float(row['standard error']):.2g}"
            )
            published = row["published mse"] if row else ""
            line.append(number(published) if published else "")
        lines.append(line)
    head = ["", *(word for name in data for word in (spoken(name), "published"))]
    return markdown_table(head, lines)


def _judged(rows: Rows) -> tuple[Rows, int]:
    """Cells that are counted, and how many of them lie near the published ones."""
    known = [row for row in rows if row.get("standard errors apart")]
    counted = [row for row in known if row["model"] not in APART]
    return counted, sum(abs(float(row["standard errors apart"])) <= CLOSE for row in counted)


def agreement(rows: Rows) -> str:
    """How many published cells are met, and which are not."""
    judged, met = _judged(rows)
    if not judged:
        return "None of these cells is among the published ones that are held here."
    known = [row for row in rows if row["standard errors apart"]]
    far = [row for row in known if abs(float(row["standard errors apart"])) > CLOSE]
    text = (
        f"{met} of {len(judged)} published cells ({met / len(judged):.0%}) lie within three "
        f"combined standard errors; GGGW and GLLI are not counted. "
    )
    listed = [
        f"{row['model']} on {spoken(row['dataset'])}"
        + (f" at {row['setting']}" if row["setting"] else "")
        + f" ({number(row['mse'])}, published {number(row['published mse'])}: "
        f"{float(row['standard errors apart']):+.1f})"
        for row in far
    ]
    return text + ("Outside: " + "; ".join(listed) + "." if listed else "None is outside.")


def agreement_table() -> str:
    """The same for all experiments and matrices, and in all."""
    lines, everything = [], []
    for section in SECTIONS:
        found = rows_of("paper", section.name)
        for dataset in dict.fromkeys(row["dataset"] for row in found):
            some = [row for row in found if row["dataset"] == dataset]
            if _judged(some)[0]:
                lines.append(_agreement_row(section.title, spoken(dataset), some))
                everything += some
    lines.append(_agreement_row("all", "", everything))
    head = ["experiment", "matrix", "compared", "within three standard errors", "share",
            "median ratio of errors, ours to published"]  # fmt: skip
    return markdown_table(head, lines)


def _agreement_row(title: str, dataset: str, rows: Rows) -> list[str]:
    judged, met = _judged(rows)
    ratio = statistics.median(float(r["median"]) / float(r["published median"]) for r in judged)
    return [title, dataset, str(len(judged)), str(met), f"{met / len(judged):.1%}", f"{ratio:.4f}"]


def no_worse(rows: Rows) -> str:
    """How many of the sixteen models are no worse than published, each at its best rank."""
    known = [row for row in rows if row["published mse"] and row["model"] in PAPER]
    by: dict[str, dict[str, Rows]] = {}
    for row in known:
        by.setdefault(row["dataset"], {}).setdefault(row["model"], []).append(row)
    parts = []
    for name, models in by.items():
        bare, worse = 0, []
        for model, ranks in models.items():
            ours = min(ranks, key=lambda row: float(row["mse"]))
            theirs = min(ranks, key=lambda row: float(row["published mse"]))
            gap = _gap(ours, theirs)
            bare += gap <= 0
            if gap > WORSE:
                figures = f"{number(ours['mse'])} for {number(theirs['published mse'])}"
                worse.append(f"{model}, {figures}: {gap:+.1f}")
        parts.append(
            f"on {spoken(name)} {len(models) - len(worse)} of {len(models)} ({bare} have "
            "the lower figure" + (f"; worse: {'; '.join(worse)})" if worse else ")")
        )
    each = ", each at its best rank," if any(row["setting"] for row in known) else ""
    return (
        f"Models that are no worse than published{each} by more than two combined standard errors: "
        + ", ".join(parts)
        + "."
    )


def _gap(ours: dict[str, str], theirs: dict[str, str]) -> float:
    """Our error less the published one, in combined standard errors."""
    spread = float(ours["standard error"]), float(theirs["published standard error"])
    return (float(ours["mse"]) - float(theirs["published mse"])) / math.hypot(*spread)


def chosen_ranks() -> str:
    """Mean ranks that the outer folds chose."""
    found = rows_of("paper", "chosen_ranks")
    names = [name for name in found[0] if name != "model"]
    lines = [[row["model"], *(row[name][:4] for name in names)] for row in found]
    return "Mean ranks that the outer folds chose:\n\n" + markdown_table(
        ["", *map(spoken, names)], lines
    )


def faster(rows: Rows) -> str:
    """How many times faster sweeps are than the study's."""
    ratios = [float(row["times faster"]) for row in rows if row["times faster"]]
    return (
        f"Seconds per sweep, measured alone on one thread: {statistics.median(ratios):.0f} times "
        f"faster than printed in the median of {len(ratios)} models, ranks and matrices "
        f"({min(ratios):.0f} to {max(ratios):.0f})."
    )


def converged(rows: Rows) -> str:
    """How training errors after the last sweep compare with the published ones."""
    parts = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        ratios = [
            float(row["mse"]) / float(training()[dataset, row["model"]][1][-1])
            for row in rows
            if row["dataset"] == dataset and (dataset, row["model"]) in training()
        ]
        near = sum(abs(ratio - 1) < 0.05 for ratio in ratios)
        parts.append(
            f"on {spoken(dataset)} {statistics.median(ratios):.3f} times the published ones in the "
            f"median, {near} of {len(ratios)} models within 5 % of them"
        )
    runs = {row["n"] for row in rows} - {"1"}
    few = "" if runs else " (one run of each model; the study had ten)"
    return f"Training errors after the last sweep{few} are {'; '.join(parts)}."


def missing(protocol: str, name: str) -> str:
    """Matrices on which an experiment has not been run, in words."""
    wanted = [one for one in EXPERIMENTS[name].datasets if one not in ABSENT]
    found = {row["dataset"] for row in rows_of(protocol, name)}
    left = [spoken(one) for one in wanted if one not in found]
    return f"Not run in full yet: {', '.join(left)}." if left else ""


def datasets() -> str:
    """The matrices of the study, and which are here."""
    rows = [row for row in rows_of("", "datasets") if row["name"] in CATALOGUE][:10]
    lines = [
        [spoken(row["name"]), f"{row['n']} x {row['m']}", f"{float(row['observed']):.3f}",
         row["present"]] for row in rows
    ]  # fmt: skip
    return markdown_table(["matrix", "rows x columns", "observed", "here"], lines)


def figures(protocol: str, name: str, words: str) -> list[str]:
    return [
        f"![{words}, {protocol}](images/{figure.name})"
        for figure in sorted(IMAGES.glob(f"study-{protocol}-{name}*.svg"))
    ]


def page() -> str:
    """Everything that the docs quote."""
    blocks = [
        "### Priors and data",
        "![Priors](images/study-priors.svg)",
        "![Values of the matrices](images/study-values.svg)",
        datasets(),
        "### Agreement, as the study did it",
        agreement_table(),
    ]
    for section in SECTIONS:
        found = rows_of("paper", section.name)
        blocks.append(f"### {section.title}, as the study did it ({section.paper})")
        if section.name == "cross_validation":
            blocks += [errors(found), chosen_ranks()]
        if section.name == "convergence" and found:
            blocks.append(converged(found))
        if section.name == "runtime":
            blocks += [faster(found)] if found else []
        elif found and section.name != "convergence":
            blocks.append(agreement(found))
        blocks += [missing("paper", section.name)] if missing("paper", section.name) else []
        blocks += figures("paper", section.name, section.title)
    for section in SECTIONS:
        found = rows_of("sound", section.name)
        if found:
            blocks.append(f"### {section.title}, the sound protocol")
            blocks += [errors(found)] if section.name == "cross_validation" else []
            blocks.append(no_worse(found))
            blocks += [missing("sound", section.name)] if missing("sound", section.name) else []
            blocks += figures("sound", section.name, section.title)
    return "\n\n".join(blocks)


if __name__ == "__main__":
    quote(ROOT / "docs" / "study.md", "study", page())
