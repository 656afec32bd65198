"""Turns loops over the positions of a grid into nested loops, which can be loops of the program.

    for i, j in np.ndindex(m, n):       .grid7.4 = .grid(2, np.ndindex, m, n)
        x[i, j] = i                     for .at7.4.0 in .along(.grid7.4, 0):
                                            for i, j in .along(.grid7.4, 1, .at7.4.0):
                                                x[i, j] = i

Loops over `itertools.product` of ranges are treated likewise. If another function has one of these
names, the innermost loop iterates over its result. The called functions are in positions.py."""

from __future__ import annotations

import ast
from typing import Any

from rune_jit.capture.loops.nodes import Transformer, assign, at, call, load, store, walk

_NAMES = ("ndindex", "product")
# The number of nested loops if the source does not tell the number of axes.
_MOST_AXES = 4


class Grids(Transformer):
    """Rewrites loops over grids. Loops that a jump may leave stay unchanged."""

    def visit_For(self, loop: ast.For) -> Any:
        self.generic_visit(loop)
        if not _is_grid(loop.iter) or loop.orelse or _may_be_left(loop.body):
            return loop
        assert isinstance(loop.iter, ast.Call)
        count = _count_of_axes(loop.iter, loop.target)
        place = f"{loop.lineno}.{loop.col_offset}"
        grid = f".grid{place}"
        names = [f".at{place}.{axis}" for axis in range(count - 1)]
        made = call(".grid", ast.Constant(count), loop.iter.func, *loop.iter.args)
        assert isinstance(made, ast.Call)
        made.keywords = loop.iter.keywords
        first = assign(grid, made)
        body = loop.body
        for axis in reversed(range(count)):
            outer = [load(name) for name in names] if axis == count - 1 else []
            along = call(".along", load(grid), ast.Constant(axis), *outer)
            target = loop.target
            if axis < count - 1:
                target = store(names[axis])
            body = [at(loop, ast.For(target, along, body, []))]
        return [at(loop.iter, first), *body]


def _is_grid(x: ast.expr) -> bool:
    if not isinstance(x, ast.Call):
        return False
    if isinstance(x.func, ast.Name):
        return x.func.id in _NAMES
    return isinstance(x.func, ast.Attribute) and x.func.attr in _NAMES


def _may_be_left(body: list[ast.stmt]) -> bool:
    """Whether there is a `break` or `return`, also one of an inner loop or function."""
    return any(isinstance(x, (ast.Break, ast.Return)) for s in body for x in walk(s))


def _count_of_axes(made: ast.Call, target: ast.expr) -> int:
    """The number of axes, or an upper bound if the source does not tell it."""
    if isinstance(target, (ast.Tuple, ast.List)):
        starred = any(isinstance(x, ast.Starred) for x in target.elts)
        return _MOST_AXES if starred else max(len(target.elts), 1)
    is_listed = not made.keywords and not any(isinstance(x, ast.Starred) for x in made.args)
    return len(made.args) if is_listed and len(made.args) > 1 else _MOST_AXES
