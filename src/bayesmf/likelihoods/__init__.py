"""Likelihoods: how an observed entry follows from the product of the factors.

Each module says what it exports, so that a new likelihood is exported where it is written.
"""

# ruff: noqa: F403
from bayesmf.likelihoods import counts, gaussian
from bayesmf.likelihoods.base import Likelihood
from bayesmf.likelihoods.counts import *
from bayesmf.likelihoods.gaussian import *

__all__ = ["Likelihood", *gaussian.__all__, *counts.__all__]
