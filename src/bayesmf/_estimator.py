"""What the estimators share: parameters, reading, fitting, files."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesmf._arguments import check, checked
from bayesmf._automatic import AUTO, models_for, units_for
from bayesmf._errors import (
    ConvergenceWarning,
    DataError,
    DataWarning,
    KindError,
    ModelError,
    whole_number,
)
from bayesmf._files import write_arrays
from bayesmf._results import Results
from bayesmf.data import frames
from bayesmf.data.cells import cell_arrays
from bayesmf.data.errors import known_errors
from bayesmf.data.inspection import inspect
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.units import Units
from bayesmf.model.biases import Biases
from bayesmf.model.model import Model
from bayesmf.posterior.diagnostics import TOO_FEW
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
from bayesmf.posterior.new_rows import needed
from bayesmf.posterior.posterior import Posterior
from bayesmf.posterior.sample import check_cells, run_on, sample
from bayesmf.ranks import automatic, choose_rank
from bayesmf.sampler.checkpoints import known_seed
from bayesmf.sampler.cluster import check_cluster
from bayesmf.streams import seed_words

_CHECKS: dict[str, Any] = {
    "ensure_all_finite": "allow-nan", "accept_sparse": ("csr", "csc", "coo"), "dtype": np.float64,
}  # fmt: skip
_FITTED = ("notes_", "rank_errors_", "cv_errors_")  # what a file of an estimator has besides


class Factorisation(Results):
    """What both estimators share: parameters, fitting, and what follows from a posterior."""

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
        dask: str | None = None,
        single: bool = False,
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
        self.dask = dask
        self.single = single

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
        choice = str(getattr(self, "_choice", None) or "")
        told = [units.note, _precision(X, units), choice, *posterior.notes]
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
        return ObservedMatrix.of(self._checked(X, reset), single=bool(self.single))

    def _checked(self, X: Any, reset: bool) -> ObservedMatrix:
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
        held_out: Any = None, **known: Any,
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
        check_cluster(model, self.dask)
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
            "progress": self.progress, "store": self.store, "dask": self.dask,
            "held_out": _as_seen(held_out, units, matrix),
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
        return models_for(self.model, self.hyperparameters, self.biases, self.noise, limits)

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
                f"Columns without an observed value ({count}): {some}; what fills them comes "
                "from the prior alone. Leave them out.",
                DataWarning,
                stacklevel=4,
            )
        if self.posterior_.settings["draws"] < TOO_FEW:
            return
        summary = self.summary()
        if not summary.trusted:
            warnings.warn(" ".join(summary.advice), ConvergenceWarning, stacklevel=4)

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


def _as_seen(held_out: Any, units: Units, X: ObservedMatrix) -> Any:
    """Entries that were left out as the model would see them."""
    if held_out is None:
        return None
    try:
        rows, cols, values = held_out
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("held_out: give three arrays, (rows, cols, values).") from None
    cells = cell_arrays((rows, cols), X.shape)
    if values.shape != cells[0].shape:
        raise DataError(f"held_out: there must be a number for each of {cells[0].size} cells.")
    return *cells, units.forward(values, cells)


def _precision(X: ObservedMatrix, units: Units) -> str:
    """What single precision does not halve, in a sentence."""
    if not (X.is_single and units.changed):
        return ""
    return (
        "The data are kept in single precision, but the model sees them centred or scaled, in "
        "double; only center='none' and scale='none' (--center none --scale none) halve both."
    )
