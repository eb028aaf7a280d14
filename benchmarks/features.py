"""Features of rows and columns: new cell lines and drugs, and ratings, beside SMURFF and myFM.

"lines" and "drugs" are cold starts: ten folds (seed 0) of whole cell lines, or of whole drugs, of
the logarithms of GDSC in the overlap of four screens. Cell lines have an expression kernel and
mutations, drugs have fingerprints and targets. Rank and noise (equal, or one for every column, or
row where columns are new) of ours are those with the least error in cold folds of the training set:
three folds of five, chains of 120 sweeps. For new cell lines, of 400; only the noise is chosen
there, with which all ranks together have the least error, and what is predicted is the mean over
all ranks, two chains each: which rank is best differs from fold to fold by chance.

Rivals are the means of the drugs (of the cell lines where drugs are new), ridge regression for each
drug (cell line) on the same features, whose penalty is chosen by leaving one out, SMURFF's Macau
and myFM, which see the features of the test rows in training, too. "within" are five folds of
entries of the same matrix: with features no worse than without, and with 500 features of pure noise
not much worse.

"u1" and "u3" are the public splits of MovieLens 100K, with features of users (age, sex, occupation,
first digit of the zip code) and films (genres, decade), the pattern of both sides, or all of them.
Ranks are chosen by a tenth of the training entries; those of the peers are the best on the test
entries, which favours them. Samplers have 600 sweeps, 400 of them kept; for new cell lines 250
draws are kept after 200 sweeps of each chain, and 1,000 of a peer. What is done is kept in a file,
so that a run goes on where it was stopped; ``--data`` and ``--models`` choose what is run.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bayesmf import BayesianMF, ConvergenceWarning, ObservedMatrix
from bayesmf.metrics import mse
from bayesmf.splits import ColdFold, cold_folds, holdout, kfold
from benchmarks.common import kept, read_json, synthetic
from benchmarks.noise import Triples, _folder, folds
from benchmarks.peers import installed, myfm_design, silence
from benchmarks.report import RESULTS, Options, claim, table

STORE = RESULTS / "features-runs.json"
RANKS = {
    "lines": (10, 20, 30, 50),
    "drugs": (2, 5, 10),
    "within": (5, 10),
    "u1": (10, 20),
    "u3": (10, 20),
}
NOISES = {"rows": ("equal", "cols"), "cols": ("equal", "rows")}  # by what is new
INNER = 3  # of five cold folds of a training set, in which a setting is chosen
PEER_RANKS = (5, 10)
TITLES = {
    "lines": "new cell lines", "drugs": "new drugs", "within": "entries of known lines and drugs",
    "u1": "MovieLens u1, root of the error", "u3": "MovieLens u3, root of the error",
}  # fmt: skip
LEVEL = 0.9


class Length(NamedTuple):
    """Sweeps that are thrown away and kept: of a chain, and where a rank is chosen; chains."""

    whole: tuple[int, int] = (200, 400)
    brief: tuple[int, int] = (60, 60)
    chains: int = 1
    together: bool = False  # all ranks are averaged, instead of one being chosen
    kept: int = 400  # draws of a peer


LINES = Length((200, 250), (100, 300), chains=2, together=True, kept=1000)  # new cell lines
GRID = (np.arange(50) + 0.5) / 50  # quantiles that stand for a distribution in an average


class Scores(NamedTuple):
    """Mean squared error, coverage of 90 % intervals, and mean correlation within columns."""

    mse: float
    coverage: float | None = None
    correlation: float | None = None


# --- Data


def overlap(folder: Path) -> ObservedMatrix:
    """Logarithms of GDSC with the features of cell lines and drugs."""

    def read(name: str) -> np.ndarray:
        return np.loadtxt(folder / "drug_overlap" / f"{name}.txt")

    return ObservedMatrix.of(read("gdsc_ic50")).with_features(
        {"mutations": read("cell_line_mutations")},
        {"fingerprints": read("drug_fingerprints"), "targets": read("drug_targets")},
        row_kernel={"expression": read("cell_line_expression_kernel")},
    )


def people_and_films(folder: Path) -> tuple[Any, Any]:
    """Features of users and films, as DataFrames."""
    import pandas as pd

    place = folder / "movielens" / "ml-100k"
    users = pd.read_csv(place / "u.user", sep="|", names=["id", "age", "sex", "job", "zip"])
    users["age"] = pd.cut(users["age"], [0, 18, 25, 35, 45, 50, 56, 100]).astype(str)
    users["zip"] = users["zip"].astype(str).str[0]
    films = pd.read_csv(place / "u.item", sep="|", encoding="latin-1", header=None)
    genres = films.iloc[:, 5:].astype(float).rename(columns=lambda c: f"genre {c}")
    years = pd.to_datetime(films[2], format="%d-%b-%Y").dt.year
    genres["decade"] = (years // 10 * 10).astype("Int64").astype(str)
    return users[["age", "sex", "job", "zip"]], genres


# --- Ours


def fitted(
    train: ObservedMatrix, rank: int, sweeps: tuple[int, int], noise: str, chains: int = 1
) -> BayesianMF:
    """The automatic model with this noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return BayesianMF(
            "GGGW", rank, biases=True, noise=noise, burn_in=sweeps[0], draws=sweeps[1],
            chains=chains, random_state=0, n_jobs=2,
        ).fit(train)  # fmt: skip


