"""What editors and type checkers read in place of the lazy table of ``__init__.py``."""

from bayesmf._errors import ConvergenceWarning as ConvergenceWarning
from bayesmf._errors import DataError as DataError
from bayesmf._errors import DataWarning as DataWarning
from bayesmf._errors import ModelError as ModelError
from bayesmf.baselines import BASELINES as BASELINES
from bayesmf.baselines import baseline as baseline
from bayesmf.comparison.compare import Comparison as Comparison
from bayesmf.comparison.compare import compare as compare
from bayesmf.data.observed import ObservedMatrix as ObservedMatrix
from bayesmf.estimators import BayesianImputer as BayesianImputer
from bayesmf.estimators import BayesianMF as BayesianMF
from bayesmf.likelihoods import BernoulliPoisson as BernoulliPoisson
from bayesmf.likelihoods import Censored as Censored
from bayesmf.likelihoods import Gaussian as Gaussian
from bayesmf.likelihoods import NegativeBinomial as NegativeBinomial
from bayesmf.likelihoods import Ordinal as Ordinal
from bayesmf.likelihoods import Poisson as Poisson
from bayesmf.likelihoods import StudentT as StudentT
from bayesmf.model.biases import Biases as Biases
from bayesmf.model.model import Model as Model
from bayesmf.model.presets import PRESETS as PRESETS
from bayesmf.model.presets import hyperparameters as hyperparameters
from bayesmf.model.presets import preset as preset
from bayesmf.posterior.posterior import Posterior as Posterior
from bayesmf.posterior.sample import sample as sample
from bayesmf.priors import L21 as L21
from bayesmf.priors import Exponential as Exponential
from bayesmf.priors import Gamma as Gamma
from bayesmf.priors import Horseshoe as Horseshoe
from bayesmf.priors import Laplace as Laplace
from bayesmf.priors import MultivariateNormal as MultivariateNormal
from bayesmf.priors import Normal as Normal
from bayesmf.priors import TruncatedNormal as TruncatedNormal
from bayesmf.priors import Volume as Volume
from bayesmf.priors.hyperpriors import ARD as ARD
from bayesmf.priors.hyperpriors import GammaRate as GammaRate
from bayesmf.priors.hyperpriors import InverseGaussian as InverseGaussian
from bayesmf.priors.hyperpriors import NormalInverseWishart as NormalInverseWishart
from bayesmf.priors.hyperpriors import TruncatedNormalHyper as TruncatedNormalHyper
from bayesmf.reading import read_matrix as read_matrix
from bayesmf.sampler.run import chain as chain
from bayesmf.sampler.state import Problem as Problem
from bayesmf.sampler.state import State as State

__version__: str
