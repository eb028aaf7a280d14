"""The bias model: a global mean and an effect of every row and column, beside the factors.

Under a Gaussian likelihood an entry then has the mean m + b_i + c_j + U_i V_j. Factors no longer
need to carry what is common to a row or a column, which is where the strongest competitors of a
plain factorisation have their accuracy from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bayesmf import distributions as dist
from bayesmf import updates
from bayesmf.centring import fit_offsets, less, totals
from bayesmf.hyperpriors import Steps, Values, positive
from bayesmf.observed import ObservedMatrix, View
from bayesmf.streams import Array, Stream

SIDES = ("rows", "cols")


@dataclass(frozen=True)
class Biases:
    """Normal mean and effects; the precision of either side's effects is gamma distributed.

    m ~ N(mean, 1 / precision); b_i ~ N(0, 1 / l), l ~ G(alpha, beta), and the same for the columns
    with an l of their own. By default the data say where and how wide: ``mean`` is theirs,
    ``precision`` a hundredth of theirs, and ``beta`` a tenth of their variance.

    Examples
    --------
    >>> from bayesmf import Biases, Gaussian, Model, Normal
    >>> Model(Gaussian(), Normal(0.1), Normal(0.1), biases=Biases(alpha=2.0)).biases
    Biases(mean=None, precision=None, alpha=2.0, beta=None)
    """

    mean: float | None = None
    precision: float | None = None
    alpha: float = 1.0
    beta: float | None = None

    def __post_init__(self) -> None:
        positive(self, precision=self.precision, alpha=self.alpha, beta=self.beta)

    def resolve(self, X: ObservedMatrix) -> Biases:
        """Fill in what depends on the data."""
        mean, variance = float(X.mean), float(X.variance) or 1.0
        return replace(
            self,
            mean=mean if self.mean is None else self.mean,
            precision=0.01 / variance if self.precision is None else self.precision,
            beta=0.1 * variance if self.beta is None else self.beta,
        )

    def priors(self) -> dict[str, dist.Distribution]:
        """Distributions of what depends on nothing else."""
        assert self.mean is not None and self.precision is not None and self.beta is not None
        effects = dist.Gamma(self.alpha, self.beta)
        mean = dist.Normal(self.precision * self.mean, self.precision)
        return {"mean": mean, "rows_precision": effects, "cols_precision": effects}

    def draw(self, stream: Stream, shape: tuple[int, int]) -> Values:
        """All variables from the prior."""
        h = {name: prior.draw(stream, ()) for name, prior in self.priors().items()}
        for side, n in zip(SIDES, shape, strict=True):
            h[side] = dist.Normal(0.0, h[f"{side}_precision"]).draw(stream, (n,))
        return h

    def start(self, X: ObservedMatrix, stream: Stream) -> Values:
        """Averages of the data for the effects, and precisions that fit them."""
        offsets = fit_offsets(X, "both")
        rows = offsets.rows - offsets.otherwise
        h = {"mean": np.asarray(offsets.otherwise), "rows": rows, "cols": offsets.cols}
        for side in SIDES:
            h[f"{side}_precision"] = self.spread(h[side]).draw(stream, ())
        return h

    def spread(self, effects: Array) -> dist.Gamma:
        """Distribution of the precision of one side's effects given them."""
        assert self.beta is not None
        return dist.Gamma(
            self.alpha + 0.5 * effects.size, self.beta + 0.5 * np.sum(effects**2, keepdims=True)
        )

    def shift(self, h: Values, side: str) -> dist.Normal:
        """Distribution of d when it is added to the mean and taken off all effects of a side.

        The data do not see it, so without this move the mean would creep.
        """
        assert self.mean is not None and self.precision is not None
        p = h[f"{side}_precision"]
        linear = self.precision * (self.mean - h["mean"]) + p * h[side].sum()
        return dist.Normal(linear, self.precision + p * h[side].size)

    def updates(
        self, X: ObservedMatrix, U: Array, V: Array, h: Values, tau: float, threads: int = 1
    ) -> Steps:
        """Conditionals in turn; each sees in ``h`` what was drawn before it."""
        assert self.mean is not None and self.precision is not None
        left = residual_sums(X.rows, U, V, h["cols"], threads)
        linear = left.sum() - X.rows.counts @ h["rows"]
        yield (
            "mean",
            dist.Normal(
                self.precision * self.mean + tau * linear, self.precision + tau * X.n_observed
            ),
        )
        yield "rows", effects(X.rows, left, h["mean"], h["rows_precision"], tau)
        left = residual_sums(X.cols, V, U, h["rows"], threads)
        yield "cols", effects(X.cols, left, h["mean"], h["cols_precision"], tau)
        for side in SIDES:
            yield f"{side}_precision", self.spread(h[side])

    def step(
        self, X: ObservedMatrix, U: Array, V: Array, h: Values, tau: float, stream: Stream
    ) -> None:
        """Draw all variables once, in place."""
        for side in SIDES:
            d = self.shift(h, side).draw(stream, ())
            h["mean"], h[side] = h["mean"] + d, h[side] - d
        for name, distribution in self.updates(X, U, V, h, tau, stream.threads):
            h[name] = distribution.draw(stream, h[name].shape)

    def log_density(self, h: Values) -> float:
        """Log density of all variables."""
        total = sum(float(prior.log_density(h[name])) for name, prior in self.priors().items())
        for side in SIDES:
            effects = dist.Normal(0.0, h[f"{side}_precision"])
            total += float(effects.log_density(h[side]).sum())
        return total


def residual_sums(view: View, X: Array, F: Array, others: Array, threads: int) -> Array:
    """Sum of every row's entries, less the products of factors and the other side's effects (n,).

    The sums of the other side's factors and effects over the row's cells are all that is needed.
    """
    beside = updates.factor_sums(view, np.column_stack([F, others]), threads)
    return totals(view) - np.einsum("ik,ik->i", X, beside[:, :-1]) - beside[:, -1]


def effects(view: View, left: Array, mean: Array, precision: Array, tau: float) -> dist.Normal:
    """Distribution of one side's effects given its `residual_sums`."""
    return dist.Normal(tau * (left - view.counts * mean), precision + tau * view.counts)


def without(X: ObservedMatrix, h: Values) -> ObservedMatrix:
    """The data as the factors see them: less mean and effects, if the model has any."""
    return less(X, h["mean"] + h["rows"], h["cols"]) if h else X


def augmented(U: Array, V: Array, h: Values) -> tuple[Array, Array]:
    """Factors (..., n, K + 2) whose product is that of U and V with mean and effects added."""
    if not h:
        return U, V
    rows, cols = (h["mean"][..., None] + h["rows"])[..., None], h["cols"][..., None]
    left = np.concatenate([U, rows, np.ones_like(rows)], axis=-1)
    return left, np.concatenate([V, np.ones_like(cols), cols], axis=-1)
