"""What an experiment is: a record that tasks, tables, figures and estimates all read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from bayesmf.data.observed import ObservedMatrix
from bayesmf.study.cells import Cell, Table, error_table
from bayesmf.study.figures.style import Drawn
from bayesmf.study.fitting import mean_sweeps
from bayesmf.study.tasks import PROTOCOLS, Result, Task

Fits: TypeAlias = list[tuple[int, int]]  # rank and sweeps of each, on average


class Experiment(NamedTuple):
    """One experiment of the study."""

    name: str  # in tasks, names of files and commands
    title: str  # in figures
    datasets: tuple[str, ...]  # of the study
    expand: Callable[[str, str, str], Iterator[Task]]  # tasks by protocol, dataset and budget
    run: Callable[[Task, ObservedMatrix], Result]  # does a task
    draw: Callable[[str, Sequence[Cell]], Drawn]  # figures, whose titles begin with such words
    value: Callable[[Result], float | None] = lambda result: result.get("mse")  # None: it failed
    table: Callable[[Sequence[Cell]], Table] = error_table
    more_tables: Mapping[str, Callable[[Sequence[Cell]], Table]] = {}  # by name
    fits: Callable[[Task], Fits] = lambda task: [(task.rank or 1, mean_sweeps(task))]
    compared: tuple[str, ...] = PROTOCOLS  # those that the published errors can be compared with
    protocols: tuple[str, ...] = PROTOCOLS  # those that have it
