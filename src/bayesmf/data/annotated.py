"""Matrices from AnnData, the container of single-cell and proteomics data, and from its files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bayesmf._errors import DataError, ModelError, nearest, needs
from bayesmf.data.observed import ObservedMatrix

ZEROS = ("observed", "missing")


def from_anndata(
    source: Any, layer: str | None = None, *, zeros: str = "observed"
) -> ObservedMatrix:
    """Read a matrix from an AnnData object or an .h5ad file.

    Rows are observations, columns are variables, with their names as labels. NaN is missing.

    Parameters
    ----------
    source
        An AnnData object, or the path of an .h5ad file (extra ``anndata``).
    layer
        Name of a layer; ``X`` by default.
    zeros
        What the zeros of a sparse matrix are, which it does not store: "observed", as AnnData means
        them, or "missing".

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from bayesmf import from_anndata
    >>> data = anndata.AnnData(np.array([[1.0, np.nan], [0.0, 3.0]]))
    >>> from_anndata(data)
    ObservedMatrix(2 x 2, 3 observed, 75.0 %)
    """
    if zeros not in ZEROS:
        raise ModelError(f"zeros must be 'observed' or 'missing', got {zeros!r}.")
    data = _read(source) if isinstance(source, (str, Path)) else source
    if not all(hasattr(data, name) for name in ("obs_names", "var_names", "layers")):
        raise DataError(f"Give an AnnData object or an .h5ad file, not {type(data).__name__}.")
    known = [name for name in data.layers if name is not None]  # None may stand for X
    has = ", ".join(known) or "none"
    if layer is not None and layer not in known:
        hint = nearest(layer, known)
        raise DataError(f"The data have no layer {layer!r}; layers: {has}.{hint}")
    values = data.X if layer is None else data.layers[layer]
    if values is None:
        raise DataError(f"The data have no X; name a layer: {has}.")
    if hasattr(values, "tocoo") and zeros == "observed":
        values = values.toarray()
    elif zeros == "missing" and not hasattr(values, "tocoo"):
        values = np.where(np.asarray(values) == 0, np.nan, values)
    return ObservedMatrix.of(
        values, row_labels=map(str, data.obs_names), col_labels=map(str, data.var_names)
    )


def _read(path: str | Path) -> Any:
    if not Path(path).is_file():
        raise DataError(f"There is no file {path}.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about formats of its own
            from anndata import read_h5ad

            return read_h5ad(path)
    except ImportError:
        raise needs("An .h5ad file", "anndata", "anndata") from None
    except (OSError, KeyError, ValueError) as error:
        raise DataError(f"The file is no .h5ad file, or is damaged ({error}).") from None
