"""What the estimators share: parameters, reading and fitting, and the predictive distribution."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesmf import _threads
from bayesmf._errors import ConvergenceWarning, DataError, ModelError
from bayesmf.data.errors import known_errors
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.offsets import Offsets, fit_offsets
from bayesmf.model.biases import Biases, augmented
from bayesmf.model.model import Model
from bayesmf.model.presets import as_model
from bayesmf.posterior.diagnostics import TOO_FEW
from bayesmf.posterior.new_rows import NewRows, draw_new_rows, needed
from bayesmf.posterior.posterior import Posterior
from bayesmf.posterior.predictive import Predictive
from bayesmf.posterior.sample import sample
from bayesmf.ranks import automatic_rank, choose_rank

_SCREENED = 100_000  # cells that are looked at after every fit


class Factorisation(BaseEstimator):
    """What both estimators share: parameters, fitting and the predictive distribution."""

    posterior_: Posterior
    offsets_: Offsets
    n_components_: int
    n_features_in_: int

    def __init__(
        self,
        model: str | Model = "GGGA",
        n_components: int | str | Sequence[int] = 10,
        *,
        draws: int = 250,
        burn_in: int = 250,
        thin: int = 1,
        chains: int = 2,
        hyperparameters: dict[str, Any] | None = None,
        biases: bool | Biases = False,
        noise: str | None = None,
        center: str = "none",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
        store: str | Path | None = None,
    ) -> None:
        self.model = model
        self.n_components = n_components
        self.draws = draws
        self.burn_in = burn_in
        self.thin = thin
        self.chains = chains
        self.hyperparameters = hyperparameters
        self.biases = biases
        self.noise = noise
        self.center = center
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.store = store

    @classmethod
    def from_posterior(cls, posterior: Posterior, X: Any, center: str = "none") -> Self:
        """An estimator that is fitted already: a posterior, such as a loaded one, and its data."""
        estimator = cls(posterior.model, posterior.n_components, center=center)
        matrix = estimator._read(X, reset=True)
        if matrix.shape != posterior.shape:
            raise DataError(
                f"The posterior is of a matrix of shape {posterior.shape}, not {matrix.shape}."
            )
        estimator._set(posterior, matrix, fit_offsets(matrix, center))
        return estimator

    def _set(self, posterior: Posterior, X: ObservedMatrix, offsets: Offsets) -> None:
        """Set what a fitted estimator has, whether its posterior was sampled or loaded."""
        self.posterior_, self.offsets_, self._matrix = posterior, offsets, X
        self.n_components_ = self._n_features_out = posterior.n_components

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _read(self, X: Any, reset: bool) -> ObservedMatrix:
        """Check a matrix as scikit-learn does, and keep its labels and its missing entries."""
        if isinstance(X, (np.ma.MaskedArray, tuple)):  # which scikit-learn would misread
            X = ObservedMatrix.of(X)
        if isinstance(X, ObservedMatrix):
            if reset:
                self.n_features_in_ = X.shape[1]
            elif X.shape[1] != self.n_features_in_:
                raise DataError(
                    f"X has {X.shape[1]} columns, but {type(self).__name__} was fitted with "
                    f"{self.n_features_in_}."
                )
            return X
        checked = validate_data(
            self, X, reset=reset, ensure_all_finite="allow-nan",
            accept_sparse=("csr", "csc", "coo"), dtype=np.float64,
        )  # fmt: skip
        labels = (X.index, X.columns) if hasattr(X, "columns") else (None, None)
        return ObservedMatrix.of(checked, row_labels=labels[0], col_labels=labels[1])

    def _fit(self, X: Any, errors: Any, weights: Any, lower: Any, upper: Any) -> None:
        """Sample, and set what a fitted estimator has."""
        matrix = known_errors(self._read(X, reset=True), errors, weights)
        model = as_model(self.model, self.hyperparameters, self.biases, self.noise, (lower, upper))
        if self.center != "none" and any(model.nonnegative):
            raise ModelError(
                f"center={self.center!r} makes values negative, and {model.name} has nonnegative "
                "factors; use center='none' or a real-valued model such as GGGA."
            )
        limited = matrix.bounds is not None or lower is not None or upper is not None
        if self.center != "none" and (limited or not model.likelihood.takes_offsets):
            raise ModelError(
                f"center={self.center!r} moves the values, but limits, counts and categories stay "
                "where they are; use center='none', and biases=True if the model takes biases."
            )
        offsets = fit_offsets(matrix, self.center)
        data = offsets.off(matrix)
        rank = self._rank(data, model)
        posterior = sample(
            data, model, rank, draws=self.draws, burn_in=self.burn_in, thin=self.thin,
            chains=self.chains, keep=needed(model), random_state=self._seed(),
            n_jobs=self.n_jobs, progress=self.progress, store=self.store,
        )  # fmt: skip
        self._set(posterior, matrix, offsets)
        self._warn()

    def _seed(self) -> Any:
        """Legacy generators of NumPy are welcome too."""
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31))
        return state

    def _rank(self, X: ObservedMatrix, model: Model) -> int:
        """The rank, or what "auto" or cross-validation makes of it."""
        wanted = self.n_components
        if isinstance(wanted, str) and wanted not in ("auto", "cv"):
            raise ModelError(
                f"n_components must be a number, 'auto', 'cv' or several numbers, got {wanted!r}."
            )
        if wanted == "auto":
            if not model.rows.ard:
                raise ModelError(
                    f"n_components='auto' needs a model with ARD, such as GGGA or GEEA, not "
                    f"{model.name}; name one, or use 'cv' or a number."
                )
            return automatic_rank(X, model, random_state=self._seed(), n_jobs=self.n_jobs)
        if not isinstance(wanted, (str, list, tuple, range, np.ndarray)):
            return wanted  # type: ignore[return-value]
        rank, self.cv_errors_ = choose_rank(
            X, model, wanted, draws=self.draws, burn_in=self.burn_in, thin=self.thin,
            n_jobs=self.n_jobs, random_state=self._seed(),
        )  # fmt: skip
        return rank

    def _warn(self) -> None:
        """Warn if the chains disagree; a run that is good enough says nothing."""
        if self.posterior_.settings["draws"] < TOO_FEW:
            return
        summary = self.posterior_.summary(screen=_SCREENED)
        if not summary.trusted:
            warnings.warn(" ".join(summary.advice), ConvergenceWarning, stacklevel=4)

    def _predictive(self, latent: bool = False) -> Predictive:
        check_is_fitted(self, "posterior_")
        offsets = self.offsets_.rows, self.offsets_.cols
        return Predictive.of(self.posterior_, offsets=offsets, latent=latent)

    def _of_new_rows(self, X: ObservedMatrix, latent: bool = False) -> Predictive:
        """Predictive distribution of rows that were not fitted, given their own entries."""
        new, offsets = self._draw_new_rows(X)
        factors = augmented(new.U, self.posterior_.factors()[1], new.biases)
        shown = offsets.rows, offsets.cols
        return Predictive.of(self.posterior_, factors, shown, own=new.own, latent=latent)

    def _draw_new_rows(self, X: ObservedMatrix) -> tuple[NewRows, Offsets]:
        offsets = self.offsets_.of_new_rows(X)
        data = offsets.off(X)
        return draw_new_rows(self.posterior_, data, _threads.count(self.n_jobs)), offsets
