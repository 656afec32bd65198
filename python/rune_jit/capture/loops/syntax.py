"""Facts that follow from the source of a loop: whether one traced run of its body can represent all
iterations, and which names and attributes it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rune_jit.capture.loops.handlers import as_traced, handlers_of, may_jump
from rune_jit.capture.loops.jumps import is_flag, limit_of
from rune_jit.capture.loops.liveness import Live, loaded, stored
from rune_jit.capture.loops.nodes import assign, at, children, load, path_of, walk, within
from rune_jit.capture.loops.unfold import (
    APPEND,
    APPENDED,
    COLLECT,
    EXTENDED,
    ITEM,
    ITEMS,
    LAST,
    LENGTH,
    POPPED,
    PUT,
    TABLE,
)

Path = tuple[str, ...]  # ("np", "linalg", "norm"): a name and attributes


class Uses(NamedTuple):
    """The names and attributes that statements read from outside."""

    names: frozenset[str]
    paths: frozenset[Path]  # attributes of names that are read, but not called
    calls: frozenset[Path]  # names and attributes of names that are called
    methods: frozenset[str]  # methods of other expressions that are called
    appended: frozenset[str]  # names of lists that are only appended to
    assigned: frozenset[Path]  # assigned attributes; (attribute,) if not of a name
    indexed: frozenset[str]  # names whose items are read or assigned, and which may be lists
    appended_attributes: frozenset[str]  # attributes that are appended to, or whose items are
    appended_items: frozenset[str]  # names of dicts and lists whose items are appended to
    globals: frozenset[str] = frozenset()  # global variables that the statements assign
    attributes: frozenset[str] = frozenset()  # attributes of other expressions than names


class Branch(NamedTuple):
    """An `if` statement whose two sides may both be traced."""

    number: int  # among all branches of all functions
    where: str
    is_of_flag: bool  # whether the condition is a flag that a loop has set
    restored: tuple[str, ...]  # names to restore before the second side
    results: tuple[str, ...]  # names that a side assigns and that are read after the `if`
    uses: Uses


class Limit(NamedTuple):
    """The comparison of a counter with a number that ends a `while` loop, unless it ends before."""

    name: str  # the counter
    includes: bool  # whether the counter may be equal to the number
    is_all: bool  # whether nothing else ends the loop


class Loop(NamedTuple):
    """A loop of a function."""

    number: int  # among all loops of all functions
    where: str  # "file.py:12"
    target: str | None  # the name that each iteration assigns, if the body does not
    assigned: frozenset[str]  # names that the body assigns
    carried: tuple[str, ...]  # the ones of these that an iteration may read before it assigns them
    results: tuple[str, ...]  # the ones of these, and of the targets, that are read after the loop
    # Names that the body assigns only by `name += ...`, so that they keep their arrays.
    updated: frozenset[str]
    written: frozenset[str]  # names of arrays to whose items the body assigns
    steps: dict[str, int]  # the counters, and what each iteration adds to them
    uses: Uses
    refusal: str | None  # why it cannot be a loop of the program
    has_loops: bool  # whether there are loops in its body
    is_comprehension: bool  # whether it has been made from a comprehension or generator
    limit: Limit | None = None  # of a `while` loop
    stop: str | None = None  # the flag that ends it
    original: ast.stmt | None = None  # its source statement, if it can run apart


_STATEMENTS = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Pass),
    *(ast.Continue, ast.Assert),
)
# Statements that a called function may have in addition.
_LEAVES = (ast.Return, ast.Break, ast.Nonlocal, ast.Global)
_NOT_EXPRESSIONS = {
    ast.Lambda: "a lambda",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.JoinedStr: "an f-string",
}
# Attributes of arrays that can be assigned.
_OF_ARRAYS = frozenset({"shape", "dtype", "strides", "flat", "real", "imag"})
# The functions that get, as first argument, a list that is appended to.
_OF_LISTS = (APPEND, APPENDED, COLLECT, EXTENDED, LAST, LENGTH, POPPED, ITEM, PUT)
# Functions that can read the variables of their caller.
REFLECTIVE = frozenset({"locals", "vars", "eval", "exec", "dir", "globals"})


def names_variables(x: ast.AST) -> bool:
    """Whether x is a call that gives the names of the caller's variables, among which new ones must
    not be: `locals()`, `vars()`, `dir()`."""
    is_plain = isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and not x.args
    return is_plain and x.func.id in ("locals", "vars", "dir")  # type: ignore[attr-defined]


def function_refusal(body: Sequence[ast.stmt]) -> str | None:
    """Why a function with this body may not be called from a loop of the program."""
    return _refusal(as_traced(body), (*_STATEMENTS, *_LEAVES))


def loop_refusal(loop: ast.For | ast.While, declared: frozenset[str]) -> str | None:
    """Why one traced run of a loop's body cannot represent all iterations; None if it can.
    `declared` are the names that are declared global or nonlocal."""
    if loop.orelse:
        return "it has an else"
    body = as_traced(loop.body[:-1] if is_left_by_flag(loop) else loop.body)
    if any(isinstance(s, ast.Break) for s in _outside_loops(body)):
        return "it has a break"
    if isinstance(loop, ast.While) and stored([loop.test]):
        return "its condition assigns a name"
    assigned = stored([*loop.body, *_targets(loop)])
    if names := assigned & declared:
        return f"{_listed(names)} is no local variable"
    if isinstance(loop, ast.While):
        test = ast.copy_location(ast.Expr(loop.test), loop.test)
        return _refusal([test, *body], _STATEMENTS)
    if not isinstance(loop.target, (ast.Name, ast.Tuple, ast.List)):
        return "it assigns to no name"
    return _refusal(body, _STATEMENTS)


def is_left_by_flag(loop: ast.For | ast.While) -> bool:
    """Whether the last statement of a loop leaves it if a flag is set."""
    last = loop.body[-1]
    return isinstance(last, ast.If) and isinstance(last.test, ast.Name) and is_flag(last.test.id)


def _targets(loop: ast.For | ast.While) -> list[ast.expr]:
    return [loop.target] if isinstance(loop, ast.For) else []


def make_loop(
    number: int,
    where: str,
    loop: ast.For | ast.While,
    live: Live,
    steps: dict[str, int],
    refusal: str | None,
    module_names: frozenset[str] = frozenset(),
) -> Loop:
    """The facts about a loop. `module_names` are the names that its function declares global. They
    are places (places.py), not local variables."""
    assigned = stored(loop.body) - module_names
    steps = {name: step for name, step in steps.items() if name not in module_names}
    assigns_globals = stored([*loop.body, *_targets(loop)]) & module_names
    body = as_traced(loop.body)
    target = None
    if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name):
        target = loop.target.id if loop.target.id not in assigned else None
    targets = stored(_targets(loop))
    limit = limit_of(loop, steps) if isinstance(loop, ast.While) else None
    stop = loop.body[-1] if is_left_by_flag(loop) else None
    updated = {
        s.target.id
        for s in within(body)
        if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name)
    }
    others = {
        x.id
        for s in within(body)
        for x in walk(s)
        if isinstance(x, ast.Name)
        and isinstance(x.ctx, ast.Store)
        and not (isinstance(s, ast.AugAssign) and x is s.target)
        and not isinstance(s, (ast.If, ast.For, ast.While))
    }
    inner = {name for s in within(body) if isinstance(s, ast.For) for name in stored([s.target])}
    return Loop(
        number,
        where,
        target,
        assigned,
        tuple(sorted((assigned - targets) & live.at_start)),
        tuple(sorted((assigned | targets) & live.after)),
        frozenset(updated - others - inner),
        _written(body) - assigned - targets,
        steps,
        uses_of([loop.test, *body] if isinstance(loop, ast.While) else body)._replace(
            globals=assigns_globals
        ),
        refusal,
        any(isinstance(s, (ast.For, ast.While)) and not _is_comprehension(s) for s in within(body)),
        _is_comprehension(loop),
        _limit(*limit) if limit else None,
        stop.test.id if stop is not None else None,  # type: ignore[attr-defined]
        getattr(loop, "original", None) if refusal is None and not assigns_globals else None,
    )


def _is_comprehension(loop: ast.stmt) -> bool:
    return getattr(loop, "is_comprehension", False)


def _limit(compared: ast.Compare, is_all: bool) -> Limit:
    assert isinstance(compared.left, ast.Name)
    return Limit(compared.left.id, isinstance(compared.ops[0], (ast.LtE, ast.GtE)), is_all)


def is_branch(s: ast.If) -> bool:
    """Whether both sides of an `if` can be traced one after the other: neither may jump out."""
    if any(map(may_jump, handlers_of(s))):
        return False
    bodies = as_traced(s.body), as_traced(s.orelse)
    sides = [x for body in bodies for x in within(body)]
    own = [x for body in bodies for x in _outside_loops(body)]
    jumps = (ast.Break, ast.Continue)
    return all(
        isinstance(x, (*_STATEMENTS, *jumps)) and (not isinstance(x, jumps) or x not in own)
        for x in sides
    )


def without_returns(body: list[ast.stmt], name: str) -> list[ast.stmt]:
    """A function's statements, where the returns in the sides of an `if` are replaced by one
    `return name` at the end. Returns the statements unchanged if they have no such returns, or
    others as well."""
    new = _assigning(body, name)
    if new is None or not body or (len(body) == 1 and isinstance(body[0], ast.Return)):
        return body
    if not any(isinstance(s, ast.If) for s in new) or (
        isinstance(body[-1], ast.Return)
        and not any(isinstance(x, ast.Return) for s in body[:-1] for x in walk(s))
    ):
        return body
    return [*new, at(body[-1], ast.Return(load(name)))]


def _assigning(body: list[ast.stmt], name: str) -> list[ast.stmt] | None:
    """The statements with `name = x` in place of each `return x`. None if they can end without a
    return, or if there is a return in another statement than an `if`."""
    for i, s in enumerate(body):
        if isinstance(s, ast.Return):
            return [*body[:i], at(s, assign(name, s.value or ast.Constant(None)))]
        if isinstance(s, ast.If) and any(isinstance(x, ast.Return) for x in walk(s)):
            rest = body[i + 1 :]
            goes_on = not any(isinstance(x, ast.Return) for y in s.body for x in walk(y))
            then = _assigning([*s.body, *(rest if goes_on else [])], name)
            other = _assigning([*s.orelse, *([] if goes_on else rest)], name)
            if then is None or other is None:
                return None
            return [*body[:i], ast.copy_location(ast.If(s.test, then, other), s)]
        if any(isinstance(x, ast.Return) for x in within([s])):
            return None
    return None


def _written(body: Iterable[ast.stmt]) -> frozenset[str]:
    """The names to whose items, or slices, the statements assign."""
    names: set[str] = set()
    for s in body:
        for x in walk(s):
            if isinstance(x, ast.Subscript) and isinstance(x.ctx, ast.Store):
                base: ast.expr = x
                while _is_items(base) or isinstance(base, (ast.Subscript, ast.Attribute)):
                    base = base.args[0] if isinstance(base, ast.Call) else base.value  # type: ignore
                if isinstance(base, ast.Name):
                    names.add(base.id)
    return frozenset(names)


def uses_of(statements: Sequence[ast.stmt | ast.expr]) -> Uses:
    """The names and attributes that the statements read."""
    paths: set[Path] = set()
    calls: set[Path] = set()
    methods: set[str] = set()
    attributes: set[str] = set()
    inner: set[ast.AST] = set()  # nodes that are parts of paths
    appended_attributes: set[str] = set()
    holders: list[ast.Name] = []  # names whose items are appended to
    nodes = [x for s in statements for x in walk(s)]  # (outer expressions come first)
    for x in nodes:
        if (place := _appended_place(x)) is not None:
            if isinstance(place, ast.Attribute):
                appended_attributes.add(place.attr)
                inner.add(place)
            else:
                holders.append(place)
        elif isinstance(x, ast.Call):
            path = path_of(x.func)
            if path:
                calls.add(path)
                inner |= set(walk(x.func))
            elif isinstance(x.func, ast.Attribute):
                methods.add(x.func.attr)
                inner.add(x.func)
        elif isinstance(x, ast.Attribute) and x not in inner:
            path = path_of(x)
            if path:
                paths.add(path)
                inner |= set(walk(x))
            else:
                attributes.add(x.attr)
    appended, read = _given_and_read(nodes, _OF_LISTS)
    names = frozenset(name for name in loaded(statements) if not name.startswith("."))
    names -= appended - read
    assigned = frozenset(
        path_of(x) or (x.attr,)
        for x in nodes
        if isinstance(x, ast.Attribute) and isinstance(x.ctx, ast.Store)
    )
    _, read = _given_and_read(nodes, (ITEMS, "len"))
    indexed = _given_and_read(nodes, (ITEMS,))[0] - read
    known = {id(x) for x in holders}
    others = {x.id for x in nodes if isinstance(x, ast.Name) and id(x) not in known}
    appended_items = frozenset(x.id for x in holders) - others
    indexed -= appended_items
    names -= indexed | appended_items
    return Uses(
        names,
        frozenset(paths),
        frozenset(calls),
        frozenset(methods),
        appended,
        assigned,
        indexed,
        frozenset(appended_attributes),
        appended_items,
        attributes=frozenset(attributes),
    )


def _appended_place(x: ast.AST) -> ast.Attribute | ast.Name | None:
    """The attribute that a call appends to. If it appends to an item, the attribute or name that
    the item belongs to. None if it appends to a name, or is another call."""
    if not isinstance(x, ast.Call) or not isinstance(x.func, ast.Name) or x.func.id != APPEND:
        return None
    place = x.args[0]
    if isinstance(place, ast.Subscript):
        place = place.value
        place = place.args[0] if _is_items(place) else place  # type: ignore[attr-defined]
    elif isinstance(place, ast.Name):
        return None
    return place  # type: ignore[return-value]


def _given_and_read(
    nodes: Sequence[ast.AST], functions: tuple[str, ...]
) -> tuple[frozenset[str], frozenset[str]]:
    """The names that are first arguments of these functions, and the names that are read in another
    way."""
    given = {
        id(x.args[0]): x.args[0].id
        for x in nodes
        if isinstance(x, ast.Call)
        and isinstance(x.func, ast.Name)
        and x.func.id in functions
        and x.args
        and isinstance(x.args[0], ast.Name)
    }
    same = {id(x.targets[0]) for x in nodes if isinstance(x, ast.Assign) and _is_extended(x)}
    read = {
        x.id for x in nodes if isinstance(x, ast.Name) and id(x) not in given and id(x) not in same
    }
    return frozenset(given.values()), frozenset(read)


def _is_extended(x: ast.Assign) -> bool:
    """Whether x is `items += values`, after which the name stands for the same list."""
    called = x.value.func if isinstance(x.value, ast.Call) else None
    return isinstance(called, ast.Name) and called.id == EXTENDED


def _is_items(x: ast.expr) -> bool:
    """Whether x is a call that Unfolder has put around `items` in `items[i]`."""
    is_call = isinstance(x, ast.Call) and isinstance(x.func, ast.Name)
    return is_call and x.func.id in (ITEMS, TABLE)  # type: ignore[attr-defined]


def _refusal(body: Sequence[ast.stmt], allowed: tuple[type, ...]) -> str | None:
    for s in within(body):
        if isinstance(s, ast.FunctionDef) and not s.decorator_list:
            # (An iteration's function lives no longer than the iteration.)
            if reason := function_refusal(s.body):
                return reason
            if any(isinstance(x, ast.Nonlocal) for x in walk(s)):
                return "it defines a function with nonlocal"
        elif not isinstance(s, allowed):
            own = isinstance(s, ast.Break) and s not in list(_outside_loops(body))
            if not own:
                return f"{_keyword(s)} (line {s.lineno})"
        expressions = list(_expressions(s))
        # (A lambda may be an argument, since a callee without effects does not keep it.)
        given = {
            id(y)
            for x in expressions
            if isinstance(x, ast.Call)
            for y in (*x.args, *(keyword.value for keyword in x.keywords))
            if isinstance(y, ast.Lambda)
        }
        if isinstance(s, ast.Assign) and [type(x) for x in s.targets] == [ast.Name]:
            given |= {id(x) for x in [s.value] if isinstance(x, ast.Lambda)}  # (like a function)
        for x in expressions:
            reason = _refusal_of(x) if id(x) not in given else None
            if reason:
                return f"{reason} (line {s.lineno})"
    return None


def _refusal_of(x: ast.AST) -> str | None:
    if type(x) in _NOT_EXPRESSIONS:
        return _NOT_EXPRESSIONS[type(x)]
    if isinstance(x, ast.Attribute) and isinstance(x.ctx, ast.Del):
        return f"it deletes the attribute {x.attr}"
    if isinstance(x, ast.Attribute) and isinstance(x.ctx, ast.Store) and x.attr in _OF_ARRAYS:
        return f"it assigns to the attribute {x.attr}"
    if isinstance(x, ast.Call) and not isinstance(x.func, (ast.Name, ast.Attribute)):
        return "it calls the value of an expression"
    if isinstance(x, ast.Compare):
        for op, right in zip(x.ops, x.comparators, strict=True):
            if isinstance(op, (ast.Is, ast.IsNot)) and not isinstance(right, ast.Constant):
                return "it compares by `is`"
    return None


def _keyword(s: ast.stmt) -> str:
    return {
        ast.FunctionDef: "it defines a function",
        ast.ClassDef: "it defines a class",
        ast.Return: "it has a return",
    }.get(type(s), f"it has a {type(s).__name__.lower()} statement")


def _outside_loops(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """As `within`, without the bodies of inner loops, whose breaks belong to the inner loops."""
    for s in body:
        yield s
        if isinstance(s, (ast.For, ast.While)):
            yield from _outside_loops(s.orelse)
        elif isinstance(s, ast.If):
            yield from _outside_loops(s.body)
            yield from _outside_loops(s.orelse)


def _expressions(s: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of statements in it."""
    open_: list[ast.AST] = [child for child in children(s) if not isinstance(child, ast.stmt)]
    while open_:
        x = open_.pop()
        yield x
        open_ += [c for c in children(x) if not isinstance(c, ast.stmt)]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
