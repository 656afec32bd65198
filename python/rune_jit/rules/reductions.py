"""NumPy's reductions, for traced arrays."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from rune_jit.rules.coercions import (
    NO_VALUE,
    as_axes,
    as_axis,
    as_flag,
    check_mask,
    is_axis_of_scalar,
    is_float,
    is_inexact,
    refuse_unless,
)
from rune_jit.rules.statistics import degrees_removed, masked_variance, variance_of
from rune_jit.rules.table import FUNCTIONS, implements
from rune_jit.rules.warned import warn_of_lost_part
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.layouts_now import is_fortran
from rune_jit.tracing.sizes import Size, mismatch
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer

# By reduction: the ufunc of which it is the method `reduce`.
UFUNCS = {
    "sum": "add",
    "prod": "multiply",
    "max": "maximum",
    "min": "minimum",
    "any": "logical_or",
    "all": "logical_and",
}


def reduce_array(
    name: str,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: Any = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Tracer:
    """numpy.sum and the other reductions of this module's table."""
    is_without = initial is None and name in ("sum", "prod", "any", "all")
    refuse_unless(not is_without, f"{name} without its identity")
    if where is not NO_VALUE and where is not True:
        check_mask(where)
        a = _where_else_neutral(name, a, initial, where)
    axes = None if is_axis_of_scalar(a, axis) else as_axes(axis)
    given = initial is not NO_VALUE and initial is not None
    if given and 0 in np.shape(a) and (name in ("max", "min") or a.dtype.kind == "f"):
        a, initial = _of_initial(a, axes, initial), NO_VALUE
    trace = require_trace()
    if name in ("max", "min"):
        a = _with_elements(trace, name, a, axes)
    if dtype is not None:
        warn_of_lost_part(a.dtype, np.dtype(dtype))
    value = trace.builder.reduce(name, trace.operand(a), axes, as_flag(keepdims), dtype)
    if name == "sum" and is_inexact(value.dtype) and not given and _is_of_ones(a, axes):
        # Each sum has one element. NumPy adds it to 0.0, so that -0.0 becomes 0.0.
        value = trace.builder.ufunc("add", [value, 0.0], value.dtype)[0]
    result = Tracer(trace, value)
    if initial is NO_VALUE or initial is None:
        return result
    if name in ("any", "all"):
        initial = bool(initial)
    elif not isinstance(initial, Tracer):
        cast = np.empty((), value.dtype)
        cast[()] = initial
        initial = cast[()]
    values = trace.builder.ufunc(UFUNCS[name], [value, trace.operand(initial)], value.dtype)
    result = Tracer(trace, values[0])
    if name == "sum" and is_inexact(value.dtype):
        return _from_negative_zero(result, a, initial, axis, as_flag(keepdims))  # type: ignore[no-any-return]
    return result


def _from_negative_zero(result: Any, a: Any, initial: Any, axis: Any, keepdims: bool) -> Any:
    """A sum that is -0.0 if all its terms are. (The program's sums begin with 0.0, which gives
    0.0.)"""
    if result.dtype.kind == "c":
        if not any(map(_may_be_negative_zero, (np.real(initial), np.imag(initial)))):
            return result
        parts = [
            _from_negative_zero(part(result), part(a), part(initial), axis, keepdims)
            for part in (np.real, np.imag)
        ]
        return np.stack(parts, -1).view(result.dtype)[..., 0][()]
    if not _may_be_negative_zero(initial):
        return result
    negative = np.signbit(initial) & np.all(np.signbit(a), axis=axis, keepdims=keepdims)
    return np.where(negative & np.equal(result, 0), result.dtype.type(-0.0), result)[()]


def _with_elements(trace: Trace, name: str, a: Any, axes: Any) -> Any:
    """The array, if all axes are known to have elements. In a loop, data may decide whether an axis
    has elements. Then an element that is never the extreme is appended, and a check raises if the
    axis has no elements."""
    if not trace.is_in_loop or type(a) is not Tracer or a.dtype.kind not in "biuf":
        return a
    for axis in range(a.ndim) if axes is None else axes:
        size: Any = a.shape[axis]
        if type(size) is not Size or size.low > 0:
            continue
        is_empty = size == 0
        if is_empty is not False:
            trace.raise_if(trace.operand(is_empty))
        least, most = (False, True) if a.dtype == bool else (-np.inf, np.inf)
        if a.dtype.kind in "iu":
            least, most = np.iinfo(a.dtype).min, np.iinfo(a.dtype).max
        shape = [1 if i == axis % a.ndim else n for i, n in enumerate(a.shape)]
        more = np.full(shape, least if name == "max" else most, a.dtype)
        a = np.concatenate([a, more], axis)
    return a


def _is_of_ones(a: Any, axes: Any) -> bool:
    """Whether each sum over these axes has one element."""
    shape = a._shape if type(a) is Tracer else np.shape(a)
    summed = shape if axes is None else [shape[axis] for axis in axes]
    return all([type(n) is int and n == 1 for n in summed])


