"""Held-out cells of thirteen tables: an estimator without any option beside other imputers.

Five times (seeds 0 to 4) 15 % of the observed cells are hidden, the same for all, such that no row
or column loses all. Tables are as they were loaded: columns differ in unit by up to five orders of
magnitude, and some are empty. Errors are in standard deviations of the columns, taken over all that
is observed; a column with fewer than ten entries, or without spread, has the pooled one.

*default*: no option but the seed. *by hand*: normal and Wishart priors (GGGW) with biases; noise by
columns or by both sides and a rank of 2, 5, 10, 20 or 30, chosen on a tenth of the training cells.
Both give distributions: the CRPS is in the same units, from a hundred quantiles; coverage is that
of the central 90 %. The worst column is that of least coverage among those with 20 hidden cells or
more over all five hidings.

The peers have columns of mean 0 and variance 1, undone afterwards, and no columns that are empty.
scikit-learn's IterativeImputer is as it comes (10 rounds of Bayesian ridge regression), with the
30 nearest features where there are more than 100 columns. KNNImputer has 3, 5, 10 or 20 neighbours
and the soft-thresholded SVD (softImpute) one of twelve thresholds from the largest singular value
down to 1/200 of it, chosen on a tenth of the training cells. *column means* are SimpleImputer's.
All have one thread, since more only slow their small products down.

What is done is kept in the file of the part, so that a run goes on where it was stopped; ``--data``
and ``--models`` (such as ``--models "soft SVD,default"``) choose what is run.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import sklearn.datasets
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning as NotConverged
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from threadpoolctl import threadpool_limits

from bayesmf import BayesianMF, ConvergenceWarning, ObservedMatrix, datasets
from bayesmf.metrics import mse
from bayesmf.splits import holdout
from benchmarks.common import Dataset, MissingError, facts, kept, load, read_json
from benchmarks.report import RESULTS, Options, claim, number, table

STORE = RESULTS / "tables-runs.json"
HIDINGS, HIDDEN, TRIED = 5, 0.15, 0.1
FEW = 10  # entries of a column that has no standard deviation of its own
LEVELS = (0.05, 0.95, *((k + 0.5) / 100 for k in range(100)))  # the ends, then for the CRPS
NEIGHBOURS = (3, 5, 10, 20)
THRESHOLDS = tuple(float(x) for x in np.geomspace(1, 0.005, 12))  # of the largest singular value
STEPS, CLOSE = 500, 1e-7  # of the soft SVD: iterations at most, and the last relative change

Array = np.ndarray
Cells = tuple[Array, Array]


class Table(NamedTuple):
    """A table, where it is found, and the most that the ratio of the errors may be."""

    title: str
    source: tuple[str, str]  # kind and name
    most: float = 1.05


TABLES = {  # the largest last
    "iris": Table("iris", ("sklearn", "iris")),
    "wine": Table("wine", ("sklearn", "wine")),
    "diabetes": Table("diabetes", ("sklearn", "diabetes")),
    "breast_cancer": Table("breast cancer", ("sklearn", "breast_cancer")),
    "overlap_ccle_ec50": Table("CCLE EC50 overlap", ("overlap", "ccle_ec50")),
    "overlap_ccle_ic50": Table("CCLE IC50 overlap", ("overlap", "ccle_ic50")),
    "overlap_gdsc": Table("GDSC overlap", ("overlap", "gdsc_ic50")),
    "overlap_ctrp": Table("CTRP overlap", ("overlap", "ctrp_ec50")),
    "ccle": Table("CCLE IC50", ("catalogue", "CCLE_IC50")),
    "methylation": Table("gene body methylation", ("catalogue", "Methylation_GM")),
    "digits": Table("digits", ("sklearn", "digits"), 1.12),
    "gdsc": Table("GDSC IC50", ("catalogue", "GDSC")),
    "movielens": Table("MovieLens 100K", ("catalogue", "MovieLens_100K")),
}
IN_SHORT = ("diabetes", "wine", "breast_cancer", "overlap_gdsc", "methylation", "movielens")


def read(name: str) -> ObservedMatrix:
    """A table as it was loaded."""
    kind, what = TABLES[name].source
    if kind == "sklearn":
        raw = {"scaled": False} if what == "diabetes" else {}
        return ObservedMatrix.of(getattr(sklearn.datasets, f"load_{what}")(**raw).data)
    folder = os.environ.get("BAYESMF_DATA")
    if not folder:
        raise MissingError(f"{name}: this needs the real matrix; set BAYESMF_DATA.")
    if kind == "overlap":
        return ObservedMatrix.of(np.loadtxt(f"{folder}/drug_overlap/{what}.txt"))
    return datasets.load(what, data_home=folder).X


def moments(X: Array) -> tuple[Array, Array]:
    """Means and standard deviations of columns that are not empty; see the top for small ones."""
    seen = ~np.isnan(X)
    n = seen.sum(axis=0)
    mean = np.where(seen, X, 0.0).sum(axis=0) / n
    squares = np.where(seen, (X - mean) ** 2, 0.0).sum(axis=0)
    constant = np.ptp(np.where(seen, X, mean), axis=0) <= 1e-12 * np.abs(mean)
    pooled = np.sqrt(squares.sum() / max(1, (n - 1)[n > 1].sum())) or 1.0
    return mean, np.where((n < FEW) | constant, pooled, np.sqrt(squares / n))


def spreads(X: Array) -> Array:
    """Standard deviations of all columns; that of an empty one is not a number."""
    found = np.full(X.shape[1], np.nan)
    there = ~np.isnan(X).all(axis=0)
    found[there] = moments(X[:, there])[1]
    return found


class Effort(NamedTuple):
    """Options of the default, where there are any; ranks and chains of what is set by hand."""

    default: dict[str, Any]
    ranks: tuple[int, ...]
    whole: dict[str, Any]
    brief: dict[str, Any]


FULL = Effort(
    {}, (2, 5, 10, 20, 30), {"burn_in": 200, "draws": 400, "chains": 1},
    {"burn_in": 100, "draws": 150, "chains": 1},
)  # fmt: skip
_TINY = {"burn_in": 5, "draws": 5}
QUICK = Effort(_TINY, (2, 3), _TINY, _TINY)


class Found(NamedTuple):
    """What a method says of hidden cells: values, quantiles at all levels, and what it chose."""

    values: Array
    quantiles: Array | None = None
    chosen: str = ""


Method = Callable[[Array, Cells, int, Effort], Found]


def _fitted(X: Array, seed: int, **options: Any) -> BayesianMF:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return BayesianMF(random_state=seed, n_jobs=2, **options).fit(X)


def by_default(X: Array, cells: Cells, seed: int, effort: Effort) -> Found:
    """No option but the seed; threads do not matter."""
    return Found(*_fitted(X, seed, **effort.default).predict(*cells, quantiles=LEVELS))


def by_hand(X: Array, cells: Cells, seed: int, effort: Effort) -> Found:
    """The best of a few settings."""
    common: dict[str, Any] = {"model": "GGGW", "biases": True, "scale": "auto"}
    part, (rows, cols, values) = holdout(X, TRIED, random_state=seed)
    unit, errors = spreads(X)[cols], {}
    for noise in ("cols", "both"):
        for rank in sorted({min(rank, *X.shape) for rank in effort.ranks}):
            choice = {"noise": noise, "n_components": rank}
            mf = _fitted(part.to_array(), seed, **common, **choice, **effort.brief)
            errors[noise, rank] = mse(values / unit, mf.predict(rows, cols) / unit)
    noise, rank = min(errors, key=errors.__getitem__)
    mf = _fitted(X, seed, **common, noise=noise, n_components=rank, **effort.whole)
    return Found(*mf.predict(*cells, quantiles=LEVELS), f"{noise} {rank}")


# Steps of the peers: a standardised table, a setting and the table before -> the filled table.
Step = Callable[[Array, Any, Array | None], Array]


def regressions(Z: Array, seed: int, before: Array | None = None) -> Array:
    near = 30 if Z.shape[1] > 100 else None
    imputer = IterativeImputer(max_iter=10, n_nearest_features=near, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        return imputer.fit_transform(Z)


def neighbours(Z: Array, k: int, before: Array | None = None) -> Array:
    return KNNImputer(n_neighbors=k).fit_transform(Z)


def column_means(Z: Array, setting: None = None, before: Array | None = None) -> Array:
    return SimpleImputer().fit_transform(Z)


def soft_svd(Z: Array, share: float, before: Array | None = None) -> Array:
    """Fill gaps from the soft-thresholded SVD of the filled table until they stay as they are."""
    missing = np.isnan(Z)
    threshold = share * np.linalg.norm(np.where(missing, 0.0, Z), 2)
    filled = np.where(missing, 0.0 if before is None else before, Z)
    for _ in range(STEPS):
        low = np.where(missing, shrunk(filled, threshold), Z)
        change = np.sum((low - filled) ** 2)
        filled = low
        if change <= CLOSE * np.sum(low**2):
            break
    return filled


def shrunk(A: Array, threshold: float) -> Array:
    """A with its singular values less the threshold, and not below zero.

    Singular vectors of the shorter side suffice: the others are their products with A.
    """
    side = A if A.shape[0] <= A.shape[1] else A.T
    squares, vectors = eigh(side @ side.T, subset_by_value=(threshold**2, np.inf))
    low = (vectors * (1 - threshold / np.sqrt(squares))) @ (vectors.T @ side)
    return low if A.shape[0] <= A.shape[1] else low.T


def completed(step: Step, X: Array, settings: Sequence[Any]) -> Iterator[Array]:
    """The filled table at each setting, each begun where the one before ended."""
    there = ~np.isnan(X).all(axis=0)
    mean, sd = moments(X[:, there])
    Z, before = (X[:, there] - mean) / sd, None
    for setting in settings:
        before = step(Z, setting, before)
        whole = np.full(X.shape, np.nan)
        whole[:, there] = mean + sd * before
        yield whole


def _peer(step: Step, settings: Sequence[Any] = (), warm: bool = False) -> Method:
    """A peer at the best of the settings, or with the seed; a warm one is led to its setting."""

    @threadpool_limits.wrap(limits=1)
    def predict(X: Array, cells: Cells, seed: int, effort: Effort) -> Found:
        if not settings:
            return Found(next(completed(step, X, (seed,)))[cells])
        part, (rows, cols, values) = holdout(X, TRIED, random_state=seed)
        unit, tried = spreads(X)[cols], completed(step, part.to_array(), settings)
        errors = [mse(values / unit, whole[rows, cols] / unit) for whole in tried]
        best = int(np.argmin(errors))
        *_, last = completed(step, X, settings[0 if warm else best : best + 1])
        return Found(last[cells], chosen=number(settings[best]))

    return predict


PEERS = {
    "IterativeImputer": _peer(regressions),
    "KNNImputer": _peer(neighbours, NEIGHBOURS),
    "soft SVD": _peer(soft_svd, THRESHOLDS, warm=True),
    "column means": _peer(column_means),
}
METHODS: dict[str, Method] = {"default": by_default, "by hand": by_hand, **PEERS}


def run_hiding(method: Method, X: ObservedMatrix, seed: int, effort: Effort) -> dict[str, Any]:
    """Scores of one method on one hiding; counts by columns are one line of text."""
    shown, (rows, cols, values) = holdout(X, HIDDEN, random_state=seed)
    begin = time.perf_counter()
    found = method(shown.to_array(), (rows, cols), seed, effort)
    seconds = time.perf_counter() - begin
    unit = spreads(X.to_array())[cols]
    scores: dict[str, Any] = {"error": mse(values / unit, found.values / unit) ** 0.5}
    if found.quantiles is not None:
        low, high, *others = found.quantiles
        inside = (low <= values) & (values <= high)
        off = (values - np.array(others)) / unit
        levels = np.array(LEVELS[2:])[:, None]
        scores["crps"] = 2 * float(np.maximum(levels * off, (levels - 1) * off).mean())
        for key, which in (("inside", inside), ("hidden", np.ones_like(inside))):
            scores[key] = " ".join(map(str, np.bincount(cols[which], minlength=X.shape[1])))
    return {**scores, "chosen": found.chosen, "seconds": seconds}


def measure(name: str, X: ObservedMatrix, options: Options) -> dict[str, Any]:
    """Scores of all hidings by method; what is on file is not run again."""
    for method, predict in METHODS.items():
        if (options.models and method not in options.models) or (
            method in PEERS and not options.peers
        ):
            continue
        for seed in range(HIDINGS):
            make = partial(run_hiding, predict, X, seed, FULL)
            kept(STORE, name, method, str(seed), make=make)
    known = read_json(STORE).get(name, {})
    return {method: known[method] for method in METHODS if known.get(method)}


def _covered(runs: list[dict[str, Any]]) -> tuple[float, float | None]:
    """Coverage of all hidden cells, and that of the worst column."""
    inside, hidden = (
        np.sum([np.array(run[key].split(), dtype=int) for run in runs], axis=0)
        for key in ("inside", "hidden")
    )
    many = hidden >= 20
    worst = float((inside[many] / hidden[many]).min()) if many.any() else None
    return float(inside.sum() / hidden.sum()), worst


def summary(by_method: dict[str, Any]) -> dict[str, Any]:
    """Errors and seconds by method, means over the hidings; of the default, all scores."""
    runs = {method: list(done.values()) for method, done in by_method.items()}
    means = {
        key: {method: float(np.mean([run[key] for run in some])) for method, some in runs.items()}
        for key in ("error", "seconds")
    }
    found: dict[str, Any] = {**means, "ratio": None, "coverage": None, "worst": None, "crps": None}
    if ours := runs.get("default"):
        found["coverage"], found["worst"] = _covered(ours)
        found["crps"] = float(np.mean([run["crps"] for run in ours]))
        if peers := [error for method, error in means["error"].items() if method in PEERS]:
            found["ratio"] = means["error"]["default"] / min(peers)
    return found


def _mean_ratio(found: dict[str, Any]) -> float | None:
    ratios = [one["ratio"] for one in found.values() if one["ratio"] is not None]
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None


def _three(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Errors, and how good the intervals of the default are; then seconds."""
    scores = data["scores"]
    found = {name: summary(scores[name]) for name in TABLES if name in scores}
    rows, times = [], []
    for name, one in found.items():
        title = TABLES[name].title
        own = (one["ratio"], one["coverage"], one["worst"], one["crps"])
        rows.append((title, *(_three(one["error"].get(m)) for m in METHODS), *map(_three, own)))
        times.append((title, *(one["seconds"].get(method) for method in METHODS)))
    mean = _three(_mean_ratio(found))
    rows.append(("geometric mean", *("" for _ in METHODS), mean, "", "", ""))
    header = ("data", *METHODS, "ratio", "coverage", "worst column", "CRPS")
    note = "Errors in standard deviations of the columns; ratio: default over the best peer."
    return [
        table("Hidden cells", header, rows, note, quoted=True),
        table("Seconds of a hiding", ("data", *METHODS), times),
    ]


