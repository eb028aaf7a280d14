"""The noise of each row and column as a result: who is measured badly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesmf._errors import ModelError
from bayesmf.data.units import Units
from bayesmf.posterior.posterior import Posterior
from bayesmf.streams import Array


class Interval(NamedTuple):
    """Posterior mean and ends of a central interval, of one number or of many."""

    mean: Array
    lower: Array
    upper: Array


class Noise(NamedTuple):
    """Standard deviations of the noise; None where a side has no noise of its own.

    That of a row is taken over columns of average noise, and the other way round.
    """

    overall: Interval
    rows: Interval | None
    cols: Interval | None


def noise_of(posterior: Posterior, level: float = 0.9) -> Noise:
    """The noise that a posterior has found."""
    if not 0 < level < 1:
        raise ModelError(f"level must lie between 0 and 1, got {level!r}.")
    own = posterior.likelihood_values()
    if not posterior.model.likelihood.has_noise:
        name = posterior.model.likelihood.name
        raise ModelError(
            f"{posterior.model.name} has no noise precision: its likelihood is {name}."
        )
    # The level of a side is measured by the geometric mean of its precisions, over all draws alike.
    levels = {
        side: np.log(own[f"noise_{side}"]).mean(axis=1) if f"noise_{side}" in own else 0.0
        for side in ("rows", "cols")
    }
    overall = np.log(own["noise_precision"]) + levels["rows"] + levels["cols"]
    found = {"overall": _interval(np.exp(-0.5 * overall), level)}
    for side, middle in levels.items():
        if f"noise_{side}" in own:
            relative = np.log(own[f"noise_{side}"]) - np.asarray(middle)[:, None]
            found[side] = _interval(np.exp(-0.5 * (overall[:, None] + relative)), level)
    return Noise(found["overall"], found.get("rows"), found.get("cols"))


def in_units(noise: Noise, units: Units) -> Noise:
    """The same in the units of the data.

    A side that was scaled by itself has one noise for each of its lines. The overall one is that of
    a line of average scale.
    """
    if not units.changed:
        return noise
    scales = {"rows": units.rows, "cols": units.cols}
    typical = {side: float(np.exp(np.log(scale).mean())) for side, scale in scales.items()}
    found = {"rows": noise.rows, "cols": noise.cols}
    for side, scale in scales.items():
        other = typical["cols" if side == "rows" else "rows"]
        own = found[side] or (noise.overall if units.scale == side else None)
        found[side] = None if own is None else Interval(*(part * scale * other for part in own))
    whole = typical["rows"] * typical["cols"]
    return Noise(Interval(*(part * whole for part in noise.overall)), **found)


def _interval(draws: Array, level: float) -> Interval:
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Interval(draws.mean(axis=0), lower, upper)
