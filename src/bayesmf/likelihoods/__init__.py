"""Likelihoods: how an observed entry follows from the product of the factors.

Each module says what it exports, so that a new likelihood is exported where it is written.
"""

# ruff: noqa: F403
from bayesmf.likelihoods import censored, counts, gaussian, ordinal, student
from bayesmf.likelihoods.base import Likelihood
from bayesmf.likelihoods.censored import *
from bayesmf.likelihoods.counts import *
from bayesmf.likelihoods.gaussian import *
from bayesmf.likelihoods.ordinal import *
from bayesmf.likelihoods.student import *

_FAMILIES = (gaussian, student, censored, ordinal, counts)
__all__ = ["Likelihood", *(name for family in _FAMILIES for name in family.__all__)]
