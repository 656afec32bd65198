"""Replaces calls of methods in a loop by the methods' statements (attributes.py)."""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rune_jit.capture.loops.aliases import NEW_METHODS
from rune_jit.capture.loops.liveness import loaded, stored
from rune_jit.capture.loops.members import member
from rune_jit.capture.loops.nodes import (
    OWN_SCOPES,
    SCOPES,
    Transformer,
    assign,
    at,
    blocks_of,
    copied,
    path_of,
    walk,
)
from rune_jit.capture.loops.pure import BUILTINS, WRITING_FUNCTIONS, is_pure
from rune_jit.capture.loops.scopes import body_of
from rune_jit.capture.loops.structures import class_of
from rune_jit.capture.objects import is_library
from rune_jit.capture.shim import original
from rune_jit.trees import attribute

_DEEPEST = 4  # methods that call methods
_MOST_CALLS = 50
_REFUSED = (*SCOPES, *OWN_SCOPES, ast.Global, ast.Nonlocal, ast.Try, ast.Import, ast.ImportFrom)
_NEW_METHODS = frozenset(NEW_METHODS.split())  # methods of arrays that only return new values
# Expressions whose parts Python may not evaluate, or evaluates several times.
_NOT_ONCE = (ast.BoolOp, ast.IfExp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Refused(Exception):
    """A method cannot be part of the loop."""


# The functions that a loop with the statements of its methods depends on: for each, a class and the
# name of a method, or a module's variables and the name of one.
Functions = dict[tuple[int, str], tuple[Any, str, Any]]


def are_as_before(functions: Functions) -> bool:
    """Whether classes and modules still have these functions."""
    return all(_function(of, name) is function for of, name, function in functions.values())


def with_methods(
    loop: ast.stmt, objects: Mapping[str, Any], module: dict[str, Any], code: types.CodeType
) -> tuple[ast.stmt, Functions] | None:
    """The loop with the statements of the methods of `objects` that it calls, and the functions
    that this depends on. None if a method cannot be part of the loop. The methods must be functions
    of `module` in the file of the loop's code, and return at their end only. Python must evaluate
    their calls once, before the statement changes anything."""
    inliner = _Inliner(objects, module, code)
    try:
        made = inliner.statement(loop, 0)
    except _Refused:
        return None
    return (made[0], inliner.functions) if len(made) == 1 else None


def has_own(x: Any, name: str) -> bool:
    """Whether an object has an attribute of its own. (The trace's copies of objects hold copies of
    their class's methods.)"""
    if name not in vars(x):
        return False
    held, function = vars(x)[name], member(class_of(x), name)
    if type(held) is not types.MethodType or type(function) is not types.FunctionType:
        return True
    places = [(f.__code__.co_filename, f.__code__.co_firstlineno) for f in (held, function)]
    return held.__self__ is not x or places[0] != places[1]


def _function(of: Any, name: str) -> Any:
    return of.get(name) if isinstance(of, dict) else original(member(of, name))


class _Inliner:
    def __init__(
        self, objects: Mapping[str, Any], module: dict[str, Any], code: types.CodeType
    ) -> None:
        self._objects, self._module, self._filename = objects, module, code.co_filename
        # Variables of the loop's function, which a global name of a method must not become.
        self._local = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
        self._count = 0
        self.functions: Functions = {}

    def _known(self, of: Any, name: str) -> Any:
        function = _function(of, name)
        self.functions[id(of), name] = of, name, function
        return function

    def block(self, statements: list[ast.stmt], depth: int) -> list[ast.stmt]:
        return [x for s in statements for x in self.statement(s, depth)]

    def statement(self, s: ast.stmt, depth: int) -> list[ast.stmt]:
        """The statement, after the statements of the methods that it calls."""
        before: list[ast.stmt] = []
        for block in blocks_of(s):
            block[:] = self.block(block, depth)
        for field, value in ast.iter_fields(s):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                continue
            for x in value if isinstance(value, list) else [value]:
                if not isinstance(x, ast.AST) or not self._calls(x):
                    continue
                if isinstance(s, (ast.While, ast.With, ast.Match)) or not isinstance(x, ast.expr):
                    raise _Refused
                self._check_place(s, x)
                made = _Calls(self, before, depth).visit(x)
                if isinstance(value, list):
                    value[value.index(x)] = made
                else:
                    setattr(s, field, made)
        if before and isinstance(s, ast.Expr) and isinstance(s.value, (ast.Constant, ast.Name)):
            return before
        return [*before, s]

    def _calls(self, x: ast.AST) -> bool:
        """Whether an expression calls a method."""
        return any(self.method(y) is not None for y in walk(x))

    def method(self, x: ast.AST) -> types.FunctionType | None:
        """The method of an object that a call calls. Raises _Refused for other members of the
        class."""
        if not isinstance(x, ast.Call) or not isinstance(x.func, ast.Attribute):
            return None
        of = x.func.value
        if not isinstance(of, ast.Name) or of.id not in self._objects:
            return None
        held = self._objects[of.id]
        if has_own(held, x.func.attr):
            return None
        found = self._known(class_of(held), x.func.attr)
        if type(found) is not types.FunctionType:
            raise _Refused
        return found

    def _check_place(self, s: ast.stmt, x: ast.expr) -> None:
        """Raises _Refused unless the calls of methods in an expression of a statement may run
        before the rest of the statement."""
        if any(isinstance(y, _NOT_ONCE) and self._calls(y) for y in walk(x)):
            raise _Refused
        if isinstance(s, (ast.Assign, ast.Expr)) and self.method(x) is not None:
            arguments = [*x.args, *(y.value for y in x.keywords)]  # type: ignore[attr-defined]
            if not any(map(self._calls, arguments)):
                return
        if self._changes(x.args if _is_append(s, x) else [x], (), None, 0):  # type: ignore[attr-defined]
            raise _Refused

    def _changes(self, nodes: list[Any], parameters: Sequence[str], held: Any, depth: int) -> bool:
        """Whether statements or an expression may change more than variables. If they are the body
        of a method, its first parameter is the object `held`."""
        own = _own_variables(nodes) - {*parameters}
        for x in (y for s in nodes for y in walk(s)):
            if isinstance(x, ast.Attribute) and not isinstance(x.ctx, ast.Load):
                return True
            written: ast.AST | None = x.target if isinstance(x, ast.AugAssign) else x
            if isinstance(written, ast.Subscript) and not isinstance(written.ctx, ast.Load):
                written = written.value
            elif written is x:
                written = None
            if written is not None and getattr(written, "id", None) not in own:
                return True
            if isinstance(x, (ast.Delete, ast.Raise, ast.Assert)):
                return True
            if isinstance(x, ast.Call) and self._call_changes(x, parameters, held, depth):
                return True
        return False

    def _call_changes(self, x: ast.Call, parameters: Sequence[str], held: Any, depth: int) -> bool:
        if any(y.arg in ("out", None) for y in x.keywords) or depth > _DEEPEST:
            return True
        path = path_of(x.func)
        if not path:
            return not (isinstance(x.func, ast.Attribute) and x.func.attr in _NEW_METHODS)
        is_held = held is not None and path[0] == parameters[0]
        of = held if is_held else self._objects.get(path[0])
        if of is not None and len(path) == 2 and not has_own(of, path[1]):
            function = self._known(class_of(of), path[1])
        elif of is None and path[0] in self._module:
            function = self._known(self._module, path[0])
            for name in path[1:]:
                function = getattr(function, name, None)
        elif len(path) == 1:
            return path[0] not in BUILTINS
        else:
            for name in path[1:-1] if of is not None else ():
                of = member(of, name) if attribute(of, "__dict__") is not None else None
            return attribute(of, "__dict__") is not None or path[-1] not in _NEW_METHODS
        if isinstance(function, np.ufunc) and len(x.args) > function.nin:
            return True
        if type(function) is not types.FunctionType or is_library(function.__module__):
            writes = "random" in path or path[-1] in WRITING_FUNCTIONS
            return writes or not is_pure(function)
        body = body_of(function)
        if body is None or not self._is_of_module(function):
            return True
        code = function.__code__
        if of is not None and not code.co_argcount:
            return True
        return self._changes(body, code.co_varnames[: code.co_argcount], of, depth + 1)

    def statements_of(self, call: ast.Call, depth: int) -> tuple[list[ast.stmt], ast.expr]:
        """The statements of the method that a call calls, and the expression that it returns."""
        function = self.method(call)
        assert function is not None and isinstance(call.func, ast.Attribute)
        self._count += 1
        if depth >= _DEEPEST or self._count > _MOST_CALLS:
            raise _Refused
        code = function.__code__
        body = body_of(function)
        if body is None or not self._is_of_module(function) or code.co_filename != self._filename:
            raise _Refused
        if code.co_freevars or code.co_kwonlyargcount or not code.co_argcount:
            raise _Refused
        body = copied(body)
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        nodes = [x for s in body for x in walk(s)]
        last = body[-1] if body and isinstance(body[-1], ast.Return) else None
        returns = [x for x in nodes if isinstance(x, ast.Return)]
        if any(isinstance(x, _REFUSED) for x in nodes) or returns != ([last] if last else []):
            raise _Refused
        of = call.func.value.id  # type: ignore[attr-defined]
        parameters = code.co_varnames[: code.co_argcount]
        if parameters[0] in stored(body):
            raise _Refused
        prefix = f"{code.co_name}.{self._count}"
        own = {x: f"{prefix}.{x}" for x in (*parameters[1:], *stored(body))}
        if not self._local.isdisjoint(loaded(body) - own.keys() - {parameters[0]}):
            raise _Refused
        names = _Names({**own, parameters[0]: of})
        made = [
            at(call, assign(own[name], value))
            for name, value in self._bound(function, parameters[1:], call).items()
        ]
        made += self.block([names.visit(s) for s in body[: -1 if last else None]], depth + 1)
        if last is None or last.value is None:
            return made, at(call, ast.Constant(None))
        value = names.visit(last.value)
        if self._calls(value):
            self._check_place(ast.Expr(value), value)
            value = _Calls(self, made, depth + 1).visit(value)
        return made, value

    def _is_of_module(self, function: types.FunctionType) -> bool:
        return getattr(function.__globals__, "real", function.__globals__) is self._module

    def _bound(
        self, function: types.FunctionType, names: tuple[str, ...], call: ast.Call
    ) -> dict[str, ast.expr]:
        """The arguments of a call by the names of the parameters, in the order of evaluation."""
        if len(call.args) > len(names) or any(isinstance(x, ast.Starred) for x in call.args):
            raise _Refused
        bound = dict(zip(names, call.args, strict=False))
        for keyword in call.keywords:
            if keyword.arg not in names or keyword.arg in bound:
                raise _Refused
            bound[keyword.arg] = keyword.value
        defaults = function.__defaults__ or ()
        for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True):
            if name not in bound:
                if not isinstance(value, (bool, int, float, str, type(None))):
                    raise _Refused
                bound[name] = ast.Constant(value)
        if len(bound) < len(names):
            raise _Refused
        return bound


