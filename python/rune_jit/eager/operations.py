"""NumPy's functions on rune_jit.Arrays outside of traces.

Each call runs as a compiled program of one operation. This module keeps a jitted function for
each NumPy function and its constants; `jit` keeps its programs by shapes and dtypes. NumPy
itself computes views, on the same memory, and functions that cannot be traced."""

from __future__ import annotations

import functools
import operator as op
from collections.abc import Callable
from typing import Any

import numpy as np
import optree

from rune_jit import trees
from rune_jit.arrays.array import Array
from rune_jit.arrays.conversion import call_numpy, to_numpy, wrap
from rune_jit.arrays.memory import from_numpy, to_host
from rune_jit.calls.jit import jit
from rune_jit.errors import ConcretizationError
from rune_jit.rules.table import VIEWS
from rune_jit.tracing.context import current_trace

# Programs of one operation that are kept.
_MOST_PROGRAMS = 4096

# Whose Python numbers are arguments of the program, not constants of it.
_ELEMENTWISE = frozenset(
    getattr(op, f"__{name}__")
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor"),
        *("lshift", "rshift", "lt", "le", "gt", "ge", "eq", "ne"),
    )
)

_NUMBERS = (int, float, np.generic)

# What NumPy does from dtypes and shapes alone, or about the memory.
_WITHOUT_ELEMENTS = {
    np.result_type,
    np.can_cast,
    np.iscomplexobj,
    np.isrealobj,
    np.may_share_memory,
    np.shares_memory,
}
# What NumPy does without computing, where it can address the memory.
_WITHOUT_PROGRAM = VIEWS | {np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.copy}

# Programs found by function and types of arguments, all of which are the program's.
_of_arguments: dict[tuple[Any, ...], Callable[..., Any]] = {}


class _Constant(trees.Keyed):
    """A constant of a program. Constants are told apart by their bits."""

    def __init__(self, value: Any) -> None:
        self.value, self.key = value, trees.static_key(value)


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """function(*args, **kwargs), some of which are Arrays; as part of the trace, if one runs."""
    trace = current_trace()
    if trace is not None:

        def stand_in(x: Any) -> Any:
            return trace.stand_in(x) if isinstance(x, Array) else x

        both: Any = (tuple(args), kwargs)
        both = optree.tree_map(stand_in, both, none_is_leaf=True)
        return function(*both[0], **both[1])
    types = (function, *map(type, args))
    program = None if kwargs else _of_arguments.get(types)
    arguments = list(args)
    if program is None:
        on_device = any(map(_is_on_device, args))
        if function in _WITHOUT_ELEMENTS or (function in _WITHOUT_PROGRAM and not on_device):
            return _on_views(function, args, kwargs)
        elementwise = isinstance(function, np.ufunc) or function in _ELEMENTWISE
        numbers = [id(x) for x in args if elementwise and isinstance(x, _NUMBERS)]
        both = (tuple(args), kwargs)
        leaves, structure = optree.tree_flatten(both, none_is_leaf=True)
        arguments = [x for x in leaves if type(x) in (Array, np.ndarray) or id(x) in numbers]
        given = set(map(id, arguments))
        try:
            constants = tuple(None if id(x) in given else _Constant(x) for x in leaves)
            program = _program(function, structure, constants)
        except TypeError:  # a constant that cannot be hashed
            return call_numpy(function, args, kwargs)
        if not kwargs and len(arguments) == len(args) and all(map(op.is_, arguments, args)):
            _of_arguments[types] = program
    try:
        return program(*arguments)
    except ConcretizationError:
        return call_numpy(function, args, kwargs)


def _is_on_device(x: Any) -> bool:
    """Whether x is an Array whose memory NumPy cannot address."""
    return type(x) is Array and type(x._memory) is not np.ndarray


@functools.lru_cache(maxsize=_MOST_PROGRAMS)
def _program(
    function: Callable[..., Any], structure: Any, constants: tuple[_Constant | None, ...]
) -> Callable[..., Any]:
    def operation(*arguments: Any) -> Any:
        supply = iter(arguments)
        leaves = [next(supply) if c is None else c.value for c in constants]
        args, kwargs = optree.tree_unflatten(structure, leaves)
        return function(*args, **kwargs)

    operation.__name__ = getattr(function, "__name__", type(function).__name__)
    return jit(operation, fallback="silent")


def _on_views(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """function(*args, **kwargs) by NumPy, which neither writes to the arrays nor needs copies."""
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
    return from_numpy(np.asarray(to_host(x)[to_numpy(index)]), x.device)


def _is_integer_array(item: Any) -> bool:
    if isinstance(item, (Array, np.ndarray)):
        return item.ndim > 0 and item.dtype.kind in "iu"
    return False
