"""NumPy's protocols on traced arrays, and views. The functions are in numpy_math.py and
numpy_shapes.py; the rules of shapes and dtypes are in the core (cpp/graph/numpy_*.cpp)."""

from __future__ import annotations

import functools
import inspect
import numbers
import operator as op
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from rune_jit import _core
from rune_jit.errors import DataDependentShapeError, UnsupportedOpError
from rune_jit.registry import FUNCTIONS, ON_HOST
from rune_jit.sizes import Size
from rune_jit.storage import Step
from rune_jit.trace import (
    Trace,
    contains_traced,
    current_trace,
    require_trace,
)
from rune_jit.tracer import Tracer

NO_VALUE = np._NoValue


def is_operand(x: Any) -> bool:
    """Whether a Python operator may take x beside a tracer."""
    return isinstance(
        x,
        (
            Tracer,
            Size,
            _selection.Selection,
            numbers.Number,
            np.ndarray,
            np.generic,
            _core.ArrayBase,
            list,
            tuple,
        ),
    )


def refuse(what: str) -> NoReturn:
    raise UnsupportedOpError(f"{what}: cannot trace this")


def refuse_unless(condition: bool, what: str) -> None:
    if not condition:
        refuse(what)


def make_tracer(trace: Trace, value: Any) -> Tracer:
    return Tracer(trace, value)


def traced(x: Any) -> Tracer:
    """numpy.asarray: an array of x's present values."""
    trace = require_trace()
    return Tracer(trace, trace.array(x), scalar=False)


def as_index(x: Any) -> int:
    return op.index(x)


def as_ints(x: Any) -> list[int]:
    """A Python int, or a sequence of them, as a list."""
    if isinstance(x, numbers.Integral) or (isinstance(x, Tracer) and x.ndim == 0):
        return [as_index(x)]
    return [as_index(i) for i in x]


def as_shape(x: Any) -> list[Any]:
    """A size, or a sequence of them, as a list of Python ints and Sizes."""
    if isinstance(x, (Size, numbers.Integral)) or (isinstance(x, Tracer) and x.ndim == 0):
        x = [x]
    return [n if isinstance(n, Size) else as_index(n) for n in x]


def as_axes(axis: Any) -> list[int] | None:
    return None if axis is None else as_ints(axis)


def as_axis(axis: Any) -> int | None:
    return None if axis is None else as_index(axis)


def is_axis_of_scalar(a: Any, axis: Any) -> bool:
    """Whether this is the axis that NumPy's reductions allow for arrays without any."""
    return np.ndim(a) == 0 and axis in (0, -1)


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "fV"  # bfloat16 has kind V


def as_flag(keepdims: Any) -> bool:
    return False if keepdims is NO_VALUE else bool(keepdims)


def laid_out_as(result: Tracer, operands: Any) -> Tracer:
    """A result that NumPy may lay out in memory as its operands."""
    if result.ndim > 1:
        result._storage.order_from = tuple(x for x in operands if isinstance(x, Tracer) and x.ndim)
    return result


# What NumPy lays out in C order, whatever its operands.
_IN_C_ORDER = {
    *(np.reshape, np.ravel, np.array, np.take, np.repeat, np.tile, np.pad, np.tensordot),
    *(np.argmax, np.argmin, np.argsort, np.take_along_axis, np.select),
}
_IN_ORDER_OF_THEIR_OWN = {np.einsum, np.apply_along_axis}


def as_laid_out(function: Any, result: Any, operands: Any) -> Any:
    """What a function returns: new arrays are noted to be laid out as its operands, of which those
    of one dimension do not count."""
    arrays = [x for x in _leaves(operands) if isinstance(x, Tracer) and x.ndim > 1]
    if arrays and function not in _IN_C_ORDER:
        known = {id(x._storage) for x in arrays}
        for x in _leaves(result):
            if not isinstance(x, Tracer) or x._storage.value is None or id(x._storage) in known:
                continue
            laid_out_as(x, (*x._storage.order_from, *arrays))
            x._storage.order_known = function not in _IN_ORDER_OF_THEIR_OWN
    return result


