"""`bayesmf completion`: scripts that make a shell complete commands, options and choices."""

from __future__ import annotations

import argparse
from typing import Any

from bayesmf.cli._tools import command


def add(commands: Any) -> None:
    """Add the commands of this module."""
    parser = command(
        commands,
        "completion",
        _completion,
        "print a script that makes a shell complete commands and options",
        "Examples:\n"
        "  bash: bayesmf completion bash >> ~/.bashrc\n"
        "  zsh:  bayesmf completion zsh > ~/.zfunc/_bayesmf, that folder being in fpath\n"
        "  fish: bayesmf completion fish > ~/.config/fish/completions/bayesmf.fish",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def _completion(options: argparse.Namespace) -> int:
    import shtab

    from bayesmf.cli import parser

    print(shtab.complete(parser(), options.shell))
    return 0
