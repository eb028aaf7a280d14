"""Fill the gaps of a simulated drug-sensitivity matrix, with error bars.

python examples/quickstart.py
"""

from __future__ import annotations

import numpy as np

from bayesmf import baseline, sample
from bayesmf.metrics import mse


def simulate(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return log IC50 of 120 cell lines and 40 drugs, and the same with half missing."""
    lines, drugs, mechanisms = 120, 40, 4
    sensitivity = rng.normal(size=(lines, mechanisms))
    target = rng.normal(size=(drugs, mechanisms)) * (rng.random((drugs, mechanisms)) < 0.6)
    potency = rng.normal(2.0, 1.0, size=drugs)
    truth = potency + sensitivity @ target.T + 0.3 * rng.normal(size=(lines, drugs))
    return truth, np.where(rng.random(truth.shape) < 0.5, np.nan, truth)


def main() -> None:
    """Compare a few models on the hidden half."""
    truth, X = simulate(np.random.default_rng(0))
    hidden = np.isnan(X)
    print(f"{X.shape[0]} cell lines x {X.shape[1]} drugs, {hidden.mean():.0%} missing\n")
    print(f"{'model':16}{'held-out MSE':>14}{'90 % interval covers':>24}")
    for name in ("column-average", "NMF"):
        shift = np.nanmin(X) if name == "NMF" else 0.0  # NMF wants nonnegative numbers
        fit = baseline(X - shift, name, 6, random_state=0).mean + shift
        print(f"{name:16}{mse(truth[hidden], fit[hidden]):14.3f}{'-':>24}")
    for name in ("GGG", "GGGA", "GGGW", "GLL"):
        posterior = sample(X, name, 8, draws=500, burn_in=500, random_state=0, n_jobs=-1)
        mean, variance = posterior.mean[hidden], posterior.variance[hidden]
        noise = np.mean(1 / posterior.noise_precision)
        inside = np.abs(truth[hidden] - mean) < 1.645 * np.sqrt(variance + noise)
        print(f"{name:16}{mse(truth[hidden], mean):14.3f}{inside.mean():24.1%}")
    print("\nThe interval adds the noise to the posterior variance of the cell.")


if __name__ == "__main__":
    main()
