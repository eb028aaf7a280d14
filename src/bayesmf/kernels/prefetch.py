"""Prefetch: rows of large factor matrices are asked for before their turn comes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.vectors import LANES, at

AHEAD = 32  # entries between asking for a row and using it
NEAR = 2**16  # numbers that the caches of one core hold anyhow


@intrinsic
def prefetch(_: Any, array: Any, i: Any) -> Any:
    """Ask for the cache line of the i-th number of a contiguous array, to be there when needed."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, args[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        place = builder.bitcast(builder.gep(data, [args[1]]), byte)
        # To read, into the second cache: the first has fewer misses under way and would stall.
        builder.call(call, [place, number(0), number(2), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), emit


@kernel(inner=True)
def prefetch_row(V, indices, t):
    """Ask for the row of V that is needed some entries after the t-th."""
    w = V.shape[1]
    q = at(indices, min(t + AHEAD, indices.shape[0] - 1)) * w
    for b in range(0, w, LANES):
        prefetch(V, q + b)
