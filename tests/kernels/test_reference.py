"""Fast equals slow: the library's sweeps and kernels against plain versions of the same sums."""

from dataclasses import replace

import numpy as np
import pytest

from bayesmf import Problem, baseline, preset
from bayesmf.data.observed import ObservedMatrix
from bayesmf.kernels import counts, linalg
from bayesmf.likelihoods import Gaussian, Poisson
from bayesmf.likelihoods.base import Fit
from bayesmf.model.model import Model
from bayesmf.model.presets import PAPER
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
from bayesmf.priors import distributions as dist
from bayesmf.priors.hyperpriors import (
    ARD,
    GammaRate,
    InverseGaussian,
    NormalInverseWishart,
    TruncatedNormalHyper,
)
from bayesmf.sampler.start import initial_state
from bayesmf.sampler.sweep import sweep
from bayesmf.streams import Stream, seed_words
from bayesmf.updates import moments
from bayesmf.updates.blocks import Gram
from bayesmf.updates.normal import draw_side, row_errors
from bayesmf.updates.terms import RowTerms, VolumeTerms
from bayesmf.updates.volume import VolumeRows
from tests.helpers import reference

RTOL = 1e-10
SHAPES = {"sparse": (13, 9), "dense": (9, 13), "complete": (13, 9)}
OBSERVED = {"sparse": 0.3, "dense": 0.8, "complete": 1.0}
RANKS = (1, 3, 5)


def custom(likelihood, rows, cols, name):
    return Model(likelihood, rows=rows, cols=cols, name=name)


def wishart(**hyper):
    return MultivariateNormal(NormalInverseWishart(**hyper))


def learnt_truncation(**hyper):
    return TruncatedNormal(0.0, TruncatedNormalHyper(**hyper))


G, P = Gaussian(2.0, 0.5), Poisson()
MODELS = {
    **{name: preset(name) for name in PAPER},
    "GGG noise": preset("GGG", lambda_=0.7, alpha_tau=3.0, beta_tau=0.2),
    "GGGA alpha": preset("GGGA", alpha0=2.5, beta0=0.3),
    "GGGW beta": preset("GGGW", beta0=0.4, nu0=7.5, W0=3.0),
    "GGGW centred": custom(G, wishart(mean=0.5), wishart(), "none"),
    "GLLI rate": preset("GLLI", reading="rate"),
    "GLLI shape": preset("GLLI", mu=0.7, lambda_=2.0),
    "GLLI rate shape": preset("GLLI", mu=0.7, lambda_=2.0, reading="rate"),
    "GVG weak": preset("GVG", gamma=1e-3, lambda_=0.4),
    "GVG strong": preset("GVG", log10_gamma=1.0),
    "GVG ridge": custom(G, Volume(gamma=0.01, ridge=0.3), Normal(0.1), "GVG"),
    "GVnG ridge": custom(
        G, Volume(gamma=0.01, signs="nonnegative", ridge=0.3), Normal(0.1), "GVnG"
    ),
    "GTT precisions": preset("GTT", tau_U=0.5, tau_V=2.0),
    "GTT mean": custom(G, TruncatedNormal(0.7, 0.5), TruncatedNormal(-1.0, 2.0), "none"),
    "GTTN shape": preset("GTTN", tau_mu=0.6, a=2.5, b=0.8),
    "GTTN mean": custom(G, learnt_truncation(mean=0.4), learnt_truncation(), "none"),
    "PGG shape": preset("PGG", a=0.6, b=2.0),
    "PGGG shape": preset("PGGG", a=2.0, a_prime=1.5, b_prime=0.4),
    "exponential ARD, Laplace": custom(
        G, Exponential(ARD(1, 1)), Laplace(1.0), "exponential-laplace"
    ),
    "one ARD, two families": custom(
        G, Exponential(ARD(2, 0.5)), Normal(ARD(2, 0.5)), "exponential-normal"
    ),
    "two ARDs": custom(
        G, Exponential(ARD(1, 1, shared=False)), Normal(ARD(2, 3)), "exponential-normal"
    ),
    "eta, truncation": custom(
        G, Laplace(InverseGaussian(2.0, 3.0)), learnt_truncation(shape=1.7), "eta-hyper"
    ),
    "volume columns": custom(G, Normal(0.3), Volume(gamma=0.05), "normal-volume"),
    "L21, normal": custom(G, L21(0.3), Normal(0.2), "l21-normal"),
    "L21, volume": custom(G, L21(0.3), Volume(gamma=0.05), "none"),
    "counts": custom(P, Exponential(0.5), Gamma(2.0, GammaRate()), "counts"),
    "counts ARD": custom(P, Gamma(0.7, ARD(1, 2)), Exponential(ARD(1, 2)), "counts"),
}


