"""Bayesian matrix factorisation of small and medium matrices with missing entries.

Names are imported when first used, so that ``import bayesmf`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0.dev0"

_HOME = {
    "BayesianMF": "estimators",
    "BayesianImputer": "estimators",
    "compare": "comparison",
    "Comparison": "comparison",
    "ObservedMatrix": "observed",
    "read_matrix": "reading",
    "sample": "sampling",
    "Posterior": "posterior",
    "chain": "sampler",
    "Problem": "sampler",
    "State": "sampler",
    "preset": "presets",
    "hyperparameters": "presets",
    "PRESETS": "presets",
    "Model": "model",
    "Biases": "biases",
    "Gaussian": "likelihoods",
    "Poisson": "likelihoods",
    "Normal": "priors",
    "MultivariateNormal": "priors",
    "Laplace": "priors",
    "Volume": "priors",
    "Exponential": "priors",
    "TruncatedNormal": "priors",
    "L21": "priors",
    "Gamma": "priors",
    "ARD": "hyperpriors",
    "NormalInverseWishart": "hyperpriors",
    "InverseGaussian": "hyperpriors",
    "TruncatedNormalHyper": "hyperpriors",
    "GammaRate": "hyperpriors",
    "baseline": "baselines",
    "BASELINES": "baselines",
    "DataError": "_errors",
    "ModelError": "_errors",
    "ConvergenceWarning": "_errors",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"bayesmf.{_HOME[name]}"), name)
    raise AttributeError(f"module 'bayesmf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
