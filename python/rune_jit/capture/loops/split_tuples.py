"""Tuples of which a part is None at first, as variables of their own for each part:

    best = (np.inf, None)               best[0], best[1] = np.inf, None
    for i in range(n):                  for i in range(n):
        if x[i] < best[0]:                  if x[i] < best[0]:
            best = (x[i], i)                    best[0], best[1] = x[i], i
    return best                         return (best[0], best[1])

(`best[0]` is the name of a variable.) The parts that are None become optional variables after that
(optionals.py)."""

from __future__ import annotations

import ast
from typing import Any

from rune_jit.capture.loops.nodes import SCOPES, Transformer, at, load, store, walk

_SCOPES = (*SCOPES, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class SplitTuples(Transformer):
    """Splits such tuples in functions."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.body = [self.visit(s) for s in node.body]
        if sizes := _sizes(node):
            splitter = _Splitter(sizes)
            node.body = [splitter.visit(s) for s in node.body]
        return node


def _sizes(function: ast.FunctionDef) -> dict[str, int]:
    """The number of parts of each variable that only has tuples of one size, which are displayed
    where it is assigned, and of which one has a part that is None."""
    sizes: dict[str, set[int]] = {}
    optional: set[str] = set()
    known: set[int] = set()  # ids of the `ast.Name` nodes in these assignments
    nodes = [x for s in function.body for x in walk(s)]
    for x in nodes:
        if isinstance(x, ast.Assign) and len(x.targets) == 1 and isinstance(x.value, ast.Tuple):
            target, parts = x.targets[0], x.value.elts
            if isinstance(target, ast.Name) and not any(isinstance(p, ast.Starred) for p in parts):
                sizes.setdefault(target.id, set()).add(len(parts))
                known.add(id(target))
                if any(isinstance(p, ast.Constant) and p.value is None for p in parts):
                    optional.add(target.id)
    if not optional:
        return {}
    scopes = [y for x in nodes if isinstance(x, _SCOPES) for y in walk(x)]
    others = {x.id for x in scopes if isinstance(x, ast.Name)}
    others |= {x.arg for x in walk(function.args) if type(x) is ast.arg}
    others |= {n for x in nodes if isinstance(x, (ast.Global, ast.Nonlocal)) for n in x.names}
    for x in nodes:
        if isinstance(x, ast.Name) and id(x) not in known and not isinstance(x.ctx, ast.Load):
            others.add(x.id)
    return {name: sizes[name].pop() for name in optional - others if len(sizes[name]) == 1}


class _Splitter(Transformer):
    def __init__(self, sizes: dict[str, int]) -> None:
        self._sizes = sizes

    def _parts(self, name: str) -> list[str]:
        return [f"{name}[{k}]" for k in range(self._sizes[name])]

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in self._sizes:
            made = ast.Tuple([store(part) for part in self._parts(target.id)], ast.Store())
            node.targets[0] = at(target, made)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        place = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if name not in self._sizes or type(place) is not int:
            return self.generic_visit(node)
        if not -self._sizes[name] <= place < self._sizes[name]:
            return self.generic_visit(node)
        return at(node, load(self._parts(name)[place]))

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id not in self._sizes or not isinstance(node.ctx, ast.Load):
            return node
        return at(node, ast.Tuple([load(part) for part in self._parts(node.id)], ast.Load()))
