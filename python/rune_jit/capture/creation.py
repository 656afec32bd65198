"""Replacements, inside of a trace, for NumPy's functions that make arrays or ask for their memory.
They return traced arrays, which can be written to."""

from __future__ import annotations

import functools
import itertools
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.capture.names import names_of_errors
from rune_jit.capture.stand_ins import Function, Ndarray, StandIn
from rune_jit.errors import UnsupportedOpError
from rune_jit.rules import host, on_host
from rune_jit.rules.coercions import SAMPLES, as_shape, call_builder
from rune_jit.rules.indexing.selection import Selection
from rune_jit.rules.known import known, plain
from rune_jit.rules.memory import in_order
from rune_jit.rules.python_errors import assume_fits
from rune_jit.rules.table import FUNCTIONS
from rune_jit.rules.warned import warn_of_lost_part
from rune_jit.tracing.context import current_trace, require_trace
from rune_jit.tracing.rows import Run, runs_of
from rune_jit.tracing.segments import SegmentedTrace
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, contains_traced, contains_tracer


def _outside_trace() -> bool:
    return current_trace() is None


def _filled(name: str, fill: Any) -> Callable[..., Any]:
    real = getattr(np, name)

    def create(shape: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if _is_traced(shape):
            return _broadcast_full(shape, fill, float if dtype is None else dtype)
        # (np.empty gives zeros: the random contents of new memory must not become a constant.)
        make = np.zeros if name == "empty" else real
        array = make(shape, float if dtype is None else dtype, *args, **kwargs)
        if array.dtype.hasobject:
            return real(shape, dtype, *args, **kwargs)  # (for np.empty, an array of None)
        if _outside_trace() or not _core.is_supported_dtype(array.dtype):
            return array
        return known(array, array.dtype.type(fill))

    return create


def _full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **kwargs: Any) -> Any:
    if not (contains_traced(fill_value) or isinstance(fill_value, Size) or _is_traced(shape)):
        return _made(np.full)(shape, plain(fill_value), dtype, order, **kwargs)
    np.full((), 0, order=order, **kwargs)  # raises NumPy's errors
    made = _broadcast_full(shape, fill_value, dtype)
    return made.copy("F") if order in ("F", "f") and made.ndim > 1 else made


def _is_traced(shape: Any) -> bool:
    sizes = shape if isinstance(shape, (list, tuple)) else [shape]
    return any(isinstance(n, (Size, Tracer)) for n in sizes)


def _broadcast_full(shape: Any, fill_value: Any, dtype: Any) -> Tracer:
    """numpy.full of a traced value or a dynamic size."""
    trace = require_trace()
    if dtype is not None and isinstance(fill_value, Tracer):
        warn_of_lost_part(fill_value.dtype, np.dtype(dtype))
    value = trace.builder.full(as_shape(shape), trace.operand(fill_value), dtype)
    return Tracer(trace, value, scalar=False)


def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    if _is_traced(shape) and not isinstance(array, Tracer):
        return FUNCTIONS[np.broadcast_to](np.asarray(array), shape)
    return np.broadcast_to(array, shape, subok)


def _arange(*args: Any, **kwargs: Any) -> Any:
    has_size = any(isinstance(x, Size) for x in (*args, *kwargs.values()))
    if has_size or (len(args) == 1 and _is_large(args[0])):
        made = _progression(*args, **kwargs)
        if made is not None:
            return made
    return _made(np.arange)(*args, **kwargs)


def _progression(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, **others: Any
) -> Tracer | None:
    """numpy.arange between dynamic sizes. None if `step` is not 1 or -1, or if the number of
    elements may be negative (then NumPy makes an empty array)."""
    if stop is None:
        start, stop = 0, start
    are_integers = all(isinstance(x, Size) or type(x) is int for x in (start, stop))
    if others or not are_integers or type(step) is not int or abs(step) != 1:
        return None
    trace = require_trace()
    count = (stop - start) * step
    if isinstance(count, Size):
        least = trace.loops.bounds(count)[0] if trace.loops is not None else count.low
        if least < 0:
            return None
    numbers: Any = Tracer(trace, trace.iota(max(count, 0) if type(count) is int else count))
    numbers = -numbers if step < 0 else numbers
    numbers = numbers if type(start) is int and start == 0 else numbers + start
    return numbers if dtype is None else numbers.astype(dtype)  # type: ignore[no-any-return]


