"""Loops of the traced function that become loops of the program: the body runs once, with a
symbolic counter, and what it changes is carried from iteration to iteration.

The calls around a loop that source.py adds come here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from rune_jit.capture.loops.bodies import Attempt, GivenUp, Unstable
from rune_jit.capture.loops.effects import Effects, Refused, global_value
from rune_jit.capture.loops.ranges import Range, range_of
from rune_jit.capture.loops.source import LOOPS
from rune_jit.capture.loops.syntax import Loop
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer

# A loop of so few iterations, without loops in it, runs as they are.
_FEW = 3
# How often a body is traced at most before the loop is refused.
_MOST_PASSES = 8


def begin(number: int, *given: Any) -> Any:
    """What a `for` loop of a traced function iterates over: `given` is the iterable, or `range`,
    `enumerate` or `zip` and its arguments."""
    trace = current_trace()
    loops = trace.loops if trace is not None else None
    found = _numbers_of(given) if loops is not None else None
    if trace is None or loops is None or found is None:
        return _Plain(_iterable(given))
    loop, (numbers, item) = LOOPS[number], found
    if numbers.is_known and len(numbers.known) <= (1 if loop.has_loops else _FEW):
        return _Plain(_iterable(given))
    why = loop.refusal or loops.plans.refusal(number)
    if why:
        loops.plans.report[number] = (loop.where, f"runs all iterations: {why}")
        if not numbers.is_known and loops.open:
            loops.fail(f"the loop in it ({loop.where}) runs all iterations: {why}")
        return _Plain(_iterable(given))
    return _Rolling(trace, loop, numbers, item, sys._getframe(1))


def _iterable(given: tuple[Any, ...]) -> Any:
    return given[0](*given[1:]) if len(given) > 1 else given[0]


def _numbers_of(given: tuple[Any, ...]) -> tuple[Range, Callable[[Any], Any]] | None:
    """The numbers of the iterations, and what the loop's target is in each; None if the loop is no
    loop over numbers and rows."""
    first, rest = given[0], given[1:]
    if not rest:
        if type(first) is range:
            return Range(first.start, first.stop, first.step), _itself
        return _rows((first,), lambda number: first[number])
    if first is range:
        numbers = range_of(rest)
        return (numbers, _itself) if numbers else None
    if first is enumerate and len(rest) == 1:
        return _rows(rest, lambda number: (number, rest[0][number]))
    if first is zip:
        return _rows(rest, lambda number: tuple(x[number] for x in rest))
    return None


def _itself(number: Any) -> Any:
    return number


def _rows(arrays: tuple[Any, ...], item: Any) -> tuple[Range, Callable[[Any], Any]] | None:
    if not all(type(x) is Tracer and x.ndim for x in arrays):
        return None
    sizes = [x.shape[0] for x in arrays]
    if len(sizes) > 1 and not all(type(n) is int for n in sizes):
        return None
    return Range(0, min(sizes) if len(sizes) > 1 else sizes[0], 1), item


class _Plain:
    """An iterable as it is."""

    __slots__ = ("_iterable",)
    rebinds = False

    def __init__(self, iterable: Any) -> None:
        self._iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterable)


class _Rolling:
    """A loop that becomes one of the program, if its body allows that."""

    def __init__(
        self, trace: Trace, loop: Loop, numbers: Range, item: Callable[[Any], Any], frame: Any
    ) -> None:
        assert trace.loops is not None
        self.rebinds = False  # whether names are assigned now: `values` before the body
        self.values: tuple[Any, ...] = ()  # of loop.carried
        self.results: tuple[Any, ...] = ()  # of loop.results, after the loop
        self._trace, self._loops, self._loop = trace, trace.loops, loop
        self._range, self._item, self._frame = numbers, item, frame
        self._before: dict[str, Any] = {}  # what names stand for before the body is traced
        self._after: dict[str, Any] = {}  # and after the loop

    def __iter__(self) -> Iterator[Any]:
        try:
            for number in self._numbers():
                yield self._item(number)
                self.rebinds = False
        finally:
            self._frame = None
        self.rebinds = bool(self.results)

    def _numbers(self) -> Iterator[Any]:
        rest, peeled = self._range, self._loops.plans.peeled(self._loop.number)
        behind: list[Any] = []
        if rest.is_empty:
            return
        for _ in range(peeled.first):
            if rest.has_some:
                yield from self._apart([rest.start])
                rest = rest.without_first()
        for _ in range(peeled.last):
            if rest.has_some and rest.last is not None:
                behind.append(rest.last)
                rest = rest.without_last()
        has_peeled = peeled.first > 0
        while True:
            try:
                yield from self._rolled(rest)
                break
            except Unstable as error:
                if not rest.has_some:
                    # After an iteration of the loop around this one, types may be what they stay.
                    self._loops.peel_outer()
                if has_peeled or not rest.has_some:
                    yield from self._plain(rest, str(error))
                    break
                has_peeled = True
                self._rebind(self._before)
                yield from self._apart([rest.start])
                rest = rest.without_first()
                if rest.is_known and not rest.known:
                    break
            except GivenUp as error:
                yield from self._plain(rest, str(error))
                break
        if behind:
            if self.results or self._after:
                self._rebind(self._after)
            self.results = ()
            yield from self._apart(behind[::-1])

    def _apart(self, numbers: list[Any]) -> Iterator[Any]:
        """Iterations before and behind the loop of the program."""
        for number in numbers:
            with self._loops.apart(self._loop.number):
                yield number

    def _plain(self, rest: Range, why: str) -> Iterator[Any]:
        """All iterations, from where names stand for what they did before the body was traced."""
        self._loops.plans.refuse(self._loop.number, why)
        self._report(f"runs all iterations: {why}")
        if not rest.is_known:
            if self._loops.open:
                self._loops.fail(f"the loop in it ({self._loop.where}) runs all iterations: {why}")
            range(rest.start, rest.stop)  # raises
        self._rebind(self._before)
        yield from rest.known

    def _report(self, how: str) -> None:
        self._loops.plans.report[self._loop.number] = (self._loop.where, how)

    def _rebind(self, values: dict[str, Any]) -> None:
        names = self._loop.carried
        if names and all(name in values for name in names):
            self.values = tuple(values[name] for name in names)
            self.rebinds = True

    def _rolled(self, rest: Range) -> Iterator[Any]:
        """One symbolic number for each time that the body is traced. Raises GivenUp, Unstable."""
        self._before = dict(self._frame.f_locals)
        low, high = rest.bounds
        if low >= high:
            raise GivenUp("it runs once or not at all")
        effects = self._effects()
        attempt = Attempt(self._trace, self._loop, rest, self._before)
        for _ in range(_MOST_PASSES):
            self.values = attempt.begin(*rest.bounds)
            self.rebinds = bool(self._loop.carried)
            yield attempt.counter
            after = self._frame.f_locals
            try:
                attempt.check_effects()
                if why := effects.has_changed():
                    self._loops.fail(why)
                is_stable = attempt.compare(after)
            except (GivenUp, Unstable):
                attempt.give_up()
                raise
            if is_stable:
                self._after, self.results = attempt.end(after)
                self._loops.rolled += 1
                self._report("is a loop of the program")
                return
            attempt.give_up()
        raise GivenUp("what it carries changes with each iteration")

    def _effects(self) -> Effects:
        """What the body can change. Raises GivenUp."""
        loop, code = self._loop, self._frame.f_code
        local = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
        values = {
            name: value
            for name, value in self._before.items()
            if name not in loop.assigned or name in loop.carried
        }

        def scope(name: str) -> Any:
            if name in local:
                raise KeyError(name)
            return global_value(self._frame.f_globals, name)

        effects = Effects()
        try:
            effects.look(loop.uses, values, scope)
        except Refused as error:
            raise GivenUp(str(error)) from None
        return effects
