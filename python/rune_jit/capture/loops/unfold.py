"""Expressions that may need both of their sides, or what is known only when the program runs, as
statements and calls that loops of the program know."""

from __future__ import annotations

import ast
import copy
from typing import Any

# The functions of numbers whose calls are replaced.
CONVERSIONS = frozenset(("int", "float"))


class Unfolder(ast.NodeTransformer):
    """Makes `a if test else b` in a statement an `if` statement with two sides before it, unless
    something is called first; and calls of int and float, and `in`, calls of what stands for
    them."""

    def __init__(self) -> None:
        self._choices = 0

    def _visit_statement(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(node.value, ast.IfExp) and isinstance(node, (ast.Assign, ast.Return)):
            if isinstance(node, ast.Return):
                return self._sides(node, node.value, ast.Return)
            if len(node.targets) == 1:
                return self._sides(node, node.value, lambda v: ast.Assign(node.targets, v))
        before: list[ast.stmt] = []
        while choice := _first_choice(node):
            name = f".choice{self._choices}"
            self._choices += 1

            def assign(value: ast.expr, name: str = name) -> ast.stmt:
                return ast.Assign([ast.Name(name, ast.Store())], value)

            before.append(self._sides(node, choice, assign))
            _Replacer(choice, ast.copy_location(ast.Name(name, ast.Load()), choice)).visit(node)
        return [*before, node] if before else node

    visit_Assign = visit_AugAssign = visit_Return = visit_Expr = _visit_statement

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """int(x) and float(x) are traced."""
        self.generic_visit(node)
        is_number = isinstance(node.func, ast.Name) and node.func.id in CONVERSIONS
        is_plain = len(node.args) == 1 and not isinstance(node.args[0], ast.Starred)
        if not is_number or not is_plain or node.keywords:
            return node
        return at(node, call(".convert", node.func, *node.args))  # type: ignore[no-any-return]

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """`x in items` is traced in loops."""
        self.generic_visit(node)
        if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.In, ast.NotIn)):
            return node
        is_in = ast.Constant(isinstance(node.ops[0], ast.In))
        return at(node, call(".in", node.left, node.comparators[0], is_in))  # type: ignore[no-any-return]

    def _sides(self, node: ast.stmt, choice: ast.IfExp, make: Any) -> ast.stmt:
        sides = []
        for value in (choice.body, choice.orelse):
            made = at(node, make(copy.deepcopy(value)))
            visited = self._visit_statement(made)
            sides.append(visited if isinstance(visited, list) else [visited])
        return ast.copy_location(ast.If(choice.test, *sides), node)


class _Replacer(ast.NodeTransformer):
    """Puts an expression in the place of another one."""

    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self._old, self._new = old, new

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if node is self._old:
            return self._new
        self.generic_visit(node)
        return node


def _first_choice(x: ast.AST) -> ast.IfExp | None:
    """The `a if test else b` in a statement before which nothing is called; a statement's targets
    are evaluated first."""

    def find(x: ast.AST) -> Any:
        """An IfExp, False if something may be called first, or None."""
        if isinstance(x, ast.IfExp):
            return x
        is_chain = isinstance(x, ast.Compare) and len(x.ops) > 1
        if is_chain or isinstance(x, _EVALUATED_IN_PART):
            inner = any(isinstance(y, (ast.IfExp, ast.Call, ast.NamedExpr)) for y in ast.walk(x))
            return False if inner else None
        for child in ast.iter_child_nodes(x):
            found = find(child)
            if found is not None:
                return found
        return False if isinstance(x, (ast.Call, ast.Await, ast.Yield, ast.YieldFrom)) else None

    return find(x) or None


_EVALUATED_IN_PART = (
    *(ast.Lambda, ast.BoolOp, ast.NamedExpr, ast.Dict, ast.JoinedStr),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


def call(function: str | tuple[str, str], *arguments: ast.expr) -> ast.expr:
    """A call of a name, or of a method of one."""
    called: ast.expr = ast.Name(function if isinstance(function, str) else function[0], ast.Load())
    if not isinstance(function, str):
        called = ast.Attribute(called, function[1], ast.Load())
    return ast.Call(called, list(arguments), [])


def at(place: ast.AST, made: Any) -> Any:
    """A statement or expression that has been made, at the place of another."""
    for x in ast.walk(made):
        if "lineno" in x._attributes and not hasattr(x, "lineno"):
            ast.copy_location(x, place)
    return made
