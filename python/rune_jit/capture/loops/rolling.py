"""Turns loops of the traced function into loops of the program. The trace runs the body with a
symbolic counter, and the program carries the values that the body changes from iteration to
iteration. source.py adds calls of this module around each loop.

An iteration that is traced on its own, before or after the loop of the program, is called
peeled."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

from rune_jit.capture.algorithms import FILES
from rune_jit.capture.loops.bodies import Attempt
from rune_jit.capture.loops.branches import is_traced
from rune_jit.capture.loops.effects import Effects, Refused
from rune_jit.capture.loops.iterables import (
    Counted,
    bound_in,
    counted,
    made,
    numbers_of,
    without_bars,
)
from rune_jit.capture.loops.kinds import GivenUp, Unsettled, Unstable, any_value
from rune_jit.capture.loops.list_results import is_outermost
from rune_jit.capture.loops.lists import begin_lists, end_lists, stand_in
from rune_jit.capture.loops.places import Changed, Filled, Held, Place, assigned
from rune_jit.capture.loops.plain import Plain
from rune_jit.capture.loops.progress import Bar, refuse_bar
from rune_jit.capture.loops.ranges import Range
from rune_jit.capture.loops.source import LOOPS, STACK_LOOPS
from rune_jit.capture.loops.syntax import Loop
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.loop_plans import LoopRefused
from rune_jit.tracing.trace import Trace, Unless
from rune_jit.tracing.tracer import Tracer

# A loop of at most this many iterations, without loops in it, is unrolled.
FEW = 3
# A comprehension of at most this many items is unrolled.
_FEW_ITEMS = 16
# How often a body is traced at most before the loop is refused.
_MOST_PASSES = 12
# How many items and attributes a loop carries at most.
_MOST_PLACES = 200
# How many iterations are peeled at most until a queue is full.
_MOST_FILLED = 16


def begin(number: int, over: Any) -> Any:
    """The object that a `for` loop of a traced function iterates over, in place of its own
    iterable. `over` is the iterable, or the call that makes it."""
    trace = current_trace()
    loops = trace.loops if trace is not None else None
    if trace is None or loops is None:
        return Plain(made(over))
    bars: list[Bar] = []
    over = without_bars(over, bars)
    found = numbers_of(over, functools.partial(bound_in, loops))
    by_data = counted(trace, over) if found is None and not loops.within else None
    if by_data is not None:
        found = by_data.numbers, by_data.item
    if found is None:
        return _plain(over, bars)
    note_stacks(trace, number, sys._getframe(1))
    loop, (numbers, item) = LOOPS[number], found
    few = 1 if loop.has_loops else _FEW_ITEMS if loop.is_comprehension else FEW
    if numbers.is_known and len(numbers.known) <= few:
        return _plain(over, bars)
    why = loop.refusal or loops.plans.refusal(number)
    if why:
        loops.plans.report[number] = (loop.where, f"is unrolled: {why}")
        if not numbers.is_known and loops.open:
            loops.fail(f"the loop in it ({loop.where}) is unrolled: {why}")
        return _plain(over, bars)
    return _For(trace, loop, numbers, item, sys._getframe(1), by_data, bars)


def note_stacks(trace: Trace, number: int, frame: Any) -> None:
    """Notes that arrays can take the place of lists which the function of a loop reads. `frame` is
    that of the function."""
    assert trace.loops is not None
    alternatives = trace.loops.plans.alternatives
    if number in STACK_LOOPS and number not in alternatives and is_outermost(trace, frame):
        alternatives[number] = STACK_LOOPS[number]


def _plain(over: Any, bars: list[Bar]) -> Plain:
    """A loop that is unrolled: the trace runs all iterations."""
    iterable = made(over)
    if bars:
        raise refuse_bar()
    return Plain(iterable)


class Rolling:
    """A loop that becomes a loop of the program, if its body allows that."""

    def __init__(self, trace: Trace, loop: Loop, frame: Any) -> None:
        assert trace.loops is not None
        self.rebinds = False  # whether the function is to assign `values` or `results` now
        self.values: tuple[Any, ...] = ()  # of loop.carried, before the body
        self.results: tuple[Any, ...] = ()  # of loop.results, after the loop
        self._trace, self._loops, self._loop, self._frame = trace, trace.loops, loop, frame
        self._before: dict[str, Any] = {}  # values of names before the body is traced
        self._after: dict[str, Any] = {}  # values of names after the loop
        self._is_symbolic = False  # whether the iteration that is traced now represents all
        self._is_peeled = False  # whether it is a peeled one
        self._lists: list[Any] = []  # lists that arrays represent in a peeled iteration
        self._num_peeled = 0  # number of peeled iterations before the loop
        self._flag: Any = False  # whether this iteration ends the loop
        self._first: Any = True  # whether iterations follow the peeled ones

    def stops(self, flag: Any) -> Any:
        """Called at the end of an iteration. `flag` tells whether the iteration ends the loop.
        Returns whether Python is to leave the loop now."""
        if self._is_symbolic or (self._is_peeled and is_traced(flag)):
            self._flag = flag
            return False
        self.rebinds = False  # (Python may leave the loop)
        if flag:
            self._end_lists()
        return flag

    def _negated(self, flag: Any) -> Any:
        return np.logical_not(flag) if is_traced(flag) else not flag

    def _steps(self, rest: Range) -> Iterator[Any]:
        """Yields a number each time that the body is to be traced: a known one for a peeled
        iteration, else a symbolic one."""
        peeled = self._loops.plans.peeled(self._loop.number)
        behind: list[Any] = []
        if rest.is_empty:
            return
        for _ in range(peeled.first):
            if rest.has_some:
                yield from self._peeled([rest.start])
                rest = rest.without_first()
                if self._first is False:
                    return
        for _ in range(peeled.last):
            if rest.has_some and rest.last is not None and not rest.is_unlimited:
                behind.append(rest.last)
                rest = rest.without_last()
        self._num_peeled = peeled.first
        while True:
            try:
                yield from self._rolled(rest)
                break
            except Unstable as error:
                runs = rest.has_some and self._runs_now()
                if not runs:
                    # The types may be final after an iteration of the loop around this one.
                    self._loops.peel_outer()
                if self._num_peeled >= error.most_peeled or not runs:
                    yield from self._plain(rest, str(error))
                    break
                self._num_peeled += 1
                self._rebind(self._before)
                yield from self._peeled([rest.start])
                rest = rest.without_first()
                if self._first is False or (rest.is_known and not rest.known):
                    break
            except GivenUp as error:
                yield from self._plain(rest, str(error))
                break
        if behind:
            if self._may_end_early():
                self._refuse("its last iteration must be peeled, but the loop may end before")
            if self.results or self._after:
                self._rebind(self._after)
            self.results = ()
            yield from self._peeled(behind[::-1])

    def _peeled(self, numbers: list[Any]) -> Iterator[Any]:
        """The peeled iterations of these numbers."""
        for number in numbers:
            if not self._runs_now():
                self._refuse("its first iterations must be peeled, but the loop may have ended")
            self._flag, self._is_peeled = False, True
            self._begin_lists()
            with self._loops.part_of(self._loop.number):
                yield number
            self._end_lists()
            self._is_peeled = False
            if self._flag is not False:
                self._first = self._negated(self._flag)

    def _begin_lists(self) -> None:
        """Begins to represent lists by arrays in a peeled iteration."""
        with contextlib.suppress(GivenUp):  # (the loop of the program gives up for the same reason)
            found = self._effects(self._frame.f_locals)[0].stand_ins
            self._lists = [x for x in found if id(x.items) not in self._loops.lists]
            begin_lists(self._loops, self._lists)

    def _end_lists(self) -> None:
        end_lists(self._loops, self._lists)
        self._lists = []

    def _plain(self, rest: Range, why: str) -> Iterator[Any]:
        """Unrolls the loop: restores the names' values from before the trace of the body, and runs
        all iterations."""
        is_refused = self._loops.plans.refuse(self._loop.number, why)
        self._report(f"is unrolled: {why}")
        if not is_refused or self._first is not True:
            raise LoopRefused
        self._rebind(self._before)
        yield from self._iterations(rest, why)

    def _iterations(self, rest: Range, why: str) -> Iterator[Any]:
        """The iterations, one by one."""
        raise NotImplementedError

    def _runs_now(self) -> bool:
        """Whether the next iteration surely runs, if the range has one."""
        return self._first is True

    def _may_end_early(self) -> bool:
        return self._first is not True or self._flag is not False

    def _goes_on(self) -> Any:
        """Whether another iteration follows the traced one, if the range has one: a traced bool, or
        None if it surely does. Raises GivenUp."""
        if not is_traced(self._flag):
            if self._flag:
                raise GivenUp("it ends in its first iteration")
            return None
        return self._negated(self._flag)

    def _refuse(self, why: str) -> NoReturn:
        self._loops.plans.refuse(self._loop.number, why)
        raise LoopRefused

    def _report(self, how: str) -> None:
        if not self._loop.where.startswith(FILES):
            self._loops.plans.report[self._loop.number] = (self._loop.where, how)

    def _rebind(self, values: dict[str, Any]) -> None:
        names = self._loop.carried
        if names and all(name in values for name in names):
            self.values = tuple(values[name] for name in names)
            self.rebinds = True

    def _rolled(self, rest: Range) -> Iterator[Any]:
        """Yields a symbolic number each time that the body is to be traced. Raises GivenUp,
        Unstable."""
        self._before = dict(self._frame.f_locals)
        low, high = rest.bounds
        if low >= high:
            raise GivenUp("it runs once or not at all")
        effects, held = self._effects(self._before)
        places: list[Place] = []
        replaced: set[str] = set()
        self._zeros: dict[str, Any] = {}  # see Comparison
        attempt = self._attempt(rest, effects, held, places, replaced)
        for _ in range(_MOST_PASSES):
            self.values = assigned(attempt.begin(*rest.bounds), places)
            self.rebinds = bool(self._loop.carried)
            self._flag, self._is_symbolic = False, True
            count, before = (None if rest.is_unlimited else rest.count), rest.iterations_before
            with (
                self._trace.draws.iterations(count, before(attempt.counter)) as drawn,
                self._iterations_that_print() as printed,
            ):
                yield attempt.counter
            self._is_symbolic = False
            after, known = dict(self._frame.f_locals), len(replaced) + len(self._zeros)
            try:
                attempt.check_effects()
                changed = [x for x in held.changed() if x.name not in {p.name for p in places}]
                after |= {place.name: place.read() for place in places}
                goes_on = self._goes_on()
                if drawn and goes_on is not None:
                    self._trace.draws.need_words(drawn)
                is_stable = not changed and attempt.compare(after, goes_on)
                if is_stable and attempt.hoist_call():
                    held.restore()
                    self._trace.draws.give_up(drawn)
                    continue
            except (GivenUp, Unstable, Changed) as error:
                self._trace.draws.give_up(drawn)
                held.restore()
                attempt.give_up()
                if attempt.has_called:  # (the calls cannot be taken back: the trace begins again)
                    self._refuse(str(error))
                raise _unstable(error) from None
            if is_stable:
                self._trace.draws.add(count, drawn)
                self._after, results = attempt.end(after)
                if printed is not None:
                    self._trace.prints.add(printed, attempt.iterations_of)
                self.results = assigned(results, places)
                of_places = {place.name: held.held(place) for place in places}
                self._note_unless(rest, self._before | of_places)
                self._loops.rolled += 1
                self._report("is a loop of the program")
                return
            held.restore()
            self._trace.draws.give_up(drawn)
            attempt.give_up()
            if changed or len(replaced) + len(self._zeros) > known:
                places = [*places, *held.through_queues(places, changed)]
                if len(places) > _MOST_PLACES:
                    raise GivenUp(f"it changes more than {_MOST_PLACES} items")
                attempt = self._attempt(rest, effects, held, places, replaced)
        raise GivenUp("what it carries changes with each iteration")

    def _note_unless(self, rest: Range, before: dict[str, Any]) -> None:
        """Notes which arrays after an outermost loop are those before it if it has no iteration.
        (Calls return these themselves: calls/views.py.)"""
        trace, has_run = self._trace, self._first
        if self._loops.open or self._num_peeled or not trace.decides:
            return
        if not is_traced(has_run) and not rest.has_some and rest.count is not None:
            has_run = trace.traced(rest.count) > 0
        for name, new in self._after.items() if is_traced(has_run) else ():
            old = before.get(name)
            if type(new) is type(old) is Tracer and not (new._storage.scalar or new._steps):
                storage = new._storage
                if storage is not old._storage:
                    found = Unless(storage, storage.version, has_run, old)
                    trace.unless[id(storage)] = found

    def _attempt(
        self,
        rest: Range,
        effects: Effects,
        held: Held,
        places: list[Place],
        replaced: set[str],
    ) -> Attempt:
        """An attempt to carry the loop's names and these places. For `replaced` see Attempt."""
        names = tuple(place.name for place in places)
        loop = self._loop._replace(
            carried=self._loop.carried + names, results=self._loop.results + names
        )
        before = self._before | {place.name: held.held(place) for place in places}
        before |= {name: any_value(self._trace, *kind) for name, kind in self._zeros.items()}
        made = Attempt(self._trace, loop, rest, before, effects, replaced, self._first)
        made.zeros = self._zeros
        made.is_settled = self._num_peeled >= Unsettled.most_peeled
        made.follows_peeled = self._num_peeled > 0
        return made

    def _effects(self, before: dict[str, Any]) -> tuple[Effects, Held]:
        """The objects that the body can change, and their contents now. `before` are the values of
        names before it. Raises GivenUp."""
        loop = self._loop
        values = {k: v for k, v in before.items() if k not in loop.assigned or k in loop.carried}
        make = functools.partial(stand_in, self._trace, self._loop.number)
        try:
            return Effects.of_body(loop.uses, values, self._frame, make)
        except Refused as error:
            raise GivenUp(str(error)) from None

    def _iterations_that_print(self) -> contextlib.AbstractContextManager[Any]:
        prints = self._trace.prints
        return contextlib.nullcontext() if prints is None else prints.iterations()


