"""Checks of what likelihoods draw beside the factors: own variables, and latent ones.

A recorder stands in for the last step of each draw: it keeps what the step is given, and returns a
value of its own.
"""

from __future__ import annotations

from unittest import mock

import numpy as np
from scipy import optimize, stats

from bayesmf.kernels.mixing import shape_log_density
from bayesmf.likelihoods import (
    BernoulliPoisson,
    Censored,
    Gaussian,
    NegativeBinomial,
    Ordinal,
    StudentT,
    censored,
    counts,
    mixing,
    ordinal,
    student,
)
from bayesmf.priors import distributions as dist
from bayesmf.sampler.sweep import sweep
from bayesmf.streams import Stream, seed_words
from bayesmf.updates.normal import row_errors
from tests.exactness.factors import split, split_weights
from tests.exactness.hypers import check_noise
from tests.exactness.ratios import GROUPS, Setup, altered

SLOPE = 1e-5  # step of numerical derivatives


def stream() -> Stream:
    return Stream(seed_words(0))


class Recorder:
    """Keeps its arguments; returns an answer, or what a function makes of them."""

    def __init__(self, answer) -> None:
        self.answer, self.calls = answer, []

    def __call__(self, *arguments):
        self.calls.append(arguments)
        return self.answer(*arguments) if callable(self.answer) else self.answer

    @property
    def only(self) -> tuple:
        """Arguments of the one call that there was."""
        (arguments,) = self.calls
        return arguments


def collapsed(arguments: tuple, s: float) -> float:
    """Log density of a shape, as the kernel that is given these arguments draws it."""
    _, _, least, alpha, beta, values, times, h, d = arguments
    assert s > least
    return shape_log_density(s, alpha, beta, values, times, h, d)


# --- Normal noise: precisions of rows and columns, and the moves between them


def check_levels(s: Setup, index: int) -> None:
    """Shape and levels are drawn as a block: the shape first, with the levels integrated out."""
    name, state = f"noise_{GROUPS[index]}", s.state.copy()
    side = s.problem.side(state, index)
    errors = s.work.draw(side, stream())
    found = row_errors(side.view, side.U, side.V, 1, s.work.weights.of(index))
    np.testing.assert_allclose(errors, found, rtol=1e-9, atol=1e-12)
    old, new = state.noise[name], state.noise[name] * np.exp(s.rng.normal(size=side.view.n))
    shape = Recorder(2.5 + s.rng.gamma(2.0))
    levels = Recorder(new)
    with (
        mock.patch.object(mixing, "draw_shape_kernel", shape),
        mock.patch.object(dist.Gamma, "draw", lambda *arguments: levels(*arguments)),
    ):
        before = altered(state, "noise", {})
        working = s.model.likelihood.update_side(side, s.work, errors, state.noise, stream())
    np.testing.assert_array_equal(working.weights.of(index).own, new)
    now, h, d = shape.only[1], shape.only[-2], shape.only[-1]
    assert now == before.noise[f"{name}_shape"]
    change = collapsed(shape.only, shape.answer) - collapsed(shape.only, now)
    change += float(levels.only[0].log_density(new).sum())
    change -= float(dist.Gamma(shape=now + h, rate=now + d).log_density(old).sum())
    s.compare(before, altered(before, "noise", state.noise), change)


def check_moves(s: Setup, noise: Gaussian) -> None:
    """The density of a factor c along its orbit has the measure dc / c and a Jacobian."""
    own = s.state.noise
    for side in noise.sides:
        name, move = f"noise_{side}", noise.level_move(own, side)
        for c in (0.6, 1.7):
            values = {"noise_precision": c * own["noise_precision"], name: own[name] / c}
            change = float(move.log_density(c) - move.log_density(1.0))
            change += own[name].size * np.log(c)
            s.compare(s.state, altered(s.state, "noise", values), change)
    if len(noise.sides) < 2:
        return
    move, (a, b) = noise.trade_move(own), (own["noise_rows"], own["noise_cols"])
    for c in (0.6, 1.7):
        change = float(move.log_density(c) - move.log_density(1.0))
        change -= (a.size - b.size - 1) * np.log(c)
        new = altered(s.state, "noise", {"noise_rows": c * a, "noise_cols": b / c})
        s.compare(s.state, new, change)


