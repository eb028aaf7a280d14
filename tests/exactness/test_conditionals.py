"""Every draw of a sweep is from the conditional of the joint density, to 1e-9.

The second part breaks one formula at a time, and the same checks must notice.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest

from bayesmf.kernels import counts, entries, nonnegative, rotation, rows, volume
from bayesmf.likelihoods import (
    BernoulliPoisson,
    Censored,
    Gaussian,
    NegativeBinomial,
    Ordinal,
    Poisson,
    StudentT,
    base,
    ordinal,
    student,
)
from bayesmf.model import biases
from bayesmf.model.biases import Biases
from bayesmf.model.model import Model
from bayesmf.priors import (
    L21,
    Exponential,
    Gamma,
    Laplace,
    MultivariateNormal,
    Normal,
    TruncatedNormal,
    Volume,
    regression,
)
from bayesmf.priors import distributions as dist
from bayesmf.priors.hyperpriors import (
    ARD,
    GammaRate,
    InverseGaussian,
    NormalInverseWishart,
    TruncatedNormalHyper,
)
from bayesmf.sampler import sweep
from bayesmf.sampler.run import chain
from bayesmf.sampler.state import Problem
from bayesmf.updates import blocks, moments, normal
from bayesmf.updates import counts as count_updates
from bayesmf.updates import volume as volume_updates
from bayesmf.updates.terms import NonnegativeTerms, RotationTerms
from tests.exactness.added import ADDED
from tests.exactness.cases import (
    CASES,
    DATA,
    FEATURES,
    FEATURES_AND,
    FEW_ROWS,
    LIKELIHOODS,
    VOLUME_AND,
    Case,
    Data,
    named,
    slanted,
)
from tests.exactness.factors import check_factors, check_kernels, check_relaxed, check_split
from tests.exactness.hypers import (
    check_biases,
    check_hyper,
    check_noise,
    check_rotation,
    check_scale,
    check_shared,
)
from tests.exactness.owns import check_own
from tests.exactness.ratios import TOLERANCE, Setup
from tests.exactness.simulation import rebuilt

CHECKS = {
    "factors": check_factors,
    "kernels": check_kernels,
    "relaxed": check_relaxed,
    "hyper": check_hyper,
    "shared": check_shared,
    "noise": check_noise,
    "scale": check_scale,
    "rotation": check_rotation,
    "biases": check_biases,
    "split": check_split,
    "own": check_own,
}


TEST = "conditional ratios"


def run(check: str, case: Case, data: Data) -> list[float]:
    """Gaps of all comparisons of one check; fails at the first that is too large."""
    setup = Setup(case, data, sum(map(ord, check + case.model.name)))
    CHECKS[check](setup)
    return setup.gaps


def judge(verdict, name: str, runs: list[tuple[str, Case, Data]]) -> None:
    gaps = [gap for arguments in runs for gap in run(*arguments)]
    verdict(TEST, name, max(gaps), TOLERANCE, comparisons=len(gaps))


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
@pytest.mark.parametrize("name", CASES)
def test_conditionals(name, data, verdict):
    case = CASES[name]
    last = ("split",) if isinstance(case.model.likelihood, Poisson) else ("kernels", "relaxed")
    checks = ("factors", "hyper", "shared", "noise", "scale", "rotation", "biases", *last)
    judge(verdict, name, [(check, case, data) for check in checks])


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_conditionals_under_other_likelihoods(name, data, verdict):
    case = LIKELIHOODS[name]
    checks = ["kernels", "own", "biases"]
    if isinstance(case.model.likelihood, BernoulliPoisson):
        checks = ["factors", "own"]
    elif isinstance(case.model.likelihood, Poisson):
        checks = ["factors", "own", "split"]
    elif isinstance(case.model.likelihood, Ordinal):
        checks.append("factors")
    judge(verdict, name, [(check, case, data) for check in checks])


@pytest.mark.parametrize("data", ["complete, K = 3", "sparse, K = 1"])
@pytest.mark.parametrize("name", FEATURES)
def test_conditionals_with_features(name, data, verdict):
    checks = ("factors", "kernels", "hyper", "shared", "noise", "scale", "biases")
    judge(verdict, name, [(check, FEATURES[name], DATA[data]) for check in checks])


@pytest.mark.parametrize("data", ["sparse, K = 3"])
@pytest.mark.parametrize("name", FEATURES_AND)
def test_conditionals_with_features_under_other_likelihoods(name, data, verdict):
    checks = ("kernels", "own", "hyper", "biases")
    judge(verdict, name, [(check, FEATURES_AND[name], DATA[data]) for check in checks])


@pytest.mark.parametrize("name", VOLUME_AND)
def test_volume_beside_inverse_squares(name, verdict):
    case, checks = VOLUME_AND[name], ("factors", "kernels", "hyper", "noise", "scale")
    runs = [(check, case, DATA["sparse, K = 3"]) for check in checks]
    judge(verdict, name, [*runs, ("scale", case, DATA["dense, K = 1"])])


@pytest.mark.parametrize("name", ["GVG", "GVG changed", "GVG ridge", "GVnG", "GVnG ridge"])
def test_rows_that_do_not_span_the_factors(name, verdict):
    judge(verdict, name, [(check, CASES[name], FEW_ROWS) for check in ("factors", "kernels")])


def test_slanted_wishart(verdict):
    case, data = named("GGGW", W0=slanted(3), moves=False), DATA["dense, K = 3"]
    judge(verdict, "GGGW slanted", [(check, case, data) for check in ("factors", "hyper", "scale")])


def test_cuts_move_beside_a_category_that_does_not_occur():
    X = np.random.default_rng(0).integers(0, 3, (8, 6))
    X[X == 1] = 3
    problem = Problem.of(X.astype(float), Model(Ordinal(4), Normal(1.0), Normal(1.0)), 1)
    states = list(islice(chain(problem, random_state=0), 200))
    cuts = np.array([state.noise["cuts"] for state in states])
    assert (np.diff(cuts, axis=0) != 0).any(axis=1).mean() > 0.02


# --- Power: what must not pass


def determinant_per_factor(joint, *_):
    """The determinant as a weight of each factor's own, which the others' scales do not touch."""
    terms, up, _ = joint
    weights = terms.log_weights.copy()
    weights[-1] = np.logaddexp(weights[-1], up)
    return terms._replace(log_weights=weights), -np.inf, -np.inf


class Mutation(NamedTuple):
    """A formula of the library whose result is changed: change(result, *arguments)."""

    check: str
    case: str
    owner: object
    name: str
    change: Callable


def changed(mutation: Mutation) -> Callable:
    original = getattr(mutation.owner, mutation.name)
    return lambda *arguments, **more: mutation.change(original(*arguments, **more), *arguments)


def step(name: str, change: Callable) -> Callable:
    """Change the distribution of one step of a prior's updates."""

    def steps(original, *arguments):
        for key, distribution in original:
            yield key, change(distribution, *arguments) if key == name else distribution

    return steps


