"""Matrices from files: tables of every kind, NumPy and SciPy arrays, MatrixMarket.

Nothing is ever unpickled. Every complaint is one sentence that begins with the file's name.
"""

from bayesmf.reading.read import TABLES, read_matrix, suffix_of
from bayesmf.reading.sheets import EXCEL

__all__ = ["EXCEL", "TABLES", "read_matrix", "suffix_of"]
