"""Vectors of eight doubles, for the kernels where it matters that sums stay in registers.

LLVM does not find them by itself in loops over small matrices. A vector is no instruction set: on a
narrower machine one vector takes several registers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from bayesmf.kernels.compile import kernel

LANES = 8  # doubles in the widest vector register; narrower machines use several for one
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_CONTRACT = ("contract",)  # a product and a sum may be rounded once


def aligned_zeros(n: int, width: int) -> np.ndarray:
    """Zeros (n, width) that begin with a cache line, so that aligned vectors lie in one each."""
    memory = np.zeros(n * width + LANES)
    first = -memory.ctypes.data // memory.itemsize % LANES
    return memory[first : first + n * width].reshape(n, width)


def in_vectors(V: np.ndarray) -> np.ndarray:
    """V with zeros at the end of every row, so that a row is whole vectors."""
    n, K = V.shape
    if K % LANES == 0 and V.flags.c_contiguous:
        return V
    out = aligned_zeros(n, -(-K // LANES) * LANES)
    out[:, :K] = V
    return out


class _VectorType(types.Type):
    def __init__(self) -> None:
        super().__init__("bayesmf.Vector")


_vector = _VectorType()


@register_model(_VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _place(context: Any, builder: Any, kind: Any, array: Any, i: Any) -> Any:
    """Address of the numbers from the i-th on, counted over the whole of a contiguous array."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [i]), _VECTOR.as_pointer())


@intrinsic
def at(_: Any, array: Any, i: Any) -> Any:
    """Return the i-th number of a contiguous array; unlike array[i], i may never be negative."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, args[0]).data
        return builder.load(builder.gep(data, [args[1]]))

    return array.dtype(array, types.intp), emit


@intrinsic
def load(_: Any, array: Any, i: Any) -> Any:
    """Return the vector that begins at the i-th number of a contiguous array."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_place(context, builder, array, *args), align=8)

    return _vector(array, types.intp), emit


@intrinsic
def gather(_: Any, array: Any, i: Any, stride: Any) -> Any:
    """Return the vector of every ``stride``-th number of a contiguous array from the i-th on."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, (_, place, step) = context.make_array(array)(context, builder, args[0]).data, args
        x = _VECTOR(ir.Undefined)
        for lane in range(LANES):
            number = builder.load(builder.gep(data, [place]))
            x = builder.insert_element(x, number, ir.IntType(32)(lane))
            place = builder.add(place, step)
        return x

    return _vector(array, types.intp, types.intp), emit


@intrinsic
def store(_: Any, array: Any, i: Any, x: Any) -> Any:
    """Write a vector to a contiguous array, from its i-th number on."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _place(context, builder, array, *args[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, x), emit


@intrinsic
def splat(_: Any, x: Any) -> Any:
    """Return the vector that repeats one number."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        index = ir.IntType(32)
        nothing, zeros = _VECTOR(ir.Undefined), ir.VectorType(index, LANES)([0] * LANES)
        return builder.shuffle_vector(
            builder.insert_element(nothing, args[0], index(0)), nothing, zeros
        )

    return _vector(types.float64), emit


def _with_product(operation: str) -> Any:
    """Code of s + x y or s - x y, rounded once where the machine can."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        s, x, y = args
        combine = getattr(builder, operation)
        return combine(s, builder.fmul(x, y, flags=_CONTRACT), flags=_CONTRACT)

    return _vector(_vector, _vector, _vector), emit


@intrinsic
def plus_product(_: Any, s: Any, x: Any, y: Any) -> Any:
    """Return s + x y."""
    return _with_product("fadd")


@intrinsic
def minus_product(_: Any, s: Any, x: Any, y: Any) -> Any:
    """Return s - x y."""
    return _with_product("fsub")


@intrinsic
def product(_: Any, x: Any, y: Any) -> Any:
    """Return x y."""
    return _vector(_vector, _vector), lambda context, builder, _, args: builder.fmul(*args)


def _roots(builder: Any, args: Any) -> Any:
    """Code of square roots."""
    kind = ir.FunctionType(_VECTOR, [_VECTOR])
    root = cgutils.get_or_insert_function(builder.module, kind, f"llvm.sqrt.v{LANES}f64")
    return builder.call(root, args)


@intrinsic
def inverse_root(_: Any, x: Any) -> Any:
    """Return 1 / sqrt(x)."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fdiv(_VECTOR([1.0] * LANES), _roots(builder, args))

    return _vector(_vector), emit


@intrinsic
def square_root(_: Any, x: Any) -> Any:
    """Return sqrt(x)."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _roots(builder, args)

    return _vector(_vector), emit


@intrinsic
def quotient(_: Any, x: Any, y: Any) -> Any:
    """Return x / y."""
    return _vector(_vector, _vector), lambda context, builder, _, args: builder.fdiv(*args)


@intrinsic
def where_less(_: Any, x: Any, y: Any, yes: Any, no: Any) -> Any:
    """Return one vector's numbers where x < y, and another's elsewhere."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, y, yes, no = args
        return builder.select(builder.fcmp_ordered("<", x, y), yes, no)

    return _vector(_vector, _vector, _vector, _vector), emit


@intrinsic
def clamped_below(_: Any, x: Any, floor: Any) -> Any:
    """Return the larger of x and floor; NaN where x is NaN."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, floor = args
        return builder.select(builder.fcmp_ordered(">", floor, x), floor, x)

    return _vector(_vector, _vector), emit


@intrinsic
def total(_: Any, x: Any) -> Any:
    """Return the sum of a vector's numbers."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = ir.DoubleType()
        kind = ir.FunctionType(number, [number, _VECTOR])
        name = f"llvm.vector.reduce.fadd.v{LANES}f64"
        add = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(add, [number(0.0), args[0]], fastmath=("reassoc",))

    return types.float64(_vector), emit


@kernel(inner=True)
def load_four(A, p):
    """Read four vectors, one after the other."""
    return load(A, p), load(A, p + LANES), load(A, p + 2 * LANES), load(A, p + 3 * LANES)


@kernel(inner=True)
def store_four(A, p, s0, s1, s2, s3):
    """Write four vectors, one after the other."""
    store(A, p, s0)
    store(A, p + LANES, s1)
    store(A, p + 2 * LANES, s2)
    store(A, p + 3 * LANES, s3)
