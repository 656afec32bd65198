"""What NumPy's functions do on traced arrays: arguments are put in order here, the rules of shapes
and dtypes are in the core (cpp/graph/numpy_*.cpp)."""

from __future__ import annotations

import functools
import numbers
import operator as op
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.errors import UnsupportedOpError
from rune_jit.trace import Trace, contains_tracer, require_trace
from rune_jit.tracer import Tracer

_FUNCTIONS: dict[Any, Callable[..., Any]] = {}
_NoValue = np._NoValue  # type: ignore[attr-defined]


def implements(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the traced form of NumPy functions."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            _FUNCTIONS[function] = handler
        return handler

    return register


def supported_functions() -> list[str]:
    """Names of the NumPy functions (ufuncs apart) that can be traced."""
    return sorted(f.__name__ for f in _FUNCTIONS)


def is_operand(x: Any) -> bool:
    """Whether a Python operator may take x beside a tracer."""
    return isinstance(x, (Tracer, numbers.Number, np.ndarray, np.generic, list, tuple))


def _refuse(what: str) -> None:
    raise UnsupportedOpError(f"{what}: cannot trace this")


def _refuse_unless(condition: bool, what: str) -> None:
    if not condition:
        _refuse(what)


def _tracer(trace: Trace, value: Any) -> Tracer:
    return Tracer(trace, value)


def _index(x: Any) -> int:
    return op.index(x)


def _ints(x: Any) -> list[int]:
    """A Python int, or a sequence of them, as a list."""
    if isinstance(x, (Tracer, numbers.Integral)):
        return [_index(x)]
    return [_index(i) for i in x]


def _axes(axis: Any) -> list[int] | None:
    return None if axis is None else _ints(axis)


def _axis(axis: Any) -> int | None:
    return None if axis is None else _index(axis)


def _flag(keepdims: Any) -> bool:
    return False if keepdims is _NoValue else bool(keepdims)


# The two protocols and the operators.


def operator(ufunc: str, operands: tuple[Any, ...]) -> Tracer:
    """A Python operator on tracers and numbers."""
    trace = require_trace()
    return _tracer(trace, trace.builder.operator(ufunc, [trace.operand(x) for x in operands]))


def call_ufunc(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """numpy.ufunc calls and methods."""
    if kwargs.get("out") is not None and any(o is not None for o in kwargs["out"]):
        raise UnsupportedOpError(
            f"{ufunc.__name__}: cannot trace out= (a write)\nhint: use the returned array"
        )
    kwargs = {k: v for k, v in kwargs.items() if k != "out"}
    if method == "reduce":
        return _reduce_ufunc(ufunc, *inputs, **kwargs)
    if method == "outer" and len(inputs) == 2:
        return _outer_ufunc(ufunc, *inputs, **kwargs)
    _refuse_unless(method == "__call__", f"{ufunc.__name__}.{method}")
    if ufunc is np.matmul:
        return _matmul(*inputs, **kwargs)
    if ufunc is np.vecdot:
        return _vecdot(*inputs, **kwargs)
    if kwargs.pop("where", True) is not True:
        _refuse(f"{ufunc.__name__} with where=")
    dtype = kwargs.pop("dtype", None)
    for ignored in ("casting", "order", "subok"):
        if kwargs.pop(ignored, None) not in (None, "same_kind", "K", True):
            _refuse(f"{ufunc.__name__} with {ignored}=")
    if kwargs:
        _refuse(f"{ufunc.__name__} with {'/'.join(kwargs)}=")
    trace = require_trace()
    results = trace.builder.ufunc(ufunc.__name__, [trace.operand(x) for x in inputs], dtype)
    tracers = tuple(_tracer(trace, value) for value in results)
    return tracers[0] if len(tracers) == 1 else tracers


_REDUCTIONS = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}


def _reduce_ufunc(
    ufunc: np.ufunc,
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = _NoValue,
    where: Any = True,
) -> Tracer:
    name = _REDUCTIONS.get(ufunc)
    if name is None:
        raise UnsupportedOpError(f"{ufunc.__name__}.reduce: cannot trace this reduction")
    return _reduce(name, a, axis, dtype, keepdims, initial, where)


def _outer_ufunc(ufunc: np.ufunc, a: Any, b: Any, **kwargs: Any) -> Any:
    trace = require_trace()
    x, y = trace.array(a), trace.array(b)
    left = trace.builder.reshape(x, [*x.shape, *([1] * y.ndim)])
    return ufunc(_tracer(trace, left), b, **kwargs)


def call_function(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """numpy functions that are not ufuncs."""
    handler = _FUNCTIONS.get(func)
    name = f"{func.__module__}.{func.__name__}"
    if handler is None:
        raise UnsupportedOpError(f"{name}: cannot trace this function")
    if kwargs.pop("out", None) is not None:
        raise UnsupportedOpError(
            f"{name}: cannot trace out= (writes to an array)\nhint: use the returned array"
        )
    try:
        return handler(*args, **kwargs)
    except TypeError as error:
        if "unexpected keyword argument" in str(error) or "positional argument" in str(error):
            raise UnsupportedOpError(f"{name}: cannot trace this call ({error})") from error
        raise


# Reductions.


def _reduce(
    name: str, a: Any, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any
) -> Tracer:
    if where is not _NoValue and where is not True:
        _refuse(f"{name} with where=")
    trace = require_trace()
    value = trace.builder.reduce(name, trace.operand(a), _axes(axis), _flag(keepdims), dtype)
    result = _tracer(trace, value)
    if initial is _NoValue or initial is None:
        return result
    combine = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}[name]
    values = trace.builder.ufunc(combine, [value, trace.operand(initial)], value.dtype)
    return _tracer(trace, values[0])


def _reduction(name: str) -> Callable[..., Tracer]:
    if name in ("sum", "prod"):

        def handler(
            a: Any,
            axis: Any = None,
            dtype: Any = None,
            keepdims: Any = False,
            initial: Any = _NoValue,
            where: Any = _NoValue,
        ) -> Tracer:
            return _reduce(name, a, axis, dtype, keepdims, initial, where)

        return handler

    def handler_without_dtype(
        a: Any,
        axis: Any = None,
        keepdims: Any = False,
        initial: Any = _NoValue,
        where: Any = _NoValue,
    ) -> Tracer:
        return _reduce(name, a, axis, None, keepdims, initial, where)

    return handler_without_dtype


for _function in (np.sum, np.prod, np.max, np.min, np.any, np.all):
    implements(_function)(_reduction(_function.__name__))
for _old, _new in (("amax", np.max), ("amin", np.min)):
    if hasattr(np, _old):
        implements(getattr(np, _old))(_FUNCTIONS[_new])


@implements(np.mean)
def _mean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, *, where: Any = _NoValue
) -> Tracer:
    _refuse_unless(where is _NoValue, "mean with where=")
    trace = require_trace()
    return _tracer(trace, trace.builder.mean(trace.operand(a), _axes(axis), _flag(keepdims), dtype))


