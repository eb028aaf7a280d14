"""Held-out error, log density and coverage of likelihoods, beside SMURFF and myFM.

Five folds of the observed entries (seed 0), the same for all. The rank is one of 5, 10, 20 and 30,
chosen by the squared error on a tenth of each training set; nothing else is tuned. Every chain has
600 sweeps, of which the last 400 are kept (250 and 150 where the rank is chosen); ours have normal
and Wishart priors (GGGW) and biases. myFM has the data less their mean and effects of rows and
columns, on ratings its ordered probit too; SMURFF has data of mean 0 and variance 1, and adaptive
noise; both have one thread. The rank of the peers is the one that is best on the fold left out,
which favours them.

Coverage is the share of held-out entries whose randomised probability integral transform lies in
the central 10, 20, ... 90 and 95 %; the gap is the mean of its distances from these levels.

"u1" to "u5" are the public splits of MovieLens 100K: blocks of 20,000 lines of its file, held out
with all their users and films, without clipping. What is done is kept in the file of the part, so
that a run goes on where it was stopped; ``--data`` and ``--models`` choose what is run.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesmf import BayesianMF, ConvergenceWarning, ObservedMatrix, datasets
from bayesmf.metrics import mse, pit
from bayesmf.splits import holdout, kfold
from benchmarks.accuracy import Length as PeerLength
from benchmarks.accuracy import by_myfm, by_smurff
from benchmarks.common import MissingError, kept, load, read_json
from benchmarks.peers import installed, myfm_design, silence
from benchmarks.report import RESULTS, Options, claim, table

RANKS = (5, 10, 20, 30)
LEVELS = (*(k / 10 for k in range(1, 10)), 0.95)
STORE = RESULTS / "noise-runs.json"
PUBLIC = ("u1", "u2", "u3", "u4", "u5")  # splits of MovieLens 100K

Triples = tuple[np.ndarray, np.ndarray, np.ndarray]


class Scores(NamedTuple):
    """Mean squared error, mean log density and coverage, where a method has them."""

    mse: float
    log_density: float | None = None
    coverage: list[float] | None = None


def _ours(name: str = "GGGW", lower: Any = None, upper: Any = None, **options: Any) -> Any:
    def scores(
        train: ObservedMatrix, test: Triples, rank: int, burn_in: int, draws: int, brief: bool
    ) -> Scores:
        mf = BayesianMF(
            name, rank, biases=True, draws=draws, burn_in=burn_in, chains=1, random_state=0,
            n_jobs=2, center="none", scale="none", **options,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            mf.fit(train, lower=lower, upper=upper)
        rows, cols, values = test
        error = mse(values, mf.predict(rows, cols))
        if brief:
            return Scores(error)
        density = float(mf.log_density(rows, cols, values).mean())
        return Scores(error, density, _coverage(mf, test))

    return scores


def _coverage(mf: BayesianMF, test: Triples) -> list[float]:
    predictive, found = mf._predictive(), []
    for a in range(0, test[0].size, 2000):
        rows, cols, values = (part[a : a + 2000] for part in test)
        law = predictive.law(predictive.means((rows, cols)), (rows, cols))
        found.append(pit(values, law.replicates(3, (0, 0)), random_state=a))
    off = 2 * np.abs(np.concatenate(found) - 0.5)
    return [float(np.mean(off <= level)) for level in LEVELS]


def _peer(predict: Callable[..., np.ndarray]) -> Any:
    def scores(
        train: ObservedMatrix, test: Triples, rank: int, burn_in: int, draws: int, brief: bool
    ) -> Scores:
        return Scores(mse(test[2], predict(train, test, rank, PeerLength(burn_in, draws))))

    return scores


def by_ordered_probit(
    train: ObservedMatrix, test: Triples, rank: int, length: PeerLength
) -> np.ndarray:
    """MyFM's ordered probit: the mean rating."""
    import myfm

    rows, cols, values = train.triples()
    categories, codes = np.unique(values, return_inverse=True)
    model = myfm.MyFMOrderedProbit(rank=rank, random_seed=0)
    with silence():
        model.fit(
            myfm_design(train.shape, rows, cols), codes, group_shapes=train.shape,
            n_iter=length.burn_in + length.kept, n_kept_samples=length.kept,
        )  # fmt: skip
        chances = model.predict_proba(myfm_design(train.shape, test[0], test[1]))
    return chances @ categories


