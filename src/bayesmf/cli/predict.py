"""`bayesmf predict`: new rows and columns from a fit that was made before."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from bayesmf._errors import DataError
from bayesmf._files import replacing_folder, restore, sealed, write_json, writing
from bayesmf.cli import _features, _known, _reading, _tables
from bayesmf.cli._tools import command

_EXAMPLES = """\
Examples:
  bayesmf predict ic50-fit --row-features new-mutations.csv --output new-lines
  bayesmf predict ic50-fit --rows new-lines.csv --row-features new-mutations.csv
  bayesmf predict ic50-fit --row-features new-lines.csv --col-features new-drugs.csv

RUN is a folder that fit has written. New rows have features, entries (--rows, a table with the
columns of the fit), or both; features are those that the fit had, in files in the same order. New
columns need features. With new rows and new columns, the cells where they meet are predicted.

The folder gets predicted.csv (means), std.csv (predictive standard deviations, noise included),
lower.csv and upper.csv (central predictive intervals) and run.json (how it was made)."""


def add(commands: Any) -> None:
    """Add the commands of this module."""
    text = "predict new rows and columns from a fit that was made before"
    parser = command(commands, "predict", _predict, text, _EXAMPLES)
    parser.add_argument("run_folder", metavar="RUN", help="a folder that fit has written")
    parser.add_argument("--rows", metavar="FILE", help="entries of new rows, a table like the data")
    for name in ("--row-features", "--col-features", "--row-kernel", "--col-kernel"):
        about = {**_features.OPTIONS[name], "help": "those of new ones, as the fit had them"}
        parser.add_argument(name, **about)
    parser.add_argument("--level", type=float, default=0.9, help="of the intervals (default: 0.9)")
    parser.add_argument("--data", metavar="DATA", help="where the data are now, if they have moved")
    parser.add_argument(
        "--output", metavar="FOLDER", help="where files go (default: name of the run -new)"
    )
    parser.add_argument("--quiet", action="store_true", help="do not say what was written")


def _predict(options: argparse.Namespace) -> int:
    from bayesmf.cli.fit import check_target

    if not 0 < options.level < 1:
        raise DataError(f"--level must lie between 0 and 1, not {options.level:g}.")
    folder = Path(options.run_folder)
    shown = options.output or f"{folder.name}-new"
    target = Path(shown).resolve()
    with writing(shown):
        restore(target)
        check_target(target, shown, False)
    estimator, record = _fitted(folder, options)
    known = _features.read_new(vars(options), record)
    rows = _new_rows(options, estimator, record)
    if rows is None and not known:
        raise DataError("Nothing is new: give --rows, --row-features or --col-features.")
    tail = 0.5 * (1 - options.level)
    mean, std, (low, high) = estimator.predict(
        rows, **known, return_std=True, quantiles=[tail, 1 - tail]
    )
    X = _named(estimator, known, rows, mean.shape)
    tables = {"predicted": mean, "std": std, "lower": low, "upper": high}
    with writing(shown), replacing_folder(target) as made:
        for name, table in tables.items():
            _tables.write_wide(made / f"{name}.csv", X, table)
        asked = {k: v for k, v in vars(options).items() if k not in ("run", "quiet")}
        about = {"kind": "predict", "shape": mean.shape, **asked}
        write_json(made / "run.json", sealed(about))
        check_target(target, shown, False)  # again: sampling takes its time
    if not options.quiet:
        print(
            f"{mean.shape[0]} x {mean.shape[1]} cells in {shown}: predicted.csv, std.csv, "
            f"lower.csv, upper.csv; the intervals are at {100 * options.level:g} %."
        )
    return 0


def _fitted(folder: Path, options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """The estimator of a fit, and how it was made."""
    from bayesmf.cli.report import load_posterior, read_record
    from bayesmf.estimators import BayesianMF

    record = read_record(folder)
    if record["kind"] != "fit":
        raise DataError(f"{folder} is not the folder of a fit.")
    data = options.data or record["data"]
    X, _ = _known.without_held_out(_reading.read(data, record)[0], record)
    if X.fingerprint() != record["fingerprint"]:
        raise DataError(f"The data in {data} are not those of the run in {folder}; give --data.")
    posterior = load_posterior(folder)
    settings = record["center"], record.get("scale", "none"), record.get("transform")
    return BayesianMF.from_posterior(posterior, X, *settings), record


def _new_rows(options: argparse.Namespace, estimator: Any, record: dict[str, Any]) -> Any:
    """Entries of new rows, with the columns of the fit in their order."""
    from bayesmf.cli._known import _places
    from bayesmf.data.observed import ObservedMatrix
    from bayesmf.reading import read_matrix
    from bayesmf.reading.read import options_for

    if options.rows is None:
        return None
    said = _reading.table_options(record)
    known = options_for(options.rows)  # rows may be in a file of another kind than the data
    table = read_matrix(options.rows, **{k: v for k, v in said.items() if k in known})
    X = estimator._matrix
    i, j, values = table.triples()
    cols = _places(table, X, options.rows, 1)
    return ObservedMatrix.from_triples(
        i, cols[j], values, (table.shape[0], X.shape[1]), table.row_labels, X.col_labels
    )


def _named(estimator: Any, known: dict[str, Any], rows: Any, shape: tuple[int, int]) -> Any:
    """An empty matrix with the labels of what was predicted."""
    from bayesmf.data.observed import ObservedMatrix

    fitted = estimator._matrix
    labels = [fitted.row_labels, fitted.col_labels]
    for axis, kinds in enumerate((("row_features", "row_kernel"), ("col_features", "col_kernel"))):
        for kind in kinds:
            if kind in known:
                first = next(iter(known[kind].values()))
                labels[axis] = getattr(first, "index", None)
    if rows is not None:
        labels[0] = rows.row_labels
    return ObservedMatrix.from_triples([], [], [], shape, labels[0], labels[1])