# --- Student's t


def check_dof(s: Setup, noise: StudentT) -> None:
    shape, own = Recorder(1.4 + s.rng.gamma(2.0)), dict(s.state.noise)
    with mock.patch.object(mixing, "draw_shape_kernel", shape):
        noise.refresh(s.fit(s.working.X), own, stream(), 1)
    assert own["dof"] == 2 * shape.answer
    assert shape.only[1] == s.state.noise["dof"] / 2
    change = collapsed(shape.only, shape.answer) - collapsed(shape.only, shape.only[1])
    s.compare(s.state, altered(s.state, "noise", own), change, latent=s.but("w"))


def check_mixing(s: Setup, module, name: str, working, known=1.0) -> None:
    """Weights or exposures of the entries, given the shape that governs them."""
    new = s.latent[name] * np.exp(s.rng.normal(size=s.X.n_observed))
    drawn = Recorder(new)
    with mock.patch.object(module, "draw_of_entries", drawn):
        data = working()
    found = data.weights.entries if name == "w" else data.exposures
    order = np.argsort(s.X.rows.indices, kind="stable")
    np.testing.assert_allclose(found[0], new * known, rtol=1e-14)
    np.testing.assert_allclose(found[1], (new * known)[order], rtol=1e-14)
    _, shape, h, d, _ = drawn.only
    law = dist.Gamma(shape=shape + h, rate=shape + d)
    change = float((law.log_density(new) - law.log_density(s.latent[name])).sum())
    before = s.joints(s.state)
    s.equal(before, s.joints(s.state, latent={**s.latent, name: new}), change)


# --- Latent values


