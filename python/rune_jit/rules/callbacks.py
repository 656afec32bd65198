"""Finds out whether functions of the user's that NumPy calls, such as numpy.vectorize's, may have
effects or may not end. A program calls such functions on the host, and its trace calls them with
other values."""

from __future__ import annotations

import collections
import dis
import functools
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from rune_jit.containers import PLAIN
from rune_jit.methods import ArrayMethods
from rune_jit.tracing.context import is_library_file, is_own
from rune_jit.trees import OF_GENERATORS, package_of

_ASSIGNING = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_WRITING = frozenset({"STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"})
_READING = frozenset({"count", "index", "copy", "get", "keys", "values", "items"})
# Methods of Python's containers that change them.
_CHANGING = frozenset(
    name
    for kind in (list, dict, set, collections.deque, bytearray)
    for name in dir(kind)
    if name[0] != "_" and name not in _READING and not hasattr(str, name)
) | {"popped", "put", "extended"}  # (and what the code of a trace calls: `.popped`)
# Builtins, and functions of modules, that have effects, and iterators without an end.
_EFFECTS = frozenset(
    {
        *("print", "input", "open", "exec", "eval", "breakpoint", "system", "putenv"),
        *("setattr", "delattr", "next", "count", "cycle"),
        # What the code of a trace calls around such statements: `.while`.
        *("while", "apart", "prints", "reports"),
    }
)
# Modules whose functions have effects.
_OUTSIDE = frozenset({"logging", "shutil", "socket", "subprocess"})


class _Code:
    """What the code of a function, and of the functions in it, does."""

    def __init__(self, code: types.CodeType) -> None:
        codes = [*_all_codes(code)]
        by_code = [[*dis.get_instructions(inner)] for inner in codes]
        found = [x for instructions in by_code for x in instructions]
        operations = {x.opname for x in found}
        # (The code of a trace calls `.append` in place of the method `append`.)
        self.names = frozenset(name.lstrip(".") for inner in codes for name in inner.co_names)
        self.writes = not operations.isdisjoint(_WRITING) or not self.names.isdisjoint(_CHANGING)
        cells = {x.argval for x in found if x.opname in ("STORE_DEREF", "DELETE_DEREF")}
        assigns = not (operations.isdisjoint(_ASSIGNING) and cells.isdisjoint(code.co_freevars))
        self.acts = (
            assigns or not self.names.isdisjoint(_EFFECTS) or any(map(_has_while_loop, by_code))
        )


def _has_while_loop(instructions: Sequence[dis.Instruction]) -> bool:
    """Whether a jump leads back to another place than the next item of an iterator."""
    places = {}
    operation = ""
    for x in reversed(instructions):
        operation = operation if x.opname == "EXTENDED_ARG" else x.opname
        places[x.offset] = operation
    return any(
        x.opcode in _JUMPS and x.argval <= x.offset and places[x.argval] not in ("FOR_ITER", "SEND")
        for x in instructions
    )


_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


_of = functools.cache(_Code)


def _all_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            yield from _all_codes(x)


def may_have_effects(x: Any, seen: set[int] | None = None) -> bool:
    """Whether a call of x may change an object that exists before, draw random numbers, write a
    text, or take without end with other values than those that the program has for it."""
    seen = set() if seen is None else seen
    if isinstance(x, np.vectorize):
        return may_have_effects(x.pyfunc, seen)
    if isinstance(x, functools.partial):
        held = [*x.args, *x.keywords.values()]
        if any(isinstance(item, _FUNCTIONS) and may_have_effects(item, seen) for item in held):
            return True
        is_plain = not _is_users(x.func) or PLAIN.issuperset(map(type, held))
        return not is_plain or may_have_effects(x.func, seen)
    function: Any = x.__func__ if isinstance(x, types.MethodType) else x
    if not isinstance(function, types.FunctionType) or id(function) in seen:
        return isinstance(x, types.BuiltinMethodType) and _is_of_object(x)
    seen.add(id(function))
    if not _is_users(function):
        return False
    code = _of(function.__code__)
    if code.acts:
        return True
    held = [x.__self__] if function is not x else []
    held += [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
    held += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    held += [dict.get(function.__globals__, name) for name in code.names]
    return any(_may_change(item, code, seen) for item in held)


def _is_users(function: Any) -> bool:
    """Whether a function is the user's: written in Python, and not part of an installed package."""
    code = getattr(function, "__code__", None)
    if code is None:
        return isinstance(function, functools.partial) and _is_users(function.func)
    file = code.co_filename
    return not (is_own(file) or is_library_file(file) or "-packages" in file)


def _may_change(x: Any, code: _Code, seen: set[int]) -> bool:
    """Whether code that refers to x may change it."""
    kind = type(x)
    if kind in PLAIN or isinstance(x, (type, np.generic, np.dtype)):
        return False
    if isinstance(x, types.ModuleType):
        return x.__name__ in _OUTSIDE
    if isinstance(x, (*_FUNCTIONS, np.vectorize)):
        return may_have_effects(x, seen)
    if kind.__module__ in OF_GENERATORS or hasattr(kind, "__next__"):
        return True
    if package_of(kind) in ("numpy", "rune_jit"):
        return code.writes if isinstance(x, (np.ndarray, ArrayMethods)) else not callable(x)
    methods = (getattr(kind, name, None) for name in code.names)
    found = (types.MethodType(f, x) for f in methods if isinstance(f, types.FunctionType))
    return code.writes or any(not _is_users(f) or may_have_effects(f, seen) for f in found)


_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)


def _is_of_object(x: Callable[..., Any]) -> bool:
    """Whether a function in C is a method of an object, such as `items.append`."""
    held = (types.ModuleType, type(None), type, np.ufunc)
    return not isinstance(getattr(x, "__self__", None), held)