T = TypeVar("T")


def best(folds: list[Any], candidates: Sequence[T], score: Callable[[Any, T], float]) -> T:
    """The candidate with the least error over some folds of the training data."""
    if len(candidates) == 1:
        return candidates[0]
    errors = [np.mean([score(fold, one) for fold in folds]) for one in candidates]
    return candidates[int(np.argmin(errors))]


def cold(
    fold: ColdFold, ranks: Sequence[int], sweeps: tuple[int, int], noise: str, chains: int = 1
) -> Scores:
    """Scores of rows or columns that were never seen, by the average over the ranks."""
    known = {"row_features": fold.row_features, "col_features": fold.col_features}
    fits = [fitted(fold.train, rank, sweeps, noise, chains) for rank in ranks]
    found = [mf.predict(**known, quantiles=GRID) for mf in fits]
    tail = 0.5 * (1 - LEVEL)
    ends = np.quantile(np.concatenate([own for _, own in found]), [tail, 1 - tail], axis=0)
    return scores(fold.test, np.mean([mean for mean, _ in found], axis=0), *ends)


def scores(test: Triples, mean: Any, low: Any = None, high: Any = None) -> Scores:
    """Scores of a table of predictions."""
    i, j, values = test
    found = mean[i, j]
    inside = None
    if low is not None:
        inside = float(((low[i, j] <= values) & (values <= high[i, j])).mean())
    per_column = []
    for column in np.unique(j):
        part = j == column
        if part.sum() > 2 and min(found[part].std(), values[part].std()) > 0:
            per_column.append(np.corrcoef(found[part], values[part])[0, 1])
    correlation = float(np.mean(per_column)) if per_column else None
    return Scores(mse(values, found), inside, correlation)


def ours_cold(fold: ColdFold, side: str, ranks: tuple[int, ...], length: Length) -> dict[str, Any]:
    inner = list(islice(cold_folds(fold.train, side, 5, random_state=1), INNER))
    chosen, noise = best(
        inner,
        list(product([ranks] if length.together else [(rank,) for rank in ranks], NOISES[side])),
        lambda part, one: cold(part, one[0], length.brief, one[1]).mse,
    )
    found = cold(fold, chosen, length.whole, noise, length.chains)
    rank = {} if length.together else {"rank": chosen[0]}
    return {**rank, "noise": noise, **found._asdict()}


# --- Rivals


def lines_of(fold: ColdFold, side: str) -> tuple[np.ndarray, Triples]:
    """The training matrix and the test entries with what is new in the rows."""
    data, (i, j, values) = fold.train.to_array(), fold.test
    return (data, (i, j, values)) if side == "rows" else (data.T, (j, i, values))


def means(fold: ColdFold, side: str) -> dict[str, Any]:
    """Means of the columns of which a new row has an entry."""
    data, (i, _, _) = lines_of(fold, side)
    counts = (~np.isnan(data)).sum(axis=0)
    average = np.where(counts, np.nansum(data, axis=0) / np.maximum(counts, 1), np.nanmean(data))
    found = np.broadcast_to(average, (int(i.max()) + 1, data.shape[1]))
    return scores(fold.test, found if side == "rows" else found.T)._asdict()


