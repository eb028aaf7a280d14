"""What is known of the rows (or columns) of a matrix besides their entries.

A side has groups of features, whose weights have a prior precision each (`bayesmf.data.groups`).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesmf._errors import DataError
from bayesmf.data.decomposition import mask_rows, similarities, square
from bayesmf.data.designs import arrays_of
from bayesmf.data.encoding import in_order, places, read_source
from bayesmf.data.groups import Group, Kind, feature_group, kernel_group, pattern_group
from bayesmf.data.observed import Labels, View


@dataclass(frozen=True, eq=False)
class NewFeatures:
    """Features of new rows as they were given, to be read as those of a fit were."""

    values: Any
    kernel: Any
    n: int | None = None
    labels: Labels = None


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """Groups of features of the rows, or of the columns, of a matrix; make them with `of`."""

    groups: tuple[Group, ...]
    labels: Labels = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        values: Any = None,
        *,
        kernel: Any = None,
        labels: Any = None,
        n: int | None = None,
        standardize: bool = True,
        alpha: float = 1.0,
        beta: float = 1.0,
        what: str = "features",
    ) -> Features:
        """Read features of the rows of one side.

        Parameters
        ----------
        values
            An array (n, P) or (n,), a DataFrame (matched by label; columns of text or categories
            become one feature for each category), a sparse matrix (n, P), or a dictionary of
            several of them, each a group of its own. Missing features are filled with means.
        kernel
            Similarities of all rows to each other, (n, n) and positive semidefinite, instead of
            features or besides them; or a dictionary of several.
        labels, n
            Labels and number of the rows, to which those of a DataFrame are matched.
        standardize
            Whether to subtract means and divide by standard deviations; sparse features are only
            divided, by their root mean squares.
        alpha, beta
            Gamma prior of the precision of each group's weights.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesmf import Features
        >>> Features.of({"size": np.arange(6.0), "genes": np.eye(6)[:, :4]})
        Features(6 rows; size: 1, genes: 4)
        """
        if isinstance(values, Features):
            return values._checked(labels, n, what)
        known = None if labels is None else np.array([*labels, None], dtype=object)[:-1]
        given = [(name, "features", v) for name, v in _named(values, "features", what)]
        given += [(name, "kernel", v) for name, v in _named(kernel, "kernel", what)]
        if not given:
            raise DataError(f"{what}: give features, or a kernel.")
        groups, notes = [], []
        for name, kind, one in given:
            told = what if name == kind else f"{what}[{name!r}]"
            source = read_source(one, told)
            if known is None and source.labels is not None:
                known = source.labels
            size = (source.n if n is None else n) if known is None else len(known)
            if kind == "kernel":
                groups.append(
                    kernel_group(name, square(source, known, size, told), told, alpha, beta)
                )
                continue
            source = in_order(source, known, size, told)
            group, more = feature_group(name, source, told, standardize, alpha, beta)
            groups.append(group)
            notes += more
        return cls(tuple(groups), known, tuple(notes))._all_unlike(what)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.groups[0].design.shape[0]

    @property
    def is_new(self) -> bool:
        """Whether they are of other rows than those of the fit."""
        return any(group.outside is not None for group in self.groups)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{g.name}: {len(g.names)}" for g in self.groups)
        return f"Features({self.n} rows; {sizes})"

    def __add__(self, other: Features) -> Features:
        notes = (*self.notes, *other.notes)
        return Features((*self.groups, *other.groups), self.labels, notes)._all_unlike("features")

    def _all_unlike(self, what: str) -> Features:
        names = [group.name for group in self.groups]
        if again := [name for name in names if names.count(name) > 1]:
            raise DataError(f"{what}: two groups are called {again[0]!r}; name them apart.")
        if len({group.design.shape[0] for group in self.groups}) > 1:
            raise DataError(f"{what}: the groups have different numbers of rows; match them.")
        return self

    def _checked(self, labels: Any, n: int | None, what: str) -> Features:
        """The same, if they are of as many rows, in the same order."""
        if labels is not None and self.labels is not None:
            order = places(self.labels, np.array([*labels, None], dtype=object)[:-1], what)
            same = order.size == self.n and (order == np.arange(order.size)).all()
            return self if same else self.take(order)
        if n is not None and n != self.n:
            raise DataError(f"{what} have {self.n} rows, but {n} are needed; give one for each.")
        return self

    def take(self, rows: Any) -> Features:
        """The features of some rows, found from these alone: nothing leaks from the others.

        Examples
        --------
        >>> from bayesmf import Features
        >>> Features.of([[1.0, 0.0], [2.0, 1.0], [9.0, 0.0]]).take([0, 1]).n
        2
        """
        chosen = np.arange(self.n)[np.asarray(rows)]
        groups = tuple(group.take(chosen, f"features {group.name!r}") for group in self.groups)
        labels = None if self.labels is None else self.labels[chosen]
        return Features(groups, labels, self.notes)

    def beside(self, rows: Any, fitted: Any) -> NewFeatures:
        """The features of some rows as `BayesianMF.predict` takes them after a fit of others."""
        new, old = (np.arange(self.n)[np.asarray(some)] for some in (rows, fitted))
        values: dict[str, Any] = {}
        kernels: dict[str, Any] = {}
        for group in self.groups:
            if group.kind == "kernel":
                columns = np.concatenate([old, new])
                kernels[group.name] = group.source.values[np.ix_(new, columns)]
            elif group.kind == "features":
                values[group.name] = group.source.take(new).values
        labels = None if self.labels is None else self.labels[new]
        return NewFeatures(values or None, kernels or None, new.size, labels)

    def without(self, kind: Kind) -> Features | None:
        """Only the groups of other kinds, if there are any."""
        groups = tuple(group for group in self.groups if group.kind != kind)
        return replace(self, groups=groups) if groups else None

    def of_rows(
        self, values: Any, kernel: Any, view: View, labels: Labels, what: str = "row_features"
    ) -> Features:
        """The same features of new rows, standardised and rotated as those of the fitted rows.

        ``values`` and ``kernel`` are given as to `of`, a kernel with the similarities of the new
        rows to the fitted ones (m, n), or to these and the new ones (m, n + m). ``view`` has the
        entries of the new rows, from which a pattern follows.
        """
        if isinstance(values, Features):
            values, kernel = values._sources("features"), kernel or values._sources("kernel")
        given = {
            kind: dict(_named(one, kind, what))
            for kind, one in (("features", values), ("kernel", kernel))
        }
        groups = []
        for group in self.groups:
            if group.kind == "pattern":
                groups.append(group.of_rows(mask_rows(view, len(group.names))))
                continue
            told = what if group.kind == "features" else what.replace("features", "kernel")
            if group.name not in given[group.kind]:
                raise DataError(
                    f"The fit had {group.kind} {group.name!r} ({len(group.names)}) of these; "
                    f"{told} must have them for new ones, too."
                )
            source = read_source(given[group.kind].pop(group.name), told)
            source = in_order(source, labels, view.n, told)
            if group.kind == "kernel":
                k, own = similarities(source, self.labels, self.n, told)
                groups.append(group.of_similarities(k, own))
                continue
            assert group.encoding is not None
            groups.append(group.of_rows(group.encoding.apply(source, told)))
        if unknown := [name for names in given.values() for name in names]:
            raise DataError(f"{what}: the fit had no group {unknown[0]!r}; leave it out.")
        return Features(tuple(groups), labels, self.notes)

    def _sources(self, kind: Kind) -> dict[str, Any] | None:
        found = {
            group.name: group.source.values
            for group in self.groups
            if group.kind == kind and group.source is not None
        }
        return found or None

    def update(self, digest: Any) -> None:
        """Add all that a posterior depends on to a hash."""
        for group in self.groups:
            digest.update(repr((group.name, group.alpha, group.beta)).encode())
            for array in arrays_of(group.design):
                digest.update(np.ascontiguousarray(array).tobytes())

    def fingerprint(self) -> str:
        """A hash of the features."""
        digest = hashlib.sha256()
        self.update(digest)
        return digest.hexdigest()


def pattern_of(view: View, m: int) -> Features:
    """The pattern of what was observed in m columns, rows of the mask over roots of their counts.

    Worked out once for each set of cells.
    """
    if "pattern" not in view.cache:
        view.cache["pattern"] = Features((pattern_group(view, m),))
    return view.cache["pattern"]


def _named(values: Any, kind: str, what: str) -> list[tuple[str, Any]]:
    if values is None:
        return []
    if not isinstance(values, dict):
        return [(kind, values)]
    for name in values:
        if not (isinstance(name, str) and re.fullmatch(r"\w[\w -]*", name)) or name == "pattern":
            raise DataError(f"{what}: {name!r} is no name of a group; use letters and digits.")
    return list(values.items())
