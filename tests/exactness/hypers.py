"""Checks of hyper-variables, shared relevances, noise, scale moves and rotations."""

from itertools import chain
from unittest import mock

import numpy as np

from bayesmf.kernels import fill, rotation
from bayesmf.likelihoods.base import Fit
from bayesmf.priors import (
    L21,
    MultivariateNormal,
)
from bayesmf.priors.hyperpriors import (
    InverseGaussian,
    TruncatedNormalHyper,
)
from bayesmf.sampler import sweep
from bayesmf.streams import Stream, seed_words
from bayesmf.updates.terms import POWERS
from tests.exactness.ratios import GROUPS, Setup, altered, spd


def proposed(s: Setup, name: str, value: np.ndarray, prior) -> np.ndarray:
    if name == "mean" or ("weights_" in name and value.ndim):
        return value + s.rng.normal(size=value.shape)
    if name == "precision" and isinstance(prior, MultivariateNormal):
        return spd(s.rng, s.data.rank)
    return value * np.exp(0.7 * s.rng.normal(size=value.shape))


def collapsed(prior) -> bool:
    """Whether eta is drawn with the mixing variances integrated out."""
    hyper = getattr(prior, "scale", None)
    return isinstance(hyper, InverseGaussian) and hyper.reading == "scale"


def log_density_of_steps(steps, values: dict, new: dict, names=None) -> float:
    """Log density of steps, or of those of these names, each given those before it."""
    total = 0.0
    for name, distribution in steps:
        if names is None or name in names:
            total += float(np.sum(distribution.log_density(new[name])))
        values[name] = new[name]
    return total


def steps_of_side(side, new: dict, names=None) -> float:
    values = dict(side.values)
    return log_density_of_steps(side.prior.updates(side.U, values), values, new, names)


def check_block(s: Setup, group: str, side) -> None:
    """Variables drawn one after the other, the first with the others integrated out."""
    old = getattr(s.state, group)
    new = {name: proposed(s, name, value, side.prior) for name, value in old.items()}
    change = steps_of_side(side, new) - steps_of_side(side, old)
    s.compare(s.state, altered(s.state, group, new), change)


def blocks(names, features) -> list[list[str]]:
    """Variables that are drawn together: a precision of weights and these, a Wishart's two.

    The precision of weights of features as they are is drawn given the weights.
    """
    found = []
    for group in features.groups:
        own = [f"weights_precision_{group.name}", f"weights_{group.name}"]
        found += [own] if group.is_decomposed else [[name] for name in own]
    others = [name for name in names if not name.startswith("weights_")]
    return found + ([others] if others else [])


def check_weights(s: Setup, group: str, side) -> None:
    """Each block of a side with features, given everything else."""
    old = getattr(s.state, group)
    for names in blocks(old, side.prior.features):
        new = {**old, **{name: proposed(s, name, old[name], side.prior) for name in names}}
        change = steps_of_side(side, {**side.values, **new}, names)
        change -= steps_of_side(side, {**side.values, **old}, names)
        s.compare(s.state, altered(s.state, group, new), change)


def check_steps(s: Setup, group: str, side) -> None:
    now, seen = s.state, set()
    given = side.U, side.values
    for name, distribution in chain(side.prior.updates(*given), side.prior.afterwards(*given)):
        old = getattr(now, group)[name]
        value = proposed(s, name, old, side.prior)
        new = altered(now, group, {name: value})
        change = np.sum(distribution.log_density(value) - distribution.log_density(old))
        s.compare(now, new, change, marginal=name == "eta" and collapsed(side.prior))
        side.values[name], now = value, new
        seen.add(name)
    assert seen == set(getattr(s.state, group))


def check_hyper(s: Setup) -> None:
    for index, group in enumerate(GROUPS):
        side = s.problem.side(s.state, index)
        wishart = isinstance(side.prior, MultivariateNormal)
        if side.prior.features is not None:
            check_weights(s, group, side)
            continue
        if wishart or collapsed(side.prior):
            check_block(s, group, side)
        if not wishart:
            check_steps(s, group, side)