def data(kind, likelihood, times=1):
    """A small matrix of about rank 2, with an empty row unless it is complete."""
    n, m = np.multiply(SHAPES[kind], times)
    rng = np.random.default_rng(len(kind))
    fit = rng.gamma(2.0, 1.0, (n, 2)) @ rng.gamma(2.0, 1.0, (m, 2)).T
    counting = isinstance(likelihood, Poisson)
    R = rng.poisson(1.5 * fit).astype(float) if counting else rng.normal(fit - 4.0, 0.5)
    if counting:
        R[:3, :3] = 0
    R[rng.random((n, m)) > OBSERVED[kind]] = np.nan
    if kind != "complete":
        R[4] = np.nan
    X = ObservedMatrix.of(R)
    assert X.is_dense == (kind != "sparse")
    assert (X.density == 1) == (kind == "complete")
    return X


def has_volume(model):
    return isinstance(model.rows, Volume) or isinstance(model.cols, Volume)


def is_nonnegative(model):
    return model.likelihood.name != "Poisson" and (model.rows.nonnegative or model.cols.nonnegative)


def start(problem, seed):
    """An ordinary state; under a volume prior, one whose determinant is about what it will be."""
    state = initial_state(problem, random_state=seed)
    for prior, X, F in (
        (problem.model.rows, state.U, state.V),
        (problem.model.cols, state.V, state.U),
    ):
        if isinstance(prior, Volume):
            n, K = X.shape
            X[:] = np.random.default_rng(seed).normal(size=(n, K))
            X[:] = np.abs(X) if prior.nonnegative else X
            log_ratio = np.log(n / 2) - prior.log_gamma - np.linalg.slogdet(X.T @ X)[1]
            X *= np.exp(log_ratio / (2 * K))
            F /= np.exp(log_ratio / (2 * K))
    return replace(state, sweep=5)  # not a starting point, whose scales are not moved


def assert_close(actual, expected, tail=1e-12, context="", unsure=0.0):
    """To ten digits, to ``tail`` of the largest entry where digits cancelled, and to ``unsure``."""
    size = float(np.max(np.abs(expected), initial=0.0))
    far = np.abs(actual - expected) > RTOL * np.abs(expected) + tail * size + unsure
    assert not np.any(far), f"{context}: {np.abs(actual - expected)[far]} off, size {size}"


def assert_sweeps_agree(problem, state, n_sweeps=3):
    """Library and reference from the same state, several times."""
    for _ in range(n_sweeps):
        expected = reference.sweep(problem, state)
        unsure = instability(problem, state, expected)
        state = sweep(problem, state)
        actual = state.variables()
        assert actual.keys() == expected.keys()
        for name, value in expected.items():
            assert np.isfinite(value).all()
            context = f"{name} after sweep {state.sweep}"
            assert_close(actual[name], value, context=context, unsure=unsure.get(name, 0.0))
        residuals = problem.X.to_array() - expected["U"] @ expected["V"].T
        doubt = np.nansum(np.abs(residuals)) * np.max(unsure.get("fit", 0.0))
        assert_close(state.error, np.nansum(residuals**2), context="error", unsure=doubt)


