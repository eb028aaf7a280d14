"""The experiments of the study: one module each, which says all about it in a record.

``EXPERIMENTS`` has the records by name. It is made when first asked for, so that the command line
knows the names without loading anything.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayesmf.study.experiments.base import Experiment

NAMES = (
    "convergence", "runtime", "cross_validation", "noise", "sparsity", "model_selection",
    "likelihoods",
)  # fmt: skip
EXPERIMENTS: dict[str, Experiment]


def __getattr__(name: str) -> Any:
    if name != "EXPERIMENTS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = {one: import_module(f"{__name__}.{one}").EXPERIMENT for one in NAMES}
    return globals().setdefault("EXPERIMENTS", found)
