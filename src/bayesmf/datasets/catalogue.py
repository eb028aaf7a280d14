"""The table of the datasets, and loading by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bayesmf._errors import DataError, nearest
from bayesmf.data.observed import FloatArray, ObservedMatrix, Shape
from bayesmf.datasets import drugs, embedded, methylation
from bayesmf.datasets._files import VARIABLE, fetch_archive, folders
from bayesmf.datasets._tables import ROWS
from bayesmf.datasets.movielens import movielens


@dataclass(frozen=True, eq=False)
class Dataset:
    """A matrix with what is known about it."""

    name: str
    X: ObservedMatrix  # with the names of its rows and columns
    title: str
    description: str
    licence: str
    source: str
    rows: str  # what they are, such as "cell lines"
    cols: str
    truth: FloatArray | None = field(default=None, repr=False)  # without noise, if simulated


@dataclass(frozen=True)
class Recipe:
    """Files that suffice for a dataset, and the function that reads them, raw or prepared."""

    files: tuple[str, ...]  # relative to the data folder
    read: Callable[[Sequence[Path], bool], ObservedMatrix]


@dataclass(frozen=True)
class Entry:
    """What the catalogue says of a dataset; counts are those after the study's preprocessing."""

    title: str
    description: str
    rows: str
    cols: str
    shape: Shape
    n_observed: int
    licence: str
    source: str
    recipes: tuple[Recipe, ...]  # the first whose files are all there is used
    url: str | None = None  # of an archive that may be downloaded automatically
    known_hash: str | None = None
    truth: Callable[[], FloatArray] | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the preferred recipe."""
        return self.recipes[0].files


_BY_HAND = "The package neither holds nor downloads the data."
_STUDY = "https://github.com/ThomasBrouwer/BMF_Priors"
_GROUPLENS = (
    "GroupLens: for research, with acknowledgement; not to be redistributed, "
    "nor used commercially without permission."
)
_HARPER = "Harper and Konstan (2015), doi:10.1145/2827872"
_GDSC_FILES = ("gdsc/ic50.txt", "gdsc/cell_lines.txt", "gdsc/drugs.txt")
_CTRP_FILES = (
    "ctrp/v20.data.curves_post_qc.txt", "ctrp/v20.meta.per_experiment.txt",
    "ctrp/v20.meta.per_cell_line.txt", "ctrp/v20.meta.per_compound.txt",
)  # fmt: skip
_OVERLAP_LABELS = ("drug_overlap/cell_lines.txt", "drug_overlap/drugs.txt")
_CCLE_LABELS = ("ccle/cell_lines.txt", "ccle/drugs.txt")
_CCLE_LIST = ("ccle/CCLE_NP24.2009_Drug_data_2015.02.24.csv",)
_DRIVERS = "methylation/intogen-BRCA-drivers-data.geneid"

# What the entries of a family have in common.
_drugs = partial(Entry, rows="cell lines", cols="drugs")
_ccle = partial(
    _drugs,
    licence=f"Terms of use of the Broad Institute. {_BY_HAND}",
    source=f"Barretina et al. (2012), https://depmap.org/portal; tables of the study: {_STUDY}",
)
_movielens = partial(Entry, rows="users", cols="films", licence=_GROUPLENS)
_methylation = partial(
    Entry,
    rows="genes",
    cols="patients",
    shape=(160, 254),
    n_observed=40_640,
    licence=f"Open-access data of The Cancer Genome Atlas, to be cited. {_BY_HAND}",
    source=f"Koboldt et al. (2012), https://gdc.cancer.gov; files of the study: {_STUDY}",
)

CATALOGUE: dict[str, Entry] = {
    "GDSC": _drugs(
        title="Genomics of Drug Sensitivity in Cancer, release 5, IC50",
        description=(
            "Micromolar IC50 capped at 100; cell lines with fewer than three values dropped, "
            "truncated to integers. Raw: 707 cell lines, real values, capped as well."
        ),
        shape=(705, 139),
        n_observed=79_259,
        licence=f"Terms of use of the Wellcome Sanger Institute. {_BY_HAND}",
        source=(f"Yang et al. (2013), https://www.cancerrxgene.org; tables of the study: {_STUDY}"),
        recipes=(Recipe(_GDSC_FILES, partial(drugs.prepared, sparse=(ROWS,))),),
    ),
    "CTRP": _drugs(
        title="Cancer Therapeutics Response Portal, version 2, EC50",
        description=(
            "Micromolar EC50 capped at 100 and truncated to integers; cell lines without any "
            "value dropped. Of several curves for a cell line and a drug the last in the file "
            "counts. Raw: all cell lines, neither capped nor truncated."
        ),
        shape=(887, 545),
        n_observed=387_130,
        licence=f"Open-access data of the CTD² Network, to be acknowledged. {_BY_HAND}",
        source=(
            "Seashore-Ludlow et al. (2015), archive CTRPv2.0_2015_ctd2_ExpandedDataset.zip at "
            "https://ctd2-data.nci.nih.gov/Public/Broad/CTRPv2.0_2015_ctd2_ExpandedDataset"
        ),
        recipes=(Recipe(_CTRP_FILES, drugs.ctrp),),
    ),
    "CTRP_small": _drugs(
        title="Cancer Therapeutics Response Portal, EC50, a small part of it",
        description=(
            "Not the study's CTRP but 52 drugs and 399 cell lines of it, those that other screens "
            "have too: micromolar EC50 capped at 20, cell lines with fewer than three values "
            "dropped, truncated to integers. Raw: 399 cell lines, real values, capped as well."
        ),
        shape=(379, 52),
        n_observed=14_998,
        licence=f"Open-access data of the CTD² Network, to be acknowledged. {_BY_HAND}",
        source=(
            "Seashore-Ludlow et al. (2015); table of the later study of the same authors: "
            "https://github.com/ThomasBrouwer/HMF"
        ),
        recipes=(
            Recipe(
                ("drug_overlap/ctrp_ec50.txt", *_OVERLAP_LABELS),
                partial(drugs.prepared, sparse=(ROWS,), column=0),
            ),
        ),
    ),
    "CCLE_IC50": _ccle(
        title="Cancer Cell Line Encyclopedia, IC50",
        description="Micromolar IC50, at most 8, truncated to integers. Raw: real values.",
        shape=(504, 24),
        n_observed=11_670,
        recipes=(  # the two give the same matrix
            Recipe(("ccle/ic50.txt", *_CCLE_LABELS), drugs.prepared),
            Recipe(_CCLE_LIST, partial(drugs.ccle_list, measure="IC50 (uM)")),
        ),
    ),
    "CCLE_EC50": _ccle(
        title="Cancer Cell Line Encyclopedia, EC50, as the study used it",
        description=(
            "Micromolar EC50, cell lines with fewer than three values dropped, truncated to "
            "integers. 425 of the zeros are artefacts (memory that the study's preparation never "
            "filled); CCLE_EC50_clean is without them. Raw: 504 cell lines, 426 artefacts near "
            "1e-314."
        ),
        shape=(502, 24),
        n_observed=7_622,
        recipes=(
            Recipe(("ccle/ec50.txt", *_CCLE_LABELS), partial(drugs.prepared, sparse=(ROWS,))),
        ),
    ),
    "CCLE_EC50_clean": _ccle(
        title="Cancer Cell Line Encyclopedia, EC50, from the published list",
        description=(
            "Micromolar EC50, cell lines with fewer than three values dropped, truncated to "
            "integers. Raw: 504 cell lines, 7200 real values."
        ),
        shape=(501, 24),
        n_observed=7_195,
        recipes=(
            Recipe(_CCLE_LIST, partial(drugs.ccle_list, measure="EC50 (uM)", sparse=(ROWS,))),
        ),
    ),
    "MovieLens_100K": _movielens(
        title="MovieLens 100K ratings",
        description=(
            "Ratings from 1 to 5; users, then films, then users with fewer than three ratings "
            "dropped. Raw: all 1682 films."
        ),
        shape=(943, 1473),
        n_observed=99_723,
        source=f"{_HARPER}, https://grouplens.org/datasets/movielens/100k",
        recipes=(Recipe(("movielens/ml-100k/u.data", "movielens/ml-100k/u.item"), movielens),),
        url="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        known_hash="md5:0e33842e24a9c977be4e0107933c0723",
    ),
    "MovieLens_1M": _movielens(
        title="MovieLens 1M ratings",
        description=(
            "Ratings from 1 to 5; users, then films, then users with fewer than three ratings "
            "dropped. Raw: all films, rated or not."
        ),
        shape=(6040, 3503),
        n_observed=999_917,
        source=f"{_HARPER}, https://grouplens.org/datasets/movielens/1m",
        recipes=(Recipe(("movielens/ml-1m/ratings.dat", "movielens/ml-1m/movies.dat"), movielens),),
        url="https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        known_hash="md5:c4d9eecfca2ab87c1945afe126590906",
    ),
    "Methylation_GM": _methylation(
        title="Gene body methylation of breast cancer driver genes",
        description=(
            "Methylated shares of 160 genes times 20, truncated to integers. The study's integer "
            "table has no names: genes and patients are numbered. Raw: shares of all genes."
        ),
        recipes=(
            Recipe(("methylation/matched_methylation_geneBody", _DRIVERS), methylation.shares),
            Recipe(("methylation/gene_body_integer.txt",), methylation.integers),
        ),
    ),
    "Methylation_PM": _methylation(
        title="Promoter methylation of breast cancer driver genes",
        description=(
            "Methylated shares of 160 genes times 20, truncated to integers. Raw: shares of all "
            "genes."
        ),
        recipes=(
            Recipe(("methylation/matched_methylation_genePromoter", _DRIVERS), methylation.shares),
        ),
    ),
    "digits": Entry(
        title="Handwritten digits",
        description="Images of 8 x 8 pixels with values from 0 to 16, complete.",
        rows="images",
        cols="pixels",
        shape=(1797, 64),
        n_observed=115_008,
        licence="CC BY 4.0",
        source="Alpaydin and Kaynak (1998), doi:10.24432/C50P49, by way of scikit-learn",
        recipes=(Recipe((), embedded.digits),),
    ),
    "drug_sensitivity": _drugs(
        title="Simulated drug sensitivities",
        description=(
            "Logarithms of IC50 in nanomolar, all positive: a mean, effects of cell lines and "
            f"drugs, {embedded.RANK} factors, and normal noise with standard deviation "
            f"{embedded.NOISE_SD}. A quarter is missing: the last 12 drugs were tested on half "
            "of the cell lines, and one test in eight failed. The truth is known."
        ),
        shape=(embedded.N_LINES, embedded.N_DRUGS),
        n_observed=3_627,
        licence="As the package.",
        source="bayesmf.datasets.embedded",
        recipes=(Recipe((), embedded.drug_sensitivity),),
        truth=embedded.drug_truth,
    ),
}


def load(
    name: str,
    raw: bool = False,
    data_home: str | Path | None = None,
    download: bool = True,
    check: bool = True,
) -> Dataset:
    """Load a dataset of the catalogue by name.

    Parameters
    ----------
    name : str
        A key of `CATALOGUE`.
    raw : bool
        Whether to return the values as published instead of those of the study.
    data_home : path, optional
        Folder with the files, and for downloads. By default files are looked for in the folder
        that the environment variable BAYESMF_DATA names and then in the user's cache; downloads
        go to the first of these.
    download : bool
        Whether files that are absent may be downloaded, where that is possible.
    check : bool
        Whether the counts after the study's preprocessing must be those of the catalogue.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> load("drug_sensitivity").X
    ObservedMatrix(120 x 40, 3627 observed, 75.6 %)
    """
    entry = _entry(name)
    recipe, paths = _locate(name, entry, folders(data_home) if entry.files else [], download)
    X = recipe.read(paths, raw)
    if check and not raw and (X.shape, X.n_observed) != (entry.shape, entry.n_observed):
        n, m = entry.shape
        raise DataError(
            f"{name}: {paths[0] if paths else 'the data'} gives {X.shape[0]} x {X.shape[1]} with "
            f"{X.n_observed} observed entries instead of {n} x {m} with {entry.n_observed}; "
            "get the file again, or pass check=False."
        )
    truth = entry.truth and entry.truth()
    about = entry.title, entry.description, entry.licence, entry.source, entry.rows, entry.cols
    return Dataset(name, X, *about, truth)


def present(name: str, data_home: str | Path | None = None) -> bool:
    """Tell whether the files of a dataset are there, without reading them.

    Examples
    --------
    >>> present("digits")
    True
    """
    entry = _entry(name)
    return not entry.files or _search(entry, folders(data_home)) is not None


def _entry(name: str) -> Entry:
    if name not in CATALOGUE:
        hint = nearest(name, CATALOGUE)
        raise DataError(f"There is no dataset {name!r}; choose from {', '.join(CATALOGUE)}.{hint}")
    return CATALOGUE[name]


def _search(entry: Entry, places: list[Path]) -> tuple[Recipe, list[Path]] | None:
    """The first recipe whose files are all in one folder; earlier folders go first."""
    for folder in places:
        for recipe in entry.recipes:
            paths = [folder / file for file in recipe.files]
            if all(path.is_file() for path in paths):
                return recipe, paths
    return None


def _locate(
    name: str, entry: Entry, places: list[Path], download: bool
) -> tuple[Recipe, list[Path]]:
    """Find the files, or download them if that is allowed."""
    if not entry.files:
        return entry.recipes[0], []
    if found := _search(entry, places):
        return found
    if entry.url and download and places:
        # The archive holds a folder of its own, which belongs into that of the family.
        fetch_archive(entry.url, entry.known_hash, places[0] / entry.files[0].split("/")[0])
        if found := _search(entry, places):
            return found
    files = ", or ".join(" and ".join(recipe.files) for recipe in entry.recipes)
    where = places[0] if places else f"a folder that {VARIABLE} names"
    other = ""
    if entry.url:
        other = ", or pass download=True" if places else ", or run pip install 'bayesmf[data]'"
    raise DataError(
        f"{name} needs {files} in {where}: get them from {entry.source}{other}. {entry.licence}"
    )
