"""NumPy's functions that are made of other traced functions, one composition each."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from rune_jit.numpy_dispatch import as_index, as_ints, refuse_unless
from rune_jit.registry import implements

# Cumulative sums and products.


def _cumulative(ufunc: np.ufunc, a: Any, axis: Any, dtype: Any) -> Any:
    if axis is None:
        a, axis = np.ravel(a), 0
    return ufunc.accumulate(a, axis=axis, dtype=dtype)


@implements(np.cumsum)
def _cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return _cumulative(np.add, a, axis, dtype)


@implements(np.cumprod)
def _cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return _cumulative(np.multiply, a, axis, dtype)


def _cumulative_of(ufunc: np.ufunc, x: Any, axis: Any, dtype: Any, include_initial: bool) -> Any:
    if axis is None and np.ndim(x) != 1:
        raise ValueError(
            "For arrays which have more than one dimension ``axis`` argument is required."
        )
    axis = 0 if axis is None else as_index(axis)
    result = ufunc.accumulate(x, axis=axis, dtype=dtype)
    if not include_initial:
        return result
    shape = list(result.shape)
    shape[axis] = 1
    return np.concatenate((np.full_like(result, ufunc.identity, shape=shape), result), axis=axis)


@implements(np.cumulative_sum)
def _cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    return _cumulative_of(np.add, x, axis, dtype, include_initial)


@implements(np.cumulative_prod)
def _cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    return _cumulative_of(np.multiply, x, axis, dtype, include_initial)


# Functions that ignore NaN.


def _without_nan(a: Any, neutral: Any) -> Any:
    return np.where(np.isnan(a), a.dtype.type(neutral), a) if a.dtype.kind == "f" else a


@implements(np.nansum)
def _nansum(a: Any, axis: Any = None, dtype: Any = None, **kwargs: Any) -> Any:
    return np.sum(_without_nan(a, 0), axis=axis, dtype=dtype, **kwargs)


@implements(np.nanprod)
def _nanprod(a: Any, axis: Any = None, dtype: Any = None, **kwargs: Any) -> Any:
    return np.prod(_without_nan(a, 1), axis=axis, dtype=dtype, **kwargs)


@implements(np.nancumsum)
def _nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return np.cumsum(_without_nan(a, 0), axis=axis, dtype=dtype)


@implements(np.nancumprod)
def _nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return np.cumprod(_without_nan(a, 1), axis=axis, dtype=dtype)


# Differences and products.


@implements(np.trapezoid)
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = np.asanyarray(y) if isinstance(y, list) else y
    refuse_unless(x is None or np.ndim(x) == 1, "trapezoid with x of several dimensions")
    if x is not None:
        shape = [1] * np.ndim(y)
        shape[axis] = -1
        dx = np.reshape(np.diff(x), shape)
    y = np.moveaxis(y, axis, -1)
    if x is not None:
        dx = np.moveaxis(dx, axis, -1)
    return np.sum(dx * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)


@implements(np.kron)
def _kron(a: Any, b: Any) -> Any:
    rank = max(np.ndim(a), np.ndim(b))
    left = np.reshape(a, (1,) * (rank - np.ndim(a)) + np.shape(a))
    right = np.reshape(b, (1,) * (rank - np.ndim(b)) + np.shape(b))
    shape = [m * n for m, n in zip(left.shape, right.shape, strict=True)]
    left = np.expand_dims(left, tuple(range(1, 2 * rank, 2)))
    right = np.expand_dims(right, tuple(range(0, 2 * rank, 2)))
    return np.reshape(left * right, shape)


@implements(np.ediff1d)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    refuse_unless(to_end is None and to_begin is None, "ediff1d with to_end= or to_begin=")
    return np.diff(np.ravel(ary))


@implements(np.linalg.multi_dot)
def _multi_dot(arrays: Any) -> Any:
    refuse_unless(all(np.ndim(x) == 2 for x in arrays[1:-1]), "multi_dot of these dimensions")
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    result = arrays[0]
    for x in arrays[1:]:
        result = np.dot(result, x)
    return result


@implements(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    if axis is None:
        refuse_unless(np.ndim(indices) == 1, "take_along_axis with axis=None")
        return np.ravel(arr)[indices]
    rank = np.ndim(arr)
    axis = np.lib.array_utils.normalize_axis_index(as_index(axis), rank)
    if np.ndim(indices) != rank:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    parts: list[Any] = []
    for i, size in enumerate(np.shape(arr)):
        shape = [1] * rank
        shape[i] = size
        parts.append(indices if i == axis else np.arange(size).reshape(shape))
    return arr[tuple(parts)]


@implements(np.select)
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError("list of cases must be same length as list of conditions")
    dtype = np.result_type(*choicelist, default)
    result = np.where(condlist[-1], choicelist[-1], default)
    for condition, choice in zip(condlist[-2::-1], choicelist[-2::-1], strict=True):
        result = np.where(condition, choice, result)
    return result.astype(dtype, copy=False)


@implements(np.cov)
def _cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, **kwargs: Any
) -> Any:
    refuse_unless(not kwargs and np.ndim(m) <= 2, "cov with weights or dtype=")
    refuse_unless(y is None, "cov with y=")
    x = np.atleast_2d(m)
    if not rowvar and x.shape[0] != 1:
        x = x.T
    refuse_unless(x.size > 0 and (np.ndim(m) == 2 or rowvar), "cov of these dimensions")
    x = x if x.dtype == np.longdouble else x.astype(np.result_type(x.dtype, np.float64))
    if ddof is None:
        ddof = 0 if bias else 1
    count = x.shape[1] - ddof
    if count <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=3)
        count = 0.0
    x = x - np.mean(x, axis=1, keepdims=True)
    return np.squeeze(np.matmul(x, x.T) * np.true_divide(1, count))


@implements(np.gradient)
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    rank = np.ndim(f)
    axes = list(range(rank)) if axis is None else [a % rank for a in as_ints(axis)]
    steps = list(varargs) if len(varargs) == len(axes) else list(varargs) * len(axes)
    refuse_unless(
        edge_order == 1
        and all(np.ndim(h) == 0 for h in steps)
        and len(varargs) in (0, 1, len(axes)),
        "gradient with coordinates or edge_order=2",
    )
    refuse_unless(f.dtype.kind == "f", f"gradient of {f.dtype}")
    steps = steps or [1.0] * len(axes)
    results = []
    for along, step in zip(axes, steps, strict=True):
        if f.shape[along] < 2:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least"
                " (edge_order + 1) elements are required."
            )
        x = np.moveaxis(f, along, -1)
        middle = (x[..., 2:] - x[..., :-2]) / (2.0 * step)
        first, last = (x[..., 1:2] - x[..., :1]) / step, (x[..., -1:] - x[..., -2:-1]) / step
        results.append(np.moveaxis(np.concatenate((first, middle, last), axis=-1), -1, along))
    return results[0] if len(results) == 1 else tuple(results)
