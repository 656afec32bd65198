"""The iterables of the nested loops that replace a loop over the positions of a grid (grids.py)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rune_jit.capture.loops.effects import ALLOWED
from rune_jit.capture.loops.ranges import Range
from rune_jit.capture.shim import original
from rune_jit.tracing.sizes import Size


class Along:
    """The iterable of one of the nested loops. It has an item for each number of a range."""

    def __init__(self, numbers: Range, item: Callable[[Any], Any]) -> None:
        self.numbers, self.item = numbers, item

    def __iter__(self) -> Iterator[Any]:
        return map(self.item, self.numbers.known)


class _Grid(NamedTuple):
    loops: int  # the number of nested loops
    axes: tuple[Range, ...] | None  # the ranges of the innermost loops; the others run once
    iterable: Any  # the iterable of the innermost loop if there are no axes


def grid(loops: int, function: Any, *args: Any, **kwargs: Any) -> _Grid:
    """The iterables of the nested loops that replace a loop over function(*args, **kwargs)."""
    axes = None
    if original(function) is np.ndindex and not kwargs:
        axes = _of_sizes(args)
    elif original(function) is itertools.product and kwargs.keys() <= {"repeat"}:
        axes = _of_ranges(args, **kwargs)
    if axes and len(axes) <= loops:
        return _Grid(loops, axes, None)
    return _Grid(loops, None, function(*args, **kwargs))


def along(grid: _Grid, axis: int, *outer: Any) -> Any:
    """The iterable of the nested loop with number `axis`. For the innermost loop, `outer` are the
    targets of the loops around it."""
    is_last = axis == grid.loops - 1
    if grid.axes is None:
        return grid.iterable if is_last else _ONCE
    absent = grid.loops - len(grid.axes)
    if axis < absent:
        return _ONCE
    numbers = grid.axes[axis - absent]
    return Along(numbers, lambda number: (*outer[absent:], number) if is_last else number)


_ONCE = (None,)


def _of_sizes(shape: tuple[Any, ...]) -> tuple[Range, ...] | None:
    if len(shape) == 1 and isinstance(shape[0], tuple):
        shape = shape[0]
    sizes = [int(n) if isinstance(n, np.integer) else n for n in shape]
    if not all(type(n) is Size or (type(n) is int and n >= 0) for n in sizes):
        return None
    return tuple(Range(0, n, 1) for n in sizes)


def _of_ranges(ranges: tuple[Any, ...], repeat: Any = 1) -> tuple[Range, ...] | None:
    if type(repeat) is not int or not all(type(x) is range for x in ranges):
        return None
    return tuple(Range(x.start, x.stop, x.step) for x in ranges) * repeat


ALLOWED += [grid, along, np.ndindex, itertools.product, itertools.repeat]

# The functions that loops call, by name.
GRIDS = {".grid": grid, ".along": along}
