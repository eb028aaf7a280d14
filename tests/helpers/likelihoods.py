"""One model for every likelihood and way of drawing factors, and small data for each."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bayesmf import (
    BernoulliPoisson,
    Biases,
    Censored,
    Gaussian,
    Model,
    NegativeBinomial,
    Ordinal,
    Poisson,
    StudentT,
    preset,
)
from bayesmf.likelihoods import Likelihood
from tests.helpers.matrices import small_matrix


class Case(NamedTuple):
    """A likelihood, and what turns small counts into data that it takes."""

    likelihood: Likelihood
    kind: str = "numbers"  # or "counts", "ratings", "presence"

    def data(self, X: np.ndarray) -> np.ndarray:
        """Data of the kind, made of small counts."""
        if self.kind == "ratings":
            return np.where(np.isnan(X), X, np.clip(X, 0, 4))
        middle = np.nanmedian(X)
        return np.where(np.isnan(X), X, middle < X) if self.kind == "presence" else X

    def priors(self) -> tuple[str, ...]:
        """Presets whose factors are drawn in different ways."""
        return ("PGG", "PGGG") if isinstance(self.likelihood, Poisson) else ("GGGW", "GEE", "GVG")

    def models(self, biases: bool = False) -> list[tuple[str, Model]]:
        """A model for each of the priors; with biases, where they are allowed."""
        if biases and not self.likelihood.takes_biases:
            return []
        found = []
        for name in self.priors():
            model = replace(preset(name), likelihood=self.likelihood)
            found.append((name, replace(model, biases=Biases()) if biases else model))
        return found


CASES = {
    "rows": Case(Gaussian(rows=True)),
    "cols": Case(Gaussian(cols=True)),
    "both": Case(Gaussian(rows=True, cols=True)),
    "student": Case(StudentT()),
    "student both": Case(StudentT(rows=True, cols=True)),
    "censored": Case(Censored(lower=1.0, upper=8.0)),
    "censored student": Case(Censored(upper=8.0, noise=StudentT(cols=True))),
    "ordinal": Case(Ordinal(range(5)), "ratings"),
    "probit": Case(Ordinal(2), "presence"),
    "poisson": Case(Poisson(), "counts"),
    "negative binomial": Case(NegativeBinomial(), "counts"),
    "presence": Case(BernoulliPoisson(), "presence"),
}
LIMITS = np.append(np.inf, np.arange(6.0, 17.0))  # of the columns of `small_matrix`


def columns_censored() -> Censored:
    """A likelihood with a limit for each column of `small_matrix`, the first one without any."""
    return Censored(upper=LIMITS, noise=Gaussian(cols=True))


def small(case: str, density: float = 0.7, shape: tuple[int, int] = (17, 12)) -> np.ndarray:
    """A small matrix that the likelihood of a case takes."""
    return CASES[case].data(small_matrix(density, shape))
