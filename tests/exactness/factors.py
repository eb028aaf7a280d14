"""Checks of the factors: from the terms of their priors, and out of the running kernels."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import product
from unittest import mock

import numpy as np
from scipy import stats

from bayesmf.kernels import counts, entries, nonnegative, rows, volume
from bayesmf.likelihoods import BernoulliPoisson
from bayesmf.likelihoods.base import CountData, Weights
from bayesmf.priors import (
    Volume,
)
from bayesmf.streams import Stream, seed_words
from bayesmf.updates import blocks, moments, normal
from bayesmf.updates import volume as volume_updates
from bayesmf.updates.blocks import Gram
from bayesmf.updates.counts import split as split_counts
from bayesmf.updates.terms import EntryTerms, NonnegativeTerms, RowTerms, VolumeTerms
from tests.exactness.ratios import (
    GROUPS,
    TOLERANCE,
    Setup,
    altered,
    moved_entries,
    some_rows,
    with_factors,
)

CHOLESKY = rows.cholesky
ASSEMBLE_SINGULAR, DRAW_REAL = volume.assemble_singular, volume._draw_real.py_func


def gram_matrices(side) -> tuple[np.ndarray, np.ndarray]:
    """Packed Gram matrices (n, ...) and sums of r f (n, K) as the half-sweeps compute them."""
    gram = Gram(side.view, side.V)
    packed, rhs = np.empty((side.view.n, side.rank * (side.rank + 1) // 2)), np.empty(side.U.shape)
    gram.block(0, side.view.n, packed, rhs)
    return packed, rhs


def symmetric(upper: np.ndarray) -> np.ndarray:
    return np.triu(upper) + np.triu(upper, 1).T


def quadratic(x: np.ndarray, A: np.ndarray, h: np.ndarray) -> float:
    return float(h @ x - 0.5 * x @ A @ x)


def row_forms(side, terms: RowTerms, i: int, packed, g, tau):
    """Log density of row i up to a constant."""
    K = side.rank
    A = np.zeros((K, K))
    A[np.tril_indices(K)] = tau * packed
    A = symmetric(A.T) + terms.precision + np.diag(terms.diagonal[i % len(terms.diagonal)])
    h = terms.linear[i % len(terms.linear)] + tau * g
    yield lambda x: quadratic(x, A, h)


def nonnegative_forms(side, terms: NonnegativeTerms, i: int, packed, g, tau):
    """The same of nonnegative rows."""
    tied = terms.coupling * (1 - np.eye(side.rank))
    yield from row_forms(side, RowTerms(tied, terms.precision, terms.linear), i, packed, g, tau)


def volume_forms(side, terms, i: int, packed, g, tau):
    """Log density of row i up to a constant, by every way in which the kernel may compute it."""
    X, K = side.U, side.rank

    def assembled(B, c):
        A, h = np.zeros((K, K)), np.empty(K)
        scale = np.exp(volume.assemble(A, h, B, c, packed, g, tau, terms.ridge))
        return lambda x: scale * quadratic(x, symmetric(A), h)

    B = np.ones((K, K))
    if K == 1:
        yield assembled(B, terms.log_gamma)
        return
    P, log_det = moments.inverse_moments(X)
    ratio = volume.rank_one(P, X[i], -1.0, B, np.empty(K))
    if np.isfinite(log_det) and ratio >= 1e-6:
        yield assembled(B.copy(), terms.log_gamma + log_det + np.log(ratio))
    T, weights = moments.directions(X, i)
    B, c = moments.adjugate(T, weights)
    yield assembled(B, terms.log_gamma + c)
    if not terms.nonnegative:
        A, h = np.zeros((K, K)), np.empty(K)
        volume.assemble_singular(A, h, T, weights, packed, g, tau, terms.log_gamma, terms.ridge)
        yield lambda x: quadratic(np.linalg.solve(T, x), symmetric(A), h)


def entry_density(side, terms: EntryTerms, i: int, k: int, tau: float):
    """Precision and linear term of one entry, from the kernel's residual and moments."""
    part = slice(side.view.indptr[i], side.view.indptr[i + 1])
    x, n = side.U[i], part.stop - part.start
    Ft, e = np.zeros((side.rank, entries.width(n))), np.zeros(entries.width(n))
    Ft[:, :n], e[:n] = side.V[side.view.indices[part]].T, side.view.values[part]
    entries.subtract_fit(x, Ft, e.size, e)
    d, g = entries.step(0.0, 0, k, Ft, e.size, np.ones(e.size), e)
    p = terms.precision[i % len(terms.precision), k] + tau * d
    b = terms.linear[i % len(terms.linear), k] + tau * (g + x[k] * d)
    return lambda value: b * value - 0.5 * p * value**2


