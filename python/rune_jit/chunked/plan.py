"""A program that the core has cut into programs of blocks."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rune_jit import _core

Chunks = tuple[tuple[int, ...], ...]  # sizes of chunks, by axis
Box = tuple[tuple[int, int], ...]  # [low, high) by axis


class ArrayInfo(NamedTuple):
    argument: int | None  # of the program; None: a pass computes the array
    dtype: np.dtype[Any]
    chunks: Chunks

    @property
    def nbytes(self) -> int:
        return math.prod(map(sum, self.chunks)) * self.dtype.itemsize


class Result(NamedTuple):
    """The result of each block of a pass: a chunk of an array, or a part of one."""

    array: int
    grid_axes: tuple[int, ...]  # by axis of the array: the axis of the grid, or -1 for one chunk
    combine: str | None  # how parts are combined
    reduced: tuple[int, ...]  # the axes of the grid along which they are combined

    def chunk(self, at: Sequence[int]) -> tuple[int, ...]:
        """The chunk of the array at a place in the grid."""
        return tuple(at[axis] if axis >= 0 else 0 for axis in self.grid_axes)


class BlockInfo(NamedTuple):
    program: int | None  # None: a host call
    operands: list[tuple[int, Box]]  # (array, box)


class Call(NamedTuple):
    """A call of a host function."""

    name: str
    number: int
    results: list[int]  # numbers of the function's results that the pass returns


class Pass(NamedTuple):
    level: int
    grid: Chunks
    results: list[Result]
    blocks: list[BlockInfo]  # in row-major order of the grid
    call: Call | None  # if each block is a host call and not a program

    @property
    def reads(self) -> set[int]:
        """The arrays that its blocks read."""
        return {array for block in self.blocks for array, _ in block.operands}

    def places(self) -> Iterator[tuple[int, ...]]:
        return itertools.product(*(range(len(axis)) for axis in self.grid))


class Plan:
    """A graph that is cut into passes of blocks. `chunks`: the chunks of each argument, by axis.
    (Empty chunks are ignored.) Raises UnsupportedOpError if the graph cannot be cut."""

    def __init__(self, graph: Any, device: str, chunks: Sequence[Chunks]) -> None:
        core = _core.cut(graph, device, [_without_empty(axes) for axes in chunks])
        self.text = str(core)
        self.outputs: list[int] = core.outputs
        self.programs: list[str] = core.programs
        self.arrays = [
            ArrayInfo(argument, dtype, tuple(map(tuple, axes)))
            for argument, dtype, axes in core.arrays
        ]
        self.passes = [
            Pass(
                level,
                tuple(map(tuple, grid)),
                [Result(a, tuple(axes), combine, tuple(along)) for a, axes, combine, along in rs],
                [BlockInfo(program, operands) for program, operands in blocks],
                None if call is None else Call(*call),
            )
            for level, grid, rs, blocks, call in core.passes
        ]


def _without_empty(axes: Chunks) -> list[list[int]]:
    return [[size for size in axis if size] or [0] for axis in axes]


class Axis:
    """The chunks of an axis, with these sizes."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._ends = list(itertools.accumulate(sizes))

    def parts(self, low: int, high: int) -> list[tuple[int, slice, slice]]:
        """The chunks with elements of [low, high): for each, its number, the part of the chunk, and
        the place of this part in the range.

        >>> from rune_jit.chunked.plan import Axis
        >>> Axis([4, 4]).parts(3, 5)
        [(0, slice(3, 4, None), slice(0, 1, None)), (1, slice(0, 1, None), slice(1, 2, None))]
        """
        parts = []
        number = bisect.bisect_right(self._ends, low)
        while low < high:
            end = self._ends[number]
            start = self._ends[number - 1] if number else 0
            first, last = max(low, start), min(high, end)
            if first < last:
                taken = slice(first - start, last - start)
                parts.append((number, taken, slice(first - low, last - low)))
            if end >= high:
                break
            number += 1
        return parts
