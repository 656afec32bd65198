"""Replaces the jumps in loops by flags. `break`, `continue` and `return` set names, and `if`
statements test these names. So a jump may depend on values that only the program knows.

    for x in xs:                        for x in xs:
        if x > 3:                           .stop = False
            break                           if x > 3:
        s += x                                  .stop = True
    else:                                   else:
        s = 0                                   s += x
                                            if .stop: break
                                        if .stop: pass
                                        else: s = 0

A loop keeps its jumps if some of them stand in a `try`, `with` or `match` statement. Handlers of
exceptions keep their jumps, since they run only if the loop is unrolled."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from rune_jit.capture.loops.handlers import (
    blocks,
    handlers_of,
    is_transparent,
    jumps_out,
    may_jump,
)
from rune_jit.capture.loops.liveness import stored
from rune_jit.capture.loops.nodes import SCOPES, assign, at, load, walk, within
from rune_jit.capture.loops.raises import Raises

# The prefixes of the names of flags. Names in a program's source cannot begin with a dot.
STOP, SKIP, RETURNED, RESULT = ".stop", ".skip", ".returned", ".result"
# The name of the value that `.result` has until something is returned.
UNSET = ".unset"

_Loop = (ast.For, ast.While)
_JUMPS = (ast.Break, ast.Continue, ast.Return)
_LOOPS_AND_JUMPS = (*_Loop, *_JUMPS)


def is_flag(name: str) -> bool:
    return name.startswith((STOP, RETURNED))


def is_result(name: str) -> bool:
    return name.startswith(RESULT)


class _Flags:
    """The flags of one loop, and which of them its body needs."""

    def __init__(self, loop: ast.stmt) -> None:
        place = f"{loop.lineno}.{loop.col_offset}"
        self.stop, self.skip = STOP + place, SKIP + place
        self.stops = self.skips = self.returns = False


class Jumps:
    """Replaces the jumps of a function's loops. The function's own statements must come first."""

    def __init__(self, raises: Raises) -> None:
        self._raises = raises
        self.steps: dict[ast.stmt, dict[str, int]] = {}  # by loop: the steps of its counters
        self.flags: dict[ast.stmt, str] = {}  # by loop that may be left: the flag for that
        self._returns = False

    def of_function(self, body: list[ast.stmt]) -> list[ast.stmt]:
        new = self._block(body, None)
        if not self._returns:
            return new
        last: ast.stmt = body[-1]
        end = [] if isinstance(last, ast.Return) else [at(last, ast.Return(ast.Constant(None)))]
        return [*new, *end]

    def _block(self, statements: Sequence[ast.stmt], flags: _Flags | None) -> list[ast.stmt]:
        """The statements with the jumps of a loop replaced by these flags."""
        result: list[ast.stmt] = []
        for i, s in enumerate(statements):
            rest = statements[i + 1 :]
            if flags is not None and isinstance(s, _JUMPS):
                return result + self._jump(s, flags)
            if isinstance(s, ast.If):
                if flags is not None and _has_jumps(s):
                    return result + self._if(s, rest, flags)
                s.body, s.orelse = self._block(s.body, flags), self._block(s.orelse, flags)
            if isinstance(s, _Loop):
                new, returns = self._loop(s, flags is None)
                result += new
                if returns and flags is None:
                    self._returns = True
                    leave: ast.stmt = at(s, ast.Return(load(RESULT)))
                    behind = self._raises.raises_unless(s, load(RETURNED), [*rest])
                    if behind is not None:  # (the code after a loop that has not returned)
                        return [*result, behind, leave]
                    result.append(at(s, ast.If(load(RETURNED), [leave], [])))
                elif returns:
                    assert flags is not None
                    flags.returns = True
                    returned = at(s, ast.If(load(RETURNED), [ast.Break()], []))
                    return result + self._if(returned, rest, flags)
            elif is_transparent(s):  # (`_is_kept`: its blocks have no jumps of the loop around it)
                result.append(self._transparent(s))
            else:
                result.append(s)
        return result

    def _transparent(self, s: Any) -> ast.stmt:
        for block in blocks(s):
            block[:] = self._block(block, None)
        for handler in getattr(s, "handlers", ()):
            handler.body = self._block(handler.body, None)
        return s  # type: ignore[no-any-return]

    def _jump(self, s: ast.stmt, flags: _Flags) -> list[ast.stmt]:
        made: list[ast.stmt] = [assign(flags.skip, ast.Constant(True))]
        if not isinstance(s, ast.Continue):
            flags.stops = True
            made.append(assign(flags.stop, ast.Constant(True)))
        if isinstance(s, ast.Return):
            flags.returns = True
            made.append(assign(RESULT, s.value or ast.Constant(None)))
            made.append(assign(RETURNED, ast.Constant(True)))
        return [at(s, x) for x in made]

    def _if(self, s: ast.If, rest: Sequence[ast.stmt], flags: _Flags) -> list[ast.stmt]:
        """The statements for an `if` with jumps, and for the `rest` of its block."""
        then, other = _ends(s.body), _ends(s.orelse)
        body = [*s.body, *([] if then else rest if other else [])]
        orelse = [*s.orelse, *([] if other else rest if then else [])]
        s.body = self._block(body, flags) or [at(s, ast.Pass())]
        s.orelse = self._block(orelse, flags)
        if then or other or not rest:
            return [s]
        flags.skips = True
        behind = ast.If(load(flags.skip), [ast.Pass()], self._block(rest, flags))
        return [s, at(rest[0], behind)]

    def _loop(self, s: ast.For | ast.While, is_outermost: bool) -> tuple[list[ast.stmt], bool]:
        """The statements for a loop, without jumps, and whether the loop may return."""
        if _is_kept(s, is_outermost):
            return [s], False
        self.steps[s] = steps = _steps(s.body)
        if isinstance(s, ast.While):
            _test_within(s, steps)
        flags = _Flags(s)
        body = self._block(s.body, flags)
        before = []
        if flags.stops:
            before.append(assign(flags.stop, ast.Constant(False)))
        if flags.skips:
            before.append(assign(flags.skip, ast.Constant(False)))
        if flags.returns:
            before += [assign(RETURNED, ast.Constant(False)), assign(RESULT, load(UNSET))]
        after = self._block(s.orelse, None)
        s.body, s.orelse = [*(at(s, x) for x in before), *body], []
        if not flags.stops:
            return [s, *after], flags.returns
        self.flags[s] = flags.stop
        s.body.append(at(s, ast.If(load(flags.stop), [ast.Break()], [])))
        if after:
            after = [at(s, ast.If(load(flags.stop), [ast.Pass()], after))]
        # (A loop without iterations sets no flags.)
        none = [assign(flags.stop, ast.Constant(False))]
        if flags.returns:
            none += [assign(RETURNED, ast.Constant(False)), assign(RESULT, load(UNSET))]
        return [*(at(s, x) for x in none), s, *after], flags.returns


def _is_kept(s: ast.For | ast.While, is_outermost: bool) -> bool:
    """Whether the loop keeps its jumps."""
    if not is_outermost and _has_jumps_of(s.orelse):  # (jumps of the loop around it)
        return True
    if s.orelse and any(map(may_jump, handlers_of(s))):  # (a jump in a handler sets no flag)
        return True
    for x in within(s.body):
        if isinstance(x, (ast.If, *_LOOPS_AND_JUMPS, *SCOPES)):
            continue
        if is_transparent(x):
            if any(map(jumps_out, blocks(x))):
                return True
        elif any(isinstance(y, _JUMPS) for y in walk(x)):
            return True
    return False


def _has_jumps_of(statements: Sequence[ast.stmt]) -> bool:
    own = any(
        isinstance(x, _JUMPS) or (isinstance(x, ast.If) and _has_jumps(x)) for x in statements
    )
    return own or any(isinstance(x, ast.Return) for x in within(statements))


def _has_jumps(s: ast.If) -> bool:
    """Whether an `if` contains a jump of the loop around it, or a `return`."""
    for x in (*s.body, *s.orelse):
        if isinstance(x, _JUMPS) or (isinstance(x, ast.If) and _has_jumps(x)):
            return True
        if any(isinstance(y, ast.Return) for y in within([x])):
            return True
    return False


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether the statements always end with a jump."""
    if not body:
        return False
    last = body[-1]
    return isinstance(last, _JUMPS) or (
        isinstance(last, ast.If) and _ends(last.body) and _ends(last.orelse)
    )


