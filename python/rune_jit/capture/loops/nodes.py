"""Makes, copies and walks nodes of syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

_Node = TypeVar("_Node", bound=ast.AST)
_Tree = TypeVar("_Tree")


class _Children(dict[type[ast.AST], tuple[str, ...]]):
    """By class: the fields of a node that may hold nodes, without the context (`ast.Load` and the
    like)."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        others = ("ctx", "id", "attr", "arg", "name", "kind", "type_comment")
        found = () if kind is ast.Constant else kind._fields
        self[kind] = found = tuple(x for x in found if x not in others)
        return found


_CHILDREN = _Children()


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes in a node, but for its context."""
    found: list[ast.AST] = []
    for field in _CHILDREN[type(node)]:
        value = getattr(node, field, None)
        if type(value) is list:
            found += [x for x in value if isinstance(x, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all nodes in it, outer ones first, without contexts. Trees are walked often, and
    `ast.walk` takes three times as long."""
    found = [node]
    for x in found:
        found += children(x)
        yield x


class Visitor:
    """Like ast.NodeVisitor, which takes twice as long. Does not visit contexts."""

    _methods: dict[type[ast.AST], Any]  # by class of a node

    def __init_subclass__(cls) -> None:
        cls._methods = {}

    def visit(self, node: Any) -> Any:
        kind = type(node)
        if kind not in self._methods:
            method = getattr(type(self), f"visit_{kind.__name__}", type(self).generic_visit)
            self._methods[kind] = method
        return self._methods[kind](self, node)

    def generic_visit(self, node: Any) -> Any:
        for field in _CHILDREN[type(node)]:
            value = getattr(node, field, None)
            for x in value if type(value) is list else (value,):
                if isinstance(x, ast.AST):
                    self.visit(x)


class Transformer(Visitor):
    """Like ast.NodeTransformer, which takes twice as long."""

    def generic_visit(self, node: Any) -> Any:
        for field in _CHILDREN[type(node)]:
            value = getattr(node, field, None)
            if type(value) is list:
                made: list[Any] = []
                for x in value:
                    new = self.visit(x) if isinstance(x, ast.AST) else x
                    if type(new) is list:
                        made += new
                    elif new is not None or x is None:
                        made.append(new)
                value[:] = made
            elif isinstance(value, ast.AST):
                new = self.visit(value)
                if new is not value:
                    setattr(node, field, new)
        return node


def copied(x: _Tree) -> _Tree:
    """A deep copy of a node or of a list of nodes. `copy.deepcopy` takes five times as long."""
    made: Any = x
    if isinstance(x, list):
        made = [copied(y) for y in x]
    elif isinstance(x, ast.AST) and not isinstance(x, ast.expr_context):
        made = type(x)()
        for name, value in vars(x).items():
            setattr(made, name, copied(value))
    return made  # type: ignore[no-any-return]


SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def blocks_of(s: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of a statement, with those of its handlers and cases."""
    for _, value in ast.iter_fields(s):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, (ast.ExceptHandler, ast.match_case)):
                    yield item.body


def within(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements and all statements in them, without those in functions and classes."""
    for s in body:
        yield s
        if not isinstance(s, SCOPES):
            for block in blocks_of(s):
                yield from within(block)


def path_of(x: ast.AST) -> tuple[str, ...]:
    """The names in `a.b.c`; () for other expressions."""
    names: list[str] = []
    while isinstance(x, ast.Attribute):
        names.append(x.attr)
        x = x.value
    return (x.id, *reversed(names)) if isinstance(x, ast.Name) else ()


def is_new(x: ast.expr) -> bool:
    """Whether an expression surely yields a number or an array that no name stands for."""
    return isinstance(x, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant))


def load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def attribute(name: str, of: str) -> ast.expr:
    """The expression `of.name`."""
    return ast.Attribute(load(of), name, ast.Load())


def assign(target: str | tuple[str, ...], value: ast.expr) -> ast.stmt:
    """An assignment to a name, or to a tuple of names."""
    if isinstance(target, str):
        return ast.Assign([store(target)], value)
    return ast.Assign([ast.Tuple([store(name) for name in target], ast.Store())], value)


def call(function: str | tuple[str, str], *arguments: ast.expr) -> ast.expr:
    """A call of a name, or of a method of a name."""
    called = load(function) if isinstance(function, str) else attribute(function[1], function[0])
    return ast.Call(called, list(arguments), [])


def at(place: ast.AST, made: _Node) -> _Node:
    """Gives a new statement or expression the place in the source of another one. Returns it."""
    for x in walk(made):
        if "lineno" in x._attributes and not hasattr(x, "lineno"):
            ast.copy_location(x, place)
    return made


def assigned(s: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The pairs of a target and its value in an assignment, as far as the source tells them."""
    for target in s.targets:
        yield from _pairs(target, s.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    displays = (ast.Tuple, ast.List)
    are_displays = isinstance(target, displays) and isinstance(value, displays)
    if are_displays and len(target.elts) == len(value.elts):  # type: ignore[attr-defined]
        for x, y in zip(target.elts, value.elts, strict=True):  # type: ignore[attr-defined]
            yield from _pairs(x, y)
    else:
        yield target, value


# Expressions with a scope or an effect of their own.
OWN_SCOPES = (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def targets_of(x: ast.ListComp) -> list[ast.Name | ast.Tuple] | None:
    """The targets of a comprehension, and the names and tuples in them. None if it is asynchronous
    or has other targets."""
    targets = [y for g in x.generators for y in walk(g.target)]
    known = [y for y in targets if isinstance(y, (ast.Name, ast.Tuple))]
    is_async = any(g.is_async for g in x.generators)
    return None if is_async or len(known) < len(targets) else known


def stores(x: ast.AST, targets: Iterable[ast.AST]) -> bool:
    """Whether a node assigns a name that is one of the targets."""
    names = {y.id for y in targets if isinstance(y, ast.Name)}
    return isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store) and x.id in names
