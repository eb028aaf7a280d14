"""What a fit found out about the noise, for a record and in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayesmf.data.observed import ObservedMatrix
    from bayesmf.estimators import BayesianMF
    from bayesmf.posterior.noise import Interval

NOISE_FILES = {"rows": "noise_rows.csv", "cols": "noise_cols.csv"}
_SCALED = {"global": "the values", "cols": "their column", "rows": "their row"}
_WORST = 3  # rows or columns that are named
_MANY = 8  # cut points from which on only the outermost are told


def found(estimator: BayesianMF, X: ObservedMatrix, level: float) -> dict[str, Any]:
    """Means of what belongs to the likelihood, and how many entries are intervals."""
    import numpy as np

    posterior = estimator.posterior_
    own, likelihood = posterior.likelihood_values(), posterior.model.likelihood
    bounds = likelihood.read(estimator.units_.off(X)).bounds
    open_ended = between = 0
    if bounds is not None:
        inside = np.isfinite(bounds.low) & np.isfinite(bounds.high)
        between = int(inside[bounds.places].sum())
        open_ended = bounds.places.size - between
    means: dict[str, Any] = {
        name: own[name].mean(axis=0).tolist() for name in ("cuts", "dof", "size") if name in own
    }
    values = likelihood.values if likelihood.has_categories else None
    return {
        "noise": _noise(estimator, X, level) if likelihood.has_noise else None,
        "categories": None if values is None else values.tolist(),
        **{name: means.get(name) for name in ("cuts", "dof", "size")},
        "beyond_a_limit": open_ended, "between_two": between,
    }  # fmt: skip


def _noise(estimator: BayesianMF, X: ObservedMatrix, level: float) -> dict[str, Any]:
    """The noise of all cells, and the range of that of rows and columns."""
    noise = estimator.noise_sd(level)
    told: dict[str, Any] = {"overall": noise.overall._asdict()}
    for side, labels in zip(("rows", "cols"), X.names(), strict=True):
        interval: Interval | None = getattr(noise, side)
        if interval is not None:
            worst = (-interval.mean).argsort()[:_WORST]
            told[side] = {
                "least": float(interval.mean.min()), "most": float(interval.mean.max()),
                "noisiest": [labels[i] for i in worst],
            }  # fmt: skip
    return told


def words(record: dict[str, Any]) -> Iterator[str]:
    """The noise in a sentence, and one more where entries are intervals.

    The error is that of the draws, but of predictions where residuals are weighted or latent.
    """
    told, n = record["found"], record["observed"]
    latent = told["categories"] or told["beyond_a_limit"] or told["between_two"]
    weighted = record["errors"] or record["weights"] or len(told["noise"] or ()) > 1
    error = record["fit_mse" if latent or weighted else "train_mse"]
    text = f"mean squared error on the observed cells {error:.4g}"
    if record["scale"] in _SCALED:
        text = (
            f"root mean squared error on the observed cells {record['fit_in_scales']:.4g} of the "
            f"size of {_SCALED[record['scale']]}"
        )
    yield f"{_sentence(record)}; {text}."
    if count := told["beyond_a_limit"]:
        yield f"{_entries(count, n)} known to lie at or beyond a limit."
    if count := told["between_two"]:
        yield f"{_entries(count, n)} known to lie between two numbers."


def _entries(count: int, n: int) -> str:
    what, verb = ("entry", "is") if count == 1 else ("entries", "are")
    return f"{count} {what} ({count / n:.1%}) {verb}"


def _sentence(record: dict[str, Any]) -> str:
    told = record["found"]
    if told["cuts"] is not None:
        return f"Ordinal likelihood with {_cuts(told)}"
    if told["size"] is not None:
        return f"Negative binomial noise of size {told['size']:.4g}"
    noise = told["noise"]
    if noise is None:
        return f"{record['likelihood']} noise"
    kind = "Noise" if told["dof"] is None else "Student-t noise"
    what = "standard deviation " if told["dof"] is None else "scale "
    if record["errors"] or record["weights"]:
        size = f"of {noise['overall']['mean']:.4g} times the known errors"
    else:
        size = f"of {what}{noise['overall']['mean']:.4g}"
    more = "" if told["dof"] is None else f" with {told['dof']:.3g} degrees of freedom"
    sides = [
        f"{name} from {side['least']:.3g} to {side['most']:.3g}; noisiest: "
        + ", ".join(map(repr, side["noisiest"]))
        for name, key in (("rows", "rows"), ("columns", "cols"))
        if (side := noise.get(key))
    ]
    return f"{kind} {size}{more}" + (f" ({'; '.join(sides)})" if sides else "")


def _cuts(told: dict[str, Any]) -> str:
    cuts = [f"{cut:.3g}" for cut in told["cuts"]]
    values = [f"{value:g}" for value in told["categories"]]
    if len(cuts) >= _MANY:
        cuts, values = [cuts[0], "...", cuts[-1]], [values[0], "...", values[-1]]
    plural = "s" if len(cuts) > 1 else ""
    return f"cut point{plural} at {', '.join(cuts)} between the categories {', '.join(values)}"
