"""Presets under other likelihoods: what the chain tests run beside the presets themselves.

A name is that of a preset and, after a dash, what its likelihood is: "GEE-student-cols". Settings
have moderate tails, under which chains on tiny matrices mix fast.
"""

from __future__ import annotations

from typing import NamedTuple

from bayesmf.likelihoods import (
    BernoulliPoisson,
    Censored,
    Gaussian,
    Likelihood,
    NegativeBinomial,
    Ordinal,
    StudentT,
)

#: What a likelihood is called on the page, by a word of the name; the first that fits.
KINDS = {
    "features": "features of rows and columns",
    "presence": "Bernoulli-Poisson",
    "negbin": "negative binomial",
    "ordinal": "ordered probit",
    "rounded": "rounded values",
    "censored": "censored values",
    "student": "Student-t",
    "errors": "known errors",
    "both": "unequal noise of rows and columns",
    "rows": "unequal noise of rows",
    "cols": "unequal noise of columns",
}


class Variation(NamedTuple):
    """A preset with another likelihood, and whether entries have known errors or are rounded.

    ``informed``: rows and columns have features, the rows also the pattern of their entries;
    ``undecomposed``: those of the rows are taken as they are.
    """

    base: str
    likelihood: Likelihood
    biased: bool = False
    errors: bool = False
    rounded: bool = False
    informed: bool = False
    undecomposed: bool = False


_NOISE = {"alpha": 4.0, "beta": 4.0, "shape_alpha": 6.0, "shape_beta": 1.0, "shape_least": 2.0}
_DOF = {"dof_alpha": 6.0, "dof_beta": 0.6}
_LIMITS = {"lower": -0.8, "upper": 1.2}


def gaussian(**sides: bool | float) -> Gaussian:
    return Gaussian(**_NOISE, **sides)


def student(**sides: bool) -> StudentT:
    return StudentT(**_NOISE, **_DOF, **sides)


CATEGORIES = Ordinal(categories=(0, 1, 2), spread=1.0)
OVERDISPERSED = NegativeBinomial(4.0, 1.0)
# fmt: off
VARIATIONS = {
    "GGG-rows": Variation("GGG", gaussian(rows=True)),
    "GLL-cols": Variation("GLL", gaussian(cols=True)),
    "GGGW-both": Variation("GGGW", gaussian(rows=True, cols=True)),
    "GEE-both": Variation("GEE", gaussian(rows=True, cols=True)),
    "GGGU-both-fixed": Variation("GGGU", gaussian(rows=True, cols=True, precision=1.5)),
    "GGG-both-biases": Variation("GGG", gaussian(rows=True, cols=True), biased=True),
    "GGG-errors": Variation("GGG", gaussian(), errors=True),
    "GEE-errors-rows": Variation("GEE", gaussian(rows=True), errors=True),
    "GGG-student": Variation("GGG", student()),
    "GEE-student-cols": Variation("GEE", student(cols=True)),
    "GGG-student-biases": Variation("GGG", student(), biased=True),
    "GGG-student-errors": Variation("GGG", student(), errors=True),
    "GGG-censored": Variation("GGG", Censored(**_LIMITS, noise=gaussian())),
    "GEE-censored-both": Variation("GEE", Censored(
        upper=1.5, noise=gaussian(rows=True, cols=True))),
    "GGG-censored-student": Variation("GGG", Censored(**_LIMITS, noise=student())),
    "GGG-rounded": Variation("GGG", Censored(noise=gaussian(cols=True)), rounded=True),
    "GGG-ordinal": Variation("GGG", CATEGORIES),
    "GEE-ordinal": Variation("GEE", Ordinal(categories=(0, 1), spread=1.0)),
    "GGG-ordinal-biases": Variation("GGG", CATEGORIES, biased=True),
    "GGGW-features": Variation("GGGW", gaussian(), informed=True),
    "GGGW-features-gradients": Variation("GGGW", gaussian(), informed=True, undecomposed=True),
    "GGGA-features-biases": Variation("GGGA", gaussian(), biased=True, informed=True),
    "GGG-both-features": Variation("GGG", gaussian(rows=True, cols=True), informed=True),
    "GGGW-ordinal-features-biases": Variation("GGGW", CATEGORIES, biased=True, informed=True),
    "PGG-negbin": Variation("PGG", OVERDISPERSED),
    "PGGG-negbin": Variation("PGGG", OVERDISPERSED),
    "PGG-presence": Variation("PGG", BernoulliPoisson()),
    "PGGG-presence": Variation("PGGG", BernoulliPoisson()),
}
# fmt: on


def kind_of(subject: str) -> str | None:
    """What the likelihood of a subject is called, if it is not the one of its preset."""
    words = subject.replace(",", " ").replace("-", " ").split(" ")
    return next((title for word, title in KINDS.items() if word in words), None)
