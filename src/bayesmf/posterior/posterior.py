"""The posterior: moments of the predictions U V^T, kept draws, and what to know about the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmf._arguments import checked
from bayesmf._cached import cached_property
from bayesmf._errors import DataError, ModelError
from bayesmf.data.cells import cell_arrays
from bayesmf.data.observed import ObservedMatrix
from bayesmf.model.biases import augmented
from bayesmf.model.model import Model
from bayesmf.priors.distributions import Values
from bayesmf.sampler.state import State
from bayesmf.streams import Array

if TYPE_CHECKING:
    from bayesmf.posterior.blocks import Top
    from bayesmf.posterior.diagnostics import Summary
    from bayesmf.posterior.feature_weights import FeatureWeights
    from bayesmf.posterior.loo import LeaveOneOut
    from bayesmf.posterior.noise import Noise


@dataclass(frozen=True, eq=False)
class Posterior:
    """The result of `sample`.

    Attributes
    ----------
    model
        The model with all its defaults filled in.
    mean, variance
        Posterior mean and variance of U V^T: (I, J), or one number per requested cell.
    draws
        Kept draws by variable name, each (chains, draws, ...); always has those of the likelihood,
        such as "noise_precision".
    train_mse, seconds
        Mean squared training error and seconds of every sweep, burn-in included: (chains, sweeps).
    U_mean, V_mean
        Posterior means of the factors of every chain: (chains, I, K), (chains, J, K). Factors may
        rotate and change places between draws: for predictions use `predict`.
    states
        The last state of every chain, from which `bayesmf.chain` goes on.
    empty_rows, empty_cols
        Flags of the rows and columns without any observed entry: prior draws only.
    notes
        What should be known about this run, in sentences.
    settings
        How the run was made: draws, burn_in, thin, chains, init, scale_move and the seed, which
        as ``random_state`` makes the same run again.
    fingerprint
        Hash of the data that were fitted.
    """

    model: Model
    n_components: int
    shape: tuple[int, int]
    cells: tuple[Array, Array] | None
    mean: Array
    variance: Array
    draws: dict[str, Array]
    train_mse: Array
    seconds: Array
    U_mean: Array
    V_mean: Array
    states: tuple[State, ...]
    empty_rows: Array
    empty_cols: Array
    row_labels: Array | None
    col_labels: Array | None
    notes: tuple[str, ...]
    settings: dict[str, Any]
    fingerprint: str = ""

    @property
    def noise_precision(self) -> Array:
        """Draws of the noise precision, (chains, draws)."""
        try:
            return self.draws["noise_precision"]
        except KeyError:
            likelihood = self.model.likelihood.name
            raise ModelError(
                f"{self.model.name} has no noise precision: its likelihood is {likelihood}."
            ) from None

    @property
    def interrupted(self) -> bool:
        """Whether an interrupt ended the run early; `notes` says what was kept."""
        return bool(self.settings.get("interrupted"))

    @checked
    def predict(
        self, rows: Any = None, cols: Any = None, *, method: str = "mean", return_std: bool = False
    ) -> Any:
        """Predict cells by the posterior mean of U V^T.

        Parameters
        ----------
        rows, cols
            Positions of the cells, two arrays of one length; all cells (or all that were requested
            from `sample`) if left out. Cells that were not requested need the draws of U and V.
        method
            "mean" is the posterior mean of U V^T. "product_of_means" multiplies the posterior means
            of U and V, chain by chain, as the study did; it is not a posterior mean.
        return_std
            Also return the posterior standard deviation of U V^T (without observation noise).
        """
        if method not in ("mean", "product_of_means"):
            raise ModelError(f"method must be 'mean' or 'product_of_means', got {method!r}.")
        if (rows is None) != (cols is None):
            raise ModelError("Give both rows and cols, or neither.")
        if method != "mean" and self.model.biases:
            raise ModelError("product_of_means is for models without biases; use method='mean'.")
        where = None if rows is None else cell_arrays((rows, cols), self.shape)
        mean = self._product_of_means(where) if method != "mean" else self._pick(self.mean, where)
        if not return_std:
            return mean
        return mean, np.sqrt(self._pick(self.variance, where))

    def quantiles(
        self, levels: Sequence[float], rows: Any = None, cols: Any = None, *,
        include_noise: bool = True,
    ) -> Array:  # fmt: skip
        """Quantiles of the predictive distribution of cells; needs the draws of U and V.

        Parameters
        ----------
        levels
            Probabilities, such as (0.05, 0.95).
        rows, cols
            Positions of the cells, two arrays of one length; all cells if left out.
        include_noise
            Whether they are those of a new observation, or of the expected value alone.

        Returns
        -------
        array (len(levels), n), or (len(levels), I, J) for all cells

        Examples
        --------
        >>> import numpy as np
        >>> from bayesmf import sample
        >>> X = np.random.default_rng(0).normal(size=(20, 10))
        >>> posterior = sample(X, "GGG", 2, draws=50, keep=("U", "V"), random_state=0)
        >>> posterior.quantiles([0.05, 0.95]).shape, posterior.sample_predictive(7).shape
        ((2, 20, 10), (7, 20, 10))
        """
        from bayesmf.posterior.predictive import Predictive

        if (rows is None) != (cols is None):
            raise ModelError("Give both rows and cols, or neither.")
        where = None if rows is None else cell_arrays((rows, cols), self.shape)
        found = Predictive.of(self).quantities(where, False, levels, include_noise)
        return found[1]

    def sample_predictive(self, m: int = 100) -> Array:
        """Draw m matrices (m, I, J) from the predictive distribution, noise included.

        They belong to m of the kept draws, evenly spread; needs the draws of U and V.
        """
        from bayesmf.posterior.predictive import Predictive

        return Predictive.of(self).completions(m)

    @checked
    def top(self, n: int = 10, rows: Any = None, X: Any = None) -> Top:
        """The n columns with the largest posterior means of each row; needs the draws of U and V.

        Rows are worked on some at a time, so that no array of the size of the matrix is made.

        Parameters
        ----------
        n
            Columns per row.
        rows
            Positions of the rows (R,); all by default.
        X
            The data: entries that were observed are then left out.

        Returns
        -------
        Top
            ``cols`` (R, n), positions, and ``mean`` (R, n), largest first.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesmf import sample
        >>> X = np.random.default_rng(0).normal(size=(20, 10))
        >>> posterior = sample(X, "GGG", 2, draws=50, keep=("U", "V"), random_state=0)
        >>> posterior.top(3, rows=[0, 7]).cols.shape
        (2, 3)
        """
        from bayesmf.posterior.blocks import top

        return top(self, n, rows, None if X is None else ObservedMatrix.of(X))

    @checked
    def to_parquet(self, path: str | Path, rows: Any = None, X: Any = None) -> int:
        """Write mean and deviation of U V^T to a Parquet file, a line for each cell.

        Rows are worked on some at a time, from the draws of U and V, so the file may be larger than
        memory. Needs pyarrow (``pip install 'bayesmf[parquet]'``).

        Parameters
        ----------
        path
            The file, which is written whole or not at all.
        rows
            Positions of the rows whose cells are written; all by default.
        X
            The data: entries that were observed are then left out.

        Returns
        -------
        int
            Number of lines: columns ``row``, ``column`` (labels, or positions), ``mean``, ``sd``.
        """
        from bayesmf.posterior.blocks import to_parquet

        return to_parquet(self, path, rows, None if X is None else ObservedMatrix.of(X))

    def more_draws(
        self, X: Any, draws: int, *, n_jobs: int | None = None, progress: bool = False
    ) -> Posterior:
        """The posterior of a longer run: its chains go on for this many kept draws each.

        It is the run that `sample` would have made with so many draws in all, bit for bit. Moments
        are taken up from the kept draws, so these must include U and V (``keep="all"`` with
        biases).

        Parameters
        ----------
        X
            The data, as `sample` was given them.
        draws
            Kept draws per chain to add.
        n_jobs
            Threads, as in `sample`.
        progress
            Whether to show a bar on standard error.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesmf import sample
        >>> X = np.random.default_rng(0).normal(size=(20, 10))
        >>> options = {"keep": ("U", "V"), "random_state": 0}
        >>> short = sample(X, "GGG", 2, draws=30, **options)
        >>> long = sample(X, "GGG", 2, draws=50, **options)
        >>> bool((short.more_draws(X, 20).mean == long.mean).all())
        True
        """
        from bayesmf.posterior.sample import more_draws

        return more_draws(self, X, draws, n_jobs, progress)

    def factors(self) -> tuple[Array, Array]:
        """Kept draws of both sides, those of all chains in one row: (D, I, K), (D, J, K)."""
        if not {"U", "V"} <= set(self.draws):
            raise ModelError("The draws of the factors were not kept; sample with keep=('U', 'V').")
        U, V = (self.draws[name] for name in "UV")
        return U.reshape(-1, *U.shape[2:]), V.reshape(-1, *V.shape[2:])

    def likelihood_values(self) -> Values:
        """Kept draws (D, ...) of the likelihood's own variables, those of all chains in one row."""
        return self._flat(self.model.likelihood.variables(self.shape))

    def _flat(self, names: Iterable[str], prefix: str = "") -> Values:
        kept = {name: self.draws[prefix + name] for name in names}
        return {name: values.reshape(-1, *values.shape[2:]) for name, values in kept.items()}

    def biases(self) -> Values:
        """Kept draws of the global mean, the effects of rows and columns and their precisions.

        Those of all chains in one row: "mean" (D,), "rows" (D, I), "cols" (D, J), "rows_precision"
        and "cols_precision" (D,); empty if the model has no biases.
        """
        names = [name for name in self.draws if name.startswith("bias.")]
        return self._flat((name.removeprefix("bias.") for name in names), "bias.")

    @checked
    def noise(self, level: float = 0.9) -> Noise:
        """Standard deviation of the noise, of all cells and of each row and column.

        Under Student-t noise it is the scale tau^(-1/2), less than the standard deviation; where
        errors of entries are known, it is the factor by which they are to be multiplied.

        Parameters
        ----------
        level
            Probability of the central intervals.

        Returns
        -------
        Noise
            Mean, lower and upper end: ``overall``, ``rows`` (I,) and ``cols`` (J,); the latter two
            None where the model gives all rows, or columns, the same noise.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesmf import sample
        >>> X = np.random.default_rng(0).normal(size=(20, 10)) * np.arange(1, 11)
        >>> sample(X, "GGG", 2, noise="cols", draws=50, random_state=0).noise().cols.mean.shape
        (10,)
        """
        from bayesmf.posterior.noise import noise_of

        return noise_of(self, level)

    def feature_weights(self, side: str = "rows", level: float = 0.9) -> list[FeatureWeights]:
        """What the features of one side do, group by group, with central intervals.

        Parameters
        ----------
        side
            "rows" or "cols": whose features.
        level
            Probability of the intervals.

        Returns
        -------
        list of FeatureWeights
            For each group: weights of its features on every column (for features of rows), mean,
            ``lower`` and ``upper`` (P, J), per standard deviation of a feature and in the units of
            the model; the ``share`` of the variance of all cells that the group explains; and the
            ``importance`` (P,) of each feature. A kernel has principal directions for features.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesmf import ObservedMatrix, sample
        >>> rng = np.random.default_rng(0)
        >>> F = rng.normal(size=(30, 4))
        >>> X = ObservedMatrix.of(F[:, :1] @ rng.normal(size=(1, 12)), row_features=F)
        >>> posterior = sample(X, "GGGW", 1, draws=50, keep="all", random_state=0)
        >>> int(posterior.feature_weights()[0].importance.argmax())
        0
        """
        from bayesmf.posterior.feature_weights import feature_weights

        return feature_weights(self, side, level)

    def predictors(self) -> tuple[Array, Array]:
        """Kept draws of two arrays whose product is the mean of all cells: (D, I, .), (D, J, .).

        They are the factors, with the biases beside them if the model has any.
        """
        if self.model.biases and not {"bias.mean", "bias.rows", "bias.cols"} <= set(self.draws):
            raise ModelError("The draws of the biases were not kept; sample with keep='all'.")
        return augmented(*self.factors(), self.biases())

    def align(self) -> tuple[Array, Array]:
        """Kept draws of both sides, aligned over draws and chains: (D, I, K), (D, J, K).

        Order and signs (or, where the model allows them, rotations) are chosen so that the draws
        agree as well as they can; factors come in order of size. Do this before looking at factors.
        """
        U, V = self.factors()
        return U @ self.rotations, V @ self.rotations

    @cached_property
    def rotations(self) -> Array:
        """Orthogonal matrices (D, K, K) by which `align` multiplies the draws of both sides."""
        from bayesmf.posterior.alignment import invariance, rotations

        return rotations(*self.factors(), invariance(self.model))

    @checked
    def summary(self, X: Any = None, *, n_cells: int = 20, screen: int | None = None) -> Summary:
        """Diagnose the run: convergence of all that is identifiable, and a verdict in words.

        Parameters
        ----------
        X
            The data, as `sample` was given them: predictions are then also held against them.
        n_cells
            Number of cells, chosen at random but always the same, that are diagnosed one by one.
        screen
            Number of cells that are screened by a quicker measure: about so many, in rows spread
            over the matrix; all of them by default. Both need the draws of U and V.
        """
        from bayesmf.posterior.diagnostics import summarise

        return summarise(self, n_cells, screen, None if X is None else ObservedMatrix.of(X))

    def to_dataframe(self) -> Any:
        """A pandas DataFrame with a row for every cell: labels, posterior mean and deviation."""
        from bayesmf.posterior.export import to_dataframe

        return to_dataframe(self)

    def to_datatree(self, X: Any = None, *, entries: int = 2000) -> Any:
        """An xarray DataTree in the layout of ArviZ: kept draws, statistics and predictions.

        Parameters
        ----------
        X
            The data, as `sample` was given them. The tree then also has the groups
            ``observed_data``, ``log_likelihood``, ``posterior_predictive`` and ``constant_data``,
            each with a variable ``X`` by entry, which needs the draws of U and V.
        entries
            Entries in these groups at most, chosen at random but always the same of a matrix.
        """
        from bayesmf.posterior.export import to_datatree
        from bayesmf.posterior.fitted import Fitted

        fitted = None if X is None else Fitted(self, ObservedMatrix.of(X))
        return to_datatree(self, fitted, entries)

    def loo(self, X: Any, *, entries: int = 2000) -> LeaveOneOut:
        """Log predictive density of entries given the others, by PSIS-LOO.

        Draws are weighted by the inverse of their density of an entry, and the weights smoothed. It
        needs no other fit, but is reliable only where ``khat`` is small: see `LeaveOneOut`.

        Parameters
        ----------
        X
            The data, as `sample` was given them.
        entries
            Entries that are looked at, at most, chosen at random but always the same of a matrix.
        """
        from bayesmf.posterior.fitted import Fitted
        from bayesmf.posterior.loo import leave_one_out

        return leave_one_out(Fitted(self, ObservedMatrix.of(X)), entries)

    def stacked(self, X: Any, *, entries: int = 2000) -> Posterior:
        """The posterior with its chains weighted by stacking, for chains in different modes.

        How many chains end in a mode says little about its probability. Stacking weights them so
        that the mixture of their predictive distributions is best at entries that are predicted by
        the others. It changes what the posterior means, so `notes` and ``settings["stacking"]`` say
        the weights. The result is one chain: all draws of the chain that has the largest weight and
        of the others fewer in proportion, chain by chain. Diagnose the run itself, not the result.

        Parameters
        ----------
        X
            The data, as `sample` was given them.
        entries
            Entries that are looked at, at most, chosen at random but always the same of a matrix.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesmf import sample
        >>> X = np.random.default_rng(0).normal(size=(20, 10))
        >>> posterior = sample(X, "GEE", 2, chains=4, draws=50, keep="all", random_state=0)
        >>> len(posterior.stacked(X).settings["stacking"])
        4
        """
        from bayesmf.posterior.stacking import stacked

        return stacked(self, ObservedMatrix.of(X), entries)

    @checked
    def save(self, path: str | Path) -> None:
        """Write everything to a file, from which `load` reads it; nothing is pickled.

        Parameters
        ----------
        path
            A name that ends in ``.npz``, an archive of arrays with checksums, or in ``.nc``, a
            NetCDF file for ArviZ and xarray (``pip install 'bayesmf[arviz]'``).

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from bayesmf import Posterior, sample
        >>> posterior = sample(np.eye(4), "GGG", 1, draws=5, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     posterior.save(f"{folder}/run.npz")
        ...     again = Posterior.load(f"{folder}/run.npz")
        >>> bool((again.mean == posterior.mean).all())
        True
        """
        from bayesmf.posterior.files import save

        save(self, path)

    @staticmethod
    @checked
    def load(path: str | Path, *, parts: Iterable[type] = ()) -> Posterior:
        """Read a posterior that `save` wrote; one that is damaged is refused.

        Parameters
        ----------
        path
            The file.
        parts
            Classes of priors, hyperpriors and likelihoods of your own that the model has; those
            that can be imported where they were when it was saved are found without.
        """
        from bayesmf.posterior.files import load

        return Posterior(**load(path, parts))

    def _pick(self, values: Array, where: tuple[Array, Array] | None) -> Array:
        if where is None:
            return values
        if self.cells is None:
            return values[where]
        known = {
            pair: t for t, pair in enumerate(zip(*(c.tolist() for c in self.cells), strict=True))
        }
        try:
            return values[[known[p] for p in zip(*(w.tolist() for w in where), strict=True)]]
        except KeyError as missing:
            if {"U", "V"} <= set(self.draws):
                from bayesmf.posterior.blocks import cell_moments

                return cell_moments(self, *where)[0 if values is self.mean else 1]
            raise DataError(
                f"The cell (row, column) = {missing.args[0]} was not among the cells requested "
                "from sample; add it to cells, or keep the draws: keep=('U', 'V')."
            ) from None

    def _product_of_means(self, where: tuple[Array, Array] | None) -> Array:
        where = self.cells if where is None else where
        if where is None:
            return np.mean(self.U_mean @ self.V_mean.swapaxes(1, 2), axis=0)
        return np.einsum("ctk,ctk->t", self.U_mean[:, where[0]], self.V_mean[:, where[1]]) / len(
            self.U_mean
        )
