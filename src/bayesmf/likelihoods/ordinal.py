"""Ordered categories: a normal value behind each entry, cut into intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
from scipy import special
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from bayesmf import _threads
from bayesmf._errors import DataError, ModelError, positive
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.shards import Pieces
from bayesmf.kernels.ordinal import cut_terms, draw_latent
from bayesmf.likelihoods.base import Cells, Fit, Likelihood, NormalData
from bayesmf.likelihoods.laws import CategoryLaw, Law
from bayesmf.priors import Prior
from bayesmf.priors.distributions import Normal, Values, Variable
from bayesmf.streams import Array, Stream
from bayesmf.updates.entries import by_rows, with_entries

__all__ = ["Ordinal"]

_MOST = 50  # categories, beyond which numbers are hardly categories
_PIECE = 25_000  # entries of one piece of a sum
_DOF = 8.0  # of the proposal of cut points
_ALWAYS, _EVERY = 10, 2  # the cuts: in each of the first sweeps, then in every second
_LATENT = 60  # vector operations that a latent value takes


@dataclass(frozen=True)
class Ordinal(Likelihood):
    """Ordered probit: category k where the latent N(m, 1) lies between the cuts k - 1 and k.

    The cuts are normal with standard deviation ``spread``, in order. Two categories make a probit.

    Parameters
    ----------
    categories
        The values that entries may have, in order, or their number for 0, 1, ...; those of the
        data, by default.
    spread
        Standard deviation of the cuts' prior.

    Examples
    --------
    >>> from bayesmf import Ordinal
    >>> Ordinal(categories=(1, 2, 3, 4, 5)).spread
    3.0
    """

    categories: int | Sequence[float] | None = None
    spread: float = 3.0
    name: ClassVar[str] = "ordinal"
    letter: ClassVar[str] = "O"
    takes_biases: ClassVar[bool] = True
    has_level: ClassVar[bool] = True
    latent: ClassVar[bool] = True
    has_categories: ClassVar[bool] = True
    takes_shards: ClassVar[bool] = True
    needs: ClassVar[str] = "ordered categories"
    symbols: ClassVar[dict[str, str]] = {"spread": "sigma_c"}

    def __post_init__(self) -> None:
        positive(self, spread=self.spread)
        if self.categories is None:
            return
        given = range(self.categories) if isinstance(self.categories, int) else self.categories
        try:
            values = tuple(float(value) for value in given)
        except (TypeError, ValueError):
            values = ()
        if len(values) < 2 or not all(a < b for a, b in pairwise(values)):
            raise ModelError(
                f"Ordinal: categories must be two or more numbers that increase, got "
                f"{self.categories!r}."
            )
        object.__setattr__(self, "categories", values)

    @property
    def values(self) -> Array:
        """The categories, once they are known."""
        assert self.categories is not None
        return np.array(self.categories)

    # --- Data

    def fits(self, prior: type[Prior]) -> bool:
        return prior.terms is not Prior.terms

    def allowed(self, values: Array) -> Array:
        if self.categories is None:
            return values % 1 == 0
        return np.isin(values, self.values)

    def check(self, X: ObservedMatrix) -> None:
        if self.categories is not None:
            bad = ~self.allowed(X.rows.values)
            if bad.any():
                known = ", ".join(f"{value:g}" for value in self.values)
                raise DataError(X.complaint(bad, "Ordinal", f"one of the categories {known}"))
            return super().check(X)
        found = np.unique(X.rows.values)
        if found.size > _MOST:
            raise DataError(
                f"Ordinal: the data have {found.size} different values, too many for categories; "
                "choose a Gaussian or a Poisson model."
            )
        bad = X.rows.values % 1 != 0
        if bad.any():
            what = "whole numbers, or categories= with all values that occur"
            raise DataError(X.complaint(bad, "Ordinal", what))
        if found.size < 2:
            raise DataError(
                f"Ordinal: all entries are {found[0]:g}, and one category says nothing; give all "
                "with categories=."
            )
        absent = np.setdiff1d(np.arange(found[0], found[-1] + 1), found)
        if absent.size:
            raise DataError(
                f"Ordinal: the category {absent[0]:g} does not occur in the data; give all that "
                "there are with categories=."
            )
        super().check(X)

    def resolve(self, X: ObservedMatrix) -> Ordinal:
        if self.categories is not None:
            return self
        return replace(self, categories=tuple(np.unique(X.rows.values).tolist()))

    def read(self, X: ObservedMatrix) -> ObservedMatrix:
        """Numbers of the categories, from 0, instead of their values."""
        codes = np.searchsorted(self.values, X.rows.values).astype(np.float64)
        return with_entries(X, codes)

    def targets(self, X: ObservedMatrix) -> ObservedMatrix:
        """Means of a standard normal within the categories as often as they occur."""
        cuts = np.concatenate([[-np.inf], self._quantiles(X), [np.inf]])
        density = np.exp(-0.5 * cuts**2) / math.sqrt(2 * math.pi)
        scores = -np.diff(density) / np.diff(special.ndtr(cuts))
        return with_entries(X, scores[X.rows.values.astype(np.int64)])

    def _quantiles(self, X: ObservedMatrix) -> Array:
        """Cuts that give a standard normal the categories of the data, half an entry added."""
        times = np.bincount(X.rows.values.astype(np.int64), minlength=self.values.size) + 0.5
        return special.ndtri(np.cumsum(times)[:-1] / times.sum())

    # --- Own variables and sweeps

    def variables(self, shape: tuple[int, int]) -> dict[str, Variable]:
        return {"cuts": Variable((self.values.size - 1,), ("cut",))}

    def draw(self, shape: tuple[int, int], stream: Stream) -> Values:
        size = (self.values.size - 1,)
        return {"cuts": np.sort(Normal(precision=self.spread**-2).draw(stream, size))}

    def start(self, X: ObservedMatrix) -> Values:
        return {"cuts": self._quantiles(X)}

    def cut_terms(self, fit: Fit, cuts: Array) -> tuple[float, Array, Array]:
        """Log density of the cuts, gradient and negative Hessian (C - 1, C - 1).

        Latent values are integrated out.
        """
        edges = np.concatenate([[-np.inf], cuts, [np.inf]])
        pieces = Pieces(fit.X.rows, _PIECE, fit.X.rows.values, fit.means())
        found = np.zeros((pieces.count, 4, edges.size))

        def block(start: int, stop: int) -> None:
            cut_terms(start, stop, *pieces.arrays, edges, found[pieces.first + start // _PIECE])

        _threads.run(block, pieces.bounds, fit.threads)
        pieces.share(found)
        terms, tight = found.sum(axis=0), self.spread**-2
        hessian = np.diag(terms[2, 1:-1] + tight) + np.diag(terms[3, 1:-2], 1)
        hessian += np.triu(hessian, 1).T
        total = terms[0, 0] - 0.5 * tight * float(cuts @ cuts)
        return total, terms[1, 1:-1] - tight * cuts, hessian

    def refresh(self, fit: Fit, own: Values, stream: Stream, sweep: int) -> None:
        """One Metropolis step with a Student proposal about the mode, as Newton's step finds it."""
        if sweep > _ALWAYS and sweep % _EVERY:
            return
        rng = np.random.default_rng(stream.key().tolist())
        cuts = own["cuts"]
        n = cuts.size
        here = self.cut_terms(fit, cuts)
        mode, factor = _newton(cuts, here)
        z = rng.normal(size=n) / math.sqrt(rng.gamma(0.5 * _DOF) / (0.5 * _DOF))
        new = mode + solve_triangular(factor, z, lower=True, trans="T")
        if not (np.diff(new) > 0).all():
            return
        there = self.cut_terms(fit, new)
        back = _proposal(cuts, *_newton(new, there))
        ratio = there[0] - here[0] + back - _proposal(new, mode, factor)
        if math.log(rng.random()) < ratio:
            own["cuts"] = new

    def working(self, fit: Fit, own: Values, stream: Stream) -> NormalData:
        """Latent values between the cuts, of precision one."""
        view, means, key = fit.X.rows, fit.means(), stream.key()
        edges, out = np.concatenate([[-np.inf], own["cuts"], [np.inf]]), np.empty(means.size)
        by_rows(
            view,
            _LATENT,
            lambda start, stop: draw_latent(
                start, stop, key, view.indptr, view.values, means, edges, out
            ),
            stream.threads,
        )
        return NormalData(with_entries(fit.X, out, stream.threads), 1.0)

    def log_density(self, fit: Fit, own: Values) -> float:
        """Latent values are integrated out."""
        cuts, n = own["cuts"], own["cuts"].size
        if not (np.diff(cuts) > 0).all():
            return -math.inf
        law = self._law(fit.means(), cuts)
        values = self.values[fit.X.rows.values.astype(np.int64)]
        constant = math.lgamma(n + 1) - n * math.log(self.spread * math.sqrt(2 * math.pi))
        prior = constant - 0.5 * float(cuts @ cuts) / self.spread**2
        return float(np.sum(law.log_prob(values))) + prior

    # --- Results

    def _law(self, means: Array, cuts: Array) -> CategoryLaw:
        upper = np.moveaxis(cuts, -1, 0)
        upper = upper.reshape(*upper.shape, *[1] * (np.ndim(means) - upper.ndim + 1)) - means
        ends = np.full((1, *upper.shape[1:]), np.inf)
        return CategoryLaw(means, self.values, np.concatenate([upper, ends]))

    def law(
        self, means: Array, own: Values, cells: Cells, weights: Array | float | None = None
    ) -> Law:
        return self._law(means, own["cuts"])

    def noise_variance(self, own: Values, level: float) -> float:
        return 1.0

    def monitored(self, own: Values, mse: Array) -> dict[str, Array]:
        cuts = own["cuts"]
        return {f"cut {k + 1}": cuts[..., k] for k in range(cuts.shape[-1])}


def _newton(cuts: Array, terms: tuple[float, Array, Array]) -> tuple[Array, Array]:
    """Newton's step towards the mode, and the Cholesky factor of the precision there.

    The step is halved until the cuts stay in order. Where probabilities leave the range of double
    precision the curvature is not what it should be; any proposal is valid, so directions without
    curvature get a little.
    """
    _, gradient, hessian = terms
    try:
        factor = cholesky(hessian, lower=True)
    except LinAlgError:
        sizes, vectors = np.linalg.eigh(hessian)
        sizes = np.maximum(sizes, 0.01 * max(1.0, sizes[-1]))
        factor = cholesky((vectors * sizes) @ vectors.T, lower=True)
    step = cho_solve((factor, True), gradient)
    while not (np.diff(cuts + step) > 0).all():
        step *= 0.5
    return cuts + step, factor


def _proposal(x: Array, mode: Array, factor: Array) -> float:
    """Log density of the multivariate Student proposal, up to a constant."""
    z = factor.T @ (x - mode)
    spread = 0.5 * (_DOF + x.size) * math.log1p(float(z @ z) / _DOF)
    return float(np.sum(np.log(np.diag(factor)))) - spread