def check_shared(s: Setup) -> None:
    ard = s.model.shared_ard
    assert (ard is None) == (not s.state.shared)
    if ard is None:
        return
    sides = (s.problem.side(s.state, index) for index in (0, 1))
    statistics = [
        side.prior.relevance_terms(side.prior.governed(side.U, side.values)) for side in sides
    ]
    conditional = ard.conditional(statistics)
    old = s.state.shared["relevance"]
    value = old * np.exp(0.7 * s.rng.normal(size=old.shape))
    change = np.sum(conditional.log_density(value) - conditional.log_density(old))
    s.compare(s.state, altered(s.state, "shared", {"relevance": value}), change)


def check_noise(s: Setup) -> None:
    if "noise_precision" not in s.state.noise:
        return
    fit = Fit(s.problem.X, s.state.U, s.state.V, weights=s.work.weights)
    noise = getattr(s.model.likelihood, "noise", s.model.likelihood)
    conditional = noise.conditional(s.X.n_observed, fit.squared_error)
    old = s.state.noise["noise_precision"]
    for factor in (0.3, 2.0):
        change = float(conditional.log_density(factor * old) - conditional.log_density(old))
        s.compare(s.state, altered(s.state, "noise", {"noise_precision": factor * old}), change)


def check_biases(s: Setup) -> None:
    """Mean, effects and precisions one after the other, and the shifts between mean and effects."""
    assert bool(s.model.biases) == bool(s.state.biases)
    if not s.model.biases:
        return
    for side in ("rows", "cols"):
        values = s.state.biases
        shift = s.model.biases.shift(values, side)
        gains = "mean" if s.model.biases.has_mean else GROUPS[1 - GROUPS.index(side)]
        for d in (-0.7, 0.4):
            new = altered(s.state, "biases", {gains: values[gains] + d, side: values[side] - d})
            s.compare(s.state, new, float(shift.log_density(d) - shift.log_density(0.0)))
    now, values, seen = s.state, dict(s.state.biases), set()
    for name, distribution in s.model.biases.updates(s.working, now.U, now.V, values):
        seen.add(name)
        if "weights_" in name:
            continue
        value = proposed(s, "" if "precision" in name else "mean", values[name], None)
        new = altered(now, "biases", {name: value})
        change = np.sum(distribution.log_density(value) - distribution.log_density(values[name]))
        s.compare(now, new, float(change))
        values[name], now = value, new
    check_effect_weights(s)
    assert seen == set(s.state.biases) - (set() if s.model.biases.has_mean else {"mean"})


def check_effect_weights(s: Setup) -> None:
    """The weights of the effects' features, each group with its precision."""

    def density(side: str, new: dict, names: list[str]) -> float:
        values = dict(s.state.biases)
        return log_density_of_steps(s.model.biases.regress(side, values), values, new, names)

    old = s.state.biases
    for side, features in zip(GROUPS, s.model.biases.features, strict=True):
        for block in blocks([], features) if features else ():
            names = [f"{side}_{name}" for name in block]
            new = {**old, **{name: proposed(s, name, old[name], None) for name in names}}
            change = density(side, new, names) - density(side, old, names)
            s.compare(s.state, altered(s.state, "biases", new), change)


# --- Scale moves


def log_jacobian(side) -> int:
    """Logarithm of the Jacobian when one factor of a side, and what moves along, is scaled by e.

    It counts the coordinates, each with the power of the scale that it is multiplied by.
    """
    (n, K), prior = side.U.shape, side.prior
    n += sum(group.rank for group in prior.features.groups) if prior.features else 0
    if isinstance(prior, MultivariateNormal):  # one mean; one diagonal entry, K - 1 beside it
        return n + 1 - 2 - (K - 1)
    if isinstance(getattr(prior, "scale", None), InverseGaussian):
        return n + (n if prior.scale.reading == "scale" else -2 * n)
    if isinstance(getattr(prior, "precision", None), TruncatedNormalHyper):
        return n + n - 2 * n
    return n


def scaled(s: Setup, state, c: np.ndarray):
    """The state after factor k of the rows is multiplied by c[k], of the columns divided by it."""
    new = state.copy()
    for index, group in enumerate(GROUPS):
        side, factor = s.problem.side(new, index), (c, 1 / c)[index]
        side.U[:] *= factor
        getattr(new, group).update(side.prior.rescale(getattr(new, group), factor))
    return new


