"""Random numbers in loops that run apart (apart.py). The numbers of all iterations are drawn before
such a loop runs, in the order in which the iterations would draw them:

    for i in range(n):                       for i in range(n):
        step = s * rng.normal()                  a.append(rng.normal())
        if rng.random() < p(x, step):            b.append(rng.random())
            x += step
                                             k = -1
                                             for i in range(n):
                                                 k += 1
                                                 step = s * a[k]
                                                 if b[k] < p(x, step):
                                                     x += step

The generators end up in the state in which the loop would leave them. If a `break` has ended the
loop early, they return to their first state and draw only the numbers that the loop has used."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from rune_jit.capture.loops.effects import global_value
from rune_jit.capture.loops.liveness import loaded, stored
from rune_jit.capture.loops.nodes import Transformer, assign, at, call, copied, load, path_of, walk
from rune_jit.capture.random_methods import METHODS

# The syntax that may occur in the arguments of the draws and in the iterables of their loops.
_PURE = (
    *(ast.Name, ast.Constant, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List),
    *(ast.Subscript, ast.Slice, ast.Call, ast.keyword, ast.operator, ast.unaryop, ast.expr_context),
)
_FUNCTIONS = frozenset(
    ("range", "len", "enumerate", "zip", "reversed", "int", "float", "min", "max")
)
_DESCRIPTIONS = frozenset(("shape", "size", "ndim", "dtype"))
_DRAWN, _COUNT = "_rune_drawn_{}", "_rune_iteration_{}"
DRAW, KEEP, NOTE = "_rune_draw_{}", "_rune_keep_{}", "_rune_note"


class Unsuitable(Exception):
    """The numbers cannot be drawn before the loop runs."""


class Draws:
    """The calls of a loop that draw random numbers."""

    def __init__(self, loop: ast.For, is_draw: Callable[[ast.AST], bool]) -> None:
        """Raises Unsuitable."""
        self.original, self._is_draw = copied(loop), is_draw
        # The loops that draw, and the draws, each with the numbers of the loops around it. The
        # nodes have the attributes `number` and `site` for their positions in these lists.
        self.loops: list[ast.For] = []
        self.sites: list[tuple[ast.Call, tuple[int, ...]]] = []
        self.skeleton = self._visit_loop(self.original, ())
        if not self.sites:
            raise Unsuitable
        self._paths = [path_of(x.func) for x, _ in self.sites]
        # The names that the draws' arguments and the loops' iterables read.
        arguments = [y for x, _ in self.sites for y in (*x.args, *x.keywords)]
        self.names = loaded([*arguments, *(x.iter for x in self.loops)])
        self.described = self.names - _whole(arguments + [x.iter for x in self.loops])
        self.targets = frozenset[str]().union(*(stored([x.target]) for x in self.loops))
        self.may_end_early = any(isinstance(x, ast.Break) for x in _nodes_of(self.original))
        self.loop = self.replaced(("float",) * len(self.sites))[-1]
        # (An array that the loop uses in another way may change.)
        self.used = loaded([self.loop])

    def _visit_loop(self, loop: ast.For, around: tuple[int, ...]) -> ast.stmt | None:
        """The loop that only draws the numbers; None if the loop draws none."""
        number = loop.number = len(self.loops)  # type: ignore[attr-defined]
        self.loops.append(loop)
        first = len(self.sites)
        body = self._visit_block(loop.body, (*around, number))
        if len(self.sites) == first:
            self.loops.pop()
            del loop.number  # type: ignore[attr-defined]
            return None
        self._check(loop.iter)
        if loop.orelse or (around and any(isinstance(x, ast.Break) for x in _nodes_of(loop))):
            raise Unsuitable
        iterated = call(NOTE, ast.Constant(number), loop.iter)
        return ast.For(copied(loop.target), iterated, body, [])

    def _visit_block(self, block: list[ast.stmt], around: tuple[int, ...]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        leaves = False  # whether some iterations may not get here
        for s in block:
            first = len(self.sites)
            if isinstance(s, ast.For):
                if self._draws_in(s.iter):
                    raise Unsuitable
                inner = self._visit_loop(s, around)
                made += [] if inner is None else [inner]
            elif isinstance(s, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If)):
                made += self._visit_statement(s, around)
            elif self._draws_in(s):
                raise Unsuitable
            if leaves and len(self.sites) > first:
                raise Unsuitable
            leaves = leaves or _may_leave(s)
        return made

    def _visit_statement(self, s: Any, around: tuple[int, ...]) -> list[ast.stmt]:
        if isinstance(s, ast.If):
            if any(map(self._draws_in, (*s.body, *s.orelse))):
                raise Unsuitable
            parts: list[ast.expr] = [s.test]
        elif isinstance(s, ast.Assign):
            parts = [s.value, *s.targets]
        elif isinstance(s, ast.AugAssign):
            parts = [s.target, s.value]
        else:
            parts = [x for x in (s.value, getattr(s, "target", None)) if x is not None]
        made: list[ast.stmt] = []
        for x in (y for part in parts for y in self._in_order(part)):
            for argument in (*x.args, *x.keywords):
                self._check(argument)
            number = x.site = len(self.sites)  # type: ignore[attr-defined]
            self.sites.append((x, around))
            drawn = ast.Call(load(DRAW.format(number)), x.args, x.keywords)
            made.append(ast.Expr(call(KEEP.format(number), drawn)))
        return made

    def _draws_in(self, x: ast.AST) -> bool:
        return any(map(self._is_draw, walk(x)))

    def _in_order(self, x: ast.AST) -> Iterator[ast.Call]:
        """The draws in an expression, in the order of their evaluation. Raises Unsuitable if one of
        them is evaluated under a condition, or if the order is not known."""
        children = list(ast.iter_child_nodes(x))
        always = children
        if isinstance(x, ast.BoolOp):
            always = [x.values[0]]
        elif isinstance(x, ast.Compare):
            always = [x.left, x.comparators[0]]
        elif isinstance(x, ast.IfExp):
            always = [x.test]
        elif not isinstance(x, _IN_ORDER):
            always = []
        for child in children:
            if child in always:
                yield from self._in_order(child)
            elif self._draws_in(child):
                raise Unsuitable
        if self._is_draw(x):
            assert isinstance(x, ast.Call)
            yield x

    def _check(self, x: ast.AST) -> None:
        """Raises Unsuitable if the loop may change the value of an expression."""
        targets = {z for y in self.loops for z in walk(y.target)}
        names = loaded([x])
        for y in walk(self.original):
            if not isinstance(y, ast.Name) or isinstance(y.ctx, ast.Load):
                continue
            if y.id in names and y not in targets:
                raise Unsuitable
        for y in walk(x):
            if not isinstance(y, _PURE) or (isinstance(y, ast.Call) and not _is_pure(y)):
                raise Unsuitable

    def replaced(self, kinds: tuple[str, ...]) -> list[ast.stmt]:
        """The loop that takes its numbers from arrays, and the statements before it. `kinds` are
        the kinds of the numbers, by site."""
        made = _Replacer(self.sites, kinds).visit(copied(self.original))
        return [at(self.original, s) for s in made]

    def parameters(self) -> list[str]:
        """The names of the arrays."""
        return [_DRAWN.format(i) for i in range(len(self.sites))]

    @property
    def iteration(self) -> str:
        """The name that counts the iterations of the outermost loop."""
        return _COUNT.format(0)

    def methods(self, held: Mapping[str, Any], module: dict[str, Any]) -> list[Any] | None:
        """The generators' methods that the draws call now. None if one of them calls another
        function."""
        found = [method_of(path, held, module) for path in self._paths]
        return None if None in found else found


def draws_of(
    loop: ast.stmt | None, held: Mapping[str, Any], module: dict[str, Any]
) -> Draws | None:
    """The calls of a loop that draw random numbers. None if there are none, or if the numbers
    cannot be drawn before the loop runs. `held` are the values of local variables."""
    if not isinstance(loop, ast.For):
        return None
    assigned = stored([loop])

    def is_draw(x: ast.AST) -> bool:
        path = path_of(x.func) if isinstance(x, ast.Call) else ()
        if not path or path[0] in assigned:
            return False
        return method_of(path, held, module) is not None

    try:
        return Draws(loop, is_draw)
    except Unsuitable:
        return None


def method_of(path: tuple[str, ...], held: Mapping[str, Any], module: dict[str, Any]) -> Any:
    """The method of a generator that a path of names refers to. None if it is something else."""
    try:
        value = held[path[0]] if path[0] in held else global_value(module, path[0])
        for name in path[1:-1]:  # (without `getattr`, which may run a property)
            value = vars(value)[name]
        if len(path) > 1 and (type(value) in generators() or type(value) is types.ModuleType):
            value = getattr(value, path[-1])
    except (KeyError, AttributeError, TypeError):
        return None
    if type(getattr(value, "__self__", None)) not in generators():
        return None
    return value if getattr(value, "__name__", None) in METHODS else None


def _may_leave(s: ast.stmt) -> bool:
    """Whether a statement may end the iteration of the loop around it."""
    if isinstance(s, (ast.For, ast.While)):
        return any(map(_may_leave, s.orelse))
    return any(isinstance(x, (ast.Break, ast.Continue)) for x in (s, *_nodes_of(s)))


def _nodes_of(s: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement that belong to the loop around it, or to the loop itself."""
    for x in ast.iter_child_nodes(s):
        yield x
        if not isinstance(x, (ast.For, ast.While)):
            yield from _nodes_of(x)


