"""Priors of the factors of one side.

A prior never draws a factor in a sweep: it states its terms (see `bayesmf.terms`) and a kernel
draws. A new conditionally Gaussian prior needs its terms, the updates of its hyper-variables, its
log density and a draw from the prior; the scale move is optional.

Methods take ``h``, a dictionary with the values of all hyperparameters, whether they are fixed
numbers or variables of the chain.
"""

from bayesmf.priors.base import Prior, Setting
from bayesmf.priors.nonnegative import L21, Exponential, Gamma, TruncatedNormal
from bayesmf.priors.real import Laplace, MultivariateNormal, Normal
from bayesmf.priors.volume import Volume

__all__ = [
    "L21",
    "Exponential",
    "Gamma",
    "Laplace",
    "MultivariateNormal",
    "Normal",
    "Prior",
    "Setting",
    "TruncatedNormal",
    "Volume",
]
