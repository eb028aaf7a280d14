"""The table of models: the paper's sixteen and more, each a likelihood, two priors, hyperpriors.

Defaults are the paper's hyperparameters. Where the paper contradicts itself:

* GLL: ``eta`` is the Laplace scale, as stated (sqrt 10). The study's own sampler really used the
  scale 10^(-1/4) = 0.562; set ``eta=10**-0.25`` to compare with its published numbers.
* GLLI: ``reading="scale"`` is the stated prior, ``reading="rate"`` the one its formulas aim at.
* GVG, GVnG: the paper tunes gamma by dataset; the default here follows rank and data (`Volume`).

The first letter of a name is the likelihood: G Gaussian and P Poisson are the table's, and another
one that fits the same priors may take its place, as in TGGW (Student-t), OGGW (ordinal) or NGG
(negative binomial).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from bayesmf import likelihoods
from bayesmf._errors import ModelError, nearest
from bayesmf.likelihoods import Censored, Gaussian, Likelihood, Poisson
from bayesmf.likelihoods.gaussian import NOISE
from bayesmf.model.biases import Biases
from bayesmf.model.model import Model
from bayesmf.priors import (
    L21,
    Exponential,
    Gamma,
    Horseshoe,
    Laplace,
    MultivariateNormal,
    Normal,
    Prior,
    TruncatedNormal,
    Volume,
)
from bayesmf.priors.hyperpriors import (
    ARD,
    GammaRate,
    InverseGaussian,
    NormalInverseWishart,
    TruncatedNormalHyper,
)


class Hyper(dict[str, Any]):
    """Hyperparameters by name, read as attributes; ``lambda_`` stands for "lambda"."""

    def __getattr__(self, name: str) -> Any:
        return self[name.rstrip("_")]


class Preset(NamedTuple):
    """One row of the table."""

    group: str
    likelihood: type[Likelihood]
    rows: Callable[[Hyper], Prior]
    cols: Callable[[Hyper], Prior]
    defaults: dict[str, Any]
    good_for: str
    paper: bool = True


def _normal(v: Hyper) -> Prior:
    return Normal(v.lambda_)


def _normal_ard(v: Hyper) -> Prior:
    return Normal(ARD(v.alpha0, v.beta0))


def _normal_wishart(v: Hyper) -> Prior:
    return MultivariateNormal(NormalInverseWishart(v.mu0, v.beta0, v.nu0, v.W0))


def _laplace(v: Hyper) -> Prior:
    return Laplace(v.eta)


def _laplace_inverse_gaussian(v: Hyper) -> Prior:
    return Laplace(InverseGaussian(v.mu, v.lambda_, v.reading))


def _exponential(v: Hyper) -> Prior:
    return Exponential(v.lambda_)


def _exponential_ard(v: Hyper) -> Prior:
    return Exponential(ARD(v.alpha0, v.beta0))


def _truncated_hyper(v: Hyper) -> Prior:
    return TruncatedNormal(0.0, TruncatedNormalHyper(v.mu_mu, v.tau_mu, v.a, v.b))


def _gamma_hyper(v: Hyper) -> Prior:
    return Gamma(v.a, GammaRate(v.a_prime, v.b_prime))


REAL, NONNEGATIVE, SEMI, COUNTS = "real-valued", "nonnegative", "semi-nonnegative", "Poisson"
_ARD = {"alpha0": 1.0, "beta0": 1.0}
_VOLUME = {"gamma": None, "log10_gamma": None, "ridge": None, "lambda": 0.1}

# fmt: off
PRESETS: dict[str, Preset] = {
    "GGG":  Preset(REAL, Gaussian, _normal, _normal, {"lambda": 0.1},
                   "a plain start, when the rank is known"),
    "GGGU": Preset(REAL, Gaussian, lambda v: Normal(v.lambda_, "entries"),
                   lambda v: Normal(v.lambda_, "entries"), {"lambda": 0.1},
                   "comparisons with GGG: the same model, sampled entry by entry"),
    "GGGA": Preset(REAL, Gaussian, _normal_ard, _normal_ard, _ARD,
                   "an unknown rank: factors without use switch themselves off"),
    "GGGW": Preset(REAL, Gaussian, _normal_wishart, _normal_wishart,
                   {"mu0": 0.0, "beta0": 1.0, "nu0": None, "W0": 1.0},
                   "factors that are correlated or far from zero on average"),
    "GLL":  Preset(REAL, Gaussian, _laplace, _laplace, {"eta": math.sqrt(10)},
                   "factors of which few entries are large"),
    "GLLI": Preset(REAL, Gaussian, _laplace_inverse_gaussian, _laplace_inverse_gaussian,
                   {"mu": None, "lambda": None, "reading": "scale"},
                   "as GLL, with a scale for every entry that the data decide"),
    "GVG":  Preset(REAL, Gaussian, lambda v: Volume(v.gamma, v.log10_gamma, "real", v.ridge),
                   _normal, _VOLUME,
                   "row factors that span as little volume as the data allow"),
    "GEE":  Preset(NONNEGATIVE, Gaussian, _exponential, _exponential, {"lambda": 0.1},
                   "parts that only add up, many entries near zero"),
    "GEEA": Preset(NONNEGATIVE, Gaussian, _exponential_ard, _exponential_ard, _ARD,
                   "parts that only add up, when their number is not known"),
    "GTT":  Preset(NONNEGATIVE, Gaussian, lambda v: TruncatedNormal(v.mu_U, v.tau_U),
                   lambda v: TruncatedNormal(v.mu_V, v.tau_V),
                   {"mu_U": 0.0, "tau_U": 0.1, "mu_V": 0.0, "tau_V": 0.1},
                   "parts that only add up, small entries hardly shrunk"),
    "GTTN": Preset(NONNEGATIVE, Gaussian, _truncated_hyper, _truncated_hyper,
                   {"mu_mu": 0.0, "tau_mu": 0.1, "a": 1.0, "b": 1.0},
                   "as GTT, with a mean and a precision for every entry that the data decide"),
    "GL21": Preset(NONNEGATIVE, Gaussian, lambda v: L21(v.lambda_), lambda v: L21(v.lambda_),
                   {"lambda": 0.1},
                   "parts that only add up, few of them in any one row"),
    "GEG":  Preset(SEMI, Gaussian, _exponential, _normal, {"lambda": 0.1},
                   "mixtures: nonnegative weights of signed profiles"),
    "GVnG": Preset(SEMI, Gaussian, lambda v: Volume(v.gamma, v.log10_gamma, "nonnegative", v.ridge),
                   _normal, _VOLUME,
                   "mixtures whose weights span as little volume as the data allow"),
    "PGG":  Preset(COUNTS, Poisson, lambda v: Gamma(v.a, v.b), lambda v: Gamma(v.a, v.b),
                   {"a": 1.0, "b": 1.0},
                   "counts, whose noise grows with their size"),
    "PGGG": Preset(COUNTS, Poisson, _gamma_hyper, _gamma_hyper,
                   {"a": 1.0, "a_prime": 1.0, "b_prime": 1.0},
                   "counts, when rows and columns differ much in size"),
    "GHH":  Preset(REAL, Gaussian, lambda v: Horseshoe(v.scale), lambda v: Horseshoe(v.scale),
                   {"scale": 1.0},
                   "factors of which most entries are zero and a few are large", paper=False),
}
# fmt: on
#: Likelihoods by the first letter of a model's name.
LETTERS: dict[str, type[Likelihood]] = {
    known.letter: known
    for known in (getattr(likelihoods, name) for name in likelihoods.__all__)
    if known.letter
}
#: What a letter is for, in words.
SUITS = {
    "G": "normal noise", "T": "normal noise with outliers",
    "C": "values of which some are known up to a limit or an interval only",
    "O": "ordered categories, such as ratings", "B": "zeros and ones, of which ones are rare",
    "N": "counts that spread more than Poisson's", "P": "counts",
}  # fmt: skip
#: The sixteen models of the paper.
PAPER = tuple(name for name, row in PRESETS.items() if row.paper)


def hyperparameters(name: str) -> dict[str, Any]:
    """Names and defaults of a preset's hyperparameters; None means that rank or data decide.

    Examples
    --------
    >>> from bayesmf import hyperparameters
    >>> hyperparameters("GGG")
    {'lambda': 0.1, 'alpha_tau': 1.0, 'beta_tau': 1.0}
    """
    row = lookup(known_name(name))
    return {**row.defaults, **row.likelihood.hyperparameters()}


def preset(name: str, **values: Any) -> Model:
    """Return a model of the table by name, with any hyperparameter changed.

    Parameters
    ----------
    name
        One of the names in `PRESETS`, such as "GGGA", in capitals or not.
    **values
        Hyperparameters by the names that `hyperparameters` lists; ``lambda_`` may be written for
        "lambda", which Python reserves.

    Examples
    --------
    >>> from bayesmf import preset
    >>> preset("GEG", lambda_=0.5).rows
    Exponential(rate=0.5)
    """
    name = known_name(name)
    row = lookup(name)
    v = Hyper(hyperparameters(name))
    for key, value in values.items():
        key = key.rstrip("_")
        if key not in v:
            raise ModelError(
                f"{name} has no hyperparameter {key!r}; it has {', '.join(v)}.{nearest(key, v)}"
            )
        v[key] = value
    own = {field: v[symbol] for field, symbol in row.likelihood.symbols.items()}
    return Model(row.likelihood(**own), row.rows(v), row.cols(v), name)


def as_model(
    model: str | Model,
    changes: dict[str, Any] | None,
    biases: bool | Biases = False,
    noise: str | None = None,
    limits: tuple[Any, Any] = (None, None),
) -> Model:
    """The preset of this name with its hyperparameters changed, or the model.

    On request with biases, with noise that is "equal" or differs by "rows", "cols" or "both", and
    with lower and upper limits of the values.
    """
    if not isinstance(model, Model):
        model = preset(model, **(changes or {}))
    elif changes:
        raise ModelError("Hyperparameters go with a preset's name; give them to the Model's parts.")
    model = replace(model, likelihood=_with_options(model, noise, limits))
    if not isinstance(biases, (bool, Biases)):
        raise ModelError(f"biases must be True, False or Biases(...), got {biases!r}.")
    if biases is False:
        return model
    return replace(model, biases=model.biases or Biases() if biases is True else biases)


def _with_options(model: Model, noise: str | None, limits: tuple[Any, Any]) -> Likelihood:
    """The likelihood of a model with these options of the normal family."""
    likelihood = model.likelihood
    if noise is not None and noise not in NOISE:
        raise ModelError(
            f"noise must be one of {', '.join(NOISE)}, got {noise!r}.{nearest(str(noise), NOISE)}"
        )
    limited = any(limit is not None for limit in limits)
    asked = {"noise": noise not in (None, "equal"), "limits": limited}
    wanted = [name for name, value in asked.items() if value]
    if wanted and not isinstance(likelihood, Gaussian | Censored):
        raise ModelError(
            f"{' and '.join(wanted)} go with Gaussian and Student-t "
            f"likelihoods; {model.name} has the {likelihood.name} one. Leave "
            f"{'them' if limited else 'it'} out."
        )
    if noise is not None and isinstance(likelihood, Gaussian | Censored):
        likelihood = likelihood.unequal(noise)
    if asked["limits"]:
        inner = likelihood.noise if isinstance(likelihood, Censored) else likelihood
        likelihood = Censored(*limits, noise=inner)  # type: ignore[arg-type]
    return likelihood


def known_name(name: str) -> str:
    """How a model is called that somebody names in other capitals; unknown names stay.

    Examples
    --------
    >>> known_name("ggga"), known_name("gvng"), known_name("Tggw"), known_name("best")
    ('GGGA', 'GVnG', 'TGGW', 'best')
    """
    if not isinstance(name, str) or name in PRESETS:
        return name
    rests = {known[1:].casefold(): known[1:] for known in PRESETS}
    letter, rest = name[:1].upper(), rests.get(name[1:].casefold())
    return name if rest is None or letter not in LETTERS else letter + rest


def lookup(name: str) -> Preset:
    """A row of the table, or one with another likelihood in the place of its own."""
    if isinstance(name, str) and name in PRESETS:
        return PRESETS[name]
    if isinstance(name, str) and (likelihood := LETTERS.get(name[:1])):
        rows = [row for letter in "GP" if (row := PRESETS.get(letter + name[1:]))]
        for row in rows:
            if _fits(likelihood, row):
                return row._replace(likelihood=likelihood, paper=False)
        if rows:
            fitting = [name[0] + p[1:] for p, row in PRESETS.items() if _fits(likelihood, row)]
            raise ModelError(
                f"{name}: the {likelihood.name} likelihood does not fit these priors; use "
                f"{' or '.join(dict.fromkeys(fitting))}."
            )
    others = ", ".join(letter for letter in LETTERS if letter not in "GP")
    hint = nearest(name, PRESETS) if isinstance(name, str) else ""
    raise ModelError(
        f"Unknown model {name!r}; the models are {', '.join(PRESETS)}, or such with another "
        f"likelihood's letter ({others}) in front.{hint}"
    )


def _fits(likelihood: type[Likelihood], row: Preset) -> bool:
    """Whether the priors of a preset can be drawn under a likelihood."""
    values = Hyper(row.defaults)
    return all(likelihood().fits(type(side(values))) for side in (row.rows, row.cols))
