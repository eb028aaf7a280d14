"""Put what records of the study hold into the folders ``results`` and ``docs/images``.

    python -m benchmarks.study_tables study/store
    python -m benchmarks.study_tables results/records.jsonl.xz

Nothing is run, and matrices need not be there. Of every experiment on every matrix those repeats
are taken of which no task is missing. Rows that the tables have already are replaced, and all
others stay.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from bayesmf._files import Row, write_table
from bayesmf.study import crossing, observations, tables
from bayesmf.study.cells import Cell, grouped
from bayesmf.study.experiments import EXPERIMENTS
from bayesmf.study.figures.inputs import draw_priors, draw_values
from bayesmf.study.reproduce import draw_results, expand
from bayesmf.study.tasks import Task
from bayesmf.tasks.store import Record, Store
from benchmarks.common import ROOT

RESULTS, IMAGES = ROOT / "results", ROOT / "docs" / "images"
KEYS = ("observation", "claim", "experiment", "dataset", "variant", "likelihood", "prior", "model",
        "setting", "K", "fold", "measure", "part", "choice of", "name")  # fmt: skip
SMALL = ("GDSC", "CCLE_IC50", "CCLE_EC50", "Methylation_GM", "MovieLens_100K")


def opened(path: Path) -> Store:
    """The records of a folder, or those of a packed file below a folder that is not there."""
    return Store(path.with_suffix(""), [path], Task.version) if path.is_file() else Store(path)


def whole_repeats(store: Store) -> dict[Task, Record]:
    """Records of all repeats, by setting, of which no task is missing."""
    found: dict[Task, Record] = {}
    for name, experiment in EXPERIMENTS.items():
        for protocol in experiment.protocols:
            for tasks in _repeats(expand(name, protocol, "full")):
                records = dict(store.records(tasks))
                if len(records) == len(tasks):
                    found |= records
    return found


def _repeats(tasks: list[Task]) -> Iterable[list[Task]]:
    """Tasks of one repeat on one matrix; at a setting, those of every variant by themselves."""
    nested = [task for task in tasks if task.setting is None]
    others = [task for task in tasks if task.setting is not None]
    yield from grouped(nested, "dataset", "repeat").values()
    yield from grouped(others, "dataset", "setting", "variant", "repeat").values()


def read(path: Path) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table, as text; both empty if it is not there."""
    if not path.is_file():
        return [], []
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return head, rows


def merged(old: tuple[list[str], list[list[str]]], new: tuple[Row, Sequence[Row]]) -> tuple:
    """A table with the rows of another in the place of its own, or behind those of their matrix."""
    head = [str(name) for name in new[0]]
    if not old[0]:
        return head, list(new[1])
    if "dataset" not in head and head[0] == "model":  # a column for each matrix
        both = list(dict.fromkeys([*old[0], *head]))
        rows: dict[str, dict[str, object]] = {}
        for names, lines in (old, (head, new[1])):
            for line in lines:
                rows.setdefault(str(line[0]), {}).update(zip(names, line, strict=True))
        return both, [[row.get(name) for name in both] for row in rows.values()]
    places = [k for k, name in enumerate(head) if name in KEYS]
    known: dict[tuple[str, ...], Row] = {}
    before = [dict(zip(old[0], _typed(row), strict=True)) for row in old[1]]
    for row in (*([row.get(name) for name in head] for row in before), *new[1]):
        known[tuple(_key(row[k]) for k in places)] = row
    at = head.index("dataset") if "dataset" in head else 0
    order = list(dict.fromkeys(row[at] for row in known.values()))
    return head, sorted(known.values(), key=lambda row: order.index(row[at]))


def _key(value: object) -> str:
    return "" if value is None else f"{float(value):g}" if _is_number(value) else str(value)


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _typed(row: Sequence[str]) -> list[object]:
    """Text of a row as numbers, where it is such, so that it is printed as before."""
    return [
        None if cell == "" else cell if not _is_number(cell) else
        int(cell) if cell.lstrip("-").isdigit() else float(cell)
        for cell in row
    ]  # fmt: skip


def take(cells: Sequence[Cell]) -> None:
    """Merge tables of cells into the results, and draw what the cells allow."""
    for (protocol, name), some in grouped(cells, "protocol", "experiment").items():
        experiment = EXPERIMENTS[name]
        for file, table in {name: experiment.table, **experiment.more_tables}.items():
            old = read(RESULTS / protocol / f"{file}.csv")
            write_table(RESULTS / protocol, file, *merged(old, table(some)))
        if name == "likelihoods":  # all that follows from single folds, old and new
            head, rows = read(RESULTS / protocol / "likelihood_folds.csv")
            every = crossing.cells_of([dict(zip(head, row, strict=True)) for row in rows])
            for file, table in experiment.more_tables.items():
                write_table(RESULTS / protocol, file, *table(every))
    for protocol, some in grouped(observations.judge(cells), "protocol").items():
        old = read(RESULTS / protocol / "observations.csv")
        write_table(RESULTS / protocol, "observations", *merged(old, (some[0]._fields, some)))
    write_table(RESULTS, "datasets", *tables.dataset_table())
    with tempfile.TemporaryDirectory() as folder:
        for figure in draw_results(Path(folder), cells):
            if figure.suffix == ".svg":
                shutil.copy(figure, IMAGES / _name(figure, cells))
        drawn = [*draw_priors(folder), *draw_values(folder, SMALL)]
        for figure in (one for one in drawn if one.suffix == ".svg"):
            shutil.copy(figure, IMAGES / f"study-{figure.name}")


def _name(figure: Path, cells: Sequence[Cell]) -> str:
    """Of a figure in the docs; one that has not all matrices of its table names those it has."""
    protocol = figure.parent.name
    here = {c.dataset: None for c in cells if (c.protocol, c.experiment) == (protocol, figure.stem)}
    head, rows = read(RESULTS / protocol / f"{figure.stem}.csv")
    if here and set(here) != {row[head.index("dataset")] for row in rows}:
        return f"study-{protocol}-{figure.stem}_{'_'.join(here)}.svg"
    return f"study-{protocol}-{figure.name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "stores", nargs="+", type=Path, help="folders of records, or files that hold them packed"
    )
    found: dict[Task, Record] = {}
    for path in parser.parse_args().stores:
        found |= whole_repeats(opened(path))
    take(tables.cells(found.items()))
    print(f"{len(found)} tasks taken")


if __name__ == "__main__":
    main()
