"""Places that code assigns, besides local variables: items of lists and dicts, attributes of
objects, and variables of modules and outer functions. A loop of the program carries their values
from iteration to iteration, and an `if` selects them, as for local variables."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from rune_jit import _core
from rune_jit.capture.state import Slot
from rune_jit.errors import StateChangedError
from rune_jit.tracing.context import current_trace


class Changed(Exception):
    """A container has changed in another way than by assignments to its items."""


class Filled(Changed):
    """A queue has become longer. It may stop growing when it is full."""

    def __init__(self, size: int | None) -> None:
        super().__init__("it changes a deque")
        self.size = size or 0


class Variable:
    """A variable of an outer function, with the interface of a list of one item."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __len__(self) -> int:
        return 1

    def __getitem__(self, at: int) -> Any:
        return self._cell.cell_contents

    def __setitem__(self, at: int, value: Any) -> None:
        self._cell.cell_contents = value

    def copy(self) -> list[Any]:
        return [self._cell.cell_contents]


class Global(Variable):
    """A variable of a module, with the interface of a list of one item."""

    def __init__(self, module: dict[str, Any], name: str) -> None:
        self._module, self._name = module, name

    def __getitem__(self, at: int) -> Any:
        return self._module[self._name]

    def __setitem__(self, at: int, value: Any) -> None:
        self._module[self._name] = value

    def copy(self) -> list[Any]:
        return [self._module[self._name]]


def refuse_new_global(module: Any, name: str) -> None:
    """Raises StateChangedError if a trace must not make this global. (It would do so at its end,
    after the iterations.)"""
    trace = current_trace()
    real = getattr(module, "real", module)
    if trace is None or trace.is_segmented or name in trace.rebind.state_of(real):
        return
    error = StateChangedError(f"{trace.name}: cannot trace a function that makes the global {name}")
    error.slots = [Slot("item", real, name)]
    raise error


class Place(NamedTuple):
    """An item of a list or dict, an attribute (an item of an object's dict), or a variable."""

    name: str  # for reports, and unique in a loop
    container: Any
    key: Any

    def read(self) -> Any:
        return self.container[self.key]

    def write(self, value: Any) -> None:
        self.container[self.key] = value


class Held:
    """Containers and arrays that are not traced, and their contents at the time when this object is
    made."""

    def __init__(
        self, containers: Iterable[tuple[Any, str]], arrays: Iterable[np.ndarray] = ()
    ) -> None:
        """`containers` are pairs of a container and its name for reports."""
        self._before = [(x, of, x.copy()) for x, of in containers]
        self._contents = [("content", x, None, x.copy()) for x in arrays if x.flags.writeable]

    def changed(self) -> list[Place]:
        """The places whose values are other objects now. Raises Changed."""
        if _core.broken_guards(self._contents):
            raise Changed("it writes to an array that is not traced")
        found = []
        for i, (x, of, before) in enumerate(self._before):
            if isinstance(x, deque) and len(before) < len(x):
                raise Filled(x.maxlen)
            if len(x) != len(before) or (isinstance(x, (set, dict)) and list(x) != list(before)):
                raise Changed(f"it changes a {of}")
            if isinstance(x, set):
                continue
            for key in x if isinstance(x, dict) else range(len(x)):
                if x[key] is not before[key]:
                    name = f"{of} {i}" if isinstance(x, Variable) else f"{key} of {of} {i}"
                    found.append(Place(name, x, key))
        return found

    def through_queues(self, places: list[Place], changed: list[Place]) -> list[Place]:
        """The places in `changed`. If one of them is in a list or queue that also has a place in
        `places`, adds the other places of this list: the values move through it."""
        moving = [
            x.container
            for x in changed
            if isinstance(x.container, (list, deque))
            and any(x.container is y.container for y in places)
        ]
        known = {x.name for x in (*places, *changed)}
        others = [
            Place(f"{key} of {of} {i}", x, key)
            for i, (x, of, _) in enumerate(self._before)
            if any(x is y for y in moving)
            for key in range(len(x))
        ]
        return [*changed, *(x for x in others if x.name not in known)]

    def held(self, place: Place) -> Any:
        """The former value of a place."""
        return next(before[place.key] for x, _, before in self._before if x is place.container)

    def restore(self) -> None:
        """Restores the former contents of all containers."""
        for i in _core.broken_guards(self._contents):
            _, array, _, before = self._contents[i]
            array[...] = before
        for x, _, before in self._before:
            if isinstance(x, Variable):
                x[0] = before[0]
                continue
            x.clear()
            (x.extend if isinstance(x, (list, deque)) else x.update)(before)


def assigned(values: tuple[Any, ...], places: list[Place]) -> tuple[Any, ...]:
    """Writes the last values to the places. Returns the values before them."""
    count = len(values) - len(places)
    for place, value in zip(places, values[count:], strict=True):
        place.write(value)
    return values[:count]
