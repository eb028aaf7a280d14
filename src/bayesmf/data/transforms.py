"""Transforms of values: increasing functions, column by column, and their inverses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special

from bayesmf._errors import DataError, ModelError, nearest
from bayesmf.data.observed import Array, ObservedMatrix

_MOST = 700.0  # of an argument of exp: more leaves the range of doubles


class Transform:
    """An increasing function of values, and what predictions on its scale need to be undone."""

    name: ClassVar[str] = "none"
    #: Whether it has no kinks, so that few nodes make an expectation.
    smooth: ClassVar[bool] = True
    #: What values must be, and what to do where they are not.
    needs: ClassVar[str] = ""
    remedy: ClassVar[str] = ""

    @classmethod
    def fit(cls, values: Array) -> Transform:
        """The transform of these values."""
        return cls()

    def allowed(self, values: Array) -> Array:
        """Flags of the values that it takes."""
        return np.ones(values.shape, dtype=bool)

    def forward(self, x: Array) -> Array:
        """Values to the scale on which they are modelled."""
        return x

    def inverse(self, z: Array) -> Array:
        """Back again."""
        return z

    def log_slope(self, x: Array) -> Array:
        """Logarithm of the derivative of `forward`, by which densities are multiplied."""
        return np.zeros_like(x)


@dataclass(frozen=True)
class _Log(Transform):
    name: ClassVar[str] = "log"
    needs: ClassVar[str] = "positive values"
    remedy: ClassVar[str] = (
        "use transformation='log1p', or set such values to the smallest positive one and say so "
        "with lower="
    )

    def allowed(self, values: Array) -> Array:
        return values > 0

    def forward(self, x: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(x, 0.0))

    def inverse(self, z: Array) -> Array:
        return np.exp(np.minimum(z, _MOST))

    def log_slope(self, x: Array) -> Array:
        return -np.log(x)


@dataclass(frozen=True)
class _Log1p(Transform):
    name: ClassVar[str] = "log1p"
    needs: ClassVar[str] = "values above -1"
    remedy: ClassVar[str] = "leave the transformation out, or use transformation='rank'"

    def allowed(self, values: Array) -> Array:
        return values > -1

    def forward(self, x: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log1p(np.maximum(x, -1.0))

    def inverse(self, z: Array) -> Array:
        return np.expm1(np.minimum(z, _MOST))

    def log_slope(self, x: Array) -> Array:
        return -np.log1p(x)


@dataclass(frozen=True)
class _Logit(Transform):
    """Of shares between 0 and 1, or of percentages between 0 and 100."""

    whole: float = 1.0
    name: ClassVar[str] = "logit"
    needs: ClassVar[str] = "values strictly between 0 and 1, or between 0 and 100"
    remedy: ClassVar[str] = "move values at the ends inwards, or use transformation='rank'"

    @classmethod
    def fit(cls, values: Array) -> Transform:
        return cls(100.0 if values.size and values.max() > 1 else 1.0)

    def allowed(self, values: Array) -> Array:
        return (values > 0) & (values < self.whole)

    def forward(self, x: Array) -> Array:
        return special.logit(np.clip(x / self.whole, 0.0, 1.0))

    def inverse(self, z: Array) -> Array:
        return self.whole * special.expit(z)

    def log_slope(self, x: Array) -> Array:
        share = x / self.whole
        return -np.log(share) - np.log1p(-share) - np.log(self.whole)


@dataclass(frozen=True)
class _Sqrt(Transform):
    """Continued below zero by the square of the other sign; a density ends before zero."""

    least: float = 0.0  # a quarter of the smallest positive value
    name: ClassVar[str] = "sqrt"
    needs: ClassVar[str] = "values that are not negative"
    remedy: ClassVar[str] = "leave the transformation out, or use transformation='rank'"

    @classmethod
    def fit(cls, values: Array) -> Transform:
        positive = values[values > 0]
        return cls(float(positive.min()) / 4 if positive.size else 1.0)

    def allowed(self, values: Array) -> Array:
        return values >= 0

    def forward(self, x: Array) -> Array:
        return np.sign(x) * np.sqrt(np.abs(x))

    def inverse(self, z: Array) -> Array:
        return z * np.abs(z)

    def log_slope(self, x: Array) -> Array:
        return -np.log(2.0) - 0.5 * np.log(np.maximum(x, self.least))


@dataclass(frozen=True, eq=False)
class _Rank(Transform):
    """Normal scores: a line through the points (value, normal quantile of its share)."""

    points: Array
    scores: Array
    name: ClassVar[str] = "rank"
    smooth: ClassVar[bool] = False

    @classmethod
    def fit(cls, values: Array) -> Transform:
        points, counts = np.unique(values, return_counts=True)
        if points.size < 2:  # a constant, or nothing: no ranks to speak of
            return Transform()
        below = np.cumsum(counts) - counts
        return cls(points, special.ndtri((below + 0.5 * counts) / values.size))

    @property
    def _slopes(self) -> Array:
        return np.diff(self.scores) / np.diff(self.points)

    def _piece(self, x: Array, ends: Array) -> Array:
        return np.clip(np.searchsorted(ends, x, side="right") - 1, 0, ends.size - 2)

    def forward(self, x: Array) -> Array:
        k = self._piece(x, self.points)
        return self.scores[k] + self._slopes[k] * (x - self.points[k])

    def inverse(self, z: Array) -> Array:
        k = self._piece(z, self.scores)
        return self.points[k] + (z - self.scores[k]) / self._slopes[k]

    def log_slope(self, x: Array) -> Array:
        return np.log(self._slopes[self._piece(x, self.points)])


TRANSFORMS: dict[str, type[Transform]] = {
    kind.name: kind for kind in (_Log, _Log1p, _Logit, _Sqrt, _Rank)
}


@dataclass(frozen=True, eq=False)
class Transforms:
    """A transform for every column: ``kinds`` are the different ones, ``of`` (J,) says whose."""

    kinds: tuple[Transform, ...]
    of: Array
    asked: Any = None  # what the user wrote

    @property
    def smooth(self) -> bool:
        """Whether all of them are."""
        return all(kind.smooth for kind in self.kinds)

    def apply(self, function: str, values: Array, cols: Array) -> Array:
        """A function of `Transform` by name, of values (..., n) in these columns (n,)."""
        values = np.asarray(values)
        shape, kinds = np.broadcast_shapes(values.shape, cols.shape), self.of[cols.ravel()]
        values = np.broadcast_to(values, shape)
        if len(self.kinds) == 1:
            return getattr(self.kinds[0], function)(values)
        out = np.empty(shape)
        order = np.argsort(kinds, kind="stable")
        cuts = np.flatnonzero(np.diff(kinds[order])) + 1
        for part in np.split(order, cuts):
            if part.size:
                out[..., part] = getattr(self.kinds[kinds[part[0]]], function)(values[..., part])
        return out


def fit_transforms(X: ObservedMatrix, asked: Any) -> Transforms | None:
    """The transforms that were asked for: one name, one per column, or by the columns' labels.

    Raises a DataError that names the first value that a transform does not take.
    """
    names = _names(X, asked)
    if not any(names):
        return None
    kinds: list[Transform] = []
    known: dict[Any, int] = {}
    of = np.empty(X.shape[1], dtype=np.int64)
    view = X.cols
    for j, name in enumerate(names):
        own = view.row(j)
        by_column = name == "rank"
        key = (name, j) if by_column else name
        if key not in known:
            values = own if by_column else _values(X, names, name)
            known[key] = len(kinds)
            kinds.append(TRANSFORMS[name].fit(values) if name else Transform())
        of[j] = known[key]
    found = Transforms(tuple(kinds), of, asked)
    check(X, found)
    return found


def check(X: ObservedMatrix, transforms: Transforms) -> None:
    """Refuse values that their transform does not take."""
    cols = X.rows.indices.astype(np.int64)
    bad = ~transforms.apply("allowed", X.rows.values, cols).astype(bool)
    if bad.any():
        i, j, value = (part[bad][0] for part in X.triples())
        kind = transforms.kinds[transforms.of[j]]
        raise DataError(
            f"transformation={kind.name!r} needs {kind.needs}: {X.cell_name(i, j)} is {value:g}; "
            f"{kind.remedy}."
        )


def _values(X: ObservedMatrix, names: list[str | None], name: str | None) -> Array:
    """All values of the columns with this transform."""
    chosen = np.array([own == name for own in names])
    return X.rows.values[chosen[X.rows.indices]]


def _names(X: ObservedMatrix, asked: Any) -> list[str | None]:
    """The name of every column's transform, None where it has none."""
    n = X.shape[1]
    if asked is None or isinstance(asked, str):
        return [_known(asked)] * n
    if isinstance(asked, Mapping):
        names: list[str | None] = [None] * n
        labels = X.col_labels
        place: Callable[[Any], int | None] = {
            label: k for k, label in enumerate(range(n) if labels is None else labels)
        }.get
        for label, name in asked.items():
            j = place(label)
            if j is None:
                raise DataError(f"transformation: there is no column {label!r}.")
            names[j] = _known(name)
        return names
    names = [_known(name) for name in asked]
    if len(names) != n:
        raise DataError(f"transformation names {len(names)} columns, but the matrix has {n}.")
    return names


def _known(name: Any) -> str | None:
    if name is None or name == "none":
        return None
    if name not in TRANSFORMS:
        names = ("none", *TRANSFORMS)
        raise ModelError(
            f"transformation must be one of {', '.join(names)}, got {name!r}."
            f"{nearest(str(name), names)}"
        )
    return str(name)
