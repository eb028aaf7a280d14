"""A model is a likelihood, a prior for the rows' factors and a prior for the columns' factors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bayesmf import likelihoods, priors
from bayesmf._errors import ModelError
from bayesmf.data.features import Features
from bayesmf.data.inspection import empty_lines
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.offsets import fit_offsets, less
from bayesmf.likelihoods import Likelihood
from bayesmf.likelihoods.base import Fit
from bayesmf.model.biases import Biases, level
from bayesmf.priors import Prior, Setting
from bayesmf.priors.distributions import Values, Variable
from bayesmf.priors.hyperpriors import ARD
from bayesmf.streams import Array
from bayesmf.updates.terms import ScaleTerms


@dataclass(frozen=True, eq=False)
class Model:
    """Likelihood and priors; parts that do not fit each other are refused.

    Examples
    --------
    >>> from bayesmf import Model, Gaussian, Exponential, Laplace, ARD
    >>> Model(Gaussian(), rows=Exponential(ARD(1, 1)), cols=Laplace(1.0))
    Model(Gaussian(alpha=1.0, beta=1.0), rows=Exponential(rate=ARD(alpha=1, beta=1, shared=True)), \
cols=Laplace(scale=1.0))
    >>> from bayesmf import preset
    >>> print(preset("GEG"))
    GEG
      likelihood  Gaussian(alpha=1.0, beta=1.0)
      rows        Exponential(rate=0.1)
      cols        Normal(precision=0.1, update='rows')
    """

    likelihood: Likelihood
    rows: Prior
    cols: Prior
    name: str = "custom"
    biases: Biases | None = None

    def __post_init__(self) -> None:
        known = [getattr(likelihoods, name) for name in likelihoods.__all__ if name != "Likelihood"]
        if not isinstance(self.likelihood, Likelihood):
            names = " or ".join(f"{likelihood.__name__}()" for likelihood in known)
            raise ModelError(f"Model: the likelihood must be {names}, got {self.likelihood!r}.")
        for side in ("rows", "cols"):
            self._check_side(side, getattr(self, side))
        if self.biases is not None and not self.likelihood.takes_biases:
            names = " or ".join(likelihood.name for likelihood in known if likelihood.takes_biases)
            raise ModelError(
                f"Model: biases go with the {names} likelihood; {self.name} has the "
                f"{self.likelihood.name} one. Leave biases out."
            )
        if self.rows.couples_rows and self.cols.couples_rows:
            raise ModelError(
                "Model: a volume prior on both sides has no proper posterior; use Normal(0.1) on "
                "one of them."
            )

    def _check_side(self, side: str, prior: Prior) -> None:
        if not isinstance(prior, Prior):
            raise ModelError(f"Model: {side} must be a prior such as Normal(0.1), got {prior!r}.")
        if not self.likelihood.fits(type(prior)):
            known = [getattr(priors, name) for name in priors.__all__]
            fitting = [
                k.__name__ for k in known if issubclass(k, Prior) and self.likelihood.fits(k)
            ]
            raise ModelError(
                f"Model: {type(prior).__name__} on the {side} does not fit the "
                f"{self.likelihood.name} likelihood; use "
                f"{', '.join(fitting[:-1])} or {fitting[-1]}."
            )
        if prior.ard and type(prior).relevance_terms is Prior.relevance_terms:
            raise ModelError(f"Model: {type(prior).__name__} cannot be governed by an ARD.")

    def __repr__(self) -> str:
        biases = "" if self.biases is None else f", biases={self.biases!r}"
        return f"Model({self.likelihood!r}, rows={self.rows!r}, cols={self.cols!r}{biases})"

    def __str__(self) -> str:
        """The model in lines: its name, and each part of it."""
        parts = {"likelihood": self.likelihood, "rows": self.rows, "cols": self.cols}
        parts |= {} if self.biases is None else {"biases": self.biases}
        return "\n".join([self.name, *(f"  {part:10}  {value!r}" for part, value in parts.items())])

    @property
    def shared_ard(self) -> ARD | None:
        """The ARD that governs both sides, if one does."""
        if not (self.rows.ard and self.cols.ard):
            return None
        ard = self.rows.ard[1]
        return ard if ard.shared and ard == self.cols.ard[1] else None

    @property
    def nonnegative(self) -> tuple[bool, bool]:
        """Whether the rows' and the columns' factors are nonnegative."""
        return self.rows.nonnegative, self.cols.nonnegative

    def variables(self, shape: tuple[int, int], K: int) -> dict[str, Variable]:
        """All random variables by name, as in `State.variables`, with shapes and dimensions."""
        named = {
            "U": Variable((shape[0], K), ("row", "component")),
            "V": Variable((shape[1], K), ("column", "component")),
            **self.likelihood.variables(shape),
        }
        own = self.rows.variables(shape[0], K), self.cols.variables(shape[1], K)
        if self.shared_ard:
            named["relevance"] = own[0].pop("relevance")
            own[1].pop("relevance")
        for side, dim, variables in zip(("rows", "cols"), ("row", "column"), own, strict=True):
            for name, (size, dims) in variables.items():
                dims = tuple(dim if d == "row" else d for d in dims)
                dims = tuple(f"{dim}_{d}" if d.startswith("direction") else d for d in dims)
                named[f"{side}.{name}"] = Variable(size, dims)
        if self.biases:
            named |= {f"bias.{name}": v for name, v in self.biases.variables(shape).items()}
        return named

    def informed(self, X: ObservedMatrix) -> ObservedMatrix:
        """The data with the features that priors were given; refused where a prior takes none."""
        for axis, name in enumerate(("row_features", "col_features")):
            prior = (self.rows, self.cols)[axis]
            if prior.features is not None and getattr(X, name) is None:
                sides = [prior.features.without("pattern"), None][:: 1 - 2 * axis]
                X = X.with_features(*sides)
            if not prior.takes_features and X.features(axis) is not None:
                what = f"{name} and pattern go with the priors Normal and MultivariateNormal"
                side = ("rows", "columns")[axis]
                raise ModelError(
                    f"{what}, but the {side} of {self.name} have {type(prior).__name__}; leave "
                    "them out, or use a model such as GGGW or GGGA."
                )
        return X

    def resolve(self, X: ObservedMatrix, n_components: int) -> Model:
        """Fill in the defaults that depend on the rank or the data, and the features."""
        I, J = X.shape  # noqa: E741
        likelihood = self.likelihood.resolve(X)
        X = likelihood.targets(likelihood.read(X))
        known = X.features(0), X.features(1)
        biases = self.biases and self.biases.resolve(X, likelihood.has_level)
        if biases:
            offsets = fit_offsets(X, "both")
            X = less(X, offsets.rows, offsets.cols)
        square = float(X.mean**2 + X.variance)
        rows = Setting(n_components, I, J, square, self.cols.fixed_precision, known[0])
        cols = Setting(n_components, J, I, square, self.rows.fixed_precision, known[1])
        own, other = self.rows.resolve(rows), self.cols.resolve(cols)
        return replace(self, likelihood=likelihood, rows=own, cols=other, biases=biases)

    def notes(self, X: ObservedMatrix) -> list[str]:
        """What a user should know about this (resolved) model on these data."""
        known = [note for prior in (self.rows, self.cols) for note in _told(prior.features)]
        return [*self.rows.notes(), *self.cols.notes(), *known, *empty_lines(X)]

    def log_joint(
        self, X: ObservedMatrix, U: Array, V: Array, rows: Values, cols: Values,
        shared: Values, noise: Values, biases: Values | None = None,
    ) -> float:  # fmt: skip
        """Log density of data, factors and all hyper-variables, up to a constant."""
        total = self.likelihood.log_density(Fit(X, U, V, beside=level(biases or {})), noise)
        if self.biases and biases:
            total += self.biases.log_density(biases)
        total += self.rows.log_density(U, self.rows.all_values(rows, shared))
        total += self.cols.log_density(V, self.cols.all_values(cols, shared))
        if self.shared_ard:
            total += float(np.sum(self.shared_ard.prior().log_density(shared["relevance"])))
        return total


def _told(features: Features | None) -> tuple[str, ...]:
    return () if features is None else features.notes


def joint_scale_terms(
    left: ScaleTerms | None, right: ScaleTerms | None
) -> tuple[ScaleTerms, float, float] | None:
    """Density of the log scale x when the rows' factor is multiplied by e^x, the columns' by e^-x.

    Returns the terms (over one x, if factors can only move together) and the log weights of the
    determinants, of power 2 (rows) and -2 (columns); None if the model has no such move.
    """
    if left is None or right is None:
        return None
    exponent = left.exponent - right.exponent
    weights = np.logaddexp(left.log_weights, right.log_weights[::-1])
    if left.together or right.together:
        if max(left.determinant, right.determinant) > -np.inf:
            return None
        with np.errstate(divide="ignore"):
            weights = np.logaddexp.reduce(weights, axis=1, keepdims=True)
        exponent = exponent.sum(keepdims=True)
    terms = ScaleTerms(exponent, np.ascontiguousarray(weights))
    return terms, left.determinant, right.determinant