def inside(low: np.ndarray, high: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Some number of each interval."""
    excess = rng.exponential(size=low.size)
    above, below = np.where(np.isinf(low), 0.0, low), np.where(np.isinf(high), 0.0, high)
    share = above + rng.random(low.size) * (below - above)
    free = np.where(np.isinf(low), np.where(np.isinf(high), excess - 1, below - excess), share)
    return np.where(np.isinf(high) & ~np.isinf(low), above + excess, free)


def check_values(s: Setup) -> None:
    """Values behind limits, any weights integrated out."""
    wide = s.cells.low < s.cells.high
    new = s.latent["y"].copy()
    new[wide] = inside(s.cells.low[wide], s.cells.high[wide], s.rng)
    drawn = Recorder(lambda *arguments: arguments[-1].__setitem__(slice(None), new[wide]))
    with mock.patch.object(censored, "draw_between", drawn):
        fit = s.model.likelihood.completed(s.fit(), s.state.noise, stream())
    _, _, _, indptr, means, precision, nu, low, high, _ = drawn.only
    np.testing.assert_array_equal(low, s.cells.low[wide])
    np.testing.assert_array_equal(high, s.cells.high[wide])
    assert indptr[-1] == wide.sum()
    np.testing.assert_array_equal(fit.X.rows.values, new)
    order = np.argsort(s.X.rows.indices, kind="stable")
    np.testing.assert_array_equal(fit.X.cols.values, new[order])
    law = stats.norm() if np.isinf(nu) else stats.t(nu)
    ends = [law.logpdf((y[wide] - means) * precision**0.5).sum() for y in (s.latent["y"], new)]
    kept = s.but("w")
    before, after = (s.joints(s.state, latent={**kept, "y": y}) for y in (s.latent["y"], new))
    s.equal(before, after, ends[1] - ends[0])


def check_categories(s: Setup) -> None:
    """Latent values between the cuts."""
    ends = np.concatenate([[-np.inf], s.state.noise["cuts"], [np.inf]])
    codes = s.cells.values.astype(int)
    new = inside(ends[codes], ends[codes + 1], s.rng)
    drawn = Recorder(lambda *arguments: arguments[-1].__setitem__(slice(None), new))
    with mock.patch.object(ordinal, "draw_latent", drawn):
        data = s.model.likelihood.working(s.fit(), s.state.noise, stream())
    *_, known, means, edges, _ = drawn.only
    np.testing.assert_array_equal(known, codes)
    np.testing.assert_array_equal(edges, ends)
    assert data.precision == 1.0
    np.testing.assert_array_equal(data.X.rows.values, new)
    change = stats.norm.logpdf(new - means).sum() - stats.norm.logpdf(s.latent["y"] - means).sum()
    s.equal(s.joints(s.state), s.joints(s.state, latent={"y": new}), change)


# --- Cuts


def check_cuts(s: Setup) -> None:
    """Log density, gradient and Hessian of the cuts, latent values integrated out."""
    likelihood, fit, cuts = s.model.likelihood, s.fit(), s.state.noise["cuts"]

    def terms(x):
        return likelihood.cut_terms(fit, x)

    new = np.sort(cuts + 0.3 * s.rng.normal(size=cuts.size))
    change = terms(new)[0] - terms(cuts)[0]
    s.compare(s.state, altered(s.state, "noise", {"cuts": new}), change, latent={})
    steps = SLOPE * np.eye(cuts.size)
    slopes = [(terms(cuts + e)[0] - terms(cuts - e)[0]) / (2 * SLOPE) for e in steps]
    curves = [(terms(cuts + e)[1] - terms(cuts - e)[1]) / (2 * SLOPE) for e in steps]
    size = s.X.n_observed
    np.testing.assert_allclose(terms(cuts)[1], slopes, rtol=1e-6, atol=1e-6 * size)
    np.testing.assert_allclose(terms(cuts)[2], -np.array(curves), rtol=1e-6, atol=1e-6 * size)
    check_proposal(s, fit)


def check_proposal(s: Setup, fit) -> None:
    """The step's acceptance is by the ratio of densities and of both ways to propose.

    With a uniform number just below or above that ratio, the step moves or stays.
    """
    likelihood, cuts = s.model.likelihood, likely_cuts(s.model.likelihood, fit)
    for number in range(30):
        z = (0.02 + 0.04 * number) * s.rng.choice([-1.0, 1.0], cuts.size)

        def stepped(u, z=z):
            rng = mock.Mock(normal=lambda size: z, gamma=lambda shape: shape, random=lambda: u)
            own = {"cuts": cuts.copy()}
            with mock.patch.object(np.random, "default_rng", return_value=rng):
                likelihood.refresh(fit, own, stream(), 1)
            return own["cuts"]

        new = stepped(1e-300)
        if (new == cuts).all():
            continue  # out of order, or all but impossible
        forth, back = proposal(likelihood, fit, cuts), proposal(likelihood, fit, new)
        change = np.diff([s.joints(altered(s.state, "noise", {"cuts": x}), latent={})[1]
                          for x in (cuts, new)])[0]  # fmt: skip
        ratio = np.exp(change + back.logpdf(cuts) - forth.logpdf(new))
        assert (stepped(min(ratio * (1 - 1e-7), 1 - 1e-16)) == new).all()
        if ratio < 1:
            assert (stepped(ratio * (1 + 1e-7)) == cuts).all()


def likely_cuts(likelihood, fit) -> np.ndarray:
    """Cuts near their mode, where proposals are not always improvements."""

    def ordered(x):
        return x[0] + np.append(0.0, np.cumsum(np.exp(x[1:])))

    start = likelihood.start(fit.X)["cuts"]
    start = np.append(start[0], np.log(np.diff(start)))
    found = optimize.minimize(
        lambda x: -likelihood.cut_terms(fit, ordered(x))[0], start, method="Nelder-Mead"
    )
    return ordered(found.x)


def proposal(likelihood, fit, cuts):
    """The law from which a step proposes: Student's t about the end of Newton's step.

    The step is halved as long as it leads out of order.
    """
    _, gradient, precision = likelihood.cut_terms(fit, cuts)
    shape = np.linalg.inv(precision)
    step = shape @ gradient
    while (np.diff(cuts + step) <= 0).any():
        step = step / 2
    return stats.multivariate_t(cuts + step, 0.5 * (shape + shape.T), df=8)


# --- Counts


def check_size(s: Setup) -> None:
    shape, own = Recorder(s.rng.gamma(4.0)), dict(s.state.noise)
    with mock.patch.object(mixing, "draw_shape_kernel", shape):
        s.model.likelihood.refresh(s.fit(), own, stream(), 1)
    assert own["size"] == shape.answer
    change = collapsed(shape.only, shape.answer) - collapsed(shape.only, shape.only[1])
    s.compare(s.state, altered(s.state, "noise", own), change, latent=s.but("theta"))


def check_positive(s: Setup) -> None:
    """Counts where there are any: positive Poisson, split by the factors' products."""
    drawn = Recorder(lambda *arguments: arguments[-1].__setitem__(slice(None), s.cells.values))
    with mock.patch.object(counts, "draw_positive_counts", drawn):
        s.model.likelihood.working(s.fit(), s.state.noise, stream())
    *_, values, means, _ = drawn.only
    np.testing.assert_array_equal(values, s.cells.values)
    old, new, w = split(s), split(s), split_weights(s)
    log_p = []
    for Z in (old, new):
        total = Z.sum(axis=1)
        log_p.append(stats.poisson.logpmf(total, means)[values > 0].sum())
        log_p[-1] += stats.multinomial.logpmf(Z, total, w).sum()
    before, after = (s.joints(s.state, latent={"Z": Z}) for Z in (old, new))
    s.equal(before, after, log_p[1] - log_p[0])


# --- The order of a sweep


def check_order(s: Setup) -> None:
    """Latent variables are drawn given the very values that the sweep ends with.

    What governs them is drawn with them integrated out, and so must come before them.
    """
    likelihood = s.model.likelihood
    places = {
        Ordinal: (ordinal, "draw_latent", "cuts", lambda a: a[-2][1:-1]),
        StudentT: (student, "draw_of_entries", "dof", lambda a: 2 * a[1]),
        NegativeBinomial: (counts, "draw_of_entries", "size", lambda a: a[1]),
    }
    noise = getattr(likelihood, "noise", likelihood)
    if type(noise) not in places:
        return
    module, name, variable, used = places[type(noise)]
    drawn = Recorder(getattr(module, name))
    problem, state = s.problem, s.state
    problem = type(problem)(s.X, problem.model, problem.n_components)
    with mock.patch.object(module, name, drawn):
        for _ in range(40):  # a proposal may be refused
            state = sweep(problem, state)
            np.testing.assert_allclose(used(drawn.calls[-1]), state.noise[variable], rtol=1e-15)
            if (state.noise[variable] != s.state.noise[variable]).any():
                break


def check_own(s: Setup) -> None:
    """All of it, as far as the likelihood has it."""
    likelihood = s.model.likelihood
    noise = getattr(likelihood, "noise", likelihood)
    check_noise(s)
    if isinstance(noise, Gaussian):
        for index, side in enumerate(GROUPS):
            if side in noise.sides:
                check_levels(s, index)
        check_moves(s, noise)
    if isinstance(noise, StudentT):
        fit = s.fit(s.working.X)
        check_dof(s, noise)
        known = np.asarray(s.cells.errors) ** -2.0
        own = s.state.noise
        check_mixing(s, student, "w", lambda: noise.working(fit, own, stream()), known)
    if isinstance(likelihood, Censored):
        check_values(s)
    if isinstance(likelihood, Ordinal):
        check_cuts(s)
        check_categories(s)
    if isinstance(likelihood, NegativeBinomial):
        check_size(s)
        own = s.state.noise
        check_mixing(s, counts, "theta", lambda: likelihood.working(s.fit(), own, stream()))
    if isinstance(likelihood, BernoulliPoisson):
        check_positive(s)
    check_order(s)
