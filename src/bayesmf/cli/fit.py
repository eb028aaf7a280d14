"""`bayesmf fit`: fill the gaps of a matrix in a file, and write how sure that is."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmf._errors import ConvergenceWarning, DataError, DataWarning, ModelError, nearest
from bayesmf._files import replacing_folder, restore, sealed, writing
from bayesmf.cli import _features, _found, _known, _output, _reading
from bayesmf.cli._tools import command, positive

if TYPE_CHECKING:
    from bayesmf.data.observed import ObservedMatrix
    from bayesmf.estimators import BayesianMF
    from bayesmf.posterior.diagnostics import Summary

FILES = (
    "completed.csv", "std.csv", "lower.csv", "upper.csv", "filled.csv", "posterior.nc", "run.json",
)  # fmt: skip
# In order, all that may be there.
_WRITTEN = (
    *FILES[:4], *_found.NOISE_FILES.values(), *_features.FILES.values(), FILES[4],
    "completed.xlsx", _output.CELLS, FILES[5], _output.PLAIN, FILES[6],
)  # fmt: skip
_EXAMPLES = f"""\
Examples:
  bayesmf fit drugs.csv
  bayesmf fit ratings.csv --long user,item,rating --model GGGA --rank 10 --biases
  bayesmf fit concentrations.csv --transform log
  bayesmf fit counts.mtx --model PGG --rank 5 --set a=0.5 --seed 1 --output counts-fit
  bayesmf fit ic50.csv --upper 8 --noise cols
  bayesmf fit rates.csv --errors standard-errors.csv
  bayesmf fit stars.csv --model OGGW --biases
  bayesmf fit export.xlsx --sheet Results --skip 2 --drop sex,Total --missing=-999
  bayesmf fit grades.xlsx --clip 1,6 --mark '*'
  bayesmf fit ic50.csv --row-features mutations.csv --col-features fingerprints.csv
  bayesmf fit ratings.npz --single --held-out 0.05 --format parquet

The first letter of a model is its likelihood: G normal noise, T Student-t (outliers), O ordered
categories, P and N counts, B zeros and ones; bayesmf models lists which go with which priors.
--upper 8 says that an instrument shows nothing above 8: entries of 8 may be any larger value.
--noise cols finds out which columns are measured badly; --errors says how well each entry was.

The folder gets completed.csv (gaps filled with posterior means, observed cells unchanged), std.csv
(predictive standard deviations, noise included), lower.csv and upper.csv (central predictive
intervals), filled.csv (the gaps alone, a line for each, with a flag where a value lies outside
what was observed of its column), noise_rows.csv and noise_cols.csv (if they have their own),
features_rows.csv and features_cols.csv (what features explain, if there are any), completed.xlsx
(--excel), posterior.nc (all draws, which bayesmf predict makes use of; posterior.npz without
bayesmf[arviz]) and run.json (how it was made). Tables are written as the data were: corner, order,
separators, decimal marks; columns of text that were left out by --drop are in completed.csv again,
in their places. Predictions are of what would be reported, never beyond a limit. A quote
is put before labels that a spreadsheet would take for a formula.
With --format parquet there is one file cells.parquet in place of completed, std, lower, upper and
filled: row, column, the observed value if there is one, mean, sd, lower and upper of every cell.

{_reading.ABOUT}"""


def _whole(least: int, *others: int) -> Callable[[str], int]:
    """A type of options: whole numbers from ``least`` on, or one of some others."""

    def read(text: str) -> int:
        number = int(text) if re.fullmatch(r"-?\d+", text) else None
        if number is None or (number < least and number not in others):
            also = "".join(f" or {other}" for other in others)
            what = f"must be a whole number of at least {least}{also}, not {text!r}"
            raise argparse.ArgumentTypeError(what)
        return number

    return read


def _rank(text: str) -> int | str:
    return text if text in ("auto", "cv") else positive(text)


def _share(text: str) -> float:
    with suppress(ValueError):
        if 0 < float(text) < 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"must lie between 0 and 1, not {text!r}")


def _clip(text: str) -> str | tuple[float | None, float | None]:
    """Ends to which values are clipped."""
    ends = [end.strip() for end in text.split(",")]
    with suppress(ValueError):
        if text == "observed":
            return text
        if len(ends) == 2 and any(ends):
            low, high = (float(end) if end else None for end in ends)
            if low is None or high is None or low < high:
                return low, high
    raise argparse.ArgumentTypeError(f"must be like 0,100 or 0, or observed, not {text!r}")


def _setting(text: str) -> tuple[str, Any]:
    """A hyperparameter and its value: a number or list as in JSON, none, or a word."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"must be like lambda=0.1, not {text!r}")
    if value.casefold() == "none":
        return name, None
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _transform(text: str) -> str | dict[str, str]:
    """A transform for all columns, or for some by name."""
    if "=" not in text:
        return text
    pairs = [part.rpartition("=") for part in text.split(",")]
    if not all(column and name for column, _, name in pairs):
        raise argparse.ArgumentTypeError(f"must be a name or COLUMN=NAME,..., not {text!r}")
    return {column: name for column, _, name in pairs}


