"""Python's ranges whose bounds may be symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rune_jit.tracing.sizes import Size, same_size

_NEVER = 2**50  # more iterations than any loop runs, since they would take weeks


class Range(NamedTuple):
    """A range like Python's. Its bounds may be Sizes."""

    start: Any
    stop: Any
    step: int

    @property
    def is_known(self) -> bool:
        return type(self.start) is int and type(self.stop) is int

    @property
    def known(self) -> range:
        return range(self.start, self.stop, self.step)

    @property
    def is_unlimited(self) -> bool:
        """Whether only a condition ends the loop over it."""
        return type(self.stop) is int and self.stop >= _NEVER

    @property
    def _span(self) -> Any:
        return self.stop - self.start if self.step > 0 else self.start - self.stop

    @property
    def is_empty(self) -> bool:
        """Whether it is empty for all values of the Sizes."""
        span = self._span
        return (span if type(span) is int else span.high) <= 0

    @property
    def has_some(self) -> bool:
        """Whether it has a number for all values of the Sizes."""
        span = self._span
        return (span if type(span) is int else span.low) > 0

    def has_more_than(self, count: int) -> bool:
        """Whether it surely has more than `count` numbers."""
        return self.is_known and len(self.known) > count

    @property
    def last(self) -> Any:
        """The last number, if there is one; None if that is not known."""
        if self.is_known:
            return self.known[-1] if self.known else None
        return self.stop - self.step if abs(self.step) == 1 else None

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest number for all values of the Sizes."""
        if self.is_known:
            first, last = self.known[0], self.known[-1]
            return (first, last) if self.step > 0 else (last, first)
        start = self.start if type(self.start) is int else None
        stop = self.stop if type(self.stop) is int else None
        if self.step > 0:
            return (
                self.start.low if start is None else start,
                (self.stop.high if stop is None else stop) - 1,
            )
        return (
            (self.stop.low if stop is None else stop) + 1,
            self.start.high if start is None else start,
        )

    @property
    def symbolic_bounds(self) -> tuple[Any, Any]:
        """The least and the greatest number, or bounds of them, in terms of the Sizes."""
        if self.is_known:
            return self.bounds
        return (self.start, self.stop - 1) if self.step > 0 else (self.stop + 1, self.start)

    def iterations_before(self, number: Any) -> Any:
        """How many iterations run before that of a number. None if no Size can express this."""
        if self.step == 1:
            return number - self.start
        return self.start - number if self.step == -1 else None

    @property
    def count(self) -> Any:
        """How many numbers it has. None if no Size can express this."""
        if self.is_known:
            return len(self.known)
        return self._span if self.has_some and abs(self.step) == 1 else None

    def counted(self, counter: Any, value: Any, step: int) -> tuple[Any, Any] | None:
        """The values at the start of an iteration and after the loop of a number that begins with
        `value` and to which each iteration adds `step`. None if no Sizes can express them."""
        if self.is_unlimited or self.count is None:
            return None
        after = value + self.count * step
        if self.step == step and same_size(self.start, value):
            return counter, after
        before = self.iterations_before(counter)
        return None if before is None else (value + before * step, after)

    @property
    def backwards(self) -> Range | None:
        """The same numbers in reverse order. None if no Range can express them."""
        if self.is_known:
            numbers = self.known[::-1]
            return Range(numbers.start, numbers.stop, numbers.step)
        if abs(self.step) != 1:
            return None
        return Range(self.stop - self.step, self.start - self.step, -self.step)

    def without_first(self) -> Range:
        return self if self.is_unlimited else self._replace(start=self.start + self.step)

    def without_last(self) -> Range:
        return self._replace(stop=self.last)


UNLIMITED = Range(0, _NEVER, 1)


def limited(start: Any, bound: Any, step: int, includes: bool) -> Range | None:
    """The range from `start` to `bound`, with the bound itself if it `includes` that. None unless
    both are ints or Sizes."""
    if type(start) not in (int, Size) or type(bound) not in (int, Size):
        return None
    return Range(start, bound + (includes if step > 0 else -includes), step)


def range_of(arguments: tuple[Any, ...], bind: Callable[[Any], Any]) -> Range | None:
    """range(*arguments). None unless its bounds are ints or Sizes; `bind` turns other integers into
    Sizes."""
    if not 1 <= len(arguments) <= 3:
        return None
    arguments = tuple([*map(bind, arguments[:2]), *arguments[2:]])
    if not all(type(x) in (int, Size) for x in arguments[:2]):
        return None
    step = arguments[2] if len(arguments) == 3 else 1
    if type(step) is not int or step == 0:
        return None
    start, stop = (0, arguments[0]) if len(arguments) == 1 else arguments[:2]
    return Range(start, stop, step)
