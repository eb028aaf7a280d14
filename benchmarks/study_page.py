"""Put the results of the study, from the folder ``results``, into docs/study.md.

    bayesmf reproduce ... --budget full --output study     # hours; see docs/study.md
    python -m benchmarks.study_page --from study           # tables and figures to results, docs

``--from`` copies tables (CSV and Markdown) to ``results`` and figures to ``docs/images`` first.
The page has, for each protocol, the errors of cross-validation with the published ones beside
them. Under ``paper`` it lists every cell that lies more than three combined standard errors from
the published one; under ``sound`` it counts the models that are no worse than published.
"""

from __future__ import annotations

import argparse
import csv
import math
import shutil
from pathlib import Path

from bayesmf.model.presets import PAPER
from bayesmf.study.tables import APART, CLOSE
from benchmarks.common import ROOT
from benchmarks.report import markdown_table, quote

WORSE = 2.0  # combined standard errors by which a model must be above the published figure
RESULTS, IMAGES = ROOT / "results", ROOT / "docs" / "images"


def rows_of(protocol: str, name: str) -> list[dict[str, str]]:
    """The rows of a table as text; none if it is not there."""
    path = RESULTS / protocol / f"{name}.csv"
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(text: str) -> str:
    return f"{float(text):.4g}"


def errors(rows: list[dict[str, str]]) -> str:
    """Models by datasets: error and its standard error, the published error beside them."""
    data = list(dict.fromkeys(row["dataset"] for row in rows))
    models = list(dict.fromkeys(row["model"] for row in rows))
    by = {(row["dataset"], row["model"]): row for row in rows}
    lines = []
    for model in models:
        line = [model.replace("_", " ")]
        for name in data:
            row = by.get((name, model))
            line.append(
                "" if row is None else f"{number(row['mse'])} ± {float(row['standard error']):.2g}"
            )
            published = row["published mse"] if row else ""
            line.append(number(published) if published else "")
        lines.append(line)
    head = ["", *(word for name in data for word in (name.replace("_", " "), "published"))]
    return markdown_table(head, lines)


def agreement(rows: list[dict[str, str]]) -> str:
    """How many published cells are met, and which are not."""
    known = [row for row in rows if row["standard errors apart"]]
    judged = [row for row in known if row["model"] not in APART]
    far = [row for row in known if abs(float(row["standard errors apart"])) > CLOSE]
    met = sum(abs(float(row["standard errors apart"])) <= CLOSE for row in judged)
    text = (
        f"{met} of {len(judged)} published cells ({met / len(judged):.0%}) lie within three "
        f"combined standard errors; GGGW and GLLI are not counted. "
    )
    listed = [
        f"{row['model']} on {row['dataset'].replace('_', ' ')}"
        + (f" at {row['setting']}" if row["setting"] else "")
        + f" ({number(row['mse'])}, published {number(row['published mse'])}: "
        f"{float(row['standard errors apart']):+.1f})"
        for row in far
    ]
    return text + ("Outside: " + "; ".join(listed) + "." if listed else "None is outside.")


def no_worse(rows: list[dict[str, str]]) -> str:
    """How many of the sixteen models are no worse than published, each at its best rank."""
    known = [row for row in rows if row["published mse"] and row["model"] in PAPER]
    by: dict[str, dict[str, list[dict[str, str]]]] = {}
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
            f"on {name.replace('_', ' ')} {len(models) - len(worse)} of {len(models)} ({bare} have "
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


def page() -> str:
    """Everything that the docs quote."""
    blocks = []
    for protocol, title in (("paper", "as the study did it"), ("sound", "the sound protocol")):
        for name, words in (
            ("cross_validation", "Nested cross-validation"),
            ("model_selection", "Error against rank"),
        ):
            found = rows_of(protocol, name)
            if found:
                blocks.append(f"### {words}, {title}")
                blocks += [errors(found)] if name == "cross_validation" else []
                blocks.append(agreement(found) if protocol == "paper" else no_worse(found))
                for figure in sorted(IMAGES.glob(f"study-{protocol}-{name}*.svg")):
                    blocks.append(f"![{words}, {protocol}](images/{figure.name})")
    return "\n\n".join(blocks)


def take(folder: Path) -> None:
    """Copy tables and figures of a run."""
    shutil.rmtree(RESULTS, ignore_errors=True)
    shutil.copytree(folder / "tables", RESULTS)
    for figure in (folder / "figures").glob("*/*.svg"):
        shutil.copy(figure, IMAGES / f"study-{figure.parent.name}-{figure.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--from", dest="folder", type=Path, help="output folder of reproduce")
    args = parser.parse_args()
    if args.folder:
        take(args.folder)
    quote(ROOT / "docs" / "study.md", "study", page())


if __name__ == "__main__":
    main()
