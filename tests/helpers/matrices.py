"""Small matrices and models that suit every test, and where the real data are."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bayesmf import PRESETS, Biases, preset

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
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get("BAYESMF_DATA", beside))
    return folder if folder.is_dir() else None
