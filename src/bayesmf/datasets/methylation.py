"""Readers of methylation: genes in rows, patients in columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bayesmf._errors import DataError
from bayesmf.data.observed import ObservedMatrix
from bayesmf.datasets._tables import labelled, lines, numbers, unique

_TIMES = 20.0  # the study multiplied the shares by this before truncation


def shares(paths: Sequence[Path], raw: bool) -> ObservedMatrix:
    """Methylated shares of all genes, or those of the driver genes times 20 and truncated."""
    path, drivers = paths
    header, *body = lines(path)
    genes, rest = zip(*(line.split("\t", 1) for line in body), strict=True)
    values = numbers(path, "\n".join(rest).replace("NA", "nan"))
    patients = header.split("\t")[-values.shape[1] :]  # the corner may be left out
    if raw:
        return labelled(path, values, unique(genes, range(len(genes))), patients)
    place = {gene: k for k, gene in reversed(list(enumerate(genes)))}  # the first of duplicates
    kept = [gene for gene in map(str.strip, lines(drivers)) if gene in place]
    if not kept:
        raise DataError(f"{path} has none of the genes in {drivers}; get both files again.")
    chosen = values[[place[gene] for gene in kept]]
    return labelled(path, np.trunc(_TIMES * chosen), kept, patients)


def integers(paths: Sequence[Path], raw: bool) -> ObservedMatrix:
    """A table that was multiplied and truncated before, without names."""
    if raw:
        raise DataError(
            f"{paths[0]} holds no raw values; for these get matched_methylation_geneBody as well."
        )
    values = numbers(paths[0])
    rows, cols = (
        [f"{what} {k + 1}" for k in range(size)]
        for what, size in zip(("gene", "patient"), values.shape, strict=True)
    )
    return labelled(paths[0], values, rows, cols)
