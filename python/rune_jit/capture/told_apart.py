"""Functions that code could tell apart from their copies in a trace: keys of a dict, members of a
set, or elements of a list that the trace does not copy, and attributes of objects. Such functions
are not copied where code names them; calls run their copies all the same (callees.py). Objects that
code could tell apart in this way are not copied either, so their calls run in segments."""

from __future__ import annotations

import types
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from rune_jit import trees
from rune_jit.capture.names import values_in
from rune_jit.capture.state import places
from rune_jit.containers import contents, copy_of
from rune_jit.errors import UnsupportedOpError

# The functions that traces have both copied and found in containers.
_known: weakref.WeakSet[types.FunctionType] = weakref.WeakSet()


def add(functions: Iterable[types.FunctionType]) -> None:
    """Notes functions that must not be copied."""
    _known.update(functions)


class ToldApart:
    """Finds the functions and objects that a trace must not copy."""

    def __init__(self) -> None:
        self._held: dict[int, types.FunctionType] = {}  # functions in containers, by id
        self._copied: set[int] = set()  # ids of the functions that have been copied
        self._keys: dict[int, Any] = {}  # objects that are keys in containers outside, by id

    def holds(self, function: types.FunctionType) -> bool:
        """Whether a function must not be copied."""
        return id(function) in self._held or function in _known

    def note_copy(self, function: types.FunctionType) -> None:
        """Notes that a function has been copied."""
        self._copied.add(id(function))

    def note_code(self, function: types.FunctionType) -> None:
        """Searches a function's code for names of functions that it does not only call (it may
        compare them with an object's attribute), and for names of containers. For traces in
        segments, which do not record what code reads."""
        held, (names, variables, attributes) = function.__globals__, values_in(function.__code__)
        values = [held.get(name) for name in names]
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        values += [c.cell_contents for n, c in cells if n in variables and c != types.CellType()]
        modules = [x for x in values if type(x) is types.ModuleType]
        values += [vars(x).get(name) for x in modules for name in attributes]
        functions = (x for x in values if type(x) is types.FunctionType)
        self._held.update((id(f), f) for f in functions)
        self.note(x for x in values if type(x) in (*_SEQUENCES, dict))

    def note(self, containers: Iterable[Any]) -> None:
        """Notes that code may find the functions and keys in these containers, which are not
        copied."""
        for x in containers:
            if isinstance(x, _CONTAINERS):
                items = [*copy_of(x), *contents(x)] if isinstance(x, dict) else contents(x)
                self._held.update((id(f), f) for f in items if type(f) is types.FunctionType)
            self._keys.update((id(key), key) for key in _keys_of(x))

    def are_met(self) -> bool:
        """Whether the trace has copied a function that is in such a container. The next trace does
        not copy the function."""
        found = [x for at, x in self._held.items() if at in self._copied]
        _known.update(found)
        return bool(found)

    def check(self) -> None:
        """Raises UnsupportedOpError if `are_met` is true."""
        if self.are_met():
            raise UnsupportedOpError("function: cannot copy a function that code compares by `is`")

    def refuse_keys(self, trace: Any, arguments: Any, made: Any) -> None:
        """Raises UnsupportedOpError if a dict or set has a key of which the trace has a copy, since
        the copy is not equal to it. Looks at containers outside and in `made`, the objects that the
        trace has made."""
        records = {id(x): type(x) for _, x in places(arguments)}
        kinds, rebind = {*records.values()}, trace.rebind
        if any(type(x) in kinds or rebind.has_copy_of(x) for x in self._keys.values()) or any(
            id(x) in records or rebind.is_copy(x) for x in _keys_within(made)
        ):
            raise UnsupportedOpError(
                f"{trace.name}: cannot trace an object with arrays that is a key of a dict or a"
                " member of a set (the trace has a copy of it)\n"
                "hint: use a name or number of it as the key"
            )


_SEQUENCES = (list, tuple, deque, set, frozenset)
_CONTAINERS = (*_SEQUENCES, dict, weakref.WeakKeyDictionary, weakref.WeakSet)


def _keys_within(x: Any) -> Iterator[Any]:
    """The keys of dicts and members of sets in x, and the parts of keys that are tuples. Leaves out
    those that can be equal to other objects."""
    seen: set[int] = set()
    open_ = [x]
    while open_:
        x = open_.pop()
        yield from _keys_of(x)
        if isinstance(x, (list, tuple, dict)) and id(x) not in seen:
            seen.add(id(x))
            items = contents(x)
            open_ += () if trees.PLAIN.issuperset(map(type, items)) else items


def _keys_of(x: Any) -> Iterator[Any]:
    if isinstance(x, (dict, set, frozenset)):
        for key in copy_of(x):
            if type(key) not in trees.PLAIN:
                yield from _parts(key)


def _parts(key: Any) -> Iterator[Any]:
    if type(key) is tuple:
        for item in key:
            yield from _parts(item)
        return
    kind: Any = type(key)
    if kind.__flags__ & trees.PYTHON_CLASS and kind.__hash__ is object.__hash__:
        yield key
