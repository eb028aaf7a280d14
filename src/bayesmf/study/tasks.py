"""Tasks: what a protocol asks for, one by one, each known by the hash of its content.

``paper`` is what the study did, ``sound`` the same questions with shared splits, means of U V^T,
long chains and one grid of ranks. Tasks of a quick budget are some of those of a full one, so that
nothing is ever done twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

from bayesmf._errors import ModelError, nearest
from bayesmf.model.presets import PAPER, PRESETS
from bayesmf.study import published
from bayesmf.tasks.store import Work

Result: TypeAlias = dict[str, Any]

PROTOCOLS, BUDGETS = ("paper", "sound"), ("quick", "full")
AVERAGES = ("row_average", "column_average")
BASELINES = ("NMF", *AVERAGES)
SAME_RANK = 5  # of all models, where they do not have each its own
NARROW = "GLL narrow"  # GLL at the scale that the study really used, beside the stated one


@dataclass(frozen=True)
class Task(Work):
    """One record's worth of work.

    ``setting`` is the rank, the noise ratio or the fraction unobserved, ``rank`` that of the model
    where it is given, ``repeat`` the number of the split, fold or run, ``inner`` the number of
    inner folds that choose the rank.
    """

    experiment: str
    protocol: str
    dataset: str
    model: str
    repeat: int = 0
    setting: float | None = None
    rank: int | None = None
    variant: str = ""
    inner: int = 0

    @property
    def place(self) -> tuple[str, ...]:
        return self.protocol, self.experiment, self.dataset

    @property
    def paper(self) -> bool:
        """Whether to do what the study did."""
        return self.protocol == "paper"

    @property
    def preset(self) -> str:
        """Name of the preset or baseline: the narrow GLL is a GLL."""
        return self.model.partition(" ")[0]

    @property
    def length(self) -> published.Length:
        """How long the study ran the model."""
        return published.length(self.experiment, self.dataset, self.variant, self.preset)

    def __str__(self) -> str:
        parts = [self.protocol, self.experiment, self.dataset, self.variant, self.model]
        parts += [] if self.setting is None else [f"at {self.setting:g}"]
        return " ".join(filter(None, [*parts, f"#{self.repeat}"]))


def models(protocol: str, averages: bool = True) -> tuple[str, ...]:
    """All methods of a protocol: seventeen, the narrow GLL in the sound one, the averages."""
    place = PAPER.index("GLL") + 1
    narrow = (NARROW,) if protocol == "sound" else ()
    return (*PAPER[:place], *narrow, *PAPER[place:], "NMF", *(AVERAGES if averages else ()))


def check_models(names: Iterable[str]) -> None:
    """Refuse methods of unknown name."""
    known = list(dict.fromkeys((*models("sound"), *PRESETS)))
    for name in (name for name in names if name not in known):
        hint = nearest(name, known)
        raise ModelError(f"Unknown model {name!r}; there are {', '.join(known)}.{hint}")


def by_setting(
    where: tuple[str, str, str], variants: Iterable[str], grid: Iterable[float], repeats: int
) -> Iterator[Task]:
    """Tasks of all models at all settings of a grid, by (experiment, protocol, dataset)."""
    for variant, model in product(variants, models(where[1])):
        rank: int | None = SAME_RANK
        if model in AVERAGES:
            rank = None
        elif variant == "perModelK":
            rank = published.own_rank(where[2], model.partition(" ")[0])
        elif (model, where[2]) == ("GEEA", "MovieLens_100K"):
            rank = 2  # as the study ran it, whatever it says
        for setting, repeat in product(grid, range(repeats)):
            yield Task(*where, model, repeat, setting, rank, variant)