def designs(fold: ColdFold, side: str) -> tuple[np.ndarray, np.ndarray]:
    """Features of the training rows and of the new ones, all groups side by side."""
    X = fold.train if side == "rows" else fold.train.T
    new = fold.row_features if side == "rows" else fold.col_features
    assert X.row_features is not None
    empty = ObservedMatrix.from_triples([], [], [], (new.n, 1)).rows
    old, fresh = X.row_features, X.row_features.of_rows(new.values, new.kernel, empty, None)
    return tuple(np.hstack([g.design for g in side.groups]) for side in (old, fresh))  # type: ignore[return-value]


def ridge(fold: ColdFold, side: str) -> dict[str, Any]:
    """A ridge regression for each column, its penalty by leaving one out."""
    from sklearn.linear_model import RidgeCV

    data, _ = lines_of(fold, side)
    old, new = designs(fold, side)
    found = np.full((len(new), data.shape[1]), np.nanmean(data))
    for column in range(data.shape[1]):
        seen = ~np.isnan(data[:, column])
        if seen.sum() > 2:
            model = RidgeCV(np.logspace(-3, 4, 29)).fit(old[seen], data[seen, column])
            found[:, column] = model.predict(new)
    return scores(fold.test, found if side == "rows" else found.T)._asdict()


def macau(fold: ColdFold, side: str, length: Length) -> dict[str, Any]:
    """SMURFF's Macau on data of mean 0 and variance 1, at the better of two ranks."""
    import smurff
    from scipy import sparse

    data, (i, j, values) = lines_of(fold, side)
    old, new = designs(fold, side)
    mean, size = np.nanmean(data), np.nanstd(data)
    rows, cols = np.nonzero(~np.isnan(data))
    shape = len(old) + len(new), data.shape[1]
    train = sparse.coo_matrix(((data[rows, cols] - mean) / size, (rows, cols)), shape)
    test = sparse.coo_matrix(((values - mean) / size, (i + len(old), j)), shape)
    found = {}
    for rank in PEER_RANKS:
        session = smurff.MacauSession(
            Ytrain=train, Ytest=test, side_info=[np.vstack([old, new]), None], num_latent=rank,
            burnin=length.whole[0], nsamples=length.kept, verbose=0, seed=0, num_threads=1,
            direct=True, univariate=False,
        )  # fmt: skip
        with silence():
            predictions = session.run()
        table = np.full(shape, np.nan)
        for one in predictions:
            table[one.coords] = mean + size * one.pred_avg
        table = table[len(old) :]
        found[rank] = scores(fold.test, table if side == "rows" else table.T)
    rank = min(found, key=lambda k: found[k].mse)
    return {"rank": rank, **found[rank]._asdict()}


def by_myfm(
    shape: tuple[int, int], train: Triples, test: Triples, known: list[Any], length: Length
) -> dict[int, np.ndarray]:
    """Predictions of myFM by rank, with one-hot rows and columns and the features of either."""
    import myfm
    from scipy import sparse

    def blocks(cells: Triples) -> list[Any]:
        return [
            myfm.RelationBlock(cells[axis].tolist(), sparse.csr_matrix(side))
            for axis, side in enumerate(known)
            if side is not None
        ]

    groups = [*shape, *(side.shape[1] for side in known if side is not None)]
    found, mean = {}, train[2].mean()
    for rank in PEER_RANKS:
        model = myfm.MyFMRegressor(rank=rank, random_seed=0)
        with silence():
            model.fit(
                myfm_design(shape, *train[:2]), train[2] - mean, X_rel=blocks(train),
                group_shapes=groups, n_iter=length.whole[0] + length.kept,
                n_kept_samples=length.kept,
            )  # fmt: skip
            found[rank] = mean + model.predict(myfm_design(shape, *test[:2]), blocks(test))
    return found


def myfm_cold(fold: ColdFold, side: str, length: Length) -> dict[str, Any]:
    """MyFM with the features of new and old rows (or columns), at the better of two ranks."""
    data, (i, j, values) = lines_of(fold, side)
    old, new = designs(fold, side)
    rows, cols = np.nonzero(~np.isnan(data))
    shape = len(old) + len(new), data.shape[1]
    train, test = (rows, cols, data[rows, cols]), (i + len(old), j, values)
    found = {}
    for rank, cells in by_myfm(shape, train, test, [np.vstack([old, new]), None], length).items():
        table = np.full((len(new), data.shape[1]), np.nan)
        table[i, j] = cells
        found[rank] = scores(fold.test, table if side == "rows" else table.T)
    rank = min(found, key=lambda k: found[k].mse)
    return {"rank": rank, **found[rank]._asdict()}


