"""Lists, dicts and objects that may or may not be the same one, as data decide: one that a
condition selects, or one that a loop leaves if it does not run. A trace stands in an object for
each, and refuses what would tell the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

_MOST_VISIBLE = 10_000  # objects that are looked through


def _content(x: Any) -> list[Any]:
    """The items of a list, or the keys and values of a dict or of an object's attributes."""
    if isinstance(x, list):
        return list(x)
    held = x if isinstance(x, dict) else vars(x)
    return [*held.keys(), *held.values()]


class _Group(NamedTuple):
    loop: int  # of the program, without which they would be known
    members: list[tuple[Any, list[Any]]]  # with what they held


class Identities:
    """The groups of such objects of one trace."""

    def __init__(self) -> None:
        self.groups: list[_Group] = []

    def note(self, loop: int, objects: Iterable[Any]) -> None:
        """Notes that some of these may be the same: none of them may change any more."""
        self.groups.append(_Group(loop, [(x, _content(x)) for x in objects]))

    def has(self, x: Any) -> bool:
        """Whether x may be the same as another one."""
        return any(x is member for group in self.groups for member, _ in group.members)

    def broken(self, results: Any, is_outside: Callable[[Any], bool]) -> tuple[int, str] | None:
        """The loop because of which somebody can tell, and how; None if nobody can. `results` are
        what leaves the trace, `is_outside` says what was there before it."""
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
    """The ids of what x holds."""
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
        elif isinstance(getattr(x, "__dict__", None), dict) and not isinstance(x, type):
            open_ += vars(x).values()
    return seen