def fields(**new: Callable) -> Callable:
    """Change fields of a distribution or of terms: each function takes it and the arguments."""

    def change(result, *arguments):
        values = {name: function(result, *arguments) for name, function in new.items()}
        return (
            result._replace(**values) if hasattr(result, "_replace") else replace(result, **values)
        )

    return change


def uncentred(d, prior, U, values):
    return d.scale + len(U) * np.outer(U.mean(axis=0), U.mean(axis=0))


def reciprocal(d, *_):
    return dist.GIG(p=-d.p, a=d.b, b=d.a)


def of_roots(_, u, v, K, w):
    w[:] = np.sqrt(w)


FACTOR_SUMS = count_updates.factor_sums
STEPS = regression.steps
LOG2 = np.log(2.0)
HALF_GAMMA = fields(log_gamma=lambda t, *_: t.log_gamma - LOG2)
HALF_DETERMINANT = fields(determinant=lambda t, *_: t.determinant - LOG2)
HALF_WEIGHTS = fields(log_weights=lambda t, *_: t.log_weights - LOG2)
MORE_SHAPE = fields(shape=lambda d, *_: d.shape + 0.5)
MUTATIONS = {
    # Factors
    "volume without the 2": Mutation(
        "factors", "GVG changed", Volume, "terms", HALF_GAMMA
    ),
    "volume without the 2, nonnegative": Mutation(
        "factors", "GVnG changed", Volume, "terms", HALF_GAMMA
    ),
    "volume without its ridge": Mutation(
        "factors", "GVG ridge", Volume, "terms", fields(ridge=lambda *_: 0.0)
    ),
    "volume of any sign": Mutation(
        "factors", "GVnG changed", Volume, "terms", fields(nonnegative=lambda *_: False)
    ),
    "sign of the exponential": Mutation(
        "factors", "GEE", Exponential, "terms", fields(linear=lambda t, *_: -t.linear)
    ),
    "L21 without coupling": Mutation(
        "factors", "GL21", L21, "terms", fields(coupling=lambda *_: 0.0)
    ),
    "L21 without precision": Mutation(
        "factors", "GL21", L21, "terms", fields(precision=lambda t, *_: 0 * t.precision)
    ),
    "truncated normal without mean": Mutation(
        "factors", "GTT mean", TruncatedNormal, "terms", fields(linear=lambda t, *_: 0 * t.linear)
    ),
    "Wishart: mean for precision times mean": Mutation(
        "factors", "GGGW", MultivariateNormal, "terms",
        fields(linear=lambda t, prior, values, K: values["mean"][None]),
    ),
    "Laplace: variance for precision": Mutation(
        "factors", "GLL", Laplace, "terms", fields(diagonal=lambda t, *_: 1 / t.diagonal)
    ),
    "ARD: variance for precision": Mutation(
        "factors", "GGGA", Normal, "terms", fields(diagonal=lambda t, *_: 1 / t.diagonal)
    ),
    "normal entries: standard deviation for variance": Mutation(
        "factors", "GGGU", Normal, "terms", fields(precision=lambda t, *_: t.precision**0.5)
    ),
    "counts: prior's shape too large": Mutation(
        "factors", "PGG", Gamma, "gamma_terms", fields(shape=lambda t, *_: t.shape + 1)
    ),
    "counts: rate over all cells": Mutation(
        "factors", "PGG", count_updates, "factor_sums",
        lambda out, view, V, *_: np.broadcast_to(V.sum(axis=0), out.shape),
    ),
    "counts: one rate for all rows": Mutation(
        "factors", "PGGG", Gamma, "gamma_terms", fields(rate=lambda t, *_: t.rate[:1])
    ),
    "relaxed rows with all of their noise": Mutation(
        "relaxed", "GGG", blocks, "relaxation", lambda how, *_: how._replace(spread=1.0)
    ),
    "split by square roots": Mutation("split", "PGG", counts, "_weights", of_roots),
    # The kernels
    "kernel of L21 without coupling": Mutation(
        "kernels", "GL21", L21, "terms", fields(coupling=lambda *_: 0.0)
    ),
    "entries: residual not corrected": Mutation(
        "factors", "GGGU", entries, "step", lambda d_g, *_: (d_g[0], 0.99 * d_g[1])
    ),
    "kernel of nonnegative rows: other entries counted less": Mutation(
        "kernels", "GEE", nonnegative, "subtract_row",
        lambda _, x, A, k, linear: linear.__iadd__(0.01 * x * A[k]),
    ),
    "kernel of crowded rows: residual not corrected": Mutation(
        "kernels", "GTT mean", entries, "step", lambda d_g, *_: (d_g[0], 0.99 * d_g[1])
    ),
    "kernel of crowded rows: without coupling": Mutation(
        "kernels", "GL21", normal, "_stated", lambda stated, *_: (*stated[:2], 0.0)
    ),
    "kernel of nonnegative rows: precision of the prior left out": Mutation(
        "kernels", "GTT mean", NonnegativeTerms, "rows",
        fields(diagonal=lambda t, *_: 0 * t.diagonal),
    ),
    "kernel of nonnegative rows: coupling with itself": Mutation(
        "kernels", "GL21", NonnegativeTerms, "rows",
        fields(precision=lambda t, *_: t.precision + np.eye(len(t.precision))),
    ),
    "kernel of rows without the Laplace variances": Mutation(
        "kernels", "GLL", Laplace, "terms", fields(diagonal=lambda t, *_: 0 * t.diagonal + 0.1)
    ),
    "kernel of volume: determinant not downdated": Mutation(
        "kernels", "GVG changed", volume, "rank_one", lambda ratio, *_: 1.0
    ),
    "nearly singular volume: determinant of other units": Mutation(
        "kernels", "GVG changed", moments, "whitened",
        lambda white, *_: (*white[:3], white[3] + 0.1),
    ),
    "nearly singular volume: data in the old coordinates": Mutation(
        "kernels", "GVG changed", volume_updates.VolumeRows, "_in_coordinates",
        lambda _, rows, T, packed, rhs: (rows.tau * packed, rows.tau * rhs),
    ),
    "nearly singular volume: ridge in the old coordinates": Mutation(
        "kernels", "GVG ridge", volume_updates.VolumeRows, "_in_coordinates",
        lambda found, rows, T, *_: (
            found[0] + rows.terms.ridge * (np.eye(len(T)) - T.T @ T)[np.tril_indices(len(T))],
            found[1],
        ),
    ),
    "nearly singular volume, nonnegative: prior in the new coordinates": Mutation(
        "kernels", "GVnG changed", volume, "congruent",
        lambda _, W, B, C, *rest: C.__setitem__(slice(None), B),
    ),
    "nearly singular volume, nonnegative: rows in coordinates of their own": Mutation(
        "kernels", "GVnG changed", moments, "whitened",
        lambda white, *_: (white[0] @ np.diag(np.arange(1.0, len(white[1]) + 1)), *white[1:]),
    ),
    "kernel of volume, nonnegative: precision without the 2": Mutation(
        "kernels", "GVnG changed", Volume, "terms", HALF_GAMMA
    ),
    # Hyper-variables
    "GTTN: shape a + 1/2": Mutation(
        "hyper", "GTTN", TruncatedNormal, "updates", step("precision", MORE_SHAPE)
    ),
    "GTTN: rate without 1/2": Mutation(
        "hyper", "GTTN", TruncatedNormal, "updates",
        step("precision", fields(rate=lambda d, prior, *_: 2 * d.rate - prior.precision.rate)),
    ),
    "GTTN: mean without mu_mu": Mutation(
        "hyper", "GTTN mean", TruncatedNormal, "afterwards",
        step("mean", fields(linear=lambda d, prior, U, values: values["precision"] * U)),
    ),
    "GTTN: an entry about its own mean": Mutation(
        "factors", "GTTN", TruncatedNormalHyper, "without_mean",
        lambda _, hyper, values: values["precision"],
    ),
    "GTTN: joint without tau^-1/2": Mutation(
        "hyper", "GTTN", TruncatedNormalHyper, "log_density",
        lambda total, _, values: total + 0.5 * np.log(values["precision"]).sum(),
    ),
    "Wishart: scatter not centred": Mutation(
        "hyper", "GGGW", MultivariateNormal, "updates", step("precision", fields(scale=uncentred))
    ),
    "Wishart: degrees of freedom": Mutation(
        "hyper", "GGGW", MultivariateNormal, "updates",
        step("precision", fields(dof=lambda d, *_: d.dof + 1)),
    ),
    "Wishart: precision of the mean": Mutation(
        "hyper", "GGGW changed", MultivariateNormal, "updates",
        step("mean", fields(precision=lambda d, prior, U, values: len(U) * values["precision"])),
    ),
    "GLL: eta for eta^-2": Mutation(
        "hyper", "GLL", Laplace, "updates",
        step("variance", fields(a=lambda d, prior, *_: prior.scale)),
    ),
    "GLL: eta for eta^-2, joint too": Mutation(
        "hyper", "GLL", Laplace, "_inverse_square_scale", lambda _, prior, values: prior.scale
    ),
    "GLLI: 1 / eta for eta": Mutation("hyper", "GLLI", InverseGaussian, "conditional", reciprocal),
    "GLLI rate: 1 / eta for eta": Mutation(
        "hyper", "GLLI rate", InverseGaussian, "conditional", reciprocal
    ),
    "GLLI: variance before eta": Mutation(
        "hyper", "GLLI", Laplace, "updates", lambda steps, *_: reversed(list(steps))
    ),
    "GLLI: |u| for 2 |u|": Mutation(
        "hyper", "GLLI", InverseGaussian, "conditional",
        fields(b=lambda d, hyper, U, values: d.b - np.abs(U)),
    ),
    "GLLI rate: 2 s for s": Mutation(
        "hyper", "GLLI rate", InverseGaussian, "conditional",
        fields(a=lambda d, hyper, U, values: d.a + values["variance"]),
    ),
    "PGGG: one factor counted": Mutation(
        "hyper", "PGGG changed", GammaRate, "conditional",
        fields(shape=lambda d, hyper, U, shape: hyper.shape + shape),
    ),
    "PGGG: mean for rate": Mutation(
        "hyper", "PGGG changed", GammaRate, "prior", fields(rate=lambda d, hyper: hyper.mean)
    ),
    "own ARD: count": Mutation("hyper", "two ARDs", ARD, "conditional", MORE_SHAPE),
    # What both sides share, and the noise
    "ARD: count": Mutation("shared", "GGGA", ARD, "conditional", MORE_SHAPE),
    "ARD: squares without 1/2": Mutation(
        "shared", "GGGA", Normal, "relevance_terms", lambda t, *_: (t[0], 2 * t[1])
    ),
    "ARD: exponentials counted as normals": Mutation(
        "shared", "GEEA", Exponential, "relevance_terms", lambda t, *_: (0.5 * t[0], t[1])
    ),
    "noise: sum without 1/2": Mutation(
        "noise", "GGG", Gaussian, "conditional",
        fields(rate=lambda d, likelihood, n, error: d.rate + 0.5 * error),
    ),
    "noise: count": Mutation("noise", "GGG", Gaussian, "conditional", MORE_SHAPE),
    # Biases
    "effects: mean counted once": Mutation(
        "biases", "GGG, biases", biases, "effects",
        fields(linear=lambda d, total, left, mean, precision, tau: tau * (left - mean)),
    ),
    "effects: the other side ignored": Mutation(
        "biases", "GEE, biases", biases, "residual_sums",
        lambda found, view, U, V, others, *_:
            (found[0] + count_updates.factor_sums(view, others[:, None], 1)[:, 0], found[1]),
    ),
    "effects: prior precision left out": Mutation(
        "biases", "GGG, biases", biases, "effects",
        fields(precision=lambda d, total, left, mean, precision, tau:
               tau * np.maximum(total, 1)),
    ),
    "effects: precision without the 1/2": Mutation(
        "biases", "GGG, biases", Biases, "spread",
        fields(rate=lambda d, own, effects: d.rate + 0.5 * np.sum(effects**2)),
    ),
    "shift: one effect counted": Mutation(
        "biases", "GGGA, biases changed", Biases, "shift",
        fields(precision=lambda d, own, values, side: own.precision + values[f"{side}_precision"]),
    ),
    "shift: the mean's prior ignored": Mutation(
        "biases", "GGGA, biases changed", Biases, "shift",
        fields(linear=lambda d, own, v, side: v[f"{side}_precision"] * v[side].sum()),
    ),
    # Features
    "features: weights left out of the degrees of freedom": Mutation(
        "hyper", "GGGW features", NormalInverseWishart, "updates",
        step("precision", fields(dof=lambda d, hyper, U, values, beside: d.dof - len(beside))),
    ),
    "features: weights left out of the scatter": Mutation(
        "hyper", "GGGW features", NormalInverseWishart, "updates",
        step("precision",
             fields(scale=lambda d, hyper, U, values, beside: d.scale - beside.T @ beside)),
    ),
    "features: the mean is not subtracted": Mutation(
        "hyper", "GGGW pattern", regression, "steps",
        lambda _, features, rows, values, precision:
            STEPS(features, rows + values["mean"], values, precision),
    ),
    "features: other groups are not subtracted": Mutation(
        "hyper", "GGG features", regression, "steps",
        lambda _, features, *rest: (
            step for group in features.groups
            for step in STEPS(replace(features, groups=(group,)), *rest)),
    ),
    "features: precision given weights that are drawn after it": Mutation(
        "hyper", "GGG features", regression, "steps",
        step("weights_precision_few", lambda d, *_: replace(d, sums=0 * d.sums)),
    ),
    "sparse features: precision given half of the weights": Mutation(
        "hyper", "GGGW sparse features", regression, "steps",
        step("weights_precision_as they are",
             fields(shape=lambda d, *_: 0.5 * (d.shape + 1))),
    ),
    "sparse features: weights whose precision is forgotten": Mutation(
        "hyper", "GGGW sparse features", regression, "steps",
        step("weights_as they are", fields(ridge=lambda d, *_: 0.0)),
    ),
    "features: weights left out of the relevance": Mutation(
        "shared", "GGGA features", Normal, "governed", lambda rows, prior, U, values: rows[:len(U)]
    ),
    "features: weights left out of the effects' precision": Mutation(
        "biases", "GGGW features, biases", Biases, "governed",
        lambda found, own, side, values: found[:values[side].size],
    ),
    "features: effects shift without them": Mutation(
        "biases", "GGGW features, biases", Biases, "deviations",
        lambda found, own, side, values: values[side],
    ),
    "features: weights stay in the scale move": Mutation(
        "scale", "GGGW features", regression, "rescale", lambda *_: {}
    ),
    "features: rows without them": Mutation(
        "factors", "GGGW features", regression, "fitted", lambda found, *_: 0 * found
    ),
    # Scale moves
    "exponent I + J": Mutation(
        "scale", "GGG", sweep, "joint_scale_terms",
        lambda t, left, right: (t[0]._replace(exponent=left.exponent + right.exponent), *t[1:]),
    ),
    "columns scaled like rows": Mutation(
        "scale", "GGG", sweep, "joint_scale_terms",
        lambda t, left, right: (
            t[0]._replace(log_weights=np.logaddexp(left.log_weights, right.log_weights)), *t[1:]
        ),
    ),
    "determinant not carried": Mutation(
        "scale", "GVG changed", sweep, "joint_scale_terms", determinant_per_factor
    ),
    "determinant carried the wrong way": Mutation(
        "scale", "volume columns", sweep, "joint_scale_terms", lambda t, *_: (t[0], t[2], t[1])
    ),
    "scale of volume without the 2": Mutation(
        "scale", "GVG changed", Volume, "scale_terms", HALF_DETERMINANT
    ),
    "scale of exponential without the 2": Mutation(
        "scale", "GEE", Exponential, "scale_terms", HALF_WEIGHTS
    ),
    "scale of Laplace without the 2": Mutation(
        "scale", "GLL", Laplace, "scale_terms", HALF_WEIGHTS
    ),
    "scale of L21: K times its weight": Mutation(
        "scale", "GL21", L21, "scale_terms",
        fields(log_weights=lambda t, prior, U, values: t.log_weights + np.log(U.shape[1])),
    ),
    "scale of gamma without its shape": Mutation(
        "scale", "PGG changed", Gamma, "scale_terms",
        fields(exponent=lambda t, prior, U, values: t.exponent / prior.shape),
    ),
    "scale of GTTN: a - 1/2": Mutation(
        "scale", "GTTN", TruncatedNormal, "scale_terms",
        fields(exponent=lambda t, prior, U, values: t.exponent + len(U)),
    ),
    "scale of GTTN: precisions stay": Mutation(
        "scale", "GTTN", TruncatedNormal, "rescale", lambda values, *_: {"mean": values["mean"]}
    ),
    "scale of Wishart: rows counted": Mutation(
        "scale", "GGGW", MultivariateNormal, "scale_terms",
        fields(exponent=lambda t, prior, U, values: t.exponent + len(U)),
    ),
    "scale of Wishart: mean stays": Mutation(
        "scale", "GGGW", MultivariateNormal, "rescale",
        lambda new, prior, values, c: {**new, "mean": values["mean"]},
    ),
    "rotation of Laplace by half its rate": Mutation(
        "rotation", "GLL", Laplace, "rotation_terms", fields(a=lambda t, *_: 0.5 * t.a)
    ),
    "rotation of GLLI with eta at its mean": Mutation(
        "rotation", "GLLI", InverseGaussian, "rotation_terms",
        lambda t, hyper: RotationTerms(rotation.LAPLACE, 1 / hyper.mean),
    ),
    "rotation of GLLI: shape counted twice": Mutation(
        "rotation", "GLLI changed", InverseGaussian, "rotation_terms",
        fields(b=lambda t, *_: 2 * t.b),
    ),
    "scale of GLLI rate: eta moves as c": Mutation(
        "scale", "GLLI rate", InverseGaussian, "rescale",
        lambda _, hyper, values, c: {"eta": values["eta"] * c},
    ),
    "scale of GLLI: eta stays": Mutation(
        "scale", "GLLI", InverseGaussian, "rescale", lambda *_: {}
    ),
}  # fmt: skip


