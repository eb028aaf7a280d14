"""The command line: parsing and printing only. What a command needs is imported when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bayesmf import __version__
from bayesmf._errors import BayesmfError, DataError, ModelError
from bayesmf.cli import compare, completion, fit, info, predict, report, reproduce


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0, 1 for failures, 2 for bad input, or 130 after Ctrl-C.

    Whatever goes wrong is told in one sentence; ``--debug`` shows where it happened.
    """
    options = parser().parse_args(arguments)
    try:
        return options.run(options)
    except KeyboardInterrupt:
        more = "the same command goes on where it was" if options.resumes else "nothing was written"
        print(f"bayesmf: interrupted; {more}.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        sys.stderr.close()
        return 0
    except Exception as error:
        if options.debug:
            raise
        print(f"bayesmf: {_sentence(error)}", file=sys.stderr)
        return 2 if isinstance(error, (DataError, ModelError)) else 1


def _sentence(error: Exception) -> str:
    """What went wrong; of errors that are not ours, with a hint where to look."""
    if isinstance(error, BayesmfError):
        return str(error)
    if isinstance(error, MemoryError):
        return "the memory does not suffice; give a part of the data, or a lower rank."
    what = " ".join(str(error).split()).rstrip(".")
    kind = type(error).__name__
    return f"{kind}{f': {what}' if what else ''}; repeat with --debug to see where that happened."


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    found = argparse.ArgumentParser(
        prog="bayesmf",
        description="Bayesian matrix factorisation of matrices with missing entries.",
        epilog="Begin with bayesmf fit TABLE.csv. Every command has its own help with examples, "
        "as in bayesmf fit --help.",
    )
    found.add_argument("--version", action="version", version=f"bayesmf {__version__}")
    commands = found.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (fit, predict, compare, report, reproduce, info, completion):
        module.add(commands)
    return found