# fmt: off
_OPTIONS: dict[str, dict[str, Any]] = {
    "--model": {"default": "auto", "help":
        "see bayesmf models; auto: normal factors (GGGW) with biases, and noise of each column or "
        "of rows and columns, whichever predicts better (default: auto)"},
    "--rank": {"type": _rank, "default": "auto", "metavar": "K", "help":
        "number of factors; auto: by entries held out of short runs; cv: by cross-validation "
        "(default: auto)"},
    "--draws": {"type": positive, "default": 250, "help": "kept draws per chain (default: 250)"},
    "--burn-in": {"type": _whole(0), "default": 250, "help": "sweeps before (default: 250)"},
    "--thin": {"type": positive, "default": 1, "help": "sweeps per kept draw (default: 1)"},
    "--chains": {"type": positive, "default": 2, "help": "chains (default: 2)"},
    "--seed": {"type": _whole(0), "help": "makes the run repeatable (default: a new one)"},
    "--until": {"choices": ("converged",), "help":
        "run on, up to 16 times as long, until the verdict is fine"},
    "--biases": {"action": argparse.BooleanOptionalAction, "help":
        "add a mean and effects of rows and columns (default: the automatic model has them)"},
    "--center": {"choices": ("auto", "none", "global", "rows", "cols", "both"), "default": "auto",
        "help": "averages to take off before and put back after (default: auto, as --scale; none "
        "under nonnegative factors)"},
    "--scale": {"choices": ("auto", "none", "global", "cols", "rows"), "default": "auto", "help":
        "what to divide by before and multiply with after, so that units do not matter; auto: the "
        "size of each column, or of all values where few cells are observed (default: auto)"},
    "--transform": {"type": _transform, "metavar": "NAME", "help":
        "model log, log1p, logit, sqrt or rank of the values; COLUMN=NAME,... for some columns"},
    "--noise": {"choices": _known.NOISE, "help":
        "whether all cells have the same noise, or each row, each column or both their own "
        "(default: as the model says)"},
    **_features.OPTIONS,
    "--set": {"type": _setting, "action": "append", "default": [], "metavar": "NAME=VALUE", "help":
        "a hyperparameter, such as lambda=0.1; may be repeated"},
    "--level": {"type": _share, "default": 0.9, "help": "of the intervals (default: 0.9)"},
    "--held-out": {"type": _known.entries, "metavar": "X", "help":
        "entries to predict but not to fit: a share of them, such as 0.1, or a file like DATA with "
        "some; the bar tells their error while the chains run, and run.json in the end"},
    "--format": {"choices": ("csv", "parquet"), "default": "csv", "help":
        "parquet: one long file, cells.parquet, with a row for each cell, written some rows at a "
        "time, instead of wide tables; needs bayesmf[parquet] (default: csv)"},
    "--clip": {"type": _clip, "metavar": "LOW,HIGH", "help":
        "keep values and intervals between these, of which one may be empty as in 0, or inside "
        "what was observed of each column: observed"},
    "--mark": {"default": "", "metavar": "TEXT", "help":
        "put this behind values of completed.csv that were filled in, as in '*'"},
    "--excel": {"action": argparse.BooleanOptionalAction, "help":
        "write completed.xlsx too, with filled cells coloured; needs bayesmf[excel] (default: if "
        "the data are an Excel file)"},
    "--jobs": {"type": _whole(1, -1), "default": -1, "metavar": "N", "help":
        "threads; -1 is all cores (default: -1)"},
    "--dask": {"metavar": "ADDRESS", "help":
        "spread the matrix over the workers of this Dask cluster; the result is the same"},
    "--output": {"metavar": "FOLDER", "help": "where files go (default: name of the data -fit)"},
    "--force": {"action": "store_true", "help": "replace the folder of an earlier fit"},
    "--quiet": {"action": "store_true", "help": "print nothing but errors and warnings"},
    "--json": {"action": "store_true", "help": "print the content of run.json and nothing else"},
}
# fmt: on


