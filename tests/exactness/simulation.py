"""Statistics that tell an exact sampler from a wrong one: joint simulations and scale identities.

Joint simulation: data and state can be drawn together in two ways, from the prior downwards
("marginal"), or by a chain that alternates sweeps given the data and data given the state
("successive"). Every chain starts from a marginal draw, so under an exact sampler each of its
states is one too; chains are independent, so the spread of their averages is an honest error.
"""

from dataclasses import dataclass, replace
from itertools import combinations, islice
from pathlib import Path
from unittest import mock

import numpy as np
from scipy import stats

from bayesmf import ObservedMatrix, Problem, State, chain, hyperparameters, kernels, preset
from bayesmf.data import groups
from bayesmf.data.bounds import Bounds
from bayesmf.data.features import Features
from bayesmf.kernels import compile as compiling
from bayesmf.model.biases import Biases
from bayesmf.sampler import sweep as sweeping
from bayesmf.sampler.sweep import move_scales, sweep
from bayesmf.streams import Stream, seed_words
from bayesmf.updates import blocks, counts, normal, volume
from tests.exactness.added import ADDED
from tests.exactness.variations import VARIATIONS
from tests.helpers.verdicts import seeded

RANK = 2
QUANTILES = np.array([0.1, 0.25, 0.5, 0.75, 0.9])

_NOISE = {"alpha_tau": 4.0, "beta_tau": 4.0}
# Factors under the volume prior become nearly parallel where data are strong; chains then crawl.
_WEAK_DATA = {"alpha_tau": 40.0, "beta_tau": 160.0}
# Hyperparameters with moderate tails, under which chains on tiny matrices mix fast.
SETTINGS = {
    "GGG": {"lambda": 1.0},
    "GGGU": {"lambda": 1.0},
    "GGGA": {"alpha0": 3.0, "beta0": 3.0},
    "GGGW": {"nu0": 5.0, "W0": 2.0, "beta0": 2.0},
    "GLL": {"eta": 0.6},
    "GLLI": {"mu": 1.0, "lambda": 3.0},
    "GVG": {"gamma": 0.1, "lambda": 1.0, "ridge": 0.0, **_WEAK_DATA},
    "GEE": {"lambda": 1.0},
    "GEEA": {"alpha0": 4.0, "beta0": 4.0},
    "GTT": {"tau_U": 1.0, "tau_V": 0.7},
    "GTTN": {"tau_mu": 1.0, "a": 3.0, "b": 2.0},
    "GL21": {"lambda": 1.0},
    "GEG": {"lambda": 1.0},
    "GVnG": {"gamma": 0.1, "lambda": 1.0, "ridge": 0.0, **_WEAK_DATA},
    "PGG": {"a": 1.5, "b": 1.0},
    "PGGG": {"a": 1.5, "a_prime": 3.0, "b_prime": 1.0},
    **{name: own.settings for name, own in ADDED.items()},
}
# Further settings of a preset that take another path through the code, by name.
VARIANTS = {
    "GLLI-rate": ("GLLI", {"reading": "rate"}),
    "GGGW-mean": ("GGGW", {"mu0": 0.5}),
    "GTT-mean": ("GTT", {"mu_U": 0.5, "mu_V": -0.5}),
    "GTTN-mean": ("GTTN", {"mu_mu": 0.5}),
}
# With biases beside the factors, whose hyperparameters are fixed: data come and go.
BIASED = {f"{base}-biases": base for base in ("GGG", "GGGW", "GEE")}
BIASES = Biases(0.5, 1.0, 3.0, 3.0)
NAMES = [*SETTINGS, *VARIANTS]
PROPER = [name for name in (*NAMES, *BIASED) if name not in ("GVG", "GVnG")]


def model_of(name):
    """The preset, variant or variation of this name with the settings above."""
    if name in VARIATIONS:
        own = VARIATIONS[name]
        biases = BIASES if own.biased else None
        return replace(model_of(own.base), likelihood=own.likelihood, biases=biases)
    base, changes = VARIANTS.get(name, (BIASED.get(name, name), {}))
    noise = {name: value for name, value in _NOISE.items() if name in hyperparameters(base)}
    model = preset(base, **(noise | SETTINGS[base] | changes))
    return replace(model, biases=BIASES) if name in BIASED else model