class _Calls(Transformer):
    """Replaces calls of methods in an expression by what they return. Puts their statements into
    `before`."""

    def __init__(self, inliner: _Inliner, before: list[ast.stmt], depth: int) -> None:
        self._inliner, self._before, self._depth = inliner, before, depth

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)  # (arguments are evaluated first)
        if self._inliner.method(node) is None:
            return node
        statements, value = self._inliner.statements_of(node, self._depth)
        self._before += statements
        return value


class _Names(Transformer):
    """Renames variables."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> Any:
        return ast.copy_location(ast.Name(self._names.get(node.id, node.id), node.ctx), node)


def _is_append(s: ast.stmt, x: ast.expr) -> bool:
    """Whether an expression is a statement that appends to a list."""
    if not isinstance(s, ast.Expr) or not isinstance(x, ast.Call) or x.keywords:
        return False
    return isinstance(x.func, ast.Attribute) and x.func.attr == "append"


def _own_variables(nodes: list[Any]) -> set[str]:
    """The variables of a function to which it assigns only constants and results of operators, so
    that they hold numbers and new arrays."""
    own: set[str] = set()
    others: set[str] = set()
    for x in (y for s in nodes for y in walk(s)):
        if isinstance(x, ast.Assign):
            is_new = isinstance(x.value, (ast.Constant, ast.BinOp, ast.UnaryOp))
            for target in x.targets:
                names = stored([target])
                (own if is_new and isinstance(target, ast.Name) else others).update(names)
        elif isinstance(x, (ast.For, ast.AnnAssign)):
            others |= stored([x.target])
        elif isinstance(x, ast.withitem) and x.optional_vars is not None:
            others |= stored([x.optional_vars])
    return own - others