# The nodes whose parts are evaluated in the order of their fields.
_IN_ORDER = (
    *(ast.Name, ast.Constant, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List),
    *(ast.Subscript, ast.Slice, ast.Call, ast.keyword, ast.Starred),
)


def _is_pure(x: ast.Call) -> bool:
    return isinstance(x.func, ast.Name) and x.func.id in _FUNCTIONS


def _whole(nodes: list[Any]) -> frozenset[str]:
    """The names of arrays whose elements the expressions read, not only shape, length or dtype."""
    found: set[str] = set()
    for x in nodes:
        is_description = isinstance(x, ast.Attribute) and x.attr in _DESCRIPTIONS
        if isinstance(x, ast.Name):
            found.add(x.id)
        elif not is_description and not (isinstance(x, ast.Call) and path_of(x.func) == ("len",)):
            found |= _whole(list(ast.iter_child_nodes(x)))
    return frozenset(found)


def generators() -> list[Any]:
    """The classes of generators whose modules are loaded."""
    found = [sys.modules["random"].Random] if "random" in sys.modules else []
    if "numpy.random" in sys.modules:  # (`np.random` would load it)
        from rune_jit.capture.generators import SeededGenerator

        found += [np.random.Generator, np.random.RandomState, SeededGenerator]
    return found


