"""Results with one list, dict, queue or dataclass in several places: each call makes it once."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from rune_jit import trees
from rune_jit.capture.state import content, is_place


def flattened(tree: Any, opaque: Any = None) -> tuple[list[Any], Any]:
    """The leaves of a result, and the function that makes the result of them, None if the result is
    a leaf. `opaque` is that of trees.flatten. A leaf may be a None that the result does
    not have."""
    repeated = _repeated(tree)
    if repeated:
        parts = [_part(x, opaque, repeated) for x in (*repeated.values(), tree)]
        return [leaf for leaves, _ in parts for leaf in leaves], _Parts([part for _, part in parts])
    leaves, structure = trees.flatten(tree, opaque)
    if structure.is_leaf():
        return leaves, None
    is_flat = type(tree) is tuple and all(trees.flatten(x)[1].is_leaf() for x in tree)
    return leaves, tuple if is_flat else functools.partial(trees.unflatten, structure)


def are_apart(tree: Any, other: Any, changed: Any) -> bool:
    """Whether `tree` and `other` hold one object, and `changed`, which stands for `tree`, has
    another object in its place."""
    common = _held(tree).keys() & _held(other).keys()
    return bool(common) and not common <= _held(changed).keys()


class _Part(NamedTuple):
    """An object that is in several places, or the result."""

    structure: Any
    size: int  # the number of its leaves
    places: list[tuple[int, int]]  # leaves that are earlier parts: their positions, and the parts


class _Parts:
    """Makes a result of its parts. Each part may hold earlier ones."""

    def __init__(self, parts: list[_Part]) -> None:
        self._parts = parts

    def __call__(self, leaves: Any) -> Any:
        made: list[Any] = []
        start = 0
        for structure, size, places in self._parts:
            own = list(leaves[start : start + size])
            start += size
            for position, number in places:
                own[position] = made[number]
            made.append(trees.unflatten(structure, own))
        return made[-1]


def _part(x: Any, opaque: Any, repeated: dict[int, Any]) -> tuple[list[Any], _Part]:
    """The leaves of a part, with None in place of the objects in `repeated`, and the part."""
    leaves, structure = trees.flatten(x, opaque, repeated.keys() - {id(x)})
    numbers = {key: number for number, key in enumerate(repeated)}
    places = [(i, numbers[id(leaf)]) for i, leaf in enumerate(leaves) if id(leaf) in repeated]
    for i, _ in places:
        leaves[i] = None
    return leaves, _Part(structure, len(leaves), places)


def _repeated(tree: Any) -> dict[int, Any]:
    """The objects in several places of a result, by id. Those that an object holds come before it.
    There are none if an object holds itself."""
    ended: dict[int, Any] = {}
    found: set[int] = set()
    open_: set[int] = set()

    def visit(x: Any) -> bool:
        if type(x) in trees.LEAVES:
            return True
        if not is_place(x):
            return not isinstance(x, tuple) or all(map(visit, x))
        if id(x) in open_:
            return False
        if id(x) in ended:
            found.add(id(x))
            return True
        open_.add(id(x))
        is_finite = all(map(visit, content(x).values()))
        open_.discard(id(x))
        ended[id(x)] = x
        return is_finite

    if not visit(tree):
        return {}
    return {key: x for key, x in ended.items() if key in found}


def _held(tree: Any) -> dict[int, Any]:
    """The lists, dicts, queues and dataclasses in a tree, by id."""
    held: dict[int, Any] = {}
    open_ = [tree]
    while open_:
        x = open_.pop()
        if type(x) in trees.LEAVES or id(x) in held:
            continue
        if is_place(x):
            held[id(x)] = x
            open_ += content(x).values()
        elif isinstance(x, tuple):
            open_ += x
    return held