def _variance(
    root: bool,
    a: Any,
    axis: Any,
    dtype: Any,
    ddof: Any,
    keepdims: Any,
    where: Any,
    mean: Any,
    correction: Any,
) -> Tracer:
    _refuse_unless(where is _NoValue and mean is _NoValue, "var with where= or mean=")
    if correction is not _NoValue:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    trace = require_trace()
    return _tracer(
        trace,
        trace.builder.variance(
            trace.operand(a), _axes(axis), _flag(keepdims), dtype, float(ddof), root
        ),
    )


@implements(np.var)
def _var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = _NoValue,
    mean: Any = _NoValue,
    correction: Any = _NoValue,
) -> Tracer:
    return _variance(False, a, axis, dtype, ddof, keepdims, where, mean, correction)


@implements(np.std)
def _std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = _NoValue,
    mean: Any = _NoValue,
    correction: Any = _NoValue,
) -> Tracer:
    return _variance(True, a, axis, dtype, ddof, keepdims, where, mean, correction)


@implements(np.ptp)
def _ptp(a: Any, axis: Any = None, keepdims: Any = False) -> Tracer:
    return np.max(a, axis, keepdims=_flag(keepdims)) - np.min(a, axis, keepdims=_flag(keepdims))  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=64)
def _iota(size: int) -> np.ndarray:
    iota = np.arange(size)
    iota.flags.writeable = False
    return iota