def add(commands: Any) -> None:
    """Add the commands of this module."""
    text = "fill the gaps of a matrix, with the uncertainty of every cell"
    parser = command(commands, "fit", _fit, text, _EXAMPLES)
    _reading.add(parser)
    for name, about in _OPTIONS.items():
        parser.add_argument(name, **about)


def _fit(options: argparse.Namespace) -> int:
    from bayesmf.reading import EXCEL, suffix_of

    if options.seed is None:
        options.seed = int.from_bytes(os.urandom(4))
    options.output = options.output or f"{Path(options.data.removesuffix('.gz')).stem}-fit"
    with writing(options.output):
        target = Path(options.output).resolve()
        restore(target)
        check_target(target, options.output, options.force)
    changes = _changes(options)
    begin = time.perf_counter()
    X, limits = _reading.read(options.data, vars(options))
    if options.excel is None:
        options.excel = options.format == "csv" and suffix_of(options.data) in EXCEL
    _output.check_format(options, X)
    known = {**limits, **_features.read(vars(options))}
    X, test = _known.without_held_out(X, vars(options))
    with writing(options.output), replacing_folder(target) as folder:
        estimator = _sample(options, X, changes, known, test)
        means, left_out = _output.write_cells(folder, X, estimator, options)
        _output.write_noise(folder, X, estimator, options.level)
        _features.write(folder, estimator)
        record = _record(options, X, estimator, changes)
        record["fit_mse"] = float(((means - X.rows.values) ** 2).mean())
        seen = (estimator.units_.forward(x, X.triples()[:2]) for x in (means, X.rows.values))
        record["fit_in_scales"] = float(((next(seen) - next(seen)) ** 2).mean() ** 0.5)
        record["held_out_errors"] = _output.held_out_errors(estimator, test, options.level)
        record["notes"] += [*left_out, *_output.save(folder, estimator)]
        names = (name for name in _WRITTEN[:-1] if (folder / name).exists())
        record["files"] = [*names, "run.json"]
        record["seconds"]["all"] = time.perf_counter() - begin
        text = json.dumps(sealed(record), indent=1, allow_nan=False)
        (folder / "run.json").write_text(text + "\n", encoding="utf-8")
        check_target(target, options.output, options.force)  # again: sampling takes its time
    if options.json:
        print(text)
    elif not options.quiet:
        print("\n".join(_summary(record)))
    elif record["diagnosis"]["trusted"] is False:
        print(*_verdict(record), file=sys.stderr)
    return 130 if record["interrupted"] else 0


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    """The hyperparameters that were set; unknown names are refused before anything is read."""
    import numpy as np

    from bayesmf.model.presets import as_model, hyperparameters

    model = _model(options)
    known = hyperparameters(model)
    for name, _ in options.set:
        if name not in known:
            what = f"{model} has no hyperparameter {name!r}; it has {', '.join(known)}."
            raise ModelError(what + nearest(name, known))
    changes = {k: np.array(v) if isinstance(v, list) else v for k, v in options.set}
    limits = {name: getattr(options, name) for name in _known.LIMITS}
    numbers = [None if isinstance(limit, str) else limit for limit in limits.values()]
    biases = bool(options.biases)
    as_model(model, changes, biases, options.noise, (numbers[0], numbers[1]))
    return changes


def _model(options: argparse.Namespace) -> str:
    """The name of the model that will be fitted."""
    from bayesmf._automatic import AUTO, AUTOMATIC_MODEL

    return AUTOMATIC_MODEL if options.model == AUTO else options.model


def _sample(
    options: argparse.Namespace, X: ObservedMatrix, changes: dict[str, Any], known: dict[str, Any],
    test: Any,
) -> BayesianMF:  # fmt: skip
    from bayesmf.estimators import BayesianMF

    loud = not (options.quiet or options.json)
    estimator = BayesianMF(
        options.model, options.rank, draws=options.draws, burn_in=options.burn_in,
        thin=options.thin, chains=options.chains, hyperparameters=changes, biases=options.biases,
        noise=options.noise, center=options.center, scale=options.scale,
        transformation=options.transform, random_state=options.seed, n_jobs=options.jobs,
        progress=loud, dask=options.dask,
    )  # fmt: skip
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, DataWarning):  # verdict and notes are printed anyway
            warnings.simplefilter("ignore", kind)
        try:
            seen = (
                None
                if next(iter(estimator._models((None, None)).values())).likelihood.latent
                else test
            )
            return estimator.fit(X, until=options.until, held_out=seen, **known)
        except MemoryError:
            size = f"{options.data} with {X.shape[0]} x {X.shape[1]} cells"
            raise DataError(f"{size} does not fit into memory; fit a part of it.") from None