def _is_large(count: Any) -> bool:
    """Whether `count` integers are so many that they should not be in memory. Only for traces of
    arrays in chunks."""
    trace = current_trace()
    in_chunks = trace is not None and trace.in_chunks
    return in_chunks and type(count) is int and count > 1 << 12


def _made(real: Callable[..., Any]) -> Callable[..., Any]:
    real = Function(real, lambda x: make_array(x))

    def create(*args: Any, **kwargs: Any) -> Any:
        if contains_tracer(list(args)) or contains_traced(kwargs):
            return real(*args, **kwargs)  # (by NumPy's protocols)
        return writable(real(*args, **kwargs))

    return create


def _empty_like(*args: Any, **kwargs: Any) -> Any:
    array = np.zeros_like(*args, **kwargs)
    holds_objects = isinstance(array, np.ndarray) and array.dtype.hasobject
    return np.empty_like(*args, **kwargs) if holds_objects else array


def writable(result: Any) -> Any:
    """The arrays in a result of NumPy, as traced arrays with known values."""
    if type(result) in (list, tuple):
        return type(result)(map(writable, result))
    return known(result) if isinstance(result, np.ndarray) else result


# Functions whose results share no memory with their arguments.
_MADE = (
    "linspace logspace geomspace eye identity tri copy fromfunction indices meshgrid"
    " diag diagflat vander hanning hamming blackman bartlett kaiser"
)


# The values of numpy.array's parameter `copy`: always, if needed (None), never.
_COPY_MODES: dict[Any, bool | None] = {
    np._CopyMode.ALWAYS: True,
    np._CopyMode.IF_NEEDED: None,
    np._CopyMode.NEVER: False,
}


def make_array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: Any = "K",
    subok: Any = False,
    ndmin: int = 0,
    **kwargs: Any,
) -> Any:
    copy = _COPY_MODES.get(copy, copy)
    if _outside_trace() or kwargs:
        return np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, **kwargs)
    if isinstance(object, _core.ArrayBase):
        object = require_trace().stand_in(object)
    if not contains_tracer(object):
        result = np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)
        return result if result is object else known(result)
    if copy is False and not (
        isinstance(object, Tracer)
        and not object._storage.scalar
        and dtype in (None, object.dtype)
        and in_order(object, order) is object
    ):
        np.array(0, copy=False)  # (raises NumPy's error)
    if isinstance(object, Tracer):
        same = dtype is None or np.dtype(dtype) == object.dtype
        if object._storage.scalar:  # (the result is no Python number)
            assume_fits(require_trace(), object, np.dtype(dtype or object.dtype))
            result = call_builder("astype", object, dtype or object.dtype, scalar=False)
        else:
            result = object.astype(dtype) if not same else object.copy("K") if copy else object
    elif not contains_traced(object):
        result = known(np.array(plain(object), dtype))
    else:
        if dtype is not None:
            assume_fits(require_trace(), object, np.dtype(dtype))
        result = _stacked(require_trace(), object, dtype)
    while result.ndim < ndmin:
        result = result[None]
    return in_order(result, order)


def _stacked(trace: Trace, items: Any, dtype: Any) -> Tracer:
    """numpy.array of a nested sequence that holds traced arrays."""
    if isinstance(trace, SegmentedTrace) and len(items) > host.MOST_PARTS:
        return host.run_now(trace, np.array, (items, dtype), {})  # type: ignore[no-any-return]
    short = [x.items[0] if type(x) is Run else x for x in runs_of(items)]
    try:
        result = np.array(_stand_ins(trace, short), dtype)  # (NumPy's dtype, shape, errors)
    except ValueError:
        result = np.array(_stand_ins(trace, items), dtype)  # (errors name the number of items)
    value = _stack(trace, items, result.dtype)
    return Tracer(trace, value, scalar=False)


def _stand_ins(trace: Trace, x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_stand_ins(trace, item) for item in x]
    if not isinstance(x, Tracer):
        return x
    weak = trace.array(x).weak
    if weak is not None:
        return SAMPLES[weak]
    return np.ones((), x.dtype)[()] if x.ndim == 0 else np.broadcast_to(x.dtype.type(1), x.shape)


def _stack(trace: Trace, x: Any, dtype: np.dtype[Any]) -> Any:
    builder = trace.builder
    if isinstance(x, (list, tuple)):
        parts = runs_of(x)
        if len(parts) == len(x):
            return builder.stack([_stack(trace, item, dtype) for item in x], 0)
        values = [
            builder.astype(part.value(trace), dtype)
            if type(part) is Run
            else builder.expand_dims(_stack(trace, part, dtype), [0])
            for part in parts
        ]
        return values[0] if len(values) == 1 else builder.concatenate(values, 0, None)
    operand = trace.operand(x)
    if type(operand) in (int, float, bool, complex) or operand.weak is not None:
        return builder.full([], operand, dtype)
    return builder.astype(operand, dtype)


