"""Lists that the traced function makes, appends to, and returns:

    losses = []                             losses = .made_list("losses", False, [])
    for i in range(1000):                   for i in range(1000):
        ...                                     ...
        losses.append(loss)                     losses.append(loss)
        if loss < tol:                          if loss < tol:
            break                                   break
    return x, np.array(losses)              return x, .converted(np.array, losses)

If data decide how long such a list is, arrays represent it in the program (list_results.py). No
other code may read the list, since it is empty during the trace.

A function may also read such a list, or remove items from it, by the operations of stacks
(stacks.py). If a loop of the function cannot be traced with the list itself, the function is traced
again with calls around these operations."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

from rune_jit.capture.loops.nodes import (
    SCOPES,
    Transformer,
    assigned,
    at,
    call,
    is_new,
    path_of,
    walk,
    within,
)
from rune_jit.capture.loops.stacks import Operations
from rune_jit.capture.loops.unfold import Replacer, is_append

# The names under which functions find `made_list`, `made_stack` and `converted`.
MADE_LIST, MADE_STACK, CONVERTED = ".made_list", ".made_stack", ".converted"
REVERSED = "reversed"  # the conversion `items[::-1]`


class Kind(NamedTuple):
    """How such a list is used."""

    are_new: bool  # whether all appended values are new arrays or numbers
    size: int | None = None  # of a stack: the size of its tuples, or 0 if its items are numbers


def lists_of(function: ast.FunctionDef, with_stacks: bool = False) -> dict[str, Kind]:
    """The lists that a function makes, not under a condition, appends to in loops, and uses in no
    other way than to return them. `with_stacks`: also those that it reads, or removes items from,
    by operations of stacks (stacks.py)."""
    made: dict[str, Kind] = {}
    changed: set[str] = set()
    known: set[int] = set()  # ids of the `ast.Name` nodes in uses that are known
    deques: set[str] = set()
    for s in _outside_conditions(function.body):
        for target, value in _pairs_in(s):
            size = _size_of_items(value, with_stacks)
            if isinstance(target, ast.Name) and size is not None:
                made[target.id] = Kind(True, size)
                known.add(id(target))
                deques |= {target.id} if _is_deque(value) else set()
    own = list(within(function.body))
    loops = [s for s in own if isinstance(s, (ast.For, ast.While))]
    in_loops = {x.id for s in loops for x in walk(s) if isinstance(x, ast.Name)}
    appends = [s.value for s in own if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    for x in filter(is_append, appends):
        of = x.func.value  # type: ignore[attr-defined]
        if isinstance(of, ast.Name) and of.id in made:
            known.add(id(of))
            changed.add(of.id)
            kind = made[of.id]
            made[of.id] = kind._replace(are_new=kind.are_new and _is_new(x.args[0]))
    returned: set[str] = set()
    for s in own:
        for part in _parts_of(s.value) if isinstance(s, ast.Return) and s.value else ():
            if (name := _list_in(part)) is not None:
                known.add(id(name))
                returned.add(name.id)
    reads = Operations()
    for s in function.body if with_stacks else ():
        if not isinstance(s, SCOPES):
            reads.visit(s)
    known |= reads.known
    changed |= reads.changed
    others = {x.id for x in walk(function) if isinstance(x, ast.Name) and id(x) not in known}
    others |= {x.arg for x in walk(function) if type(x) is ast.arg}
    declared = [x for x in walk(function) if isinstance(x, (ast.Global, ast.Nonlocal))]
    others |= {name for x in declared for name in x.names}
    others |= deques & returned
    return {
        name: kind._replace(
            size=max(kind.size or 0, reads.sizes.get(name, 0)) if name in reads.read else None
        )
        for name, kind in made.items()
        if name in (in_loops & changed) - others
    }


def _outside_conditions(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a function that are in no other statements than loops."""
    for s in body:
        yield s
        if isinstance(s, (ast.For, ast.While)):
            yield from _outside_conditions(s.body)


def _pairs_in(s: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The pairs of a target and its value in an assignment to one target."""
    if isinstance(s, ast.Assign) and len(s.targets) == 1:
        yield from assigned(s)
    elif isinstance(s, ast.AnnAssign) and s.value is not None:
        yield s.target, s.value


def _size_of_items(x: ast.expr, or_deque: bool) -> int | None:
    """Of the display of a list, or of a deque made of one: the size of its tuples, or 0 if its
    items are no tuples. None for other expressions."""
    if or_deque and _is_deque(x):
        x = x.args[0] if x.args else ast.List([], ast.Load())  # type: ignore[attr-defined]
    if not isinstance(x, ast.List) or any(isinstance(y, ast.Starred) for y in x.elts):
        return None
    return max((len(y.elts) for y in x.elts if isinstance(y, ast.Tuple)), default=0)


def _is_deque(x: ast.expr) -> bool:
    is_call = isinstance(x, ast.Call) and path_of(x.func)[-1:] == ("deque",)
    return is_call and len(x.args) < 2 and not x.keywords  # type: ignore[attr-defined]


def _is_new(x: ast.expr) -> bool:
    """Whether a value is surely no array that another name stands for."""
    if isinstance(x, ast.Tuple):
        return all(map(_is_new, x.elts))
    is_method = isinstance(x, ast.Call) and isinstance(x.func, ast.Attribute)
    return is_new(x) or (is_method and x.func.attr == "copy")  # type: ignore[attr-defined]


def _parts_of(x: ast.expr) -> Iterator[ast.expr]:
    """The expressions of which a returned tuple, list or dict is made."""
    if isinstance(x, (ast.Tuple, ast.List)):
        for part in x.elts:
            yield from _parts_of(part)
    elif isinstance(x, ast.Dict):
        for part in x.values:
            yield from _parts_of(part)
    else:
        yield x


def _list_in(x: ast.expr) -> ast.Name | None:
    """The name in `items`, `np.array(items)` and `items[::-1]`."""
    if isinstance(x, ast.Call) and len(x.args) == 1 and not x.keywords:
        x = x.args[0] if path_of(x.func)[-1:] in (("array",), ("asarray",)) else x
    elif isinstance(x, ast.Subscript) and ast.unparse(x.slice) == "::-1":
        x = x.value
    return x if isinstance(x, ast.Name) else None


class MadeLists(Transformer):
    """Puts the calls around these lists. `lists` is what `lists_of` has returned."""

    def __init__(self, lists: dict[str, Kind]) -> None:
        self._lists = lists

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    def _visit_assignment(self, node: Any) -> Any:
        for target, value in _pairs_in(node):
            if not isinstance(target, ast.Name) or target.id not in self._lists:
                continue
            kind = self._lists[target.id]
            is_stack = kind.size is not None
            function, about = (MADE_STACK, kind.size) if is_stack else (MADE_LIST, kind.are_new)
            inner = type(value)(**dict(ast.iter_fields(value)))  # (it is replaced where it is now)
            made = call(function, ast.Constant(target.id), ast.Constant(about), at(value, inner))
            Replacer(value, at(value, made)).visit(node)
        return node

    visit_Assign = visit_AnnAssign = _visit_assignment

    def visit_Return(self, node: ast.Return) -> Any:
        for x in _parts_of(node.value) if node.value is not None else ():
            items = _list_in(x)
            if items is None or items is x or items.id not in self._lists:
                continue
            how = x.func if isinstance(x, ast.Call) else ast.Constant(REVERSED)
            Replacer(x, at(x, call(CONVERTED, how, items))).visit(node)
        return node