def compare(s: Setup, index: int, factors: tuple, change: float) -> None:
    """The joints' change from old to new factors, and what is drawn with them, is this one."""
    group, states = GROUPS[index], []
    for sign, X in zip((-1, 1), factors, strict=True):
        state = with_factors(s.state, index, X)
        side = s.problem.side(state, index)
        for name, step in side.prior.afterwards(side.U, side.values):
            value = getattr(state, group)[name]
            if sign == 1:
                value = value + s.rng.normal(size=value.shape)
            change += sign * float(np.sum(step.log_density(value)))
            state = altered(state, group, {name: value})
        states.append(state)
    s.compare(*states, change)


def check_entries(s: Setup, index: int, side, terms: EntryTerms, tau: float) -> None:
    for i in some_rows(side.view.n):
        k = int(s.rng.integers(side.rank))
        X = side.U.copy()
        X[i, k] = moved_entries(s, X[i, k], False)
        density = entry_density(side, terms, i, k, tau)
        compare(s, index, (side.U, X), density(X[i, k]) - density(side.U[i, k]))


def check_rows(s: Setup, index: int, side, terms, tau: float) -> None:
    forms, nonnegative = FORMS[type(terms)], is_nonnegative(terms)
    packed, rhs = gram_matrices(side)
    for i in some_rows(side.view.n):
        X = side.U.copy()
        X[i] = moved_entries(s, X[i], nonnegative)
        for density in forms(side, terms, i, packed[i], rhs[i], tau):
            compare(s, index, (side.U, X), density(X[i]) - density(side.U[i]))


def is_nonnegative(terms) -> bool:
    return isinstance(terms, NonnegativeTerms) or getattr(terms, "nonnegative", False)


FORMS = {RowTerms: row_forms, NonnegativeTerms: nonnegative_forms, VolumeTerms: volume_forms}


def check_support(s: Setup, index: int, side, nonnegative: bool) -> None:
    """Negative factors have density zero exactly where they are never drawn."""
    X = side.U.copy()
    X[0, 0] = -0.1
    outside = np.isneginf(s.joints(with_factors(s.state, index, X)))
    assert (outside == nonnegative).all()


def check_factors(s: Setup) -> None:
    if isinstance(s.work, CountData):
        return check_gamma_factors(s)
    assert s.work.weights == Weights(), "the terms alone do not say what weights do"
    tau = s.work.precision
    for index in (0, 1):
        side = s.problem.side(s.state, index)
        terms = side.prior.terms(side.values, side.rank)
        check = check_entries if isinstance(terms, EntryTerms) else check_rows
        check(s, index, side, terms, tau)
        check_support(s, index, side, is_nonnegative(terms))


# --- The same, out of the running kernels


