"""The volume prior, which couples all rows through a determinant."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from bayesmf._errors import ModelError, positive
from bayesmf.priors import distributions as dist
from bayesmf.priors.base import Prior, Setting
from bayesmf.priors.distributions import Values
from bayesmf.streams import Array, Stream
from bayesmf.updates.moments import inverse_moments
from bayesmf.updates.terms import ScaleTerms, VolumeTerms, over_rows

__all__ = ["Volume"]


@dataclass(frozen=True)
class Volume(Prior):
    """Volume prior, density proportional to exp(-gamma det(U^T U) - ridge |U|^2 / 2).

    The same gamma means another strength at another rank, because the determinant is a product of
    K squared lengths. Give ``gamma``, or ``log10_gamma`` where it leaves the range of a double. The
    default is gamma = (n / 2) / q^K with q = n * lambda * (mean square of the data) / K, lambda
    being the normal precision of the other side: the determinant then settles where the other side
    keeps the scale of its own prior, at every rank, number of rows and unit of measurement.

    The posterior is improper where n < K, or K > 1 and m <= 2 K - 2 (m: the other side's length).
    There ``ridge`` defaults to a weak normal prior, elsewhere to 0.
    """

    gamma: float | None = None
    log10_gamma: float | None = None
    signs: Literal["real", "nonnegative"] = "real"
    ridge: float | None = None
    couples_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self, gamma=self.gamma)
        if self.gamma is not None and self.log10_gamma is not None:
            raise ModelError("Volume: give gamma or log10_gamma, not both.")
        if self.log10_gamma is not None and not math.isfinite(self.log10_gamma):
            raise ModelError(f"Volume: log10_gamma must be finite, got {self.log10_gamma!r}.")
        if self.signs not in ("real", "nonnegative"):
            raise ModelError(f"Volume: signs must be 'real' or 'nonnegative', got {self.signs!r}.")
        if self.ridge is not None and not 0 <= self.ridge < math.inf:
            raise ModelError(f"Volume: ridge must not be negative, got {self.ridge!r}.")

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        return self.signs == "nonnegative"

    @property
    def rotation_invariant(self) -> bool:
        return not self.nonnegative

    def notes(self) -> list[str]:
        if not self.ridge:
            return []
        return [
            f"The volume prior has no proper posterior at this rank and shape, so a weak normal "
            f"prior of precision {self.ridge:.2g} was added; use a smaller rank."
        ]

    def resolve(self, setting: Setting) -> Volume:
        K, n, m, mean_square, other = setting[:5]
        # Squared length per row that U needs if the other side keeps its prior variance.
        square = other * mean_square / K or 1.0
        log10_gamma = self.log10_gamma
        if log10_gamma is None:
            default = math.log10(n / 2) - K * math.log10(n * square)
            log10_gamma = math.log10(self.gamma) if self.gamma else default
        ridge = self.ridge
        if ridge is None:
            improper = n < K or (K > 1 and m <= 2 * K - 2)
            ridge = 1e-4 / square if improper else 0.0
        return replace(self, gamma=None, log10_gamma=log10_gamma, ridge=ridge)

    @property
    def log_gamma(self) -> float:
        """Natural logarithm of gamma."""
        if self.gamma is not None:
            return math.log(self.gamma)
        if self.log10_gamma is None:
            raise ModelError("Volume: the default gamma depends on the data; resolve it first.")
        return self.log10_gamma * math.log(10)

    def terms(self, values: Values, K: int) -> VolumeTerms:
        return VolumeTerms(self.log_gamma, float(self.ridge or 0.0), self.nonnegative)

    def draw(self, stream: Stream, n: int, K: int, shared: Values) -> tuple[Array, Values]:
        """The prior is improper: a standard normal or half-normal start, as in the study.

        Only where its volume is so far from typical that doubles would not recover is it brought
        there.
        """
        U = dist.Normal(precision=1.0).draw(stream, (n, K))
        U = np.abs(U) if self.nonnegative else U
        scale = self.typical_scale(U)
        return U if 1e-20 < scale < 1e20 else U * scale, {}

    def typical_scale(self, U: Array) -> float:
        """Bring gamma det(U^T U) to n / 2, where the sampler would take it in the long run."""
        n, K = U.shape
        _, log_det = inverse_moments(U)
        if not math.isfinite(log_det):
            return 1.0
        return math.exp(0.5 * (math.log(n / 2) - self.log_gamma - log_det) / K)

    def log_density(self, U: Array, values: Values) -> float:
        if self.nonnegative and (U < 0).any():
            return -math.inf
        sign, log_det = np.linalg.slogdet(U.T @ U)
        volume = math.exp(self.log_gamma + log_det) if sign > 0 else 0.0
        return -volume - 0.5 * float(self.ridge or 0.0) * float(np.sum(U**2))

    def scale_terms(self, U: Array, values: Values) -> ScaleTerms | None:
        n, K = U.shape
        _, log_det = inverse_moments(U)
        if not math.isfinite(log_det):
            return None
        weights = {2: float(self.ridge or 0.0) * over_rows(U**2)}
        return ScaleTerms.of(K, n, weights, determinant=math.log(2) + self.log_gamma + log_det)
