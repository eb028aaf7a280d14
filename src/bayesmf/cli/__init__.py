"""The command line: parsing and printing only. What a command needs is imported when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bayesmf import __version__
from bayesmf._errors import BayesmfError
from bayesmf.cli import compare, completion, fit, info, predict, report, reproduce


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0, 2 for bad input, or 130 after Ctrl-C."""
    options = parser().parse_args(arguments)
    try:
        return options.run(options)
    except BayesmfError as error:
        print(f"bayesmf: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bayesmf: interrupted; what was finished is kept.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        sys.stderr.close()
        return 0


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    found = argparse.ArgumentParser(
        prog="bayesmf",
        description="Bayesian matrix factorisation of matrices with missing entries.",
        epilog="Every command has its own help: bayesmf reproduce --help",
    )
    found.add_argument("--version", action="version", version=f"bayesmf {__version__}")
    commands = found.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (fit, predict, compare, report, reproduce, info, completion):
        module.add(commands)
    return found
