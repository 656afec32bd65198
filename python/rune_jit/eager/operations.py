"""NumPy's functions on rune_jit.Arrays outside of traces.

Each call runs as a compiled program of one operation. This module keeps a jitted function for each
NumPy function with its constants. `jit` keeps its programs by shapes and dtypes. NumPy itself
computes views, which share memory, and functions that cannot be traced."""

from __future__ import annotations

import functools
import operator as op
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rune_jit.arrays.array import Array
from rune_jit.arrays.conversion import call_numpy, to_numpy, wrap
from rune_jit.arrays.memory import from_numpy, to_host
from rune_jit.arrays.views import note_view
from rune_jit.calls.jit import jit
from rune_jit.containers import replaced
from rune_jit.eager.views import VIEWS_BY_LAYOUT, note_views
from rune_jit.errors import ConcretizationError
from rune_jit.rules.table import VIEWS
from rune_jit.tracing.context import current_trace

# The most jitted functions that are kept.
_MOST_PROGRAMS = 4096

# Functions whose Python numbers are arguments of the program, not constants.
_ELEMENTWISE = frozenset(
    getattr(op, f"__{name}__")
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor"),
        *("lshift", "rshift", "lt", "le", "gt", "ge", "eq", "ne"),
        *("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "iand", "ior", "ixor"),
        *("ilshift", "irshift"),
    )
)

# Functions that depend only on dtypes, shapes or memory layout, for NumPy.
_WITHOUT_ELEMENTS = {
    np.result_type,
    np.can_cast,
    np.iscomplexobj,
    np.isrealobj,
    np.may_share_memory,
    np.shares_memory,
}
# Functions that compute nothing, for NumPy if it can address the memory.
_WITHOUT_PROGRAM = VIEWS | {np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.copy}

# Programs by function and types of arguments, for calls whose arguments are all arguments of the
# program.
_of_leaves: dict[tuple[Any, ...], Callable[..., Any]] = {}


class _Leaf:
    """Marks the place of a program's argument among a function's arguments."""


def _take_apart(x: Any, leaves: list[Any], numbers: bool) -> Any:
    """A hashable key, from which `_restore` makes x again. Appends the arrays in x to `leaves`, and
    with `numbers` also a number. Constants with different bits have different keys."""
    kind = type(x)
    if kind is Array or kind is np.ndarray:
        leaves.append(x)
        return _Leaf
    if numbers and (kind is float or kind is int or isinstance(x, np.generic)):
        leaves.append(x)
        return _Leaf
    if kind is float or kind is complex:
        return (kind, np.complex128(x).tobytes())
    if isinstance(x, np.generic):
        return (np.generic, x.dtype, x.tobytes())
    if kind is tuple or kind is list:
        return (kind, *[_take_apart(item, leaves, False) for item in x])
    if kind is slice:
        return (slice, *[_take_apart(i, leaves, False) for i in (x.start, x.stop, x.step)])
    return (None, kind, x)


def _restore(key: Any, leaves: Iterator[Any]) -> Any:
    if key is _Leaf:
        return next(leaves)
    kind, *rest = key
    if kind is None:
        return rest[1]
    if kind is np.generic:
        return np.frombuffer(rest[1], rest[0])[0]
    if kind is float or kind is complex:
        number = np.frombuffer(rest[0], np.complex128)[0]
        return complex(number) if kind is complex else float(number.real)
    items = [_restore(item, leaves) for item in rest]
    return slice(*items) if kind is slice else kind(items)


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls function(*args, **kwargs) with Arrays among the arguments. If a trace is active, the
    call becomes part of it."""
    trace = current_trace()
    if trace is not None:

        def stand_in(x: Any) -> Any:
            return trace.stand_in(x) if isinstance(x, Array) else x

        both: Any = (tuple(args), kwargs)
        both = replaced(both, stand_in)
        return function(*both[0], **both[1])
    is_view = function in VIEWS_BY_LAYOUT and any(_is_on_device(x) for x in args)
    result = _call(function, args, kwargs)
    if is_view:
        note_views(function, args, kwargs, result)
    return result


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls function(*args, **kwargs) outside of traces."""
    types = (function, *map(type, args))
    program = None if kwargs else _of_leaves.get(types)
    leaves: list[Any] = []
    if program is not None:
        leaves.extend(args)
    elif function in _WITHOUT_ELEMENTS or (
        function in _WITHOUT_PROGRAM and not any(_is_on_device(x) for x in args)
    ):
        return _on_views(function, args, kwargs)
    else:
        numbers = isinstance(function, np.ufunc) or function in _ELEMENTWISE
        args_key = tuple(_take_apart(x, leaves, numbers) for x in args)
        names = tuple(kwargs)
        kwargs_key = tuple(_take_apart(x, leaves, False) for x in kwargs.values())
        try:
            program = _program(function, args_key, names, kwargs_key)
        except TypeError:  # a constant that cannot be hashed
            return call_numpy(function, args, kwargs)
        if not names and all(key is _Leaf for key in args_key):
            _of_leaves[types] = program
    try:
        return program(*leaves)
    except ConcretizationError:
        return call_numpy(function, args, kwargs)


def _is_on_device(x: Any) -> bool:
    """Whether x is an Array whose memory NumPy cannot address."""
    return type(x) is Array and type(x._memory) is not np.ndarray


@functools.lru_cache(maxsize=_MOST_PROGRAMS)
def _program(
    function: Callable[..., Any], args_key: Any, names: tuple[str, ...], kwargs_key: Any
) -> Callable[..., Any]:
    def operation(*leaves: Any) -> Any:
        supply = iter(leaves)
        args = [_restore(key, supply) for key in args_key]
        values = [_restore(key, supply) for key in kwargs_key]
        return function(*args, **dict(zip(names, values, strict=True)))

    operation.__name__ = getattr(function, "__name__", type(function).__name__)
    return jit(operation, fallback="silent")


def _on_views(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Lets NumPy call function(*args, **kwargs), which does not write to the arrays and needs no
    copies."""
    plain_args, plain_kwargs = to_numpy((tuple(args), kwargs))
    result = function(*plain_args, **plain_kwargs)
    device = next((x.device for x in args if type(x) is Array), None)
    if type(result) is np.ndarray:
        return from_numpy(result, device)
    return wrap(result, device)


# Indexing.


def getitem(x: Array, index: Any) -> Any:
    """x[index]."""
    items = index if isinstance(index, tuple) else (index,)
    if current_trace() is not None or any(_is_integer_array(item) for item in items):
        return call(op.getitem, (x, index), {})
    host, plain = to_host(x), to_numpy(index)
    part = host[plain]
    result = from_numpy(np.asarray(part), x.device)
    if _is_on_device(x) and isinstance(part, np.ndarray) and np.may_share_memory(part, host):
        note_view(x, result, lambda array: array[plain])
    return result


def _is_integer_array(item: Any) -> bool:
    if isinstance(item, (Array, np.ndarray)):
        return item.ndim > 0 and item.dtype.kind in "iu"
    return False
