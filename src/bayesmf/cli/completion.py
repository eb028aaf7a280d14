"""`bayesmf completion`: scripts that make a shell complete commands, options and choices."""

from __future__ import annotations

import argparse
from shlex import quote
from typing import Any

from bayesmf.cli.tools import command

_BASH = """\
_bayesmf() {{
    local words
    case "$COMP_CWORD ${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD-1]}}" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _bayesmf bayesmf"""
_ZSH = "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n"


def add(commands: Any) -> None:
    """Add the commands of this module."""
    parser = command(
        commands,
        "completion",
        _completion,
        "print a script that makes a shell complete commands and options",
        "Examples:\n"
        "  bash: bayesmf completion bash >> ~/.bashrc\n"
        "  zsh:  bayesmf completion zsh >> ~/.zshrc\n"
        "  fish: bayesmf completion fish > ~/.config/fish/completions/bayesmf.fish",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def _completion(options: argparse.Namespace) -> int:
    from bayesmf.cli import _parser

    print(script(options.shell, _parser()))
    return 0


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script of a shell: commands first, then the options and choices of each command."""
    (group,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    if shell == "fish":
        return _fish(group)
    return (_ZSH if shell == "zsh" else "") + _bash(group)


def _bash(group: Any) -> str:
    cases = {"1\\ *": [*group.choices]}
    for name, parser in group.choices.items():
        words: list[str] = []
        for action in parser._actions:
            choices = [*(action.choices or ())]
            words += action.option_strings or choices
            if action.nargs != 0:  # after such an option comes one of its choices, or a file
                cases |= {f"*\\ {name}\\ {option}": choices for option in action.option_strings}
        cases[f"*\\ {name}\\ *"] = words
    lines = [f"    {case}) words={quote(' '.join(words))} ;;" for case, words in cases.items()]
    return _BASH.format(cases="\n".join(lines))


def _fish(group: Any) -> str:
    first = "complete -c bayesmf -n __fish_use_subcommand"
    lines = [f"{first} -f"]
    for choice in group._choices_actions:
        lines.append(f"{first} -a {choice.dest} -d {_fish_text(choice.help)}")
        for action in group.choices[choice.dest]._actions:
            what = f" -l {action.option_strings[-1][2:]}" if action.option_strings else ""
            if action.choices:
                what += f" -xa {_fish_text(' '.join(action.choices))}"
            elif what and action.nargs != 0:
                what += " -r"
            if what:
                seen = f"complete -c bayesmf -n '__fish_seen_subcommand_from {choice.dest}'"
                lines.append(f"{seen}{what} -d {_fish_text(action.help)}")
    return "\n".join(lines)


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
