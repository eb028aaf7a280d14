"""The parts of a model as plain data, and back: priors, hyperpriors, likelihoods, biases.

A part of this package is known by the name of its class, any other by its module and name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import reduce
from importlib import import_module
from typing import Any

import numpy as np

from bayesmf import likelihoods, priors
from bayesmf._errors import DataError, ModelError
from bayesmf.likelihoods.base import Likelihood
from bayesmf.model import biases
from bayesmf.priors import hyperpriors
from bayesmf.priors.base import Prior

_PARTS = {
    name: part
    for module in (priors, hyperpriors, likelihoods, biases)
    for name, part in vars(module).items()
    if isinstance(part, type) and dataclasses.is_dataclass(part)
}


def as_plain(value: Any) -> Any:
    """A hyperparameter, prior or hyperprior as numbers, lists and dictionaries."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: as_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"part": _name(type(value)), **fields}
    if isinstance(value, (Prior, Likelihood)):
        raise ModelError(f"{type(value).__name__} cannot be saved; make it a dataclass.")
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    return value.item() if isinstance(value, np.generic) else value


def as_part(plain: Any, parts: Iterable[type] = ()) -> Any:
    """Rebuild what `as_plain` took apart, with further classes to know by name."""
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return np.array(plain["array"])
    fields = {name: as_part(value, parts) for name, value in plain.items() if name != "part"}
    return _found(plain["part"], tuple(parts))(**fields)


def _name(part: type) -> str:
    known = _PARTS.get(part.__name__) is part
    return part.__name__ if known else f"{part.__module__}:{part.__qualname__}"


def _found(name: str, parts: tuple[type, ...]) -> type:
    """The class of a name: of this package, one that was given, or one that can be imported."""
    own = name.rpartition(":")[2].rpartition(".")[2]
    given = {part.__name__: part for part in parts}
    found: Any = _PARTS.get(name) or given.get(own)
    why = "it is no dataclass of this version"
    if found is None and ":" in name:
        module, _, path = name.partition(":")
        try:
            found = reduce(getattr, path.split("."), import_module(module))
        except (ImportError, AttributeError) as error:
            why = str(error)
    if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
        raise DataError(
            f"the class {name!r} of its model cannot be found ({why}); import {own} and load with "
            f"parts=[{own}]."
        )
    return found
