"""Every draw of a sweep is from the conditional of the joint density.

For random states, the log joint as a function of one variable and the log density that the sampler
draws it from differ by a constant. The joint comes from the library's own log densities and, apart
from them, from the plain ones in `joint`. The last part breaks one formula at a time, and the same
checks must notice.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import ThreadpoolController

import joint
from bayesmf import distributions as dist
from bayesmf import preset, sampler, updates
from bayesmf.hyperpriors import (
    ARD,
    GammaRate,
    InverseGaussian,
    NormalInverseWishart,
    TruncatedNormalHyper,
)
from bayesmf.kernels import counts, entries, fill, rows, volume
from bayesmf.likelihoods import Gaussian, Poisson
from bayesmf.model import Model
from bayesmf.observed import ObservedMatrix
from bayesmf.presets import PRESETS
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
from bayesmf.streams import Stream, seed_words
from bayesmf.terms import POWERS, EntryTerms, RowTerms

TOLERANCE = 1e-9
GROUPS = ("rows", "cols")
ASSEMBLE_SINGULAR = volume._assemble_singular
BLAS = ThreadpoolController()  # looked up once for all problems


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
    return Case(model, lambda K, _: plain(K)._replace(noise=(2.0, 0.5)), moves)


def custom_counts(rows, cols, plain: joint.Plain) -> Case:
    return Case(Model(Poisson(), rows, cols), lambda K, _: plain._replace(noise=None))


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


def matrix(data: Data, rng: np.random.Generator) -> ObservedMatrix:
    """Counts, which every likelihood accepts."""
    R = rng.poisson(
        rng.gamma(2.0, 1.0, (data.shape[0], 2)) @ rng.gamma(2.0, 1.0, (2, data.shape[1]))
    )
    R = np.where(rng.random(data.shape) < data.density, R, np.nan)
    if data.empty:
        R[1], R[:, 2] = np.nan, np.nan
    X = ObservedMatrix.of(R)
    assert X.is_dense == (data.density > 0.5)
    return X


def spd(rng: np.random.Generator, K: int) -> np.ndarray:
    A = rng.normal(size=(K, K + 2))
    return A @ A.T / K + 0.3 * np.eye(K)


@dataclass
class Setup:
    """A random state of a model on some data, and both joints."""

    case: Case
    data: Data
    seed: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([self.seed, *self.data.shape])
        X = matrix(self.data, self.rng)
        self.problem = sampler.Problem.of(X, self.case.model, self.data.rank, _blas=BLAS)
        self.model, self.X = self.problem.model, self.problem.X
        self.plain = self.case.plain(self.data.rank, self.model)
        state = sampler.initial_state(self.problem, "data", self.seed)
        noise = {name: self.rng.gamma(4.0, 0.1, ()) for name in state.noise}
        self.state = replace(state, noise=noise)
        for group, prior in zip(GROUPS, (self.model.rows, self.model.cols), strict=True):
            if isinstance(prior, MultivariateNormal):
                own = {"precision": spd(self.rng, self.data.rank)}
                self.state = altered(self.state, group, own)

    @cached_property
    def cells(self):
        return self.X.triples()

    def joints(self, state, marginal: bool = False, Z=None) -> np.ndarray:
        """Both log joints; ``marginal``: mixing variances integrated out; Z: counts, split."""

        def keep(own: dict) -> dict:
            return {k: v for k, v in own.items() if not (marginal and k == "variance")}

        values = (state.U, state.V, keep(state.rows), keep(state.cols), state.shared, state.noise)
        library = self.model.log_joint(self.X, *values)
        if Z is not None:
            i, j, R = self.cells
            products = state.U[i] * state.V[j]
            p = products / products.sum(axis=1, keepdims=True)
            library += stats.multinomial.logpmf(Z, R.astype(int), p).sum()
        return np.array([library, self.plain.log_joint(self.cells, *values, Z)])

    def compare(self, old, new, conditional: float, **options) -> None:
        """The joints' change is that of the conditional, relative to the size of the terms."""
        before, after = self.joints(old, **options), self.joints(new, **options)
        assert np.isfinite([before, after]).all()
        size = np.maximum(np.maximum(np.abs(before), np.abs(after)), max(abs(conditional), 1.0))
        assert np.all(np.abs(after - before - conditional) <= TOLERANCE * size)


