"""The bias model: a global mean and an effect of every row and column, beside the factors.

Under normal working data an entry then has the mean m + b_i + c_j + U_i V_j. Factors no longer
need to carry what is common to a row or a column, which is where the strongest competitors of a
plain factorisation have their accuracy from.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from bayesmf._errors import positive
from bayesmf.data.features import Features
from bayesmf.data.observed import ObservedMatrix, View
from bayesmf.data.offsets import fit_offsets, less, totals
from bayesmf.data.shards import share
from bayesmf.likelihoods.base import NormalData, Working
from bayesmf.priors import distributions as dist
from bayesmf.priors import regression
from bayesmf.priors.distributions import Values, Variable
from bayesmf.priors.hyperpriors import Steps
from bayesmf.streams import Array, Stream
from bayesmf.updates.blocks import relaxation
from bayesmf.updates.counts import factor_sums
from bayesmf.updates.entries import scaled
from bayesmf.updates.normal import EVEN, SideWeights

SIDES = ("rows", "cols")


@dataclass(frozen=True)
class Biases:
    """Normal mean and effects; the precision of either side's effects is gamma distributed.

    m ~ N(mean, 1 / precision); b_i ~ N(0, 1 / l), l ~ G(alpha, beta), and the same for the columns
    with an l of their own. By default the data say where and how wide: ``mean`` is theirs,
    ``precision`` a hundredth of theirs, and ``beta`` a tenth of their variance. An infinite
    ``precision`` fixes the mean, which is done where the likelihood has a level of its own.

    Where rows or columns have features, so have their effects: b_i ~ N(w^T x_i, 1 / l).

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
    features: tuple[Features | None, Features | None] = field(
        default=(None, None), repr=False, compare=False
    )

    def __post_init__(self) -> None:
        precision = self.precision if self.has_mean else None
        positive(self, precision=precision, alpha=self.alpha, beta=self.beta)

    @property
    def has_mean(self) -> bool:
        """Whether the mean is a variable, not a fixed number."""
        return self.precision is None or not np.isinf(self.precision)

    def resolve(self, X: ObservedMatrix, has_level: bool = False) -> Biases:
        """Fill in what depends on the data; ``has_level`` fixes the mean at zero."""
        mean, variance = float(X.mean), float(X.variance) or 1.0
        own = replace(self, mean=0.0, precision=np.inf) if has_level else self
        return replace(
            own,
            mean=mean if own.mean is None else own.mean,
            precision=0.01 / variance if own.precision is None else own.precision,
            beta=0.1 * variance if self.beta is None else self.beta,
            features=(X.features(0), X.features(1)),
        )

    def variables(self, shape: tuple[int, int]) -> dict[str, Variable]:
        """All variables by name, in the order in which `draw` makes them."""
        numbers = ("mean", "rows_precision", "cols_precision")
        sides = zip(SIDES, shape, ("row", "column"), strict=True)
        named = {name: Variable((), ()) for name in numbers}
        named |= {side: Variable((n,), (dim,)) for side, n, dim in sides}
        for side, dim, features in zip(SIDES, ("row", "column"), self.features, strict=True):
            for name, (size, dims) in regression.variables(features, None, f"{side}_").items():
                named[name] = Variable(size, tuple(f"{dim}_{d}" for d in dims))
        return named

    def priors(self) -> dict[str, dist.Distribution]:
        """Distributions of what depends on nothing else."""
        assert self.mean is not None and self.precision is not None and self.beta is not None
        effects = dist.Gamma(shape=self.alpha, rate=self.beta)
        sides: dict[str, dist.Distribution] = {"rows_precision": effects, "cols_precision": effects}
        if not self.has_mean:
            return sides
        mean = dist.Normal(linear=self.precision * self.mean, precision=self.precision)
        return {"mean": mean, **sides}

    def draw(self, stream: Stream, shape: tuple[int, int]) -> Values:
        """All variables from the prior."""
        values = {name: prior.draw(stream, ()) for name, prior in self.priors().items()}
        if not self.has_mean:
            values["mean"] = np.asarray(self.mean)
        for side, n in zip(SIDES, shape, strict=True):
            values[side] = dist.Normal(precision=values[f"{side}_precision"]).draw(stream, (n,))
            if self.features[SIDES.index(side)] is not None:
                values |= self._weights(side, values, stream)
                values[side] = values[side] + self.centre(side, values)
        return values

    def _weights(self, side: str, values: Values, stream: Stream) -> Values:
        """Weights of a side's features and their precisions, from the prior."""
        features = self.features[SIDES.index(side)]
        drawn = regression.draw(features, values[f"{side}_precision"].reshape(1, 1), stream)
        return {f"{side}_{name}": x.reshape(x.shape[:1]) for name, x in drawn.items()}

    def centre(self, side: str, values: Values) -> Array:
        """Means of a side's effects (n,): what its features say."""
        features = self.features[SIDES.index(side)]
        assert features is not None
        return regression.fitted(features, values, prefix=f"{side}_")

    def deviations(self, side: str, values: Values) -> Array:
        """Effects of a side less their means (n,)."""
        if self.features[SIDES.index(side)] is None:
            return values[side]
        return values[side] - self.centre(side, values)

    def start(self, X: ObservedMatrix, stream: Stream) -> Values:
        """Averages of the data for the effects, and precisions that fit them."""
        offsets = fit_offsets(X, "both")
        rows = offsets.rows - offsets.otherwise
        mean = offsets.otherwise if self.has_mean else self.mean
        values = {"mean": np.asarray(mean), "rows": rows, "cols": offsets.cols}
        for side in SIDES:
            values[f"{side}_precision"] = self.spread(values[side]).draw(stream, ())
            drawn = self._weights(side, values, stream)
            values |= {name: 0 * x if x.ndim else x for name, x in drawn.items()}
        return values

    def centred(self, law: dist.Normal, side: str, values: Values) -> dist.Normal:
        """The distribution of effects whose prior mean is not zero, but what features say."""
        if self.features[SIDES.index(side)] is None:
            return law
        precision = values[f"{side}_precision"]
        return replace(law, linear=law.linear + precision * self.centre(side, values))

    def governed(self, side: str, values: Values) -> Array:
        """All numbers whose size the precision of a side's effects governs."""
        features = self.features[SIDES.index(side)]
        return regression.with_weights(features, values[side], values, f"{side}_")

    def regress(self, side: str, values: Values) -> Steps:
        """Steps of the weights of a side's features and of their precisions."""
        features, prefix = self.features[SIDES.index(side)], f"{side}_"
        if features is None:
            return
        own = {
            name.removeprefix(prefix): value[:, None] if value.ndim else value
            for name, value in values.items()
            if name.startswith(f"{prefix}weights_")
        }
        precision = values[f"{side}_precision"].reshape(1, 1)
        for name, law in regression.steps(features, values[side][:, None], own, precision):
            yield prefix + name, dist.Flat(law=law) if own[name].ndim else law
            new = values[prefix + name]
            own[name] = new[:, None] if new.ndim else new

    def spread(self, effects: Array) -> dist.Gamma:
        """Distribution of the precision of one side's effects given them."""
        assert self.beta is not None
        return dist.Gamma(
            shape=self.alpha + 0.5 * effects.size,
            rate=self.beta + 0.5 * np.sum(effects**2, keepdims=True),
        )

    def shift(self, values: Values, side: str) -> dist.Normal:
        """Distribution of d when it is added to the mean and taken off all effects of a side.

        The data do not see it, so without this move the mean would creep. Where the mean is fixed,
        it is the effects of the other side to which d is added.
        """
        assert self.mean is not None and self.precision is not None
        p = values[f"{side}_precision"]
        total = self.deviations(side, values).sum()
        if not self.has_mean:
            other = SIDES[1 - SIDES.index(side)]
            q = values[f"{other}_precision"]
            linear = p * total - q * self.deviations(other, values).sum()
            precision = p * values[side].size + q * values[other].size
            return dist.Normal(linear=linear, precision=precision)
        linear = self.precision * (self.mean - values["mean"]) + p * total
        return dist.Normal(linear=linear, precision=self.precision + p * values[side].size)

    def updates(
        self, data: NormalData, U: Array, V: Array, values: Values, threads: int = 1
    ) -> Steps:
        """Conditionals in turn; each sees in ``values`` what was drawn before it."""
        assert self.mean is not None and self.precision is not None
        X, tau = data.X, data.precision
        weights, other = data.weights.of(0), data.weights.of(1)
        left, total = residual_sums(X.rows, U, V, values["cols"], threads, weights)
        if self.has_mean:
            own = 1 if weights.own is None else weights.own
            linear = (own * left).sum() - (own * total) @ values["rows"]
            linear, n = self.precision * self.mean + tau * linear, (own * total).sum()
            yield "mean", dist.Normal(linear=linear, precision=self.precision + tau * n)
        noise = tau if weights.own is None else tau * weights.own
        law = effects(total, left, values["mean"], values["rows_precision"], noise)
        yield "rows", self.centred(law, "rows", values)
        left, total = residual_sums(X.cols, V, U, values["rows"], threads, other)
        noise = tau if other.own is None else tau * other.own
        law = effects(total, left, values["mean"], values["cols_precision"], noise)
        yield "cols", self.centred(law, "cols", values)
        for side in SIDES:
            yield from self.regress(side, values)
            yield f"{side}_precision", self.spread(self.governed(side, values))

    def step(self, data: Working, U: Array, V: Array, values: Values, stream: Stream) -> None:
        """Draw all variables once, in place; effects on the other side of their means."""
        assert isinstance(data, NormalData)
        how = relaxation(stream)
        for side in SIDES:
            d = self.shift(values, side).draw(stream, ())
            gains = "mean" if self.has_mean else SIDES[1 - SIDES.index(side)]
            values[gains], values[side] = values[gains] + d, values[side] - d
        for name, distribution in self.updates(data, U, V, values, stream.threads):
            drawn = distribution.draw(stream, values[name].shape)
            if name in SIDES and isinstance(distribution, dist.Normal):
                drawn = how.of(drawn, distribution.mean, values[name])
            values[name] = drawn

    def log_density(self, values: Values) -> float:
        """Log density of all variables."""
        total = sum(float(prior.log_density(values[name])) for name, prior in self.priors().items())
        for side, features in zip(SIDES, self.features, strict=True):
            p = values[f"{side}_precision"]
            effects = self.deviations(side, values)
            total += float(dist.Normal(precision=p).log_density(effects).sum())
            own = {
                name.removeprefix(f"{side}_"): x[:, None] if np.ndim(x) else x
                for name, x in values.items()
            }
            total += regression.log_density(features, own, np.reshape(p, (1, 1)))
        return total