def in_short(found: dict[str, Any]) -> dict[str, Any]:
    """The README's table: errors on six tables."""
    methods, rows = ("default", *PEERS), []
    for name in IN_SHORT:
        if by_method := found.get("scores", {}).get(name):
            errors = summary(by_method)["error"]
            rows.append((TABLES[name].title, *(_three(errors.get(m)) for m in methods)))
    return table("Hidden cells", ("data", *methods), rows)


def claims(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The default beside the best peer, and what its intervals promise."""
    found = {name: summary(by_method) for name, by_method in data["scores"].items()}
    if (mean := _mean_ratio(found)) is None:
        return []
    made = [claim("default over the best peer, geometric mean", mean, most=1)]
    for name, one in found.items():
        if one["ratio"] is not None:
            what = f"{name}, default over the best peer"
            made.append(claim(what, one["ratio"], most=TABLES[name].most))
        if one["coverage"] is not None:
            what = f"{name}, coverage of 90 %"
            made.append(claim(what, one["coverage"], least=0.86, most=0.94))
    return made


def part(options: Options) -> dict[str, Any]:
    """Scores on hidden cells of the tables."""
    if options.quick:
        return _quick(options)
    used = [Dataset(name, read(name), True) for name in options.data or TABLES]
    data = {"scores": {one.name: measure(one.name, one.X, options) for one in used}}
    about = facts(*used)
    return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": about}


def _quick(options: Options) -> dict[str, Any]:
    """All methods on small synthetic matrices."""
    found: dict[str, Any] = {}
    for name in ("gdsc", "movielens"):
        X = load(name, quick=True).X
        for method, predict in METHODS.items():
            if method not in PEERS or options.peers:
                runs = {str(seed): run_hiding(predict, X, seed, QUICK) for seed in range(2)}
                found.setdefault(name, {})[method] = runs
    data = {"scores": found}
    return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": {}}
