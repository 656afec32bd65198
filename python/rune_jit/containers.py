"""Walks through nested lists, tuples, dicts and queues. Each container is visited once, even if it
is in many places or holds itself."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from rune_jit.errors import UnsupportedOpError

# Types of values that refer to no other objects.
PLAIN: frozenset[Any] = frozenset({int, float, complex, bool, str, bytes, type(None)})

# The classes of dicts whose values may be traced arrays.
DICTS = (dict, collections.OrderedDict, collections.defaultdict)
_CONTAINERS = frozenset({list, tuple, collections.deque, *DICTS})
# Python's classes of containers, derived classes before their bases.
_BASES: tuple[Any, ...] = (
    *(collections.OrderedDict, dict, list, tuple, collections.deque, set, frozenset, bytearray),
)
# The most objects of a tree that are in other places of it, too.
_MOST_REPEATED = 2**22


def items_in(x: Any) -> Any:
    """The items of a list, tuple or queue, or the values of a dict. None for other objects."""
    if type(x) in _CONTAINERS or (isinstance(x, tuple) and hasattr(x, "_fields")):
        return x.values() if isinstance(x, dict) else x
    return None


def contents(x: Any) -> Any:
    """The items of a container, or the values of a dict, by the class of Python's. (The methods of
    a derived class may act, or return something else.)"""
    kind = next((kind for kind in _BASES if issubclass(type(x), kind)), None)
    if kind is None:
        return [*x]
    return kind.values(x) if issubclass(kind, dict) else [*kind.__iter__(x)]


def copy_of(x: Any) -> Any:
    """The contents of a container, as a dict, a set or a list, by the class of Python's."""
    kind: Any = type(x)
    if issubclass(kind, dict):
        base = collections.OrderedDict if issubclass(kind, collections.OrderedDict) else dict
        return dict(base.items(x))  # (`dict.copy` would call `x.keys`)
    return (set if issubclass(kind, (set, frozenset)) else list)(contents(x))


def items_of_tuple(x: Any) -> Any:
    """The items of a tuple. None for other objects."""
    return x if isinstance(x, tuple) else None


def refuse_endless(x: Any, items: Callable[[Any], Any] = items_in) -> int:
    """The number of leaves and containers in the tree x. Raises UnsupportedOpError if it has no
    end: a container holds itself, or containers are in too many places, as after many times
    `x = [x, x]`. `items` returns the items of a container, and None for other objects."""
    sizes: dict[int, int] = {}  # of the trees of containers, by id. 0: the walk is inside
    held: list[Any] = []  # keeps the ids
    repeated = 0
    open_: list[list[Any]] = [[0, iter((x,)), 0]]  # ids, the remaining items, sizes so far
    while open_:
        inner = open_[-1]
        for item in inner[1]:
            found = None if type(item) in PLAIN else items(item)
            if found is None:
                inner[2] += 1
                continue
            size = sizes.get(id(item))
            if size is None:
                sizes[id(item)] = 0
                held.append((item, found))
                open_.append([id(item), iter(found), 1])
                break
            inner[2] += size
            repeated += size
            if size == 0 or repeated > _MOST_REPEATED:
                raise endless()
        else:
            key, _, count = open_.pop()
            sizes[key] = count
            if open_:
                open_[-1][2] += count
    return sizes[0]


def endless() -> UnsupportedOpError:
    """The error for a container without an end."""
    return UnsupportedOpError(
        "cannot trace a container that holds itself, or that is nested too deep"
    )


def leaves_in(x: Any) -> list[Any]:
    """The leaves of x, in order: the objects that are neither containers nor of PLAIN types. Those
    of each container occur once."""
    found: list[Any] = []
    seen: set[int] = set()
    open_ = [x]
    while open_:
        x = open_.pop()
        items = items_in(x)
        if items is None:
            found += () if type(x) in PLAIN else (x,)
        elif id(x) not in seen:
            seen.add(id(x))
            open_ += () if PLAIN.issuperset(map(type, items)) else [*items][::-1]
    return found


def replaced(x: Any, replace: Callable[[Any], Any], made: dict[int, Any] | None = None) -> Any:
    """x with `replace(leaf)` in place of each leaf. Containers in which something changes are
    copied, each once. Others stay, and so do those that hold themselves, where they do. `made`: the
    results for containers, by id."""
    if type(x) in PLAIN:
        return x
    if (items := items_in(x)) is None:
        return replace(x)
    made = {} if made is None else made
    if id(x) not in made:
        made[id(x)] = x
        old = () if PLAIN.issuperset(map(type, items)) else (*items,)
        new = [replaced(item, replace, made) for item in old]
        if any(a is not b for a, b in zip(new, old, strict=True)):
            made[id(x)] = _with_items(x, new)
    return made[id(x)]


def _with_items(x: Any, items: list[Any]) -> Any:
    """A copy of a container with other items."""
    if isinstance(x, tuple):
        return tuple.__new__(type(x), items)
    copy = x.copy()
    for key, item in zip([*x] if isinstance(x, dict) else range(len(x)), items, strict=True):
        copy[key] = item
    return copy
