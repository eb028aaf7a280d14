"""Estimators in the manner of scikit-learn: `BayesianMF` and `BayesianImputer`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesmf import _threads, alignment
from bayesmf._errors import ConvergenceWarning, DataError, ModelError
from bayesmf.centring import fit_offsets, without_offsets
from bayesmf.model import Model
from bayesmf.newrows import draw_new_rows, needed
from bayesmf.observed import ObservedMatrix
from bayesmf.posterior import Posterior, cell_arrays
from bayesmf.predictive import Predictive
from bayesmf.presets import as_model
from bayesmf.sampling import sample
from bayesmf.splits import hide_some
from bayesmf.streams import Array

_SCREENED = 100_000  # cells that are looked at after every fit
AUTO_COMPONENTS = 30  # factors that "auto" begins with, if the matrix is as large


class _Factorisation(BaseEstimator):
    """What both estimators share: parameters, fitting and the predictive distribution."""

    posterior_: Posterior

    def __init__(
        self,
        model: str | Model = "GGGA",
        n_components: int | str = 10,
        *,
        draws: int = 250,
        burn_in: int = 250,
        thin: int = 1,
        chains: int = 2,
        hyperparameters: dict[str, Any] | None = None,
        center: str = "none",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.model = model
        self.n_components = n_components
        self.draws = draws
        self.burn_in = burn_in
        self.thin = thin
        self.chains = chains
        self.hyperparameters = hyperparameters
        self.center = center
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _read(self, X: Any, reset: bool) -> ObservedMatrix:
        """Check a matrix as scikit-learn does, and keep its labels and its missing entries."""
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

    def _fit(self, X: Any) -> ObservedMatrix:
        """Sample, and set what a fitted estimator has."""
        matrix = self._read(X, reset=True)
        model, rank = self._model(matrix)
        if self.center != "none" and any(model.nonnegative):
            raise ModelError(
                f"center={self.center!r} makes values negative, and {model.name} has nonnegative "
                "factors; use center='none' or a real-valued model such as GGGA."
            )
        offsets = fit_offsets(matrix, self.center)
        data = without_offsets(matrix, offsets)
        self.posterior_ = sample(
            data, model, rank, draws=self.draws, burn_in=self.burn_in, thin=self.thin,
            chains=self.chains, keep=needed(model),
            random_state=self._seed(), n_jobs=self.n_jobs, progress=self.progress,
        )  # fmt: skip
        self.offsets_ = offsets
        self.n_components_ = rank
        self._warn()
        return matrix

    def _seed(self) -> Any:
        """Legacy generators of NumPy are welcome too."""
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31))
        return state

    def _model(self, X: ObservedMatrix) -> tuple[Model, int]:
        """The model, and the rank or what "auto" makes of it."""
        model = as_model(self.model, self.hyperparameters)
        if self.n_components != "auto":
            return model, self.n_components  # type: ignore[return-value]
        if not model.rows.ard:
            raise ModelError(
                f"n_components='auto' needs a model with ARD, such as GGGA or GEEA, not "
                f"{model.name}; name one, or a number of components."
            )
        return model, min(AUTO_COMPONENTS, *X.shape)

    def _warn(self) -> None:
        """Warn if the chains disagree; a run that is good enough says nothing."""
        if self.posterior_.settings["draws"] < 20:  # too few to tell
            return
        summary = self.posterior_.summary(screen=_SCREENED)
        if not summary.trusted:
            warnings.warn(" ".join(summary.advice), ConvergenceWarning, stacklevel=4)

    def _predictive(self) -> Predictive:
        check_is_fitted(self, "posterior_")
        U, V = self.posterior_.factors()
        return self._with(U, V, self.offsets_.rows)

    def _with(self, U: Array, V: Array, row_offset: Array) -> Predictive:
        precision = self.posterior_.draws.get("noise_precision")
        seed = tuple(int(word) for word in self.posterior_.states[0].seed)
        return Predictive(
            U, V, None if precision is None else precision.ravel(), row_offset,
            self.offsets_.cols, seed,
        )  # fmt: skip

    def _of_new_rows(self, X: ObservedMatrix) -> Predictive:
        """Predictive distribution of rows that were not fitted, given their own entries."""
        offsets = self.offsets_.of_new_rows(X)
        threads = _threads.count(self.n_jobs)
        U = draw_new_rows(self.posterior_, without_offsets(X, offsets), threads)
        return self._with(U, self.posterior_.factors()[1], offsets.rows)


class BayesianMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _Factorisation):
    """Bayesian matrix factorisation of a matrix with missing entries.

    Parameters
    ----------
    model
        Name of a preset, or a `Model`.
    n_components
        Rank, or "auto": a model with ARD is fitted with up to 30 factors, and those that the data
        do not support are switched off; `effective_rank_` tells how many are left.
    draws, burn_in, thin, chains
        Kept draws per chain; sweeps before the first of them; sweeps per kept draw; chains.
    hyperparameters
        Changes to the preset's hyperparameters, by name.
    center
        What is subtracted from the data and added to predictions: "none", "global" (the mean),
        "rows", "cols" (their means) or "both" (row and column effects).
    random_state
        None, an integer, a numpy Generator or SeedSequence; an integer makes runs repeatable.
    n_jobs
        Threads; results do not depend on it. None is one thread, -1 all cores.
    progress
        Whether to show a bar on standard error.

    Attributes
    ----------
    posterior_
        The `Posterior`, with the draws of both factors.
    components_
        Posterior mean of the columns' factors after alignment, (n_components, n_features).
    effective_rank_
        Number of factors that carry at least one thousandth of the fitted signal.
    n_components_, n_features_in_, feature_names_in_
        Rank, number and names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import BayesianMF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)) + rng.normal(0, 0.1, (30, 20))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> mf = BayesianMF("GGG", 2, draws=100, burn_in=100, random_state=0).fit(X)
    >>> mean, std = mf.predict(return_std=True)
    >>> mean.shape, std.shape
    ((30, 20), (30, 20))
    """

    def fit(self, X: Any, y: Any = None) -> BayesianMF:
        """Sample from the posterior of a matrix; y is ignored.

        Parameters
        ----------
        X
            An array or DataFrame with NaN for missing entries, a scipy sparse matrix (stored
            entries are observed), or an `ObservedMatrix`.
        """
        self._fit(X)
        U, V = self.posterior_.factors()
        self._turns = alignment.turns(U, V, alignment.freedom(self.posterior_.model))
        aligned = U @ self._turns, V @ self._turns
        self.components_ = aligned[1].mean(axis=0).T
        self.effective_rank_ = _effective_rank(*aligned)
        self._n_features_out = self.n_components_
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, and `transform` the same rows."""
        return self.fit(X).transform(X)

    def transform(self, X: Any) -> Array:
        """Posterior means of the factors of rows, known or new, given their own entries.

        For each kept draw of everything else the factors of a row are drawn from their
        conditional distribution, and aligned as that draw was.
        """
        check_is_fitted(self, "posterior_")
        predictive = self._of_new_rows(self._read(X, reset=False))
        return (predictive.U @ self._turns).mean(axis=0)

    def predict(
        self,
        rows: Any = None,
        cols: Any = None,
        *,
        return_std: bool = False,
        quantiles: Sequence[float] | None = None,
        include_noise: bool = True,
    ) -> Any:
        """Predict cells of the fitted matrix, or all cells of new rows.

        Parameters
        ----------
        rows, cols
            Positions of cells, two arrays of one length; the whole matrix if both are left out.
            Or ``rows`` alone: a matrix of new rows, with NaN for what is not known of them; each is
            predicted given its own entries. A row without any gets the prior predictive
            distribution.
        return_std
            Also return standard deviations of the predictive distribution.
        quantiles
            Also return these quantiles of it, (len(quantiles), ...); for counts, whole numbers.
        include_noise
            Whether standard deviations and quantiles are those of a new observation, or of the
            expected value alone.

        Returns
        -------
        mean, or (mean, std), (mean, quantiles), (mean, std, quantiles)
        """
        check_is_fitted(self, "posterior_")
        cells = None
        if rows is not None and cols is None:
            predictive = self._of_new_rows(self._read(rows, reset=False))
        else:
            predictive = self._predictive()
            if (rows is None) != (cols is None):
                raise ModelError("Give both rows and cols, a matrix of new rows, or nothing.")
            cells = None if rows is None else cell_arrays((rows, cols), predictive.shape)
        return predictive.quantities(cells, return_std, quantiles, include_noise)

    def sample_predictive(self, m: int = 100) -> Array:
        """Draw m matrices from the posterior predictive distribution, noise included: (m, I, J)."""
        return self._predictive().completions(m)

    def log_density(self, rows: Any, cols: Any, values: Any) -> Array:
        """Log predictive densities of values in cells of the fitted matrix, such as held-out ones.

        Parameters
        ----------
        rows, cols, values
            Positions of the cells and what was found there, three arrays of one length.
        """
        predictive = self._predictive()
        cells = cell_arrays((rows, cols), predictive.shape)
        y = np.asarray(values, dtype=np.float64)
        if y.shape != cells[0].shape:
            raise DataError(f"values must have shape {cells[0].shape}, got {y.shape}.")
        return predictive.log_density(cells, y)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log predictive density of entries of new rows; more is better.

        A fifth of the entries of each row, chosen at random but always the same, is scored given
        the rest. For held-out cells of the fitted matrix there is `log_density`.
        """
        check_is_fitted(self, "posterior_")
        shown, hidden = hide_some(self._read(X, reset=False))
        predictive = self._of_new_rows(shown)
        return float(predictive.log_density(hidden[:2], hidden[2]).mean())


class BayesianImputer(TransformerMixin, _Factorisation):
    """Fill the missing cells of a matrix with their posterior means.

    Observed cells are never changed. A DataFrame comes back as a DataFrame. The parameters are
    those of `BayesianMF`.

    Attributes
    ----------
    posterior_
        The `Posterior`, with the draws of both factors.
    n_components_, n_features_in_, feature_names_in_
        Rank, number and names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesmf import BayesianImputer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> imputer = BayesianImputer("GGG", 2, draws=100, burn_in=100, random_state=0)
    >>> bool(np.isnan(imputer.fit_transform(X)).any())
    False
    """

    def fit(self, X: Any, y: Any = None) -> BayesianImputer:
        """Sample from the posterior of a matrix; y is ignored."""
        self._matrix = self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return X with its missing cells filled."""
        self.fit(X)
        return _filled(X, self._matrix, self._predictive())

    def transform(self, X: Any) -> Any:
        """Fill the missing cells of rows, known or new, given their own entries."""
        check_is_fitted(self, "posterior_")
        matrix = self._read(X, reset=False)
        return _filled(X, matrix, self._of_new_rows(matrix))

    def impute(self, m: int = 20) -> Array:
        """Return m completions of the fitted matrix, (m, I, J), for multiple imputation.

        Each is drawn from the posterior predictive distribution, noise included; observed cells
        are the same in all. Analyse each on its own and pool the results.
        """
        completed = self._predictive().completions(m)
        i, j, values = self._matrix.triples()
        completed[:, i, j] = values
        return completed

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns, as they came in."""
        from sklearn.utils.validation import _check_feature_names_in

        check_is_fitted(self, "posterior_")
        return _check_feature_names_in(self, input_features)


def _filled(X: Any, matrix: ObservedMatrix, predictive: Predictive) -> Any:
    """X with posterior means in its gaps, in the container in which it came."""
    completed = matrix.to_array()
    i, j = np.nonzero(np.isnan(completed))
    completed[i, j] = predictive.mean((i, j))
    if hasattr(X, "columns"):
        return type(X)(completed, index=X.index, columns=X.columns)
    return completed


def _effective_rank(U: Array, V: Array) -> int:
    """Number of aligned factors whose share of the fitted signal is at least a thousandth."""
    size = np.mean(np.sum(U**2, axis=1) * np.sum(V**2, axis=1), axis=0)
    return int(np.sum(size >= 1e-3 * size.sum()))