def critical_value(family_error, comparisons, degrees=np.inf):
    """Two-sided Bonferroni limit of so many z-scores, or t-scores with these degrees of freedom."""
    return stats.t.isf(0.5 * family_error / comparisons, degrees)


def patched(owner, name, wrong):
    """A mutation: `wrong` gets the right function as its first argument."""

    def apply(monkeypatch):
        right = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args: wrong(right, *args))

    return apply


def rebuilt(module, line, wrong):
    """A mutation: the half-sweeps run kernels compiled from a module with one line changed.

    And those of the modules that use it.
    """

    def apply(monkeypatch):
        assert line in Path(module.__file__).read_text()
        monkeypatch.setattr(compiling, "CACHE", None)
        replaced = {}  # kernels by what they were
        for one in (module, *USERS.get(module, ())):
            source, broken = Path(one.__file__).read_text(), {"__name__": "broken"}
            source = source.replace(line, wrong) if one is module else source
            exec(compile(source, "broken", "exec"), broken)
            broken.update({n: replaced[id(v)] for n, v in vars(one).items() if id(v) in replaced})
            for name, value in vars(one).items():
                if getattr(value, "__module__", "") == one.__name__:
                    replaced[id(value)] = broken[name]
        for updates in (blocks, counts, normal, volume, sweeping):
            for name, value in list(vars(updates).items()):
                if id(value) in replaced:
                    monkeypatch.setattr(updates, name, replaced[id(value)])

    return apply


USERS = {  # modules of kernels that are compiled into others, in the order in which they use it
    kernels.walls: (kernels.nonnegative, kernels.rows, kernels.volume),
    kernels.nonnegative: (kernels.rows, kernels.volume),
}


# --- Joint simulation ---------------------------------------------------------------------------

# The last row has no entry; "dense" has one more missing cell, "sparse" takes the other kernels.
MASKS = {
    "dense": np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1], [0, 0, 0]], dtype=bool),
    "sparse": np.array(
        [[1, 0, 0, 1], [0, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0], [0, 0, 0, 0]], dtype=bool
    ),
    "complete": np.ones((6, 2), dtype=bool),
}


def with_values(X, values):
    """The matrix with the same cells and new values, given in row order."""
    order = np.argsort(X.rows.indices, kind="stable")
    rows = replace(X.rows, stored=values, filled=_filled(X.rows, values))
    cols = replace(X.cols, stored=values[order], filled=_filled(X.cols, values[order]))
    return replace(X, rows=rows, cols=cols)


def _filled(view, values):
    """The whole matrix of a view on the dense path, with these values."""
    if view.mask is None:
        return None
    whole = np.zeros(view.mask.shape)
    whole[view.mask > 0] = values
    return whole


def informed(X, undecomposed=False):
    """The matrix with more features of the rows than rows, one of the columns, and the pattern."""
    if undecomposed:
        with mock.patch.object(groups, "LARGEST", 1):
            X = informed(X)
            X.features(0)  # the pattern is worked out once
            return X
    rng = np.random.default_rng(X.shape)
    rows = {"many": rng.normal(size=(X.shape[0], 9))}
    rows, cols = Features.of(rows, alpha=4.0, beta=4.0), rng.normal(size=X.shape[1])
    return X.with_features(rows, Features.of(cols, alpha=4.0, beta=4.0), pattern="rows")


