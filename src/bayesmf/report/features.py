"""The section about features: how much they explain, and the largest of their weights."""

from __future__ import annotations

from bayesmf.report import charts
from bayesmf.report.data import FeatureGroup, ReportData
from bayesmf.report.markup import Html, finite, join, number, paragraph, percent, tag
from bayesmf.report.tables import Column, named, table


def features(data: ReportData) -> Html | None:
    """All groups of both sides, those that explain most first."""
    if not data.features:
        return None
    hint = (
        "The share is that of the variance of all fitted cells which a group of features explains; "
        "the importance of a feature, what it would explain alone. A weight is what one standard "
        "deviation more of a feature adds to the cells of a column (or row), with its 90 % "
        "interval. Weights say what goes together, not what causes what."
    )
    groups = sorted(data.features, key=lambda group: -group.share[0])
    return join(paragraph(hint, "hint"), *(_group(group) for group in groups))


def _group(group: FeatureGroup) -> Html:
    share, low, high = group.share
    parts = [
        tag("h3", f"{group.name} of the {group.side}"),
        paragraph(
            f"{percent(share)} of the variance ({percent(low)} to {percent(high)}), by "
            f"{group.total} {'features' if group.total != 1 else 'feature'}."
        ),
    ]
    if group.importance:
        parts.append(_importance(group))
    if group.weights:
        parts.append(_weights(group))
    return join(*parts)


def _importance(group: FeatureGroup) -> Html:
    largest = max(value for _, value in group.importance)
    shown = [
        named("Feature", lambda row: row[0]),
        Column("Importance", lambda row: percent(row[1]), lambda row: finite(row[1])),
        Column("", lambda row: charts.bar(row[1], largest or 1.0, signed=False), numeric=False),
    ]
    some = "" if len(group.importance) == group.total else "The most important "
    return table(f"{some}{group.name} of the {group.side}".strip(), shown, group.importance)


def _weights(group: FeatureGroup) -> Html:
    other = "Column" if group.side == "rows" else "Row"
    shown = [
        named("Feature", lambda row: row[0]),
        named(other, lambda row: row[1]),
        Column("Weight", lambda row: number(row[2]), lambda row: finite(row[2])),
        Column(
            "90 % interval", lambda row: f"{number(row[3])} to {number(row[4])}",
            lambda row: finite(row[3]),
        ),
    ]  # fmt: skip
    return table(f"Largest weights of {group.name}, in units of {group.unit}", shown, group.weights)
