"""Lists that the traced function makes, appends to, and returns:

    losses = []                             losses = .made_list("losses", False, [])
    for i in range(1000):                   for i in range(1000):
        ...                                     ...
        losses.append(loss)                     losses.append(loss)
        if loss < tol:                          if loss < tol:
            break                                   break
    return x, np.array(losses)              return x, .as_array(np.array, losses)

If data decide how long such a list is, arrays represent it in the program (list_results.py). No
other code may read the list, since it is empty during the trace."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from rune_jit.capture.loops.nodes import (
    Transformer,
    assigned,
    at,
    call,
    path_of,
    walk,
    within,
)
from rune_jit.capture.loops.unfold import Replacer, is_append

# The names under which functions find `made_list` and `as_array`.
MADE_LIST, AS_ARRAY = ".made_list", ".as_array"


def lists_of(function: ast.FunctionDef) -> dict[str, bool]:
    """The names of the lists that a function makes once, at its top level, appends to in loops, and
    uses in no other way than to return them. The values tell whether all appended values are new
    arrays or numbers."""
    made: dict[str, bool] = {}
    uses: set[int] = set()  # ids of the `ast.Name` nodes that are known
    for s in function.body:
        for target, value in _pairs_in(s):
            if isinstance(target, ast.Name) and _is_of_known_length(value):
                made[target.id] = True
                uses.add(id(target))
    in_loops: set[str] = set()
    for s in within(function.body):
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and is_append(s.value):
            of = s.value.func.value  # type: ignore[attr-defined]
            if isinstance(of, ast.Name) and of.id in made:
                uses.add(id(of))
                made[of.id] &= _is_new(s.value.args[0])
        elif isinstance(s, ast.Return) and s.value is not None:
            uses |= {id(x) for x in map(_list_in, _parts_of(s.value)) if x is not None}
        elif isinstance(s, (ast.For, ast.While)):
            in_loops |= {x.id for x in walk(s) if isinstance(x, ast.Name)}
    others = {x.id for x in walk(function) if isinstance(x, ast.Name) and id(x) not in uses}
    others |= {x.arg for x in walk(function) if type(x) is ast.arg}
    others |= {
        name
        for x in walk(function)
        if isinstance(x, (ast.Global, ast.Nonlocal))
        for name in x.names
    }
    return {name: is_new for name, is_new in made.items() if name in in_loops - others}


def _pairs_in(s: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The pairs of a target and its value in an assignment to one target."""
    if isinstance(s, ast.Assign) and len(s.targets) == 1:
        yield from assigned(s)
    elif isinstance(s, ast.AnnAssign) and s.value is not None:
        yield s.target, s.value


def _is_of_known_length(x: ast.expr) -> bool:
    return isinstance(x, ast.List) and not any(isinstance(y, ast.Starred) for y in x.elts)


def _is_new(x: ast.expr) -> bool:
    """Whether a value is surely no array that another name stands for."""
    if isinstance(x, ast.Tuple):
        return all(map(_is_new, x.elts))
    is_copy = (
        isinstance(x, ast.Call) and isinstance(x.func, ast.Attribute) and x.func.attr == "copy"
    )
    return is_copy or isinstance(x, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant))


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
    """The name in `items` and in `np.array(items)`."""
    if isinstance(x, ast.Call) and len(x.args) == 1 and not x.keywords:
        x = x.args[0] if path_of(x.func)[-1:] in (("array",), ("asarray",)) else x
    return x if isinstance(x, ast.Name) else None


class MadeLists(Transformer):
    """Puts the calls around these lists. `lists` is what `lists_of` has returned."""

    def __init__(self, lists: dict[str, bool]) -> None:
        self._lists = lists

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    def _visit_assignment(self, node: Any) -> Any:
        for target, value in _pairs_in(node):
            if not isinstance(target, ast.Name) or target.id not in self._lists:
                continue
            assert isinstance(value, ast.List)
            items = ast.copy_location(ast.List(value.elts, ast.Load()), value)
            about = ast.Constant(target.id), ast.Constant(self._lists[target.id])
            made = at(value, call(MADE_LIST, *about, items))
            Replacer(value, made).visit(node)
        return node

    visit_Assign = visit_AnnAssign = _visit_assignment

    def visit_Return(self, node: ast.Return) -> Any:
        for x in _parts_of(node.value) if node.value is not None else ():
            items = _list_in(x)
            if isinstance(x, ast.Call) and items is not None and items.id in self._lists:
                x.args = [x.func, items]
                x.func = ast.copy_location(ast.Name(AS_ARRAY, ast.Load()), x.func)
        return node
