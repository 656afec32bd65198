"""What NumPy's functions do on traced arrays: arguments are put in order here, the rules of shapes
and dtypes are in the core (cpp/graph/numpy_*.cpp)."""

from __future__ import annotations

import numbers
import operator as op
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.errors import UnsupportedOpError
from rune_jit.registry import FUNCTIONS, implements
from rune_jit.storage import Step, can_view, permutation
from rune_jit.trace import (
    Trace,
    contains_traced,
    contains_tracer,
    current_trace,
    require_trace,
)
from rune_jit.tracer import Tracer

_NoValue = np._NoValue


def is_operand(x: Any) -> bool:
    """Whether a Python operator may take x beside a tracer."""
    return isinstance(
        x, (Tracer, _selection.Selection, numbers.Number, np.ndarray, np.generic, list, tuple)
    )


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


def operator(ufunc: str, operands: tuple[Any, ...]) -> Any:
    """A Python operator on tracers and numbers."""
    if any(isinstance(x, _selection.Selection) for x in operands):
        return getattr(np, ufunc)(*operands)
    if not contains_traced(operands):
        return run_known(getattr(np, ufunc), operands, {})
    trace = require_trace()
    return _tracer(trace, trace.builder.operator(ufunc, [trace.operand(x) for x in operands]))


