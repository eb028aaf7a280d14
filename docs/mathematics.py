"""Formulas between dollars become MathML when the site is built: no script, no network."""

from __future__ import annotations

import re

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor


class _Formula(InlineProcessor):
    """``$...$`` in a line, ``$$...$$`` on its own."""

    def __init__(self, pattern: str, md: Markdown, display: str) -> None:
        super().__init__(pattern, md)
        self.compiled_re = re.compile(pattern, re.DOTALL)
        self.display = display

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        """Stash the formula, so that no other rule touches it."""
        formula = convert(" ".join(m.group(1).split()), display=self.display)
        return self.md.htmlStash.store(formula), m.start(0), m.end(0)


class Mathematics(Extension):
    """After code, which may have dollars, and before everything else."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register both forms."""
        md.inlinePatterns.register(_Formula(r"\$\$(.+?)\$\$", md, "block"), "display", 187)
        md.inlinePatterns.register(_Formula(r"\$([^$]+?)\$", md, "inline"), "formula", 186)


def on_config(config):
    """Add the rule to those of the site."""
    config.markdown_extensions.append(Mathematics())
    return config