# The two protocols and the operators.


def operator(ufunc: str, operands: tuple[Any, ...]) -> Any:
    """A Python operator on tracers and numbers."""
    if any(isinstance(x, _selection.Selection) for x in operands):
        return getattr(np, ufunc)(*operands)
    if not contains_traced(operands):
        return run_known(getattr(np, ufunc), operands, {})
    trace = require_trace()
    values = [trace.operand(x) for x in operands]
    if ufunc == "power" and _is_numpy_scalar(operands[0], values[0]):
        return _power_of_scalar(trace, *operands)
    try:
        result = make_tracer(trace, trace.builder.operator(ufunc, values))
    except UnsupportedOpError:
        if all(type(v) in (bool, int, float) or v.weak for v in values):
            raise  # Python's own arithmetic
        result = _ufuncs.on_host(getattr(np, ufunc), "__call__", operands, {})
    return as_laid_out(ufunc, result, operands)


def _is_numpy_scalar(x: Any, value: Any) -> bool:
    return isinstance(x, Tracer) and x._storage.scalar and value.weak is None


def _power_of_scalar(trace: Trace, base: Tracer, exponent: Any) -> Any:
    """The operator takes square roots of NumPy's arrays, and calls pow for its scalars."""
    if type(exponent) is float and base.dtype.kind == "f":
        exponent = make_tracer(trace, trace.builder.full([], exponent, base.dtype))
    return _ufuncs.call(np.power, "__call__", (base, exponent), {})


