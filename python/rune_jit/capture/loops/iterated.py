"""Rewrites the iterables of loops. Calls of functions such as `zip` become calls that keep their
arguments, so that the trace knows them. So do ranges that are assigned to a name.

    stakes = range(1, min(s, 9))        stakes = .iterable(range, 1, min(s, 9))
    for a in stakes: ...                for a in stakes: ..."""

from __future__ import annotations

import ast
from typing import Any

from rune_jit.capture.loops.nodes import Visitor, at, load, path_of, walk, within

# The function that is called with a function that makes an iterable, and its arguments.
ITERABLE = ".iterable"


def iterated(x: ast.expr) -> ast.expr:
    """The iterable of a loop, with such calls rewritten."""
    if not isinstance(x, ast.Call) or not _is_taken_apart(x):
        return x
    made = ast.Call(load(ITERABLE), [x.func, *map(iterated, x.args)], x.keywords)
    return at(x, made)


def _is_taken_apart(call: ast.Call) -> bool:
    if any(isinstance(x, ast.Starred) for x in call.args):
        return False
    if path_of(call.func)[-1:] in (("tqdm",), ("trange",)):
        return True
    if not all(x.arg in ("start", "strict") for x in call.keywords):
        return False
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in ("repeat", "pairwise")
    names = ("range", "enumerate", "zip", "repeat", "pairwise", "reversed")
    return isinstance(call.func, ast.Name) and call.func.id in names


class NamedRanges(Visitor):
    """Rewrites ranges that are assigned to names which only `for` statements read."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        makers: dict[str, list[ast.Assign]] = {}
        uses: dict[str, int] = {}  # how often each name occurs
        for s in node.body:
            for x in walk(s):
                if isinstance(x, ast.Assign) and _makes_range(x):
                    makers.setdefault(x.targets[0].id, []).append(x)  # type: ignore[attr-defined]
                names = [x.id] if isinstance(x, ast.Name) else []
                names += x.names if isinstance(x, (ast.Global, ast.Nonlocal)) else []
                for name in names:
                    uses[name] = uses.get(name, 0) + 1
        for name, made in makers.items():
            if uses[name] == len(made) + _loops_over(node.body, name):
                for s in made:
                    s.value = iterated(s.value)
        self.generic_visit(node)


def _makes_range(s: ast.Assign) -> bool:
    """Whether a statement is `name = range(...)`."""
    is_named = len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)
    return is_named and isinstance(s.value, ast.Call) and path_of(s.value.func) == ("range",)


def _loops_over(body: list[ast.stmt], name: str) -> int:
    """How many `for` statements of a function, without inner functions, iterate over a name."""
    loops = [s for s in within(body) if isinstance(s, ast.For)]
    return sum(path_of(s.iter) == (name,) for s in loops)
