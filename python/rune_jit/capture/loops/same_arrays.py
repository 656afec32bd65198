"""Keeps arrays shared that several names, or items of lists, share after a loop that runs apart
(apart.py). The results of such a loop are copies. So each new array gets a number, and each
assignment of the array also assigns its number:

    for i in range(n):                      for i in range(n):
        new = x + step(x)                       new = x + step(x)
                                                id_new, made = made, made + 1
        if is_better(new):                      if is_better(new):
            x = new                                 x = new
                                                    id_x = id_new
        path.append(x)                          path.append((x.copy(), id_x))

After the loop, equal numbers mean the same array. Negative numbers are those of arrays from before
the loop. The loop must not write to these arrays."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from rune_jit.capture.loops.aliases import Aliases, Kind
from rune_jit.capture.loops.nodes import (
    Transformer,
    assign,
    assigned,
    at,
    call,
    copied,
    is_new,
    load,
    path_of,
    store,
    walk,
)
from rune_jit.capture.loops.pure import BUILTINS, READING_METHODS, WRITING_FUNCTIONS
from rune_jit.capture.loops.scopes import DEEPEST, Find, Reads, Scope, are_as_read, body_of
from rune_jit.capture.loops.unfold import is_append
from rune_jit.capture.shim import ModuleView, original
from rune_jit.tracing.tracer import is_array

_READING_METHODS = READING_METHODS | {"item", "tolist"}
_READING_BUILTINS = BUILTINS | {"isinstance", "print"}


class Variables(NamedTuple):
    """The names of the variables that hold numbers of arrays."""

    level: int  # tells apart the variables of nested loops

    @property
    def made(self) -> str:
        return f"_rune_made_{self.level}"

    def of(self, name: str) -> str:
        return f"_rune_id_{self.level}_{name}"


class SharedArrays(NamedTuple):
    """A loop that numbers its arrays, and the facts that it relies on."""

    loop: ast.stmt
    variables: Variables
    names: frozenset[str]  # the names of the numbered arrays
    lists: frozenset[str]  # the names of lists that get pairs of an array and its number
    results: tuple[str, ...]  # the ones of `names` that are read after the loop
    reads: Reads  # the functions and other values that the loop relies on

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of the variables that hold the results' numbers."""
        return tuple(map(self.variables.of, self.results))

    def fits(self, given: Mapping[str, Any], find: Find) -> bool:
        """Whether the facts that the loop relies on hold for these values."""
        return (
            all(is_array(given[name]) for name in self.names if name in given)
            and all(type(given.get(name)) is list for name in self.lists)
            and are_as_read(self.reads, find)
        )

    def initial(self, held: Mapping[str, Any]) -> dict[str, int]:
        """The variables for numbers, and their values before the loop."""
        found = {self.variables.made: 1}
        before = [(name, held[name]) for name in sorted(self.names) if name in held]
        for name in self.names:
            of = [i for i, (_, x) in enumerate(before) if x is held.get(name)]
            found[self.variables.of(name)] = -1 - of[0] if name in held else 0
        return found

    def objects(self, given: Mapping[str, Any]) -> dict[int, Any]:
        """The arrays from before the loop, by number."""
        before = [given[name] for name in sorted(self.names) if name in given]
        return {-1 - i: x for i, x in reversed([*enumerate(before)])}


def _list_of(x: ast.Call) -> str | None:
    """The name of the list that a call appends to; None if it is another call."""
    of = x.func.value if is_append(x) else None  # type: ignore[attr-defined]
    return of.id if isinstance(of, ast.Name) else None


def shared_arrays(
    loop: ast.stmt,
    results: tuple[str, ...],
    aliases: Aliases,
    given: Mapping[str, Any],
    find: Find,
) -> SharedArrays | None:
    """A loop that numbers the arrays that its results and lists may share. None if the loop may
    write to these arrays, or if it is not known where they come from."""
    reads: Reads = {}
    scope = Scope(find, reads, None)
    kinds = aliases.kinds(given, scope)
    appended = aliases.appended & {name for name, x in given.items() if type(x) is list}
    appends = [x for x in walk(loop) if isinstance(x, ast.Call) and _list_of(x) in appended]
    arrays = [x for x in appends if _is_name(x.args[0]) and kinds.of(x.args[0]) != Kind.NUMBER]
    lists = {name for x in arrays if (name := _list_of(x))}
    own = [
        name
        for name in results
        if kinds.may_be_others(name) or (kinds.assigns(name) and is_array(given.get(name)))
    ]
    names: set[str] = set()
    found = [*own, *(x.args[0].id for x in arrays)]  # type: ignore[attr-defined]
    while found:
        name = found.pop()
        if name in names:
            continue
        names.add(name)
        values = aliases.values_of(name)
        if values is None or (not values and name not in given):  # such as a global
            return None
        if name in given and not is_array(given[name]):
            return None
        for value in values:
            if isinstance(value, ast.Name):
                found.append(value.id)
            elif kinds.of(value) != Kind.NEW:
                return None
    into = [x.args[0] for x in appends if _list_of(x) in lists]
    if any(not _is_name(x) and kinds.of(x) != Kind.NEW for x in into):
        return None
    if any(_is_name(x) and x.id not in names for x in into):  # type: ignore[attr-defined]
        return None
    stored = [x for x in walk(loop) if isinstance(x, ast.Name) and type(x.ctx) is not ast.Load]
    assigned = [
        y for x in walk(loop) if isinstance(x, ast.Assign) for t in x.targets for y in walk(t)
    ]
    are_assigned = {id(x) for x in assigned}
    if any(x.id in names and id(x) not in are_assigned for x in stored):
        return None
    if not names or _may_write([loop], names, frozenset(lists), scope):
        return None
    used, variables = {x.id for x in walk(loop) if isinstance(x, ast.Name)}, Variables(0)
    while not used.isdisjoint((variables.made, *map(variables.of, names))):
        variables = Variables(variables.level + 1)
    made = _Numbers(names, lists, variables).visit(copied(loop))
    own_results = tuple(name for name in results if name in names)
    return SharedArrays(made, variables, frozenset(names), frozenset(lists), own_results, reads)