class Joint:
    """Data and state of one model on one mask, drawn together."""

    def __init__(self, name, mask, scale_move, seed):
        X = ObservedMatrix.of(np.ones(MASKS[mask].shape), MASKS[mask])
        self.cells = np.nonzero(MASKS[mask])
        self.errors, self.rounded = None, False
        if name in VARIATIONS:
            self.rounded = VARIATIONS[name].rounded
            if VARIATIONS[name].errors:
                i, j = self.cells
                self.errors = 0.5 + (3 * i + 5 * j) % 4 / 2
            if VARIATIONS[name].informed:
                X = informed(X, VARIATIONS[name].undecomposed)
        self.raw = replace(X, errors=self.errors)
        self.problem = Problem.of(self.raw, model_of(name), RANK, scale_move=scale_move)
        self.seed = seed_words(seeded(seed))
        self.rng = np.random.default_rng(seeded(seed))

    def prior_state(self, number):
        """Factors, hyper-variables and noise from the prior; the seed belongs to the number."""
        model, shape = self.problem.model, self.problem.X.shape
        stream = Stream(self.seed, number, 1)
        shared = {}
        if model.shared_ard:
            shared["relevance"] = model.shared_ard.prior().draw(stream, (RANK,))
        U, rows = model.rows.draw(stream, shape[0], RANK, shared)
        V, cols = model.cols.draw(stream, shape[1], RANK, shared)
        noise = model.likelihood.draw(shape, stream)
        biases = model.biases.draw(stream, shape) if model.biases else {}
        return State(U, V, rows, cols, shared, noise, 0.0, self.seed, number, 1, biases)

    def draw_data(self, state):
        """New values of the observed cells given the state."""
        U, V = state.predictors()
        mean = (U @ V.T)[self.cells]
        weights = None if self.errors is None else self.errors**-2.0
        law = self.problem.model.likelihood.law(mean, state.noise, self.cells, weights)
        data = law.sample(self.rng).astype(float)
        return np.round(data) if self.rounded else data

    def posed(self, data):
        """The problem that these values of the observed cells pose."""
        X = with_values(self.raw, data)
        if self.rounded:
            X = replace(X, bounds=Bounds(data - 0.5, data + 0.5))
        return replace(self.problem, X=self.problem.model.likelihood.read(X))

    def marginal(self, draws):
        """Independent joint draws."""
        states = [self.prior_state(number) for number in range(draws)]
        return [(state, self.draw_data(state)) for state in states]

    def moved(self, pairs, move):
        """The same draws after a move of each, which the data do not see."""
        after = [(state.copy(), data) for state, data in pairs]
        for state, _ in after:
            move(self.problem, state, Stream(state.seed, state.chain, state.sweep + 1))
        return after

    def successive(self, chains, length, first):
        """Joint draws of chains that are numbered from `first` on, one chain after the other."""
        pairs = []
        for number in range(first, first + chains):
            state = self.prior_state(number)
            data = self.draw_data(state)
            for step in range(length):
                state = sweep(self.posed(data), state)
                data = self.draw_data(state)
                if step >= length // 4:  # the first states are too near to the exact start
                    pairs.append((state, data))
        return pairs


def _records(pairs):
    """All variables of states and data by name, one line per pair, each variable flattened."""
    variables = [state.variables() for state, _ in pairs]
    named = {name: np.array([v[name].ravel() for v in variables]) for name in variables[0]}
    return named | {"data": np.array([data for _, data in pairs])}


def _groups(r):
    """Sets of variables whose quantiles are compared, each as an array (draws, members)."""
    n = len(r["U"])
    U, V = (r[name].reshape(n, -1, RANK) for name in ("U", "V"))
    product = U @ V.transpose(0, 2, 1)
    groups = {**r, "first row": U[:, 0], "last row": U[:, -1], "product": product.reshape(n, -1)}
    return groups | {f"|{k}|": np.abs(groups[k]) for k in ("U", "V", "product")}


