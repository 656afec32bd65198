"""The iterables of loops of the program: ranges, rows of arrays, and combinations of these."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rune_jit.capture.loops.positions import Along
from rune_jit.capture.loops.progress import Bar, bar_of, refuse_bar
from rune_jit.capture.loops.ranges import UNLIMITED, Range, range_of
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.loops import Loops
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_data_integer


def bound_in(loops: Loops, x: Any) -> Any:
    """The bound of a range in a loop's body. An integer that depends on data becomes a Size."""
    if not loops.open or not is_data_integer(x):
        return x
    trace = require_trace()
    size = trace.builder.bind_bound(trace.operand(x))
    if type(size) is Size:
        loops.data_sizes.update(size.names)
    return size


# Functions that make iterables whose items are known from the arguments.
_KNOWN = (range, enumerate, zip, itertools.repeat, itertools.pairwise, reversed)


class Call(NamedTuple):
    """A call of one of these functions that has not been made."""

    function: Any
    arguments: tuple[Any, ...]
    named: dict[str, Any]


def iterable(function: Any, *arguments: Any, **named: Any) -> Any:
    """function(*arguments, **named), or a Call of it if the function is a known one."""
    if (bar := bar_of(function, arguments, named)) is not None:
        return bar
    if not any(function is known for known in _KNOWN):
        return function(*map(made, arguments), **named)
    if function is range:  # (range accepts NumPy's integers and yields Python's)
        arguments = tuple([int(x) if issubclass(type(x), np.integer) else x for x in arguments])
    return Call(function, arguments, named)


def made(x: Any) -> Any:
    """The iterable that a Call makes, or x itself if it is no Call."""
    if type(x) is Bar:
        raise refuse_bar()
    return x.function(*map(made, x.arguments), **x.named) if type(x) is Call else x


def without_bars(x: Any, bars: list[Bar]) -> Any:
    """The iterable x without its progress bars, which are added to `bars`."""
    if type(x) is Bar:
        bars.append(x)
        of = Call(range, x.arguments, {}) if x.iterable is None else x.iterable
        return without_bars(of, bars)
    if type(x) is Call:
        return x._replace(arguments=tuple([without_bars(y, bars) for y in x.arguments]))
    return x


# The range of a loop, and a function from a number of the range to the value of the loop's target.
_Numbers = tuple[Range, Callable[[Any], Any]]


def numbers_of(over: Any, bind: Callable[[Any], Any]) -> _Numbers | None:
    """The range of a loop over `over`, and the function from its numbers to the values of the
    loop's target. None if it is no loop over numbers or rows."""
    if type(over) is not Call:
        return _of_items(over)
    function, given, named = over
    if function is reversed and len(given) == 1 and not named:
        found = numbers_of(given[0], bind) if _is_reversible(given[0]) else None
        backwards = found[0].backwards if found else None
        return (backwards, found[1]) if found and backwards else None
    if function is range and not named:
        numbers = range_of(given, bind)
        return (numbers, _itself) if numbers else None
    if function is itertools.repeat and len(given) == 2 and not named:
        numbers = range_of(given[1:], bind)
        return (numbers, lambda number: given[0]) if numbers else None
    if function is enumerate and len(given) == 1 and named.keys() <= {"start"}:
        given = (*given, *named.values())
        named = {}
    if function is enumerate and 1 <= len(given) <= 2 and not named:
        return _counted_from(numbers_of(given[0], bind), *given[1:])
    if function is itertools.pairwise and len(given) == 1 and not named:
        return _pairwise(numbers_of(given[0], bind))
    if function is zip and given and named.keys() <= {"strict"}:
        parts = [numbers_of(x, bind) for x in given]
        return _side_by_side(parts, bool(named.get("strict")))
    return None


def _is_reversible(x: Any) -> bool:
    return type(x) is not Call or x.function is range


def _of_items(x: Any) -> _Numbers | None:
    if type(x) is range:
        return Range(x.start, x.stop, x.step), _itself
    if type(x) is Along:
        return x.numbers, x.item
    if type(x) is Tracer and x.ndim:
        return Range(0, x.shape[0], 1), lambda number: x[number]
    return None


def _itself(number: Any) -> Any:
    return number


def _by_position(of: _Numbers) -> _Numbers:
    """The same iterations with the numbers 0, 1, 2 and so on, if the range is known."""
    numbers, item = of
    if not numbers.is_known or (numbers.start, numbers.step) == (0, 1):
        return of
    start, step = numbers.start, numbers.step
    return Range(0, len(numbers.known), 1), lambda position: item(position * step + start)


def _counted_from(of: _Numbers | None, start: Any = 0) -> _Numbers | None:
    """The iterations of enumerate."""
    if of is None or type(start) not in (int, Size):
        return None
    numbers, item = _by_position(of)
    if numbers.iterations_before(numbers.start) is None:
        return None
    return numbers, lambda number: (numbers.iterations_before(number) + start, item(number))


def _pairwise(of: _Numbers | None) -> _Numbers | None:
    """The iterations of pairwise."""
    if of is None or not of[0].is_known:
        return None
    numbers, item = _by_position(of)
    return numbers._replace(stop=max(numbers.stop - 1, 0)), lambda n: (item(n), item(n + 1))


def _side_by_side(of: list[_Numbers | None], are_equal: bool) -> _Numbers | None:
    """The iterations of zip. `are_equal` tells whether zip raises if the lengths differ."""
    parts = [_by_position(x) for x in of if x is not None]
    if len(parts) < len(of):
        return None
    items = [item for _, item in parts]
    counts = [numbers.stop for numbers, _ in parts]
    if len(parts) > 1 and not all(numbers.is_known for numbers, _ in parts):
        return None
    if are_equal and len(set(counts)) > 1:
        return None
    numbers = Range(0, min(counts), 1) if len(parts) > 1 else parts[0][0]
    return numbers, lambda number: tuple(item(number) for item in items)


class Counted(NamedTuple):
    """A range whose bounds depend on data. A condition ends the loop over it."""

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


def counted(trace: Trace, over: Any) -> Counted | None:
    """The range in `over`, if its bounds depend on data, else None."""
    if type(over) is not Call or over.function is not range or not trace.may_guess:
        return None
    given = over.arguments
    if not 1 <= len(given) <= 3 or over.named:
        return None
    *bounds, step = (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]
    if type(step) is not int or step == 0 or not any(map(is_data_integer, bounds)):
        return None
    if not all(type(x) in (int, Size) or is_data_integer(x) for x in bounds):
        return None
    if any(type(x) is Tracer for x in bounds):
        trace.guess()  # (that they are small)

    def number(x: Any) -> Any:
        if type(x) is not Tracer:
            return x
        made = trace.builder.python_number(x._value_in(trace), True)
        return Tracer(trace, made, scalar=True)

    start, stop = map(number, bounds)
    return Counted(start, stop, step)
