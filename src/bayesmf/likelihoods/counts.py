"""Counts, and whether there are any: Poisson, negative binomial, Bernoulli-Poisson."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bayesmf._errors import positive
from bayesmf.data.observed import ObservedMatrix
from bayesmf.kernels.positive import draw_positive_counts
from bayesmf.likelihoods.base import Cells, CountData, Fit, LargeCounts, Likelihood
from bayesmf.likelihoods.laws import Law, NegativeBinomialLaw, PoissonLaw, PresenceLaw
from bayesmf.likelihoods.mixing import draw_of_entries, draw_shape_of_entries
from bayesmf.priors import Prior
from bayesmf.priors import distributions as dist
from bayesmf.priors.distributions import Values, Variable
from bayesmf.streams import Array, Stream
from bayesmf.updates import counts
from bayesmf.updates.entries import by_rows, in_columns

__all__ = ["BernoulliPoisson", "NegativeBinomial", "Poisson"]

_COUNT = 60  # vector operations that a positive count takes
_ALWAYS, _EVERY = 10, 2  # the size: in each of the first sweeps, then in every second
_SPLIT_FIRST, _SPLIT_EVERY = 30, 8  # sweeps that split even large counts: rows may be stuck else
_LARGE, _LONG = 2.0, 2  # mean count, and entries of a middling row per factor, of rows drawn whole


def are_large(X: ObservedMatrix, rank: int) -> bool:
    """Whether rows and columns have counts enough for a normal surrogate."""
    if "middling" not in X.rows.cache:
        lengths = [float(np.median(view.counts)) for view in (X.rows, X.cols)]
        X.rows.cache["middling"] = min(lengths), X.mean if X.n_observed else 0.0
    length, mean = X.rows.cache["middling"]
    return length >= _LONG * rank and mean >= _LARGE


@dataclass(frozen=True)
class Poisson(Likelihood):
    """Counts; each is split over the factors, which makes every factor's conditional a gamma."""

    name: ClassVar[str] = "Poisson"
    letter: ClassVar[str] = "P"
    counts: ClassVar[bool] = True
    takes_shards: ClassVar[bool] = True
    needs: ClassVar[str] = "counts"

    def fits(self, prior: type[Prior]) -> bool:
        return prior.gamma_terms is not Prior.gamma_terms

    def allowed(self, values: Array) -> Array:
        return (values >= 0) & (values % 1 == 0)

    def working(self, fit: Fit, own: Values, stream: Stream) -> CountData | LargeCounts:
        """The split, drawn once for both half-sweeps; in most sweeps of large counts there is none.

        Which it is depends on the data and the number of the sweep alone. New rows, which a kept
        draw of the columns may find anywhere, are always split.
        """
        whole = stream.is_between(_SPLIT_EVERY, _SPLIT_FIRST)
        if whole and are_large(fit.X, fit.U.shape[1]):
            return LargeCounts(fit.X)
        return CountData(fit.X, counts.split(fit.X.rows, fit.U, fit.V, stream))

    def log_density(self, fit: Fit, own: Values) -> float:
        law = self.law(fit.means(), own, (np.zeros(1, int), np.zeros(1, int)))
        return float(np.sum(law.log_prob(fit.X.rows.values)))

    def law(
        self, means: Array, own: Values, cells: Cells, weights: Array | float | None = None
    ) -> Law:
        return PoissonLaw(means)


@dataclass(frozen=True)
class NegativeBinomial(Poisson):
    """Counts with more spread than Poisson's: variance m + m^2 / size, size ~ G(alpha, beta).

    A count is Poisson with the mean theta m, theta ~ G(size, size).

    Examples
    --------
    >>> from bayesmf import NegativeBinomial
    >>> NegativeBinomial(alpha=3.0)
    NegativeBinomial(alpha=3.0, beta=0.1)
    """

    alpha: float = 2.0
    beta: float = 0.1
    name: ClassVar[str] = "negative binomial"
    letter: ClassVar[str] = "N"
    symbols: ClassVar[dict[str, str]] = {"alpha": "alpha_rho", "beta": "beta_rho"}

    def __post_init__(self) -> None:
        positive(self, alpha=self.alpha, beta=self.beta)

    def prior(self) -> dist.GammaAbove:
        """Distribution of the size before any data are seen."""
        return dist.GammaAbove(shape=self.alpha, rate=self.beta)

    def variables(self, shape: tuple[int, int]) -> dict[str, Variable]:
        return {"size": Variable((), ())}

    def draw(self, shape: tuple[int, int], stream: Stream) -> Values:
        return {"size": self.prior().draw(stream)}

    def start(self, X: ObservedMatrix) -> Values:
        return {"size": np.asarray(self.alpha / self.beta)}

    def refresh(self, fit: Fit, own: Values, stream: Stream, sweep: int) -> None:
        if sweep <= _ALWAYS or sweep % _EVERY == 0:
            view, now = fit.X.rows, float(own["size"])
            own["size"] = draw_shape_of_entries(
                view, self.prior(), now, view.values, fit.means(), stream
            )

    def working(self, fit: Fit, own: Values, stream: Stream) -> CountData | LargeCounts:
        """The counts, split or not, and an exposure of every entry, zeros included."""
        X, size = fit.X, float(own["size"])
        theta = draw_of_entries(X.rows, size, X.rows.values, fit.means(), stream)
        exposures = theta, in_columns(X, theta, fit.threads)
        return replace(super().working(fit, own, stream), exposures=exposures)

    def log_density(self, fit: Fit, own: Values) -> float:
        """Exposures are integrated out."""
        return super().log_density(fit, own) + float(self.prior().log_density(own["size"]))

    def law(
        self, means: Array, own: Values, cells: Cells, weights: Array | float | None = None
    ) -> Law:
        return NegativeBinomialLaw(means, own["size"][..., None])

    def noise_variance(self, own: Values, level: float) -> float:
        return level + level**2 * float(np.mean(1 / own["size"]))

    def monitored(self, own: Values, mse: Array) -> dict[str, Array]:
        return {"size": own["size"]}


@dataclass(frozen=True)
class BernoulliPoisson(Poisson):
    """Zeros and ones: one where a Poisson count is not zero, so P(1) = 1 - e^-m.

    Examples
    --------
    >>> from bayesmf import BernoulliPoisson
    >>> BernoulliPoisson().needs
    'zeros and ones'
    """

    name: ClassVar[str] = "Bernoulli-Poisson"
    letter: ClassVar[str] = "B"
    latent: ClassVar[bool] = True
    has_categories: ClassVar[bool] = True
    needs: ClassVar[str] = "zeros and ones"

    @property
    def values(self) -> Array:
        """The categories."""
        return np.array([0.0, 1.0])

    def allowed(self, values: Array) -> Array:
        return (values == 0) | (values == 1)

    def working(self, fit: Fit, own: Values, stream: Stream) -> CountData:
        """A positive count for every one, split over the factors."""
        view, means, key = fit.X.rows, fit.means(), stream.key()
        out = np.empty(view.stored.size)
        by_rows(
            view,
            _COUNT,
            lambda start, stop: draw_positive_counts(
                start, stop, key, view.indptr, view.stored, means, out
            ),
            stream.threads,
        )
        sums = counts.split(replace(view, stored=out), fit.U, fit.V, stream)
        return CountData(fit.X, sums)

    def law(
        self, means: Array, own: Values, cells: Cells, weights: Array | float | None = None
    ) -> Law:
        return PresenceLaw(means)

    def noise_variance(self, own: Values, level: float) -> float:
        return level
