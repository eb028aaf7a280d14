"""`bayesmf compare`: which model and which rank for a matrix."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from bayesmf.cli._tools import command, positive, words


def add(commands: Any) -> None:
    """Add the commands of this module."""
    parser = command(
        commands,
        "compare",
        _compare,
        "find the model and the rank that predict held-out entries of a matrix best",
        "Examples:\n"
        "  bayesmf compare ic50.csv\n"
        "  bayesmf compare ratings.csv --long user,film,rating --models GGGA,GGGW,PGG\n"
        "  bayesmf compare CCLE_IC50 --biases --budget thorough\n\n"
        "Every model is judged on shared folds of the entries, its rank chosen inside each. Those\n"
        "that fall behind are stopped. After Ctrl-C the same command goes on where it was.",
    )
    parser.add_argument("data", metavar="DATA", help="a file, or the name of a known dataset")
    parser.add_argument("--long", metavar="ROW,COL,VALUE", help="DATA is a table of triples")
    parser.add_argument("--models", type=words, metavar="A,B", help="only these; default: all")
    parser.add_argument("--ranks", type=words, metavar="1,2,5", help="only these ranks")
    parser.add_argument("--folds", type=positive, metavar="N", help="number of folds")
    parser.add_argument(
        "--budget",
        default="default",
        choices=("quick", "default", "thorough"),
        help="length of chains and number of folds",
    )
    parser.add_argument("--biases", action="store_true", help="try every model with biases too")
    parser.add_argument(
        "--scale",
        default="auto",
        choices=("auto", "none", "global", "cols", "rows"),
        help="what models see the data divided by, as in bayesmf fit",
    )
    parser.add_argument("--transform", metavar="NAME", help="log, log1p, logit, sqrt or rank")
    parser.add_argument("--seed", type=int, default=0, help="seed of folds and chains (default 0)")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="default: all cores")
    parser.add_argument("--dask", metavar="ADDRESS", help="run trials on this Dask cluster")
    parser.add_argument("--output", metavar="FOLDER", help="default: NAME-compare")
    parser.add_argument("--no-report", action="store_true", help="write no HTML page")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="print the recommendation alone")


def _ranks(texts: list[str] | None) -> list[int] | None:
    from bayesmf._errors import ModelError

    if texts is None:
        return None
    for text in texts:
        if not text.isdigit() or int(text) < 1:
            raise ModelError(f"--ranks must be whole numbers of at least 1, got {text!r}.")
    return [int(text) for text in texts]


def _compare(options: argparse.Namespace) -> int:
    from bayesmf.comparison.compare import compare
    from bayesmf.reading import read_matrix

    _asked(options)  # bad options are refused before the file is read
    X = read_matrix(options.data, long=options.long)
    folder = Path(options.output or f"{Path(options.data).name.partition('.')[0]}-compare")
    begin = time.perf_counter()
    found = compare(
        X, **_asked(options), n_jobs=options.jobs, dask=options.dask, store=folder / "trials",
        progress=not (options.quiet or options.json),
    )  # fmt: skip
    seconds = time.perf_counter() - begin
    written = _write(found, folder, options, seconds)
    if options.json:
        print(json.dumps(_record(found, options, seconds), indent=1))
        return 0
    if not options.quiet:
        _print(found)
    print(found.recommendation)
    if not options.quiet:
        print(f"Written: {', '.join(str(path) for path in written)}.", file=sys.stderr)
    return 0


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """What decides the comparison."""
    return {
        "models": options.models, "ranks": _ranks(options.ranks), "folds": options.folds,
        "budget": options.budget, "biases": options.biases, "scale": options.scale,
        "transformation": options.transform, "random_state": options.seed,
    }  # fmt: skip


def _command(options: argparse.Namespace) -> str:
    """The command line that repeats the comparison."""
    import shlex

    parts = ["bayesmf", "compare", options.data]
    for name in ("long", "models", "ranks", "folds", "budget", "scale", "transform", "seed"):
        value = getattr(options, name)
        if value is not None:
            parts += [f"--{name}", ",".join(value) if isinstance(value, list) else str(value)]
    return shlex.join([*parts, *(["--biases"] if options.biases else [])])


def _record(found: Any, options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    from bayesmf._versions import versions

    plain = [
        {k: None if v != v or v == float("inf") else v for k, v in s._asdict().items()}
        for s in found.standings
    ]
    best = {"model": found.best_model_, "rank": found.best_rank_, "biases": found.best_biases_}
    return {
        "kind": "compare", "command": _command(options), "data": options.data,
        "long": options.long, "asked": _asked(options), "shape": list(found.X.shape),
        "observed": found.X.n_observed, "best": best, "recommendation": found.recommendation,
        "ranking": plain, "excluded": found.excluded, "notes": found.notes, "seconds": seconds,
        "versions": versions(),
    }  # fmt: skip


def _write(found: Any, folder: Path, options: argparse.Namespace, seconds: float) -> list[Path]:
    from bayesmf._files import write_json, write_table

    rows = [tuple(standing) for standing in found.standings]
    written = write_table(folder, "ranking", found.standings[0]._fields, rows)
    write_json(folder / "run.json", _record(found, options, seconds))
    written.append(folder / "run.json")
    if not options.no_report:
        title = f"Which model for {Path(options.data).name}"
        found.report(folder / "report.html", title, command=_command(options))
        written.append(folder / "report.html")
    return written


def _print(found: Any) -> None:
    for note in found.notes:
        print(note)
    print(f"{'model':17}{'rank':>5}{'folds':>6}{'error':>11} +- {'':7}{'log density':>12}"
          f"{'90 %':>7}  verdict")  # fmt: skip
    for s in found.standings:
        print(f"{s.model:17}{s.rank:5}{s.folds:6}{s.mse:11.5g} +- {s.mse_error:<7.2g}"
              f"{s.log_density:12.4f}{s.coverage:7.1%}  {s.status}".replace("nan%", "   -")
              .replace("nan", "  -"))  # fmt: skip
    for model, why in found.excluded.items():
        print(f"{model:17}left out: {why}")
