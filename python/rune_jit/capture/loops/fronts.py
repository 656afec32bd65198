"""Turns lists that a loop extends at the front into lists that it extends at the end:

path = [k]                                  path = [k]
                                            path.reverse()
for t in range(n, 0, -1):                   for t in range(n, 0, -1):
    path.insert(0, back[t, path[0]])            path.append(back[t, path[-1]])
                                            path.reverse()"""

from __future__ import annotations

import ast
from typing import Any

from rune_jit.capture.loops.nodes import SCOPES, Transformer, Visitor, at, blocks_of, call, walk

_LOOPS = (ast.For, ast.While)
_OTHER_SCOPES = (*SCOPES, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def extend_at_end(tree: ast.FunctionDef) -> None:
    """Rewrites such loops of a function and of its inner functions, if no other code can see the
    list while it is reversed."""
    for function in walk(tree):
        if isinstance(function, ast.FunctionDef):
            _visit_block(function, function.body)


def _visit_block(function: ast.FunctionDef, block: list[ast.stmt]) -> None:
    lists: set[str] = set()  # names of lists that the block has made
    made: list[ast.stmt] = []
    for s in block:
        if isinstance(s, ast.If):
            for inner in blocks_of(s):
                _visit_block(function, inner)
        elif isinstance(s, ast.Assign) and isinstance(s.value, ast.List):
            lists |= {x.id for x in s.targets if isinstance(x, ast.Name)}
        elif isinstance(s, _LOOPS):
            names = [name for name in sorted(lists) if _is_extended(s, name)]
            names = [name for name in names if _is_only_name(function, s, name)]
            for name in names:
                made.append(_reversal(s, name))
                _AtEnd(name).visit(s)
            made += [s, *(_reversal(s, name) for name in names)]
            continue
        made.append(s)
    block[:] = made


def _reversal(loop: ast.stmt, name: str) -> ast.stmt:
    return at(loop, ast.Expr(call((name, "reverse"))))


def _is_extended(loop: ast.stmt, name: str) -> bool:
    return any(_put_in_front(x, name) is not None for x in walk(loop))


def _is_only_name(function: ast.FunctionDef, loop: ast.stmt, name: str) -> bool:
    """Whether a list has only one name when a loop begins, and the loop only puts values in front
    of it, reads its first item and asks for its length."""
    uses = _Uses(name, loop)
    for s in function.body:
        uses.visit(s)
    end = loop.end_lineno or loop.lineno
    for x in walk(function):
        if isinstance(x, (ast.Global, ast.Nonlocal)) and name in x.names:
            return False
        if _is_name(x, name) and id(x) not in uses.known and x.lineno <= end:  # type: ignore[attr-defined]
            return False
    return True


class _Uses(Visitor):
    """Finds the uses of a list's name that do not give the list another name. Uses in the loop are
    those that can be rewritten. Inner functions and comprehensions are left out."""

    def __init__(self, name: str, loop: ast.stmt) -> None:
        self.known: set[int] = set()  # ids of nodes
        self._name, self._loop = name, loop
        self._is_in_loop = False

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, _OTHER_SCOPES):
            return
        if node is self._loop:
            self._is_in_loop = True
        self._note(node)
        self.generic_visit(node)
        if node is self._loop:
            self._is_in_loop = False

    def _note(self, x: ast.AST) -> None:
        if self._is_in_loop:
            if _put_in_front(x, self._name) is not None:
                is_method = isinstance(x, ast.Expr)
                self._add(*([x.value.func.value] if is_method else [x.targets[0], x.value.right]))  # type: ignore[attr-defined]
            elif _is_first(x, self._name):
                self._add(x.value)  # type: ignore[attr-defined]
        elif isinstance(x, ast.Assign) and isinstance(x.value, ast.List) and len(x.targets) == 1:
            self._add(x.targets[0])
        if isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and x.func.id == "len":
            self._add(*x.args)

    def _add(self, *nodes: ast.AST) -> None:
        self.known.update(map(id, nodes))


def _put_in_front(s: ast.AST, name: str) -> ast.expr | None:
    """The value that a statement puts in front of a list, by `name.insert(0, value)` or
    `name = [value] + name`. None for other statements."""
    if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
        function, arguments = s.value.func, s.value.args
        if not isinstance(function, ast.Attribute) or not _is_name(function.value, name):
            return None
        if function.attr != "insert" or len(arguments) != 2 or s.value.keywords:
            return None
        return _single(arguments[1:]) if _is_zero(arguments[0]) else None
    if not isinstance(s, ast.Assign) or not isinstance(s.value, ast.BinOp) or s.targets[1:]:
        return None
    first, rest = s.value.left, s.value.right
    is_same = _is_name(s.targets[0], name) and _is_name(rest, name)
    if not is_same or not isinstance(s.value.op, ast.Add) or not isinstance(first, ast.List):
        return None
    return _single(first.elts)


def _single(values: list[ast.expr]) -> ast.expr | None:
    return values[0] if len(values) == 1 and not isinstance(values[0], ast.Starred) else None


def _is_name(x: ast.AST, name: str) -> bool:
    return isinstance(x, ast.Name) and x.id == name


def _is_zero(x: ast.AST) -> bool:
    return isinstance(x, ast.Constant) and type(x.value) is int and x.value == 0


def _is_first(x: ast.AST, name: str) -> bool:
    """Whether an expression reads the first item of the list."""
    if not isinstance(x, ast.Subscript) or not isinstance(x.ctx, ast.Load):
        return False
    return _is_name(x.value, name) and _is_zero(x.slice)


class _AtEnd(Transformer):
    """Appends the values that were put in front of a list, and reads the last item instead of the
    first."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _visit_statement(self, node: Any) -> Any:
        self.generic_visit(node)
        value = _put_in_front(node, self._name)
        if value is None:
            return node
        return at(node, ast.Expr(call((self._name, "append"), value)))

    visit_Expr = visit_Assign = _visit_statement

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if _is_first(node, self._name):
            node.slice = at(node, ast.UnaryOp(ast.USub(), ast.Constant(1)))
        return node
