"""A posterior as a table, and as a tree of labelled arrays for ArviZ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmf._errors import DataError, needs, whole_number
from bayesmf.posterior.files import attributes

if TYPE_CHECKING:
    from bayesmf.posterior.fitted import Fitted
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


def to_datatree(posterior: Posterior, fitted: Fitted | None = None, entries: int = 0) -> Any:
    """Kept draws, statistics of the sweeps and predictions as an `xarray.DataTree`.

    With the data that were ``fitted`` it has groups about that many of their entries.
    """
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
    if fitted is not None:
        for group, dataset in _of_entries(fitted, whole_number("entries", entries)).items():
            tree[group] = xr.DataTree(dataset)
    return tree


def _of_entries(fitted: Fitted, most: int) -> dict[str, Any]:
    """What ArviZ asks about data, by group: exact entries, their densities, replicated ones."""
    import xarray as xr

    from bayesmf.posterior.residuals import exact_entries

    cells, values, weights = exact_entries(fitted.X, most)
    if not values.size:
        raise DataError("All entries are intervals, and none is exact: export without X.")
    predictive = fitted.predictive()
    by_draw = (*fitted.posterior.draws["U"].shape[:2], values.size)
    names = ([of[k] for k in at] for of, at in zip(fitted.X.names(), cells, strict=True))
    coords = {side: ("entry", of) for side, of in zip(("row", "column"), names, strict=True)}
    constant = {"row_position": ("entry", cells[0]), "column_position": ("entry", cells[1])}
    if weights is not None:
        constant["error"] = ("entry", weights**-0.5)
    drawn = {
        "log_likelihood": predictive.log_densities(cells, values, weights),
        "posterior_predictive": predictive.replicated(cells, weights),
    }
    groups = {
        f"/{group}": xr.Dataset({"X": (("chain", "draw", "entry"), of.reshape(by_draw))}, coords)
        for group, of in drawn.items()
    }
    about = {"observed_entries": fitted.X.n_observed}
    groups["/observed_data"] = xr.Dataset({"X": ("entry", values)}, coords, about)
    groups["/constant_data"] = xr.Dataset(constant, coords)
    return groups
