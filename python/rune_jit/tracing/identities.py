"""Lists, dicts and objects for which data decide whether they are one object. For example, a
condition selects one of two objects, or a loop that may not run replaces an object. The trace has
an object for each. It refuses functions that could tell the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rune_jit.trees import attribute

_MOST_VISIBLE = 10_000  # objects among which results are searched


def _content(x: Any) -> list[Any]:
    """The items of a list, or the keys and values of a dict or of an object's attributes."""
    if isinstance(x, list):
        return list(x)
    held = x if isinstance(x, dict) else vars(x)
    return [*held.keys(), *held.values()]


class _Group(NamedTuple):
    loop: int  # that makes them unsure: if it is unrolled, the objects are known
    members: list[tuple[Any, list[Any]]]  # each with its contents when it was noted


class Identities:
    """The groups of such objects of one trace."""

    def __init__(self) -> None:
        self.groups: list[_Group] = []

    def note(self, loop: int, objects: Iterable[Any]) -> None:
        """Notes that some of these objects may be one object. From now on, none of them may
        change."""
        self.groups.append(_Group(loop, [(x, _content(x)) for x in objects]))

    def has(self, x: Any) -> bool:
        """Whether x may be the same as another one."""
        return any(x is member for group in self.groups for member, _ in group.members)

    def broken(self, results: Any, is_outside: Callable[[Any], bool]) -> tuple[int, str] | None:
        """A loop whose objects the caller or the function could tell apart, and how. None if there
        is none. `results` are the objects that leave the trace. `is_outside` tells whether an
        object is older than the trace."""
        if not self.groups:
            return None
        visible = _reachable(results)
        for loop, members in self.groups:
            for x, before in members:
                now = _content(x)
                if len(now) != len(before) or any(
                    a is not b for a, b in zip(now, before, strict=True)
                ):
                    return loop, "it selects an object that changes later"
            # (Members may be in several groups.)
            seen = {id(x) for x, _ in members if id(x) in visible or is_outside(x)}
            if len(seen) > 1:
                return loop, "it returns an object that may be the same as another one"
        return None


def _reachable(x: Any) -> set[int]:
    """The ids of x and of all objects that it holds."""
    seen: set[int] = set()
    open_ = [x]
    while open_ and len(seen) < _MOST_VISIBLE:
        x = open_.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, (list, tuple)):
            open_ += x
        elif isinstance(x, dict):
            open_ += x.values()
        elif isinstance(attribute(x, "__dict__"), dict) and not isinstance(x, type):
            open_ += vars(x).values()
    return seen
