"""Means and variances of selected elements (by a mask, or those that are not NaN), and NumPy's
other functions that ignore NaN."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from rune_jit.rules.coercions import (
    NO_VALUE,
    as_axes,
    as_flag,
    check_mask,
    is_float,
    is_inexact,
    refuse_unless,
    traced,
)
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer


def _given(**options: Any) -> dict[str, Any]:
    """The options that the caller passed."""
    return {name: value for name, value in options.items() if value is not NO_VALUE}


def _count(mask: Any, like: Any, axis: Any, keepdims: bool) -> Any:
    mask = np.broadcast_to(mask, like.shape)
    return np.sum(mask, axis=axis, dtype=np.int64, keepdims=keepdims)


def _quotient(total: Any, count: Any) -> Any:
    """total / count, rounded once to the dtype of the total."""
    if not is_inexact(total.dtype):
        return (total / count).astype(total.dtype)
    dtype = np.float32 if total.dtype.itemsize == 2 else total.dtype
    return (total.astype(dtype) / count.astype(dtype)).astype(total.dtype)


def degrees_removed(ddof: Any, correction: Any) -> Any:
    """The number that numpy.var and similar functions subtract from the number of elements.
    `correction` is the array API's name of `ddof`. Raises ValueError if both are given."""
    if correction is NO_VALUE:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def _mean(x: Any, mask: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
    """The mean of the elements under a mask."""
    total = np.sum(x, axis=axis, dtype=dtype, keepdims=keepdims, where=mask)
    return _quotient(total, _count(mask, x, axis, keepdims))


def _count_along(shape: tuple[Any, ...], axes: list[int] | None) -> Any:
    """The product of the sizes of these axes: an int, a Size or a traced int."""
    if axes is not None:
        shape = tuple(shape[normalize_axis_index(i, len(shape))] for i in axes)
    return math.prod(shape)


def _refuse_few(x: Any, axis: Any, removed: Any = 0) -> None:
    """Lets NumPy compute means and variances of too few elements, because it warns."""
    is_scalar = not x.shape and axis in (0, -1)
    count = _count_along(x.shape, None if is_scalar else as_axes(axis))
    is_known = type(count) is int and isinstance(removed, (int, float))
    refuse_unless(not (is_known and count <= removed), "mean or variance of too few elements")


def _ratio(trace: Trace, total: Any, count: Any) -> Any:
    """total / count in the dtype of the total, as a value."""
    dtype = total.dtype if is_inexact(total.dtype) else np.dtype(np.float64)
    count = trace.builder.astype(trace.operand(count), dtype)
    return trace.builder.astype(trace.builder.ufunc("divide", [total, count])[0], total.dtype)


def _compute_dtype(a: Any, dtype: Any) -> tuple[Any, Any]:
    """The dtype of a mean, and the dtype for its sum (float32 for floats of 16 bits)."""
    result = np.dtype(dtype or (a.dtype if is_inexact(a.dtype) else np.float64))
    is_half = is_float(result) and result.itemsize == 2
    return result, np.dtype(np.float32) if is_half else result


@implements(np.mean)
def _mean_of(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, *, where: Any = NO_VALUE
) -> Tracer:
    trace = require_trace()
    builder, x = trace.builder, trace.array(a)
    axes, keepdims = as_axes(axis), as_flag(keepdims)
    _refuse_few(x, axis)
    result, compute = _compute_dtype(x, dtype)
    x = builder.astype(x, compute)
    if where is NO_VALUE or where is True:
        total = builder.reduce("sum", x, axes, keepdims, compute)
        count = _count_along(x.shape, axes)
    else:
        check_mask(where)
        kept = builder.where(trace.operand(where), x, 0)
        total = builder.reduce("sum", kept, axes, keepdims, compute)
        count = _count(where, x, axis, keepdims)
    return Tracer(trace, builder.astype(_ratio(trace, total, count), result))


def variance_of(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, root: bool) -> Tracer:
    """numpy.var without where= and mean=, or its square root."""
    if np.dtype(dtype).kind == "c" if dtype is not None else np.iscomplexobj(a):
        refuse_unless(np.iscomplexobj(a), "var of real numbers as complex ones")
        x = traced(a) if dtype is None else traced(a).astype(dtype)
        of_real, of_imag = (
            variance_of(part, axis, None, ddof, keepdims, False) for part in (x.real, x.imag)
        )
        total: Any = of_real + of_imag
        return np.sqrt(total) if root else total  # type: ignore[no-any-return]
    trace = require_trace()
    builder, x = trace.builder, trace.array(a)
    axes, keepdims = as_axes(axis), as_flag(keepdims)
    _refuse_few(x, axis, ddof)
    result, compute = _compute_dtype(x, dtype)
    refuse_unless(is_float(result), f"var in {result}")

    def call(name: str, *operands: Any) -> Any:
        return builder.ufunc(name, operands)[0]

    x = builder.astype(x, compute)
    count = _count_along(x.shape, axes)
    mean = _ratio(trace, builder.reduce("sum", x, axes, True), count)
    deviation = call("subtract", x, mean)
    total = builder.reduce("sum", call("multiply", deviation, deviation), axes, keepdims)
    # The mean is rounded, so the deviations do not add up to 0. Their sum corrects the sum of
    # squares (Chan, Golub and LeVeque 1983), unless the sum of squares is infinite.
    rest = builder.reduce("sum", deviation, axes, keepdims)
    taken = call("multiply", rest, _ratio(trace, rest, count))
    exact = call("maximum", call("subtract", total, taken), 0)
    moment = builder.where(call("isinf", total), total, exact)
    freedom = max(count - ddof, 0) if type(count) is int else np.maximum(count - ddof, 0)
    variance = _ratio(trace, moment, freedom)
    return Tracer(trace, builder.astype(call("sqrt", variance) if root else variance, result))


def _squared(x: Any) -> Any:
    """|x|^2."""
    return (x * np.conjugate(x)).real if np.iscomplexobj(x) else x * x


def masked_variance(
    a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any
) -> Any:
    """numpy.var with where= or mean=."""
    a, keepdims = traced(a), as_flag(keepdims)
    if dtype is None and a.dtype.kind in "biu":
        dtype = np.float64
    where = True if where is NO_VALUE else where
    if mean is NO_VALUE:
        mean = _mean(a, where, axis, dtype, True)
    total = np.sum(_squared(a - mean), axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    return _quotient(total, np.maximum(_count(where, a, axis, keepdims) - ddof, 0))


# Functions that ignore NaN. NumPy treats bfloat16 as a dtype without NaN.


def without_nan(x: Any, other: float, where: Any = True) -> tuple[Any, Any]:
    """x with `other` where it is NaN or `where` is false, and the mask of these elements."""
    missing = np.isnan(x)
    if where is not True:
        missing = np.logical_or(missing, np.logical_not(where))
    return np.where(missing, x.dtype.type(other), x), missing


def _nan_extreme(
    ufunc: np.ufunc,
    a: Any,
    axis: Any = None,
    keepdims: Any = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    options = _given(initial=initial, where=where)
    return ufunc.reduce(traced(a), axis=axis, keepdims=as_flag(keepdims), **options)


def _nan_arg(
    function: Any, worst: float, a: Any, axis: Any = None, *, keepdims: Any = NO_VALUE
) -> Any:
    a = traced(a)
    if a.dtype.kind in "fc" and a.size:
        a, missing = without_nan(a, worst)
        none_left = np.any(np.all(missing, axis=axis))
        trace = require_trace()
        trace.must_be_equal(trace.operand(none_left), False, "All-NaN slice encountered")
    return function(a, axis=axis, keepdims=as_flag(keepdims))


implements(np.nanmin)(functools.partial(_nan_extreme, np.fmin))
implements(np.nanmax)(functools.partial(_nan_extreme, np.fmax))
implements(np.nanargmin)(functools.partial(_nan_arg, np.argmin, np.inf))
implements(np.nanargmax)(functools.partial(_nan_arg, np.argmax, -np.inf))


def _present(a: Any, dtype: Any, where: Any) -> Any:
    """The mask of elements that `where` selects and that are not NaN. None if their dtype has no
    NaN. Raises NumPy's TypeError if they cannot be summed as `dtype`."""
    if a.dtype.kind not in "fc":
        return None
    if dtype is not None and not issubclass(np.dtype(dtype).type, np.inexact):
        raise TypeError("If a is inexact, then dtype must be inexact")
    return np.logical_not(np.isnan(a)) & (True if where is NO_VALUE else where)


@implements(np.nanmean)
def _nanmean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, *, where: Any = NO_VALUE
) -> Any:
    a, keepdims = traced(a), as_flag(keepdims)
    present = _present(a, dtype, where)
    if present is None:
        return np.mean(a, axis=axis, dtype=dtype, keepdims=keepdims, **_given(where=where))
    _refuse_few(a, axis)
    return _mean(a, present, axis, dtype, keepdims)


@implements(np.nanvar)
def _nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = NO_VALUE,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Any:
    a, keepdims = traced(a), as_flag(keepdims)
    present = _present(a, dtype, where)
    if present is None:
        options = _given(where=where, mean=mean, correction=correction)
        return np.var(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, **options)
    ddof = degrees_removed(ddof, correction)
    _refuse_few(a, axis, ddof)
    if mean is NO_VALUE:
        mean = _mean(a, present, axis, dtype, True)
    squares = _squared((a - mean).astype(a.dtype))
    total = np.sum(squares, axis=axis, dtype=dtype, keepdims=keepdims, where=present)
    freedom = _count(present, present, axis, keepdims) - ddof
    return np.where(freedom <= 0, total.dtype.type(np.nan), _quotient(total, freedom))[()]


@implements(np.nanstd)
def _nanstd(a: Any, axis: Any = None, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    variance = np.nanvar(a, axis, dtype, None, *args, **kwargs)
    refuse_unless(is_float(variance.dtype), "nanstd of this dtype")
    return np.sqrt(variance)
