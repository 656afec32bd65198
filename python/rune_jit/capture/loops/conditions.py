"""Turns `and`, `or`, `not` and chained comparisons into calls, which accept values that only the
program knows:

    if x[i] > 0 and y[i] > 0:
    if .if.both(.value1 := x[i] > 0, y[i] > 0 if .if.may(.value1, True, 7) else None):

    ok = low < f(x) <= high
    ok = .if.all(.value2 := low < (.value3 := f(x)),
                 .value3 <= high if .if.may(.value2, True, 8) else None)

The second operand is computed only if the first one does not decide the result. 7 and 8 are numbers
of entries of OPERANDS."""

from __future__ import annotations

import ast
from typing import Any

from rune_jit.capture.loops.nodes import Transformer, at, call, load, store, walk
from rune_jit.capture.loops.syntax import Uses, uses_of

OPERANDS: list[Uses | None] = []  # the uses of second operands; None if they assign names

# The object whose methods are called.
IF = ".if"


def condition(test: ast.expr, of: str = IF) -> ast.expr:
    """A condition where `and`, `or` and `not` are replaced by calls of methods of the name `of`."""
    made: ast.expr = test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        made = call((of, "negated"), condition(test.operand, of))
    elif (parts := _operands(test)) is not None:
        is_and, operands = parts
        method = "both" if is_and else "either"
        made = _joined(test, of, method, is_and, [condition(x, of) for x in operands])
    return at(test, made)


class Values(Transformer):
    """Replaces `and`, `or` and `not` in expressions that are no conditions, but whose values are
    used."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return self._visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        return self._visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return at(node, call((IF, "inverse"), node.operand))

    def _visit(self, node: ast.BoolOp | ast.Compare) -> ast.expr:
        parts = _operands(node)
        if parts is None:
            self.generic_visit(node)
            return node
        is_and, operands = parts
        method = "all" if is_and else "any"
        operands = [self.visit(x) for x in operands]
        return at(node, _joined(node, IF, method, is_and, operands))

    def _leave(self, node: Any) -> Any:
        """Returns a node with names of its own unchanged."""
        return node

    visit_Lambda = visit_ClassDef = _leave
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _leave


def _operands(x: ast.expr) -> tuple[bool, list[ast.expr]] | None:
    """The operands of `and` or `or`, and whether it is `and`. A chained comparison counts as `and`.
    None for other expressions."""
    if isinstance(x, ast.BoolOp):
        return isinstance(x.op, ast.And), x.values
    if not isinstance(x, ast.Compare) or len(x.ops) == 1:
        return None
    given: list[ast.expr] = [x.left]
    read: list[ast.expr] = [x.left]
    for i, operand in enumerate(x.comparators):
        if i + 1 == len(x.comparators) or isinstance(operand, (ast.Name, ast.Constant)):
            given.append(operand)
            read.append(operand)
        else:
            name = f"{_name(x)}.{i}"
            given.append(ast.NamedExpr(store(name), operand))
            read.append(load(name))
    pairs: list[ast.expr] = [
        at(x, ast.Compare(a, [op], [b])) for a, op, b in zip(read, x.ops, given[1:], strict=False)
    ]
    return True, pairs


def _joined(
    place: ast.expr, of: str, method: str, is_and: bool, operands: list[ast.expr]
) -> ast.expr:
    made = operands[-1]
    for i, value in reversed(list(enumerate(operands[:-1]))):
        name = f"{_name(place)}.value{i}"
        first = ast.NamedExpr(store(name), value)
        OPERANDS.append(_uses_of(made))
        number = ast.Constant(len(OPERANDS) - 1)
        needs = call((of, "may"), load(name), ast.Constant(is_and), number)
        made = call((of, method), first, ast.IfExp(needs, made, ast.Constant(None)))
    return made


def _name(x: ast.expr) -> str:
    """The prefix of the names for parts of an expression."""
    return f".{type(x).__name__}{x.lineno}.{x.col_offset}"


def _uses_of(x: ast.expr) -> Uses | None:
    """The uses of an expression. None if it assigns names that stand in the source."""
    nodes = list(walk(x))
    if any(isinstance(y, ast.NamedExpr) and y.target.id[:1] != "." for y in nodes):
        return None
    return uses_of([x])
