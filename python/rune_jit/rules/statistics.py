"""Means and variances of selected elements (by a mask, or those that are not NaN), and NumPy's
other functions that ignore NaN."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from rune_jit.rules.coercions import NO_VALUE, as_flag, is_float, refuse_unless, traced
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace


def _given(**options: Any) -> dict[str, Any]:
    """The options that the caller gave."""
    return {name: value for name, value in options.items() if value is not NO_VALUE}


def _count(mask: Any, like: Any, axis: Any, keepdims: bool) -> Any:
    mask = np.broadcast_to(mask, like.shape)
    return np.sum(mask, axis=axis, dtype=np.int64, keepdims=keepdims)


def _quotient(total: Any, count: Any) -> Any:
    """total / count, rounded once to the dtype of the total."""
    if not is_float(total.dtype):
        return (total / count).astype(total.dtype)
    dtype = np.float32 if total.dtype.itemsize == 2 else total.dtype
    return (total.astype(dtype) / count.astype(dtype)).astype(total.dtype)


def degrees_removed(ddof: Any, correction: Any) -> Any:
    """What numpy.var and its kind subtract from the number of elements: `correction` is the array
    API's name of `ddof`. ValueError if both are given."""
    if correction is NO_VALUE:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def masked_mean(a: Any, axis: Any, dtype: Any, keepdims: Any, where: Any) -> Any:
    """numpy.mean with where=."""
    a, keepdims = traced(a), as_flag(keepdims)
    result = None
    if dtype is None and a.dtype.kind in "biu":
        dtype = np.float64
    elif dtype is None and a.dtype == np.float16:
        dtype, result = np.float32, np.float16
    total = np.sum(a, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    mean = _quotient(total, _count(where, a, axis, keepdims))
    return mean if result is None else mean.astype(result)


def masked_variance(
    a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any
) -> Any:
    """numpy.var with where= or mean=."""
    a, keepdims = traced(a), as_flag(keepdims)
    if dtype is None and a.dtype.kind in "biu":
        dtype = np.float64
    where = True if where is NO_VALUE else where
    if mean is NO_VALUE:
        total = np.sum(a, axis=axis, dtype=dtype, keepdims=True, where=where)
        mean = _quotient(total, _count(where, a, axis, True))
    deviation = a - mean
    total = np.sum(deviation * deviation, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    return _quotient(total, np.maximum(_count(where, a, axis, keepdims) - ddof, 0))


# Functions that ignore NaN. NumPy takes bfloat16 for a dtype without NaN.


def without_nan(x: Any, other: float, where: Any = True) -> tuple[Any, Any]:
    """x with another value where it is NaN or `where` is false, and where that is."""
    missing = np.isnan(x)
    if where is not True:
        missing = np.logical_or(missing, np.logical_not(where))
    return np.where(missing, x.dtype.type(other), x), missing


def _parts(a: Any, neutral: Any) -> tuple[Any, Any]:
    """a with another value for NaN, and where it is NaN: None if its dtype has none."""
    a = traced(a)
    return without_nan(a, neutral) if a.dtype.kind == "f" else (a, None)


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
    a, missing = _parts(a, worst)
    if missing is not None and a.size:
        none_left = np.any(np.all(missing, axis=axis))
        trace = require_trace()
        trace.must_be_equal(trace.operand(none_left), False, "All-NaN slice encountered")
    return function(a, axis=axis, keepdims=as_flag(keepdims))


implements(np.nanmin)(functools.partial(_nan_extreme, np.fmin))
implements(np.nanmax)(functools.partial(_nan_extreme, np.fmax))
implements(np.nanargmin)(functools.partial(_nan_arg, np.argmin, np.inf))
implements(np.nanargmax)(functools.partial(_nan_arg, np.argmax, -np.inf))


def _check_inexact(dtype: Any) -> None:
    if dtype is not None and not issubclass(np.dtype(dtype).type, np.inexact):
        raise TypeError("If a is inexact, then dtype must be inexact")


@implements(np.nanmean)
def _nanmean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, *, where: Any = NO_VALUE
) -> Any:
    kept, missing = _parts(a, 0)
    options = _given(where=where)
    if missing is None:
        return np.mean(kept, axis=axis, dtype=dtype, keepdims=as_flag(keepdims), **options)
    _check_inexact(dtype)
    total = np.sum(kept, axis=axis, dtype=dtype, keepdims=as_flag(keepdims), **options)
    present = np.logical_not(missing) & options.get("where", True)
    return _quotient(total, _count(present, present, axis, as_flag(keepdims)))


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
    kept, missing = _parts(a, 0)
    keepdims, options = as_flag(keepdims), _given(where=where)
    if missing is None:
        options |= _given(mean=mean, correction=correction)
        return np.var(kept, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, **options)
    _check_inexact(dtype)
    ddof = degrees_removed(ddof, correction)
    present = np.logical_not(missing) & options.get("where", True)
    if mean is NO_VALUE:
        total = np.sum(kept, axis=axis, dtype=dtype, keepdims=True, **options)
        mean = _quotient(total, _count(present, present, axis, True))
    deviation = np.where(present, (kept - mean).astype(kept.dtype), kept.dtype.type(0))
    total = np.sum(deviation * deviation, axis=axis, dtype=dtype, keepdims=keepdims)
    freedom = _count(present, present, axis, keepdims) - ddof
    return np.where(freedom <= 0, total.dtype.type(np.nan), _quotient(total, freedom))[()]


@implements(np.nanstd)
def _nanstd(a: Any, axis: Any = None, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    variance = np.nanvar(a, axis, dtype, None, *args, **kwargs)
    refuse_unless(is_float(variance.dtype), "nanstd of this dtype")
    return np.sqrt(variance)
