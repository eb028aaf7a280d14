"""How commands read data: the options of reading, and what is known of entries besides."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from bayesmf.cli import _known

if TYPE_CHECKING:
    from bayesmf.data.observed import ObservedMatrix

# fmt: off
TABLE: dict[str, dict[str, Any]] = {  # how a table is read, as `read_matrix` does
    "--long": {"metavar": "ROW,COL,VALUE", "help": "columns of a table with an entry per line"},
    "--row-labels": {"choices": ("auto", "yes", "no"), "default": "auto", "help":
        "whether the first column of a wide table holds labels; auto: unless all of it is numbers "
        "and its header is neither empty nor like id, index or name"},
    "--sep": {"metavar": "X", "help":
        "what separates cells: a character, or tab (default: what fits, of , ; and tab)"},
    "--decimal": {"choices": (".", ","), "help":
        "what decimals are written with (default: what the cells speak for)"},
    "--skip": {"type": int, "default": 0, "metavar": "N", "help":
        "lines above the column labels to leave out, such as a title"},
    "--comment": {"metavar": "TEXT", "help": "leave out lines that begin with this, such as '#'"},
    "--encoding": {"metavar": "NAME", "help": "of text, such as cp1252 (default: UTF-8)"},
    "--sheet": {"metavar": "NAME", "help":
        "name or number of a sheet of an Excel file (default: the first)"},
    "--layer": {"metavar": "NAME", "help": "a layer of an .h5ad file (default: its X)"},
    "--missing": {"metavar": "A,B", "default": "", "help":
        "more codes for missing, such as --missing=low,-999; limits: all cells such as >8"},
    "--drop": {"metavar": "A,B", "default": "", "help":
        "columns and rows to leave out, by their labels; fit writes columns of text back"},
    "--duplicates": {"choices": ("error", "mean", "first"), "default": "error", "help":
        "what to do with rows, columns or entries of the same label (default: error)"},
    "--single": {"action": "store_true", "default": False, "help":
        "keep values in single precision, which halves the memory they take; ratings, counts and "
        "other numbers of up to seven digits give the same results"},
}
BESIDES: dict[str, dict[str, Any]] = {  # what is known of entries besides their values
    "--errors": {"metavar": "FILE", "help":
        "known standard deviations of the entries, up to a common factor: a table like DATA"},
    "--weights": {"metavar": "FILE", "help": "the same as weights, the inverse squares of errors"},
    "--lower": {"type": _known.limit, "metavar": "X", "help":
        "a limit: values at or below it lie anywhere there; a number, or a file with one row of "
        "limits, one for each column, or with one for each cell"},
    "--upper": {"type": _known.limit, "metavar": "X", "help": "the same for values at or above"},
}
# fmt: on
NAMES = [name[2:].replace("-", "_") for name in (*TABLE, *BESIDES)]
ABOUT = """\
DATA is a wide table with labels in its first row and first column (.csv, .tsv, .txt, also with
.gz, .xlsx or .parquet), a table of triples (--long), .npy, .npz, .mtx, .h5ad, or a name that
bayesmf datasets lists. Commas, semicolons and tabs, decimal points and commas are told apart, and
what was guessed is printed. Empty cells, NA, #N/A, ND, n.a. and - are missing (--missing adds
others); in sparse files the stored entries are observed. >8, 8+, <0.05 and [2, 4] are values that
lie there or farther, or between; 1,234 and 5% are numbers."""


def add(parser: Any) -> None:
    """Add the data and the options of reading it."""
    parser.add_argument("data", metavar="DATA", help="a file, or the name of a dataset")
    group = parser.add_argument_group("how the data are read")
    for name, about in (TABLE | BESIDES).items():
        group.add_argument(name, **about)


def asked(options: argparse.Namespace) -> dict[str, Any]:
    """What was said about the data, by name, for a record."""
    return {name: getattr(options, name) for name in NAMES}


def read(data: str, said: dict[str, Any]) -> tuple[ObservedMatrix, dict[str, Any]]:
    """The matrix with known errors, and limits of its values; ``said`` may be a record."""
    from bayesmf.reading import read_matrix

    X = _known.with_errors(read_matrix(data, **table_options(said)), said)
    return X, _known.limits(X, said)


def table_options(said: dict[str, Any]) -> dict[str, Any]:
    """Options of `read_matrix`, as far as a record knows them."""
    names = [name[2:].replace("-", "_") for name in TABLE]
    found = {name: said[name] for name in names if said.get(name) is not None}
    if "row_labels" in found:
        found["labels"] = found.pop("row_labels")
    return found


def words(said: dict[str, Any]) -> list[str]:
    """The options as on a command line, those at their defaults left out."""
    found = []
    for name, about in (TABLE | BESIDES).items():
        value = said[name[2:].replace("-", "_")]
        if value is True:
            found.append(name)
        elif value is not None and value != about.get("default"):
            found.append(f"{name}={value}" if str(value).startswith("-") else name)
            found += [] if str(value).startswith("-") else [str(value)]
    return found
