"""Products with the design of a group of features: an array (n, r), or a sparse one."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesmf import _threads
from bayesmf.data.observed import Array
from bayesmf.kernels.designs import TILE, WIDE, padded, sum_columns, sum_rows, sum_sparse
from bayesmf.kernels.vectors import LANES, aligned_zeros, in_vectors

_BLOCK = 20_000_000  # products of two numbers in a block


def is_sparse(design: Any) -> bool:
    """Whether it is one of SciPy's sparse arrays."""
    return hasattr(design, "tocsr")


def arrays_of(design: Any) -> tuple[Array, ...]:
    """The arrays that a design consists of: one, or the three of a sparse one."""
    return (design.data, design.indices, design.indptr) if is_sparse(design) else (design,)


def times(design: Any, B: Array) -> Array:
    """A B of a design A (n, r) and a narrow matrix (r, K), or (r,)."""
    if B.ndim == 1:
        return times(design, B[:, None])[:, 0]
    n, K = design.shape[0], B.shape[1]
    if is_sparse(design):
        values, indices, indptr = arrays_of(design.tocsr())
        B = in_vectors(B)
        out = aligned_zeros(n, B.shape[1])
        work = n, values.size * K, indptr, indices, values, B, out
        _in_blocks(sum_sparse, 1, *work)
        return out[:, :K]
    design, out = np.ascontiguousarray(design), np.empty((n, K))
    _in_blocks(sum_rows, TILE, n, design.size * K, design, padded(B.T, TILE, LANES), out)
    return out


def transposed_times(design: Array, rows: Array) -> Array:
    """A^T R of a design A (n, r), which is no sparse one, and rows R (n, K)."""
    (_, r), K = design.shape, rows.shape[1]
    design, rows = np.ascontiguousarray(design), padded(rows, 1, TILE)
    out = aligned_zeros(rows.shape[1], -(-r // WIDE) * WIDE)
    _in_blocks(sum_columns, WIDE, out.shape[1], design.size * K, design, rows, out)
    return np.ascontiguousarray(out[:K, :r].T)


def _in_blocks(kernel: Any, unit: int, n: int, work: int, *arrays: Array) -> None:
    """Call a kernel for blocks of whole units of n rows, on the threads that this one may use."""
    units = -(-n // unit)
    bounds = [min(n, unit * b) for b in _threads.bounds(units, 1 + work // _BLOCK)]
    _threads.run(
        lambda start, stop: kernel(start, stop, *arrays), bounds, _threads.here(), joined=True
    )