def _is_name(x: ast.expr | None) -> bool:
    return isinstance(x, ast.Name)


class _Numbers(Transformer):
    """Adds the assignments of numbers to a loop."""

    def __init__(self, names: set[str], lists: set[str], variables: Variables) -> None:
        self._names, self._lists, self._variables = names, lists, variables

    def _plus(self, count: int) -> ast.expr:
        made = load(self._variables.made)
        return ast.BinOp(made, ast.Add(), ast.Constant(count)) if count else made

    def visit_Assign(self, node: ast.Assign) -> Any:
        made: dict[int, int] = {}  # by id of an expression: how many arrays are made before it
        numbers: list[tuple[str, ast.expr]] = []
        for x, value in assigned(node):
            if isinstance(x, ast.Name) and x.id in self._names:
                number = (
                    load(self._variables.of(value.id))
                    if isinstance(value, ast.Name)
                    else self._plus(made.setdefault(id(value), len(made)))
                )
                numbers.append((x.id, number))
        if not numbers:
            return node
        targets = [*(store(self._variables.of(name)) for name, _ in numbers)]
        values = [value for _, value in numbers]
        if made:
            targets.append(store(self._variables.made))
            values.append(self._plus(len(made)))
        new = ast.Assign([ast.Tuple([*targets], ast.Store())], ast.Tuple(values, ast.Load()))
        return [node, at(node, new)]

    def visit_Expr(self, node: ast.Expr) -> Any:
        x = node.value
        if not isinstance(x, ast.Call) or _list_of(x) not in self._lists:
            return node
        value, after = x.args[0], []
        number: ast.expr = load(self._variables.made)
        if isinstance(value, ast.Name):
            number = load(self._variables.of(value.id))
            value = call((value.id, "copy"))
        else:
            after = [at(node, assign(self._variables.made, self._plus(1)))]
        x.args[0] = at(x, ast.Tuple([value, number], ast.Load()))
        return [node, *after]


def _may_write(
    nodes: list[Any], arrays: Iterable[str], lists: frozenset[str], scope: Scope
) -> bool:
    """Whether code may write to the arrays with these names, or keep a reference to them."""
    names = {*arrays}
    everything = [x for node in nodes for x in walk(node)]

    def mentions(x: Any) -> bool:
        return any(isinstance(y, ast.Name) and y.id in names for y in walk(x))

    # Add the names that may be those of the same arrays, or of views of them.
    count = 0
    while count != len(names):
        count = len(names)
        for x in everything:
            pairs: list[tuple[ast.expr, Any]] = []
            if isinstance(x, ast.Assign):
                pairs = [*assigned(x)]
            elif isinstance(x, (ast.AnnAssign, ast.NamedExpr)):
                pairs = [(x.target, x.value)]
            elif isinstance(x, (ast.For, ast.comprehension)):
                pairs = [(x.target, x.iter)]
            for target, value in pairs:
                if value is not None and not is_new(value) and mentions(value):
                    names |= {y.id for y in walk(target) if isinstance(y, ast.Name)}
    return any(_writes(x, names, mentions, lists, scope) for x in everything)


def _writes(
    x: ast.AST,
    names: set[str],
    mentions: Callable[[Any], bool],
    lists: frozenset[str],
    scope: Scope,
) -> bool:
    """Whether a node may write to the arrays with these names, or keep a reference to them. The
    nodes inside of it do not count."""
    if isinstance(x, (ast.Subscript, ast.Attribute)):
        return not isinstance(x.ctx, ast.Load) and mentions(x.value)
    if isinstance(x, ast.AugAssign):
        return isinstance(x.target, ast.Name) and x.target.id in names
    if isinstance(x, (ast.Global, ast.Nonlocal, ast.With, ast.Delete, ast.FunctionDef)):
        return True
    if isinstance(x, (ast.Yield, ast.YieldFrom, ast.Await)):
        return True
    if not isinstance(x, ast.Call):
        return False
    arguments = [*x.args, *(y.value for y in x.keywords)]
    are_given = any(map(mentions, arguments))
    if isinstance(x.func, ast.Attribute):
        path = path_of(x.func)
        module = None if path == () or path[0] in names else scope(path[0])
        if isinstance(module, (types.ModuleType, ModuleView)):
            is_numpys = getattr(module, "__name__", "").split(".")[0] in ("numpy", "math")
            writes = path[-1] in WRITING_FUNCTIONS or any(y.arg == "out" for y in x.keywords)
            return are_given and (writes or not is_numpys)
        if mentions(x.func.value):
            return x.func.attr not in _READING_METHODS or any(y.arg == "out" for y in x.keywords)
        return are_given and not (x.func.attr == "append" and path[:-1] in {(n,) for n in lists})
    if not are_given:
        return False
    function = scope(x.func.id) if isinstance(x.func, ast.Name) else None
    if isinstance(function, types.FunctionType):
        return scope.depth == DEEPEST or _function_writes(original(function), scope)
    is_builtin = getattr(function, "__module__", None) == "builtins"
    return not is_builtin or getattr(function, "__name__", None) not in _READING_BUILTINS


def _function_writes(function: types.FunctionType, scope: Scope) -> bool:
    """Whether a function may write to an argument, or keep a reference to it."""
    code, body = function.__code__, body_of(function)
    if body is None:
        return True
    names = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}
    return _may_write(body, names, frozenset(), scope.within(function))
