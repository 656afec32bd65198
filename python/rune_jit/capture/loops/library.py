"""Functions of Python's library that a loop calls for its lists. If the loop runs apart (apart.py),
functions in Python replace them. They are traced like the user's functions:

    while heap:                              while heap:
        d, u = heapq.heappop(heap)               d, u = _rune_heappop(heap)"""

from __future__ import annotations

import ast
import copy
import heapq
import types
from collections.abc import Mapping
from typing import Any

from rune_jit.capture.algorithms import as_users
from rune_jit.capture.loops import hashing, heaps
from rune_jit.capture.loops.effects import global_value
from rune_jit.capture.loops.nodes import Transformer, at, load, path_of, walk
from rune_jit.capture.loops.unfold import ON_LISTS

# By function: the name of its replacement in loops, and the number of arguments.
_FUNCTIONS: dict[Any, tuple[str, int]] = {
    getattr(heapq, name): (ON_LISTS + name, count)
    for name, count in (
        ("heappush", 2),
        ("heappop", 1),
        ("heapify", 1),
        ("heapreplace", 2),
        ("heappushpop", 2),
    )
}
_NAMES = frozenset(f.__name__ for f in _FUNCTIONS)


def calls_of(loop: ast.stmt) -> list[ast.Call]:
    """The calls of a loop that may be of such functions, judged by the names of the functions."""
    found = []
    for x in walk(loop):
        if isinstance(x, ast.Call) and not x.keywords and x.args:
            path = path_of(x.func)
            if path and path[-1] in _NAMES and isinstance(x.args[0], ast.Name):
                found.append(x)
    return found


def names_of(
    calls: list[ast.Call], held: Mapping[str, Any], module: dict[str, Any]
) -> tuple[str | None, ...]:
    """The names of the replacements of the functions that the calls refer to; None for other
    functions. `held` are the values of local variables."""
    found: list[str | None] = []
    for x in calls:
        name, count = _FUNCTIONS.get(_value(path_of(x.func), held, module), (None, 0))
        found.append(name if len(x.args) == count else None)
    return tuple(found)


def replaced(loop: ast.stmt, calls: list[ast.Call], names: tuple[str | None, ...]) -> ast.stmt:
    """A copy of the loop in which the calls are replaced by calls of these names."""
    memo: dict[int, Any] = {}
    made = copy.deepcopy(loop, memo)
    at_calls = {id(memo[id(x)]): name for x, name in zip(calls, names, strict=True) if name}
    return _Replacer(at_calls).visit(made)  # type: ignore[no-any-return]


def functions_of(*statements: ast.stmt) -> dict[str, Any]:
    """The replacements that the statements call, by name."""
    names = {x.id for s in statements for x in walk(s) if isinstance(x, ast.Name)}
    known = as_users(heaps) | as_users(hashing)
    return {
        name: known[name.removeprefix(ON_LISTS)]
        for name in sorted(names)
        if name.startswith(ON_LISTS)
    }


def _value(path: tuple[str, ...], held: Mapping[str, Any], module: dict[str, Any]) -> Any:
    if not path or len(path) > 2:
        return None
    try:
        value = held[path[0]] if path[0] in held else global_value(module, path[0])
    except KeyError:
        return None
    if len(path) == 2:
        value = getattr(value, path[1], None) if value is heapq else None
    return value if isinstance(value, types.BuiltinFunctionType) else None


class _Replacer(Transformer):
    def __init__(self, names: dict[int, str]) -> None:
        self._names = names

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        name = self._names.get(id(node))
        return node if name is None else at(node, ast.Call(load(name), node.args, []))
