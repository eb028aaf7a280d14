"""Milliseconds of a sweep with features, beside the same sweep without, SMURFF's Macau and myFM.

GGGW at rank 20: 1,000 dense features of the rows of a 5,000 x 1,000 matrix, a fifth of it observed;
20,000 of those of a 700 x 1,000 matrix, half observed, and of GDSC (705 x 139), all normal; 30,000
of a 20,000 x 1,000 matrix, of which each row has 20, by conjugate gradients; and MovieLens 100K
(u1) with the pattern of both sides. All run on one thread, and times are those of the processor,
which other work on the machine changes little. Sweeps with features and without take turns, and the
best counts; of the peers, the best of three. Macau samples the precision of its weights, so it has
to solve anew in every sweep: directly, or by conjugate gradients, which it has for sparse features
alone, so that 20,000 dense ones are beyond it. It gets sparse features as ours are scaled, with
which it takes fewer steps than with ones. myFM has features as blocks of relations. What the two
products of a sweep with a dense design take in NumPy, with one thread of its BLAS, says how far
from the machine's limit ours are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from bayesmf import ObservedMatrix, Problem, chain, preset
from benchmarks.common import load, say, synthetic
from benchmarks.noise import folds
from benchmarks.peers import installed, myfm_design, silence
from benchmarks.report import Options, claim, table
from benchmarks.timing import WARM_UP

RANK = 20
MOST, LEAST = 1.5, 8.0  # times the sweep without features; times as fast as a peer
SWEEPS = 3  # of a peer, after one that warms up; ours in a round


class Case(NamedTuple):
    """A matrix, its features or the pattern of both sides, and the peers that can have them."""

    X: ObservedMatrix
    features: Any
    peers: tuple[str, ...] = ()

    @property
    def informed(self) -> ObservedMatrix:
        """The matrix with what is known of it."""
        if self.features is None:
            return self.X.with_features(pattern="both")
        return self.X.with_features(self.features)


def _normal(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


def _ones(n: int, width: int, each: int) -> Any:
    """A sparse matrix (n, width) with so many ones in each row."""
    columns = np.random.default_rng(0).integers(0, width, (n, each))
    rows = np.repeat(np.arange(n), each)
    return sparse.csr_matrix((np.ones(rows.size), (rows, columns.ravel())), shape=(n, width))


CASES: dict[str, Callable[[], Case]] = {
    "1,000 features of 5,000 rows": lambda: Case(
        synthetic((5000, 1000), 1_000_000, 1, 5), _normal((5000, 1000)), ("smurff", "myfm")
    ),
    "20,000 features of 700 rows": lambda: Case(
        synthetic((700, 1000), 350_000, 1, 5), _normal((700, 20_000)), ("myfm",)
    ),
    "20,000 features of GDSC": lambda: Case(load("gdsc").X, _normal((705, 20_000))),
    "30,000 sparse features of 20,000 lines": lambda: Case(
        synthetic((20_000, 1000), 1_000_000, 1, 5), _ones(20_000, 30_000, 20), ("smurff", "myfm")
    ),
    "MovieLens u1, pattern of both sides": lambda: Case(next(folds("u1"))[0], None),
}
QUICK: dict[str, Callable[[], Case]] = {
    "5 features of 30 rows": lambda: Case(
        synthetic((30, 20), 300, 1, 5), _normal((30, 5)), ("smurff", "myfm")
    ),
    "pattern": lambda: Case(synthetic((30, 20), 300, 1, 5), None),
}


def ours(case: Case, rounds: int, rank: int) -> dict[str, float]:
    """Milliseconds of a sweep without features and with them."""
    chains = {
        name: chain(Problem.of(X, preset("GGGW"), rank), random_state=0)
        for name, X in (("without", case.X), ("with", case.informed))
    }
    seconds: dict[str, list[float]] = {name: [] for name in chains}
    for _ in range(WARM_UP + SWEEPS * rounds):
        for name, states in chains.items():
            begin = time.process_time()
            next(states)
            seconds[name].append(time.process_time() - begin)
    return {name: 1000 * min(all_of[WARM_UP:]) for name, all_of in seconds.items()}


def products(case: Case, rounds: int, rank: int) -> dict[str, float]:
    """Milliseconds of both products of a dense design with a matrix of this rank, by NumPy."""
    known = case.informed.row_features
    A = None if known is None else known.groups[0].design
    if A is None or sparse.issparse(A):
        return {}
    U, B, seconds = _normal((len(A), rank)), _normal((A.shape[1], rank)), []
    with threadpool_limits(1):
        for _ in range(WARM_UP + SWEEPS * rounds):
            begin = time.process_time()
            _ = A @ B, A.T @ U
            seconds.append(time.process_time() - begin)
    return {"products": 1000 * min(seconds)}


def _scaled(case: Case) -> Any:
    """Sparse features as ours are scaled."""
    known = case.informed.row_features
    assert known is not None
    return sparse.csr_matrix(known.groups[0].design)


def macau(case: Case, rank: int) -> float:
    """Milliseconds of a sweep of SMURFF's Macau."""
    import smurff

    rows, cols, values = case.X.triples()
    train = sparse.coo_matrix((values - case.X.mean, (rows, cols)), shape=case.X.shape)
    is_sparse = sparse.issparse(case.features)
    features = _scaled(case) if is_sparse else case.features
    session = smurff.TrainSession(
        priors=["macau", "normal"], num_latent=rank, num_threads=1, verbose=0, seed=0,
        burnin=SWEEPS, nsamples=1,
    )  # fmt: skip
    seconds = []
    with silence():
        session.addTrainAndTest(train, None, smurff.FixedNoise(1.0))
        session.addSideInfo(0, features, smurff.SampledNoise(1.0), direct=not is_sparse)
        session.init()
        for _ in range(SWEEPS + 1):
            begin = time.process_time()
            session.step()
            seconds.append(time.process_time() - begin)
    return 1000 * min(seconds[1:])