LIKELIHOOD_MUTATIONS = {
    "levels: n / 2 forgotten": Mutation(
        "own", "GGG-rows", Gaussian, "level_terms", lambda terms, *_: (0 * terms[0], terms[1])
    ),
    "levels: rates without tau": Mutation(
        "own", "GGG-rows", Gaussian, "level_terms",
        lambda terms, own, view, tau, errors: (terms[0], terms[1] / tau),
    ),
    "levels: rates without the other side": Mutation(
        "own", "GGGW-both", base.Weights, "of", fields(other=lambda *_: None)
    ),
    "levels: entries' weights left out": Mutation(
        "own", "GGGW-errors-both", base.Weights, "of", fields(entries=lambda *_: None)
    ),
    "levels: drawn before their shape": Mutation(
        "own", "GGG-rows", Gaussian, "levels",
        lambda d, own, s, h, r: dist.Gamma(shape=4.0 + h, rate=4.0 + r),
    ),
    "level move: a wrong power": Mutation(
        "own", "GGG-rows", Gaussian, "level_move", fields(p=lambda d, *_: d.p + 1)
    ),
    "level move: the noise's prior ignored": Mutation(
        "own", "GLL-cols", Gaussian, "level_move", fields(a=lambda d, *_: 1e-9 * d.a)
    ),
    "trade move: a wrong power": Mutation(
        "own", "GEE-both", Gaussian, "trade_move", fields(p=lambda d, *_: -d.p)
    ),
    "shape: prior at another rate": Mutation(
        "own", "GGG-rows", Gaussian, "shape_prior", fields(rate=lambda d, *_: 2 * d.rate)
    ),
    "Student: degrees for half of them": Mutation(
        "own", "GGG-student", StudentT, "half_prior", fields(rate=lambda d, *_: d.rate / 2)
    ),
    "Student: squares not halved": Mutation(
        "own", "GGG-student", StudentT, "_squares", lambda d, *_: 2 * d
    ),
    "Student: squares without the columns": Mutation(
        "own", "GGG-student-biases", Gaussian, "weights", fields(cols=lambda *_: None)
    ),
    "known errors for their inverse squares": Mutation(
        "kernels", "GGG-errors", Gaussian, "weights",
        fields(entries=lambda w, own, X, *_: (X.errors, X.weights[1])),
    ),
    "kernel of rows: the other side's precisions left out": Mutation(
        "kernels", "GGGW-both", base.Weights, "of", fields(other=lambda *_: None)
    ),
    "kernel of entries: weights left out": Mutation(
        "kernels", "GEE-student", base.Weights, "of", fields(entries=lambda *_: None)
    ),
    "kernel of volume: precisions of the rows left out": Mutation(
        "kernels", "GVG-both", base.Weights, "of", fields(own=lambda *_: None)
    ),
    "effects: weights of the entries left out": Mutation(
        "biases", "GGG-errors-biases", base.Weights, "of", fields(entries=lambda *_: None)
    ),
    "effects: their own precisions left out": Mutation(
        "biases", "GGG-both-biases", base.Weights, "of", fields(own=lambda *_: None)
    ),
    "shift without a mean: the other side ignored": Mutation(
        "biases", "GGG-ordinal-biases", Biases, "shift",
        fields(precision=lambda d, own, v, side: v[f"{side}_precision"] * v[side].size),
    ),
    "censored: the wrong side of a limit": Mutation(
        "own", "GGG-censored", Censored, "_bounds",
        lambda bounds, *_: replace(
            bounds,
            low=np.where(bounds.low < bounds.high, -bounds.high, bounds.low),
            high=np.where(bounds.low < bounds.high, -bounds.low, bounds.high),
        ),
    ),
    "censored Student: normal values behind limits": Mutation(
        "own", "GGGW-censored-student", StudentT, "degrees", lambda *_: np.inf
    ),
    "cuts: prior's precision for its deviation": Mutation(
        "own", "GGG-ordinal", Ordinal, "cut_terms",
        lambda terms, own, fit, cuts: (terms[0] - 0.1 * float(cuts @ cuts), *terms[1:]),
    ),
    "cuts: gradient without the prior": Mutation(
        "own", "GGG-ordinal", Ordinal, "cut_terms",
        lambda terms, own, fit, cuts: (terms[0], terms[1] + cuts / own.spread**2, terms[2]),
    ),
    "cuts: proposal without its determinant": Mutation(
        "own", "GGG-ordinal", ordinal, "_proposal",
        lambda found, x, mode, factor: found - np.log(np.diag(factor)).sum(),
    ),
    "negative binomial: theta left out of the rates": Mutation(
        "factors", "PGG-negbin", count_updates, "factor_sums",
        lambda _, view, V, threads, *weights: FACTOR_SUMS(view, V, threads),
    ),
    "negative binomial: prior of the size": Mutation(
        "own", "PGG-negbin", NegativeBinomial, "prior", fields(shape=lambda d, *_: d.shape + 1)
    ),
    "Bernoulli-Poisson: one count for every one": Mutation(
        "own", "PGG-presence", base.Fit, "means", lambda means, *_: 0.5 * means
    ),
}  # fmt: skip


