"""Which model, and which rank? `compare` asks the data."""

from bayesmf.comparison.result import Comparison, compare

__all__ = ["Comparison", "compare"]
