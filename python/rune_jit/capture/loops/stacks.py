"""Stacks and queues: growing lists of numbers that a loop both reads and changes. In a loop that
runs apart (apart.py), arrays represent such a list (reading.py). The loop's operations on the list
become calls:

    while stack:                        while .length(stack) > 0:
        v = stack.pop()                     v = .popped(stack, True)
        if not seen[v]:                     if not seen[v]:
            stack.append(near[v])               stack.append(near[v])
"""

from __future__ import annotations

import ast
from typing import Any

from rune_jit.capture.loops.nodes import Transformer, Visitor, at, call, walk
from rune_jit.capture.loops.unfold import ITEM, LENGTH, ON_LISTS, POPPED, PUT, is_append


def stacks_of(loop: ast.stmt) -> dict[str, int]:
    """The names of the stacks and queues of a loop. The values are the sizes of an item: the length
    of a tuple, or 0 for a number."""
    uses = Operations()
    uses.visit(loop)
    nodes = [x for x in walk(loop) if isinstance(x, ast.Name)]
    others = {x.id for x in nodes if id(x) not in uses.known}
    return {
        name: uses.sizes.get(name, 0)
        for name in uses.changed
        if name in uses.read and name not in others
    }


# The expressions that may stand in the index of an assigned item (`_place_of`).
_SIMPLE = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp)


class Operations(Visitor):
    """The operations of statements on lists, without those in inner functions."""

    def __init__(self) -> None:
        self.known: set[int] = set()  # ids of the `ast.Name` nodes in operations that are known
        self.changed: set[str] = set()
        self.read: set[str] = set()
        self.sizes: dict[str, int] = {}

    def _note(self, x: ast.AST, names: set[str]) -> None:
        if isinstance(x, ast.Name):
            self.known.add(id(x))
            names.add(x.id)

    def _pass_over(self, node: Any) -> None:
        pass

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _pass_over

    def visit_Expr(self, node: ast.Expr) -> None:
        x = node.value
        if isinstance(x, ast.Call) and is_append(x):
            assert isinstance(x.func, ast.Attribute)
            self._note(x.func.value, self.changed)
            if isinstance(x.func.value, ast.Name) and isinstance(x.args[0], ast.Tuple):
                self.sizes[x.func.value.id] = len(x.args[0].elts)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if _is_pop(node) is not None:
            assert isinstance(node.func, ast.Attribute)
            self._note(node.func.value, self.changed)
            self._note(node.func.value, self.read)
        elif _is_length(node):
            self._note(node.args[0], self.read)
        elif is_on_list(node):
            self._note(node.args[0], self.changed)
            self._note(node.args[0], self.read)
            if isinstance(node.args[-1], ast.Tuple):
                self.sizes[node.args[0].id] = len(node.args[-1].elts)  # type: ignore[attr-defined]
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.slice, (ast.Slice, ast.Tuple)) and isinstance(node.ctx, ast.Load):
            self._note(node.value, self.read)
        self.generic_visit(node)

    def visit_Assign(self, node: Any) -> None:
        if (place := _place_of(node)) is not None:
            self._note(place.value, self.read)
        self.generic_visit(node)

    visit_AugAssign = visit_Assign

    def _visit_test(self, node: Any) -> None:
        for x in _truths(node.test):
            self._note(x, self.read)
        self.generic_visit(node)

    visit_If = visit_While = visit_IfExp = visit_Assert = _visit_test

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            for x in _truths(node.operand):
                self._note(x, self.read)
        self.generic_visit(node)


def _truths(x: ast.expr) -> list[ast.Name]:
    """The names whose truth value a condition needs."""
    if isinstance(x, ast.Name):
        return [x]
    if isinstance(x, ast.BoolOp):
        return [y for value in x.values for y in _truths(value)]
    return _truths(x.operand) if isinstance(x, ast.UnaryOp) and isinstance(x.op, ast.Not) else []


def _is_pop(x: ast.Call) -> bool | None:
    """True if a call removes the last item of a list, False if it removes the first one, None if it
    is another call."""
    if not isinstance(x.func, ast.Attribute) or not isinstance(x.func.value, ast.Name):
        return None
    if x.keywords or x.func.attr not in ("pop", "popleft"):
        return None
    if not x.args:
        return x.func.attr == "pop"
    is_first = isinstance(x.args[0], ast.Constant) and x.args[0].value == 0
    is_pop = x.func.attr == "pop" and len(x.args) == 1
    return False if is_pop and is_first and type(x.args[0].value) is int else None  # type: ignore[attr-defined]


def is_on_list(x: ast.Call) -> bool:
    """Whether a call is of a replacement for a function of Python's library (library.py)."""
    return isinstance(x.func, ast.Name) and x.func.id.startswith(ON_LISTS)


def _is_length(x: ast.Call) -> bool:
    is_len = isinstance(x.func, ast.Name) and x.func.id == "len"
    return is_len and len(x.args) == 1 and not x.keywords


def _place_of(s: ast.Assign | ast.AugAssign) -> ast.Subscript | None:
    """The item that a statement assigns. None if the statement is another one, or if its index
    could have effects: the replacement may compute the index twice, and after the value."""
    targets = s.targets if isinstance(s, ast.Assign) else [s.target]
    place = targets[0]
    if len(targets) > 1 or not isinstance(place, ast.Subscript):
        return None
    parts = [x for x in walk(place.slice) if isinstance(x, ast.expr)]
    is_simple = all(isinstance(x, _SIMPLE) for x in parts) and isinstance(place.value, ast.Name)
    return place if is_simple else None


class Stacks(Transformer):
    """Replaces a loop's operations on the lists of these names by calls."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def _is_list(self, x: ast.AST) -> bool:
        return isinstance(x, ast.Name) and x.id in self._names

    def visit_Call(self, node: ast.Call) -> Any:
        is_last = _is_pop(node)
        if is_last is not None and self._is_list(node.func.value):  # type: ignore[attr-defined]
            made = call(POPPED, node.func.value, ast.Constant(is_last))  # type: ignore[attr-defined]
            return at(node, made)
        if _is_length(node) and self._is_list(node.args[0]):
            return at(node, call(LENGTH, node.args[0]))
        self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and self._is_list(node.value):
            return at(node, call(ITEM, node.value, node.slice))
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        place = _place_of(node)
        self.generic_visit(node)
        if place is None or not self._is_list(place.value):
            return node
        return at(node, ast.Expr(call(PUT, place.value, place.slice, node.value)))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        place = _place_of(node)
        self.generic_visit(node)
        if place is None or not self._is_list(place.value):
            return node
        old = call(ITEM, place.value, place.slice)
        new = ast.BinOp(old, node.op, node.value)
        return at(node, ast.Expr(call(PUT, place.value, place.slice, new)))

    def _visit_test(self, node: Any) -> Any:
        node.test = self._truth(node.test)
        self.generic_visit(node)
        return node

    visit_If = visit_While = visit_IfExp = visit_Assert = _visit_test

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            node.operand = self._truth(node.operand)
        self.generic_visit(node)
        return node

    def _truth(self, x: ast.expr) -> ast.expr:
        if self._is_list(x):
            made = ast.Compare(call(LENGTH, x), [ast.Gt()], [ast.Constant(0)])
            return at(x, made)
        if isinstance(x, ast.BoolOp):
            x.values = [self._truth(value) for value in x.values]
        elif isinstance(x, ast.UnaryOp) and isinstance(x.op, ast.Not):
            x.operand = self._truth(x.operand)
        return x