def _asarray(a: Any, dtype: Any = None, order: Any = None, **kwargs: Any) -> Any:
    if isinstance(a, _core.ArrayBase) and not _outside_trace():
        a = require_trace().stand_in(a)
    copy = _COPY_MODES.get(copy := kwargs.pop("copy", None), copy)
    if copy is not None:
        return make_array(a, dtype, copy=copy, order=order or "K")
    if type(a) is Selection and (order != "F" or a.ndim == 1):
        # (Selections of several axes are in C order.)
        return a if dtype is None or np.dtype(dtype) == a.full.dtype else a.astype(dtype)
    if isinstance(a, Tracer):
        if a._storage.scalar:
            return make_array(a, dtype)
        return in_order(a if dtype is None else a.astype(dtype, copy=False), order)
    if isinstance(a, np.ndarray) or _outside_trace() or kwargs:
        return np.asarray(a, dtype, order, **kwargs)
    return make_array(a, dtype, order=order)


def _asanyarray(a: Any, dtype: Any = None, order: Any = None, **kwargs: Any) -> Any:
    if isinstance(a, np.ndarray):  # (it may be a masked array)
        return np.asanyarray(a, dtype, order, **kwargs)
    return _asarray(a, dtype, order, **kwargs)


def _in_this_order(order: str) -> Callable[..., Any]:
    """numpy.ascontiguousarray or asfortranarray."""
    real = np.ascontiguousarray if order == "C" else np.asfortranarray

    def array(a: Any, dtype: Any = None, **kwargs: Any) -> Any:
        if isinstance(a, np.ndarray):
            return real(a, dtype, **kwargs)
        result = _asarray(a, dtype, order, **kwargs)
        return result if result.ndim else result[None]

    return array


def _isfortran(a: Any) -> bool:
    return _asarray(a).flags.fnc  # type: ignore[no-any-return]


class _Broadcast(StandIn):
    """The stand-in for a numpy.broadcast of traced arrays. It has their shapes, but no elements."""

    def __iter__(self) -> Any:
        raise UnsupportedOpError("numpy.broadcast: cannot trace an iteration over its elements")

    __next__ = __iter__

    @property
    def iters(self) -> Any:
        return self.__iter__()


def _broadcast(*args: Any) -> Any:
    trace = current_trace()
    if isinstance(trace, SegmentedTrace):
        return host.run_now(trace, np.broadcast, args, {})
    if not contains_tracer(args):
        return np.broadcast(*args)
    of_shapes = (np.empty(np.shape(x), bool) if contains_tracer(x) else x for x in args)
    return _Broadcast(np.broadcast(*of_shapes))


def _ndenumerate(arr: Any) -> Any:
    if isinstance(arr, Tracer) and arr._trace.is_segmented and not arr._storage.scalar:
        return zip(np.ndindex(arr.shape), arr.flat, strict=True)  # (reads all elements at once)
    return ((index, arr[index]) for index in np.ndindex(*np.shape(arr)))


def _nditer(op: Any, *args: Any, **kwargs: Any) -> Any:
    if contains_tracer(op):
        raise UnsupportedOpError("numpy.nditer: cannot trace this function")
    return np.nditer(op, *args, **kwargs)


def _of_numpys_arrays(function: Any) -> Callable[..., Any]:
    """The stand-in for a function that asks whether its argument is a numpy.ndarray, or reads the
    argument's memory."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not contains_tracer(x):
            return function(x, *args, **kwargs)
        trace = require_trace()
        if not isinstance(trace, SegmentedTrace):
            raise UnsupportedOpError(f"numpy.{function.__name__}: cannot trace this function")
        return host.run_now(trace, function, (x, *args), kwargs)

    return call


_REPORTS = ("raise", "call", "print", "log")


def refuse_reports(trace: Trace, settings: dict[str, Any]) -> None:
    """Refuses settings of np.errstate with which NumPy reports floating-point errors in another way
    than by warnings. In segments, NumPy computes the rest of the call; otherwise raises
    UnsupportedOpError."""
    for name, how in settings.items():
        if how in _REPORTS:
            refusal = (
                f"numpy.errstate: cannot trace {name}={how!r} (compiled code reports no"
                " floating-point errors)"
            )
            _leave_to_numpy(trace, refusal)


def as_it_is(trace: Any, function: types.FunctionType) -> types.FunctionType:
    """A function that runs in segments and is not copied. If it uses np.errstate, for instance, it
    calls NumPy's own, so NumPy computes the rest of the call."""
    for name in names_of_errors(function.__code__):
        trace.give_up(f"{name}: cannot trace it in a function that assigns globals")
    return function