def instability(problem, state, expected):
    """How far apart the reference's own sweeps are from states that differ in the thirteenth digit.

    Rows that are reflected by walls make much of the last digit: a hundred times that difference
    allows for the rounding of either version. Most entries must still be sure to six digits.
    """
    if not is_nonnegative(problem.model):
        return {}
    rng = np.random.default_rng(0)
    U, V = (X * (1 + 1e-13 * rng.normal(size=X.shape)) for X in (state.U, state.V))
    other = reference.sweep(problem, replace(state, U=U, V=V))
    unsure = {name: 100 * np.abs(other[name] - value) for name, value in expected.items()}
    assert np.median(unsure["U"] / np.max(expected["U"])) < 1e-6
    unsure = {  # what is lost altogether may be anywhere
        name: np.where(one < 1e-3 * np.max(expected[name]), one, np.inf)
        for name, one in unsure.items()
    }
    fits = [found["U"] @ found["V"].T for found in (expected, other)]
    return {**unsure, "fit": 1e3 * np.abs(fits[0] - fits[1])}


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("scale_move", [True, False], ids=["move", "still"])
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("name", MODELS)
def test_sweep(name, kind, scale_move, rank):
    model = MODELS[name]
    # Many rows for each factor keep the moments under a volume prior far from singular, and rows
    # between walls from making much of the last digit.
    many = has_volume(model) or (rank > 3 and is_nonnegative(model))
    X = data(kind, model.likelihood, times=2 if many else 1)
    problem = Problem.of(X, model, rank, scale_move=scale_move)
    assert_sweeps_agree(problem, start(problem, rank))


@pytest.mark.parametrize("name", ["GGG", "GEE", "PGG"])
def test_sweep_in_blocks(name):
    """Large enough that the rows are cut into blocks for several threads."""
    rng = np.random.default_rng(3)
    R = rng.poisson(rng.gamma(2.0, 3.0, (400, 1)) * rng.gamma(2.0, 1.0, (1, 60))).astype(float)
    R[rng.random(R.shape) > 0.3] = np.nan
    problem = Problem.of(R, preset(name), 24, threads=2)
    view = problem.X.rows
    assert not problem.X.is_dense
    assert len(Gram(view, np.ones((60, 24))).bounds()) > 2
    assert_sweeps_agree(problem, start(problem, 0), n_sweeps=1)


def test_sweep_with_a_full_wishart_scale():
    scale = np.array([[2.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 3.0]])
    hyper = wishart(mean=np.array([0.5, -1.0, 0.0]), beta=2.0, dof=4.5, scale=scale)
    problem = Problem.of(data("dense", G), custom(G, hyper, wishart(scale=scale), "none"), 3)
    assert_sweeps_agree(problem, start(problem, 0))


# Rows under a volume prior, where the moments of the other rows are singular or extreme


def volume_case(n, K, rank, seed=0, m=9):
    """Factors whose rows 1.. have moments of this rank, and data of all rows."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (n, K)).astype(float)
    X[1:, rank:] = X[1:, :1] @ rng.integers(1, 3, (1, K - rank))
    F, R = rng.normal(size=(m, K)), rng.normal(size=(n, m))
    G = F.T @ F
    packed = np.tile(G[np.tril_indices(K)], (n, 1))
    return X, G, packed, R @ F


def draw_volume(key, X, packed, rhs, tau, *terms):
    """Draw all rows of X."""
    rows = VolumeRows(X, VolumeTerms(*terms), tau, key)
    rows.draw(0, len(X), packed, rhs)


def first_row(X, packed, rhs, tau, log_gamma, seed):
    """Draw row 0 with these seeds' streams: the row and the normals that went into it."""
    key = Stream(seed_words(seed)).key()
    X = X.copy()
    draw_volume(key, X, packed, rhs, tau, log_gamma, 0.0, False)
    return X[0], reference.Row(key, 0).normals(X.shape[1])