def altered(state, group: str, values: dict) -> sampler.State:
    return replace(state, **{group: {**getattr(state, group), **values}})


def with_factors(state, index: int, X: np.ndarray) -> sampler.State:
    return replace(state, U=X) if index == 0 else replace(state, V=X)


def some_rows(n: int) -> list[int]:
    return sorted({0, 1, 2, n - 1})


def moved_entries(s: Setup, x: np.ndarray, nonnegative: bool) -> np.ndarray:
    if nonnegative:
        return x * np.exp(0.7 * s.rng.normal(size=np.shape(x)))
    return x + (np.abs(x) + 0.1) * s.rng.normal(size=np.shape(x))


# ---------------------------------------------------------------- factors under Gaussian noise


def gram_matrices(side) -> tuple[np.ndarray, np.ndarray]:
    """Packed Gram matrices (n, ...) and sums of r f (n, K) as the half-sweeps compute them."""
    packed = np.empty((side.view.n, side.rank * (side.rank + 1) // 2))
    rhs = np.empty(side.X.shape)
    updates.Gram(side.view, side.F).block(0, side.view.n, packed, rhs)
    return packed, rhs


def symmetric(lower: np.ndarray) -> np.ndarray:
    return np.tril(lower) + np.tril(lower, -1).T


def quadratic(x: np.ndarray, A: np.ndarray, h: np.ndarray) -> float:
    return float(h @ x - 0.5 * x @ A @ x)


def row_forms(side, terms: RowTerms, i: int, packed, g, tau):
    """Log density of row i up to a constant."""
    K = side.rank
    A = np.zeros((K, K))
    A[np.tril_indices(K)] = tau * packed
    A = symmetric(A) + terms.precision + np.diag(terms.diagonal[i % len(terms.diagonal)])
    h = terms.linear[i % len(terms.linear)] + tau * g
    yield lambda x: quadratic(x, A, h)


def volume_forms(side, terms, i: int, packed, g, tau):
    """Log density of row i up to a constant, by every way in which the kernel may compute it."""
    X, K = side.X, side.rank

    def assembled(B, c):
        A, h = np.zeros((K, K)), np.empty(K)
        scale = np.exp(volume._assemble(A, h, B, c, packed, g, tau, terms.ridge))
        return lambda x: scale * quadratic(x, symmetric(A), h)

    B, P, T, weights = np.ones((K, K)), np.empty((K, K)), np.empty((K, K)), np.empty(K)
    if K == 1:
        yield assembled(B, terms.log_gamma)
        return
    log_det = volume.inverse_moments(X, P)
    ratio = volume._rank_one(P, X[i], -1.0, B)
    if np.isfinite(log_det) and ratio >= 1e-6:
        yield assembled(B.copy(), terms.log_gamma + log_det + np.log(ratio))
    volume.directions(X, i, T, weights)
    yield assembled(B, terms.log_gamma + volume.adjugate(T, weights, B))
    if not terms.nonnegative:
        A, h = np.zeros((K, K)), np.empty(K)
        volume._assemble_singular(A, h, T, weights, packed, g, tau, terms.log_gamma, terms.ridge)
        yield lambda x: quadratic(np.linalg.solve(T, x), symmetric(A), h)


def entry_density(side, terms: EntryTerms, i: int, k: int, tau: float):
    """Precision and linear term of one entry, from the kernel's residual and moments."""
    part = slice(side.view.indptr[i], side.view.indptr[i + 1])
    Ft = np.ascontiguousarray(side.F[side.view.indices[part]].T)
    e, ones, x = side.view.values[part].copy(), np.ones(Ft.shape[1]), side.X[i]
    entries._residual(e.size, x, Ft, ones, e)
    d, g = entries._moments(e.size, Ft[k], ones, e)
    p = terms.precision[i % len(terms.precision), k] + tau * d
    b = terms.linear[i % len(terms.linear), k] + tau * (g + x[k] * d)
    b -= terms.coupling * (x.sum() - x[k])
    return lambda value: b * value - 0.5 * p * value**2


def check_entries(s: Setup, index: int, side, terms: EntryTerms, tau: float) -> None:
    for i in some_rows(side.view.n):
        k = int(s.rng.integers(side.rank))
        X = side.X.copy()
        X[i, k] = moved_entries(s, X[i, k], terms.nonnegative)
        density = entry_density(side, terms, i, k, tau)
        new = with_factors(s.state, index, X)
        s.compare(s.state, new, density(X[i, k]) - density(side.X[i, k]))


def check_rows(s: Setup, index: int, side, terms, tau: float) -> None:
    forms = row_forms if isinstance(terms, RowTerms) else volume_forms
    nonnegative = not isinstance(terms, RowTerms) and terms.nonnegative
    packed, rhs = gram_matrices(side)
    for i in some_rows(side.view.n):
        X = side.X.copy()
        X[i] = moved_entries(s, X[i], nonnegative)
        new = with_factors(s.state, index, X)
        for density in forms(side, terms, i, packed[i], rhs[i], tau):
            s.compare(s.state, new, density(X[i]) - density(side.X[i]))


def check_support(s: Setup, index: int, side, nonnegative: bool) -> None:
    """Negative factors have density zero exactly where they are never drawn."""
    X = side.X.copy()
    X[0, 0] = -0.1
    outside = np.isneginf(s.joints(with_factors(s.state, index, X)))
    assert (outside == nonnegative).all()


def check_factors(s: Setup) -> None:
    if isinstance(s.model.likelihood, Poisson):
        return check_gamma_factors(s)
    tau = float(s.state.noise["noise_precision"])
    for index in (0, 1):
        side = s.problem.side(s.state, index)
        terms = side.prior.terms(side.h, side.rank)
        check = check_entries if isinstance(terms, EntryTerms) else check_rows
        check(s, index, side, terms, tau)
        check_support(s, index, side, getattr(terms, "nonnegative", False))


# ---------------------------------------------------------- the same, out of the running kernels


class Draws:
    """Stands in for the last step of a half-sweep: checks what it is given, and moves the factors.

    The kernels run as Python, so that precisions and linear terms are those of the real draws.
    """

    def __init__(self, s: Setup, index: int) -> None:
        self.s, self.index, self.calls = s, index, 0
        self.side = s.problem.side(s.state.copy(), index)
        self.X, self.T = self.side.X, np.eye(s.data.rank)

    def move(self, part, density: Callable, nonnegative: bool) -> np.ndarray:
        """Check the density of a part of X, and return a new value for some of the parts."""
        old, new, row = self.X.copy(), self.X.copy(), np.atleast_1d(part)[0]
        if row in some_rows(len(new)):
            new[part] = moved_entries(self.s, new[part], nonnegative)
            states = (with_factors(self.s.state, self.index, X) for X in (old, new))
            self.s.compare(*states, density(new[part]) - density(old[part]))
        self.calls += 1
        return new[part]

    def assemble_singular(self, A, h, T, *rest) -> None:
        ASSEMBLE_SINGULAR(A, h, T, *rest)
        self.T = T.copy()

    def solve_and_draw(self, L, h, z, spread) -> None:
        """One row in each lane, as many as there are left; under a volume prior the first only."""
        K = self.s.data.rank
        rows = 1 if isinstance(self.side.prior, Volume) else len(self.X) - self.calls
        for lane in range(min(rows, h.shape[1])):
            factor = np.tril(L[:K, :K, lane])
            np.fill_diagonal(factor, 1 / np.diag(factor))
            A, b, T = factor @ factor.T, h[:K, lane].copy(), self.T

            def density(x: np.ndarray, A=A, b=b, T=T) -> float:
                return quadratic(np.linalg.solve(T, x), A, b) / spread**2

            h[:K, lane] = np.linalg.solve(T, self.move(self.calls, density, False))
            self.T = np.eye(K)

    def draw_entries(self, s, x, A, h, half) -> None:
        A = symmetric(A[: x.size, : x.size])
        x[:] = self.move(self.calls, lambda x: np.exp(2 * half) * quadratic(x, A, h), True)

    def truncated_normal(self, s, p, b) -> float:
        part = np.unravel_index(self.calls, self.X.shape)
        return float(self.move(part, lambda x: b * x - 0.5 * p * x**2, True))

    def run(self) -> None:
        names = ("draw_rows", "draw_volume")
        names += ("draw_entries_dense", "draw_entries_sparse")
        python = {name: getattr(updates, name).py_func for name in names}
        last = {"solve_and_draw": self.solve_and_draw, "_draw_entries": self.draw_entries}
        last["_assemble_singular"] = self.assemble_singular
        with (
            mock.patch.multiple(updates, **python),
            mock.patch.object(rows, "solve_and_draw", self.solve_and_draw),
            mock.patch.multiple(
                entries, _row=entries._row.py_func, truncated_normal=self.truncated_normal
            ),
            mock.patch.multiple(volume, **last),
        ):
            self.s.model.likelihood.draw_side(
                self.side, self.s.state.noise, None, Stream(seed_words(0))
            )


def check_kernels(s: Setup) -> None:
    """Real-valued entries are left out: they share all but the last line with nonnegative ones."""
    for index in (0, 1):
        draws = Draws(s, index)
        prior = draws.side.prior
        if getattr(prior, "update", "rows") == "entries":
            continue
        draws.run()
        one_by_one = prior.nonnegative and not isinstance(prior, Volume)
        assert draws.calls == (draws.X.size if one_by_one else len(draws.X))


# ---------------------------------------------------------------------------------- counts


def split(s: Setup) -> np.ndarray:
    """A random split of the counts over the factors (cells, K)."""
    K = s.data.rank
    return s.rng.multinomial(s.cells[2].astype(int), np.full(K, 1 / K))


def check_gamma_factors(s: Setup) -> None:
    Z = split(s)
    for index in (0, 1):
        side = s.problem.side(s.state, index)
        sums = np.zeros(side.X.shape)
        np.add.at(sums, s.cells[index], Z)
        conditional = s.model.likelihood.conditional(side, sums, 1)
        X = moved_entries(s, side.X, True)
        change = conditional.log_density(X) - conditional.log_density(side.X)
        s.compare(s.state, with_factors(s.state, index, X), change.sum(), Z=Z)


def check_split(s: Setup) -> None:
    """The split's probabilities, as the kernel weighs them, are those of the joint with Z."""
    i, j, R = s.cells
    U, V, K = s.state.U, s.state.V, s.data.rank
    old, new = split(s), split(s)
    w = np.empty((R.size, K))
    for t in range(R.size):
        counts._weights(U[i[t]], V[j[t]], K, w[t])
    w /= w.sum(axis=1, keepdims=True)
    log_p = [stats.multinomial.logpmf(Z, R.astype(int), w).sum() for Z in (old, new)]
    before, after = s.joints(s.state, Z=old), s.joints(s.state, Z=new)
    np.testing.assert_allclose(after - before, log_p[1] - log_p[0], rtol=TOLERANCE)
    # What remains after the split is the likelihood of the counts themselves.
    np.testing.assert_allclose(before - log_p[0], s.joints(s.state), rtol=TOLERANCE)
    sums = updates.split(s.X.rows, U, V, Stream(seed_words(0)))
    for index, part in enumerate(sums):
        totals = np.bincount(s.cells[index], R, minlength=s.X.shape[index])
        np.testing.assert_array_equal(part.sum(axis=1), totals)


# ------------------------------------------------------------------------- hyper-variables


def proposed(s: Setup, name: str, value: np.ndarray, prior) -> np.ndarray:
    if name == "mean":
        return value + s.rng.normal(size=value.shape)
    if name == "precision" and isinstance(prior, MultivariateNormal):
        return spd(s.rng, s.data.rank)
    return value * np.exp(0.7 * s.rng.normal(size=value.shape))


def collapsed(prior) -> bool:
    """Whether eta is drawn with the mixing variances integrated out."""
    hyper = getattr(prior, "scale", None)
    return isinstance(hyper, InverseGaussian) and hyper.reading == "scale"


def log_density_of_steps(side, values: dict) -> float:
    """Log density of all of a side's steps together, each given those before it."""
    h, total = dict(side.h), 0.0
    for name, distribution in side.prior.updates(side.X, h):
        total += float(np.sum(distribution.log_density(values[name])))
        h[name] = values[name]
    return total


def check_block(s: Setup, group: str, side) -> None:
    """Variables drawn one after the other, the first with the others integrated out."""
    old = getattr(s.state, group)
    new = {name: proposed(s, name, value, side.prior) for name, value in old.items()}
    change = log_density_of_steps(side, new) - log_density_of_steps(side, old)
    s.compare(s.state, altered(s.state, group, new), change)


def check_steps(s: Setup, group: str, side) -> None:
    now, seen = s.state, set()
    for name, distribution in side.prior.updates(side.X, side.h):
        old = getattr(now, group)[name]
        value = proposed(s, name, old, side.prior)
        new = altered(now, group, {name: value})
        change = np.sum(distribution.log_density(value) - distribution.log_density(old))
        s.compare(now, new, change, marginal=name == "eta" and collapsed(side.prior))
        side.h[name], now = value, new
        seen.add(name)
    assert seen == set(getattr(s.state, group))


def check_hyper(s: Setup) -> None:
    for index, group in enumerate(GROUPS):
        side = s.problem.side(s.state, index)
        wishart = isinstance(side.prior, MultivariateNormal)
        if wishart or collapsed(side.prior):
            check_block(s, group, side)
        if not wishart:
            check_steps(s, group, side)


def check_shared(s: Setup) -> None:
    ard = s.model.shared_ard
    assert (ard is None) == (not s.state.shared)
    if ard is None:
        return
    statistics = [s.model.rows.relevance_terms(s.state.U), s.model.cols.relevance_terms(s.state.V)]
    conditional = ard.conditional(statistics)
    old = s.state.shared["relevance"]
    value = old * np.exp(0.7 * s.rng.normal(size=old.shape))
    change = np.sum(conditional.log_density(value) - conditional.log_density(old))
    s.compare(s.state, altered(s.state, "shared", {"relevance": value}), change)


def check_noise(s: Setup) -> None:
    if not s.state.noise:
        assert isinstance(s.model.likelihood, Poisson)
        return
    error = float(updates.row_errors(s.X.cols, s.state.V, s.state.U, 1).sum())
    conditional = s.model.likelihood.conditional(s.X.n_observed, error)
    old = s.state.noise["noise_precision"]
    for factor in (0.3, 2.0):
        change = float(conditional.log_density(factor * old) - conditional.log_density(old))
        s.compare(s.state, altered(s.state, "noise", {"noise_precision": factor * old}), change)


# -------------------------------------------------------------------------------- scale moves


def log_jacobian(side) -> int:
    """Logarithm of the Jacobian when one factor of a side, and what moves along, is scaled by e.

    It counts the coordinates, each with the power of the scale that it is multiplied by.
    """
    (n, K), prior = side.X.shape, side.prior
    if isinstance(prior, MultivariateNormal):  # one mean; one diagonal entry, K - 1 beside it
        return n + 1 - 2 - (K - 1)
    if isinstance(getattr(prior, "scale", None), InverseGaussian):
        return n + (n if prior.scale.reading == "scale" else -2 * n)
    if isinstance(getattr(prior, "precision", None), TruncatedNormalHyper):
        return n + n - 2 * n
    return n


def scaled(s: Setup, state, c: np.ndarray):
    """The state after factor k of the rows is multiplied by c[k], of the columns divided by it."""
    new = state.copy()
    for index, group in enumerate(GROUPS):
        side, factor = s.problem.side(new, index), (c, 1 / c)[index]
        side.X[:] *= factor
        getattr(new, group).update(side.prior.rescale(getattr(new, group), factor))
    return new


class Orbit:
    """Stands in for the draw of a log scale: checks its density, and returns a fixed one."""

    def __init__(self, s: Setup, together: bool) -> None:
        self.s, self.now, self.together, self.calls = s, s.state, together, 0
        rows, cols = (s.problem.side(s.state, index) for index in (0, 1))
        self.jacobian = log_jacobian(rows) - log_jacobian(cols)
        self.jacobian *= s.data.rank if together else 1

    def scales(self, x: float) -> np.ndarray:
        c = np.ones(self.s.data.rank)
        c[:: 1 if self.together else c.size][:] = np.exp(x)
        return c if self.together else np.roll(c, self.calls)

    def __call__(self, stream, exponent, *log_weights) -> float:
        def log_density(x):
            return exponent * x - 0.5 * sum(
                np.exp(w + p * x) for w, p in zip(log_weights, POWERS, strict=True)
            )

        for x in (-0.7, 0.2, 0.5):
            change = log_density(x) - log_density(0.0) - self.jacobian * x
            self.s.compare(
                self.now, scaled(self.s, self.now, self.scales(x)), change, marginal=True
            )
        x = (0.3, -0.2, 0.1, -0.4)[self.calls % 4]
        self.now = scaled(self.s, self.now, self.scales(x))
        self.calls += 1
        return x


def check_scale(s: Setup) -> None:
    """The density along each orbit, as the sampler draws from it, factor after factor."""
    together = any(isinstance(prior, L21) for prior in (s.model.rows, s.model.cols))
    orbit, state = Orbit(s, together), s.state.copy()
    with (
        mock.patch.object(fill, "log_scale", orbit),
        mock.patch.object(sampler, "fill_log_scales", fill.fill_log_scales.py_func),
    ):
        sampler.move_scales(s.problem, state, Stream(seed_words(0)))
    assert (orbit.calls > 0) == s.case.moves
    for name, value in state.variables().items():
        np.testing.assert_allclose(value, orbit.now.variables()[name], rtol=1e-12)


# ------------------------------------------------------------------------------------- tests

CHECKS = {
    "factors": check_factors,
    "kernels": check_kernels,
    "hyper": check_hyper,
    "shared": check_shared,
    "noise": check_noise,
    "scale": check_scale,
    "split": check_split,
}


def run(check: str, case: Case, data: Data) -> None:
    seed = sum(map(ord, check + case.model.name))
    CHECKS[check](Setup(case, data, seed))


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_conditionals(case, data):
    for check in ("factors", "hyper", "shared", "noise", "scale"):
        run(check, case, data)
    run("split" if isinstance(case.model.likelihood, Poisson) else "kernels", case, data)


@pytest.mark.parametrize("case", VOLUME_AND.values(), ids=VOLUME_AND)
def test_volume_beside_inverse_squares(case):
    for check in ("factors", "kernels", "hyper", "noise", "scale"):
        run(check, case, DATA["sparse, K = 3"])
    run("scale", case, DATA["dense, K = 1"])


@pytest.mark.parametrize("name", ["GVG", "GVG changed", "GVG ridge", "GVnG", "GVnG ridge"])
def test_rows_that_do_not_span_the_factors(name):
    run("factors", CASES[name], FEW_ROWS)
    run("kernels", CASES[name], FEW_ROWS)


def test_slanted_wishart():
    case = named("GGGW", W0=slanted(3), moves=False)
    for check in ("factors", "hyper", "scale"):
        run(check, case, DATA["dense, K = 3"])


# ------------------------------------------------------------------- power: what must not pass


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
    return lambda *arguments: mutation.change(original(*arguments), *arguments)


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


def uncentred(d, prior, X, h):
    return d.scale + len(X) * np.outer(X.mean(axis=0), X.mean(axis=0))


def reciprocal(d, *_):
    return dist.GIG(-d.p, d.b, d.a)


def of_roots(_, u, v, K, w):
    w[:] = np.sqrt(w)


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
        fields(linear=lambda t, prior, h, K: h["mean"][None]),
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
        "factors", "PGG", updates, "factor_sums",
        lambda out, view, F, threads: np.broadcast_to(F.sum(axis=0), out.shape),
    ),
    "counts: one rate for all rows": Mutation(
        "factors", "PGGG", Gamma, "gamma_terms", fields(rate=lambda t, *_: t.rate[:1])
    ),
    "split by square roots": Mutation("split", "PGG", counts, "_weights", of_roots),
    # The kernels
    "kernel of L21 without coupling": Mutation(
        "kernels", "GL21", L21, "terms", fields(coupling=lambda *_: 0.0)
    ),
    "kernel of entries: residual not corrected": Mutation(
        "kernels", "GEE", entries, "_moments", lambda d_g, *_: (d_g[0], 0.99 * d_g[1])
    ),
    "kernel of rows without the Laplace variances": Mutation(
        "kernels", "GLL", Laplace, "terms", fields(diagonal=lambda t, *_: 0 * t.diagonal + 0.1)
    ),
    "kernel of volume: determinant not downdated": Mutation(
        "kernels", "GVG changed", volume, "_rank_one", lambda ratio, *_: 1.0
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
        "hyper", "GTTN mean", TruncatedNormal, "updates",
        step("mean", fields(linear=lambda d, prior, X, h: h["precision"] * X)),
    ),
    "GTTN: joint without tau^-1/2": Mutation(
        "hyper", "GTTN", TruncatedNormalHyper, "log_density",
        lambda total, _, h: total + 0.5 * np.log(h["precision"]).sum(),
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
        step("mean", fields(precision=lambda d, prior, X, h: len(X) * h["precision"])),
    ),
    "GLL: eta for eta^-2": Mutation(
        "hyper", "GLL", Laplace, "updates",
        step("variance", fields(a=lambda d, prior, *_: prior.scale)),
    ),
    "GLL: eta for eta^-2, joint too": Mutation(
        "hyper", "GLL", Laplace, "_inverse_square_scale", lambda _, prior, h: prior.scale
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
        fields(b=lambda d, hyper, X, h: d.b - np.abs(X)),
    ),
    "GLLI rate: 2 s for s": Mutation(
        "hyper", "GLLI rate", InverseGaussian, "conditional",
        fields(a=lambda d, hyper, X, h: d.a + h["variance"]),
    ),
    "PGGG: one factor counted": Mutation(
        "hyper", "PGGG changed", GammaRate, "conditional",
        fields(shape=lambda d, hyper, X, shape: hyper.shape + shape),
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
    # Scale moves
    "exponent I + J": Mutation(
        "scale", "GGG", sampler, "joint_scale_terms",
        lambda t, left, right: (t[0]._replace(exponent=left.exponent + right.exponent), *t[1:]),
    ),
    "columns scaled like rows": Mutation(
        "scale", "GGG", sampler, "joint_scale_terms",
        lambda t, left, right: (
            t[0]._replace(log_weights=np.logaddexp(left.log_weights, right.log_weights)), *t[1:]
        ),
    ),
    "determinant not carried": Mutation(
        "scale", "GVG changed", sampler, "joint_scale_terms", determinant_per_factor
    ),
    "determinant carried the wrong way": Mutation(
        "scale", "volume columns", sampler, "joint_scale_terms", lambda t, *_: (t[0], t[2], t[1])
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
        fields(log_weights=lambda t, prior, X, h: t.log_weights + np.log(X.shape[1])),
    ),
    "scale of gamma without its shape": Mutation(
        "scale", "PGG changed", Gamma, "scale_terms",
        fields(exponent=lambda t, prior, X, h: t.exponent / prior.shape),
    ),
    "scale of GTTN: a - 1/2": Mutation(
        "scale", "GTTN", TruncatedNormal, "scale_terms",
        fields(exponent=lambda t, prior, X, h: t.exponent + len(X)),
    ),
    "scale of GTTN: precisions stay": Mutation(
        "scale", "GTTN", TruncatedNormal, "rescale", lambda h, *_: {"mean": h["mean"]}
    ),
    "scale of Wishart: rows counted": Mutation(
        "scale", "GGGW", MultivariateNormal, "scale_terms",
        fields(exponent=lambda t, prior, X, h: t.exponent + len(X)),
    ),
    "scale of Wishart: mean stays": Mutation(
        "scale", "GGGW", MultivariateNormal, "rescale",
        lambda new, prior, h, c: {**new, "mean": h["mean"]},
    ),
    "scale of GLLI rate: eta moves as c": Mutation(
        "scale", "GLLI rate", InverseGaussian, "rescale",
        lambda _, hyper, h, c: {"eta": h["eta"] * c},
    ),
    "scale of GLLI: eta stays": Mutation(
        "scale", "GLLI", InverseGaussian, "rescale", lambda *_: {}
    ),
}  # fmt: skip


@pytest.mark.parametrize("data", ["sparse, K = 3", "dense, K = 3"])
@pytest.mark.parametrize("mutation", MUTATIONS.values(), ids=MUTATIONS)
def test_the_checks_notice(mutation, data):
    """The same check on the same state passes above, where nothing is broken."""
    broken = mock.patch.object(mutation.owner, mutation.name, changed(mutation))
    with broken, pytest.raises(AssertionError):
        run(mutation.check, CASES[mutation.case], DATA[data])