def _scalars(r, groups):
    """Single numbers, compared by quantiles and in pairs."""
    single = {f"{name}[0]": values[:, :1] for name, values in groups.items() if "first" not in name}
    single |= {f"sum {name}": groups[name].sum(1, keepdims=True) for name in ("|U|", "|V|", "data")}
    single["sum product"] = groups["product"].sum(1, keepdims=True)
    single["U next row"] = r["U"][:, RANK : RANK + 1]
    single["U row product"] = r["U"][:, :1] * r["U"][:, 1:2]
    single["U column product"] = r["U"][:, :1] * r["U"][:, RANK : RANK + 1]
    single["scale of factor 0"] = groups["|U|"][:, ::RANK].sum(1, keepdims=True)
    single["scale of factor 0"] /= groups["|V|"][:, ::RANK].sum(1, keepdims=True)
    for name in ("noise_rows", "noise_cols"):
        if name in r:
            single[f"spread of {name}"] = np.log(r[name]).std(axis=1, keepdims=True)
    if {"noise_rows", "noise_cols", "dof", "cuts", "size"} & set(r):
        single["largest |data|"] = np.abs(r["data"]).max(axis=1, keepdims=True)
    if "cuts" in r:
        parts = [groups[name] for name in ("product", "bias.rows", "bias.cols") if name in groups]
        level = sum(part.mean(axis=1, keepdims=True) for part in parts)
        single["level above the cuts"] = level - r["cuts"].mean(axis=1, keepdims=True)
    return single


def _ranks(values, reference):
    """Position of each value within a sorted reference, from -1/2 to 1/2, ties in the middle."""
    left, right = (np.searchsorted(reference, values, side=side) for side in ("left", "right"))
    return (left + right) / (2 * reference.size) - 0.5


def features(records, reference):
    """Quantile indicators and rank products: names, and values (draws, comparisons)."""
    groups, known = _groups(records), _groups(reference)
    single, single_known = _scalars(records, groups), _scalars(reference, known)
    names, columns = [], []
    wide = {name: values for name, values in groups.items() if values.shape[1] > 1}
    for name, values in (wide | single).items():
        limits = np.quantile((known | single_known)[name], QUANTILES)
        for level, limit in zip(QUANTILES, limits, strict=True):
            names.append(f"P({name} < {level:g} quantile)")
            columns.append(((values < limit) + 0.5 * (values == limit)).mean(axis=1))
    ranks = {k: _ranks(v[:, 0], np.sort(single_known[k][:, 0])) for k, v in single.items()}
    for one, other in combinations(ranks, 2):
        names.append(f"ranks of {one} and {other}")
        columns.append(ranks[one] * ranks[other])
    return names, np.array(columns).T


@dataclass
class Comparison:
    """Scores of all comparisons of one case, and the limit they must keep."""

    names: list
    scores: np.ndarray
    limit: float

    @property
    def worst(self):
        return float(np.abs(self.scores).max())

    @property
    def rejected(self):
        return self.worst > self.limit

    def __str__(self):
        worst = np.argsort(-np.abs(self.scores))[:5]
        lines = [f"{self.names[i]}: {self.scores[i]:+.1f}" for i in worst]
        return f"limit {self.limit:.2f} over {len(self.names)}; worst " + "; ".join(lines)


def judge(verdict, test, name, result):
    """Note the worst score of a comparison, and fail if it is beyond the limit."""
    worst = result.names[int(np.argmax(np.abs(result.scores)))]
    verdict(test, name, result.worst, result.limit, comparisons=len(result.names), worst=worst)


def geweke(name, mask, scale_move, chains, length, family_error, seed=0):
    """Compare both joint simulations of a model.

    Chains may stay for long where few of them have started by chance, in a tail; by themselves they
    would then say too little of the variance of their averages. So it is at least that of an exact
    sampler's chains which stay as long.
    """
    joint = Joint(name, mask, scale_move, seed)
    draws = 10 * chains
    reference = _records(joint.marginal(draws))
    names, marginal = features(reference, reference)
    _, flat = features(_records(joint.successive(chains, length, draws)), reference)
    averages = flat.reshape(chains, -1, flat.shape[1]).mean(axis=1)
    own, exact = flat.var(axis=0), marginal.var(axis=0)
    factor = np.maximum(np.divide(exact, own, out=np.ones_like(own), where=own > 0), 1.0)
    variance = exact / draws + factor * averages.var(axis=0, ddof=1) / chains
    gap = averages.mean(axis=0) - marginal.mean(axis=0)
    limit = critical_value(family_error, len(names), chains - 1)
    return Comparison(names, _scores(gap, variance), limit)