def _may_be_negative_zero(x: Any) -> bool:
    return type(x) is Tracer or bool(np.signbit(x) and x == 0)


def _where_else_neutral(name: str, a: Any, initial: Any, where: Any) -> Any:
    """a, with the neutral element of the reduction where `where` is false."""
    neutral = {"sum": 0, "prod": 1, "any": 0, "all": 1}.get(name, initial)
    if neutral is NO_VALUE:
        raise ValueError(
            f"reduction operation '{name}imum' does not have an identity, so to use a where mask"
            " one has to specify 'initial'"
        )
    value = require_trace().array(a)
    if name == "sum" and is_inexact(value.dtype):
        neutral = -0.0
    is_traced = isinstance(neutral, Tracer)
    other = neutral.astype(value.dtype) if is_traced else value.dtype.type(neutral)
    return np.where(where, a, other)


def _of_initial(a: Any, axes: Any, initial: Any) -> Any:
    """Replaces an array without elements along these axes by one with one element along each."""
    among = range(a.ndim) if axes is None else [axis % a.ndim for axis in axes]
    shape = [1 if i in among else n for i, n in enumerate(a.shape)]
    return np.full_like(a, initial, shape=shape)


def _reduce_to_own_dtype(
    name: str, a: Any, axis: Any = None, *options: Any, **named: Any
) -> Tracer:
    return reduce_array(name, a, axis, None, *options, **named)


for _function in (np.sum, np.prod, np.max, np.min, np.any, np.all):
    _reduce = reduce_array if _function in (np.sum, np.prod) else _reduce_to_own_dtype
    implements(_function)(functools.partial(_reduce, _function.__name__))
for _old, _new in (("amax", np.max), ("amin", np.min)):
    if hasattr(np, _old):
        implements(getattr(np, _old))(FUNCTIONS[_new])


