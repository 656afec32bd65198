"""How blocks read their operands: from files, chunks, or edges of chunks.

A block that needs a chunk of a file reads it. A block that needs only a small part of a chunk in
memory, such as a halo, gets it from a task that cuts off the edges. Then the chunk can be freed,
and little data moves between workers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np

from rune_jit.chunked.iota import Iota
from rune_jit.chunked.plan import ArrayInfo, Axis, Box, Chunks, Pass, Plan

Place = tuple[int, ...]  # the number of a chunk, by axis
# Along an axis: the chunk, the part that is read, its place in the operand, its share of the chunk.
_Along = tuple[int, tuple[int, int], slice, float]

# A part is an edge if it is a smaller share of its chunk.
_EDGE = 0.25


class Layout(NamedTuple):
    """The dtype, the chunks and the origin of a plan's array."""

    dtype: np.dtype[Any]
    chunks: Chunks
    is_iota: bool = False
    stored: str | None = None  # the key of the array in files, if the chunks are read from files

    def bytes_of(self, place: Place) -> int:
        """The bytes of a chunk."""
        sizes = (axis[i] for axis, i in zip(self.chunks, place, strict=True))
        return math.prod(sizes) * self.dtype.itemsize


class Way(Enum):
    FILE = auto()  # the block reads the file
    CHUNK = auto()  # from a chunk, which a task has made
    EDGE = auto()  # from the edges that a task has cut off a chunk


class Part(NamedTuple):
    """The elements of a box that lie in one chunk."""

    place: Place
    way: Way
    box: Box  # in the chunk
    target: tuple[slice, ...]  # in the operand


class Reading(NamedTuple):
    """The boxes that a block reads of one array."""

    array: int
    box: Box
    parts: list[Part]  # none for integers that a block makes itself

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(high - low for low, high in self.box)


def layouts(plan: Plan, arguments: Sequence[Any]) -> list[Layout]:
    """The layouts of a plan's arrays, for these arguments."""

    def layout(info: ArrayInfo) -> Layout:
        if info.argument is None:
            return Layout(info.dtype, info.chunks)
        argument = arguments[info.argument]
        if isinstance(argument, Iota):
            return Layout(info.dtype, info.chunks, is_iota=True)
        if hasattr(argument, "chunks"):
            return Layout(info.dtype, argument.chunks, stored=_array_in_files(argument))
        return Layout(info.dtype, info.chunks)

    return [layout(info) for info in plan.arrays]


def _array_in_files(x: Any) -> str | None:
    """The key of the zarr array from which dask.array.from_zarr made a dask array. None for other
    arrays, and if chunks are not slices of the zarr array."""
    from dask.array.core import getter

    key = f"original-{x.name}"
    layer = x.dask.layers.get(key)
    task = getattr(x.dask.layers.get(x.name), "task", None)
    if layer is None or getattr(task, "func", None) is not getter:
        return None
    node: Any = layer[key]
    found = getattr(node, "value", node)
    is_zarr = type(found).__module__.partition(".")[0] == "zarr"
    return key if is_zarr and found.shape == x.shape and found.dtype == x.dtype else None


class Reader:
    """The parts of chunks that the blocks of a plan read, for these arguments.

    Attributes:
        layouts: by array.
        readings: by pass and block, in the order of the block's operands.
    """

    def __init__(self, plan: Plan, arguments: Sequence[Any]) -> None:
        self.layouts = layouts(plan, arguments)
        self._axes = [[Axis(sizes) for sizes in layout.chunks] for layout in self.layouts]
        self._along: dict[Any, list[_Along]] = {}
        self.readings = [self._of_pass(one) for one in plan.passes]

    def _of_pass(self, one: Pass) -> list[list[Reading]]:
        boxes = [[self._reading(*operand) for operand in block.operands] for block in one.blocks]
        users: Counter[tuple[int, Place]] = Counter()
        # How many blocks read more than an edge of a chunk.
        most_of: Counter[tuple[int, Place]] = Counter()
        for readings in boxes:
            for array, _, parts in readings:
                for part in parts:
                    users[array, part.place] += 1
                    most_of[array, part.place] += part.way is not Way.EDGE

        def way(array: int, part: Part) -> Way:
            at = array, part.place
            if part.way is Way.EDGE and users[at] > 1:
                return Way.EDGE
            is_stored = self.layouts[array].stored is not None
            # If more than two blocks read a chunk, reading it again costs more than keeping it.
            return Way.FILE if is_stored and most_of[at] <= 2 else Way.CHUNK

        for readings in boxes:
            for array, _, parts in readings:
                parts[:] = [Part(p.place, way(array, p), p.box, p.target) for p in parts]
        return boxes

    def _reading(self, array: int, box: Box) -> Reading:
        layout = self.layouts[array]
        if layout.is_iota:
            return Reading(array, box, [])
        parts = []
        for along in itertools.product(*(self._parts(array, i, r) for i, r in enumerate(box))):
            places, boxes, targets, shares = zip(*along, strict=True) if along else ((),) * 4
            way = Way.EDGE if math.prod(shares) < _EDGE else Way.CHUNK
            parts.append(Part(places, way, boxes, targets))
        return Reading(array, box, parts)

    def _parts(self, array: int, axis: int, limits: tuple[int, int]) -> list[_Along]:
        key = array, axis, limits
        if key not in self._along:
            sizes = self.layouts[array].chunks[axis]
            self._along[key] = [
                (i, (taken.start, taken.stop), target, (taken.stop - taken.start) / sizes[i])
                for i, taken, target in self._axes[array][axis].parts(*limits)
            ]
        return self._along[key]