def _unstable(error: Exception) -> Exception:
    if not isinstance(error, Changed):
        return error
    unstable = Unstable(str(error))
    if isinstance(error, Filled) and error.size <= _MOST_FILLED:
        unstable.most_peeled = max(1, error.size)
    return unstable


class _For(Rolling):
    """A `for` loop."""

    def __init__(
        self,
        trace: Trace,
        loop: Loop,
        numbers: Range,
        item: Callable[[Any], Any],
        frame: Any,
        by_data: Counted | None = None,
        bars: Iterable[Bar] = (),
    ) -> None:
        super().__init__(trace, loop, frame)
        self._bars = bars
        self._range, self._item, self._by_data = numbers, item, by_data
        self._number: Any = None

    def __iter__(self) -> Iterator[Any]:
        try:
            if self._by_data is not None:
                self._first = self._by_data.goes_on(0)
            for number in self._steps(self._range):
                self._number = number
                yield self._item(number)
                self.rebinds = False
        finally:
            self._frame = None
        for bar in self._bars:
            self._trace.prints.later(bar.show, (len(self._range.known),))
        self.rebinds = bool(self.results)

    def _goes_on(self) -> Any:
        leaves = super()._goes_on()
        if self._bars and (leaves is not None or not self._range.is_known):
            raise refuse_bar()
        if self._by_data is None:
            return leaves
        follows = self._by_data.goes_on(self._number + 1)
        return follows if leaves is None else np.logical_and(leaves, follows)

    def _iterations(self, rest: Range, why: str) -> Iterator[Any]:
        if self._bars:
            raise refuse_bar()
        if self._by_data is not None:
            range(self._by_data.start, self._by_data.stop)  # (raises: data decide the bounds)
        if not rest.is_known:
            if self._loops.open:
                self._loops.fail(f"the loop in it ({self._loop.where}) is unrolled: {why}")
            range(rest.start, rest.stop)  # (raises: the bounds are symbolic)
        yield from rest.known
