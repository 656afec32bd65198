"""Random numbers of generators from outside of the traced function. A trace draws from copies of
the generators, and records the draws. The program reads the numbers from arrays. Before each run,
the generators themselves fill these arrays (Numbers):

    noise = self.rng.normal(size=8)             noise = arrays[0]
    for epoch in range(50):                     for epoch in range(50):
        order = self.rng.permutation(9)             order = arrays[1][epoch]

The array of a draw in a loop of the program has an axis for each loop around the draw.

If the count of the numbers is not known (under a condition, in a `while` loop), the program makes
them itself, from words that the generator has made (loops/streams.py)."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from rune_jit import _core
from rune_jit.capture.loops.drawing import at_once
from rune_jit.capture.loops.kinds import GivenUp
from rune_jit.capture.loops.streams import MOST_WORDS, sampler_of, source_of_words
from rune_jit.capture.random_methods import Outside
from rune_jit.errors import ConcretizationError
from rune_jit.tracing.loop_plans import LoopRefused
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer

# The most draws of a program, and the most bytes of their numbers.
_MOST_SITES, _MOST_BYTES = 500, 2**26
# If a loop makes more than _MANY draws of at most _FEW numbers, the program makes the numbers.
_MANY, _FEW = 1000, 16
# The assumed number of iterations of a loop if it is not known.
_LIKELY = 64


class _Unknown(Exception):
    """An argument of a draw is known only when the program runs."""


class Leaf(NamedTuple):
    """An argument of a draw that is an argument of the function."""

    position: int


class Captured(NamedTuple):
    """An argument of a draw that is an array from outside."""

    array: Any


class Site(NamedTuple):
    """A draw. Its numbers go to `numbers`; None if it returns none, as `shuffle`."""

    source: int  # the number of the generator
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    numbers: np.ndarray | None


class Words(NamedTuple):
    """The words from which the program makes numbers. `arrays` are the words, and `at` and `held`
    of samplers.py."""

    source: int
    num_words: int
    arrays: tuple[np.ndarray, ...]


class Repeated(NamedTuple):
    """The draws of each iteration of a loop."""

    times: int
    items: list[Any]  # Sites and Repeateds


class Numbers:
    """The draws that generators make before a program runs."""

    def __init__(self, sources: list[Any], items: list[Any], arrays: frozenset[int]) -> None:
        """`arrays` has the ids of the program's arrays for numbers."""
        self._sources, self._items, self.arrays = sources, items, arrays
        self.lock = threading.RLock()  # held while a program reads the arrays

    def of_others(self, find: Callable[[Any], Any]) -> Numbers | None:
        """The same draws from other generators. `find` returns the replacement of a generator or
        array. None if there is no replacement for one of them."""
        sources = [find(x) for x in self._sources]
        made = Numbers(sources, _found(self._items, find), self.arrays)
        made.lock = self.lock  # (both fill the same arrays)
        is_known = all(x is not None for x in (*made._sources, *made._captured))
        return made if is_known else None

    @property
    def _captured(self) -> list[Any]:
        """The arrays from outside among the arguments of the draws."""
        parts = (y for site in _sites(self._items) for y in (*site.args, *site.kwargs.values()))
        return [x.array for x in parts if type(x) is Captured]

    @property
    def has_words(self) -> bool:
        return any(type(item) is Words for item in self._items)

    def finish(self) -> None:
        """Sets the generators that made words to their states after a run of the program."""
        for item in self._items:
            if type(item) is Words:
                source_of_words(self._sources[item.source]).end(*item.arrays[1:])

    def draw(self, leaves: list[Any]) -> Callable[[], None]:
        """Fills the arrays, for a call with these leaves. Returns a function that restores the
        generators."""
        # (Not imported before, since it loads numpy.random.)
        from rune_jit.capture.generators import set_state, state_of

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
                for k in range(item.times):
                    for x in item.items:
                        self._fill(x, leaves, (*at, k))
            return
        if type(item) is Words:
            made = source_of_words(self._sources[item.source]).begin(item.num_words)
            for array, x in zip(item.arrays, made, strict=True):
                array[...] = x
            return
        method = getattr(self._sources[item.source], item.name)
        drawn = method(*_resolved(item.args, leaves), **_resolved(item.kwargs, leaves))
        if item.numbers is not None:
            item.numbers[at] = drawn

    def _fill_at_once(self, loop: Repeated, leaves: list[Any], at: tuple[int, ...]) -> bool:
        """Draws the numbers of all iterations by one call, if possible. Returns whether it did."""
        site: Any = loop
        counts: list[int] = []
        while type(site) is Repeated and len(site.items) == 1:
            counts.append(site.times)
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
        if type(item) is Repeated:
            yield from _sites(item.items)
        elif type(item) is Site:
            yield item


