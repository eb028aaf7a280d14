"""One chain on a Dask cluster: the draws of one process, whatever becomes of the workers."""

from __future__ import annotations

import logging
import os
import random
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from bayesmf import BayesianMF, Model, ModelError, Normal, preset, sample
from bayesmf.likelihoods import Gaussian, Likelihood
from bayesmf.sampler.cluster import Crew, refuse
from bayesmf.sampler.shard import Outcome
from bayesmf.sampler.sweep import sweep
from tests.helpers.shards import CASES, after, data, problem

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
REQUIRED = ("GGGW", "GEE", "PGG", "ordinal")


@contextmanager
def workers(n):
    """A cluster on this machine that brings back workers that die, however slowly."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        distributed.LocalCluster(
            n_workers=n, threads_per_worker=1, processes=True, dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):  # fmt: skip
        yield cluster


@pytest.fixture(scope="module")
def cluster():
    with workers(4) as found:
        yield found


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster.scheduler_address, direct_to_workers=True) as found:
        yield found


def check(client, name, sizes, observed=0.3):
    whole, state, sweeps = problem(name, observed)
    alone = after(sweep, whole, state, sweeps)
    for size in sizes:
        crew = Crew(client, whole, "here", shards=size)
        found = after(crew.sweep, whole, state, sweeps)
        crew.close()
        assert all(np.array_equal(found[key], alone[key]) for key in alone), (name, size)


@pytest.mark.parametrize("name", REQUIRED)
def test_workers_draw_what_one_process_draws(client, name):
    check(client, name, [2, 3] if name == "GGGW" else [4])


@pytest.mark.slow
@pytest.mark.parametrize("observed", [0.3, 0.9])
@pytest.mark.parametrize("name", CASES)
def test_any_number_of_workers_draws_the_same(client, name, observed):
    check(client, name, [1, 2, 3, 4], observed)


def holders(cluster):
    """Process ids of the workers that the scheduler knows."""
    known = cluster.scheduler.workers
    return [nanny.process.pid for nanny in cluster.workers.values()
            if nanny.worker_address in known and nanny.process]  # fmt: skip


def killed_while_sampling(cluster, times, every, draws):
    """A run during which workers are killed, beside one on this machine; how many were killed."""
    X, killed, pick = data("real", 0.3), [], random.Random(0)
    options = {"draws": draws, "burn_in": 2, "random_state": 1, "keep": "all", "noise": "both"}
    alone = sample(X, "GGGW", 4, biases=True, **options)

    def kill():
        time.sleep(0.02 * pick.random())  # anywhere in a sweep
        killed.append(pick.choice(holders(cluster)))
        os.kill(killed[-1], signal.SIGKILL)

    def progress(event):
        if event.sweep % every == 1 and len(killed) < times:
            threading.Thread(target=kill).start()

    address = cluster.scheduler_address
    found = sample(X, "GGGW", 4, biases=True, dask=address, progress=progress, **options)
    assert all(np.array_equal(found.draws[name], alone.draws[name]) for name in alone.draws)
    assert np.array_equal(found.mean, alone.mean)
    return len(killed)


def test_a_worker_that_dies_changes_no_draw(cluster):
    assert killed_while_sampling(cluster, 1, 3, draws=6) == 1


@pytest.mark.slow
def test_ten_workers_that_die_change_no_draw():
    with workers(3) as several:
        assert killed_while_sampling(several, 10, 6, draws=80) == 10


def test_chains_and_estimators_take_a_cluster(cluster):
    X = data("real", 0.3)
    options = {"draws": 6, "burn_in": 2, "chains": 2, "random_state": 1}
    alone = BayesianMF("GGG", 2, **options).fit(X.to_array())
    spread = BayesianMF("GGG", 2, dask=cluster.scheduler_address, **options).fit(X.to_array())
    assert np.array_equal(spread.predict(), alone.predict())


def test_what_cannot_be_spread_is_refused_before_anything_else():
    class Mine(Likelihood):
        name = "mine"
        fits = Gaussian.fits
        working = log_density = law = None

    with pytest.raises(ModelError, match="volume prior draws one row after the other"):
        sample(np.eye(4), "GVG", 2, dask="tcp://127.0.0.1:9")
    with pytest.raises(ModelError, match=r"mine likelihood does not say .*takes_shards"):
        refuse(Model(Mine(), Normal(0.1), Normal(0.1)))
    refuse(preset("GGGW"))


def test_shards_that_disagree_are_found_out():
    crew = Crew.__new__(Crew)
    crew._address, crew.sent, crew._last = "here", 0, {}
    state = problem("GGGW", 0.3)[1]
    with pytest.raises(ModelError, match="workers do not agree about sweep 1"):
        crew._agreed(state, [Outcome(state, 1), Outcome(None, 2)])
    assert crew._agreed(state, [Outcome(state, 1), Outcome(None, 1)]) is state


def test_a_scheduler_that_goes_away_is_named():
    with workers(1) as gone:
        address = gone.scheduler_address

        def progress(event):
            if event.sweep == 2:
                gone.close()

        with pytest.raises(ModelError, match=r"--dask .* the scheduler does not answer any more"):
            sample(data("real", 0.3), "GGG", 2, draws=50, dask=address, progress=progress)