def residual_sums(
    view: View, U: Array, V: Array, others: Array, threads: int, weights: SideWeights = EVEN
) -> tuple[Array, Array]:
    """Sum of every row's entries, less the products of factors and the other side's effects (n,).

    And the number of these entries; both weighted, but not by the weights of the rows themselves.
    The sums of the other side's factors and effects over the row's cells are all that is needed.
    """
    if weights.other is None and weights.entries is None:
        beside = factor_sums(view, np.column_stack([V, others]), threads)
        left = totals(view) - np.einsum("ik,ik->i", U, beside[:, :-1]) - beside[:, -1]
        share(view, left)
        return left, view.counts
    factors = np.column_stack([V, others, np.ones_like(others)])
    values = view.values if weights.entries is None else view.values * weights.entries
    if weights.other is not None:
        factors = factors * weights.other[:, None]
        values = scaled(replace(view, stored=values), weights.other, threads)
    beside = factor_sums(view, factors, threads, weights.entries)
    left = totals(replace(view, stored=values)) - np.einsum("ik,ik->i", U, beside[:, :-2])
    left, total = left - beside[:, -2], beside[:, -1]
    share(view, left, total)
    return left, total


def effects(
    total: Array, left: Array, mean: Array, precision: Array, tau: Array | float
) -> dist.Normal:
    """Distribution of one side's effects given its `residual_sums`, if they have the mean zero."""
    return dist.Normal(linear=tau * (left - total * mean), precision=precision + tau * total)


def level(values: Values) -> tuple[Array, Array] | None:
    """What is added to the product of the factors: of rows and of columns, if there is anything."""
    return (values["mean"] + values["rows"], values["cols"]) if values else None


def without(X: ObservedMatrix, values: Values) -> ObservedMatrix:
    """The data as the factors see them: less mean and effects, if the model has any."""
    return less(X, values["mean"] + values["rows"], values["cols"]) if values else X


def augmented(U: Array, V: Array, values: Values) -> tuple[Array, Array]:
    """Factors (..., n, K + 2) whose product is that of U and V with mean and effects added."""
    if not values:
        return U, V
    rows, cols = (values["mean"][..., None] + values["rows"])[..., None], values["cols"][..., None]
    left = np.concatenate([U, rows, np.ones_like(rows)], axis=-1)
    return left, np.concatenate([V, np.ones_like(cols), cols], axis=-1)
