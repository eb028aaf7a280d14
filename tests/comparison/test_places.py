"""Where trials run, and how often the process dies on the way, does not change a comparison."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bayesmf import compare

OPTIONS = {"ranks": [1, 2], "budget": "quick", "folds": 2, "scale": "none"}
NAMES = ["GGG", "GGGW", "row-average"]
CALL = f"""
import sys
import numpy as np
from bayesmf import compare
compare(np.load(sys.argv[1]), {NAMES}, **{OPTIONS}, store=sys.argv[2])
"""


def matrix():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)) + rng.normal(0, 0.3, (30, 20))
    X[rng.random(X.shape) < 0.3] = np.nan
    return X


@pytest.fixture(scope="module")
def here():
    return [s._replace(seconds=0.0) for s in compare(matrix(), NAMES, **OPTIONS).standings]


def same(found, here):
    for one, other in zip(found.standings, here, strict=True):
        np.testing.assert_equal(one._replace(seconds=0.0), other)


def test_a_dask_cluster_makes_the_same_comparison(here):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        same(compare(matrix(), NAMES, **OPTIONS, dask=cluster.scheduler_address), here)


def test_a_comparison_that_was_killed_goes_on(here, tmp_path):
    np.save(tmp_path / "X.npy", matrix())
    store = tmp_path / "store"
    process = subprocess.Popen([sys.executable, "-c", CALL, tmp_path / "X.npy", store])
    while process.poll() is None and len(list(store.rglob("*.json"))) < 2:
        time.sleep(0.01)
    assert process.poll() is None, "the comparison ended before it could be killed"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    calls = []
    found = compare(
        matrix(), NAMES, **OPTIONS, store=store, progress=lambda _, text: calls.append(text)
    )
    same(found, here)
    took = sum("took" in text for text in calls)
    assert 0 < took < 2 * 5  # folds, trials