class Orbit:
    """Stands in for the draw of a log scale: checks its density, and returns a fixed one."""

    def __init__(self, s: Setup, together: bool) -> None:
        self.s, self.now, self.together, self.calls = s, s.state, together, 0
        rows, cols = (s.problem.side(s.state, index) for index in (0, 1))
        self.jacobian = log_jacobian(rows) - log_jacobian(cols)
        self.jacobian *= s.data.rank if together else 1

    def scales(self, x: float) -> np.ndarray:
        c = np.ones(self.s.data.rank)
        c[:: 1 if self.together else c.size][:] = np.exp(x)
        return c if self.together else np.roll(c, self.calls)

    def __call__(self, stream, exponent, *log_weights) -> float:
        def log_density(x):
            return exponent * x - 0.5 * sum(
                np.exp(w + p * x) for w, p in zip(log_weights, POWERS, strict=True)
            )

        for x in (-0.7, 0.2, 0.5):
            change = log_density(x) - log_density(0.0) - self.jacobian * x
            self.s.compare(
                self.now, scaled(self.s, self.now, self.scales(x)), change, marginal=True
            )
        x = (0.3, -0.2, 0.1, -0.4)[self.calls % 4]
        self.now = scaled(self.s, self.now, self.scales(x))
        self.calls += 1
        return x


def check_scale(s: Setup) -> None:
    """The density along each orbit, as the sampler draws from it, factor after factor."""
    together = any(isinstance(prior, L21) for prior in (s.model.rows, s.model.cols))
    orbit, state = Orbit(s, together), s.state.copy()
    with (
        mock.patch.object(fill, "log_scale", orbit),
        mock.patch.object(sweep, "fill_log_scales", fill.fill_log_scales.py_func),
    ):
        sweep.move_scales(s.problem, state, Stream(seed_words(0)))
    assert (orbit.calls > 0) == s.case.moves
    for name, value in state.variables().items():
        np.testing.assert_allclose(value, orbit.now.variables()[name], rtol=1e-12)


# --- Rotations


class Turn:
    """Stands in for the draw of an angle: checks its density, and returns a fixed one."""

    def __init__(self, s: Setup, state) -> None:
        self.s, self.state, self.calls = s, state, 0

    def joints(self, angle: float, k: int, m: int) -> np.ndarray:
        """Both log joints after a rotation, the hyper-variables of all entries integrated out.

        They are the joints less the density of the hyper-variables given the factors.
        """
        new, turn = self.state.copy(), np.eye(self.s.data.rank)
        turn[np.ix_((k, m), (k, m))] = [
            [np.cos(angle), -np.sin(angle)],
            [np.sin(angle), np.cos(angle)],
        ]
        new.U[:], new.V[:] = new.U @ turn, new.V @ turn
        sides = (self.s.problem.side(new, index) for index in (0, 1))
        given = sum(
            steps_of_side(side, getattr(new, group))
            for side, group in zip(sides, GROUPS, strict=True)
        )
        return self.s.joints(new) - given

    def __call__(self, stream, rows, cols, x, y, v, w) -> float:
        def log_density(angle: float) -> float:
            c, d = np.cos(angle), np.sin(angle)
            density = rotation._log_density.py_func
            return density(*rows, x, y, c, d) + density(*cols, v, w, c, d)

        k, m = (
            int(np.flatnonzero((column[:, None] == self.state.U).all(axis=0))[0])
            for column in (x, y)
        )
        for angle in (-0.7, 0.2, 1.3):
            change = log_density(angle) - log_density(0.0)
            self.s.equal(self.joints(0.0, k, m), self.joints(angle, k, m), change)
        self.calls += 1
        return (0.3, -0.5)[self.calls % 2]


def check_rotation(s: Setup) -> None:
    """The density along the rotations of each pair; the product of the factors stays."""
    state = s.state.copy()
    turn = Turn(s, state)
    with (
        mock.patch.object(rotation, "_draw_angle", turn),
        mock.patch.object(rotation, "_rotate", rotation._rotate.py_func),
        mock.patch.object(sweep, "rotate_pairs", rotation.rotate_pairs.py_func),
    ):
        sweep.rotate_factors(s.problem, state, Stream(seed_words(0)))
    priors = (s.model.rows, s.model.cols)
    moves = all(prior.rotation_terms() is not None for prior in priors) and not all(
        prior.rotation_invariant for prior in priors
    )
    assert turn.calls == (s.data.rank // 2 if moves else 0)
    assert (turn.calls == 0) == np.array_equal(state.U, s.state.U)
    np.testing.assert_allclose(state.U @ state.V.T, s.state.U @ s.state.V.T, rtol=1e-9, atol=1e-12)