PEERS = {"SMURFF": _peer(partial(by_smurff, threads=1)), "myFM": _peer(by_myfm)}
ORDERED = {"myFM ordered": _peer(by_ordered_probit)}
UNEQUAL = {noise: _ours(noise=noise) for noise in ("equal", "rows", "cols", "both")}


class Matrix(NamedTuple):
    """A matrix, its contestants, and the targets of the best of ours."""

    title: str
    catalogue: str | None
    methods: dict[str, Any]
    most: float
    root: bool = False  # whether the target is of the root


_RATINGS = {
    "equal": UNEQUAL["equal"], "both": UNEQUAL["both"], "ordinal": _ours("OGGW"),
    **PEERS, **ORDERED,
}  # fmt: skip
MATRICES = {
    "methylation": Matrix("gene body methylation", "Methylation_GM", UNEQUAL | PEERS, 1.24),
    "gdsc": Matrix(
        "GDSC IC50",
        "GDSC",
        {
            **UNEQUAL,
            "equal + limits": _ours(lower=0, upper=100),
            "cols + limits": _ours(lower=0, upper=100, noise="cols"),
            "Student-t + cols": _ours("TGGW", noise="cols"),
            **PEERS,
        },
        672,
    ),
    "ccle": Matrix(
        "CCLE IC50",
        "CCLE_IC50",
        {
            **UNEQUAL,
            "equal + limits": _ours(lower=0, upper=8),
            "cols + limits": _ours(lower=0, upper=8, noise="cols"),
            **PEERS,
        },
        3.98,
    ),
    "ccle_ec50": Matrix("CCLE EC50, as the study had it", "CCLE_EC50", UNEQUAL | PEERS, 7.50),
    "movielens": Matrix(
        "MovieLens 100K", "MovieLens_100K", UNEQUAL | {"ordinal": _ours("OGGW")} | PEERS | ORDERED,
        0.790,
    ),
    **{
        name: Matrix(f"MovieLens {name}, root of the error", None, _RATINGS, most, root=True)
        for name, most in zip(PUBLIC, (0.902, np.inf, 0.889, np.inf, np.inf), strict=True)
    },
    "overlap": Matrix("GDSC overlap, logarithms", None, UNEQUAL, np.inf),
}  # fmt: skip


def _folder() -> Path:
    folder = os.environ.get("BAYESMF_DATA")
    if not folder:
        raise MissingError("This needs the real matrices; set BAYESMF_DATA.")
    return Path(folder)


def matrix(name: str) -> ObservedMatrix:
    """A whole matrix."""
    folder = _folder()
    if name == "overlap":
        return ObservedMatrix.of(np.loadtxt(folder / "drug_overlap" / "gdsc_ic50.txt"))
    return datasets.load(MATRICES[name].catalogue or "", data_home=str(folder)).X


def folds(name: str) -> Iterator[tuple[ObservedMatrix, Triples]]:
    """Training data and what is held out."""
    if name not in PUBLIC:
        yield from kfold(matrix(name), 5, random_state=0)
        return
    lines = np.loadtxt(_folder() / "movielens" / "ml-100k" / "u.data", dtype=np.int64)[:, :3]
    held = np.zeros(len(lines), dtype=bool)
    first = 20_000 * PUBLIC.index(name)
    held[first : first + 20_000] = True
    rows, cols, values = lines[:, 0] - 1, lines[:, 1] - 1, lines[:, 2].astype(float)
    shape = int(rows.max()) + 1, int(cols.max()) + 1
    train = ObservedMatrix.from_triples(*(x[~held] for x in (rows, cols, values)), shape)
    yield train, (rows[held], cols[held], values[held])


class Effort(NamedTuple):
    """Ranks to choose from, sweeps that are thrown away and kept, and those of the choice."""

    ranks: tuple[int, ...] = RANKS
    whole: tuple[int, int] = (200, 400)
    brief: tuple[int, int] = (100, 150)


QUICK = Effort((2, 3), (5, 5), (3, 3))


