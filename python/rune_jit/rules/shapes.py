"""NumPy's functions that change shapes and rearrange elements, on traced arrays."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from rune_jit.rules.coercions import (
    as_axis,
    as_index,
    as_ints,
    as_shape,
    call_builder,
    is_axis_of_scalar,
    is_numpys_number,
    laid_out_as,
    make_view,
    rank,
    refuse,
    refuse_unless,
    traced,
)
from rune_jit.rules.host import require_known
from rune_jit.rules.known import plain
from rune_jit.rules.memory import known_order
from rune_jit.rules.table import implements
from rune_jit.rules.writes import check_casting
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.layouts_now import laid_out_now
from rune_jit.tracing.rows import Run, runs_along
from rune_jit.tracing.sizes import (
    Size,
    broadcast_shapes,
    has_sizes,
    mismatch,
    same_shape,
    same_size,
    with_bounds,
)
from rune_jit.tracing.storage import (
    Step,
    can_view,
    is_contiguous,
    is_viewed,
    note_copy,
    permutation,
)
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_data_integer, is_traced_array


def _permuted(function: Any, a: Any, *arguments: Any) -> Tracer:
    """A view whose axes have the order of NumPy's function."""
    axes = permutation(function, rank(a), *arguments)
    return a if is_numpys_number(a) else make_view("transpose", axes, a)


def _known_layout(a: Tracer) -> np.ndarray | None:
    """The layout of a traced array, if it decides whether a reshape is a view of it. None if the
    trace assumes C order, which it does for most arguments and in loops."""
    trace, storage = a._trace, a._storage
    if storage.array is not None:
        return None
    if not trace.is_segmented:
        has_gaps = storage.is_outside
        if storage.leaf is not None:
            _, has_gaps = trace.orders.get(storage.leaf, ((), True))
        is_fixed = not (has_sizes(a._shape) or has_sizes(storage.shape))
        in_loop = trace.loops is not None and trace.loops.within
        if has_gaps or storage.reshaped or in_loop or not is_fixed:
            return None
    return laid_out_now(a)


def _reshaped(a: Any, shape: list[int], kind: str = "reshape") -> Any:
    """a.reshape(shape). It is a view where NumPy makes one. `kind`: that of the view's Step."""
    if not isinstance(a, Tracer):
        return call_builder("reshape", a, shape)
    base, value = a._storage, None
    if base.array is not None:
        wanted = np.empty(a._shape, bool).reshape(shape).shape
    else:
        value = (trace := require_trace()).builder.reshape(a._value_in(trace), shape)
        wanted = value.shape
    if kind == "reshape" and same_shape(wanted, a._shape):
        return a if is_numpys_number(a) else a[...]
    now = _known_layout(a)
    if now is not None or (a._trace.is_segmented and base.array is None):
        if now is None or not is_viewed(now, wanted):
            return make_view("reshape", wanted, a.copy())
    else:
        base.note_reshaped()
        if base.array is not None:  # it has its own order
            views = is_viewed(plain(a), wanted)
        else:
            views = can_view(base.shape, a._dtype, a._steps, wanted)
        if not views:
            note_copy(result := a.copy().reshape(wanted), a)
            return result
    if value is None or base.scalar:
        return make_view(kind, wanted, a)
    return a._view(Step(kind, wanted), wanted, value)


@implements(np.reshape)
def _reshape(a: Any, /, shape: Any, order: str = "C", *, copy: Any = None) -> Any:
    if order == "K":
        raise ValueError("order 'K' is not permitted for reshaping")
    if known_order(a, order) == "F":
        return np.reshape(np.transpose(a), as_shape(shape)[::-1], copy=copy).transpose()
    made = _reshaped(a, as_shape(shape))
    if copy is False and type(a) is Tracer and made._storage is not a._storage:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return made.copy() if copy else made


@implements(np.ravel)
def _ravel(a: Any, order: str = "C") -> Any:
    if known_order(a, order) == "F":
        return _ravel(np.transpose(a))
    shape = [0] if 0 in with_bounds(a.shape) else [-1]
    if not isinstance(a, Tracer):
        return _reshaped(a, shape)
    now = _known_layout(a)
    if now is not None or (a._trace.is_segmented and a._storage.array is None):
        is_view = now is not None and now.flags.c_contiguous
        return _reshaped(a if is_view else a.copy(), shape)
    a._storage.note_reshaped()
    array = a._array()
    if (
        is_contiguous(a._storage.shape, a.dtype, a._steps)
        if array is None
        else array.flags.c_contiguous
    ):  # (an argument may have gaps, and then NumPy copies it)
        return _reshaped(a, shape, "reshape" if a._storage.leaf is None else "ravel")
    result = _reshaped(a.copy(), shape)
    note_copy(result, a)
    return result


