"""Features of a fit as arrays and plain data of a file: all that predictions for new rows need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bayesmf.data.designs import arrays_of
from bayesmf.data.encoding import Encoding
from bayesmf.data.features import Features
from bayesmf.data.groups import Group
from bayesmf.model.model import Model
from bayesmf.streams import Array

_SIDES = ("rows", "cols")
_ARRAYS = ("design", "loadings", "squares")
_SPARSE = ("design_data", "design_indices", "design_indptr")
_NUMBERS = ("name", "kind", "length", "alpha", "beta", "standardize", "is_decomposed")
_ENCODED = ("kept", "fill", "centre", "scale")
_NAMES = ("columns", "levels", "names")


def _groups(model: Model) -> Iterator[tuple[str, Features, Group]]:
    """All groups of both sides, each with the name that it has in a file."""
    for side, prior in zip(_SIDES, (model.rows, model.cols), strict=True):
        if prior.features is not None:
            for number, group in enumerate(prior.features.groups):
                yield f"features_{side}_{number}", prior.features, group


def feature_arrays(model: Model) -> dict[str, Array]:
    """Arrays by name: "features_rows_0/design"."""
    found: dict[str, Array] = {}
    for place, _, group in _groups(model):
        known = {k: getattr(group, k) for k in _ARRAYS}
        if len(parts := arrays_of(group.design)) > 1:
            known |= {"design": None, **dict(zip(_SPARSE, parts, strict=True))}
        if group.encoding is not None:
            known |= {k: getattr(group.encoding, k) for k in _ENCODED}
        found |= {f"{place}/{k}": np.asarray(v) for k, v in known.items() if v is not None}
    return found


def about_features(model: Model) -> dict[str, Any]:
    """What there is to say about these arrays, by group."""
    found = {}
    for place, features, group in _groups(model):
        about = {k: _plain(getattr(group, k)) for k in _NUMBERS}
        if group.encoding is not None:
            about |= {k: _plain(getattr(group.encoding, k)) for k in _NAMES}
        found[place] = {**about, "labels": _plain(features.labels)}
    return found


def _plain(value: Any) -> Any:
    """Labels and categories as JSON knows them; what it does not know becomes a text."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(one) for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def with_features(model: Model, arrays: Mapping[str, Array], about: Mapping[str, Any]) -> Model:
    """The model of a file with its features."""
    sides: dict[str, Any] = {}
    for side in _SIDES:
        places = [place for place in about if place.startswith(f"features_{side}_")]
        groups = tuple(_group(place, arrays, about[place]) for place in places)
        labels = about[places[0]]["labels"] if places else None
        if labels is not None:
            labels = np.array([*labels, None], dtype=object)[:-1]
        sides[side] = Features(groups, labels) if groups else None
    if not any(sides.values()):
        return model
    changed: dict[str, Any] = {
        side: replace(getattr(model, side), features=features)
        for side, features in sides.items()
        if features is not None
    }
    biases = model.biases and replace(model.biases, features=(sides["rows"], sides["cols"]))
    return replace(model, biases=biases, **changed)


def _group(place: str, arrays: Mapping[str, Array], about: Mapping[str, Any]) -> Group:
    data = {k: arrays.get(f"{place}/{k}") for k in (*_ARRAYS, *_ENCODED)}
    encoding = None
    if "columns" in about:
        levels = tuple(None if level is None else tuple(level) for level in about["levels"])
        columns = None if about["columns"] is None else tuple(about["columns"])
        encoded: dict[str, Any] = {name: data[name] for name in _ENCODED}
        encoding = Encoding(columns, levels, tuple(about["names"]), **encoded)
    known: dict[str, Any] = {name: data[name] for name in _ARRAYS}
    if known["design"] is None:
        parts = tuple(arrays[f"{place}/{k}"] for k in _SPARSE)
        known["design"] = csr_array(parts, shape=(parts[2].size - 1, known["squares"].size))
    numbers = {name: about[name] for name in _NUMBERS if name in about}
    return Group(**numbers, **known, encoding=encoding)
