"""Rows that a chain has not seen: their factors, drawn given each kept draw of everything else.

What all rows share (the other side's factors, the noise, common hyper-variables) comes from the
kept draws; a new row's own factors and hyper-variables are drawn from their conditionals. A new row
thus has the very distribution that a known row with the same entries and features has, and without
any entry it has that of the prior. New columns are the same with both sides exchanged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bayesmf._errors import ModelError
from bayesmf.data.features import Features
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.offsets import less
from bayesmf.likelihoods import Likelihood
from bayesmf.likelihoods.base import Fit, NormalData, Side, Working
from bayesmf.model.biases import SIDES, effects, residual_sums
from bayesmf.model.model import Model
from bayesmf.posterior.posterior import Posterior
from bayesmf.priors import Prior, regression
from bayesmf.priors.distributions import Values
from bayesmf.priors.hyperpriors import Steps
from bayesmf.streams import Array, Stream, seed_words

_FIRST, _LATER = 30, 3  # sweeps over a new row's own variables: at the first draw, at every other
_FACTORS, _DIMS = ("U", "V"), ("row", "column")
_SEEDS = (1, 3)  # what tells the random numbers of new rows and of new columns from the chain's


def needed(model: Model) -> list[str]:
    """Names of the variables whose draws must be kept for new rows, and columns with features."""
    names = ["U", "V"]
    for prior, side in zip((model.rows, model.cols), SIDES, strict=True):
        if side == "cols" and prior.features is None:
            continue
        names += [f"{side}.{name}" for name in _common(prior) if name != "relevance"]
        if prior.ard:
            names.append("relevance" if model.shared_ard else f"{side}.relevance")
    biases = model.biases.variables((1, 1)) if model.biases else ()
    return [*names, *(f"bias.{name}" for name in biases)]


def _common(prior: Prior) -> list[str]:
    """Hyper-variables that all rows share; any others belong to a row or to an entry."""
    return [name for name, variable in prior.variables(1, 1).items() if "row" not in variable.dims]


class NewRows(NamedTuple):
    """Draws (D, n, ...) of what new rows (or columns) have of their own.

    Factors; effects, if the model has biases; and those of the likelihood's variables that belong
    to a row.
    """

    U: Array
    effects: Values
    own: Values


def draw_new_rows(
    posterior: Posterior, X: ObservedMatrix, threads: int = 1, features: Features | None = None,
    axis: int = 0,
) -> NewRows:  # fmt: skip
    """Draw all that the rows of X have of their own, one draw for each kept draw of all chains.

    Or, with axis 1, its columns. ``features`` are those of the new rows.
    """
    kept, model, n = posterior.draws, posterior.model, X.shape[axis]
    if not {"U", "V"} <= set(kept):
        raise ModelError("New rows need the draws of the factors; sample with keep=('U', 'V').")
    if X.shape[1 - axis] != posterior.shape[1 - axis]:
        new, old = ("rows", "columns")[:: 1 - 2 * axis]
        raise ModelError(
            f"New {new} must have the {posterior.shape[1 - axis]} {old} of the data, "
            f"got {X.shape[1 - axis]}."
        )
    model.likelihood.check(X)
    X = model.likelihood.read(X)
    chains, draws = kept["V"].shape[:2]
    out = np.empty((chains, draws, n, posterior.n_components))
    found = np.zeros((chains, draws, n))
    local = {name: np.empty_like(found) for name in _local(model.likelihood, axis)}
    for c in range(chains):
        words = np.random.SeedSequence([*posterior.states[c].seed.tolist(), _SEEDS[axis]])
        seed, rows = seed_words(words), None
        for d in range(draws):
            at = {name: values[c, d] for name, values in kept.items()}
            stream = Stream(seed, c, d, threads, goes_on=False)
            rows = _Rows(model, X, at, stream, features, axis) if rows is None else rows
            with np.errstate(under="ignore"):
                rows.step(at, stream, _FIRST if d == 0 else _LATER)
            out[c, d], found[c, d] = rows.U, rows.effects
            for name, values in local.items():
                values[c, d] = rows.noise[name]
    own = {name: values.reshape(-1, n) for name, values in local.items()}
    biases = {SIDES[axis]: found.reshape(-1, n)} if model.biases else {}
    return NewRows(out.reshape(-1, *out.shape[2:]), biases, own)


def _local(likelihood: Likelihood, axis: int) -> list[str]:
    """Own variables of the likelihood that belong to a row, or to a column."""
    return [name for name, v in likelihood.variables((1, 1)).items() if _DIMS[axis] in v.dims]


class _Rows:
    """Factors and own variables of the new rows, moved along from draw to draw."""

    def __init__(
        self, model: Model, X: ObservedMatrix, at: Values, stream: Stream,
        features: Features | None, axis: int,
    ) -> None:  # fmt: skip
        self.model, self.X, self.axis, self.features = model, X, axis, features
        self.prior: Prior = (model.rows, model.cols)[axis]
        if features is not None:
            own: Any = self.prior
            self.prior = replace(own, features=features)
        shared, _ = _given(self.prior, at, SIDES[axis])
        rank = at["V"].shape[1]
        self.U, self.own = self.prior.draw(stream, X.shape[axis], rank, shared)
        self.effects = np.zeros(X.shape[axis])
        self.noise: Values = {}
        if local := _local(model.likelihood, axis):
            drawn = model.likelihood.draw(X.shape, stream)
            self.noise = {name: drawn[name] for name in local}

    def step(self, at: Values, stream: Stream, sweeps: int) -> None:
        """Draw factors, effects and noise of the rows given one kept draw.

        Rows that are drawn as a whole need one sweep.
        """
        prior, likelihood, axis = self.prior, self.model.likelihood, self.axis
        shared, common = _given(prior, at, SIDES[axis])
        self.own.update(common)
        local = set(self.own) - set(_common(prior))
        values, view = prior.all_values(self.own, shared), (self.X.rows, self.X.cols)[axis]
        others = np.ascontiguousarray(at[_FACTORS[1 - axis]])
        side = Side(axis, view, self.U, others, prior, values)
        if likelihood.draws_jointly(side) and not (local or self.model.biases):
            sweeps = 1
        noise = {name: at[name] for name in likelihood.variables(self.X.shape)} | self.noise
        for _ in range(sweeps):
            working = self._without_biases(at, side, noise, stream) if self.model.biases else None
            self._draw_own(prior.updates(self.U, values), local, values, stream)
            working = working or likelihood.working(self._fit(at, side), noise, stream)
            beside = at[_FACTORS[axis]] if prior.couples_rows else None
            side = side._replace(view=(working.X.rows, working.X.cols)[axis])
            errors = working.draw(side, stream, beside)
            self._draw_own(prior.afterwards(self.U, values), local, values, stream)
            likelihood.update_side(side, working, errors, noise, stream, shared=False)
        self.noise = {name: noise[name] for name in self.noise}

    def _draw_own(
        self, steps: Steps, local: set[str], values: dict[str, Any], stream: Stream
    ) -> None:
        """Draw those hyper-variables that belong to the rows."""
        for name, distribution in steps if local else ():
            if name in local:
                new = distribution.draw(stream, self.own[name].shape)
                values[name] = self.own[name] = new

    def _in_order(self, own: Any, other: Any) -> tuple[Any, Any]:
        """What belongs to the rows of the matrix, then what belongs to its columns."""
        return (own, other) if self.axis == 0 else (other, own)

    def _fit(self, at: Values, side: Side) -> Fit:
        """The new rows and what explains them at one kept draw."""
        beside = None
        if self.model.biases:
            others = at[f"bias.{SIDES[1 - self.axis]}"]
            beside = self._in_order(at["bias.mean"] + self.effects, others)
        return Fit(self.X, *self._in_order(side.U, side.V), beside=beside)

    def _without_biases(self, at: Values, side: Side, noise: Values, stream: Stream) -> Working:
        """Draw the rows' effects, and return the working data less all biases."""
        working = self.model.likelihood.working(self._fit(at, side), noise, stream)
        assert isinstance(working, NormalData)
        name, other = SIDES[self.axis], SIDES[1 - self.axis]
        mean, others = at["bias.mean"], at[f"bias.{other}"]
        weights = working.weights.of(self.axis)
        view = (working.X.rows, working.X.cols)[self.axis]
        left, total = residual_sums(view, side.U, side.V, others, stream.threads, weights)
        tau = working.precision if weights.own is None else working.precision * weights.own
        precision = at[f"bias.{name}_precision"]
        if self.features is None:
            law = effects(total, left, mean, precision, tau)
        else:
            values = {key.removeprefix("bias."): value for key, value in at.items()}
            centre = regression.fitted(self.features, values, prefix=f"{name}_")
            precision = precision * regression.certainty(self.features, values, f"{name}_")
            law = effects(total, left, mean, precision, tau)
            law = replace(law, linear=law.linear + precision * centre)
        self.effects = law.draw(stream, (view.n,))
        offsets = self._in_order(mean + self.effects, others)
        return replace(working, X=less(working.X, *offsets))


def _given(prior: Prior, at: Values, side: str) -> tuple[Values, Values]:
    """What both sides share, and what all rows share, at one kept draw."""
    shared = {"relevance": at["relevance"]} if "relevance" in at else {}
    common = {name: at[f"{side}.{name}"] for name in _common(prior) if f"{side}.{name}" in at}
    return shared, common
