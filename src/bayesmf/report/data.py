"""What a report is made of: plain data, every part of it optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bayesmf._cached import cached_property
from bayesmf._errors import DataError
from bayesmf.posterior.diagnostics import Diagnosis

KINDS = {
    "real": "real-valued",
    "nonnegative": "nonnegative",
    "semi-nonnegative": "semi-nonnegative",
    "counts": "counts",
    "baseline": "baseline",
}
STATUSES = (
    "recommended", "tie", "worse", "stopped early", "failed", "better baseline", "baseline",
)  # fmt: skip


@dataclass(frozen=True)
class RankingRow:
    """One model of the comparison; a number that is not known is None."""

    model: str
    kind: str = "real"  # one of KINDS
    rank: int | None = None  # None where there are no factors
    mse: float | None = None  # of held-out cells
    mse_error: float | None = None  # its standard error over the folds
    behind: float | None = None  # share by which it is above the best on the same folds
    log_density: float | None = None  # of a held-out cell, on average
    coverage: float | None = None  # share of held-out cells inside their 90 % interval
    status: str = ""  # one of STATUSES, or nothing
    folds: int | None = None


@dataclass(frozen=True)
class Surprise:
    """A cell whose value the model did not expect, with the 90 % interval it predicted."""

    row: str
    col: str
    value: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Factor:
    """An aligned factor: its share of the signal, and the rows and columns that weigh most."""

    size: float | None
    rows: Sequence[tuple[str, float]]  # label and loading, of either sign
    cols: Sequence[tuple[str, float]]
    range: tuple[float, float] | None = None  # 90 % interval of its share


@dataclass(frozen=True)
class FeatureGroup:
    """Features of rows or columns: how much they explain, and the largest of their weights."""

    side: str  # "rows" or "columns"
    name: str
    total: int
    share: tuple[float, float, float]  # of the variance of all cells: mean and 90 % interval
    importance: Sequence[tuple[str, float]] = ()  # of the most important
    weights: Sequence[tuple[str, str, float, float, float]] = ()  # of whom, on whom, mean, interval
    unit: str = "the data"


@dataclass(frozen=True)
class Levels:
    """The noise of rows or columns, from the noisiest to the most precise, in 90 % intervals."""

    side: str  # "rows" or "columns"
    total: int  # of which some in the middle may be left out
    typical: float
    levels: Sequence[tuple[str, float, float, float]]  # label, mean, low, high
    unit: str = ""  # of what the noise is, where it is not that of the data
    name: str = "noise"  # what is measured
    gap: int | None = None  # the place in the list at which others are left out


@dataclass(frozen=True)
class Residuals:
    """Quantile residuals of observed entries: standard normal, if the model is right."""

    pit: Sequence[int]  # counts of shares below the entries, between 0 and 1
    quantiles: Sequence[tuple[float, float]]  # of a normal distribution, and of the residuals
    by_size: Sequence[tuple[float, float, float, float]]  # fitted value, root mean square, limits
    by_line: Sequence[Levels]  # the same of rows, of columns


@dataclass(frozen=True)
class Check:
    """A statistic of the data, and the 98 % interval that it has in data made by the model."""

    name: str
    value: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the model makes such data."""
        return self.low <= self.value <= self.high


@dataclass(frozen=True)
class ColumnRow:
    """How well one column is predicted, from held-out cells."""

    column: str
    n: int
    skill: float | None  # one less the error over that of the column's average
    correlation: float | None
    coverage: float | None


@dataclass(frozen=True)
class Diagnostic:
    """How well the chains agree about one quantity; a `Diagnosis` will do too."""

    quantity: str
    mean: float | None = None
    sd: float | None = None
    rhat: float | None = None
    ess_bulk: float | None = None
    ess_tail: float | None = None


@dataclass(frozen=True)
class Histogram:
    """Counts of the observed values between edges, of which there is one more."""

    edges: Sequence[float]
    counts: Sequence[int]


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything a report may show; a part that is empty or None is left out of the page.

    ``settings["command"]``, if there, is shown apart as the command to repeat the analysis.
    The matrices ``mean``, ``std``, ``observed`` and ``values`` have one shape, at most about
    400 x 400, and the labels are those of their rows and columns. ``shape`` and ``n_observed``
    describe the whole data; ``note`` says which rows and columns of it were left out.
    """

    title: str
    subtitle: str = ""
    about: Mapping[str, str] = field(default_factory=dict)  # parts of the model's name, in words
    advice: str = ""  # the command to run next
    settings: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    shape: tuple[int, int] | None = None
    n_observed: int | None = None
    row_labels: Sequence[str] = ()
    col_labels: Sequence[str] = ()
    histogram: Histogram | None = None
    warnings: Sequence[str] = ()
    note: str = ""

    recommendation: Sequence[str] = ()  # in points, of which the first also stands under the title
    ranking: Sequence[RankingRow] = ()
    meaning: Mapping[str, str] = field(default_factory=dict)  # the same of all models
    excluded: Mapping[str, str] = field(default_factory=dict)  # model to reason
    rank_curves: Mapping[str, Sequence[tuple[int, float, float | None]]] = field(
        default_factory=dict
    )  # model to (rank, mse, standard error)
    worst: Sequence[ColumnRow] = ()  # columns that are predicted worst
    calibration: Sequence[tuple[float, float]] = ()  # nominal and actual share inside intervals

    mean: npt.ArrayLike | None = None  # predictions of all cells
    std: npt.ArrayLike | None = None  # predictive standard deviations
    observed: npt.ArrayLike | None = None  # True where the data have a value
    values: npt.ArrayLike | None = None  # the data, for observed cells; else ``mean`` stands in

    surprises: Sequence[Surprise] = ()
    noise: Sequence[Levels] = ()  # of rows, of columns, where they have noise of their own
    residuals: Residuals | None = None
    checks: Sequence[Check] = ()
    features: Sequence[FeatureGroup] = ()
    factors: Sequence[Factor] = ()
    diagnosis: str = ""  # a paragraph
    diagnostics: Sequence[Diagnostic | Diagnosis] = ()

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The matrices that are there, by name, after a check that they fit together."""
        found = {
            name: np.asarray(matrix, dtype=bool if name == "observed" else float)
            for name in ("mean", "std", "observed", "values")
            if (matrix := getattr(self, name)) is not None
        }
        shapes = {matrix.shape for matrix in found.values()}
        if len(shapes) > 1 or any(len(shape) != 2 or 0 in shape for shape in shapes):
            listed = ", ".join(f"{name} {matrix.shape}" for name, matrix in found.items())
            raise DataError(f"The matrices of a report must have one shape; these have: {listed}.")
        return found

    @cached_property
    def labels(self) -> tuple[list[str], list[str]]:
        """Labels of the rows and columns of the matrices, numbered where none are given."""
        if not self.arrays:
            return [], []
        shape = next(iter(self.arrays.values())).shape
        both = []
        for name, given, size in zip(
            ("row", "column"), (self.row_labels, self.col_labels), shape, strict=True
        ):
            if len(given) not in (0, size):
                raise DataError(f"There are {len(given)} {name} labels for {size} {name}s.")
            both.append([str(x) for x in given] or [f"{name} {i + 1}" for i in range(size)])
        return both[0], both[1]

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of each ranked model."""
        return {row.model: row.kind for row in self.ranking}
