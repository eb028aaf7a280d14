"""Accuracy on GDSC against the numbers that the study published."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmf import sample
from bayesmf.metrics import mse
from bayesmf.splits import holdout

# Mean test error at K = 10 of the study's model selection experiment (Brouwer and Lió, published
# results); GLL is compared at the Laplace scale that the study's sampler really had.
PUBLISHED = {
    "GGG": (696.574, {}),
    "GGGA": (691.761, {}),
    "GLL": (688.721, {"eta": 10**-0.25}),
    "GEE": (709.205, {}),
    "GVG": (695.085, {"gamma": 1e-30}),
}


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_held_out_error_is_no_worse_than_published(gdsc, name):
    """Mean over five 90/10 splits, 300 sweeps of which the last 150 are kept."""
    published, hyper = PUBLISHED[name]
    errors = []
    for seed in range(5):
        train, (rows, cols, values) = holdout(gdsc, 0.1, random_state=seed)
        posterior = sample(
            train, name, 10, draws=150, burn_in=150, cells=(rows, cols),
            hyperparameters=hyper, random_state=seed, n_jobs=2,
        )  # fmt: skip
        errors.append(mse(values, posterior.mean))
    assert np.mean(errors) <= 1.01 * published, np.mean(errors)
