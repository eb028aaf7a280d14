"""Models and data on which every conditional is checked, each with its plain densities."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple
from unittest import mock

import numpy as np
from scipy.sparse import csr_array

from bayesmf import preset
from bayesmf.data import groups
from bayesmf.data.bounds import Bounds
from bayesmf.data.features import Features
from bayesmf.data.observed import ObservedMatrix
from bayesmf.likelihoods import (
    BernoulliPoisson,
    Censored,
    Gaussian,
    NegativeBinomial,
    Ordinal,
    Poisson,
    StudentT,
)
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


def as_it_is(X: ObservedMatrix) -> ObservedMatrix:
    return X


def exact(X: ObservedMatrix) -> tuple[None, None]:
    return None, None


class Case(NamedTuple):
    """A model, its plain densities (by rank and resolved model), and whether its scale moves.

    ``prepare`` turns counts into data that the likelihood takes; ``bounds`` are the intervals that
    entries of these stand for.
    """

    model: Model
    plain: Callable[[int, Model], joint.Plain]
    moves: bool = True
    prepare: Callable[[ObservedMatrix], ObservedMatrix] = as_it_is
    bounds: Callable[[ObservedMatrix], tuple] = exact


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
        own = resolved.biases
        numbers = own.mean, own.precision, own.alpha, own.beta
        found = case.plain(K, resolved)._replace(biases=numbers)
        return found._replace(effects=tuple(joint.groups_of(known) for known in own.features))

    return case._replace(model=model, plain=plain)


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
    "Laplace, normal": custom(
        Laplace(0.8), Normal(0.3), lambda K: joint.Plain(joint.laplace(0.8), joint.normal(0.3))
    ),
    "eta, Laplace": custom(
        Laplace(InverseGaussian(2.0, 3.0)),
        Laplace(0.8),
        lambda K: joint.Plain(
            joint.laplace_inverse_gaussian(2.0, 3.0, "scale"), joint.laplace(0.8)
        ),
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


# --- Other likelihoods


def replaced(X: ObservedMatrix, change: Callable) -> ObservedMatrix:
    """The same cells with other values."""
    i, j, values = X.triples()
    return ObservedMatrix.from_triples(i, j, change(values), X.shape)


def with_errors(X: ObservedMatrix) -> ObservedMatrix:
    i, j, _ = X.triples()
    return replace(X, errors=0.5 + (3 * i + 5 * j) % 7 / 4)


LOWER, UPPER = 2.0, 6.0


def limits(X: ObservedMatrix) -> tuple[np.ndarray, np.ndarray]:
    """What values at or beyond the two limits stand for."""
    values = X.rows.values
    low = np.where(values >= UPPER, UPPER, np.where(values <= LOWER, -np.inf, values))
    return low, np.where(values <= LOWER, LOWER, np.where(values >= UPPER, np.inf, values))


def thirds(X: ObservedMatrix) -> tuple[np.ndarray, np.ndarray]:
    """Of three values one is exact, one lies in an interval, one above or below its number."""
    values = X.rows.values
    low, high = values.copy(), values.copy()
    low[1::3], high[1::3] = low[1::3] - 0.5, high[1::3] + 1.0
    low[2::6], high[2::6] = low[2::6] + 0.25, np.inf
    low[5::6], high[5::6] = -np.inf, high[5::6] - 0.25
    return low, high


def with_intervals(X: ObservedMatrix) -> ObservedMatrix:
    return replace(X, bounds=Bounds(*thirds(X)))


def varied(base: str, likelihood, data: joint.DataDensity, **more) -> Case:
    """A preset with another likelihood."""
    case = named(base)
    model = replace(case.model, likelihood=likelihood, name=base)

    def plain(K: int, resolved: Model) -> joint.Plain:
        return case.plain(K, resolved)._replace(data=data)

    return Case(model, plain, case.moves, **more)


NOISE = {"alpha": 2.0, "beta": 0.5, "shape_alpha": 3.0, "shape_beta": 0.4, "shape_least": 1.5}
DOF = {"dof_alpha": 3.0, "dof_beta": 0.3, "dof_least": 2.1}
UNEQUAL = joint.gaussian(2.0, 0.5, (3.0, 0.4, 1.5), (3.0, 0.3, 2.1))
KNOWN = {"prepare": with_errors}
LIMITED = {"bounds": limits}
BOTH = {"rows": True, "cols": True}


def unequal(base: str, kind: type[Gaussian] = Gaussian, *, more=None, **sides) -> Case:
    own = DOF if kind is StudentT else {}
    return varied(base, kind(**NOISE, **own, **sides), UNEQUAL, **(more or {}))


def censored(base: str, kind: type[Gaussian] = Gaussian, **sides) -> Case:
    own = DOF if kind is StudentT else {}
    noise = kind(**NOISE, **own, **sides)
    return varied(base, Censored(LOWER, UPPER, noise), UNEQUAL, **LIMITED)


def categories(base: str, number: int) -> Case:
    def few(X: ObservedMatrix) -> ObservedMatrix:
        return replaced(X, lambda values: np.minimum(values // 2, number - 1))

    return varied(base, Ordinal(number, spread=1.5), joint.ordinal(1.5), prepare=few)


def present(X: ObservedMatrix) -> ObservedMatrix:
    return replaced(X, lambda values: (values > 2).astype(float))


LIKELIHOODS = {
    "GGG-rows": unequal("GGG", rows=True),
    "GLL-cols": unequal("GLL", cols=True),
    "GGGW-both": unequal("GGGW", **BOTH),
    "GEE-both": unequal("GEE", **BOTH),
    "GL21-rows": unequal("GL21", rows=True),
    "GVG-both": unequal("GVG", **BOTH),
    "GVnG-both": unequal("GVnG", **BOTH),
    "GGG-both-biases": biased(unequal("GGG", **BOTH)),
    "GGG-errors": unequal("GGG", more=KNOWN),
    "GEE-errors": unequal("GEE", more=KNOWN),
    "GVG-errors": unequal("GVG", more=KNOWN),
    "GGGW-errors-both": unequal("GGGW", more=KNOWN, **BOTH),
    "GGG-errors-biases": biased(unequal("GGG", more=KNOWN)),
    "GGG-student": unequal("GGG", StudentT),
    "GEE-student": unequal("GEE", StudentT),
    "GVG-student": unequal("GVG", StudentT),
    "GVnG-student-rows": unequal("GVnG", StudentT, rows=True),
    "GGGW-student-both": unequal("GGGW", StudentT, **BOTH),
    "GGG-student-errors": unequal("GGG", StudentT, more=KNOWN),
    "GGG-student-biases": biased(unequal("GGG", StudentT, cols=True)),
    "GGG-censored": censored("GGG"),
    "GEE-censored-both": censored("GEE", **BOTH),
    "GVG-censored": censored("GVG"),
    "GGGW-censored-student": censored("GGGW", StudentT, rows=True),
    "GGG-censored-biases": biased(censored("GGG")),
    "GGG-censored-intervals": varied(
        "GGG", Gaussian(**NOISE), UNEQUAL, prepare=with_intervals, bounds=thirds
    ),
    "GEE-censored-intervals-student": varied(
        "GEE", StudentT(**NOISE, **DOF), UNEQUAL, prepare=with_intervals, bounds=thirds
    ),
    "GGG-ordinal": categories("GGG", 4),
    "GGGW-ordinal": categories("GGGW", 2),
    "GEE-ordinal": categories("GEE", 2),
    "GVG-ordinal": categories("GVG", 4),
    "GGG-ordinal-biases": biased(categories("GGG", 4)),
    "PGG-negbin": varied("PGG", NegativeBinomial(3.0, 0.2), joint.negative_binomial(3.0, 0.2)),
    "PGGG-negbin": varied("PGGG", NegativeBinomial(), joint.negative_binomial(2.0, 0.1)),
    "PGG-presence": varied("PGG", BernoulliPoisson(), joint.presence, prepare=present),
    "PGGG-presence": varied("PGGG", BernoulliPoisson(), joint.presence, prepare=present),
}


# --- Features


def informed(X: ObservedMatrix) -> ObservedMatrix:
    """Two groups of the rows, of which one has more features than rows, and one of the columns."""
    rng = np.random.default_rng(X.shape)
    n, m = X.shape
    columns = Features.of(rng.normal(size=(m, 4)), alpha=3.0, beta=0.7)
    rows = {"few": rng.normal(size=(n, 2)), "many": rng.normal(size=(n, 2 * n)) + 0.3}
    return X.with_features(rows, columns)


def patterned(X: ObservedMatrix) -> ObservedMatrix:
    return X.with_features(pattern="both")


def undecomposed(X: ObservedMatrix) -> ObservedMatrix:
    """Sparse features that are taken as they are, and dense ones in their directions beside."""
    rng, (n, m) = np.random.default_rng(X.shape), X.shape
    sparse, dense = (csr_array(rng.poisson(0.7, (n, p)) + np.eye(n, p)) for p in (n + 3, 2))
    with mock.patch.object(groups, "LARGEST", 2):
        rows = {"as they are": sparse, "directions": dense.toarray()}
        return X.with_features(rows, Features.of(rng.normal(size=(m, 4)), alpha=3.0, beta=0.7))


def with_features(case: Case, prepare=informed, then=as_it_is) -> Case:
    """The same with features of both sides, whose weights have the precision of the rows."""

    def plain(K: int, resolved: Model) -> joint.Plain:
        found = case.plain(K, resolved)
        rows, cols = (
            joint.regressed(density, joint.groups_of(prior.features), precision_of(prior))
            for density, prior in ((found.rows, resolved.rows), (found.cols, resolved.cols))
        )
        return found._replace(rows=rows, cols=cols)

    return case._replace(plain=plain, prepare=lambda X: prepare(then(X)))


def precision_of(prior) -> float | None:
    """A given precision of all entries, or None where it is a variable."""
    return prior.precision if isinstance(getattr(prior, "precision", None), float) else None


FEATURES = {
    "GGGW features": with_features(named("GGGW")),
    "GGGW features changed": with_features(named("GGGW", beta0=0.4, nu0=5.5, W0=3.0)),
    "GGGW features mean": with_features(
        named("GGGW", mu0=0.8, beta0=2.4, nu0=4.5, moves=False)),
    "GGGW pattern": with_features(named("GGGW"), patterned),
    "GGGW sparse features": with_features(named("GGGW"), undecomposed),
    "GGGA sparse features, biases": biased(with_features(named("GGGA"), undecomposed)),
    "GGG features": with_features(named("GGG", lambda_=0.7)),
    "GGGU features": with_features(named("GGGU", lambda_=0.7)),
    "GGGA features": with_features(named("GGGA")),
    "GGGW features, biases": biased(with_features(named("GGGW"))),
    "GGGA features, biases changed": biased(with_features(named("GGGA")), 2.0, 0.3, 2.5, 0.7),
    "two ARDs, features": with_features(CASES["two ARDs"]),
}  # fmt: skip
FEATURES_AND = {
    "GGGW-both-features": with_features(unequal("GGGW", **BOTH)),
    "GGGW-student-features": with_features(unequal("GGGW", StudentT)),
    "GGGW-censored-features": with_features(censored("GGGW", rows=True)),
    "GGG-ordinal-features-biases": biased(
        with_features(categories("GGG", 4), then=categories("GGG", 4).prepare)),
}  # fmt: skip
