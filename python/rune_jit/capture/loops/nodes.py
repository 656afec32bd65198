"""Nodes of syntax trees: those that are made, and what assignments say."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all nodes in it, outer ones first, but for those that say only whether a name is
    loaded or stored. Trees are walked often, and `ast.walk` takes twice as long."""
    found = [node]
    for x in found:
        for field in x._fields:
            if field == "ctx":
                continue
            value = getattr(x, field, None)
            if isinstance(value, list):
                found += [y for y in value if isinstance(y, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
        yield x


def load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def call(function: str | tuple[str, str], *arguments: ast.expr) -> ast.expr:
    """A call of a name, or of a method of one."""
    called: ast.expr = load(function if isinstance(function, str) else function[0])
    if not isinstance(function, str):
        called = ast.Attribute(called, function[1], ast.Load())
    return ast.Call(called, list(arguments), [])


def at(place: ast.AST, made: Any) -> Any:
    """A statement or expression that has been made, at the place of another."""
    for x in ast.walk(made):
        if "lineno" in x._attributes and not hasattr(x, "lineno"):
            ast.copy_location(x, place)
    return made


def assigned(s: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets with their values, as far as the source tells."""
    for target in s.targets:
        if isinstance(target, ast.Tuple) and isinstance(s.value, ast.Tuple):
            yield from zip(target.elts, s.value.elts, strict=False)
        else:
            yield target, s.value
