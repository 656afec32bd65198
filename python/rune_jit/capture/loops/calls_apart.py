"""Puts the calls that run loops apart (apart.py) into the code of functions that run in segments:

for i in range(n):                  .ran = .apart(7)
    s += x[i]                       if .ran is None:
                                        for i in range(n):
                                            s += x[i]
                                    else:
                                        (s,) = .ran
"""

from __future__ import annotations

import ast
from typing import Any

from rune_jit.capture.loops.jumps import RESULT, RETURNED, STOP
from rune_jit.capture.loops.liveness import loaded
from rune_jit.capture.loops.nodes import (
    Transformer,
    assign,
    at,
    blocks_of,
    call,
    copied,
    load,
    walk,
)

APART = ".apart"
_RAN = ".ran"

# Syntax that a loop that runs apart must not contain.
_NOT_IN_LOOPS = (
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda, ast.FunctionDef, ast.ClassDef),
    *(ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Delete, ast.NamedExpr),
)
# Syntax of the iterables of loops over numbers and arrays.
_OVER_NUMBERS = (ast.Call, ast.Name, ast.Attribute, ast.Subscript)
Place = tuple[str, int, int]
# Variables in the loop's function: the value that the loop returns, and whether it returns.
VALUE, LEFT = "_rune_value", "_rune_left"


def keep_loops(statements: list[ast.stmt], filename: str) -> None:
    """Stores copies of the loops in some statements that may run apart, in their attribute
    `original`. Leaves out loops in a `try`, whose handlers may read the names that an iteration has
    assigned before it raised."""
    nodes = [x for s in statements for x in walk(s)]
    tried = {y for x in nodes if isinstance(x, ast.Try) for y in walk(x)}
    for x in nodes:
        if not isinstance(x, (ast.For, ast.While)) or x in tried:
            continue
        is_over_items = isinstance(x, ast.For) and not isinstance(x.iter, _OVER_NUMBERS)
        if not is_over_items and not any(isinstance(y, _NOT_IN_LOOPS) for y in walk(x)):
            made = _Extends().visit(copied(x))
            if x.orelse:
                # Of a loop with an `else`: the variable for whether a `break` has ended it. (The
                # function of a loop around this one may have such a variable, too.)
                made.broken = f"_rune_broken_{x.lineno}_{x.col_offset}"
                made.orelse, made.body = [], _noting_breaks(made.body, made.broken)
            x.original = _without_returns(made)  # type: ignore[union-attr]
            x.original.filename = filename  # type: ignore[union-attr]


def _noting_breaks(block: list[ast.stmt], broken: str) -> list[ast.stmt]:
    """A block of a loop, which notes in the variable `broken` that a `break` ends the loop."""
    made: list[ast.stmt] = []
    for s in block:
        if isinstance(s, ast.Break):
            made.append(at(s, assign(broken, ast.Constant(True))))
        elif isinstance(s, (ast.For, ast.While)):
            s.orelse = _noting_breaks(s.orelse, broken)
        else:
            for inner in blocks_of(s):
                inner[:] = _noting_breaks(inner, broken)
        made.append(s)
    return made


class _Extends(Transformer):
    """Replaces `items.extend([a, b])` by two appends, if the values do not read the list."""

    def visit_Expr(self, node: ast.Expr) -> Any:
        x = node.value
        if not isinstance(x, ast.Call) or not isinstance(x.func, ast.Attribute):
            return node
        of, values = x.func.value, x.args[0] if len(x.args) == 1 else None
        if x.func.attr != "extend" or x.keywords or not isinstance(of, ast.Name):
            return node
        if not isinstance(values, (ast.List, ast.Tuple)) or of.id in loaded([values]):
            return node
        if not values.elts or any(isinstance(y, ast.Starred) for y in values.elts):
            return node
        return [at(node, ast.Expr(call((of.id, "append"), y))) for y in values.elts]


def _without_returns(loop: ast.For | ast.While) -> ast.stmt:
    """The loop where each `return` stores its value and becomes a `break`:

    while queue:                        while queue:
        for v in near(queue.pop()):         for v in near(queue.pop()):
            if v == goal:                       if v == goal:
                return v                            _rune_value = v
                                                    _rune_left = True
                                                    break
                                            if _rune_left:
                                                break"""
    loop.body = _block_without_returns(loop.body)
    return loop


def _block_without_returns(block: list[ast.stmt]) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for s in block:
        if isinstance(s, ast.Return):
            value = assign(VALUE, s.value or ast.Constant(None))
            leave = [value, assign(LEFT, ast.Constant(True)), ast.Break()]
            return made + [at(s, x) for x in leave]
        returns = has_returns(s)
        for name in ("body", "orelse", "finalbody") if returns else ():
            if inner := getattr(s, name, None):
                setattr(s, name, _block_without_returns(inner))
        for part in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())) if returns else ():
            part.body = _block_without_returns(part.body)
        made.append(s)
        if isinstance(s, (ast.For, ast.While)) and returns:
            made.append(at(s, ast.If(load(LEFT), [ast.Break()], [])))
    return made


def has_returns(s: ast.stmt) -> bool:
    return any(isinstance(x, ast.Return) for x in walk(s))


def place_of(original: Any) -> Place:
    return original.filename, original.lineno, original.col_offset


class Apart(Transformer):
    """Puts the calls into a function, for the loops of the statements `within` that may run apart:
    these are in `known`."""

    def __init__(self, filename: str, known: dict[Place, Any], within: list[ast.stmt]) -> None:
        self._filename, self._known = filename, known
        self._open = {id(x) for s in within for x in walk(s)}

    def visit_For(self, node: ast.For) -> Any:
        return self._visit(node)

    def visit_While(self, node: ast.While) -> Any:
        return self._visit(node)

    def _visit(self, node: ast.For | ast.While) -> Any:
        returns = has_returns(node)
        self.generic_visit(node)  # (inner loops may run apart if this one does not)
        loop = self._known.get((self._filename, node.lineno, node.col_offset))
        if loop is None or id(node) not in self._open:
            return node
        if returns and RETURNED not in loop.results:
            return node
        first = assign(_RAN, call(APART, ast.Constant(loop.number)))
        is_none = ast.Compare(load(_RAN), [ast.Is()], [ast.Constant(None)])
        results = results_of(loop)
        after = [assign(results, load(_RAN)) if results else ast.Pass()]
        if returns:
            after.append(ast.If(load(LEFT), [ast.Return(load(VALUE))], []))
        if node.orelse:
            after.append(ast.If(load(loop.original.broken), [ast.Pass()], copied(node.orelse)))
        return [at(node, first), at(node, ast.If(is_none, [node], after))]


def results_of(loop: Any) -> tuple[str, ...]:
    """The results of a loop's function: the names that are read after the loop, and the variables
    for the value that the loop returns and for its `else`."""
    broken = getattr(loop.original, "broken", None)
    names = tuple(
        x
        for x in loop.results
        if x not in (RETURNED, RESULT) and not (broken and x.startswith(STOP))
    )
    if RETURNED in loop.results:
        names += VALUE, LEFT
    return (*names, broken) if broken else names
