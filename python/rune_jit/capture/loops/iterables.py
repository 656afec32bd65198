"""The iterables of loops of the program: ranges, rows of arrays, and combinations of these."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from rune_jit.capture.loops.positions import Along
from rune_jit.capture.loops.ranges import UNLIMITED, Range, range_of
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.loops import Loops
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_data_integer


def bound_in(loops: Loops, x: Any) -> Any:
    """The bound of a range in the body of a loop: a Size, if it is an integer that data decide."""
    if not loops.open or not is_data_integer(x):
        return x
    trace = require_trace()
    size = trace.builder.bind_bound(trace.operand(x))
    if type(size) is Size:
        loops.data_sizes.update(size.names)
    return size


def numbers_of(
    given: tuple[Any, ...], bind: Callable[[Any], Any]
) -> tuple[Range, Callable[[Any], Any]] | None:
    """The numbers of the iterations, and what the loop's target is in each; None if the loop is no
    loop over numbers and rows."""
    first, rest = given[0], given[1:]
    if first is reversed:
        found = numbers_of(rest, bind) if rest and (rest[0] is range or len(rest) == 1) else None
        backwards = found[0].backwards if found else None
        return (backwards, found[1]) if found and backwards else None
    if not rest:
        if type(first) is range:
            return Range(first.start, first.stop, first.step), _itself
        if type(first) is Along:
            return first.numbers, first.item
        return _rows((first,), lambda number: first[number])
    if first is range:
        numbers = range_of(rest, bind)
        return (numbers, _itself) if numbers else None
    if first is itertools.repeat and len(rest) == 2:
        numbers = range_of(rest[1:], bind)
        return (numbers, lambda number: rest[0]) if numbers else None
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


class Counted(NamedTuple):
    """A range that data decide, outside of loops: a condition ends the loop."""

    start: Any
    stop: Any
    step: int

    def item(self, number: Any) -> Any:
        """The value of the loop's target in the iteration of this number."""
        return number * self.step + self.start

    def goes_on(self, number: Any) -> Any:
        """Whether there is an iteration of this number."""
        item = self.item(number)
        return self.stop > item if self.step > 0 else self.stop < item

    @property
    def numbers(self) -> Range:
        return UNLIMITED


def counted(trace: Trace, given: tuple[Any, ...]) -> Counted | None:
    """The range that is iterated over, if data decide it."""
    if given[0] is not range or not 2 <= len(given) <= 4 or not trace.may_guess:
        return None
    arguments = (0, given[1], 1) if len(given) == 2 else (*given[1:], 1)[:3]
    *bounds, step = arguments
    if type(step) is not int or step == 0 or not any(map(is_data_integer, bounds)):
        return None
    if not all(type(x) in (int, Size) or is_data_integer(x) for x in bounds):
        return None
    if any(type(x) is Tracer for x in bounds):
        trace.guess()  # that they are small

    def number(x: Any) -> Any:
        if type(x) is not Tracer:
            return x
        made = trace.builder.python_number(x._value_in(trace), True)
        return Tracer(trace, made, scalar=True)

    start, stop = map(number, bounds)
    return Counted(start, stop, step)
