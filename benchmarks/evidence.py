"""Held-out entries beside everything that one would use instead: error, density, CRPS, coverage.

The folds of `noise`: five of the observed entries (seed 0) of five matrices, and the public splits
u1 to u5 of MovieLens 100K. *default* is `BayesianMF()` as it comes. *compare* is what
`bayesmf.compare` recommends for the training part, with its default budget, fitted to it.

The peers by their documented practice: SMURFF and myFM (regression, and the ordered probit for
ratings) as in `noise`, at the best of the ranks 5, 10, 20 and 30 on the very entries held out,
which favours them; IterativeImputer, KNNImputer, the soft-thresholded SVD and column means as in
`tables`, with settings chosen on a tenth of the training part; scikit-learn's NMF of the table
filled with column means, and hpfrec where all values are counts, at the best of the same ranks on
that tenth.
Imputers of whole tables are left out on the ratings, where they would take hours.

``--data`` and ``--models`` choose; what is done is kept in a file, so that a run goes on where it
was stopped. Figures of SMURFF and myFM are those of `noise` where these are on file.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning as NotConverged

from bayesmf import BayesianMF, ConvergenceWarning, ObservedMatrix, compare
from bayesmf.metrics import crps, mse
from bayesmf.splits import holdout, kfold
from benchmarks import noise
from benchmarks import tables as imputers
from benchmarks.common import kept, load, read_json
from benchmarks.peers import hpfrec_fit, installed
from benchmarks.report import RESULTS, Options, claim, table

STORE = RESULTS / "evidence-runs.json"
DATA = ("ccle", "ccle_ec50", "methylation", "gdsc", "movielens", *noise.PUBLIC)
RATINGS = ("movielens", *noise.PUBLIC)
SLOW = ("IterativeImputer", "KNNImputer", "soft SVD")  # on ratings
NEEDS = {"SMURFF": "smurff", "myFM": "myfm", "myFM ordered": "myfm", "hpfrec": "hpfrec"}
OURS = ("default", "compare")
DRAWS = 400  # of a predictive distribution, for CRPS and coverage

Scores = dict[str, Any]


def judged(mf: BayesianMF, test: Any, chosen: str) -> Scores:
    """All scores of a posterior."""
    rows, cols, values = test
    predictive, scored, inside = mf._predictive(), [], []
    for a in range(0, rows.size, 2000):
        cells, own = (rows[a : a + 2000], cols[a : a + 2000]), values[a : a + 2000]
        law = predictive.law(predictive.means(cells), cells)
        drawn = law.replicates(-(-DRAWS // len(law.means)), (0, a))
        low, high = np.quantile(drawn, [0.05, 0.95], axis=0, method="closest_observation")
        scored.append(crps(own, drawn) * own.size)
        inside.append((low <= own) & (own <= high))
    return {
        "mse": mse(values, mf.predict(rows, cols)),
        "log_density": float(mf.log_density(rows, cols, values).mean()),
        "crps": float(np.sum(scored) / rows.size), "coverage": float(np.concatenate(inside).mean()),
        "chosen": chosen,
    }  # fmt: skip


def by_default(train: ObservedMatrix, test: Any, **options: Any) -> Scores:
    """An estimator without an option."""
    mf = BayesianMF(random_state=0, n_jobs=2, **options).fit(train)
    return judged(mf, test, f"rank {mf.n_components_}")


def by_compare(train: ObservedMatrix, test: Any, **options: Any) -> Scores:
    """What a comparison recommends."""
    found = compare(train, n_jobs=2, **options)
    return judged(found.fit_best(), test, f"{found.best_}, rank {found.best_rank_}")


def by_imputer(name: str, train: ObservedMatrix, test: Any) -> Scores:
    """An imputer of whole tables."""
    method = imputers.PEERS[name]
    found = method(train.to_array(), (test[0], test[1]), 0, imputers.FULL)
    values = np.where(np.isnan(found.values), train.mean, found.values)  # columns without entries
    return {"mse": mse(test[2], values), "chosen": found.chosen}


def _at_best_rank(
    fit: Callable[[ObservedMatrix, int], Callable[..., np.ndarray]],
    train: ObservedMatrix, test: Any,
) -> Scores:  # fmt: skip
    part, (rows, cols, values) = holdout(train, 0.1, random_state=0)
    errors = {rank: mse(values, fit(part, rank)(rows, cols)) for rank in noise.RANKS}
    rank = min(errors, key=errors.__getitem__)
    return {"mse": mse(test[2], fit(train, rank)(test[0], test[1])), "chosen": f"rank {rank}"}


def _nmf(train: ObservedMatrix, rank: int) -> Callable[..., np.ndarray]:
    X = train.to_array()
    means = np.array([column[~np.isnan(column)].mean() if (~np.isnan(column)).any() else
                      train.mean for column in X.T])  # fmt: skip
    model = NMF(min(rank, *X.shape), init="nndsvda", max_iter=500, random_state=0)
    U = model.fit_transform(np.where(np.isnan(X), means, X))
    return lambda rows, cols: (U[rows] * model.components_.T[cols]).sum(axis=1)


def _hpfrec(train: ObservedMatrix, rank: int) -> Callable[..., np.ndarray]:
    U, V, _ = hpfrec_fit(train, rank, 1, 200)
    return lambda rows, cols: (U[rows] * V[cols]).sum(axis=1)


def by_sampler(name: str, scores: Any, train: ObservedMatrix, test: Any) -> Scores:
    """SMURFF or myFM at the rank that is best on the entries held out."""
    found = noise.run_fold(name, scores, train, test, noise.Effort())
    return {"mse": found["mse"], "chosen": f"rank {found['rank']}"}


METHODS: dict[str, Callable[..., Scores]] = {
    "default": by_default,
    "compare": by_compare,
    **{name: partial(by_sampler, name, of) for name, of in (noise.PEERS | noise.ORDERED).items()},
    **{name: partial(by_imputer, name) for name in imputers.PEERS},
    "NMF": partial(_at_best_rank, _nmf),
    "hpfrec": partial(_at_best_rank, _hpfrec),
}


def takes_part(method: str, name: str, train: ObservedMatrix) -> bool:
    """Whether a method is for such data."""
    values = train.rows.values
    if method in SLOW:
        return name not in RATINGS
    if method == "myFM ordered":
        return name in RATINGS
    return not (
        (method == "NMF" and values.min() < 0)
        or (method == "hpfrec" and (values.min() < 0 or (values % 1 != 0).any()))
    )


def timed(method: Callable[..., Scores], train: ObservedMatrix, test: Any) -> Scores:
    """Scores and seconds; warnings of methods that have not converged are theirs."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, NotConverged):
            warnings.simplefilter("ignore", kind)
        found = method(train, test)
    return {**found, "seconds": time.perf_counter() - begin}


