"""A report of an analysis as one HTML file that needs nothing else: `build` makes it."""

from bayesmf.report.data import (
    Diagnostic,
    Factor,
    Histogram,
    Levels,
    RankingRow,
    ReportData,
    Surprise,
)
from bayesmf.report.page import build, write

__all__ = [
    "Diagnostic", "Factor", "Histogram", "Levels", "RankingRow", "ReportData", "Surprise", "build",
    "write",
]  # fmt: skip
