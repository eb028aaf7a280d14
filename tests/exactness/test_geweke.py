"""Joint-distribution tests: sweeps of an exact sampler leave the joint law of all variables alone.

All limits follow from `FAMILY_ERROR`, the chance that any comparison of an exact library fails: it
is shared out evenly over the cases and, within a case, over its comparisons.
"""

from dataclasses import replace

import numpy as np
import pytest

from bayesmf import ObservedMatrix, Problem
from bayesmf.kernels import counts, entries, nonnegative, rotation, rows, walls
from bayesmf.likelihoods import Censored, Gaussian, Ordinal, base, student
from bayesmf.likelihoods import counts as count_likelihoods
from bayesmf.model import biases
from bayesmf.model.biases import Biases
from bayesmf.priors import L21, Exponential, Laplace, TruncatedNormal
from bayesmf.priors import distributions as dist
from bayesmf.priors.hyperpriors import (
    ARD,
    GammaRate,
    InverseGaussian,
    NormalInverseWishart,
    TruncatedNormalHyper,
)
from bayesmf.sampler import sweep
from bayesmf.streams import Stream
from bayesmf.updates import counts as updates
from bayesmf.updates import normal
from bayesmf.updates.blocks import Relaxation
from bayesmf.updates.terms import NonnegativeTerms
from tests.exactness.simulation import (
    MASKS,
    PROPER,
    geweke,
    geweke_move,
    judge,
    patched,
    rebuilt,
    with_values,
)
from tests.exactness.variations import VARIATIONS

FAMILY_ERROR = 1e-4
QUICK = {"chains": 100, "length": 25}
LONGER = {"chains": 200, "length": 45}  # for a mutation with a small effect
LONGEST = {"chains": 1600, "length": 45}
LONG = {"chains": 200, "length": 50}
DRAWS = 1500

# Name, mask, whether the scale move is on. Hyperpriors with a mean of their own have no such move.
CASES = [(name, "dense", "-mean" not in name) for name in PROPER]
CASES += [(name, "sparse", False) for name in PROPER if "-mean" not in name]
CASES += [(name, "complete", True) for name in ("GGG", "GEE", "GGG-rows", "GEE-both")]
# Of the longer ones with features one is quick enough; all are among the long cases.
INFORMED = [name for name, own in VARIATIONS.items() if own.informed]
CASES += [(name, "dense", True) for name in VARIATIONS if name not in INFORMED[1:]]
CASES += [(name, "sparse", False) for name in VARIATIONS if name not in INFORMED]
MOVES = [name for name in PROPER if "-mean" not in name]
ROTATED = ("GLL", "GLLI")
ROTATION = {"move": sweep.rotate_factors, "left": ("variance", "eta")}
CROWDED = [(name, mask) for name in ("GEE", "GTT", "GL21", "GEG") for mask in ("dense", "sparse")]
QUICK_ERROR = FAMILY_ERROR / (len(CASES) + len(CROWDED) + len(MOVES) + len(ROTATED))
LONG_CASES = [(name, mask, move) for name in PROPER for mask in MASKS for move in (True, False)]
LONG_CASES += [(name, mask, mask == "dense") for name in VARIATIONS for mask in MASKS]


TEST, MOVE_TEST = "joint distribution", "joint distribution of scale moves"
ROTATION_TEST = "joint distribution of rotations"


@pytest.mark.seeds
@pytest.mark.parametrize(("name", "mask", "move"), CASES)
def test_sweeps_keep_the_joint_distribution(name, mask, move, verdict):
    result = geweke(name, mask, move, **QUICK, family_error=QUICK_ERROR)
    judge(verdict, TEST, name, result)


def crowded(monkeypatch):
    """All nonnegative rows are drawn as crowded ones are, as few as their factors may be."""
    monkeypatch.setattr(normal, "MANY", 1)
    monkeypatch.setattr(normal, "WIDE", -1.0)


@pytest.mark.seeds
@pytest.mark.parametrize(("name", "mask"), CROWDED)
def test_crowded_rows_keep_the_joint_distribution(name, mask, monkeypatch, verdict):
    crowded(monkeypatch)
    result = geweke(name, mask, True, **QUICK, family_error=QUICK_ERROR)
    judge(verdict, TEST, f"{name}, crowded", result)


