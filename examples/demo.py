"""The demonstration: which model for a drug-sensitivity matrix, and digits filled in.

Run it with ``make demo``, or ``python examples/demo.py [FOLDER]``. It writes two reports.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from bayesmf import (
    BayesianMF,
    Biases,
    Comparison,
    Gaussian,
    Model,
    Normal,
    ObservedMatrix,
    compare,
    sample,
)
from bayesmf.datasets import NOISE_SD, load_digits, load_drug_sensitivity
from bayesmf.metrics import coverage, mse
from bayesmf.report.gather import write_fit


def drugs(folder: Path) -> Path:
    """Compare all models on the simulated drug sensitivities, all in one unit."""
    data = load_drug_sensitivity()
    n, m = data.X.shape
    print(f"{data.title}: {n} {data.rows} x {m} {data.cols}, {data.X.density:.0%} observed.")
    found = compare(data.X, budget="quick", scale="global", n_jobs=-1, progress=True)
    print(found.table[["model", "rank", "folds", "mse", "mse_error", "status"]].to_string())
    print(found.recommendation)
    assert data.truth is not None
    hidden = np.isnan(data.X.to_array())
    error = mse(data.truth[hidden], found.fit_best().predict()[hidden])
    print(f"The data are simulated: on the missing cells it misses the truth by {error**0.5:.2f}.")
    best, allowed = found.standings[0], np.mean(errors_of_the_truth(found))
    print(
        f"The model that made them, told its rank, scales and noise, has an error of {allowed:.4f} "
        f"on the same held-out entries, {best.model} {best.mse:.4f}: "
        f"{(best.mse - allowed) / best.mse_error:+.1f} standard errors from the best possible."
    )
    path = folder / "drug-sensitivity.html"
    found.report(path, "Which model for the drug sensitivities", command="make demo")
    return path


def errors_of_the_truth(found: Comparison) -> list[float]:
    """Errors, on the same folds, of the model from which the data were simulated."""
    scale = 0.7**-2.0
    noise = Gaussian(1e4, 1e4 * NOISE_SD**2)
    made = Model(noise, Normal(scale), Normal(scale), biases=Biases(7.5, 1.0, 1.0, 1.0))
    errors = []
    for train, test in found.splits():
        posterior = sample(
            train, made, 4, draws=500, burn_in=300, cells=test[:2], random_state=0, n_jobs=-1
        )
        errors.append(mse(test[2], posterior.predict()))
    return errors


def digits(folder: Path) -> Path:
    """Hide four tenths of the pixels of handwritten digits, and fill them in."""
    truth = load_digits().X.to_array()
    rng = np.random.default_rng(0)
    hidden = rng.random(truth.shape) < 0.4
    X = ObservedMatrix.of(np.where(hidden, np.nan, truth))
    mf = BayesianMF(
        "GGGW", 12, noise="cols", draws=200, burn_in=200, random_state=0, n_jobs=-1
    ).fit(X)
    mean, (low, high) = mf.predict(quantiles=[0.05, 0.95])
    share = coverage(truth[hidden], low[hidden], high[hidden])
    plain = np.broadcast_to(np.nanmean(X.to_array(), axis=0), truth.shape)
    print(
        f"\nDigits with {hidden.mean():.0%} of the pixels hidden: error "
        f"{mse(truth[hidden], mean[hidden]) ** 0.5:.2f} grey levels of 16 "
        f"({mse(truth[hidden], plain[hidden]) ** 0.5:.2f} by the pixel's average); "
        f"{share:.0%} of the hidden pixels lie in their 90 % intervals."
    )
    for digit in (3, 7):
        print(_side_by_side(X.to_array()[digit], mean[digit], truth[digit]))
    path = folder / "digits.html"
    write_fit(mf, X, path, "Handwritten digits, filled in", command="make demo")
    return path


def _side_by_side(*pictures: np.ndarray) -> str:
    """What was seen, what was filled in, and the truth, in characters."""
    shades = " .:-=+*#%@"
    lines = []
    for row in range(8):
        parts = []
        for picture in pictures:
            pixels = picture[8 * row : 8 * row + 8]
            level = np.clip(np.nan_to_num(pixels) / 16 * 9.99, 0, 9).astype(int)
            parts.append("".join(
                "??" if np.isnan(p) else 2 * shades[k] for p, k in zip(pixels, level, strict=True)
            ))  # fmt: skip
        lines.append("   ".join(parts))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Make both reports, and say where they are."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    written = [drugs(folder), digits(folder)]
    print(f"{time.perf_counter() - begin:.0f} seconds. Open the reports in a browser:")
    for path in written:
        print(f"  {path.resolve()}")


if __name__ == "__main__":
    main()