# Counters.


def _steps(body: Sequence[ast.stmt]) -> dict[str, int]:
    """The counters of a loop, with the steps that each complete iteration adds to them. A counter
    is a name that is assigned only once, by `name += 1` or the like."""
    found: dict[str, int] = {}
    for s in body:
        if any(isinstance(x, ast.Continue) for x in within([s])):
            break
        name, value = _step_of(s)
        if name is not None and sum(name in stored([x]) for x in body) == 1:
            found[name] = value
    return found


def _step_of(s: ast.stmt) -> tuple[str | None, int]:
    """The name and the integer of `name += 3`, `name = name - 3` and the like."""
    if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
        name, value, op = s.target.id, s.value, s.op
    elif (
        isinstance(s, ast.Assign)
        and len(s.targets) == 1
        and isinstance(s.targets[0], ast.Name)
        and isinstance(s.value, ast.BinOp)
        and isinstance(s.value.left, ast.Name)
        and s.value.left.id == s.targets[0].id
    ):
        name, value, op = s.targets[0].id, s.value.right, s.value.op
    else:
        return None, 0
    if isinstance(value, ast.Constant) and type(value.value) is int:
        if isinstance(op, ast.Add):
            return name, value.value
        if isinstance(op, ast.Sub):
            return name, -value.value
    return None, 0