@implements(np.transpose, np.permute_dims)
def _transpose(a: Any, axes: Any = None) -> Tracer:
    if isinstance(axes, (list, tuple)) and any(isinstance(i, (bool, np.bool_)) for i in axes):
        raise TypeError("an integer is required")
    axes = [*range(rank(a))][::-1] if axes is None else as_ints(axes)
    return a if not axes and is_numpys_number(a) else make_view("transpose", tuple(axes), a)


@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def _matrix_transpose(x: Any, /) -> Tracer:
    return _permuted(np.swapaxes, x, -1, -2)


@implements(np.swapaxes)
def _swapaxes(a: Any, axis1: Any, axis2: Any) -> Tracer:
    return _permuted(np.swapaxes, a, as_index(axis1), as_index(axis2))


@implements(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Tracer:
    axes = as_ints(axis)
    ndim = rank(a) + len(axes)
    new = normalize_axis_tuple(axes, ndim)
    return make_view("index", [None if i in new else slice(None) for i in range(ndim)], a)


@implements(np.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Tracer:
    shape = np.shape(a)
    if axis is None or is_axis_of_scalar(a, axis):
        axis = [i for i, n in enumerate(shape) if n == 1]
    gone = normalize_axis_tuple(as_ints(axis), len(shape))
    for i in gone:
        if not same_size(shape[i], 1):
            raise mismatch(
                f"squeeze: cannot squeeze axis {i} of {list(shape)} (size {shape[i]}, not 1)",
                [shape[i]],
            )
    if not gone and isinstance(a, Tracer) and (shape or is_numpys_number(a)):
        return a  # NumPy, too, returns the array itself
    items = [0 if i in gone else slice(None) for i in range(len(shape))]
    return make_view("index", [*items, Ellipsis], a)


@implements(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tracer:
    return make_view("broadcast_to", as_shape(shape), array)


@implements(np.broadcast_arrays)
def _broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    shape = broadcast_shapes(*(np.shape(x) for x in args))
    is_same = [is_traced_array(x) and x.shape == shape for x in args]
    pairs = zip(args, is_same, strict=True)
    return tuple(x if same else _broadcast_with(x, shape, subok) for x, same in pairs)


def _broadcast_with(x: Any, shape: Any, subok: bool) -> Any:
    if isinstance(x, Tracer) or any(isinstance(n, Size) for n in shape):
        if not is_traced_array(x):  # a number: NumPy's result has one element in memory
            x = Tracer(require_trace(), require_trace().operand(x), scalar=False)
        return make_view("broadcast_arrays", as_shape(shape), x)
    return np.broadcast_arrays(x, np.broadcast_to(False, shape), subok=subok)[0]


@implements(np.shape)
def _shape(a: Any) -> tuple[int, ...]:
    return a.shape if isinstance(a, Tracer) else np.asarray(a).shape


@implements(np.ndim)
def _ndim(a: Any) -> int:
    return len(_shape(a))


@implements(np.size)
def _size(a: Any, axis: Any = None) -> int:
    shape = _shape(a)
    return math.prod(shape) if axis is None else shape[axis]


# Rearrangement.


@implements(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    trace = require_trace()
    value = trace.array(a)
    whole = value.shape
    if axis is None:
        value = trace.builder.reshape(value, [-1])
    is_data = is_data_integer(shift) and shift.dtype != np.uint64
    shifts = [shift] if is_data or type(shift) is Size else as_ints(shift)
    axes = as_ints(0 if axis is None else axis)
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ValueError(f"roll: cannot pair {len(shifts)} shifts with {len(axes)} axes")
    for i in range(max(len(shifts), len(axes)) if shifts and axes else 0):
        along = axes[i if len(axes) > 1 else 0]
        by = shifts[i if len(shifts) > 1 else 0]
        value = _rolled(trace, value, by, normalize_axis_index(along, value.ndim))
    if axis is None:
        value = trace.builder.reshape(value, list(whole))
    result = Tracer(trace, value, scalar=False)
    return result if axis is None else laid_out_as(result, [a])


def _rolled(trace: Trace, value: Any, by: Any, axis: int) -> Any:
    builder, size = trace.builder, value.shape[axis]
    is_known = type(by) is int
    if same_size(size, 0) or (is_known and by == 0):
        return value
    if not is_known or (isinstance(size, Size) and not -size.low < by < size.low):
        at = trace.operand((Tracer(trace, trace.iota(size)) - by) % size)
        builder.assume_range(at, 0, size - 1)
        return builder.take(value, at, axis)
    start = (size - by if by > 0 else -by) if isinstance(size, Size) else -by % size
    parts = [slice(start, None), slice(0, start)]
    return builder.concatenate([_part(builder, value, axis, part) for part in parts], axis, None)


def _part(builder: Any, value: Any, axis: int, part: slice) -> Any:
    """A slice along an axis, as a value."""
    return builder.index(value, [slice(None)] * axis + [part])


@implements(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Tracer:
    require_known(repeats, "repeat")
    if not isinstance(repeats, numbers.Integral):
        a, axis = (np.ravel(a), 0) if axis is None else (a, as_index(axis))
        counts = plain(repeats)
        counts = counts[()] if isinstance(repeats, Tracer) else counts  # (it may be a number)
        taken = np.take(a, np.repeat(np.arange(a.shape[axis]), counts), axis=axis)
        return taken  # type: ignore[return-value]
    if repeats < 0:
        raise ValueError("repeats may not contain negative values.")
    trace = require_trace()
    builder, value = trace.builder, trace.array(a)
    if axis is None:
        value, axis = builder.reshape(value, [-1]), 0
    along = normalize_axis_index(as_axis(axis) or 0, value.ndim)
    merged = list(value.shape)
    merged[along] = merged[along] * int(repeats)
    apart = list(value.shape)
    apart.insert(along + 1, int(repeats))
    spread = builder.broadcast_to(builder.expand_dims(value, [along + 1]), apart)
    return Tracer(trace, builder.reshape(spread, merged))


@implements(np.tile)
def _tile(A: Any, reps: Any) -> Tracer:
    trace = require_trace()
    builder, value, counts = trace.builder, trace.array(A), as_ints(reps)
    if min(counts, default=0) < 0:
        raise ValueError(f"tile: cannot repeat {min(counts)} times")
    rank = max(value.ndim, len(counts))
    counts = [1] * (rank - len(counts)) + counts
    shape = [1] * (rank - value.ndim) + list(value.shape)
    apart = [n for size in shape for n in (1, size)]
    spread = [n for pair in zip(counts, shape, strict=True) for n in pair]
    merged = [size * count for size, count in zip(shape, counts, strict=True)]
    value = builder.broadcast_to(builder.reshape(value, apart), spread)
    return Tracer(trace, builder.reshape(value, merged))


@implements(np.pad)
def _pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Tracer:
    require_known(pad_width, "pad")
    refuse_unless(isinstance(mode, str), "pad with a function as mode")
    refuse_unless(not isinstance(pad_width, dict), "pad with a dict of widths")
    fill = kwargs.pop("constant_values", 0) if mode == "constant" else 0
    refuse_unless(issubclass(type(fill), numbers.Number), "pad with an array of constant_values")
    is_plain = mode in ("reflect", "symmetric") and kwargs == {"reflect_type": "even"}
    refuse_unless(not kwargs or is_plain, f"pad in mode {mode} with {', '.join(kwargs)}")
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2))
    if widths.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    pairs = [(int(before), int(after)) for before, after in widths]
    if any(width < 0 for pair in pairs for width in pair):
        raise ValueError("index can't contain negative values")
    if mode == "constant":
        return _padded(array, pairs, fill)
    trace = require_trace()
    value = trace.array(array)
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            value = _extended(trace.builder, value, axis, before, after, mode)
    return Tracer(trace, value, scalar=False)


def _padded(a: Any, pairs: list[tuple[int, int]], fill: Any) -> Tracer:
    """numpy.pad with a constant."""
    trace = require_trace()
    builder, value = trace.builder, trace.array(a)
    padded = builder.pad(value, pairs)
    if fill != 0:
        refuse_unless(value.dtype != bool, "pad of bool with constant_values")
        inside = builder.pad(builder.full(list(value.shape), True, np.dtype(bool)), pairs)
        other = builder.astype(trace.operand(fill), value.dtype)
        padded = builder.where(inside, padded, other)
    return Tracer(trace, padded, scalar=False)


def _extended(builder: Any, value: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """numpy.pad along one axis, in the modes that repeat elements."""
    size = value.shape[axis]
    least = size.low if isinstance(size, Size) else size
    at_edge = int(mode == "reflect")  # the element at the edge is not repeated
    if mode != "edge" and max(before, after) > least - at_edge:
        refuse(f"pad in mode {mode} by {before} and {after} beyond {size} elements")
    if least <= 0:
        raise mismatch(f"pad: cannot extend the empty axis {axis} (size {size})", [size])

    def part(low: Any, high: Any) -> Any:
        return _part(builder, value, axis, slice(low, high))

    def flipped(low: Any, count: int) -> Any:
        return _part(builder, part(low, low + count), axis, slice(None, None, -1))

    def repeated(low: Any, count: int) -> Any:
        shape = [*value.shape[:axis], count, *value.shape[axis + 1 :]]
        return builder.broadcast_to(part(low, low + 1), shape)

    if mode == "edge":
        ends = repeated(0, before), repeated(size - 1, after)
    elif mode in ("reflect", "symmetric"):
        ends = flipped(at_edge, before), flipped(size - after - at_edge, after)
    elif mode == "wrap":
        ends = part(size - before, size), part(0, after)
    else:
        refuse(f"pad in mode {mode}")
    return builder.concatenate([ends[0], value, ends[1]], axis, None)


@implements(np.linalg.diagonal)
def _matrix_diagonal(x: Any, /, *, offset: int = 0) -> Tracer:
    return _diagonal(x, offset, -2, -1)  # type: ignore[no-any-return]


@implements(np.diagonal)
def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tracer:
    return make_view("diagonal", (as_index(offset), as_index(axis1), as_index(axis2)), a)


@implements(np.diag)
def _diag(v: Any, k: int = 0) -> Any:
    if v.ndim == 2:
        return np.diagonal(v, k)
    if v.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    size = v.shape[0] + abs(k)
    column = np.pad(v, (max(k, 0), max(-k, 0)))
    return np.where(np.eye(size, k=k, dtype=bool), column, v.dtype.type(0))


@implements(np.trace)
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


@implements(np.take)
def _take(a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Tracer:
    refuse_unless(mode in ("raise", "wrap", "clip"), f"take with mode={mode!r}")
    along = None if is_axis_of_scalar(a, axis) else as_axis(axis)
    shape = with_bounds(np.shape(a))
    if along is not None and -len(shape) <= along < len(shape) and 0 in shape[: along % len(shape)]:
        along %= len(shape)  # NumPy does not check the indices
        return call_builder("reshape", a, [*shape[:along], *np.shape(indices), *shape[along + 1 :]])
    # An empty list has no dtype; NumPy takes it for positions.
    if isinstance(indices, (list, tuple)) and len(indices) == 0:
        indices = np.empty(0, np.intp)
    indices = traced(indices)
    if indices.dtype == bool:
        indices = indices.astype(np.intp)
    if mode != "raise":
        refuse_unless(indices.dtype.kind in "iu", f"take of {indices.dtype} positions")
        size = np.size(a) if along is None else np.shape(a)[normalize_axis_index(along, len(shape))]
        refuse_unless(type(size) is int and size > 0, f"take with mode={mode!r}")
        at = indices.astype(np.intp)
        indices = np.remainder(at, size) if mode == "wrap" else np.clip(at, 0, size - 1)
    return call_builder("take", a, require_trace().array(indices), along)


@implements(np.concatenate, np.concat)
def _concatenate(
    arrays: Any, /, axis: Any = 0, *, dtype: Any = None, casting: str = "same_kind"
) -> Tracer:
    trace = require_trace()
    parts = [
        x.concatenated(trace, axis) if type(x) is Run else trace.array(x)
        for x in runs_along(arrays, axis, 0)
    ]
    result = trace.builder.concatenate(parts, as_axis(axis), dtype)
    for part in parts:
        check_casting(part.dtype, result.dtype, casting)
    return Tracer(trace, result)


@implements(np.stack)
def _stack(arrays: Any, axis: Any = 0, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    trace = require_trace()
    runs = runs_along(arrays, axis, 1)
    if len(runs) == 1 and type(runs[0]) is Run:
        values = [runs[0].stacked(trace, axis)]
        result = Tracer(trace, values[0])
    else:
        values = [trace.array(x) for x in arrays]
        result = Tracer(trace, trace.builder.stack(values, as_index(axis)))
    for value in values:
        check_casting(value.dtype, result.dtype if dtype is None else np.dtype(dtype), casting)
    return result if dtype is None else result.astype(dtype)