def is_of_python(generator: Any) -> bool:
    """Whether a generator is a random.Random."""
    return "random" in sys.modules and type(generator) is sys.modules["random"].Random


class _Replacer(Transformer):
    """Replaces the draws of a loop by items of arrays."""

    def __init__(
        self, sites: list[tuple[ast.Call, tuple[int, ...]]], kinds: tuple[str, ...]
    ) -> None:
        self._sites, self._kinds = sites, kinds

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        number = getattr(node, "number", None)
        if number is None:
            return node
        name = _COUNT.format(number)
        following = ast.BinOp(load(name), ast.Add(), ast.Constant(1))
        node.body.insert(0, assign(name, following))
        return [assign(name, ast.Constant(-1)), node]

    def visit_Call(self, node: ast.Call) -> Any:
        number = getattr(node, "site", None)
        if number is None:
            return self.generic_visit(node)
        positions: list[ast.expr] = [load(_COUNT.format(i)) for i in self._sites[number][1]]
        index = positions[0] if len(positions) == 1 else ast.Tuple(positions, ast.Load())
        taken = ast.Subscript(load(_DRAWN.format(number)), index, ast.Load())
        kind = self._kinds[number]
        if kind == "array":
            return ast.Call(ast.Attribute(taken, "copy", ast.Load()), [], [])
        return taken if kind == "NumPy's" else call(kind, taken)
