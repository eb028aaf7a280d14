"""What a chain is about, and one point of it: `Problem` and `State`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bayesmf._arguments import checked
from bayesmf._errors import DataError, ModelError, whole_number
from bayesmf._files import read_arrays, write_arrays
from bayesmf.data.observed import ObservedMatrix
from bayesmf.likelihoods.base import Side
from bayesmf.model.biases import augmented
from bayesmf.model.model import Model
from bayesmf.priors.distributions import Values
from bayesmf.streams import Array

SMALLEST = 1e-100  # of the largest entry: squares of smaller ones are lost
_GROUPS = ("rows", "cols", "shared", "noise", "biases")
RETIRED = ("rows.local_rate", "cols.local_rate")  # variables of earlier files that no model has


@dataclass(frozen=True, eq=False)
class State:
    """One point of a chain: factors, hyper-variables, and where the random streams stand.

    ``rows`` and ``cols`` hold the hyper-variables of either side, ``shared`` those of both,
    ``noise`` those of the likelihood, ``biases`` mean, effects and their precisions, if the model
    has them. ``error`` is the sum of squared residuals.
    """

    U: Array
    V: Array
    rows: Values
    cols: Values
    shared: Values
    noise: Values
    error: float
    seed: Array
    chain: int
    sweep: int
    biases: Values = field(default_factory=dict)

    def variables(self) -> Values:
        """All random variables by name: "U", "V", "noise_precision", "rows.eta", "bias.mean"."""
        named = {"U": self.U, "V": self.V, **self.noise, **self.shared}
        for side in ("rows", "cols"):
            named |= {f"{side}.{name}": value for name, value in getattr(self, side).items()}
        return named | {f"bias.{name}": value for name, value in self.biases.items()}

    def predictors(self) -> tuple[Array, Array]:
        """Two arrays whose product is the mean of all cells: U and V, biases put beside them."""
        return augmented(self.U, self.V, self.biases)

    def copy(self) -> State:
        """Return a state with arrays of its own."""
        groups = {g: {k: v.copy() for k, v in getattr(self, g).items()} for g in _GROUPS}
        return replace(self, U=self.U.copy(), V=self.V.copy(), **groups)  # type: ignore[arg-type]

    def to_arrays(self) -> dict[str, Array]:
        """All of it as plain arrays by name."""
        arrays = {f"{g}.{k}": v for g in _GROUPS for k, v in getattr(self, g).items()}
        numbers = {"error": self.error, "chain": self.chain, "sweep": self.sweep}
        return {
            "U": self.U, "V": self.V, "seed": self.seed, **arrays,
            "numbers": np.array(json.dumps(numbers)),
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> State:
        """Return the state that `to_arrays` took apart."""
        groups: dict[str, Any] = {g: {} for g in _GROUPS}
        for name in arrays:
            group, _, key = name.partition(".")
            if key and group in groups and name not in RETIRED:
                groups[group][key] = arrays[name]
        numbers = json.loads(str(arrays["numbers"]))
        return cls(arrays["U"], arrays["V"], **groups, **numbers, seed=arrays["seed"])

    @checked
    def save(self, path: str | Path) -> None:
        """Write the state to an .npz file, whole or not at all."""
        write_arrays(path, self.to_arrays())

    @classmethod
    @checked
    def load(cls, path: str | Path) -> State:
        """Read a state that `save` wrote."""
        arrays, _ = read_arrays(path)
        try:
            return cls.from_arrays(arrays)
        except (KeyError, ValueError, TypeError):
            raise DataError(f"{path} does not hold a state; give a file of `State.save`.") from None


@dataclass(frozen=True, eq=False)
class Problem:
    """Data, a model whose defaults are filled in, a rank, and how to sweep."""

    X: ObservedMatrix
    model: Model
    n_components: int
    scale_move: bool = True
    threads: int = 1

    @classmethod
    @checked
    def of(cls, X: Any, model: Model, n_components: int, **options: Any) -> Problem:
        """Check that model and data fit, and fill in the model's defaults."""
        if not isinstance(model, Model):
            raise ModelError(f"model must be a Model, such as preset('GGG'), got {model!r}.")
        X = ObservedMatrix.of(X)
        X.check_entries()
        X = model.informed(X)
        X.check_range()
        size = max(float(X.rows.stored.max()), -float(X.rows.stored.min()))
        if 0 < size < SMALLEST:
            raise DataError(
                f"No entry lies beyond {size:g}, too small to compute with; multiply all values."
            )
        K = whole_number("n_components", n_components)
        model.likelihood.check(X)
        model = model.resolve(X, K)
        return cls(model.likelihood.read(X), model, K, **options)

    def side(self, state: State, index: int, X: ObservedMatrix | None = None) -> Side:
        """The rows (0) or columns (1) of a state as a half-sweep sees them, of these working data.

        The half-sweep of the columns is that of the rows with U and V exchanged.
        """
        X = self.X if X is None else X
        view, prior, own, U, V = (
            (X.rows, self.model.rows, state.rows, state.U, state.V),
            (X.cols, self.model.cols, state.cols, state.V, state.U),
        )[index]
        return Side(index, view, U, V, prior, prior.all_values(own, state.shared))