@pytest.mark.parametrize("loss", [0, 1, 2, "nearly"])
@pytest.mark.parametrize("K", [2, 3, 5, 6])
def test_volume_row_has_the_right_mean_and_covariance(K, loss):
    """A draw is affine in its normals, whatever the coordinates: K + 3 draws give it away."""
    tau, gamma = 0.7, 1e-3
    if loss == "nearly":  # all rows but for the last bits of one factor
        X, G, packed, rhs = volume_case(3 * K + 1, K, K - 1)
        X, packed, rhs = X[1:], packed[1:], rhs[1:]
        X[:, -1] += np.random.default_rng(K).integers(1, 9, len(X)) * 2.0**-20
        assert np.isnan(moments.inverse_moments(X)[1]) and moments.whitened(X)
    else:
        X, G, packed, rhs = volume_case(3 * K, K, K - loss)
    draws = [first_row(X, packed, rhs, tau, np.log(gamma), seed) for seed in range(K + 3)]
    x = np.array([draw for draw, _ in draws])
    z = np.array([[1.0, *normals] for _, normals in draws])
    solution, residual = np.linalg.lstsq(z, x)[:2]
    assert np.all(residual < 1e-18 * np.max(x**2))
    A = 2 * gamma * reference.adjugate_of_moments(X[1:]) + tau * G
    np.testing.assert_allclose(solution[0], np.linalg.solve(A, tau * rhs[0]), rtol=1e-8)
    np.testing.assert_allclose(solution[1:].T @ solution[1:] @ A, np.eye(K), atol=1e-6)


@pytest.mark.parametrize("signs", ["real", "nonnegative"])
@pytest.mark.parametrize(("n", "gap"), [(5, 1.0), (200, 1.0), (200, 1e-7)])
def test_volume_rows_in_blocks_are_the_rows_at_once(monkeypatch, n, gap, signs):
    """What a block carries to the next is all that it needs; singular or nearly so included."""
    rng = np.random.default_rng(n)
    view, F = ObservedMatrix.of(rng.normal(2, 1, (n, 9))).rows, rng.normal(size=(9, 5))
    start, terms = np.abs(rng.normal(size=(n, 5))), VolumeTerms(-3.0, 0.2, signs == "nonnegative")
    if gap < 1:
        start[:, 4] = start[:, 0] + gap * start[:, 4]
        terms = terms._replace(log_gamma=25.0)
        assert np.isnan(moments.inverse_moments(start)[1]) and moments.whitened(start)
    for bounds in ([0, n], [0, 1, 2, 4, n], [*range(0, n, 7), n]):
        monkeypatch.setattr(Gram, "bounds", lambda *_, b=bounds: b)
        for threads in (1, 2):
            X, stream = start.copy(), Stream(seed_words(1), threads=threads)
            draw_side(view, X, F, terms, 0.7, stream)
            if len(bounds) == 2 and threads == 1:
                expected = X
            np.testing.assert_array_equal(X, expected)


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_nonnegative_volume_rows_with_few_rows(n):
    """No more rows than factors: the moments of the other rows are always singular."""
    rng = np.random.default_rng(n)
    prior = Volume(gamma=0.5, signs="nonnegative", ridge=0.2)
    move = "GVnG" if n == 5 else "none"  # with fewer rows there is no volume to scale
    problem = Problem.of(rng.normal(2, 1, (n, 9)), custom(G, prior, Normal(0.3), move), 5)
    state = initial_state(problem, init="prior", random_state=n)
    assert_sweeps_agree(problem, replace(state, sweep=5))


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("shift", [-150, 150])
def test_volume_rows_scale_exactly(shift, nonnegative):
    """X 2^s, F 2^-s and gamma 2^(-2sK) give the draws times 2^s: no determinant is formed."""
    K, log_gamma, key = 5, -3.0, Stream(seed_words(8)).key()
    X, _, packed, rhs = volume_case(12, K, K)
    X = np.abs(X) if nonnegative else X
    small = X.copy()
    draw_volume(key, small, packed, rhs, 0.7, log_gamma, 0.0, nonnegative)
    scale = 2.0**shift
    large = X * scale
    log_gamma -= 2 * shift * K * np.log(2)
    draw_volume(key, large, packed / scale**2, rhs / scale, 0.7, log_gamma, 0.0, nonnegative)
    np.testing.assert_allclose(large / scale, small, rtol=1e-8)


