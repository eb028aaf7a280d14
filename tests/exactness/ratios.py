"""A random state of a model, and the comparison of a conditional with the joint density.

The joint comes from the library's own log densities and, apart from them, from the plain ones in
`joint`: as functions of one variable, both differ from the log conditional by a constant.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import stats

from bayesmf.data.observed import ObservedMatrix
from bayesmf.model.biases import without
from bayesmf.priors import MultivariateNormal
from bayesmf.sampler.start import initial_state
from bayesmf.sampler.state import Problem, State
from tests.exactness.cases import Case, Data

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


@dataclass
class Setup:
    """A random state of a model on some data, and both joints.

    ``X`` are the data; ``problem`` has them less the state's biases, as half-sweeps see them.
    """

    case: Case
    data: Data
    seed: int = 0

    def __post_init__(self) -> None:
        self.gaps: list[float] = []
        self.rng = np.random.default_rng([self.seed, *self.data.shape])
        X = matrix(self.data, self.rng)
        problem = Problem.of(X, self.case.model, self.data.rank)
        self.model, self.X = problem.model, problem.X
        self.plain = self.case.plain(self.data.rank, self.model)
        state = initial_state(problem, "data", self.seed)
        noise = {name: self.rng.gamma(4.0, 0.1, ()) for name in state.noise}
        self.state = replace(state, noise=noise)
        self.problem = replace(problem, X=without(problem.X, state.biases))
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
        values += (state.biases,)
        library = self.model.log_joint(self.X, *values)
        if Z is not None:
            i, j, R = self.cells
            products = state.U[i] * state.V[j]
            p = products / products.sum(axis=1, keepdims=True)
            library += stats.multinomial.logpmf(Z, R.astype(int), p).sum()
        return np.array([library, self.plain.log_joint(self.cells, *values, Z)])

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
