"""Processes that are killed at any time, again and again, end as if nobody had.

BAYESMF_KILLS says how often: a dozen times by default. Sampling into a store, a comparison and a
small study take turns; a job that comes to its end is compared and begins anew.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.comparison.test_places import CALL, matrix
from tests.sampler.test_checkpoints import SCRIPT
from tests.study.small import SMALL, reference_results, results, some_tasks

KILLS = int(os.environ.get("BAYESMF_KILLS", "12"))


def sampling(folder):
    return [sys.executable, "-c", SCRIPT, str(folder / "store"), str(folder / "found.npz")]


def comparison(folder):
    np.save(folder / "X.npy", matrix())
    code = CALL.replace("compare(np", "found = compare(np") + (
        "told = [repr(s._replace(seconds=0.0)) for s in found.standings]\n"
        "open(sys.argv[3], 'w').write('\\n'.join(told))\n"
    )
    places = (folder / name for name in ("X.npy", "store", "found.txt"))
    return [sys.executable, "-c", code, *map(str, places)]


def study(folder):
    return [
        sys.executable, "-m", "bayesmf.cli", "reproduce", "sparsity", "--datasets", SMALL,
        "--models", "GGG,GEE,NMF,row_average,column_average", "--no-figures", "--quiet",
        "--output", str(folder),
    ]  # fmt: skip


def found_by(job, folder):
    """What a job that came to its end has found."""
    if job is sampling:
        with np.load(folder / "found.npz") as file:
            return {name: file[name].tobytes() for name in file.files}
    if job is comparison:
        return (folder / "found.txt").read_text()
    from bayesmf.tasks.store import Store

    return json.dumps(results(Store(folder / "store"), some_tasks()), sort_keys=True)


def stamps(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def is_killed(command, folder, pick):
    """Start a job and kill it some time after it has written something; False if it ended."""
    process, before = subprocess.Popen(command), None
    while process.poll() is None:
        try:
            now = stamps(folder)
        except FileNotFoundError:  # a file that came and went
            continue
        if before is None:
            before = now
        if now != before:
            break
        time.sleep(0.005)
    try:
        assert process.wait(pick.uniform(0.0, 0.6)) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


@pytest.mark.slow
def test_jobs_that_are_killed_end_as_if_they_had_not_been(tmp_path):
    jobs, expected = (sampling, comparison, study), {}
    for job in jobs:
        place = tmp_path / f"whole-{job.__name__}"
        place.mkdir()
        assert subprocess.run(job(place)).returncode == 0
        expected[job] = found_by(job, place)
    assert expected[study] == json.dumps(reference_results(), sort_keys=True)
    pick, killed, ended = random.Random(0), 0, 0
    places = {job: new_place(tmp_path) for job in jobs}
    while killed < KILLS:
        job = jobs[killed % len(jobs)]
        if is_killed(job(places[job]), places[job], pick):
            killed += 1
        else:
            assert found_by(job, places[job]) == expected[job], job.__name__
            places[job], ended = new_place(tmp_path), ended + 1
    for job, place in places.items():
        assert subprocess.run(job(place)).returncode == 0
        assert found_by(job, place) == expected[job], job.__name__
    print(f"{killed} kills, {ended + len(jobs)} jobs that ended as those that nobody killed")


def new_place(folder: Path) -> Path:
    place = folder / f"place-{len(list(folder.iterdir()))}"
    place.mkdir()
    return place
