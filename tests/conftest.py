"""Shared fixtures: the real data where they are present, and what the exactness tests note."""

from __future__ import annotations

import os
import sys

# Tests run side by side: products of small matrices on threads would wait for each other. Before
# NumPy is loaded, here and in the processes that tests start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest

from bayesmf import ObservedMatrix
from bayesmf.datasets import load, present
from tests.helpers.matrices import data_folder
from tests.helpers.verdicts import (  # noqa: F401  fixtures and hooks of the exactness tests
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_generate_tests,
    repetition,
    verdict,
)


@pytest.fixture(autouse=True)
def _close_figures():
    """Figures that examples have opened are closed, wherever these stand."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def gdsc() -> ObservedMatrix:
    """GDSC IC50 as the study used it: rows with three values or more, truncated to integers."""
    folder = data_folder()
    if folder is None or not present("GDSC", folder):
        pytest.skip("the GDSC matrix is not here: set BAYESMF_DATA to the folder that has it")
    matrix = load("GDSC", data_home=folder).X
    assert (matrix.shape, matrix.n_observed) == ((705, 139), 79_259)
    return matrix
