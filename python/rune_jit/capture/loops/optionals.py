"""Variables that are None before a loop, and that the loop assigns under conditions. Two new
variables hold the value that the loop assigns last, and whether it has assigned one:

    best = None                         best = None
    for i in range(n):                  .hit best, .last best = False, .unset
        if best is None or x[i] > 3:    for i in range(n):
            best = i                        if not .hit best or x[i] > 3:
                                                .last best = i
                                                .hit best = True
                                        if .hit best: best = .last best

Other reads in the loop become `.held(.hit best, .last best)`. The program assumes that the variable
has been assigned there; Python runs the other calls.

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
CHOSEN, HELD = ".chosen", ".held"  # names of functions
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
        node.body = self._block(node.body, frozenset(seen), [])
        return node

    def _block(
        self, statements: list[ast.stmt], seen: frozenset[str], around: list[ast.stmt]
    ) -> list[ast.stmt]:
        """The statements of a block. `seen` are the names that inner functions use, `around` is the
        body of the outermost loop around the block."""
        result: list[ast.stmt] = []
        for i, s in enumerate(statements):
            if isinstance(s, ast.FunctionDef):
                self.visit(s)
            elif isinstance(s, ast.If):
                s.body = self._block(s.body, seen, around)
                s.orelse = self._block(s.orelse, seen, around)
            elif isinstance(s, _Loop):
                s.body = self._block(s.body, seen, around or s.body)
            names: list[tuple[str, ast.stmt]] = []
            if isinstance(s, _Loop):
                # (After an inner loop, a name is assumed to be assigned unless it is compared with
                # None there.)
                others = seen | _assigned_otherwise(s) | _asked_for_none(around, s)
                for name in sorted(stored(s.body) - others):
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
                if around:
                    after = assign(name, call(CHOSEN, hit, last, load(name)))
                result.append(at(none, after))
        return result


def _set(place: ast.stmt, name: str, value: ast.expr) -> ast.stmt:
    return at(place, assign(name, value))


def _assigned_otherwise(loop: ast.stmt) -> set[str]:
    """The names that a loop assigns in another way than by `name = value`, or deletes."""
    nodes = list(walk(loop))
    found = {x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Del)}
    for x in nodes:
        if isinstance(x, _OTHERS):
            found |= stored([x])
        if isinstance(x, ast.For):
            found |= stored([x.target])
        if isinstance(x, ast.comprehension):
            found |= stored([x.target])
    return found


def _asked_for_none(statements: Sequence[ast.stmt], without: ast.stmt) -> frozenset[str]:
    """The names that statements compare with None, but for those in the statement `without`."""
    found: set[str] = set()
    known = {id(x) for x in walk(without)} if statements else ()
    for x in (x for s in statements for x in walk(s)):
        if isinstance(x, ast.Compare) and id(x) not in known:
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
    """Replaces the assignments and reads of a variable in a loop."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Replaces `name is None` and `name is not None`."""
        is_name = isinstance(node.left, ast.Name) and node.left.id == self._name
        if not is_name or len(node.ops) > 1 or not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return self.generic_visit(node)
        other = node.comparators[0]
        if not isinstance(other, ast.Constant) or other.value is not None:
            return self.generic_visit(node)
        hit = load(HIT + self._name)
        is_not = isinstance(node.ops[0], ast.IsNot)
        return at(node, hit if is_not else ast.UnaryOp(ast.Not(), hit))

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id != self._name or not isinstance(node.ctx, ast.Load):
            return node
        return at(node, call(HELD, load(HIT + self._name), load(LAST + self._name)))

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        if self._name not in stored([*node.targets]):
            return node
        for target in node.targets:
            for x in walk(target):
                if isinstance(x, ast.Name) and x.id == self._name:
                    x.id = LAST + self._name
        return [node, _set(node, HIT + self._name, ast.Constant(True))]
