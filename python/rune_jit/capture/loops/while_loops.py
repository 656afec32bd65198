"""`while` loops of the traced function that become loops of the program. source.py adds calls of
this module around each loop."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from rune_jit.capture.loops.branches import Conditions, condition_of, is_traced
from rune_jit.capture.loops.kinds import GivenUp
from rune_jit.capture.loops.plain import PLAIN
from rune_jit.capture.loops.ranges import UNLIMITED, Range, limited
from rune_jit.capture.loops.rolling import FEW, Rolling, note_stacks
from rune_jit.capture.loops.source import LOOPS
from rune_jit.capture.loops.syntax import Loop
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.trace import Trace


def begin_while(number: int, *limit: Any) -> Any:
    """The object that a `while` loop of a traced function asks whether it goes on. `limit` has the
    loop's counter and the number that limits it, if there is a limit."""
    trace = current_trace()
    loops = trace.loops if trace is not None else None
    if trace is None or loops is None:
        return PLAIN
    note_stacks(trace, number, sys._getframe(1))
    loop = LOOPS[number]
    why = loop.refusal or loops.plans.refusal(number)
    if why:
        loops.plans.report[number] = (loop.where, f"is unrolled: {why}")
        return PLAIN
    numbers = None
    if loop.limit:
        name, includes, _ = loop.limit
        counter, bound = limit
        numbers = limited(counter, bound, loop.steps[name], includes)
        if numbers is not None and numbers.is_known and len(numbers.known) <= FEW:
            return PLAIN
    return _While(trace, loop, numbers, sys._getframe(1))


class _While(Rolling, Conditions):
    """A `while` loop. `numbers` is the range of its counter, if it has a limit."""

    def __init__(self, trace: Trace, loop: Loop, numbers: Range | None, frame: Any) -> None:
        super().__init__(trace, loop, frame)
        Conditions.__init__(self, self._is_unknown_test, self._refuse)
        self._is_plain = False
        self._range = numbers or UNLIMITED
        self._is_counted = numbers is not None and loop.limit is not None and loop.limit.is_all
        self._driver = self._run()
        self._test: Any = None
        self._entry: Any = None  # the loop's condition before the body was traced
        # The open `where` block under which the loop's condition is computed: the loop goes on.
        self._condition: Any = None

    def _is_unknown_test(self, x: Any) -> bool:
        return not self._is_plain and is_traced(x)

    def goes_on(self, test: Any) -> Any:
        """Called with the loop's condition before each iteration. Returns whether the body runs."""
        if self._is_plain:
            self.rebinds = False
            return test
        test = condition_of(test)
        if self._condition is not None:
            self._condition.__exit__(None, None, None)
            self._condition = None
        self._test, self.rebinds = test, False
        if next(self._driver, None) is None:
            self._frame, self.rebinds = None, bool(self.results)
            self._before = self._after = {}  # (these values live no longer than the function's)
            return False
        return True

    def stops(self, flag: Any) -> Any:
        stops_now = super().stops(flag)
        if is_traced(flag) and (self._is_symbolic or self._is_peeled):
            holds = self._negated(flag)._value_in(self._trace)
            self._condition = self._loops.where(self._trace.builder, holds)
            self._condition.__enter__()
        return stops_now

    def _rolled(self, rest: Range) -> Iterator[Any]:
        self._entry = self._test
        yield from super()._rolled(rest)

    def _run(self) -> Iterator[Any]:
        if not self._is_counted and not is_traced(self._test) and not self._test:
            return
        if is_traced(self._test) and not self._is_counted:
            self._first = self._as_bool(self._test)
        yield from self._steps(self._range)

    def _peeled(self, numbers: list[Any]) -> Iterator[Any]:
        for number in numbers:
            yield from super()._peeled([number])
            if self._is_counted:
                continue
            test = self._as_bool(self._test)
            if self._first is not True and is_traced(test):
                self._first = np.logical_and(self._first, test)
            elif is_traced(test) or not test:
                self._first = test

    def _goes_on(self) -> Any:
        leaves = super()._goes_on()
        if self._is_counted:
            return leaves
        if not is_traced(self._test):
            if not self._test:
                raise GivenUp("it ends after one iteration")
            if leaves is None and self._range.is_unlimited:
                raise GivenUp("nothing that the program computes ends it")
            return leaves
        test = self._as_bool(self._test)
        return test if leaves is None else np.logical_and(leaves, test)

    @staticmethod
    def _as_bool(test: Any) -> Any:
        if not is_traced(test):
            return bool(test)
        return test if test.dtype == bool else np.not_equal(test, 0)

    def _iterations(self, rest: Range, why: str) -> Iterator[Any]:
        self._is_plain = True
        self._test = self._entry
        if is_traced(self._test) and self._loops.open:
            self._loops.fail(f"the loop in it ({self._loop.where}) is unrolled: {why}")
        while self._test:
            yield True
