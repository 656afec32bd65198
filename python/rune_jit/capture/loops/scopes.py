"""The functions and modules that names in code stand for, and the source of functions that the code
calls."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any

from rune_jit.capture.loops.definitions import UNREADABLE, definition_of, lambda_of
from rune_jit.capture.loops.effects import global_value
from rune_jit.capture.shim import ModuleView

DEEPEST = 4  # how deeply calls of functions are followed

Find = Callable[[str], Any]  # the value of a name; raises KeyError
# The values of the names that code has read, by the place where a name is found, and the name. The
# place is None for the loop itself.
Reads = dict[tuple[Find | None, str], Any]


class Scope:
    """Finds the values of names in code, and records them in `reads`, under `place`. `depth` is the
    number of calls that lead to the code."""

    def __init__(self, find: Find, reads: Reads, place: Find | None, depth: int = 0) -> None:
        self._find, self.reads, self._place, self.depth = find, reads, place, depth

    def __call__(self, name: str) -> Any:
        value = self.reads[self._place, name] = _found(self._find, name)
        return value

    def within(self, function: types.FunctionType) -> Scope:
        """The scope of the code of a function that this code calls."""
        code = function.__code__
        closure = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))

        def find(name: str) -> Any:
            if name in closure:
                if closure[name] == types.CellType():
                    raise KeyError(name)
                return closure[name].cell_contents
            if name in code.co_varnames or name in code.co_cellvars:
                raise KeyError(name)
            return global_value(function.__globals__, name)

        return Scope(find, self.reads, find, self.depth + 1)


def are_as_read(reads: Reads, find: Find) -> bool:
    """Whether the names that were read have the same values as before (`_are_alike`)."""
    return all(_are_alike(_found(of or find, name), x) for (of, name), x in reads.items())


def _found(find: Find, name: str) -> Any:
    try:
        return find(name)
    except KeyError:
        return None


def _are_alike(a: Any, b: Any, outer: tuple[tuple[Any, Any], ...] = ()) -> bool:
    """Whether two values are the same function or module, or both are data of one class. `outer`
    are the pairs of functions in whose variables the values have been found."""
    if a is b or any(a is x and b is y for x, y in outer):
        return True
    if not isinstance(a, types.FunctionType) or not isinstance(b, types.FunctionType):
        callables = (types.ModuleType, ModuleView, types.FunctionType)
        return type(a) is type(b) and not callable(a) and not isinstance(a, callables)
    if a.__code__ is not b.__code__ or a.__globals__ is not b.__globals__:
        return False
    empty, pairs = types.CellType(), zip(a.__closure__ or (), b.__closure__ or (), strict=True)
    return all(
        x == y
        if empty in (x, y)
        else _are_alike(x.cell_contents, y.cell_contents, (*outer, (a, b)))
        for x, y in pairs
    )


def body_of(function: types.FunctionType) -> list[Any] | None:
    """The statements of a function; for a lambda, a return of its expression. None if they are not
    known, or if the function takes any number of arguments."""
    code = function.__code__
    try:
        is_lambda = code.co_name == "<lambda>"
        definition = lambda_of(function) if is_lambda else definition_of(function)
    except UNREADABLE:
        return None
    if definition is None or code.co_flags & 12:  # *args, **kwargs
        return None
    return definition.body if isinstance(definition.body, list) else [ast.Return(definition.body)]
