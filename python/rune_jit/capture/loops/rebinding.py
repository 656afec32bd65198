"""Assigns names around loops and `if` statements, and at the start of their bodies. They get the
values that the trace has found for them."""

from __future__ import annotations

import ast

from rune_jit.capture.loops.conditions import condition
from rune_jit.capture.loops.nodes import assign, at, attribute, call, load, store
from rune_jit.capture.loops.syntax import Branch, Loop, is_left_by_flag
from rune_jit.tracing.conditions import SIDE

# The global name of the function that branches call. Source cannot contain it.
BRANCH_ENTRY = ".branch"


def with_rebinding(
    s: ast.For | ast.While, loop: Loop, name: str, place: ast.expr
) -> list[ast.stmt]:
    """The loop with assignments of names at the start of its body and after it."""
    if is_left_by_flag(s):
        leave = s.body[-1]
        assert isinstance(leave, ast.If)
        leave.test = at(place, call((name, "stops"), leave.test))
    rebind = [_rebinding(name, "values", loop.carried)] if loop.carried else []
    after = [_rebinding(name, "results", loop.results)] if loop.results else []
    s.body = [at(place, x) for x in rebind] + s.body
    return [s, *(at(place, x) for x in after)]


def both_ways(s: ast.If, branch: Branch) -> list[ast.stmt]:
    """An `if` whose sides may both run:

    .branch0 = .branch(0, test)
    for .side in .branch0:
        if .branch0.rebinds:
            names = .branch0.values
            if "a" in .branch0.unbound: del a  (and so on)
        if .side: ...
    if .branch0.rebinds: names = .branch0.results
    """
    name, side = f"{BRANCH_ENTRY}{branch.number}", SIDE
    begin = call(BRANCH_ENTRY, ast.Constant(branch.number), condition(s.test))
    first = at(s.test, assign(name, begin))
    restored, results = branch.restored, branch.results
    before = [at(s.test, _rebinding(name, "values", restored))] if restored else []
    for rebind in before:
        unbound = attribute("unbound", name)
        rebind.body += [at(s.test, _unbinding(x, unbound)) for x in restored]
    after = [at(s.test, _rebinding(name, "results", results))] if results else []
    inner = ast.copy_location(ast.If(at(s.test, load(side)), s.body, s.orelse), s)
    loop = at(s.test, ast.For(store(side), load(name), [*before, inner], []))
    return [first, loop, *after]


def _unbinding(name: str, unbound: ast.expr) -> ast.stmt:
    """if "name" in unbound: del name"""
    test = ast.Compare(ast.Constant(name), [ast.In()], [unbound])
    return ast.If(test, [ast.Delete([ast.Name(name, ast.Del())])], [])


def _rebinding(loop: str, result: str, names: tuple[str, ...]) -> ast.If:
    """if loop.rebinds: names = loop.result"""
    return ast.If(attribute("rebinds", loop), [assign(names, attribute(result, loop))], [])