def check_target(target: Path, shown: str, force: bool) -> None:
    """Refuse a folder that holds anything, unless it is all of an earlier fit and may go."""
    if Path.cwd().is_relative_to(target):
        raise DataError(f"--output {shown} is where you are; name a new folder in it.")
    if not target.exists():
        return
    if not target.is_dir():
        raise DataError(f"--output {shown} is a file; name a folder.")
    found = sorted(path.name for path in target.iterdir())
    if found and not force:
        raise DataError(f"The folder {shown} is not empty; name another, or add --force.")
    strange = [name for name in found if name not in _WRITTEN or "run.json" not in found]
    if strange:
        raise DataError(
            f"The folder {shown} holds {strange[0]!r}, which is not of a fit, so it is not "
            "replaced; name another."
        )


def _record(
    options: argparse.Namespace, X: ObservedMatrix, estimator: BayesianMF, changes: dict[str, Any]
) -> dict[str, Any]:
    from bayesmf._versions import versions
    from bayesmf.model.presets import hyperparameters

    posterior = estimator.posterior_
    settings = posterior.settings
    likelihood = posterior.model.likelihood
    asked = (
        "seed", "held_out", "format", "biases", "noise", "transform", "until", "level", "clip",
        "output", *_reading.NAMES, *_features.KINDS, "pattern",
    )  # fmt: skip
    units = estimator.units_
    record = {
        "kind": "fit", "data": options.data, "shape": X.shape, "observed": X.n_observed,
        "fingerprint": X.fingerprint(), "model": posterior.model.name,
        "model_asked": options.model,
        "hyperparameters": hyperparameters(_model(options)) | changes,
        "resolved": repr(posterior.model), "rank": estimator.n_components_,
        "rank_asked": options.rank,
        "rank_errors": getattr(estimator, "rank_errors_", None),
        "cv_errors": getattr(estimator, "cv_errors_", None),
        "center": units.offsets.center, "scale": units.scale,
        **{name: settings[name] for name in ("draws", "burn_in", "thin", "chains")},
        **{name: getattr(options, name) for name in asked},
        "likelihood": likelihood.name,
        "noise_sd": likelihood.noise_sd(posterior.likelihood_values()),
        "found": _found.found(estimator, X, options.level),
        "train_mse": float(posterior.train_mse[:, settings["burn_in"] :].mean()),
        "interrupted": posterior.interrupted,
        "notes": estimator.notes_,
        "diagnosis": _diagnosis(estimator.summary()), "versions": versions(),
        "seconds": {"sampling": float(posterior.seconds.sum())},
    }  # fmt: skip
    return _plain(record)


def _diagnosis(summary: Summary) -> dict[str, Any]:
    from bayesmf.posterior.diagnostics import TOO_FEW

    few = summary.draws < TOO_FEW
    cells = summary.cell_rhat
    return {
        "trusted": None if few else summary.trusted,
        "level": None if few else summary.level,
        "evidence": summary.evidence._asdict(),
        "verdict": "There are too few draws to tell whether the chains agree."
        if few
        else summary.verdict,
        "advice": [] if few else summary.advice,
        "quantities": [asdict(quantity) for quantity in summary.quantities],
        "cells": {"screened": cells.size, "largest_rhat": cells.max() if cells.size else None},
    }


def _plain(value: Any) -> Any:
    """Anything of a record as JSON knows it; NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _verdict(record: dict[str, Any]) -> list[str]:
    return [record["diagnosis"]["verdict"], *record["diagnosis"]["advice"]]


def _summary(record: dict[str, Any]) -> Iterator[str]:
    """The run in a few lines."""
    n, m = record["shape"]
    yield (
        f"{record['data']}: {n} x {m}, {record['observed']} cells observed "
        f"({record['observed'] / (n * m):.1%})."
    )
    chosen = " by cross-validation" if record["cv_errors"] else ""
    yield (
        f"{record['model']}, rank {record['rank']}{chosen}; {record['chains']} x {record['draws']} "
        f"draws, seed {record['seed']}, {record['seconds']['all']:.1f} s."
    )
    yield from _found.words(record)
    if found := record["held_out_errors"]:
        yield (
            f"Held out: {found['entries']} entries, mean squared error {found['mse']:.4g} (their "
            f"variance is {found['variance']:.4g}); {found['covered']:.0%} lie in their intervals."
        )
    yield " ".join(_verdict(record))
    yield from (f"Note: {note}" for note in record["notes"])
    yield (
        f"Written to {record['output']}: {', '.join(record['files'])}; the intervals are at "
        f"{100 * record['level']:g} %."
    )
