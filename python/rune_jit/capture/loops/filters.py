"""Turns comprehensions with conditions into loops that append to a list:

out = np.array([i for i in range(n) if x[i] > 0])

_filtered0 = []
for _filtered0_i in range(n):
    if x[_filtered0_i] > 0:
        _filtered0.append(_filtered0_i)
out = np.array(_filtered0)"""

from __future__ import annotations

import ast
from typing import Any

from rune_jit.capture.loops.nodes import (
    OWN_SCOPES,
    Transformer,
    assign,
    at,
    call,
    load,
    stores,
    targets_of,
    walk,
)
from rune_jit.capture.loops.unfold import Replacer

_BLOCKS = ("body", "orelse", "finalbody")
_SIMPLE = (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)


class Filters(Transformer):
    """Rewrites such comprehensions in functions. A comprehension must be what its statement
    evaluates first."""

    def __init__(self) -> None:
        self._count = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self._visit_blocks(node)
        return node

    def _visit_blocks(self, node: Any) -> None:
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, [x for s in block for x in self._statements(s)])
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self._visit_blocks(part)

    def _statements(self, s: ast.stmt) -> list[ast.stmt]:
        if isinstance(s, ast.ClassDef):
            # (In the body of a class, a loop would find other names than a comprehension.)
            s.body = [self.visit(x) if isinstance(x, ast.FunctionDef) else x for x in s.body]
            return [s]
        if not isinstance(s, _SIMPLE):
            self._visit_blocks(s)
            return [s]
        before: list[ast.stmt] = []
        while (found := _first(s.value)) is not None:
            name = f"_filtered{self._count}"
            self._count += 1
            before += self._loop(found, name)
            Replacer(found, ast.copy_location(load(name), found)).visit(s)
        return [*before, s]

    def _loop(self, x: ast.ListComp, name: str) -> list[ast.stmt]:
        first, *others = x.generators
        targets = [y for g in x.generators for y in walk(g.target) if isinstance(y, ast.Name)]
        own = {y.id for y in targets}
        inner = [part for g in others for part in (g.iter, *g.ifs)]
        for part in (*(g.target for g in x.generators), *first.ifs, *inner, x.elt):
            for y in walk(part):
                if isinstance(y, ast.Name) and y.id in own:
                    y.id = f"{name}_{y.id}"
        appended: ast.stmt = ast.Expr(call((name, "append"), x.elt))
        for generator in reversed(x.generators):
            for test in reversed(generator.ifs):
                appended = at(test, ast.If(test, [appended], []))
            appended = at(generator.iter, ast.For(generator.target, generator.iter, [appended], []))
        # (The loops have places in the source of their own.)
        made = [assign(name, ast.List([], ast.Load())), appended]
        return [at(x, s) for s in made]


def _first(x: ast.expr | None) -> ast.ListComp | None:
    """The comprehension that an expression evaluates first, if it can become a loop, else None."""
    if isinstance(x, ast.ListComp):
        return x if _is_loop(x) else None
    for part in _evaluated(x):
        if not _is_trivial(part):
            return _first(part)
    return None


def _evaluated(x: ast.expr | None) -> list[ast.expr]:
    """The parts of an expression in the order of their evaluation. Empty if not known."""
    if isinstance(x, ast.Call):
        return [x.func, *x.args, *(keyword.value for keyword in x.keywords)]
    if isinstance(x, ast.BinOp):
        return [x.left, x.right]
    if isinstance(x, (ast.Tuple, ast.List)):
        return x.elts
    if isinstance(x, ast.UnaryOp):
        return [x.operand]
    if isinstance(x, (ast.Attribute, ast.Subscript)):
        return [x.value]
    return []


def _is_trivial(x: ast.expr) -> bool:
    """Whether an expression is a constant, a name or an attribute of one."""
    while isinstance(x, ast.Attribute):
        x = x.value
    return isinstance(x, (ast.Name, ast.Constant))


def _is_loop(x: ast.ListComp) -> bool:
    """Whether a comprehension has a condition and can become a loop, with its own names renamed."""
    targets = targets_of(x)
    if targets is None or not any(g.ifs for g in x.generators):
        return False
    given = {id(y) for y in targets}
    return not any(
        isinstance(y, OWN_SCOPES) or stores(y, targets) for y in walk(x) if id(y) not in given
    )
