"""Indices in the bodies of loops: positions and slices that depend on counters and data."""

from __future__ import annotations

from typing import Any

from rune_jit.errors import UnsupportedOpError
from rune_jit.rules.coercions import view_in
from rune_jit.tracing.context import user_site
from rune_jit.tracing.loop_plans import Window
from rune_jit.tracing.loops import Loops
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.storage import Step
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_data_integer


def bound_items(
    trace: Trace, loops: Loops, x: Tracer, items: tuple[Any, ...]
) -> tuple[Tracer, tuple[Any, ...]]:
    """The array and the items for an index in the body of a loop.

    Three kinds of items become Sizes that the program checks: traced integers, bounds of slices
    that data decide, and expressions of counters that may be out of bounds or negative in some
    iterations only. If a slice has such bounds, the array is extended, because the slice may reach
    beyond its end.

    Raises UnsupportedOpError if peeling iterations may help instead."""
    consumed = sum(item is not None and item is not Ellipsis for item in items)
    if consumed > x.ndim:
        return x, items
    axis = 0
    result = []
    more = [0] * x.ndim
    for item in items:
        size = x.shape[axis] if axis < x.ndim else None
        if item is None or item is Ellipsis or type(size) is not int:
            pass
        elif type(item) is Size:
            item = _position(trace, loops, item, axis, size)
        elif is_data_integer(item) and size:
            item = trace.builder.bind_position(trace.operand(item), axis, size)
        elif type(item) is slice and item.step in (None, 1):
            within = _slice(trace, loops, item, size)
            if within is not None:
                item = within
                if type(item.stop) is Size and item.stop.high > size:
                    more[axis] = size
        result.append(item)
        axis += x.ndim - consumed if item is Ellipsis else item is not None
    if any(more):
        if x._storage.array is not None:
            x._storage.embed(trace)
        x = view_in(trace, Step("pad", more), x)
    return x, tuple(result)


def _position(trace: Trace, loops: Loops, item: Any, axis: int, size: int) -> Any:
    """A position in terms of counters, or one that the program checks."""
    low, high = loops.bounds(item)
    if -size <= low and high < size and not low < 0 <= high:
        return _within(trace, item, low, high, size - 1)
    if low >= -2 and high <= size + 1 and loops.can_peel(item):
        raise UnsupportedOpError(
            f"index: cannot tell whether {item} is a position along axis {axis} of size {size} in"
            f" all iterations (it is from {low} to {high})"
        )
    return trace.builder.bind_position(trace.operand(item), axis, size)


def _slice(trace: Trace, loops: Loops, item: slice, size: int) -> slice | None:
    """A slice in terms of counters that lies within the axis, or a slice that data decide. None if
    it reaches beyond the axis in some iterations, and peeling these may help."""
    bounds = (item.start, item.stop)
    sizes = [b for b in bounds if type(b) is Size]
    by_data = any(map(is_data_integer, bounds))
    if not all(b is None or type(b) in (int, Size) or is_data_integer(b) for b in bounds):
        return item
    if not sizes and not by_data:
        return item
    known = None if by_data else _ordered(loops, item, size)
    if known is None:
        if not by_data and any(map(loops.can_peel, sizes)):
            return None
        first, last = (None if b is None else trace.operand(b) for b in bounds)
        return _slice_of_data(trace, loops, first, last, size)
    start, count = known
    first = _within(trace, start, *_bounds(loops, start), size)
    number = _within(trace, count, *_bounds(loops, count), size)
    return item if first is start and number is count else slice(first, first + number)


def _slice_of_data(trace: Trace, loops: Loops, first: Any, last: Any, size: int) -> slice:
    """A slice whose bounds data decide. If both are the same number plus integers (x[s : s + w]),
    and the loop would be refused otherwise, the program checks that the slice has w elements.
    Python runs the calls in which it has less."""
    builder = trace.builder
    start, count = builder.bind_slice(first, last, size)
    given = first is not None and last is not None
    width = builder.constant_difference(first, last) if given else None
    if width is None or not 0 < width <= size or type(count) is int:
        return slice(start, start + count)
    if not loops.plans.is_whole(Window(tuple(loops.within), user_site())):
        return slice(start, start + count)
    trace.raise_if(builder.ufunc("not_equal", [trace.operand(count), width])[0])
    start = builder.bind_number(trace.operand(start), 0, size - width)
    return slice(start, start + width)


def _ordered(loops: Loops, item: slice, size: int) -> tuple[Any, Any] | None:
    """The first position and the number of elements of a slice. None unless the counters' ranges
    show that in all iterations its bounds lie within the axis, in order."""
    ends = []
    for bound, otherwise in ((item.start, 0), (item.stop, size)):
        bound = otherwise if bound is None else bound
        low, high = _bounds(loops, bound)
        if high < 0:
            bound, low, high = bound + size, low + size, high + size
        if low < 0 or high > size:
            return None
        ends.append(bound)
    count = ends[1] - ends[0]
    return (ends[0], count) if _bounds(loops, count)[0] >= 0 else None


def _bounds(loops: Loops, number: Any) -> tuple[int, int]:
    return (number, number) if type(number) is int else loops.bounds(number)


def _within(trace: Trace, number: Any, low: int, high: int, most: int) -> Any:
    """A number from `low` to `high`, replaced by one whose bounds show that it is from 0 to `most`,
    or negative. (The bounds of the number itself may be wider, because they ignore that counters
    depend on each other.)"""
    if type(number) is int or (number.low >= 0 and number.high <= most):
        return number
    if -most - 1 <= number.low and number.high < 0:
        return number
    return trace.builder.bind_number(trace.operand(number), low, high)
