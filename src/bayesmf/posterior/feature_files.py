"""Features of a fit as nodes of a NetCDF file: all that predictions for new rows need."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from bayesmf.data.encoding import Encoding
from bayesmf.data.features import Features, Group
from bayesmf.model.model import Model

_SIDES = ("rows", "cols")
_ARRAYS = ("design", "loadings", "squares")
_NUMBERS = ("name", "kind", "length", "alpha", "beta", "standardize")
_ENCODED = ("kept", "fill", "centre", "scale")


def write_features(tree: Any, model: Model) -> None:
    """Add a node for every group of features to a tree."""
    import xarray as xr

    for side, prior in zip(_SIDES, (model.rows, model.cols), strict=True):
        for number, group in enumerate(prior.features.groups if prior.features else ()):
            node = f"features_{side}_{number}"
            data: dict[str, Any] = {k: getattr(group, k) for k in _ARRAYS}
            about: dict[str, Any] = {k: getattr(group, k) for k in _NUMBERS}
            if group.encoding is not None:
                data |= {k: getattr(group.encoding, k) for k in _ENCODED}
                about |= {k: getattr(group.encoding, k) for k in ("columns", "levels", "names")}
            assert prior.features is not None
            labels = prior.features.labels
            about["labels"] = None if labels is None else [_label(x) for x in labels]
            dataset = xr.Dataset(
                {
                    name: (tuple(f"{node}_{name}_{k}" for k in range(array.ndim)), array)
                    for name, array in data.items()
                    if array is not None
                },
                attrs={"about": json.dumps(about, default=_label)},
            )
            tree[f"/{node}"] = xr.DataTree(dataset)


def _label(value: Any) -> Any:
    """A label or category as JSON knows it; what is neither a text nor a number becomes a text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float)) else str(value)


def with_features(tree: Any, model: Model) -> Model:
    """The model of a file with the features that `write_features` wrote."""
    found: list[Features | None] = []
    for side in _SIDES:
        names = sorted(
            (name for name in tree.children if name.startswith(f"features_{side}_")),
            key=lambda name: int(name.rpartition("_")[2]),
        )
        parts = [_group(tree[name]) for name in names]
        labels = parts[0][1] if parts else None
        found.append(Features(tuple(group for group, _ in parts), labels) if parts else None)
    rows, cols = found
    if rows is None and cols is None:
        return model
    own: Any = model.rows
    other: Any = model.cols
    biases = model.biases and replace(model.biases, features=(rows, cols))
    return replace(
        model, biases=biases,
        rows=own if rows is None else replace(own, features=rows),
        cols=other if cols is None else replace(other, features=cols),
    )  # fmt: skip


def _group(node: Any) -> tuple[Group, Any]:
    about = json.loads(node.attrs["about"])
    data = {str(name): value.to_numpy() for name, value in node.data_vars.items()}
    encoding = None
    if "kept" in data:
        levels = tuple(None if level is None else tuple(level) for level in about["levels"])
        columns = None if about["columns"] is None else tuple(about["columns"])
        arrays = {name: data[name] for name in _ENCODED}
        encoding = Encoding(columns, levels, tuple(about["names"]), **arrays)
    labels = None
    if about["labels"] is not None:
        labels = np.array([*about["labels"], None], dtype=object)[:-1]
    arrays = {name: data.get(name) for name in _ARRAYS}
    numbers = {name: about[name] for name in _NUMBERS}
    return Group(**numbers, **arrays, encoding=encoding), labels
