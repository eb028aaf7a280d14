"""The peers: SMURFF and myFM (normal priors, Gibbs sampling) and hpfrec (Poisson, variational).

All are optional (``pip install smurff myfm hpfrec pandas``). SMURFF has normal priors on both
sides, which is GGGW, and as many threads as the presets; it is driven step by step, which spares
it the progress bar that its own loop draws at every sweep. myFM trains on one thread whatever is
asked.

SMURFF 1.1 holds the precision of "sampled" noise fixed on the training data; only "adaptive" noise
follows the residuals. Where sweeps are timed it has the former, which spares it a pass over the
data that GGGW makes. Where its draws are compared it has the latter, on data of unit variance:
otherwise its posterior is another one, and so is the number of effective samples.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from bayesmf import ObservedMatrix
from benchmarks.timing import Run


def installed(names: Iterable[str]) -> list[str]:
    """Those peers that can be imported; says which cannot."""
    found = []
    for name in names:
        try:
            import_module(name)
        except ImportError:
            print(f"{name}: not installed, left out")
        else:
            found.append(name)
    return found


@contextmanager
def silence() -> Iterator[None]:
    """Send standard output and error of this process, compiled code included, to nowhere."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for descriptor in (*saved, nowhere):
            os.close(descriptor)


def _smurff_session(
    X: ObservedMatrix, rank: int, threads: int, noise: Any, test: Any = None, **options: Any
) -> Any:
    """A session of Bayesian probabilistic matrix factorisation with the data in it."""
    import smurff

    rows, cols, values = X.triples()
    session = smurff.TrainSession(
        priors=["normal", "normal"], num_latent=rank, num_threads=threads, verbose=0, **options
    )
    session.addTrainAndTest(sparse.coo_matrix((values, (rows, cols)), shape=X.shape), test, noise)
    return session


def smurff_run(X: ObservedMatrix, rank: int, threads: int) -> Run:
    """Bayesian probabilistic matrix factorisation by SMURFF, on the data less its mean."""
    import smurff

    centred = shifted(X, X.mean)

    def run(sweeps: int) -> float:
        with silence():
            noise = smurff.SampledNoise(1.0)
            session = _smurff_session(
                centred, rank, threads, noise, seed=1, burnin=sweeps - 1, nsamples=1
            )
            begin = time.perf_counter()
            session.init()
            while session.step():
                pass
            return time.perf_counter() - begin

    return run


class Draws(NamedTuple):
    """Predictions of some cells, (draws, cells), and the seconds that the sweeps took."""

    values: np.ndarray
    seconds: float


def smurff_draws(
    X: ObservedMatrix, cells: tuple[np.ndarray, np.ndarray], rank: int, threads: int,
    burn_in: int, draws: int, seed: int,
) -> Draws:  # fmt: skip
    """Every draw of SMURFF's predictions of the cells, and the seconds of those sweeps alone."""
    import smurff

    order = np.lexsort(cells[::-1])
    rows, cols = (c[order] for c in cells)
    test = sparse.coo_matrix((np.ones(rows.size), (rows, cols)), shape=X.shape)
    values, seconds = np.empty((draws, rows.size)), 0.0
    with silence():
        session = _smurff_session(
            X, rank, threads, smurff.AdaptiveNoise(1.0, 10.0), test,
            seed=seed, burnin=burn_in, nsamples=draws,
        )  # fmt: skip
        session.init()
        for sweep in range(-burn_in, draws):
            begin = time.perf_counter()
            session.step()
            elapsed = time.perf_counter() - begin
            if sweep >= 0:
                seconds += elapsed
                predicted = {p.coords: p.pred_1sample for p in session.getTestPredictions()}
                values[sweep, order] = [
                    predicted[cell] for cell in zip(rows.tolist(), cols.tolist(), strict=True)
                ]
    return Draws(values, seconds)


def shifted(X: ObservedMatrix, shift: float, scale: float = 1.0) -> ObservedMatrix:
    """Return the matrix of (x - shift) / scale."""
    rows, cols, values = X.triples()
    return ObservedMatrix.from_triples(rows, cols, (values - shift) / scale, X.shape)


def myfm_design(shape: tuple[int, int], rows: np.ndarray, cols: np.ndarray) -> Any:
    """One line for every cell: a one for its row and a one for its column."""
    cells, ones = np.arange(rows.size), np.ones(rows.size)
    sides = [
        sparse.csr_matrix((ones, (cells, index)), shape=(rows.size, size))
        for index, size in zip((rows, cols), shape, strict=True)
    ]
    return sparse.hstack(sides, format="csr")


def myfm_run(X: ObservedMatrix, rank: int, threads: int) -> Run:
    """Bayesian factorisation machine by myFM, on the data less its mean."""
    import myfm

    rows, cols, values = X.triples()
    design = myfm_design(X.shape, rows, cols)

    def run(sweeps: int) -> float:
        model = myfm.MyFMRegressor(rank=rank, random_seed=0)
        with silence():
            begin = time.perf_counter()
            model.fit(
                design, values - X.mean, n_iter=sweeps, n_kept_samples=1, group_shapes=X.shape
            )
            return time.perf_counter() - begin

    return run


SWEEPERS: dict[str, Callable[[ObservedMatrix, int, int], Run]] = {
    "smurff": smurff_run,
    "myfm": myfm_run,
}


def hpfrec_fit(
    X: ObservedMatrix, rank: int, threads: int, iterations: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Factors by hierarchical Poisson factorisation with hpfrec, and the seconds of its fit."""
    import pandas as pd
    from hpfrec import HPF

    rows, cols, values = X.triples()
    frame = pd.DataFrame({"UserId": rows, "ItemId": cols, "Count": values})
    with silence():
        model = HPF(
            k=rank, maxiter=iterations, check_every=iterations, stop_crit="maxiter", reindex=False,
            random_seed=1, ncores=threads, allow_inconsistent_math=threads > 1, keep_data=False,
            verbose=False,
        )  # fmt: skip
        begin = time.perf_counter()
        model.fit(frame)
        seconds = time.perf_counter() - begin
    factors = [  # it ends with the last row, or column, that has an entry
        np.vstack([found.astype(float), np.zeros((size - len(found), rank))])
        for found, size in zip((model.Theta, model.Beta), X.shape, strict=True)
    ]
    return *factors, seconds
