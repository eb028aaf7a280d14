"""All figures of a run on one page: an HTML file that needs nothing beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from bayesmf._files import Row, plain, write_text
from bayesmf.study.cells import Table
from bayesmf.study.figures.style import label

ORDER = (  # of the paper: what it assumes, then its experiments, then what goes beyond it
    "priors", "values", "cross_validation", "convergence", "noise", "sparsity", "model_selection",
    "runtime", "likelihoods", "likelihood_components",
)  # fmt: skip
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
       color: #222; background: #fff; }
figure { margin: 1.5rem 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; }
figcaption { color: #555; } table { border-collapse: collapse; } nav a { margin-right: .8rem; }
td, th { padding: .15rem .7rem .15rem 0; text-align: left; border-bottom: 1px solid #ddd; }
"""
_NAMED = re.compile(r'(\bid="|\bhref="#|url\(#)')


def write_gallery(path: Path, figures: Iterable[Path], agreement: Table) -> Path:
    """Write the page with the SVG figures among these files, and how far they agree."""
    chosen = sorted((one for one in figures if one.suffix == ".svg"), key=_place)
    links = "".join(f'<a href="#figure-{k}">{_title(one)}</a> ' for k, one in enumerate(chosen))
    shown = "".join(
        f'<figure id="figure-{k}">{_inline(one, f"f{k}-")}'
        f"<figcaption>{_title(one)}</figcaption></figure>\n"
        for k, one in enumerate(chosen)
    )
    write_text(path, (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>The study</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>The study</h1>\n{_table(*agreement)}"
        f"<nav>{links}</nav>\n{shown}</body></html>\n"
    ))  # fmt: skip
    return path


def _place(path: Path) -> tuple[str, int, str]:
    """Where a figure goes: by protocol, then in the paper's order."""
    found = [k for k, name in enumerate(ORDER) if path.stem.startswith(name)]
    folder = "" if path.parent.name == "figures" else path.parent.name
    return folder, max(found, default=len(ORDER)), path.stem


def _title(path: Path) -> str:
    folder = _place(path)[0]
    words = [label(word) for word in path.stem.replace("_", " ").split(" ")]
    return escape(" ".join(words) + (f" ({folder})" if folder else ""))


def _inline(path: Path, prefix: str) -> str:
    """A figure without the head of its file; what has a name in it gets one of its own."""
    text = path.read_text(encoding="utf-8")
    return _NAMED.sub(rf"\g<1>{prefix}", text[text.index("<svg") :])


def _table(head: Row, rows: Sequence[Row]) -> str:
    if not rows:
        return "<p>No published number can be compared with these results.</p>\n"
    lines = [
        "".join(f"<{tag}>{escape(plain(cell))}</{tag}>" for cell in row)
        for tag, row in [("th", head), *(("td", row) for row in rows)]
    ]
    return "<table>" + "".join(f"<tr>{line}</tr>\n" for line in lines) + "</table>\n"
