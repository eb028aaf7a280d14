"""Readers of drug sensitivities: cell lines in rows, drugs in columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from bayesmf._errors import DataError
from bayesmf.data.observed import ObservedMatrix
from bayesmf.datasets._tables import ROWS, labelled, lines, number, numbers, records, study, unique

_CAP = 100.0  # micromolar
_CCLE_NAMES = ("Primary Cell Line Name", "Compound")
_UNSPOKEN = str.maketrans("", "", "- .,")  # what the study left out of names to sort them


def prepared(
    paths: Sequence[Path], raw: bool, sparse: Sequence[int] = (), column: int = 1
) -> ObservedMatrix:
    """A table of the study, with a file of names for its rows and one for its columns.

    ``column`` is where in these files the names are.
    """
    values, *names = paths
    try:
        rows, cols = ([line.split("\t")[column] for line in lines(path)] for path in names)
    except IndexError:
        files = " or ".join(map(str, names))
        raise DataError(f"A line of {files} lacks its second column; get it again.") from None
    X = labelled(values, numbers(values), rows, cols)
    return X if raw else study(X, sparse)


def ccle_list(
    paths: Sequence[Path], raw: bool, measure: str, sparse: Sequence[int] = ()
) -> ObservedMatrix:
    """One measure of the published list of CCLE experiments, in the order of the study's tables."""
    table = records(paths[0], (*_CCLE_NAMES, measure), delimiter=",")
    rows, cols = (
        {name: name for name in sorted({row[k] for row in table}, key=str.upper)} for k in (0, 1)
    )
    X = _pivot(paths[0], table, rows, cols)
    return X if raw else study(X, sparse)


def ctrp(paths: Sequence[Path], raw: bool) -> ObservedMatrix:
    """CTRP EC50: of several curves for a cell line and a compound the last counts, as in the study.

    Every compound in the metadata has a column. Cell lines without any curve are rows of the raw
    matrix only.
    """
    curves, experiments, cell_lines, compounds = paths
    cell_of = {row[0]: row[1] for row in records(experiments, ("experiment_id", "master_ccl_id"))}
    rows = _sorted_names(records(cell_lines, ("master_ccl_id", "ccl_name")))
    cols = _sorted_names(records(compounds, ("master_cpd_id", "cpd_name")))
    table = records(curves, ("experiment_id", "master_cpd_id", "apparent_ec50_umol"))
    if unknown := {experiment for experiment, _, _ in table} - cell_of.keys():
        raise DataError(
            f"{curves}: experiment {min(unknown)} is not in {experiments}; get both again."
        )
    cells = ((cell_of[experiment], drug, value) for experiment, drug, value in table)
    X = _pivot(curves, cells, rows, cols)
    return X if raw else study(X, sparse=(ROWS,), least=1, cap=_CAP)


def _sorted_names(table: list[tuple[str, ...]]) -> dict[str, str]:
    """A unique name for each id, in the order of the names without case, spaces and hyphens."""
    table = sorted(table, key=lambda row: row[1].upper().translate(_UNSPOKEN))
    ids = [row[0] for row in table]
    return dict(zip(ids, unique([row[1] for row in table], ids), strict=True))


def _pivot(
    path: Path, cells: Iterable[tuple[str, ...]], rows: dict[str, str], cols: dict[str, str]
) -> ObservedMatrix:
    """A matrix of (row id, column id, value) in text, with names by id; later values win."""
    row_of, col_of = ({key: k for k, key in enumerate(side)} for side in (rows, cols))
    values = np.full((len(rows), len(cols)), np.nan)
    for row, col, text in cells:
        try:
            value, cell = number(text), (row_of[row], col_of[col])
        except KeyError as error:
            raise DataError(
                f"{path} refers to {error}, which is not in the metadata; get all files again."
            ) from None
        except ValueError:
            raise DataError(f"{path} holds {text!r} for a value; get it again.") from None
        if not np.isnan(value):
            values[cell] = value
    return labelled(path, values, list(rows.values()), list(cols.values()))
