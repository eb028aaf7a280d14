"""The whole page: sections, style and script in one file that loads and sends nothing."""

from __future__ import annotations

import base64
import hashlib
import math
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from bayesmf._files import replacing
from bayesmf.report.data import ReportData
from bayesmf.report.markup import Html, copyable, embed, join, paragraph, tag, text
from bayesmf.report.sections import SECTIONS, matrix_layers


def build(data: ReportData) -> str:
    """The report as a page of HTML that needs no other file and no network."""
    style, script = _part("report.css"), _part("report.js")
    shown = {
        key: (name, content)
        for key, (name, make) in SECTIONS.items()
        if (content := make(data)) is not None
    }
    return Template(_part("page.html")).substitute(
        policy=_policy(style, script),
        style=style,
        script=script,
        title=text(data.title),
        subtitle=paragraph(data.subtitle, "subtitle") or "",
        lead=_lead(data),
        contents=join(
            tag("li", tag("a", name, href=f"#{key}")) for key, (name, _) in shown.items()
        ),
        sections=join(_section(key, name, content) for key, (name, content) in shown.items()),
        data=embed(_matrix(data)),
    )


def write(data: ReportData, path: str | Path) -> None:
    """Write the report to a file, whole or not at all."""
    page = build(data)
    with replacing(path) as partial:
        partial.write_text(page, encoding="utf-8", newline="\n")


def _part(name: str) -> str:
    """One of the files of the page that come with the package."""
    return (resources.files(__package__) / name).read_text(encoding="utf-8").strip()


def _policy(style: str, script: str) -> Html:
    """What the browser may use: this style, this script, drawn images, and nothing else."""

    def digest(source: str) -> str:
        found = hashlib.sha256(source.encode()).digest()
        return f"'sha256-{base64.b64encode(found).decode()}'"

    return Html(
        f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _lead(data: ReportData) -> Html:
    """The first screen: what to use, what that is, and the command to run next."""
    about = [(tag("strong", name), f": {said}. ") for name, said in data.about.items()]
    return join(
        paragraph(data.recommendation[0], "lead") if data.recommendation else None,
        tag("p", *about, class_="hint") if about else None,
        join(paragraph("To fill the gaps with it, run:", "next"), copyable(data.advice))
        if data.advice
        else None,
    )


def _section(key: str, name: str, content: Html) -> Html:
    """A section under its heading."""
    return tag(
        "section", tag("h2", name, id=f"{key}-head"), content, id=key, aria_labelledby=f"{key}-head"
    )


def _matrix(data: ReportData) -> dict[str, Any]:
    """What the script draws, as plain data."""
    arrays, (rows, cols) = data.arrays, data.labels
    found: dict[str, Any] = {"rows": rows, "cols": cols, "layers": matrix_layers(data)}
    for name, matrix in arrays.items():
        if name == "observed":
            found[name] = ["".join("01"[int(cell)] for cell in row) for row in matrix]
        else:
            found[name] = [[_rounded(cell) for cell in row] for row in matrix.tolist()]
    return found


def _rounded(cell: float) -> float | None:
    """A number with the digits that a reader may want, or None for one that is not finite."""
    return float(f"{cell:.5g}") if math.isfinite(cell) else None
