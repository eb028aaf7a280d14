"""A report of an analysis as one HTML file that needs nothing else: `build` makes it."""

from bayesmf.report.data import (
    Check,
    ColumnRow,
    Diagnostic,
    Factor,
    FeatureGroup,
    Histogram,
    Levels,
    RankingRow,
    ReportData,
    Residuals,
    Surprise,
)
from bayesmf.report.page import build, write

__all__ = [
    "Check", "ColumnRow", "Diagnostic", "Factor", "FeatureGroup", "Histogram", "Levels",
    "RankingRow", "ReportData", "Residuals", "Surprise", "build", "write",
]  # fmt: skip
