"""Shared fixtures: small matrices that suit every preset, and the real data where it is present."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bayesmf import PRESETS, Biases, ObservedMatrix, preset
from bayesmf.datasets import load, present
from verdicts import (  # noqa: F401  fixtures and hooks of the exactness tests
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_generate_tests,
    repetition,
    verdict,
)

ALL_PRESETS = list(PRESETS)


def small_matrix(density: float = 0.7, shape: tuple[int, int] = (17, 12), seed: int = 0):
    """Counts with NaN for missing: data that every preset accepts."""
    rng = np.random.default_rng(seed)
    rank_two = rng.gamma(2.0, 1.0, (shape[0], 2)) @ rng.gamma(2.0, 1.0, (2, shape[1]))
    X = rng.poisson(rank_two).astype(float)
    X[rng.random(shape) > density] = np.nan
    X[0, 0] = 3.0
    return X


def models() -> list:
    """Every preset, GLLI in both readings, and some with biases."""
    named = [pytest.param(preset(name), id=name) for name in ALL_PRESETS]
    named.append(pytest.param(preset("GLLI", reading="rate"), id="GLLI-rate"))
    for name in ("GGGW", "GVG", "GEE"):
        biased = replace(preset(name), biases=Biases())
        named.append(pytest.param(biased, id=f"{name}-biases"))
    return named


def data_folder() -> Path | None:
    """Folder of the real matrices, if it is there."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("BAYESMF_DATA", beside))
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def gdsc() -> ObservedMatrix:
    """GDSC IC50 as the study used it: rows with three values or more, truncated to integers."""
    folder = data_folder()
    if folder is None or not present("GDSC", folder):
        pytest.skip("the GDSC matrix is not here: set BAYESMF_DATA to the folder that has it")
    matrix = load("GDSC", data_home=folder).X
    assert (matrix.shape, matrix.n_observed) == ((705, 139), 79_259)
    return matrix
