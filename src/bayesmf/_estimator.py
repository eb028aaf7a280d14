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
from bayesmf._errors import ConvergenceWarning, DataError, KindError, ModelError, whole_number
from bayesmf._files import write_arrays
from bayesmf.data.errors import known_errors
from bayesmf.data.inspection import codes, inspect
from bayesmf.data.observed import ObservedMatrix
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
from bayesmf.posterior.new_rows import NewRows, draw_new_rows, needed
from bayesmf.posterior.noise import Noise, in_units
from bayesmf.posterior.posterior import Posterior
from bayesmf.posterior.predictive import Predictive
from bayesmf.posterior.sample import run_on, sample
from bayesmf.posterior.verdict import UNUSABLE
from bayesmf.ranks import automatic, choose_rank
from bayesmf.sampler.checkpoints import known_seed
from bayesmf.streams import seed_words

AUTO = "auto"
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
        if posterior.fingerprint not in ("", matrix.fingerprint(), units.off(matrix).fingerprint()):
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
        matrix = estimator._read(matrix_of(arrays, posterior.shape, names), reset=True)
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
        try:
            found = validate_data(
                self, X, reset=reset, ensure_all_finite="allow-nan",
                accept_sparse=("csr", "csc", "coo"), dtype=np.float64,
            )  # fmt: skip
        except TypeError as error:
            raise KindError(str(error)) from None
        except ValueError as error:
            raise DataError(str(error)) from None
        labels = (X.index, X.columns) if hasattr(X, "columns") else (None, None)
        return ObservedMatrix.of(found, row_labels=labels[0], col_labels=labels[1])

    def _fit(
        self, X: Any, errors: Any, weights: Any, lower: Any, upper: Any, until: str | None
    ) -> None:
        """Sample, and set what a fitted estimator has."""
        check(self.get_params(deep=False))
        if until not in (None, "converged"):
            raise ModelError(f"until must be None or 'converged', got {until!r}.")
        matrix = known_errors(self._read(X, reset=True), errors, weights)
        matrix.check_range()
        models = self._models((lower, upper))
        model = next(iter(models.values()))
        model.likelihood.check(matrix)
        units = self._units(matrix, model)
        data = units.off(matrix)
        models = {
            name: replace(model, likelihood=model.likelihood.in_units(units, matrix.shape))
            for name, model in models.items()
        }
        seed = self._seed()
        model, rank = self._choose(data, models, seed)
        options: dict[str, Any] = {
            "chains": self.chains, "keep": needed(model), "n_jobs": self.n_jobs,
            "progress": self.progress, "store": self.store,
        }  # fmt: skip
        posterior = sample(
            data, model, rank, draws=self.draws, burn_in=self.burn_in, thin=self.thin,
            random_state=seed, **options,
        )  # fmt: skip
        if until is not None:
            posterior = run_on(posterior, data, self.draws, self.thin, **options)
        posterior = replace(posterior, fingerprint=matrix.fingerprint())
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

    @checked
    def noise_sd(self, level: float = 0.9) -> Noise:
        """Standard deviation of the noise of all cells, rows and columns, in the data's units.

        As `Posterior.noise`, which has the units of the model. Where columns were scaled, each has
        a noise of its own; under a transformation they are those of the transformed values, and
        where errors are known, factors of these.
        """
        check_is_fitted(self, "posterior_")
        noise = self.posterior_.noise(level)
        return noise if self._matrix.errors is not None else in_units(noise, self.units_)

    def _predictive(self, latent: bool = False) -> Predictive:
        check_is_fitted(self, "posterior_")
        return Predictive.of(self.posterior_, units=self.units_, latent=latent)

    def _of_new_rows(self, X: ObservedMatrix, latent: bool = False) -> Predictive:
        """Predictive distribution of rows that were not fitted, given their own entries."""
        new, units = self._draw_new_rows(X)
        factors = augmented(new.U, self.posterior_.factors()[1], new.biases)
        return Predictive.of(self.posterior_, factors, units, own=new.own, latent=latent)

    def _draw_new_rows(self, X: ObservedMatrix) -> tuple[NewRows, Units]:
        units = self.units_.of_new_rows(X)
        return draw_new_rows(self.posterior_, units.off(X), _threads.count(self.n_jobs)), units


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
