"""The matrices of the study and two that need no file, with names and the study's preprocessing.

Files are looked for in the folder that the environment variable BAYESMF_DATA names, then in the
user's cache; see `load`.
"""

from bayesmf.datasets.catalogue import CATALOGUE, Dataset, load, present
from bayesmf.datasets.embedded import NOISE_SD
from bayesmf.datasets.loaders import (
    fetch_ccle,
    fetch_ctrp,
    fetch_gdsc,
    fetch_methylation,
    fetch_movielens,
    load_digits,
    load_drug_sensitivity,
)

__all__ = [
    "CATALOGUE", "NOISE_SD", "Dataset", "fetch_ccle", "fetch_ctrp", "fetch_gdsc",
    "fetch_methylation", "fetch_movielens", "load", "load_digits", "load_drug_sensitivity",
    "present",
]  # fmt: skip
