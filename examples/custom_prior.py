"""Add a prior of your own, and see what it does to the factors.

Student's t is a normal whose precision is gamma distributed, so the whole sampler follows from five
short methods. A matrix is simulated whose factors are mostly zero; the picture shows every entry of
the factors, the truth against the posterior mean, under four priors.

    python examples/custom_prior.py [--quick] [--output FOLDER]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from _figures import BLUE, GREY, arguments, new_figure, plain, save
from bayesmf import Gaussian, Horseshoe, Laplace, Model, Normal, sample
from bayesmf.priors import Prior
from bayesmf.priors import distributions as dist
from bayesmf.priors.distributions import Variable
from bayesmf.updates.terms import RowTerms


@dataclass(frozen=True)
class StudentT(Prior):
    """Independent entries from Student's t: normals with gamma-distributed precisions."""

    degrees: float = 3.0
    scale: float = 1.0

    def variables(self, n, K):
        """Own hyper-variables: one precision for every entry."""
        return {"local": Variable.of_entries(n, K)}

    def terms(self, values, K):
        """Precision and linear term of a row, given the hyper-variables."""
        return RowTerms(np.zeros((K, K)), values["local"] / self.scale**2, np.zeros((1, K)))

    def updates(self, U, values):
        """Gibbs steps of the hyper-variables given the factors, in order."""
        rate = 0.5 * self.degrees + 0.5 * (U / self.scale) ** 2
        yield "local", dist.Gamma(shape=0.5 * self.degrees + 0.5, rate=rate)

    def log_density(self, U, values):
        """Log density of the factors and the hyper-variables."""
        half, local = 0.5 * self.degrees, values["local"]
        factors = dist.Normal(linear=0.0, precision=local / self.scale**2).log_density(U)
        return float(np.sum(factors + dist.Gamma(shape=half, rate=half).log_density(local)))

    def draw(self, stream, n, K, shared):
        """Factors and hyper-variables from the prior."""
        half = 0.5 * self.degrees
        local = dist.Gamma(shape=half, rate=half).draw(stream, (n, K))
        U = dist.Normal(linear=0.0, precision=local / self.scale**2).draw(stream, (n, K))
        return U, {"local": local}


PRIORS = {
    "normal": Normal(1.0),
    "Laplace": Laplace(0.5),
    "Student's t": StudentT(3.0, 0.5),
    "horseshoe": Horseshoe(1.0),
}
RANK = 3


def simulate(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Factors of which seven in ten entries are zero, and their product with noise and gaps."""
    U, V = (rng.normal(0, 1.5, (n, RANK)) * (rng.random((n, RANK)) < 0.3) for n in (80, 50))
    X = U @ V.T + rng.normal(0, 0.5, (80, 50))
    X[rng.random(X.shape) < 0.4] = np.nan
    return U, V, X


def in_place_of(truth: list[np.ndarray], U: np.ndarray, V: np.ndarray) -> list[np.ndarray]:
    """Posterior means of aligned draws in the order, with the signs and the scale of the truth."""
    length = np.linalg.norm(V, axis=1, keepdims=True)  # priors differ in what they let it be
    U, V = (U * length).mean(axis=0), (V / length).mean(axis=0)
    true_length = np.linalg.norm(truth[1], axis=0)
    like = (truth[1] / true_length).T @ V
    own, place = linear_sum_assignment(np.abs(like), maximize=True)
    signs = np.sign(like[own, place])
    return [U[:, place] * signs / true_length, V[:, place] * signs * true_length]


def main() -> None:
    """Fit the matrix under every prior and draw the entries of its factors."""
    options = arguments(__doc__)
    *truth, X = simulate(np.random.default_rng(1))
    draws = 60 if options.quick else 1000
    figure = new_figure(2.3)
    axes = figure.subplots(1, len(PRIORS), sharex=True, sharey=True)
    for axis, (name, prior) in zip(axes, PRIORS.items(), strict=True):
        posterior = sample(
            X, Model(Gaussian(), prior, prior), RANK, draws=draws, burn_in=draws, random_state=0,
            keep=("U", "V"),
        )  # fmt: skip
        found = in_place_of(truth, *posterior.align())
        error = np.mean((posterior.mean - truth[0] @ truth[1].T)[np.isnan(X)] ** 2)
        zero, rest = (
            np.concatenate([(F - T)[(T == 0) == flag] for F, T in zip(found, truth, strict=True)])
            for flag in (True, False)
        )
        print(
            f"{name:12} missing cells: squared error {error:.3f}; factors: true zeros "
            f"{np.sqrt(np.mean(zero**2)):.3f} off, others {np.sqrt(np.mean(rest**2)):.3f} off"
        )
        for F, T, colour in zip(found, truth, (BLUE, GREY), strict=True):
            axis.plot(T.ravel(), F.ravel(), ".", color=colour, markersize=3, alpha=0.6)
        axis.axline((0, 0), slope=1, color="black", linewidth=0.5)
        axis.set_title(name)
        axis.set_xlabel("true entry")
        plain(axis)
    axes[0].set_ylabel("posterior mean")
    print("figure:", save(figure, Path(options.output), "custom-prior.png"))


if __name__ == "__main__":
    main()
