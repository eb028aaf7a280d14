"""`bayesmf compare`: which model and which rank for a matrix."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmf.cli import _features, _reading
from bayesmf.cli._tools import command, positive, words

if TYPE_CHECKING:
    from bayesmf.comparison.compare import Comparison
    from bayesmf.data.observed import ObservedMatrix


_DECIDES = ("models", "by", "ranks", "folds", "budget", "scale", "transform", "seed")


def add(commands: Any) -> None:
    """Add the commands of this module."""
    parser = command(
        commands,
        "compare",
        _compare,
        "find the model and the rank that predict held-out entries of a matrix best",
        "Examples:\n"
        "  bayesmf compare ic50.csv\n"
        "  bayesmf compare ratings.csv --long user,film,rating --models GGGA,GGGW,OGGW\n"
        "  bayesmf compare ic50.csv --models 'GGGW + noise cols, GGGW + noise cols + log, tggw'\n"
        "  bayesmf compare ic50.csv --row-features mutations.csv\n"
        "  bayesmf compare CCLE_IC50 --by density --budget thorough\n\n"
        "Every prior, and every likelihood, noise and transformation that suits the data, runs a\n"
        "short chain; the best are judged on shared folds of the entries, their ranks chosen\n"
        "inside each, until a paired test says that they cannot win. Ctrl-C ends it with what is\n"
        "known by then, and the same command goes on where it was.\n\n" + _reading.ABOUT,
        resumes=True,
    )
    _reading.add(parser)
    for name, about in _features.OPTIONS.items():
        parser.add_argument(name, **about)
    parser.add_argument(
        "--models",
        type=words,
        metavar="A,B",
        help="only these, in capitals or not, with options after plus signs: noise rows, noise "
        "cols, noise both, limits, log, log1p, logit, sqrt, rank, biases, features (default: all "
        "that suits)",
    )
    parser.add_argument(
        "--by",
        default="error",
        choices=("error", "density", "coverage"),
        help="what decides: mean squared error, and log density between equals (default); log "
        "density; or coverage of intervals, among models that err little",
    )
    parser.add_argument("--ranks", type=words, metavar="1,2,5", help="only these ranks")
    parser.add_argument("--folds", type=positive, metavar="N", help="number of folds")
    parser.add_argument(
        "--budget",
        default="default",
        choices=("quick", "default", "thorough"),
        help="length of chains and number of folds",
    )
    parser.add_argument(
        "--biases",
        action=argparse.BooleanOptionalAction,
        help="try every model with biases too, or none (default: those that try likelihoods)",
    )
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
    from bayesmf.comparison.entrants import read as read_names
    from bayesmf.data.inspection import inspect

    _asked(options)  # bad options are refused before the file is read
    read_names(options.models or [])
    X, limits = _reading.read(options.data, vars(options))
    X = X.with_features(**_features.read(vars(options)))
    if not (options.quiet or options.json):
        print("\n".join([_read(X), *inspect(X)]))
    folder = Path(options.output or f"{Path(options.data).name.partition('.')[0]}-compare")
    begin = time.perf_counter()
    found = compare(
        X, **_asked(options), **limits, n_jobs=options.jobs, dask=options.dask,
        store=folder / "trials", progress=not (options.quiet or options.json),
    )  # fmt: skip
    seconds = time.perf_counter() - begin
    written = _write(found, folder, options, seconds)
    if options.json:
        print(json.dumps(_record(found, options, seconds), indent=1))
        return 130 if found.interrupted else 0
    if not options.quiet:
        _print(found)
    print(found.recommendation)
    if not options.quiet:
        if fit := _fit_command(found, options):
            print(f"To fill the gaps with it: {fit}")
        if found.interrupted:
            print("The same command goes on from here.", file=sys.stderr)
        print(f"Written: {', '.join(str(path) for path in written)}.", file=sys.stderr)
    return 130 if found.interrupted else 0


def _read(X: ObservedMatrix) -> str:
    """What was read."""
    labels = [name for name, known in (("rows", X.row_labels), ("columns", X.col_labels))
              if known is not None]  # fmt: skip
    values = X.rows.values
    named = f"labels of {' and '.join(labels)}" if labels else "no labels"
    return (
        f"Read {X.shape[0]} rows and {X.shape[1]} columns ({named}), {X.n_observed} entries "
        f"({X.n_observed / (X.shape[0] * X.shape[1]):.0%}) from {values.min():.4g} to "
        f"{values.max():.4g}."
    )


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """What decides the comparison."""
    return {
        "models": options.models, "ranks": _ranks(options.ranks), "folds": options.folds,
        "budget": options.budget, "by": options.by, "biases": options.biases,
        "scale": options.scale, "transformation": options.transform, "random_state": options.seed,
    }  # fmt: skip


def _command(options: argparse.Namespace) -> str:
    """The command line that repeats the comparison."""
    parts = ["bayesmf", "compare", options.data, *_reading.words(vars(options))]
    for name in _DECIDES:
        value = getattr(options, name)
        if value not in (None, "auto"):
            text = ",".join(value) if isinstance(value, list) else str(value)
            parts += [f"--{name.replace('_', '-')}", text]
    parts += _features.words(vars(options))
    biases = {None: [], True: ["--biases"], False: ["--no-biases"]}[options.biases]
    return shlex.join([*parts, *biases])


def _fit_command(found: Comparison, options: argparse.Namespace) -> str:
    """The command line that fits the recommended model to all entries; none if it is of no use."""
    from bayesmf.comparison.words import useless

    if useless(found):
        return ""
    entrant, trial, said = found._best.entrant, found._best.trial, vars(options)
    if entrant.limits and said["lower"] is None and said["upper"] is None:
        ends = (None if end is None else f"{end:g}" for end in trial.ends)
        said = said | dict(zip(("lower", "upper"), ends, strict=True))
    parts = ["bayesmf", "fit", options.data, *_reading.words(said)]
    scale = trial.scale if entrant.built({}).likelihood.takes_units else "none"
    parts += ["--model", entrant.model, "--rank", str(found.best_rank_), "--scale", scale]
    transform = entrant.transformation or trial.transformation
    for name, value in (("--noise", entrant.noise), ("--transform", transform)):
        parts += [name, value] if value is not None else []
    parts += _features.words(said) if entrant.features else []
    parts += ["--biases"] if entrant.biases else []
    return shlex.join([*parts, "--seed", str(options.seed)])


def _record(found: Comparison, options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    from bayesmf._versions import versions

    plain = [_plain(standing) for standing in found.standings]
    best = {
        "name": found.best_, "model": found.best_model_, "rank": found.best_rank_,
        "biases": found.best_biases_,
    }  # fmt: skip
    return {
        "kind": "compare", "command": _command(options), "fit": _fit_command(found, options),
        "data": options.data,
        **_reading.asked(options), **_features.asked(vars(options)), "asked": _asked(options),
        "shape": list(found.X.shape),
        "observed": found.X.n_observed, "best": best, "recommendation": found.recommendation,
        "ranking": plain, "excluded": found.excluded, "notes": found.notes, "seconds": seconds,
        "by": found.by, "interrupted": found.interrupted,
        "columns": [_plain(column) for column in found.columns()],
        "versions": versions(),
    }  # fmt: skip


def _plain(row: Any) -> dict[str, Any]:
    """A named tuple as JSON knows it: what is not finite is null."""
    return {k: None if v != v or v == float("inf") else v for k, v in row._asdict().items()}


def _write(
    found: Comparison, folder: Path, options: argparse.Namespace, seconds: float
) -> list[Path]:
    from bayesmf._files import sealed, write_json, write_table

    rows = [tuple(standing) for standing in found.standings]
    written = write_table(folder, "ranking", found.standings[0]._fields, rows)
    if columns := found.columns():
        written += write_table(folder, "columns", columns[0]._fields, [tuple(c) for c in columns])
    write_json(folder / "run.json", sealed(_record(found, options, seconds)))
    written.append(folder / "run.json")
    if not options.no_report:
        title = f"Which model for {Path(options.data).name}"
        found.report(
            folder / "report.html", title, advice=_fit_command(found, options),
            command=_command(options),
        )  # fmt: skip
        written.append(folder / "report.html")
    return written


def _print(found: Comparison) -> None:
    width = 1 + max(30, *(len(s.model) for s in found.standings))
    print(
        f"{'model':{width}}{'rank':>5}{'folds':>6}{'error':>11} +- {'':7}{'above best':>10}"
        f"{'log density':>12}{'90 %':>7}{'LOO':>9}{'k-hat':>7}  verdict"
    )
    for s in found.standings:
        line = (
            f"{s.model:{width}}{s.rank or '-':>5}{s.folds:6}{s.mse:11.5g} +- {s.mse_error:<7.2g}"
            f"{s.behind:10.1%}{s.log_density:12.4f}{s.coverage:7.1%}"
            f"{s.loo:9.3f}{s.loo_unreliable:7.0%}  {s.status}"
        )
        print(line.replace("nan%", "   -").replace("nan", "  -"))
    for model, why in found.excluded.items():
        print(f"{model:{width}}left out: {why}")
