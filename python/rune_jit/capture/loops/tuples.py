"""Tuples that stand for names in a loop: their parts are carried one by one, under names of their
own (`pair[0]`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from rune_jit.capture.loops.kinds import UNSET, Unstable


class Tuples:
    """The tuples of one loop: those that are carried, and those that an iteration makes."""

    def __init__(self) -> None:
        self._parts: dict[str, list[str]] = {}  # the names of a tuple's parts
        self._carried: frozenset[str] = frozenset()
        self._num_carried = 0  # of the tuples

    def begin(self, carried: Collection[str], before: dict[str, Any]) -> list[str]:
        """The names that are carried, with parts in the place of tuples; what the parts are before
        the loop is added to `before`."""
        self._carried = frozenset(carried)
        names = self._take_apart(carried, before)
        self._num_carried = len(self._parts)
        return names

    def after(self, values: dict[str, Any], results: Collection[str]) -> tuple[dict[str, Any], Any]:
        """What names and parts of tuples stand for after an iteration, and the names in `results`
        with parts in the place of tuples.

        Raises:
            Unstable: if what was carried as a tuple is another one.
        """
        found = dict(values)
        for name in list(self._parts)[self._num_carried :]:  # of an earlier trace of the body
            del self._parts[name]
        for name, parts in self._parts.items():
            value = found[name]
            if type(value) is not tuple or len(value) != len(parts):
                raise Unstable(f"{name} is another tuple after an iteration")
            found.update(zip(parts, value, strict=True))
        kept = [leaf for name in results if name in self._carried for leaf in self._leaves(name)]
        rest = [name for name in results if name not in self._carried]
        return found, self._take_apart(rest, found) + kept

    def whole(self, name: str, values: dict[str, Any]) -> Any:
        """What a name stands for, by what its parts stand for."""
        if name in self._parts:
            return tuple(self.whole(part, values) for part in self._parts[name])
        return values[name]

    def part(self, name: str, values: dict[str, Any]) -> Any:
        """What a name, or a part of a tuple, stands for; UNSET if neither has a value."""
        for whole, parts in self._parts.items():
            if name in parts:
                value = self.part(whole, values)
                if type(value) is not tuple:
                    return value
                return value[parts.index(name)] if len(value) == len(parts) else None
        return values.get(name, UNSET)

    def _take_apart(self, names: Iterable[str], values: dict[str, Any]) -> list[str]:
        found: list[str] = []
        for name in names:
            value = values.get(name)
            if type(value) is not tuple:
                found.append(name)
                continue
            parts = self._parts[name] = [f"{name}[{k}]" for k in range(len(value))]
            values.update(zip(parts, value, strict=True))
            found += self._take_apart(parts, values)
        return found

    def _leaves(self, name: str) -> list[str]:
        if name not in self._parts:
            return [name]
        return [leaf for part in self._parts[name] for leaf in self._leaves(part)]
