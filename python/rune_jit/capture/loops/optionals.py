"""Variables that are None before a loop, and that the loop assigns under conditions but does not
read. Two new variables hold the value that the loop assigns last, and whether it assigns one:

    best = None                         best = None
    for i in range(n):                  .hit best, .last best = False, .unset
        if x[i] > 3:                    for i in range(n):
            best = i                        if x[i] > 3:
                                                .last best = i
                                                .hit best = True
                                        if .hit best: best = .last best

After an inner loop, the last line is `best = .chosen(.hit best, .last best, best)`. There the
program assumes that the loop assigns the variable. Python runs the calls in which it does not."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from rune_jit.capture.loops.jumps import UNSET
from rune_jit.capture.loops.liveness import stored
from rune_jit.capture.loops.nodes import SCOPES, Transformer, assign, assigned, at, call, load, walk

HIT, LAST = ".hit ", ".last "
CHOSEN = ".chosen"  # the name of the function
_Loop = (ast.For, ast.While)
_SCOPES = (*SCOPES, ast.Lambda)
_OTHERS = (
    *(ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.Try, ast.With, ast.Match, ast.Import),
    *(ast.ImportFrom, *SCOPES),
)


def is_last(name: str) -> bool:
    """Whether a name is that of a new variable for the value that a loop assigns last."""
    return name.startswith(LAST)


class Optionals(Transformer):
    """Replaces such variables in the loops of functions."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        own = [x for s in node.body for x in walk(s)]
        inner = [y for x in own if isinstance(x, _SCOPES) for y in walk(x)]
        declared = {n for x in own if isinstance(x, (ast.Global, ast.Nonlocal)) for n in x.names}
        seen = {x.id for x in inner if isinstance(x, ast.Name)} | declared
        node.body = self._block(node.body, frozenset(seen))
        return node

    def _block(
        self, statements: list[ast.stmt], seen: frozenset[str], is_in_loop: bool = False
    ) -> list[ast.stmt]:
        """The statements of a block. `seen` are the names that inner functions use."""
        result: list[ast.stmt] = []
        for i, s in enumerate(statements):
            if isinstance(s, ast.FunctionDef):
                self.visit(s)
            elif isinstance(s, ast.If):
                s.body = self._block(s.body, seen, is_in_loop)
                s.orelse = self._block(s.orelse, seen, is_in_loop)
            elif isinstance(s, _Loop):
                # (A name that the loop compares with None is not assumed to be assigned.)
                s.body = self._block(s.body, seen | _asked_for_none(s.body), True)
            names: list[tuple[str, ast.stmt]] = []
            if isinstance(s, _Loop):
                for name in sorted(stored(s.body) - seen - _read_in(s)):
                    none = _none_before(name, statements[:i])
                    if none is not None and _may_assign(s, name):
                        names.append((name, none))
            for name, none in names:
                result.append(_set(none, HIT + name, ast.Constant(False)))
                result.append(_set(none, LAST + name, load(UNSET)))
                _Renamer(name).visit(s)
            result.append(s)
            # (These statements need another place in the source than the loop.)
            for name, none in names:
                again = _set(none, name, load(LAST + name))
                hit, last = load(HIT + name), load(LAST + name)
                after: ast.stmt = ast.If(hit, [again], [])
                if is_in_loop:
                    after = assign(name, call(CHOSEN, hit, last, load(name)))
                result.append(at(none, after))
        return result


def _set(place: ast.stmt, name: str, value: ast.expr) -> ast.stmt:
    return at(place, assign(name, value))


def _read_in(loop: ast.stmt) -> set[str]:
    """The names that a loop reads, or assigns in another way than by `name = value`."""
    nodes = list(walk(loop))
    found = {x.id for x in nodes if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Store)}
    for x in nodes:
        if isinstance(x, _OTHERS):
            found |= stored([x])
        if isinstance(x, ast.For):
            found |= stored([x.target])
        if isinstance(x, ast.comprehension):
            found |= stored([x.target])
    return found


def _asked_for_none(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """The names that statements compare with None."""
    found: set[str] = set()
    for x in (x for s in statements for x in walk(s)):
        if isinstance(x, ast.Compare):
            sides = [x.left, *x.comparators]
            if any(isinstance(y, ast.Constant) and y.value is None for y in sides):
                found |= {y.id for y in sides if isinstance(y, ast.Name)}
    return frozenset(found)


def _none_before(name: str, before: Sequence[ast.stmt]) -> ast.stmt | None:
    """The statement that assigns None to a name, if it is the last of these that assigns it."""
    s = next((s for s in reversed(before) if name in stored([s])), None)
    if not isinstance(s, ast.Assign):
        return None
    for x, value in assigned(s):
        is_none = isinstance(value, ast.Constant) and value.value is None
        if isinstance(x, ast.Name) and x.id == name and is_none:
            return s
    return None


def _may_assign(loop: ast.For | ast.While, name: str) -> bool:
    """Whether a loop assigns a name only under conditions, and never assigns None."""

    def is_conditional(statements: Sequence[ast.stmt]) -> bool:
        return all(
            is_conditional([*s.body, *s.orelse])
            if isinstance(s, _Loop)
            else isinstance(s, ast.If) or name not in stored([s])
            for s in statements
        )

    assigned = [
        x.value for x in walk(loop) if isinstance(x, ast.Assign) and name in stored([*x.targets])
    ]
    are_values = not any(isinstance(v, ast.Constant) and v.value is None for v in assigned)
    return are_values and is_conditional([*loop.body, *loop.orelse])


class _Renamer(Transformer):
    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Assign(self, node: ast.Assign) -> Any:
        if self._name not in stored([*node.targets]):
            return node
        for target in node.targets:
            for x in walk(target):
                if isinstance(x, ast.Name) and x.id == self._name:
                    x.id = LAST + self._name
        return [node, _set(node, HIT + self._name, ast.Constant(True))]
