"""`bayesmf reproduce`: the study, or parts of it."""

from __future__ import annotations

import argparse
from typing import Any

from bayesmf.cli._tools import command, positive, words
from bayesmf.study.experiments import NAMES

_EXAMPLES = """\
Examples:
  bayesmf reproduce all --budget quick --jobs 2
  bayesmf reproduce cross_validation --protocol sound --datasets CCLE_IC50 --budget full
  bayesmf reproduce all --dry-run
  bayesmf reproduce --output study --pack records.jsonl.xz
  bayesmf reproduce all --budget full --records records.jsonl.xz --output elsewhere

A run that is stopped goes on where it was when it is started again with the same
--output. --pack writes what a folder has so far to one file, and --records goes on
from there, on any machine; a matrix whose tasks are all recorded need not be there.
Given together they merge files. Matrices are looked for in the folder that
BAYESMF_DATA names."""
# fmt: off
_OPTIONS: dict[str, dict[str, Any]] = {
    "experiments": {"nargs": "*", "default": ["all"], "metavar": "EXPERIMENT", "help":
        f"all, or some of {', '.join(NAMES)}"},
    "--protocol": {"default": "paper", "choices": ("paper", "sound", "both"), "help":
        "what the study did, what it should have done, or both"},
    "--budget": {"default": "quick", "choices": ("quick", "full"), "help":
        "few repeats of everything, or all of them"},
    "--datasets": {"type": words, "default": [], "metavar": "A,B", "help": "only these matrices"},
    "--models": {"type": words, "default": [], "metavar": "A,B", "help": "only these methods"},
    "--output": {"default": "study", "metavar": "FOLDER", "help":
        "where store, tables and figures go (default: study)"},
    "--records": {"action": "append", "default": [], "metavar": "FILE", "help":
        "tasks with a record in this packed file count as done; may be given several times"},
    "--pack": {"metavar": "FILE", "help":
        "write all records of the folder, and of --records, to this file, and run nothing"},
    "--jobs": {"type": positive, "default": 1, "metavar": "N", "help":
        "processes that run tasks side by side (default: 1)"},
    "--dask": {"metavar": "ADDRESS", "help": "run tasks on this Dask cluster"},
    "--no-figures": {"action": "store_true", "help": "write tables only"},
    "--dry-run": {"action": "store_true", "help":
        "print the tasks and how long they would take, and do nothing"},
    "--quiet": {"action": "store_true", "help": "print nothing but errors"},
}
# fmt: on


def add(commands: Any) -> None:
    """Add the commands of this module."""
    text = "re-run the study: all experiments, tables and figures"
    parser = command(commands, "reproduce", _reproduce, text, _EXAMPLES, resumes=True)
    for name, about in _OPTIONS.items():
        parser.add_argument(name, **about)


def _reproduce(options: argparse.Namespace) -> int:
    from bayesmf.study.reproduce import open_store, plan, reproduce

    if options.pack:
        return _pack(options)
    what = {
        "experiments": NAMES if "all" in options.experiments else options.experiments,
        "protocol": options.protocol, "budget": options.budget, "names": options.datasets,
        "models": options.models,
    }  # fmt: skip
    if options.dry_run:
        store = open_store(options.output, options.records)
        tasks, absent = plan(**what, store=store)
        lines = [*_times(tasks, dict(store.records(tasks)), options.jobs), *_left_out(absent)]
    else:
        found = reproduce(
            **what, folder=options.output, records=options.records, jobs=options.jobs,
            dask=options.dask, figures=not options.no_figures, progress=not options.quiet,
        )  # fmt: skip
        lines = _ending(found, options.output)
    if options.dry_run or not options.quiet:
        print("\n".join(lines))
    return 0


def _pack(options: argparse.Namespace) -> int:
    from bayesmf._errors import ModelError
    from bayesmf.study.reproduce import pack

    if options.dry_run or options.datasets or options.models or options.experiments != ["all"]:
        raise ModelError("--pack takes all records of a folder: leave out experiments, --datasets, "
                         "--models and --dry-run.")  # fmt: skip
    n = pack(options.output, options.pack, options.records)
    if not options.quiet:
        print(f"{n} records were written to {options.pack}.")
    return 0


def _left_out(absent: list[str]) -> list[str]:
    names = ", ".join(absent)
    return [f"Left out, because they are not here (see bayesmf datasets): {names}."] * bool(absent)


def _ending(found: dict[str, Any], folder: str) -> list[str]:
    """What was done, how far it agrees with what was published, and where it is to be seen."""
    from bayesmf.study.tables import agreement
    from bayesmf.study.tasks import PROTOCOLS

    lines = [f"{found['done']} tasks were run, {len(found['written'])} files written to {folder}."]
    lines += _left_out(found["absent"])
    near = agreement(c for c in found["cells"] if c.protocol == "paper")
    if near["cells"]:
        lines.append(f"{near['within']} of {near['cells']} published cells ({near['share']:.0%}) "
                     "lie within three combined standard errors; by experiment: "
                     f"{folder}/tables/agreement.md.")  # fmt: skip
    for one in PROTOCOLS:
        verdicts = [v.verdict for v in found["verdicts"] if v.protocol == one]
        if verdicts:
            words = ", ".join(f"{word} {verdicts.count(word)}" for word in dict.fromkeys(verdicts))
            lines.append(f"The observations, judged {len(verdicts)} times ({one}): {words}; see "
                         f"{folder}/tables/{one}/observations.md.")  # fmt: skip
    if found["gallery"]:
        lines.append(f"All figures on one page: {found['gallery']}")
    return lines


def _times(tasks: list[Any], known: dict[Any, Any], jobs: int) -> list[str]:
    """Tasks that differ in nothing but the repeat, with the seconds that they will take."""
    from bayesmf.study.estimate import learnt, study_seconds

    alike: dict[str, list[Any]] = {}
    for task in tasks:
        alike.setdefault(str(task).rpartition(" #")[0], []).append(task)
    lines, missing = [], []
    length = learnt(known.items())
    for name, group in alike.items():
        left = [task for task in group if task not in known]
        done = f", {len(group) - len(left)} done" if len(left) < len(group) else ""
        lines.append(f"{sum(map(length, left)):7.1f} s  {name} ({len(group)} tasks{done})")
        missing += left
    ours, theirs = sum(map(length, missing)), sum(map(study_seconds, missing))
    study = f"; the study's own code would have taken {theirs / 3600:.0f} hours for their sweeps"
    lines.append(
        f"{len(tasks)} tasks, {len(missing)} of them to be run: about "
        f"{ours / jobs / 60:.0f} minutes with --jobs {jobs}{study * (theirs > 0)}."
    )
    return lines
