"""Random numbers of generators from outside of the traced function. A trace draws from copies of
the generators, and records the draws (draws.py). The program reads the numbers from arrays. Before
each run, the generators themselves fill these arrays (Numbers):

    noise = self.rng.normal(size=8)             noise = arrays[0]
    for epoch in range(50):                     for epoch in range(50):
        order = self.rng.permutation(9)             order = arrays[1][epoch]

The array of a draw in a loop of the program has an axis for each loop around the draw.

Generators that the function makes from a seed are drawn from in the same way if the seed is an
argument, or if what the function draws is not known while it is traced. Each run makes them anew.

If the count of the numbers is not known (under a condition, in a `while` loop), the program makes
them itself, from words that the generator has made (loops/streams.py)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from rune_jit import _core
from rune_jit.capture.loops.streams import source_of_words
from rune_jit.capture.random_methods import NUM_PARAMETERS, is_of_python
from rune_jit.errors import ResultsChangedError, UnsupportedOpError


class Leaf(NamedTuple):
    """An argument of a draw that is an argument of the function."""

    position: int


class Captured(NamedTuple):
    """An argument of a draw that is an array from outside."""

    array: Any


class Recipe(NamedTuple):
    """A generator, a SeedSequence or a bit generator that the function makes at each call."""

    make: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def made(self, leaves: list[Any]) -> Any:
        """The generator, for a call with these leaves."""
        return self.make(*resolved(self.args, leaves), **resolved(self.kwargs, leaves))


class MadeByRuns:
    """The stand-in for a SeedSequence or a bit generator that each run makes. A trace only gives it
    to generators."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self.is_taken = recipe, False

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self.recipe.make

    def __getattr__(self, name: str) -> NoReturn:
        kind = self.recipe.make.__name__
        raise UnsupportedOpError(f"{name}: cannot trace this attribute of a traced {kind}")


class Site(NamedTuple):
    """A draw. Its numbers go to `numbers`; None if it returns none, as `shuffle`."""

    source: Any  # the number of the generator; or the generator, if its seed is known
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    numbers: np.ndarray | None
    # How many numbers a program would make for the draw (loops/streams.py); None if it cannot.
    num_made: int | None


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
        """`sources` are generators and Recipes. `arrays` has the ids of the program's arrays for
        numbers."""
        self._sources, self._items, self.arrays = sources, items, arrays
        self._now: list[Any] = []  # the generators of the present run
        self.lock = threading.RLock()  # held while a program reads the arrays

    def of_others(self, find: Callable[[Any], Any]) -> Numbers | None:
        """The same draws from other generators. `find` returns the replacement of a generator or
        array. None if there is no replacement for one of them."""
        sources = [x if type(x) is Recipe else find(x) for x in self._sources]
        made = Numbers(sources, _found(self._items, find), self.arrays)
        made.lock = self.lock  # (both fill the same arrays)
        is_known = all(x is not None for x in (*made._sources, *made._captured))
        return made if is_known else None

    @property
    def _captured(self) -> list[Any]:
        """The arrays from outside among the arguments of the draws."""
        parts = (y for site in sites_of(self._items) for y in (*site.args, *site.kwargs.values()))
        return [x.array for x in parts if type(x) is Captured]

    @property
    def has_words(self) -> bool:
        return any(type(item) is Words for item in self._items)

    def finish(self) -> None:
        """Sets the generators that made words to their states after a run of the program."""
        for item in self._items:
            if type(item) is Words:
                source_of_words(self._now[item.source]).end(*item.arrays[1:])

    def draw(self, leaves: list[Any]) -> Callable[[], None]:
        """Fills the arrays, for a call with these leaves. Returns a function that restores the
        generators."""
        # (Not imported before, since it loads numpy.random.)
        from rune_jit.capture.generators import set_state, state_of

        self._now = [x.made(leaves) if type(x) is Recipe else x for x in self._sources]
        lasting = [x for x in self._sources if type(x) is not Recipe]
        states = [(x, state_of(x)) for x in lasting]

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
            made = source_of_words(self._now[item.source]).begin(item.num_words)
            for array, x in zip(item.arrays, made, strict=True):
                array[...] = x
            return
        drawn = self._method(item)(*resolved(item.args, leaves), **resolved(item.kwargs, leaves))
        if item.numbers is not None:
            _store(item.numbers, at, drawn)

    def _method(self, site: Site) -> Any:
        of = site.source
        return getattr(self._now[of] if type(of) is int else of, site.name)

    def _fill_at_once(self, loop: Repeated, leaves: list[Any], at: tuple[int, ...]) -> bool:
        """Draws the numbers of all iterations by one call, if possible. Returns whether it did."""
        found = list(with_counts(loop))
        counts, site = found[0]
        if len(found) > 1 or site.numbers is None:
            return False
        args, kwargs = resolved(site.args, leaves), resolved(site.kwargs, leaves)
        is_array = site.numbers.ndim > len(at) + len(counts)
        drawn = _at_once(self._method(site), list(args), dict(kwargs), counts, is_array)
        if drawn is None:
            return False
        _store(site.numbers, at, drawn)
        return True


