"""The tables of a report; every column can be sorted, with what is missing last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from bayesmf.posterior.agreement import RHAT_LIMIT
from bayesmf.posterior.diagnostics import ESS_LIMIT, Diagnosis
from bayesmf.report import charts
from bayesmf.report.data import KINDS, STATUSES, ColumnRow, Diagnostic, RankingRow, Surprise
from bayesmf.report.markup import (
    MISSING,
    Child,
    Html,
    finite,
    join,
    number,
    percent,
    places_for,
    slug,
    tag,
    whole,
    with_error,
)

SIGNS = {"recommended": "\u2605 ", "tie": "\u2248 ", "stopped early": "\u25a0 "}
SHOWN = 12  # models; of the others those that ran on the first fold alone unfold


class Column(NamedTuple):
    """A column: its name, what a row shows in it and, where it can be sorted, by which value."""

    name: str
    show: Callable[[Any], Child]
    by: Callable[[Any], str | float | None] | None = None
    numeric: bool = True
    unit: Html | None = None


def table(
    caption: str, columns: Sequence[Column], rows: Iterable[Any],
    style: Callable[[int, Any], str | None] = lambda i, row: None,
) -> Html:  # fmt: skip
    """A table in a container of its own to scroll in; ``style`` gives rows their classes."""
    head = [
        tag(
            "th",
            tag("button", column.name, type="button") if column.by else tag("span", column.name),
            column.unit,
            scope="col",
            class_="num" if column.numeric else None,
            data_sort=("number" if column.numeric else "text") if column.by else None,
        )
        for column in columns
    ]
    body = []
    for k, row in enumerate(rows):
        cells = [_cell(i, column, row) for i, column in enumerate(columns)]
        body.append(tag("tr", *cells, class_=style(k, row)))
    written = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
    )
    return tag("div", written, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(i: int, column: Column, row: Any) -> Html:
    """One cell; the first of a row is its head."""
    value = column.by(row) if column.by else None
    return tag(
        "td" if i else "th",
        column.show(row),
        scope=None if i else "row",
        class_="num" if column.numeric else None,
        data_value=("" if value is None else str(value)) if column.by else None,
    )


def named(name: str, get: Callable[[Any], str]) -> Column:
    """A column of labels, which may be long."""
    return Column(name, lambda row: tag("span", get(row), class_="label"), get, numeric=False)


def ranking(rows: Sequence[RankingRow]) -> Html:
    """The models from best to worst, without the columns of which nothing is known."""
    columns = [
        Column("Model", _model, lambda r: r.model, numeric=False),
        Column("Verdict", _verdict, _verdict_order, numeric=False),
        Column("Rank", lambda r: whole(r.rank), lambda r: finite(r.rank)),
        *_errors(rows),
        Column("Log density", lambda r: number(r.log_density, 4), lambda r: finite(r.log_density)),
        Column("Coverage", lambda r: percent(r.coverage, fixed=True), lambda r: finite(r.coverage)),
        Column("Folds", lambda r: whole(r.folds), lambda r: finite(r.folds)),
    ]
    shown = [c for c in columns if c.by is None or any(c.by(row) not in (None, "") for row in rows)]

    def style(i: int, row: RankingRow) -> str:
        folded = i >= SHOWN and row.status in ("stopped early", "failed")
        return f"{slug(row.status)} rest" if folded else slug(row.status)

    written = table("Models compared on held-out cells", shown, rows, style)
    if not any(style(i, row).endswith("rest") for i, row in enumerate(rows)):
        return written
    more = tag("button", f"Show all {len(rows)}", type="button", class_="more", hidden=True)
    return join(written, more)


def columns(rows: Sequence[ColumnRow]) -> Html:
    """Columns of the data, each with its own measures."""
    shown = [
        named("Column", lambda r: r.column),
        Column("Skill", lambda r: number(r.skill, 2), lambda r: finite(r.skill)),
        Column("Correlation", lambda r: number(r.correlation, 2), lambda r: finite(r.correlation)),
        Column("Coverage", lambda r: percent(r.coverage, fixed=True), lambda r: finite(r.coverage)),
        Column("Cells", lambda r: whole(r.n), lambda r: finite(r.n)),
    ]
    return table("Columns that are predicted worst", shown, rows)


def _errors(rows: Sequence[RankingRow]) -> list[Column]:
    """The columns of the errors: numbers, and dots on a common axis."""
    axis = charts.error_axis(rows)
    if axis is None:
        return []
    best = next((r for r in rows if r.status == "recommended"), None)
    places = places_for(row.mse_error for row in rows)
    return [
        Column("Error (MSE)", lambda r: with_error(r.mse, r.mse_error, places),
               lambda r: finite(r.mse)),
        Column("Above best", lambda r: percent(r.behind, fixed=True), lambda r: finite(r.behind)),
        Column("\u00b1 one standard error", lambda r: charts.error_dot(r, axis, best),
               numeric=False, unit=charts.error_scale(axis)),
    ]  # fmt: skip


def _model(row: RankingRow) -> Html:
    """The name of a model, and the shape of its kind before it."""
    kind = tag("span", charts.key(row.kind), title=KINDS.get(row.kind, row.kind))
    return tag("span", kind, row.model, class_="label")


def _verdict(row: RankingRow) -> Html:
    if not row.status:
        return Html("")
    shown = f"{SIGNS.get(row.status, '')}{row.status}"
    return tag("span", shown, class_=f"verdict {slug(row.status)}")


def _verdict_order(row: RankingRow) -> str | None:
    """Verdicts sort from best to worst, not by the alphabet."""
    if row.status in STATUSES:
        return f"{STATUSES.index(row.status)} {row.status}"
    return row.status or None


def surprises(rows: Sequence[Surprise]) -> Html:
    """The cells whose values were least expected."""

    def distance(s: Surprise) -> float | None:
        """How far the value is from the middle of the interval, in widths of it."""
        width = finite(s.high - s.low)
        return abs(s.value - (s.high + s.low) / 2) / width if width else None

    reach = max([1.0, *(d for s in rows if (d := finite(distance(s))) is not None)])

    def off(s: Surprise) -> Html:
        if any(finite(x) is None for x in (s.value, s.mean, s.low, s.high)):
            return join(MISSING)
        side = (
            "\u25b2 above" if s.value > s.high else "\u25bc below" if s.value < s.low else "inside"
        )
        return tag("span", charts.surprise_dot(s, reach), side, class_="off")

    columns = [
        named("Row", lambda s: s.row),
        named("Column", lambda s: s.col),
        Column("Value", lambda s: number(s.value), lambda s: finite(s.value)),
        Column("Expected", lambda s: number(s.mean), lambda s: finite(s.mean)),
        Column("90 % interval", lambda s: f"{number(s.low)} to {number(s.high)}",
               lambda s: finite(s.high - s.low)),
        Column("How far off", off, distance),
    ]  # fmt: skip
    return table("Observed cells that the model did not expect", columns, rows)


def diagnostics(rows: Sequence[Diagnostic | Diagnosis]) -> Html:
    """Agreement of the chains, quantity by quantity; what is beyond a limit says so."""

    def flagged(shown: str, bad: bool) -> Html:
        return tag("strong", f"{shown} \u26a0 check", class_="check") if bad else join(shown)

    def rhat(d: Diagnostic) -> Html:
        return flagged(number(d.rhat, 4), (finite(d.rhat) or 0.0) > RHAT_LIMIT)

    def ess(value: float | None) -> Html:
        known = finite(value)
        return flagged(whole(known), known is not None and known < ESS_LIMIT)

    columns = [
        named("Quantity", lambda d: d.quantity),
        Column("Mean", lambda d: number(d.mean, 4), lambda d: finite(d.mean)),
        Column("Sd", lambda d: number(d.sd), lambda d: finite(d.sd)),
        Column("R-hat", rhat, lambda d: finite(d.rhat)),
        Column("ESS bulk", lambda d: ess(d.ess_bulk), lambda d: finite(d.ess_bulk)),
        Column("ESS tail", lambda d: ess(d.ess_tail), lambda d: finite(d.ess_tail)),
    ]
    return table("Agreement of the chains", columns, rows)


def pairs(entries: Iterable[tuple[str, Child]], class_: str = "") -> Html:
    """Names and what they stand for, as a definition list."""
    listed = [tag("div", tag("dt", name), tag("dd", what)) for name, what in entries]
    return tag("dl", *listed, class_=class_ or None)