@pytest.mark.seeds
@pytest.mark.parametrize("name", MOVES)
def test_the_scale_move_keeps_the_joint_distribution(name, verdict):
    result = geweke_move(name, "complete", DRAWS, QUICK_ERROR)
    assert np.ptp(result.scores) > 0, "nothing has moved"
    judge(verdict, MOVE_TEST, name, result)


@pytest.mark.seeds
@pytest.mark.parametrize("name", ROTATED)
def test_rotations_keep_the_joint_distribution(name, verdict):
    result = geweke_move(name, "complete", DRAWS, QUICK_ERROR, **ROTATION)
    assert np.ptp(result.scores) > 0, "nothing has moved"
    judge(verdict, ROTATION_TEST, name, result)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mask", "move"), LONG_CASES)
def test_sweeps_keep_the_joint_distribution_in_long_runs(name, mask, move, verdict):
    result = geweke(name, mask, move, **LONG, family_error=FAMILY_ERROR / len(LONG_CASES), seed=1)
    judge(verdict, TEST, name, result)


@pytest.mark.parametrize("mask", MASKS)
def test_new_values_make_the_same_matrix_as_a_new_one(mask):
    values = np.random.default_rng(0).normal(size=MASKS[mask].shape)
    fresh = ObservedMatrix.of(values, MASKS[mask])
    changed = with_values(
        ObservedMatrix.of(np.ones(values.shape), MASKS[mask]), values[MASKS[mask]]
    )
    assert fresh.is_dense == (mask != "sparse")
    for one, other in ((fresh.rows, changed.rows), (fresh.cols, changed.cols)):
        for field in ("indptr", "indices", "values", "filled", "mask"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


# --- Power: the same test, with the same limits, rejects samplers that are wrong ------------------


def uncentred(right, self, U, values):
    steps = right(self, U, values)
    name, wishart = next(steps)
    centre = U.mean(axis=0)
    yield name, replace(wishart, scale=wishart.scale + len(U) * np.outer(centre, centre))
    yield from steps


def square_for_inverse_square(right, self, U, values):
    yield "variance", dist.GIG(p=0.5, a=self.scale, b=U**2)


def reciprocal(right, self, U, values):
    gig = right(self, U, values)
    return dist.GIG(p=-gig.p, a=gig.b, b=gig.a)


def extra_power(right, left, other):
    terms, *carry = right(left, other)
    return terms._replace(exponent=terms.exponent + 1), *carry


def crowded_and(line, wrong):
    """All nonnegative rows are crowded, and their kernel has one line changed."""

    def apply(monkeypatch):
        crowded(monkeypatch)
        rebuilt(entries, line, wrong)(monkeypatch)

    return apply


def stays(right, *args):
    return {}


def same_site(right, self):
    self._site = 0
    return right(self)


def same_sweep(right, self):
    key = right(self)
    key[3] = 0
    return key


def ignores_mask(right, view, V, threads, weights):
    return np.broadcast_to(V.sum(axis=0), (view.n, V.shape[1]))


def first_entries(right, problem, state, fit, stream):
    """Squared errors of the first two entries of every column alone."""
    view, errors = fit.X.cols, np.empty(fit.X.shape[1])
    for j in range(view.n):
        part = slice(view.indptr[j], min(view.indptr[j] + 2, view.indptr[j + 1]))
        errors[j] = np.sum((view.values[part] - state.U[view.indices[part]] @ state.V[j]) ** 2)
    return right(problem, state, replace(fit, errors=errors), stream)


def stale_columns(monkeypatch):
    """The columns go on seeing the values of the first data."""
    first = {}
    right = Problem.side

    def side(problem, state, axis, *data):
        found = right(problem, state, axis, *data)
        return found._replace(view=first.setdefault("cols", found.view)) if axis else found

    monkeypatch.setattr(Problem, "side", side)


def shape_after_levels(right, self, side, working, errors, own, stream, shared=True):
    """The shape is drawn with the levels integrated out, but after them."""
    first = right(self, side, working, errors, own, stream, False)
    kept = {name: own[name] for name in ("noise_rows", "noise_cols") if name in own}
    right(self, side, working, errors, own, stream)
    own.update(kept)
    return first


def stale_latents(monkeypatch):
    """The rows see the latent values of the sweep before."""
    last, right = {}, Problem.side

    def side(problem, state, axis, *data):
        found = right(problem, state, axis, *data)
        if axis or not data:
            return found
        now = replace(found.view, stored=found.view.values.copy())
        view, last[state.chain] = last.get(state.chain, now), now
        return found._replace(view=view)

    monkeypatch.setattr(Problem, "side", side)


def latents_before_cuts(monkeypatch):
    """The cuts are drawn with the latent values integrated out, which are kept from before."""
    refresh, working = Ordinal.refresh, Ordinal.working

    def late(self, fit, own, stream):
        data = working(self, fit, own, stream)
        refresh(self, fit, own, stream, 1)
        return data

    monkeypatch.setattr(Ordinal, "refresh", lambda *_: None)
    monkeypatch.setattr(Ordinal, "working", late)


def other_side(right, self, X):
    found = right(self, X)
    open_ended = np.isinf(found.low) | np.isinf(found.high)
    return replace(
        found,
        low=np.where(open_ended, -found.high, found.low),
        high=np.where(open_ended, -found.low, found.high),
    )


def of_weights(**change):
    """The Wishart step with another share of the features' weights."""

    def wrong(right, self, U, values, beside=None):
        steps = right(self, U, values, beside)
        name, wishart = next(steps)
        new = {
            field: function(getattr(wishart, field), beside) for field, function in change.items()
        }
        yield name, replace(wishart, **new) if beside is not None else wishart
        yield from steps

    return wrong


def positive_counts_alone(right, view, s, h, d, stream):
    return np.where(h > 0, right(view, s, h, d, stream), 1.0)


# fmt: off
MUTATIONS = {
    "GTTN shape plus 1/2": ("GTTN", "dense", False, patched(
        TruncatedNormalHyper, "of_precisions",
        lambda right, self, U, values: right(replace(self, shape=self.shape + 0.5), U, values))),
    "GTTN means stay behind": ("GTTN", "dense", False, patched(
        TruncatedNormal, "afterwards", lambda right, self, U, values: iter(()))),
    "uncentred scatter": ("GGGW", "dense", False, patched(
        NormalInverseWishart, "updates", uncentred)),
    "eta for 1 / eta, scale": ("GLLI", "dense", False, patched(
        InverseGaussian, "conditional", reciprocal)),
    "eta for 1 / eta, rate": ("GLLI-rate", "dense", False, patched(
        InverseGaussian, "conditional", reciprocal)),
    "Laplace scale for its inverse square": ("GLL", "dense", False, patched(
        Laplace, "updates", square_for_inverse_square)),
    "one observation too many": ("GGGU", "dense", False, patched(
        Gaussian, "conditional", lambda right, self, n, error: right(self, n + 1, error))),
    "observations not halved": ("GGG", "dense", False, patched(
        Gaussian, "conditional", lambda right, self, n, error: right(self, 2 * n, error))),
    "squared error not halved": ("GEG", "sparse", False, patched(
        Gaussian, "conditional", lambda right, self, n, error: right(self, n, 2 * error))),
    "squares not halved in the relevance": ("GGGA", "dense", True, patched(
        ARD, "conditional", lambda right, self, s: right(self, [(n, 2 * r) for n, r in s]))),
    "one row too few in the rate": ("GEEA", "sparse", False, patched(
        ARD, "conditional", lambda right, self, s: right(self, [*s, (-1.0, 0 * s[0][1])]))),
    "exponential rate doubled": ("GEE", "dense", False, patched(
        Exponential, "terms", lambda right, self, v, K: right(self, {"rate": 2 * v["rate"]}, K))),
    "exponential rate left out": ("GEG", "complete", False, patched(
        Exponential, "terms", lambda right, self, values, K: right(self, {"rate": 0.0}, K))),
    "rest of the row ignored": ("GL21", "dense", False, patched(
        L21, "terms", lambda right, self, v, K: right(self, v, K)._replace(coupling=0.0))),
    "rate counts half the factors": ("PGGG", "dense", False, patched(
        GammaRate, "conditional", lambda right, self, U, shape: right(self, U, shape / 2))),
    "missing counts taken for zeros": ("PGG", "sparse", False, patched(
        updates, "factor_sums", ignores_mask)),
    "one stream for all sites": ("GGG", "dense", False, patched(Stream, "key", same_site)),
    "one stream for all sweeps": ("GGG", "dense", False, patched(Stream, "key", same_sweep)),
    "stale data": ("GGG", "dense", False, stale_columns),
    "effects: one entry too few": ("GGG-biases", "dense", False, patched(
        biases, "effects", lambda right, total, *rest: replace(
            right(total, *rest), precision=rest[2] + rest[3] * np.maximum(total - 1, 0)))),
    "shift: sign": ("GEE-biases", "sparse", False, patched(
        Biases, "shift", lambda right, self, values, side: replace(
            right(self, values, side), linear=-right(self, values, side).linear))),
    "effects: the factors are not taken off": ("GGG-biases", "sparse", False, patched(
        biases, "residual_sums", lambda right, view, U, *rest: right(view, 0 * U, *rest))),
    "row effects stay in the factors' data": ("GGGW-biases", "dense", True, patched(
        sweep, "without", lambda right, X, v: right(X, v | {"rows": 0 * v["rows"]}))),
    # Likelihoods
    "unequal noise: shape drawn after the levels": ("GGG-rows", "dense", False, patched(
        Gaussian, "update_side", shape_after_levels)),
    "unequal noise: n / 2 forgotten": ("GGG-rows", "dense", False, patched(
        Gaussian, "level_terms", lambda right, *args: (0 * right(*args)[0], right(*args)[1]))),
    "unequal noise: rates without tau": ("GGG-rows", "dense", False, patched(
        Gaussian, "level_terms", lambda right, self, view, tau, e: right(self, view, 1.0, e))),
    "Student: nu / 2 for (nu + 1) / 2": ("GGG-student", "dense", False, (
        lambda monkeypatch: monkeypatch.setattr(student, "_HALF", np.array([0.0])))),
    "Student: weights left out of the factors": ("GGG-student", "dense", False, patched(
        base.Weights, "of", lambda right, self, axis: right(self._replace(entries=None), axis))),
    "censored: the wrong side of a limit": ("GGG-censored", "dense", False, patched(
        Censored, "_bounds", other_side)),
    "censored: latent values of the sweep before": ("GGG-censored", "dense", False, stale_latents),
    "ordinal: latent values of the sweep before": ("GGG-ordinal", "dense", False, stale_latents),
    "ordinal: latent values from before the cuts": (
        "GGG-ordinal", "complete", False, latents_before_cuts),
    "negative binomial: theta left out of the rates": ("PGG-negbin", "dense", False, patched(
        updates, "factor_sums", lambda right, view, V, threads, weights: right(
            view, V, threads, None))),
    "negative binomial: theta of positive counts alone": ("PGG-negbin", "dense", False, patched(
        count_likelihoods, "draw_of_entries", positive_counts_alone)),
    # Features
    "features: weights left out of the degrees of freedom": ("GGGW-features", "dense", False,
        patched(NormalInverseWishart, "updates", of_weights(
            dof=lambda dof, beside: dof - len(beside)))),
    "features: weights left out of the scatter": ("GGGW-features", "dense", False, patched(
        NormalInverseWishart, "updates", of_weights(
            scale=lambda scale, beside: scale - beside.T @ beside))),
    # Rows that are drawn on the other side of their mean
    "relaxed rows: all of the noise": ("GGG", "dense", False, patched(
        normal, "relaxation", lambda right, *how: right(*how)._replace(spread=1.0))),
    "relaxed rows: all of the mean": ("GGGW", "dense", False, rebuilt(
        rows, "new = 1.0 - stay if", "new = 1.0 if")),
    "relaxed entries: their own place left out": ("GGGU", "sparse", False, rebuilt(
        entries, "stay * x[k] + (1.0 - stay) * b / p", "(1.0 - stay) * b / p")),
    "relaxed effects: all of their means": ("GGG-biases", "dense", False, patched(
        Relaxation, "of", lambda right, self, fresh, mean, old: (
            right(self, fresh, mean, old) + self.stay * mean))),
    # Lines of the compiled kernels
    "rows: a stream for every two rows": ("GGG", "dense", False, rebuilt(
        rows, "seed_stream(key, row, s)", "seed_stream(key, row // 2, s)")),
    "rows, sparse: a stream for every two rows": ("GLL", "sparse", False, rebuilt(
        rows, "seed_stream(key, row, s)", "seed_stream(key, row // 2, s)")),
    "entries: a stream for every two rows": ("GGGU", "dense", False, rebuilt(
        entries, "seed_stream(key, i, s)", "seed_stream(key, i // 2, s)")),
    "entries, sparse: a stream for every two rows": ("GGGU", "sparse", False, rebuilt(
        entries, "seed_stream(key, i, s)", "seed_stream(key, i // 2, s)")),
    "rows: sign of the data": ("GGG", "dense", False, rebuilt(
        rows, "linear[p, k] + noise * g[lane, k]", "linear[p, k] - noise * g[lane, k]")),
    "rows: gaps added, not subtracted": ("GGG", "dense", False, rebuilt(
        rows, "(-noise, noise) if flipped", "(noise, noise) if flipped")),
    "rows: prior's linear term left out": ("GGGW", "dense", False, rebuilt(
        rows, "(linear[p, k] + noise * g[lane, k])", "(noise * g[lane, k])")),
    "entries: residual corrected the wrong way": ("GGGU", "dense", False, rebuilt(
        entries, "change, last = new - x[k], k", "change, last = x[k] - new, k")),
    "entries: half of the squared error": ("GGGU", "sparse", False, rebuilt(
        entries, "return squared_error(change", "return 0.5 * squared_error(change")),
    "entries: own share left out of the residual": ("GGGU", "sparse", False, rebuilt(
        entries, "tau * (g + x[k] * d)", "tau * g")),
    "nonnegative rows: sign of the coupling": ("GL21", "dense", False, patched(
        NonnegativeTerms, "rows", lambda right, self: right(
            self._replace(coupling=-self.coupling)))),
    "nonnegative rows: precision of the prior left out": ("GTT", "sparse", False, rebuilt(
        rows, "A[k, k, lane] += diagonal[p, k]", "A[k, k, lane] += 0.0 * diagonal[p, k]")),
    "walls: only the entry that meets one is reflected": ("GEE", "dense", False, rebuilt(
        walls, "v[k, lane] -= push * S[wall, k, lane]", "v[k, lane] -= 0.0 * S[wall, k, lane]")),
    "walls: reflected by too little": ("GTT", "dense", False, rebuilt(
        walls, "push = 2.0 * speed", "push = 1.0 * speed")),
    "walls: a mean too near to zero": ("GTT", "sparse", False, rebuilt(
        walls, "load(h, c * LANES)", "product(splat(0.9), load(h, c * LANES))")),
    "walls: velocities too small": ("GTT", "dense", False, rebuilt(
        walls, "store(v, a * LANES, s)", "store(v, a * LANES, product(splat(0.8), s))")),
    "walls: fit where the first entry is small": ("GTT", "dense", False, rebuilt(
        walls, "fit[lane] = regular and", "fit[lane] = regular and x[0, lane] < 0.7 and")),
    "unfit rows: other entries as they were before": ("GEE", "sparse", False, rebuilt(
        nonnegative, "subtract_row(new - x[k],", "subtract_row(0.0 * x[k],")),
    "unfit rows: sign of the linear term lost": ("GEE", "sparse", False, rebuilt(
        nonnegative, "truncated_excess(s, -b", "truncated_excess(s, abs(b)")),
    "crowded rows: residual corrected the wrong way": ("GTT", "dense", False, crowded_and(
        "change, last = new - x[k], k", "change, last = x[k] - new, k")),
    "crowded rows: prior's linear term left out": ("GEE", "sparse", False, crowded_and(
        "b = linear[k] + tau", "b = 0.3 * linear[k] + tau")),
    "crowded rows: an entry coupled with itself": ("GL21", "dense", False, crowded_and(
        "others -= x[k]", "others -= 0.0 * x[k]")),
    "crowded rows: others as they were before": ("GL21", "sparse", False, crowded_and(
        "others += new", "others += x[k]")),
    "counts: the last factor gets nothing": ("PGGG", "dense", False, rebuilt(
        counts, "for k in range(K - 1):", "for k in range(K - 2):")),
    "noise: sum over K entries of a row": ("GGG", "dense", False, patched(
        sweep, "finish", first_entries)),
    "noise: data counted once in the squared error": ("GGG", "dense", False, rebuilt(
        rows, "square - 2.0 * _dot(", "square - _dot(")),
    "noise, sparse: fit counted twice in the squared error": ("GGG", "sparse", False, rebuilt(
        rows, "+ fitted / noise", "+ 2.0 * fitted / noise")),
}
WRONG_MOVES = {
    "a wrong power": ("GEE", patched(sweep, "joint_scale_terms", extra_power)),
    "GTTN hyper-variables stay": ("GTTN", patched(TruncatedNormalHyper, "rescale", stays)),
    "GGGW hyper-variables stay": ("GGGW", patched(NormalInverseWishart, "rescale", stays)),
    "GLLI hyper-variables stay": ("GLLI", patched(InverseGaussian, "rescale", stays)),
    "GLLI-rate hyper-variables stay": ("GLLI-rate", patched(InverseGaussian, "rescale", stays)),
}
WRONG_ROTATIONS = {
    "the rows' density left out": ("GLL", rebuilt(
        rotation, "_log_density(rows[0], rows[1], rows[2], x, y, c, d)",
        "_log_density(rows[0], rows[1], rows[2], x, y, 1.0, 0.0)")),
    "a slice that is too deep": ("GLL", rebuilt(
        rotation, "level = -exponential(s)", "level = -6.0 * exponential(s)")),
    "columns rotated the other way": ("GLL", rebuilt(
        rotation, "_rotate(V, k, m, v, w, math.cos(angle), math.sin(angle))",
        "_rotate(V, k, m, v, w, math.cos(angle), -math.sin(angle))")),
    "half of the rate": ("GLL", patched(
        Laplace, "rotation_terms", lambda right, self: right(self)._replace(a=0.3 / self.scale))),
}
# fmt: on
SMALL_EFFECTS = {
    "one row too few in the rate",
    "one observation too many",
    "unequal noise: rates without tau",
    "unequal noise: shape drawn after the levels",
    "Student: nu / 2 for (nu + 1) / 2",
    "Student: weights left out of the factors",
    "crowded rows: others as they were before",
}
TINY_EFFECTS = {
    "ordinal: latent values from before the cuts",
    "walls: fit where the first entry is small",
    "unfit rows: other entries as they were before",
}


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(m, marks=pytest.mark.slow if m in TINY_EFFECTS or "features" in m else ())
        for m in MUTATIONS
    ],
)
def test_a_wrong_sampler_is_rejected(mutation, monkeypatch, verdict):
    name, mask, move, apply = MUTATIONS[mutation]
    apply(monkeypatch)
    size = LONGER if mutation in SMALL_EFFECTS else LONGEST if mutation in TINY_EFFECTS else QUICK
    result = geweke(name, mask, move, **size, family_error=QUICK_ERROR)
    verdict.rejects(TEST, mutation, result.rejected, str(result))


@pytest.mark.parametrize("mutation", WRONG_MOVES)
def test_a_wrong_scale_move_is_rejected(mutation, monkeypatch, verdict):
    name, apply = WRONG_MOVES[mutation]
    apply(monkeypatch)
    result = geweke_move(name, "complete", DRAWS, QUICK_ERROR)
    verdict.rejects(MOVE_TEST, mutation, result.rejected, str(result))


@pytest.mark.parametrize("mutation", WRONG_ROTATIONS)
def test_a_wrong_rotation_is_rejected(mutation, monkeypatch, verdict):
    name, apply = WRONG_ROTATIONS[mutation]
    apply(monkeypatch)
    move = {**ROTATION, "move": sweep.rotate_factors}
    result = geweke_move(name, "complete", DRAWS, QUICK_ERROR, **move)
    verdict.rejects(ROTATION_TEST, mutation, result.rejected, str(result))
