"""Triples that come in blocks: labels numbered as they appear, entries gathered in 32 bits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

import numpy as np
import numpy.typing as npt

from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.views import Array, Entries, Gathered


class Numbering:
    """Labels of one side and their places, in order of first appearance.

    Examples
    --------
    >>> side = Numbering()
    >>> side.places(["b", "a", "b"]).tolist(), side.places(["c", "a"]).tolist(), list(side.known)
    ([0, 1, 0], [2, 1], ['b', 'a', 'c'])
    """

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def places(self, labels: Sequence[str]) -> npt.NDArray[np.int32]:
        """Places of labels, of which new ones get the next numbers."""
        try:
            return np.fromiter(map(self.known.__getitem__, labels), np.int32, len(labels))
        except KeyError:
            new = [label for label in dict.fromkeys(labels) if label not in self.known]
        self.known.update(zip(new, count(len(self.known)), strict=False))
        return self.places(labels)


class Triples:
    """Rows, columns and values of entries, gathered block by block."""

    def __init__(self, single: bool = False) -> None:
        self.sides = Numbering(), Numbering()
        self.entries = Gathered(single=single)

    def add(self, rows: Sequence[str], cols: Sequence[str], values: Iterable[float]) -> None:
        """Take in a block."""
        i, j = (side.places(own) for side, own in zip(self.sides, (rows, cols), strict=True))
        self.add_places(i, j, np.fromiter(values, np.float64, len(rows)))

    def add_places(self, rows: Array, cols: Array, values: Array) -> None:
        """Take in a block whose labels have been numbered."""
        self.entries.add(Entries(rows, cols, values))

    @property
    def count(self) -> int:
        """How many there are."""
        return self.entries.size

    @property
    def shape(self) -> tuple[int, int]:
        """Number of different labels of both sides."""
        return len(self.sides[0].known), len(self.sides[1].known)

    def matrix(self) -> ObservedMatrix:
        """The matrix of all of them, which are given away."""
        names = (_labels(self.sides[0]), _labels(self.sides[1]))
        return ObservedMatrix.of_entries(self.entries, self.shape, names)


def _labels(side: Numbering) -> Array:
    return np.fromiter(side.known, dtype=object, count=len(side.known))
