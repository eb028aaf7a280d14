"""What commands share: parsers, option types, printing."""

from __future__ import annotations

import argparse
from typing import Any


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
