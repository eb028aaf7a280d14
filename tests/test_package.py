"""The package as a whole: quick imports, documented examples, public names."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys

import pytest

import bayesmf

DOCUMENTED = "_errors baselines metrics model observed posterior presets splits".split()


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_in_docstrings_run(name):
    module = importlib.import_module(f"bayesmf.{name}")
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted > 0


def test_every_public_name_exists_and_is_documented():
    for name in bayesmf.__all__:
        assert getattr(bayesmf, name).__doc__ or name == "__version__", name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = bayesmf.nothing


def test_import_loads_nothing_heavy():
    """What loads decides how long it takes; the time itself depends on the machine."""
    code = (
        "import sys, bayesmf; "
        "print([m for m in ('numpy', 'numba', 'scipy', 'pandas', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