def _leave_to_numpy(trace: Trace, refusal: str) -> None:
    if isinstance(trace, SegmentedTrace):
        trace.give_up(refusal)
    else:
        raise UnsupportedOpError(refusal)


def _noticing(name: str) -> Any:
    """The stand-in for a function of `warnings` after which code may notice NumPy's warnings."""
    real = getattr(warnings, name)

    @functools.wraps(real)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        action = kwargs.get("action", args[0] if args else None)
        if not _outside_trace() and (action == "error" or kwargs.get("record")):
            how = "record=True" if kwargs.get("record") else "action='error'"
            refusal = f"warnings.{name}: cannot trace {how} (compiled code gives no warnings)"
            _leave_to_numpy(require_trace(), refusal)
        return real(*args, **kwargs)

    return stand_in


# The functions of `warnings`, and their stand-ins.
OF_WARNINGS = [
    (getattr(warnings, name), _noticing(name))
    for name in ("catch_warnings", "filterwarnings", "simplefilter")
]


def _errstate(**kwargs: Any) -> Any:
    if not _outside_trace():
        refuse_reports(require_trace(), kwargs)
    return np.errstate(**kwargs)


def _seterr(*args: Any, **kwargs: Any) -> Any:
    if not _outside_trace():
        names = ("all", "divide", "over", "under", "invalid")
        refuse_reports(require_trace(), {**dict(zip(names, args, strict=False)), **kwargs})
    return np.seterr(*args, **kwargs)


def _fromiter(iter: Any, dtype: Any, count: int = -1, **kwargs: Any) -> Any:
    if _outside_trace():
        return np.fromiter(iter, dtype, count, **kwargs)
    items = list(iter if count < 0 else itertools.islice(iter, count))
    if contains_traced(items):
        return make_array(items, dtype)
    return writable(np.fromiter(map(plain, items), dtype, count, **kwargs))


def _frombuffer(buffer: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(buffer, Tracer):  # (the result shares memory with it)
        return np.frombuffer(buffer.__array__(), *args, **kwargs)
    return writable(np.frombuffer(buffer, *args, **kwargs))


def _asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    if not contains_traced(a):
        return writable(np.asarray_chkfinite(plain(a), dtype, order))
    array, trace = _asarray(a, dtype, order), require_trace()
    if array.dtype.kind in "fc":
        finite = trace.operand(np.all(np.isfinite(array)))
        trace.must_be_equal(finite, True, "array must not contain infs or NaNs")
    return array


def _vectorize(*args: Any, **kwargs: Any) -> Any:
    return on_host.Vectorized(np.vectorize(*args, **kwargs))


REPLACED: dict[str, Any] = {
    "fromiter": _fromiter,
    "frombuffer": _frombuffer,
    "vectorize": _vectorize,
    "ndenumerate": _ndenumerate,
    "nditer": _nditer,
    **{name: _of_numpys_arrays(getattr(np, name)) for name in ("bmat", "from_dlpack")},
    "errstate": _errstate,
    "seterr": _seterr,
    "isfortran": _isfortran,
    "broadcast": _broadcast,
    "ndarray": Ndarray(_filled("empty", 0)),
    "zeros": _filled("zeros", 0),
    "empty": _filled("empty", 0),
    "ones": _filled("ones", 1),
    "full": _full,
    "array": make_array,
    "asarray": _asarray,
    "asanyarray": _asanyarray,
    "asarray_chkfinite": _asarray_chkfinite,
    "ascontiguousarray": _in_this_order("C"),
    "asfortranarray": _in_this_order("F"),
    "arange": _arange,
    "broadcast_to": _broadcast_to,
    **{name: _made(getattr(np, name)) for name in _MADE.split()},
    "empty_like": _made(_empty_like),
    **{name: _made(getattr(np, name)) for name in ("zeros_like", "ones_like", "full_like")},
}


for _name, _stand_in in REPLACED.items():
    if isinstance(_stand_in, types.FunctionType):
        REPLACED[_name] = host.or_numpy(_stand_in, host.given(getattr(np, _name)))
