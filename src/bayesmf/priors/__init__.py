"""Priors of the factors of one side.

A prior never draws a factor in a sweep: it states its terms (see `bayesmf.updates.terms`) and a
kernel draws. A new conditionally Gaussian prior needs its terms, the updates of its
hyper-variables, its log density and a draw from the prior; the scale move is optional.

Methods take ``values``, a dictionary with all hyperparameters, whether they are fixed numbers or
variables of the chain.
"""

# ruff: noqa: F403  each module says what it exports; a new prior is exported where it is written
from bayesmf.priors import base, nonnegative, real, volume
from bayesmf.priors.base import *
from bayesmf.priors.nonnegative import *
from bayesmf.priors.real import *
from bayesmf.priors.volume import *

__all__ = [*base.__all__, *nonnegative.__all__, *real.__all__, *volume.__all__]
