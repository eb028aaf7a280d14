"""Datasets that need no file: scikit-learn's digits, and simulated drug sensitivities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bayesmf.data.observed import FloatArray, ObservedMatrix

N_LINES, N_DRUGS, RANK = 120, 40, 4
NOISE_SD = 0.5  # of the simulated drug sensitivities
_LATE_DRUGS = 12  # the last ones, tested on half of the cell lines
_FAILED = 0.12  # share of the tests without a result
_SEED = 20170401


def digits(paths: Sequence[Path], raw: bool) -> ObservedMatrix:
    """Images of handwritten digits, one in each row; raw or not, they are the same."""
    from sklearn.datasets import load_digits

    images = load_digits()
    rows = [f"digit {digit} #{k}" for k, digit in enumerate(images.target)]
    cols = [f"pixel {k // 8},{k % 8}" for k in range(64)]
    return ObservedMatrix.of(images.data, row_labels=rows, col_labels=cols)


def drug_sensitivity(paths: Sequence[Path], raw: bool) -> ObservedMatrix:
    """Simulated sensitivities with noise and missing tests; raw or not, they are the same."""
    truth = drug_truth()
    rng = np.random.default_rng([_SEED, 1])
    values = truth + NOISE_SD * rng.standard_normal(truth.shape)
    tested = rng.random(truth.shape) >= _FAILED
    untested = rng.permutation(N_LINES)[: N_LINES // 2]
    tested[untested, -_LATE_DRUGS:] = False
    return ObservedMatrix.of(
        values,
        mask=tested,
        row_labels=[f"CL-{k + 1:03d}" for k in range(N_LINES)],
        col_labels=[f"drug {k + 1:02d}" for k in range(N_DRUGS)],
    )


def drug_truth() -> FloatArray:
    """The simulated sensitivities without noise: a mean, row and column effects, four factors."""
    rng = np.random.default_rng([_SEED, 0])
    lines, drugs = 0.6 * rng.standard_normal(N_LINES), rng.standard_normal(N_DRUGS)
    U, V = (0.7 * rng.standard_normal((n, RANK)) for n in (N_LINES, N_DRUGS))
    return 7.5 + lines[:, None] + drugs + U @ V.T