def _variance(
    root: bool,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = NO_VALUE,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Tracer:
    ddof = degrees_removed(ddof, correction)
    if mean is not NO_VALUE or not (where is NO_VALUE or where is True):
        variance = masked_variance(a, axis, dtype, ddof, keepdims, where, mean)
        return np.sqrt(variance) if root else variance  # type: ignore[no-any-return]
    return variance_of(a, axis, dtype, ddof, keepdims, root)


implements(np.var)(functools.partial(_variance, False))
implements(np.std)(functools.partial(_variance, True))


@implements(np.ptp)
def _ptp(a: Any, axis: Any = None, keepdims: Any = False) -> Tracer:
    return np.max(a, axis, keepdims=as_flag(keepdims)) - np.min(a, axis, keepdims=as_flag(keepdims))  # type: ignore[no-any-return]


def _arg_reduce(name: str, a: Any, axis: Any = None, *, keepdims: Any = NO_VALUE) -> Tracer:
    trace = require_trace()
    along = None if is_axis_of_scalar(a, axis) else as_axis(axis)
    if np.ndim(a) == 1:  # with more axes the position would differ
        a = _with_elements(trace, name, a, None)
    value = trace.array(a)
    if along is None and value.ndim == 0:
        value, keepdims = trace.builder.reshape(value, [1]), False
    among = range(value.ndim) if along is None else [along]
    for i in among:
        size = value.shape[normalize_axis_index(i, value.ndim)]
        if (size.low if isinstance(size, Size) else size) <= 0:
            raise mismatch(
                f"attempt to get arg{name} of an empty sequence (axis {i} has {size} elements)",
                [size],
            )
    builder, axes = trace.builder, None if along is None else [along]
    if (parts := _arg_by_parts(name, a, value, along)) is not None:
        if as_flag(keepdims):
            kept = [1] * value.ndim if along is None else list(value.shape)
            kept[along or 0] = 1
            parts = Tracer(trace, builder.reshape(trace.array(parts), kept))
        return parts
    hit = builder.ufunc("equal", [value, builder.reduce(name, value, axes, True)])[0]
    if is_float(value.dtype):  # the first NaN counts: it makes the extremum NaN, and equals nothing
        hit = builder.ufunc("logical_or", [hit, *builder.ufunc("isnan", [value])])[0]
    positions = _positions(trace, value.shape, along)
    candidates = builder.where(hit, positions, int(np.iinfo(positions.dtype).max))
    first = builder.reduce("min", candidates, axes, as_flag(keepdims))
    return Tracer(trace, builder.astype(first, np.dtype(np.int64)))


_ARG_BLOCK = 1024  # elements of a block; only the first block with the extremum is read twice
_NARROW = 32  # with fewer columns, a cache line has several elements of a column


def _arg_by_parts(name: str, a: Any, value: Any, along: int | None) -> Tracer | None:
    """numpy.argmax of long vectors, which reads only a part of them twice. None if the axis is
    short or cut into chunks, or if the layout is not known."""
    if any(isinstance(n, Size) for n in value.shape) or value.dtype.kind not in "fiu":
        return None
    trace, builder = require_trace(), require_trace().builder
    if trace.in_chunks:
        return None
    by_columns = value.ndim > 1 and isinstance(a, Tracer) and is_fortran(a)
    if along is None or value.ndim == 1:
        if math.prod(value.shape) < 16 * _ARG_BLOCK or (by_columns and value.ndim > 2):
            return None
        if by_columns:
            return _arg_by_rows(name, Tracer(trace, value))
        return _arg_by_blocks(name, Tracer(trace, builder.reshape(value, [-1])))
    axis = normalize_axis_index(along, value.ndim)
    size = value.shape[axis]
    along_memory = axis == (0 if by_columns else value.ndim - 1)
    narrow = value.ndim == 2 and not by_columns and value.shape[1] < _NARROW
    if size < 16 * _ARG_BLOCK or not (along_memory or narrow):
        return None
    axes = [i for i in range(value.ndim) if i != axis]
    rows = builder.transpose(value, [*axes, axis])
    found = _arg_by_blocks(name, Tracer(trace, builder.reshape(rows, [-1, size])))
    return Tracer(trace, builder.reshape(trace.array(found), [value.shape[i] for i in axes]))


def _arg_by_blocks(name: str, x: Tracer) -> Tracer:
    """numpy.argmax along the last of one or two axes. The position is in the first block whose
    extremum is the extremum of all. If there is a NaN, the extrema of its block and of all are
    NaN."""
    trace = require_trace()
    lead, size = x.shape[:-1], x.shape[-1]
    count = size // _ARG_BLOCK
    main = count * _ARG_BLOCK
    blocks = x[..., :main].reshape(*lead, count, _ARG_BLOCK)
    extrema = reduce_array(name, blocks, -1)
    best = _arg_reduce(name, extrema, -1)
    at = trace.array(best)
    trace.builder.assume_range(at, 0, count - 1)
    if lead:
        blocks = blocks.reshape(-1, _ARG_BLOCK)
        first = trace.builder.ufunc("multiply", [trace.iota(lead[0]), count])[0]
        at = trace.builder.ufunc("add", [first, at])[0]
    part = Tracer(trace, trace.builder.take(trace.array(blocks), at, 0))
    position = best * _ARG_BLOCK + _arg_reduce(name, part, -1)
    if main == size:
        return Tracer(trace, trace.array(position))
    rest = x[..., main:]
    of_blocks, of_rest = reduce_array(name, extrema, -1), reduce_array(name, rest, -1)
    in_rest = of_rest > of_blocks if name == "max" else of_rest < of_blocks
    if is_float(x.dtype):
        in_rest = in_rest | np.isnan(of_rest) & ~np.isnan(of_blocks)
    chosen = np.where(in_rest, main + _arg_reduce(name, rest, -1), position)
    return Tracer(trace, trace.array(chosen))  # makes a scalar; np.where gives an array


def _arg_by_rows(name: str, x: Tracer) -> Tracer:
    """numpy.argmax of all elements of a matrix in column order. The position is in the first row
    whose extremum is the extremum of all."""
    trace = require_trace()
    rows, columns = x.shape
    best = _arg_reduce(name, reduce_array(name, x, 1))
    at = trace.array(best)
    trace.builder.assume_range(at, 0, rows - 1)
    row = Tracer(trace, trace.builder.take(trace.array(x), at, 0))
    return Tracer(trace, trace.array(best * columns + _arg_reduce(name, row)))


def _positions(trace: Trace, shape: tuple[Any, ...], axis: int | None) -> Any:
    """The index of each element along an axis, or its flat index, as a value that broadcasts. Its
    dtype is int32, for twice the lanes, if all indices fit, and int64 otherwise."""
    builder, rank = trace.builder, len(shape)
    is_static = not any(isinstance(n, Size) for n in shape)
    dtype = np.int32 if is_static and math.prod(shape) <= np.iinfo(np.int32).max else np.int64
    if axis is not None and -rank <= axis < rank:
        sizes = [-1] + [1] * (rank - 1 - axis % rank)
        return builder.reshape(trace.iota(shape[axis], dtype), sizes)
    if axis is not None or rank < 2:
        return trace.iota(shape[0] if axis is None else 1, dtype)
    if is_static:
        return builder.reshape(trace.iota(math.prod(shape), dtype), list(shape))
    rows = _positions(trace, shape[:-1], None)
    by_row = builder.ufunc("multiply", [rows, trace.operand(shape[-1])])[0]
    return builder.ufunc("add", [builder.expand_dims(by_row, [-1]), trace.iota(shape[-1])])[0]


implements(np.argmax)(functools.partial(_arg_reduce, "max"))
implements(np.argmin)(functools.partial(_arg_reduce, "min"))


@implements(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tracer:
    return np.sum(np.not_equal(a, 0), axis=axis, dtype=np.int64, keepdims=keepdims)  # type: ignore[return-value]