def measure(name: str, options: Options) -> dict[str, Any]:
    """Scores of all folds by method; what is on file is not run again."""
    there = installed(set(NEEDS.values())) if options.peers else []
    known = read_json(noise.STORE).get(name, {})
    for method, predict in METHODS.items():
        if (options.models and method not in options.models) or (
            method in NEEDS and NEEDS[method] not in there and method not in known
        ):
            continue
        for number, (train, test) in enumerate(noise.folds(name)):
            if not takes_part(method, name, train):
                break
            if run := known.get(method, {}).get(str(number)):
                scores = {"mse": run["mse"], "chosen": f"rank {run['rank']}",
                          "seconds": run["seconds"]}  # fmt: skip
                kept(STORE, name, method, str(number), make=lambda scores=scores: scores)
                continue
            kept(STORE, name, method, str(number), make=partial(timed, predict, train, test))
    return read_json(STORE).get(name, {})


def summary(name: str, by_method: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Means over the folds that all methods of a matrix have, by method; the best first."""
    folds = max((len(runs) for runs in by_method.values()), default=0)
    found = {}
    for method, runs in by_method.items():
        if len(runs) == folds:
            means = {
                key: float(np.mean([run[key] for run in runs.values()]))
                for key in ("mse", "log_density", "crps", "coverage", "seconds")
                if all(key in run for run in runs.values())
            }
            root = noise.MATRICES[name].root
            found[method] = means | {"error": means["mse"] ** 0.5 if root else means["mse"]}
    return dict(sorted(found.items(), key=lambda item: item[1]["error"]))


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Every matrix, the best method first and in bold."""
    rows = []
    for name, by_method in data["scores"].items():
        title, bold = noise.MATRICES[name].title, "**"
        for method, one in summary(name, by_method).items():
            shown = (
                f"{one[key]:{form}}" if key in one else "-"
                for key, form in (("log_density", ".3f"), ("crps", "#.4g"), ("coverage", ".1%"))
            )
            error = f"{bold}{one['error']:#.4g}{bold}"
            rows.append((title, f"{bold}{method}{bold}", error, *shown, f"{one['seconds']:.0f}"))
            title, bold = "", ""
    header = ("data", "method", "error", "log density", "CRPS", "in 90 %", "s per fold")
    return [table("Held-out entries", header, rows, quoted=True)]


def claims(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Ours beside the best peer of every matrix."""
    made = []
    for name, by_method in data["scores"].items():
        found = summary(name, by_method)
        peers = {method: one["error"] for method, one in found.items() if method not in OURS}
        if peers:
            rival = min(peers, key=peers.__getitem__)
            for own in (method for method in OURS if method in found):
                ratio = found[own]["error"] / peers[rival]
                made.append(claim(f"{name}, {own} over {rival}", ratio, most=1))
    return made


def part(options: Options) -> dict[str, Any]:
    """Scores on the real matrices."""
    if options.quick:
        return _quick()
    data = {"scores": {name: measure(name, options) for name in options.data or DATA}}
    about = {name: {"source": "real"} for name in data["scores"]}
    return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": about}


def _quick() -> dict[str, Any]:
    """Methods that need no peer, on a small synthetic matrix."""
    train, test = next(iter(kfold(load("ccle", quick=True).X, 5, random_state=0)))
    brief = {
        "default": partial(by_default, n_components=2, noise="equal", draws=5, burn_in=5),
        "column means": METHODS["column means"],
    }
    runs = {method: {"0": timed(of, train, test)} for method, of in brief.items()}
    data = {"scores": {"ccle": runs}}
    return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": {}}
