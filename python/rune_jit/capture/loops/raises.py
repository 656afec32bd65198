"""Conditional `raise` statements in loops of the program:

    if x[i] < 0:                        if .raise_if(x[i] < 0, True):
        raise ValueError(i)                 raise ValueError(i)
    s += x[i]                           s += x[i]

If the condition is known only when the program runs, the program leaves the body out and checks
whether it would have run (`Check` in cpp/bindings/compiled_call.h). If it would, Python runs the
call from its start. Calls that end the process, such as `sys.exit()`, stand for `raise`."""

from __future__ import annotations

import ast
from typing import Any

from rune_jit.capture.loops.nodes import Transformer, at, load, walk

RAISES = ".raise_if"  # the function that is called with the condition
# Calls that raise SystemExit, or end the process.
_EXITS = frozenset({"exit", "quit", "sys.exit", "os._exit", "os.abort"})
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)


class Raises(Transformer):
    """Finds the sides of `if` statements that end with `raise`, and assertions."""

    def __init__(self) -> None:
        self._hidden: list[tuple[ast.If, list[ast.stmt]]] = []

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        if _raises(node.body):
            return [self._hide(node, True, node.body), *node.orelse]
        if _raises(node.orelse):
            return [self._hide(node, False, node.orelse), *node.body]
        return node

    def _visit_loop(self, node: Any) -> Any:
        """Treats a `raise` in the `else` of a loop as one under the condition True."""
        self.generic_visit(node)
        if _raises(node.orelse):
            node.orelse = [self._hide(node, True, node.orelse, ast.Constant(True))]
        return node

    visit_For = visit_While = _visit_loop

    def raises_unless(self, s: ast.stmt, test: ast.expr, body: list[ast.stmt]) -> ast.stmt | None:
        """An `if` with this body that runs unless a test holds. None unless the body ends with
        `raise`."""
        if not _raises(body):
            return None
        return self._hide(s, False, body, test)

    def visit_Assert(self, node: ast.Assert) -> Any:
        if not __debug__:
            return node
        error = load("AssertionError")
        given = [node.msg] if node.msg is not None else []
        return self._hide(node, False, [at(node, ast.Raise(ast.Call(error, given, []), None))])

    def _hide(
        self, node: Any, wanted: bool, body: list[ast.stmt], test: ast.expr | None = None
    ) -> ast.If:
        made = at(node, ast.If(test or node.test, [ast.Pass()], []))
        made.raises_if = wanted  # type: ignore[attr-defined]
        made.hidden = body  # type: ignore[attr-defined]
        self._hidden.append((made, body))
        return made

    def show(self) -> None:
        """Restores the bodies, which were hidden from the analysis of loops."""
        for node, body in self._hidden:
            node.body = body


def wanted(s: ast.If) -> bool | None:
    """The value of the condition with which an `if` raises; None if it does not raise."""
    return getattr(s, "raises_if", None)


def _raises(body: list[ast.stmt]) -> bool:
    """Whether the statements always end with `raise`, or with a call that seems to end the process.
    (If it does not, the program is right, too: it leaves the statements to Python.)"""
    if not body or not (isinstance(body[-1], ast.Raise) or _exits(body[-1])):
        return False
    return not any(isinstance(x, _LEAVES) for s in body for x in walk(s))


def _exits(s: ast.stmt) -> bool:
    is_call = isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)
    return is_call and ast.unparse(s.value.func) in _EXITS  # type: ignore[attr-defined]
