"""Finds the live names of a function: those that are read before they are assigned again. It finds
them at the start of a loop's iterations, and after the loop.

The result may contain names that are not live, but it lacks none that is."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rune_jit.capture.loops.handlers import is_errstate, is_try
from rune_jit.capture.loops.nodes import blocks_of, children, walk

Names = frozenset[str]
_NONE: Names = frozenset()


class Live(NamedTuple):
    """The live names of a loop."""

    at_start: Names  # at the start of an iteration
    after: Names  # after the loop


class LiveIf(NamedTuple):
    """The live names of an `if`."""

    at_else: Names  # at the start of its second side
    after: Names  # after the `if`


class Liveness(NamedTuple):
    """The live names at a function's statements, without those of inner functions."""

    loops: dict[ast.For | ast.While, Live]
    ifs: dict[ast.If, LiveIf]


def live_names(function: ast.FunctionDef) -> Liveness:
    found = _Finder()
    found.of_block(function.body, _Exits(_NONE, _NONE, _NONE))
    return Liveness(found.loops, found.ifs)


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def loaded(nodes: Iterable[ast.AST]) -> Names:
    """The names that are read anywhere in the nodes. Leaves out the variables of comprehensions,
    lambdas and inner functions."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            found |= set() if isinstance(node.ctx, ast.Store) else {node.id}
        elif isinstance(node, _COMPREHENSIONS):
            # (The first iterable is evaluated outside of the comprehension.)
            generators = node.generators
            own = frozenset[str]().union(*(stored([g.target]) for g in generators))
            found |= loaded(children(node)) - own
            found |= loaded([generators[0].iter])
        elif isinstance(node, ast.Lambda):
            own = frozenset(x.arg for x in walk(node.args) if isinstance(x, ast.arg))
            found |= (loaded([node.body]) - own) | loaded([node.args])
        elif isinstance(node, ast.FunctionDef):
            found |= loaded(node.body) - _variables(node)
            found |= loaded([node.args, *node.decorator_list])
        else:
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
            found |= loaded(children(node))
    return frozenset(found)


def _variables(function: ast.FunctionDef) -> Names:
    """The variables of a function. Only its parameters if inner scopes or declarations make the
    others uncertain."""
    own = frozenset(x.arg for x in walk(function.args) if isinstance(x, ast.arg))
    inner = (ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.Global, ast.Nonlocal)
    if any(isinstance(x, inner) for s in function.body for x in walk(s)):
        return own
    return own | stored(function.body)


def stored(nodes: Iterable[ast.AST]) -> Names:
    """The names that are assigned anywhere in the nodes, also in inner functions. Leaves out the
    variables of comprehensions."""
    found: set[str] = set()
    for node in nodes:
        nodes = list(walk(node))
        inner = {y for x in nodes if isinstance(x, ast.comprehension) for y in walk(x.target)}
        for x in nodes:
            if x in inner:
                continue
            if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store):
                found.add(x.id)
            elif isinstance(x, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(x.name)
            elif isinstance(x, ast.alias):
                found.add((x.asname or x.name).split(".")[0])
            elif isinstance(x, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and x.name:
                found.add(x.name)
            elif isinstance(x, ast.MatchMapping) and x.rest:
                found.add(x.rest)
    return frozenset(found)


class _Exits(NamedTuple):
    """The live names at the places where control may go after a block."""

    end: Names  # after the last statement
    on_break: Names
    on_continue: Names
    on_raise: Names = _NONE  # where an exception is handled

    @property
    def any(self) -> Names:
        return self.end | self.on_break | self.on_continue | self.on_raise


class _Finder:
    def __init__(self) -> None:
        self.loops: dict[ast.For | ast.While, Live] = {}
        self.ifs: dict[ast.If, LiveIf] = {}

    def of_block(self, statements: Sequence[ast.stmt], exits: _Exits) -> Names:
        """The names that are live before the statements."""
        live = exits.end
        for statement in reversed(statements):
            live = self._of(statement, exits._replace(end=live)) | exits.on_raise
        return live

    def _of(self, s: ast.stmt, exits: _Exits) -> Names:
        after = exits.end
        if isinstance(s, ast.Return):
            return loaded([s])
        if isinstance(s, ast.Break):
            return exits.on_break
        if isinstance(s, ast.Continue):
            return exits.on_continue
        if isinstance(s, ast.If):
            at_else = self.of_block(s.orelse, exits)
            self.ifs[s] = LiveIf(at_else, after)
            hidden = loaded(getattr(s, "hidden", ()))  # (Python may run it.)
            return self.of_block(s.body, exits) | at_else | loaded([s.test]) | hidden
        if isinstance(s, (ast.For, ast.While)):
            return self._of_loop(s, exits)
        if isinstance(s, ast.Assign):
            return (after - _names_of(s.targets)) | loaded([s])
        if isinstance(s, ast.FunctionDef):
            return (after - {s.name}) | loaded([s])
        if isinstance(s, ast.AnnAssign) and s.value is not None:
            return (after - _names_of([s.target])) | loaded([s])
        if isinstance(s, ast.AugAssign):
            return after | loaded([s])
        if is_try(s):
            return self._of_try(s, exits)  # type: ignore[arg-type]
        if is_errstate(s):
            inside = self.of_block(s.body, exits)  # type: ignore[attr-defined]
            return inside | loaded(s.items)  # type: ignore[attr-defined]
        if isinstance(s, (ast.Try, ast.With, ast.Match)) or _is_try_star(s):
            # (Any part of it may run, or none. All names that it reads are live throughout.)
            live = exits.any | loaded([s])
            for _ in range(2):  # (names that one loop in it reads are live after another one)
                for block in blocks_of(s):
                    self.of_block(block, _Exits(live, live, live, live))
            return live
        return after | loaded([s])

    def _of_try(self, s: ast.Try, exits: _Exits) -> Names:
        handled = exits.on_raise
        for handler in s.handlers:
            handled |= self.of_block(handler.body, exits) - {handler.name or ""}
            handled |= loaded([handler.type]) if handler.type else _NONE
        end = self.of_block(s.orelse, exits) | handled
        return self.of_block(s.body, exits._replace(end=end, on_raise=handled)) | handled

    def _of_loop(self, s: ast.For | ast.While, exits: _Exits) -> Names:
        after = self.of_block(s.orelse, exits)  # (live when the iterations are over)
        head = after
        while True:
            inside = self.of_block(s.body, _Exits(head, exits.end, head, exits.on_raise))
            self.loops[s] = Live(inside, after | exits.end)
            if isinstance(s, ast.For):
                inside = (inside - _names_of([s.target])) | loaded([s.target])
                read = loaded([s.iter])
            else:
                inside |= loaded([s.test])
                read = _NONE
            if inside <= head:
                break
            head |= inside
        return head | inside | read if isinstance(s, ast.For) else head | inside


def _names_of(targets: Iterable[ast.expr]) -> Names:
    """The names that an assignment surely assigns."""
    found: set[str] = set()
    for target in targets:
        if isinstance(target, ast.Name):
            found.add(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            found |= _names_of(target.elts)
        elif isinstance(target, ast.Starred):
            found |= _names_of([target.value])
    return frozenset(found)


def _is_try_star(s: ast.stmt) -> bool:
    return type(s).__name__ == "TryStar"