_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def limit_of(s: ast.While, steps: dict[str, int]) -> tuple[ast.Compare, bool] | None:
    """The comparison in a loop's condition that limits a counter, and whether it is the whole
    condition. None if there is no such comparison at its start."""
    first = s.test.values[0] if _is_and(s.test) else s.test  # type: ignore[attr-defined]
    if not isinstance(first, ast.Compare) or len(first.ops) != 1:
        return None
    left, bound = first.left, first.comparators[0]
    if not isinstance(left, ast.Name) or left.id not in steps:
        return None
    is_up = isinstance(first.ops[0], (ast.Lt, ast.LtE))
    if not isinstance(first.ops[0], _ORDERS) or is_up != (steps[left.id] > 0):
        return None
    names = {x.id for x in walk(bound) if isinstance(x, ast.Name)}
    if not _is_simple(bound) or names & stored(s.body):
        return None
    return first, first is s.test


def _is_simple(x: ast.expr) -> bool:
    """Whether an expression consists of names, constants, shapes and lengths."""
    if isinstance(x, ast.BinOp):
        return _is_simple(x.left) and _is_simple(x.right)
    if isinstance(x, ast.UnaryOp):
        return _is_simple(x.operand)
    if isinstance(x, ast.Subscript) and isinstance(x.value, ast.Attribute):
        return x.value.attr == "shape" and _is_simple(x.value.value) and _is_simple(x.slice)
    if isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and x.func.id == "len":
        return all(map(_is_simple, x.args)) and not x.keywords
    if isinstance(x, ast.Attribute):
        return x.attr in ("size", "shape") and _is_simple(x.value)
    return isinstance(x, (ast.Name, ast.Constant))


def _is_and(x: ast.expr) -> bool:
    return isinstance(x, ast.BoolOp) and isinstance(x.op, ast.And)


def _test_within(s: ast.While, steps: dict[str, int]) -> None:
    """Moves the parts of a condition that read elements at a counter into the body, if the first
    part limits the counter. There the counter is within its limit.

    while i < n and x[i] > 0:      while i < n:
        i += 1                         if x[i] > 0: pass
                                       else: break
                                       i += 1
    """
    limit = limit_of(s, steps)
    if limit is None or limit[1] or s.orelse:
        return
    assert isinstance(s.test, ast.BoolOp) and isinstance(limit[0].left, ast.Name)
    others = s.test.values[1:]
    reads = [x for test in others for x in walk(test) if isinstance(x, ast.Subscript)]
    counter = limit[0].left.id
    if not any(isinstance(y, ast.Name) and y.id == counter for x in reads for y in walk(x)):
        return
    rest = others[0] if len(others) == 1 else ast.BoolOp(ast.And(), others)
    leave = ast.If(rest, [ast.Pass()], [ast.Break()])
    s.body = [at(s.test, leave), *s.body]
    s.test = limit[0]
