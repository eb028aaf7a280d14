"""A random state of a model, and the comparison of a conditional with the joint density.

The joint comes from the library's own log densities and, apart from them, from the plain ones in
`joint`: as functions of one variable, both differ from the log conditional by a constant.
"""

from dataclasses import dataclass, replace

import numpy as np

from bayesmf.data.observed import ObservedMatrix
from bayesmf.likelihoods import Censored, Likelihood, Ordinal
from bayesmf.likelihoods.base import Fit
from bayesmf.model.biases import level, without
from bayesmf.priors import MultivariateNormal
from bayesmf.sampler.start import initial_state
from bayesmf.sampler.state import Problem, State
from bayesmf.streams import Stream, seed_words
from tests.exactness.cases import Case, Data
from tests.exactness.joint import Cells, latent_log_density

TOLERANCE = 1e-9
GROUPS = ("rows", "cols")


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


def kept(X: ObservedMatrix) -> ObservedMatrix:
    """The same with values of its own, which no later sweep overwrites."""
    rows, cols = (replace(view, stored=view.values.copy()) for view in (X.rows, X.cols))
    return replace(X, rows=rows, cols=cols)


def random_own(likelihood: Likelihood, shape: tuple[int, int], rng: np.random.Generator) -> dict:
    """Values of a likelihood's own variables that are likely under no prior in particular."""
    own = {}
    for name, variable in likelihood.variables(shape).items():
        if name == "cuts":
            own[name] = np.sort(rng.normal(size=variable.shape))
        elif name in ("noise_rows", "noise_cols"):
            own[name] = rng.gamma(4.0, 0.25, variable.shape)
        elif name in ("dof", "noise_rows_shape", "noise_cols_shape"):
            own[name] = np.asarray(2.2 + rng.gamma(2.0))
        else:
            own[name] = rng.gamma(4.0, 0.1, variable.shape)
    return own


@dataclass
class Setup:
    """A random state of a model on some data, and both joints.

    ``X`` are the data as sweeps read them, ``working`` what the likelihood makes of them, and
    ``latent`` the latent variables of that; ``problem`` has the targets less the state's biases, as
    half-sweeps see them, and ``work`` is all that they see.
    """

    case: Case
    data: Data
    seed: int = 0

    def __post_init__(self) -> None:
        self.gaps: list[float] = []
        self.rng = np.random.default_rng([self.seed, *self.data.shape])
        X = self.case.prepare(matrix(self.data, self.rng))
        low, high = self.case.bounds(X)
        problem = Problem.of(X, self.case.model, self.data.rank)
        errors = 1.0 if X.errors is None else X.errors
        self.cells = Cells(*problem.X.triples(), errors, low, high)
        self.model, self.X = problem.model, problem.X
        self.plain = self.case.plain(self.data.rank, self.model)
        state = initial_state(problem, "data", self.seed)
        assert set(state.noise) == set(self.model.likelihood.variables(X.shape))
        self.state = replace(state, noise=random_own(self.model.likelihood, X.shape, self.rng))
        found = self.model.likelihood.working(self.fit(), self.state.noise, Stream(seed_words(0)))
        self.working = replace(found, X=kept(found.X))
        self.work = replace(self.working, X=without(self.working.X, state.biases))
        self.problem = replace(problem, X=self.work.X)
        self.latent = self._latent()
        for group, prior in zip(GROUPS, (self.model.rows, self.model.cols), strict=True):
            if isinstance(prior, MultivariateNormal):
                own = {"precision": spd(self.rng, self.data.rank)}
                self.state = altered(self.state, group, own)

    def fit(self, X: ObservedMatrix | None = None) -> Fit:
        """The state's fit to the data, or to others."""
        beside = level(self.state.biases)
        return Fit(self.X if X is None else X, self.state.U, self.state.V, beside=beside)

    def _latent(self) -> dict:
        """Latent variables of the working data."""
        found, likelihood = {}, self.model.likelihood
        if isinstance(likelihood, Censored | Ordinal):
            found["y"] = self.working.X.rows.values
        if "dof" in self.state.noise:
            found["w"] = self.working.weights.entries[0] * np.asarray(self.cells.errors) ** 2
        if getattr(self.working, "exposures", None) is not None:
            found["theta"] = self.working.exposures[0]
        return found

    def but(self, *names: str) -> dict:
        """The latent variables without these."""
        return {name: value for name, value in self.latent.items() if name not in names}

    def joints(self, state, marginal: bool = False, latent: dict | None = None) -> np.ndarray:
        """Both log joints; ``marginal``: mixing variances integrated out.

        They are of the latent variables too: those of the setup, unless others are given.
        """
        latent = self.latent if latent is None else latent

        def keep(own: dict) -> dict:
            return {k: v for k, v in own.items() if not (marginal and k == "variance")}

        values = (state.U, state.V, keep(state.rows), keep(state.cols), state.shared, state.noise)
        values += (state.biases,)
        library = self.model.log_joint(self.X, *values)
        if latent:
            products = state.U[self.cells.i] * state.V[self.cells.j]
            beside = level(state.biases)
            means = products.sum(axis=1)
            if beside:
                means = means + beside[0][self.cells.i] + beside[1][self.cells.j]
            library += latent_log_density(self.cells, means, products, state.noise, latent)
        return np.array([library, self.plain.log_joint(self.cells, *values, latent)])

    def compare(self, old, new, conditional: float, **options) -> None:
        """The joints' change is that of the conditional."""
        self.equal(self.joints(old, **options), self.joints(new, **options), conditional)

    def equal(self, before, after, change) -> None:
        """After is before plus the change, relative to the size of the terms."""
        assert np.isfinite([before, after]).all()
        size = np.maximum(np.maximum(np.abs(before), np.abs(after)), max(abs(change), 1.0))
        self.gaps.append(float(np.max(np.abs(after - before - change) / size)))
        assert self.gaps[-1] <= TOLERANCE


def altered(state, group: str, values: dict) -> State:
    return replace(state, **{group: {**getattr(state, group), **values}})


def with_factors(state, axis: int, U: np.ndarray) -> State:
    return replace(state, U=U) if axis == 0 else replace(state, V=U)


def some_rows(n: int) -> list[int]:
    return sorted({0, 1, 2, n - 1})


def moved_entries(s: Setup, x: np.ndarray, nonnegative: bool) -> np.ndarray:
    if nonnegative:
        return x * np.exp(0.7 * s.rng.normal(size=np.shape(x)))
    return x + (np.abs(x) + 0.1) * s.rng.normal(size=np.shape(x))
