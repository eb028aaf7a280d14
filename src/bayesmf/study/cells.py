"""Cells: the repeats of one model at one setting, with the study's numbers beside them."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from bayesmf._files import Row
from bayesmf.metrics import standard_error
from bayesmf.study.published import Published
from bayesmf.study.tasks import Result

T = TypeVar("T")
Table: TypeAlias = tuple[Row, list[Row]]  # its head, and the rows below

OUTLIER = 2.0  # a published cell whose largest run is so many medians is compared by its median


class Cell(NamedTuple):
    """Repeats of one model at one setting: ours, and the study's beside it."""

    protocol: str
    experiment: str
    dataset: str
    variant: str
    model: str
    setting: float | None
    values: tuple[float, ...]  # test errors of the repeats that worked
    repeats: tuple[int, ...]  # which ones these are
    failed: int
    rhat: float | None  # the largest
    ranks: tuple[int, ...]  # chosen ones
    edges: int  # how often the largest candidate was chosen
    seconds: float
    published: Published | None
    results: tuple[Result, ...] = ()  # of all repeats, as they are stored

    @property
    def mean(self) -> float:
        return float(np.mean(self.values)) if self.values else float("nan")

    @property
    def median(self) -> float:
        return float(np.median(self.values)) if self.values else float("nan")

    @property
    def error(self) -> float:
        """Standard error of the mean over the repeats."""
        return standard_error(self.values)

    @property
    def by_median(self) -> bool:
        """Whether single runs that blew up decide the published mean."""
        p = self.published
        return p is not None and p.largest > OUTLIER * p.median

    @property
    def distance(self) -> float:
        """Ours less published, in combined standard errors."""
        p = self.published
        if p is None or len(self.values) < 2 or p.n < 2:
            return float("nan")
        gap, spread = self.mean - p.mean, float(np.hypot(self.error, p.error))
        if self.by_median:  # its spread is taken from our own runs, for both
            gap, spread = self.median - p.median, 2**0.5 * 1.2533 * self.error
        return gap / spread if spread > 0 else float("nan")


def grouped(things: Iterable[T], *fields: str) -> dict[Any, list[T]]:
    """Things by one field of theirs, or by several, in the order in which they come."""
    groups: dict[Any, list[T]] = {}
    for thing in things:
        groups.setdefault(attrgetter(*fields)(thing), []).append(thing)
    return groups


def error_table(cells: Iterable[Cell]) -> Table:
    """Test errors."""
    head = (
        "dataset", "variant", "model", "setting", "n", "failed", "mse", "standard error", "median",
        "ranks", "at the edge", "largest R-hat", "published n", "published mse",
        "published standard error", "published median", "standard errors apart", "seconds",
    )  # fmt: skip
    rows: list[Row] = []
    for c in cells:
        p = c.published
        study: Row = (None,) * 4 if p is None else (p.n, p.mean, p.error, p.median)
        rows.append((
            c.dataset, c.variant, c.model, c.setting, len(c.values), c.failed, c.mean, c.error,
            c.median, " ".join(map(str, c.ranks)), c.edges or None, c.rhat, *study, c.distance,
            c.seconds,
        ))  # fmt: skip
    return head, rows
