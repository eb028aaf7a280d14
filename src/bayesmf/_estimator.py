"""What the estimators share: parameters, reading and fitting, and the predictive distribution."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesmf import _threads
from bayesmf._arguments import check, checked
from bayesmf._errors import (
    ConvergenceWarning,
    DataError,
    DataWarning,
    KindError,
    ModelError,
    nearest,
    whole_number,
)
from bayesmf._files import write_arrays
from bayesmf.data import frames
from bayesmf.data.errors import known_errors
from bayesmf.data.informed import of_new
from bayesmf.data.inspection import codes, inspect
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.ranges import Clip, clip_ends
from bayesmf.data.units import Units, fit_units
from bayesmf.model.biases import Biases, augmented
from bayesmf.model.model import Model
from bayesmf.model.presets import as_model
from bayesmf.posterior.diagnostics import SCREENED, TOO_FEW, Summary
from bayesmf.posterior.files import (
    arrays_of,
    attributes,
    fields,
    is_plain,
    kind_of,
    matrix_arrays,
    matrix_of,
    read,
)
from bayesmf.posterior.filled import Filled, filled
from bayesmf.posterior.fitted import Fitted
from bayesmf.posterior.loo import LeaveOneOut, leave_one_out
from bayesmf.posterior.new_rows import NewRows, draw_new_rows, needed
from bayesmf.posterior.noise import Noise
from bayesmf.posterior.posterior import Posterior
from bayesmf.posterior.predictive import Predictive
from bayesmf.posterior.sample import check_cells, run_on, sample
from bayesmf.posterior.verdict import UNUSABLE
from bayesmf.ranks import automatic, choose_rank
from bayesmf.sampler.checkpoints import known_seed
from bayesmf.streams import seed_words

AUTO = "auto"
_CHECKS: dict[str, Any] = {
    "ensure_all_finite": "allow-nan", "accept_sparse": ("csr", "csc", "coo"), "dtype": np.float64,
}  # fmt: skip
_FITTED = ("notes_", "rank_errors_", "cv_errors_")  # what a file of an estimator has besides
#: The automatic model: normal factors with their means and covariances, and biases beside them.
AUTOMATIC_MODEL = "GGGW"
AUTOMATIC_NOISE = ("cols", "both", "equal")
NOISE_WORDS = {
    "equal": "equal noise", "rows": "noise by row", "cols": "noise by column",
    "both": "noise by row and column",
}  # fmt: skip


class Factorisation(BaseEstimator):
    """What both estimators share: parameters, fitting and the predictive distribution."""

    posterior_: Posterior
    units_: Units
    notes_: list[str]
    rank_errors_: dict[int, float]
    n_components_: int
    n_features_in_: int
    feature_names_in_: Any

    def __init__(
        self,
        model: str | Model = AUTO,
        n_components: int | str | Sequence[int] = AUTO,
        *,
        draws: int = 250,
        burn_in: int = 250,
        thin: int = 1,
        chains: int = 2,
        hyperparameters: dict[str, Any] | None = None,
        biases: bool | Biases | None = None,
        noise: str | None = None,
        center: str = AUTO,
        scale: str = AUTO,
        transformation: Any = None,
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
        self.scale = scale
        self.transformation = transformation
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.store = store

    @classmethod
    @checked
    def from_posterior(
        cls, posterior: Posterior, X: Any, center: str = "none", scale: str = "none",
        transformation: Any = None,
    ) -> Self:  # fmt: skip
        """An estimator that is fitted already: a posterior, such as a loaded one, and its data.

        Center, scale and transformation are those with which the posterior was made.
        """
        estimator = cls(
            posterior.model,
            posterior.n_components,
            center=center,
            scale=scale,
            transformation=transformation,
        )
        matrix = estimator._read(X, reset=True)
        if matrix.shape != posterior.shape:
            raise DataError(
                f"The posterior is of a matrix of shape {posterior.shape}, not {matrix.shape}."
            )
        units = estimator._units(matrix, posterior.model)
        known = (one.fingerprint(features=False) for one in (matrix, units.off(matrix)))
        if posterior.fingerprint not in ("", *known):
            raise DataError(
                "The posterior is of other data of the same shape; give those that were fitted, "
                "with their errors, center, scale and transformation."
            )
        estimator._set(posterior, matrix, units)
        return estimator

    @checked
    def save(self, path: str | Path) -> None:
        """Write the fitted estimator, its posterior and its data to an ``.npz`` file for `load`.

        Nothing is pickled. Parameters that are not plain data, such as a generator of random
        numbers, are left out.
        """
        check_is_fitted(self, "posterior_")
        if kind_of(path) != ".npz":
            raise ModelError(f"{path} must end in .npz; posterior_.save writes other files.")
        arrays = arrays_of(self.posterior_) | matrix_arrays(self._matrix)
        params = {k: v for k, v in self.get_params(deep=False).items() if is_plain(v)}
        own = {name: getattr(self, name) for name in _FITTED if hasattr(self, name)}
        about = {"params": params, "fitted": own}
        write_arrays(path, arrays, attributes(self.posterior_) | {"estimator": json.dumps(about)})

    @classmethod
    @checked
    def load(cls, path: str | Path, *, parts: Iterable[type] = ()) -> Self:
        """Read an estimator that `save` wrote; ``parts`` are those of `Posterior.load`."""
        arrays, about = read(path)
        if "estimator" not in about:
            raise DataError(
                f"{path} holds a posterior alone; load it with Posterior.load, and give its data "
                f"to {cls.__name__}.from_posterior."
            )
        posterior = Posterior(**fields(arrays, about, path, parts))
        own = json.loads(about["estimator"])
        estimator = cls(**{"model": posterior.model, **own["params"]})
        names = (posterior.row_labels, posterior.col_labels)
        matrix = posterior.model.informed(matrix_of(arrays, posterior.shape, names))
        matrix = estimator._read(matrix, reset=True)
        estimator._set(posterior, matrix, estimator._units(matrix, posterior.model))
        for name, value in own["fitted"].items():
            errors = name.endswith("errors_")
            setattr(estimator, name, {int(k): v for k, v in value.items()} if errors else value)
        return estimator

    def _set(self, posterior: Posterior, X: ObservedMatrix, units: Units) -> None:
        """Set what a fitted estimator has, whether its posterior was sampled or loaded."""
        self.posterior_, self.units_, self._matrix = posterior, units, X
        self.n_components_ = self._n_features_out = posterior.n_components
        choice = getattr(self, "_choice", None)
        told = [units.note, "" if choice is None else str(choice), *posterior.notes]
        likelihood = posterior.model.likelihood
        looked = inspect(
            X, limits=likelihood.takes_limits and not likelihood.has_limits,
            transforms=likelihood.takes_transforms and units.transforms is None,
            scaled=not likelihood.takes_units or units.scale != "none",
        )  # fmt: skip
        self.notes_ = list(dict.fromkeys([*filter(None, told), *looked]))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _read(self, X: Any, reset: bool) -> ObservedMatrix:
        """Check a matrix as scikit-learn does, and keep its labels and its missing entries."""
        if reset:
            self._kind = frames.kind_of(X)
        if isinstance(X, (np.ma.MaskedArray, tuple)) or hasattr(X, "obs_names"):
            # which scikit-learn would misread
            X = ObservedMatrix.of(X)
        if isinstance(X, ObservedMatrix):
            if reset:
                self._name_features(X)
            elif X.shape[1] != self.n_features_in_:
                raise DataError(
                    f"X has {X.shape[1]} columns, but {type(self).__name__} was fitted with "
                    f"{self.n_features_in_}."
                )
            return X
        if frames.is_frame(X):
            return self._read_frame(X, reset)
        return ObservedMatrix.of(self._validated(X, reset))

    def _validated(self, X: Any, reset: bool) -> Any:
        """What scikit-learn makes of a table; its complaints are ours."""
        try:
            return validate_data(self, X, reset=reset, **_CHECKS)
        except TypeError as error:
            raise KindError(str(error)) from None
        except ValueError as error:
            raise DataError(str(error)) from None

    def _name_features(self, X: ObservedMatrix) -> None:
        """Number and names of the columns, as scikit-learn keeps them: names are texts, or none."""
        self.n_features_in_ = X.shape[1]
        if X.col_labels is not None and all(isinstance(label, str) for label in X.col_labels):
            self.feature_names_in_ = X.col_labels
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _read_frame(self, X: Any, reset: bool) -> ObservedMatrix:
        """The same for a DataFrame; columns that hold no numbers are refused by name."""
        frames.refuse_text(X)
        if frames.has_index(X):
            found = self._validated(X, reset)
        else:
            validate_data(self, X, reset=reset, skip_check_array=True)  # names of the columns
            found = frames.numbers(X)
        rows, cols = frames.labels(X)
        return ObservedMatrix.of(found, row_labels=rows, col_labels=cols)

    def _fit(
        self, X: Any, errors: Any, weights: Any, lower: Any, upper: Any, until: str | None,
        **known: Any,
    ) -> None:  # fmt: skip
        """Sample, and set what a fitted estimator has."""
        check(self.get_params(deep=False))
        if until not in (None, "converged"):
            raise ModelError(f"until must be None or 'converged', got {until!r}.")
        matrix = known_errors(self._read(X, reset=True), errors, weights)
        check_cells(matrix.shape, self.chains)
        if any(given is not None for given in known.values()):
            matrix = matrix.with_features(**known)
        matrix.check_range()
        models = self._models((lower, upper))
        model = next(iter(models.values()))
        model.likelihood.check(matrix)
        matrix = model.informed(matrix)
        units = self._units(matrix, model)
        data = units.off(matrix)
        models = {
            name: replace(model, likelihood=model.likelihood.in_units(units, matrix.shape))
            for name, model in models.items()
        }
        seed = self._seed()
        model, rank = self._choose(data, models, seed)
        options: dict[str, Any] = {
            "chains": self.chains, "keep": needed(model.resolve(data, rank)), "n_jobs": self.n_jobs,
            "progress": self.progress, "store": self.store,
        }  # fmt: skip
        posterior = sample(
            data, model, rank, draws=self.draws, burn_in=self.burn_in, thin=self.thin,
            random_state=seed, **options,
        )  # fmt: skip
        if until is not None:
            posterior = run_on(posterior, data, self.draws, self.thin, **options)
        posterior = replace(posterior, fingerprint=matrix.fingerprint(features=False))
        self._set(posterior, matrix, units)
        self._warn()

    def _models(self, limits: tuple[Any, Any]) -> dict[str, Model]:
        """The model that was named, or those of which the automatic one is chosen, by name."""
        if self.model != AUTO:
            biases = False if self.biases is None else self.biases
            return {"": as_model(self.model, self.hyperparameters, biases, self.noise, limits)}
        biases = True if self.biases is None else self.biases
        kinds = AUTOMATIC_NOISE if self.noise is None else (self.noise,)
        return {
            NOISE_WORDS[noise]: as_model(
                AUTOMATIC_MODEL, self.hyperparameters, biases, noise, limits
            )
            for noise in kinds
        }

    def _units(self, X: ObservedMatrix, model: Model) -> Units:
        return units_for(X, model, self.center, self.scale, self.transformation)

    def _choose(self, X: ObservedMatrix, models: dict[str, Model], seed: Any) -> tuple[Model, int]:
        """Model and rank: what was asked for, or what held-out entries make of it."""
        wanted, first = self.n_components, next(iter(models))
        self._choice = None
        if isinstance(wanted, str) and wanted not in (AUTO, "cv"):
            raise ModelError(
                f"n_components must be a number, 'auto', 'cv' or several numbers, got {wanted!r}."
            )
        if self.progress and not isinstance(wanted, int):
            print("Choosing the rank ...", file=sys.stderr)
        if isinstance(wanted, (list, tuple, range, np.ndarray)) or wanted == "cv":
            wanted, self.cv_errors_ = choose_rank(
                X, models[first], wanted, draws=self.draws, burn_in=self.burn_in,
                thin=self.thin, n_jobs=self.n_jobs, random_state=seed,
            )  # fmt: skip
        rank = None if wanted == AUTO else wanted
        if rank is not None and len(models) == 1:
            return models[first], rank  # type: ignore[return-value]
        if rank is not None:
            whole_number("n_components", rank)
        choice = automatic(X, models, rank, random_state=seed, n_jobs=self.n_jobs)  # type: ignore[arg-type]
        self._choice = choice
        self.rank_errors_ = dict(sorted(choice.errors.items()))
        return models[choice.model], choice.rank

    def _seed(self) -> Any:
        """The seed of this fit: that of the run in the store, if there is one and none is given.

        Legacy generators of NumPy are welcome too.
        """
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31))
        if state is None and self.store is not None and (words := known_seed(self.store)):
            return words
        return state if isinstance(state, int) else seed_words(state).tolist()

    def _warn(self) -> None:
        """Warn where results should not be used; a run that is good enough says nothing."""
        if (empty := self._matrix.empty_cols).any():
            count, names = int(empty.sum()), self._matrix.names()[1]
            some = ", ".join(repr(names[j]) for j in np.flatnonzero(empty)[:5])
            some += ", ..." if count > 5 else ""
            warnings.warn(
                f"Nothing is observed of {count} columns: {some}; what fills them comes from "
                "the prior alone. Leave them out.",
                DataWarning,
                stacklevel=4,
            )
        if self.posterior_.settings["draws"] < TOO_FEW:
            return
        summary = self.summary()
        if not summary.trusted:
            warnings.warn(" ".join(summary.advice), ConvergenceWarning, stacklevel=4)

    def summary(self) -> Summary:
        """Whether to use the results, and why not: see `Posterior.summary`."""
        check_is_fitted(self, "posterior_")
        found = self.posterior_.summary(self.units_.off(self._matrix), screen=SCREENED)
        if wrong := codes(self._matrix):
            return replace(found, level=UNUSABLE, advice=(*wrong, *found.advice))
        return found

    def more_draws(self, draws: int) -> Self:
        """Go on where the fit ended, for this many kept draws of each chain.

        The fit is then the one that would have been made with so many draws in all, bit for bit.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesmf import BayesianMF
        >>> X = np.random.default_rng(0).normal(size=(20, 10))
        >>> mf = BayesianMF("GGG", 2, draws=30, burn_in=30, random_state=0).fit(X).more_draws(20)
        >>> mf.posterior_.settings["draws"]
        50
        """
        check_is_fitted(self, "posterior_")
        data = self.units_.off(self._matrix)
        posterior = self.posterior_.more_draws(
            data, draws, n_jobs=self.n_jobs, progress=self.progress
        )
        self._set(posterior, self._matrix, self.units_)
        self._warn()
        return self

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


def units_for(
    X: ObservedMatrix,
    model: Model,
    center: str = AUTO,
    scale: str = AUTO,
    transformation: Any = None,
) -> Units:
    """Centre, scale and transformation of the data; refused where the model does not take them."""
    likelihood, nonnegative = model.likelihood, any(model.nonnegative)
    if center not in ("none", AUTO) and nonnegative:
        raise ModelError(
            f"center={center!r} makes values negative, and {model.name} has nonnegative factors; "
            "use center='none' or a real-valued model such as GGGA."
        )
    fixed = not likelihood.takes_units
    for name, value in (("center", center), ("scale", scale), ("transformation", transformation)):
        if fixed and value is not None and value not in ("none", AUTO):
            raise ModelError(
                f"{name}={value!r} changes the values, but counts and categories stay as they are; "
                f"use {name}='none', and biases=True if the model takes biases."
            )
    if transformation is not None and not likelihood.takes_transforms:
        raise ModelError(
            "transformation goes with normal noise: under Student-t noise the mean of what is "
            "transformed back need not exist; use Gaussian noise, or no transformation."
        )
    if transformation is not None and X.errors is not None:
        raise ModelError(
            "transformation and known errors do not go together, since errors are those of the "
            "values as they are; transform values and errors yourself."
        )
    units = fit_units(X, center, scale, transformation, fixed=fixed, nonnegative=nonnegative)
    negative = units.transforms is not None and (units.off(X).rows.values < 0).any()
    if negative and all(model.nonnegative):
        raise ModelError(
            f"transformation={transformation!r} makes values negative, and {model.name} has "
            "nonnegative factors; use 'sqrt' or 'log1p', or a real-valued model such as GGGA."
        )
    return units
