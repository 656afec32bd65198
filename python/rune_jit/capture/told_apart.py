"""Functions that code tells apart from their copies in a trace: keys of a dict, members of a set,
elements of a list of which the trace has no copy. They run as they are."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from rune_jit.capture.names import names_in
from rune_jit.errors import UnsupportedOpError

# Those that traces have both copied and found in containers.
_known: weakref.WeakSet[types.FunctionType] = weakref.WeakSet()
# By id of a function: a weak reference to it, how many references it had, whether it is a key.
_looked_up: dict[int, tuple[weakref.ref[Any], int, bool]] = {}
_MOST_LOOKED_UP = 10_000


class ToldApart:
    """Which functions a trace must not copy."""

    def __init__(self) -> None:
        self._held: dict[int, types.FunctionType] = {}  # by containers, by id
        self._copied: set[int] = set()  # ids of functions

    def runs_as_it_is(self, function: types.FunctionType, in_segments: bool) -> bool:
        """Whether there must be no copy of a function. `in_segments`: nothing notes what the code
        reads, which may be a registry that holds the function."""
        if id(function) in self._held or function in _known:
            return True
        return in_segments and _is_key(function)

    def note_copy(self, function: types.FunctionType, in_segments: bool) -> None:
        """Notes that there is a copy of a function."""
        self._copied.add(id(function))
        if in_segments:
            self.note(_named_by(function))

    def note(self, containers: Iterable[Any]) -> None:
        """Notes that code may find in containers what they hold, and no copy of it."""
        for x in containers:
            items = [*x, *x.values()] if isinstance(x, dict) else x
            if isinstance(x, _CONTAINERS):
                self._held.update((id(f), f) for f in items if type(f) is types.FunctionType)

    def are_met(self) -> bool:
        """Whether the trace has copied a function that a container holds: the next trace of it does
        not."""
        found = [x for at, x in self._held.items() if at in self._copied]
        _known.update(found)
        return bool(found)

    def check(self) -> None:
        """Raises UnsupportedOpError if it has."""
        if self.are_met():
            raise UnsupportedOpError("function: cannot copy what code compares")


_SEQUENCES = (list, tuple, deque, set, frozenset)
_CONTAINERS = (*_SEQUENCES, dict, weakref.WeakKeyDictionary, weakref.WeakSet)


def _named_by(function: types.FunctionType) -> Iterator[Any]:
    """The lists, tuples and sets among a function's globals and variables of outer functions."""
    held = function.__globals__
    values = [held.get(name) for name in names_in(function.__code__)]
    empty = types.CellType()
    values += [cell.cell_contents for cell in function.__closure__ or () if cell != empty]
    return (x for x in values if type(x) in _SEQUENCES)


def _is_key(function: types.FunctionType) -> bool:
    """Whether a function is a key of a dict or a member of a set, a weak one too. (To look at all
    objects takes long: again only when there are more references to it than ever.)"""
    references = sys.getrefcount(function) + weakref.getweakrefcount(function)
    known = _looked_up.get(id(function))
    if known is not None and known[0]() is function and (known[2] or references <= known[1]):
        return known[2]
    found = any(ref.__callback__ is not None for ref in weakref.getweakrefs(function))
    found = found or any(
        isinstance(x, (set, frozenset)) or (isinstance(x, dict) and any(k is function for k in x))
        for x in gc.get_referrers(function)
    )
    if len(_looked_up) >= _MOST_LOOKED_UP:
        _looked_up.clear()
    _looked_up[id(function)] = weakref.ref(function), references, found
    return found