def broken_additions():
    for name, own in ADDED.items():
        for what, (check, method, change) in own.broken.items():
            method, _, part = method.partition(": ")
            yield (
                f"{name}: {what}",
                Mutation(check, name, own.prior, method, step(part, change) if part else change),
            )


MUTATIONS |= dict(broken_additions())


@pytest.mark.parametrize("data", ["sparse, K = 3", "dense, K = 3"])
@pytest.mark.parametrize("name", MUTATIONS)
def test_the_checks_notice(name, data, verdict):
    """The same check on the same state passes above, where nothing is broken."""
    verdict.rejects(TEST, name, notices(MUTATIONS[name], data))


def notices(mutation: Mutation, data: str) -> bool:
    case = (CASES | LIKELIHOODS | FEATURES)[mutation.case]
    with mock.patch.object(mutation.owner, mutation.name, changed(mutation)):
        try:
            run(mutation.check, case, DATA[data])
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("data", ["sparse, K = 3", "dense, K = 3"])
@pytest.mark.parametrize("name", LIKELIHOOD_MUTATIONS)
def test_the_checks_notice_under_other_likelihoods(name, data, verdict):
    verdict.rejects(TEST, name, notices(LIKELIHOOD_MUTATIONS[name], data))


WRONG_PLACES = {
    "relaxed rows: their own place left out": ("GGGW", rebuilt(
        rows, "stay * U[i + lane, k] + solution", "solution")),
    "relaxed entries: all of the mean": ("GGGU", rebuilt(
        entries, "(1.0 - stay) * b / p", "b / p")),
    "relaxed rows of volume: their own place left out": ("GVG", rebuilt(
        volume, "stay * U[i, k] + linear", "linear")),
    "relaxed rows of volume: all of the mean": ("GVG", rebuilt(
        volume, "linear[k] *= 1.0 - stay", "linear[k] *= 1.0")),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_PLACES)
