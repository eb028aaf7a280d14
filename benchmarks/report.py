"""How parts of the benchmark state what they found: claims, tables, and their Markdown.

A part is a module with a function ``part(options: Options)`` that returns a dictionary: "claims",
each one figure with its target; "tables", each a title, a header and rows; "data", all figures, for
the JSON file; and "datasets", what is to be known of the matrices, if any were used. A part that
has a file of its own has also ``tables(data)``, which makes the tables from what the file holds. A
part that the README quotes has ``in_short(found)``, which makes its table from what is on file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.common import ROOT

RESULTS = ROOT / "benchmarks" / "results"


class Options(NamedTuple):
    """How to measure."""

    repeats: int = 5  # rounds, of which the best counts
    threads: int = 2
    peers: bool = True
    quick: bool = False  # small data and few sweeps: shows that all runs, not how fast
    images: Path = RESULTS  # folder of the plots
    models: tuple[str, ...] = ()  # these alone; the part's own choice if there are none
    ranks: tuple[int, ...] = ()
    data: tuple[str, ...] = ()
    missing: float | None = None  # share of the entries in the matrix of the first use
    other: Path | None = None  # the folder src that this one is compared with

    @property
    def batch(self) -> float:
        """Seconds that a batch of sweeps lasts at least."""
        return 0.005 if self.quick else 0.15


def claim(
    what: str, value: float | None, unit: str = "",
    *, least: float | None = None, most: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """State a figure, the bounds that are its target, and whether it lies within them.

    A figure that could not be had is None, and misses its target.
    """
    if least is not None and most is not None:
        target = f"{least:g} to {most:g}"
    else:
        target = f"at least {least:g}" if least is not None else f"at most {most:g}"
    met = (
        value is not None and (least is None or value >= least) and (most is None or value <= most)
    )
    return {"what": what, "value": value, "unit": unit, "target": target, "met": bool(met)}


def table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[object]], note: str = "",
    *, quoted: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Describe a table; ``quoted`` says that the part's own page has it."""
    cells = [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in rows]
    return {"title": title, "header": list(header), "rows": cells, "note": note, "quoted": quoted}


def number(value: Any) -> str:
    """Three significant digits, whole numbers as they are, a dash for what is not known."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def claim_row(entry: dict[str, Any]) -> list[str]:
    value = f"{number(entry['value'])} {entry['unit']}".strip()
    return [entry["what"], value, entry["target"], "met" if entry["met"] else "NOT met"]


CLAIM_HEADER = ("figure", "measured", "target", "")


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns of text: the first to the left, the others to the right."""
    lines = [header, *rows]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        right = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *right]).rstrip())


def print_part(result: dict[str, Any]) -> None:
    """Print a part's tables and claims as plain text."""
    for entry in result["tables"]:
        print(f"\n{entry['title']}" + (f"\n{entry['note']}" if entry["note"] else ""))
        print_table(entry["header"], entry["rows"])
    if result["claims"]:
        print()
        print_table(CLAIM_HEADER, [claim_row(entry) for entry in result["claims"]])


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _section(entry: dict[str, Any]) -> list[str]:
    note = [entry["note"]] if entry["note"] else []
    return [f"**{entry['title']}**", *note, markdown_table(entry["header"], entry["rows"])]


def _commits(parts: dict[str, Any]) -> str:
    """The commit that was measured, or the parts of each where there are several."""
    by_commit: dict[str, list[str]] = {}
    for name, part in parts.items():
        by_commit.setdefault(part["commit"] or "unknown", []).append(name)
    if len(by_commit) == 1:
        return f"commit {next(iter(by_commit))}"
    return "; ".join(f"commit {one}: {', '.join(names)}" for one, names in by_commit.items())


def _heading(results: dict[str, Any]) -> str:
    """The machine, versions and settings in one paragraph."""
    facts, settings = results["machine"], results["settings"]
    versions = ", ".join(f"{name} {v}" for name, v in results["versions"].items())
    words = (
        f"{facts['cpu']}, {facts['cores']} cores, {facts['system']}; {versions}. Best of "
        f"{settings['repeats']} rounds on {settings['threads']} threads, peers in the same run; "
        f"{_commits(results['parts'])}."
    )
    made = {
        name
        for part in results["parts"].values()
        for name, facts in part.get("datasets", {}).items()
        if facts["source"] == "synthetic"
    }
    if made:
        words += f" Synthetic matrices: {', '.join(sorted(made))}."
    busy = {name: p["cores_busy_elsewhere"] for name, p in results["parts"].items()}
    loud = [f"{name} ({value:.1f})" for name, value in busy.items() if value and value > 0.1]
    if loud:
        words += f" **Other processes kept cores busy meanwhile:** {', '.join(loud)}."
    if settings["quick"]:
        words += " **A quick run on small data: its figures mean nothing.**"
    return words


def markdown(results: dict[str, Any]) -> str:
    """Everything that was found, as one page."""
    return f"# Benchmark\n\n{everything(results)}\n"


def everything(results: dict[str, Any]) -> str:
    """Everything that was found: machine, targets, tables."""
    claims = [entry for part in results["parts"].values() for entry in part.get("claims", ())]
    met = sum(entry["met"] for entry in claims)
    blocks = [
        _heading(results),
        f"## Targets: {met} of {len(claims)} met",
        markdown_table(CLAIM_HEADER, [claim_row(entry) for entry in claims]),
    ]
    for name, part in results["parts"].items():
        blocks.append(f"## {name}")
        if "error" in part:
            blocks.append(f"Failed: {part['error']}")
        for entry in part.get("tables", ()):
            blocks += _section(entry)
    return "\n\n".join(blocks)


def tables_block(tables: list[dict[str, Any]]) -> str:
    """What a page quotes of a part with its own file: the marked tables, bare."""
    return "\n\n".join(bare(entry) for entry in tables if entry["quoted"])


def bare(entry: dict[str, Any]) -> str:
    """A table without its title."""
    return markdown_table(entry["header"], entry["rows"])


def quote(path: Path, name: str, block: str) -> None:
    """Put results between the two markers that have this name in a file."""
    before, _, after = apart(path, name)
    begin, end = (f"<!-- {name}: {word} -->" for word in ("begin", "end"))
    path.write_text(f"{before}{begin}\n\n{block}\n\n{end}{after}", encoding="utf-8")


def apart(path: Path, name: str) -> tuple[str, str, str]:
    """What a file has before, between and after the two markers that have this name."""
    text = path.read_text(encoding="utf-8")
    pattern = f"(.*)<!-- {name}: begin -->(.*)<!-- {name}: end -->(.*)"
    parts = re.fullmatch(pattern, text, re.DOTALL)
    if parts is None:
        raise SystemExit(f"{path.name} has no <!-- {name}: begin --> and end; add the two lines.")
    return parts[1], parts[2].strip(), parts[3]
