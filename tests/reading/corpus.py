"""Sixty messy files, made from true matrices: every mess alone, and many together.

``python -m tests.reading.corpus FOLDER`` writes them all, to be looked at.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

GAPS = ("", "", "NA")


@dataclass
class Sheet:
    """A true matrix, and how it is written."""

    values: np.ndarray  # (I, J), NaN where missing
    rows: list[str]
    cols: list[str]
    texts: list[list[str]]  # the cells
    corner: str = "sample"
    above: list[list[str]] = field(default_factory=list)  # rows before the header
    below: list[list[str]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)  # as they are written
    header: list[str] = field(default_factory=list)
    bounds: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    ending: str = ".csv"
    sep: str = ","
    newline: str = "\n"
    encoding: str = "utf-8"
    quote: int = csv.QUOTE_MINIMAL
    first: str = ""  # before anything else
    sheets: tuple[str, ...] = ("Data",)

    @classmethod
    def new(cls, seed: int) -> Sheet:
        rng = np.random.default_rng(seed)
        values = np.round(rng.normal(3, 1.5, (12, 5)), 3)
        values[values % 1 == 0] += 0.25
        values[rng.random(values.shape) < 0.2] = np.nan
        values[0], values[:, 0] = np.abs(np.nan_to_num(values[0], nan=0.5)), np.arange(12) + 0.5
        rows, cols = [f"s{i:02}" for i in range(12)], ["alpha", "beta", "gamma", "delta", "eps"]
        texts = [
            [GAPS[(i + j) % 3] if np.isnan(x) else repr(float(x)) for j, x in enumerate(row)]
            for i, row in enumerate(values)
        ]
        sheet = cls(values, rows, cols, texts)
        sheet.labels, sheet.header = [*rows], [*cols]
        return sheet

    def table(self) -> list[list[str]]:
        """All rows, as they are written."""
        body = [[label, *row] for label, row in zip(self.labels, self.texts, strict=True)]
        head = [self.corner, *self.header] if self.corner != "none" else self.header
        return [*self.above, head, *body, *self.below]

    def change(self, function: Callable[[str], str]) -> None:
        """Write every number in another way."""
        self.texts = [
            [cell if cell in GAPS else function(cell) for cell in row] for row in self.texts
        ]

    def gap(self, code: str) -> None:
        """Write gaps with a code; some, so that other codes may be there too."""
        self.texts = [
            [code if cell == "" and i % 2 else cell for cell in row]
            for i, row in enumerate(self.texts)
        ]

    def insert(self, place: int, name: str, cells: list[str]) -> None:
        """Write one more column."""
        self.header.insert(place, name)
        for row, cell in zip(self.texts, cells, strict=True):
            row.insert(place, cell)

    def write(self, folder: Path, name: str) -> Path:
        """Write the file; returns where it is."""
        path = folder / f"{name.replace(' ', '-')}{self.ending}"
        if self.ending == ".xlsx":
            _write_excel(path, self)
            return path
        text = io.StringIO()
        writer = csv.writer(
            text, delimiter=self.sep, lineterminator=self.newline, quoting=self.quote
        )
        text.write(self.first)
        writer.writerows(self.table())
        data = text.getvalue().encode(self.encoding)
        path.write_bytes(gzip.compress(data) if self.ending.endswith(".gz") else data)
        return path


def _write_excel(path: Path, sheet: Sheet) -> None:
    from openpyxl import Workbook

    def cell(text: str) -> object:
        try:
            return float(text) if text else None
        except ValueError:
            return text

    book = Workbook()
    book.remove(book.active)
    for name in sheet.sheets:
        page = book.create_sheet(name)
        for row in sheet.table() if name == "Data" else [["notes", "by"], ["checked", "A. B."]]:
            page.append([cell(text) for text in row])
    book.save(path)


# --- Messes -------------------------------------------------------------------------------------

Change = Callable[[Sheet], None]


class Mess(NamedTuple):
    """What was done to a file, and what must be said about it.

    ``told`` is part of a note. ``mend`` is part of a sentence, refusal or note, that names the
    option with which the matrix is the true one.
    """

    change: Change
    told: str = ""
    mend: str = ""


def put(**fields: object) -> Change:
    def change(sheet: Sheet) -> None:
        for name, value in fields.items():
            setattr(sheet, name, value)

    return change


def comma(cell: str) -> str:
    return cell.replace(".", ",")


def european(sheet: Sheet) -> None:
    sheet.sep = ";"
    sheet.change(comma)


def three_decimals(sheet: Sheet) -> None:
    """Each number may be a thousand, or have three decimals."""
    sheet.values = np.where(np.isnan(sheet.values), np.nan, np.abs(sheet.values) // 1 + 1.125)
    sheet.texts = [["" if np.isnan(x) else f"{x:.3f}" for x in row] for row in sheet.values]
    sheet.sep, sheet.ending = "\t", ".tsv"
    sheet.change(comma)


def thousands(mark: str, decimal: str = ".") -> Change:
    def change(sheet: Sheet) -> None:
        sheet.values = sheet.values * 1000 + 5000
        sheet.values = np.round(sheet.values, 1) + np.where(sheet.values % 1 == 0, 0.5, 0)
        words = {",": mark, ".": decimal}
        sheet.texts = [
            ["" if np.isnan(x) else "".join(words.get(c, c) for c in f"{x:,}") for x in row]
            for row in sheet.values
        ]
        sheet.sep = ";" if decimal == "," else ","

    return change


def percents(sheet: Sheet) -> None:
    sheet.texts = [
        [f"{cell}%" if j == 1 and cell not in GAPS else cell for j, cell in enumerate(row)]
        for row in sheet.texts
    ]


def limits(sheet: Sheet) -> None:
    for (i, j), sign in {(0, 0): ">", (2, 0): "<=", (3, 0): ">="}.items():
        value = sheet.values[i, j]
        sheet.texts[i][j] = sign + sheet.texts[i][j]
        inf = float("inf")
        sheet.bounds[i, j] = (-inf, value) if "<" in sign else (value, inf)


def text_columns(sheet: Sheet) -> None:
    sheet.insert(0, "sex", ["f", "m"] * 6)
    sheet.insert(3, "site, ward", ["North"] * 12)


def text_column(sheet: Sheet) -> None:
    sheet.insert(2, "sex", ["f", "m", ""] * 4)


def units_row(sheet: Sheet) -> None:
    sheet.labels.insert(0, "unit")
    sheet.texts.insert(0, ["mg", "ml", "mg/ml", "s", "cm"][: len(sheet.cols)])


def total_row(sheet: Sheet) -> None:
    numbers = np.nansum(sheet.values, axis=0)
    sheet.labels.append("Total")
    sheet.texts.append([repr(float(x)) for x in numbers])


def mean_column(sheet: Sheet) -> None:
    numbers = np.nanmean(sheet.values, axis=1)
    sheet.insert(len(sheet.header), "Mean", [repr(float(x)) for x in numbers])


def odd_words(sheet: Sheet) -> None:
    for i, j, word in ((1, 1, "broken"), (2, 2, "see, notes"), (5, 3, "lost"), (6, 1, "broken")):
        sheet.values[i, j], sheet.texts[i][j] = np.nan, word


def many_words(sheet: Sheet) -> None:
    for i in range(1, 9):
        j = 1 + i % 4
        sheet.values[i, j], sheet.texts[i][j] = np.nan, "lost"


def nines(sheet: Sheet) -> None:
    sheet.texts = [["-999" if cell in GAPS else cell for cell in row] for row in sheet.texts]


def repeated_row(sheet: Sheet) -> None:
    sheet.labels.append("s03")
    sheet.texts.append([*sheet.texts[sheet.labels.index("s03")]])


def repeated_column(sheet: Sheet) -> None:
    sheet.insert(len(sheet.header), sheet.header[1], [row[1] for row in sheet.texts])


def numbers_as_ids(corner: str) -> Change:
    def change(sheet: Sheet) -> None:
        sheet.corner = corner
        sheet.rows = [str(400 + 7 * i) for i in range(12)]
        sheet.labels = [sheet.rows[int(label[1:])] for label in sheet.labels]

    return change


def blank_rows(sheet: Sheet) -> None:
    sheet.labels.insert(4, "")
    sheet.texts.insert(4, [""] * len(sheet.header))


def umlaut(sheet: Sheet) -> None:
    sheet.rows[2] = sheet.labels[2] = "Müller"
    sheet.encoding = "cp1252"


def wide_blanks(sheet: Sheet) -> None:
    sheet.change(lambda cell: f" {cell}  ")
    sheet.labels = [f" {label} " for label in sheet.labels]


def plus(**fields: list) -> Change:
    """Rows above or below, as a spreadsheet exports them."""

    def change(sheet: Sheet) -> None:
        for name, rows in fields.items():
            getattr(sheet, name).extend([*row] for row in rows)

    return change


def spread(*rows: str) -> Change:
    """The same with as many cells as the table has."""

    def change(sheet: Sheet) -> None:
        sheet.above.extend([row, *[""] * len(sheet.header)] for row in rows)

    return change


def trailing(rows: int) -> Change:
    def change(sheet: Sheet) -> None:
        sheet.below.extend([""] * (len(sheet.header) + 1) for _ in range(rows))

    return change


MESSES: dict[str, Mess] = {
    "plain": Mess(put()),
    "semicolons": Mess(put(sep=";"), "separated by semicolons"),
    "tabs in csv": Mess(put(sep="\t"), "separated by tabs"),
    "commas in txt": Mess(put(ending=".txt"), "separated by commas"),
    "bars": Mess(put(sep="|"), "separated by bars"),
    "announced separator": Mess(put(sep=";", first="sep=;\n"), "separated by semicolons"),
    "european": Mess(european, "Decimals are written with commas"),
    "decimal commas": Mess(lambda s: s.change(comma), "Decimals are written with commas"),
    "three decimals": Mess(three_decimals, mend="say what the mark means"),
    "thousands": Mess(thousands(","), "Marks between thousands"),
    "points between thousands": Mess(thousands(".", ","), "Marks between thousands"),
    "blanks between thousands": Mess(thousands("\u202f"), "Marks between thousands"),
    "apostrophes": Mess(thousands("'"), "Marks between thousands"),
    "percents": Mess(percents, "Percent signs were left out"),
    "scientific": Mess(lambda s: s.change(lambda c: f"{float(c):.6E}")),
    "minus signs": Mess(lambda s: s.change(lambda c: c.replace("-", "\u2212"))),
    "blanks": Mess(wide_blanks),
    "quotes": Mess(put(quote=csv.QUOTE_ALL)),
    "windows": Mess(put(newline="\r\n", first="\ufeff")),
    "old mac": Mess(put(newline="\r")),
    "packed": Mess(put(ending=".csv.gz")),
    "cp1252": Mess(umlaut, mend="is not UTF-8 text"),
    "utf-16": Mess(put(encoding="utf-16"), mend="is not UTF-8 text"),
    "title": Mess(plus(above=[["Plate 7, read twice"]]), mend="is it a title?"),
    "long title": Mess(
        plus(above=[["Plate 7"], ["made by", "us"], [], ["2024"]]), mend="is it a title?"
    ),
    "title with blanks": Mess(spread("Results", ""), mend="is it a title?"),
    "comments": Mess(plus(above=[["# made by a robot"]]), mend="is it a comment?"),
    "footnote": Mess(plus(below=[["Source: plate reader"]]), mend="is it a note?"),
    "units": Mess(units_row, mend="holds no numbers but"),
    "excel's gaps": Mess(lambda s: s.gap("#N/A"), "Taken for missing: '#N/A'"),
    "not detected": Mess(lambda s: s.gap("ND"), "Taken for missing: 'ND'"),
    "dashes": Mess(lambda s: s.gap("-"), "Taken for missing: '-'"),
    "not available": Mess(lambda s: s.gap("n.a."), "Taken for missing: 'n.a.'"),
    "below a limit": Mess(lambda s: s.gap("<LOD"), "Cells below a limit that is not said, '<LOD'"),
    "divided by zero": Mess(lambda s: s.gap("#DIV/0!"), "'#DIV/0!'"),
    "nines": Mess(nines, mend="far from all other values"),
    "words": Mess(odd_words, mend="4 cells are not numbers: line 3, row 's01', column 'beta'"),
    "many words": Mess(many_words, mend="8 cells are not numbers"),
    "limits": Mess(limits),
    "text column": Mess(text_column, mend="column 'sex' holds text such as 'f'"),
    "text columns": Mess(text_columns, mend="columns 'sex', 'site, ward' hold text such as 'f'"),
    "total": Mess(total_row, mend="Row 'Total' seems to sum up"),
    "mean column": Mess(mean_column, mend="Column 'Mean' seems to sum up"),
    "row twice": Mess(repeated_row, mend="row label 's03' occurs more than once"),
    "column twice": Mess(repeated_column, mend="column label 'beta' occurs more than once"),
    "ids": Mess(numbers_as_ids("patient_id"), "named like an id"),
    "ages": Mess(numbers_as_ids("visit"), mend="holds numbers only and was read as values"),
    "no corner": Mess(put(corner="none"), "one cell less than the rows"),
    "empty corner": Mess(put(corner="")),
    "blank end": Mess(trailing(3), "Blank rows at the end were left out: 3"),
    "blank middle": Mess(blank_rows, "neither a label nor a value were left out: 1"),
    "blank column": Mess(
        lambda s: s.insert(len(s.header), "", [""] * len(s.texts)), "neither a name nor a value"
    ),
    "excel": Mess(put(ending=".xlsx")),
    "sheets": Mess(
        put(ending=".xlsx", sheets=("Read me", "Data", "Old")), mend="Sheet 'Read me' was read"
    ),
}  # fmt: skip
TOGETHER = [
    "european + title + not detected + text column",
    "european + points between thousands + percents",
    "semicolons + comments + dashes + total",
    "excel + title + excel's gaps + text columns + total",
    "excel + units + blank end + dashes + row twice",
    "sheets + long title + nines",
    "windows + quotes + european + ids + limits",
    "cp1252 + european + footnote + below a limit",
    "tabs in csv + words + text column + mean column",
    "packed + comments + limits + column twice + blank middle",
]
CASES = [*MESSES, *TOGETHER]


def made(name: str, folder: Path) -> tuple[Path, Sheet, list[Mess]]:
    """The file of a case, the truth, and what was done to it."""
    messes = [MESSES[part] for part in name.split(" + ")]
    sheet = Sheet.new(seed=sum(map(ord, name)))
    for mess in messes:
        mess.change(sheet)
    return sheet.write(folder, name), sheet, messes


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        print(made(case, target)[0])
