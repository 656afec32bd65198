"""Redirects calls (callees.py) in the code of functions without loops."""

from __future__ import annotations

import ast
import contextlib
import types
from typing import Any

from rune_jit.capture.loops.callees import Callees, asked, has_to_ask, modules_of
from rune_jit.capture.loops.code_objects import compiled
from rune_jit.capture.loops.definitions import UNREADABLE, definition_of, lambda_of
from rune_jit.capture.loops.nodes import copied
from rune_jit.capture.names import all_codes

_asks: dict[types.CodeType, types.CodeType] = {}
_originals: dict[types.CodeType, types.CodeType] = {}  # by such code: the code it was made from

# By code, of functions and of inner functions, in which loops or calls are rewritten: the code of
# the source.
_own: dict[types.CodeType, types.CodeType] = {}


def asking(function: types.FunctionType) -> types.CodeType:
    """The code of a function without loops, with its calls redirected. Its own code if that is not
    necessary or not possible."""
    code = made = function.__code__
    if code not in _asks:
        with contextlib.suppress(*UNREADABLE):
            if not has_to_ask(function):
                pass
            elif code.co_name == "<lambda>":
                made = _lambda(function)
            elif (tree := definition_of(function)) is not None:
                made = with_callees(tree, code, function.__qualname__, callees_of(function))
        _asks[code] = made
        if made is not code:
            _originals.update(zip(all_codes(made), all_codes(code), strict=False))
    return _asks[code]


def original(function: types.FunctionType) -> types.FunctionType:
    """The function with its own code, if its calls are redirected; else the function itself."""
    code = _originals.get(function.__code__)
    if code is None:
        return function
    name, closure = function.__name__, function.__closure__
    made = types.FunctionType(code, function.__globals__, name, None, closure)
    made.__qualname__ = function.__qualname__
    return made


def own_code(function: types.FunctionType) -> tuple[types.CodeType, tuple[Any, ...] | None]:
    """The code that a function has in the source, and the cells for it. The function's present code
    and cells if that code is not known, or uses other variables of outer functions."""
    code, cells = function.__code__, function.__closure__ or ()
    found = dict(zip(code.co_freevars, cells, strict=True))
    own = _own.get(code, code)
    if found.keys() >= set(own.co_freevars):
        code, cells = own, tuple(found[name] for name in own.co_freevars)
    return code, cells or None


def callees_of(function: types.FunctionType) -> Callees:
    return Callees(modules_of(function.__globals__))


def with_callees(
    tree: ast.FunctionDef, code: types.CodeType, qualname: str, callees: Callees
) -> types.CodeType:
    """The code of a definition, with its calls redirected."""
    tree.body = [callees.visit(s) for s in tree.body]
    return _compiled(tree, code, qualname)


def _compiled(tree: ast.stmt, code: types.CodeType, qualname: str) -> types.CodeType:
    """The code of a definition whose calls have been rewritten. `code` itself if the new code would
    use other variables of outer functions."""
    made = asked(compiled(ast.fix_missing_locations(tree), code, qualname))
    if made.co_freevars != code.co_freevars:
        return code
    own: dict[Any, list[types.CodeType]] = {}
    for x in all_codes(code):
        own.setdefault((x.co_name, x.co_firstlineno), []).append(x)
    for x in all_codes(made):
        same = own.get((x.co_name, x.co_firstlineno), ())
        if len(same) == 1:
            _own[x] = same[0]
    return made


def _lambda(function: types.FunctionType) -> types.CodeType:
    """The code of a lambda, with its calls redirected."""
    code = function.__code__
    x = lambda_of(function)
    if x is None:
        return code
    x = copied(x)
    x.body = callees_of(function).visit(x.body)
    return _compiled(ast.copy_location(ast.Expr(x), x), code, function.__qualname__)
