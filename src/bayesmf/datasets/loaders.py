"""One function for each family of datasets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from bayesmf._errors import DataError, nearest
from bayesmf.datasets.catalogue import Dataset, load

_T = TypeVar("_T")
_CCLE = {
    "ic50": {"study": "CCLE_IC50", "clean": "CCLE_IC50"},
    "ec50": {"study": "CCLE_EC50", "clean": "CCLE_EC50_clean"},
}
_MOVIELENS = {"100k": "MovieLens_100K", "1m": "MovieLens_1M"}
_METHYLATION = {"gene_body": "Methylation_GM", "promoter": "Methylation_PM"}


def load_digits(raw: bool = False) -> Dataset:
    """Load scikit-learn's images of handwritten digits: 1797 x 64 integers from 0 to 16.

    Parameters
    ----------
    raw : bool
        Changes nothing: the values are raw.

    Examples
    --------
    >>> load_digits().X.cell_name(3, 10)
    "row 'digit 3 #3', column 'pixel 1,2'"
    """
    return load("digits", raw)


def load_drug_sensitivity() -> Dataset:
    """Load simulated drug sensitivities, whose truth is known: 120 cell lines x 40 drugs.

    The noise has the standard deviation ``bayesmf.datasets.NOISE_SD``.

    Examples
    --------
    >>> data = load_drug_sensitivity()
    >>> data.X, data.truth.shape
    (ObservedMatrix(120 x 40, 3627 observed, 75.6 %), (120, 40))
    """
    return load("drug_sensitivity")


def fetch_gdsc(
    raw: bool = False,
    data_home: str | Path | None = None,
    download: bool = True,
    check: bool = True,
) -> Dataset:
    """Load GDSC IC50 values: 705 cell lines x 139 drugs, 79,259 observed.

    Parameters are those of `load`. The files must be fetched by hand.

    Examples
    --------
    >>> fetch_gdsc().X  # doctest: +SKIP
    ObservedMatrix(705 x 139, 79259 observed, 80.9 %)
    """
    return load("GDSC", raw, data_home, download, check)


def fetch_ctrp(
    raw: bool = False,
    data_home: str | Path | None = None,
    download: bool = True,
    check: bool = True,
    *,
    small: bool = False,
) -> Dataset:
    """Load CTRP version 2 EC50 values: 887 cell lines x 545 drugs, 387,130 observed.

    Where a cell line has several curves for a drug, the last in the file counts, as in the study.
    The ``small`` part, which the study did not have, is 379 x 52 with 14,998 observed.

    Other parameters are those of `load`. The files must be fetched by hand.

    Examples
    --------
    >>> fetch_ctrp().X  # doctest: +SKIP
    ObservedMatrix(887 x 545, 387130 observed, 80.1 %)
    """
    return load("CTRP_small" if small else "CTRP", raw, data_home, download, check)


def fetch_ccle(
    measure: str = "ic50",
    version: str = "study",
    raw: bool = False,
    data_home: str | Path | None = None,
    download: bool = True,
    check: bool = True,
) -> Dataset:
    """Load CCLE values: up to 504 cell lines x 24 drugs.

    Other parameters are those of `load`. The files must be fetched by hand.

    Parameters
    ----------
    measure : "ic50" or "ec50"
    version : "study" or "clean"
        For EC50, with or without the 425 zeros that the study's preparation made up; for IC50
        the two are the same.

    Examples
    --------
    >>> fetch_ccle("ec50", version="clean").X  # doctest: +SKIP
    ObservedMatrix(501 x 24, 7195 observed, 59.8 %)
    """
    versions = _chosen("measure", measure, _CCLE)
    return load(_chosen("version", version, versions), raw, data_home, download, check)


def fetch_movielens(
    size: str = "100k",
    raw: bool = False,
    data_home: str | Path | None = None,
    download: bool = True,
    check: bool = True,
) -> Dataset:
    """Load MovieLens ratings of films by users.

    Other parameters are those of `load`.

    Parameters
    ----------
    size : "100k" or "1m"
        943 x 1473 with 99,723 ratings, or 6040 x 3503 with 999,917.

    Examples
    --------
    >>> fetch_movielens("100k").X  # doctest: +SKIP
    ObservedMatrix(943 x 1473, 99723 observed, 7.2 %)
    """
    return load(_chosen("size", size, _MOVIELENS), raw, data_home, download, check)


def fetch_methylation(
    region: str = "gene_body",
    raw: bool = False,
    data_home: str | Path | None = None,
    download: bool = True,
    check: bool = True,
) -> Dataset:
    """Load the methylation of 160 breast cancer driver genes in 254 patients.

    Other parameters are those of `load`. The files must be fetched by hand.

    Parameters
    ----------
    region : "gene_body" or "promoter"

    Examples
    --------
    >>> fetch_methylation("gene_body").X  # doctest: +SKIP
    ObservedMatrix(160 x 254, 40640 observed, 100.0 %)
    """
    return load(_chosen("region", region, _METHYLATION), raw, data_home, download, check)


def _chosen(option: str, value: str, table: Mapping[str, _T]) -> _T:
    """What an option stands for, or a DataError that names its values."""
    if value not in table:
        known = " or ".join(map(repr, table))
        raise DataError(f"{option} must be {known}, not {value!r}.{nearest(str(value), table)}")
    return table[value]