def by_myfm(case: Case, rank: int) -> float:
    """Milliseconds of a sweep of myFM."""
    import myfm

    rows, cols, values = case.X.triples()
    block = myfm.RelationBlock(rows.tolist(), sparse.csr_matrix(case.features))
    ends: list[float] = []
    with silence():
        myfm.MyFMRegressor(rank=rank, random_seed=0).fit(
            myfm_design(case.X.shape, rows, cols), values - case.X.mean, X_rel=[block],
            group_shapes=[*case.X.shape, block.feature_size], n_iter=SWEEPS + 2, n_kept_samples=1,
            callback=lambda *_: (ends.append(time.process_time()), (False, ""))[1],
        )  # fmt: skip
    return 1000 * float(np.min(np.diff(ends)))


PEERS = {"smurff": ("Macau", macau), "myfm": ("myFM", by_myfm)}


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """One line for every case."""
    names = ("without", "with", "products", *(name for name, _ in PEERS.values()))
    rows = [
        (case, *(found.get(name) for name in names), found["with"] / found["without"])
        for case, found in data["milliseconds"].items()
    ]
    header = ("case", "ms without", "ms with features", "both products by NumPy", "Macau", "myFM",
              "with / without")  # fmt: skip
    return [table("A sweep with features", header, rows, quoted=True)]


def claims(data: dict[str, Any]) -> list[dict[str, Any]]:
    """What features may cost, and how much faster than peers they are."""
    made = []
    for case, found in data["milliseconds"].items():
        if "rows" in case or "GDSC" in case:
            ratio = found["with"] / found["without"]
            made.append(claim(f"{case}, with over without", ratio, most=MOST))
        for name, _ in PEERS.values():
            if name in found:
                times = found[name] / found["with"]
                made.append(claim(f"{case}, {name} over ours", times, least=LEAST))
    return made


def part(options: Options) -> dict[str, Any]:
    """Milliseconds of all cases."""
    there = installed(PEERS) if options.peers else []
    found: dict[str, dict[str, float]] = {}
    for name, make in (QUICK if options.quick else CASES).items():
        case, rank = make(), 2 if options.quick else RANK
        say(name)
        found[name] = ours(case, options.repeats, rank) | products(case, options.repeats, rank)
        for peer in [name for name in case.peers if name in there]:
            title, run = PEERS[peer]
            found[name][title] = run(case, rank)
            say(f"{name}: {found[name]}")
    data = {"milliseconds": found}
    return {"claims": claims(data), "tables": tables(data), "data": data, "datasets": {}}
