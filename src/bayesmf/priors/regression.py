"""Features in the mean of a normal prior: u_i ~ N(m + sum over groups of B_g^T x_i, 1 / Lambda).

The weights B_g (r, K) of a group have rows N(0, 1 / (w_g Lambda)), w_g ~ Gamma(alpha, beta). Since
the directions of a group are orthogonal, the rows of B_g are independent given everything else;
features that have no such directions are in `bayesmf.priors.conjugate`. A side's effects are the
case K = 1, with Lambda their precision.

Functions take the features, which may be None, and ``values`` with the weights and precisions of
all groups; ``prefix`` comes before their names.
"""

from __future__ import annotations

import numpy as np

from bayesmf.data.features import Features
from bayesmf.data.groups import Group
from bayesmf.priors import distributions as dist
from bayesmf.priors.conjugate import RidgeWeights
from bayesmf.priors.distributions import Values, Variable
from bayesmf.priors.hyperpriors import Steps
from bayesmf.streams import Array, Stream


def weights_name(group: Group, prefix: str = "") -> str:
    """Name of a group's weights among the variables of a chain."""
    return f"{prefix}weights_{group.name}"


def precision_name(group: Group, prefix: str = "") -> str:
    """Name of the precision of a group's weights."""
    return f"{prefix}weights_precision_{group.name}"


def variables(features: Features | None, K: int | None, prefix: str = "") -> dict[str, Variable]:
    """Weights and their precisions by name; without a rank, weights of effects (r,)."""
    named: dict[str, Variable] = {}
    for group in features.groups if features else ():
        direction = f"direction_{group.name}"
        named[precision_name(group, prefix)] = Variable((), ())
        named[weights_name(group, prefix)] = (
            Variable((group.rank,), (direction,))
            if K is None
            else Variable((group.rank, K), (direction, "component"))
        )
    return named


def draw(features: Features | None, precision: Array, stream: Stream) -> Values:
    """Weights and their precisions from the prior, given the precision matrix (K, K) of rows."""
    own: Values = {}
    for group in features.groups if features else ():
        w = dist.Gamma(shape=group.alpha, rate=group.beta).draw(stream, ())
        own[precision_name(group)] = w
        own[weights_name(group)] = _prior(group, w, precision).draw(
            stream, (group.rank, len(precision))
        )
    return own


def _prior(group: Group, w: Array, precision: Array) -> dist.MatrixNormal:
    return dist.MatrixNormal(
        mean=np.zeros(len(precision)), weights=np.full(group.rank, w), precision=precision
    )


def fitted(features: Features, values: Values, but: Group | None = None, prefix: str = "") -> Array:
    """What features add to the means of rows (n, K), or of effects (n,), a group left out."""
    parts = [
        group.fitted(values[weights_name(group, prefix)])
        for group in features.groups
        if group is not but
    ]
    return np.sum(parts, axis=0) if len(parts) != 1 else parts[0]


def steps(features: Features, rows: Array, values: Values, precision: Array) -> Steps:
    """Gibbs steps of all groups, given rows (n, K) without the common mean."""
    for group in features.groups:
        others = fitted(features, values, but=group) if len(features.groups) > 1 else 0.0
        own = _by_directions if group.is_decomposed else _by_gradients
        yield from own(group, rows - others, values, precision)


def _by_directions(group: Group, rows: Array, values: Values, precision: Array) -> Steps:
    """The precision with the weights integrated out, and directly after it the weights."""
    name, squares = precision_name(group), group.squares
    assert squares is not None
    moments = group.moments(rows)
    sums = np.einsum("jk,jk->j", moments @ precision, moments) / squares
    yield (
        name,
        dist.RidgePrecision(
            shape=group.alpha, rate=group.beta, squares=squares, sums=sums,
            count=len(precision), now=float(values[name]),
        ),
    )  # fmt: skip
    ridge = squares + values[name]
    yield (
        weights_name(group),
        dist.MatrixNormal(mean=moments / ridge[:, None], weights=ridge, precision=precision),
    )


def _by_gradients(group: Group, rows: Array, values: Values, precision: Array) -> Steps:
    """The weights given their precision, and the precision given them."""
    w, name = precision_name(group), weights_name(group)
    yield (
        name,
        RidgeWeights(group=group, rows=rows, ridge=float(values[w]), precision=precision),
    )
    weights = values[name]
    rate = group.beta + 0.5 * np.sum((weights.T @ weights) * precision)
    yield w, dist.Gamma(shape=group.alpha + 0.5 * weights.size, rate=rate)


def with_weights(features: Features | None, U: Array, values: Values, prefix: str = "") -> Array:
    """All rows that the precision matrix governs: U less what features add, and scaled weights."""
    if features is None:
        return U
    weights = [
        np.sqrt(values[precision_name(group, prefix)]) * values[weights_name(group, prefix)]
        for group in features.groups
    ]
    return np.concatenate([U - fitted(features, values, prefix=prefix), *weights])


def log_density(features: Features | None, values: Values, precision: Array) -> float:
    """Log density of all weights and their precisions."""
    total = 0.0
    for group in features.groups if features else ():
        w = values[precision_name(group)]
        prior = dist.Gamma(shape=group.alpha, rate=group.beta)
        total += float(prior.log_density(w))
        total += float(_prior(group, w, precision).log_density(values[weights_name(group)]).sum())
    return total


def certainty(features: Features, values: Values, prefix: str = "") -> Array:
    """By what the precision of new rows (n,) is multiplied, for features outside the fitted ones.

    The weights of what was never seen are those of the prior.
    """
    added = np.zeros(features.n)
    for group in features.groups:
        if group.outside is not None:
            added += group.outside / values[precision_name(group, prefix)]
    return 1 / (1 + added)


def rescale(features: Features | None, values: Values, c: Array) -> Values:
    """Weights after factor k has been multiplied by c[k]."""
    return {
        weights_name(group): values[weights_name(group)] * c
        for group in (features.groups if features else ())
    }