class Draws:
    """Stands in for the last step of a half-sweep: checks what it is given, and moves the factors.

    The kernels run as Python, so that precisions and linear terms are those of the real draws.
    Nonnegative rows move between the walls, or none is fit for that, or all are crowded.
    """

    def __init__(self, s: Setup, index: int, way: str = "walls") -> None:
        self.s, self.index, self.calls, self.way = s, index, 0, way
        self.stream = Stream(seed_words(0))
        self.side = s.problem.side(s.state.copy(), index)
        self.X, self.basis = self.side.U, np.eye(s.data.rank)
        self.T = self.basis  # x = T y for the row that is being drawn

    def move(self, part, density: Callable, nonnegative: bool) -> np.ndarray:
        """Check the density of a part of X, and return a new value for some of the parts."""
        old, new, row = self.X.copy(), self.X.copy(), np.atleast_1d(part)[0]
        if row in some_rows(len(new)):
            new[part] = moved_entries(self.s, new[part], nonnegative)
            compare(self.s, self.index, (old, new), density(new[part]) - density(old[part]))
        self.calls += 1
        return new[part]

    def assemble_singular(self, A, h, T, *rest) -> None:
        ASSEMBLE_SINGULAR(A, h, T, *rest)
        self.T = T.copy()

    def solved(self, factor: np.ndarray, b: np.ndarray, spread: float) -> np.ndarray:
        """Check the row that a solver is asked for, and return the row that is to be its answer."""
        A, T = factor @ factor.T, self.T

        def density(x: np.ndarray) -> float:
            return quadratic(np.linalg.solve(T, x), A, b) / spread**2

        i = self.calls
        x = self.X[i] = self.move(i, density, False)
        self.T = self.basis
        return np.linalg.solve(T, x)

    def whitened(self, X):
        white = moments.whitened(X)
        if not self.side.prior.nonnegative:
            self.basis = self.T = np.eye(X.shape[1]) if white is None else white[1]
        return white

    def solve_and_draw(self, L, h, z, spread) -> None:
        """One row in each lane, as many as there are left."""
        K = self.s.data.rank
        for lane in range(min(len(self.X) - self.calls, h.shape[1])):
            factor = np.tril(L[:K, :K, lane])
            np.fill_diagonal(factor, 1 / np.diag(factor))
            h[:K, lane] = self.solved(factor, h[:K, lane].copy(), spread)

    def solve_one(self, U, inverse, h, z, spread) -> None:
        K = self.s.data.rank
        factor = np.triu(U[:K, :K], 1).T + np.diag(1 / inverse)
        h[:K] = self.solved(factor, h[:K].copy(), spread)

    def cholesky(self, A, floor) -> None:
        self.precisions = np.tril(A.transpose(2, 0, 1))
        CHOLESKY(A, floor)

    def move_rows(self, i, n, U, T, h, z, spread, time, S, x, v, mean, state) -> None:
        """One row in each lane, whose precision has been factored."""
        fit, K = self.way == "walls", U.shape[1]
        state[0] = fit
        for lane in range(n * fit):
            A, b = symmetric(self.precisions[lane, :K, :K].T), h[:K, lane]
            U[i + lane] = self.move(i + lane, partial(quadratic, A=A, h=b), True)

    def draw_row(self, s, i, U, A, h, spread, time, work) -> None:
        K = U.shape[1]
        U[i] = self.move(i, lambda x: quadratic(x, A[:, :K], h[:K]) / spread**2, True)

    def draw_entry(self, s, root, b, spread) -> float:
        """One entry of a nonnegative row, in one of the passes over it."""
        K = self.X.shape[1]
        i, k = self.calls // (K * nonnegative.PASSES), self.calls % K
        density = lambda x: (b * x - 0.5 * (root * x) ** 2) / spread**2  # noqa: E731
        return float(self.move((i, k), density, True))

    def move_entry(self, s, x, p, b, time) -> float:
        """One entry of a crowded row."""
        where = divmod(self.calls, self.X.shape[1])
        assert x == self.X[where]
        return float(self.move(where, lambda x: b * x - 0.5 * p * x**2, True))

    def run(self, inverse_moments: Callable = moments.inverse_moments) -> None:
        coupled = {n: getattr(volume_updates, n).py_func for n in ("draw_volume", "draw_singular")}
        coupled |= {"whitened": self.whitened, "inverse_moments": inverse_moments}
        last = {"solve_one": self.solve_one, "draw_row": self.draw_row}
        last |= {"assemble_singular": self.assemble_singular, "_draw_real": DRAW_REAL}
        with (
            mock.patch.multiple(
                normal,
                draw_rows=normal.draw_rows.py_func,
                draw_entries_dense=normal.draw_entries_dense.py_func,
                draw_entries_sparse=normal.draw_entries_sparse.py_func,
                _are_crowded=lambda *_: self.way == "crowded",
            ),
            mock.patch.multiple(entries, _row=entries._row.py_func, move_entry=self.move_entry),
            mock.patch.multiple(volume_updates, **coupled),
            mock.patch.multiple(
                rows,
                cholesky=self.cholesky,
                solve_and_draw=self.solve_and_draw,
                move_rows=self.move_rows,
                draw_unfit=nonnegative.draw_unfit.py_func,
            ),
            mock.patch.multiple(
                nonnegative,
                draw_entries=nonnegative.draw_entries.py_func,
                draw_entry=self.draw_entry,
            ),
            mock.patch.multiple(volume, **last),
        ):
            self.s.work.draw(self.side, self.stream)


def check_kernels(s: Setup) -> None:
    """Real-valued entries are left out: `check_factors` goes through their residuals."""
    calls = {"walls": lambda n, K: n, "unfit": lambda n, K: n * K * nonnegative.PASSES,
             "crowded": lambda n, K: n * K}  # fmt: skip
    for index, way in product((0, 1), calls):
        draws = Draws(s, index, way)
        prior = draws.side.prior
        one_by_one = prior.nonnegative and not isinstance(prior, Volume)
        if getattr(prior, "update", "rows") == "entries" or not (one_by_one or way == "walls"):
            continue
        draws.run()
        assert draws.calls == calls[way](*draws.X.shape)
        if isinstance(prior, Volume) and s.data.rank > 1:
            Draws(s, index).run(lambda X: (np.ones((X.shape[1],) * 2), np.nan))


