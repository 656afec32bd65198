"""Random numbers of generators from outside of the traced function. A trace draws from copies of
them, and notes which numbers it draws. The program has these numbers in arrays, which the
generators themselves fill before each run (Numbers):

    noise = self.rng.normal(size=8)             noise = arrays[0]
    for epoch in range(50):                     for epoch in range(50):
        order = self.rng.permutation(9)             order = arrays[1][epoch]

A draw in a loop of the program is one of each iteration, and has an axis for each loop around it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from rune_jit import _core
from rune_jit.capture.loops.drawing import at_once
from rune_jit.errors import ConcretizationError, UnsupportedOpError
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, tracers_in

# How many draws outside of loops a program has at most, and how many bytes their numbers take.
_MOST_SITES, _MOST_BYTES = 500, 2**26


class Leaf(NamedTuple):
    """An argument of a draw that is an argument of the function."""

    position: int


class Captured(NamedTuple):
    """An argument of a draw that is an array from outside."""

    array: Any


class Site(NamedTuple):
    """A draw, with what takes its numbers; None: they are none."""

    source: int  # the number of its generator
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    numbers: np.ndarray | None


class Repeated(NamedTuple):
    """The draws of each iteration of a loop."""

    count: int
    items: list[Any]  # Sites and Repeateds


class Numbers:
    """What the generators draw before a program runs."""

    def __init__(self, sources: list[Any], items: list[Any], arrays: frozenset[int]) -> None:
        """`arrays`: the ids of those that the program has for numbers."""
        self._sources, self._items, self.arrays = sources, items, arrays
        self.lock = threading.RLock()  # held while the program reads the arrays

    def of_others(self, find: Callable[[Any], Any]) -> Numbers | None:
        """The same of other generators: those that `find` has in the places of these. None if there
        is none for one of them."""
        sources = [find(x) for x in self._sources]
        made = Numbers(sources, _found(self._items, find), self.arrays)
        made.lock = self.lock  # (The arrays are the same.)
        is_known = all(x is not None for x in (*made._sources, *made._captured))
        return made if is_known else None

    @property
    def _captured(self) -> list[Any]:
        """The arrays from outside among the arguments."""
        parts = (y for site in _sites(self._items) for y in (*site.args, *site.kwargs.values()))
        return [x.array for x in parts if type(x) is Captured]

    def draw(self, leaves: list[Any]) -> Callable[[], None]:
        """Fills the arrays, for a call with these leaves. Returns what takes that back."""
        from rune_jit.capture.generators import set_state, state_of  # not before: it loads numpy's

        states = [(x, state_of(x)) for x in self._sources]

        def restore() -> None:
            for source, state in states:
                set_state(source, state)

        try:
            for item in self._items:
                self._fill(item, leaves, ())
        except BaseException:
            restore()
            raise
        return restore

    def _fill(self, item: Any, leaves: list[Any], at: tuple[int, ...]) -> None:
        if type(item) is Repeated:
            if not self._fill_at_once(item, leaves, at):
                for k in range(item.count):
                    for x in item.items:
                        self._fill(x, leaves, (*at, k))
            return
        method = getattr(self._sources[item.source], item.name)
        drawn = method(*_resolved(item.args, leaves), **_resolved(item.kwargs, leaves))
        if item.numbers is not None:
            item.numbers[at] = drawn

    def _fill_at_once(self, loop: Repeated, leaves: list[Any], at: tuple[int, ...]) -> bool:
        """Whether one call has drawn the numbers of all iterations."""
        site, counts = loop, []
        while type(site) is Repeated and len(site.items) == 1:
            counts.append(site.count)
            site = site.items[0]
        if type(site) is not Site or site.numbers is None:
            return False
        args, kwargs = _resolved(site.args, leaves), _resolved(site.kwargs, leaves)
        is_array = site.numbers.ndim > len(at) + len(counts)
        method = getattr(self._sources[site.source], site.name)
        drawn = at_once(method, list(args), dict(kwargs), counts, is_array)
        if drawn is None:
            return False
        site.numbers[at] = drawn
        return True


def _sites(items: list[Any]) -> Iterator[Site]:
    for item in items:
        yield from _sites(item.items) if type(item) is Repeated else (item,)


def _found(x: Any, find: Callable[[Any], Any]) -> Any:
    """Draws with other arrays from outside among their arguments."""
    if type(x) is Captured:
        return Captured(find(x.array))
    if type(x) is Site:
        return x._replace(args=_found(x.args, find), kwargs=_found(x.kwargs, find))
    if type(x) is Repeated:
        return x._replace(items=_found(x.items, find))
    if type(x) is dict:
        return {key: _found(value, find) for key, value in x.items()}
    return type(x)([_found(y, find) for y in x]) if type(x) in (list, tuple) else x


def _resolved(x: Any, leaves: list[Any]) -> Any:
    """The arguments of a draw at a call with these leaves."""
    if type(x) is Leaf:
        leaf = leaves[x.position]
        return np.asarray(leaf) if isinstance(leaf, _core.ArrayBase) else leaf
    if type(x) is Captured:
        return x.array
    if type(x) is dict:
        return {key: _resolved(value, leaves) for key, value in x.items()}
    return type(x)([_resolved(y, leaves) for y in x]) if type(x) in (list, tuple) else x


# Methods that take elements of an array at random positions.
_OF_POSITIONS = ("permutation", "shuffle", "choice")


class Draws:
    """The random numbers that one trace draws, for a call with these leaves."""

    def __init__(self, trace: Trace, leaves: list[Any]) -> None:
        self._trace, self._leaves = trace, leaves
        self._sources: list[Any] = []
        self._items: list[Any] = []  # of the innermost loop whose body is traced
        self._around: list[tuple[Any, Any]] = []  # its iterations and those of loops around it
        self._values: dict[int, Any] = {}  # by id of an array that the program reads
        # Arrays of draws that a loop's body, which is traced again, has given up.
        self._unused: list[np.ndarray] = []
        self._num_sites = self._num_bytes = 0

    def stand_in(self, source: Any) -> Any:
        """The generator as the trace sees it."""
        from rune_jit.capture.generators import stand_in_of  # not before: it loads numpy.random

        made = stand_in_of(source)
        made.draws, made.number = self, len(self._sources)
        self._sources.append(source)
        return made

    def numbers(self) -> Numbers | None:
        """What has been drawn so far; None if that is nothing."""
        arrays = frozenset(self._values)
        return Numbers(self._sources, list(self._items), arrays) if self._items else None

    def draw(self, stand_in: Any, name: str, args: Any, kwargs: Any) -> Any:
        """What a method of a generator's stand-in gives."""
        if args and type(args[0]) is Tracer and args[0].ndim and name in _OF_POSITIONS:
            return self._select(stand_in, name, *args, **kwargs)
        loops = self._trace.loops
        open_ = loops.open if loops is not None else []
        if loops is not None and loops.num_conditions > (open_[-1].conditions if open_ else 0):
            self._refuse("it draws random numbers under a condition")
        if any(type(count) is not int for count, _ in self._around):
            self._refuse("it draws random numbers, and how often it runs is not known")
        self._num_sites += 1
        if self._num_sites > _MOST_SITES:
            self._refuse("it draws random numbers many times")
        given = tuple([self._argument(x) for x in args])
        named = {key: self._argument(x) for key, x in kwargs.items()}
        method = getattr(stand_in.private, name)
        drawn = method(*_resolved(given, self._leaves), **_resolved(named, self._leaves))
        site = Site(stand_in.number, name, given, named, None)
        if drawn is None:
            self._items.append(site)
            return None
        like = np.asarray(drawn)
        is_array = type(drawn) is np.ndarray
        is_number = type(drawn) in (float, int) or isinstance(drawn, np.generic)
        if not _core.is_supported_dtype(like.dtype) or not (is_array or is_number):
            self._refuse(f"the random {name} gives a {type(drawn).__name__}")
        memory = self._memory((*(count for count, _ in self._around), *like.shape), like.dtype)
        self._items.append(site._replace(numbers=memory))
        rows = Tracer(self._trace, self._values[id(memory)])
        if self._around:
            rows = rows[tuple([row for _, row in self._around])]
        if is_array:
            return rows.copy()
        value = self._trace.operand(rows)
        if not isinstance(drawn, np.generic):
            value = self._trace.builder.python_number(value, type(drawn) is int)
        return Tracer(self._trace, value, scalar=True)

    def _select(self, stand_in: Any, name: str, x: Any, *args: Any, **kwargs: Any) -> Any:
        """What a method does that takes elements of an array at random positions."""
        axis = kwargs.pop("axis", 0)
        of = "choice" if name == "choice" else "permutation"
        at = self.draw(stand_in, of, (x.shape[axis], *args), kwargs)
        if name != "shuffle":
            return np.take(x, at, axis)
        x[...] = np.take(x, at, axis)
        return None

    def _memory(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array that the program reads."""
        for i, memory in enumerate(self._unused):
            if memory.shape == shape and memory.dtype == dtype:
                return self._unused.pop(i)
        self._num_bytes += math.prod(shape) * dtype.itemsize
        if self._num_bytes > _MOST_BYTES:
            self._refuse("its random numbers take too much memory")
        memory = np.zeros(shape, dtype)
        self._values[id(memory)] = self._trace.add_captured(memory)
        return memory

    def _argument(self, x: Any) -> Any:
        """An argument of a draw as each call finds it again."""
        if isinstance(x, (list, tuple)):
            return type(x)([self._argument(item) for item in x])
        if isinstance(x, np.ndarray):
            return x.copy()
        if type(x) is Size:
            self._refuse("an argument of a random draw is a size that is not known")
        if type(x) is not Tracer:
            return x
        if (array := x._array()) is not None:
            return array.copy() if x.ndim else array[()]
        storage = x._storage
        is_changed = storage.original is not None and storage.value.id != storage.original.id
        if not x._steps and not is_changed:
            if storage.leaf is not None:
                return Leaf(storage.leaf)
            if isinstance(storage.captured, np.ndarray):
                return Captured(storage.captured)
        self._trace.need_numbers([x._value_in(self._trace)])
        return self._refuse("an argument of a random draw is known only when the program runs")

    def _refuse(self, why: str) -> Any:
        if self._trace.loops is not None and self._trace.loops.within:
            self._trace.loops.fail(why)
        raise ConcretizationError(f"{self._trace.name}: cannot trace random numbers ({why})")

    @contextmanager
    def iterations(self, count: Any, row: Any) -> Iterator[list[Any]]:
        """While it lasts, draws are those of each iteration of a loop: number `row` of `count`.
        They count if the loop becomes one of the program (`add`)."""
        outer, self._items = self._items, []
        self._around.append((count, row))
        yield self._items
        self._around.pop()
        self._items = outer

    def add(self, count: Any, items: list[Any]) -> None:
        """Adds the draws of the iterations of a loop."""
        if items:
            self._items.append(Repeated(count, items))

    def give_up(self, items: list[Any]) -> None:
        """Forgets those of a body that is traced again."""
        for site in _sites(items):
            self._num_sites -= 1
            if site.numbers is not None:
                self._unused.append(site.numbers)
