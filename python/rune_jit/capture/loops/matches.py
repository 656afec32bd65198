"""Turns `match` statements whose patterns compare with values into `if` statements:

match int(op):                      _matched0 = int(op)
    case 0:                         if _matched0 == 0:
        x += 1                          x += 1
    case 1 | 2 if x > 3:            elif (_matched0 == 1 or _matched0 == 2) and x > 3:
        x -= 1                          x -= 1
    case other:                     else:
        y = other                       other = _matched0; y = other"""

from __future__ import annotations

import ast
from typing import Any

from rune_jit.capture.loops.liveness import stored
from rune_jit.capture.loops.nodes import Transformer, assign, at, call, load


class Matches(Transformer):
    """Rewrites such statements."""

    def __init__(self) -> None:
        self._count = 0

    def visit_Match(self, node: ast.Match) -> Any:
        self.generic_visit(node)
        name = f"_matched{self._count}"
        chain: list[ast.stmt] = []
        for case in reversed(node.cases):
            test = _test(case.pattern, name)
            if test is None or (case.guard is not None and stored([case.guard])):
                return node
            captured = getattr(case.pattern, "name", None)
            body = [at(case.pattern, assign(captured, load(name)))] if captured else []
            body += case.body
            parts = [x for x in (test, case.guard) if x is not None and not _is_true(x)]
            if not parts:
                chain = body
            elif captured:  # (the name stays bound if the guard is false)
                return node
            else:
                both = parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)
                chain = [at(case.pattern, ast.If(both, body, chain))]
        self._count += 1
        return [at(node, assign(name, node.subject)), *chain]


def _is_true(x: ast.expr) -> bool:
    return isinstance(x, ast.Constant) and x.value is True


def _test(pattern: ast.pattern, name: str) -> ast.expr | None:
    """The condition that the value of a name matches a pattern. None if it cannot be written with
    `==`, `is` and `isinstance`."""
    if isinstance(pattern, ast.MatchValue):
        return ast.Compare(load(name), [ast.Eq()], [pattern.value])
    if isinstance(pattern, ast.MatchSingleton):
        return ast.Compare(load(name), [ast.Is()], [ast.Constant(pattern.value)])
    if isinstance(pattern, ast.MatchOr):
        tests = [_test(x, name) for x in pattern.patterns]
        known = [x for x in tests if x is not None and not _is_true(x)]
        return ast.BoolOp(ast.Or(), known) if len(known) == len(tests) else None
    if isinstance(pattern, ast.MatchClass) and not pattern.patterns and not pattern.kwd_patterns:
        return call("isinstance", load(name), pattern.cls)
    is_any = isinstance(pattern, ast.MatchAs) and pattern.pattern is None
    return ast.Constant(True) if is_any else None