def myfm_within(train: ObservedMatrix, test: Triples, known: Any, length: Length) -> dict[str, Any]:
    """MyFM on entries of known rows and columns, at the better of two ranks."""
    sides = [np.hstack([group.design for group in features.groups]) for features in known]
    cells = by_myfm(train.shape, train.triples(), test, sides, length)
    errors = {rank: mse(test[2], one) for rank, one in cells.items()}
    rank = min(errors, key=errors.__getitem__)
    return {"rank": rank, **Scores(errors[rank])._asdict()}


# --- What is run

Run = Callable[[], dict[str, Any]]


def within(
    train: ObservedMatrix, test: Triples, rank: int, sweeps: tuple[int, int], noise: str
) -> Scores:
    """Scores of entries of known rows and columns."""
    mf, tail = fitted(train, rank, sweeps, noise), 0.5 * (1 - LEVEL)
    mean, (low, high) = mf.predict(*test[:2], quantiles=[tail, 1 - tail])
    inside = float(((low <= test[2]) & (test[2] <= high)).mean())
    return Scores(mse(test[2], mean), inside)


def ours_within(
    train: ObservedMatrix, test: Triples, ranks: tuple[int, ...], length: Length, noise: str
) -> dict[str, Any]:
    parts = [holdout(train, 0.1, random_state=0)]
    rank = best(parts, ranks, lambda p, k: within(*p, k, length.brief, noise).mse)
    return {"rank": rank, **within(train, test, rank, length.whole, noise)._asdict()}


def cold_runs(
    X: ObservedMatrix, name: str, ranks: tuple[int, ...], length: Length, n_folds: int
) -> Iterator[tuple[str, str, Run]]:
    side = {"lines": "rows", "drugs": "cols"}[name]
    for number, fold in enumerate(cold_folds(X, side, n_folds, random_state=0)):
        yield "ours", str(number), lambda f=fold: ours_cold(f, side, ranks, length)
        yield "means", str(number), lambda f=fold: means(f, side)
        yield "ridge", str(number), lambda f=fold: ridge(f, side)
        yield "SMURFF Macau", str(number), lambda f=fold: macau(f, side, length)
        yield "myFM", str(number), lambda f=fold: myfm_cold(f, side, length)


def within_runs(
    X: ObservedMatrix, ranks: tuple[int, ...], length: Length, n_folds: int
) -> Iterator[tuple[str, str, Run]]:
    noise = np.random.default_rng(0).normal(size=(X.shape[0], 500))
    for number, (train, test) in enumerate(kfold(X, n_folds, random_state=0)):
        bare = ObservedMatrix.from_triples(*train.triples(), X.shape)
        for method, data in (
            ("without", bare), ("features", train), ("noise", bare.with_features(noise)),
        ):  # fmt: skip
            yield (
                method,
                str(number),
                lambda d=data, t=test: ours_within(d, t, ranks, length, "cols"),
            )


def rating_runs(
    name: str, ranks: tuple[int, ...], length: Length
) -> Iterator[tuple[str, str, Run]]:
    users, films = people_and_films(_folder())
    train, test = next(folds(name))
    informed = train.with_features(users, films)
    for method, data in {
        "without": train, "features": informed, "pattern": train.with_features(pattern="both"),
        "features + pattern": informed.with_features(pattern="both"),
    }.items():  # fmt: skip
        yield method, "0", lambda d=data: ours_within(d, test, ranks, length, "both")
    known = informed.row_features, informed.col_features
    yield "myFM", "0", lambda: myfm_within(train, test, known, length)


PEERS = {"SMURFF Macau": "smurff", "myFM": "myfm"}


def runs(name: str) -> Iterator[tuple[str, str, Run]]:
    """All runs on some data: method, fold, and what to call."""
    ranks, length = RANKS[name], LINES if name == "lines" else Length()
    if name in ("u1", "u3"):
        return rating_runs(name, ranks, length)
    X = overlap(_folder())
    return (
        within_runs(X, ranks, length, 5)
        if name == "within"
        else cold_runs(X, name, ranks, length, 10)
    )


