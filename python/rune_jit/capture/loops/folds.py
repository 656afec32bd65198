"""Turns Python's sum, max, min, any and all of generators into loops:

    s = sum(x[i] for i in range(n))         if .is_pythons(sum):
                                                .choice0 = 0
                                                for i.choice0 in range(n):
                                                    .choice0 = .choice0 + x[i.choice0]
                                            else:
                                                .choice0 = sum(x[i] for i in range(n))
                                            s = .choice0

`max` and `min` begin with `.unset`; `any` and `all` leave the loop by `break`."""

from __future__ import annotations

import ast

from rune_jit.capture.loops.jumps import UNSET
from rune_jit.capture.loops.nodes import assign, call, copied, load, walk

IS_PYTHONS, BETTER, FOUND = ".is_pythons", ".better", ".found"
_EXTREMES, _DECISIONS = ("max", "min"), ("any", "all")


def is_fold(x: ast.AST) -> bool:
    """Whether x is a call that can become such a loop, with its own names renamed."""
    if not isinstance(x, ast.Call) or not isinstance(x.func, ast.Name) or x.keywords:
        return False
    if getattr(x, "is_kept", False):
        return False
    is_sum = x.func.id == "sum" and len(x.args) in (1, 2)
    if not is_sum and (x.func.id not in (*_EXTREMES, *_DECISIONS) or len(x.args) != 1):
        return False
    if len(x.args) == 2 and not isinstance(x.args[1], (ast.Constant, ast.Name)):
        return False
    given = x.args[0]
    is_evaluated = isinstance(given, ast.ListComp) and x.func.id not in _DECISIONS
    if not isinstance(given, ast.GeneratorExp) and not is_evaluated:
        return False
    targets = [y for g in given.generators for y in walk(g.target)]  # type: ignore[attr-defined]
    if any(not isinstance(y, (ast.Name, ast.Tuple, ast.expr_context)) for y in targets):
        return False
    own = [y.id for y in targets if isinstance(y, ast.Name)]
    if len(set(own)) < len(own) or any(g.is_async for g in given.generators):  # type: ignore[attr-defined]
        return False
    for y in walk(given):
        if isinstance(y, (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            return False
        is_assigned = isinstance(y, ast.Name) and isinstance(y.ctx, ast.Store)
        if is_assigned and y not in targets and y.id in own:  # type: ignore[attr-defined]
            return False
    return True


def as_loop(x: ast.Call | ast.BoolOp, name: str) -> list[ast.stmt]:
    """The statements that compute the result of x and assign it to a name. For `and` and `or`, each
    operand has a statement of its own."""
    if isinstance(x, ast.BoolOp):
        return _as_statements(x, name)
    assert isinstance(x.func, ast.Name)
    function = x.func.id
    given: ast.GeneratorExp = copied(x.args[0])  # type: ignore[assignment]
    _rename(given, name)
    begins: ast.expr = ast.Constant(function == "all")
    if function == "sum":
        begins = x.args[1] if len(x.args) == 2 else ast.Constant(0)
    elif function in _EXTREMES:
        begins = load(UNSET)
    body = _step(function, given.elt, name)
    for i, generator in enumerate(reversed(given.generators)):
        if i and function in _DECISIONS:  # (if the inner loop has been left, so is this one)
            body.append(ast.If(_decided(function, load(name)), [ast.Break()], []))
        for test in reversed(generator.ifs):
            body = [ast.If(test, body, [])]
        loop = ast.For(generator.target, generator.iter, body, [])
        # (A comprehension of few items is unrolled.)
        is_plain = not i and not generator.ifs and function not in _DECISIONS
        loop.is_comprehension = is_plain  # type: ignore[attr-defined]
        body = [loop]
    if function in _EXTREMES:
        found = call(FOUND, load(function), load(name))
        body.append(assign(name, found))
    x.is_kept = True  # type: ignore[attr-defined]
    is_pythons = call(IS_PYTHONS, load(function))
    return [ast.If(is_pythons, [assign(name, begins), *body], [assign(name, x)])]


def _as_statements(x: ast.BoolOp, name: str) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for value in reversed(x.values):
        step = assign(name, value)
        if not made:
            made = [step]
        elif isinstance(x.op, ast.And):
            made = [step, ast.If(load(name), made, [])]
        else:
            made = [step, ast.If(load(name), [ast.Pass()], made)]
    return made


def _rename(given: ast.GeneratorExp, suffix: str) -> None:
    """Adds a suffix to the names that a generator expression assigns."""
    generators = given.generators
    names = {y.id for g in generators for y in walk(g.target) if isinstance(y, ast.Name)}
    parts: list[ast.expr] = [given.elt]
    for g in generators:
        parts += [g.target, *g.ifs]
    parts += [g.iter for g in generators[1:]]  # (the first is evaluated outside)
    for part in parts:
        for y in walk(part):
            if isinstance(y, ast.Name) and y.id in names:
                y.id += suffix


def _step(function: str, item: ast.expr, name: str) -> list[ast.stmt]:
    if function == "sum":
        return [assign(name, ast.BinOp(load(name), ast.Add(), item))]
    if function in _EXTREMES:
        return [assign(name, call(BETTER, load(function), load(name), item))]
    made = assign(name, ast.Constant(function == "any"))
    return [ast.If(_decided(function, item), [made, ast.Break()], [])]


def _decided(function: str, item: ast.expr) -> ast.expr:
    """The condition that an item decides the result of `any` or `all`."""
    return item if function == "any" else ast.UnaryOp(ast.Not(), item)