def geweke_move(name, mask, draws, family_error, seed=0, move=move_scales, left=("variance",)):
    """Compare joint draws with themselves after a move, which has to keep their law.

    Hyper-variables that are left behind are redrawn before their use.
    """
    joint = Joint(name, mask, True, seed)
    pairs = joint.marginal(draws)
    before, after = _records(pairs), _records(joint.moved(pairs, move))
    for variable in (f"{side}.{name}" for side in ("rows", "cols") for name in left):
        before.pop(variable, None), after.pop(variable, None)
    names, start = features(before, before)
    change = features(after, before)[1] - start
    scores = _scores(change.mean(axis=0), change.var(axis=0, ddof=1) / draws)
    return Comparison(names, scores, critical_value(family_error, len(names), draws - 1))


def _scores(gap, variance):
    """Gaps in units of their errors; 0 where nothing varies and nothing differs."""
    assert not gap[variance == 0].any()
    return np.divide(gap, np.sqrt(variance), out=np.zeros_like(gap), where=variance > 0)


# --- Scale identities ---------------------------------------------------------------------------


def _pull(prior, U, values):
    """For each factor, n plus the derivative of the log prior along X_k -> c X_k at c = 1."""
    n, kind = len(U), type(prior).__name__
    for own in ADDED.values():
        if own.prior is type(prior):
            return n + own.slope(U, values)
    if kind == "Normal":
        return n - values["precision"] * (U**2).sum(axis=0)
    if kind == "MultivariateNormal":
        return n - (U * ((U - values["mean"]) @ values["precision"])).sum(axis=0)
    if kind == "Laplace":
        eta = values.get("eta", values["scale"])
        inverse = np.sqrt(eta) if getattr(prior.scale, "reading", "") == "rate" else 1 / eta
        return n - (np.abs(U) * inverse).sum(axis=0)
    if kind == "Volume":
        return np.full(RANK, n - 2 * np.exp(prior.log_gamma) * np.linalg.det(U.T @ U))
    if kind == "Exponential":
        return n - values["rate"] * U.sum(axis=0)
    if kind == "TruncatedNormal":
        return n - (values["precision"] * U * (U - values["mean"])).sum(axis=0)
    if kind == "L21":
        return n - prior.strength * (U * U.sum(axis=1, keepdims=True)).sum(axis=0)
    assert kind == "Gamma"
    return prior.shape * n - (values["rate"] * U).sum(axis=0)


def pulls(problem, state):
    """Difference of both sides of the identity, for each factor."""
    rows, cols = problem.side(state, 0), problem.side(state, 1)
    return _pull(rows.prior, rows.U, rows.values) - _pull(cols.prior, cols.U, cols.values)


def standard_error(x):
    """Error of the mean of x (chains, draws), by Geyer's initial positive sequence."""
    chains, n = x.shape
    centred = x - x.mean()
    spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum.mean(axis=0))[:n] / n
    pairs = covariance[: n - n % 2].reshape(-1, 2).sum(axis=1)
    stop = np.argmax(pairs <= 0) if (pairs <= 0).any() else len(pairs)
    positive = np.minimum.accumulate(pairs[: max(stop, 1)])
    return np.sqrt(max(2 * positive.sum() - covariance[0], 0.0) / (chains * n))


def identity(name, X, chains, burn_in, length, family_error, seed=0):
    """Scores of the scale identities in the posterior of a model, by chains without the move."""
    problem = Problem.of(X, model_of(name), RANK, scale_move=False)
    runs = []
    for number in range(chains):
        states = islice(chain(problem, "data", seeded(seed), number), burn_in, burn_in + length)
        runs.append([pulls(problem, state) for state in states])
    x = np.array(runs)
    errors = np.array([standard_error(x[:, :, k]) for k in range(RANK)])
    scores = x.mean(axis=(0, 1)) / errors
    return Comparison(
        [f"factor {k}" for k in range(RANK)], scores, critical_value(family_error, RANK)
    )