def measure(
    name: str, found: Iterator[tuple[str, str, Run]], options: Options, store: Path
) -> dict[str, Any]:
    """Scores of all runs by method and fold; what is on file is not run again."""
    there = installed(set(PEERS.values())) if options.peers else []
    for method, fold, call in found:
        left_out = options.models and method not in options.models
        if left_out or (method in PEERS and PEERS[method] not in there):
            continue
        kept(store, name, method, fold, make=partial(_timed, call))
    return read_json(store).get(name, {})


def _timed(call: Run) -> dict[str, Any]:
    begin = time.perf_counter()
    return {**call(), "seconds": time.perf_counter() - begin}


def summary(name: str, by_fold: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Means over the folds, by method; one that lacks folds is left out until it has them."""
    found = {}
    whole = max(map(len, by_fold.values()), default=0)
    for method, done in by_fold.items():
        if len(done) < whole:
            continue
        each = list(done.values())

        def mean(key: str, each: list[dict[str, Any]] = each) -> float | None:
            values = [run[key] for run in each if run.get(key) is not None]
            return float(np.mean(values)) if values else None

        error = mean("mse") or 0.0
        found[method] = {
            "error": error**0.5 if name in ("u1", "u3") else error, "coverage": mean("coverage"),
            "correlation": mean("correlation"),
            "ranks": " ".join(str(run["rank"]) for run in each if "rank" in run),
        }  # fmt: skip
    return found


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """All data, the best method first."""
    rows = []
    for name, by_fold in data["scores"].items():
        title, found = TITLES[name], summary(name, by_fold)
        for method, one in sorted(found.items(), key=lambda item: item[1]["error"]):
            coverage = "-" if one["coverage"] is None else f"{100 * one['coverage']:.1f}"
            alike = "-" if one["correlation"] is None else f"{one['correlation']:.3f}"
            ranks = one["ranks"] or "-"
            rows.append((title, method, f"{one['error']:#.4g}", coverage, alike, ranks))
            title = ""
    header = ("data", "method", "error", "90 % coverage", "correlation per column", "ranks")
    return [table("Features", header, rows, quoted=True)]


def claims(data: dict[str, Any]) -> list[dict[str, Any]]:
    """What features must bring, and what they must not cost."""
    made = []
    for name, by_fold in data["scores"].items():
        found = summary(name, by_fold)
        errors = {method: one["error"] for method, one in found.items()}
        if "ours" in errors:
            for rival in ("means", "ridge", "SMURFF Macau", "myFM"):
                if rival in errors:
                    ratio = errors["ours"] / errors[rival]
                    made.append(claim(f"{name}, ours over {rival}", ratio, most=1.0))
            made.append(
                claim(f"{name}, coverage", found["ours"]["coverage"], least=0.86, most=0.94)
            )
        for method, most in (("features", 1.005), ("noise", 1.01)):
            if name == "within" and {method, "without"} <= set(errors):
                ratio = errors[method] / errors["without"]
                made.append(claim(f"within, {method} over without", ratio, most=most))
        targets = {
            "u1": {"pattern": 0.885, "features + pattern": 0.882},
            "u3": {"features + pattern": 0.874},
        }
        for method, most in targets.get(name, {}).items():
            if method in errors:
                made.append(claim(f"{name}, {method}", errors[method], most=most))
    return made


def part(options: Options) -> dict[str, Any]:
    """Scores on the real data, or of small made ones in a quick run."""
    if options.quick:
        data = {"scores": _quick(options)}
        return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": {}}
    chosen = options.data or TITLES
    data = {"scores": {name: measure(name, runs(name), options, STORE) for name in chosen}}
    about = {name: {"source": "real"} for name in data["scores"]}
    return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": about}


def _quick(options: Options) -> dict[str, Any]:
    rng, length = np.random.default_rng(0), Length((3, 4), (2, 2))
    X = synthetic((30, 20), 400, 1, 5).with_features(
        rng.normal(size=(30, 4)), rng.normal(size=(20, 3)), row_kernel=np.eye(30)
    )
    found = {
        "lines": cold_runs(X, "lines", (2,), length, 2),
        "drugs": cold_runs(X, "drugs", (2,), length, 2),
        "within": within_runs(X, (1, 2), length, 2),
    }
    with TemporaryDirectory() as folder:
        store = Path(folder, "runs.json")
        return {name: measure(name, some, options, store) for name, some in found.items()}
