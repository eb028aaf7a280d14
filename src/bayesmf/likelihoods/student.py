"""Student's t: normal noise, in which every entry has a precision of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bayesmf._errors import ModelError, positive
from bayesmf.data.observed import ObservedMatrix
from bayesmf.likelihoods.base import Fit, NormalData, Side
from bayesmf.likelihoods.gaussian import Gaussian
from bayesmf.likelihoods.laws import StudentLaw
from bayesmf.likelihoods.mixing import draw_of_entries, draw_shape_of_entries
from bayesmf.priors import distributions as dist
from bayesmf.priors.distributions import Values, Variable
from bayesmf.streams import Array, Stream
from bayesmf.updates.entries import in_columns

__all__ = ["StudentT"]

_HALF = np.array([0.5])  # what a residual adds to the shape of its mixing variable
_ALWAYS, _EVERY = 10, 4  # the degrees of freedom: in each of the first sweeps, then in every fourth


@dataclass(frozen=True, repr=False)
class StudentT(Gaussian):
    """Student's t about the fit, its degrees of freedom ~ G(dof_alpha, dof_beta) above dof_least.

    The noise of an entry is normal with the precision tau a_i b_j w, w ~ G(dof / 2, dof / 2);
    everything else is as under `Gaussian`. It models the bulk and calls the rest outliers.

    Examples
    --------
    >>> from bayesmf import StudentT
    >>> StudentT(cols=True)
    StudentT(alpha=1.0, beta=1.0, cols=True)
    """

    dof_alpha: float = 2.0
    dof_beta: float = 0.1
    dof_least: float = 2.0
    name: ClassVar[str] = "Student-t"
    letter: ClassVar[str] = "T"
    takes_transforms: ClassVar[bool] = False  # the mean of an exponential would not exist

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, dof_alpha=self.dof_alpha, dof_beta=self.dof_beta, dof_least=self.dof_least)
        if self.dof_least < 2:
            raise ModelError(
                f"StudentT: dof_least must be at least 2, below which predictions have no "
                f"variance, got {self.dof_least}."
            )

    def dof_prior(self) -> dist.GammaAbove:
        """Distribution of the degrees of freedom before any data are seen."""
        return dist.GammaAbove(shape=self.dof_alpha, rate=self.dof_beta, least=self.dof_least)

    def half_prior(self) -> dist.GammaAbove:
        """The same for half of them, the shape of the mixing variables."""
        return dist.GammaAbove(
            shape=self.dof_alpha, rate=2 * self.dof_beta, least=0.5 * self.dof_least
        )

    def variables(self, shape: tuple[int, int]) -> dict[str, Variable]:
        return super().variables(shape) | {"dof": Variable((), ())}

    def draw(self, shape: tuple[int, int], stream: Stream) -> Values:
        return super().draw(shape, stream) | {"dof": self.dof_prior().draw(stream)}

    def start(self, X: ObservedMatrix) -> Values:
        return super().start(X) | {"dof": np.asarray(self.dof_least + 8.0)}

    def _squares(self, fit: Fit, own: Values) -> Array:
        """What the residuals add to the rates of their mixing variables."""
        return self.weights(fit.X, own).half_squares(fit, float(own["noise_precision"]))

    def refreshes(self, sweep: int) -> bool:
        return sweep <= _ALWAYS or sweep % _EVERY == 0

    def refresh(self, fit: Fit, own: Values, stream: Stream, sweep: int) -> None:
        if self.refreshes(sweep):
            now, d = 0.5 * float(own["dof"]), self._squares(fit, own)
            prior, view = self.half_prior(), fit.X.rows
            own["dof"] = 2 * draw_shape_of_entries(view, prior, now, _HALF, d, stream)

    def working(self, fit: Fit, own: Values, stream: Stream) -> NormalData:
        """The data, and a weight of every entry."""
        working = super().working(fit, own, stream)
        s, d = 0.5 * float(own["dof"]), self._squares(fit, own)
        w = draw_of_entries(fit.X.rows, s, _HALF, d, stream)
        both, known = (w, in_columns(fit.X, w, fit.threads)), fit.X.weights
        if known is not None:
            both = both[0] * known[0], both[1] * known[1]
        return replace(working, weights=working.weights._replace(entries=both))

    def draws_jointly(self, side: Side) -> bool:
        return False

    def degrees(self, own: Values) -> float:
        return float(own["dof"])

    def log_density(self, fit: Fit, own: Values) -> float:
        """Weights of the entries are integrated out."""
        weights = self.weights(fit.X, own).at_entries(fit.X)
        law = self.about(fit.means(), own["noise_precision"] * weights, own)
        total = float(np.sum(law.log_prob(fit.X.rows.values)))
        return total + self.own_log_density(own)

    def own_log_density(self, own: Values) -> float:
        return super().own_log_density(own) + float(self.dof_prior().log_density(own["dof"]))

    def about(self, means: Array, precision: Array, own: Values) -> StudentLaw:
        return StudentLaw(means, precision, own["dof"][..., None])

    def noise_variance(self, own: Values, level: float) -> float:
        return super().noise_variance(own, level) * float(np.mean(own["dof"] / (own["dof"] - 2)))

    def noise_sd(self, own: Values) -> float | None:
        plain = super().noise_sd(own)
        return None if plain is None else float(np.sqrt(self.noise_variance(own, 0.0)))

    def monitored(self, own: Values, mse: Array) -> dict[str, Array]:
        series = super().monitored(own, mse)
        series.pop("log likelihood per entry", None)
        return series | {"degrees of freedom": own["dof"]}