# Small matrices, up to and across the edges of tiles


@pytest.mark.parametrize("K", range(1, 18))
def test_cholesky(K):
    rng = np.random.default_rng(K)
    L, h, z, floor = linalg.workspace(K)
    F = rng.normal(size=(linalg.LANES, 2 * K + 3, K))
    A = np.einsum("lta,ltb->lab", F, F)
    right, normals = rng.normal(size=(2, linalg.LANES, K))
    L[:K, :K], h[:K], z[:K] = np.moveaxis(np.tril(A), 0, -1), right.T, normals.T
    linalg.cholesky(L, floor)
    factor = np.linalg.cholesky(A)
    for lane in range(linalg.LANES):
        inverted = factor[lane] + np.diag(1 / np.diag(factor[lane]) - np.diag(factor[lane]))
        assert_close(np.tril(L[:K, :K, lane]), inverted, 1e-12)
    linalg.solve_and_draw(L, h, z, 0.5)
    noise = np.linalg.solve(np.swapaxes(factor, 1, 2), normals[..., None])[..., 0]
    assert_close(h[:K].T, np.linalg.solve(A, right[..., None])[..., 0] + 0.5 * noise, 1e-11)


@pytest.mark.parametrize("K", range(1, 18))
def test_one_system(K):
    rng = np.random.default_rng(K)
    U, h = np.zeros((K, linalg.padded(K, linalg.LANES))), np.zeros(linalg.padded(K, linalg.LANES))
    F = rng.normal(size=(2 * K + 3, K))
    A, inverse, (right, z) = F.T @ F, np.empty(K), rng.normal(size=(2, K))
    U[:, :K], h[:K] = A, right
    linalg.factor_one(U, inverse)
    factor = np.linalg.cholesky(A).T
    assert_close(np.triu(U[:, :K], 1) + np.diag(1 / inverse), factor, 1e-12)
    linalg.solve_one(U, inverse, h, z, 0.5)
    assert_close(h[:K], np.linalg.solve(A, right) + 0.5 * np.linalg.solve(factor, z), 1e-11)
    assert not h[K:].any()


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_residuals_of_drawn_entries_are_those_of_the_new_factors(kind):
    X = data(kind, Gaussian())
    problem = Problem.of(X, preset("GGGU"), 3)
    state = initial_state(problem, random_state=0)
    for axis in (0, 1):
        side, stream = problem.side(state, axis), Stream(seed_words(axis))
        working = problem.model.likelihood.working(Fit(X, state.U, state.V), state.noise, stream)
        found = working.draw(side, stream)
        assert_close(found, row_errors(side.view, side.U, side.V, 1), 1e-12)


