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
    "compare": "comparison.compare",
    "Comparison": "comparison.compare",
    "ObservedMatrix": "data.observed",
    "Features": "data.features",
    "read_matrix": "reading",
    "from_anndata": "data.annotated",
    "sample": "posterior.sample",
    "Posterior": "posterior.posterior",
    "chain": "sampler.run",
    "Problem": "sampler.state",
    "State": "sampler.state",
    "preset": "model.presets",
    "hyperparameters": "model.presets",
    "PRESETS": "model.presets",
    "Model": "model.model",
    "Biases": "model.biases",
    "Gaussian": "likelihoods",
    "StudentT": "likelihoods",
    "Censored": "likelihoods",
    "Ordinal": "likelihoods",
    "Poisson": "likelihoods",
    "NegativeBinomial": "likelihoods",
    "BernoulliPoisson": "likelihoods",
    "Normal": "priors",
    "MultivariateNormal": "priors",
    "Laplace": "priors",
    "Horseshoe": "priors",
    "Volume": "priors",
    "Exponential": "priors",
    "TruncatedNormal": "priors",
    "L21": "priors",
    "Gamma": "priors",
    "ARD": "priors.hyperpriors",
    "NormalInverseWishart": "priors.hyperpriors",
    "InverseGaussian": "priors.hyperpriors",
    "TruncatedNormalHyper": "priors.hyperpriors",
    "GammaRate": "priors.hyperpriors",
    "baseline": "baselines",
    "BASELINES": "baselines",
    "DataError": "_errors",
    "ModelError": "_errors",
    "StorageError": "_errors",
    "ConvergenceWarning": "_errors",
    "DataWarning": "_errors",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"bayesmf.{_HOME[name]}"), name)
    raise AttributeError(f"module 'bayesmf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
