"""Carried arrays whose shape changes by the same amount in every iteration, as in
`v = v[1:] - v[:-1]`. The loop carries an array of the largest shape, and each iteration uses a part
of it."""

from __future__ import annotations

from typing import Any

from rune_jit.capture.loops.kinds import kind_of
from rune_jit.capture.loops.ranges import Range
from rune_jit.tracing.sizes import Size, same_shape, same_size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_traced_array


class ChangingShape:
    """A shape that is `first` before the first iteration, and to which each iteration adds `by`."""

    def __init__(self, first: tuple[int, ...], by: tuple[int, ...], count: int) -> None:
        self._first, self._by = first, by
        self._room = tuple(n + max(0, more * count) for n, more in zip(first, by, strict=True))

    def at(self, iteration: Any) -> tuple[Any, ...]:
        """The shape after `iteration` iterations."""
        return tuple(n + iteration * more for n, more in zip(self._first, self._by, strict=True))

    def embed(self, builder: Any, value: Any) -> Any:
        """An array of the largest shape that contains a value as a part."""
        missing = [(0, room - n) for n, room in zip(value.shape, self._room, strict=True)]
        return builder.pad(value, missing)

    def part(self, builder: Any, memory: Any, iteration: Any) -> Any:
        """The value after `iteration` iterations, as a part of `memory` (`embed`)."""
        return builder.index(memory, [slice(0, n) for n in self.at(iteration)])


def changing_shape(numbers: Range, counter: Any, before: Tracer, new: Any) -> ChangingShape | None:
    """The change of an array's shape from iteration to iteration. `before` is the array before the
    loop, and `new` is the array after an iteration that began with the same shape. None if the
    shape does not change, or not by the same amount in every iteration."""
    if not is_traced_array(new) or new.dtype != before.dtype or new.ndim != before.ndim:
        return None
    if not numbers.is_known or any(type(n) is not int for n in before.shape):
        return None
    by = []
    for n, after in zip(before.shape, new.shape, strict=True):
        if type(after) is Size:  # (it must also give the shape before the loop)
            per_number = after.coefficients.get(counter.names[0], 0)
            first = after + (numbers.start - counter) * per_number
            if not same_size(first, n + per_number * numbers.step):
                return None
            by.append(per_number * numbers.step)
        else:
            by.append(after - n)
    return ChangingShape(before.shape, tuple(by), len(numbers.known)) if any(by) else None


def is_alike(
    trace: Trace, shape: ChangingShape | None, iteration: Any, given: Tracer, new: Any
) -> bool:
    """Whether `new` can take the place of `given` in the next iteration."""
    if shape is None:
        return is_traced_array(new) and kind_of(trace, new) == kind_of(trace, given)
    return (
        is_traced_array(new)
        and new.dtype == given.dtype
        and new.ndim == given.ndim
        and same_shape(new.shape, shape.at(iteration + 1))
    )
