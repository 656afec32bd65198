"""The source of lambdas, and their code that asks for what it calls."""

from __future__ import annotations

import ast
import copy
import functools
import linecache
import types

from rune_jit.capture.loops.callees import Callees, asked, calls_others, modules_of
from rune_jit.capture.loops.code_objects import compiled, is_same, parsed


def lambda_of(function: types.FunctionType) -> ast.Lambda | None:
    """The expression of a lambda's file that has its code."""
    code = function.__code__
    tree = _module(code.co_filename, "".join(linecache.getlines(code.co_filename)))
    for x in ast.walk(tree):
        if isinstance(x, ast.Lambda) and x.lineno == code.co_firstlineno:
            definition = ast.copy_location(ast.Expr(x), x)
            if is_same(code, compiled(definition, code, function.__qualname__)):
                return x
    return None


@functools.lru_cache(maxsize=32)
def _module(filename: str, text: str) -> ast.Module:
    return parsed(text, filename)


def lambda_with_callees(function: types.FunctionType) -> types.CodeType:
    """The code of a lambda that asks for what it calls."""
    code = function.__code__
    x = lambda_of(function) if calls_others(function) else None
    if x is None:
        return code
    x = copy.deepcopy(x)
    x.body = Callees(modules_of(function.__globals__)).visit(x.body)
    definition = ast.fix_missing_locations(ast.copy_location(ast.Expr(x), x))
    made = asked(compiled(definition, code, function.__qualname__))
    return made if made.co_freevars == code.co_freevars else code
