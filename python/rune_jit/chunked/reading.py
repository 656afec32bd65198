"""How blocks read what they are computed from: files, chunks, or edges of chunks.

A chunk of a file is read by the block that needs it. Of chunks in memory a block that needs a small
part, as of a halo, takes that from a task that cuts the edges off: the chunk can go, and little
travels."""

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

Place = tuple[int, ...]  # of a chunk, by axis
# Of an axis: the chunk, its elements that are read, where these are put, which share they are.
_Along = tuple[int, tuple[int, int], slice, float]

# Less than this part of a chunk is an edge.
_EDGE = 0.25


class Layout(NamedTuple):
    """The place of an array of a plan."""

    dtype: np.dtype[Any]
    chunks: Chunks
    is_iota: bool = False
    stored: str | None = None  # the key of the array in files whose chunks these are

    def bytes_of(self, place: Place) -> int:
        """Of a chunk."""
        sizes = (axis[i] for axis, i in zip(self.chunks, place, strict=True))
        return math.prod(sizes) * self.dtype.itemsize


class Way(Enum):
    FILE = auto()  # the block reads it from the file
    CHUNK = auto()  # of a chunk, which a task has made
    EDGE = auto()  # of the edges that a task has cut off a chunk


class Part(NamedTuple):
    """The elements of a box that lie in one chunk."""

    place: Place
    way: Way
    box: Box  # of the chunk
    target: tuple[slice, ...]  # of the operand


class Reading(NamedTuple):
    """The boxes that a block reads of one array."""

    array: int
    box: Box
    parts: list[Part]  # none of integers that a block makes itself

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(high - low for low, high in self.box)


def layouts(plan: Plan, arguments: Sequence[Any]) -> list[Layout]:
    """The places of a plan's arrays, for these arguments."""

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
    """The key of the zarr array whose chunks a dask array is, as dask.array.from_zarr makes it.
    None for other arrays, and where chunks are not simply slices of it."""
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
    """What the blocks of a plan read of these arguments.

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
        most_of: Counter[tuple[int, Place]] = Counter()  # users of more than an edge
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
            # Beyond two, reading a chunk again costs more than keeping it.
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
