"""What fitted estimators tell: how sure to be, gaps, noise, pictures, exports, new rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bayesmf import _threads
from bayesmf._arguments import checked
from bayesmf._errors import ModelError, nearest
from bayesmf.data.informed import of_new
from bayesmf.data.inspection import codes
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.ranges import Clip, clip_ends
from bayesmf.data.units import Units
from bayesmf.model.biases import augmented
from bayesmf.posterior.diagnostics import SCREENED, Summary
from bayesmf.posterior.filled import Filled, filled
from bayesmf.posterior.fitted import Fitted
from bayesmf.posterior.loo import LeaveOneOut, leave_one_out
from bayesmf.posterior.new_rows import NewRows, draw_new_rows
from bayesmf.posterior.noise import Noise
from bayesmf.posterior.posterior import Posterior
from bayesmf.posterior.predictive import Predictive
from bayesmf.posterior.verdict import UNUSABLE


class Results(BaseEstimator):
    """What follows from a posterior, its data and their units, however it was come by."""

    posterior_: Posterior
    units_: Units
    n_jobs: int | None
    _matrix: ObservedMatrix

    def summary(self) -> Summary:
        """Whether to use the results, and why not: see `Posterior.summary`."""
        check_is_fitted(self, "posterior_")
        found = self.posterior_.summary(self.units_.off(self._matrix), screen=SCREENED)
        if wrong := codes(self._matrix):
            return replace(found, level=UNUSABLE, advice=(*wrong, *found.advice))
        return found

    def filled(self, level: float = 0.9, clip: Clip = None) -> Filled:
        """What was missing of the fitted matrix, a line for each gap: values and how sure they are.

        Parameters
        ----------
        level
            Probability of the central predictive intervals, noise included.
        clip
            Ends of values and intervals, as in `BayesianMF.predict`.

        Returns
        -------
        Filled
            ``row`` and ``column`` (labels, or positions), ``value``, ``sd``, ``lower``, ``upper``
            and ``flag``, which says where a value lies outside what was observed of its column.
            ``pandas.DataFrame(estimator.filled()._asdict())`` is a table of them.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesmf import BayesianMF
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 8))
        >>> X[3, 5] = np.nan
        >>> gaps = BayesianMF("GGG", 2, draws=50, burn_in=50, random_state=0).fit(X).filled()
        >>> gaps.row, gaps.column
        (array([3]), array([5]))
        """
        if not 0 < level < 1:
            raise ModelError(f"level must lie between 0 and 1, got {level!r}.")
        tail = (1 - level) / 2
        found = self._predictive().quantities(None, True, [tail, 1 - tail], True)
        mean, std, (lower, upper) = found
        return filled(self._matrix, mean, std, (lower, upper), clip_ends(clip, self._matrix))

    @checked
    def noise_sd(self, level: float = 0.9) -> Noise:
        """Standard deviation of the noise of all cells, rows and columns, in the data's units.

        As `Posterior.noise`, which has the units of the model. Where columns were scaled, each has
        a noise of its own; under a transformation they are those of the transformed values, and
        where errors are known, factors of these.
        """
        return self.fitted_.noise(level)

    def plot(self, kind: str = "matrix", **options: Any) -> Any:
        """Draw a picture of the fit, and return its Axes.

        Parameters
        ----------
        kind
            Name of a function of `bayesmf.plots`: "matrix", "cells", "factors", "loadings",
            "variance", "traces", "rank_histograms", "calibration", "pit", "residuals",
            "predictive_checks", "noise" or "rank_curves".
        **options
            Those of the function, such as ``ax``.
        """
        from bayesmf import plots

        if kind not in plots.__all__:
            raise ModelError(
                f"kind must be one of {', '.join(plots.__all__)}, got {kind!r}."
                f"{nearest(str(kind), plots.__all__)}"
            )
        return getattr(plots, kind)(self, **options)

    def to_datatree(self, *, entries: int = 2000) -> Any:
        """An xarray DataTree in the layout of ArviZ: see `Posterior.to_datatree`.

        Entries, their densities and replicated data are in the units of the data, draws of the
        posterior in those of the model.
        """
        from bayesmf.posterior.export import to_datatree

        fitted = self.fitted_
        return to_datatree(fitted.posterior, fitted, entries)

    def to_anndata(self, data: Any = None) -> Any:
        """The results as an AnnData object (extra ``anndata``).

        Layers ``bayesmf_completed`` (observed values, and predictions in the gaps) and
        ``bayesmf_sd``; aligned factors in ``obsm["X_bayesmf"]`` and ``varm["bayesmf"]``; settings
        in ``uns["bayesmf"]``.

        Parameters
        ----------
        data
            An AnnData object of the same rows and columns, to which they are added; a new one by
            default, whose ``X`` are the data.
        """
        from bayesmf.posterior.annotated import to_anndata

        return to_anndata(self.fitted_, data)

    def loo(self, *, entries: int = 2000) -> LeaveOneOut:
        """Log predictive density of entries given the others, in the units of the data.

        As `Posterior.loo`, and to be compared with what `compare` finds with held-out entries.
        """
        return leave_one_out(self.fitted_, entries)

    @property
    def fitted_(self) -> Fitted:
        """Posterior, data and the units between them, as `bayesmf.plots` takes them."""
        check_is_fitted(self, "posterior_")
        return Fitted(self.posterior_, self._matrix, self.units_)

    def _predictive(self, latent: bool = False) -> Predictive:
        return self.fitted_.predictive(latent)

    def _of_new(
        self, rows: ObservedMatrix | None, cols: ObservedMatrix | None = None,
        latent: bool = False,
    ) -> Predictive:  # fmt: skip
        """Predictive distribution of new rows, new columns, or both, given entries and features."""
        factors, units = list(self.posterior_.factors()), self.units_
        biases, own = self.posterior_.biases(), self.posterior_.likelihood_values()
        for axis, X in ((1, cols), (0, rows)):
            if X is None:
                continue
            new, found = self._draw_new(X, axis)
            factors[axis], biases, own = new.U, biases | new.effects, own | new.own
            units = found if axis else units.with_rows_of(found)
        predictors = augmented(factors[0], factors[1], biases)
        return Predictive.of(self.posterior_, predictors, units, own=own, latent=latent)

    def _draw_new(self, X: ObservedMatrix, axis: int = 0) -> tuple[NewRows, Units]:
        """What new rows (or columns) have of their own, and their units."""
        if axis == 1 and self.posterior_.model.likelihood.has_limits:
            raise ModelError("New columns cannot be predicted where values have limits.")
        units = self.units_.of_new_cols(X) if axis else self.units_.of_new_rows(X)
        model = self.posterior_.model
        features = of_new((model.rows, model.cols)[axis].features, X, axis)
        threads = _threads.count(self.n_jobs)
        return draw_new_rows(self.posterior_, units.off(X), threads, features, axis), units
