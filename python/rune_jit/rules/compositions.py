"""NumPy's functions that are compositions of other traced functions."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.rules.coercions import (
    as_axis,
    as_index,
    as_ints,
    call_builder,
    is_axis_of_scalar,
    make_view,
    refuse_unless,
    traced,
)
from rune_jit.rules.host import shape_depends_on_data
from rune_jit.rules.indexing.selection import Selection
from rune_jit.rules.known import plain
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.tracer import Tracer, contains_traced

# Cumulative sums and products.


def _cumulative(ufunc: np.ufunc, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    if axis is None or is_axis_of_scalar(a, axis):
        a, axis = np.ravel(a), 0
    return ufunc.accumulate(a, axis=as_axis(axis) or 0, dtype=dtype)


implements(np.cumsum)(functools.partial(_cumulative, np.add))
implements(np.cumprod)(functools.partial(_cumulative, np.multiply))


# Differences.


@implements(np.ediff1d)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    flat = np.ravel(traced(ary))
    parts = [flat[1:] - flat[:-1]]
    for ends, name, at in ((to_begin, "to_begin", 0), (to_end, "to_end", 2)):
        if ends is None:
            continue
        ends = np.ravel(ends if isinstance(ends, Tracer) else np.asanyarray(ends))
        if not np.can_cast(ends.dtype, flat.dtype, "same_kind"):
            raise TypeError(
                f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule."
            )
        parts.insert(at, ends.astype(flat.dtype))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _known_condition(name: str, condition: Any) -> Any:
    if contains_traced(condition) or isinstance(condition, _core.ArrayBase):
        raise shape_depends_on_data(name, "write np.where(condition, x, 0)")
    return np.asarray(plain(condition))


@implements(np.compress)
def _compress(condition: Any, a: Any, axis: Any = None) -> Any:
    condition = _known_condition("compress", condition)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return np.take(a, np.flatnonzero(condition), axis=axis)


@implements(np.extract)
def _extract(condition: Any, arr: Any) -> Any:
    return np.take(np.ravel(arr), np.flatnonzero(_known_condition("extract", condition)), 0)


@implements(np.piecewise)
def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kwargs: Any) -> Any:
    refuse_unless(isinstance(x, Tracer) and x.ndim > 0, "piecewise of a scalar")
    conditions = list(condlist) if np.ndim(condlist[0]) else [condlist]
    conditions = [np.not_equal(condition, False) for condition in conditions]
    if len(conditions) == len(funclist) - 1:
        conditions.append(np.logical_not(functools.reduce(np.logical_or, conditions)))
    if len(conditions) != len(funclist):
        count = len(conditions)
        raise ValueError(
            f"with {count} condition(s), either {count} or {count + 1} functions are expected"
        )
    result, trace = np.zeros_like(x), require_trace()
    for condition, function in zip(conditions, funclist, strict=True):
        if callable(function):
            part = x[condition]
            if type(part) is Selection and trace.is_segmented:
                part = part.settled()
            if type(part) is not Selection and part.size == 0:  # NumPy does not call it then
                continue
            before = trace.num_checks
            function = function(part, *args, **kwargs)
            if trace.num_checks > before:
                trace.raise_if(trace.operand(np.logical_not(np.any(condition))))
        result[condition] = function
    return result


@implements(np.linspace)
def _linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: Any = 0,
    *,
    device: Any = None,
) -> Any:
    num = as_index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    intervals = num - 1 if endpoint else num
    of_floats = np.result_type(start, stop, float(num))
    start, stop = (
        x * 1.0 if issubclass(type(x), (int, float)) else np.multiply(traced(x), 1.0)
        for x in (start, stop)
    )
    span: Any = stop - start
    at = np.reshape(np.arange(num, dtype=of_floats), (num,) + (1,) * span.ndim)
    step = span / intervals if intervals else span.dtype.type(np.nan)
    points = at * span
    if intervals:
        # If the step of one line underflows, NumPy uses no steps for any line.
        points = np.where(np.any(step == 0), at / intervals * span, at * step)
    points = points + start
    if endpoint and num > 1:
        points = np.concatenate((points[:-1], np.broadcast_to(stop, span.shape)[None]))
    if dtype is not None and np.issubdtype(dtype, np.integer):
        points = np.floor(points)
    points = np.moveaxis(points, 0, as_index(axis)).astype(of_floats if dtype is None else dtype)
    return (points, step) if retstep else points


# Sliding products.


@implements(np.lib.stride_tricks.sliding_window_view)
def _sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    refuse_unless(not writeable, "sliding_window_view with writeable=True")
    sizes = as_ints(window_shape)
    if min(sizes, default=0) < 0:
        raise ValueError("`window_shape` cannot contain negative values")
    x = x if type(x) is Tracer else traced(x)
    axes = list(range(x.ndim)) if axis is None else as_ints(axis)
    for a in axes:
        if not -x.ndim <= a < x.ndim:
            raise np.exceptions.AxisError(a, x.ndim)
    axes = [a % x.ndim for a in axes]
    if len(sizes) != len(axes):
        raise ValueError(
            f"window_shape: cannot have {len(sizes)} sizes for {len(axes)} axes (one for each)"
        )
    sums = [sum(size - 1 for size, a in zip(sizes, axes, strict=True) if a == b) for b in axes]
    if any(total >= x.shape[a] for total, a in zip(sums, axes, strict=True)):
        raise ValueError("window shape cannot be larger than input array shape")
    for size, a in zip(sizes, axes, strict=True):
        x = make_view("windows", (size, a), x)
    return x


@implements(np.correlate)
def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    if np.ndim(a) != 1 or np.ndim(v) != 1:
        raise ValueError("object too deep for desired array")
    for x, name in ((a, "first"), (v, "second")):
        if len(x) == 0:
            raise ValueError(f"{name} array argument cannot be empty")
    if len(a) < len(v):
        return _conjugated(np.flip(_correlate(v, a, mode))).copy()
    size = len(v)
    margins = {"valid": (0, 0), "same": (size // 2, size - size // 2 - 1), "full": (size - 1,) * 2}
    refuse_unless(isinstance(mode, str), f"correlate with mode={mode!r}")
    if mode not in margins:
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    a, v = traced(a), _conjugated(traced(v))
    dtype = np.result_type(a, v)
    padded = np.pad(a.astype(dtype), margins[mode])
    return np.matmul(call_builder("windows", padded, size, 0), v.astype(dtype))


@implements(np.convolve)
def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = np.atleast_1d(a), np.atleast_1d(v)
    for x, name in ((a, "a"), (v, "v")):
        if len(x) == 0:
            raise ValueError(f"{name} cannot be empty")
    if len(v) > len(a):
        a, v = v, a
    return _correlate(a, _conjugated(np.flip(v)), mode)


def _conjugated(x: Any) -> Any:
    return np.conjugate(x) if np.iscomplexobj(x) else x


# Places in sorted arrays.


# Up to this many elements, comparing with all of them in vectors is faster than searching.
_MOST_COUNTED = 32


@implements(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    scalar = np.ndim(v) == 0
    a, v = traced(a), traced(v)
    if a.ndim != 1:
        raise ValueError("object too deep for desired array")
    if sorter is not None:
        if np.ndim(sorter) != 1:
            raise TypeError("could not parse sorter argument")
        if np.shape(sorter) != a.shape:
            raise ValueError("sorter.size must equal a.size")
        sorter = traced(sorter)
        if sorter.dtype.kind not in "iu":
            raise TypeError("sorter must only contain integers")
        if len(a):
            # NumPy raises only for those indices that its search meets.
            kept = np.clip(sorter, 0, len(a) - 1)
            trace = require_trace()
            trace.raise_if(trace.operand(np.any(kept != sorter)))
            a = a[kept]
    dtype = np.result_type(a, v)
    refuse_unless(dtype.kind not in "Vc", f"searchsorted of {dtype}")
    a, v = a.astype(dtype), v.astype(dtype)
    if len(a) <= _MOST_COUNTED:
        v = v[..., np.newaxis]
        before = sorts_before(a, v) if side == "left" else ~sorts_before(v, a)
        count = np.count_nonzero(before, axis=-1)
        return count[()] if scalar else count
    # A binary search without branches. Each step halves the remaining elements, whatever the values
    # are.
    index: Any = np.int32 if len(a) < 2**30 else np.int64
    place: Any = np.zeros_like(v, dtype=index)
    step = 1 << (len(a).bit_length() - 1) if len(a) else 0
    trace = require_trace()
    while step:
        beyond = place + index(step)
        at = np.minimum(beyond, index(len(a))) - index(1)
        trace.builder.assume_range(trace.array(at), 0, len(a) - 1)
        element = a[at]
        goes_on = sorts_before(element, v) if side == "left" else ~sorts_before(v, element)
        place = np.where(goes_on & (beyond <= index(len(a))), beyond, place)
        step >>= 1
    place = place.astype(np.intp)
    return place[()] if scalar else place


def sorts_before(x: Any, y: Any) -> Any:
    return x < y if x.dtype.kind != "f" else (x < y) | (np.isnan(y) & ~np.isnan(x))


@implements(np.isin)
def _isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Any:
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    refuse_unless(kind != "table", "isin with a table")  # an error for some numbers
    shape = np.shape(element)
    element, known = np.ravel(traced(element)), np.ravel(traced(test_elements))
    dtype = np.result_type(element, known)
    refuse_unless(dtype.kind != "V", "isin of bfloat16")
    exact = dtype.kind != "f" or "f" in (element.dtype.kind, known.dtype.kind)
    refuse_unless(exact, "isin of int64 and uint64")
    if len(known) <= _MOST_COUNTED:
        found = np.any(element[:, np.newaxis] == known, axis=1)
    else:
        element, known = element.astype(dtype), np.sort(known.astype(dtype))
        at = np.minimum(np.searchsorted(known, element), len(known) - 1)
        found = known[at] == element
    return (~found if invert else found).reshape(shape)


# Interpolation.


@implements(np.interp)
def _interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    refuse_unless(period is None, "interp with period=")
    numbers = (x, xp, fp, *(y for y in (left, right) if y is not None))
    refuse_unless(not any(map(np.iscomplexobj, numbers)), "interp of complex numbers")
    scalar = np.ndim(x) == 0
    x, xp, fp = (traced(array).astype(np.float64) for array in (x, xp, fp))
    if xp.ndim != 1 or fp.ndim != 1:
        raise ValueError("object of too small depth for desired array")
    count = len(xp)
    if count == 0:
        raise ValueError("array of sample points is empty")
    if len(fp) != count:
        raise ValueError("fp and xp are not of the same length.")
    left = fp[0] if left is None else left
    right = fp[-1] if right is None else right
    if count == 1:
        return np.where(x < xp[0], left, np.where(x > xp[0], right, fp[0]))
    # The number of the interval in which x lies.
    at = np.clip(np.searchsorted(xp, x, side="right") - 1, 0, count - 2)
    x0, x1, y0, y1 = xp[at], xp[at + 1], fp[at], fp[at + 1]
    slope = (y1 - y0) / (x1 - x0)
    # As in NumPy, if the line from the left end gives NaN, the line from the right end counts.
    result = slope * (x - x0) + y0
    other = slope * (x - x1) + y1
    other = np.where(np.isnan(other) & (y0 == y1), y0, other)
    result = np.where(np.isnan(result), other, result)
    result = np.where(x == x0, y0, result)
    result = np.where(x == xp[-1], fp[-1], result)
    result = np.where(x < xp[0], left, np.where(x > xp[-1], right, result))
    result = np.where(np.isnan(x), x, result)
    return result[()] if scalar else result