def call_ufunc(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """numpy.ufunc calls and methods."""
    if not contains_traced(inputs) and not contains_traced(kwargs):
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return run_known(function, inputs, kwargs)
    out = kwargs.pop("out", None)
    if out is None or all(o is None for o in out):
        _refuse_unless(
            method != "__call__" or kwargs.get("where", True) is True,
            f"{ufunc.__name__} with where= without out=",
        )
        return _call_ufunc(ufunc, method, inputs, kwargs)
    if method == "reduce":
        if kwargs.get("dtype") is None and ufunc in (np.add, np.multiply):
            kwargs["dtype"] = out[0].dtype
        result = _call_ufunc(ufunc, method, inputs, kwargs)
        return _writes.into(f"{ufunc.__name__}.reduce", out[0], result)
    _refuse_unless(method == "__call__", f"{ufunc.__name__}.{method} with out=")
    trace = require_trace()
    where = kwargs.pop("where", True)
    given = {k: v for k, v in kwargs.items() if k in ("dtype", "casting")}
    if len(out) == 1 and ufunc.signature is None:
        _writes.check_cast(trace, ufunc, inputs, out[0].dtype, **given)
    results = _call_ufunc(ufunc, method, inputs, kwargs)
    results = results if isinstance(results, tuple) else (results,)
    values = [trace.operand(result) for result in results]
    for target, value in zip(out, values, strict=True):
        if target is not None:
            if len(out) > 1 or ufunc.signature is not None:
                _writes.into(ufunc.__name__, target, _tracer(trace, value))
            else:
                _writes.ufunc_write(trace, target, value, where)
    written = tuple(r if o is None else o for o, r in zip(out, results, strict=True))
    return written[0] if len(written) == 1 else written


def _call_ufunc(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if method == "reduce":
        return _reduce_ufunc(ufunc, *inputs, **kwargs)
    if method == "outer" and len(inputs) == 2:
        return _outer_ufunc(ufunc, *inputs, **kwargs)
    _refuse_unless(method == "__call__", f"{ufunc.__name__}.{method}")
    if ufunc is np.matmul:
        return _matmul(*inputs, **kwargs)
    if ufunc is np.vecdot:
        return _vecdot(*inputs, **kwargs)
    kwargs = {k: v for k, v in kwargs.items() if k != "where"}
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


# Arrays whose values are known while tracing: NumPy itself computes.


def plain(x: Any) -> Any:
    """x with the arrays of known tracers instead of them."""
    if isinstance(x, Tracer):
        array = x._array()
        assert array is not None
        return array
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(plain, x))
    if isinstance(x, (list, tuple)):
        return type(x)(map(plain, x))
    return {k: plain(v) for k, v in x.items()} if isinstance(x, dict) else x


def known(array: np.ndarray, fill: Any = None) -> Any:
    """A tracer of an array made while tracing; the array itself if it has a dtype that cannot be
    traced."""
    trace = current_trace()
    if trace is None or type(array) is not np.ndarray:
        return array
    if not _core.is_supported_dtype(array.dtype):
        return array
    return Tracer.known(trace, array, fill)


def run_known(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """NumPy's own result, of arguments whose values are all known."""
    tracers = [x for x in _leaves((args, kwargs)) if isinstance(x, Tracer)]
    arrays = [plain(x) for x in tracers]

    def wrap(result: Any) -> Any:
        if isinstance(result, (list, tuple)):
            wrapped = [wrap(x) for x in result]
            return type(result)(*wrapped) if hasattr(result, "_fields") else type(result)(wrapped)
        if not isinstance(result, np.ndarray):
            return result
        for tracer, array in zip(tracers, arrays, strict=True):
            if result is array:
                return tracer
        if current_trace() is None:
            return result
        if any(np.may_share_memory(result, array) for array in arrays):
            result = result.copy() if not result.flags.writeable else result
            if any(np.may_share_memory(result, array) for array in arrays):
                _refuse(f"{getattr(function, '__name__', function)} (a view)")
        return known(result)

    by_id = {id(tracer): array for tracer, array in zip(tracers, arrays, strict=True)}
    result = wrap(function(*_replace(args, by_id), **_replace(kwargs, by_id)))
    for tracer in tracers:
        if _may_write(function, kwargs):
            tracer._storage.touched()
    return result


def _may_write(function: Any, kwargs: Any) -> bool:
    return kwargs.get("out") is not None or getattr(function, "__name__", "") in _WRITERS


_WRITERS = ("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis", "at")


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from _leaves(item)
    else:
        yield x


def _replace(x: Any, by_id: dict[int, np.ndarray]) -> Any:
    if isinstance(x, Tracer):
        return by_id[id(x)]
    if isinstance(x, (list, tuple)):
        return type(x)(_replace(item, by_id) for item in x)
    return {k: _replace(v, by_id) for k, v in x.items()} if isinstance(x, dict) else x


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
    name = _REDUCTIONS.get(ufunc)  # type: ignore[call-overload]
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
    handler = FUNCTIONS.get(func)
    name = f"{func.__module__}.{func.__name__}"
    is_known = not contains_traced(args) and not contains_traced(kwargs)
    if is_known and (func not in _VIEWS or current_trace() is None):
        return run_known(func, args, kwargs)
    if handler is None:
        raise UnsupportedOpError(f"{name}: cannot trace this function")
    out = kwargs.pop("out", None)
    if out is not None and func in (np.sum, np.prod) and kwargs.get("dtype") is None:
        kwargs["dtype"] = out.dtype  # NumPy adds in the dtype of the result
    try:
        result = handler(*args, **kwargs)
    except TypeError as error:
        if "unexpected keyword argument" in str(error) or "positional argument" in str(error):
            raise UnsupportedOpError(f"{name}: cannot trace this call ({error})") from error
        raise
    if out is None:
        return result
    exact = {np.dot: "no", np.concatenate: "same_kind", np.mean: "unsafe", np.std: "unsafe"}
    return _writes.into(func.__name__, out, result, exact.get(func, "same_kind"))


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
        implements(getattr(np, _old))(FUNCTIONS[_new])


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


def _arg_reduce(largest: bool, a: Any, axis: Any, keepdims: Any) -> Tracer:
    trace = require_trace()
    value = trace.array(a)
    along = _axis(axis)
    size = int(np.prod(value.shape)) if along is None else 0
    if along is not None and -value.ndim <= along < value.ndim:
        size = value.shape[along]
    iota = trace.iota(size)
    return _tracer(trace, trace.builder.arg_reduce(largest, value, along, _flag(keepdims), iota))


@implements(np.argmax)
def _argmax(a: Any, axis: Any = None, *, keepdims: Any = _NoValue) -> Tracer:
    return _arg_reduce(True, a, axis, keepdims)


@implements(np.argmin)
def _argmin(a: Any, axis: Any = None, *, keepdims: Any = _NoValue) -> Tracer:
    return _arg_reduce(False, a, axis, keepdims)


@implements(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tracer:
    return np.sum(np.not_equal(a, 0), axis=axis, dtype=np.int64, keepdims=keepdims)  # type: ignore[return-value]


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
    return _mean(a, axis, None, keepdims)  # type: ignore[no-any-return]


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
    return result.astype(x.dtype)


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


for _function in (np.dot, np.inner, np.outer):  # type: ignore[assignment]
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


def _view(kind: str, argument: Any, a: Any, value: Callable[[Trace], Any]) -> Tracer:
    """A view of a; `value` makes its value from a's now and checks the arguments."""
    trace = require_trace()
    if not isinstance(a, Tracer):
        return _tracer(trace, value(trace))
    step = Step(kind, argument)
    array = a._array()
    if array is not None:
        return a._view(step, step.of_array(array).shape)
    if a._storage.scalar:
        return Tracer(trace, value(trace), scalar=False)
    now = value(trace)
    return a._view(step, tuple(now.shape), now)


def _permuted(name: str, a: Any, *arguments: Any) -> Tracer:
    """A view with other axes."""

    def value(trace: Trace) -> Any:
        return getattr(trace.builder, name)(trace.operand(a), *arguments)

    is_traced = isinstance(a, Tracer) and a._storage.array is None
    now = value(require_trace()) if is_traced else None  # checks the axes
    axes = permutation(getattr(np, name), np.ndim(a), *arguments)
    return _view("transpose", axes, a, value if now is None else lambda trace: now)


def _reshaped(a: Any, shape: list[int]) -> Tracer:
    """a.reshape(shape): a view where NumPy makes one."""

    def value(trace: Trace) -> Any:
        return trace.builder.reshape(trace.operand(a), shape)

    if not isinstance(a, Tracer):
        return _tracer(require_trace(), value(require_trace()))
    if a._storage.array is not None:
        now, wanted = None, np.empty(a.shape, bool).reshape(shape).shape
    else:
        now = value(require_trace())
        wanted = tuple(now.shape)
    a._storage.layout_used |= a._storage.leaf is not None
    whole = a._storage.array.shape if a._storage.array is not None else None
    if not can_view(whole or tuple(a._storage.current(a._trace).shape), a.dtype, a._steps, wanted):
        return a.copy().reshape(wanted)
    return _view("reshape", wanted, a, (lambda trace: now) if now is not None else value)


def _c_order(order: Any, name: str) -> None:
    _refuse_unless(order in ("C", "K", "A"), f"{name} with order={order!r}")


@implements(np.reshape)
def _reshape(a: Any, /, shape: Any, order: str = "C", *, copy: Any = None) -> Tracer:
    _c_order(order, "reshape")
    if copy:
        return _reshaped(a, _ints(shape)).copy()
    return _reshaped(a, _ints(shape))


@implements(np.ravel)
def _ravel(a: Any, order: str = "C") -> Tracer:
    _c_order(order, "ravel")
    return _reshaped(a, [-1] if a.size else [0])


@implements(np.transpose, np.permute_dims)
def _transpose(a: Any, axes: Any = None) -> Tracer:
    return _permuted("transpose", a, _axes(axes))


@implements(np.matrix_transpose)
def _matrix_transpose(x: Any, /) -> Tracer:
    return _permuted("swapaxes", x, -1, -2)


@implements(np.swapaxes)
def _swapaxes(a: Any, axis1: Any, axis2: Any) -> Tracer:
    return _permuted("swapaxes", a, _index(axis1), _index(axis2))


@implements(np.moveaxis)
def _moveaxis(a: Any, source: Any, destination: Any) -> Tracer:
    return _permuted("moveaxis", a, _ints(source), _ints(destination))


@implements(np.rollaxis)
def _rollaxis(a: Any, axis: int, start: int = 0) -> Tracer:
    axis = axis + a.ndim if axis < 0 else axis
    start = start + a.ndim if start < 0 else start
    return _permuted("moveaxis", a, [axis], [start - 1 if axis < start else start])


def _resized(name: str, a: Any, axes: list[int] | None) -> Tracer:
    """A view with axes of size 1 more or less: one of any layout."""

    def value(trace: Trace) -> Any:
        return getattr(trace.builder, name)(trace.operand(a), axes)

    if not isinstance(a, Tracer):
        return _tracer(require_trace(), value(require_trace()))
    given = None if axes is None else tuple(axes)
    function = getattr(np, name)
    if a._storage.array is not None:
        shape = function(np.broadcast_to(np.empty((), bool), a.shape), given).shape
        return a._view(Step("reshape", shape), shape)
    return _view("reshape", tuple((now := value(require_trace())).shape), a, lambda trace: now)


@implements(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Tracer:
    return _resized("expand_dims", a, _ints(axis))


@implements(np.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Tracer:
    return _resized("squeeze", a, _axes(axis))


@implements(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tracer:
    wanted = _ints(shape)
    return _view(
        "broadcast_to",
        wanted,
        array,
        lambda trace: trace.builder.broadcast_to(trace.operand(array), wanted),
    )


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


for _function, _count in ((np.atleast_1d, 1), (np.atleast_2d, 2), (np.atleast_3d, 3)):  # type: ignore[assignment]
    FUNCTIONS[_function] = _atleast(_count)


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


def _split_at(ary: Any, borders: list[int], axis: int) -> list[Any]:
    ends = [*borders, None]
    before = (slice(None),) * (axis + np.ndim(ary) if axis < 0 else axis)
    if not -np.ndim(ary) <= axis < np.ndim(ary):
        require_trace().builder.split(require_trace().operand(ary), borders, axis)  # raises
    return [ary[(*before, slice(low, high))] for low, high in zip([0, *borders], ends, strict=True)]


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
    return _array_split(ary, indices_or_sections, axis)  # type: ignore[no-any-return]


@implements(np.hsplit)
def _hsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    return _split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)  # type: ignore[no-any-return]


@implements(np.vsplit)
def _vsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    return _split(ary, indices_or_sections, 0)  # type: ignore[no-any-return]


@implements(np.dsplit)
def _dsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    return _split(ary, indices_or_sections, 2)  # type: ignore[no-any-return]


@implements(np.unstack)
def _unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    return tuple(np.moveaxis(x, axis, 0))


# Rearrangement.


def _flipped(m: Any, axes: list[int] | None) -> Tracer:
    now = None
    if not isinstance(m, Tracer) or m._storage.array is None:
        now = _unary("flip", m, axes)._value  # checks the axes
    along = range(np.ndim(m)) if axes is None else [axis % max(np.ndim(m), 1) for axis in axes]
    items = [slice(None, None, -1 if axis in along else None) for axis in range(np.ndim(m))]
    return _view("index", items, m, lambda trace: now)


@implements(np.flip)
def _flip(m: Any, axis: Any = None) -> Tracer:
    return _flipped(m, _axes(axis))


@implements(np.fliplr)
def _fliplr(m: Any) -> Tracer:
    return _flipped(m, [1])


@implements(np.flipud)
def _flipud(m: Any) -> Tracer:
    return _flipped(m, [0])


@implements(np.rot90)
def _rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    a, b = axes
    k %= 4
    if k == 0:
        return m[...]
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
    arguments = (_index(offset), _index(axis1), _index(axis2))
    return _view(
        "diagonal",
        arguments,
        a,
        lambda trace: trace.builder.diagonal(trace.operand(a), *arguments),
    )


@implements(np.diag)
def _diag(v: Any, k: int = 0) -> Any:
    if v.ndim == 2:
        return np.diagonal(v, k).copy()
    _refuse_unless(v.ndim == 1, f"diag of {v.ndim} dimensions")
    size = v.shape[0] + abs(k)
    column = np.pad(v, (max(k, 0), max(-k, 0)))
    return np.where(np.eye(size, k=k, dtype=bool), column, v.dtype.type(0))


@implements(np.trace)
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


@implements(np.tril)
def _tril(m: Any, k: int = 0) -> Any:
    mask = np.tri(*m.shape[-2:], k=k, dtype=bool)  # type: ignore[call-overload]
    return np.where(mask, m, m.dtype.type(0))


@implements(np.triu)
def _triu(m: Any, k: int = 0) -> Any:
    mask = np.tri(*m.shape[-2:], k=k - 1, dtype=bool)  # type: ignore[call-overload]
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
    results = outputs if sparse else np.broadcast_arrays(*outputs)
    return tuple(x.copy() for x in results) if copy else tuple(results)


# Indexing.


def _index_item(trace: Trace, item: Any) -> list[Any]:
    """What the builder takes for one item of an index expression."""
    if item is None or item is Ellipsis:
        return [item]
    if isinstance(item, slice):
        bounds = (None if b is None else _index(b) for b in (item.start, item.stop, item.step))
        # Slices end where arrays do, however far they reach.
        most = np.iinfo(np.int64).max
        return [slice(*(None if b is None else max(-most, min(b, most)) for b in bounds))]
    if isinstance(item, (bool, np.bool_)):
        raise UnsupportedOpError("getitem: cannot trace a bool index")
    if isinstance(item, numbers.Integral):
        if not -(2**63) <= item < 2**63:  # type: ignore[operator]
            raise IndexError("cannot fit 'int' into an index-sized integer")
        return [int(item)]
    if isinstance(item, (list, np.ndarray)) and not contains_tracer(item):
        made = isinstance(item, list)
        item = np.asarray(item)
        if item.size == 0 and item.dtype == np.float64:
            item = item.astype(np.intp)  # an empty list
        if made and item.ndim and item.dtype.kind in "iu":
            return [trace.constant(item)]
    if isinstance(item, Tracer) and item._storage.array is not None:
        item = plain(item).copy()
        if item.ndim and item.dtype.kind in "iu":
            return [trace.constant(item)]
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


def basic_view(trace: Trace, x: Tracer, items: tuple[Any, ...]) -> Tracer | None:
    """x[items] as a view if the items are slices and integers, some of which may be traced; None if
    there are arrays among them."""
    known_items: list[Any] = []
    elements: list[tuple[int, Any]] = []  # axes of the result that traced integers remove
    consumed = sum(item is not None and item is not Ellipsis for item in items)
    axis = 0
    for item in items:
        if isinstance(item, Tracer) and item.ndim == 0 and item.dtype.kind in "iu":
            if item._storage.array is None and not item._storage.scalar:
                return None
            if item._storage.array is None:
                elements.append((axis, trace.operand(item)))
                known_items.append(slice(None))
                axis += 1
                continue
        (part,) = _index_item(trace, item)
        if not (part is None or part is Ellipsis or isinstance(part, (int, slice))):
            return None
        known_items.append(part)
        if part is Ellipsis:
            axis += x.ndim - consumed
        elif not isinstance(part, int):
            axis += 1
    if elements and x._storage.array is not None:
        x._storage.write(trace, (), x._storage.current(trace))  # from now on traced
    view = _view("index", known_items, x, lambda t: t.builder.index(t.operand(x), known_items))
    for along, at in reversed(elements):
        step = Step("element", (along, at))
        now = step.of(trace.builder, view._value_in(trace))
        view = view._view(step, tuple(now.shape), now)
    return view


def getitem(x: Tracer, index: Any) -> Any:
    """x[index]."""
    if x._is_left_over():
        return plain(x)[plain(index)]
    trace = require_trace()
    items = index if isinstance(index, tuple) else (index,)
    if len(items) == 1 and _writes.is_mask(items[0]) and contains_traced([x, items[0]]):
        return _selection.select(trace, x, items[0])
    array = x._array()
    if array is not None and not contains_traced(index):
        result = array[plain(index)]
        if not isinstance(result, np.ndarray):
            return result
        if not np.may_share_memory(result, array):
            return known(result)
    view = basic_view(trace, x, items)
    if view is not None:
        if view.ndim or any(item is Ellipsis for item in items):
            return view
        return _tracer(trace, view._value_in(trace))  # an element: a scalar
    flat = [part for item in items for part in _index_item(trace, item)]
    return _tracer(trace, trace.builder.index(trace.operand(x), flat))


# Functions that return views of their arguments, or one of them as it is.
_VIEWS = frozenset(
    [
        np.reshape,
        np.ravel,
        np.transpose,
        np.permute_dims,
        np.matrix_transpose,
        np.swapaxes,
        np.moveaxis,
        np.rollaxis,
        np.expand_dims,
        np.squeeze,
        np.broadcast_to,
        np.broadcast_arrays,
        np.atleast_1d,
        np.atleast_2d,
        np.atleast_3d,
        np.shape,
        np.ndim,
        np.size,
        np.array_split,
        np.split,
        np.hsplit,
        np.vsplit,
        np.dsplit,
        np.unstack,
        np.flip,
        np.fliplr,
        np.flipud,
        np.rot90,
        np.diagonal,
        np.real,
        np.real_if_close,
        np.linalg.diagonal,
    ]
)

from rune_jit import selection as _selection  # noqa: E402
from rune_jit import writes as _writes  # noqa: E402  (these need what is above)