def test_the_checks_notice_where_relaxed_rows_should_not_be(name, monkeypatch, verdict):
    case, apply = WRONG_PLACES[name]
    apply(monkeypatch)
    with pytest.raises(AssertionError):
        run("relaxed", CASES[case], DATA["dense, K = 3"])
    verdict.rejects(TEST, name, True)


def shape_after_levels(right, self, side, working, errors, own, stream, shared=True):
    """Levels given the shape of before, then the shape with the levels integrated out."""
    found = right(self, side, working, errors, own, stream, False)
    levels = {name: own[name] for name in ("noise_rows", "noise_cols") if name in own}
    right(self, side, working, errors, own, stream)
    own.update(levels)
    return found


def latents_before_cuts(right, self, fit, own, stream):
    """Latent values between cuts that change after them."""
    data = right(self, fit, own, stream)
    self.refresh(fit, own, stream, 1)
    return data


ORDERS = {
    "levels before their shape": ("GGG-rows", Gaussian, "update_side", shape_after_levels),
    "latent values before the cuts": ("GGG-ordinal", Ordinal, "working", latents_before_cuts),
    "Student: nu / 2 for (nu + 1) / 2": (
        "GGG-student", StudentT, "working",
        lambda right, *arguments: _with_half(0.0, right, *arguments),
    ),
}  # fmt: skip


def _with_half(value, right, *arguments):
    with mock.patch.object(student, "_HALF", np.array([value])):
        return right(*arguments)


@pytest.mark.parametrize("data", ["sparse, K = 3", "dense, K = 3"])
@pytest.mark.parametrize("name", ORDERS)
def test_the_checks_notice_a_wrong_order(name, data, verdict):
    case, owner, method, wrong = ORDERS[name]
    right = getattr(owner, method)
    with mock.patch.object(owner, method, lambda *arguments: wrong(right, *arguments)):
        try:
            run("own", LIKELIHOODS[case], DATA[data])
            noticed = False
        except (AssertionError, ValueError):
            noticed = True
    verdict.rejects(TEST, name, noticed)
