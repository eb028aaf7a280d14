"""How parts of the benchmark state what they found: claims, tables, and their Markdown.

A part is a function of `Options` that returns a dictionary: "claims", each one figure with its
target; "tables", each a title, a header and rows; "data", all figures, for the JSON file; and
"datasets", what is to be known of the matrices, if any were used.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from _common import machine, print_machine, print_table, write_json

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"  # quotes what is measured


class Options(NamedTuple):
    """How to measure."""

    repeats: int = 5  # rounds, of which the best counts
    threads: int = 2
    peers: bool = True
    quick: bool = False  # small data and few sweeps: shows that all runs, not how fast
    images: Path = RESULTS  # folder of the plots

    @property
    def batch(self) -> float:
        """Seconds that a batch of sweeps lasts at least."""
        return 0.005 if self.quick else 0.15


Part = Callable[[Options], dict[str, Any]]


def claim(
    what: str,
    value: float | None,
    unit: str = "",
    *,
    least: float | None = None,
    most: float | None = None,
) -> dict[str, Any]:
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
    *, readme: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Describe a table; ``readme`` says that the README quotes it."""
    cells = [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in rows]
    return {"title": title, "header": list(header), "rows": cells, "note": note, "readme": readme}


def number(value: Any) -> str:
    """Three significant digits, whole numbers as they are, a dash for what is not known."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def verdict_of(entry: dict[str, Any]) -> str:
    return "met" if entry["met"] else "NOT met"


def claim_row(entry: dict[str, Any]) -> list[str]:
    value = f"{number(entry['value'])} {entry['unit']}".strip()
    return [entry["what"], value, entry["target"], verdict_of(entry)]


CLAIM_HEADER = ("figure", "measured", "target", "")


def print_part(result: dict[str, Any]) -> None:
    """Print a part's tables and claims as plain text."""
    for entry in result["tables"]:
        print(f"\n{entry['title']}" + (f"\n{entry['note']}" if entry["note"] else ""))
        print_table(entry["header"], entry["rows"])
    if result["claims"]:
        print()
        print_table(CLAIM_HEADER, [claim_row(entry) for entry in result["claims"]])


def run_alone(part: Part, description: str) -> None:
    """Run one part from the command line."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="rounds; the best one counts")
    parser.add_argument("--threads", type=int, default=2, help="threads of presets and peers")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out")
    parser.add_argument("--quick", action="store_true", help="small data: only shows that it runs")
    parser.add_argument("--json", metavar="FILE", help="also write all figures to this file")
    args = parser.parse_args()
    print_machine(machine())
    result = part(Options(args.repeats, args.threads, not args.no_peers, args.quick))
    print_part(result)
    write_json(args.json, result)


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


def readme_block(results: dict[str, Any]) -> str:
    """What the README quotes: which targets are met, and the tables that are marked for it."""
    parts = results["parts"]
    claims = [entry for part in parts.values() for entry in part.get("claims", ())]
    missed = [
        f"- {what}: {value}, target {target}"
        for what, value, target, _ in (claim_row(entry) for entry in claims if not entry["met"])
    ]
    summary = f"{len(claims) - len(missed)} of {len(claims)} targets are met"
    blocks = [_heading(results), summary + ("; not met are:" if missed else ".")]
    blocks += ["\n".join(missed)] * bool(missed)
    for part in parts.values():
        for entry in part.get("tables", ()):
            if entry["readme"]:
                blocks += _section(entry)
    return "\n\n".join(blocks)


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
