"""A posterior as a table, and as a tree of labelled arrays for ArviZ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmf._errors import needs
from bayesmf.posterior.files import attributes

if TYPE_CHECKING:
    from bayesmf.posterior.posterior import Posterior


def to_dataframe(posterior: Posterior) -> Any:
    """A row for every cell: its row and column, posterior mean and standard deviation of U V^T."""
    try:
        import pandas as pd
    except ImportError:
        raise needs("to_dataframe", "pandas", "arviz") from None
    cells = posterior.cells or tuple(x.ravel() for x in np.indices(posterior.shape))
    names = []
    for index, labels in zip(cells, (posterior.row_labels, posterior.col_labels), strict=True):
        names.append(index if labels is None else np.asarray(labels, dtype=object)[index])
    mean, std = posterior.mean.ravel(), np.sqrt(posterior.variance.ravel())
    return pd.DataFrame({"row": names[0], "column": names[1], "mean": mean, "std": std})


def to_datatree(posterior: Posterior) -> Any:
    """Kept draws, statistics of the sweeps and predictions as an `xarray.DataTree`."""
    try:
        import xarray as xr
    except ImportError:
        raise needs("to_datatree", "xarray", "arviz") from None
    coords: dict[str, Any] = {"component": np.arange(posterior.n_components)}
    sides = (posterior.row_labels, posterior.col_labels)
    for name, labels, size in zip(("row", "column"), sides, posterior.shape, strict=True):
        coords[name] = np.arange(size) if labels is None else [str(label) for label in labels]
    known = posterior.model.variables(posterior.shape, posterior.n_components)
    variables, sizes = {}, {"component"}
    for name, draws in posterior.draws.items():
        dims = known[name].dims
        variables[name] = (("chain", "draw", *dims), np.asarray(draws))
        sizes.update(dims)
    used = {name: values for name, values in coords.items() if name in sizes}
    moments = {"mean": posterior.mean, "variance": posterior.variance}
    where = ("row", "column") if posterior.cells is None else ("cell",)
    cells = {k: v for k, v in coords.items() if k != "component"} if len(where) == 2 else {}
    tree = xr.DataTree.from_dict(
        {
            "/posterior": xr.Dataset(variables, used),
            "/sample_stats": xr.Dataset(
                {
                    "train_mse": (("chain", "sweep"), posterior.train_mse),
                    "seconds": (("chain", "sweep"), posterior.seconds),
                }
            ),
            "/predictions": xr.Dataset({k: (where, v) for k, v in moments.items()}, cells),
        }
    )
    tree.attrs = attributes(posterior)
    return tree
