"""A posterior as a table, as a tree of labelled arrays for ArviZ, and as a NetCDF file.

The file holds draws, moments, last states, labels, settings and versions. The model is written as
plain data and rebuilt from the classes of this package; nothing is pickled.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmf import __version__, likelihoods, priors
from bayesmf._errors import DataError, needs
from bayesmf._files import replacing
from bayesmf.model import biases
from bayesmf.model.model import Model
from bayesmf.posterior.feature_files import with_features, write_features
from bayesmf.priors import hyperpriors
from bayesmf.sampler.state import State
from bayesmf.streams import Array

if TYPE_CHECKING:
    from bayesmf.posterior.posterior import Posterior

_FORMAT = 1
_MODEL = ("likelihood", "rows", "cols", "biases")
_PARTS = {
    name: part
    for module in (priors, hyperpriors, likelihoods, biases)
    for name, part in vars(module).items()
    if isinstance(part, type) and dataclasses.is_dataclass(part)
}


def _plain(value: Any) -> Any:
    """A hyperparameter, prior or hyperprior as numbers, lists and dictionaries."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = (f.name for f in dataclasses.fields(value) if f.name != "features")
        fields = {name: _plain(getattr(value, name)) for name in kept}
        return {"part": type(value).__name__, **fields}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    return value.item() if isinstance(value, np.generic) else value


def _part(plain: Any) -> Any:
    """Rebuild what `_plain` took apart."""
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return np.array(plain["array"])
    fields = {name: _part(value) for name, value in plain.items() if name != "part"}
    if plain["part"] not in _PARTS:
        raise DataError(f"The file names a part {plain['part']!r} that this version does not have.")
    return _PARTS[plain["part"]](**fields)


def _labels(labels: Array | None) -> str:
    """Labels as JSON; what is neither a text nor a number becomes a text."""
    if labels is None:
        return "null"
    plain = [x.item() if isinstance(x, np.generic) else x for x in labels]
    return json.dumps([x if isinstance(x, (str, int, float)) else str(x) for x in plain])


def _read_labels(text: str) -> Array | None:
    found = json.loads(text)
    if found is None:
        return None
    labels = np.empty(len(found), dtype=object)
    labels[:] = found
    return labels


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
    tree.attrs = _attributes(posterior)
    return tree


def _attributes(posterior: Posterior) -> dict[str, Any]:
    model = posterior.model
    return {
        "format": _FORMAT,
        "created_by": f"bayesmf {__version__}, numpy {np.__version__}",
        "model_name": model.name,
        "model": json.dumps({part: _plain(getattr(model, part)) for part in _MODEL}),
        "n_components": posterior.n_components,
        "shape": json.dumps(list(posterior.shape)),
        "settings": json.dumps(posterior.settings),
        "notes": json.dumps(list(posterior.notes)),
        "row_labels": _labels(posterior.row_labels),
        "column_labels": _labels(posterior.col_labels),
    }


def save(posterior: Posterior, path: str | Path) -> None:
    """Write a posterior to a NetCDF file, whole or not at all."""
    tree = to_datatree(posterior)
    try:
        import h5netcdf  # noqa: F401
        import h5py  # noqa: F401
        import xarray as xr
    except ImportError:
        raise needs("save", "h5netcdf", "arviz") from None
    extra = {
        "U_mean": (("chain", "row", "component"), posterior.U_mean),
        "V_mean": (("chain", "column", "component"), posterior.V_mean),
        "empty_rows": (("row",), posterior.empty_rows.astype(np.int8)),
        "empty_cols": (("column",), posterior.empty_cols.astype(np.int8)),
    }
    if posterior.cells is not None:
        extra |= {f"cell_{k}": (("cell",), index) for k, index in enumerate(posterior.cells)}
    tree["/run"] = xr.DataTree(xr.Dataset(extra))
    for state in posterior.states:
        arrays = state.to_arrays()
        numbers = str(arrays.pop("numbers"))
        data = {
            name: (tuple(f"{name}_{k}" for k in range(value.ndim)), value)
            for name, value in arrays.items()
        }
        node = xr.Dataset(data, attrs={"numbers": numbers})
        tree[f"/state_{state.chain}"] = xr.DataTree(node)
    write_features(tree, posterior.model)
    with replacing(path) as partial:
        tree.to_netcdf(partial, engine="h5netcdf")


def load(path: str | Path) -> dict[str, Any]:
    """Read the fields of a posterior that `save` wrote."""
    try:
        import h5netcdf  # noqa: F401
        import h5py  # noqa: F401
        import xarray as xr
    except ImportError:
        raise needs("load", "h5netcdf", "arviz") from None
    if not Path(path).is_file():
        raise DataError(f"There is no file {path}.")
    try:
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            tree = tree.load()
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a NetCDF file, or is damaged ({error}).") from None
    about = tree.attrs
    if about.get("format") != _FORMAT:
        raise DataError(f"{path} was not written by this version of bayesmf.")
    parts = {side: _part(plain) for side, plain in json.loads(about["model"]).items()}
    run, stats = tree["/run"], tree["/sample_stats"]
    cells = None
    if "cell_0" in run:
        cells = (run["cell_0"].to_numpy(), run["cell_1"].to_numpy())
    return {
        "model": with_features(tree, Model(**parts, name=about["model_name"])),
        "n_components": int(about["n_components"]),
        "shape": tuple(json.loads(about["shape"])),
        "cells": cells,
        "mean": tree["/predictions/mean"].to_numpy(),
        "variance": tree["/predictions/variance"].to_numpy(),
        "draws": {str(name): v.to_numpy() for name, v in tree["/posterior"].data_vars.items()},
        "train_mse": stats["train_mse"].to_numpy(),
        "seconds": stats["seconds"].to_numpy(),
        "U_mean": run["U_mean"].to_numpy(),
        "V_mean": run["V_mean"].to_numpy(),
        "states": tuple(
            _state(node) for name, node in sorted(tree.children.items()) if name.startswith("state")
        ),
        "empty_rows": run["empty_rows"].to_numpy().astype(bool),
        "empty_cols": run["empty_cols"].to_numpy().astype(bool),
        "row_labels": _read_labels(about["row_labels"]),
        "col_labels": _read_labels(about["column_labels"]),
        "notes": tuple(json.loads(about["notes"])),
        "settings": json.loads(about["settings"]),
    }


def _state(node: Any) -> State:
    arrays = {str(name): value.to_numpy() for name, value in node.data_vars.items()}
    return State.from_arrays({**arrays, "numbers": np.array(node.attrs["numbers"])})
