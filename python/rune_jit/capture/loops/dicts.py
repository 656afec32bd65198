"""Dicts and sets that a loop adds items to. If the loop runs apart (apart.py), its operations on
them become calls (hashing.py):

    for v in x:                              for v in x:
        if v not in seen:                        if _rune_on_dict_contains(seen, v, False):
            seen.add(v)                              _rune_on_dict_add(seen, v)
            count[v] = count.get(v, 0) + 1           _rune_on_dict_put(count, _rune_on_dict_get(...
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from rune_jit.capture.loops.nodes import (
    OWN_SCOPES,
    Transformer,
    assign,
    at,
    call,
    copied,
    load,
    walk,
)
from rune_jit.capture.loops.unfold import ON_LISTS

_CLASSES = (dict, set, Counter, defaultdict)
_ON_DICTS = ON_LISTS + "dict_"
_NOT_IN_KEYS = (*OWN_SCOPES, ast.Slice)


def is_dict(x: Any) -> bool:
    """Whether x is a dict or set that arrays may represent. The default of a defaultdict must be a
    number."""
    if type(x) is defaultdict:
        return x.default_factory in (int, float)
    return type(x) in _CLASSES


def kind(x: Any) -> Any:
    """The kind of a dict or set: its class, and the default factory of a defaultdict."""
    return type(x), getattr(x, "default_factory", None)


def dicts_of(loop: ast.stmt, held: Mapping[str, Any]) -> dict[str, type]:
    """The dicts and sets that a loop adds items to: their classes by name. There must be a call for
    each operation of the loop on them. `held` are the values of local variables."""
    names = {x.id for x in walk(loop) if isinstance(x, ast.Name)}
    found = frozenset(name for name in names if name in held and is_dict(held[name]))
    if not found:
        return {}
    uses = _Replacer(found)
    uses.visit(copied(loop))
    return {name: type(held[name]) for name in sorted(found & uses.changed - uses.others)}


def with_calls(loop: ast.stmt, names: frozenset[str]) -> ast.stmt:
    """A copy of the loop in which the operations on these dicts and sets are calls."""
    return _Replacer(names).visit(copied(loop))  # type: ignore[no-any-return]


class _Replacer(Transformer):
    """Replaces operations on dicts and sets by calls. `changed` are the names of those that get
    items. `others` are the names of those with an operation for which there is no call."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self.changed: set[str] = set()
        self.others: set[str] = set()
        self._keys = 0

    def _is_dict(self, x: ast.AST) -> bool:
        return isinstance(x, ast.Name) and x.id in self._names

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in self._names:
            self.others.add(node.id)
        return node

    def _call(self, place: Any, function: str, of: Any, *arguments: ast.expr) -> Any:
        return at(place, call(_ON_DICTS + function, of, *map(self.visit, arguments)))

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            of = node.comparators[0]
            if self._is_dict(of):
                is_in = ast.Constant(isinstance(node.ops[0], ast.In))
                return self._call(node, "contains", of, node.left, is_in)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        f = node.func
        if isinstance(f, ast.Name) and f.id == "len" and len(node.args) == 1 and not node.keywords:
            return node if self._is_dict(node.args[0]) else self.generic_visit(node)
        is_get = isinstance(f, ast.Attribute) and f.attr == "get" and self._is_dict(f.value)
        are_plain = not any(isinstance(x, ast.Starred) for x in node.args)
        if is_get and are_plain and len(node.args) == 2 and not node.keywords:
            return self._call(node, "get", f.value, *node.args)  # type: ignore[attr-defined]
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.ctx, ast.Load) and self._is_dict(node.value) and _is_key(node.slice):
            return self._call(node, "item", node.value, node.slice)
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        x = node.value
        f = x.func if isinstance(x, ast.Call) else None
        if isinstance(f, ast.Attribute) and f.attr == "add" and self._is_dict(f.value):
            assert isinstance(x, ast.Call)
            if len(x.args) == 1 and not x.keywords and _is_key(x.args[0]):
                self.changed.add(f.value.id)  # type: ignore[attr-defined]
                node.value = self._call(x, "add", f.value, x.args[0])
                return node
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        target = node.targets[0]
        if len(node.targets) > 1 or not self._is_item(target):
            return self.generic_visit(node)
        return self._put(node, target, node.value, target.slice)  # type: ignore[attr-defined]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = node.target
        if not self._is_item(target):
            return self.generic_visit(node)
        assert isinstance(target, ast.Subscript)
        before: list[ast.stmt] = []
        key = target.slice
        if not isinstance(key, (ast.Name, ast.Constant)):  # (Python evaluates the key once)
            name = f"_rune_key{self._keys}"
            self._keys += 1
            before = [at(node, assign(name, self.visit(key)))]
            key = at(node, load(name))
        # (An array that is an item is changed in place.)
        name = f"_rune_item{self._keys}"
        self._keys += 1
        old = self.visit(at(node, ast.Subscript(target.value, key, ast.Load())))
        new = at(node, ast.AugAssign(ast.Name(name, ast.Store()), node.op, self.visit(node.value)))
        put = self._put(node, target, at(node, load(name)), key)
        return [*before, at(node, assign(name, old)), new, put]

    def _is_item(self, x: ast.AST) -> bool:
        return isinstance(x, ast.Subscript) and self._is_dict(x.value) and _is_key(x.slice)

    def _put(self, node: Any, target: Any, value: ast.expr, key: ast.expr) -> ast.stmt:
        self.changed.add(target.value.id)
        # (Python evaluates the value before the key.)
        return at(node, ast.Expr(self._call(node, "put", target.value, value, key)))


def _is_key(x: ast.expr) -> bool:
    return not any(isinstance(y, _NOT_IN_KEYS) for y in walk(x))
