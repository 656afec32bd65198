"""The definitions of functions and lambdas, from their source."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import linecache
import tokenize
import types
from collections.abc import Iterator
from typing import Any

from rune_jit.capture.loops.code_objects import compiled, is_same, parsed
from rune_jit.capture.loops.nodes import walk
from rune_jit.capture.names import all_codes

# The errors of reading the source of a function that has none.
UNREADABLE = (OSError, SyntaxError, ValueError, IndexError, RecursionError, tokenize.TokenError)


# The definitions that have been found: by code, their source.
_found: dict[types.CodeType, str] = {}


def definition_of(function: types.FunctionType) -> ast.FunctionDef | None:
    """The definition from which Python has made a function's code, with the names that the code
    has. None if the source gives other code."""
    code = function.__code__
    if code in _found:
        return _with_private_names(_parse(_found[code], code), function.__qualname__)
    linecache.checkcache(code.co_filename)  # (the file may have been edited)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    for text in _texts(lines[code.co_firstlineno - 1 :], code):
        with contextlib.suppress(SyntaxError):
            tree = _parse(text, code)
            if tree is not None and is_same(code, compiled(tree, code, function.__qualname__)):
                _found[code] = text
                return _with_private_names(tree, function.__qualname__)
    return None


def _with_private_names(tree: ast.FunctionDef | None, qualname: str) -> ast.FunctionDef | None:
    """The definition of a method, in which names that begin with two underscores also have the name
    of the class, as in Python's code. So a part of it may be compiled outside of the class."""
    kind = "".join(qualname.split(".")[-2:-1]).lstrip("_")
    if tree is None or not kind.isidentifier():
        return tree
    waiting: list[ast.AST] = [tree]
    while waiting:
        x = waiting.pop()
        for field in _NAMED.get(type(x).__name__, ()):
            name = getattr(x, field)
            setattr(x, field, _private(name, kind) if isinstance(name, str) else name)
        if isinstance(x, (ast.Global, ast.Nonlocal)):
            x.names = [_private(name, kind) for name in x.names]
        # (Names in a class within the method have the name of that class.)
        waiting += (y for y in ast.iter_child_nodes(x) if not isinstance(y, ast.ClassDef))
    return tree


# The fields of syntax trees that name variables and attributes.
_NAMED = {
    "Name": ("id",),
    "Attribute": ("attr",),
    "arg": ("arg",),
    "ExceptHandler": ("name",),
    "MatchAs": ("name",),
    "MatchStar": ("name",),
}


def _private(name: str, kind: str) -> str:
    is_private = name[:2] == "__" and name[-2:] != "__"
    return f"_{kind}{name}" if is_private else name


def _texts(lines: list[str], code: types.CodeType) -> Iterator[str]:
    """The source of a function, if its file has not been edited: the lines to the last one that has
    code, or else, if Python needs more lines, the whole block."""
    last = max(line for x in all_codes(code) for line in _last_lines(x))
    yield "".join(lines[: last - code.co_firstlineno + 1])
    yield "".join(inspect.getblock(lines))


def _last_lines(code: types.CodeType) -> Iterator[int]:
    """Lines of code that include the last one."""
    if hasattr(code, "co_positions"):  # (without ends under `python -X no_debug_ranges`)
        return (end or line for line, end, *_ in code.co_positions() if line is not None)
    return (line for *_, line in code.co_lines() if line is not None)


def _indented(text: str) -> str:
    return "if 1:\n" + text if text[:1] in (" ", "\t") else text


def _parse(text: str, code: types.CodeType) -> ast.FunctionDef | None:
    """A function's definition, with its line numbers in the file. None if the text has another
    definition."""
    is_indented = text[:1] in (" ", "\t")
    before = "\n" * (code.co_firstlineno - 1 - is_indented)
    body: Any = parsed(before + _indented(text)).body
    definition = body[0].body[0] if is_indented else body[0]
    if not isinstance(definition, ast.FunctionDef) or definition.name != code.co_name:
        return None
    return definition


def lambda_of(function: types.FunctionType) -> ast.Lambda | None:
    """The lambda expression in a lambda's file that gives its code. None if there is none."""
    code = function.__code__
    tree = _module(code.co_filename, "".join(linecache.getlines(code.co_filename)))
    for x in walk(tree):
        if isinstance(x, ast.Lambda) and x.lineno == code.co_firstlineno:
            definition = ast.copy_location(ast.Expr(x), x)
            if is_same(code, compiled(definition, code, function.__qualname__)):
                return x
    return None


@functools.lru_cache(maxsize=32)
def _module(filename: str, text: str) -> ast.Module:
    return parsed(text, filename)