def call_ufunc(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """numpy.ufunc calls and methods."""
    if not contains_traced(inputs) and not contains_traced(kwargs):
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return run_known(function, inputs, kwargs)
    if method == "at":
        return _index_writes.ufunc_at(ufunc, *inputs, **kwargs)
    out = kwargs.pop("out", None)
    if out is not None and any(o is Ellipsis for o in out):
        return _as_arrays(_ufuncs.call(ufunc, method, inputs, kwargs))
    if out is None or all(o is None for o in out):
        return _ufuncs.call(ufunc, method, inputs, kwargs)
    if method != "__call__":
        if kwargs.get("dtype") is None and ufunc in (np.add, np.multiply) and method != "outer":
            kwargs["dtype"] = out[0].dtype
        result = _ufuncs.call(ufunc, method, inputs, kwargs)
        return _writes.into(f"{ufunc.__name__}.{method}", out[0], result)
    trace = require_trace()
    where = kwargs.pop("where", True)
    given = {k: v for k, v in kwargs.items() if k in ("dtype", "casting")}
    if ufunc.signature is None:
        dtypes = [None if target is None else target.dtype for target in out]
        _writes.check_cast(trace, ufunc, inputs, *dtypes, **given)
    results = _ufuncs.call(ufunc, method, inputs, kwargs)
    results = results if isinstance(results, tuple) else (results,)
    values = [trace.operand(result) for result in results]
    for target, value in zip(out, values, strict=True):
        if target is not None:
            if ufunc.signature is not None:
                _writes.into(ufunc.__name__, target, make_tracer(trace, value))
            else:
                _writes.ufunc_write(trace, target, value, where)
    written = tuple(r if o is None else o for o, r in zip(out, results, strict=True))
    return written[0] if len(written) == 1 else written


def _as_arrays(result: Any) -> Any:
    """The results of a ufunc with out=...: 0-d arrays instead of scalars."""
    for x in result if isinstance(result, tuple) else (result,):
        x._storage.scalar = False
    return result


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
                refuse(f"{getattr(function, '__name__', function)} (a view)")
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


def call_function(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """numpy functions that are not ufuncs."""
    handler = FUNCTIONS.get(func)
    name = f"{func.__module__}.{func.__name__}"
    is_known = not contains_traced(args) and not contains_traced(kwargs)
    if is_known and (func not in _VIEWS or current_trace() is None):
        return run_known(func, args, kwargs)
    if handler is None and func not in ON_HOST:
        raise UnsupportedOpError(f"{name}: cannot trace this function")
    out = kwargs.pop("out", None)
    given, position = args, _position_of_out(func)
    if position < len(args):  # the traced forms have no such parameter
        out = args[position]
        args = (*given[:position], None, *given[position + 1 :])
        given = (*given[:position], *given[position + 1 :])
    if out is not None and func in _IN_DTYPE_OF_OUT:
        if len(given) > 2:  # the third parameter of all of them
            given = (*given[:2], out.dtype if given[2] is None else given[2], *given[3:])
        elif kwargs.get("dtype") is None:
            kwargs["dtype"] = out.dtype
    try:
        result = handler(*given, **kwargs) if handler else _host.call(func, args, kwargs)
    except UnsupportedOpError as error:
        depends_on_data = isinstance(error, DataDependentShapeError)
        if handler is None or func not in ON_HOST or depends_on_data:
            raise
        result = _host.call(func, args, kwargs)
    except TypeError as error:
        if "unexpected keyword argument" in str(error) or "positional argument" in str(error):
            if func not in ON_HOST:
                raise UnsupportedOpError(f"{name}: cannot trace this call ({error})") from error
            result = _host.call(func, args, kwargs)
        else:
            raise
    if out is None:
        return as_laid_out(func, result, (args, kwargs))
    return _writes.into(func.__name__, out, result, _CASTING_OF_OUT.get(func, "same_kind"))


_CASTING_OF_OUT = {
    np.dot: "no",
    np.argmax: "no",
    np.argmin: "no",
    np.mean: "unsafe",
    np.std: "unsafe",
}

# NumPy adds and multiplies in the dtype of the array for the result.
_IN_DTYPE_OF_OUT = (
    np.sum,
    np.prod,
    np.cumsum,
    np.cumprod,
    np.nansum,
    np.nanprod,
    np.nancumsum,
    np.nancumprod,
    np.nanmean,
    np.cumulative_sum,
    np.cumulative_prod,
)


@functools.cache
def _position_of_out(func: Callable[..., Any]) -> int:
    """Where `out` stands among a function's parameters, if it may be given by position."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except ValueError:  # a function in C without one
        return sys.maxsize
    for position, parameter in enumerate(parameters):
        if parameter.name == "out" and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            return position
        if parameter.kind is parameter.VAR_POSITIONAL:
            break
    return sys.maxsize


# Views.


def call_builder(name: str, *arguments: Any) -> Tracer:
    """The builder's method of this name on the first argument."""
    trace = require_trace()
    return make_tracer(
        trace, getattr(trace.builder, name)(trace.operand(arguments[0]), *arguments[1:])
    )


def make_view(kind: str, argument: Any, a: Any, value: Callable[[Trace], Any]) -> Tracer:
    """A view of a; `value` makes its value from a's now and checks the arguments."""
    trace = require_trace()
    if not isinstance(a, Tracer):
        return make_tracer(trace, value(trace))
    step = Step(kind, argument)
    array = a._array()
    if array is not None:
        return a._view(step, step.of_array(array).shape)
    if a._storage.scalar:
        return Tracer(trace, value(trace), scalar=False)
    now = value(trace)
    return a._view(step, tuple(now.shape), now)


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
        np.ix_,
        np.einsum,
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
        np.lib.stride_tricks.sliding_window_view,
        np.linalg.diagonal,
        np.linalg.matrix_transpose,
    ]
)

from rune_jit import index_writes as _index_writes  # noqa: E402
from rune_jit import numpy_compositions as _compositions  # noqa: E402, F401
from rune_jit import numpy_counting as _counting  # noqa: E402, F401
from rune_jit import numpy_host as _host  # noqa: E402
from rune_jit import numpy_joins as _joins  # noqa: E402, F401
from rune_jit import numpy_shapes as _shapes  # noqa: E402, F401
from rune_jit import numpy_sources as _sources  # noqa: E402, F401
from rune_jit import numpy_statistics as _statistics  # noqa: E402, F401
from rune_jit import numpy_ufuncs as _ufuncs  # noqa: E402
from rune_jit import selection as _selection  # noqa: E402
from rune_jit import writes as _writes  # noqa: E402  (these need what is above)
