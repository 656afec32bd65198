"""NumPy as a traced function sees it: creation functions return traced arrays, which can be
written.

The traced function runs with a copy of its globals and closure cells (rebinder.py). These
functions replace the numpy module and its functions there, so other threads see no change."""

from __future__ import annotations

import functools
import itertools
import os
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.errors import UnsupportedOpError
from rune_jit.rules import host
from rune_jit.rules.coercions import SAMPLES, as_shape
from rune_jit.rules.known import known, plain
from rune_jit.rules.table import FUNCTIONS
from rune_jit.tracing.context import current_trace, require_trace
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
        # np.empty gives zeros: whatever is in fresh memory must not become a constant.
        make = np.zeros if name == "empty" else real
        array = make(shape, float if dtype is None else dtype, *args, **kwargs)
        if _outside_trace() or not _core.is_supported_dtype(array.dtype):
            return array
        return known(array, array.dtype.type(fill))

    return create


def _full(shape: Any, fill_value: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    if contains_traced(fill_value) or isinstance(fill_value, Size) or _is_traced(shape):
        return _broadcast_full(shape, fill_value, dtype)
    return _made(np.full)(shape, plain(fill_value), dtype, *args, **kwargs)


def _is_traced(shape: Any) -> bool:
    sizes = shape if isinstance(shape, (list, tuple)) else [shape]
    return any(isinstance(n, (Size, Tracer)) for n in sizes)


def _broadcast_full(shape: Any, fill_value: Any, dtype: Any) -> Tracer:
    """numpy.full of a traced value or a dynamic size."""
    trace = require_trace()
    value = trace.builder.full(as_shape(shape), trace.operand(fill_value), dtype)
    return Tracer(trace, value, scalar=False)


def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    if _is_traced(shape) and not isinstance(array, Tracer):
        return FUNCTIONS[np.broadcast_to](np.asarray(array), shape)
    return np.broadcast_to(array, shape, subok)


def _arange(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and isinstance(args[0], Size) and set(kwargs) <= {"dtype"}:
        trace = require_trace()
        numbers = Tracer(trace, trace.iota(args[0]))
        dtype = kwargs.get("dtype")
        return numbers if dtype is None else numbers.astype(dtype)
    return _made(np.arange)(*args, **kwargs)


def _made(real: Callable[..., Any]) -> Callable[..., Any]:
    def create(*args: Any, **kwargs: Any) -> Any:
        if contains_tracer(list(args)) or contains_traced(kwargs):
            return real(*args, **kwargs)  # NumPy's protocols
        return writable(real(*args, **kwargs))

    return create


def writable(result: Any) -> Any:
    """Arrays that NumPy made, as traced arrays whose values are known."""
    if type(result) in (list, tuple):
        return type(result)(map(writable, result))
    return known(result) if isinstance(result, np.ndarray) else result


# Functions whose results are arrays of their own.
_MADE = (
    "linspace logspace geomspace eye identity tri copy frombuffer fromfunction indices meshgrid"
    " diag diagflat vander hanning hamming blackman bartlett kaiser"
)


# What numpy.array's `copy` means.
_COPY_MODES: dict[Any, bool | None] = {
    np._CopyMode.ALWAYS: True,
    np._CopyMode.IF_NEEDED: None,
    np._CopyMode.NEVER: False,
}


def _array(
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
    if isinstance(object, Tracer):
        same = dtype is None or np.dtype(dtype) == object.dtype
        result = object if same else object.astype(dtype)
        if same and (copy or object._storage.scalar):
            result = object.copy()
            result._storage.scalar = False
    elif not contains_traced(object):
        result = known(np.array(plain(object), dtype))
    else:
        result = _stacked(require_trace(), object, dtype)
    while result.ndim < ndmin:
        result = result[None]
    return result


def _stacked(trace: Trace, items: Any, dtype: Any) -> Tracer:
    """numpy.array of a nested sequence that holds traced arrays."""
    result = np.array(_stand_ins(trace, items), dtype)  # NumPy's dtype, shape and errors
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
        return builder.stack([_stack(trace, item, dtype) for item in x], 0)
    operand = trace.operand(x)
    if type(operand) in (int, float, bool) or operand.weak is not None:
        return builder.full([], operand, dtype)
    return builder.astype(operand, dtype)


def _asarray(a: Any, dtype: Any = None, order: Any = None, **kwargs: Any) -> Any:
    if isinstance(a, _core.ArrayBase) and not _outside_trace():
        a = require_trace().stand_in(a)
    if _COPY_MODES.get(copy := kwargs.pop("copy", None), copy):
        return _array(a, dtype)
    if isinstance(a, Tracer):
        if a._storage.scalar:
            return _array(a, dtype)
        return a if dtype is None else a.astype(dtype, copy=False)
    if isinstance(a, np.ndarray) or _outside_trace() or kwargs:
        return np.asarray(a, dtype, order, **kwargs)
    return _array(a, dtype)


def _ascontiguousarray(a: Any, dtype: Any = None, **kwargs: Any) -> Any:
    if isinstance(a, np.ndarray):
        return np.ascontiguousarray(a, dtype, **kwargs)
    result = _asarray(a, dtype, **kwargs)
    if isinstance(result, Tracer) and result._steps:
        return result.copy()
    return result


class _NdarrayMeta(type):
    """Makes the class below stand for numpy.ndarray: traced arrays are instances, and calls make
    traced arrays."""

    def __call__(cls, shape: Any, dtype: Any = float, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            return np.ndarray(shape, dtype, *args, **kwargs)
        return REPLACED["empty"](shape, dtype)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, np.ndarray) or (isinstance(x, Tracer) and not x._storage.scalar)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, np.ndarray)

    def __getattr__(cls, name: str) -> Any:
        return getattr(np.ndarray, name)


class _Ndarray(metaclass=_NdarrayMeta):
    pass


def _broadcast(*args: Any) -> Any:
    """numpy.broadcast, which takes no traced arrays: its shapes."""
    return np.broadcast(*(np.empty(np.shape(x), bool) if contains_tracer(x) else x for x in args))


def _ndenumerate(arr: Any) -> Any:
    return ((index, arr[index]) for index in np.ndindex(*np.shape(arr)))


def _of_plain(name: str) -> Callable[..., Any]:
    """Stands for a function that asks arrays for their memory."""

    def function(a: Any, *args: Any, **kwargs: Any) -> Any:
        if contains_tracer(a):
            raise UnsupportedOpError(f"numpy.{name}: cannot trace this function")
        return getattr(np, name)(a, *args, **kwargs)

    return function


def _fromiter(iter: Any, dtype: Any, count: int = -1, **kwargs: Any) -> Any:
    if _outside_trace():
        return np.fromiter(iter, dtype, count, **kwargs)
    items = list(iter if count < 0 else itertools.islice(iter, count))
    if contains_traced(items):
        return _array(items, dtype)
    return writable(np.fromiter(map(plain, items), dtype, count, **kwargs))


def _asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    if not isinstance(a, Tracer) or not contains_traced(a):
        return writable(np.asarray_chkfinite(plain(a), dtype, order))
    array, trace = _asarray(a, dtype, order), require_trace()
    if array.dtype.kind == "f":
        finite = trace.operand(np.all(np.isfinite(array)))
        trace.must_be_equal(finite, True, "array must not contain infs or NaNs")
    return array


def _vectorize(*args: Any, **kwargs: Any) -> Any:
    return host.Vectorized(np.vectorize(*args, **kwargs))


REPLACED: dict[str, Any] = {
    "fromiter": _fromiter,
    "vectorize": _vectorize,
    "ndenumerate": _ndenumerate,
    **{name: _of_plain(name) for name in ("nditer", "asfortranarray", "require", "isfortran")},
    "broadcast": _broadcast,
    "ndarray": _Ndarray,
    "zeros": _filled("zeros", 0),
    "empty": _filled("empty", 0),
    "ones": _filled("ones", 1),
    "full": _full,
    "array": _array,
    "asarray": _asarray,
    "asanyarray": _asarray,
    "asarray_chkfinite": _asarray_chkfinite,
    "ascontiguousarray": _ascontiguousarray,
    "arange": _arange,
    "broadcast_to": _broadcast_to,
    **{name: _made(getattr(np, name)) for name in _MADE.split()},
    "empty_like": _made(np.zeros_like),
    **{name: _made(getattr(np, name)) for name in ("zeros_like", "ones_like", "full_like")},
}


class _Shim(types.ModuleType):
    """Stands for the numpy module inside a trace."""

    def __getattr__(self, name: str) -> Any:
        return _random() if name == "random" else getattr(np, name)

    def __dir__(self) -> list[str]:
        return dir(np)


SHIM = _Shim("numpy")


def replace(name: str, stand_in: Any) -> None:
    """Makes something else stand for what NumPy has under a name."""
    REPLACED[name] = SHIM.__dict__[name] = stand_in


for _name, _stand_in in list(REPLACED.items()):
    replace(_name, _stand_in)


def _refusing(function: Any, name: str) -> Callable[..., Any]:
    """Stands for a function whose result differs from call to call, or that other threads run."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        seeded = any(seed is not None for seed in (*args, *kwargs.values()))
        if _outside_trace() or (seeded and name.startswith("numpy")):
            return function(*args, **kwargs)
        raise UnsupportedOpError(
            f"{name}: cannot trace this function (it would run once, not at each call)\n"
            "hint: call it outside, and pass its result as an argument"
        )

    return refuse


_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")


@functools.cache
def _impure() -> dict[int, Callable[..., Any]]:
    """By id, what stands for functions whose results differ from call to call."""
    names = [f"{name}{unit}" for name in _CLOCKS for unit in ("", "_ns")]
    functions = [
        *((f"time.{name}", getattr(time, name)) for name in names),
        ("threading.Thread", threading.Thread),
        ("os.urandom", os.urandom),
        ("input", input),
        ("numpy.random.default_rng", np.random.default_rng),
    ]
    return {id(function): _refusing(function, name) for name, function in functions}


@functools.cache
def replacements() -> dict[int, Any]:
    """By id, what stands for a function inside a trace. (NumPy loads numpy.random now.)"""
    by_id = {id(getattr(np, name)): function for name, function in REPLACED.items()}
    return by_id | _impure()


class ModuleView(types.ModuleType):
    """Stands for a module inside a trace: its attributes are as the traced function sees them."""

    def __init__(
        self,
        module: types.ModuleType,
        read: Callable[[str], Any],
        assign: Callable[[str, Any], None] | None = None,
    ) -> None:
        super().__init__(module.__name__, module.__doc__)
        object.__setattr__(self, "_module", module)
        object.__setattr__(self, "_read", read)
        object.__setattr__(self, "_assign", assign or functools.partial(setattr, module))

    def __getattr__(self, name: str) -> Any:
        return self._read(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._assign(name, value)

    def __dir__(self) -> list[str]:
        return dir(self._module)


@functools.cache
def _random() -> ModuleView:
    """Stands for numpy.random."""

    def read(name: str) -> Any:
        value = getattr(np.random, name)
        return _impure().get(id(value), value)

    return ModuleView(np.random, read)