def run_fold(
    method: str, scores: Any, train: ObservedMatrix, test: Triples, effort: Effort
) -> dict[str, Any]:
    """Scores of one method on one fold, at the rank of its choice."""
    begin = time.perf_counter()
    if method in PEERS or method in ORDERED:
        found = {rank: scores(train, test, rank, *effort.whole, True) for rank in effort.ranks}
        rank = min(found, key=lambda k: found[k].mse)
        best = found[rank]
    else:
        part, tried = holdout(train, 0.1, random_state=0)
        errors = {k: scores(part, tried, k, *effort.brief, True).mse for k in effort.ranks}
        rank = min(errors, key=errors.__getitem__)
        best = scores(train, test, rank, *effort.whole, False)
    return {"rank": rank, **best._asdict(), "seconds": time.perf_counter() - begin}


def measure(name: str, options: Options) -> dict[str, Any]:
    """Scores of all folds by method; what is on file is not run again."""
    methods = MATRICES[name].methods
    absent = {"SMURFF": "smurff", "myFM": "myfm", "myFM ordered": "myfm"}
    there = installed(set(absent.values())) if options.peers else []
    for method, scores in methods.items():
        if (options.models and method not in options.models) or (
            method in absent and absent[method] not in there
        ):
            continue
        for number, fold in enumerate(folds(name)):
            make = partial(run_fold, method, scores, *fold, Effort())
            kept(STORE, name, method, str(number), make=make)
    return {k: v for k, v in read_json(STORE).get(name, {}).items() if k in methods}


def _gap(runs: list[dict[str, Any]]) -> float | None:
    if runs[0]["coverage"] is None:
        return None
    mean = np.mean([run["coverage"] for run in runs], axis=0)
    return 100 * float(np.abs(mean - LEVELS).mean())


def summary(name: str, by_fold: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Means over the folds, by method."""
    found = {}
    for method, folds_done in by_fold.items():
        runs = list(folds_done.values())
        error = float(np.mean([run["mse"] for run in runs]))
        density = runs[0]["log_density"]
        found[method] = {
            "error": error**0.5 if MATRICES[name].root else error,
            "log_density": None if density is None else float(
                np.mean([run["log_density"] for run in runs])),
            "gap": _gap(runs), "ranks": " ".join(str(run["rank"]) for run in runs),
        }  # fmt: skip
    return found


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Every matrix, the best method first."""
    rows = []
    for name, by_fold in data["scores"].items():
        title = MATRICES[name].title
        found = summary(name, by_fold)
        for method, one in sorted(found.items(), key=lambda item: item[1]["error"]):
            density = "-" if one["log_density"] is None else f"{one['log_density']:.3f}"
            gap = "-" if one["gap"] is None else f"{one['gap']:.1f}"
            rows.append((title, method, f"{one['error']:#.4g}", density, gap, one["ranks"]))
            title = ""
    header = ("data", "noise", "error", "log density", "coverage gap", "ranks of the folds")
    return [table("Held-out entries", header, rows, quoted=True)]


def claims(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The best of ours beside the targets and the peers."""
    made = []
    for name, by_fold in data["scores"].items():
        found, target = summary(name, by_fold), MATRICES[name]
        peers = {m: one["error"] for m, one in found.items() if m in PEERS or m in ORDERED}
        ours = {m: one["error"] for m, one in found.items() if m not in peers}
        if not ours:
            continue
        best = min(ours, key=ours.__getitem__)
        if np.isfinite(target.most):
            made.append(claim(f"{name}, error of {best}", ours[best], most=target.most))
        if peers:
            rival = min(peers, key=peers.__getitem__)
            made.append(claim(f"{name}, {best} over {rival}", ours[best] / peers[rival], most=1))
    return made


def part(options: Options) -> dict[str, Any]:
    """Scores on the real matrices."""
    if options.quick:
        return _quick()
    data = {"scores": {name: measure(name, options) for name in options.data or MATRICES}}
    about = {name: {"source": "real"} for name in data["scores"]}
    return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": about}


def _quick() -> dict[str, Any]:
    """All of ours on small synthetic matrices."""
    found: dict[str, Any] = {}
    for name, source in (("gdsc", "gdsc"), ("movielens", "movielens")):
        parts = list(kfold(load(source, quick=True).X, 2, random_state=0))
        for method, scores in MATRICES[name].methods.items():
            if method not in PEERS and method not in ORDERED:
                runs = {str(k): run_fold(method, scores, *p, QUICK) for k, p in enumerate(parts)}
                found.setdefault(name, {})[method] = runs
    data = {"scores": found}
    return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": {}}
