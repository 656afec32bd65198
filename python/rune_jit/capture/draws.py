"""Records the random numbers that a trace draws. The program reads them from arrays, which the
generators fill before each run (drawn.py), or makes them from words (loops/streams.py).

The trace also records the draws in loops of generators that the function makes from known seeds. It
draws their numbers at the end of the loop, and they are constants of the program. If it cannot, the
next trace lets each run make and use these generators, as those whose seeds are arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from rune_jit import _core
from rune_jit.capture.drawn import (
    Captured,
    Leaf,
    MadeByRuns,
    Numbers,
    Recipe,
    Repeated,
    Site,
    Words,
    draws_at_once,
    leaves_in,
    of_seeds,
    resolved,
    sites_of,
    with_counts,
)
from rune_jit.capture.loops.kinds import GivenUp
from rune_jit.capture.loops.source import LOOPS
from rune_jit.capture.loops.streams import MOST_WORDS, sampler_of, source_of_words
from rune_jit.capture.random_methods import Outside, is_of_python
from rune_jit.errors import ConcretizationError, UnsupportedOpError
from rune_jit.tracing.loop_plans import BetterApart, LoopRefused
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, contains_traced

# The most draws of a program, and the most bytes of their numbers.
_MOST_SITES, _MOST_BYTES = 500, 2**26
# If a loop makes more than _MANY draws of at most _FEW numbers, the program makes the numbers,
# unless one call draws all of them.
_MANY, _FEW = 1000, 16
# The assumed number of iterations of a loop if it is not known.
_LIKELY = 64
# The most draws of a generator with a known seed. Each takes about a microsecond whenever the
# function is traced, and it is traced for each seed.
_MOST_OF_SEED = 500
# A loop of at least this many iterations is not unrolled if it cannot draw so.
_LONG = 100


class _Unknown(Exception):
    """An argument of a draw is known only when the program runs."""


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
        self._num_made = 0  # generators that the function has made
        # What the function has made of traced seeds, besides generators.
        self._made_seeds: list[Recipe] = []
        self._is_of_recipe = False  # whether the present draw is from one that each run makes
        self._seeded: list[Any] = []  # the seeded generators from which the outermost loop draws

    def stand_in(self, x: Any) -> Any:
        """The stand-in for a generator from outside, or for a method of one. None for other
        objects. Raises UnsupportedOpError for what generators are made of."""
        from rune_jit.capture import generators  # (not before, since it loads numpy.random)

        generators.refuse_hidden_state(x)
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

    def from_seed(self, make: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The stand-in for `make(*args, **kwargs)`, a generator that the function makes."""
        from rune_jit.capture import generators

        if self.is_in_loop:
            self._loops.fail("it makes a random generator")
        number, self._num_made = self._num_made, self._num_made + 1
        if _are_of_runs([args, kwargs]):
            return self._drawn_from(self._recipe(make, args, kwargs))
        made = make(*args, **kwargs)
        if number in self._loops.plans.made_by_runs:
            return self._drawn_from(Recipe(generators.copy_of, (made,), {}))
        seeded = generators.seeded(made)
        seeded.number = number
        return seeded

    def seed_from_seed(self, make: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """As `from_seed`, for a SeedSequence or a bit generator."""
        if self.is_in_loop or not _are_of_runs([args, kwargs]):
            return make(*args, **kwargs)
        self._made_seeds.append(self._recipe(make, args, kwargs))
        return MadeByRuns(self._made_seeds[-1])

    def _recipe(self, make: Callable[..., Any], args: Any, kwargs: Any) -> Recipe:
        try:
            given = tuple([self._argument(x) for x in args])
            return Recipe(make, given, {key: self._argument(x) for key, x in kwargs.items()})
        except _Unknown:
            raise UnsupportedOpError(
                f"{make.__name__}: cannot trace a seed that the function computes\n"
                "hint: pass the seed as an argument"
            ) from None

    def _drawn_from(self, recipe: Recipe) -> Any:
        """The stand-in for a generator that each run makes."""
        from rune_jit.capture.generators import stand_in_of

        made = stand_in_of(recipe.made(self._leaves))
        made.draws, made.number = self, len(self._sources)
        self._sources.append(recipe)
        self._stand_ins.append(made)
        return made

    @property
    def seeds(self) -> frozenset[int]:
        """The numbers among the arguments that are seeds of generators which each run makes."""
        recipes = [x for x in (*self._sources, *self._made_seeds) if type(x) is Recipe]
        leaves = leaves_in(recipes)
        return frozenset(i for i in leaves if not isinstance(self._leaves[i], np.ndarray))

    def knows(self, x: Any) -> bool:
        """Whether x is a generator for which there is a stand-in."""
        return any(source is x for source in self._sources)

    def source_of(self, stand_in: Outside) -> Any:
        """The generator of a stand-in; or the stand-in, if the function makes the generator."""
        source = self._sources[stand_in.number]
        return stand_in if type(source) is Recipe else source

    def numbers(self) -> Numbers | None:
        """The draws so far; None if there are none."""
        arrays = frozenset(self._values)
        items = self._outermost
        return Numbers(self._sources, list(items), arrays) if items else None

    def draw(self, stand_in: Any, name: str, args: Any, kwargs: Any) -> Any:
        """The result of a method of a generator's stand-in."""
        is_outside = isinstance(stand_in, Outside)
        self._is_of_recipe = is_outside and type(self._sources[stand_in.number]) is Recipe
        if self.selects(name, args):
            return self._select(stand_in, name, *args, **kwargs)
        if name == "shuffle":
            self._refuse("it shuffles an object that is not an array")
        if (out := kwargs.pop("out", None)) is not None:
            kwargs["size"] = out.shape
            out[...] = self.draw(stand_in, name, args, kwargs)
            return out
        counts = [count for count, _ in self._around]
        open_ = self._loops.open
        is_conditional = self._loops.num_conditions > (open_[-1].conditions if open_ else 0)
        if not is_outside:
            return self._draw_of_seed(stand_in, name, args, kwargs, counts, is_conditional)
        number = stand_in.number
        is_planned = number in self._loops.plans.words and bool(self._loops.within)
        if number in self._words or is_planned:
            return self._from_words(stand_in, name, args, kwargs)
        if is_conditional:
            return self._switch_to_words(
                stand_in, name, args, kwargs, "it draws some under a condition"
            )
        if any(type(count) is not int for count in counts):
            return self._switch_to_words(
                stand_in, name, args, kwargs, "how many it draws is not known"
            )
        try:
            return self._record(stand_in, number, name, args, kwargs)
        except _Unknown:
            return self._switch_to_words(
                stand_in, name, args, kwargs, "an argument of a draw is not known"
            )

    def selects(self, name: str, args: Any) -> bool:
        """Whether a method takes elements of a traced array."""
        is_given = bool(args) and type(args[0]) is Tracer and args[0].ndim > 0
        return is_given and name in _OF_POSITIONS

    def _draw_of_seed(
        self, of: Any, name: str, args: Any, kwargs: Any, counts: list[Any], is_conditional: bool
    ) -> Any:
        """As `draw`, for a generator in a loop that the trace has made from a seed."""
        from rune_jit.capture.generators import copy_of

        are_known = not is_conditional and all(type(count) is int for count in counts)
        if not are_known or math.prod(counts) > _MOST_OF_SEED:
            self._make_in_runs(of)
        if of.private is None:
            of.private = copy_of(of.plain)
            self._seeded.append(of)
        try:
            return self._record(of, of.plain, name, args, kwargs)
        except _Unknown:
            self._make_in_runs(of)

    def _make_in_runs(self, of: Any) -> NoReturn:
        """Makes the next trace let each run make a generator with a known seed. Raises
        LoopRefused."""
        plans = self._loops.plans
        plans.made_by_runs.add(of.number)
        plans.words.clear()  # the generators will have other numbers
        plans.no_words.clear()
        raise LoopRefused

    def _record(self, stand_in: Any, source: Any, name: str, args: Any, kwargs: Any) -> Any:
        """The result of a draw that is made before each run. Raises _Unknown."""
        self._num_sites += 1
        if self._num_sites > _MOST_SITES:
            self._refuse("it draws many times")
        is_known = type(source) is not int  # whether the arguments must be known now
        given = tuple([self._argument(x, is_known) for x in args])
        named = {key: self._argument(x, is_known) for key, x in kwargs.items()}
        method = getattr(stand_in.private, name)
        drawn = method(*resolved(given, self._leaves), **resolved(named, self._leaves))
        made = sampler_of(method, args, kwargs)
        num_made = None if made is None else math.prod(made.shape or ())
        site = Site(source, name, given, named, None, num_made)
        if drawn is None:
            self._items.append(site)
            return None
        like = np.asarray(drawn)
        is_array = type(drawn) is np.ndarray
        is_number = type(drawn) in (float, int) or isinstance(drawn, np.generic)
        if not _core.is_supported_dtype(like.dtype) or not (is_array or is_number):
            self._refuse(f"the random {name} gives a {type(drawn).__name__}")
        counts = [count for count, _ in self._around]
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

    def _switch_to_words(self, stand_in: Any, name: str, args: Any, kwargs: Any, why: str) -> Any:
        """As `draw`, where the program makes the numbers of this generator from now on. `why` is
        the reason to report if it cannot."""
        number, plans = stand_in.number, self._loops.plans
        is_possible = sampler_of(getattr(stand_in.private, name), args, kwargs) is not None
        if number in plans.no_words or not is_possible:
            self._refuse(why)
        if self._loops.within:  # (the loop may have drawn from the generator in the other way)
            plans.words.setdefault(number, self._least)
            raise LoopRefused
        return self._from_words(stand_in, name, args, kwargs)

    def need_words(self, items: list[Any]) -> None:
        """Makes the next trace let the program make these numbers, since the loop that draws them
        may end early. Raises GivenUp or LoopRefused."""
        for site in sites_of(items):
            if type(site.source) is not int:
                self._make_in_runs(next(x for x in self._seeded if x.plain is site.source))
            if site.source in self._loops.plans.no_words:
                raise GivenUp("it draws random numbers, and may end early")
            self._loops.plans.words.setdefault(site.source, self._least)
        raise LoopRefused

    def _from_words(self, stand_in: Any, name: str, args: Any, kwargs: Any) -> Any:
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
        if is_of_python(stand_in.private):
            if name != "choice":
                self._refuse(f"Python's {name} takes a traced array")
            return x[stand_in.randrange(x.shape[0])]
        axis = kwargs.pop("axis", 0)
        of = "choice" if name == "choice" else "permutation"
        at = getattr(stand_in, of)(x.shape[axis], *args, **kwargs)
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

    def _argument(self, x: Any, is_known: bool = False) -> Any:
        """An argument of a draw, in a form that each later call can resolve (`resolved`).
        `is_known`: raises _Unknown unless it is the same in each call."""
        if isinstance(x, (list, tuple)):
            return type(x)([self._argument(item, is_known) for item in x])
        if isinstance(x, np.ndarray):
            return x.copy()
        if type(x) is Size:
            raise _Unknown
        if type(x) is MadeByRuns:
            if x.is_taken and hasattr(x.recipe.make, "random_raw"):
                self._refuse("two generators draw from one bit generator")
            x.is_taken = True
            return x.recipe
        if type(x) is not Tracer:
            return x
        if (array := x._array()) is not None:
            return array.copy() if x.ndim else array[()]
        if is_known:
            raise _Unknown
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
            if self._is_of_recipe:
                self._leave(why)
            self._loops.fail(f"it draws random numbers: {why}")
        raise ConcretizationError(f"{self._trace.name}: cannot trace random numbers ({why})")

    def _leave(self, why: str) -> NoReturn:
        """Refuses a loop that draws from a generator which the function makes. Raises BetterApart
        if it has many iterations."""
        body, plans = self._loops.open[0], self._loops.plans
        low, high = (x if type(x) is int else 0 for x in (body.counter.low, body.counter.high))
        if high - low < _LONG or not self._trace.builder.must_pay:
            self._loops.fail(f"it draws random numbers: {why}")
        where = LOOPS[body.loop].where
        plans.apart = f"cannot trace the random numbers of a loop ({where})"
        plans.report[body.loop] = where, "is a program of its own: it draws random numbers"
        raise BetterApart(f"{self._trace.name}: {plans.apart}")

    @property
    def is_in_loop(self) -> bool:
        """Whether the body of a loop is traced."""
        return bool(self._around)

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
        if not self._around:
            self._draw_seeded()
            if items and self._items:
                self._check_number(self._items[-1])

    def _check_number(self, loop: Any) -> None:
        """Makes the next trace let the program make the numbers of a loop's draws if these are many
        small ones. Raises LoopRefused."""
        if type(loop) is not Repeated:
            return
        generator = self._stand_ins[next(with_counts(loop))[1].source]
        if draws_at_once(loop) and not is_of_python(generator.private):
            return
        for counts, site in with_counts(loop):
            number = site.source
            is_small = site.num_made is not None and site.num_made <= _FEW
            if math.prod(counts) > _MANY and is_small and number not in self._loops.plans.no_words:
                self._loops.plans.words.setdefault(number, self._least)
                raise LoopRefused

    def _draw_seeded(self) -> None:
        """Draws the numbers of the last loop that come from generators with known seeds."""
        if self._seeded:
            loop = self._outermost.pop()
            drawn = of_seeds(loop, True)
            Numbers([], [], frozenset())._fill(drawn, [], ())
            self._trace.constants |= {id(site.numbers) for site in sites_of([drawn])}
            if (others := of_seeds(loop, False)).items:
                self._outermost.append(others)
        self._forget_private()

    def _forget_private(self) -> None:
        for of in self._seeded:
            of.private = None
        self._seeded.clear()

    def give_up(self, items: list[Any]) -> None:
        """Forgets the draws of a loop's body that is traced again."""
        self._needed = self._needed_before.pop()
        if not self._around:
            self._forget_private()
        for site in sites_of(items):
            self._num_sites -= 1
            if site.numbers is not None:
                self._unused.append(site.numbers)


def _are_of_runs(x: Any) -> bool:
    """Whether arguments of generators are known only when the program runs."""
    if type(x) is dict:
        x = list(x.values())
    if type(x) in (list, tuple):
        return any(map(_are_of_runs, x))
    return type(x) is MadeByRuns or contains_traced(x)