def _store(numbers: np.ndarray, at: tuple[int, ...], drawn: Any) -> None:
    """Raises ResultsChangedError if the drawn numbers have another shape than in the trace. (Sizes
    may be arguments. NumPy would repeat a single number.)"""
    if np.shape(drawn) != numbers.shape[len(at) :]:
        raise ResultsChangedError("a random generator has drawn another number of numbers")
    numbers[at] = drawn


def with_counts(loop: Repeated) -> Iterator[tuple[list[int], Site]]:
    """The draws in a loop, each with the numbers of iterations of the loops around it."""
    for x in loop.items:
        if type(x) is Site:
            yield [loop.times], x
        else:
            yield from (([loop.times, *counts], site) for counts, site in with_counts(x))


def draws_at_once(loop: Repeated) -> bool:
    """Whether one call draws all numbers of a loop, if the draw's arguments are numbers."""
    (_, first), *others = with_counts(loop)
    return not others and first.name in NUM_PARAMETERS


def sites_of(items: list[Any]) -> Iterator[Site]:
    for item in items:
        if type(item) is Repeated:
            yield from sites_of(item.items)
        elif type(item) is Site:
            yield item


def leaves_in(x: Any) -> Iterator[int]:
    """The positions of the leaves in the arguments of a draw or a Recipe."""
    if type(x) is Leaf:
        yield x.position
    elif type(x) is Recipe or type(x) in (list, tuple):
        for y in x:
            yield from leaves_in(y)
    elif type(x) is dict:
        yield from leaves_in(list(x.values()))


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


def resolved(x: Any, leaves: list[Any]) -> Any:
    """The arguments of a draw in a call with these leaves."""
    if type(x) is Leaf:
        leaf = leaves[x.position]
        return np.asarray(leaf) if isinstance(leaf, _core.ArrayBase) else leaf
    if type(x) is Captured:
        return x.array
    if type(x) is Recipe:
        return x.made(leaves)
    if type(x) is dict:
        return {key: resolved(value, leaves) for key, value in x.items()}
    return type(x)([resolved(y, leaves) for y in x]) if type(x) in (list, tuple) else x


def _at_once(
    method: Any, args: list[Any], kwargs: dict[str, Any], counts: list[int], is_array: bool
) -> Any:
    """The results of many calls of a generator's method as one array, by one call. Its first axes
    have the lengths `counts`; those of a single result follow. `is_array` tells whether a single
    result is an array or a number. None if the one call might give other numbers."""
    most = NUM_PARAMETERS.get(method.__name__)
    if most is None or is_of_python(method.__self__):
        return None
    size: Any = ()
    if method.__name__ in ("rand", "randn"):
        args, size = [], tuple(args)
    elif len(args) > most:
        *args, size = args
    elif "size" in kwargs:
        size = kwargs.pop("size")
    numbers = (int, float, np.integer, np.floating)
    if len(args) > most or not all(isinstance(x, numbers) for x in (*args, *kwargs.values())):
        return None
    if (size is None or size == ()) == is_array:
        return None
    size = () if size is None else (size,) if isinstance(size, (int, np.integer)) else size
    whole = (*counts, *size)
    if method.__name__ in ("rand", "randn"):
        return method(*whole)
    return method(*args, **kwargs, size=whole)


def of_seeds(loop: Repeated, are_wanted: bool) -> Repeated:
    """The draws of a loop from generators whose seeds are known; or, if not `are_wanted`, all other
    draws."""
    found: list[Any] = []
    for x in loop.items:
        if type(x) is Repeated:
            inner = of_seeds(x, are_wanted)
            found += [inner] if inner.items else []
        elif (type(x.source) is not int) == are_wanted:
            found.append(x)
    return Repeated(loop.times, found)
