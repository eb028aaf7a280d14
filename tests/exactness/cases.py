"""Models and data on which every conditional is checked, each with its plain densities."""

from collections.abc import Callable
from dataclasses import astuple, replace
from typing import NamedTuple

import numpy as np

from bayesmf import preset
from bayesmf.likelihoods import Gaussian, Poisson
from bayesmf.model.biases import Biases
from bayesmf.model.model import Model
from bayesmf.model.presets import PRESETS
from bayesmf.priors import (
    L21,
    Exponential,
    Gamma,
    Laplace,
    MultivariateNormal,
    Normal,
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
from tests.exactness import joint


class Data(NamedTuple):
    shape: tuple[int, int]
    density: float
    rank: int
    empty: bool = True  # a row and a column without any observed entry


DATA = {
    "sparse, K = 3": Data((12, 9), 0.35, 3),
    "dense, K = 3": Data((8, 11), 0.8, 3),
    "complete, K = 3": Data((9, 7), 1.0, 3, empty=False),
    "sparse, K = 1": Data((7, 12), 0.35, 1),
    "dense, K = 1": Data((11, 6), 0.8, 1),
}
FEW_ROWS = Data((3, 8), 0.8, 3, empty=False)  # without any row, the others do not span the factors


class Case(NamedTuple):
    """A model, its plain densities (by rank and resolved model), and whether its scale moves."""

    model: Model
    plain: Callable[[int, Model], joint.Plain]
    moves: bool = True


def named(name: str, moves: bool = True, **hyper) -> Case:
    def plain(K: int, resolved: Model) -> joint.Plain:
        own = {}
        if isinstance(resolved.rows, Volume):  # its defaults depend on the data
            own = {"gamma": 10**resolved.rows.log10_gamma, "ridge": resolved.rows.ridge}
        return joint.table(name, K, **{**own, **hyper})

    return Case(preset(name, **hyper), plain, moves)


def custom(rows, cols, plain: Callable[[int], joint.Plain], moves: bool = True) -> Case:
    model = Model(Gaussian(2.0, 0.5), rows, cols)
    return Case(model, lambda K, _: plain(K)._replace(data=joint.gaussian(2.0, 0.5)), moves)


def biased(case: Case, *hyper: float) -> Case:
    """The same with biases, whose hyperparameters are the data's unless they are given."""
    model = replace(case.model, biases=Biases(*hyper))

    def plain(K: int, resolved: Model) -> joint.Plain:
        return case.plain(K, resolved)._replace(biases=astuple(resolved.biases))

    return Case(model, plain, case.moves)


def custom_counts(rows, cols, plain: joint.Plain) -> Case:
    return Case(Model(Poisson(), rows, cols), lambda K, _: plain._replace(data=joint.poisson))


def slanted(K: int) -> np.ndarray:
    return 0.5 * np.eye(K) + 0.2


WIDE = joint.truncated_normal_hyper(0.0, 0.3, 1.7, 0.6)
CASES = {
    **{name: named(name) for name in PRESETS},
    "GLLI rate": named("GLLI", reading="rate"),
    "GGG changed": named("GGG", lambda_=0.7, alpha_tau=3.0, beta_tau=0.2),
    "GGGU changed": named("GGGU", lambda_=1.7, alpha_tau=0.3, beta_tau=2.0),
    "GGGA changed": named("GGGA", alpha0=2.5, beta0=0.3),
    "GGGW changed": named("GGGW", beta0=0.4, nu0=5.5, W0=3.0),
    "GGGW mean": named("GGGW", mu0=0.8, beta0=2.4, nu0=4.5, moves=False),
    "GLL changed": named("GLL", eta=0.6),
    "GLLI changed": named("GLLI", mu=0.7, lambda_=2.0),
    "GLLI rate changed": named("GLLI", mu=0.7, lambda_=2.0, reading="rate"),
    "GVG changed": named("GVG", gamma=1e-3, lambda_=0.4),
    "GVG ridge": named("GVG", gamma=0.01, ridge=0.3),
    "GVnG changed": named("GVnG", gamma=1e-3, lambda_=0.4),
    "GVnG ridge": named("GVnG", gamma=0.01, ridge=0.3),
    "GEE changed": named("GEE", lambda_=1.3),
    "GEEA changed": named("GEEA", alpha0=2.5, beta0=0.3),
    "GTT changed": named("GTT", tau_U=0.5, tau_V=2.0),
    "GTT mean": named("GTT", mu_U=0.7, tau_U=0.5, mu_V=-1.0, tau_V=2.0, moves=False),
    "GTTN changed": named("GTTN", tau_mu=0.6, a=2.5, b=0.8),
    "GTTN mean": named("GTTN", mu_mu=0.4, a=1.5, moves=False),
    "GL21 changed": named("GL21", lambda_=0.9),
    "GEG changed": named("GEG", lambda_=0.9),
    "PGG changed": named("PGG", a=0.6, b=2.0),
    "PGGG changed": named("PGGG", a=2.0, a_prime=1.5, b_prime=0.4),
    **{f"{name}, biases": biased(named(name)) for name in ("GGG", "GGGW", "GLLI", "GVG", "GEE")},
    "GGGA, biases changed": biased(named("GGGA"), 2.0, 0.3, 2.5, 0.7),
    "exponential ARD, Laplace": custom(
        Exponential(ARD(2, 3)),
        Laplace(0.8),
        lambda K: joint.Plain(joint.own_ard(joint.exponential(None), 2, 3), joint.laplace(0.8)),
    ),
    "one ARD, two families": custom(
        Exponential(ARD(2, 0.5)),
        Normal(ARD(2, 0.5), "entries"),
        lambda K: joint.Plain(joint.exponential(None), joint.normal(None), (2, 0.5)),
    ),
    "two ARDs": custom(
        Normal(ARD(1, 2, shared=False)),
        Normal(ARD(1, 2, shared=False)),
        lambda K: joint.Plain(*2 * [joint.own_ard(joint.normal(None), 1, 2)]),
    ),
    "eta, truncation": custom(
        Laplace(InverseGaussian(2.0, 3.0, "rate")),
        TruncatedNormal(0.0, TruncatedNormalHyper(0.0, 0.3, 1.7, 0.6)),
        lambda K: joint.Plain(joint.laplace_inverse_gaussian(2.0, 3.0, "rate"), WIDE),
    ),
    "Wishart, L21": custom(
        MultivariateNormal(NormalInverseWishart(beta=0.3, scale=2.0)),
        L21(0.4),
        lambda K: joint.Plain(joint.normal_wishart(K, 0.0, 0.3, None, 2.0), joint.l21(0.4)),
    ),
    "volume columns": custom(
        Normal(0.3),
        Volume(gamma=0.05),
        lambda K: joint.Plain(joint.normal(0.3), joint.volume(0.05)),
    ),
    "volume, exponential": custom(
        Volume(gamma=0.02, signs="nonnegative"),
        Exponential(0.4),
        lambda K: joint.Plain(joint.volume(0.02, 0.0, True), joint.exponential(0.4)),
    ),
    "volume, eta": custom(
        Volume(gamma=0.02),
        Laplace(InverseGaussian(2.0, 3.0)),
        lambda K: joint.Plain(
            joint.volume(0.02), joint.laplace_inverse_gaussian(2.0, 3.0, "scale")
        ),
    ),
    "L21, volume": custom(
        L21(0.4),
        Volume(gamma=0.02),
        lambda K: joint.Plain(joint.l21(0.4), joint.volume(0.02)),
        moves=False,
    ),
    "counts": custom_counts(
        Exponential(0.5),
        Gamma(2.0, GammaRate(1.5, 0.4)),
        joint.Plain(joint.exponential(0.5), joint.gamma_hyper(2.0, 1.5, 0.4)),
    ),
    "counts, one ARD": custom_counts(
        Gamma(0.7, ARD(1, 2)),
        Exponential(ARD(1, 2)),
        joint.Plain(joint.gamma(0.7, None), joint.exponential(None), (1, 2)),
    ),
}
# The determinant of one side and an inverse square of the other meet in one power of the scale.
VOLUME_AND = {
    "volume, Wishart": custom(
        Volume(gamma=0.02),
        MultivariateNormal(),
        lambda K: joint.Plain(joint.volume(0.02), joint.normal_wishart(K)),
    ),
    "volume, eta rate": custom(
        Volume(gamma=0.02),
        Laplace(InverseGaussian(2.0, 3.0, "rate")),
        lambda K: joint.Plain(joint.volume(0.02), joint.laplace_inverse_gaussian(2.0, 3.0, "rate")),
    ),
    "truncation, volume": custom(
        TruncatedNormal(0.0, TruncatedNormalHyper(0.0, 0.3, 1.7, 0.6)),
        Volume(gamma=0.02),
        lambda K: joint.Plain(WIDE, joint.volume(0.02)),
    ),
}