def _found(x: Any, find: Callable[[Any], Any]) -> Any:
    """Draws, with `find` applied to the arrays from outside among their arguments."""
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
    """The arguments of a draw in a call with these leaves."""
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

    def __init__(self, trace: Trace, leaves: list[Any], least: int) -> None:
        """`least` is the least number of words for a generator whose numbers the program makes."""
        assert trace.loops is not None
        self._trace, self._loops, self._leaves, self._least = trace, trace.loops, leaves, least
        self._words: dict[int, Words] = {}  # by the number of a generator
        self._outermost: list[Any] = []
        self._sources: list[Any] = []
        self._stand_ins: list[Any] = []
        self._items = self._outermost  # the draws in the innermost loop whose body is traced
        # The number of iterations, and the row of the present one, of the loops around.
        self._around: list[tuple[Any, Any]] = []
        self._values: dict[int, Any] = {}  # by id of an array that the program reads: its Tracer
        # Arrays of draws that have been given up, since the body of a loop is traced again.
        self._unused: list[np.ndarray] = []
        self._num_sites = self._num_bytes = 0
        # By the number of a generator: about how many words it needs. And the same at the starts
        # of the open loops.
        self._needed: dict[int, int] = {}
        self._needed_before: list[dict[int, int]] = []

    def stand_in(self, x: Any) -> Any:
        """The stand-in for a generator from outside, or for a method of one. None for other
        objects."""
        from rune_jit.capture import generators  # (not before, since it loads numpy.random)

        if not generators.is_source(x):
            method = generators.method_of_source(x)
            return None if method is None else getattr(self.stand_in(method[0]), method[1])
        known = next((i for i, source in enumerate(self._sources) if source is x), None)
        if known is None:
            made = generators.stand_in_of(x)
            made.draws, made.number = self, len(self._sources)
            self._sources.append(x)
            self._stand_ins.append(made)
            return made
        return self._stand_ins[known]

    def knows(self, x: Any) -> bool:
        """Whether x is a generator for which there is a stand-in."""
        return any(source is x for source in self._sources)

    def source_of(self, stand_in: Outside) -> Any:
        """The generator of a stand-in."""
        return self._sources[stand_in.number]

    def numbers(self) -> Numbers | None:
        """The draws so far; None if there are none."""
        arrays = frozenset(self._values)
        items = self._outermost
        return Numbers(self._sources, list(items), arrays) if items else None

    def draw(self, stand_in: Any, name: str, args: Any, kwargs: Any) -> Any:
        """The result of a method of a generator's stand-in."""
        if args and type(args[0]) is Tracer and args[0].ndim and name in _OF_POSITIONS:
            return self._select(stand_in, name, *args, **kwargs)
        if name == "shuffle":
            self._refuse("it shuffles an object that is not an array")
        if (out := kwargs.pop("out", None)) is not None:
            kwargs["size"] = out.shape
            out[...] = self.draw(stand_in, name, args, kwargs)
            return out
        number, counts = stand_in.number, [count for count, _ in self._around]
        is_planned = number in self._loops.plans.words and bool(self._loops.within)
        if number in self._words or is_planned:
            return self._made(stand_in, name, args, kwargs)
        open_ = self._loops.open
        if self._loops.num_conditions > (open_[-1].conditions if open_ else 0):
            return self._make(stand_in, name, args, kwargs, "it draws some under a condition")
        if any(type(count) is not int for count in counts):
            return self._make(stand_in, name, args, kwargs, "how many it draws is not known")
        if math.prod(counts) > _MANY and number not in self._loops.plans.no_words:
            found = sampler_of(getattr(stand_in.private, name), args, kwargs)
            if found is not None and math.prod(found.shape or ()) <= _FEW:
                return self._make(stand_in, name, args, kwargs, "")
        self._num_sites += 1
        if self._num_sites > _MOST_SITES:
            self._refuse("it draws many times")
        try:
            given = tuple([self._argument(x) for x in args])
            named = {key: self._argument(x) for key, x in kwargs.items()}
        except _Unknown:
            return self._make(stand_in, name, args, kwargs, "an argument of a draw is not known")
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
        memory = self._memory((*counts, *like.shape), like.dtype)
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

    def _make(self, stand_in: Any, name: str, args: Any, kwargs: Any, why: str) -> Any:
        """As `draw`, where the program makes the numbers of this generator from now on. `why` is
        the reason to report if it cannot."""
        number, plans = stand_in.number, self._loops.plans
        is_possible = sampler_of(getattr(stand_in.private, name), args, kwargs) is not None
        if number in plans.no_words or not is_possible:
            self._refuse(why)
        if self._loops.within:  # (the loop may have drawn from the generator in the other way)
            plans.words.setdefault(number, self._least)
            raise LoopRefused
        return self._made(stand_in, name, args, kwargs)

    def need_words(self, items: list[Any]) -> None:
        """Makes the next trace let the program make these numbers, since the loop that draws them
        may end early. Raises GivenUp or LoopRefused."""
        for site in _sites(items):
            if site.source in self._loops.plans.no_words:
                raise GivenUp("it draws random numbers, and may end early")
            self._loops.plans.words.setdefault(site.source, self._least)
        raise LoopRefused

    def _made(self, stand_in: Any, name: str, args: Any, kwargs: Any) -> Any:
        """The result of a method, made from words by the program."""
        number, plans = stand_in.number, self._loops.plans
        found = sampler_of(getattr(stand_in.private, name), args, kwargs)
        if found is None:
            plans.words.pop(number, None)
            plans.no_words.add(number)
            raise LoopRefused
        if number not in self._words:
            arrays = source_of_words(stand_in.private).begin(plans.words.get(number, self._least))
            for x in arrays:
                self._values[id(x)] = self._trace.stand_in(x)
                self._values[id(x)]._value_in(self._trace)
                self._trace.unwatch(x)
            self._words[number] = Words(number, len(arrays[0]), arrays)
            self._outermost.append(self._words[number])
        counts = [count if type(count) is int else _LIKELY for count, _ in self._around]
        needed = found.num_words * math.prod((*counts, *(found.shape or ())))
        self._needed[number] = self._needed.get(number, 0) + needed
        given = [self._values[id(x)] for x in self._words[number].arrays]
        return found.call(self._trace.rebind, given)

    def end(self) -> None:
        """Called at the end of the trace. Raises LoopRefused if there were too few words."""
        for number, words in self._words.items():
            if self._needed[number] > words.num_words < MOST_WORDS:
                self._loops.plans.words[number] = min(self._needed[number], MOST_WORDS)
                raise LoopRefused
            taken = self._values[id(words.arrays[1])][0]
            self._trace.raise_if(self._trace.operand(taken > words.num_words))

    def _select(self, stand_in: Any, name: str, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The result of a method that takes elements of an array at random positions."""
        axis = kwargs.pop("axis", 0)
        of = "choice" if name == "choice" else "permutation"
        at = self.draw(stand_in, of, (x.shape[axis], *args), kwargs)
        if name != "shuffle":
            return np.take(x, at, axis)
        x[...] = np.take(x, at, axis)
        return None

    def _memory(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """A new array that the program reads, or one that has been given up."""
        for i, memory in enumerate(self._unused):
            if memory.shape == shape and memory.dtype == dtype:
                return self._unused.pop(i)
        self._num_bytes += math.prod(shape) * dtype.itemsize
        if self._num_bytes > _MOST_BYTES:
            self._refuse("its random numbers take too much memory")
        memory = np.zeros(shape, dtype)
        self._values[id(memory)] = self._trace.add_captured(memory)
        self._trace.unwatch(memory)
        return memory

    def _argument(self, x: Any) -> Any:
        """An argument of a draw, in a form that each later call can resolve (`_resolved`)."""
        if isinstance(x, (list, tuple)):
            return type(x)([self._argument(item) for item in x])
        if isinstance(x, np.ndarray):
            return x.copy()
        if type(x) is Size:
            raise _Unknown
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
        raise _Unknown

    def _refuse(self, why: str) -> Any:
        if self._loops.within:
            self._loops.fail(f"it draws random numbers: {why}")
        raise ConcretizationError(f"{self._trace.name}: cannot trace random numbers ({why})")

    @contextmanager
    def iterations(self, count: Any, row: Any) -> Iterator[list[Any]]:
        """A block in which draws are made in each iteration of a loop. `row` is the number of the
        iteration, and there are `count`. Yields the draws, which `add` or `give_up` then takes."""
        outer, self._items = self._items, []
        self._around.append((count, row))
        self._needed_before.append(dict(self._needed))
        yield self._items
        self._around.pop()
        self._items = outer

    def add(self, count: Any, items: list[Any]) -> None:
        """Adds the draws of a loop that has become a loop of the program."""
        self._needed_before.pop()
        if items:
            self._items.append(Repeated(count, items))

    def give_up(self, items: list[Any]) -> None:
        """Forgets the draws of a loop's body that is traced again."""
        self._needed = self._needed_before.pop()
        for site in _sites(items):
            self._num_sites -= 1
            if site.numbers is not None:
                self._unused.append(site.numbers)