@pytest.mark.parametrize("noise", [1.0, 1e-3, 1e-8])
@pytest.mark.parametrize("missing", [0.0, 0.2, 0.8])
@pytest.mark.parametrize("K", [1, 5, 8])
def test_residuals_of_drawn_rows_are_those_of_the_new_factors(K, missing, noise):
    """They follow from the Gram step; next to nothing is left of a sum of squares at the end."""
    rng = np.random.default_rng(K)
    U, V = rng.normal(size=(40, K)), rng.normal(size=(30, K))
    R = U @ V.T + noise * rng.normal(size=(40, 30))
    R[rng.random(R.shape) < missing] = np.nan
    view, terms = ObservedMatrix.of(R).cols, RowTerms(np.eye(K), np.zeros((1, K)), np.ones((1, K)))
    found = draw_side(view, V, U, terms, noise**-2, Stream(seed_words(0)), errors=True)
    np.testing.assert_allclose(found, row_errors(view, V, U, 1), rtol=1e-10, atol=1e-30)
    assert draw_side(view, V, U, terms, 1.0, Stream(seed_words(0))) is None


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("K", range(1, 18))
def test_gram_step(K, kind):
    """Sums over entries, and the sum over all rows less the gaps."""
    X = data(kind, Gaussian())
    F = np.random.default_rng(K).normal(size=(X.shape[1], K))
    packed, rhs = np.empty((X.shape[0], K * (K + 1) // 2)), np.empty((X.shape[0], K))
    Gram(X.rows, F).block(0, X.shape[0], packed, rhs)
    R = X.to_array()
    for i in range(X.shape[0]):
        seen = ~np.isnan(R[i])
        G = sum((np.outer(f, f) for f in F[seen]), np.zeros((K, K)))
        assert_close(packed[i], G[np.tril_indices(K)])
        assert_close(
            rhs[i], sum((r * f for r, f in zip(R[i, seen], F[seen], strict=True)), 0 * rhs[i])
        )


def test_gram_step_next_to_a_huge_factor():
    """Gaps are not subtracted from a sum that drowns what is left."""
    rng = np.random.default_rng(0)
    R, F = rng.normal(size=(12, 9)), rng.normal(size=(9, 5))
    R[3:, 4], F[4] = np.nan, 1e9
    packed, rhs = np.empty((12, 15)), np.empty((12, 5))
    Gram(ObservedMatrix.of(R).rows, F).block(0, 12, packed, rhs)
    for i in range(12):
        f = F[~np.isnan(R[i])]
        assert_close(packed[i], (f.T @ f)[np.tril_indices(5)])


def test_a_row_does_not_see_the_rows_before_it():
    """A prior that is not a number spoils its own row, and none that follows in the same lane."""
    rng = np.random.default_rng(0)
    view, F = ObservedMatrix.of(rng.normal(size=(40, 9))).rows, rng.normal(size=(9, 5))
    diagonal, draws = np.ones((40, 5)), []
    for value in (1.0, np.nan):
        diagonal[4] = value
        X, terms = np.zeros((40, 5)), RowTerms(np.zeros((5, 5)), diagonal, np.zeros((1, 5)))
        draw_side(view, X, F, terms, 1.0, Stream(seed_words(0)))
        draws.append(np.delete(X, 4, axis=0))
    assert np.isnan(X[4]).all()
    np.testing.assert_array_equal(*draws)


def whole_numbers(K, rank, seed):
    """Integer matrix of this rank with a last row that ought to be skipped."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (3 * K + 2, K)).astype(float)
    for k in range(rank, K):
        X[:-1, k] = 2 * X[:-1, k - rank] if rank else 0.0
    return X


def adjugate(X, skip):
    """The library's adjugate of the moments without one row, and the directions behind it."""
    T, log_weights = moments.directions(X, skip)
    B, c = moments.adjugate(T, log_weights)
    return B * np.exp(c), T, np.exp(log_weights)


def assert_same_matrix(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=RTOL, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("loss", [0, 1, 2])
@pytest.mark.parametrize("K", range(1, 18))
def test_adjugate(K, loss):
    X = whole_numbers(K, max(K - loss, 0), K)
    B, T, weights = adjugate(X, len(X) - 1)
    exact = reference.adjugate_of_moments(X[:-1])
    assert np.linalg.matrix_rank(exact) == (K if loss == 0 else 1 if K == 1 or loss == 1 else 0)
    assert_same_matrix(B, exact)
    # With x = T y the quadratic form x^T adj x is diagonal.
    form = T.T @ exact @ T
    np.testing.assert_allclose(form, np.diag(weights), rtol=RTOL, atol=1e-11 * np.abs(form).max())


@pytest.mark.parametrize("empty", [1, 2])
def test_adjugate_with_unused_factors(empty):
    X = whole_numbers(6, 6, 0)
    X[:-1, :empty] = 0.0
    exact = reference.adjugate_of_moments(X[:-1])
    assert np.count_nonzero(exact) == (1 if empty == 1 else 0)
    assert_same_matrix(adjugate(X, len(X) - 1)[0], exact)


@pytest.mark.parametrize("K", range(1, 18))
def test_inverse_moments(K):
    X = np.random.default_rng(K).normal(size=(3 * K, K))
    P, log_det = moments.inverse_moments(X)
    S = X.T @ X
    assert_close(P, np.linalg.inv(S), 1e-12)
    assert log_det == pytest.approx(np.linalg.slogdet(S)[1], rel=1e-12)
    scale = 10.0 ** np.linspace(-60, 60, K)
    P, shifted = moments.inverse_moments(X * scale)
    assert shifted == pytest.approx(log_det + 2 * np.log(scale).sum(), rel=1e-12, abs=1e-9)
    assert_close(P * np.outer(scale, scale), np.linalg.inv(S), 1e-12)


@pytest.mark.parametrize("K", [2, 5, 9])
def test_inverse_moments_of_a_singular_matrix(K):
    X = whole_numbers(K, K - 1, K)[:-1]
    assert np.isnan(moments.inverse_moments(X)[1])


# Counts and nonnegative matrix factorisation


def split(X, U, V, key):
    row_sums, col_sums = np.zeros(U.shape), np.zeros(V.shape)
    view = X.rows
    counts.split_counts(
        0, view.n, key, view.indptr, view.indices, view.values, U, V, row_sums, col_sums
    )
    return row_sums, col_sums


@pytest.mark.parametrize("level", [0.3, 5.0, 1e3, 1e9])
@pytest.mark.parametrize("K", [1, 2, 7])
def test_split_counts_conserves_totals(K, level):
    rng = np.random.default_rng(K)
    R = rng.poisson(level, (20, 15)).astype(float)
    R[rng.random(R.shape) > 0.6] = np.nan
    U, V = rng.gamma(0.2, 1.0, (20, K)), rng.gamma(0.2, 1.0, (15, K))
    row_sums, col_sums = split(ObservedMatrix.of(R), U, V, Stream(seed_words(1)).key())
    for sums, axis in ((row_sums, 1), (col_sums, 0)):
        assert np.all(sums >= 0) and np.all(sums % 1 == 0)
        np.testing.assert_array_equal(sums.sum(axis=1), np.nansum(R, axis=axis))
    np.testing.assert_array_equal(row_sums.sum(axis=0), col_sums.sum(axis=0))


def test_split_counts_of_products_that_underflow():
    rng = np.random.default_rng(0)
    X = ObservedMatrix.of(rng.poisson(30.0, (12, 10)))
    U, V = rng.gamma(1.0, 1.0, (12, 4)), rng.gamma(1.0, 1.0, (10, 4))
    key = Stream(seed_words(2)).key()
    plain = split(X, U, V, key)
    for exponent in (-600, 600):
        scale = 2.0**exponent
        for sums, expected in zip(split(X, U * scale, V * scale, key), plain, strict=True):
            np.testing.assert_array_equal(sums, expected)


def plain_nmf(R, F, G):
    """Multiplicative update of F for the Kullback-Leibler divergence over the observed entries."""
    seen = ~np.isnan(R)
    ratio = np.where(seen, R, 0.0) / np.maximum(F @ G.T, 1e-12)
    new = F * (ratio @ G) / np.maximum(seen @ G, 1e-12)
    return np.where(seen.any(axis=1, keepdims=True), new, F)


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("K", [1, 4])
def test_nmf(kind, K):
    X = data(kind, Poisson())
    R, stream = X.to_array(), Stream(seed_words(5))
    scale = np.sqrt(np.nanmean(R) / K)
    U, V = (dist.Exponential(rate=1 / scale).draw(stream, (n, K)) for n in X.shape)
    errors = []
    for _ in range(4):
        U = plain_nmf(R, U, V)
        V = plain_nmf(R.T, V, U)
        errors.append(np.nanmean((R - U @ V.T) ** 2))
    fitted = baseline(X, "NMF", K, iterations=4, random_state=5)
    assert_close(fitted.U, U)
    assert_close(fitted.V, V)
    assert_close(fitted.train_mse, [errors])
