"""`bayesmf reproduce`: the study, or parts of it."""

from __future__ import annotations

import argparse
from typing import Any

from bayesmf.cli.tools import command, positive, words

_EXPERIMENTS = (
    "convergence",
    "runtime",
    "cross_validation",
    "noise",
    "sparsity",
    "model_selection",
)


def add(commands: Any) -> None:
    """Add the commands of this module."""
    parser = command(
        commands,
        "reproduce",
        _reproduce,
        "re-run the study: all experiments, tables and figures",
        "Examples:\n"
        "  bayesmf reproduce all --budget quick --jobs 2\n"
        "  bayesmf reproduce cross_validation --protocol sound --datasets CCLE_IC50 --budget full\n"
        "  bayesmf reproduce all --dry-run\n\n"
        "A run that is stopped goes on where it was when it is started again with the same\n"
        "--output. Matrices are looked for in the folder that BAYESMF_DATA names.",
    )
    parser.add_argument(
        "experiments",
        nargs="*",
        default=["all"],
        metavar="EXPERIMENT",
        help=f"all, or some of {', '.join(_EXPERIMENTS)}",
    )
    parser.add_argument(
        "--protocol",
        default="paper",
        choices=("paper", "sound", "both"),
        help="what the study did, what it should have done, or both",
    )
    parser.add_argument(
        "--budget",
        default="quick",
        choices=("quick", "full"),
        help="few repeats of everything, or all of them",
    )
    parser.add_argument(
        "--datasets", type=words, default=[], metavar="A,B", help="only these matrices"
    )
    parser.add_argument(
        "--models", type=words, default=[], metavar="A,B", help="only these methods"
    )
    parser.add_argument(
        "--output",
        default="study",
        metavar="FOLDER",
        help="where store, tables and figures go (default: study)",
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        default=1,
        metavar="N",
        help="processes that run tasks side by side (default: 1)",
    )
    parser.add_argument("--dask", metavar="ADDRESS", help="run tasks on this Dask cluster")
    parser.add_argument("--no-figures", action="store_true", help="write tables only")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the tasks and how long they would take, and do nothing",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def _chosen(names: list[str]) -> list[str]:
    from bayesmf.experiments.settings import EXPERIMENTS

    return list(EXPERIMENTS) if "all" in names else names


def _reproduce(options: argparse.Namespace) -> int:
    from bayesmf.experiments.reproduce import plan, reproduce

    experiments = _chosen(options.experiments)
    if options.dry_run:
        return _dry_run(
            options,
            *plan(experiments, options.protocol, options.budget, options.datasets, options.models),
        )
    found = reproduce(
        experiments,
        protocol=options.protocol,
        budget=options.budget,
        names=options.datasets,
        models=options.models,
        folder=options.output,
        jobs=options.jobs,
        dask=options.dask,
        figures=not options.no_figures,
        progress=not options.quiet,
    )
    if not options.quiet:
        print(
            f"{found['done']} tasks were run, {len(found['written'])} files written to "
            f"{options.output}."
        )
        _left_out(found["absent"])
        _agreement(found["cells"])
    return 0


def _left_out(absent: list[str]) -> None:
    if absent:
        print(f"Left out, because they are not here (see bayesmf datasets): {', '.join(absent)}.")


def _agreement(cells: list[Any]) -> None:
    from bayesmf.experiments.tables import agreement

    found = agreement(c for c in cells if c.protocol == "paper")
    if found["cells"]:
        print(
            f"{found['within']} of {found['cells']} published cells ({found['share']:.0%}) lie "
            "within three combined standard errors."
        )


def _dry_run(options: argparse.Namespace, tasks: list[Any], absent: list[str]) -> int:
    from bayesmf.experiments.estimate import learnt, study_seconds
    from bayesmf.experiments.store import Store

    store = Store(f"{options.output}/store")
    alike: dict[str, list[Any]] = {}  # tasks that differ in nothing but the repeat
    for task in tasks:
        alike.setdefault(str(task).rpartition(" #")[0], []).append(task)
    known, missing = dict(store.records(tasks)), []
    length = learnt(known.items())
    for name, group in alike.items():
        left = [task for task in group if task not in known]
        done = f", {len(group) - len(left)} done" if len(left) < len(group) else ""
        print(f"{sum(map(length, left)):7.1f} s  {name} ({len(group)} tasks{done})")
        missing += left
    ours, theirs = sum(map(length, missing)), sum(map(study_seconds, missing))
    print(
        f"{len(tasks)} tasks, {len(missing)} of them to be run: about "
        f"{ours / options.jobs / 60:.0f} minutes with --jobs {options.jobs}; the study's own code "
        f"would have taken {theirs / 3600:.0f} hours for their sweeps."
    )
    _left_out(absent)
    return 0