def check_relaxed(s: Setup) -> None:
    """A relaxed row is stay * row + (1 - stay) * mean + spread * noise.

    Noise is what a fresh draw from the same random numbers has beside its mean, which the density
    shows: it is as high on either side of it. Parts that see others which have moved are left out.
    """
    for index in (0, 1):
        side = s.problem.side(s.state, index)
        terms = side.prior.terms(side.values, side.rank)
        if is_nonnegative(terms):
            continue
        stay, spread = blocks.relaxation(Stream(seed_words(0), sweep=2))
        assert stay < 0 and abs(stay**2 + spread**2 - 1) < TOLERANCE
        relaxed, fresh = relaxed_rows(s, side), relaxed_rows(s, side, blocks.FRESH)
        packed, rhs = gram_matrices(side)
        tau = s.work.precision
        for i in [0] if isinstance(terms, VolumeTerms) else some_rows(side.view.n):
            mean = (relaxed[i] - stay * side.U[i] - spread * fresh[i]) / (1 - stay - spread)
            if isinstance(terms, EntryTerms):
                forms, mean = [entry_density(side, terms, i, 0, tau)], mean[0]
            else:
                forms = FORMS[type(terms)](side, terms, i, packed[i], rhs[i], tau)
            step = s.rng.normal(size=np.shape(mean))
            for density in forms:
                s.equal(*np.array([[density(mean + step)], [density(mean - step)]]), 0.0)


def relaxed_rows(s: Setup, side, how: blocks.Relaxation | None = None) -> np.ndarray:
    """One side's factors after a half-sweep of the compiled kernels, drawn like this."""
    side = side._replace(U=side.U.copy())
    with ExitStack() as patches:
        for module in (normal, volume_updates) if how else ():
            patches.enter_context(mock.patch.object(module, "relaxation", return_value=how))
        s.work.draw(side, Stream(seed_words(0), sweep=2))
    return side.U


# --- Counts


def split(s: Setup) -> np.ndarray:
    """A random split of the counts over the factors (cells, K); of random ones, if only present."""
    K, counts = s.data.rank, s.cells.values.astype(int)
    if isinstance(s.model.likelihood, BernoulliPoisson):
        counts = counts * (1 + s.rng.poisson(1.5, counts.size))
    return s.rng.multinomial(counts, np.full(K, 1 / K))


def check_gamma_factors(s: Setup) -> None:
    Z = split(s)
    for index in (0, 1):
        side = s.problem.side(s.state, index)
        sums = np.zeros(side.U.shape)
        np.add.at(sums, s.cells[index], Z)
        conditional = replace(s.work, sums=(sums, sums)).conditional(side, 1)
        X = moved_entries(s, side.U, True)
        change = conditional.log_density(X) - conditional.log_density(side.U)
        latent = {**s.latent, "Z": Z}
        s.compare(s.state, with_factors(s.state, index, X), change.sum(), latent=latent)


def split_weights(s: Setup) -> np.ndarray:
    """Probabilities of the factors at every cell (cells, K), as the kernel weighs them."""
    (i, j), K = s.cells[:2], s.data.rank
    w = np.empty((i.size, K))
    for t in range(i.size):
        counts._weights(s.state.U[i[t]], s.state.V[j[t]], K, w[t])
    return w / w.sum(axis=1, keepdims=True)


def check_split(s: Setup) -> None:
    """The split's probabilities, as the kernel weighs them, are those of the joint with Z."""
    R = s.cells.values
    U, V = s.state.U, s.state.V
    old, new = split(s), split(s)
    w = split_weights(s)
    log_p = [stats.multinomial.logpmf(Z, R.astype(int), w).sum() for Z in (old, new)]
    before = s.joints(s.state, latent={**s.latent, "Z": old})
    after = s.joints(s.state, latent={**s.latent, "Z": new})
    s.equal(before, after, log_p[1] - log_p[0])
    # What remains after the split is the likelihood of the counts themselves.
    s.equal(before, s.joints(s.state), -log_p[0])
    sums = split_counts(s.X.rows, U, V, Stream(seed_words(0)))
    for index, part in enumerate(sums):
        totals = np.bincount(s.cells[index], R, minlength=s.X.shape[index])
        np.testing.assert_array_equal(part.sum(axis=1), totals)
