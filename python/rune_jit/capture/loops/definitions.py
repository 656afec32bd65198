"""The definitions of functions and lambdas, from their source."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import tokenize
import types
from typing import Any

from rune_jit.capture.loops.code_objects import compiled, is_same, parsed
from rune_jit.capture.loops.nodes import walk

# The errors of reading the source of a function that has none.
UNREADABLE = (OSError, SyntaxError, ValueError, IndexError, RecursionError, tokenize.TokenError)


def definition_of(function: types.FunctionType) -> ast.FunctionDef | None:
    """The definition from which Python has made a function's code. None if the source gives other
    code."""
    code = function.__code__
    linecache.checkcache(code.co_filename)  # (the file may have been edited)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    tree = _parse(inspect.getblock(lines[code.co_firstlineno - 1 :]), code)
    if tree is None or not is_same(code, compiled(tree, code, function.__qualname__)):
        return None
    return tree


def _parse(block: list[str], code: types.CodeType) -> ast.FunctionDef | None:
    """A function's definition, with its line numbers in the file. None if the block has another
    definition."""
    indented = block[0][:1] in (" ", "\t")
    text = ("if 1:\n" if indented else "") + "".join(block)
    body: Any = parsed(text).body
    if indented:
        body = body[0].body
    definition = body[0]
    if not isinstance(definition, ast.FunctionDef) or definition.name != code.co_name:
        return None
    ast.increment_lineno(definition, code.co_firstlineno - 1 - indented)
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
