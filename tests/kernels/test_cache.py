"""The folder of compiled kernels: damage, full disks, and folders of others."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from bayesmf.kernels import cache
from tests.helpers.damage import damage

# A kernel small enough to be compiled often.
SCRIPT = """
import numpy as np
from bayesmf.kernels.cells import accumulate
mean, square = np.zeros(3), np.zeros(3)
for count, values in ((1, [1.0, 2.0, 4.0]), (2, [3.0, 2.0, 0.0])):
    accumulate(np.array(values), count, mean, square)
assert mean.tolist() == [2.0, 2.0, 2.0] and square.tolist() == [2.0, 0.0, 8.0]
print(sum(accumulate.stats.cache_hits.values()))
"""


def run(folder, **more):
    """How often the kernel was read from the cache, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True,
        env={**os.environ, "BAYESMF_CACHE": str(folder), **more},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return int(done.stdout), done.stderr


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    assert run(folder) == (0, "")
    assert run(folder) == (1, "")
    return folder


def check(original, copy, seed):
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(original, copy)
    told = damage(copy, seed)
    assert run(copy)[1] == "", told
    assert run(copy) == (1, ""), told  # a damaged entry has been compiled again


@pytest.mark.parametrize("seed", [2])
def test_a_damaged_entry_is_compiled_again(original, tmp_path, seed):
    check(original, tmp_path / "copy", seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_many_damaged_entries_are_compiled_again(original, tmp_path, seed):
    check(original, tmp_path / "copy", seed)


def test_a_folder_of_others_is_refused_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("BAYESMF_CACHE", str(tmp_path))
    folder = cache.cache_folder()
    assert folder is not None and folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o770)
    with pytest.warns(RuntimeWarning, match="can be written by other users"):
        assert cache.cache_folder() is None
    folder.chmod(0o755)
    assert cache.cache_folder() == folder
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert cache.cache_folder() is None


def test_a_full_disk_compiles_in_memory(tmp_path, monkeypatch):
    import numba

    monkeypatch.setenv("BAYESMF_CACHE", str(tmp_path))

    def twice(x):
        return 2.0 * x

    compiled = numba.njit(twice)
    compiled._cache = cache.cache_of(twice, cache.cache_folder())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(compiled._cache._cache_file), "_write", full)
    assert compiled(np.float64(3.0)) == 6.0
