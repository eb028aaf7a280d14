"""A slow Gibbs sweep, written plainly from the mathematics, on the library's random numbers.

Only seeds, keys and the primitives that turn a stream into one draw come from the library. Every
conditional is stated here again, as a textbook would: explicit sums over the observed entries,
residuals from scratch for every entry, dense factorisations, cofactors. Shapes must be small.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import kv

from bayesmf.kernels import random, special
from bayesmf.likelihoods import Poisson
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
from bayesmf.priors.hyperpriors import ARD, GammaRate, InverseGaussian, TruncatedNormalHyper
from bayesmf.streams import Stream


class Row:
    """The random numbers of one row of one site, one after the other."""

    def __init__(self, key, row):
        self.state = np.empty(4, np.uint64)
        random.seed_stream(key, row, self.state)

    def uniform(self):
        return random.uniform(self.state)

    def normal(self):
        return random.normal(self.state)

    def normals(self, n):
        return np.array([self.normal() for _ in range(n)])

    def gamma(self, shape, rate):
        return random.gamma(self.state, float(shape)) / rate

    def truncated(self, p, b):
        """Density exp(-p x^2 / 2 + b x) on x >= 0."""
        return special.truncated_normal(self.state, float(p), float(b))

    def gig_half(self, a, b):
        return special.gig_half(self.state, float(a), float(b))

    def gig_three_halves(self, a, b):
        return special.gig_three_halves(self.state, float(a), float(b))

    def binomial(self, n, p):
        return special.binomial(self.state, float(n), float(p))

    def log_scale(self, exponent, weights):
        """Density exp(exponent x - sum over powers p of weight e^(p x) / 2)."""
        logs = [np.log(weights[p]) if p in weights else -np.inf for p in (-2, -1, 1, 2)]
        return special.log_scale(self.state, float(exponent), *map(float, logs))


def table(key, shape, draw):
    """Entries one by one: every row has its own stream, draw(row, i, k) gives entry (i, k)."""
    out = np.empty(shape)
    for i in range(shape[0]):
        row = Row(key, i)
        for k in range(shape[1]):
            out[i, k] = draw(row, i, k)
    return out


def vector(key, n, draw):
    """Entries one by one, each from a stream of its own."""
    return table(key, (n, 1), lambda row, k, _: draw(row, k))[:, 0]


@dataclass
class Side:
    """Rows or columns: prior, data (n, m) with NaN where missing, factors (n, K), variables."""

    prior: object
    R: np.ndarray
    X: np.ndarray
    own: dict
    shared: dict

    @property
    def n(self):
        return self.X.shape[0]

    @property
    def K(self):
        return self.X.shape[1]

    def level(self, name):
        """A precision or rate per factor (K,), fixed or learnt."""
        value = getattr(self.prior, name)
        if isinstance(value, ARD):
            value = self.own["relevance"] if "relevance" in self.own else self.shared["relevance"]
        return np.full(self.K, value, dtype=float)

    def sums(self):
        return self.X.sum(axis=0)

    def squares(self):
        return (self.X**2).sum(axis=0)


# The sweep


def sweep(problem, state):
    """All variables after one sweep from ``state``, by name; not from a mere starting point."""
    stream = Stream(state.seed, state.chain, state.sweep + 1)
    likelihood, R = problem.model.likelihood, problem.X.to_array()
    own = [{name: value.copy() for name, value in h.items()} for h in (state.rows, state.cols)]
    shared = dict(state.shared)
    rows = Side(problem.model.rows, R, state.U.copy(), own[0], shared)
    cols = Side(problem.model.cols, R.T, state.V.copy(), own[1], shared)
    counts = isinstance(likelihood, Poisson)

    if problem.scale_move:
        move_scales(problem.model.name, rows, cols, stream)
        rotate(rows, cols, stream)
    parts = split_counts(R, rows.X, cols.X, stream.key()) if counts else None
    for number, (side, other) in enumerate(((rows, cols), (cols, rows))):
        draw_hyper(side, stream)
        if counts:
            draw_gammas(side, other.X, parts[number], stream.key())
        else:
            tau = float(state.noise["noise_precision"])
            draw_gaussians(side, other.X, tau, stream)
            draw_left_out(side, stream)
    if shared:
        shared["relevance"] = draw_relevance([rows, cols], stream.key())

    after = {"U": rows.X, "V": cols.X, **shared}
    after |= {f"rows.{name}": value for name, value in rows.own.items()}
    after |= {f"cols.{name}": value for name, value in cols.own.items()}
    if not counts:
        error = np.nansum((R - rows.X @ cols.X.T) ** 2)
        shape = likelihood.alpha + np.count_nonzero(~np.isnan(R)) / 2
        tau = Row(stream.key(), 0).gamma(shape, likelihood.beta + error / 2)
        after["noise_precision"] = np.array(tau)
    return after


# Factors under a Gaussian likelihood


STAY = -0.5  # of a row in what it becomes, or the cosine of the angle by which it goes round


def draw_gaussians(side, F, tau, stream):
    """Rows in turn; the volume prior of a row depends on the rows drawn before it."""
    prior, key, draw = side.prior, stream.key(), draw_row
    if prior.nonnegative:
        draw = draw_crowded if are_crowded(side, F, tau) else draw_nonnegative
    elif getattr(prior, "update", "rows") == "entries":
        draw = draw_entries
    for i in range(side.n):
        seen = ~np.isnan(side.R[i])
        draw(Row(key, i), side, i, F[seen], side.R[i, seen], tau)


def draw_row(row, side, i, F, r, tau):
    """A whole row about the mean of N(A^-1 h, A^-1), on the other side of it."""
    A, h = conditional(side, i, F, r, tau)
    L = np.linalg.cholesky(A)
    mean, noise = np.linalg.solve(A, h), np.linalg.solve(L.T, row.normals(side.K))
    side.X[i] = mean + STAY * (side.X[i] - mean) + np.sqrt(1 - STAY**2) * noise


def row_terms(side, i):
    """Prior precision matrix and linear term of row i."""
    prior, zero = side.prior, np.zeros(side.K)
    if isinstance(prior, Normal):
        return np.diag(side.level("precision")), zero
    if isinstance(prior, MultivariateNormal):
        return side.own["precision"], side.own["precision"] @ side.own["mean"]
    if isinstance(prior, Laplace):
        return np.diag(1 / side.own["variance"][i]), zero
    if isinstance(prior, Exponential):
        return np.diag(zero), -side.level("rate")
    if isinstance(prior, L21):
        return np.full((side.K, side.K), prior.strength), zero
    if isinstance(prior, TruncatedNormal):
        mean = np.broadcast_to(side.own.get("mean", prior.mean), side.X.shape)[i]
        precision = np.broadcast_to(side.own.get("precision", prior.precision), side.X.shape)[i]
        if isinstance(prior.precision, TruncatedNormalHyper):  # the mean is integrated out
            mean = np.full(side.K, prior.precision.mean)
            precision = 1 / (1 / precision + 1 / prior.precision.precision)
        return np.diag(precision), precision * mean
    assert isinstance(prior, Volume)
    return volume_precision(side, i), zero


def conditional(side, i, F, r, tau):
    """Precision matrix and linear term of row i, given the other side."""
    A, h = row_terms(side, i)
    for f, value in zip(F, r, strict=True):
        A = A + tau * np.outer(f, f)
        h = h + tau * value * f
    return A, h


def draw_entries(row, side, i, F, r, tau):
    """Real-valued entries of a row in turn, each with the residual rebuilt from scratch."""
    x, (prior, zero) = side.X[i], row_terms(side, i)
    assert not zero.any()
    for k in range(side.K):
        p = prior[k, k] + tau * np.sum(F[:, k] ** 2)
        mean = tau * np.sum((r - F @ x + x[k] * F[:, k]) * F[:, k]) / p
        x[k] = mean + STAY * (x[k] - mean) + np.sqrt(1 - STAY**2) * row.normal() / np.sqrt(p)


def draw_nonnegative(row, side, i, F, r, tau):
    """A row between the walls at zero; if it is not fit for that, its entries four times over."""
    x, K, z = side.X[i], side.K, row.normals(side.K)
    A, h = conditional(side, i, F, r, tau)
    if is_fit(A, h) and not (K > 24 and isinstance(side.prior, Volume)):
        S = np.linalg.inv(A)
        v = np.linalg.inv(np.linalg.cholesky(A)).T @ z
        x[:] = swing(x.copy(), v, S @ h, S, np.arccos(STAY))
        return
    for k in list(range(K)) * 4:
        x[k] = row.truncated(A[k, k], h[k] - A[k] @ x + A[k, k] * x[k])


def draw_crowded(row, side, i, F, r, tau):
    """Nonnegative entries of a row in turn, each round its mean if that is above zero."""
    x = side.X[i]
    A, h = conditional(side, i, F, r, tau)
    for k in range(side.K):
        b = h[k] - A[k] @ x + A[k, k] * x[k]
        if b > 0:
            one, S = np.array([b / A[k, k]]), np.array([[1 / A[k, k]]])
            x[k] = swing(x[k : k + 1], row.normals(1) * np.sqrt(S[0]), one, S, np.arccos(STAY))[0]
        else:
            x[k] = row.truncated(A[k, k], b)


def are_crowded(side, F, tau):
    """Whether deviations of most of some rows, of many factors, are wide beside their room."""
    if side.K < 17 or isinstance(side.prior, Volume):
        return False
    found, step = [], side.n // 16 + 1
    for i in range(0, side.n, step):
        seen = ~np.isnan(side.R[i])
        A, _ = conditional(side, i, F[seen], side.R[i, seen], tau)
        room = np.sqrt(tau * np.sum(side.R[i, seen] ** 2) / A.sum())
        found.append(np.sum(1 / np.sqrt(np.diag(A))) > 10 * room)
    return sum(found) > len(found) / 2


def is_fit(A, h):
    """Whether no pivot of A is tiny, and the mean not far below zero nor the room narrow."""
    rest = A.copy()
    for k in range(len(A)):
        if not rest[k, k] > 1e-8 * A[k, k]:
            return False
        rest[k + 1 :] -= np.outer(rest[k + 1 :, k], rest[k]) / rest[k, k]
    S = np.linalg.inv(A)
    deviations = np.sqrt(np.diag(S))
    near = np.maximum(-(S @ h) / deviations, 0).sum() < 4 * len(A)
    room = np.abs(h).sum() / np.abs(A).sum()
    return near and (len(A) <= 16 or deviations.sum() < 128 * room)


def swing(x, v, mean, S, angle):
    """Round the mean by an angle, with the velocity reflected at each wall."""
    while True:
        off = x - mean
        radius, phase = np.hypot(off, v), np.arctan2(v, off)
        meets = np.full(len(x), np.inf)
        for k in np.flatnonzero(radius > abs(mean)):  # mean + radius cos(t - phase) falls to 0
            meets[k] = (phase[k] + np.arccos(-mean[k] / radius[k])) % (2 * np.pi)
        k = int(np.argmin(meets))
        t = min(meets[k], angle)
        x, v = mean + off * np.cos(t) + v * np.sin(t), v * np.cos(t) - off * np.sin(t)
        if meets[k] >= angle:
            return x
        angle -= t
        x[k] = 0
        v = v - 2 * v[k] / S[k, k] * S[k]


def volume_precision(side, i):
    """Precision 2 gamma adj(S) of row i, S the moments of all other rows."""
    gamma = 10.0**side.prior.log10_gamma
    adjugate = adjugate_of_moments(np.delete(side.X, i, axis=0))
    return 2 * gamma * adjugate + side.prior.ridge * np.eye(side.K)


def integers(X):
    """Whole numbers N and an integer d with X = N / d, exactly: doubles are binary fractions."""
    ratios = [[float(x).as_integer_ratio() for x in row] for row in X]
    d = max((below for row in ratios for _, below in row), default=1)
    return [[above * (d // below) for above, below in row] for row in ratios], d


def determinant(M):
    """Exact determinant of a matrix of whole numbers (Bareiss' elimination)."""
    M, sign, last = [list(row) for row in M], 1, 1
    for k in range(len(M)):
        pivot = next((i for i in range(k, len(M)) if M[i][k]), None)
        if pivot is None:
            return 0
        if pivot != k:
            M[k], M[pivot], sign = M[pivot], M[k], -sign
        for i in range(k + 1, len(M)):
            for j in range(k + 1, len(M)):
                M[i][j] = (M[i][j] * M[k][k] - M[i][k] * M[k][j]) // last
        last = M[k][k]
    return sign * last


def adjugate_of_moments(X):
    """Cofactors of X^T X, exact but for one rounding of each."""
    N, d = integers(X)
    K = X.shape[1]
    S = [[sum(x[a] * x[b] for x in N) for b in range(K)] for a in range(K)]
    scale = d ** (2 * (K - 1))

    def cofactor(a, b):
        minor = [[S[i][j] for j in range(K) if j != b] for i in range(K) if i != a]
        return (-1) ** (a + b) * determinant(minor) / scale

    return np.array([[cofactor(a, b) for a in range(K)] for b in range(K)])


# Factors under a Poisson likelihood


def split_counts(R, U, V, key):
    """Throw every count over the factors: sums over the columns (n, K) and over the rows (m, K)."""
    Z = np.zeros((*R.shape, U.shape[1]))
    for i in range(R.shape[0]):
        row = Row(key, i)
        for j in np.flatnonzero(R[i] > 0):  # missing cells compare as false
            Z[i, j] = split_one(row, int(R[i, j]), U[i] * V[j])
    return Z.sum(axis=1), Z.sum(axis=0)


def split_one(row, count, weights):
    """Multinomial(count, weights): unit by unit if the count is small, else by binomials."""
    K = len(weights)
    parts = np.zeros(K)
    if K == 1:
        parts[0] = count
    elif count <= min(20 * K, 200 + 8 * K):
        for _ in range(count):
            parts[np.count_nonzero(np.cumsum(weights)[:-1] < row.uniform() * weights.sum())] += 1
    else:
        for k in range(K - 1):
            if parts.sum() < count:
                share = weights[k] / weights[k:].sum()
                parts[k] = row.binomial(count - parts.sum(), share)
        parts[-1] = count - parts.sum()
    return parts


def draw_gammas(side, F, parts, key):
    """Factors from Gamma(shape + counts, rate + sum of the other side's factors)."""
    prior = side.prior
    shape = prior.shape if isinstance(prior, Gamma) else 1.0
    if isinstance(prior.rate, GammaRate):
        rate = np.tile(side.own["rate"], (1, side.K))
    else:
        rate = np.tile(side.level("rate"), (side.n, 1))

    def draw(row, i, k):
        seen = ~np.isnan(side.R[i])
        return row.gamma(shape + parts[i, k], rate[i, k] + F[seen, k].sum())

    side.X[:] = table(key, side.X.shape, draw)


# Hyper-variables


def draw_hyper(side, stream):
    """One side's own hyper-variables, given its factors."""
    prior = side.prior
    if "relevance" in side.own:
        side.own["relevance"] = draw_relevance([side], stream.key())
    if isinstance(prior, MultivariateNormal):
        draw_normal_wishart(side, stream)
    elif isinstance(prior, Laplace):
        draw_laplace(side, stream)
    elif isinstance(prior, TruncatedNormal) and isinstance(prior.precision, TruncatedNormalHyper):
        draw_truncated_hyper(side, stream)
    elif isinstance(prior, Gamma) and isinstance(prior.rate, GammaRate):
        draw_rates(side, stream)


def draw_relevance(sides, key):
    """ARD: Gamma(alpha + ..., beta + ...) over the factors of all sides that share it."""
    names = [name for name in ("precision", "rate") if hasattr(sides[0].prior, name)]
    ard = getattr(sides[0].prior, names[0])
    shape, rate = ard.alpha, np.full(sides[0].K, ard.beta, dtype=float)
    for side in sides:
        if isinstance(side.prior, Normal):
            shape, rate = shape + side.n / 2, rate + side.squares() / 2
        elif isinstance(side.prior, Exponential):
            shape, rate = shape + side.n, rate + side.sums()
        else:
            shape, rate = shape + side.n * side.prior.shape, rate + side.sums()
    return vector(key, len(rate), lambda row, k: row.gamma(shape, rate[k]))


def draw_normal_wishart(side, stream):
    """Normal-inverse Wishart: precision matrix by Bartlett's decomposition, then the mean."""
    prior, X, n, K = side.prior.hyper, side.X, side.n, side.K
    mu0, beta0, nu0 = np.asarray(prior.mean), prior.beta, prior.dof
    average = X.mean(axis=0)
    W = np.array(prior.scale)
    for x in X:
        W = W + np.outer(x - average, x - average)
    W = W + beta0 * n / (beta0 + n) * np.outer(average - mu0, average - mu0)

    chi2 = vector(stream.key(), K, lambda row, k: row.gamma((nu0 + n - k) / 2, 0.5))
    below = table(stream.key(), (K, K), lambda row, *_: row.normal())
    A = np.diag(np.sqrt(chi2)) + np.tril(below, -1)
    T = np.linalg.inv(np.linalg.cholesky(W)).T @ A
    precision = T @ T.T

    z = vector(stream.key(), K, lambda row, _: row.normal())
    L = np.linalg.cholesky((beta0 + n) * precision)
    mean = (beta0 * mu0 + n * average) / (beta0 + n) + np.linalg.inv(L).T @ z
    side.own.update(mean=mean, precision=precision)


def draw_laplace(side, stream):
    """Mixing variances s ~ GIG(1/2, 1/scale^2, x^2) and, if learnt, eta."""
    hyper, X, own = side.prior.scale, side.X, side.own
    learnt = isinstance(hyper, InverseGaussian)
    if learnt:
        a, b = hyper.shape / hyper.mean**2, hyper.shape
    if learnt and hyper.reading == "scale":  # 1/eta ~ GIG(3/2, b + 2|x|, a), s integrated out

        def draw_eta(row, i, k):
            return 1 / row.gig_three_halves(b + 2 * abs(X[i, k]), a)

        own["eta"] = table(stream.key(), X.shape, draw_eta)
        scale = own["eta"]
    elif learnt:
        scale = 1 / np.sqrt(own["eta"])
    else:
        scale = np.full(X.shape, hyper)

    def draw_variance(row, i, k):
        return row.gig_half(1 / scale[i, k] ** 2, X[i, k] ** 2)

    own["variance"] = table(stream.key(), X.shape, draw_variance)
    if learnt and hyper.reading == "rate":

        def draw_eta(row, i, k):
            return row.gig_half(own["variance"][i, k] + a, b)

        own["eta"] = table(stream.key(), X.shape, draw_eta)


def draw_truncated_hyper(side, stream):
    """The precision of every entry's truncated normal."""
    hyper, X, own = side.prior.precision, side.X, side.own

    def draw_precision(row, i, k):
        return row.gamma(hyper.shape, hyper.rate + (X[i, k] - own["mean"][i, k]) ** 2 / 2)

    own["precision"] = table(stream.key(), X.shape, draw_precision)


def draw_left_out(side, stream):
    """Means of entries, which the factors were drawn without."""
    prior, X, own = side.prior, side.X, side.own
    if not (
        isinstance(prior, TruncatedNormal) and isinstance(prior.precision, TruncatedNormalHyper)
    ):
        return
    hyper = prior.precision

    def draw_mean(row, i, k):
        tau = own["precision"][i, k]
        centre = (tau * X[i, k] + hyper.precision * hyper.mean) / (tau + hyper.precision)
        return centre + row.normal() / np.sqrt(tau + hyper.precision)

    own["mean"] = table(stream.key(), X.shape, draw_mean)


def draw_rates(side, stream):
    """One gamma rate per row."""
    hyper, X = side.prior.rate, side.X
    shape = hyper.shape + side.K * side.prior.shape

    def draw(row, i, _):
        return row.gamma(shape, hyper.shape / hyper.mean + X[i].sum())

    side.own["rate"] = table(stream.key(), (side.n, 1), draw)


# The scale move: U_k -> c U_k, V_k -> V_k / c with c from its own density, model by model


def move_scales(name, u, v, stream):
    """Draw a scale per factor, or one for all, and move factors and variables along.

    Factors that share a determinant take three turns, each seeing those moved before it.
    """
    density, K = SCALE_MOVES[name], u.K
    if density is None:
        return
    key = stream.key()
    if name in ONE_SCALE:
        c = np.exp(Row(key, 0).log_scale(*density(u, v, None)))
        for k in range(K):
            rescale_both(u, v, k, c)
        return
    for turn in range(3 if name in DETERMINANT else 1):
        for k in range(K):
            c = np.exp(Row(key, turn * K + k).log_scale(*density(u, v, k)))
            rescale_both(u, v, k, c)


def rescale_both(u, v, k, c):
    rescale(u, k, c)
    rescale(v, k, 1 / c)


def rescale(side, k, c):
    """Multiply factor k by c and move along what goes with it."""
    prior, own = side.prior, side.own
    side.X[:, k] *= c
    if isinstance(prior, MultivariateNormal):
        own["mean"][k] *= c
        own["precision"][k, :] /= c
        own["precision"][:, k] /= c
    elif isinstance(prior, Laplace) and isinstance(prior.scale, InverseGaussian):
        own["eta"][:, k] *= c if prior.scale.reading == "scale" else c**-2
    elif isinstance(prior, TruncatedNormal) and isinstance(prior.precision, TruncatedNormalHyper):
        own["mean"][:, k] *= c
        own["precision"][:, k] /= c**2


# Rotations of pairs of factors


def log_law(prior):
    """Log density of an entry, its own hyper-variables integrated out; None: there is no move."""
    if isinstance(prior, Normal) and not isinstance(prior.precision, ARD):
        return np.zeros_like
    if not isinstance(prior, Laplace):
        return None
    hyper = prior.scale
    if not isinstance(hyper, InverseGaussian):
        return lambda x: -np.abs(x) / hyper
    if hyper.reading == "rate":
        return None

    def mixed(x):
        """The integral of eta^-5/2 exp(-(|x| + shape / 2) / eta - shape eta / (2 mean^2))."""
        b, a = hyper.shape + 2 * np.abs(x), hyper.shape / hyper.mean**2
        return np.log(kv(1.5, np.sqrt(a * b)) / b**0.75)

    return mixed


def rotate(u, v, stream):
    """Every factor in one random pair, each pair by an angle from the slice about 0."""
    laws = [log_law(side.prior) for side in (u, v)]
    if None in laws or laws == [np.zeros_like] * 2:
        return
    key, order = stream.key(), list(range(u.K))
    row = Row(key, 0)
    for k in range(u.K - 1, 0, -1):
        j = int(row.uniform() * (k + 1))
        order[k], order[j] = order[j], order[k]
    for number, (k, m) in enumerate(zip(order[::2], order[1::2], strict=False)):
        row = Row(key, number + 1)

        def turned(side, angle, pair=(k, m)):
            turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
            return side.X[:, pair] @ np.array(turn)

        def density(angle, turned=turned):
            return sum(law(turned(s, angle)).sum() for law, s in zip(laws, (u, v), strict=True))

        high = np.pi / 2 * row.uniform()
        low = high - np.pi / 2
        level = density(0.0) + np.log(row.uniform())
        while density(angle := low + (high - low) * row.uniform()) <= level:
            low, high = (angle, high) if angle < 0 else (low, angle)
        for side in (u, v):
            side.X[:, (k, m)] = turned(side, angle)


def of_c(p, a, b):
    """The law c ~ GIG(p, a, b) as a density of log c."""
    return p, {1: a, -1: b}


def of_square(p, a, b):
    """The law c^2 ~ GIG(p, a, b) as a density of log c."""
    return 2 * p, {2: a, -2: b}


def scale_normal(u, v, k):
    a = u.level("precision")[k] * u.squares()[k]
    return of_square((u.n - v.n) / 2, a, v.level("precision")[k] * v.squares()[k])


def scale_wishart(u, v, k):
    a = v.own["precision"][k, k] * v.prior.hyper.scale[k, k]
    b = u.own["precision"][k, k] * u.prior.hyper.scale[k, k]
    return of_square((v.prior.hyper.dof - u.prior.hyper.dof) / 2, a, b)


def scale_laplace(u, v, k):
    a, b = (2 * np.abs(side.X[:, k]).sum() / side.prior.scale for side in (u, v))
    return of_c(u.n - v.n, a, b)


def scale_laplace_eta(u, v, k):
    """Both readings; eta moves along as c (scale) or as 1 / c^2 (rate)."""
    hyper = u.prior.scale
    a, b = hyper.shape / hyper.mean**2, hyper.shape
    eta_u, eta_v = u.own["eta"][:, k], v.own["eta"][:, k]
    up = a * eta_u.sum() + b * (1 / eta_v).sum()
    down = b * (1 / eta_u).sum() + a * eta_v.sum()
    if hyper.reading == "scale":
        return of_c(-(u.n - v.n) / 2, up, down)
    return of_square((u.n - v.n) / 2, down, up)


def scale_volume(u, v, k):
    determinant = np.linalg.det(u.X.T @ u.X)
    a = 2 * 10.0**u.prior.log10_gamma * determinant + u.prior.ridge * u.squares()[k]
    return of_square((u.n - v.n) / 2, a, v.prior.precision * v.squares()[k])


def scale_volume_columns(u, v, k):
    determinant = np.linalg.det(v.X.T @ v.X)
    b = 2 * 10.0**v.prior.log10_gamma * determinant
    return of_square((u.n - v.n) / 2, u.prior.precision * u.squares()[k], b)


def scale_exponential(u, v, k):
    a, b = (2 * side.level("rate")[k] * side.sums()[k] for side in (u, v))
    return of_c(u.n - v.n, a, b)


def scale_truncated_hyper(u, v, k):
    hyper = u.prior.precision
    means = [hyper.precision * np.sum(side.own["mean"][:, k] ** 2) for side in (u, v)]
    precisions = [2 * hyper.rate * np.sum(side.own["precision"][:, k]) for side in (u, v)]
    p = -(hyper.shape - 1) * (u.n - v.n)
    return of_square(p, means[0] + precisions[1], precisions[0] + means[1])


def scale_l21(u, v, _):
    a, b = (side.prior.strength * np.sum(side.X.sum(axis=1) ** 2) for side in (u, v))
    return of_square(u.K * (u.n - v.n) / 2, a, b)


def scale_l21_normal(u, v, _):
    a = u.prior.strength * np.sum(u.X.sum(axis=1) ** 2)
    return of_square(u.K * (u.n - v.n) / 2, a, v.prior.precision * np.sum(v.X**2))


def scale_exponential_normal(u, v, k):
    a = 2 * u.level("rate")[k] * u.sums()[k]
    return u.n - v.n, {1: a, -2: v.level("precision")[k] * v.squares()[k]}


def scale_exponential_laplace(u, v, k):
    a = 2 * u.level("rate")[k] * u.sums()[k]
    return of_c(u.n - v.n, a, 2 * np.abs(v.X[:, k]).sum() / v.prior.scale)


def scale_laplace_eta_hyper(u, v, k):
    """Laplace rows with eta (scale reading), truncated normal columns with their hyper-variables.

    c^(-I/2) exp(-(a c sum eta + b / c sum 1/eta) / 2) from the rows; the columns' share is that of
    ``scale_truncated_hyper``.
    """
    hyper, other = u.prior.scale, v.prior.precision
    eta = u.own["eta"][:, k]
    weights = {
        1: hyper.shape / hyper.mean**2 * eta.sum(),
        -1: hyper.shape * (1 / eta).sum(),
        -2: other.precision * np.sum(v.own["mean"][:, k] ** 2),
        2: 2 * other.rate * np.sum(v.own["precision"][:, k]),
    }
    return -u.n / 2 + 2 * (other.shape - 1) * v.n, weights


def scale_gamma(u, v, k):
    shapes = [side.prior.shape if isinstance(side.prior, Gamma) else 1.0 for side in (u, v)]
    a, b = (2 * np.sum(gamma_rates(side, k) * side.X[:, k]) for side in (u, v))
    return of_c(shapes[0] * u.n - shapes[1] * v.n, a, b)


def gamma_rates(side, k):
    """The rate of every entry of column k."""
    if isinstance(side.prior.rate, GammaRate):
        return side.own["rate"][:, 0]
    return side.level("rate")[k]


SCALE_MOVES = {
    "GGG": scale_normal,
    "GGGU": scale_normal,
    "GGGA": scale_normal,
    "GGGW": scale_wishart,
    "GLL": scale_laplace,
    "GLLI": scale_laplace_eta,
    "GVG": scale_volume,
    "GEE": scale_exponential,
    "GEEA": scale_exponential,
    "GTT": scale_normal,
    "GTTN": scale_truncated_hyper,
    "GL21": scale_l21,
    "GEG": scale_exponential_normal,
    "GVnG": scale_volume,
    "PGG": scale_gamma,
    "PGGG": scale_gamma,
    "exponential-normal": scale_exponential_normal,
    "exponential-laplace": scale_exponential_laplace,
    "eta-hyper": scale_laplace_eta_hyper,
    "normal-volume": scale_volume_columns,
    "l21-normal": scale_l21_normal,
    "counts": scale_gamma,
    "none": None,
}
ONE_SCALE = ("GL21", "l21-normal")
DETERMINANT = ("GVG", "GVnG", "normal-volume")
