"""Estimators in the manner of scikit-learn: `BayesianMF` and `BayesianImputer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesmf._arguments import checked
from bayesmf._errors import DataError, ModelError
from bayesmf._estimator import Factorisation
from bayesmf.data import frames
from bayesmf.data.cells import cell_arrays
from bayesmf.data.informed import with_new, without_entries
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.ranges import Clip, clip_ends
from bayesmf.posterior.predictive import Predictive
from bayesmf.ranks import effective_rank
from bayesmf.splits import hide_some
from bayesmf.streams import Array


def _has_categories(estimator: Factorisation) -> bool:
    """Whether cells have categories under the estimator's model."""
    models = estimator._models((None, None)).values()
    return any(model.likelihood.has_categories for model in models)


class BayesianMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Factorisation):
    """Bayesian matrix factorisation of a matrix with missing entries.

    Parameters
    ----------
    model
        Name of a preset, or a `Model`. "auto" is GGGW with biases, and a noise of every column, or
        of every row and column if that predicts held-out entries better.
    n_components
        Rank, or how to find it. "auto": by the errors of entries that are held out of short runs;
        `rank_errors_` has them. "cv", or several numbers: the rank with the least error in a
        five-fold cross-validation over the entries; `cv_errors_` has them all.
    draws, burn_in
        Kept draws per chain; sweeps before the first of them.
    thin
        Sweeps per kept draw.
    chains
        Number of chains.
    hyperparameters
        Changes to the preset's hyperparameters, by name; they are those of the scaled data.
    biases
        Whether to add a global mean and an effect of every row and column, sampled with the
        factors; a `Biases` sets their hyperparameters. For likelihoods that take them. By default
        the automatic model has them, and a named one has not.
    noise
        Whether the noise of all cells is "equal", or that of "rows", "cols" or "both" differs; by
        default as the model says. For normal and Student noise.
    center
        What is subtracted from the data and added to predictions: "none", "global" (the mean),
        "rows", "cols" (their means) or "both" (row and column effects). "auto" is as ``scale``, but
        "none" where values must not become negative.
    scale
        What the data are divided by, and predictions multiplied with, so that units do not matter:
        the root mean square of what centring leaves, of all values ("global"), of each column
        ("cols") or row ("rows"), or nothing ("none"). "auto" is "cols", or "global" where fewer
        than a tenth of the cells are observed. Counts and categories are left alone.
    transformation
        A function of the values that is modelled in their place: "log", "log1p", "logit", "sqrt" or
        "rank"; one for each column, or a dictionary of columns. Results are transformed back.
    random_state
        None, an integer, a numpy Generator or SeedSequence; an integer makes runs repeatable.
    n_jobs
        Threads; results do not depend on it. None is one thread, -1 all cores.
    progress
        Whether to show a bar on standard error.
    store
        A folder for draws and checkpoints: draws then take no memory, and a fit that was killed
        goes on where it was when it is asked for again.
    dask
        Address of a Dask scheduler, over whose workers the matrix is spread; results do not depend
        on it. A rank or noise that is automatic is found here before.
    single
        Whether to keep the data in single precision, which halves them; see `ObservedMatrix.of`.
        Numbers that are centred or scaled are held in double beside them.

    Attributes
    ----------
    posterior_
        The `Posterior`, with the draws of both factors.
    components_
        Posterior mean of the columns' factors after alignment, (n_components, n_features).
    effective_rank_
        Number of factors that carry more than a factor can make of noise.
    notes_
        What should be known about data and run, in sentences.
    units_
        What was done to the data before the model saw them. The posterior and its factors are in
        the units of the model, predictions in those of the data.
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

    @checked
    def fit(
        self, X: Any, y: Any = None, *, errors: Any = None, weights: Any = None,
        lower: Any = None, upper: Any = None, until: str | None = None,
        row_features: Any = None, col_features: Any = None, row_kernel: Any = None,
        col_kernel: Any = None, pattern: str | None = None, held_out: Any = None,
    ) -> BayesianMF:  # fmt: skip
        """Sample from the posterior of a matrix; y is ignored.

        Parameters
        ----------
        X
            An array or DataFrame with NaN for missing entries, a masked array, a scipy sparse
            matrix (stored entries are observed), a triple (rows, cols, values), or an
            `ObservedMatrix`.
        errors, weights
            Known standard deviations of the entries, up to a common factor that is sampled, or
            weights, their inverse squares: of the shape of X, positive wherever X has an entry.
        lower, upper
            Limits of the values, which are then known to lie there or farther: a number, one for
            each column, or one for each cell; see `Censored`.
        until
            "converged" runs chains on, twice as long each time, until the verdict of `summary` is
            fine, or 16 times the sweeps are done.
        row_features, col_features
            What is known of the rows, and of the columns, besides their entries: arrays (I, .) and
            (J, .), DataFrames (matched by label), sparse matrices, or dictionaries of several
            groups. For priors Normal and MultivariateNormal, such as those of the automatic model.
        row_kernel, col_kernel
            Similarities of rows, or of columns, to each other: (I, I) and (J, J).
        pattern
            "rows", "cols" or "both" makes features of which entries are observed.
        held_out
            Entries that were left out of X, three arrays (rows, cols, values): with ``progress``
            the bar tells the error of their predictions so far, in the units of the model.
        """
        self._fit(
            X, errors, weights, lower, upper, until, held_out, row_features=row_features,
            col_features=col_features, row_kernel=row_kernel, col_kernel=col_kernel,
            pattern=pattern,
        )  # fmt: skip
        return self

    @property
    def components_(self) -> Array:
        """Posterior mean of the columns' factors after alignment, (n_components, n_features)."""
        check_is_fitted(self, "posterior_")
        return self.posterior_.align()[1].mean(axis=0).T

    @property
    def effective_rank_(self) -> int:
        """Number of factors that carry more than a factor can make of noise."""
        check_is_fitted(self, "posterior_")
        return effective_rank(self.posterior_, self.units_.off(self._matrix))

    def fit_transform(self, X: Any, y: Any = None, **known: Any) -> Array:
        """Fit, and `transform` the same rows; ``known`` are errors and limits as in `fit`.

        The result is that of `fit` and then `transform`, bit for bit. The factors that were drawn
        in the fit itself, aligned, are ``posterior_.align()[0]``; their means agree with it up to
        Monte Carlo error.
        """
        self.fit(X, **known)
        return self.transform(self._matrix if known else X)

    def transform(self, X: Any, *, row_features: Any = None, row_kernel: Any = None) -> Array:
        """Posterior means of the factors of rows, known or new, given their own entries.

        For each kept draw of everything else the factors of a row are drawn from their
        conditional distribution, and aligned as that draw was. Features are those of `predict`.
        """
        check_is_fitted(self, "posterior_")
        matrix = with_new(self._read(X, reset=False), row_features, row_kernel, 0)
        new, _ = self._draw_new(matrix)
        return (new.U @ self.posterior_.rotations).mean(axis=0)

    @checked
    def predict(
        self,
        rows: Any = None,
        cols: Any = None,
        *,
        row_features: Any = None,
        col_features: Any = None,
        row_kernel: Any = None,
        col_kernel: Any = None,
        return_std: bool = False,
        quantiles: Sequence[float] | None = None,
        include_noise: bool = True,
        latent: bool = False,
        clip: Clip = None,
    ) -> Any:
        """Predict cells of the fitted matrix, or all cells of new rows and new columns.

        Parameters
        ----------
        rows, cols
            Positions of cells, two arrays of one length; the whole matrix if both are left out.
            Or ``rows`` alone: a matrix of new rows, with NaN for what is not known of them; each is
            predicted given its own entries. A row without any gets the prior predictive
            distribution. Or ``cols`` alone: a matrix (I, .) of new columns, where the fit had
            features of columns.
        row_features, row_kernel
            Features of new rows, where the fit had such, as they were given to `fit`; without
            ``rows`` they have no entries. A kernel has similarities of the new rows to the fitted
            ones, (m, I), or to these and the new ones, (m, I + m).
        col_features, col_kernel
            The same of new columns. With those of new rows, the cells of both are predicted.
        return_std
            Also return standard deviations of the predictive distribution.
        quantiles
            Also return these quantiles of it, (len(quantiles), ...); for counts, whole numbers.
        include_noise
            Whether standard deviations and quantiles are those of a new observation, or of the
            expected value alone.
        latent
            Where values have limits, predict what lies behind them instead of the reported value,
            which never leaves them.
        clip
            Where means and quantiles end: a lower and an upper end, either of which may be None, or
            "observed", the range of what was observed of each column. Standard deviations stay.

        Returns
        -------
        mean, or (mean, std), (mean, quantiles), (mean, std, quantiles)
        """
        known = (row_features, row_kernel), (col_features, col_kernel)
        predictive, cells = self._at(rows, cols, latent, known)
        ends = clip_ends(clip, self._matrix)
        new_cols = col_features is not None or col_kernel is not None
        if clip == "observed" and new_cols:
            raise ModelError("clip='observed' is for columns that were fitted; give two numbers.")
        found = predictive.quantities(cells, return_std, quantiles, include_noise)
        if ends is None:
            return found
        at: Any = slice(1) if new_cols else slice(None) if cells is None else cells[1]
        low, high = (end[at] for end in ends)
        if not isinstance(found, tuple):
            return np.clip(found, low, high)
        kept = {1} if return_std else set()  # where the standard deviations are
        return tuple(
            part if k in kept else np.clip(part, low, high) for k, part in enumerate(found)
        )

    def _at(
        self, rows: Any, cols: Any, latent: bool = False, known: Any = ((None, None), (None, None))
    ) -> tuple[Predictive, tuple[Array, Array] | None]:
        """Predictive distribution, and cells of it; or that of new rows, new columns or both."""
        check_is_fitted(self, "posterior_")
        informed = [any(one is not None for one in side) for side in known]
        if not any(informed) and (rows is None) == (cols is None):
            predictive = self._predictive(latent)
            return predictive, None if rows is None else cell_arrays((rows, cols), predictive.shape)
        new: list[ObservedMatrix | None] = [None, None]
        for axis, given in enumerate((rows, cols)):
            if given is not None or informed[axis]:
                matrix, (values, kernel) = self._new(given, axis, known[axis]), known[axis]
                new[axis] = with_new(matrix, values, kernel, axis)
        return self._of_new(new[0], new[1], latent), None

    def _new(self, given: Any, axis: int, known: tuple[Any, Any]) -> ObservedMatrix:
        """Entries of new rows or columns; without any, as many rows as there are features."""
        if given is None:
            return without_entries(known, self.posterior_.shape, axis)
        if axis == 0:
            return self._read(given, reset=False)
        if self.posterior_.model.cols.features is None:
            raise ModelError("Give both rows and cols, a matrix of new rows, or nothing.")
        return ObservedMatrix.of(given)

    @available_if(_has_categories)
    def predict_proba(
        self, rows: Any = None, cols: Any = None, *, row_features: Any = None,
        col_features: Any = None, row_kernel: Any = None, col_kernel: Any = None,
    ) -> Array:  # fmt: skip
        """Probabilities of the categories of cells, in order: (n, C), or (I, J, C) for all cells.

        For likelihoods with categories, `Ordinal` and `BernoulliPoisson`; all parameters are those
        of `predict`. The categories are ``posterior_.model.likelihood.values``.
        """
        known = (row_features, row_kernel), (col_features, col_kernel)
        predictive, cells = self._at(rows, cols, known=known)
        return predictive.probabilities(cells)

    @checked
    def sample_predictive(self, m: int = 100) -> Array:
        """Draw m matrices from the posterior predictive distribution, noise included: (m, I, J)."""
        return self._predictive().completions(m)

    def log_density(self, rows: Any, cols: Any, values: Any, errors: Any = None) -> Array:
        """Log predictive densities of values in cells of the fitted matrix, such as held-out ones.

        Parameters
        ----------
        rows, cols, values
            Positions of the cells and what was found there, three arrays of one length.
        errors
            Known errors of the values, where the fit had such; by default their median there.
        """
        predictive = self._predictive()
        cells = cell_arrays((rows, cols), predictive.shape)
        y = _as_floats("values", values)
        if y.shape != cells[0].shape:
            raise DataError(f"values must have shape {cells[0].shape}, got {y.shape}.")
        weights = None
        if errors is not None:
            known = _as_floats("errors", errors)
            if known.shape not in ((), y.shape) or not (known > 0).all():
                raise DataError(f"errors must be positive, one or of shape {y.shape}.")
            weights = np.broadcast_to(known, y.shape) ** -2.0
        return predictive.log_density(cells, y, weights)

    def score(
        self, X: Any, y: Any = None, *, row_features: Any = None, row_kernel: Any = None
    ) -> float:
        """Mean log predictive density of entries of new rows; more is better.

        A fifth of the entries of each row, chosen at random but always the same, is scored given
        the rest. For held-out cells of the fitted matrix there is `log_density`. Features are those
        of `predict`.
        """
        check_is_fitted(self, "posterior_")
        matrix = with_new(self._read(X, reset=False), row_features, row_kernel, 0)
        shown, hidden = hide_some(matrix)
        predictive = self._of_new(shown)
        return float(predictive.log_density(hidden[:2], hidden[2]).mean())


