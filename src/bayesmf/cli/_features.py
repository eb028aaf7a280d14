"""Features of rows and columns from files, and what became of them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmf._errors import DataError, needs

if TYPE_CHECKING:
    from bayesmf.data.features import Features
    from bayesmf.estimators import BayesianMF

KINDS = ("row_features", "col_features", "row_kernel", "col_kernel")
FILES = {"rows": "features_rows.csv", "cols": "features_cols.csv"}
_TABLE = (
    "tables with labels in the first column, matched to those of the data; words are categories"
)
# fmt: off
OPTIONS: dict[str, dict[str, Any]] = {
    "--row-features": {"nargs": "+", "metavar": "FILE", "help":
        f"what is known of the rows: {_TABLE}"},
    "--col-features": {"nargs": "+", "metavar": "FILE", "help": "the same of the columns"},
    "--row-kernel": {"nargs": "+", "metavar": "FILE", "help":
        "similarities of the rows to each other: a square table with labels on both sides"},
    "--col-kernel": {"nargs": "+", "metavar": "FILE", "help": "the same of the columns"},
    "--pattern": {"choices": ("rows", "cols", "both"), "help":
        "make features of which entries are observed"},
}
# fmt: on


def read(asked: dict[str, Any]) -> dict[str, Any]:
    """What was asked for, as `BayesianMF.fit` takes it; each file is a group by its name."""
    known: dict[str, Any] = {"pattern": asked.get("pattern")}
    for kind in KINDS:
        paths = asked.get(kind) or []
        names = [_name(path) for path in paths]
        if again := [name for name in names if names.count(name) > 1]:
            raise DataError(f"Two files of features are called {again[0]!r}; rename one of them.")
        known[kind] = dict(zip(names, map(_read, paths), strict=True)) or None
    return {name: value for name, value in known.items() if value is not None}


def asked(options: dict[str, Any]) -> dict[str, Any]:
    """What was said about features, by name, for a record."""
    return {name: options.get(name) for name in (*KINDS, "pattern")}


def words(options: dict[str, Any]) -> list[str]:
    """The same as on a command line."""
    found: list[str] = []
    for name, value in asked(options).items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            found += [option, *([value] if isinstance(value, str) else value)]
    return found


def read_new(asked: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """The same of new rows and columns: files in the order in which the fit had theirs."""
    known = {}
    for kind in KINDS:
        paths, fitted = asked.get(kind) or [], record.get(kind) or []
        if not paths:
            continue
        option = f"--{kind.replace('_', '-')}"
        if len(paths) != len(fitted):
            raise DataError(
                f"{option} needs {len(fitted)} files, as the fit had, not {len(paths)}."
            )
        known[kind] = {_name(old): _read(new) for old, new in zip(fitted, paths, strict=True)}
    return known


def _name(path: str) -> str:
    """The name of a group: that of its file, of letters and digits."""
    stem = Path(path.removesuffix(".gz")).stem
    return (
        "".join(c if c.isalnum() or c in "_- " else "_" for c in stem).lstrip("-_ ") or "features"
    )


def _read(path: str) -> Any:
    """A DataFrame with labels, or an array."""
    from bayesmf.reading import TABLES, read_matrix, suffix_of

    if suffix_of(path) not in TABLES:
        return read_matrix(path).to_array()
    try:
        import pandas as pd
    except ImportError:
        raise needs("Features from tables", "pandas", "arviz") from None
    try:
        if suffix_of(path) == ".parquet":
            return pd.read_parquet(path)
        separator = "," if suffix_of(path) == ".csv" else "\t"
        return pd.read_csv(path, sep=separator, index_col=0, dtype={0: str}, encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror or error}).") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a table that can be read ({error}).") from None


def write(folder: Path, estimator: BayesianMF) -> None:
    """How much of the variance every feature explains, the most important first."""
    model = estimator.posterior_.model
    for side, features in (("rows", model.rows.features), ("cols", model.cols.features)):
        if features is not None:
            _write(folder / FILES[side], estimator, side, features)


def _write(path: Path, estimator: BayesianMF, side: str, features: Features) -> None:
    from bayesmf.cli._tables import harmless

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["group", "share", "lower", "upper", "feature", "importance"])
        for group in estimator.posterior_.feature_weights(side):
            share = [f"{number:.4g}" for number in group.share]
            for p in (-group.importance).argsort():
                name = harmless(group.features[p])
                writer.writerow([group.group, *share, name, f"{group.importance[p]:.4g}"])
