"""What is automatic: the model, and centre, scale and transformation of the data."""

from __future__ import annotations

from typing import Any

from bayesmf._errors import ModelError
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.units import Units, fit_units
from bayesmf.model.biases import Biases
from bayesmf.model.model import Model
from bayesmf.model.presets import as_model

AUTO = "auto"
#: The automatic model: normal factors with their means and covariances, and biases beside them.
AUTOMATIC_MODEL = "GGGW"
AUTOMATIC_NOISE = ("cols", "both", "equal")
NOISE_WORDS = {
    "equal": "equal noise", "rows": "noise by row", "cols": "noise by column",
    "both": "noise by row and column",
}  # fmt: skip


def models_for(
    model: str | Model, hyperparameters: dict[str, Any] | None, biases: bool | Biases | None,
    noise: str | None, limits: tuple[Any, Any],
) -> dict[str, Model]:  # fmt: skip
    """The model that was named, or those of which the automatic one is chosen, by name."""
    if model != AUTO:
        biases = False if biases is None else biases
        return {"": as_model(model, hyperparameters, biases, noise, limits)}
    biases = True if biases is None else biases
    kinds = AUTOMATIC_NOISE if noise is None else (noise,)
    return {
        NOISE_WORDS[noise]: as_model(AUTOMATIC_MODEL, hyperparameters, biases, noise, limits)
        for noise in kinds
    }


def units_for(
    X: ObservedMatrix,
    model: Model,
    center: str = AUTO,
    scale: str = AUTO,
    transformation: Any = None,
) -> Units:
    """Centre, scale and transformation of the data; refused where the model does not take them."""
    likelihood, nonnegative = model.likelihood, any(model.nonnegative)
    if center not in ("none", AUTO) and nonnegative:
        raise ModelError(
            f"center={center!r} makes values negative, and {model.name} has nonnegative factors; "
            "use center='none' or a real-valued model such as GGGA."
        )
    fixed = not likelihood.takes_units
    for name, value in (("center", center), ("scale", scale), ("transformation", transformation)):
        if fixed and value is not None and value not in ("none", AUTO):
            raise ModelError(
                f"{name}={value!r} changes the values, but counts and categories stay as they are; "
                f"use {name}='none', and biases=True if the model takes biases."
            )
    if transformation is not None and not likelihood.takes_transforms:
        raise ModelError(
            "transformation goes with normal noise: under Student-t noise the mean of what is "
            "transformed back need not exist; use Gaussian noise, or no transformation."
        )
    if transformation is not None and X.errors is not None:
        raise ModelError(
            "transformation and known errors do not go together, since errors are those of the "
            "values as they are; transform values and errors yourself."
        )
    units = fit_units(X, center, scale, transformation, fixed=fixed, nonnegative=nonnegative)
    negative = units.transforms is not None and (units.off(X).rows.values < 0).any()
    if negative and all(model.nonnegative):
        raise ModelError(
            f"transformation={transformation!r} makes values negative, and {model.name} has "
            "nonnegative factors; use 'sqrt' or 'log1p', or a real-valued model such as GGGA."
        )
    return units