class BayesianImputer(TransformerMixin, Factorisation):
    """Fill the missing cells of a matrix with their posterior means.

    Observed cells are never changed. A DataFrame, of whatever library, comes back as one of the
    same. The parameters are those of `BayesianMF`.

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

    @checked
    def fit(
        self, X: Any, y: Any = None, *, errors: Any = None, weights: Any = None,
        lower: Any = None, upper: Any = None, until: str | None = None,
        row_features: Any = None, col_features: Any = None, row_kernel: Any = None,
        col_kernel: Any = None, pattern: str | None = None,
    ) -> BayesianImputer:  # fmt: skip
        """Sample from the posterior of a matrix; y is ignored.

        Errors, weights and limits of the entries, ``until`` and what is known of rows and columns
        are those of `BayesianMF.fit`.
        """
        self._fit(
            X, errors, weights, lower, upper, until, row_features=row_features,
            col_features=col_features, row_kernel=row_kernel, col_kernel=col_kernel,
            pattern=pattern,
        )  # fmt: skip
        return self

    def fit_transform(self, X: Any, y: Any = None, **known: Any) -> Any:
        """Fit, and return X with its missing cells filled; ``known`` as in `fit`.

        Cells are means over the kept draws of their own rows. `transform` of the same rows draws
        the rows' factors anew, as it does for any rows: equal up to Monte Carlo error.
        """
        self.fit(X, **known)
        return _filled(X, self._matrix, self._predictive())

    def transform(self, X: Any, *, row_features: Any = None, row_kernel: Any = None) -> Any:
        """Fill the missing cells of rows, known or new, given their own entries and features.

        Rows of the fitted matrix are treated as new ones, too: their factors are drawn once for
        each kept draw of everything else. `fit_transform` uses the draws of the fit.
        """
        check_is_fitted(self, "posterior_")
        matrix = with_new(self._read(X, reset=False), row_features, row_kernel, 0)
        return _filled(X, matrix, self._of_new(matrix))

    @checked
    def impute(self, m: int = 20, X: Any = None) -> Any:
        """Return m completions of the fitted matrix, or of other rows, for multiple imputation.

        Each is drawn from the posterior predictive distribution, noise included; observed cells
        are the same in all. Analyse each on its own and pool the results.

        Parameters
        ----------
        m
            Number of completions.
        X
            New rows; the fitted ones by default.

        Returns
        -------
        array (m, I, J), or a list of m DataFrames if the rows came in one
        """
        check_is_fitted(self, "posterior_")
        if X is None:
            kind, matrix, predictive = self._kind, self._matrix, self._predictive()
        else:
            kind, matrix = frames.kind_of(X), self._read(X, reset=False)
            predictive = self._of_new(matrix)
        completed = predictive.completions(m)
        i, j, values = matrix.triples()
        completed[:, i, j] = values
        return completed if kind is None else [kind.frame(one) for one in completed]

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns, as they came in."""
        from sklearn.utils.validation import _check_feature_names_in

        check_is_fitted(self, "posterior_")
        return _check_feature_names_in(self, input_features)


def _as_floats(name: str, values: Any) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be numbers, got {values!r}.") from None


def _filled(X: Any, matrix: ObservedMatrix, predictive: Predictive) -> Any:
    """X with posterior means in its gaps, in the container in which it came."""
    completed = matrix.to_array()
    i, j = np.nonzero(np.isnan(completed))
    completed[i, j] = predictive.mean((i, j))
    kind = frames.kind_of(X)
    return completed if kind is None else kind.frame(completed)