def _arg_reduce(largest: bool, a: Any, axis: Any, keepdims: Any) -> Tracer:
    trace = require_trace()
    value = trace.array(a)
    along = _axis(axis)
    size = int(np.prod(value.shape)) if along is None else 0
    if along is not None and -value.ndim <= along < value.ndim:
        size = value.shape[along]
    iota = trace.capture(_iota(size))
    return _tracer(trace, trace.builder.arg_reduce(largest, value, along, _flag(keepdims), iota))


@implements(np.argmax)
def _argmax(a: Any, axis: Any = None, *, keepdims: Any = _NoValue) -> Tracer:
    return _arg_reduce(True, a, axis, keepdims)


@implements(np.argmin)
def _argmin(a: Any, axis: Any = None, *, keepdims: Any = _NoValue) -> Tracer:
    return _arg_reduce(False, a, axis, keepdims)


@implements(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tracer:
    return np.sum(np.not_equal(a, 0), axis=axis, dtype=np.int64, keepdims=keepdims)  # type: ignore[no-any-return]


@implements(np.average)
def _average(
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: Any = _NoValue,
) -> Tracer:
    _refuse_unless(weights is None and not returned, "average with weights= or returned=")
    return _mean(a, axis, None, keepdims)


# Elementwise functions that are not ufuncs.


@implements(np.where)
def _where(condition: Any, x: Any = _NoValue, y: Any = _NoValue) -> Tracer:
    if x is _NoValue or y is _NoValue:
        raise UnsupportedOpError(
            "where: cannot trace one argument (the result's shape depends on data)"
        )
    trace = require_trace()
    operands = [trace.operand(v) for v in (condition, x, y)]
    return _tracer(trace, trace.builder.where(*operands))


@implements(np.clip)
def _clip(
    a: Any,
    a_min: Any = _NoValue,
    a_max: Any = _NoValue,
    *,
    min: Any = _NoValue,
    max: Any = _NoValue,
    dtype: Any = None,
) -> Tracer:
    low = a_min if min is _NoValue else min
    high = a_max if max is _NoValue else max
    low, high = (None if bound is _NoValue else bound for bound in (low, high))
    trace = require_trace()
    value = trace.array(a)
    if dtype is not None:
        value = trace.builder.astype(value, dtype)
    if np.dtype(value.dtype).kind in "iu":
        # Python ints beyond the dtype bound nothing.
        limits = np.iinfo(value.dtype)
        if type(low) is int and low <= limits.min:
            low = None
        if type(high) is int and high >= limits.max:
            high = None
    bounds = [None if bound is None else trace.operand(bound) for bound in (low, high)]
    return _tracer(trace, trace.builder.clip(value, *bounds))


@implements(np.round, np.around)
def _round(a: Any, decimals: int = 0) -> Any:
    if np.dtype(a.dtype).kind != "f":
        _refuse_unless(decimals >= 0 and a.dtype != bool, "round of integers to tens")
        return a.copy()
    if decimals == 0:
        return np.rint(a)
    scale = 10.0 ** abs(decimals)
    return np.rint(a * scale) / scale if decimals > 0 else np.rint(a / scale) * scale


@implements(np.fix)
def _fix(x: Any) -> Any:
    return np.trunc(x)


@implements(np.real, np.real_if_close)
def _real(val: Any) -> Any:
    return val


@implements(np.nan_to_num)
def _nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    _refuse_unless(copy, "nan_to_num with copy=False")
    if x.dtype.kind != "f":
        return x.copy()
    limits = np.finfo(x.dtype)
    result = np.where(np.isnan(x), nan, x)
    result = np.where(x == np.inf, float(limits.max) if posinf is None else posinf, result)
    result = np.where(x == -np.inf, float(limits.min) if neginf is None else neginf, result)
    return result.astype(x.dtype)  # type: ignore[union-attr]


@implements(np.isclose)
def _isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    close = (np.abs(a - b) <= atol + rtol * np.abs(b)) & np.isfinite(b) | (a == b)
    return close | (np.isnan(a) & np.isnan(b)) if equal_nan else close


@implements(np.allclose)
def _allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    return np.all(np.isclose(a, b, rtol, atol, equal_nan))


@implements(np.sinc)
def _sinc(x: Any) -> Any:
    y = np.pi * np.where(x == 0, 1.0e-20, x)
    return np.sin(y) / y


# Products.


def _matmul(a: Any, b: Any, **kwargs: Any) -> Tracer:
    _refuse_unless(not kwargs, "matmul with keyword arguments")
    trace = require_trace()
    return _tracer(trace, trace.builder.matmul(trace.operand(a), trace.operand(b)))


def _vecdot(a: Any, b: Any, **kwargs: Any) -> Any:
    _refuse_unless(not kwargs, "vecdot with keyword arguments")
    trace = require_trace()
    x, y = trace.array(a), trace.array(b)
    left = trace.builder.expand_dims(x, [-2])
    right = trace.builder.expand_dims(y, [-1])
    product = trace.builder.matmul(left, right)
    return _tracer(trace, trace.builder.squeeze(product, [-2, -1]))


def _product(name: str) -> Callable[..., Tracer]:
    def handler(a: Any, b: Any) -> Tracer:
        trace = require_trace()
        return _tracer(trace, getattr(trace.builder, name)(trace.operand(a), trace.operand(b)))

    return handler


for _function in (np.dot, np.inner, np.outer):
    implements(_function)(_product(_function.__name__))


@implements(np.vdot)
def _vdot(a: Any, b: Any) -> Any:
    return np.dot(np.ravel(a), np.ravel(b))


@implements(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Tracer:
    trace = require_trace()
    x, y = trace.array(a), trace.array(b)
    if isinstance(axes, numbers.Integral):
        count = int(axes)
        if count > min(x.ndim, y.ndim):
            raise ValueError("shape-mismatch for sum")
        axes_x, axes_y = list(range(x.ndim - count, x.ndim)), list(range(count))
    else:
        axes_x, axes_y = _ints(axes[0]), _ints(axes[1])
    return _tracer(trace, trace.builder.tensordot(x, y, axes_x, axes_y))


@implements(np.einsum)
def _einsum(subscripts: Any, *operands: Any, optimize: Any = False, **kwargs: Any) -> Tracer:
    _refuse_unless(isinstance(subscripts, str), "einsum with lists of subscripts")
    _refuse_unless(not kwargs, "einsum with dtype=, order= or casting=")
    trace = require_trace()
    return _tracer(trace, trace.builder.einsum(subscripts, [trace.array(x) for x in operands]))


@implements(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    value = x if x.dtype.kind == "f" else x.astype(np.float64)
    vector = x.ndim == 1 if axis is None else isinstance(axis, numbers.Integral)
    if ord is None or (ord == 2 and vector) or (ord == "fro" and not vector):
        return np.sqrt(np.sum(value * value, axis=axis, keepdims=keepdims))
    if vector and ord == 1:
        return np.sum(np.abs(value), axis=axis, keepdims=keepdims)
    if vector and ord in (np.inf, -np.inf):
        extremum = np.max if ord > 0 else np.min
        return extremum(np.abs(value), axis=axis, keepdims=keepdims)
    return _refuse(f"linalg.norm with ord={ord!r}")


# Shapes.


def _unary(name: str, *arguments: Any) -> Tracer:
    """The builder's method of this name on the first argument."""
    trace = require_trace()
    return _tracer(trace, getattr(trace.builder, name)(trace.operand(arguments[0]), *arguments[1:]))


def _c_order(order: Any, name: str) -> None:
    _refuse_unless(order in ("C", "K", "A"), f"{name} with order={order!r}")


@implements(np.reshape)
def _reshape(a: Any, /, shape: Any, order: str = "C", *, copy: Any = None) -> Tracer:
    _c_order(order, "reshape")
    return _unary("reshape", a, _ints(shape))


@implements(np.ravel)
def _ravel(a: Any, order: str = "C") -> Tracer:
    _c_order(order, "ravel")
    return _unary("reshape", a, [-1] if a.size else [0])


@implements(np.transpose, np.permute_dims)
def _transpose(a: Any, axes: Any = None) -> Tracer:
    return _unary("transpose", a, _axes(axes))


@implements(np.matrix_transpose)
def _matrix_transpose(x: Any, /) -> Tracer:
    return _unary("swapaxes", x, -1, -2)


@implements(np.swapaxes)
def _swapaxes(a: Any, axis1: Any, axis2: Any) -> Tracer:
    return _unary("swapaxes", a, _index(axis1), _index(axis2))


@implements(np.moveaxis)
def _moveaxis(a: Any, source: Any, destination: Any) -> Tracer:
    return _unary("moveaxis", a, _ints(source), _ints(destination))


@implements(np.rollaxis)
def _rollaxis(a: Any, axis: int, start: int = 0) -> Tracer:
    axis = axis + a.ndim if axis < 0 else axis
    start = start + a.ndim if start < 0 else start
    return _unary("moveaxis", a, [axis], [start - 1 if axis < start else start])


@implements(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Tracer:
    return _unary("expand_dims", a, _ints(axis))


@implements(np.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Tracer:
    return _unary("squeeze", a, _axes(axis))


@implements(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tracer:
    return _unary("broadcast_to", array, _ints(shape))


@implements(np.broadcast_arrays)
def _broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    shape = np.broadcast_shapes(*(np.shape(x) for x in args))
    return tuple(np.broadcast_to(x, shape) for x in args)


def _atleast(dimensions: int) -> Callable[..., Any]:
    def one(x: Any) -> Any:
        shape = np.shape(x)
        if len(shape) >= dimensions:
            return x
        if dimensions == 3 and len(shape) == 2:
            return np.reshape(x, (*shape, 1))
        if dimensions == 3 and len(shape) == 1:
            return np.reshape(x, (1, *shape, 1))
        return np.reshape(x, (1,) * (dimensions - len(shape)) + shape)

    def handler(*arys: Any) -> Any:
        results = tuple(one(x) for x in arys)
        return results[0] if len(results) == 1 else results

    return handler


for _function, _count in ((np.atleast_1d, 1), (np.atleast_2d, 2), (np.atleast_3d, 3)):
    _FUNCTIONS[_function] = _atleast(_count)


@implements(np.shape)
def _shape(a: Any) -> tuple[int, ...]:
    return a.shape if isinstance(a, Tracer) else np.asarray(a).shape


@implements(np.ndim)
def _ndim(a: Any) -> int:
    return len(_shape(a))


@implements(np.size)
def _size(a: Any, axis: Any = None) -> int:
    shape = _shape(a)
    return int(np.prod(shape)) if axis is None else shape[axis]


# Joins and splits.


@implements(np.concatenate, np.concat)
def _concatenate(
    arrays: Any, /, axis: Any = 0, *, dtype: Any = None, casting: str = "same_kind"
) -> Tracer:
    _refuse_unless(casting == "same_kind", "concatenate with casting=")
    trace = require_trace()
    parts = [trace.array(x) for x in arrays]
    return _tracer(trace, trace.builder.concatenate(parts, _axis(axis), dtype))


@implements(np.stack)
def _stack(arrays: Any, axis: Any = 0, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    trace = require_trace()
    result = _tracer(trace, trace.builder.stack([trace.array(x) for x in arrays], _index(axis)))
    return result if dtype is None else result.astype(dtype)


@implements(np.hstack)
def _hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    parts = [np.atleast_1d(x) for x in tup]
    return np.concatenate(parts, 0 if np.ndim(parts[0]) == 1 else 1, dtype=dtype)


@implements(np.vstack, *([np.row_stack] if "row_stack" in np.__dict__ else []))
def _vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return np.concatenate([np.atleast_2d(x) for x in tup], 0, dtype=dtype)


@implements(np.dstack)
def _dstack(tup: Any) -> Any:
    return np.concatenate([np.atleast_3d(x) for x in tup], 2)


@implements(np.column_stack)
def _column_stack(tup: Any) -> Any:
    columns = [np.reshape(x, (-1, 1)) if np.ndim(x) < 2 else x for x in tup]
    return np.concatenate(columns, 1)


@implements(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return np.concatenate((arr, values), axis=axis)


def _split_at(ary: Any, borders: list[int], axis: int) -> list[Tracer]:
    trace = require_trace()
    parts = trace.builder.split(trace.operand(ary), borders, axis)
    return [_tracer(trace, part) for part in parts]


@implements(np.array_split)
def _array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Tracer]:
    axis = _index(axis)
    if not isinstance(indices_or_sections, numbers.Integral):
        return _split_at(ary, _ints(indices_or_sections), axis)
    sections, size = int(indices_or_sections), ary.shape[axis]
    if sections <= 0:
        raise ValueError("number sections must be larger than 0.")
    small, larger = divmod(size, sections)
    sizes = [small + 1] * larger + [small] * (sections - larger)
    return _split_at(ary, [sum(sizes[: i + 1]) for i in range(sections - 1)], axis)


@implements(np.split)
def _split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Tracer]:
    if isinstance(indices_or_sections, numbers.Integral):
        size = ary.shape[_index(axis)]
        if int(indices_or_sections) <= 0 or size % int(indices_or_sections):
            raise ValueError("array split does not result in an equal division")
    return _array_split(ary, indices_or_sections, axis)


@implements(np.hsplit)
def _hsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    return _split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


@implements(np.vsplit)
def _vsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    return _split(ary, indices_or_sections, 0)


@implements(np.dsplit)
def _dsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    return _split(ary, indices_or_sections, 2)


@implements(np.unstack)
def _unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    return tuple(np.moveaxis(x, axis, 0))


# Rearrangement.


@implements(np.flip)
def _flip(m: Any, axis: Any = None) -> Tracer:
    return _unary("flip", m, _axes(axis))


@implements(np.fliplr)
def _fliplr(m: Any) -> Tracer:
    return _unary("flip", m, [1])


@implements(np.flipud)
def _flipud(m: Any) -> Tracer:
    return _unary("flip", m, [0])


@implements(np.rot90)
def _rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    a, b = axes
    k %= 4
    if k == 0:
        return m.copy()
    if k == 2:
        return np.flip(m, (a, b))
    return np.swapaxes(np.flip(m, b), a, b) if k == 1 else np.flip(np.swapaxes(m, a, b), b)


@implements(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Tracer:
    return _unary("roll", a, _ints(shift), _axes(axis))


@implements(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Tracer:
    _refuse_unless(isinstance(repeats, numbers.Integral), "repeat with an array of counts")
    return _unary("repeat", a, int(repeats), _axis(axis))


@implements(np.tile)
def _tile(A: Any, reps: Any) -> Tracer:
    return _unary("tile", A, _ints(reps))


@implements(np.pad)
def _pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Tracer:
    _refuse_unless(isinstance(mode, str), "pad with a function as mode")
    _refuse_unless(not isinstance(pad_width, dict), "pad with a dict of widths")
    fill = kwargs.pop("constant_values", 0)
    _refuse_unless(isinstance(fill, numbers.Number), "pad with an array of constant_values")
    _refuse_unless(
        not kwargs or kwargs == {"reflect_type": "even"}, f"pad with {', '.join(kwargs)}"
    )
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2))
    if widths.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    trace = require_trace()
    pairs = [(int(before), int(after)) for before, after in widths]
    return _tracer(trace, trace.builder.pad(trace.operand(array), pairs, mode, trace.operand(fill)))


@implements(np.diff)
def _diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = _NoValue, append: Any = _NoValue
) -> Any:
    if prepend is not _NoValue or append is not _NoValue:
        _refuse("diff with prepend= or append=")
    return _unary("diff", a, _index(n), _index(axis))


@implements(np.diagonal, np.linalg.diagonal)
def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tracer:
    return _unary("diagonal", a, _index(offset), _index(axis1), _index(axis2))


@implements(np.diag)
def _diag(v: Any, k: int = 0) -> Any:
    if v.ndim == 2:
        return np.diagonal(v, k)
    _refuse_unless(v.ndim == 1, f"diag of {v.ndim} dimensions")
    size = v.shape[0] + abs(k)
    column = np.pad(v, (max(k, 0), max(-k, 0)))
    return np.where(np.eye(size, k=k, dtype=bool), column, v.dtype.type(0))


@implements(np.trace)
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


@implements(np.tril)
def _tril(m: Any, k: int = 0) -> Any:
    mask = np.tri(*m.shape[-2:], k=k, dtype=bool)
    return np.where(mask, m, m.dtype.type(0))


@implements(np.triu)
def _triu(m: Any, k: int = 0) -> Any:
    mask = np.tri(*m.shape[-2:], k=k - 1, dtype=bool)
    return np.where(mask, m.dtype.type(0), m)


@implements(np.take)
def _take(a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Tracer:
    _refuse_unless(mode == "raise", f"take with mode={mode!r}")
    trace = require_trace()
    return _tracer(trace, trace.builder.take(trace.operand(a), trace.array(indices), _axis(axis)))


# Arrays like another.


def _full_like_value(trace: Trace, a: Any, fill: Any, dtype: Any, shape: Any) -> Tracer:
    wanted = list(np.shape(a)) if shape is None else _ints(shape)
    kind = (a.dtype if hasattr(a, "dtype") else np.result_type(a)) if dtype is None else dtype
    return _tracer(trace, trace.builder.full(wanted, trace.operand(fill), kind))


@implements(np.zeros_like, np.empty_like)
def _zeros_like(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tracer:
    return _full_like_value(require_trace(), a, 0, dtype, shape)


@implements(np.ones_like)
def _ones_like(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tracer:
    return _full_like_value(require_trace(), a, 1, dtype, shape)


@implements(np.full_like)
def _full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tracer:
    return _full_like_value(require_trace(), a, fill_value, dtype, shape)


@implements(np.copy)
def _copy(a: Any, order: str = "K", subok: bool = False) -> Tracer:
    return a.copy()  # type: ignore[no-any-return]


@implements(np.astype)
def _astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tracer:
    return x.astype(dtype)  # type: ignore[no-any-return]


@implements(np.result_type)
def _result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    trace = require_trace()
    plain = [x for x in arrays_and_dtypes if isinstance(x, (type, str, np.dtype))]
    operands = [
        trace.operand(x) for x in arrays_and_dtypes if not isinstance(x, (type, str, np.dtype))
    ]
    operands += [trace.builder.constant(np.zeros((), x)[()]) for x in plain]
    return trace.builder.result_type(operands)  # type: ignore[no-any-return]


@implements(np.iscomplexobj)
def _iscomplexobj(x: Any) -> bool:
    return False


@implements(np.isrealobj)
def _isrealobj(x: Any) -> bool:
    return True


@implements(np.may_share_memory, np.shares_memory)
def _may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    _refuse("may_share_memory")
    return False


@implements(np.meshgrid)
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    count = len(xi)
    outputs = [np.reshape(x, (1,) * i + (-1,) + (1,) * (count - 1 - i)) for i, x in enumerate(xi)]
    if indexing == "xy" and count > 1:
        outputs[:2] = [np.swapaxes(x, 0, 1) for x in outputs[:2]]
    return tuple(outputs) if sparse else tuple(np.broadcast_arrays(*outputs))


# Indexing.


def _index_item(trace: Trace, item: Any) -> list[Any]:
    """What the builder takes for one item of an index expression."""
    if item is None or item is Ellipsis:
        return [item]
    if isinstance(item, slice):
        bounds = (None if b is None else _index(b) for b in (item.start, item.stop, item.step))
        return [slice(*bounds)]
    if isinstance(item, (bool, np.bool_)):
        raise UnsupportedOpError("getitem: cannot trace a bool index")
    if isinstance(item, numbers.Integral):
        return [int(item)]
    if isinstance(item, (list, np.ndarray)) and not contains_tracer(item):
        item = np.asarray(item)
        if item.size == 0 and item.dtype == np.float64:
            item = item.astype(np.intp)  # an empty list
    if isinstance(item, (Tracer, np.ndarray)):
        if item.dtype == bool:
            raise UnsupportedOpError(
                "getitem: cannot trace an index of bool (the result's shape depends on data)\n"
                "hint: write np.where(mask, x, 0)"
            )
        if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
            return [int(item)]
        return [trace.array(item)]
    if hasattr(item, "__index__"):
        return [_index(item)]
    raise UnsupportedOpError(f"getitem: cannot trace an index of {type(item).__name__}")


def getitem(x: Tracer, index: Any) -> Tracer:
    """x[index]."""
    trace = require_trace()
    items = index if isinstance(index, tuple) else (index,)
    flat = [part for item in items for part in _index_item(trace, item)]
    return _tracer(trace, trace.builder.index(trace.operand(x), flat))
