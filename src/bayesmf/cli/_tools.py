"""What commands share: parsers, option types, printing."""

from __future__ import annotations

import argparse
from typing import Any

from bayesmf.cli import _known

# fmt: off
READING: dict[str, dict[str, Any]] = {  # how data are read
    "--long": {"metavar": "ROW,COL,VALUE", "help": "columns of a table with an entry per line"},
    "--row-labels": {"choices": ("auto", "yes", "no"), "default": "auto", "help":
        "whether the first column of a wide table holds labels; auto: unless all of it is numbers "
        "and its header is neither empty nor like id or index"},
    "--errors": {"metavar": "FILE", "help":
        "known standard deviations of the entries, up to a common factor: a table like DATA"},
    "--weights": {"metavar": "FILE", "help": "the same as weights, the inverse squares of errors"},
    "--lower": {"type": _known.limit, "metavar": "X", "help":
        "a limit: values at or below it lie anywhere there; a number, or a file with one row of "
        "limits, one for each column, or with one for each cell"},
    "--upper": {"type": _known.limit, "metavar": "X", "help": "the same for values at or above"},
}
# fmt: on


def command(
    commands: Any, name: str, run: Any, text: str, more: str = "", resumes: bool = False
) -> Any:
    """A parser of a command: what runs it, one line of help, examples, and whether it resumes."""
    parser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run, resumes=resumes)
    parser.add_argument("--debug", action="store_true", help="show where an error happened")
    return parser


def words(text: str) -> list[str]:
    """Words between commas."""
    return [word for word in text.split(",") if word]


def positive(text: str) -> int:
    """A whole number of at least one."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)
