"""Parts that a user might write: a prior with discrete hyper-variables, and one that is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesmf.likelihoods import Gaussian
from bayesmf.likelihoods.base import NormalData, Weights
from bayesmf.priors import Prior
from bayesmf.priors import distributions as dist
from bayesmf.priors.distributions import Variable
from bayesmf.updates.terms import RowTerms


@dataclass(frozen=True)
class SpikeAndSlab(Prior):
    """Normal entries that are wide where they are included, and nearly zero elsewhere."""

    share: float = 0.5
    slab: float = 1.0
    spike: float = 100.0

    def variables(self, n, K):
        return {"included": Variable.of_entries(n, K)}

    def _precision(self, values):
        return np.where(values["included"] == 1, self.slab, self.spike)

    def terms(self, values, K):
        return RowTerms(np.zeros((K, K)), self._precision(values), np.zeros((1, K)))

    def updates(self, U, values):
        slab, spike = (
            dist.Normal(precision=precision).log_density(U) for precision in (self.slab, self.spike)
        )
        odds = np.log(self.share / (1 - self.share)) + slab - spike
        yield "included", dist.Bernoulli(log_odds=odds)

    def log_density(self, U, values):
        factors = dist.Normal(precision=self._precision(values)).log_density(U)
        odds = np.log(self.share / (1 - self.share))
        return float(
            np.sum(factors + dist.Bernoulli(log_odds=odds).log_density(values["included"]))
        )

    def draw(self, stream, n, K, shared):
        odds = np.log(self.share / (1 - self.share))
        own = {"included": dist.Bernoulli(log_odds=odds).draw(stream, (n, K))}
        return dist.Normal(precision=self._precision(own)).draw(stream, (n, K)), own


@dataclass(frozen=True)
class Wrong(SpikeAndSlab):
    """The same with a slip, by name."""

    slip: str = ""

    def terms(self, values, K):
        right = super().terms(values, K)
        slips = {
            "short": right._replace(diagonal=right.diagonal[:-1]),
            "flat": right._replace(linear=np.zeros(K)),
            "whole": right._replace(precision=np.zeros((K, K), dtype=int)),
            "scalar": right._replace(linear=0.0),
            "tuple": tuple(right),
        }
        return slips.get(self.slip, right)

    def updates(self, U, values):
        if self.slip == "few odds":
            yield "included", dist.Normal(precision=np.ones((3, 1)))
        if self.slip == "unknown":
            yield "excluded", dist.Bernoulli(log_odds=0.0)
        yield from super().updates(U, values)

    def draw(self, stream, n, K, shared):
        U, own = super().draw(stream, n, K, shared)
        return (U.T, own) if self.slip == "turned" else (U, own)


@dataclass(frozen=True)
class Careless(Gaussian):
    """A likelihood with a slip in its working data, by name."""

    slip: str = ""

    def working(self, fit, own, stream):
        X, n = fit.X, fit.X.n_observed
        slips = {
            "short": {"weights": Weights(entries=(np.ones(n), np.ones(n - 1)))},
            "whole": {"weights": Weights(entries=(np.ones(n, dtype=int), np.ones(n)))},
            "list": {"weights": Weights(cols=[1.0] * X.shape[1])},
            "turned": {"weights": Weights(rows=np.ones(X.shape[1]))},
            "many": {"precision": np.ones(3)},
        }
        return NormalData(X, **{"precision": 1.0, **slips[self.slip]})


@dataclass(frozen=True)
class Steady(Gaussian):
    """A likelihood of one's own: Gaussian noise under another name."""
