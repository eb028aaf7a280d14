"""Rows that a chain has not seen: their factors, drawn given each kept draw of everything else.

What all rows share (the other side's factors, the noise, common hyper-variables) comes from the
kept draws; a new row's own factors and hyper-variables are drawn from their conditionals. A new row
thus has the very distribution that a known row with the same entries has, and without any entry it
has that of the prior.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bayesmf._errors import ModelError
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.offsets import less
from bayesmf.likelihoods import Likelihood
from bayesmf.likelihoods.base import Fit, NormalData, Side, Working
from bayesmf.model.biases import effects, residual_sums
from bayesmf.model.model import Model
from bayesmf.posterior.posterior import Posterior
from bayesmf.priors import Prior
from bayesmf.priors.distributions import Values
from bayesmf.streams import Array, Stream, seed_words

_FIRST, _LATER = 30, 3  # sweeps over a new row's own variables: at the first draw, at every other


def needed(model: Model) -> list[str]:
    """Names of the variables whose draws must be kept for new rows."""
    common = [f"rows.{name}" for name in _common(model.rows) if name != "relevance"]
    ard = "relevance" if model.shared_ard else "rows.relevance"
    biases = ["mean", "rows", "cols", "rows_precision", "cols_precision"] if model.biases else []
    return ["U", "V", *common, *([ard] if model.rows.ard else []), *(f"bias.{b}" for b in biases)]


def _common(prior: Prior) -> list[str]:
    """Hyper-variables that all rows share; any others belong to a row or to an entry."""
    return [name for name, variable in prior.variables(1, 1).items() if "row" not in variable.dims]


class NewRows(NamedTuple):
    """Draws (D, n, ...) of what new rows have of their own.

    Factors; biases in the form of `Posterior.biases`, if the model has any; and the likelihood's
    variables, those of the new rows in the place of those of the known ones.
    """

    U: Array
    biases: Values
    own: Values


def draw_new_rows(posterior: Posterior, X: ObservedMatrix, threads: int = 1) -> NewRows:
    """Draw all that the rows of X have of their own, one draw for each kept draw of all chains."""
    kept, likelihood = posterior.draws, posterior.model.likelihood
    if not {"U", "V"} <= set(kept):
        raise ModelError("New rows need the draws of the factors; sample with keep=('U', 'V').")
    if X.shape[1] != posterior.shape[1]:
        raise ModelError(
            f"New rows must have the {posterior.shape[1]} columns of the data, got {X.shape[1]}."
        )
    likelihood.check(X)
    X = likelihood.read(X)
    chains, draws = kept["V"].shape[:2]
    out = np.empty((chains, draws, X.shape[0], posterior.n_components))
    biases, own = posterior.biases(), posterior.likelihood_values()
    effects = np.zeros((chains, draws, X.shape[0]))
    local = {name: np.empty_like(effects) for name in _local(likelihood)}
    for c in range(chains):
        words = np.random.SeedSequence([*posterior.states[c].seed.tolist(), 1])
        seed, rows = seed_words(words), None
        for d in range(draws):
            at = {name: values[c, d] for name, values in kept.items()}
            stream = Stream(seed, c, d, threads, goes_on=False)
            rows = _Rows(posterior.model, X, at, stream) if rows is None else rows
            with np.errstate(under="ignore"):
                rows.step(at, stream, _FIRST if d == 0 else _LATER)
            out[c, d], effects[c, d] = rows.U, rows.effects
            for name, values in local.items():
                values[c, d] = rows.noise[name]
    if biases:
        biases["rows"] = effects.reshape(-1, X.shape[0])
    own |= {name: values.reshape(-1, X.shape[0]) for name, values in local.items()}
    return NewRows(out.reshape(-1, *out.shape[2:]), biases, own)


def _local(likelihood: Likelihood) -> list[str]:
    """Own variables of the likelihood that belong to a row."""
    return [name for name, v in likelihood.variables((1, 1)).items() if "row" in v.dims]


class _Rows:
    """Factors and own variables of the new rows, moved along from draw to draw."""

    def __init__(self, model: Model, X: ObservedMatrix, at: Values, stream: Stream) -> None:
        self.model, self.X = model, X
        shared, _ = _given(model.rows, at)
        self.U, self.own = model.rows.draw(stream, X.shape[0], at["V"].shape[1], shared)
        self.effects = np.zeros(X.shape[0])
        self.noise: Values = {}
        if local := _local(model.likelihood):
            drawn = model.likelihood.draw(X.shape, stream)
            self.noise = {name: drawn[name] for name in local}

    def step(self, at: Values, stream: Stream, sweeps: int) -> None:
        """Draw factors, effects and noise of the rows given one kept draw.

        Rows that are drawn as a whole need one sweep.
        """
        prior, likelihood = self.model.rows, self.model.likelihood
        shared, common = _given(prior, at)
        self.own.update(common)
        local = set(self.own) - set(_common(prior))
        values = prior.all_values(self.own, shared)
        side = Side(0, self.X.rows, self.U, np.ascontiguousarray(at["V"]), prior, values)
        if likelihood.draws_jointly(side) and not (local or self.model.biases):
            sweeps = 1
        noise = {name: at[name] for name in likelihood.variables(self.X.shape)} | self.noise
        for _ in range(sweeps):
            working = self._without_biases(at, side, noise, stream) if self.model.biases else None
            if local:
                for name, distribution in prior.updates(self.U, values):
                    if name in local:
                        new = distribution.draw(stream, self.own[name].shape)
                        values[name] = self.own[name] = new
            working = working or likelihood.working(self._fit(at, side), noise, stream)
            beside = at["U"] if prior.couples_rows else None
            side = side._replace(view=working.X.rows)
            errors = working.draw(side, stream, beside)
            likelihood.update_side(side, working, errors, noise, stream, shared=False)
        self.noise = {name: noise[name] for name in self.noise}

    def _fit(self, at: Values, side: Side) -> Fit:
        """The new rows and what explains them at one kept draw."""
        beside = None
        if self.model.biases:
            beside = at["bias.mean"] + self.effects, at["bias.cols"]
        return Fit(self.X, side.U, side.V, beside=beside)

    def _without_biases(self, at: Values, side: Side, noise: Values, stream: Stream) -> Working:
        """Draw the rows' effects, and return the working data less all biases."""
        working = self.model.likelihood.working(self._fit(at, side), noise, stream)
        assert isinstance(working, NormalData)
        mean, cols, weights = at["bias.mean"], at["bias.cols"], working.weights.of(0)
        view = working.X.rows
        left, total = residual_sums(view, side.U, side.V, cols, stream.threads, weights)
        tau = working.precision if weights.own is None else working.precision * weights.own
        law = effects(total, left, mean, at["bias.rows_precision"], tau)
        self.effects = law.draw(stream, (view.n,))
        return replace(working, X=less(working.X, mean + self.effects, cols))


def _given(prior: Prior, at: Values) -> tuple[Values, Values]:
    """What both sides share, and what all rows share, at one kept draw."""
    shared = {"relevance": at["relevance"]} if "relevance" in at else {}
    common = {name: at[f"rows.{name}"] for name in _common(prior) if f"rows.{name}" in at}
    return shared, common
